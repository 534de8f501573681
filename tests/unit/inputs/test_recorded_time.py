"""What recordings cover of the run: which are short, and which are of one run."""

import pyarrow as pa
import pytest
from test_quality import capabilities, kinds

from causeway.command_line.check import Described, describe_run
from causeway.core.tables import SCHEMAS, write_json, write_table
from causeway.inputs.quality import check
from causeway.inputs.recorded_time import recordings_of


def _absent(field):
    return None if field.nullable else 0 if pa.types.is_integer(field.type) else "absent"


def recorded(folder, rank, session, **tables):
    """Write an export of one rank: events by table as (start, end); return its folder."""
    folder = folder / str(rank)
    for name, events in tables.items():
        rows = [{"start_ns": start, "duration_ns": end - start, "rank": rank} for start, end in events]
        columns = {
            field.name: pa.array([row.get(field.name, _absent(field)) for row in rows], field.type)
            for field in SCHEMAS[name]
        }
        write_table(pa.table(columns, schema=SCHEMAS[name]), folder / f"{name}.parquet", name)
    gpu = tables["launches"]
    span = {"first": gpu[0][0], "last": max(end for _, end in gpu)}
    document = capabilities(str(rank), ranks=[rank], session=session, **span)
    document["tables"] = {name: len(events) for name, events in tables.items()}
    write_json(document, folder / "capabilities.json", schema="capabilities")
    return folder


def test_a_recording_lasts_from_the_first_to_the_last_event_of_any_kind(tmp_path):
    tables = {"launches": [(100, 200), (150, 160)], "transfers": [(90, 95)], "calls": [(80, 300), (250, 260)]}
    folder = recorded(tmp_path, 0, 0, **tables, mpi=[(70, 75)], ranges=[(60, 400)])
    (found,) = recordings_of(folder).values()
    assert (found.gpu, found.whole) == ((90, 200), (60, 400))
    only_ranges = recorded(tmp_path, 1, 0, launches=[(100, 200)], ranges=[(60, 400)])
    assert recordings_of(only_ranges)[1].whole is None


def test_a_recording_that_ends_early_is_named(tmp_path):
    """GPU work lasts from 1,000 to 9,000 on the time line; rank 2 counts from 500, and its recording ends at 5,500."""
    folders = [
        recorded(tmp_path, 0, 0, launches=[(1000, 9000)], calls=[(0, 9100)]),
        recorded(tmp_path, 1, 0, launches=[(2000, 3000)], calls=[(1010, 8990)]),
        recorded(tmp_path, 2, 500, launches=[(500, 4500)], calls=[(0, 5000)]),
    ]
    found = kinds(check("d", folders))["short_recordings"]
    assert (found["count"], found["severity"]) == (1, "caution")
    assert found["detail"].endswith(": rank 2 lacks the last 3.50 µs of 8.00 µs of GPU work")
    later = recorded(tmp_path / "x", 0, 0, launches=[(1000, 9000)], calls=[(900, 9100)])
    begins = recorded(tmp_path / "x", 1, 0, launches=[(2000, 2500)], calls=[(1500, 8000)])
    detail = kinds(check("d", [later, begins]))["short_recordings"]["detail"]
    assert "rank 1 lacks the first 500 ns and the last 1.00 µs of 8.00 µs" in detail


@pytest.mark.parametrize("silent", [{"calls": []}, {"session": None}])
def test_what_is_not_known_of_a_recording_is_no_issue(tmp_path, silent):
    calls = {"calls": [(1000, 4000)]} if "session" in silent else {}
    folders = [
        recorded(tmp_path, 0, 0, launches=[(1000, 9000)], calls=[(0, 9100)]),
        recorded(tmp_path, 1, silent.get("session", 0), launches=[(1000, 2000)], **calls),
    ]
    assert "short_recordings" not in kinds(check("d", folders))


@pytest.mark.parametrize(("wait_until", "apart"), [(6000, False), (2500, True)])
def test_ranks_that_work_one_after_the_other_are_of_one_run_if_they_are_recorded_together(tmp_path, wait_until, apart):
    folders = [
        recorded(tmp_path, 0, 0, launches=[(1000, 2000)], mpi=[(2000, wait_until)]),
        recorded(tmp_path, 1, 0, launches=[(4000, 5000)], mpi=[(3000, 4000)]),
    ]
    quality = check("d", folders)
    assert ("not_concurrent" in kinds(quality)) == apart
    exports = [
        Described(capabilities(str(rank), ranks=[rank], session=0, first=first, last=first + 1000), [], recorded_)
        for rank, (first, recorded_) in enumerate(zip((1000, 4000), map(recordings_of, folders), strict=True))
    ]
    assert any("do not all overlap in time" in line for line in describe_run("d", exports)) == apart

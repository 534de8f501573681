"""Clocks of a dataset: by session starts, by one export alone, or from zero."""

import json

import pytest

from causeway.core.tables import TableError, write_json
from causeway.inputs.session_clocks import align


def clocks(tmp_path, *exports):
    """Align exports given as (name, status, first_ns or None, session_start_ns)."""
    folders = []
    for name, status, first, session in exports:
        time = (
            None
            if status == "refused"
            else {"first_ns": first, "last_ns": 9, "session_start_ns": session, "has_start": first is not None}
        )
        folders.append(tmp_path / name)
        folders[-1].mkdir(exist_ok=True)
        document = {"export": name, "status": status, "time": time, "ranks": [] if status == "refused" else [int(name)]}
        (folders[-1] / "capabilities.json").write_text(json.dumps(document))
    found = align("d", folders)
    write_json(found, tmp_path / "clocks.json", schema="clocks")
    return found["method"], {name: entry["shift_ns"] for name, entry in found["exports"].items()}, found["reason"]


def test_session_starts_where_every_export_knows_its_own(tmp_path):
    method, shifts, _ = clocks(
        tmp_path, ("0", "read", 5, 1_700_000_000_000_000_100), ("1", "partial", 6, 1_700_000_000_000_000_000)
    )
    assert (method, shifts) == ("session_start", {"0": 100, "1": 0})


def test_first_launches_are_moved_to_zero_where_one_does_not_know(tmp_path):
    method, shifts, reason = clocks(tmp_path, ("0", "read", 5, 100), ("1", "read", -6, None))
    assert (method, shifts) == ("zero", {"0": -5, "1": 6})
    assert reason.startswith("1 does not report")


def test_one_export_is_left_alone(tmp_path):
    assert clocks(tmp_path, ("0", "read", 5, None))[:2] == ("one_export", {"0": 0})
    assert clocks(tmp_path, ("0", "read", 5, 7), ("1", "refused", None, None))[:2] == ("one_export", {"0": 0})
    assert clocks(tmp_path, ("0", "read", 5, 7), ("1", "read", None, None))[:2] == ("one_export", {"0": 0, "1": 0})


def test_rows_without_times_and_nothing_at_all(tmp_path):
    assert clocks(tmp_path, ("0", "read", None, None), ("1", "read", None, None))[:2] == ("zero", {"0": 0, "1": 0})
    assert clocks(tmp_path, ("0", "refused", None, None)) == ("zero", {}, "no export could be used")


def test_the_schema_refuses_a_fraction_of_a_nanosecond(tmp_path):
    clocks(tmp_path, ("0", "read", 5, None))
    found = json.loads((tmp_path / "clocks.json").read_text())
    found["exports"]["0"]["shift_ns"] = 0.5
    with pytest.raises(TableError, match="shift_ns"):
        write_json(found, tmp_path / "x.json", schema="clocks")


@pytest.mark.parametrize("session", [None, 100])
def test_an_export_that_a_filter_emptied_has_no_time_line_of_its_own(tmp_path, session):
    """It keeps that it has start times, and has no first launch: the others' clocks do not need it."""
    for name, first in (("0", 5), ("1", None), ("2", 7)):
        folder = tmp_path / name
        folder.mkdir()
        time = {"first_ns": first, "last_ns": first, "session_start_ns": session, "has_start": True}
        document = {"export": name, "status": "read", "time": time, "ranks": [int(name)]}
        (folder / "capabilities.json").write_text(json.dumps(document))
    found = align("d", [tmp_path / name for name in "012"])
    assert found["method"] == ("zero" if session is None else "session_start")
    assert found["exports"]["1"]["shift_ns"] == 0

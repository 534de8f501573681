"""Every real export, read or refused with the right sentence.

What is expected of each stands in `tests/data/expected_exports.json`: under `counted` what
`tests/data/count_exports.py` found in the file by other means (rows, sums of times, times by class, busy, idle and
overlap, sums of counters), under `stated` what was settled by looking at the file and its README (format, rank, what is
ruled out, issues, the sentence of a refusal, and under `cut` the times without what launches run over their successors).
"""

import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from reading import Read

from causeway.core.tables import SCHEMAS, read_table
from causeway.numeric import intervals
from data import count_exports
from support import OF_THE_CLONE, REAL, real_exports

EXPECTED = json.loads(count_exports.EXPECTED.read_text(encoding="utf-8"))
WHOLE = REAL != OF_THE_CLONE
PRESENT = count_exports.discover(REAL) if WHOLE else real_exports()
COUNTED_ROWS = ("launches", "transfers", "calls", "ranges", "host_operators", "samples", "counters", "kernels")


def test_each_export_has_its_expectation_and_each_expectation_its_export():
    assert set(PRESENT) - set(EXPECTED) == set(), (
        "exports without an expectation: count them with tests/data/count_exports.py"
    )
    assert not WHOLE or set(EXPECTED) == set(PRESENT), "expectations without an export"
    assert all(entry.keys() == {"counted", "stated"} for entry in EXPECTED.values())


def measured(export):
    """Return what the tables say, under the names of `counted`."""
    tables = export.capabilities["tables"]
    found = {name: tables[name] for name in COUNTED_ROWS if name in tables}
    transfers = export.transfers if "transfers" in tables else None
    if transfers is not None:
        found["transfer_ns"] = pc.sum(transfers.column("duration_ns")).as_py()
    if "launches" in tables:
        launches = export.launches
        found["launch_ns"] = pc.sum(launches.column("duration_ns")).as_py()
        classes = dict(zip(*(export.kernels.column(name).to_pylist() for name in ("kernel", "class")), strict=True))
        of = np.array([classes[kernel] for kernel in export.configurations.column("kernel").to_pylist()])
        of = of[launches.column("configuration").to_numpy()]
        duration = launches.column("duration_ns").to_numpy()
        found |= {
            f"{kind}_ns": int(duration[of == kind].sum()) for kind in ("communication", "memory") if (of == kind).any()
        }
        found |= device_times(launches, transfers, of)
    if "counters" in tables:
        counters = export.counters
        for field in counters.schema:
            raw = (field.metadata or {}).get(b"raw", b"").decode().split("/")[-1]
            name = "gpu_time" if field.name == "gpu_time" else raw
            if (
                field.name not in SCHEMAS["counters"].names
                and pa.types.is_floating(field.type)
                and pc.count(counters.column(field.name)).as_py()
            ):
                found[f"sum {name}"] = pc.sum(counters.column(field.name)).as_py()
    return found


def device_times(launches, transfers, of):
    """Return busy, idle and overlap, summed over devices."""

    def columns(table):
        start = table.column("start_ns").to_numpy()
        return (
            start,
            start + table.column("duration_ns").to_numpy(),
            table.column("rank").to_numpy(),
            table.column("device").to_numpy(),
        )

    start, end, *place = columns(launches)
    other = [np.empty(0, np.int64)] * 4 if transfers is None else columns(transfers)
    found = dict.fromkeys(("busy_ns", "idle_ns", "overlap_ns"), 0)
    for rank, device in sorted(set(zip(*place, strict=True))):
        mine = (place[0] == rank) & (place[1] == device)
        theirs = (other[2] == rank) & (other[3] == device)
        starts = np.append(start[mine], other[0][theirs])
        ends = np.append(end[mine], other[1][theirs])
        busy = intervals.length(intervals.union(starts, ends))
        sets = [
            intervals.union(start[mine & (of == kind)], end[mine & (of == kind)])
            for kind in ("communication", "compute")
        ]
        found["busy_ns"] += busy
        found["idle_ns"] += int(ends.max() - starts.min()) - busy
        found["overlap_ns"] += intervals.length(intervals.intersection(*sets))
    return found


def first_of_each_kind(names):
    """Return the smallest export of each format, version and outcome."""
    least = {}
    for name in sorted(names, key=lambda name: (bytes_of(REAL / name), name)):
        stated = EXPECTED.get(name, {"stated": {}})["stated"]
        issues = sorted(stated.get("issues", {}))
        kind = [stated.get(key) for key in ("format", "format_version", "status", "kind", "ruled_out", "found")]
        least.setdefault(json.dumps([*kind, issues]), name)
    return set(least.values())


def bytes_of(path):
    """Return the bytes of a file, or of all files of a folder."""
    files = path.rglob("*") if path.is_dir() else [path]
    return sum(file.stat().st_size for file in files if file.is_file())


QUICK = first_of_each_kind(PRESENT) | set(real_exports())
"""What is read where time matters: one of each kind, and the exports of the clone."""


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in PRESENT]
)
def test_an_export_is_read_as_expected(name, tmp_path):
    assert name in EXPECTED, (
        "this export has no expectation: count it with tests/data/count_exports.py and state the rest"
    )
    stated = EXPECTED[name]["stated"]
    counted = EXPECTED[name]["counted"] | stated.get("cut", {})
    export = Read(REAL / name, tmp_path / "tables", source=name)
    document = export.capabilities
    if stated["status"] == "refused":
        assert {key: document[key] for key in ("format", "status")} == {
            key: stated[key] for key in ("format", "status")
        }
        assert export.error["found"] == stated["found"]
        assert export.error["advice"] == stated["advice"]
        assert not export.names
        assert not any(entry["possible"] for entry in document["analyses"].values())
        return
    assert {key: document[key] for key in ("format", "status", "kind", "ranks", "ranks_from", "format_version")} == {
        key: stated[key] for key in ("format", "status", "kind", "ranks", "ranks_from", "format_version")
    }
    assert export.error is None
    assert (
        sorted(analysis for analysis, entry in document["analyses"].items() if not entry["possible"])
        == stated["ruled_out"]
    )
    assert {issue["kind"]: issue["count"] for issue in document["issues"]} == stated["issues"]
    assert document["tables"] == {name: counted[name] for name in COUNTED_ROWS if name in counted} | stated["tables"]
    assert export.names == set(document["tables"])
    for table, rows in document["tables"].items():
        assert read_table(export.folder / f"{table}.parquet", table).num_rows == rows
        assert pq.read_schema(export.folder / f"{table}.parquet").metadata[b"causeway.source"].decode() == name
    found = measured(export)
    for what, value in counted.items():
        if isinstance(value, int):
            assert found[what] == value, what
        else:
            assert found[what] == pytest.approx(value, rel=1e-9, abs=1e-3), what
    assert {what for what in found if what.endswith("_ns")} == {what for what in counted if what.endswith("_ns")}


@pytest.mark.slow
@pytest.mark.parametrize("name", PRESENT)
def test_the_count_agrees_with_the_file_of_expectations(name):
    assert count_exports.count(REAL, name) == EXPECTED[name]["counted"]

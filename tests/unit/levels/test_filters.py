"""Reduced datasets: what is kept, what is dropped, and that the two are the whole."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causeway.core.clock import Clock
from causeway.core.errors import CausewayError
from causeway.core.sheet import Export, with_reduced
from causeway.core.tables import open_table, read_json, read_table, table_metadata, write_table
from causeway.levels.filters import CLASSES, Clause, first_launch, reduce_export
from variability_tables import table_of, write_export

OWN_CLOCK = Clock()
CAPABILITIES = {
    **{
        "export": "0",
        "source": "made up",
        "format": "nsys",
        "format_version": None,
        "sha256": None,
        "bytes": 1,
        "status": "read",
    },
    **{
        "error": None,
        "kind": "trace",
        "ranks": [0, 1],
        "ranks_from": "sheet",
        "streams": {"0": 2, "1": 2},
        "node": None,
    },
    **{"tables": {}, "rows_in": {}, "values": {}, "issues": []},
    "time": {"first_ns": 0, "last_ns": 1, "session_start_ns": None, "has_start": True},
    "analyses": {
        name: {"possible": True, "why": None}
        for name in (
            "kernel_variability memory_stall counter_deviation causes time_line queue_delay ranges overlap".split()
        )
    },
}


def write_case(folder, rows, seed=0):
    """Write an export of two ranks with every kind of event; kernels k0, k1, k2 are of one class each."""
    rng = np.random.default_rng(seed)
    start = np.sort(rng.integers(1_000, 1_000_000, rows))
    facts = {"start_ns": start, "duration_ns": rng.integers(0, 90_000, rows), "rank": rng.integers(0, 2, rows)}
    launches = facts | {"configuration": rng.integers(0, 3, rows), "stream": rng.integers(7, 9, rows)}
    transfers = facts | {"copy_kind": rng.choice([1, 2, 255], rows), "bytes": rng.integers(0, 99, rows)}
    write_export(folder, launches, transfers, configurations=[(f"k{n}", {"grid_x": n}) for n in range(3)], ranks=[0, 1])
    kernels = read_table(folder / "kernels.parquet", "kernels").set_column(4, "class", pa.array(CLASSES[:3]))
    write_table(kernels, folder / "kernels.parquet", "kernels")
    for name, more in (
        ("calls", {"name": ["cudaLaunchKernel"] * rows}),
        ("ranges", {"kind": ["push"] * rows, "name": ["step"] * rows}),
    ):
        write_table(
            table_of(name, facts | more | ({"range": np.arange(rows)} if name == "ranges" else {})),
            folder / f"{name}.parquet",
            name,
        )
    samples = {"time_ns": start, "rank": facts["rank"], "metric": ["sm"] * rows, "value": rng.random(rows)}
    write_table(table_of("samples", samples), folder / "samples.parquet", "samples", (), {"source": "made up"})
    tables = dict.fromkeys(("launches", "transfers", "calls", "ranges", "samples"), rows)
    time = {"first_ns": int(start[0]), "last_ns": int(start[-1]), "session_start_ns": None, "has_start": True}
    (folder / "capabilities.json").write_text(
        json.dumps(CAPABILITIES | {"tables": tables, "time": time}), encoding="utf-8"
    )
    return folder


def reduce(folder, out, keep, origin=0, clock=OWN_CLOCK):
    return reduce_export(
        folder,
        out,
        [Clause.of(entry) for entry in keep],
        clock.counting_from(origin),
        source_dataset="whole",
        settings=keep,
    )


def rows_by_class(folder, name):
    """Return (class, rank, start, duration) of every row: an answer that passes through plain Python alone."""
    read = pq.read_table(folder / f"{name}.parquet").to_pylist()
    kernels = {row["kernel"]: row["class"] for row in pq.read_table(folder / "kernels.parquet").to_pylist()}
    of = {
        row["configuration"]: kernels[row["kernel"]]
        for row in pq.read_table(folder / "configurations.parquet").to_pylist()
    }
    fixed = {"calls": "call", "ranges": "range", "samples": "sample"}
    for row in read:
        if name == "launches":
            kind = of[row["configuration"]]
        elif name == "transfers":
            kind = "memset" if row["copy_kind"] == 255 else "copy"
        else:
            kind = fixed[name]
        yield kind, row["rank"], row.get("start_ns", row.get("time_ns")), row.get("duration_ns")


def expected(folder, name, keep, origin):
    """Return which rows a list of clauses keeps, row by row."""
    for kind, rank, start, duration in rows_by_class(folder, name):
        yield any(
            kind in clause.get("classes", [kind])
            and rank in clause.get("ranks", [rank])
            and (
                "min_duration_us" not in clause
                or (duration is not None and duration >= clause["min_duration_us"] * 1000)
            )
            and (
                "max_duration_us" not in clause
                or (duration is not None and duration <= clause["max_duration_us"] * 1000)
            )
            and (
                "window_us" not in clause
                or clause["window_us"][0] * 1000 <= start - origin < clause["window_us"][1] * 1000
            )
            for clause in keep
        )


def kernel_of(folder, row):
    """Return what a launch's configuration means."""
    shapes = pq.read_table(folder / "configurations.parquet").to_pylist()
    assert [shape["configuration"] for shape in shapes] == list(range(len(shapes)))
    kernels = pq.read_table(folder / "kernels.parquet").to_pylist()
    shape = shapes[row["configuration"]]
    return kernels[shape["kernel"]]["name"], shape["grid_x"]


clauses = st.fixed_dictionaries(
    {"ranks": st.sampled_from([[0], [1], [0, 1]])},
    optional={
        "classes": st.lists(st.sampled_from(CLASSES), min_size=1, unique=True),
        "min_duration_us": st.integers(0, 80),
        "max_duration_us": st.integers(10, 90),
        "window_us": st.tuples(st.integers(-5, 400), st.integers(401, 1000)).map(list),
    },
).filter(lambda clause: clause.get("min_duration_us", 0) <= clause.get("max_duration_us", 90))  # others are refused


@settings(max_examples=5, deadline=None)
@given(keep=st.lists(clauses, min_size=1, max_size=3), seed=st.integers(0, 5))
def test_what_is_kept_is_what_the_clauses_say_and_the_rest_is_counted_to_the_nanosecond(tmp_path_factory, keep, seed):
    folder = write_case(tmp_path_factory.mktemp("whole") / "0", 60, seed)
    out = folder.parent / "reduced"
    document = reduce(folder, out, keep, origin=1_500)
    for name in ("launches", "transfers", "calls", "ranges", "samples"):
        whole = pq.read_table(folder / f"{name}.parquet")
        wanted = np.array(list(expected(folder, name, keep, 1_500)), bool)
        kept = pq.read_table(out / f"{name}.parquet")
        chosen = whole.filter(pa.array(wanted))
        if name == "launches":
            assert [kernel_of(out, row) for row in kept.to_pylist()] == [
                kernel_of(folder, row) for row in chosen.to_pylist()
            ]
            kept = kept.drop(["configuration"])
            chosen = chosen.drop(["configuration"])
        assert kept.to_pylist() == chosen.to_pylist()
        kinds = np.array([row[0] for row in rows_by_class(folder, name)])
        lasting = np.array([row[3] or 0 for row in rows_by_class(folder, name)])
        for kind, entry in document["tables"][name].items():
            for part, rows in (
                ("before", kinds == kind),
                ("kept", wanted & (kinds == kind)),
                ("dropped", ~wanted & (kinds == kind)),
            ):
                assert entry["rows"][part] == rows.sum()
                assert entry["duration_ns"][part] == lasting[rows].sum()


def test_collectives_and_long_computation_as_in_the_talk(tmp_path):
    folder = write_case(tmp_path / "0", 500)
    document = reduce(
        folder, tmp_path / "out", [{"classes": ["communication"]}, {"classes": ["compute"], "min_duration_us": 50}]
    )
    launches = document["tables"]["launches"]
    assert launches["communication"]["rows"]["dropped"] == 0
    assert launches["compute"]["duration_ns"]["kept"] > launches["compute"]["duration_ns"]["dropped"] > 0
    assert launches["memory"]["rows"]["kept"] == 0
    assert document["tables"]["calls"]["call"]["rows"]["kept"] == 0
    kept = read_table(tmp_path / "out" / "configurations.parquet", "configurations")["configuration"].to_pylist()
    assert kept == [0, 1]
    capabilities = read_json(tmp_path / "out" / "capabilities.json")
    assert capabilities["tables"]["launches"] == sum(entry["rows"]["kept"] for entry in launches.values())
    assert capabilities["issues"][-1]["kind"] == "reduced_dataset"
    assert not capabilities["analyses"]["memory_stall"]["possible"]
    assert table_metadata(tmp_path / "out" / "samples.parquet")["source"] == "made up"


def test_nothing_left_is_no_crash_and_the_same_twice_gives_the_same_bytes(tmp_path):
    folder = write_case(tmp_path / "0", 50)
    for name in ("a", "b"):
        reduce(folder, tmp_path / name, [{"ranks": [7]}])
    with open_table(tmp_path / "a" / "launches.parquet", "launches") as file:
        assert file.metadata.num_rows == 0
    assert read_json(tmp_path / "a" / "capabilities.json")["ranks"] == []
    assert [path.read_bytes() for path in sorted((tmp_path / "a").iterdir())] == [
        path.read_bytes() for path in sorted((tmp_path / "b").iterdir())
    ]


@pytest.mark.parametrize("keep", [{"classes": ["range"], "ranks": [1]}, {"max_duration_us": 30}, {"classes": ["copy"]}])
def test_executions_of_whole_graphs_are_kept_with_their_ranges(keep, tmp_path):
    """All stayed as work of the devices, while their ranges were dropped."""
    folder = write_case(tmp_path / "0", 50)
    columns = ["start_ns", "duration_ns", "rank"]
    ranges = read_table(folder / "ranges.parquet", "ranges", columns).to_pydict()
    write_table(table_of("graphs", ranges), folder / "graphs.parquet", "graphs")
    document = reduce(folder, tmp_path / "a", [keep])
    graphs = read_table(tmp_path / "a" / "graphs.parquet", "graphs", columns)
    assert graphs.num_rows < 50
    assert graphs.to_pydict() == read_table(tmp_path / "a" / "ranges.parquet", "ranges", columns).to_pydict()
    assert "graphs" not in document["tables"]  # an execution is counted once
    assert read_json(tmp_path / "a" / "capabilities.json")["tables"]["graphs"] == graphs.num_rows


def test_an_empty_window_is_refused_with_its_numbers():
    with pytest.raises(CausewayError, match=r"\[5, 5\] is empty"):
        Clause.of({"window_us": [5, 5]})


def test_windows_count_from_the_first_launch_of_all_exports(tmp_path):
    folders = {str(rank): write_case(tmp_path / str(rank), 20, rank) for rank in range(2)}
    first = [read_json(folder / "capabilities.json")["time"]["first_ns"] for folder in folders.values()]
    clocks = {"exports": {"0": {"shift_ns": 100}, "1": {"shift_ns": -5_000_000}}}
    assert first_launch(folders, clocks) == first[1] - 5_000_000


def test_reduced_datasets_stand_behind_the_sheets_own(tmp_path):
    exports = [Export("run", str(rank), rank, rank, "x", "nsys", "", tmp_path, None) for rank in range(2)]
    exports = [replace(export, series="strong:s") for export in exports]
    found = with_reduced(exports, {"long": {"dataset": "run"}})
    assert [export.series for export in found] == ["strong:s", "strong:s", "", ""]
    assert [(export.dataset, export.export) for export in found] == [
        ("run", "0"),
        ("run", "1"),
        ("long", "0"),
        ("long", "1"),
    ]
    with pytest.raises(CausewayError, match="no dataset ruin"):
        with_reduced(exports, {"long": {"dataset": "ruin"}})
    with pytest.raises(CausewayError, match="run: the sheet has a dataset of that name"):
        with_reduced(exports, {"run": {"dataset": "run"}})


def test_windows_count_on_the_time_line_of_the_dataset(tmp_path):
    folder = write_case(tmp_path / "0", 300)
    clock = Clock(70, 100_000_000, 0)
    document = reduce(folder, tmp_path / "reduced", [{"window_us": [0, 400]}], origin=1_500, clock=clock)
    start = read_table(folder / "launches.parquet", "launches")["start_ns"].to_numpy()
    aligned = start + 70 + (start * 100_000_000 + 500_000_000) // 10**9
    inside = (aligned >= 1_500) & (aligned < 401_500)
    assert inside.sum() != ((start >= 1_500) & (start < 401_500)).sum()
    kept = sum(entry["rows"]["kept"] for entry in document["tables"]["launches"].values())
    assert kept == inside.sum()


def test_bounds_with_no_duration_between_them_are_refused():
    with pytest.raises(
        CausewayError, match=r"min_duration_us: 5 is more than max_duration_us, 1; no launch is as long"
    ):
        Clause.of({"min_duration_us": 5, "max_duration_us": 1})
    one = Clause.of({"min_duration_us": 5, "max_duration_us": 5})
    assert (one.least_ns, one.most_ns) == (5000, 5000)

"""The events of a dataset in one table, beside the same rows joined by hand."""

from fractions import Fraction
from math import floor

import pytest
from efficiency_samples import clocks, event, export, write

import causeway
from causeway.core.errors import CausewayError

BILLION = 10**9
CLOCKS = {"0": (0, 0, 0), "1": (-3_000_000_017, -5630, 4 * BILLION + 3), "2": (12, 2182, 10 * BILLION)}


@pytest.fixture
def dataset(tmp_path):
    """Three ranks with clocks of their own, whose numbers of configurations differ; steps of rank 1 by its calls."""
    folder = tmp_path / "results" / "it's [a] run"
    moments = [(BILLION * k + 7 * k, BILLION * k + 500 + k) for k in range(1, 12)]
    for rank, grids in enumerate(([5, 7], [7], [9, 7, 5])):
        kernels = [(*span, {"grid": grids[k % len(grids)], "correlation": k}) for k, span in enumerate(moments)]
        kernels += [(900, 950, {"kernel": "softmax", "stream": 3, "queue_ns": 40})]
        made = [(start - 300 - k, start - 200, {"correlation": k}) for k, (start, _) in enumerate(moments) if k % 3]
        copies = [(2 * BILLION, 2 * BILLION + 9, {"bytes": 64, "correlation": 1})]
        graphs = [(3 * BILLION, 3 * BILLION + 9, {"correlation": 2})] if rank == 2 else []
        tables = folder / "tables" / str(rank)
        export(tables, rank, kernels, copies, made, graphs=graphs, grids=grids)
        if rank:
            write(tables, "operators", [{"operator": 0, "name": f"aten::op{rank}", "phase": "forward"}])
            rows = causeway.core.tables.read_table(tables / "launches.parquet", "launches").to_pylist()
            write(tables, "launches", [row | {"operator": 0 if row["call"] else None} for row in rows])
    clocks(folder / "clocks.json", CLOCKS)
    begin = [aligned("1", second * BILLION) for second in (2, 4)]
    steps = [event(start, start + BILLION, rank=1, step=k, warm_up=False) for k, start in enumerate(begin)]
    write(folder, "steps", steps)
    (folder / "quality.json").write_text("{}")
    return causeway.open(tmp_path / "results").datasets[folder.name]


def aligned(export, moment):
    """The formula of `clocks.json` in fractions, rounded half up."""
    shift, drift, reference = CLOCKS[export]
    return moment + shift + floor(Fraction((moment - reference) * drift, BILLION) + Fraction(1, 2))


def test_each_event_stands_there_once_on_the_datasets_line_with_its_call(dataset):
    rows = dataset.events().fetchdf().astype(object).where(lambda frame: frame.notna(), None).to_dict("records")
    assert [(row["rank"], row["start_ns"]) for row in rows] == sorted((row["rank"], row["start_ns"]) for row in rows)
    expected = []
    for name in CLOCKS:
        for kind, table in (("kernel", "launches"), ("copy", "transfers"), ("graph", "graphs")):
            if f"tables/{name}/{table}" in dataset.tables:
                for row in dataset.table(f"tables/{name}/{table}").arrow().to_pylist():
                    times = [row[key] for key in ("start_ns", "call_start_ns", "call_end_ns")]
                    times = [None if moment is None else aligned(name, moment) for moment in times]
                    expected.append((kind, name, row["rank"], *times, row["duration_ns"], row.get("bytes")))
    columns = "kind export rank start_ns call_start_ns call_end_ns duration_ns bytes".split()
    assert sorted(str(tuple(row[name] for name in columns)) for row in rows) == sorted(map(str, expected))
    assert {(row["rank"], row["operator"]) for row in rows if row["kind"] == "kernel" and row["call"]} == {
        (0, None), (1, "aten::op1"), (2, "aten::op2")
    }  # fmt: skip


def test_a_configuration_has_one_number_in_all_exports(dataset):
    grids = {}
    for row in dataset.events().filter("kind = 'kernel'").fetchdf().itertuples():
        own = dataset.table(f"tables/{row.export}/launches").arrow().to_pylist()
        number = next(one["configuration"] for one in own if aligned(row.export, one["start_ns"]) == row.start_ns)
        shape = dataset.table(f"tables/{row.export}/configurations").arrow().to_pylist()[number]
        grids.setdefault((row.kernel, shape["grid_x"]), set()).add(row.configuration)
    assert len(grids) == 4
    assert all(len(numbers) == 1 for numbers in grids.values())
    assert len(set.union(*grids.values())) == 4


def test_an_event_belongs_to_the_step_in_which_it_began_where_no_call_decides(dataset):
    steps = dataset.events().filter("step IS NOT NULL").fetchdf()
    expected = {
        (row["start_ns"], step)
        for table in ("launches", "transfers")
        for row in dataset.table(f"tables/1/{table}").arrow().to_pylist()
        for step, second in enumerate((2, 4))
        if aligned("1", second * BILLION) <= aligned("1", row["start_ns"]) < aligned("1", second * BILLION) + BILLION
    }
    assert set(zip(steps["start_ns"], steps["step"], strict=True)) == {(aligned("1", at), k) for at, k in expected}
    assert set(steps["rank"]) == {1}
    assert len(expected) == 5


def test_a_dataset_without_events_is_refused_in_one_sentence(dataset):
    for path in dataset.folder.glob("tables/*/*.parquet"):
        path.unlink()
    with pytest.raises(CausewayError, match="no export has launches, copies or graphs"):
        dataset.events()

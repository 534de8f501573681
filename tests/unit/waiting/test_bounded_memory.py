"""The graph in files, piece by piece: the same bytes as with everything in memory, and pieces that memory gives back."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from causeway.core.errors import TableError
from causeway.core.tables import read_table, write_json, write_table
from causeway.efficiency.ranks.collectives import matched
from causeway.events import event_blocks
from causeway.readers.normalise import normalise
from causeway.simulate.runs import write_run
from causeway.waiting.find_critical_paths import find_critical_paths
from causeway.waiting.graph import scratch
from causeway.waiting.graph.distinct_rows import distinct_rows
from causeway.waiting.graph.graph_builder import Matched
from causeway.waiting.graph.scratch import Scratch
from causeway.waiting.path import critical_path
from causeway.waiting.replay import replayed

RANKS = 3


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of three ranks with a late one, whose exports are not in the order of their ranks."""
    folder = tmp_path_factory.mktemp("run")
    write_run({"ranks": RANKS, "iterations": 40, "seed": 5, "effects": True}, folder)
    entries = {}
    for rank in range(RANKS):
        source = folder / f"rank{rank}.sqlite"
        name = f"e{RANKS - rank}"
        normalise(source, folder / name, export=name, source=source.name, rank=rank, form="nsys")
        entries[name] = {"shift_ns": 1000 * rank, "drift_ppb": 900 * rank, "reference_ns": 0, "ranks": [rank]}
    write_json({"exports": entries}, folder / "clocks.json")
    return folder


def written(folder, out):
    """Return the bytes of what `find_critical_paths` writes."""
    exports = sorted(folder / name for name in json.loads((folder / "clocks.json").read_text())["exports"])
    together = [Matched(*group.left_together()) for group in matched(exports)[0]]
    assert any(group.start.size for group in together)
    outs = [out / f"{table}.parquet" for table in ("critical_path", "replay", "path_pieces")]
    find_critical_paths("d", exports, folder / "clocks.json", None, together, *outs)
    assert sorted(path.name for path in out.iterdir()) == sorted(path.name for path in outs)
    return [path.read_bytes() for path in outs]


def make_small(monkeypatch):
    """Let every pass take few rows at once, and every array lie in a file."""
    for module in (scratch, critical_path, replayed):
        monkeypatch.setattr(module, "WINDOW", 300)
    monkeypatch.setattr(scratch, "SMALLEST_FILE", 1)
    monkeypatch.setattr(event_blocks, "CHUNK_ROWS", 200)
    monkeypatch.setattr(critical_path, "MOST_PIECES", 100)


def test_pieces_give_the_same_bytes_as_everything_in_memory(run, tmp_path, monkeypatch):
    whole = written(run, tmp_path / "whole")
    make_small(monkeypatch)
    assert written(run, tmp_path / "pieces") == whole


def test_rows_out_of_order_are_refused(run, tmp_path, monkeypatch):
    path = Path(run / "e1" / "calls.parquet")
    before = path.read_bytes()
    table = read_table(path, "calls")
    order = np.arange(table.num_rows)
    order[[10, 500]] = order[[500, 10]]
    write_table(table.take(order), path, "calls")
    make_small(monkeypatch)
    with pytest.raises(TableError, match="not ordered by start_ns"):
        written(run, tmp_path / "pieces")
    path.write_bytes(before)


@pytest.mark.parametrize("numbers", [np.zeros_like, np.flip])
def test_calls_that_are_not_numbered_in_their_order_are_refused(run, tmp_path, numbers):
    """Nothing is written beyond the arrays, which have room for the numbers of calls."""
    path = Path(run / "e1" / "calls.parquet")
    before = path.read_bytes()
    table = read_table(path, "calls")
    column = table.schema.get_field_index("call")
    given = pa.array(numbers(table.column("call").to_numpy()), table.schema.field("call").type)
    write_table(table.set_column(column, table.schema.field("call"), given), path, "calls")
    with pytest.raises(TableError, match="not numbered in its order"):
        written(run, tmp_path / "pieces")
    path.write_bytes(before)


def test_arrays_lie_in_files_without_a_name_whose_pages_memory_gives_back(tmp_path):
    def resident():
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("RssShmem") or line.startswith("RssFile")).split()[1])

    place = Scratch(tmp_path)
    values = place.array(1 << 23, np.int64, fill=3)
    assert list(tmp_path.iterdir()) == []
    assert resident() < 1 << 19
    before = resident()
    values[:] += 1
    grown = resident() - before
    place.used(scratch.WINDOW)
    assert grown > 40_000
    assert resident() - before < 20_000
    assert (values == 4).all()


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_rows_and_numbers_are_those_of_numpy(columns):
    random = np.random.default_rng(columns)
    bounds = np.array([1 << 32, 3, 1 << 33])
    for n in (0, 1, 2, 50, 1_000):
        made = [
            random.integers(0, bounds[i], max(n // 4, 1))[random.integers(0, max(n // 4, 1), n)] for i in range(columns)
        ]
        rows, number = distinct_rows(*made)
        expected, place = np.unique(np.stack(made), axis=1, return_inverse=True)
        assert rows.tolist() == expected.tolist()
        assert number.tolist() == place.reshape(-1).tolist()

"""The graph of a dataset, from the tables of its exports."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from causeway.core.clock import Clock
from causeway.core.tables import open_table
from causeway.events.event_blocks import chunks
from causeway.waiting.graph.export_in_memory import joined_exports
from causeway.waiting.graph.export_stream import OutOfOrderError, stream_export
from causeway.waiting.graph.graph_builder import GraphBuilder, Matched
from causeway.waiting.graph.host_calls import resolution_of
from causeway.waiting.graph.nodes import Graph, Texts
from causeway.waiting.graph.scratch import Scratch
from causeway.waiting.graph.staying import StayingTime

SMALL_EXPORT = 1 << 17
"""Events up to which an export is read with all its rows in memory: some 300 bytes each."""
TABLES = ("launches", "transfers", "graphs", "calls")


def read_graph(
    folders: Mapping[Path, Clock],
    collectives: Sequence[Matched] = (),
    *,
    full_names: bool = False,
    scratch: Scratch | None = None,
) -> tuple[Graph, np.ndarray]:
    """Return the graph of a dataset, not yet linked, and for each work the work of another stream that it waited for
    explicitly; int32, shape (n,), -1: none.

    Parameters
    ----------
    folders : mapping of Path to Clock
        Folders of the exports' tables, and their clocks.
    collectives : sequence of Matched
        Their times on the dataset's time line.
    full_names : bool
        Whether kernels have their full names; else their short ones.
    scratch : Scratch, optional
        Where its arrays lie; else in memory.

    Raises
    ------
    OSError
        If the disk has no room for them.
    TableError
        If a table is damaged.
    """
    scratch = scratch or Scratch()
    ranks = {folder: _ranks_of(folder) for folder in folders}
    resolution = max(map(resolution_of, folders), default=0)
    try:
        builder = GraphBuilder(Texts(), scratch, resolution)
        for unit in _units(ranks):
            _read(builder, {folder: folders[folder] for folder in unit}, ranks, full_names=full_names)
    except OutOfOrderError:  # rare: tables of ours are in order
        builder = GraphBuilder(Texts(), scratch, resolution)
        builder.add(*joined_exports(folders, builder.texts, full_names=full_names))
    return builder.graph(collectives, StayingTime(folders))


def _read(
    builder: GraphBuilder, unit: Mapping[Path, Clock], ranks: Mapping[Path, list[int]], *, full_names: bool
) -> None:
    events = sum(_rows(folder, table) for folder in unit for table in TABLES)
    if len(unit) > 1 or events <= SMALL_EXPORT:
        builder.add(*joined_exports(unit, builder.texts, full_names=full_names))
        return
    ((folder, clock),) = unit.items()
    stream_export(builder, folder, clock, ranks[folder], _numbers_of_calls(folder), full_names=full_names)


def _rows(folder: Path, table: str) -> int:
    path = folder / f"{table}.parquet"
    return pq.ParquetFile(path).metadata.num_rows if path.is_file() else 0


def _numbers_of_calls(folder: Path) -> int:
    """Return a number above those of all calls, which ascend."""
    path = folder / "calls.parquet"
    if not path.is_file():
        return 0
    with open_table(path, "calls") as file:
        last = file.read_row_group(file.num_row_groups - 1, ["call"]) if file.num_row_groups else None
    return last.column("call")[-1].as_py() + 1 if last else 0


def _ranks_of(folder: Path) -> list[int]:
    """Return the ranks of which an export has events."""
    found: set[int] = set()
    for table in TABLES:
        for batch in chunks(folder, table, ["rank"]):
            found.update(np.unique(batch.column("rank").to_numpy()).tolist())
    return sorted(found)


def _units(ranks: Mapping[Path, list[int]]) -> list[list[Path]]:
    """Return the exports in groups that share no rank, in the order of their first ones."""
    units: list[tuple[set[int], list[Path]]] = []
    for folder, own in ranks.items():
        shared = [unit for unit in units if unit[0] & set(own)]
        joined = (set(own).union(*(unit[0] for unit in shared)), [one for unit in shared for one in unit[1]] + [folder])
        at = units.index(shared[0]) if shared else len(units)
        units = [unit for unit in units if unit not in shared]
        units.insert(at, joined)
    return [unit for _, unit in units]

"""The graph of a dataset, from the tables of its exports."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from causeway.core.clock import Clock
from causeway.events.event_blocks import chunks
from causeway.waiting.graph.export_stream import Export
from causeway.waiting.graph.graph_builder import GraphBuilder, Matched
from causeway.waiting.graph.host_calls import resolution_of
from causeway.waiting.graph.nodes import Graph, Texts
from causeway.waiting.graph.scratch import Scratch
from causeway.waiting.graph.staying import StayingTime

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
    builder = GraphBuilder(Texts(), scratch, max(map(resolution_of, folders), default=0))
    for unit in _units(ranks):
        exports = [Export(folder, folders[folder], full_names=full_names) for folder in unit]
        for rank in sorted({rank for folder in unit for rank in ranks[folder]}):
            own = [export for export in exports if rank in ranks[export.folder]]
            for export in own:
                export.give_rank(builder, rank)
            builder.ends_rank(rank, in_order=len(own) == 1)
        for export in exports:
            builder.add_waits(export.event_waits())
    return builder.graph(collectives, StayingTime(folders))


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

"""The linked graph of a dataset, from the tables of its exports, or why there is none."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from causeway.core.clock import Clock, clocks_of
from causeway.core.reduced import EFFICIENCY, has_time_line, why_not
from causeway.core.tables import read_json
from causeway.events.event_blocks import chunks
from causeway.waiting.graph.export_stream import Export
from causeway.waiting.graph.graph_builder import GraphBuilder, Matched
from causeway.waiting.graph.host_calls import resolution_of
from causeway.waiting.graph.link_ranks import linked
from causeway.waiting.graph.nodes import Graph, Links, Texts
from causeway.waiting.graph.scratch import Scratch
from causeway.waiting.graph.staying import StayingTime

MOST_EVENTS = (1 << 31) - 1
"""Launches, transfers and calls of a dataset whose graph is built: its nodes have numbers of 32 bits."""
EVENT_BYTES = 100
"""Bytes of the disk of results that each of them takes while the graph is in use."""


def linked_graph(
    folders: Sequence[str | Path],
    clocks_file: str | Path,
    collectives: Sequence[Matched],
    *,
    full_names: bool = False,
    scratch: Scratch | None = None,
) -> tuple[tuple[Graph, Links] | None, str | None]:
    """Return the graph of a dataset with what each node waited for; else None and the reason: a filter dropped events,
    the dataset has more than `MOST_EVENTS`, or the disk of `scratch` has no room for it.

    Parameters
    ----------
    folders : sequence of path
        Folders of tables, in the sheet's order.
    clocks_file : path
    collectives : sequence of Matched
        Their times in the clocks of the exports.
    full_names : bool
        Whether kernels have their full names; else their short ones.
    scratch : Scratch, optional
        Where its arrays lie; else in memory.

    Raises
    ------
    OSError
        If other programs take the room while it is built.
    TableError
        If a table is damaged.
    """
    document = read_json(clocks_file)
    clocks = clocks_of(document)
    used = _usable([Path(folder) for folder in folders], clocks)
    why = why_not(folders, EFFICIENCY) or _too_many(used, scratch.free() if scratch else None)
    if why:
        return None, why
    of_rank = {rank: clocks[export] for export, entry in document["exports"].items() for rank in entry["ranks"]}
    together = [_aligned(group, of_rank) for group in collectives]
    graph, explicit = read_graph(used, together, full_names=full_names, scratch=scratch)
    return (graph, linked(graph, explicit)), None


def _usable(folders: Sequence[Path], clocks: Mapping[str, Clock]) -> dict[Path, Clock]:
    usable = {}
    for folder in folders:
        document = read_json(folder / "capabilities.json")
        if has_time_line(document):
            usable[folder] = clocks[document["export"]]
    return usable


def _too_many(folders: Iterable[Path], free: int | None) -> str | None:
    """Return why there are too many events; `free`: bytes of the disk that takes the graph, None: it lies in memory."""
    tables = [folder / f"{table}.parquet" for folder in folders for table in ("launches", "transfers", "calls")]
    events = sum(pq.ParquetFile(path).metadata.num_rows for path in tables if path.is_file())
    has = f"the dataset has {events} launches, transfers and calls; the graph "
    if events > MOST_EVENTS:
        return f"{has}is built for {MOST_EVENTS} at most"
    needed = EVENT_BYTES * events
    if free is not None and needed > free:
        return f"{has}takes some {needed / 1e9:.3g} GB of the disk of results, more than it had free"
    return None


def _aligned(group: Matched, clocks: Mapping[int, Clock]) -> Matched:
    rows = [clocks[rank].aligned(row) for rank, row in zip(group.ranks, group.start, strict=True)]
    return replace(group, start=np.stack(rows))


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
    ranks: set[int] = set()
    for table in TABLES:
        for batch in chunks(folder, table, ["rank"]):
            ranks.update(np.unique(batch.column("rank").to_numpy()).tolist())
    return sorted(ranks)


def _units(ranks: Mapping[Path, list[int]]) -> list[list[Path]]:
    """Return the exports in groups that share no rank, in the order of their first ones."""
    units: list[tuple[set[int], list[Path]]] = []
    for folder, own in ranks.items():
        shared = [unit for unit in units if unit[0] & set(own)]
        joined = (
            set(own).union(*(unit[0] for unit in shared)),
            [other for unit in shared for other in unit[1]] + [folder],
        )
        position = units.index(shared[0]) if shared else len(units)
        units = [unit for unit in units if unit not in shared]
        units.insert(position, joined)
    return [unit for _, unit in units]

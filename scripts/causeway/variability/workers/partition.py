"""Divide the time line among workers: every rank of the MPI program has some, one by default.

A bin belongs to one worker, whole, so nothing but statistics of bins travels. Workers own ranges of bins. Where a share
begins or ends inside a row group, that group is read by both neighbours.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from causeway.variability.rows.sources import Chunk, RowGroups, Source

OPEN_END = 1 << 62
"""A bin or position beyond all others."""


@dataclass(frozen=True)
class WorkerShare:
    """The part of a source that a worker works on: bins `low` up to `high`, of `width` positions each."""

    source: Source
    low: int
    high: int
    width: int

    def groups(self) -> list[RowGroups]:
        """Return the groups that hold rows of the share."""
        if not self.source.splittable:
            return self.source.rows.groups
        spans = [(group, *self.source.reach(group)) for group in self.source.rows.groups]
        begin = self.low * self.width
        end = self.high * self.width
        return [group for group, first, last in spans if last >= begin and first < end]

    def chunks(self, columns: list[str]) -> Iterator[tuple[Chunk, np.ndarray]]:
        """Yield the share's rows with their positions: int64, shape (rows,), ascending.

        `columns` are those of the table; rank and start_ns are always read where positions need them.
        """
        for chunk, position in positioned(self.source, columns, self.groups()):
            if not self.source.splittable:
                yield chunk, position
                continue
            begin, end = np.searchsorted(position, [self.low * self.width, self.high * self.width])
            if begin < end:
                yield chunk.slice(begin, end), position[begin:end]


def positioned(source: Source, columns: list[str], groups: list[RowGroups]) -> Iterator[tuple[Chunk, np.ndarray]]:
    """Yield chunks of a source's groups with the positions of their rows: int64, shape (rows,), ascending."""
    needed = list(dict.fromkeys([*columns, *(["start_ns"] if source.timed else []), "rank"]))
    counted = np.zeros(len(source.ranks), np.int64)
    for chunk in source.rows.chunks(needed, groups):
        if source.timed:
            yield chunk, source.position(chunk.column("start_ns"))
        elif source.splittable:
            yield chunk, chunk.numbers()
        else:
            rank_index = source.rank_indices(chunk)
            position = np.empty(chunk.size, np.int64)
            for rank in range(counted.size):
                mine = np.flatnonzero(rank_index == rank)
                position[mine] = counted[rank] + np.arange(mine.size)
                counted[rank] += mine.size
            yield chunk, position


def shares(sources: list[Source], width: int, worker: int, size: int) -> list[WorkerShare]:
    """Return what a worker works on: ranges of about an equal number of rows. Every worker finds the same limits by
    integer arithmetic from the row groups' statistics, so nothing is exchanged. Sources whose positions depend on
    earlier rows go to one worker whole.

    Parameters
    ----------
    sources : list of Source
    width : int
        Positions per bin; a share begins and ends at edges of bins.
    worker, size : int
        Number of the worker, from 0, and how many there are.
    """
    mine = []
    total = sum(source.rows.rows for source in sources)
    low_row = total * worker // size
    high_row = total * (worker + 1) // size
    begin = 0
    for source in sources:
        low, high = (_bin_at(source, row - begin, width) for row in (low_row, high_row))
        if low < high:
            mine.append(WorkerShare(source, low, high, width))
        begin += source.rows.rows
    return mine


def _bin_at(source: Source, row: int, width: int) -> int:
    """Return the bin before which rows up to about `row` lie; monotonic in `row`."""
    if row <= 0 or source.rows.rows == 0:
        return 0
    if row >= source.rows.rows:
        return OPEN_END // width
    if not source.splittable:
        return 0 if 2 * row < source.rows.rows else OPEN_END // width
    group = next(group for group in reversed(source.rows.groups) if group.row <= row)
    first, last = source.reach(group)
    return (first + (last - first) * (row - group.row) // group.rows) // width

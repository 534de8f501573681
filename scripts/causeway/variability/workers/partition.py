"""Divide the time line among workers: every rank of the MPI program has some, one by default.

A bin belongs to one worker, whole, so nothing but statistics of bins travels. Workers own ranges of bins or, in the
form of arXiv 2510.18300 (section 2.4), bins are assigned to them round-robin. Where a share begins or ends inside a
row group, that group is read by both neighbours; where bins are assigned round-robin, every worker reads each row group
that holds a bin of its own.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from causeway.numeric.compiled import I8, compiled, int64
from causeway.variability.rows.sources import Chunk, RowGroups, Source

OPEN_END = 1 << 62
"""A bin or position beyond all others."""


@dataclass(frozen=True)
class RoundRobin:
    """Blocks of bins assigned in turn: a worker, of `size` in all, gets those whose number leaves its own when divided
    by `size`.
    """

    worker: int
    size: int
    block: int

    def any_between(self, first: int, last: int) -> bool:
        """Return whether one of the bins from `first` to `last` is assigned to this worker."""
        first = first // self.block
        last = last // self.block
        return (self.worker - first) % self.size <= last - first


@dataclass(frozen=True)
class WorkerShare:
    """The part of a source that a worker works on: bins `low` up to `high`, of `width` positions each; of these only
    those assigned round-robin, if `turns` is given.
    """

    source: Source
    low: int
    high: int
    width: int
    turns: RoundRobin | None = None

    def groups(self) -> list[RowGroups]:
        """Return the groups that hold rows of the share."""
        if not self.source.splittable:
            return self.source.rows.groups
        spans = [(group, *self.source.reach(group)) for group in self.source.rows.groups]
        bins = [(group, first // self.width, last // self.width) for group, first, last in spans]
        inside = [span for span in bins if span[2] >= self.low and span[1] < self.high]
        return [group for group, first, last in inside if self.turns is None or self.turns.any_between(first, last)]

    def chunks(self, columns: list[str]) -> Iterator[tuple[Chunk, np.ndarray]]:
        """Yield the share's rows with their positions: int64, shape (rows,), ascending.

        `columns` are those of the table; rank and start_ns are always read where positions need them.
        """
        for chunk, position in positioned(self.source, columns, self.groups()):
            if not self.source.splittable:
                yield chunk, position
                continue
            begin, end = np.searchsorted(position, [self.low * self.width, self.high * self.width])
            chunk = chunk.slice(begin, end)
            position = position[begin:end]
            if self.turns is not None and position.size:
                indices = np.empty(position.size, np.int64)
                n = _assigned(position, self.width * self.turns.block, self.turns.worker, self.turns.size, indices)
                if n < position.size:
                    chunk = chunk.take(indices[:n].copy())
                    position = position[indices[:n]]
            if position.size:
                yield chunk, position


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


@compiled(int64(I8, int64, int64, int64, int64[::1]))
def _assigned(position, width, own, size, indices):
    """List the indices of rows in blocks `own`, `own + size`, ...; one division per block."""
    n = np.int64(0)
    edge = position[0]
    mine = False
    for i in range(position.size):
        if position[i] >= edge:
            block = position[i] // width
            edge = (block + 1) * width
            mine = block % size == own
        if mine:
            indices[n] = i
            n += 1
    return n


def shares(sources: list[Source], width: int, worker: int, size: int, block: int | None = None) -> list[WorkerShare]:
    """Return what a worker works on. Sources whose positions depend on earlier rows go to one worker whole.

    Parameters
    ----------
    sources : list of Source
    width : int
        Positions per bin; a share begins and ends at edges of bins.
    worker, size : int
        Number of the worker, from 0, and how many there are.
    block : int or None
        None: ranges of about an equal number of rows. Every worker finds the same limits by integer arithmetic from the
        row groups' statistics, so nothing is exchanged. Else bins are assigned round-robin in blocks of so many.
    """
    mine = []
    if block is not None:
        for number, source in enumerate(sources):
            if source.splittable:
                mine.append(WorkerShare(source, 0, OPEN_END // width, width, RoundRobin(worker, size, block)))
            elif number % size == worker:
                mine.append(WorkerShare(source, 0, OPEN_END // width, width))
        return mine
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

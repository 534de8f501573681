"""Divide the time line among workers: every rank of the MPI program has some, one by default.

A bin belongs to one worker, whole, so nothing but statistics of bins travels. Workers own ranges of bins or, in the form of arXiv
2510.18300 (section 2.4), bins are dealt to them in turn. Where a share begins or ends inside a row group, that group is read by both
neighbours; where bins are dealt, every worker reads each row group that holds a bin of its own.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numba import int64

from causeway.compiled import I8, compiled
from causeway.variability.sources import Chunk, Group, Source

OPEN_END = 1 << 62
"""A bin or position beyond all others."""


@dataclass(frozen=True)
class Deal:
    """Blocks of bins dealt in turn: worker `place` of `size` gets those whose number leaves `place` when divided by `size`."""

    place: int
    size: int
    block: int

    def any_between(self, first: int, last: int) -> bool:
        """Return whether one of the bins from `first` to `last` is dealt to this worker."""
        first, last = first // self.block, last // self.block
        return (self.place - first) % self.size <= last - first


@dataclass(frozen=True)
class Share:
    """The part of a source that a worker works on: bins `low` up to `high`, of `width` positions each; of these only dealt ones, if any."""

    source: Source
    low: int
    high: int
    width: int
    deal: Deal | None = None

    def groups(self) -> list[Group]:
        """Return the groups that hold rows of the share."""
        if not self.source.splittable:
            return self.source.rows.groups
        offset = self.source.offset
        spans = [(group, (group.first + offset) // self.width, (group.last + offset) // self.width) for group in self.source.rows.groups]
        inside = [span for span in spans if span[2] >= self.low and span[1] < self.high]
        return [group for group, first, last in inside if self.deal is None or self.deal.any_between(first, last)]

    def chunks(self, columns: list[str]) -> Iterator[tuple[Chunk, np.ndarray]]:
        """Yield the share's rows with their positions (int64), ascending.

        `columns` are those of the table; rank and start_ns are always read where positions need them.
        """
        for chunk, position in positioned(self.source, columns, self.groups()):
            if not self.source.splittable:
                yield chunk, position
                continue
            begin, end = np.searchsorted(position, [self.low * self.width, self.high * self.width])
            chunk, position = chunk.slice(begin, end), position[begin:end]
            if self.deal is not None and position.size:
                places = np.empty(position.size, np.int64)
                n = _dealt(position, self.width * self.deal.block, self.deal.place, self.deal.size, places)
                if n < position.size:
                    chunk, position = chunk.take(places[:n].copy()), position[places[:n]]
            if position.size:
                yield chunk, position


def positioned(source: Source, columns: list[str], groups: list[Group]) -> Iterator[tuple[Chunk, np.ndarray]]:
    """Yield chunks of a source's groups with the positions of their rows (int64); see `Share.chunks`."""
    needed = list(dict.fromkeys([*columns, *(["start_ns"] if source.timed else []), "rank"]))
    counted = np.zeros(len(source.ranks), np.int64)
    for chunk in source.rows.chunks(needed, groups):
        if source.timed:
            yield chunk, chunk.column("start_ns") + source.offset
        elif source.splittable:
            yield chunk, chunk.numbers()
        else:
            number, position = source.rank_numbers(chunk), np.empty(chunk.size, np.int64)
            for rank in range(counted.size):
                mine = np.flatnonzero(number == rank)
                position[mine] = counted[rank] + np.arange(mine.size)
                counted[rank] += mine.size
            yield chunk, position


@compiled(int64(I8, int64, int64, int64, int64[::1]))
def _dealt(position, width, own, size, places):
    """List the places of rows in blocks `own`, `own + size`, ...; one division per block."""
    n = np.int64(0)
    edge, mine = position[0], False
    for i in range(position.size):
        if position[i] >= edge:
            block = position[i] // width
            edge, mine = (block + 1) * width, block % size == own
        if mine:
            places[n] = i
            n += 1
    return n


def shares(sources: list[Source], width: int, place: int, size: int, block: int | None = None) -> list[Share]:
    """Return what worker `place` of `size` works on.

    Parameters
    ----------
    sources : list of Source
    width : int
        Positions per bin; a share begins and ends at edges of bins.
    block : int or None
        None: ranges of about an equal number of rows. Every worker finds the same cuts by integer arithmetic from the row groups'
        statistics, so nothing is exchanged. Else bins are dealt in blocks of so many.

    Sources whose positions depend on earlier rows go to one worker whole.
    """
    mine = []
    if block is not None:
        for number, source in enumerate(sources):
            if source.splittable:
                mine.append(Share(source, 0, OPEN_END // width, width, Deal(place, size, block)))
            elif number % size == place:
                mine.append(Share(source, 0, OPEN_END // width, width))
        return mine
    total = sum(source.rows.rows for source in sources)
    low_row, high_row = total * place // size, total * (place + 1) // size
    begin = 0
    for source in sources:
        low, high = (_cut(source, row - begin, width) for row in (low_row, high_row))
        if low < high:
            mine.append(Share(source, low, high, width))
        begin += source.rows.rows
    return mine


def _cut(source: Source, row: int, width: int) -> int:
    """Return the bin before which rows up to about `row` lie; monotonic in `row`."""
    if row <= 0 or source.rows.rows == 0:
        return 0
    if row >= source.rows.rows:
        return OPEN_END // width
    if not source.splittable:
        return 0 if 2 * row < source.rows.rows else OPEN_END // width
    group = next(group for group in reversed(source.rows.groups) if group.row <= row)
    position = group.first + (group.last - group.first) * (row - group.row) // group.rows + source.offset
    return position // width

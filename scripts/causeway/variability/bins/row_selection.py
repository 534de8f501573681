"""Which rows make `kept.parquet`, and which worker writes them.

The bins tell how many rows each chosen bin has, so the rows have numbers before they are read. They stand in row groups of a size that
depends on the table alone, and each worker makes a run of whole row groups: the result is the same however many workers there are.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numba import int64, void

from causeway.compiled import I4, I8, compiled
from causeway.variability.bins import BinTable
from causeway.variability.sources import Group, Source
from causeway.variability.targets import Sample


class Selection:
    """The chosen bins of a target, in the order of `kept.parquet`: by rank of the traced program, then by time.

    Parameters
    ----------
    ranking : Table
        `ranking.parquet`, whose rows are in the order of `bins`.
    bins : BinTable
        Of the target.
    group_rows : int
        Rows per row group.

    Attributes
    ----------
    rank, bin : ndarray of int64, shape (bins,)
    kept : ndarray of bool
    probability : ndarray of float64
    first : ndarray of int64, shape (bins + 1,)
        Number of each bin's first row; the last is the number of all rows.
    """

    def __init__(self, ranking: pa.Table, bins: BinTable, group_rows: int) -> None:
        kept, control = (ranking.column(name).to_numpy() for name in ("kept", "control"))
        chosen = np.flatnonzero(kept | control)
        self.rank, self.bin, self.kept = bins.rank[chosen], bins.bin[chosen], kept[chosen]
        self.probability = ranking.column("inclusion_probability").to_numpy()[chosen]
        self.first = np.concatenate(([0], np.cumsum(bins.count[chosen])))
        self.group_rows = group_rows

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.first[-1])

    @property
    def groups(self) -> int:
        """Number of row groups."""
        return -(-self.rows // self.group_rows)

    def rows_of(self, group: int) -> int:
        """Return how many rows a row group has."""
        return min(self.rows - group * self.group_rows, self.group_rows)

    def part(self, source: Source, place: int, size: int) -> "Part":
        """Return the bins of a source that worker `place` of `size` reads for its row groups."""
        low, high = (min(self.groups * worker // size * self.group_rows, self.rows) for worker in (place, place + 1))
        reached = (self.first[1:] > low) & (self.first[:-1] < high)
        by_rank = [np.flatnonzero(reached & (self.rank == rank)) for rank in source.ranks]
        chosen = np.concatenate(by_rank)
        return Part(chosen, self.bin[chosen], np.cumsum([0, *(mine.size for mine in by_rank)]), self.first[chosen], low, high)


@dataclass
class Part:
    """Chosen bins of one source and the rows of them that one worker writes: those numbered from `low` up to `high`.

    Arrays of int64: `chosen` are places in the selection, `bin` the bins' numbers; those of the source's k-th rank stand from `begin[k]` up
    to `begin[k + 1]`. `next_row` is the number of each bin's next row.
    """

    chosen: np.ndarray
    bin: np.ndarray
    begin: np.ndarray
    next_row: np.ndarray
    low: int
    high: int

    def reaches(self, group: Group, offset: int, width: int) -> bool:
        """Return whether a group of launches may hold rows of these bins."""
        return bool(((self.bin >= (group.first + offset) // width) & (self.bin <= (group.last + offset) // width)).any())

    def rows(self, sample: Sample, width: int) -> tuple[np.ndarray, np.ndarray]:
        """Return which rows of a sample lie in these bins (ascending places), and each one's place in `bin`."""
        row, place = np.empty(sample.position.size, np.int64), np.empty(sample.position.size, np.int64)
        n = _choose(sample.number, sample.position, width, self.bin, self.begin, row, place)
        return row[:n], place[:n]

    def number(self, place: np.ndarray) -> np.ndarray:
        """Return the numbers in the table of rows that come next, given the place of each one's bin; int64."""
        numbers = np.empty(place.size, np.int64)
        _number(place, self.next_row, numbers)
        return numbers


@compiled(int64(I4, I8, int64, I8, I8, int64[::1], int64[::1]))
def _choose(number, position, width, bins, first, row, place):
    n = np.int64(0)
    last_number, begin, end, found = np.int64(-1), np.int64(0), np.int64(0), np.int64(-1)
    for i in range(position.size):
        if number[i] != last_number or position[i] < begin or position[i] >= end:
            last_number = np.int64(number[i])
            bin_ = position[i] // width
            begin, end = bin_ * width, (bin_ + 1) * width
            low, high = first[last_number], first[last_number + 1]
            k = low + np.searchsorted(bins[low:high], bin_)
            found = k if k < high and bins[k] == bin_ else np.int64(-1)
        if found >= 0:
            row[n], place[n] = i, found
            n += 1
    return n


@compiled(void(I8, int64[::1], int64[::1]))
def _number(place, next_row, numbers):
    for i in range(place.size):
        numbers[i] = next_row[place[i]]
        next_row[place[i]] += 1

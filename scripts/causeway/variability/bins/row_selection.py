"""Which rows make `kept.parquet`, and which worker writes them.

The bins say how many rows each chosen bin has, so the rows have numbers before they are read. They are written in row
groups of a size that depends on the table alone, and each worker makes consecutive whole row groups: the result is the
same however many workers there are.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from causeway.numeric.compiled import I4, I8, compiled, int64, void
from causeway.variability.bins.bins import BinTable
from causeway.variability.rows.sources import Source
from causeway.variability.rows.targets import Sample


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
        self.rank = bins.rank[chosen]
        self.bin = bins.bin[chosen]
        self.kept = kept[chosen]
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

    def part(self, source: Source, worker: int, size: int) -> "SelectedBins":
        """Return the bins of a source that a worker, of `size` in all, reads for its row groups."""
        low, high = (min(self.groups * one // size * self.group_rows, self.rows) for one in (worker, worker + 1))
        reached = (self.first[1:] > low) & (self.first[:-1] < high)
        by_rank = [np.flatnonzero(reached & (self.rank == rank)) for rank in source.ranks]
        chosen = np.concatenate(by_rank)
        return SelectedBins(
            chosen, self.bin[chosen], np.cumsum([0, *(mine.size for mine in by_rank)]), self.first[chosen], low, high
        )


@dataclass
class SelectedBins:
    """Chosen bins of one source and the rows of them that one worker writes: those numbered from `low` up to `high`.

    Attributes
    ----------
    chosen : ndarray of int64, shape (bins,)
        Indices in the selection.
    bin : ndarray of int64, shape (bins,)
        The bins' numbers; those of the source's k-th rank are `bin[begin[k]:begin[k + 1]]`, ascending.
    begin : ndarray of int64, shape (ranks + 1,)
    next_row : ndarray of int64, shape (bins,)
        Number of each bin's next row.
    low, high : int
    """

    chosen: np.ndarray
    bin: np.ndarray
    begin: np.ndarray
    next_row: np.ndarray
    low: int
    high: int

    def meets(self, first: int, last: int, width: int) -> bool:
        """Return whether rows at the positions `first` to `last` may lie in these bins."""
        return bool(((self.bin >= first // width) & (self.bin <= last // width)).any())

    def rows(self, sample: Sample, width: int) -> tuple[np.ndarray, np.ndarray]:
        """Return which rows of a sample lie in these bins (ascending indices), and each one's index in `bin`."""
        row = np.empty(sample.position.size, np.int64)
        index = np.empty(sample.position.size, np.int64)
        n = _choose(sample.rank_index, sample.position, width, self.bin, self.begin, row, index)
        return row[:n], index[:n]

    def number(self, index: np.ndarray) -> np.ndarray:
        """Return the numbers in the table of rows that come next, given the index of each one's bin; int64."""
        numbers = np.empty(index.size, np.int64)
        _number(index, self.next_row, numbers)
        return numbers


@compiled(int64(I4, I8, int64, I8, I8, int64[::1], int64[::1]))
def _choose(rank_index, position, width, bins, first, row, index):
    n = np.int64(0)
    last_rank = np.int64(-1)
    begin = np.int64(0)
    end = np.int64(0)
    found = np.int64(-1)
    for i in range(position.size):
        if rank_index[i] != last_rank or position[i] < begin or position[i] >= end:
            last_rank = np.int64(rank_index[i])
            bin_ = position[i] // width
            begin = bin_ * width
            end = (bin_ + 1) * width
            low = first[last_rank]
            high = first[last_rank + 1]
            k = low + np.searchsorted(bins[low:high], bin_)
            found = k if k < high and bins[k] == bin_ else np.int64(-1)
        if found >= 0:
            row[n] = i
            index[n] = found
            n += 1
    return n


@compiled(void(I8, int64[::1], int64[::1]))
def _number(index, next_row, numbers):
    for i in range(index.size):
        numbers[i] = next_row[index[i]]
        next_row[index[i]] += 1

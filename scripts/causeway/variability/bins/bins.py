"""Cut a target's rows into bins and take the statistics of each, while the rows stream by.

The nine statistics of a bin whose rows are too many to hold: they wait in a file, which is read a few times.
"""

import math
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa

from causeway.core.schemas import STATISTICS
from causeway.core.tables import ROW_GROUP_ROWS, extended
from causeway.events.few_values import by_value
from causeway.numeric.compiled import I8, compiled, int64
from causeway.numeric.slice_statistics import slice_statistics
from causeway.variability.rows.group_quantiles import QuartileSearch, keys_of, values_of

BLOCK = 1 << 16


class LargeBin:
    """Rows of one bin, on disk.

    Parameters
    ----------
    number : int
        The bin.
    columns : int
        The target and the chosen features.
    folder : Path
        On a disk with room for 8 bytes per row and column; the file has no name and ends with the process.
    """

    def __init__(self, number: int, columns: int, folder: Path) -> None:
        self.number = number
        self.rows = 0
        folder.mkdir(parents=True, exist_ok=True)
        self._files = [tempfile.TemporaryFile(dir=folder) for _ in range(columns)]  # noqa: SIM115 - closed by `finish`

    def add(self, columns: np.ndarray) -> None:
        """Add rows; float64, shape (columns, n), NaN where null."""
        self.rows += columns.shape[1]
        for file, column in zip(self._files, columns, strict=True):
            file.write(np.ascontiguousarray(column).data)

    def finish(self) -> tuple[int, int, np.ndarray]:
        """Return the bin's number, its count of rows and its statistics (float64, shape (columns, 8)), and remove
        the rows.
        """
        statistics = np.stack([self._statistics(file) for file in self._files])
        for file in self._files:
            file.close()
        return self.number, self.rows, statistics

    def _statistics(self, file: IO[bytes]) -> np.ndarray:
        """Two passes for mean and variance as in `slice_statistics.slice_statistics`, then as many as the exact
        quartiles need.
        """
        statistics = np.full(len(STATISTICS), np.nan)
        blocks = [(block.size, block.min(), block.max(), float(block.sum())) for block in self._blocks(file)]
        n = sum(size for size, *_ in blocks)
        if n == 0:
            return statistics
        low = min(low for _, low, _, _ in blocks)
        high = max(high for _, _, high, _ in blocks)
        mean = math.fsum(total for *_, total in blocks) / n
        away = [((block - mean).sum(), ((block - mean) ** 2).sum()) for block in self._blocks(file)]
        rest, squares = (math.fsum(part) for part in zip(*away, strict=True))
        statistics[:3] = low, high, min(max(mean + rest / n, low), high)
        if n > 1:
            statistics[3] = max(squares - rest * rest / n, 0.0) / (n - 1)
            statistics[4] = math.sqrt(statistics[3])
        search = QuartileSearch(1, int(keys_of(np.array([low]))[0]))
        while search.open:
            for block in self._blocks(file):
                search.add(np.zeros(block.size, np.int32), keys_of(block))
            search.narrow()
        statistics[5:] = search.quartiles(values_of(search.order_statistics()))[0]
        return statistics

    @staticmethod
    def _blocks(file: IO[bytes]) -> Iterator[np.ndarray]:
        """Yield the values that are not null, block by block."""
        file.seek(0)
        while data := file.read(8 * BLOCK):
            values = np.frombuffer(data)
            values = values[~np.isnan(values)]
            if values.size:
                yield values


LARGE_ROWS = 1 << 19
"""Rows of one bin that are held in memory; what is beyond waits on disk."""


class Bins:
    """The bins of one rank of the traced program; rows must come in the order of their positions.

    The rows of a bin may stretch over several chunks: they wait in a buffer until a row of a later bin comes.

    Parameters
    ----------
    width : int
        Positions per bin.
    columns : int
        The target and the chosen features.
    folder : Path
        For rows of a bin of more than `LARGE_ROWS`.
    """

    def __init__(self, width: int, columns: int, folder: Path) -> None:
        self.width = width
        self.folder = folder
        self.position = np.empty(0, np.int64)
        self.columns = np.empty((columns, 0))
        self.waiting = 0
        self.large: LargeBin | None = None
        self.done: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def add(self, position: np.ndarray, columns: list[np.ndarray]) -> None:
        """Add rows: positions (int64, shape (n,), ascending) and columns (float64, shape (n,) each, NaN where null)."""
        size = self.waiting + position.size
        if size > self.position.size:
            more = size + size // 4 - self.waiting
            self.position = np.concatenate([self.position[: self.waiting], np.empty(more, np.int64)])
            self.columns = np.concatenate([self.columns[:, : self.waiting], np.empty((len(columns), more))], axis=1)
        self.position[self.waiting : size] = position
        for index, column in enumerate(columns):
            self.columns[index, self.waiting : size] = column
        self.waiting = size
        if size:
            self._take(last=False)

    def finish(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return bin numbers (int64, ascending), counts of rows (int64) and statistics (float64, shape (bins,
        columns, 8)).
        """
        if self.waiting:
            self._take(last=True)
        if self.large is not None:
            self._take_large(self.large)
        columns = self.columns.shape[0]
        if not self.done:
            return np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, columns, len(STATISTICS)))
        done = self.done
        self.done = []
        numbers, counts, statistics = zip(*done, strict=True)
        return np.concatenate(numbers), np.concatenate(counts), np.concatenate(statistics)

    def _take(self, last: bool) -> None:
        """Finish every bin in the buffer but the last, which may get more rows, unless none will come."""
        number = np.empty(self.waiting, np.int64)
        offset = np.empty(self.waiting + 1, np.int64)
        bins = _edges(self.position[: self.waiting], self.width, number, offset)
        first = 0
        if self.large is not None:
            if number[0] == self.large.number:
                self.large.add(self.columns[:, : offset[1]])
                first = 1
            if bins > first:
                self._take_large(self.large)
        stop = bins if last else max(bins - 1, first)
        if stop > first:
            slices = offset[first : stop + 1].copy()
            statistics = [slice_statistics(column, slices)[1] for column in self.columns]
            self.done.append((number[first:stop].copy(), np.diff(slices), np.stack(statistics, axis=1)))
        if offset[bins] - offset[stop] > LARGE_ROWS and not last:
            self.large = LargeBin(int(number[stop]), self.columns.shape[0], self.folder)
            self.large.add(self.columns[:, offset[stop] : offset[bins]])
            stop = bins
        rest = int(offset[bins] - offset[stop])
        if rest and offset[stop]:
            self.position[:rest] = self.position[offset[stop] : self.waiting].copy()
            self.columns[:, :rest] = self.columns[:, offset[stop] : self.waiting].copy()
        self.waiting = rest

    def _take_large(self, large: LargeBin) -> None:
        number, count, statistics = large.finish()
        self.done.append((np.array([number]), np.array([count]), statistics[None]))
        self.large = None


@compiled(int64(I8, int64, int64[::1], int64[::1]))
def _edges(position, width, number, offset):
    """Find where bins begin: one division per bin, not per row. Return how many there are."""
    bins = np.int64(0)
    edge = position[0]
    for i in range(position.size):
        if position[i] >= edge:
            number[bins] = position[i] // width
            offset[bins] = i
            edge = (number[bins] + 1) * width
            bins += 1
    offset[bins] = position.size
    return bins


@dataclass
class BinTable:
    """Bins ordered by rank (of the traced program) and bin: arrays of equal length, `statistics` of shape (bins,
    columns, 8).
    """

    rank: np.ndarray
    bin: np.ndarray
    count: np.ndarray
    statistics: np.ndarray

    @classmethod
    def join(cls, parts: list["BinTable"]) -> "BinTable":
        """Put parts together and order them; the parts may be used up."""
        rank, number = (np.concatenate([getattr(part, name) for part in parts]) for name in ("rank", "bin"))
        order = np.lexsort((number, rank))
        some = [part for part in parts if part.bin.size]
        if len(some) == 1 and np.array_equal(order, np.arange(order.size)):
            return some[0]
        row_of = np.empty_like(order)
        row_of[order] = np.arange(order.size)
        count = np.empty(order.size, np.int64)
        statistics = np.empty((order.size, *parts[0].statistics.shape[1:]))
        begin = 0
        # straight to their rows: statistics are large, and a copy of all in another order would be one more
        for part in parts:
            end = begin + part.bin.size
            count[row_of[begin:end]] = part.count
            statistics[row_of[begin:end]] = part.statistics
            begin = end
        return cls(rank[order], number[order], count, statistics)

    def part(self, begin: int, end: int) -> "BinTable":
        """Return the bins from index `begin` up to `end`, without a copy."""
        return BinTable(self.rank[begin:end], self.bin[begin:end], self.count[begin:end], self.statistics[begin:end])

    @classmethod
    def empty(cls, columns: int) -> "BinTable":
        """Return a table without bins."""
        none = np.empty(0, np.int64)
        return cls(none, none, none, np.empty((0, columns, len(STATISTICS))))


class BinStreams:
    """The bins of every rank of one source: splits chunks by rank and passes each its rows. The parameters are those
    of `Bins`.
    """

    def __init__(self, ranks: list[int], width: int, columns: int, folder: Path) -> None:
        self.ranks = ranks
        self._new = lambda: Bins(width, columns, folder)
        self.columns = columns
        self.streams: dict[int, Bins] = {}

    def add(self, rank_index: np.ndarray, position: np.ndarray, columns: list[np.ndarray]) -> None:
        """Add rows that belong to `ranks[rank_index]`; those whose first column, the target, is null are left out."""
        present = ~np.isnan(columns[0])
        if not present.all():
            rank_index, position, *columns = (column[present] for column in (rank_index, position, *columns))
        for index, rows in by_value(rank_index):
            if index not in self.streams:
                self.streams[index] = self._new()
            whole = rows is None
            self.streams[index].add(
                position if whole else position[rows], columns if whole else [column[rows] for column in columns]
            )

    def finish(self) -> BinTable:
        """Return the finished bins."""
        parts = [BinTable.empty(self.columns)]
        for index, stream in self.streams.items():
            number, count, statistics = stream.finish()
            parts.append(BinTable(np.full(number.size, self.ranks[index], np.int64), number, count, statistics))
        return BinTable.join(parts)


def feature_fields(features: list[str]) -> list[pa.Field]:
    """Return the columns behind those of the schema: eight statistics of each feature, in its unit where the name
    says it.
    """
    fields = []
    for feature in features:
        unit = next((unit for unit in ("ns", "bytes") if feature.endswith(f"_{unit}")), "")
        for name in STATISTICS:
            metadata = {"unit": f"{unit}^2" if name == "variance" else unit} if unit else None
            fields.append(pa.field(f"{feature}_{name}", pa.float64(), metadata=metadata))
    return fields


def bins_tables(bins: BinTable, features: list[str], width: int, origin_ns: int | None) -> Iterator[pa.Table]:
    """Give `bins.parquet` row group by row group; `origin_ns` is the dataset's first start, None where bins count
    launches.
    """
    for begin in range(0, bins.bin.size, ROW_GROUP_ROWS):
        yield _bins_table(bins.part(begin, begin + ROW_GROUP_ROWS), features, width, origin_ns)


def _bins_table(bins: BinTable, features: list[str], width: int, origin_ns: int | None) -> pa.Table:
    schema = extended("bins", feature_fields(features))
    start = None if origin_ns is None else origin_ns + bins.bin * width
    columns = {
        "rank": bins.rank,
        "bin": bins.bin,
        "start_ns": pa.nulls(bins.bin.size, pa.int64()) if start is None else start,
        "count": bins.count,
    }
    names = [name for name in schema.names if name not in columns]
    for index, name in enumerate(names):
        values = bins.statistics[:, index // len(STATISTICS), index % len(STATISTICS)]
        columns[name] = pa.array(values, mask=~np.isfinite(values))
    return pa.table(columns).cast(schema)

"""Cut a target's rows into bins and take the statistics of each, while the rows stream by."""

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numba import njit

from causeway.moments import slice_statistics
from causeway.tables import STATISTICS, extended
from causeway.variability.links import by_value

FIRST_CAPACITY = 1 << 16


class Bins:
    """The bins of one rank of the traced program; rows must come in the order of their positions.

    The rows of a bin may stretch over several chunks: they wait in a buffer until a row of a later bin comes.

    Parameters
    ----------
    width : int
        Positions per bin.
    columns : int
        The target and the chosen features.
    """

    def __init__(self, width: int, columns: int) -> None:
        self.width = width
        self.position = np.empty(FIRST_CAPACITY, np.int64)
        self.columns = np.empty((columns, FIRST_CAPACITY))
        self.waiting = 0
        self.done: list[tuple[np.ndarray, np.ndarray, list[np.ndarray]]] = []

    def add(self, position: np.ndarray, columns: list[np.ndarray]) -> None:
        """Add rows: positions (int64, shape (n,), ascending) and columns (float64, shape (n,) each, NaN where null)."""
        size = self.waiting + position.size
        if size > self.position.size:
            capacity = max(size, 2 * self.position.size)
            self.position = np.concatenate([self.position[: self.waiting], np.empty(capacity - self.waiting, np.int64)])
            self.columns = np.concatenate(
                [self.columns[:, : self.waiting], np.empty((self.columns.shape[0], capacity - self.waiting))], axis=1
            )
        self.position[self.waiting : size] = position
        for place, column in enumerate(columns):
            self.columns[place, self.waiting : size] = column
        self.waiting = size
        if size:
            self._take(last=False)

    def finish(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return bin numbers (int64, ascending), counts of rows (int64) and statistics (float64, shape (bins, columns, 8))."""
        if self.waiting:
            self._take(last=True)
        columns = self.columns.shape[0]
        if not self.done:
            return np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, columns, len(STATISTICS)))
        numbers, counts, statistics = zip(*self.done, strict=True)
        return np.concatenate(numbers), np.concatenate(counts), np.concatenate(statistics)

    def _take(self, last: bool) -> None:
        """Finish every bin in the buffer but the last, which may get more rows, unless none will come."""
        number, offset = np.empty(self.waiting, np.int64), np.empty(self.waiting + 1, np.int64)
        bins = _edges(self.position, self.waiting, self.width, number, offset)
        bins -= 0 if last else 1
        if bins == 0:
            return
        offset = offset[: bins + 1].copy()
        statistics = [slice_statistics(column, offset)[1] for column in self.columns]
        self.done.append((number[:bins].copy(), np.diff(offset), np.stack(statistics, axis=1)))
        rest = self.waiting - offset[-1]
        self.position[:rest] = self.position[offset[-1] : self.waiting].copy()
        self.columns[:, :rest] = self.columns[:, offset[-1] : self.waiting].copy()
        self.waiting = int(rest)


@njit(cache=True)
def _edges(position, size, width, number, offset):
    """Find where bins begin: one division per bin, not per row."""
    bins = 0
    edge = position[0]
    for i in range(size):
        if position[i] >= edge:
            number[bins], offset[bins] = position[i] // width, i
            edge = (number[bins] + 1) * width
            bins += 1
    offset[bins] = size
    return bins


@dataclass
class BinTable:
    """Bins ordered by rank (of the traced program) and bin: arrays of equal length, `statistics` of shape (bins, columns, 8)."""

    rank: np.ndarray
    bin: np.ndarray
    count: np.ndarray
    statistics: np.ndarray

    @classmethod
    def join(cls, parts: list["BinTable"]) -> "BinTable":
        """Put parts together and order them."""
        rank, number, count, statistics = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("rank", "bin", "count", "statistics")
        )
        order = np.lexsort((number, rank))
        return cls(rank[order], number[order], count[order], statistics[order])


@dataclass
class BinStreams:
    """The bins of every rank of one source: splits chunks by rank and passes each its rows."""

    ranks: list[int]
    width: int
    columns: int
    streams: dict[int, Bins] = field(default_factory=dict)

    def add(self, number: np.ndarray, position: np.ndarray, columns: list[np.ndarray]) -> None:
        """Add rows that belong to `ranks[number]`."""
        for place, rows in by_value(number):
            stream = self.streams.setdefault(place, Bins(self.width, self.columns))
            stream.add(position if rows is None else position[rows], columns if rows is None else [column[rows] for column in columns])

    def add_present(self, number: np.ndarray, position: np.ndarray, columns: list[np.ndarray]) -> None:
        """Add the rows whose first column, the target, is not null."""
        present = ~np.isnan(columns[0])
        if present.all():
            self.add(number, position, columns)
        else:
            rows = np.flatnonzero(present)
            self.add(number[rows], position[rows], [column[rows] for column in columns])

    def finish(self) -> BinTable:
        """Return the finished bins."""
        parts = [empty_bins(self.columns)]
        for place, stream in self.streams.items():
            number, count, statistics = stream.finish()
            parts.append(BinTable(np.full(number.size, self.ranks[place], np.int64), number, count, statistics))
        return BinTable.join(parts)


def empty_bins(columns: int) -> BinTable:
    """Return a table without bins."""
    none = np.empty(0, np.int64)
    return BinTable(none, none, none, np.empty((0, columns, len(STATISTICS))))


def feature_fields(features: list[str]) -> list[pa.Field]:
    """Return the columns behind those of the schema: eight statistics of each feature, in its unit where the name says it."""
    fields = []
    for feature in features:
        unit = next((unit for unit in ("ns", "bytes") if feature.endswith(f"_{unit}")), "")
        for name in STATISTICS:
            metadata = {"unit": f"{unit}^2" if name == "variance" else unit} if unit else None
            fields.append(pa.field(f"{feature}_{name}", pa.float64(), metadata=metadata))
    return fields


def bins_table(bins: BinTable, features: list[str], width: int, origin_ns: int | None) -> pa.Table:
    """Return `bins.parquet`; `origin_ns` is the dataset's first start, None where bins count launches."""
    schema = extended("bins", feature_fields(features))
    start = None if origin_ns is None else origin_ns + bins.bin * width
    columns = {
        "rank": bins.rank,
        "bin": bins.bin,
        "start_ns": pa.nulls(bins.bin.size, pa.int64()) if start is None else start,
        "count": bins.count,
    }
    names = [name for name in schema.names if name not in columns]
    for place, name in enumerate(names):
        values = bins.statistics[:, place // len(STATISTICS), place % len(STATISTICS)]
        columns[name] = pa.array(values, mask=~np.isfinite(values))
    return pa.table(columns).cast(schema)

"""Stream the rows of an export's tables.

Tables are read in chunks that stay in the second-level cache while every step works on them: first touch of fresh
memory costs more than most of these steps, and memory does not grow with the table.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from causeway.core.clock import Clock
from causeway.core.errors import TableError
from causeway.core.files.checked_parquet import CheckedParquet
from causeway.core.tables import STRETCH_ROWS, extremes, open_table, read_json
from causeway.numeric.compiled import I8, U4, compiled, int32, int64
from causeway.numeric.slice_statistics import first_fall

CHUNK_ROWS = 1 << 16
CHUNK_VALUES = 1 << 21
LEAST_ROWS = 1 << 10
"""Rows that are worked on at once, half a megabyte per column of 64 bits; fewer of counters, which may have
thousands of columns.
"""

OWN_CLOCK = Clock()


@dataclass(frozen=True)
class RowGroups:
    """Neighbouring row groups that are read one after another: `rows` rows from row `row`, which start between
    `first` and `last` (ns).
    """

    members: tuple[int, ...]
    row: int
    rows: int
    first: int
    last: int


class TableRows:
    """The rows of one table, in groups of about `STRETCH_ROWS`.

    Parameters
    ----------
    path : Path
        The table's file.
    name : str
        The table's name in the schema; it has `start_ns`.
    timed : bool
        Whether rows have start times, ascending. If not, the row's number stands for its time.
    """

    def __init__(self, path: Path, name: str, timed: bool = True) -> None:
        self.path = path
        self.name = name
        self.timed = timed
        with open_table(path, name) as file:
            self.schema: pa.Schema = file.schema_arrow
            self.columns: list[str] = self.schema.names
            self._known: pq.FileMetaData = file.metadata
            self.groups = self._groups(file)
        self.rows = sum(group.rows for group in self.groups)

    def _groups(self, file: pq.ParquetFile) -> list[RowGroups]:
        groups: list[RowGroups] = []
        row = 0
        for index in range(file.metadata.num_row_groups):
            rows = file.metadata.row_group(index).num_rows
            if rows == 0:
                continue
            first, last = extremes(file, index, "start_ns") if self.timed else (row, row + rows - 1)
            before = groups[-1] if groups else None
            if before is not None and first < before.last:
                raise TableError(
                    f"{self.path}: row {row} starts at {first} ns, before the row above it; expected rows ordered by"
                    " start_ns"
                )
            if before is not None and before.rows + rows <= STRETCH_ROWS:
                groups[-1] = RowGroups((*before.members, index), before.row, before.rows + rows, before.first, last)
            else:
                groups.append(RowGroups((index,), row, rows, first, last))
            row += rows
        return groups

    def chunks(self, columns: list[str], groups: list[RowGroups] | None = None) -> Iterator["Chunk"]:
        """Yield some columns of all groups or of some, chunk by chunk; columns that the table does not have are left
        out.

        Raises
        ------
        TableError
            If the rows of a group are not in order; the message names the first that is not.
        """
        wanted = [name for name in columns if name in self.columns]
        groups = self.groups if groups is None else groups
        if not groups:
            return
        size = max(LEAST_ROWS, min(CHUNK_ROWS, CHUNK_VALUES // max(len(wanted), 1)))
        with CheckedParquet(self.path, self._known) as file:
            for group in groups:
                row = group.row
                before = group.first
                for batch in file.iter_batches(size, row_groups=list(group.members), columns=wanted, use_threads=False):
                    chunk = Chunk(self, row, batch)
                    if self.timed and "start_ns" in wanted:
                        before = self._check_order(chunk, before)
                    row += chunk.size
                    yield chunk

    def _check_order(self, chunk: "Chunk", before: int) -> int:
        start = chunk.column("start_ns")
        index = first_fall(start, before)
        if index >= 0:
            raise TableError(
                f"{self.path}: row {chunk.row(index)} starts at {start[index]} ns, before the row above it;"
                " expected rows ordered by start_ns"
            )
        return int(start[-1])


class Chunk:
    """Rows of one table, ascending: consecutive ones, or some that were taken of them.

    Parameters
    ----------
    rows : TableRows
        The table.
    first : int
        Number in the table of the batch's first row.
    batch : RecordBatch
        Consecutive rows.
    taken : ndarray of int64 or None
        Ascending indices in the batch of the rows that belong to the chunk; None for all.
    """

    def __init__(self, rows: TableRows, first: int, batch: pa.RecordBatch, taken: np.ndarray | None = None) -> None:
        self.source = rows
        self.batch = batch
        self._first = first
        self._taken = taken
        self._columns: dict[str, np.ndarray] = {}

    @property
    def size(self) -> int:
        """Number of rows."""
        return self.batch.num_rows if self._taken is None else self._taken.size

    def row(self, index: int) -> int:
        """Return the number in the table of the row with an index in the chunk."""
        return self._first + int(index if self._taken is None else self._taken[index])

    def numbers(self) -> np.ndarray:
        """Return the number in the table of each row; int64."""
        return self._first + (np.arange(self.size, dtype=np.int64) if self._taken is None else self._taken)

    def column(self, name: str) -> np.ndarray:
        """Return a column without nulls, in the table's own type.

        Raises
        ------
        TableError
            For a null, naming the row.
        """
        if name not in self._columns:
            column = self.arrow(name)
            if column.null_count:
                index = int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
                raise TableError(f"{self.source.path}: row {self.row(index)} has no {name}")
            self._columns[name] = column.to_numpy()
        return self._columns[name]

    def floats(self, name: str) -> np.ndarray:
        """Return a column as float64, NaN where null; NaN where absent from the table."""
        if name not in self.source.columns:
            return np.full(self.size, np.nan)
        return self.arrow(name).to_numpy(zero_copy_only=False).astype(np.float64, copy=False)

    def present(self, name: str) -> np.ndarray:
        """Return where a column is not null; bool."""
        column = self.arrow(name)
        return np.ones(self.size, bool) if column.null_count == 0 else column.is_valid().to_numpy(zero_copy_only=False)

    def arrow(self, name: str) -> pa.Array:
        """Return a column as it was read."""
        column = self.batch.column(name)
        return column if self._taken is None else column.take(pa.array(self._taken))

    def slice(self, begin: int, end: int) -> "Chunk":
        """Return the rows from index `begin` up to `end`."""
        if begin == 0 and end == self.size:
            return self
        if self._taken is not None:
            return self.take(np.arange(begin, end))
        return Chunk(self.source, self._first + begin, self.batch.slice(begin, end - begin))

    def take(self, indices: np.ndarray) -> "Chunk":
        """Return the rows with ascending indices (int64)."""
        return Chunk(self.source, self._first, self.batch, indices if self._taken is None else self._taken[indices])


class Source:
    """One export's launches or counters on the dataset's time line.

    A *position* is what bins divide: nanoseconds since the dataset's first launch or, without start times, the launch's
    number within its rank.

    Parameters
    ----------
    export : str
        The export's name.
    folder : Path
        Its folder of tables.
    table : str
        `launches` or `counters`.
    clock : Clock
        The export's.
    timed : bool
        Whether start times are used.
    """

    def __init__(self, export: str, folder: Path, table: str, clock: Clock = OWN_CLOCK, timed: bool = True) -> None:
        self.export = export
        self.folder = folder
        self.clock = clock
        self.timed = timed
        self.rows = TableRows(folder / f"{table}.parquet", table, timed)
        self.ranks = sorted(int(rank) for rank in read_json(folder / "capabilities.json")["ranks"])
        self._positions = clock
        self._origin_ns = 0
        self.run_begin = 0
        """Position of the first launch of its run: of the exports that were recorded at the same time."""

    @property
    def first_ns(self) -> int:
        """Start of the first launch on the dataset's time line."""
        return int(self.clock.aligned(self.rows.groups[0].first))

    @property
    def origin_ns(self) -> int:
        """The moment of the dataset's time line from which positions count."""
        return self._origin_ns

    def count_from(self, origin_ns: int) -> None:
        """Let positions count from a moment of the dataset's time line."""
        self._origin_ns = origin_ns
        self._positions = self.clock.counting_from(origin_ns)

    @property
    def splittable(self) -> bool:
        """Whether a row's position is known without the rows before it."""
        return self.timed or len(self.ranks) == 1

    def position(self, times: np.ndarray | int) -> np.ndarray:
        """Return the positions of start times, or of row numbers without them; int64, of the same shape."""
        return self._positions.aligned(times) if self.timed else np.asarray(times, np.int64)

    def reach(self, group: RowGroups) -> tuple[int, int]:
        """Return the positions of the first and the last row of a group."""
        return int(self.position(group.first)), int(self.position(group.last))

    @property
    def span(self) -> int:
        """Last position + 1, of a source that holds rows."""
        return self.reach(self.rows.groups[-1])[1] + 1

    def rank_indices(self, chunk: Chunk) -> np.ndarray:
        """Return the index of each row's rank in `ranks`; int32.

        Raises
        ------
        TableError
            For a rank that capabilities.json does not name.
        """
        rank = chunk.column("rank")
        indices = np.empty(chunk.size, np.int32)
        wrong = _indices_in(rank, np.array(self.ranks, np.int64), indices)
        if wrong >= 0:
            raise TableError(
                f"{self.rows.path}: row {chunk.row(wrong)} belongs to rank {rank[wrong]}; expected one of {self.ranks},"
                " the ranks in capabilities.json"
            )
        return indices


@compiled(int64(U4, I8, int32[::1]))
def _indices_in(values, distinct, indices):
    """Write the index of each value in `distinct` (ascending); return where the first unknown one is, or -1."""
    last = np.int64(-1)
    index = np.int32(-1)
    for i in range(values.size):
        value = np.int64(values[i])
        if value != last:
            k = np.searchsorted(distinct, value)
            if k == distinct.size or distinct[k] != value:
                return i
            last = value
            index = np.int32(k)
        indices[i] = index
    return -1

"""Stream the rows of an export's tables, and divide the time line among ranks.

Rows are ordered by time, so a bin is a slice of rows and a rank's share is a range of bins. Row groups are read one after another; where a
share begins or ends inside a row group, that group is read by both neighbours, and no row travels between ranks.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.errors import TableError
from causeway.tables import ROW_GROUP_ROWS, open_table, read_json

OPEN_END = 1 << 62
"""A bin or time beyond all others."""


@dataclass(frozen=True)
class Group:
    """Neighbouring row groups that are read at once: `rows` rows from row `row`, which start between `first` and `last` (ns)."""

    members: tuple[int, ...]
    row: int
    rows: int
    first: int
    last: int


class Rows:
    """The rows of one table, in groups of about `ROW_GROUP_ROWS`.

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
        self.path, self.name, self.timed = path, name, timed
        self.file = open_table(path, name)
        self.columns = self.file.schema_arrow.names
        self.groups = self._groups()
        self.rows = sum(group.rows for group in self.groups)

    def _groups(self) -> list[Group]:
        facts = self.file.metadata
        column = self.columns.index("start_ns")
        groups: list[Group] = []
        row = 0
        for index in range(facts.num_row_groups):
            rows = facts.row_group(index).num_rows
            if rows == 0:
                continue
            first, last = self._extremes(index, column) if self.timed else (row, row + rows - 1)
            before = groups[-1] if groups else None
            if before is not None and first < before.last:
                raise TableError(f"{self.path}: row {row} starts at {first} ns, before the row above it; expected rows ordered by start_ns")
            if before is not None and before.rows + rows <= ROW_GROUP_ROWS:
                groups[-1] = Group((*before.members, index), before.row, before.rows + rows, before.first, last)
            else:
                groups.append(Group((index,), row, rows, first, last))
            row += rows
        return groups

    def _extremes(self, index: int, column: int) -> tuple[int, int]:
        """First and last start of a row group: from its statistics, else from the column (which `read` finds ordered or refuses)."""
        statistics = self.file.metadata.row_group(index).column(column).statistics
        if statistics is not None and statistics.has_min_max:
            return int(statistics.min), int(statistics.max)
        start = self.file.read_row_group(index, columns=["start_ns"], use_threads=False).column(0)
        return start[0].as_py(), start[-1].as_py()

    def read(self, group: Group, columns: list[str]) -> "Chunk":
        """Read some columns of a group; those that the table does not have are left out.

        Raises
        ------
        TableError
            If its rows are not in order; the message names the first that is not.
        """
        wanted = [name for name in columns if name in self.columns]
        table = self.file.read_row_groups(list(group.members), columns=wanted, use_threads=False)
        chunk = Chunk(self, group.row, table)
        if self.timed and "start_ns" in wanted:
            start = chunk.integers("start_ns")
            wrong = np.flatnonzero(start[1:] < start[:-1])
            if wrong.size:
                row = wrong[0] + 1
                raise TableError(
                    f"{self.path}: row {group.row + row} starts at {start[row]} ns, before the row above it;"
                    " expected rows ordered by start_ns"
                )
        return chunk


class Chunk:
    """Consecutive rows of one table: `row` is the number of the first in the table, `table` their Arrow columns."""

    def __init__(self, source: Rows, row: int, table: pa.Table) -> None:
        self.source, self.row, self.table = source, row, table
        self._integers: dict[str, np.ndarray] = {}

    @property
    def size(self) -> int:
        """Number of rows."""
        return self.table.num_rows

    def integers(self, name: str) -> np.ndarray:
        """Return a column without nulls as int64: one type for all compiled code."""
        if name not in self._integers:
            column = self.table.column(name)
            if column.null_count:
                row = self.row + int(np.flatnonzero(column.is_null().to_numpy())[0])
                raise TableError(f"{self.source.path}: row {row} has no {name}")
            self._integers[name] = column.to_numpy().astype(np.int64)
        return self._integers[name]

    def floats(self, name: str) -> np.ndarray:
        """Return a column as float64, NaN where null; NaN where absent from the table."""
        if name not in self.table.column_names:
            return np.full(self.size, np.nan)
        column = self.table.column(name).cast(pa.float64(), safe=False)
        return column.to_numpy().astype(np.float64)

    def present(self, name: str) -> np.ndarray:
        """Return where a column is not null; bool."""
        column = self.table.column(name)
        return np.ones(self.size, bool) if column.null_count == 0 else column.is_valid().to_numpy()

    def slice(self, begin: int, end: int) -> "Chunk":
        """Return the rows from `begin` up to `end`, counted within the chunk."""
        if begin == 0 and end == self.size:
            return self
        part = Chunk(self.source, self.row + begin, self.table.slice(begin, end - begin))
        part._integers = {name: column[begin:end] for name, column in self._integers.items()}
        return part


class Source:
    """One export's launches or counters on the dataset's time line.

    A *position* is what bins divide: nanoseconds since the dataset's first launch or, without start times, the launch's number within its
    rank.

    Parameters
    ----------
    export : str
        The export's name.
    folder : Path
        Its folder of tables.
    table : str
        `launches` or `counters`.
    shift_ns : int
        Added to the export's clock.
    timed : bool
        Whether start times are used.
    """

    def __init__(self, export: str, folder: Path, table: str, shift_ns: int = 0, timed: bool = True) -> None:
        self.export, self.folder, self.shift_ns, self.timed = export, folder, shift_ns, timed
        self.rows = Rows(folder / f"{table}.parquet", table, timed)
        self.ranks = sorted(int(rank) for rank in read_json(folder / "capabilities.json")["ranks"])
        self.origin_ns = 0

    @property
    def first_ns(self) -> int:
        """Start of the first launch on the dataset's time line."""
        return self.rows.groups[0].first + self.shift_ns

    @property
    def splittable(self) -> bool:
        """Whether a row's position can be told without the rows before it."""
        return self.timed or len(self.ranks) == 1

    @property
    def offset(self) -> int:
        """What turns a start time, or row number, into a position."""
        return self.shift_ns - self.origin_ns if self.timed else 0

    @property
    def span(self) -> int:
        """Last position + 1, of a source that holds rows."""
        return self.rows.groups[-1].last + self.offset + 1

    def rank_numbers(self, chunk: Chunk) -> np.ndarray:
        """Return the place of each row's rank in `ranks`; int64.

        Raises
        ------
        TableError
            For a rank that capabilities.json does not name.
        """
        rank = chunk.integers("rank")
        known = np.array(self.ranks, np.int64)
        if known.size == 1 and (rank == known[0]).all():
            return np.zeros(rank.size, np.int64)
        place = np.minimum(np.searchsorted(known, rank), max(known.size - 1, 0))
        wrong = np.arange(rank.size) if known.size == 0 else np.flatnonzero(known[place] != rank)
        if wrong.size:
            raise TableError(
                f"{self.rows.path}: row {chunk.row + wrong[0]} belongs to rank {rank[wrong[0]]}; expected one of {self.ranks}, the ranks in"
                " capabilities.json"
            )
        return place.astype(np.int64)


@dataclass(frozen=True)
class Share:
    """The part of a source that a rank works on: bins `low` up to `high`, of `width` positions each."""

    source: Source
    low: int
    high: int
    width: int

    def groups(self) -> list[Group]:
        """Return the groups that hold rows of the share."""
        offset = self.source.offset
        whole = [
            group
            for group in self.source.rows.groups
            if group.last + offset >= self.low * self.width and group.first + offset < self.high * self.width
        ]
        return whole if self.source.splittable else self.source.rows.groups

    def chunks(self, columns: list[str], wanted: list[Group] | None = None) -> Iterator[tuple[Chunk, np.ndarray]]:
        """Yield the share's rows with their positions (int64), group by group; of `wanted` groups only, if given.

        `columns` are those of the table; rank and start_ns are always read where positions need them.
        """
        needed = list(dict.fromkeys([*columns, *(["start_ns"] if self.source.timed else []), "rank"]))
        counted = np.zeros(len(self.source.ranks), np.int64)
        for group in self.groups() if wanted is None else wanted:
            chunk = self.source.rows.read(group, needed)
            if self.source.timed:
                position = chunk.integers("start_ns") + self.source.offset
            elif self.source.splittable:
                position = np.arange(chunk.row, chunk.row + chunk.size, dtype=np.int64)
            else:
                position = np.empty(chunk.size, np.int64)
                number = self.source.rank_numbers(chunk)
                for rank in range(counted.size):
                    mine = np.flatnonzero(number == rank)
                    position[mine] = counted[rank] + np.arange(mine.size)
                    counted[rank] += mine.size
                yield chunk, position
                continue
            begin, end = np.searchsorted(position, [self.low * self.width, self.high * self.width])
            if begin < end:
                yield chunk.slice(begin, end), position[begin:end]


def shares(sources: list[Source], width: int, rank: int, size: int) -> list[Share]:
    """Return what rank `rank` of `size` works on: about an equal number of rows, cut at edges of bins.

    Every rank finds the same cuts by integer arithmetic from the row groups' statistics, so nothing is exchanged. Sources whose positions
    depend on earlier rows go to one rank whole.
    """
    total = sum(source.rows.rows for source in sources)
    low_row, high_row = total * rank // size, total * (rank + 1) // size
    mine, begin = [], 0
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

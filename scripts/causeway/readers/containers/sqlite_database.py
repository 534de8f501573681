"""Columns out of a SQLite export, streamed: integers of large tables straight from the pages (`sqlite_pages`, measured
some eight times as fast as ADBC); what that cannot prove simple, through ADBC (measured 3.5 times as fast as sqlite3);
and through sqlite3 from the first row ADBC cannot type.

The file is opened read-only and never changed. Text comes as bytes, since exports hold text in any encoding.
"""

import contextlib
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from causeway.core.errors import ExportError
from causeway.core.files.machine_errors import fail_if_of_the_machine, suppress_unless_of_the_machine
from causeway.core.logs import LOG
from causeway.readers.common.background import prefetched
from causeway.readers.common.constants import NULL
from causeway.readers.common.numbers import Misfits, integer, integers
from causeway.readers.containers.sqlite_names import PLAIN_TABLES, has_journal

BATCH_ROWS = 1 << 16
LONGEST_VALUE = 1 << 24
"""Bytes of the longest text or blob that is taken from a database; the longest kernel names seen have 0.6 MB."""
STEPS_PER_CALL = 1_000_000
MOST_STEPS = 2 * 10**9
"""Steps of SQLite's virtual machine without a row, half a minute: skipping the rows of a table takes three for each, so
this is a table of 6e8 rows, above all that were seen.
"""
LEAST_ROW_BYTES = 5
"""Bytes of the smallest row of a table (`sqlite_pages.LEAST_ROW`): a file cannot hold more rows."""
LARGE_ROWS = 100_000
"""Rows from which on reading pages is worth loading its compiled code."""
DAMAGE = (sqlite3.Error, UnicodeDecodeError)
"""What sqlite3 raises for a damaged file: its messages may quote undecodable bytes."""

ADVICE_CUT = "Export it again from the report file, or copy it again: a copy that was cut short is the usual cause."
ADVICE_OPEN = "Wait until the writer has finished, or open a copy with sqlite3, which takes the change back."


class SqliteExport:
    """A database as named tables with columns; a `TableSource`.

    Parameters
    ----------
    path : Path
    source : str
        How the sheet names it, for messages.

    Attributes
    ----------
    repeated : dict of str to int
        Of tables given by `once`, the rows that share their key with another.

    Raises
    ------
    ExportError
        If it is not a database, or so damaged that its list of tables cannot be read.
    """

    unknown: tuple[str, ...] = ()

    def __init__(self, path: Path, source: str) -> None:
        self.path = path
        self.source = source
        self.wal_ignored = False
        self.still_open = has_journal(path)
        self.broken: dict[str, str] = {}
        self.repeated: dict[str, int] = {}
        self._names: dict[tuple[str, str], dict[int, str]] = {}
        self._uri = f"{path.resolve().as_uri()}?mode=ro"
        # of a write-ahead log; SQLite makes one beside it where it can
        self._index = path.with_name(path.name + "-shm")
        self._had_index = self._index.exists()
        self._missing = missing_pages(path)
        self._steps = 0
        opened = None
        try:
            opened = self._connection = self._open()
            names = [name.decode("utf-8", "replace") for (name,) in opened.execute(PLAIN_TABLES)]
        except DAMAGE as error:
            if opened is not None:
                opened.close()
            if getattr(error, "sqlite_errorname", "") == "SQLITE_READONLY_ROLLBACK":
                problem = "its writer stopped within a change of it, as the journal beside it says"
                raise ExportError(source, problem, "a database that was closed", ADVICE_OPEN) from None
            fail_if_of_the_machine(error)
            raise ExportError(
                source, f"the database cannot be read ({error})", "a complete SQLite file", ADVICE_CUT
            ) from None
        self.tables: dict[str, list[str]] = {name: self._columns(name) for name in names}

    def _open(self) -> sqlite3.Connection:
        connection = self._guarded()
        try:
            if self._missing:
                # SQLite then opens a file that is cut, and fails only where pages are missing; the file stays read-only
                connection.execute("PRAGMA writable_schema = ON")
            connection.execute("SELECT 1 FROM sqlite_master").fetchone()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorname == "SQLITE_READONLY_ROLLBACK":
                raise
            # a write-ahead log beside a file in a folder that cannot be written: read the file without its log
            connection.close()
            self._uri += "&immutable=1"
            connection = self._guarded()
            log = self.path.with_name(self.path.name + "-wal")
            self.wal_ignored = log.exists() and log.stat().st_size > 0
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _guarded(self) -> sqlite3.Connection:
        """Connect with limits on what a hostile schema can make SQLite do (sqlite.org/security.html)."""
        connection = sqlite3.connect(self._uri, uri=True)
        connection.text_factory = bytes
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.set_progress_handler(self._watch, STEPS_PER_CALL)
        return connection

    def _watch(self) -> bool:
        """Count SQLite's steps since the last rows came; True, which ends the query, if there are too many."""
        self._steps += STEPS_PER_CALL
        return self._steps > MOST_STEPS

    def _answer(self, query: str, values: Sequence[object] = (), steps: int = 0) -> list[tuple] | None:
        """Return the rows of a small query, None where damage ends it; `steps` were made for it before."""
        self._steps = steps
        with suppress_unless_of_the_machine(*DAMAGE):
            return self._connection.execute(query, values).fetchall()
        return None

    def _columns(self, table: str) -> list[str]:
        rows = self._answer(f"PRAGMA table_info({quoted(table)})") or []
        return [row[1].decode("utf-8", "replace") for row in rows]

    def estimated_rows(self, table: str) -> int:
        """Return the highest row id, at once: the number of rows unless some were deleted."""
        highest = self._answer(f"SELECT max(rowid) FROM {quoted(table)}")  # noqa: S608 - quoted name
        return integer(highest[0][0]) or 0 if highest else 0

    def rows(self, table: str, columns: list[str], limit: int = 100_000) -> list[tuple]:
        """Return columns of a small table, absent columns as None, text as str; [] if it cannot be read."""
        present = self.tables.get(table, [])
        if not present:  # also a view of that name, which is not run
            return []
        names = ", ".join(quoted(name) if name in present else "NULL" for name in columns)
        rows = self._answer(f"SELECT {names} FROM {quoted(table)} LIMIT {limit:d}") or []  # noqa: S608 - quoted names
        return [
            tuple(cell.decode("utf-8", "replace") if isinstance(cell, bytes) else cell for cell in row) for row in rows
        ]

    def texts(self, table: str, key: str, value: str, wanted: Iterable[int]) -> dict[int, bytes]:
        """Return the texts of the wanted ids only, never a whole table of strings: it holds the environments of
        processes.

        Ids whose text is lost to damage are absent from the result.
        """
        wanted = sorted(wanted)
        text_of: dict[int, bytes] = {}
        query = f"SELECT {quoted(key)}, {quoted(value)} FROM {quoted(table)} WHERE {quoted(key)} IN "  # noqa: S608 - quoted names
        for first in range(0, len(wanted), 500):
            part = wanted[first : first + 500]
            rows = self._answer(f"{query} ({', '.join('?' * len(part))})", part)
            if rows is None:
                rows = [row for number in part for row in self._answer(f"{query} (?)", (number,), self._steps) or ()]
            text_of.update(rows)
        return {
            key: text if isinstance(text, bytes) else str(text).encode()
            for key, text in text_of.items()
            if text is not None
        }

    def names(self, ids: np.ndarray, table: str, column: str) -> list[str]:
        """Return the texts of ids, '' where there is none; only those are read, each once: the table may hold anything.

        Parameters
        ----------
        ids : ndarray of int64, shape (n,)
            `NULL` where absent.
        table, column : str
        """
        names = self._names.setdefault((table, column), {NULL: ""})
        wanted = set(np.unique(ids).tolist()) - names.keys()
        texts = self.texts(table, "id", column, wanted) if wanted and table in self.tables else {}
        names |= {key: texts.get(key, b"").decode("utf-8", "replace") for key in wanted}
        return [names[key] for key in ids.tolist()]

    def stream(
        self, table: str, columns: list[str], text: Iterable[str] = (), times: Iterable[str] = ()
    ) -> Iterator[tuple[Misfits, dict]]:
        """Give a table's columns batch by batch, in row order.

        Parameters
        ----------
        table : str
        columns : list of str
            Columns of the table.
        text : iterable of str
            Columns that come as Arrow binary arrays; the others come as int64 arrays with `NULL`.
        times : iterable of str
            Columns that are times: what has a fraction is rounded.

        Yields
        ------
        (Counter of str, dict of str to array)
            Values that were not integers in this batch (now `NULL`), by the kind of issue, and its columns.

        Raises
        ------
        ExportError
            After the last good row, if the rest of the table is damaged.
        """
        query = f"SELECT {', '.join(map(quoted, columns))} FROM {quoted(table)}"  # noqa: S608
        done = 0
        if not set(text) and self.estimated_rows(table) >= LARGE_ROWS:
            from causeway.readers.containers.sqlite_pages import ManyPagesError, NotSimpleError

            try:
                for batch in self._pages(table, columns):
                    yield Counter(), dict(zip(columns, batch, strict=True))
                    done += batch.shape[1]
                return
            except ManyPagesError:
                raise self._no_tree(table) from None
            except NotSimpleError as reason:
                LOG.info("%s: %s in table %s: SQLite reads it from row %d on", self.source, reason, table, done)
        yield from self.select(query, table, columns, text, done, times)

    def _pages(self, table: str, columns: list[str]) -> Iterator[np.ndarray]:
        """Give integer columns of a large table from its pages; see `sqlite_pages.integer_columns`."""
        from causeway.readers.containers.sqlite_pages import NotSimpleError, Pages, integer_columns

        if "immutable" in self._uri:
            raise NotSimpleError("a journal beside the file")
        with (
            contextlib.closing(sqlite3.connect(self._uri, uri=True)) as lock,
            contextlib.closing(Pages(self.path)) as pages,
        ):
            try:
                lock.execute("BEGIN")  # as long as this transaction reads, no other program writes
                roots = lock.execute(
                    "SELECT rootpage FROM sqlite_master WHERE type = 'table' AND name = ?", [table]
                ).fetchall()
                declared = lock.execute(f"PRAGMA table_xinfo({quoted(table)})").fetchall()
            except DAMAGE as error:
                fail_if_of_the_machine(error)
                raise NotSimpleError("an unreadable schema") from error
            if len(roots) != 1 or any(hidden for *_, hidden in declared):
                raise NotSimpleError("no plain table")
            position = {}
            column_of = {name: (number, default, key) for number, name, _, _, default, key, _ in declared}
            for name in columns:
                position[name], _, key = column_of[name]
                if key:  # an INTEGER PRIMARY KEY stands for the rowid and is stored as null
                    raise NotSimpleError("a wanted column that is a key")
            short = all(column_of[name][1] is None for name in columns)
            yield from prefetched(integer_columns(pages, roots[0][0], list(position.values()), short))

    def select(
        self,
        query: str,
        table: str,
        columns: list[str],
        text: Iterable[str] = (),
        done: int = 0,
        times: Iterable[str] = (),
    ) -> Iterator[tuple[Misfits, dict]]:
        """Give a query's columns batch by batch, like `stream`; `columns` are their names and `table` is the one that
        errors name.

        The first `done` rows are left out. The query must give its rows in the order of a table's rows: it may be asked
        again for the rest, by LIMIT and OFFSET. Tables other than the first must come from `once`.
        """
        from adbc_driver_manager import Error

        text = set(text)
        times = set(times)
        self._check_tree(table)
        if " JOIN " in query and not self._looks_up(query):  # ADBC has no limit on steps
            yield from self._slowly(query, table, columns, text, done, times)
            return
        # a value of another type, or damage; sqlite3 shows which
        with contextlib.suppress(OSError, pa.ArrowException, Error):
            for batch in self._adbc(f"{query} LIMIT -1 OFFSET {done}" if done else query):
                yield (
                    Counter(),
                    {name: self._column(batch.column(index), name in text) for index, name in enumerate(columns)},
                )
                done += batch.num_rows
                self._check_rows(table, done)
            if self._missing:  # of a page that is cut, SQLite reads what is left as if it were whole
                raise self._damage(table, done, self._missing)
            return
        yield from self._slowly(f"{query} LIMIT -1 OFFSET {done}", table, columns, text, done, times)

    def once(self, table: str, key: str, columns: Iterable[str]) -> str:
        """Return a table as the FROM clause of a join on `key`, with one row for each value of it.

        Rows that share a key would multiply the rows that are joined with them. What is left out is counted in
        `repeated`, by table. A key that is the table's own is unique, and the table joined as it is.
        """
        declared = self._answer(f"PRAGMA table_info({quoted(table)})")
        if declared and [row[1].decode("utf-8", "replace") for row in declared if row[5]] == [key]:
            return quoted(table)
        count = f"SELECT count({quoted(key)}) - count(DISTINCT {quoted(key)}) FROM {quoted(table)}"  # noqa: S608
        if counted := self._answer(count):  # reading what is damaged for the join ends with a sentence
            self.repeated[table] = int(counted[0][0])
        names = ", ".join(map(quoted, dict.fromkeys([key, *columns])))
        return f"(SELECT {names} FROM {quoted(table)} GROUP BY {quoted(key)})"  # noqa: S608 - quoted names

    def _looks_up(self, query: str) -> bool:
        """Return whether a join goes through one table alone and looks the others' rows up, by keys or by an index that
        SQLite makes: what a key's declared type forbids, comparing every row with every other.
        """
        plan = self._answer(f"EXPLAIN QUERY PLAN {query}") or ()
        return sum(parent == 0 and what.startswith(b"SCAN") for _, parent, _, what in plan) == 1

    def _adbc(self, query: str) -> Iterator[pa.RecordBatch]:
        import adbc_driver_sqlite
        from adbc_driver_manager import AdbcConnection, AdbcStatement  # its DB-API would load pandas

        with (
            adbc_driver_sqlite.connect(self._uri) as database,
            AdbcConnection(database) as connection,
            AdbcStatement(connection) as statement,
        ):
            statement.set_options(**{"adbc.sqlite.query.batch_rows": BATCH_ROWS})
            statement.set_sql_query(query)
            with pa.RecordBatchReader.from_stream(statement.execute_query()[0]) as batches:
                yield from batches

    @staticmethod
    def _column(column: pa.Array, text: bool) -> pa.Array | np.ndarray:
        if text:
            return column.cast(pa.binary()) if column.null_count < len(column) else pa.nulls(len(column), pa.binary())
        if pa.types.is_null(column.type) or column.null_count == len(column):
            return np.full(len(column), NULL)
        if not pa.types.is_integer(column.type):
            raise pa.ArrowInvalid("not integers")
        return (pc.fill_null(column, NULL) if column.null_count else column).to_numpy(zero_copy_only=False)

    def _slowly(
        self, query: str, table: str, columns: list[str], text: set[str], done: int, times: Iterable[str] = ()
    ) -> Iterator[tuple[Misfits, dict]]:
        self._steps = 0
        try:
            cursor = self._connection.execute(query)
        except DAMAGE as error:
            fail_if_of_the_machine(error)
            raise self._damage(table, done, error) from None
        while True:
            rows = []
            failure = None
            try:
                for row in islice(cursor, BATCH_ROWS):
                    rows.append(row)
            except DAMAGE as error:
                fail_if_of_the_machine(error)
                failure = error
            self._steps = 0
            if rows:
                yield _decoded(rows, columns, text, times)
                done += len(rows)
                self._check_rows(table, done)
            if failure is not None:
                raise self._damage(table, done, failure) from None
            if len(rows) < BATCH_ROWS:
                if self._missing:
                    raise self._damage(table, done, self._missing)
                return

    def _check_tree(self, table: str) -> None:
        """Refuse a small table with more rows than its row ids leave room for: pages that are met again and again.

        Raises
        ------
        ExportError
        """
        ends = [f"(SELECT {end}(rowid) FROM {quoted(table)})" for end in ("max", "min")]  # noqa: S608 - quoted name
        ((most,),) = self._answer(f"SELECT {ends[0]} - {ends[1]} + 1") or [(None,)]  # each looked up; none without ids
        if not isinstance(most, int) or most > LARGE_ROWS:
            return
        rows = f"SELECT count(*) FROM (SELECT 1 FROM {quoted(table)} LIMIT {most + 1:d})"  # noqa: S608 - quoted name
        if (counted := self._answer(rows)) and counted[0][0] > most:
            raise self._no_tree(table)

    def _check_rows(self, table: str, done: int) -> None:
        """Stop at more rows than the file can hold; pages that are met again have no end."""
        log = self.path.with_name(self.path.name + "-wal")
        size = self.path.stat().st_size + (log.stat().st_size if log.exists() else 0)
        if done * LEAST_ROW_BYTES > size:
            raise self._no_tree(table)

    def _no_tree(self, table: str) -> ExportError:
        problem = (
            f"table {table} is damaged: pages of it are met more than once, so that it has more rows than the file"
        )
        return ExportError(self.source, problem, "a complete SQLite file", ADVICE_CUT)

    def _damage(self, table: str, done: int, error: Exception | str) -> ExportError:
        problem = f"table {table} is damaged after {done:,} rows ({error})"
        if error is self._missing:
            problem = f"{error}: of table {table}, {done:,} rows are left"
        return ExportError(self.source, problem, "a complete SQLite file", ADVICE_CUT)

    def close(self) -> None:
        """Close the database, and remove the index of a write-ahead log that reading it has made."""
        self._connection.close()
        if not self._had_index:
            with contextlib.suppress(OSError):
                self._index.unlink(missing_ok=True)


def missing_pages(path: Path) -> str | None:
    """Return in words how much of a database file is missing, by its header; None if nothing is, or the header does not
    say.

    Source: sqlite.org/fileformat2.html, section 1.3: page size at offset 16, size in pages at 28, valid if the numbers
    at 24 and 92 agree.
    """
    with open(path, "rb") as handle:
        header = handle.read(100)
    size = int.from_bytes(header[16:18], "big")
    size = 65_536 if size == 1 else size
    pages = int.from_bytes(header[28:32], "big")
    present = path.stat().st_size
    if header[24:28] != header[92:96] or pages * size <= present:
        return None
    return f"the file ends in page {present // size + 1} of {pages}"


def quoted(name: str) -> str:
    """Return a table's or column's name as an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def _decoded(rows: list[tuple], columns: list[str], text: set[str], times: Iterable[str]) -> tuple[Misfits, dict]:
    """Return how many values are no integers, and the columns, as `SqliteExport.stream` gives them."""
    misfits: Misfits = Counter()
    batch = {}
    for name, values in zip(columns, zip(*rows, strict=True), strict=True):
        if name in text:
            encoded = [v if v is None or isinstance(v, bytes) else str(v).encode() for v in values]
            batch[name] = pa.array(encoded, pa.binary())
        else:
            decoded = [v.decode("ascii", "replace") if isinstance(v, bytes) else v for v in values]
            batch[name], more = integers(decoded, of_times=name in times)
            misfits += more
    return misfits, batch

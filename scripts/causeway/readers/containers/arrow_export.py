"""Tables of an export that lie in Parquet files or Arrow streams, with the interface of `sqlite.SqliteExport`.

Three containers, as `nsys export` writes them: a folder of `<TABLE>.parquet`, a folder of `<TABLE>.arrow` (Arrow streams, not the file
form), and one file of Arrow streams one after the other, each with its table's name in its schema's metadata. Columns are read batch by
batch and never more than asked for; an Arrow file is mapped, and its pages are given back as the reading goes on, so that memory stays
small at any size.
"""

import mmap
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from causeway.errors import ExportError
from causeway.readers.events import NULL, integers
from causeway.readers.rows import repeated

BATCH_ROWS = 1 << 16
GIVE_BACK_BYTES = 16 << 20
"""Mapped bytes that may be read before the pages are given back to the system."""

ADVICE_CUT = "Export it again from the report file, or copy it again: a copy that was cut short is the usual cause."
READ_ERRORS = (pa.ArrowException, OSError, ValueError, KeyError)
"""What pyarrow raises for damaged files, beside its own exceptions."""


class ArrowTable:
    """One table: its columns, about how many rows, and its batches."""

    columns: list[str]

    def estimated_rows(self) -> int:
        """Return the number of rows, or a guess from the size."""
        raise NotImplementedError

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Give the columns in batches of at most `BATCH_ROWS` rows."""
        raise NotImplementedError

    def batches_with(self, key: str, wanted: pa.Array, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Give batches that hold all rows in which the integer column `key` is one of `wanted` (and perhaps others)."""
        yield from self.batches(columns)


class ParquetTable(ArrowTable):
    """One Parquet file; pages are read as they are needed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._open() as file:
            self.columns = list(file.schema_arrow.names)

    def _open(self) -> pq.ParquetFile:
        return pq.ParquetFile(self.path, buffer_size=1 << 20, pre_buffer=False)

    def estimated_rows(self) -> int:
        """Return the number of rows."""
        with self._open() as file:
            return file.metadata.num_rows

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Give the columns in batches."""
        with self._open() as file:
            known = _repeated_columns(file, columns)
            varying = [name for name in columns if name not in known] or columns[:1]
            for batch in file.iter_batches(BATCH_ROWS, columns=varying, use_threads=False):
                filled = [batch.column(name) if name in varying else _run(known[name], batch.num_rows) for name in columns]
                yield pa.RecordBatch.from_arrays(filled, names=columns)

    def batches_with(self, key: str, wanted: pa.Array, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Give the row groups whose statistics allow one of the wanted keys."""
        least, most = pc.min_max(wanted).as_py().values()
        with self._open() as file:
            at = file.schema_arrow.names.index(key)
            groups = []
            for group in range(file.num_row_groups):
                known = file.metadata.row_group(group).column(at).statistics
                if known is None or not known.has_min_max or (known.max >= least and known.min <= most):
                    groups.append(group)
            if groups:
                yield from file.iter_batches(BATCH_ROWS, row_groups=groups, columns=columns, use_threads=False)


def _repeated_columns(file: pq.ParquetFile, columns: list[str]) -> dict[str, pa.Scalar]:
    """Return the integer columns in which the statistics of all row groups name one value, and no null: they need not be decoded."""
    found, groups = {}, range(file.metadata.num_row_groups)
    names = [file.metadata.schema.column(at).path for at in range(file.metadata.num_columns)] if groups else []
    for name in columns:
        kind = file.schema_arrow.field(name).type
        values = set()
        for group in groups if pa.types.is_signed_integer(kind) and name in names else ():
            known = file.metadata.row_group(group).column(names.index(name)).statistics
            values |= {known.min, known.max} if known and known.has_min_max and known.has_null_count and not known.null_count else {None}
            if len(values) > 1:
                break
        if len(values) == 1 and values != {None}:
            found[name] = pa.scalar(*values, kind)
    return found


def _run(value: pa.Scalar, rows: int) -> pa.Array:
    return pa.RunEndEncodedArray.from_arrays(pa.array([rows], pa.int32()), pa.array([value]))


class StreamTable(ArrowTable):
    """One Arrow stream that begins at `offset` of a mapped file."""

    def __init__(self, file: "MappedFile", offset: int, schema: pa.Schema, size: int) -> None:
        self.file, self.offset, self.size = file, offset, size
        self.columns = list(schema.names)

    def estimated_rows(self) -> int:
        """Return a guess: eight bytes a value."""
        return self.size // (8 * max(1, len(self.columns)))

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Give the columns in batches, which are copies: the pages they came from may go."""
        reader, read = pa.ipc.open_stream(self.file.reader(self.offset)), 0
        names = reader.schema.names
        wanted = [names.index(name) for name in columns]
        while True:
            try:
                batch = reader.read_next_batch()
            except StopIteration:
                self.file.give_back()
                return
            picked = pa.RecordBatch.from_arrays([_as_bytes(batch.column(at)) for at in wanted], names=columns)
            picked.validate()
            for begin in range(0, picked.num_rows, BATCH_ROWS):
                part = picked.slice(begin, BATCH_ROWS)
                part.validate(full=True)
                read += part.nbytes
                yield pa.RecordBatch.from_arrays([_copied(column) for column in part.columns], names=columns)
                if read > GIVE_BACK_BYTES:
                    self.file.give_back()
                    read = 0


def _as_bytes(column: pa.Array) -> pa.Array:
    """Return text as bytes without looking at it: text of any encoding passes, as long as its offsets are sound."""
    return column.cast(pa.binary()) if pa.types.is_string(column.type) else column


def _copied(column: pa.Array) -> pa.Array:
    return pa.concat_arrays([column, column.slice(0, 0)]) if len(column) else column


class MappedFile:
    """A file of Arrow streams, mapped into memory."""

    def __init__(self, path: Path) -> None:
        with open(path, "rb") as handle:
            self.map = mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ)
        self.buffer = pa.py_buffer(self.map)

    def reader(self, offset: int) -> pa.BufferReader:
        """Return a reader of the bytes from `offset` on."""
        return pa.BufferReader(self.buffer.slice(offset))

    def give_back(self) -> None:
        """Let the system take back what was read; it is read again where it is still needed."""
        if hasattr(self.map, "madvise"):
            self.map.madvise(mmap.MADV_DONTNEED)

    def streams(self) -> Iterator[tuple[int, int, pa.Schema]]:
        """Give the offset, size and schema of each stream up to the end of the file or to damage.

        Raises
        ------
        ArrowException or OSError
            Where a stream is damaged or cut, after giving it.
        """
        offset = 0
        while offset < len(self.map):
            source = self.reader(offset)
            reader = pa.ipc.open_stream(source)
            try:
                while True:
                    reader.read_next_batch()
            except StopIteration:
                size = source.tell()
            except READ_ERRORS:
                yield offset, len(self.map) - offset, reader.schema
                raise
            yield offset, size, reader.schema
            if not size:
                return
            offset += size
            self.give_back()


class ArrowExport:
    """An export as named tables with columns; like `sqlite.SqliteExport`.

    Parameters
    ----------
    tables : dict of str to ArrowTable
        The readable tables.
    broken : dict of str to str
        The others, and what is wrong with them.
    source : str
        How the sheet names the export, for messages.
    """

    wal_ignored = still_open = False

    def __init__(self, tables: dict[str, ArrowTable], broken: dict[str, str], source: str) -> None:
        self._tables, self.broken, self.source = tables, broken, source
        self.tables = {name: table.columns for name, table in sorted(tables.items())}

    @classmethod
    def of_folder(cls, folder: Path, source: str, closed: frozenset[str] = frozenset()) -> "ArrowExport":
        """Open a folder of `<TABLE>.parquet` or `<TABLE>.arrow`; the tables named in `closed` are never opened."""
        tables: dict[str, ArrowTable] = {}
        broken: dict[str, str] = {}
        for path in sorted(folder.iterdir()):
            if path.suffix not in (".parquet", ".arrow") or path.stem in closed or path.stem in tables or not path.is_file():
                continue
            try:
                tables[path.stem] = ParquetTable(path) if path.suffix == ".parquet" else _whole_file(path)
            except READ_ERRORS as error:
                broken[path.stem] = _reason(error)
        return cls(tables, broken, source)

    @classmethod
    def of_file(cls, path: Path, source: str, closed: frozenset[str] = frozenset()) -> "ArrowExport":
        """Open a file of several streams. A cut file gives the tables up to the cut.

        Raises
        ------
        ExportError
            If not one stream can be read.
        """
        tables: dict[str, ArrowTable] = {}
        broken: dict[str, str] = {}
        file, last, number = MappedFile(path), "", 0
        try:
            for number, (offset, size, schema) in enumerate(file.streams(), 1):  # noqa: B007 - counted for the message
                last = (schema.metadata or {}).get(b"table_name", b"").decode("utf-8", "replace")
                if last and last not in closed:
                    tables.setdefault(last, StreamTable(file, offset, schema, size))
        except READ_ERRORS as error:
            if not number:
                raise ExportError(
                    source, f"its first Arrow stream cannot be read ({_reason(error)})", "Arrow streams", ADVICE_CUT
                ) from None
            broken[f"(after {last or 'stream ' + str(number)})"] = _reason(error)
        return cls(tables, broken, source)

    def estimated_rows(self, table: str) -> int:
        """Return about how many rows a table has."""
        try:
            return self._tables[table].estimated_rows()
        except READ_ERRORS:
            return 0

    def pairs(self, table: str, key: str, value: str) -> list[tuple]:
        """Return two columns of a small table, text as str; [] if there is no such table or it cannot be read."""
        return self.rows(table, [key, value]) if {key, value} <= set(self.tables.get(table, [])) else []

    def rows(self, table: str, columns: list[str], limit: int = 100_000) -> list[tuple]:
        """Return columns of a small table, absent columns as None, text as str; [] if it cannot be read."""
        present = self.tables.get(table, [])
        picked = [name for name in dict.fromkeys(columns) if name in present]
        if not picked:
            return []
        found: list[tuple] = []
        try:
            for batch in self._tables[table].batches(picked):
                cells = {name: [_plain(cell) for cell in batch.column(at).slice(0, limit).to_pylist()] for at, name in enumerate(picked)}
                absent = [None] * min(limit, batch.num_rows)
                found += zip(*[cells.get(name, absent) for name in columns], strict=True)
                if len(found) >= limit:
                    break
        except READ_ERRORS:
            return []
        return found[:limit]

    def texts(self, table: str, key: str, value: str, wanted: Iterable[int]) -> dict[int, bytes]:
        """Return the texts of the wanted ids only, never a whole table of strings: it holds the environments of processes."""
        ids = pa.array(sorted(wanted), pa.int64())
        found: dict[int, bytes] = {}
        if not len(ids) or not {key, value} <= set(self.tables.get(table, [])):
            return found
        try:
            for batch in self._tables[table].batches_with(key, ids, [key, value]):
                keys = batch.column(0).cast(pa.int64())
                hit = pc.is_in(keys, value_set=ids)
                if pc.any(hit).as_py():
                    texts = _as_bytes(batch.column(1).filter(hit))
                    for one, text in zip(keys.filter(hit).to_pylist(), texts.to_pylist(), strict=True):
                        if text is not None:
                            found.setdefault(one, text if isinstance(text, bytes) else str(text).encode())
        except READ_ERRORS:
            return found
        return found

    def stream(self, table: str, columns: list[str], text: Iterable[str] = ()) -> Iterator[tuple[int, dict]]:
        """Give a table's columns batch by batch, in row order; see `SqliteExport.stream`.

        Raises
        ------
        ExportError
            After the last good row, if the rest of the table is damaged.
        """
        text, done = set(text), 0
        try:
            for batch in self._tables[table].batches(columns):
                bad, ours = 0, {}
                for at, name in enumerate(columns):
                    if name in text:
                        ours[name] = _text_column(batch.column(at))
                    else:
                        ours[name], wrong = integer_column(batch.column(at))
                        bad += wrong
                yield bad, ours
                done += batch.num_rows
        except READ_ERRORS as error:
            found = f"table {table} is damaged after {done} rows ({_reason(error)})"
            raise ExportError(self.source, found, "complete Parquet or Arrow files", ADVICE_CUT) from None

    def close(self) -> None:
        """Let go of the tables."""
        self._tables = {}


def integer_column(column: pa.Array) -> tuple[np.ndarray, int]:
    """Return a column as int64 with `NULL`, and how many of its values are not integers that fit."""
    kind = column.type
    if pa.types.is_run_end_encoded(kind):
        if len(column) and len(column.values) == 1:
            values, bad = integer_column(column.values)
            return repeated(values[0], len(column)), bad * len(column)
        column = pc.run_end_decode(column)
        kind = column.type
    if pa.types.is_null(kind) or column.null_count == len(column):
        return np.full(len(column), NULL), 0
    if pa.types.is_boolean(kind):
        column, kind = column.cast(pa.int64()), pa.int64()
    if pa.types.is_integer(kind) and kind != pa.uint64():
        column = column.cast(pa.int64())
        return (pc.fill_null(column, NULL) if column.null_count else column).to_numpy(zero_copy_only=False), 0
    if pa.types.is_integer(kind):
        numbers, bad = integers(pc.fill_null(column, 0).to_numpy(zero_copy_only=False))
        return np.where(column.is_null().to_numpy(zero_copy_only=False), NULL, numbers), bad
    return integers(_plain(value) for value in column.to_pylist())


def _text_column(column: pa.Array) -> pa.Array:
    if pa.types.is_null(column.type) or column.null_count == len(column):
        return pa.nulls(len(column), pa.binary())
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not (pa.types.is_string(column.type) or pa.types.is_binary(column.type) or pa.types.is_large_string(column.type)):
        column = column.cast(pa.string())
    return column.cast(pa.binary())


def _plain(cell: object) -> object:
    return cell.decode("utf-8", "replace") if isinstance(cell, bytes) else cell


def _whole_file(path: Path) -> StreamTable:
    """Return the first stream of a file; the rest of the file is not looked at."""
    file = MappedFile(path)
    return StreamTable(file, 0, pa.ipc.open_stream(file.reader(0)).schema, len(file.map))


def _reason(error: Exception) -> str:
    """Return an error in a few words, without what it may quote of the file."""
    return {"ArrowInvalid": "not valid", "OSError": "cut or unreadable"}.get(type(error).__name__, type(error).__name__)

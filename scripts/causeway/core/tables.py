"""Reads and writes all Parquet tables of Causeway.

The tables themselves are described in `core.schemas`. Each file's metadata holds the schema's name and version and, for
tables made from an export, the source and its SHA-256.
"""

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from causeway.core.errors import TableError
from causeway.core.files.checked_parquet import CheckedParquet
from causeway.core.files.json_documents import ADVICE
from causeway.core.files.json_documents import read_json as read_json
from causeway.core.files.json_documents import write_json as write_json
from causeway.core.files.whole_files import finish, partial_of
from causeway.core.schemas import LAUNCH_SHAPE as LAUNCH_SHAPE
from causeway.core.schemas import OPEN_ENDED, OPTIONAL_COLUMNS, SCHEMA_VERSION
from causeway.core.schemas import SCHEMAS as SCHEMAS

ROW_GROUP_ROWS = 512 * 1024
"""Rows per row group: large enough to decode at full speed, small enough to stream (`tests/bench`)."""
STRETCH_ROWS = 64 * 1024
"""The same of launches and transfers: stretches of time are read of them, and only whole row groups can be. Smaller
ones make the file's footer, which every reader holds, larger than what they save.
"""
SMALL_BYTES = 1 << 16
"""Size of a file up to which what was read of it, and its checked footer, are held for the next reader, until it
changes: each step over an export asks for its kernels and configurations again, and opens its launches many times.
"""
TINY_BYTES = 1 << 13
TINY_ROWS = 1 << 10
"""Size and rows of a file up to which it is held whole, whatever columns are asked for, and with thousands of others,
if it has no more than `SMALL_BYTES` in memory: an export's kernels and configurations, for which each step and each
pass of it asks again.
"""
MOST_FOOTERS = 64
"""Footers that are held: those of the tables of a few exports."""
_FOOTERS: dict[tuple[str | Path, str, tuple[int, ...]], pq.FileMetaData] = {}
"""Checked ones of small files, by path, table's name and state of the file."""
IN_STRETCHES = ("launches", "transfers")


def sha256_of(path: str | Path) -> str:
    """Return the SHA-256 of a file, or of a folder's files in name order (names included), as 64 hex digits.

    Raises
    ------
    OSError
        If a file cannot be read.
    """
    digest = hashlib.sha256()
    path = Path(path)
    for file in [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file()):
        if file != path:
            digest.update(os.fsencode(file.relative_to(path)))
        with open(file, "rb") as handle:
            while block := handle.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def folder_bytes(folder: Path) -> int:
    """Return the size of an export's tables, in bytes: about what a pass over it reads."""
    return sum(path.stat().st_size for path in folder.glob("*.parquet"))


def extended(name: str, extra: Iterable[pa.Field] = ()) -> pa.Schema:
    """Return the schema of table `name`, followed by `extra` fields.

    Raises
    ------
    TableError
        For extra fields of a table that is not in `OPEN_ENDED`.
    """
    extra = list(extra)
    if extra and name not in OPEN_ENDED:
        raise TableError(f"table {name} has a fixed schema; it cannot take {[field.name for field in extra]}")
    return pa.schema([*SCHEMAS[name], *extra])


def _encoding(schema: pa.Schema) -> dict[str, object]:
    """Return Parquet options: deltas for the ordered time, split bytes for other numbers, dictionaries for text; lz4;
    statistics for time only; a CRC32 of every page, which reading checks.

    As measured, the files are as small as with zstd-1 and are read twice as fast (`tests/bench`).
    """
    encodings = {}
    dictionaries = []
    times = []
    for field in schema:
        kind = field.type
        if field.name in ("start_ns", "time_ns"):
            encodings[field.name] = "DELTA_BINARY_PACKED"
            times.append(field.name)
        elif pa.types.is_floating(kind) or (pa.types.is_integer(kind) and kind.bit_width in (32, 64)):
            encodings[field.name] = "BYTE_STREAM_SPLIT"
        elif pa.types.is_string(kind) or pa.types.is_dictionary(kind):
            dictionaries.append(field.name)
    return {
        "compression": "lz4",
        "use_dictionary": dictionaries,
        "column_encoding": encodings,
        "write_statistics": times or False,
        "write_page_checksum": True,
    }


class TableWriter:
    """Write a table in parts: under a temporary name that is changed when the table is complete, so that no partial
    table can be read as a whole one.

    Parameters
    ----------
    path : str or Path
        The file to write.
    name : str
        A key of `SCHEMAS`.
    extra : iterable of Field
        Columns behind those of the schema, for open-ended tables.
    metadata : mapping of str to str
        Written to the file beside the schema's name and version: for tables made from an export, `source` and
        `source_sha256`.

    Raises
    ------
    TableError
        For `extra` columns of a table that is not open-ended.
    """

    def __init__(
        self, path: str | Path, name: str, extra: Iterable[pa.Field] = (), metadata: Mapping[str, str] | None = None
    ) -> None:
        self.path = Path(path)
        self.name = name
        facts = {"causeway.table": name, "causeway.schema_version": SCHEMA_VERSION}
        facts |= {f"causeway.{key}": str(value) for key, value in sorted((metadata or {}).items())}
        self.schema = extended(name, extra).with_metadata(facts)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.partial = partial_of(self.path)
        self.rows = 0
        try:
            self._writer = pq.ParquetWriter(self.partial, self.schema, **_encoding(self.schema))
        except BaseException:  # a full disk takes the name, and not the first bytes
            self.partial.unlink(missing_ok=True)
            raise

    def write(self, table: pa.Table) -> None:
        """Append the rows of `table`, whose columns are matched by name and cast to the schema's types.

        Raises
        ------
        TableError
            As `conform`.
        """
        table = conform(table, self.schema, self.name)
        if table.num_rows:
            rows = STRETCH_ROWS if self.name in IN_STRETCHES else ROW_GROUP_ROWS
            self._writer.write_table(table, row_group_size=rows)
            self.rows += table.num_rows

    def __enter__(self) -> "TableWriter":
        return self

    def __exit__(self, failure: object, *_: object) -> None:
        try:
            self._writer.close()
            if failure is None:
                finish(self.path)
        finally:
            self.partial.unlink(missing_ok=True)


def copy_row_groups(pieces: Iterable[tuple[Path, int]], writer: TableWriter) -> None:
    """Append row groups of tables of one schema, one at a time in memory.

    Parameters
    ----------
    pieces : iterable of (Path, int)
        Table and number of each row group.
    writer : TableWriter
        Of the same schema.
    """
    with ExitStack() as opened:
        files: dict[Path, pq.ParquetFile] = {}
        for path, number in pieces:
            if path not in files:
                files[path] = opened.enter_context(open_table(path, writer.name))
            writer.write(files[path].read_row_group(number))


def conform(table: pa.Table, schema: pa.Schema, name: str) -> pa.Table:
    """Return `table` with the columns of `schema`, in its order and exact types; `OPTIONAL_COLUMNS` that it lacks are
    null.

    Raises
    ------
    TableError
        For a missing or surplus column, a value that does not fit its type, or a null where none is allowed.
    """
    for column in OPTIONAL_COLUMNS.get(name, ()):
        if column not in table.column_names:
            table = table.append_column(column, pa.nulls(table.num_rows, schema.field(column).type))
    wanted = schema.names  # taken once: with thousands of columns, asking anew for each takes half a minute
    present = table.column_names
    expected = set(wanted)
    given = set(present)
    missing = [name for name in wanted if name not in given]
    surplus = [name for name in present if name not in expected]
    if missing or surplus:
        raise TableError(f"table {name}: missing columns {missing}, unknown columns {surplus}")
    for field in schema:
        if not field.nullable and (nulls := table.column(field.name).null_count):
            raise TableError(f"table {name}: column {field.name} has {nulls} nulls, none is allowed")
    try:
        return table.select(schema.names).cast(schema, safe=True)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        raise TableError(f"table {name}: {error}") from None


def write_table(
    table: pa.Table,
    path: str | Path,
    name: str,
    extra: Iterable[pa.Field] = (),
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write a whole table with columns as for `TableWriter.write`; parameters and errors as of `TableWriter`."""
    with TableWriter(path, name, extra, metadata) as writer:
        writer.write(table)


def open_table(path: str | Path, name: str) -> pq.ParquetFile:
    """Open a table for reading row group by row group, after the checks of `read_table`. The caller closes it.

    It may lack `OPTIONAL_COLUMNS`.

    Raises
    ------
    TableError
        If the file is missing, damaged, or not the table `name` of this schema version.
    """
    state = _state_of_small(path)
    if state is None:
        return _opened(path, name)
    key = (path, name, state)
    footer = _FOOTERS.get(key)
    if footer is not None:
        return CheckedParquet(path, footer)
    file = _opened(path, name)
    if len(_FOOTERS) >= MOST_FOOTERS:
        _FOOTERS.clear()
    _FOOTERS[key] = file.metadata
    return file


def _state_of_small(path: str | Path) -> tuple[int, ...] | None:
    """Return what tells a small file from another under its name; None of one that is large, or not there."""
    try:
        state = os.stat(path)
    except OSError:
        return None  # what is wrong is said where it is opened
    # with the time of the last change of any kind: what damages a file may leave its own time
    return (state.st_ino, state.st_size, state.st_ctime_ns) if state.st_size <= SMALL_BYTES else None


def _opened(path: str | Path, name: str) -> pq.ParquetFile:
    file = CheckedParquet(path)
    schema = file.schema_arrow
    facts = schema.metadata or {}
    stored = facts.get(b"causeway.table", b"?").decode()
    if stored != name or facts.get(b"causeway.schema_version", b"?").decode() != SCHEMA_VERSION:
        raise TableError(f"{path}: holds table {stored}, expected {name} of schema version {SCHEMA_VERSION}; {ADVICE}")
    wrong: list[str] = []
    if not schema.equals(SCHEMAS[name]):  # column by column takes as long as opening the file
        types = dict(zip(schema.names, schema.types, strict=True))
        optional = OPTIONAL_COLUMNS.get(name, ())
        wrong = [
            field.name
            for field in SCHEMAS[name]
            if (types[field.name] != field.type if field.name in types else field.name not in optional)
        ]
    if wrong:
        raise TableError(f"{path}: table {name} lacks columns {wrong} or has them with another type")
    return file


def read_table(path: str | Path, name: str, columns: list[str] | None = None) -> pa.Table:
    """Read a table, or some of its columns, after checking its name, version, columns and types.

    Raises
    ------
    TableError
        If the file is not the table `name` of this schema version.
    """
    chosen = None if columns is None else tuple(columns)
    state = _state_of_small(path)
    if state is None:
        return _read(path, name, chosen)
    whole = _read_tiny(path, name, state) if state[1] <= TINY_BYTES else None
    if whole is not None:
        present = whole.column_names  # which makes the list anew each time
        return whole if chosen is None else whole.select([column for column in chosen if column in present])
    table = _read_small(path, name, chosen, state)
    if table.num_rows > STRETCH_ROWS:  # equal rows take next to nothing of a file, but all of their memory
        _read_small.cache_clear()
    return table


def _read(path: str | Path, name: str, columns: Sequence[str] | None) -> pa.Table:
    with _opened(path, name) as file:
        return file.read(columns=None if columns is None else list(columns))


@lru_cache(maxsize=64)
def _read_small(path: str | Path, name: str, columns: Sequence[str] | None, state: tuple[int, ...]) -> pa.Table:
    return _read(path, name, columns)


@lru_cache(maxsize=2048)
def _read_tiny(path: str | Path, name: str, state: tuple[int, ...]) -> pa.Table | None:
    """Return a whole table, None of one whose rows or memory are many: a few bytes may stand for a thousand."""
    with _opened(path, name) as file:
        table = file.read() if file.metadata.num_rows <= TINY_ROWS else None
    return table if table is not None and table.nbytes <= SMALL_BYTES else None


def rows_if_there(folder: str | Path, name: str, columns: list[str] | None = None) -> list[dict]:
    """Return the rows of a folder's small table, as of `read_table`; none where the folder lacks it."""
    path = Path(folder) / f"{name}.parquet"
    return read_table(path, name, columns).to_pylist() if path.is_file() else []


def take_rows(path: str | Path, name: str, rows: np.ndarray) -> pa.Table:
    """Return chosen rows of a table, all columns; only these and one row group at a time are in memory.

    Parameters
    ----------
    path : path
    name : str
        A key of `SCHEMAS`.
    rows : ndarray of int64, shape (n,), ascending
        Row numbers in the file, from 0; numbers beyond the last row are left out.

    Raises
    ------
    TableError
        As `open_table`.
    """
    parts = []
    begin = 0
    with open_table(path, name) as file:
        for group in range(file.num_row_groups):
            end = begin + file.metadata.row_group(group).num_rows
            low, high = np.searchsorted(rows, [begin, end])
            if high > low:
                parts.append(file.read_row_group(group).take(pa.array(rows[low:high] - begin)))
            begin = end
        return pa.concat_tables(parts) if parts else file.schema_arrow.empty_table()


def stretches_of(file: pq.ParquetFile) -> Iterator[list[int]]:
    """Yield the numbers of all row groups of a table: neighbours that have at most `STRETCH_ROWS` rows together, or one
    that has more. Of many ranks each has a row group, of a few rows.
    """
    groups: list[int] = []
    rows = 0
    for group in range(file.num_row_groups):
        own = file.metadata.row_group(group).num_rows
        if groups and rows + own > STRETCH_ROWS:
            yield groups
            groups = []
            rows = 0
        groups.append(group)
        rows += own
    if groups:
        yield groups


def extremes(file: pq.ParquetFile, index: int, name: str) -> tuple[int, int]:
    """Return the lowest and the highest value of an ascending integer column in a row group.

    They are taken from the row group's statistics where it has any, else from the column itself.

    Parameters
    ----------
    file : ParquetFile
    index : int
        The row group, from 0; it has at least one row.
    name : str
        The column.

    Raises
    ------
    ValueError
        If the file has no such column.
    """
    statistics = file.metadata.row_group(index).column(file.schema_arrow.names.index(name)).statistics
    if statistics is not None and statistics.has_min_max:
        return int(statistics.min), int(statistics.max)
    column = file.read_row_group(index, columns=[name], use_threads=False).column(0)
    return column[0].as_py(), column[-1].as_py()


def table_metadata(path: str | Path) -> dict[str, str]:
    """Return the file's own metadata: `table`, `schema_version` and what the writer added, all as text.

    Raises
    ------
    OSError, pyarrow.ArrowInvalid
        If the file cannot be read as Parquet.
    """
    facts = pq.read_schema(path).metadata or {}
    return {
        key.decode().removeprefix("causeway."): value.decode()
        for key, value in facts.items()
        if key.startswith(b"causeway.")
    }


def unit_of(field: pa.Field) -> str:
    """Return a column's unit in words, or '' for plain numbers."""
    return (field.metadata or {}).get(b"unit", b"").decode()

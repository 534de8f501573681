"""Exports whose tables lie in Parquet files, Arrow streams or CSV files.

Three containers, as `nsys export` writes them: a folder of `<TABLE>.parquet`, a folder of `<TABLE>.arrow` (Arrow
streams, not the file form), and one file of Arrow streams one after the other, each with its table's name in its
schema's metadata. A fourth as users save the tables of a database: a folder of `<TABLE>.csv`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from causeway.core.errors import ExportError
from causeway.core.files.machine_errors import fail_if_of_the_machine, suppress_unless_of_the_machine
from causeway.readers.common.constants import NULL
from causeway.readers.common.numbers import Misfits, integers
from causeway.readers.containers.arrow_tables import (
    READ_ERRORS,
    ArrowTable,
    CsvTable,
    LongQuotationError,
    MappedFile,
    ParquetTable,
    StreamTable,
    as_bytes,
    whole_file,
)
from causeway.readers.sink.batches import repeated

ADVICE_CUT = "Export it again from the report file, or copy it again: a copy that was cut short is the usual cause."


class ArrowExport:
    """An export as named tables with columns; a `TableSource`.

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
    unknown: tuple[str, ...] = ()

    def __init__(self, tables: dict[str, ArrowTable], broken: dict[str, str], source: str) -> None:
        self._tables = tables
        self.broken = broken
        self.source = source
        self.tables = {name: table.columns for name, table in sorted(tables.items())}

    @classmethod
    def of_folder(cls, folder: Path, source: str, closed: frozenset[str] = frozenset()) -> "ArrowExport":
        """Open a folder of `<TABLE>.parquet` or `<TABLE>.arrow`, else of `<TABLE>.csv`; the tables named in `closed`
        are never opened.

        Raises
        ------
        ExportError
            If a few bytes of a table would become a large column.
        """
        tables: dict[str, ArrowTable] = {}
        broken: dict[str, str] = {}
        files = sorted(folder.iterdir())
        written = {path.suffix for path in files} & {".parquet", ".arrow"} or {".csv"}
        for path in files:
            if path.suffix not in written or path.stem in closed or path.stem in tables or not path.is_file():
                continue
            try:
                if path.suffix == ".parquet":
                    table = ParquetTable(path)
                    table.check_sizes(source)
                    tables[path.stem] = table
                elif path.suffix == ".csv":
                    tables[path.stem] = CsvTable(path)
                else:
                    tables[path.stem] = whole_file(path)
            except READ_ERRORS as error:
                fail_if_of_the_machine(error)
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
        file = MappedFile(path)
        last = ""
        number = 0
        try:
            for number, (offset, size, schema) in enumerate(file.streams(), 1):  # noqa: B007 - counted for the message
                last = (schema.metadata or {}).get(b"table_name", b"").decode("utf-8", "replace")
                if last and last not in closed:
                    tables.setdefault(last, StreamTable(file, offset, schema, size))
        except READ_ERRORS as error:
            fail_if_of_the_machine(error)
            if not number:
                raise ExportError(
                    source, f"its first Arrow stream cannot be read ({_reason(error)})", "Arrow streams", ADVICE_CUT
                ) from None
            broken[f"(after {last or 'stream ' + str(number)})"] = _reason(error)
        return cls(tables, broken, source)

    def estimated_rows(self, table: str) -> int:
        """Return about how many rows a table has."""
        with suppress_unless_of_the_machine(*READ_ERRORS):
            return self._tables[table].estimated_rows()
        return 0

    def rows(self, table: str, columns: list[str], limit: int = 100_000) -> list[tuple]:
        """Return columns of a small table, absent columns as None, text as str; [] if it cannot be read."""
        present = self.tables.get(table, [])
        picked = [name for name in dict.fromkeys(columns) if name in present]
        if not picked:
            return []
        rows: list[tuple] = []
        with suppress_unless_of_the_machine(*READ_ERRORS):
            for batch in self._tables[table].batches(picked):
                cells = {
                    name: [_plain(cell) for cell in batch.column(index).slice(0, limit).to_pylist()]
                    for index, name in enumerate(picked)
                }
                absent = [None] * min(limit, batch.num_rows)
                rows += zip(*[cells.get(name, absent) for name in columns], strict=True)
                if len(rows) >= limit:
                    break
            return rows[:limit]
        return []

    def texts(self, table: str, key: str, value: str, wanted: Iterable[int]) -> dict[int, bytes]:
        """Return the texts of the wanted ids only, never a whole table of strings: it holds the environments of
        processes.
        """
        ids = pa.array(sorted(wanted), pa.int64())
        text_of: dict[int, bytes] = {}
        if not len(ids) or not {key, value} <= set(self.tables.get(table, [])):
            return text_of
        with suppress_unless_of_the_machine(*READ_ERRORS):
            for batch in self._tables[table].batches_with(key, ids, [key, value]):
                keys = batch.column(0).cast(pa.int64())
                hit = pc.is_in(keys, value_set=ids)
                if pc.any(hit).as_py():
                    texts = as_bytes(batch.column(1).filter(hit))
                    for number, text in zip(keys.filter(hit).to_pylist(), texts.to_pylist(), strict=True):
                        if text is not None:
                            text_of.setdefault(number, text if isinstance(text, bytes) else str(text).encode())
        return text_of

    def stream(
        self, table: str, columns: list[str], text: Iterable[str] = (), times: Iterable[str] = ()
    ) -> Iterator[tuple[Misfits, dict]]:
        """Give a table's columns batch by batch, in row order; see `SqliteExport.stream`.

        Raises
        ------
        ExportError
            After the last good row, if the rest of the table is damaged.
        """
        text = set(text)
        times = set(times)
        done = 0
        try:
            for batch in self._tables[table].batches(columns):
                misfits: Misfits = Counter()
                ours = {}
                for index, name in enumerate(columns):
                    if name in text:
                        ours[name] = _text_column(batch.column(index))
                    else:
                        ours[name], more = integer_column(batch.column(index), of_times=name in times)
                        misfits += more
                yield misfits, ours
                done += batch.num_rows
        except READ_ERRORS as error:
            fail_if_of_the_machine(error)
            problem = f"table {table} is damaged after {done} rows ({_reason(error)})"
            raise ExportError(self.source, problem, "complete files", ADVICE_CUT) from None

    def close(self) -> None:
        """Close the tables."""
        self._tables = {}


def integer_column(column: pa.Array, of_times: bool = False) -> tuple[np.ndarray, Misfits]:
    """Return a column, shape (n,), as int64 with `NULL`, and how many of its values are not integers that fit, as
    `numbers.integers` does.
    """
    kind = column.type
    if pa.types.is_run_end_encoded(kind):
        if len(column) and len(column.values) == 1:
            values, misfits = integer_column(column.values, of_times)
            misfits = Counter({kind: count * len(column) for kind, count in misfits.items()})
            return repeated(values[0], len(column)), misfits
        column = pc.run_end_decode(column)
        kind = column.type
    if pa.types.is_null(kind) or column.null_count == len(column):
        return np.full(len(column), NULL), Counter()
    if pa.types.is_boolean(kind):
        column = column.cast(pa.int64())
        kind = pa.int64()
    if pa.types.is_integer(kind) and kind != pa.uint64():
        column = column.cast(pa.int64())
        numbers = (pc.fill_null(column, NULL) if column.null_count else column).to_numpy(zero_copy_only=False)
        is_one = numbers[0] == numbers[-1] and not (numbers != numbers[0]).any()
        return repeated(numbers[0], numbers.size) if is_one else numbers, Counter()
    if pa.types.is_integer(kind):
        numbers, misfits = integers(pc.fill_null(column, 0).to_numpy(zero_copy_only=False))
        return np.where(column.is_null().to_numpy(zero_copy_only=False), NULL, numbers), misfits
    return integers((_plain(value) for value in column.to_pylist()), of_times)


def _text_column(column: pa.Array) -> pa.Array:
    if pa.types.is_null(column.type) or column.null_count == len(column):
        return pa.nulls(len(column), pa.binary())
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not (
        pa.types.is_string(column.type) or pa.types.is_binary(column.type) or pa.types.is_large_string(column.type)
    ):
        column = column.cast(pa.string())
    return column.cast(pa.binary())


def _plain(cell: object) -> object:
    return cell.decode("utf-8", "replace") if isinstance(cell, bytes) else cell


def _reason(error: Exception) -> str:
    """Return an error in a few words, without what it may quote of the file."""
    if isinstance(error, LongQuotationError):
        return str(error)
    return {"ArrowInvalid": "not valid", "OSError": "cut or unreadable"}.get(type(error).__name__, type(error).__name__)

"""Single tables in Parquet files, Arrow streams or CSV files, read batch by batch, only those columns that are wanted.

An Arrow file is mapped into memory, and its pages are released as the reading goes on, so that memory stays small at
any size. `arrow_export` puts tables together.
"""

import csv
import mmap
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from causeway.core.files.machine_errors import fail_if_of_the_machine
from causeway.readers.containers.csv_lines import MendedCsv, arrow_batches, delimiter_of, has_odd_quotations
from causeway.readers.containers.parquet_sizes import check_sizes

BATCH_ROWS = 1 << 16
RELEASE_BYTES = 16 << 20
"""Mapped bytes that may be read before the pages are released."""

LONGEST_HEADER = 1 << 16
"""Characters of a CSV file's header."""
CSV_BLOCK = 16 << 20
"""Bytes of a CSV file that are parsed at once; a longer row is damage."""
TEXT_COLUMNS = frozenset({"text", "value", "name", "data", "uuid", "metricName"})
"""Columns of CSV files that are never taken for numbers, whatever they hold."""

READ_ERRORS = (pa.ArrowException, OSError, ValueError, KeyError)
"""What pyarrow raises for damaged files."""


class LongQuotationError(pa.ArrowInvalid):
    """A quotation that was never closed; the message says where, and quotes nothing of the file."""


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

    def check_sizes(self, source: str) -> None:
        """Refuse the export if a few bytes of the file become a large column, see `parquet_sizes.check_sizes`."""
        with self._open() as file:
            check_sizes(source, file.metadata)

    def estimated_rows(self) -> int:
        """Return the number of rows."""
        with self._open() as file:
            return file.metadata.num_rows

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Give the columns in batches."""
        with self._open() as file:
            yield from file.iter_batches(BATCH_ROWS, columns=columns, use_threads=False)

    def batches_with(self, key: str, wanted: pa.Array, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Give the row groups with one of the wanted keys. Statistics would tell sooner, but damaged ones end the
        process in Arrow.
        """
        with self._open() as file:
            groups = [group for group in range(file.num_row_groups) if _has_any(file, group, key, wanted)]
            if groups:
                yield from file.iter_batches(BATCH_ROWS, row_groups=groups, columns=columns, use_threads=False)


def _has_any(file: pq.ParquetFile, group: int, key: str, wanted: pa.Array) -> bool:
    keys = file.iter_batches(BATCH_ROWS, row_groups=[group], columns=[key], use_threads=False)
    return any(pc.any(pc.is_in(batch.column(0).cast(wanted.type), value_set=wanted)).as_py() for batch in keys)


class CsvTable(ArrowTable):
    """One CSV file with a header, as programs save a table of a database; an empty cell is absent."""

    def __init__(self, path: Path) -> None:
        """Read the header of a file.

        Raises
        ------
        ValueError
            If its first line is none.
        """
        self.path = path
        with open(path, encoding="utf-8-sig", errors="replace", newline="") as text:
            header = text.readline(LONGEST_HEADER)
        self.delimiter = delimiter_of(header)
        try:
            self.columns = next(csv.reader([header.rstrip("\r\n")], delimiter=self.delimiter), [])
        except csv.Error as error:
            raise ValueError("its first line is no header") from error

    def estimated_rows(self) -> int:
        """Return a guess: six characters a value."""
        return self.path.stat().st_size // (6 * max(1, len(self.columns)))

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Give the columns in batches.

        Raises
        ------
        ArrowInvalid
            At the end, if rows with another number of cells than the header were passed over.
        LongQuotationError
            At the end, if lines with a quotation that is not closed were left out.
        """
        passed_over = []
        is_odd = has_odd_quotations(self.path)
        mended = MendedCsv(self.path, self.delimiter, len(self.columns)) if is_odd else None

        def pass_over(row: pa_csv.InvalidRow) -> str:
            passed_over.append(row.number)
            return "skip"

        reader = arrow_batches(
            mended or self.path,
            pa_csv.ReadOptions(use_threads=False, block_size=CSV_BLOCK),
            pa_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=True, invalid_row_handler=pass_over),
            pa_csv.ConvertOptions(
                include_columns=columns,
                column_types=dict.fromkeys(columns, pa.binary()),
                null_values=[""],
                strings_can_be_null=True,
            ),
        )
        for block in reader:
            for begin in range(0, block.num_rows, BATCH_ROWS):
                part = block.slice(begin, BATCH_ROWS)
                cells = [
                    column if name in TEXT_COLUMNS else _numbers_of(column)
                    for name, column in zip(columns, part.columns, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(cells, names=columns)
        if mended is not None and mended.lines.left_out:
            raise LongQuotationError(f"{mended.lines.detail()}; that line was left out")
        if passed_over:
            raise pa.ArrowInvalid(f"{len(passed_over)} rows of another length")


def _numbers_of(column: pa.Array) -> pa.Array:
    """Return a column of texts as int64 if all are whole numbers, also where they were saved with a fraction of 0
    beside absent ones (`11.0`), else as it is.
    """
    try:
        text = column.cast(pa.string())
        return pc.replace_substring_regex(text, r"^([+-]?\d+)\.0+$", r"\1").cast(pa.int64())
    except pa.ArrowInvalid:  # and no lack of memory
        return column


class StreamTable(ArrowTable):
    """One Arrow stream that begins at `offset` of a mapped file."""

    def __init__(self, file: "MappedFile", offset: int, schema: pa.Schema, size: int) -> None:
        self.file = file
        self.offset = offset
        self.size = size
        self.columns = list(schema.names)

    def estimated_rows(self) -> int:
        """Return a guess: eight bytes a value."""
        return self.size // (8 * max(1, len(self.columns)))

    def batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Give the columns in batches, which are copies: the pages they came from may go."""
        reader = pa.ipc.open_stream(self.file.reader(self.offset))
        read = 0
        names = reader.schema.names
        wanted = [names.index(name) for name in columns]
        while True:
            try:
                batch = reader.read_next_batch()
            except StopIteration:
                self.file.release_pages()
                return
            picked = pa.RecordBatch.from_arrays([as_bytes(batch.column(index)) for index in wanted], names=columns)
            picked.validate()
            for begin in range(0, picked.num_rows, BATCH_ROWS):
                part = picked.slice(begin, BATCH_ROWS)
                part.validate(full=True)
                read += part.nbytes
                yield pa.RecordBatch.from_arrays([_copied(column) for column in part.columns], names=columns)
                if read > RELEASE_BYTES:
                    self.file.release_pages()
                    read = 0


def as_bytes(column: pa.Array) -> pa.Array:
    """Return text as bytes without decoding it: text of any encoding passes, as long as its offsets are sound."""
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

    def release_pages(self) -> None:
        """Release the pages that were read; the system reads them again where they are still needed."""
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
            except READ_ERRORS as error:
                fail_if_of_the_machine(error)
                yield offset, len(self.map) - offset, reader.schema
                raise
            yield offset, size, reader.schema
            if not size:
                return
            offset += size
            self.release_pages()


def whole_file(path: Path) -> StreamTable:
    """Return the first stream of a file; the rest of the file is not looked at."""
    file = MappedFile(path)
    return StreamTable(file, 0, pa.ipc.open_stream(file.reader(0)).schema, len(file.map))

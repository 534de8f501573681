"""Single tables in Parquet files or Arrow streams, read batch by batch, only those columns that are wanted.

An Arrow file is mapped into memory, and its pages are released as the reading goes on, so that memory stays small at
any size. `arrow_export` puts tables together.
"""

import mmap
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from causeway.core.files.machine_errors import fail_if_of_the_machine
from causeway.readers.containers.parquet_sizes import check_sizes

BATCH_ROWS = 1 << 16
RELEASE_BYTES = 16 << 20
"""Mapped bytes that may be read before the pages are released."""

READ_ERRORS = (pa.ArrowException, OSError, ValueError, KeyError)
"""What pyarrow raises for damaged files."""


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
            known = _repeated_columns(file, columns)
            varying = [name for name in columns if name not in known] or columns[:1]
            for batch in file.iter_batches(BATCH_ROWS, columns=varying, use_threads=False):
                filled = [
                    batch.column(name) if name in varying else _run(known[name], batch.num_rows) for name in columns
                ]
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
    """Return the integer columns in which the statistics of all row groups name one value, and no null: they need
    not be decoded.
    """
    found = {}
    groups = range(file.metadata.num_row_groups)
    names = [file.metadata.schema.column(at).path for at in range(file.metadata.num_columns)] if groups else []
    for name in columns:
        kind = file.schema_arrow.field(name).type
        values = set()
        for group in groups if pa.types.is_signed_integer(kind) and name in names else ():
            known = file.metadata.row_group(group).column(names.index(name)).statistics
            values |= (
                {known.min, known.max}
                if known and known.has_min_max and known.has_null_count and not known.null_count
                else {None}
            )
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
            picked = pa.RecordBatch.from_arrays([as_bytes(batch.column(at)) for at in wanted], names=columns)
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

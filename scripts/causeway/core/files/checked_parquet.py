"""Parquet files of our own, read with the checksum of every page: a flipped bit is an error, never another number."""

import functools
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from causeway.core.errors import TableError
from causeway.core.files.json_documents import ADVICE
from causeway.core.files.machine_errors import fail_if_of_the_machine

FEWEST_ROWS_OF_THREADS = 1 << 16
"""Of a smaller table columns are read one after the other: to wake threads takes as long as to decode it."""
DAMAGE = (pa.ArrowException, OSError, ValueError)
"""What pyarrow raises for damaged files."""


def damage(path: str | Path, error: BaseException) -> str:
    """Return in one sentence that a table cannot be read.

    Raises
    ------
    MachineError
        If the machine could not read it, rather than the file being damaged.
    """
    fail_if_of_the_machine(error, f"reading {path}")
    return f"{path}: not a readable Parquet file ({str(error)[:200]}); {ADVICE}"


def _checked(method: Callable[..., pa.Table]) -> Callable[..., pa.Table]:
    """Return a method of `ParquetFile` that raises as `CheckedParquet` does where pages are damaged."""

    @functools.wraps(method)
    def read(file: "CheckedParquet", *args: object, **options: object) -> pa.Table:
        if file.metadata.num_rows < FEWEST_ROWS_OF_THREADS:
            options["use_threads"] = False
        try:
            table: pa.Table = getattr(super(CheckedParquet, file), method.__name__)(*args, **options)
        except DAMAGE as error:
            raise TableError(damage(file.path, error)) from None
        return table

    return read


class CheckedParquet(pq.ParquetFile):
    """A Parquet file whose pages are checked as they are read.

    Parameters
    ----------
    path : path
    metadata : FileMetaData or None
        Of the same file, if it was read before.

    Raises
    ------
    TableError
        If the file is missing or damaged.
    MachineError
        If the machine cannot read it.
    """

    def __init__(self, path: str | Path, metadata: pq.FileMetaData | None = None) -> None:
        self.path = path
        try:
            # a buffer would hold every row group that is asked for at once
            super().__init__(path, metadata=metadata, pre_buffer=False, page_checksum_verification=True)
        except DAMAGE as error:
            raise TableError(damage(path, error)) from None

    read = _checked(pq.ParquetFile.read)
    read_row_group = _checked(pq.ParquetFile.read_row_group)
    read_row_groups = _checked(pq.ParquetFile.read_row_groups)

    def iter_batches(
        self,
        batch_size: int = FEWEST_ROWS_OF_THREADS,
        row_groups: Sequence[int] | None = None,
        columns: Sequence[str] | None = None,
        **options: object,
    ) -> Iterator[pa.RecordBatch]:
        """Read as `ParquetFile` does, with checked pages.

        Yields
        ------
        RecordBatch
            The rows and columns that were asked for.

        Raises
        ------
        TableError
            If the file is damaged.
        MachineError
            If the machine cannot read it.
        """
        try:
            yield from super().iter_batches(batch_size, row_groups, columns, **options)
        except DAMAGE as error:
            raise TableError(damage(self.path, error)) from None


class ParquetInMemory(CheckedParquet):
    """A Parquet file whose rows are decoded once, when any are first asked for, and held; also after it was closed."""

    @cached_property
    def _rows(self) -> pa.Table:
        with CheckedParquet(self.path, self.metadata) as file:
            return file.read()

    @cached_property
    def _ends(self) -> list[int]:
        groups = range(self.metadata.num_row_groups)
        return list(accumulate(self.metadata.row_group(group).num_rows for group in groups))

    def read(self, columns: Sequence[str] | None = None, **_: object) -> pa.Table:
        """Return all rows; of columns those that the file has, in the order in which they are asked for."""
        if columns is None:
            return self._rows
        names = set(self._rows.column_names)
        return self._rows.select([name for name in dict.fromkeys(columns) if name in names])

    def read_row_group(self, i: int, columns: Sequence[str] | None = None, **_: object) -> pa.Table:
        """Return the rows of one row group, with the columns of `read`."""
        begin = self._ends[i - 1] if i else 0
        return self.read(columns).slice(begin, self._ends[i] - begin)

    def read_row_groups(self, row_groups: Sequence[int], columns: Sequence[str] | None = None, **_: object) -> pa.Table:
        """Return the rows of some row groups, with the columns of `read`."""
        if list(row_groups) == list(range(len(self._ends))):
            return self.read(columns)
        parts = [self.read_row_group(group, columns) for group in row_groups]
        return pa.concat_tables([self.read(columns).slice(0, 0), *parts]).combine_chunks()

    def iter_batches(
        self,
        batch_size: int = FEWEST_ROWS_OF_THREADS,
        row_groups: Sequence[int] | None = None,
        columns: Sequence[str] | None = None,
        **_: object,
    ) -> Iterator[pa.RecordBatch]:
        """Give the rows of all or some row groups, as `read` does, in pieces of at most `batch_size`.

        Yields
        ------
        RecordBatch
            The rows and columns that were asked for; none of a table without rows.
        """
        rows = self.read(columns) if row_groups is None else self.read_row_groups(row_groups, columns)
        return (batch for batch in rows.to_batches(batch_size) if batch.num_rows)

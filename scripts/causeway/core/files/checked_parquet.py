"""Parquet files of our own, read with the checksum of every page: a flipped bit is an error, never another number."""

import functools
from collections.abc import Callable, Iterator
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

    def iter_batches(self, *args: object, **options: object) -> Iterator[pa.RecordBatch]:
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
            yield from super().iter_batches(*args, **options)
        except DAMAGE as error:
            raise TableError(damage(self.path, error)) from None

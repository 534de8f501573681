"""Parquet files of our own, read with the checksum of every page: a flipped bit is an error, never another number."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from causeway.core.errors import TableError
from causeway.core.machine_errors import fail_if_of_the_machine

ADVICE = "`snakemake verify` names what to delete; then run again"
"""What helps against any damaged result: a file in a folder that is one output is made again with that folder only."""
DAMAGE = (pa.ArrowException, OSError, ValueError)
"""What pyarrow raises for damaged files."""


def damaged(path: str | Path, error: BaseException) -> TableError:
    """Return the error of a table that cannot be read.

    Raises
    ------
    MachineError
        If the machine could not read it, rather than the file being damaged.
    """
    fail_if_of_the_machine(error, f"reading {path}")
    return TableError(f"{path}: not a readable Parquet file ({str(error)[:200]}); {ADVICE}")


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
        Here and in all methods that read: if the file is missing or damaged.
    """

    def __init__(self, path: str | Path, metadata: pq.FileMetaData | None = None) -> None:
        self.path = path
        try:
            # a buffer would hold every row group that is asked for at once
            super().__init__(path, metadata=metadata, pre_buffer=False, page_checksum_verification=True)
        except DAMAGE as error:
            raise damaged(path, error) from None

    def read(self, *args: object, **options: object) -> pa.Table:
        """As of `ParquetFile`."""
        try:
            return super().read(*args, **options)
        except DAMAGE as error:
            raise damaged(self.path, error) from None

    def read_row_group(self, *args: object, **options: object) -> pa.Table:
        """As of `ParquetFile`."""
        try:
            return super().read_row_group(*args, **options)
        except DAMAGE as error:
            raise damaged(self.path, error) from None

    def read_row_groups(self, *args: object, **options: object) -> pa.Table:
        """As of `ParquetFile`."""
        try:
            return super().read_row_groups(*args, **options)
        except DAMAGE as error:
            raise damaged(self.path, error) from None

    def iter_batches(self, *args: object, **options: object) -> Iterator[pa.RecordBatch]:
        """As of `ParquetFile`."""
        batches = super().iter_batches(*args, **options)
        while True:
            try:
                batch = next(batches)
            except StopIteration:
                return
            except DAMAGE as error:
                raise damaged(self.path, error) from None
            yield batch

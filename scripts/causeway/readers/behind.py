"""Work that goes on beside the reading: making the next batch, and writing the last tables, each in a thread of its own.

Both are for work that does not hold Python's global lock: compiled loops, Arrow's encoders, files.
"""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import pyarrow as pa

from causeway.tables import ROW_GROUP_ROWS, TableWriter

T = TypeVar("T")


def ahead(items: Iterator[T]) -> Iterator[T]:
    """Give the items of an iterator, which a thread makes one ahead."""
    nothing = object()
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(next, items, nothing)
        while (item := coming.result()) is not nothing:
            coming = thread.submit(next, items, nothing)
            yield item


class BehindWriter:
    """Gather pieces of a table into whole row groups, which a thread writes one behind; to be used in a `with` block.

    Attributes
    ----------
    rows : int
        Rows taken so far.
    """

    def __init__(self, writer: TableWriter) -> None:
        self.rows = 0
        self._writer, self._pieces, self._waiting = writer, [], 0
        self._thread, self._writing = ThreadPoolExecutor(1), Future()
        self._writing.set_result(None)

    def __enter__(self) -> "BehindWriter":
        self._writer.__enter__()
        return self

    def __exit__(self, failure: object, *more: object) -> None:
        try:
            if failure is None:
                self._flush()
                self._writing.result()
        except BaseException as error:
            failure = type(error)
            raise
        finally:
            self._thread.shutdown()
            self._writer.__exit__(failure, *more)

    def write(self, table: pa.Table) -> None:
        """Append rows; errors of `TableWriter.write` may come with a later call, at the latest at the end of the block."""
        while table.num_rows:
            piece = table.slice(0, ROW_GROUP_ROWS - self._waiting)
            self._pieces.append(piece)
            self._waiting += piece.num_rows
            self.rows += piece.num_rows
            table = table.slice(piece.num_rows)
            if self._waiting == ROW_GROUP_ROWS:
                self._flush()

    def _flush(self) -> None:
        if self._pieces:
            pieces, self._pieces, self._waiting = self._pieces, [], 0
            self._writing.result()
            self._writing = self._thread.submit(lambda: self._writer.write(pa.concat_tables(pieces, promote_options="permissive")))

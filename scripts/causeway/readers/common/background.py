"""Work that goes on beside the reading: making the next batch, and writing the last tables, each in a thread of its own.

Both are for work that does not hold Python's global lock: compiled loops, Arrow's encoders, files.
"""

from collections.abc import Callable, Iterator
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


class Behind:
    """A thread that does one thing after the other; whoever asks waits until what was asked for before is done."""

    def __init__(self) -> None:
        self._thread, self._doing = ThreadPoolExecutor(1), Future()
        self._doing.set_result(None)

    def do(self, action: Callable[[], object]) -> None:
        """Begin an action; raises what the one before raised."""
        self.wait()
        self._doing = self._thread.submit(action)

    def wait(self) -> None:
        """Wait until nothing is being done; raises what the last action raised, once."""
        doing, self._doing = self._doing, Future()
        self._doing.set_result(None)
        doing.result()

    def close(self) -> None:
        """End the thread, when what it does is done."""
        self._thread.shutdown()


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
        self._behind = Behind()

    def __enter__(self) -> "BehindWriter":
        self._writer.__enter__()
        return self

    def __exit__(self, failure: object, *more: object) -> None:
        try:
            if failure is None:
                self._flush()
                self._behind.wait()
        except BaseException as error:
            failure = type(error)
            raise
        finally:
            self._behind.close()
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
            self._behind.do(lambda: self._writer.write(pa.concat_tables(pieces, promote_options="permissive")))

"""Work in threads of its own: reading the next batch while this one is used, and writing tables while the next rows are
made.

Both are for work that does not hold Python's global lock: compiled loops, Arrow's encoders, files.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

import pyarrow as pa

from causeway.core.tables import ROW_GROUP_ROWS, TableWriter

T = TypeVar("T")


def prefetched(items: Iterator[T]) -> Iterator[T]:
    """Give the items of an iterator, each made in a thread while the one before is used; raises what the iterator
    raises.
    """
    with ThreadPoolExecutor(1) as thread:
        coming = thread.submit(list, islice(items, 1))
        while ready := coming.result():
            coming = thread.submit(list, islice(items, 1))
            yield from ready


class BackgroundThread:
    """A thread that does one action after the other; starting one waits for the one before."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1)
        self._running: Future[object] = Future()
        self._running.set_result(None)

    def start(self, action: Callable[[], object]) -> None:
        """Start an action; raises what the one before raised."""
        self.wait()
        self._running = self._thread.submit(action)

    def wait(self) -> None:
        """Wait until no action is running; raises what the last action raised, once."""
        running = self._running
        self._running = Future()
        self._running.set_result(None)
        running.result()

    def close(self) -> None:
        """End the thread once its action is done."""
        self._thread.shutdown()


class BackgroundWriter:
    """Gather pieces of a table into whole row groups, which a thread writes; to be used in a `with` block, at whose end
    the rest is written without one.

    Attributes
    ----------
    rows : int
        Rows taken so far.
    """

    def __init__(self, writer: TableWriter) -> None:
        self.rows = 0
        self._writer = writer
        self._pieces: list[pa.Table] = []
        self._waiting = 0
        self._background = BackgroundThread()

    def __enter__(self) -> "BackgroundWriter":
        self._writer.__enter__()
        return self

    def __exit__(self, failure: object, *more: object) -> None:
        try:
            if failure is None:
                self._background.wait()
                self._write_pieces(self._pieces)  # the caller would wait for a thread, and a small table needs none
        except BaseException as error:
            failure = type(error)
            raise
        finally:
            self._background.close()
            self._writer.__exit__(failure, *more)

    def write(self, table: pa.Table) -> None:
        """Append rows; errors of `TableWriter.write` may come with a later call, at the latest at the end of the
        block.
        """
        while table.num_rows:
            piece = table.slice(0, ROW_GROUP_ROWS - self._waiting)
            self._pieces.append(piece)
            self._waiting += piece.num_rows
            self.rows += piece.num_rows
            table = table.slice(piece.num_rows)
            if self._waiting == ROW_GROUP_ROWS:
                self._flush()

    def _flush(self) -> None:
        pieces = self._pieces
        self._pieces = []
        self._waiting = 0
        self._background.start(lambda: self._write_pieces(pieces))

    def _write_pieces(self, pieces: list[pa.Table]) -> None:
        if pieces:
            self._writer.write(pa.concat_tables(pieces, promote_options="permissive"))

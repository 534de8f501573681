"""Arrays in files without a name, so that memory holds what is at work only, whatever the size of the trace."""

import io
import mmap
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import numpy as np

WINDOW = 1 << 19
"""Rows that a pass takes at once: some 80 bytes each of all arrays together."""
SMALLEST_FILE = 1 << 16
"""Bytes of an array below which it stays in memory."""


class Scratch:
    """Where the arrays of a graph lie.

    Parameters
    ----------
    folder : Path, optional
        On the disk that takes them. The files have no name: they go with the arrays, or with the process. Without a
        folder the arrays are in memory.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._maps: list[weakref.ref[mmap.mmap]] = []
        self._rows = 0
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    def free(self) -> int | None:
        """Return how many bytes the disk has free; None where the arrays are in memory."""
        return None if self._folder is None else shutil.disk_usage(self._folder).free

    def array(self, shape: int | tuple[int, ...], dtype: type, fill: int | None = None) -> np.ndarray:
        """Return a new array of a shape (zeros, unless it is to be filled with something else).

        Parameters
        ----------
        shape : int or tuple of int
        dtype : type
            Of numpy.
        fill : int, optional

        Raises
        ------
        OSError
            If the disk has no room: here, and not when the array is written.
        """
        shape = (shape,) if isinstance(shape, int) else shape
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        if self._folder is None or size < SMALLEST_FILE:
            array: np.ndarray = np.zeros(shape, dtype)
        else:
            with tempfile.TemporaryFile(dir=self._folder) as file:
                os.posix_fallocate(file.fileno(), 0, size)
                array = self.mapped(file.fileno(), size).view(dtype).reshape(shape)
        for part in self.windows(len(array)) if fill else ():
            array[part] = fill
        return array

    def windows(self, rows: int, first: int = 0, ranks: int = 1) -> Iterator[slice]:
        """Give the rows from `first` to `rows`, `WINDOW` at a time, or fewer where each stands for a row of so many
        ranks; from time to time memory gives back what the files hold of those that were gone over.
        """
        step = max(WINDOW // ranks, 1)
        for begin in range(first, rows, step):
            end = min(begin + step, rows)
            yield slice(begin, end)
            self.used(ranks * (end - begin))

    def copy(self, values: np.ndarray) -> np.ndarray:
        """Return a copy of `values`, of any shape and of the same shape."""
        copy = self.array(values.shape, values.dtype.type)
        for part in self.windows(len(values)):
            copy[part] = values[part]
        return copy

    def taken(self, values: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """Return in memory `values`, of shape (n,), at `rows`, ascending, of shape (k,); of shape (k,)."""
        taken = np.empty(rows.size, values.dtype)
        for part in self._near(rows):
            taken[part] = values[rows[part]]
        return taken

    def put(self, values: np.ndarray, rows: np.ndarray, new: np.ndarray) -> None:
        """Write `new`, of shape (k,), into `values`, of shape (n,), at `rows`, of shape (k,), ascending."""
        for part in self._near(rows):
            values[rows[part]] = new[part]

    def _near(self, rows: np.ndarray) -> Iterator[slice]:
        """Give the parts of ascending rows that lie within `WINDOW` rows of each other."""
        begin = 0
        while begin < rows.size:
            stop = begin + int(np.searchsorted(rows[begin : begin + WINDOW], int(rows[begin]) + WINDOW))
            yield slice(begin, stop)
            self.used(int(rows[stop - 1] - rows[begin]) + 1)
            begin = stop

    def mapped(self, descriptor: int, size: int) -> np.ndarray:
        """Return the bytes of a file as an array; uint8, shape (size,)."""
        held = mmap.mmap(descriptor, size)
        self._maps = [reference for reference in self._maps if reference() is not None]
        self._maps.append(weakref.ref(held))
        return np.frombuffer(held, np.uint8)

    def used(self, rows: int) -> None:
        """Note that a pass has gone over some rows: from time to time memory gives back what the files hold."""
        self._rows += rows
        if self._rows >= WINDOW:
            self._rows = 0
            for reference in self._maps:
                held = reference()
                if held is not None:
                    held.madvise(mmap.MADV_DONTNEED)

    def columns(self, **dtypes: type) -> "GrowingColumns":
        """Return columns that grow, empty at first."""
        return GrowingColumns(self, self._folder, dtypes)

    def spool(self, *dtypes: type) -> "ReversedParts":
        """Return a place for parts that are wanted in the opposite order."""
        return ReversedParts(self._folder, dtypes)


class ReversedParts:
    """Parts of some columns, appended one after the other, then read from the last to the first.

    Parameters
    ----------
    folder : Path or None
        None: in memory.
    dtypes : sequence of type
    """

    def __init__(self, folder: Path | None, dtypes: Sequence[type]) -> None:
        self._dtypes = dtypes
        self._file = _file(folder)
        weakref.finalize(self, _close, [self._file])
        self._parts: list[tuple[int, int]] = []

    def append(self, *values: np.ndarray) -> None:
        """Append a part: an array of each column, all of one shape (k,)."""
        self._parts.append((self._file.tell(), len(values[0])))
        for part, dtype in zip(values, self._dtypes, strict=True):
            self._file.write(np.ascontiguousarray(part, dtype).data)

    def backwards(self) -> Iterator[list[np.ndarray]]:
        """Give the parts from the last to the first, once; each column of the shape (rows,) of its part."""
        with self._file:
            for offset, rows in reversed(self._parts):
                self._file.seek(offset)
                yield [np.frombuffer(self._file.read(rows * np.dtype(dtype).itemsize), dtype) for dtype in self._dtypes]


class GrowingColumns:
    """Columns of equal length to which rows are appended, then read.

    Parameters
    ----------
    scratch : Scratch
    folder : Path or None
    dtypes : dict of str to type
    """

    def __init__(self, scratch: Scratch, folder: Path | None, dtypes: dict[str, type]) -> None:
        self._scratch = scratch
        self._dtypes = dtypes
        self._files = {name: _file(folder) for name in dtypes}
        weakref.finalize(self, _close, list(self._files.values()))
        self.rows = 0

    def append(self, **values: np.ndarray) -> None:
        """Append rows: an array of each column, all of one shape (k,)."""
        for name, dtype in self._dtypes.items():
            part: np.ndarray = np.ascontiguousarray(values[name], dtype)
            self._files[name].write(part.data)
        self.rows += len(part)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the columns as arrays of shape (rows,); nothing can be appended any more."""
        arrays: dict[str, np.ndarray] = {}
        for name, dtype in self._dtypes.items():
            with self._files[name] as file:
                if isinstance(file, io.BytesIO) or not self.rows:
                    file.seek(0)
                    arrays[name] = np.frombuffer(file.read(), dtype).copy()
                else:
                    file.flush()
                    size = self.rows * np.dtype(dtype).itemsize
                    arrays[name] = self._scratch.mapped(file.fileno(), size).view(dtype)
        return arrays


def _file(folder: Path | None) -> IO[bytes]:
    """Return a file without a name, or in memory without a folder."""
    return io.BytesIO() if folder is None else tempfile.TemporaryFile(dir=folder)


def _close(files: Sequence[IO[bytes]]) -> None:
    for file in files:
        file.close()

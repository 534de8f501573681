"""The values of counters, in a flat file beside the output, so that memory does not grow with them."""

import io
import struct
import tempfile
from collections.abc import Sequence

import numpy as np

from causeway.readers.common.issues import Issues
from causeway.readers.sink.sink import Sink

_REFERENCE = np.dtype([("layout", "<i4"), ("offset", "<i8")])
pack_reference = struct.Struct("<iq").pack
"""Return a row of values, given by its layout and its offset, as bytes for `CounterValues.matrix`."""


class CounterValues:
    """Rows of values, each of some list of counters.

    Parameters
    ----------
    sink : Sink
        The file lies in its folder, made by the first `write`, until the sink is closed.

    Attributes
    ----------
    columns : dict of str to int
        Index of each counter, in order of first use.
    """

    def __init__(self, sink: Sink) -> None:
        self.columns: dict[str, int] = {}
        self._sink = sink
        self._file: io.BufferedRandom | None = None
        self._size = 0
        self._layouts: list[np.ndarray] = []
        self._codes: dict[tuple[str, ...], int] = {}
        self._used = np.zeros(0, bool)

    def layout(self, counters: Sequence[str]) -> int:
        """Return the code of a list of counters in the order of their values."""
        key = tuple(counters)
        code = self._codes.get(key)
        if code is None:
            code = self._codes[key] = len(self._layouts)
            self._layouts.append(np.array([self.columns.setdefault(name, len(self.columns)) for name in key], np.int64))
        return code

    def _open(self) -> io.BufferedRandom:
        if self._file is None:
            self._file = tempfile.TemporaryFile(dir=self._sink.folder)  # noqa: SIM115 - closed with the sink
            self._sink.at_close.callback(lambda file: file.raw.close(), self._file)  # drops what was not yet written
        return self._file

    def write(self, layouts: Sequence[int], values: np.ndarray | Sequence[np.ndarray]) -> np.ndarray:
        """Append rows of values.

        Parameters
        ----------
        layouts : sequence of int, n of them
            Which counters the values are; the same for all rows if the values are one array.
        values : ndarray of float64, shape (n, counters), or n arrays of shape (counters,)
            NaN where there is none.

        Returns
        -------
        ndarray of int64, shape (n,)
            Offset of each row in the file, in bytes.
        """
        if isinstance(values, np.ndarray):
            offsets = self._size + 8 * values.shape[1] * np.arange(len(values), dtype=np.int64)
            blob = np.ascontiguousarray(values, "<f8")
            self._note(layouts[0], np.isfinite(values).any(axis=0))
        else:
            offsets = self._size + 8 * np.append(0, np.cumsum([len(row) for row in values])[:-1]).astype(np.int64)
            blob = np.concatenate(values).astype("<f8")
            for code, row in zip(layouts, values, strict=True):
                self._note(code, np.isfinite(row))
        self._open().write(blob.tobytes())
        self._size += blob.nbytes
        return offsets

    def _note(self, layout: int, used: np.ndarray) -> None:
        if len(self._used) < len(self.columns):
            self._used = np.append(self._used, np.zeros(len(self.columns) - len(self._used), bool))
        self._used[self._layouts[layout][used]] = True

    def with_values(self, layouts: set[int]) -> list[str]:
        """Return the counters of these lists that have a value anywhere, in order of first use."""
        listed = {column for code in layouts for column in self._layouts[code].tolist()}
        return [
            name
            for name, index in self.columns.items()
            if index in listed and index < len(self._used) and self._used[index]
        ]

    def matrix(self, references: list[bytes], counters: list[str], issues: Issues) -> np.ndarray:
        """Return the values of launches; of several values of one counter, the first, and the others are counted.

        Parameters
        ----------
        references : list of bytes, n of them
            For each launch its rows of values, as `pack_reference` gives them, joined.
        counters : list of str
        issues : Issues

        Returns
        -------
        ndarray of float64, shape (counters, n)
            NaN where there is none.
        """
        self._open().flush()
        line_of = np.full(max(1, len(self.columns)), -1)
        line_of[[self.columns[name] for name in counters]] = np.arange(len(counters))
        matrix = np.full((len(counters), len(references)), np.nan)
        counts = np.array([len(packed) // _REFERENCE.itemsize for packed in references])
        rows = np.frombuffer(b"".join(references), _REFERENCE)
        launch = np.repeat(np.arange(len(references)), counts)
        rank = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)  # among the rows of its launch
        repeated = duplicate = 0
        for number in range(int(counts.max())):
            of_rank = rank == number
            for code in np.unique(rows["layout"][of_rank]).tolist():
                which = np.flatnonzero(of_rank & (rows["layout"] == code))
                lines = line_of[self._layouts[code]]
                fresh = self._read(rows["offset"][which], len(lines)).T
                seen: set[int] = set()
                for line, values in zip(lines.tolist(), fresh, strict=True):
                    if line < 0:
                        continue
                    before = matrix[line, launch[which]]
                    again = int((~np.isnan(before) & np.isfinite(values)).sum())
                    repeated = repeated + again * (line not in seen)
                    duplicate = duplicate + again * (line in seen)
                    matrix[line, launch[which]] = np.where(np.isnan(before) & np.isfinite(values), values, before)
                    seen.add(line)
        issues.add("repeated_counters", repeated)
        issues.add("duplicate_values", duplicate)
        return matrix

    def _read(self, offsets: np.ndarray, width: int) -> np.ndarray:
        """Return the rows at some offsets of the file, shape (n, width); those that follow one another at once."""
        ends = np.append(np.flatnonzero(np.diff(offsets) != 8 * width), len(offsets) - 1)
        file = self._open()
        blocks = []
        begin = 0
        for end in ends.tolist():
            file.seek(int(offsets[begin]))
            blocks.append(np.frombuffer(file.read(8 * width * (end + 1 - begin)), "<f8"))
            begin = end + 1
        return np.concatenate(blocks).reshape(len(offsets), width)

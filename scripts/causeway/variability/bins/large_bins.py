"""The nine statistics of a bin whose rows are too many to hold: they wait in a file, which is read a few times."""

import math
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import numpy as np

from causeway.core.tables import STATISTICS
from causeway.variability.rows.group_quantiles import QuartileSearch, keys_of, values_of

BLOCK = 1 << 16


class LargeBin:
    """Rows of one bin, on disk.

    Parameters
    ----------
    number : int
        The bin.
    columns : int
        The target and the chosen features.
    folder : Path
        On a disk with room for 8 bytes per row and column; the file has no name and ends with the process.
    """

    def __init__(self, number: int, columns: int, folder: Path) -> None:
        self.number = number
        self.rows = 0
        folder.mkdir(parents=True, exist_ok=True)
        self._files = [tempfile.TemporaryFile(dir=folder) for _ in range(columns)]  # noqa: SIM115 - closed by `finish`

    def add(self, columns: np.ndarray) -> None:
        """Add rows; float64, shape (columns, n), NaN where null."""
        self.rows += columns.shape[1]
        for file, column in zip(self._files, columns, strict=True):
            file.write(np.ascontiguousarray(column).data)

    def finish(self) -> tuple[int, int, np.ndarray]:
        """Return the bin's number, its count of rows and its statistics (float64, shape (columns, 8)), and remove
        the rows.
        """
        statistics = np.stack([self._statistics(file) for file in self._files])
        for file in self._files:
            file.close()
        return self.number, self.rows, statistics

    def _statistics(self, file: IO[bytes]) -> np.ndarray:
        """Two passes for mean and variance as in `slice_statistics.slice_statistics`, then as many as the exact
        quartiles need.
        """
        found = np.full(len(STATISTICS), np.nan)
        blocks = [(block.size, block.min(), block.max(), float(block.sum())) for block in self._blocks(file)]
        n = sum(size for size, *_ in blocks)
        if n == 0:
            return found
        low = min(low for _, low, _, _ in blocks)
        high = max(high for _, _, high, _ in blocks)
        mean = math.fsum(total for *_, total in blocks) / n
        away = [((block - mean).sum(), ((block - mean) ** 2).sum()) for block in self._blocks(file)]
        rest, squares = (math.fsum(part) for part in zip(*away, strict=True))
        found[:3] = low, high, min(max(mean + rest / n, low), high)
        if n > 1:
            found[3] = max(squares - rest * rest / n, 0.0) / (n - 1)
            found[4] = math.sqrt(found[3])
        search = QuartileSearch(1, int(keys_of(np.array([low]))[0]))
        while search.open:
            for block in self._blocks(file):
                search.add(np.zeros(block.size, np.int32), keys_of(block))
            search.narrow()
        found[5:] = search.quartiles(values_of(search.order_statistics()))[0]
        return found

    @staticmethod
    def _blocks(file: IO[bytes]) -> Iterator[np.ndarray]:
        """Yield the values that are not null, block by block."""
        file.seek(0)
        while data := file.read(8 * BLOCK):
            values = np.frombuffer(data)
            values = values[~np.isnan(values)]
            if values.size:
                yield values

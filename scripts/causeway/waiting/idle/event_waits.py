"""Which event a stream waited for: the calls that made streams wait for events, looked up by stream and time."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from causeway.waiting.dependencies import WAIT, dependencies

NONE = -2
MOST_WAITS = 1 << 19
"""Waits kept at once; an older one belongs to work that has long begun."""


class EventWaits:
    """The event waits of an export, fed from the table `dependencies` as far as needed.

    Attributes
    ----------
    recorded : bool
        Whether the export has such a table.
    """

    def __init__(self, folder: Path) -> None:
        self.recorded = (folder / "dependencies.parquet").is_file()
        self._rows = np.zeros((4, 0), np.int64)  # rank, stream, start, stream of the event
        self._source = self._read(folder)
        self._latest: int | None = None

    @staticmethod
    def _read(folder: Path) -> Iterator[tuple[int, np.ndarray]]:
        for kinds, rows in dependencies(folder, "rank", "stream", "start_ns", "source_stream"):
            yield int(rows[2, -1]), rows[:, (kinds == WAIT) & (rows[1] >= 0)]

    def read_until(self, moment: int) -> None:
        """Take the waits that were asked for up to a moment."""
        parts = [self._rows]
        while self._latest is None or self._latest <= moment:
            item = next(self._source, None)
            if item is None:
                self._latest = np.iinfo(np.int64).max
                break
            self._latest = item[0]
            parts.append(item[1])
        if len(parts) > 1:
            rows = np.concatenate(parts, axis=1)
            rows = rows[:, np.argsort(rows[2], kind="stable")[-MOST_WAITS:]]
            self._rows = rows[:, np.lexsort((rows[2], rows[1], rows[0]))]

    def find(self, rank: np.ndarray, stream: np.ndarray, after: np.ndarray, before: np.ndarray) -> np.ndarray:
        """Return the stream whose event each piece of work waited for.

        Parameters
        ----------
        rank, stream : ndarray of int64, shape (n,)
        after, before : ndarray of int64, shape (n,), ns
            When the calls of the stream's earlier work and of the work itself began.

        Returns
        -------
        ndarray of int64, shape (n,)
            Of the latest wait between the two calls; `UNRECORDED` if its event's stream is not known, `NONE` without
            a wait.
        """
        if not rank.size or not self._rows.shape[1]:
            return np.full(rank.size, NONE)
        keys = [(self._rows[0] << 32 | self._rows[1]).tolist(), self._rows[2].tolist()]
        table = np.array(list(zip(*keys, strict=True)), [("key", "<i8"), ("start", "<i8")])
        asked = np.empty(rank.size, table.dtype)
        asked["key"] = rank << 32 | stream
        asked["start"] = before
        position = np.searchsorted(table, asked, "right") - 1
        held = table[np.maximum(position, 0)]
        fits = (position >= 0) & (held["key"] == asked["key"]) & (held["start"] >= after)
        return np.where(fits, self._rows[3][np.maximum(position, 0)], NONE)

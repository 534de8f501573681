"""Sums of idle pieces by device, reason and detail: of the whole run, and of each step."""

import numpy as np

from causeway.numeric.intervals import meetings
from causeway.waiting.idle.gaps import PIECE, add_pieces
from causeway.waiting.idle.reason_words import NAMES
from causeway.waiting.steps_by_rank import Steps


class IdleSums:
    """Exact sums of pieces.

    Attributes
    ----------
    steps : dict of (int, int, int, int) to int
        By device's row, step, reason and detail's code: ns.
    """

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._whole = np.zeros((0, len(NAMES), 0), np.int64)
        self.steps: dict[tuple[int, ...], int] = {}

    def take(
        self,
        pieces: np.ndarray,
        detail: np.ndarray,
        codes: int,
        rank_of: list[int],
    ) -> None:
        """Take pieces.

        Parameters
        ----------
        pieces : ndarray of int64, shape (n, 7)
            `gaps.PIECE`.
        detail : ndarray of int64, shape (n,)
            Code of each piece's detail.
        codes : int
            How many codes there are so far: all are below.
        rank_of : list of int
            Rank of each device's row.
        """
        self._make_room(len(rank_of), codes)
        add_pieces(pieces, detail, self._whole)
        if not self._steps:
            return
        device, reason, begin, end = (
            np.ascontiguousarray(pieces[:, PIECE.index(name)]) for name in ("device", "reason", "begin", "end")
        )
        ranks = np.array(rank_of, np.int64)[device]
        for rank in np.unique(ranks).tolist():
            if rank in self._steps:
                mine = ranks == rank
                self._split([column[mine] for column in (device, reason, detail, begin, end)], *self._steps[rank])

    def _make_room(self, devices: int, codes: int) -> None:
        """Make the sums large enough for so many devices and codes: `add_pieces` does not look where it writes."""
        held = self._whole
        if devices > held.shape[0] or codes > held.shape[2]:
            # codes come one by one: twice the room, so that the sums are seldom copied
            size = held.shape[2] if codes <= held.shape[2] else 2 * codes
            self._whole = np.zeros((max(devices, held.shape[0]), len(NAMES), size), np.int64)
            self._whole[: held.shape[0], :, : held.shape[2]] = held

    @property
    def whole(self) -> dict[tuple[int, int, int], int]:
        """Ns by device's row, reason and detail's code."""
        return {
            (row, why, code): int(self._whole[row, why, code]) for row, why, code in np.argwhere(self._whole).tolist()
        }

    def _split(self, pieces: list[np.ndarray], low: np.ndarray, high: np.ndarray, number: np.ndarray) -> None:
        """Count the parts of pieces that lie in steps."""
        device, reason, detail, begin, end = pieces
        piece, step = meetings(begin, end, (low, high))
        length = np.minimum(end[piece], high[step]) - np.maximum(begin[piece], low[step])
        _add(self.steps, [device[piece], number[step], reason[piece], detail[piece]], length)


def _add(sums: dict[tuple[int, ...], int], keys: list[np.ndarray], length: np.ndarray) -> None:
    """Add lengths, int64 of shape (n,), to the sums of their keys."""
    if not length.size:
        return
    order = np.lexsort(keys[::-1])
    rows = np.stack(keys)[:, order]
    first = np.flatnonzero(np.append(True, (rows[:, 1:] != rows[:, :-1]).any(axis=0)))
    for key, value in zip(rows[:, first].T.tolist(), np.add.reduceat(length[order], first).tolist(), strict=True):
        sums[tuple(key)] = sums.get(tuple(key), 0) + value

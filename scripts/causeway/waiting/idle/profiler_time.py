"""Idle time in which the profiler itself was at work: it is the profiler's, whatever else would be its reason."""

from pathlib import Path

import numpy as np

from causeway.core.tables import read_table
from causeway.numeric.intervals import split
from causeway.waiting.idle.activities import LONGEST_TEXT, Activities
from causeway.waiting.idle.gaps import PIECE
from causeway.waiting.idle.reason_words import AFTER_LAST, BEFORE_FIRST, GRAPH_INTERNAL, OTHER, PROFILER, SHARED

MOST_NAMES = 40
"""Names of what the profiler did that are told apart, those that last longest: what is left counts as `other`."""
OF_DEVICE = (GRAPH_INTERNAL, SHARED, BEFORE_FIRST, AFTER_LAST)
"""Reasons of time that stays as it is: inside of graphs, while another rank's work runs, and outside of its own."""
_REASON, _BEGIN, _END = (PIECE.index(name) for name in ("reason", "begin", "end"))


class ProfilerTime:
    """When the profiler was at work, by rank.

    Parameters
    ----------
    folder : Path
        Of an export.
    details : Activities
        Takes what the profiler did.
    """

    def __init__(self, folder: Path, details: Activities) -> None:
        self._of_rank: dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]] = {}
        path = folder / "profiler_overhead.parquet"
        if not path.is_file():
            return
        rows = read_table(path, "profiler_overhead")
        start, duration, rank = (rows.column(name).to_numpy() for name in ("start_ns", "duration_ns", "rank"))
        names = rows.column("name").combine_chunks()
        texts = names.dictionary.to_pylist()
        lasts = np.zeros(len(texts), np.int64)
        np.add.at(lasts, names.indices.to_numpy(), duration)
        longest = np.argsort(-lasts, kind="stable")[:MOST_NAMES].tolist()
        codes = np.array(
            [details.code(text[:LONGEST_TEXT] if at in longest else OTHER) for at, text in enumerate(texts)]
        )
        code = codes[names.indices.to_numpy()]
        for one in np.unique(rank).tolist():
            mine = rank == one
            self._of_rank[one] = (start[mine], (start + duration)[mine], code[mine])

    def divide(self, pieces: np.ndarray, detail: np.ndarray, rank_of: list[int]) -> tuple[np.ndarray, np.ndarray]:
        """Return pieces of idle time and the codes of their details, with that part of each in which the profiler was
        at work as pieces of their own.

        Parameters
        ----------
        pieces : ndarray of int64, shape (n, 7)
            `gaps.PIECE`.
        detail : ndarray of int64, shape (n,)
        rank_of : list of int
            Rank of each device's row.

        Returns
        -------
        pieces : ndarray of int64, shape (m, 7)
        detail : ndarray of int64, shape (m,)
        """
        if not self._of_rank or not len(pieces):
            return pieces, detail
        rank = np.array(rank_of, np.int64)[pieces[:, PIECE.index("device")]]
        rank[np.isin(pieces[:, _REASON], OF_DEVICE)] = -1
        found = [(pieces[rank < 0], detail[rank < 0])]
        for one in np.unique(rank[rank >= 0]).tolist():
            mine = rank == one
            own = self._of_rank.get(one)
            found += [(pieces[mine], detail[mine])] if own is None else _parts(pieces[mine], detail[mine], *own)
        return np.concatenate([part for part, _ in found]), np.concatenate([codes for _, codes in found])


def _parts(
    pieces: np.ndarray, detail: np.ndarray, low: np.ndarray, high: np.ndarray, code: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the parts of pieces inside of intervals (`low` to `high`, ordered, without overlap, with the codes of what
    the profiler did) and those outside of them, each with the codes of their details.
    """
    inside, outside = split(pieces[:, _BEGIN], pieces[:, _END], (low, high))
    own = pieces[inside[0]]
    own[:, _REASON] = PROFILER
    own[:, [_BEGIN, _END]] = inside[2:].T
    rest = pieces[outside[0]]
    rest[:, [_BEGIN, _END]] = outside[1:].T
    return [(own, code[inside[1]]), (rest, detail[outside[0]])]

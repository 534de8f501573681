"""Idle time in which the GPU was another's: of another rank of the run, or of another process.

Idle time in which the profiler itself was at work: it is the profiler's, whatever else would be its reason.
"""

from pathlib import Path

import numpy as np

from causeway.core.codes import BEFORE_RANK, BEHIND_RANK, BESIDE_RANK
from causeway.core.tables import read_table
from causeway.numeric.intervals import split
from causeway.waiting.idle.activities import LONGEST_TEXT, Activities
from causeway.waiting.idle.gaps import HELD, PIECE
from causeway.waiting.idle.reason_words import (
    AFTER_LAST,
    BEFORE_FIRST,
    DEPENDENCY_STALLED,
    GRAPH_INTERNAL,
    OTHER,
    OTHER_PROCESS,
    PROFILER,
    SHARED,
    START_UP,
    UNKNOWN_REASON,
)
from causeway.waiting.taken_gpus import Contexts, OtherWork, TakenGpus

QUEUED = (DEPENDENCY_STALLED, START_UP, GRAPH_INTERNAL)
"""Reasons of time in which work was queued; so it was where `HELD` is what an unknown one means."""
_REASON, _MEANING, _BEGIN, _END = (PIECE.index(name) for name in ("reason", "meaning", "begin", "end"))
Parts = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Pieces (`gaps.PIECE`), the codes of their details, and when the gap of each ends, ns."""


class TakenTime:
    """Gives the time of a device that was another's a reason of its own.

    Parameters
    ----------
    taken : TakenGpus
        In the clock of the export.
    details : Activities
    """

    def __init__(self, taken: TakenGpus, details: Activities) -> None:
        self._taken = taken
        self._details = details

    def divide(
        self, pieces: np.ndarray, detail: np.ndarray, until: np.ndarray, devices: list[tuple[int, int]]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return pieces of idle time and the codes of their details, with the time that was another's apart.

        While another rank's work runs on the GPU, the device is not idle: what was queued waited for it, and where
        nothing was, nobody waits. The reason of idle time before that work stands where that rank's gap is. Where the
        context of another process had the GPU, that is the reason unless nothing was queued.

        Parameters
        ----------
        pieces : ndarray of int64, shape (n, 7)
            `gaps.PIECE`.
        detail, until : ndarray of int64, shape (n,)
            Codes; when the gap of each piece ends, ns.
        devices : list of (int, int)
            Rank and device by row.

        Returns
        -------
        pieces : ndarray of int64, shape (m, 7)
        detail : ndarray of int64, shape (m,)
        """
        if not self._taken or not len(pieces):
            return pieces, detail
        divided = []
        for row in np.unique(pieces[:, 0]).tolist():
            of_row = pieces[:, 0] == row
            parts = [(pieces[of_row], detail[of_row], until[of_row])]
            others = self._taken.others.get(devices[row])
            contexts = self._taken.contexts.get(devices[row])
            if others is not None:
                parts = self._of_other_ranks(*parts[0], others)
            if contexts is not None:
                parts = [*self._of_other_processes(*parts[0], contexts), *parts[1:]]
            divided += parts
        return np.concatenate([part[0] for part in divided]), np.concatenate([part[1] for part in divided])

    def _of_other_ranks(
        self, pieces: np.ndarray, detail: np.ndarray, until: np.ndarray, others: OtherWork
    ) -> list[Parts]:
        """Return the idle time whose reason stands here, then what is no idle time of the GPU or has it elsewhere."""
        inside, outside = split(pieces[:, _BEGIN], pieces[:, _END], others.busy)
        low = others.busy[0]
        end = until[outside[0]]
        follows = np.searchsorted(low, end, "left") > np.searchsorted(low, outside[2], "left")
        follows |= np.isin(end, others.earlier)
        queued = _is_queued(pieces[inside[0]])
        kept = outside[:, ~follows]
        parts = [(_part(pieces, kept[0], kept[1:]), detail[kept[0]], until[kept[0]])]
        for words, rows, of in (
            (BEHIND_RANK, inside[2:, queued], inside[0, queued]),
            (BESIDE_RANK, inside[2:, ~queued], inside[0, ~queued]),
            (BEFORE_RANK, outside[1:, follows], outside[0, follows]),
        ):
            if of.size:
                theirs = _part(pieces, of, rows, SHARED)
                parts.append((theirs, np.full(of.size, self._details.code(words)), until[of]))
        return parts

    def _of_other_processes(
        self, pieces: np.ndarray, detail: np.ndarray, until: np.ndarray, contexts: Contexts
    ) -> list[Parts]:
        may_wait = _is_queued(pieces) | (pieces[:, _REASON] == UNKNOWN_REASON)
        chosen = pieces[may_wait]
        inside, outside = split(chosen[:, _BEGIN], chosen[:, _END], (contexts.start, contexts.end))
        theirs = _part(chosen, inside[0], inside[2:], OTHER_PROCESS)
        codes = np.array([self._details.code(words) for words in contexts.words()], np.int64)
        rest = _part(chosen, outside[0], outside[1:])
        return [
            (pieces[~may_wait], detail[~may_wait], until[~may_wait]),
            (theirs, codes[contexts.number()[inside[1]]], until[may_wait][inside[0]]),
            (rest, detail[may_wait][outside[0]], until[may_wait][outside[0]]),
        ]


def _is_queued(pieces: np.ndarray) -> np.ndarray:
    return np.isin(pieces[:, _REASON], QUEUED) | (pieces[:, _MEANING] == HELD)


def _part(pieces: np.ndarray, of: np.ndarray, ends: np.ndarray, reason: int | None = None) -> np.ndarray:
    """Return a part of each of some pieces, by their indices (k,) and begin and end, shape (2, k), with its own reason
    or another.
    """
    parts = pieces[of]
    parts[:, [_BEGIN, _END]] = ends.T
    if reason is not None:
        parts[:, _REASON] = reason
    return parts


MOST_NAMES = 40
"""Names of what the profiler did that are told apart, those that last longest: what is left counts as `other`."""
OF_DEVICE = (GRAPH_INTERNAL, SHARED, BEFORE_FIRST, AFTER_LAST)
"""Reasons of time that stays as it is: inside of graphs, while another rank's work runs, and outside of its own."""


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
            [details.code(text[:LONGEST_TEXT] if index in longest else OTHER) for index, text in enumerate(texts)]
        )
        code = codes[names.indices.to_numpy()]
        for number in np.unique(rank).tolist():
            of_rank = rank == number
            self._of_rank[number] = (start[of_rank], (start + duration)[of_rank], code[of_rank])

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
        parts = [(pieces[rank < 0], detail[rank < 0])]
        for number in np.unique(rank[rank >= 0]).tolist():
            chosen = rank == number
            own = self._of_rank.get(number)
            parts += [(pieces[chosen], detail[chosen])] if own is None else _parts(pieces[chosen], detail[chosen], *own)
        return np.concatenate([part for part, _ in parts]), np.concatenate([codes for _, codes in parts])


def _parts(
    pieces: np.ndarray, detail: np.ndarray, low: np.ndarray, high: np.ndarray, code: np.ndarray
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return the parts of pieces inside of intervals (`low` to `high`, ordered, without overlap, with the codes of what
    the profiler did) and those outside of them, each with the codes of their details.
    """
    inside, outside = split(pieces[:, _BEGIN], pieces[:, _END], (low, high))
    own = _part(pieces, inside[0], inside[2:], PROFILER)
    return [(own, code[inside[1]]), (_part(pieces, outside[0], outside[1:]), detail[outside[0]])]

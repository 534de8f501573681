"""Pieces of critical paths, summed by step, kind, name and operator: the rows of `critical_path`.

Pieces of a critical path in which work waited while its GPU was another's.
"""

import numpy as np

from causeway.core.codes import PATH_KINDS
from causeway.numeric.intervals import Set, meetings, split
from causeway.waiting.graph.distinct_rows import distinct_rows
from causeway.waiting.graph.nodes import Graph
from causeway.waiting.path import walk
from causeway.waiting.path.critical_path import Schedule
from causeway.waiting.steps_by_rank import StepsOfRank
from causeway.waiting.taken_gpus import Device, TakenGpus

KINDS = {
    walk.KERNEL: "kernel",
    walk.COLLECTIVE: "collective",
    walk.COPY: "copy",
    walk.GRAPH: "kernel",
    walk.LAUNCH: "launch",
    walk.HOST: "host",
    walk.START_UP: "launch",
    walk.BETWEEN_CALLS: "host",
    walk.SAME_STREAM: "wait",
    walk.OTHER_STREAM: "wait",
    walk.LATE_RANK: "wait",
    walk.FIRST: "host",
    walk.QUEUED: "wait",
    walk.ENGINE: "wait",
    walk.IN_MPI: "host",
    walk.TAKEN: "wait",
}
"""Kinds of `critical_path` by what a piece is."""
NAMES = {
    walk.START_UP: "from the launch call to the start",
    walk.BETWEEN_CALLS: "host code between calls",
    walk.SAME_STREAM: "between work of one stream",
    walk.OTHER_STREAM: "after work of another stream",
    walk.FIRST: "before the first recorded work",
    walk.QUEUED: "enqueued, held back by what is not recorded",
    walk.IN_MPI: "MPI",
}
"""Names of pieces that have none of their own."""
KIND_NUMBERS = np.array([list(PATH_KINDS).index(KINDS[what]) for what in range(len(KINDS))])
"""The place in `PATH_KINDS` of each kind of piece."""
Key = tuple[str, str, str | None]
"""Kind, name and operator."""
PathRow = tuple[int, int, str, str, str, int]
"""Rank, step, kind, name, operator, ns."""


def keys_of(graph: Graph, last_ranks: np.ndarray, pieces: np.ndarray) -> tuple[np.ndarray, list[Key]]:
    """Return for each piece the number of its key (int64, shape (pieces,)), and the keys.

    Parameters
    ----------
    graph : Graph
    last_ranks : ndarray of int64, shape (collectives,)
        `last_ranks_of` the schedule of the path.
    pieces : ndarray of int64, shape (pieces, 4)
        `walk.PIECE`.
    """
    what = pieces[:, 2]
    code = pieces[:, 3]
    name = np.full(what.size, -1)
    operator = np.full(what.size, -1)
    of_work = (what <= walk.GRAPH) | (what == walk.LATE_RANK)
    name[of_work] = graph.work.name[code[of_work]]
    operator[of_work] = graph.work.operator[code[of_work]]
    of_call = np.isin(what, (walk.LAUNCH, walk.HOST, walk.ENGINE))
    name[of_call] = graph.calls.name[code[of_call]]
    name[what == walk.TAKEN] = code[what == walk.TAKEN]
    late = what == walk.LATE_RANK
    if late.any():
        name[late] = len(graph.texts) * (1 + last_ranks[graph.work.member[code[late]]]) + name[late]
    used, number = distinct_rows(what, name, operator)
    return number, [_key(graph, *column) for column in used.T.tolist()]


def last_ranks_of(graph: Graph, schedule: Schedule) -> np.ndarray:
    """Return the row of the rank that arrived last at each matched collective, of several the first; int64 of shape
    (collectives,).
    """
    last_ranks = np.full(graph.members.size, -1)
    for row, part in graph.parts(graph.work_of) if last_ranks.size else ():
        joint = part.start + np.flatnonzero(graph.work.member[part] >= 0)
        member = graph.work.member[joint]
        last = member[schedule.start[joint] == schedule.last_arrival[member]]
        last_ranks[last[last_ranks[last] < 0]] = row
    return last_ranks


def _key(graph: Graph, what: int, name: int, operator: int) -> Key:
    by = (graph.texts[operator] or None) if operator >= 0 else None
    if what == walk.LATE_RANK:
        rank = graph.ranks[name // len(graph.texts) - 1]
        return KINDS[what], f"rank {rank} is late: {graph.texts[name % len(graph.texts)]}", by
    return KINDS[what], NAMES[what] if name < 0 else graph.texts[name], by


def step_sums(pieces: np.ndarray, number: np.ndarray, steps: StepsOfRank) -> dict[tuple[int, int], int]:
    """Return ns by row of the step and number of the key.

    Parameters
    ----------
    pieces : ndarray of int64, shape (pieces, 4)
        In the order of time, adjoining.
    number : ndarray of int64, shape (pieces,)
    steps : tuple of ndarray of int64, shape (steps,)
        Start, end and number; they do not overlap.
    """
    begin = pieces[:, 0]
    stop = pieces[:, 1]
    first = int(np.searchsorted(steps[1], begin[0], "right"))
    after = int(np.searchsorted(steps[0], stop[-1]))
    start, end = (column[first:after] for column in steps[:2])
    row, piece = meetings(start, end, (begin, stop))
    inside = np.minimum(stop[piece], end[row]) - np.maximum(begin[piece], start[row])
    used, group = distinct_rows(first + row, number[piece])
    sums = np.zeros(used.shape[1], np.int64)
    np.add.at(sums, group, inside)
    return {(step, key): ns for (step, key), ns in zip(used.T.tolist(), sums.tolist(), strict=True) if ns}


def joined_pieces(pieces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return when a path's stretches of one kind begin (ns), and the kind of each as its place in `PATH_KINDS`.

    Parameters
    ----------
    pieces : ndarray of int64, shape (pieces, 4)
        `walk.PIECE`, in the order of time, adjoining; at least one.

    Returns
    -------
    begins : ndarray of int64, shape (stretches,), ns
    kinds : ndarray of int64, shape (stretches,)
        No two neighbours are equal.
    """
    kind = KIND_NUMBERS[pieces[:, 2]]
    first = np.flatnonzero(np.diff(kind, prepend=-1))
    return pieces[first, 0], kind[first]


class PathSums:
    """Sums of a rank's path, over the run and by step, as its pieces are taken, some at a time.

    Parameters
    ----------
    graph : Graph
    last_ranks : ndarray of int64, shape (collectives,)
        `last_ranks_of` the schedule of the path.
    steps : StepsOfRank or None
        Of the rank; None: no steps.
    """

    def __init__(self, graph: Graph, last_ranks: np.ndarray, steps: StepsOfRank | None = None) -> None:
        self._graph = graph
        self._last_ranks = last_ranks
        self._steps = steps or (np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64))
        self._outside = self._steps[1] - self._steps[0]
        self._found: dict[tuple[int, Key], int] = {}
        self.kernel_ns = np.zeros(len(graph.texts), np.int64)

    def take(self, pieces: np.ndarray) -> None:
        """Take `pieces` of shape (k, 4) that adjoin, in the order of time; later pieces may have been taken before."""
        number, keys = keys_of(self._graph, self._last_ranks, pieces)
        lengths = pieces[:, 1] - pieces[:, 0]
        whole = np.zeros(len(keys), np.int64)
        np.add.at(whole, number, lengths)
        for key, ns in zip(keys, whole.tolist(), strict=True):
            self._add(-1, key, ns)
        kernels = pieces[:, 2] == walk.KERNEL
        np.add.at(self.kernel_ns, self._graph.work.name[pieces[kernels, 3]], lengths[kernels])
        if self._outside.size:
            for (row, part), ns in step_sums(pieces, number, self._steps).items():
                self._add(row, keys[part], ns)
                self._outside[row] -= ns

    def _add(self, row: int, key: Key, ns: int) -> None:
        self._found[row, key] = self._found.get((row, key), 0) + ns

    def whole(self) -> dict[Key, int]:
        """Return the sums over the run, ns."""
        return {key: ns for (row, key), ns in self._found.items() if row < 0}

    def by_step(self) -> dict[tuple[int, Key], int]:
        """Return the sums by step (-1: the run), ns; those of a step add up to its duration."""
        sums: dict[tuple[int, Key], int] = {}
        outside = KINDS[walk.FIRST], NAMES[walk.FIRST], None
        more = {(row, outside): ns for row, ns in enumerate(self._outside.tolist()) if ns}
        for part in (self._found, more):
            for (row, key), ns in part.items():
                step_key = -1 if row < 0 else int(self._steps[2][row]), key
                sums[step_key] = sums.get(step_key, 0) + ns
        return sums


def rows_of(rank: int, sums: PathSums) -> list[PathRow]:
    """Return rank, step (-1: the whole run), kind, name, operator ('' where none is known) and ns, ordered.

    The rows of the whole run add up to the time from the rank's first to its last node, and those of a step to the
    step's duration.
    """
    return sorted(
        (rank, step, kind, name, operator or "", ns) for (step, (kind, name, operator)), ns in sums.by_step().items()
    )


OTHER_RANK = "behind work of another rank on the same GPU"
OTHER_PROCESS = "another process had the GPU"
WAITS = (walk.SAME_STREAM, walk.OTHER_STREAM, walk.QUEUED, walk.START_UP)
"""Pieces in which work waits; their codes are of the work."""


class TakenPieces:
    """Sets apart the time in which work waited for another rank or process to leave its GPU.

    Parameters
    ----------
    graph : Graph
        Its texts are added to.
    taken : TakenGpus
        On the dataset's time line.
    """

    def __init__(self, graph: Graph, taken: TakenGpus) -> None:
        self._graph = graph
        self._covers: dict[Device, list[tuple[Set, np.ndarray]]] = {}
        for device, others in taken.others.items():
            code = np.full(others.busy[0].size, self._code(OTHER_RANK))
            self._covers.setdefault(device, []).append((others.busy, code))
        for device, turns in taken.contexts.items():
            codes = np.array([self._code(f"{OTHER_PROCESS}: {words}") for words in turns.words()], np.int64)
            self._covers.setdefault(device, []).append(((turns.start, turns.end), codes[turns.number()]))

    def _code(self, text: str) -> int:
        if text not in self._graph.texts:
            self._graph.texts.append(text)
        return self._graph.texts.index(text)

    def apart(self, pieces: np.ndarray) -> np.ndarray:
        """Return the pieces of a path with that time as pieces of their own: `walk.TAKEN`, with the code of a text.

        Parameters
        ----------
        pieces : ndarray of int64, shape (k, 4)
            `walk.PIECE`, in the order of time.

        Returns
        -------
        ndarray of int64, shape (m, 4)
        """
        waits = np.flatnonzero(np.isin(pieces[:, 2], WAITS)) if self._covers else np.zeros(0, np.int64)
        if not waits.size:
            return pieces
        device = self._graph.stream_key[self._graph.work.stream[pieces[waits, 3]]]
        apart = [np.delete(pieces, waits, axis=0)]
        for key in np.unique(device, axis=0).tolist():
            rest = pieces[waits[(device == np.array(key)).all(axis=1)]]
            for cover, code in self._covers.get(tuple(key), ()):
                inside, outside = split(rest[:, 0], rest[:, 1], cover)
                theirs = np.stack([*inside[2:], np.full(inside.shape[1], walk.TAKEN), code[inside[1]]], axis=1)
                apart.append(theirs)
                rest = np.stack([*outside[1:], *rest[outside[0], 2:].T], axis=1)
            apart.append(rest)
        parts = np.concatenate(apart)
        return parts[np.argsort(parts[:, 0], kind="stable")]

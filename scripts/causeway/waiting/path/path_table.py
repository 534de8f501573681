"""Pieces of critical paths, summed by step, kind, name and operator: the rows of `critical_path`."""

import numpy as np

from causeway.core.codes import PATH_KINDS
from causeway.waiting.graph.nodes import Graph
from causeway.waiting.path import walk
from causeway.waiting.path.critical_path import CriticalPaths, Schedule

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
}
"""Kinds of `critical_path` by what a piece is."""
NAMES = {
    walk.START_UP: "from the launch call to the start",
    walk.BETWEEN_CALLS: "host code between calls",
    walk.SAME_STREAM: "between work of one stream",
    walk.OTHER_STREAM: "after work of another stream",
    walk.FIRST: "before the first recorded work",
    walk.QUEUED: "enqueued, held back by what is not recorded",
}
"""Names of pieces that have none of their own."""
KIND_NUMBERS = np.array([list(PATH_KINDS).index(KINDS[what]) for what in range(len(KINDS))])
"""The place in `PATH_KINDS` of each kind of piece."""
Key = tuple[str, str, str | None]
"""Kind, name and operator."""
Steps = dict[int, tuple[np.ndarray, np.ndarray, np.ndarray]]
"""Start, end and number of the steps of each rank, ordered; int64, shape (steps,) each."""


def keys_of(graph: Graph, schedule: Schedule, pieces: np.ndarray) -> tuple[np.ndarray, list[Key]]:
    """Return for each piece the number of its key (int64, shape (pieces,)), and the keys.

    Parameters
    ----------
    graph : Graph
    schedule : Schedule
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
    of_call = (what == walk.LAUNCH) | (what == walk.HOST)
    name[of_call] = graph.calls.name[code[of_call]]
    late = what == walk.LATE_RANK
    if late.any():
        name[late] = len(graph.texts) * (1 + _last_ranks(graph, schedule)[graph.work.member[code[late]]]) + name[late]
    used, number = np.unique(np.stack([what, name, operator]), axis=1, return_inverse=True)
    keys = [_key(graph, *column) for column in used.T.tolist()]
    return number.reshape(-1), keys


def _last_ranks(graph: Graph, schedule: Schedule) -> np.ndarray:
    """Return the row of the rank that arrived last at each matched collective."""
    found = np.zeros(graph.members.size, np.int64)
    joint = np.flatnonzero(graph.work.member >= 0)
    last = joint[schedule.start[joint] == schedule.last_arrival[graph.work.member[joint]]][::-1]
    found[graph.work.member[last]] = graph.stream_rank[graph.work.stream[last]]
    return found


def _key(graph: Graph, what: int, name: int, operator: int) -> Key:
    by = None if operator < 0 else graph.texts[operator]
    if what == walk.LATE_RANK:
        rank = graph.ranks[name // len(graph.texts) - 1]
        return KINDS[what], f"rank {rank} is late: {graph.texts[name % len(graph.texts)]}", by
    return KINDS[what], NAMES[what] if name < 0 else graph.texts[name], by


def step_sums(
    pieces: np.ndarray, number: np.ndarray, steps: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> dict[tuple[int, int], int]:
    """Return ns by step and number of the key; -1: in the step, but before the rank's first node or after its last.

    Parameters
    ----------
    pieces : ndarray of int64, shape (pieces, 4)
        In the order of time, adjoining.
    number : ndarray of int64, shape (pieces,)
    steps : tuple of ndarray of int64, shape (steps,)
        Start, end and number; they do not overlap.
    """
    start, end, step = steps
    begin = pieces[:, 0]
    stop = pieces[:, 1]
    low = np.searchsorted(stop, start, "right")
    high = np.maximum(np.searchsorted(begin, end, "left"), low)
    counts = high - low
    at = np.repeat(low - np.cumsum(counts) + counts, counts) + np.arange(counts.sum())
    row = np.repeat(np.arange(step.size), counts)
    inside = np.minimum(stop[at], end[row]) - np.maximum(begin[at], start[row])
    outside = end - start - np.bincount(row, inside, step.size).astype(np.int64)
    keys = np.concatenate([np.stack([step[row], number[at]]), np.stack([step, np.full(step.size, -1)])], axis=1)
    used, group = np.unique(keys, axis=1, return_inverse=True)
    sums = np.zeros(used.shape[1], np.int64)
    np.add.at(sums, group.reshape(-1), np.concatenate([inside, outside]))
    return {(one, key): ns for (one, key), ns in zip(used.T.tolist(), sums.tolist(), strict=True) if ns}


def joined_pieces(pieces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the edges of a path's stretches of one kind, and the kind of each as its place in `PATH_KINDS`.

    Parameters
    ----------
    pieces : ndarray of int64, shape (pieces, 4)
        `walk.PIECE`, in the order of time, adjoining; at least one.

    Returns
    -------
    edges : ndarray of int64, shape (stretches + 1,), ns
    kinds : ndarray of int64, shape (stretches,)
        No two neighbours are equal.
    """
    kind = KIND_NUMBERS[pieces[:, 2]]
    first = np.flatnonzero(np.diff(kind, prepend=-1))
    return np.append(pieces[first, 0], pieces[-1, 1]), kind[first]


def path_rows(paths: CriticalPaths, schedule: Schedule, steps: Steps) -> list[tuple[int, int, str, str, str, int]]:
    """Return rank, step (-1: the whole run), kind, name, operator ('' where none is known) and ns, ordered.

    Per rank the rows of the whole run add up to the time from its first to its last node, and those of a step to the
    step's duration.
    """
    graph = paths.graph
    sums: dict[tuple[int, int, str, str, str], int] = {}
    for row in paths.ranks():
        pieces = paths.pieces(schedule, row)
        number, keys = keys_of(graph, schedule, pieces)
        whole = np.zeros(len(keys), np.int64)
        np.add.at(whole, number, pieces[:, 1] - pieces[:, 0])
        rank = graph.ranks[row]
        found = {(-1, key): ns for key, ns in enumerate(whole.tolist())}
        if rank in steps:
            found |= step_sums(pieces, number, steps[rank])
        for (step, key), ns in found.items():
            kind, name, operator = keys[key] if key >= 0 else (KINDS[walk.FIRST], NAMES[walk.FIRST], None)
            at = rank, step, kind, name, operator or ""
            sums[at] = sums.get(at, 0) + ns
    return [(*key, ns) for key, ns in sorted(sums.items())]

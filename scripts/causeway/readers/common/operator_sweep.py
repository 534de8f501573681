"""The compiled sweep of `sink.launch_operators`: ranges open on each thread, and what encloses each call."""

from collections.abc import Mapping

import numpy as np

from causeway.numeric.compiled import I8, Array, UniTuple, compiled_borrowing, int32, int64, void
from causeway.readers.common.operators import BACKWARD, FORWARD, MODULE, OPERATOR, OPTIMIZER

MIX = np.uint64(0x9E3779B97F4A7C15)
PHASE_FLAGS = FORWARD | BACKWARD | OPTIMIZER
FIELDS = 5
START, END, NAME, FLAGS, INPUTS = range(FIELDS)
"""Fields of an open range."""


class Stacks:
    """Ranges that are open on each thread, the latest-started last.

    Parameters
    ----------
    deepest : int
        Open ranges held for a thread.
    """

    def __init__(self, deepest: int) -> None:
        self.open = np.empty((0, deepest, FIELDS), np.int64)
        self.depth = np.empty(0, np.int64)

    def room_for(self, threads: int) -> None:
        """Make room for so many threads."""
        if threads > len(self.depth):
            more = max(threads, 2 * len(self.depth)) - len(self.depth)
            self.open = np.concatenate([self.open, np.zeros((more, *self.open.shape[1:]), np.int64)])
            self.depth = np.append(self.depth, np.zeros(more, np.int64))


class Paths:
    """Paths of modules, numbered from 1 on; 0 is the empty path.

    Parameters
    ----------
    most : int
        Paths remembered; those beyond are -1.
    """

    def __init__(self, most: int) -> None:
        size = 1
        while size < 4 * most:
            size *= 2
        self.slots = np.zeros(size, np.int32)
        self.parent = np.zeros(most + 1, np.int64)
        self.name = np.zeros(most + 1, np.int64)
        self.count = np.zeros(1, np.int64)

    def names_of(self, path: int) -> list[int]:
        """Return the codes of a path's names, the outermost first."""
        found = []
        while path > 0:
            found.append(int(self.name[path]))
            path = int(self.parent[path])
        return found[::-1]


_RW = Array(int64, 1, "C")
_SLOTS = Array(int32, 1, "C")
_STACKS = Array(int64, 3, "C")


@compiled_borrowing(int64(int64, int64, _SLOTS, _RW, _RW, _RW))
def _path(above, name, slots, parent, names, count):
    """Return the number of the path that adds a name to another path, -1 if there is no room."""
    if above < 0:
        return np.int64(-1)
    mixed = (np.uint64(above) ^ (np.uint64(name) * MIX)) * MIX
    mixed ^= mixed >> np.uint64(29)
    mask = np.int64(slots.size - 1)
    slot = np.int64(mixed & np.uint64(mask))
    while slots[slot] > 0:
        at = np.int64(slots[slot])
        if parent[at] == above and names[at] == name:
            return at
        slot = (slot + 1) & mask
    if count[0] + 1 >= parent.size:
        return np.int64(-1)
    count[0] += 1
    slots[slot] = count[0]
    parent[count[0]] = above
    names[count[0]] = name
    return count[0]


@compiled_borrowing(void(int64, int64, int64, int64, int64, int64, _STACKS, _RW), forceinline=True)
def _open_range(thread, start, end, name, flags, inputs, stacks, depth):
    """Put a range on the stack of its thread, in place of those that have ended by its start; one that finds no room
    there is left out. Of ranges that start together the longest is the outermost, whichever came first.
    """
    top = depth[thread]
    while top > 0 and stacks[thread, top - 1, END] <= start:
        top -= 1
    position = top
    while position > 0 and stacks[thread, position - 1, START] == start and stacks[thread, position - 1, END] < end:
        position -= 1
    if top < stacks.shape[1]:
        for later in range(top, position, -1):
            for field in range(FIELDS):
                stacks[thread, later, field] = stacks[thread, later - 1, field]
        stacks[thread, position, START] = start
        stacks[thread, position, END] = end
        stacks[thread, position, NAME] = name
        stacks[thread, position, FLAGS] = flags
        stacks[thread, position, INPUTS] = inputs
        top += 1
    depth[thread] = top


@compiled_borrowing(UniTuple(int64, 5)(int64, int64, _STACKS, _RW, _SLOTS, _RW, _RW, _RW), forceinline=True)
def _around(thread, time, stacks, depth, slots, parent, names, count):
    """Return what encloses a call that a thread makes at a time: a column of what `around_calls` returns."""
    leaf = outermost = shape = int64(-1)
    path = phases = int64(0)
    for level in range(depth[thread]):
        if stacks[thread, level, END] <= time:
            continue
        flags = stacks[thread, level, FLAGS]
        name = stacks[thread, level, NAME]
        phases |= flags & PHASE_FLAGS
        if flags & OPERATOR:
            leaf = name
            if outermost < 0:
                outermost = name
            if stacks[thread, level, INPUTS] != -1:
                shape = stacks[thread, level, INPUTS]
        if flags & MODULE:
            path = _path(path, name, slots, parent, names, count)
    return leaf, outermost, path, phases, shape


@compiled_borrowing(
    void(*[I8] * 8, _STACKS, _RW, _SLOTS, *[_RW] * 3, Array(int64, 2, "C"))
)  # fmt: skip
def _sweep(
    start, end, name, flags, inputs, thread, call_start, call_thread, stacks, depth, slots, parent, names, count, found
):
    at = 0
    for call in range(call_start.size):
        time = call_start[call]
        while at < start.size and start[at] <= time:
            if thread[at] >= 0:
                _open_range(thread[at], start[at], end[at], name[at], flags[at], inputs[at], stacks, depth)
            at += 1
        leaf = outermost = shape = int64(-1)
        path = phases = int64(0)
        if call_thread[call] >= 0:
            leaf, outermost, path, phases, shape = _around(
                call_thread[call], time, stacks, depth, slots, parent, names, count
            )
        found[0, call] = leaf
        found[1, call] = outermost
        found[2, call] = path
        found[3, call] = phases
        found[4, call] = shape


def around_calls(
    scopes: Mapping[str, np.ndarray], call_start: np.ndarray, call_thread: np.ndarray, stacks: Stacks, paths: Paths
) -> np.ndarray:
    """Return what encloses each call.

    Parameters
    ----------
    scopes : mapping of str to ndarray of int64, shape (n,)
        start, end (ns), name, flags (of `common.operators`), inputs, thread (-1: not followed), ordered by start; those
        of one start by falling end. None begins after the last call.
    call_start, call_thread : ndarray of int64, shape (m,)
        Ordered by start; thread -1: unknown.
    stacks, paths
        What is open, and the paths known; brought up to date.

    Returns
    -------
    ndarray of int64, shape (5, m)
        Codes of the innermost and the outermost operator (-1: none), the path's number (0: none, -1: not remembered),
        the flags of phases, and the inputs of the innermost operator that has any (-1: none, -2: not remembered).
    """
    found = np.empty((5, len(call_start)), np.int64)
    order = ("start", "end", "name", "flags", "inputs", "thread")
    _sweep(
        *[scopes[name] for name in order],
        call_start,
        call_thread,
        stacks.open,
        stacks.depth,
        paths.slots,
        paths.parent,
        paths.name,
        paths.count,
        found,
    )
    return found

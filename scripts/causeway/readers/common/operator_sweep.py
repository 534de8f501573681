"""The compiled sweep of `sink.launch_operators`: ranges open on each thread, and what encloses each call."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from causeway.numeric.compiled import I8, Array, UniTuple, compiled_borrowing, int32, int64, record, void
from causeway.readers.common.operators import BACKWARD, FORWARD, MODULE, OPERATOR, OPTIMIZER

MIX = np.uint64(0x9E3779B97F4A7C15)
PHASE_FLAGS = FORWARD | BACKWARD | OPTIMIZER
FIELDS = 5
START, END, NAME, FLAGS, INPUTS = range(FIELDS)
"""Fields of an open range."""


RANGES = record("RANGES", start=I8, end=I8, name=I8, flags=I8, inputs=I8, thread=I8)
"""Ranges and operators, shape (n,), as `around_calls` takes them."""
STACKS = record("STACKS", open=Array(int64, 3, "C"), depth=Array(int64, 1, "C"))
"""Ranges that are open on each thread, the latest-started last, shape (threads, deepest, fields); how many they are."""
_RW = Array(int64, 1, "C")
PATHS = record("PATHS", slots=Array(int32, 1, "C"), parent=_RW, name=_RW, count=_RW)
"""Paths of modules, numbered from 1 on; 0 is the empty path. Of each the path above it and its last name, their
number, and a table of hashes.
"""


def without_ranges(deepest: int) -> Any:
    """Return stacks of no thread that hold `deepest` ranges of one."""
    return STACKS.of(open=np.empty((0, deepest, FIELDS), np.int64), depth=np.empty(0, np.int64))


def room_for(threads: int, stacks: Any) -> Any:
    """Return the stacks with room for so many threads."""
    if threads <= len(stacks.depth):
        return stacks
    more = max(threads, 2 * len(stacks.depth)) - len(stacks.depth)
    room = np.zeros((more, *stacks.open.shape[1:]), np.int64)
    return STACKS.of(open=np.concatenate([stacks.open, room]), depth=np.append(stacks.depth, np.zeros(more, np.int64)))


def empty_paths(most: int) -> Any:
    """Return the empty path alone, with room for so many; paths beyond are -1."""
    size = 1 << (4 * most - 1).bit_length()
    numbers = {name: np.zeros(most + 1, np.int64) for name in ("parent", "name")}
    return PATHS.of(slots=np.zeros(size, np.int32), **numbers, count=np.zeros(1, np.int64))


def names_of(path: int, paths: Any) -> list[int]:
    """Return the codes of a path's names, the outermost first."""
    codes = []
    while path > 0:
        codes.append(int(paths.name[path]))
        path = int(paths.parent[path])
    return codes[::-1]


@compiled_borrowing(int64(int64, int64, PATHS))
def _path(above, name, paths):
    """Return the number of the path that adds a name to another path, -1 if there is no room."""
    if above < 0:
        return np.int64(-1)
    mixed = (np.uint64(above) ^ (np.uint64(name) * MIX)) * MIX
    mixed ^= mixed >> np.uint64(29)
    mask = np.int64(paths.slots.size - 1)
    slot = np.int64(mixed & np.uint64(mask))
    while paths.slots[slot] > 0:
        path = np.int64(paths.slots[slot])
        if paths.parent[path] == above and paths.name[path] == name:
            return path
        slot = (slot + 1) & mask
    number = paths.count[0] + 1
    if number >= paths.parent.size:
        return np.int64(-1)
    paths.count[0] = number
    paths.slots[slot] = number
    paths.parent[number] = above
    paths.name[number] = name
    return number


@compiled_borrowing(void(RANGES, int64, STACKS), forceinline=True)
def _open_range(ranges, index, stacks):
    """Put a range on the stack of its thread, in place of those that have ended by its start; one that finds no room
    there is left out. Of ranges that start together the longest is the outermost, whichever came first.
    """
    thread = ranges.thread[index]
    start = ranges.start[index]
    end = ranges.end[index]
    opened = stacks.open
    top = stacks.depth[thread]
    while top > 0 and opened[thread, top - 1, END] <= start:
        top -= 1
    position = top
    while position > 0 and opened[thread, position - 1, START] == start and opened[thread, position - 1, END] < end:
        position -= 1
    if top < opened.shape[1]:
        for later in range(top, position, -1):
            for field in range(FIELDS):
                opened[thread, later, field] = opened[thread, later - 1, field]
        opened[thread, position, START] = start
        opened[thread, position, END] = end
        opened[thread, position, NAME] = ranges.name[index]
        opened[thread, position, FLAGS] = ranges.flags[index]
        opened[thread, position, INPUTS] = ranges.inputs[index]
        top += 1
    stacks.depth[thread] = top


@compiled_borrowing(UniTuple(int64, 5)(int64, int64, STACKS, PATHS), forceinline=True)
def _around(thread, time, stacks, paths):
    """Return what encloses a call that a thread makes at a time: a column of what `around_calls` returns."""
    leaf = outermost = shape = int64(-1)
    path = phases = int64(0)
    opened = stacks.open
    for level in range(stacks.depth[thread]):
        if opened[thread, level, END] <= time:
            continue
        flags = opened[thread, level, FLAGS]
        name = opened[thread, level, NAME]
        phases |= flags & PHASE_FLAGS
        if flags & OPERATOR:
            leaf = name
            if outermost < 0:
                outermost = name
            if opened[thread, level, INPUTS] != -1:
                shape = opened[thread, level, INPUTS]
        if flags & MODULE:
            path = _path(path, name, paths)
    return leaf, outermost, path, phases, shape


@compiled_borrowing(void(RANGES, I8, I8, STACKS, PATHS, Array(int64, 2, "C")))
def _sweep(ranges, call_start, call_thread, stacks, paths, enclosing):
    index = 0
    for call in range(call_start.size):
        time = call_start[call]
        while index < ranges.start.size and ranges.start[index] <= time:
            if ranges.thread[index] >= 0:
                _open_range(ranges, index, stacks)
            index += 1
        leaf = outermost = shape = int64(-1)
        path = phases = int64(0)
        if call_thread[call] >= 0:
            leaf, outermost, path, phases, shape = _around(call_thread[call], time, stacks, paths)
        enclosing[0, call] = leaf
        enclosing[1, call] = outermost
        enclosing[2, call] = path
        enclosing[3, call] = phases
        enclosing[4, call] = shape


def around_calls(
    ranges: Mapping[str, np.ndarray], call_start: np.ndarray, call_thread: np.ndarray, stacks: Any, paths: Any
) -> np.ndarray:
    """Return what encloses each call.

    Parameters
    ----------
    ranges : mapping of str to ndarray of int64, shape (n,)
        start, end (ns), name, flags (of `common.operators`), inputs, thread (-1: not followed), ordered by start; those
        of one start by falling end. None begins after the last call.
    call_start, call_thread : ndarray of int64, shape (m,)
        Ordered by start; thread -1: unknown.
    stacks, paths : record
        `STACKS` and `PATHS`: what is open, and the paths known; brought up to date.

    Returns
    -------
    ndarray of int64, shape (5, m)
        Codes of the innermost and the outermost operator (-1: none), the path's number (0: none, -1: not remembered),
        the flags of phases, and the inputs of the innermost operator that has any (-1: none, -2: not remembered).
    """
    enclosing = np.empty((5, len(call_start)), np.int64)
    _sweep(RANGES.of(**ranges), call_start, call_thread, stacks, paths, enclosing)
    return enclosing

"""Nested activities of host threads as disjoint segments, in one sweep over events ordered by start; and what the
latest calls did.
"""

from causeway.numeric.compiled import I4, I8, boolean, compiled_borrowing, int64, record, void

DEPTH = 64
"""Activities open at once on one thread; further ones count as what encloses them."""
SEGMENT = ("thread", "begin", "end", "code")
OPEN = ("begin", "end", "code", "priority")
SLOT = ("call", "code", "thread", "user")
"""Fields of a segment, of an open activity, and of a call: 1 + its number (0: none), its activity, its thread's row,
and 1 + the device that last ran its work. A call's slot is its number modulo the slots.
"""
CALL, CODE, THREAD, USER = range(len(SLOT))
STEP, SAMPLED, FUNCTION, OPERATOR, PLAIN, CAUSE, BLOCKING = range(-4, 3)
"""Priorities: of activities at one moment the one with the highest counts: of blocking calls the outermost, of others
the innermost. Operators count where there is no call and no range but that of a step, functions and sampled code where
there is no operator either. A function within a range is as good as a range: it says more closely what is done there.
"""
_M2 = int64[:, ::1]
_W = int64[::1]
_R2 = int64[:, ::1]


OPEN_ACTIVITIES = record("OPEN_ACTIVITIES", now=int64[::1], depth=int64[::1], opened=int64[:, :, ::1])
"""The activities that are open on each thread.

Attributes
----------
now, depth : ndarray of int64, shape (threads,), updated
    How far each thread is known, ns, and how many activities are open.
opened : ndarray of int64, shape (threads, DEPTH, 4), updated
    `OPEN`.
"""


@compiled_borrowing(boolean(_W, _W))
def _hides(activity, other):
    """Return whether of two open activities `activity` is what the thread does: it has the higher priority, or, of
    equal ones, is the inner (of blocking calls the outer) of the two: starts later, or then as well and ends earlier.
    """
    priority = activity[3]
    if priority != other[3]:
        return priority > other[3]
    blocking = priority == BLOCKING
    if activity[0] == other[0]:
        return activity[1] > other[1] if blocking else activity[1] < other[1]
    return not blocking and activity[0] > other[0]


@compiled_borrowing(int64(int64, OPEN_ACTIVITIES, int64, int64))
def _priority(row, threads, end, priority):
    """Return the priority of an activity that begins now on a thread: that of a range for a function within one."""
    if priority == FUNCTION:
        for k in range(threads.depth[row]):
            if threads.opened[row, k, 3] == PLAIN and threads.opened[row, k, 1] >= end:
                return PLAIN
    return priority


@compiled_borrowing(int64(int64, int64, OPEN_ACTIVITIES, _M2, int64))
def _advance(row, until, threads, segments, n):
    """Write the segments of a thread up to a moment; return how many segments there are.

    Of open activities the one with the highest priority counts; of equal ones the innermost (latest start, then
    earliest end), of blocking calls the outermost.
    """
    now = threads.now
    depth = threads.depth
    opened = threads.opened
    while now[row] < until:
        kept = 0
        for k in range(depth[row]):
            if opened[row, k, 1] > now[row]:
                for field in range(len(OPEN)):
                    opened[row, kept, field] = opened[row, k, field]
                kept += 1
        depth[row] = kept
        if kept == 0:
            now[row] = until
            break
        best = 0
        stop = opened[row, 0, 1]
        for k in range(1, kept):
            stop = min(stop, opened[row, k, 1])
            if _hides(opened[row, k], opened[row, best]):
                best = k
        stop = min(stop, until)
        segments[n, 0] = row
        segments[n, 1] = now[row]
        segments[n, 2] = stop
        segments[n, 3] = opened[row, best, 2]
        n += 1
        now[row] = stop
    return n


@compiled_borrowing(int64(I4, I8, I8, I8, OPEN_ACTIVITIES, _R2, _M2))
def take_activities(rows, begins, ends, codes, threads, activities, segments):
    """Take activities ordered by start; write the segments that are final and return how many.

    Parameters
    ----------
    rows, begins, ends, codes : arrays, shape (n,)
        Thread's row, ns, and the activity's code.
    threads : OPEN_ACTIVITIES
    activities : array of int64, shape (codes, 2)
        Priority, and whether it launches graphs.
    segments : array of int64, shape (rows, 4), output
        `SEGMENT`; room for twice the activities and all that are open.
    """
    n = 0
    for i in range(begins.size):
        row = int64(rows[i])
        if ends[i] <= begins[i]:
            continue
        n = _advance(row, begins[i], threads, segments, n)
        k = threads.depth[row]
        if k < threads.opened.shape[1]:
            threads.opened[row, k, 0] = begins[i]
            threads.opened[row, k, 1] = ends[i]
            threads.opened[row, k, 2] = codes[i]
            threads.opened[row, k, 3] = _priority(row, threads, ends[i], activities[codes[i], 0])
            threads.depth[row] = k + 1
    return n


@compiled_borrowing(int64(int64, OPEN_ACTIVITIES, _M2))
def close_segments(until, threads, segments):
    """Write the segments of all threads up to a moment; return how many; arrays as in `take_activities`."""
    n = 0
    for row in range(threads.now.size):
        n = _advance(row, until, threads, segments, n)
    return n


@compiled_borrowing(void(I8, I8, I4, _M2))
def remember_calls(calls, codes, threads, slots):
    """Keep the latest calls, by their numbers; a number below 0 is of no call."""
    mask = slots.shape[0] - 1
    for i in range(calls.size):
        call = calls[i]
        if call < 0:
            continue
        slot = slots[call & mask]
        slot[CALL] = call + 1
        slot[CODE] = codes[i]
        slot[THREAD] = threads[i]
        slot[USER] = 0

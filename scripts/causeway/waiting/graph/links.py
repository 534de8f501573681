"""What each node waited for: in one sweep over work and calls of a rank in the order of time.

Work waits for the work before it in its stream, for other work (an event), and for the call that made it: for its
return, or, where it started earlier, for that moment (of a call that waits for its own work, such as a blocking copy:
for its begin). It is bound by the one that was ready last. Where none explains a start, but other work of the rank
ended just before it, the start is taken to have waited for that work: exports without events lack such dependencies.
Else a kernel that starts during the last part of another stream's kernel is taken to have waited for that: it left no
room on the device.
"""

import numpy as np

from causeway.numeric.compiled import I4, I8, U1, UniTuple, compiled_borrowing, int32, int64, uint8, void
from causeway.waiting.graph.blocking_copies import DRAINED_NS
from causeway.waiting.graph.nodes import ALL_STREAMS, KERNEL, NO_SCOPE

NO_BOUND, BY_STREAM, BY_WORK, BY_CALL = range(4)
"""What bound the start of work: nothing known, its stream, work of another stream, its call."""
INFERRED_NS = 20_000
"""Longest time from the end of other work to a start that is taken to have waited for it: an event wait across streams
takes some microseconds (CUPTI's and rocprof's traces at hand show 1 to 8, of kernels behind copies on an H200 2 to 13).
"""
LAST_PART = 3
"""One in how many parts of a kernel is its last, in which all its blocks have begun and those that end leave room for
another kernel's: the last wave of a kernel of three waves."""
HAND_OVER_CALLS = 20
"""Calls of another thread, made while a thread made none, after which the thread is taken to have waited for the
other: PyTorch's backward pass runs on a thread of its own, and makes hundreds; a helper thread makes a few at a time.
"""
_W4 = int32[::1]
_W8 = int64[::1]
_W1 = uint8[::1]


@compiled_borrowing(int64(I8, int64, int64, I8, I8, I8, I4))
def next_node(at, n, m, start, call_start, call_end, returns):
    """Return the next node of a rank: work i as i, the begin of call j as n + j, its return as n + m + j; -1: no more.

    Parameters
    ----------
    at : array of int64, shape (6,)
        `Graph.cursors`: the next work, call and return, and where each ends.
    n, m : int
        All work and all calls.
    start : array of int64, shape (n,), ns
    call_start, call_end : arrays of int64, shape (m,), ns
    returns : array of int32
        Calls that wait, of each rank in the order of their ends.
    """
    best = np.iinfo(np.int64).max
    found = -1
    if at[2] < at[5]:
        c = int64(returns[at[2]])
        best = call_end[c]
        found = n + m + c
    if at[1] < at[4] and call_start[at[1]] < best:
        best = call_start[at[1]]
        found = n + at[1]
    if at[0] < at[3] and start[at[0]] < best:
        found = at[0]
    return found


@compiled_borrowing(void(int64[::1], int64, int64, int64))
def pass_node(at, node, n, m):
    """Go past a node that `next_node` gave."""
    if node >= n + m:
        at[2] += 1
    elif node >= n:
        at[1] += 1
    else:
        at[0] += 1


@compiled_borrowing(int64(int64, int64, int64, int64, I8))
def ended_by(moment, last, previous, absent, ends):
    """Return the later of a stream's last two pieces of work that has ended by a moment; `absent` if none has."""
    if last >= 0 and ends[last] <= moment:
        return last
    if previous >= 0 and ends[previous] <= moment:
        return previous
    return absent


@compiled_borrowing(int64(int64, int64, int64, int64, I8, int64[:, ::1], I8))
def latest_ended(scope, rank, moment, after, ends, recent, offsets):
    """Return the work within a scope that ended last, after `after` and by `moment`; -1 if none did."""
    first = scope if scope >= 0 else offsets[rank]
    stop = scope + 1 if scope >= 0 else offsets[rank + 1]
    best = -1
    for s in range(first, stop):
        found = ended_by(moment, recent[s, 0], recent[s, 1], -1, ends)
        if found >= 0 and ends[found] > after and (best < 0 or ends[found] > ends[best]):
            best = found
    return best


@compiled_borrowing(int64(int64, int64, I8, I8, U1, I4, I8, int64[:, ::1], I8))
def _kernel_in_the_way(node, rank, start, end, kind, stream, stream_device, recent, offsets):
    """Return the kernel of another stream of the device in whose last part a start lies; of several that which ends
    first; -1: none.
    """
    moment = start[node]
    best = int64(-1)
    for s in range(offsets[rank], offsets[rank + 1]):
        other = recent[s, 0]
        if other < 0 or s == stream[node] or stream_device[s] != stream_device[stream[node]] or kind[other] != KERNEL:
            continue
        left = end[other] - moment
        last = left > 0 and LAST_PART * left <= end[other] - start[other]
        if last and (best < 0 or end[other] < end[best]):
            best = other
    return best


@compiled_borrowing(int64(int64, I8, I4, U1, int64))
def seen_until(c, call_end, scope, launches, resolution):
    """Return until when work may end that a waiting call returned after, ns: its return, as exactly as it is known; of
    a call that carries out its own copy somewhat later, for the last of it leaves the driver's buffer after that.
    """
    return call_end[c] + max(resolution, DRAINED_NS if launches[c] and scope[c] >= 0 else 0)


@compiled_borrowing(int64(int64, int64, I8, I4, int64[:, ::1], I8, int64))
def _call_before(call, rank, call_end, threads, latest, thread_offsets, begin):
    """Return the call after which a thread went on: its own last one, or that of a thread it waited for."""
    thread = int64(threads[call])
    own = latest[thread, 0]
    if own >= 0 and latest[thread, 2] < HAND_OVER_CALLS:
        return own
    best = own
    for other in range(thread_offsets[rank], thread_offsets[rank + 1]):
        held = latest[other, 0]
        if held >= 0 and call_end[held] <= begin and (best < 0 or call_end[held] > call_end[best]):
            best = held
    return best


@compiled_borrowing(void(int64, int64, I4, int64[:, ::1], I8))
def _note_call(call, rank, threads, latest, thread_offsets):
    """Note that a thread of a rank makes a call."""
    for one in range(thread_offsets[rank], thread_offsets[rank + 1]):
        latest[one, 2] += 1
    latest[threads[call], 0] = call
    latest[threads[call], 2] = 0


@compiled_borrowing(UniTuple(int64, 2)(int64, int64, I8, I8, I4, I4, I8, I8, I4), forceinline=True)
def _recorded_bound(w, previous, start, end, call, other, call_start, call_end, scope):
    """Return when work was ready by what is recorded, ns, and what was ready last; the lowest number and `NO_BOUND`
    where nothing is.
    """
    ready = np.iinfo(np.int64).min
    how = NO_BOUND
    if previous >= 0:
        ready = end[previous]
        how = BY_STREAM
    if other[w] >= 0 and end[other[w]] > ready:
        ready = end[other[w]]
        how = BY_WORK
    made_by = call[w]
    if made_by >= 0:
        asked = call_end[made_by]
        if asked > start[w]:
            asked = start[w] if scope[made_by] == NO_SCOPE else call_start[made_by]
        if asked > ready:
            ready = asked
            how = BY_CALL
    return ready, how


@compiled_borrowing(
    int64(
        _W8, int64, I4, I8, I8, U1, I4, I4, I8, I8, I4, U1, I4, I4, I4, I8, I8, I8, int64, int64, int64[:, ::1], _W8,
        _W4, _W4, _W1, _W4, _W4,
    )
)  # fmt: skip
def link(
    at, most, returns, start, end, kind, stream, call, call_start, call_end, scope, launches, thread, stream_rank,
    thread_rank, stream_device, offsets, thread_offsets, start_up, resolution, recent, counts, before, other, bound,
    call_before, call_work,
):  # fmt: skip
    """Write what the next nodes of a rank waited for; return how many there were.

    Parameters
    ----------
    at : array of int64, shape (6,)
        Where the rank's nodes go on: see `next_node`; moved on.
    most : int
        Nodes that are taken at once.
    returns : array of int32
        See `next_node`.
    start, end : arrays of int64, shape (n,), ns
    kind : array of uint8, shape (n,)
    stream, call : arrays of int32, shape (n,)
        Of work; `call` is -1 where it is not known.
    call_start, call_end : arrays of int64, shape (m,), ns
    scope : array of int32, shape (m,)
    launches : array of uint8, shape (m,)
    thread : array of int32, shape (m,)
    stream_rank, thread_rank : arrays of int32
    stream_device : array of int64, shape (streams,)
    offsets, thread_offsets : arrays of int64, shape (ranks + 1,)
        Where the streams and the threads of each rank begin.
    start_up : int
        Usual start-up latency, ns.
    resolution : int, ns
        See `nodes.Graph`.
    recent : array of int64, shape (streams, 2), filled with -1
        Scratch: the last two pieces of work of each stream.
    counts : array of int64, shape (threads * 3,), filled with -1
        Scratch: last call of each thread, its calls, and calls of the rank since.
    before, other : arrays of int32, shape (n,), output
        Work before it in the stream; work of another stream (given for explicit waits, else -1).
    bound : array of uint8, shape (n,), output
    call_before, call_work : arrays of int32, shape (m,), output
        The call after which the thread went on; the work whose end a waiting call returned after; -1: none.
    """
    n = start.size
    m = call_start.size
    latest = counts.reshape(-1, 3)
    done = 0
    while done < most:
        node = next_node(at, n, m, start, call_start, call_end, returns)
        if node < 0:
            break
        pass_node(at, node, n, m)
        done += 1
        if node >= n + m:
            c = node - n - m
            rank = int64(thread_rank[thread[c]])
            moment = seen_until(c, call_end, scope, launches, resolution)
            call_work[c] = latest_ended(int64(scope[c]), rank, moment, call_start[c], end, recent, offsets)
            continue
        if node >= n:
            c = node - n
            rank = int64(thread_rank[thread[c]])
            call_work[c] = -1
            call_before[c] = _call_before(c, rank, call_end, thread, latest, thread_offsets, call_start[c])
            _note_call(c, rank, thread, latest, thread_offsets)
            continue
        s = int64(stream[node])
        rank = int64(stream_rank[s])
        previous = recent[s, 0]
        before[node] = previous
        ready, how = _recorded_bound(node, previous, start, end, call, other, call_start, call_end, scope)
        if other[node] < 0 and (how == NO_BOUND or start[node] - ready > 2 * start_up):
            after = max(ready, start[node] - INFERRED_NS) if how != NO_BOUND or call[node] >= 0 else ready
            found = latest_ended(ALL_STREAMS, rank, start[node] + resolution, after, end, recent, offsets)
            if found < 0 and how != NO_BOUND and kind[node] == KERNEL:
                found = _kernel_in_the_way(node, rank, start, end, kind, stream, stream_device, recent, offsets)
            if found >= 0:
                other[node] = found
                how = BY_WORK
        bound[node] = how
        recent[s, 1] = previous
        recent[s, 0] = node
    return done

"""What each node waited for: in one sweep over work and calls of a rank in the order of time.

Work waits for the work before it in its stream, for other work (an event), and for the call that made it: for its
return, or, where it started earlier, for that moment (of a call that waits for its own work, such as a blocking copy:
for its begin). It is bound by the one that was ready last. Where none explains a start, but other work of the rank
ended just before it, the start is taken to have waited for that work: exports without events lack such dependencies.
Else a kernel that starts during the last part of another stream's kernel is taken to have waited for that: it left no
room on the device.
"""

import numpy as np

from causeway.numeric.compiled import I4, I8, UniTuple, compiled_borrowing, int64, record, void
from causeway.waiting.graph.blocking_copies import DRAINED_NS
from causeway.waiting.graph.nodes import ALL_STREAMS, BOUNDS, KERNEL, NO_SCOPE, NODES

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


LINKED_STREAMS = record("LINKED_STREAMS", rank=I4, device=I8, offsets=I8, recent=int64[:, ::1])
"""Streams while what bound their work is found.

Attributes
----------
rank : ndarray of int32, shape (streams,)
device : ndarray of int64, shape (streams,)
    A number for each rank and device.
offsets : ndarray of int64, shape (ranks + 1,)
    Where the streams of each rank begin.
recent : ndarray of int64, shape (streams, 2), filled with -1
    Scratch: the last two pieces of work of each stream.
"""


LINKED_THREADS = record("LINKED_THREADS", rank=I4, offsets=I8, latest=int64[:, ::1])
"""Threads while what bound their calls is found.

Attributes
----------
rank : ndarray of int32, shape (threads,)
offsets : ndarray of int64, shape (ranks + 1,)
    Where the threads of each rank begin.
latest : ndarray of int64, shape (threads, 3), filled with -1
    Scratch: last call of each thread, its calls, and calls of the rank since.
"""


@compiled_borrowing(int64(I8, int64, int64, I8, I8, I8, I4))
def next_node(cursor, n, m, start, call_start, call_end, returns):
    """Return the next node of a rank: work i as i, the begin of call j as n + j, its return as n + m + j; -1: no more.

    Parameters
    ----------
    cursor : array of int64, shape (6,)
        `Graph.cursors`: the next work, call and return, and where each ends.
    n, m : int
        All work and all calls.
    start : array of int64, shape (n,), ns
    call_start, call_end : arrays of int64, shape (m,), ns
    returns : array of int32
        Calls that wait, of each rank in the order of their ends.
    """
    best = np.iinfo(np.int64).max
    node = -1
    if cursor[2] < cursor[5]:
        c = int64(returns[cursor[2]])
        best = call_end[c]
        node = n + m + c
    if cursor[1] < cursor[4] and call_start[cursor[1]] < best:
        best = call_start[cursor[1]]
        node = n + cursor[1]
    if cursor[0] < cursor[3] and start[cursor[0]] < best:
        node = cursor[0]
    return node


@compiled_borrowing(void(int64[::1], int64, int64, int64))
def pass_node(cursor, node, n, m):
    """Go past a node that `next_node` gave."""
    if node >= n + m:
        cursor[2] += 1
    elif node >= n:
        cursor[1] += 1
    else:
        cursor[0] += 1


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
        work = ended_by(moment, recent[s, 0], recent[s, 1], -1, ends)
        if work >= 0 and ends[work] > after and (best < 0 or ends[work] > ends[best]):
            best = work
    return best


@compiled_borrowing(int64(int64, int64, NODES, LINKED_STREAMS))
def _kernel_in_the_way(node, rank, nodes, streams):
    """Return the kernel of another stream of the device in whose last part a start lies; of several that which ends
    first; -1: none.
    """
    moment = nodes.start[node]
    stream = nodes.stream[node]
    best = int64(-1)
    for s in range(streams.offsets[rank], streams.offsets[rank + 1]):
        other = streams.recent[s, 0]
        if other < 0 or s == stream or streams.device[s] != streams.device[stream] or nodes.kind[other] != KERNEL:
            continue
        end = nodes.end[other]
        left = end - moment
        last = left > 0 and LAST_PART * left <= end - nodes.start[other]
        if last and (best < 0 or end < nodes.end[best]):
            best = other
    return best


@compiled_borrowing(int64(int64, NODES))
def seen_until(c, nodes):
    """Return until when work may end that a waiting call returned after, ns: its return, as exactly as it is known; of
    a call that carries out its own copy somewhat later, for the last of it leaves the driver's buffer after that.
    """
    drained = DRAINED_NS if nodes.launches[c] and nodes.scope[c] >= 0 else 0
    return nodes.call_end[c] + max(nodes.resolution, drained)


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
    for thread in range(thread_offsets[rank], thread_offsets[rank + 1]):
        latest[thread, 2] += 1
    latest[threads[call], 0] = call
    latest[threads[call], 2] = 0


@compiled_borrowing(UniTuple(int64, 2)(int64, int64, int64, NODES), forceinline=True)
def _recorded_bound(w, previous, other, nodes):
    """Return when work was ready by what is recorded, ns, and what was ready last; the lowest number and `NO_BOUND`
    where nothing is. `previous` and `other` are the work that it waited for in its stream and in another; -1: none.
    """
    ready = np.iinfo(np.int64).min
    how = NO_BOUND
    if previous >= 0:
        ready = nodes.end[previous]
        how = BY_STREAM
    if other >= 0 and nodes.end[other] > ready:
        ready = nodes.end[other]
        how = BY_WORK
    made_by = nodes.call[w]
    if made_by >= 0:
        asked = nodes.call_end[made_by]
        if asked > nodes.start[w]:
            asked = nodes.start[w] if nodes.scope[made_by] == NO_SCOPE else nodes.call_start[made_by]
        if asked > ready:
            ready = asked
            how = BY_CALL
    return ready, how


@compiled_borrowing(int64(int64[::1], int64, NODES, LINKED_STREAMS, LINKED_THREADS, int64, BOUNDS))
def link(cursor, most, nodes, streams, threads, start_up, bounds):
    """Write what the next nodes of a rank waited for; return how many there were.

    Parameters
    ----------
    cursor : array of int64, shape (6,)
        Where the rank's nodes go on: see `next_node`; moved on.
    most : int
        Nodes that are taken at once.
    nodes, streams, threads : NODES, LINKED_STREAMS, LINKED_THREADS
    start_up : int
        Usual start-up latency, ns.
    bounds : BOUNDS
    """
    n = nodes.start.size
    m = nodes.call_start.size
    recent = streams.recent
    done = 0
    while done < most:
        node = next_node(cursor, n, m, nodes.start, nodes.call_start, nodes.call_end, nodes.returns)
        if node < 0:
            break
        pass_node(cursor, node, n, m)
        done += 1
        if node >= n + m:
            c = node - n - m
            rank = int64(threads.rank[nodes.thread[c]])
            moment = seen_until(c, nodes)
            after = nodes.call_start[c]
            bounds.call_work[c] = latest_ended(
                int64(nodes.scope[c]), rank, moment, after, nodes.end, recent, streams.offsets
            )
            continue
        if node >= n:
            c = node - n
            rank = int64(threads.rank[nodes.thread[c]])
            bounds.call_work[c] = -1
            bounds.call_before[c] = _call_before(
                c, rank, nodes.call_end, nodes.thread, threads.latest, threads.offsets, nodes.call_start[c]
            )
            _note_call(c, rank, nodes.thread, threads.latest, threads.offsets)
            continue
        s = int64(nodes.stream[node])
        rank = int64(streams.rank[s])
        previous = recent[s, 0]
        bounds.before[node] = previous
        begin = nodes.start[node]
        ready, how = _recorded_bound(node, previous, int64(bounds.other[node]), nodes)
        if bounds.other[node] < 0 and (how == NO_BOUND or begin - ready > 2 * start_up):
            after = max(ready, begin - INFERRED_NS) if how != NO_BOUND or nodes.call[node] >= 0 else ready
            other = latest_ended(ALL_STREAMS, rank, begin + nodes.resolution, after, nodes.end, recent, streams.offsets)
            if other < 0 and how != NO_BOUND and nodes.kind[node] == KERNEL:
                other = _kernel_in_the_way(node, rank, nodes, streams)
            if other >= 0:
                bounds.other[node] = other
                how = BY_WORK
        bounds.bound[node] = how
        recent[s, 1] = previous
        recent[s, 0] = node
    return done

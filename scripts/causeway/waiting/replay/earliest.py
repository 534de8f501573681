"""The earliest start of every node under its dependencies, in one sweep over the nodes in the order of time.

What was measured between a node and what bound it is kept; behind what did not bind it, the usual latency is kept, at
most what was measured. So without a change every node runs exactly when it ran.
"""

import numpy as np
from numba import int32, int64, uint8, void

from causeway.numeric.compiled import I4, I8, U1, compiled
from causeway.waiting.graph.links import BY_CALL, BY_STREAM, BY_WORK, NO_BOUND, ended_by
from causeway.waiting.graph.nodes import NO_SCOPE

_W8 = int64[::1]
_W4 = int32[::1]
_W1 = uint8[::1]


@compiled(
    void(
        I8, I8, I8, I4, I4, I4, U1, I4, I4, I8, I8, I4, I4, I4, I4, I4, I8, I4, int64, int64, int64, I8, I8, I8, I8,
        int64[:, ::1], int64[:, ::1], _W8, _W8, _W1, _W8, _W8, _W4, _W8,
    )
)  # fmt: skip
def earliest(
    order, start, end, stream, call, member, bound, before, other, call_start, call_end, scope, thread, call_before,
    call_work, thread_rank, offsets, members, start_up, between, returning, work_ns, call_ns, gap_ns, shift,
    recent, joint, new_start, new_end, new_bound, new_call_start, new_call_end, new_call_work, arrival,
):  # fmt: skip
    """Write when each node runs.

    Parameters
    ----------
    order, start, end, stream, call, member, bound, before, other, call_start, call_end, scope, thread : arrays
        As in `links.link` and `nodes.Work`.
    call_before, call_work : arrays of int32, shape (m,)
    thread_rank : array of int32
    offsets : array of int64, shape (ranks + 1,)
        Where the streams of each rank begin.
    members : array of int32, shape (collectives,)
    start_up, between, returning : int, ns
        Usual latencies: from a call to the start of work, between work of a stream, from the end of work to the return
        of a call that waits for it.
    work_ns, call_ns : arrays of int64, shapes (n,) and (m,), ns
        How long each lasts; of matched collectives, how long after the last rank has arrived.
    gap_ns : array of int64, shape (m,), ns
        Host code before each call.
    shift : array of int64, shape (m,), ns
        Added to what was measured between a call and the work it makes: negative for a launch without latency.
    recent : array of int64, shape (streams, 2), filled with -1
        Scratch: the last two pieces of work of each stream.
    joint : array of int64, shape (collectives, 2), filled with -1 and 0
        Scratch: the latest work of each collective, and how many have arrived.
    new_start, new_end, new_bound, new_call_start, new_call_end, new_call_work : arrays, output
        The schedule.
    arrival : array of int64, shape (collectives,), filled with the lowest number, output
        When the last rank arrives at each collective.
    """
    n = start.size
    m = call_start.size
    chain = np.full(n, -1, np.int64)
    lowest = np.iinfo(np.int64).min
    for node in order:
        if node >= n + m:
            c = node - n - m
            s = int64(scope[c])
            rank = thread_rank[thread[c]]
            held = call_end[c] - call_start[c]
            waited = int64(call_work[c])
            finish = new_call_start[c] + (min(held, returning) if waited >= 0 else call_ns[c])
            new_call_work[c] = -1
            first = s if s >= 0 else offsets[rank]
            stop = s + 1 if s >= 0 else offsets[rank + 1]
            for one in range(first, stop):
                w = ended_by(call_end[c], recent[one, 0], recent[one, 1], -1, end)
                if w < 0:
                    continue
                tail = call_end[c] - end[w]
                if w != waited:
                    tail = min(tail, returning)
                ready = new_end[w] + tail
                if new_end[w] > new_call_start[c] and (ready > finish or (ready == finish and w == waited)):
                    finish = ready
                    new_call_work[c] = w
            new_call_end[c] = finish
            continue
        if node >= n:
            c = node - n
            earlier = call_before[c]
            new_call_start[c] = call_start[c] if earlier < 0 else new_call_end[earlier] + gap_ns[c]
            new_call_end[c] = new_call_start[c] + call_ns[c]
            new_call_work[c] = -1
            continue
        w = node
        best = lowest
        how = NO_BOUND
        p = int64(before[w])
        if p >= 0:
            gap = start[w] - end[p]
            best = new_end[p] + (gap if bound[w] == BY_STREAM else min(gap, between))
            how = BY_STREAM
        p = int64(other[w])
        if p >= 0:
            gap = start[w] - end[p]
            ready = new_end[p] + (gap if bound[w] == BY_WORK else min(gap, between))
            if ready > best or (ready == best and bound[w] == BY_WORK):
                best = ready
                how = BY_WORK
        c = int64(call[w])
        if c >= 0:
            if call_end[c] <= start[w]:
                gap = start[w] - call_end[c]
                gap = gap if bound[w] == BY_CALL else min(gap, start_up)
                ready = new_call_end[c] + max(gap + shift[c], 0)
            else:
                gap = start[w] - call_start[c]
                if scope[c] == NO_SCOPE:
                    gap = min(gap, call_ns[c])
                elif bound[w] != BY_CALL:
                    gap = min(gap, start_up)
                ready = new_call_start[c] + gap
            if ready > best or (ready == best and bound[w] == BY_CALL):
                best = ready
                how = BY_CALL
        if how == NO_BOUND:
            best = start[w]
        new_start[w] = best
        new_bound[w] = how
        new_end[w] = best + work_ns[w]
        g = int64(member[w])
        if g >= 0:
            new_end[w] = best + end[w] - start[w]
            arrival[g] = max(arrival[g], best)
            chain[w] = joint[g, 0]
            joint[g, 0] = w
            joint[g, 1] += 1
            if joint[g, 1] == members[g]:
                v = w
                while v >= 0:
                    new_end[v] = max(new_start[v], arrival[g] + work_ns[v])
                    v = chain[v]
        s = int64(stream[w])
        recent[s, 1] = recent[s, 0]
        recent[s, 0] = w

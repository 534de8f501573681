"""The earliest start of every node under its dependencies, in a sweep over the nodes of each rank in the order of time.

Ranks depend on each other through collectives alone: before the last rank of a collective arrives, the others are
brought to that moment.

What was measured between a node and what bound it is kept; behind what did not bind it, the usual latency is kept, at
most what was measured. So without a change every node runs exactly when it ran.
"""

import numpy as np
from numba import int32, int64, uint8, void

from causeway.numeric.compiled import I4, I8, U1, compiled
from causeway.waiting.graph.links import BY_CALL, BY_STREAM, BY_WORK, NO_BOUND, ended_by, next_node, pass_node
from causeway.waiting.graph.nodes import NO_SCOPE

_W8 = int64[::1]
_W4 = int32[::1]
_W1 = uint8[::1]


@compiled(
    int64(
        int64[:, ::1], int64, int64, int64, int64, int64, I4, I8, I8, I4, I4, I4, U1, I4, I4, I8, I8, I4, I4, I4, I4,
        I8, I4, int64, int64, int64, I8, I8, I8, int64[:, ::1], I8, _W8, _W8, _W8, _W8, _W1, _W8, _W8, _W4, _W8,
    )
)  # fmt: skip
def advance(
    cursors, rank, latest, before_work, last, most, returns, start, end, stream, call, member, bound, before, other,
    call_start, call_end, scope, thread, call_before, call_work, offsets, members, start_up, between, returning,
    work_ns, call_ns, gap_ns, recent, slots, arrived, joint, new_start, new_end, new_bound, new_call_start,
    new_call_end, new_call_work, arrival,
):  # fmt: skip
    """Write when the next nodes of a rank run; return how many there were.

    Parameters
    ----------
    cursors : array of int64, shape (ranks, 6)
        `Graph.cursors`; moved on.
    rank : int
    latest, before_work : int, ns
        Calls and returns are taken up to `latest`, work before `before_work`.
    last : int
        The work after which to stop; -1: none, but for the two moments.
    most : int
        Nodes that are taken at once.
    returns, start, end, stream, call, member, bound, before, other, call_start, call_end, scope, thread : arrays
        As in `links.link` and `nodes.Work`.
    call_before, call_work : arrays of int32, shape (m,)
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
    recent : array of int64, shape (streams, 2), filled with -1
        Scratch: the last two pieces of work of each stream.
    slots : array of int64, shape (collectives + 1,)
        Where the work of each collective is in `joint`.
    arrived : array of int64, shape (collectives,), zeros
        Scratch: how many ranks have arrived.
    joint : array of int64, shape (work of collectives,)
        Scratch: the work that has arrived.
    new_start, new_end, new_bound, new_call_start, new_call_end, new_call_work : arrays, output
        The schedule.
    arrival : array of int64, shape (collectives,), filled with the lowest number, output
        When the last rank arrives at each collective.
    """
    n = start.size
    m = call_start.size
    at = cursors[rank]
    done = 0
    while done < most:
        node = next_node(at, n, m, start, call_start, call_end, returns)
        if node < 0:
            break
        if last < 0:
            if node >= n + m:
                beyond = call_end[node - n - m] > latest
            elif node >= n:
                beyond = call_start[node - n] > latest
            else:
                beyond = start[node] >= before_work
            if beyond:
                break
        pass_node(at, node, n, m)
        done += 1
        if node >= n + m:
            c = node - n - m
            s = int64(scope[c])
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
        best = np.iinfo(np.int64).min
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
                ready = new_call_end[c] + gap
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
            joint[slots[g] + arrived[g]] = w
            arrived[g] += 1
            if arrived[g] == members[g]:
                for i in range(slots[g], slots[g + 1]):
                    v = joint[i]
                    new_end[v] = max(new_start[v], arrival[g] + work_ns[v])
        s = int64(stream[w])
        recent[s, 1] = recent[s, 0]
        recent[s, 0] = w
        if w == last:
            break
    return done


@compiled(
    void(
        _W8, I8, I8, I8, I8, int64[:, ::1], int64, I4, I8, I8, I4, I4, I4, U1, I4, I4, I8, I8, I4, I4, I4, I4, I8, I4,
        int64, int64, int64, I8, I8, I8, int64[:, ::1], I8, _W8, _W8, _W8, _W8, _W1, _W8, _W8, _W4, _W8,
    )
)  # fmt: skip
def advance_all(
    state, meeting, meeting_work, meeting_rank, rank_of, cursors, most, returns, start, end, stream, call, member,
    bound, before, other, call_start, call_end, scope, thread, call_before, call_work, offsets, members, start_up,
    between, returning, work_ns, call_ns, gap_ns, recent, slots, arrived, joint, new_start, new_end, new_bound,
    new_call_start, new_call_end, new_call_work, arrival,
):  # fmt: skip
    """Write when the next nodes of all ranks run, from one collective to the next, then of each rank to its end.

    `state` (int64, shape (3,), moved on) has the next of the collectives, the next rank of those that go on to their
    ends, and how many nodes were taken, about `most`. `meeting`, `meeting_work` and `meeting_rank` (int64, shape (k,))
    are the collectives of several ranks in the order of their last arrivals, by start, then rank; their last work, and
    its rank. `rank_of` (int64, shape (work of collectives,)) is the rank of each work of a collective, as `slots` has
    them. The others are those of `advance`.
    """
    highest = np.iinfo(np.int64).max
    state[2] = 0
    while state[0] < meeting.size:
        last = meeting_work[state[0]]
        rank = meeting_rank[state[0]]
        g = meeting[state[0]]
        moment = start[last]
        for i in range(slots[g], slots[g + 1] + 1):
            own = i == slots[g + 1]
            one = rank if own else rank_of[i]
            if one == rank and not own:
                continue
            until = moment + 1 if one < rank else moment
            stop_at = last if own else -1
            state[2] += advance(
                cursors, one, moment, until, stop_at, most - state[2], returns, start, end, stream, call,
                member, bound, before, other, call_start, call_end, scope, thread, call_before, call_work, offsets,
                members, start_up, between, returning, work_ns, call_ns, gap_ns, recent, slots, arrived, joint,
                new_start, new_end, new_bound, new_call_start, new_call_end, new_call_work, arrival,
            )  # fmt: skip
            if state[2] >= most:
                break
        if state[2] >= most and cursors[rank, 0] <= last:
            return
        state[0] += 1
        if state[2] >= most:
            return
    while state[1] < len(cursors):
        state[2] += advance(
            cursors, state[1], highest, highest, -1, most - state[2], returns, start, end, stream, call, member, bound,
            before, other, call_start, call_end, scope, thread, call_before, call_work, offsets, members, start_up,
            between, returning, work_ns, call_ns, gap_ns, recent, slots, arrived, joint, new_start, new_end, new_bound,
            new_call_start, new_call_end, new_call_work, arrival,
        )  # fmt: skip
        if state[2] >= most:
            return
        state[1] += 1

"""The earliest start of every node under its dependencies, in a sweep over the nodes of each rank in the order of time.

Ranks depend on each other through collectives alone: before the last rank of a collective arrives, the others are
brought to that moment.

What was measured between a node and what bound it is kept; behind what did not bind it, the usual latency is kept, at
most what was measured. So without a change every node runs exactly when it ran.
"""

import numpy as np

from causeway.numeric.compiled import I4, I8, U1, UniTuple, boolean, compiled_borrowing, int32, int64, uint8, void
from causeway.waiting.graph.links import (
    BY_CALL,
    BY_STREAM,
    BY_WORK,
    NO_BOUND,
    ended_by,
    next_node,
    pass_node,
    seen_until,
)
from causeway.waiting.graph.nodes import NO_SCOPE

_W8 = int64[::1]
_W4 = int32[::1]
_W1 = uint8[::1]


@compiled_borrowing(int64(int64, boolean, int64))
def _kept(measured, binding, usual):
    """Return how much of a measured latency is kept: all of it where it bound, else at most the usual one; ns."""
    return measured if binding else min(measured, usual)


@compiled_borrowing(boolean(int64, int64, int64, int64, int64, I8, I8, I8))
def _is_beyond(node, n, m, latest, before_work, start, call_start, call_end):
    """Return whether a node, numbered as by `next_node`, lies beyond the moments up to which nodes are taken."""
    if node >= n + m:
        return call_end[node - n - m] > latest
    if node >= n:
        return call_start[node - n] > latest
    return start[node] >= before_work


@compiled_borrowing(void(int64, int64, I8, I8, I8, I4, U1, I4, I8, int64, int64, I8, int64[:, ::1], _W8, _W8, _W8, _W4))
def _time_return(
    c, rank, end, call_start, call_end, scope, launches, call_work, offsets, returning, resolution, call_ns, recent,
    new_end, new_call_start, new_call_end, new_call_work,
):  # fmt: skip
    """Write when a call returns that waits, and for which work: that of its scope which it sees end last.

    Without work to wait for it takes its own time; of that, where it did wait when measured, at most `returning`.
    """
    s = int64(scope[c])
    first = s if s >= 0 else offsets[rank]
    stop = s + 1 if s >= 0 else offsets[rank + 1]
    waited = int64(call_work[c])
    own = call_ns[c] if waited < 0 else min(call_end[c] - call_start[c], returning)
    finish = new_call_start[c] + own
    found = int64(-1)
    moment = seen_until(c, call_end, scope, launches, resolution)
    for one in range(first, stop):
        w = ended_by(moment, recent[one, 0], recent[one, 1], -1, end)
        if w < 0 or new_end[w] <= new_call_start[c]:
            continue
        seen = new_end[w] + _kept(call_end[c] - end[w], w == waited, returning)
        if seen > finish or (seen == finish and w == waited):
            finish = seen
            found = w
    new_call_end[c] = finish
    new_call_work[c] = found


@compiled_borrowing(int64(int64, int64, int64, I8, I8, I4, int64, I8, _W8, _W8))
def _ready_after_call(c, begin, bound, call_start, call_end, scope, start_up, call_ns, new_call_start, new_call_end):
    """Return when work that began at `begin` can start after its call: after its return, or, where the work began
    earlier, after the call's begin; ns.
    """
    if call_end[c] <= begin:
        return new_call_end[c] + _kept(begin - call_end[c], bound == BY_CALL, start_up)
    gap = begin - call_start[c]
    if scope[c] == NO_SCOPE:
        return new_call_start[c] + min(gap, call_ns[c])
    return new_call_start[c] + _kept(gap, bound == BY_CALL, start_up)


@compiled_borrowing(
    UniTuple(int64, 2)(
        int64, I8, I8, I4, U1, I4, I4, I8, I8, I4, int64, int64, I8, _W8, _W8, _W8
    )
)  # fmt: skip
def _earliest_start(
    w, start, end, call, bound, before, other, call_start, call_end, scope, start_up, between, call_ns, new_end,
    new_call_start, new_call_end,
):  # fmt: skip
    """Return when work starts, ns, and what bound it: of those that are ready last, what bound it when measured, else
    the first of stream, other work and call.
    """
    best = np.iinfo(np.int64).min
    how = NO_BOUND
    p = int64(before[w])
    if p >= 0:
        best = new_end[p] + _kept(start[w] - end[p], bound[w] == BY_STREAM, between)
        how = BY_STREAM
    p = int64(other[w])
    if p >= 0:
        ready = new_end[p] + _kept(start[w] - end[p], bound[w] == BY_WORK, between)
        if ready > best or (ready == best and bound[w] == BY_WORK):
            best = ready
            how = BY_WORK
    c = int64(call[w])
    if c >= 0:
        ready = _ready_after_call(
            c, start[w], bound[w], call_start, call_end, scope, start_up, call_ns, new_call_start, new_call_end
        )
        if ready > best or (ready == best and bound[w] == BY_CALL):
            best = ready
            how = BY_CALL
    if how == NO_BOUND:
        best = start[w]
    return best, how


@compiled_borrowing(void(int64, int64, I4, I8, I8, I8, I8, _W8, _W8, _W8, _W8, _W8))
def _arrive(w, g, members, start, end, work_ns, slots, arrived, joint, new_start, new_end, arrival):
    """Write when work of a collective ends: once the last rank has arrived, that of all ranks, each `work_ns` after the
    last arrival; until then as long after its start as measured.
    """
    new_end[w] = new_start[w] + end[w] - start[w]
    arrival[g] = max(arrival[g], new_start[w])
    joint[slots[g] + arrived[g]] = w
    arrived[g] += 1
    if arrived[g] == members[g]:
        for i in range(slots[g], slots[g + 1]):
            v = joint[i]
            new_end[v] = max(new_start[v], arrival[g] + work_ns[v])


@compiled_borrowing(
    int64(
        int64[:, ::1], int64, int64, int64, int64, int64, I4, I8, I8, I4, I4, I4, U1, I4, I4, I8, I8, I4, U1, I4, I4,
        I4, I8, I4, int64, int64, int64, int64, I8, I8, I8, int64[:, ::1], I8, _W8, _W8, _W8, _W8, _W1, _W8, _W8, _W4,
        _W8,
    )
)  # fmt: skip
def advance(
    cursors, rank, latest, before_work, last, most, returns, start, end, stream, call, member, bound, before, other,
    call_start, call_end, scope, launches, thread, call_before, call_work, offsets, members, start_up, between,
    returning, resolution, work_ns, call_ns, gap_ns, recent, slots, arrived, joint, new_start, new_end, new_bound,
    new_call_start, new_call_end, new_call_work, arrival,
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
    returns, start, end, stream, call, member, bound, before, other, call_start, call_end : arrays
        As in `links.link` and `nodes.Work`.
    scope, launches, thread : arrays
        As in `links.link`.
    call_before, call_work : arrays of int32, shape (m,)
    offsets : array of int64, shape (ranks + 1,)
        Where the streams of each rank begin.
    members : array of int32, shape (collectives,)
    start_up, between, returning : int, ns
        Usual latencies: from a call to the start of work, between work of a stream, from the end of work to the return
        of a call that waits for it.
    resolution : int, ns
        See `nodes.Graph`.
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
        if node < 0 or (last < 0 and _is_beyond(node, n, m, latest, before_work, start, call_start, call_end)):
            break
        pass_node(at, node, n, m)
        done += 1
        if node >= n + m:
            _time_return(
                node - n - m, rank, end, call_start, call_end, scope, launches, call_work, offsets, returning,
                resolution, call_ns, recent, new_end, new_call_start, new_call_end, new_call_work,
            )  # fmt: skip
        elif node >= n:
            c = node - n
            earlier = call_before[c]
            new_call_start[c] = call_start[c] if earlier < 0 else new_call_end[earlier] + gap_ns[c]
            new_call_end[c] = new_call_start[c] + call_ns[c]
            new_call_work[c] = -1
        else:
            new_start[node], new_bound[node] = _earliest_start(
                node, start, end, call, bound, before, other, call_start, call_end, scope, start_up, between, call_ns,
                new_end, new_call_start, new_call_end,
            )  # fmt: skip
            new_end[node] = new_start[node] + work_ns[node]
            g = int64(member[node])
            if g >= 0:
                _arrive(node, g, members, start, end, work_ns, slots, arrived, joint, new_start, new_end, arrival)
            s = int64(stream[node])
            recent[s, 1] = recent[s, 0]
            recent[s, 0] = node
            if node == last:
                break
    return done


@compiled_borrowing(
    void(
        _W8, I8, I8, I8, I8, int64[:, ::1], int64, I4, I8, I8, I4, I4, I4, U1, I4, I4, I8, I8, I4, U1, I4, I4, I4, I8,
        I4, int64, int64, int64, int64, I8, I8, I8, int64[:, ::1], I8, _W8, _W8, _W8, _W8, _W1, _W8, _W8, _W4, _W8,
    )
)  # fmt: skip
def advance_all(
    state, meeting, meeting_work, meeting_rank, rank_of, cursors, most, returns, start, end, stream, call, member,
    bound, before, other, call_start, call_end, scope, launches, thread, call_before, call_work, offsets, members,
    start_up, between, returning, resolution, work_ns, call_ns, gap_ns, recent, slots, arrived, joint, new_start,
    new_end, new_bound, new_call_start, new_call_end, new_call_work, arrival,
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
                member, bound, before, other, call_start, call_end, scope, launches, thread, call_before, call_work,
                offsets, members, start_up, between, returning, resolution, work_ns, call_ns, gap_ns, recent, slots,
                arrived, joint, new_start, new_end, new_bound, new_call_start, new_call_end, new_call_work, arrival,
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
            before, other, call_start, call_end, scope, launches, thread, call_before, call_work, offsets, members,
            start_up, between, returning, resolution, work_ns, call_ns, gap_ns, recent, slots, arrived, joint,
            new_start, new_end, new_bound, new_call_start, new_call_end, new_call_work, arrival,
        )  # fmt: skip
        if state[2] >= most:
            return
        state[1] += 1

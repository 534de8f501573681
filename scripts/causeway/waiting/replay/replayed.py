"""A graph replayed with other durations: the earliest start of every node under its dependencies, in a sweep over the
nodes of each rank in the order of time.

Ranks depend on each other through collectives alone: before the last rank of a collective arrives, the others are
brought to that moment.

What was measured between a node and what bound it is kept; behind what did not bind it, the usual latency is kept, at
most what was measured. So without a change every node runs exactly when it ran.
"""

from dataclasses import dataclass

import numpy as np

from causeway.numeric.compiled import I4, I8, UniTuple, boolean, compiled_borrowing, int32, int64, record, uint8, void
from causeway.waiting.graph.link_ranks import LEAST_STARTS, offsets_of
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
from causeway.waiting.graph.nodes import BOUNDS, NO_SCOPE, NODES, Graph, Links, bounds_of, nodes_of
from causeway.waiting.graph.scratch import WINDOW
from causeway.waiting.path.critical_path import Schedule, arrivals

DEFAULT_RETURN_NS = 3_000
"""Time of a synchronising call that need not wait, where fewer than `LEAST_STARTS` show it: usual for CUDA and HIP."""


@dataclass(frozen=True, kw_only=True)
class Durations:
    """How long everything lasts; `dataclasses.replace` changes some.

    Attributes
    ----------
    work : ndarray of int64, shape (n,), ns
        Of matched collectives: after the last rank has arrived, which may be negative where clocks disagree.
    call, gap : ndarray of int64, shape (m,), ns
        Of calls, and of host code before them.
    """

    work: np.ndarray
    call: np.ndarray
    gap: np.ndarray


def durations_of(graph: Graph, links: Links) -> Durations:
    """Return the durations that were measured."""
    work = graph.work
    calls = graph.calls
    scratch = graph.scratch
    last_arrival = arrivals(graph)
    own = scratch.array(work.start.size, np.int64)
    for part in scratch.windows(own.size):
        member = work.member[part]
        begin = work.start[part]
        if last_arrival.size:
            begin = np.where(member >= 0, last_arrival[member], begin)
        own[part] = work.end[part] - begin
    call, gap = (scratch.array(calls.start.size, np.int64) for _ in range(2))
    for part in scratch.windows(gap.size):
        earlier = links.call_before[part]
        call[part] = calls.end[part] - calls.start[part]
        gap[part] = np.where(earlier >= 0, calls.start[part] - calls.end[np.maximum(earlier, 0)], 0)
    return Durations(work=own, call=call, gap=gap)


def returning_ns(graph: Graph, links: Links) -> int:
    """Return the usual time of a call that waits for nothing that still runs, ns."""
    calls = graph.calls
    parts = [np.zeros(0, np.int64)]
    for part in graph.scratch.windows(calls.start.size):
        free = (calls.scope[part] != NO_SCOPE) & (links.call_work[part] < 0)
        parts.append(calls.end[part][free] - calls.start[part][free])
    values = np.sort(np.concatenate(parts))
    return int(values[(values.size - 1) // 2]) if values.size >= LEAST_STARTS else DEFAULT_RETURN_NS


def replayed(graph: Graph, links: Links, durations: Durations) -> Schedule:
    """Return when everything runs with these durations; with `durations_of` exactly when it ran."""
    n = graph.work.start.size
    m = graph.calls.start.size
    array = graph.scratch.array
    schedule = Schedule(
        start=array(n, np.int64), end=array(n, np.int64), bound=array(n, np.uint8),
        call_start=array(m, np.int64), call_end=array(m, np.int64), call_work=array(m, np.int32),
        last_arrival=np.full(graph.members.size, np.iinfo(np.int64).min),
    )  # fmt: skip
    slots = np.cumsum([0, *graph.members.tolist()])
    rank_of, collective, last_work, last_rank = _meetings(graph, slots)
    nodes = nodes_of(graph)
    bounds = bounds_of(links)
    lengths = LENGTHS.of(
        start_up=links.start_up, between=links.between, returning=returning_ns(graph, links), work_ns=durations.work,
        call_ns=durations.call, gap_ns=durations.gap,
    )  # fmt: skip
    ranks = RANK_SCRATCH.of(
        cursors=graph.cursors(), offsets=offsets_of(graph.stream_rank, len(graph.ranks)),
        recent=np.full((graph.stream_rank.size, 2), -1),
    )  # fmt: skip
    meetings = MEETINGS.of(
        collective=collective, last_work=last_work, last_rank=last_rank, rank_of=rank_of, members=graph.members,
        slots=slots, arrived=np.zeros(graph.members.size, np.int64), joint=np.zeros(slots[-1], np.int64),
        arrival=schedule.last_arrival,
    )  # fmt: skip
    new = NEW_TIMES.of(**vars(schedule))
    state = np.zeros(3, np.int64)
    while state[1] < len(ranks.cursors):
        advance_all(state, WINDOW, nodes, bounds, lengths, ranks, meetings, new)
        graph.scratch.used(int(state[2]))
    return schedule


def _meetings(graph: Graph, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the rank of each work of a collective, collective by collective; and the collectives of several ranks in
    the order of their last arrivals, by start, then rank: their numbers, last work and its rank; int64.
    """
    members, rank, start, collective = graph.joint_work()
    order = np.lexsort((rank, start, collective))
    last = order[(slots[1:] - 1)[graph.members > 1]]
    last = last[np.lexsort((rank[last], start[last]))]
    return rank[order], collective[last], members[last], rank[last]


LENGTHS = record("LENGTHS", start_up=int64, between=int64, returning=int64, work_ns=I8, call_ns=I8, gap_ns=I8)
"""How long everything lasts in the replay.

Attributes
----------
start_up, between, returning : int, ns
    Usual latencies: from a call to the start of work, between work of a stream, from the end of work to the return
    of a call that waits for it.
work_ns, call_ns : ndarray of int64, shapes (n,) and (m,), ns
    Of matched collectives: after the last rank has arrived.
gap_ns : ndarray of int64, shape (m,), ns
    Host code before each call.
"""


RANK_SCRATCH = record("RANK_SCRATCH", cursors=int64[:, ::1], offsets=I8, recent=int64[:, ::1])
"""Where the nodes and the streams of each rank are.

Attributes
----------
cursors : ndarray of int64, shape (ranks, 6)
    `Graph.cursors`; moved on.
offsets : ndarray of int64, shape (ranks + 1,)
    Where the streams of each rank begin.
recent : ndarray of int64, shape (streams, 2), filled with -1
    Scratch: the last two pieces of work of each stream.
"""


MEETINGS = record(
    "MEETINGS",
    collective=I8,
    last_work=I8,
    last_rank=I8,
    rank_of=I8,
    members=I4,
    slots=I8,
    arrived=int64[::1],
    joint=int64[::1],
    arrival=int64[::1],
)
"""The collectives of several ranks.

Attributes
----------
collective, last_work, last_rank : ndarray of int64, shape (k,)
    In the order of their last arrivals, by start, then rank: the collective, its last work, and its rank.
rank_of : ndarray of int64, shape (work of collectives,)
    The rank of each work of a collective, as `slots` has them.
members : ndarray of int32, shape (collectives,)
slots : ndarray of int64, shape (collectives + 1,)
    Where the work of each collective is in `joint`.
arrived : ndarray of int64, shape (collectives,), zeros
    Scratch: how many ranks have arrived.
joint : ndarray of int64, shape (work of collectives,)
    Scratch: the work that has arrived.
arrival : ndarray of int64, shape (collectives,), filled with the lowest number, output
    When the last rank arrives at each collective.
"""


NEW_TIMES = record(
    "NEW_TIMES",
    start=int64[::1],
    end=int64[::1],
    bound=uint8[::1],
    call_start=int64[::1],
    call_end=int64[::1],
    call_work=int32[::1],
)
"""The schedule that is written, as in `critical_path.Schedule`.

Attributes
----------
start, end : ndarray of int64, shape (n,), ns
bound : ndarray of uint8, shape (n,)
call_start, call_end : ndarray of int64, shape (m,), ns
call_work : ndarray of int32, shape (m,)
"""


UNTIL = record("UNTIL", rank=int64, latest=int64, before_work=int64, last=int64, most=int64)
"""Up to where the nodes of a rank are taken.

Attributes
----------
rank : int
latest, before_work : int, ns
    Calls and returns are taken up to `latest`, work before `before_work`.
last : int
    The work after which to stop; -1: none, but for the two moments.
most : int
    Nodes that are taken at once.
"""
Until = UNTIL.kind


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


@compiled_borrowing(void(int64, int64, NODES, BOUNDS, LENGTHS, RANK_SCRATCH, NEW_TIMES))
def _time_return(c, rank, nodes, bounds, lengths, ranks, new):
    """Write when a call returns that waits, and for which work: that of its scope which it sees end last.

    Without work to wait for it takes its own time; of that, where it did wait when measured, at most the usual latency.
    Where a change shortens its own time, what it does after the work is no longer than that, or than usual.
    """
    s = int64(nodes.scope[c])
    first = s if s >= 0 else ranks.offsets[rank]
    stop = s + 1 if s >= 0 else ranks.offsets[rank + 1]
    waited = int64(bounds.call_work[c])
    returned = nodes.call_end[c]
    own = lengths.call_ns[c] if waited < 0 else min(returned - nodes.call_start[c], lengths.returning)
    finish = new.call_start[c] + own
    awaited = int64(-1)
    most = np.iinfo(np.int64).max if nodes.launches[c] else max(lengths.call_ns[c], lengths.returning)
    moment = seen_until(c, nodes)
    for stream in range(first, stop):
        w = ended_by(moment, ranks.recent[stream, 0], ranks.recent[stream, 1], -1, nodes.end)
        if w < 0 or new.end[w] <= new.call_start[c]:
            continue
        seen = new.end[w] + _kept(min(returned - nodes.end[w], most), w == waited, lengths.returning)
        if seen > finish or (seen == finish and w == waited):
            finish = seen
            awaited = w
    new.call_end[c] = finish
    new.call_work[c] = awaited


@compiled_borrowing(int64(int64, int64, int64, NODES, LENGTHS, NEW_TIMES))
def _ready_after_call(c, begin, bound, nodes, lengths, new):
    """Return when work that began at `begin` can start after its call: after its return, or, where the work began
    earlier, after the call's begin; ns.
    """
    returned = nodes.call_end[c]
    if returned <= begin:
        return new.call_end[c] + _kept(begin - returned, bound == BY_CALL, lengths.start_up)
    gap = begin - nodes.call_start[c]
    if nodes.scope[c] == NO_SCOPE:
        return new.call_start[c] + min(gap, lengths.call_ns[c])
    return new.call_start[c] + _kept(gap, bound == BY_CALL, lengths.start_up)


@compiled_borrowing(UniTuple(int64, 2)(int64, NODES, BOUNDS, LENGTHS, NEW_TIMES))
def _earliest_start(w, nodes, bounds, lengths, new):
    """Return when work starts, ns, and what bound it: of those that are ready last, what bound it when measured, else
    the first of stream, other work and call.
    """
    best = np.iinfo(np.int64).min
    how = NO_BOUND
    begin = nodes.start[w]
    bound = bounds.bound[w]
    p = int64(bounds.before[w])
    if p >= 0:
        best = new.end[p] + _kept(begin - nodes.end[p], bound == BY_STREAM, lengths.between)
        how = BY_STREAM
    p = int64(bounds.other[w])
    if p >= 0:
        ready = new.end[p] + _kept(begin - nodes.end[p], bound == BY_WORK, lengths.between)
        if ready > best or (ready == best and bound == BY_WORK):
            best = ready
            how = BY_WORK
    c = int64(nodes.call[w])
    if c >= 0:
        ready = _ready_after_call(c, begin, bound, nodes, lengths, new)
        if ready > best or (ready == best and bound == BY_CALL):
            best = ready
            how = BY_CALL
    if how == NO_BOUND:
        best = begin
    return best, how


@compiled_borrowing(void(int64, int64, NODES, LENGTHS, MEETINGS, NEW_TIMES))
def _arrive(w, g, nodes, lengths, meetings, new):
    """Write when work of a collective ends: once the last rank has arrived, that of all ranks, each `work_ns` after the
    last arrival; until then as long after its start as measured.
    """
    new.end[w] = new.start[w] + nodes.end[w] - nodes.start[w]
    arrival = max(meetings.arrival[g], new.start[w])
    meetings.arrival[g] = arrival
    slot = meetings.slots[g]
    meetings.joint[slot + meetings.arrived[g]] = w
    meetings.arrived[g] += 1
    if meetings.arrived[g] == meetings.members[g]:
        for i in range(slot, meetings.slots[g + 1]):
            v = meetings.joint[i]
            new.end[v] = max(new.start[v], arrival + lengths.work_ns[v])


@compiled_borrowing(int64(UNTIL, NODES, BOUNDS, LENGTHS, RANK_SCRATCH, MEETINGS, NEW_TIMES))
def advance(until, nodes, bounds, lengths, ranks, meetings, new):
    """Write when the next nodes of a rank run; return how many there were.

    Parameters
    ----------
    until, nodes, bounds, lengths : UNTIL, NODES, BOUNDS, LENGTHS
    ranks, meetings, new : RANK_SCRATCH, MEETINGS, NEW_TIMES
    """
    n = nodes.start.size
    m = nodes.call_start.size
    cursor = ranks.cursors[until.rank]
    done = 0
    while done < until.most:
        node = next_node(cursor, n, m, nodes.start, nodes.call_start, nodes.call_end, nodes.returns)
        if node < 0 or (
            until.last < 0
            and _is_beyond(node, n, m, until.latest, until.before_work, nodes.start, nodes.call_start, nodes.call_end)
        ):
            break
        pass_node(cursor, node, n, m)
        done += 1
        if node >= n + m:
            _time_return(node - n - m, until.rank, nodes, bounds, lengths, ranks, new)
        elif node >= n:
            c = node - n
            earlier = bounds.call_before[c]
            begin = nodes.call_start[c] if earlier < 0 else new.call_end[earlier] + lengths.gap_ns[c]
            new.call_start[c] = begin
            new.call_end[c] = begin + lengths.call_ns[c]
            new.call_work[c] = -1
        else:
            new.start[node], new.bound[node] = _earliest_start(node, nodes, bounds, lengths, new)
            new.end[node] = new.start[node] + lengths.work_ns[node]
            g = int64(nodes.member[node])
            if g >= 0:
                _arrive(node, g, nodes, lengths, meetings, new)
            s = int64(nodes.stream[node])
            ranks.recent[s, 1] = ranks.recent[s, 0]
            ranks.recent[s, 0] = node
            if node == until.last:
                break
    return done


@compiled_borrowing(void(int64[::1], int64, NODES, BOUNDS, LENGTHS, RANK_SCRATCH, MEETINGS, NEW_TIMES))
def advance_all(state, most, nodes, bounds, lengths, ranks, meetings, new):
    """Write when the next nodes of all ranks run, from one collective to the next, then of each rank to its end.

    `state` (int64, shape (3,), moved on) has the next of the collectives, the next rank of those that go on to their
    ends, and how many nodes were taken, about `most`. The others are those of `advance`.
    """
    highest = np.iinfo(np.int64).max
    state[2] = 0
    while state[0] < meetings.collective.size:
        last = meetings.last_work[state[0]]
        rank = meetings.last_rank[state[0]]
        g = meetings.collective[state[0]]
        moment = nodes.start[last]
        for i in range(meetings.slots[g], meetings.slots[g + 1] + 1):
            own = i == meetings.slots[g + 1]
            next_rank = rank if own else meetings.rank_of[i]
            if next_rank == rank and not own:
                continue
            before_work = moment + 1 if next_rank < rank else moment
            until = Until(next_rank, moment, before_work, last if own else -1, most - state[2])
            state[2] += advance(until, nodes, bounds, lengths, ranks, meetings, new)
            if state[2] >= most:
                break
        if state[2] >= most and ranks.cursors[rank, 0] <= last:
            return
        state[0] += 1
        if state[2] >= most:
            return
    while state[1] < len(ranks.cursors):
        until = Until(state[1], highest, highest, -1, most - state[2])
        state[2] += advance(until, nodes, bounds, lengths, ranks, meetings, new)
        if state[2] >= most:
            return
        state[1] += 1

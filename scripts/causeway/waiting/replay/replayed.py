"""A graph replayed with other durations."""

from dataclasses import dataclass

import numpy as np

from causeway.waiting.graph.link_ranks import LEAST_STARTS, offsets_of
from causeway.waiting.graph.nodes import NO_SCOPE, Graph, Links, bounds_of, nodes_of
from causeway.waiting.graph.scratch import WINDOW
from causeway.waiting.path.critical_path import Schedule, arrivals
from causeway.waiting.replay.earliest import LENGTHS, MEETINGS, NEW_TIMES, RANK_SCRATCH, advance_all

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
    found = Schedule(
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
        arrival=found.last_arrival,
    )  # fmt: skip
    new = NEW_TIMES.of(**vars(found))
    state = np.zeros(3, np.int64)
    while state[1] < len(ranks.cursors):
        advance_all(state, WINDOW, nodes, bounds, lengths, ranks, meetings, new)
        graph.scratch.used(int(state[2]))
    return found


def _meetings(graph: Graph, slots: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return the rank of each work of a collective, collective by collective; and the collectives of several ranks in
    the order of their last arrivals, by start, then rank: their numbers, last work and its rank; int64.
    """
    work = graph.work
    joint = [np.zeros(0, np.int64)]
    ranks = [np.zeros(0, np.int64)]
    for row, part in graph.parts(graph.work_of) if graph.members.size else ():
        joint.append(part.start + np.flatnonzero(work.member[part] >= 0))
        ranks.append(np.full(joint[-1].size, row))
    mine = np.concatenate(joint)
    rank = np.concatenate(ranks)
    order = np.lexsort((rank, work.start[mine], work.member[mine]))
    mine = mine[order]
    rank = rank[order]
    last = (slots[1:] - 1)[graph.members > 1]
    last = last[np.lexsort((rank[last], work.start[mine[last]]))]
    return rank, work.member[mine[last]].astype(np.int64), mine[last], rank[last]

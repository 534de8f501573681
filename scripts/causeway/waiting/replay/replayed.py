"""A graph replayed with other durations."""

from dataclasses import dataclass, replace

import numpy as np

from causeway.waiting.graph.nodes import NO_SCOPE, Graph
from causeway.waiting.graph.read_graph import LEAST_STARTS, Links, offsets_of
from causeway.waiting.path.critical_path import Schedule, measured
from causeway.waiting.replay.earliest import earliest

DEFAULT_RETURN_NS = 3_000
"""Time of a synchronising call that need not wait, where fewer than `LEAST_STARTS` show it: usual for CUDA and HIP."""


@dataclass(frozen=True, kw_only=True)
class Durations:
    """How long everything lasts.

    Attributes
    ----------
    work : ndarray of int64, shape (n,), ns
        Of matched collectives: after the last rank has arrived, which may be negative where clocks disagree.
    call, gap : ndarray of int64, shape (m,), ns
        Of calls, and of host code before them.
    shift : ndarray of int64, shape (m,), ns
        See `earliest`.
    """

    work: np.ndarray
    call: np.ndarray
    gap: np.ndarray
    shift: np.ndarray

    def but(self, **changed: np.ndarray) -> "Durations":
        """Return the same with some arrays replaced."""
        return replace(self, **changed)


def durations_of(graph: Graph, links: Links) -> Durations:
    """Return the durations that were measured."""
    work = graph.work
    calls = graph.calls
    own = work.end - work.start
    joint = work.member >= 0
    own[joint] = work.end[joint] - measured(graph, links).last_arrival[work.member[joint]]
    gap = np.zeros(calls.start.size, np.int64)
    known = links.call_before >= 0
    gap[known] = calls.start[known] - calls.end[links.call_before[known]]
    return Durations(work=own, call=calls.end - calls.start, gap=gap, shift=np.zeros(gap.size, np.int64))


def returning_ns(graph: Graph, links: Links) -> int:
    """Return the usual time of a call that waits for nothing that still runs, ns."""
    calls = graph.calls
    free = (calls.scope != NO_SCOPE) & (links.call_work < 0)
    values = np.sort((calls.end - calls.start)[free])
    return int(values[(values.size - 1) // 2]) if values.size >= LEAST_STARTS else DEFAULT_RETURN_NS


def replayed(graph: Graph, links: Links, durations: Durations) -> Schedule:
    """Return when everything runs with these durations; with `durations_of` exactly when it ran."""
    work = graph.work
    calls = graph.calls
    n = work.start.size
    m = calls.start.size
    found = Schedule(
        start=np.zeros(n, np.int64), end=np.zeros(n, np.int64), bound=np.zeros(n, np.uint8),
        call_start=np.zeros(m, np.int64), call_end=np.zeros(m, np.int64), call_work=np.full(m, -1, np.int32),
        last_arrival=np.full(graph.members.size, np.iinfo(np.int64).min),
    )  # fmt: skip
    joint = np.zeros((graph.members.size, 2), np.int64)
    joint[:, 0] = -1
    earliest(
        graph.order, work.start, work.end, work.stream, work.call, work.member, links.bound, links.before, links.other,
        calls.start, calls.end, calls.scope, calls.thread, links.call_before, links.call_work, graph.thread_rank,
        offsets_of(graph.stream_rank, len(graph.ranks)), graph.members, links.start_up, links.between,
        returning_ns(graph, links), durations.work, durations.call, durations.gap, durations.shift,
        np.full((graph.stream_rank.size, 2), -1), joint, found.start, found.end, found.bound, found.call_start,
        found.call_end, found.call_work, found.last_arrival,
    )  # fmt: skip
    return found

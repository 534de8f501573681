"""The critical path of each rank, as pieces of time."""

from dataclasses import dataclass

import numpy as np

from causeway.waiting.graph.nodes import Graph
from causeway.waiting.graph.read_graph import Links, offsets_of
from causeway.waiting.path.walk import PIECE, walk


@dataclass(kw_only=True)
class Schedule:
    """When each node ran, as measured or as replayed, and what bound it.

    Attributes
    ----------
    start, end : ndarray of int64, shape (n,), ns
    bound : ndarray of uint8, shape (n,)
    call_start, call_end : ndarray of int64, shape (m,), ns
    call_work : ndarray of int32, shape (m,)
    last_arrival : ndarray of int64, shape (collectives,), ns
    """

    start: np.ndarray
    end: np.ndarray
    bound: np.ndarray
    call_start: np.ndarray
    call_end: np.ndarray
    call_work: np.ndarray
    last_arrival: np.ndarray


def measured(graph: Graph, links: Links) -> Schedule:
    """Return the schedule that was measured."""
    work = graph.work
    calls = graph.calls
    arrival = np.full(graph.members.size, np.iinfo(np.int64).min)
    joint = work.member >= 0
    np.maximum.at(arrival, work.member[joint], work.start[joint])
    return Schedule(
        start=work.start, end=work.end, bound=links.bound, call_start=calls.start, call_end=calls.end,
        call_work=links.call_work, last_arrival=arrival,
    )  # fmt: skip


class CriticalPaths:
    """Critical paths of the ranks of a graph.

    Parameters
    ----------
    graph : Graph
    links : Links
    """

    def __init__(self, graph: Graph, links: Links) -> None:
        self.graph = graph
        self.links = links
        ranks = len(graph.ranks)
        self._work = _by_rank(graph.stream_rank[graph.work.stream], ranks)
        self._calls = _by_rank(graph.thread_rank[graph.calls.thread], ranks)

    def span(self, schedule: Schedule, rank: int) -> tuple[int, int]:
        """Return when a rank's first node began and its last one ended, ns; its row must have nodes."""
        work = self._work[rank]
        calls = self._calls[rank]
        starts = [
            times[rows].min() for times, rows in ((schedule.start, work), (schedule.call_start, calls)) if rows.size
        ]
        ends = [times[rows].max() for times, rows in ((schedule.end, work), (schedule.call_end, calls)) if rows.size]
        return int(min(starts)), int(max(ends))

    def pieces(self, schedule: Schedule, rank: int) -> np.ndarray:
        """Return the pieces of a rank's critical path in the order of time; int64, shape (pieces, 4), `walk.PIECE`.

        They adjoin, from the rank's first node to the end of its last one: of equal ends that of work, the latest.
        """
        work = self._work[rank]
        calls = self._calls[rank]
        last_work = int(work[::-1][schedule.end[work][::-1].argmax()]) if work.size else -1
        last_call = int(calls[::-1][schedule.call_end[calls][::-1].argmax()]) if calls.size else -1
        if last_work >= 0 and (last_call < 0 or schedule.end[last_work] >= schedule.call_end[last_call]):
            last_call = -1
        else:
            last_work = -1
        room = np.empty((3 * (work.size + calls.size) + 2, len(PIECE)), np.int64)
        graph = self.graph
        links = self.links
        n = walk(
            last_work, last_call, self.span(schedule, rank)[0], schedule.start, schedule.end, graph.work.kind,
            graph.work.call, schedule.bound, links.before, links.other, graph.work.member, schedule.call_start,
            schedule.call_end, graph.calls.launches.view(np.uint8), links.call_before, schedule.call_work,
            schedule.last_arrival, links.start_up, room,
        )  # fmt: skip
        return room[:n][::-1].copy()

    def has_nodes(self, rank: int) -> bool:
        """Return whether a rank's row has any nodes."""
        return bool(self._work[rank].size or self._calls[rank].size)

    def ranks(self) -> list[int]:
        """Return the rows of the ranks that have nodes."""
        return [rank for rank in range(len(self.graph.ranks)) if self.has_nodes(rank)]


def _by_rank(rows: np.ndarray, ranks: int) -> list[np.ndarray]:
    order = np.argsort(rows, kind="stable")
    bounds = offsets_of(rows[order], ranks)
    return [order[bounds[at] : bounds[at + 1]] for at in range(ranks)]

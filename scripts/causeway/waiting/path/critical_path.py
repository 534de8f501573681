"""The critical path of each rank, as pieces of time."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from causeway.core.codes import waits_for_engine
from causeway.numeric.intervals import overlap
from causeway.waiting.graph.host_calls import ACCESS, launches_nothing
from causeway.waiting.graph.nodes import Graph, Links, bounds_of, nodes_of
from causeway.waiting.graph.scratch import WINDOW
from causeway.waiting.path.walk import BETWEEN_CALLS, ENGINE, HOST, IN_MPI, LAUNCH, PIECE, walk

MOST_PIECES = 1 << 17
"""Pieces of a path that are taken at once."""


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
    return Schedule(
        start=work.start, end=work.end, bound=links.bound, call_start=calls.start, call_end=calls.end,
        call_work=links.call_work, last_arrival=arrivals(graph),
    )  # fmt: skip


def arrivals(graph: Graph) -> np.ndarray:
    """Return when the last rank arrived at each matched collective; int64, shape (collectives,), ns."""
    work = graph.work
    latest = np.full(graph.members.size, np.iinfo(np.int64).min)
    for _, part in graph.parts(graph.work_of) if latest.size else ():
        joint = np.flatnonzero(work.member[part] >= 0)
        np.maximum.at(latest, work.member[part][joint], work.start[part][joint])
    return latest


class DeviceWork(NamedTuple):
    """When the first work of the devices of a run began and the last ended, ns; the row of the rank that ends last, and
    its last node: work or call, the other -1.
    """

    begin: int
    end: int
    rank: int
    last: tuple[int, int]


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
        self._of_engines = np.flatnonzero([waits_for_engine(text) for text in graph.texts])
        self._accesses = self._calls_named(ACCESS)
        self._launch_nothing = np.flatnonzero([launches_nothing(text) for text in graph.texts])

    def _calls_named(self, text: str) -> list[list[int]]:
        """Return by row of the rank the numbers of its calls of a name."""
        graph = self.graph
        calls: list[list[int]] = [[] for _ in graph.ranks]
        for row, part in graph.parts(graph.calls_of) if text in graph.texts else ():
            named = graph.calls.name[part] == graph.texts.index(text)
            calls[row] += (part.start + np.flatnonzero(named)).tolist()
        return calls

    def span(self, schedule: Schedule, rank: int) -> tuple[int, int]:
        """Return when a rank's first node began and its last one ended, ns; its row must have nodes."""
        return self._ends(schedule, rank)[:2]

    def runs(self, schedule: Schedule) -> list[list[int]]:
        """Return the rows of the ranks, those together whose times overlap, directly or by others: ranks that never run
        at one time, such as recordings of one program that were made one after the other, are runs of their own.
        """
        spans = sorted((*self.span(schedule, rank), rank) for rank in self.ranks())
        groups: list[list[int]] = []
        latest = None
        for begin, end, rank in spans:
            if latest is None or begin > latest:
                groups.append([])
                latest = end
            groups[-1].append(rank)
            latest = max(latest, end)
        return groups

    def run_time(self, schedule: Schedule, runs: Sequence[Sequence[int]]) -> int:
        """Return the time from the first node of any rank to the end of the last, ns; of several runs, that of the
        longest.
        """
        return max(self._length(schedule, run) for run in runs)

    def device_time(self, schedule: Schedule, runs: Sequence[Sequence[int]]) -> int:
        """Return the time from the first work of any device to the end of the last, ns; of several runs, that of the
        longest; 0 without work.
        """
        work = self.device_work(schedule, runs)
        return 0 if work is None else work.end - work.begin

    def device_work(self, schedule: Schedule, runs: Sequence[Sequence[int]]) -> DeviceWork | None:
        """Return the work of the run whose devices are at it longest, of equal runs the first; None without work."""
        worked = [work for work in (self._device_work(schedule, run) for run in runs) if work is not None]
        return max(worked, key=lambda work: work.end - work.begin, default=None)

    def _device_work(self, schedule: Schedule, run: Sequence[int]) -> DeviceWork | None:
        first = np.iinfo(np.int64).max
        last = (np.iinfo(np.int64).min, 0, -1, -1)  # of equal ends that of the first rank, work, and the latest
        for rank in run:
            begin, stop = self.graph.work_of[rank].tolist()
            for part in self.graph.scratch.windows(stop, begin):
                ends = schedule.end[part]
                first = min(first, int(schedule.start[part].min()))
                last = max(last, (int(ends.max()), -rank, part.stop - 1 - int(ends[::-1].argmax()), -1))
            for call in self._accesses[rank]:  # managed memory moves: the device is at work
                first = min(first, int(schedule.call_start[call]))
                last = max(last, (int(schedule.call_end[call]), -rank, -1, call))
        end, rank, work, call = last
        return None if work < 0 and call < 0 else DeviceWork(first, end, -rank, (work, call))

    def _length(self, schedule: Schedule, run: Sequence[int]) -> int:
        spans = [self.span(schedule, rank) for rank in run]
        return max(end for _, end in spans) - min(begin for begin, _ in spans)

    def _ends(self, schedule: Schedule, rank: int) -> tuple[int, int, int, int]:
        """Return when a rank's first node began and its last one ended, and which that is: work or call, the other -1;
        of equal ends work, and the latest.
        """
        first = np.iinfo(np.int64).max
        latest = [np.iinfo(np.int64).min] * 2
        last = [-1, -1]
        kinds = (
            (self.graph.work_of[rank], schedule.start, schedule.end),
            (self.graph.calls_of[rank], schedule.call_start, schedule.call_end),
        )
        for kind, ((begin, stop), starts, ends) in enumerate(kinds):
            for part in self.graph.scratch.windows(int(stop), int(begin)):
                first = min(first, int(starts[part].min()))
                moment = int(ends[part].max())
                if moment >= latest[kind]:
                    latest[kind] = moment
                    last[kind] = part.stop - 1 - int(ends[part][::-1].argmax())
        last[0 if latest[1] > latest[0] else 1] = -1
        return first, max(latest), last[0], last[1]

    def chunks(self, schedule: Schedule, rank: int, last: tuple[int, int] | None = None) -> Iterator[np.ndarray]:
        """Give the pieces of a rank's critical path, as `pieces`, some at a time: the last first, of each time in the
        order of time; int64 of shape (k, 4). The path ends with the rank's last node, or with `last`: work or call,
        the other -1.
        """
        first, _, work, call = self._ends(schedule, rank)
        work, call = last or (work, call)
        room = np.empty((MOST_PIECES, len(PIECE)), np.int64)
        graph = self.graph
        links = self.links
        nodes = nodes_of(
            graph, start=schedule.start, end=schedule.end, call_start=schedule.call_start, call_end=schedule.call_end
        )
        bounds = bounds_of(links, bound=schedule.bound, call_work=schedule.call_work)
        arrival = schedule.last_arrival
        state = np.array([work, call, schedule.end[work] if work >= 0 else schedule.call_end[call]], np.int64)
        while state[:2].max() >= 0:
            before = state.copy()
            n = walk(state, WINDOW, first, nodes, bounds, arrival, links.start_up, room)
            if n:
                yield self._mpi_apart(self._by_name(room[:n][::-1].copy()))
            self.graph.scratch.used(max(int(before[0] - state[0]), int(before[1] - state[1]), 2 * n))

    def _by_name(self, pieces: np.ndarray) -> np.ndarray:
        """Return pieces, shape (k, 4), in which calls are what their names say: those that wait for an engine are no
        work of the host, and those that only synchronise are no launches.
        """
        for before, after, names in ((LAUNCH, HOST, self._launch_nothing), (HOST, ENGINE, self._of_engines)):
            calls = np.flatnonzero(pieces[:, 2] == before) if names.size else names
            named = np.isin(self.graph.calls.name[pieces[calls, 3]], names)
            pieces[calls[named], 2] = after
        return pieces

    def _mpi_apart(self, pieces: np.ndarray) -> np.ndarray:
        """Return pieces, shape (k, 4), with the time between two calls parted into host code and MPI, of the thread of
        the later call: first the one, then the other, as long as it was measured and at most the whole.
        """
        graph = self.graph
        rows = np.flatnonzero(pieces[:, 2] == BETWEEN_CALLS)
        if not graph.mpi or not rows.size:
            return pieces
        call = pieces[rows, 3]
        begin = graph.calls.end[self.links.call_before[call]]
        end = graph.calls.start[call]
        thread = graph.calls.thread[call]
        in_mpi = np.zeros(rows.size, np.int64)
        for row in np.unique(thread).tolist():
            of_thread = np.flatnonzero((thread == row) & (end > begin))
            in_mpi[of_thread] = overlap(begin[of_thread], end[of_thread], graph.mpi[row])
        in_mpi = np.minimum(in_mpi, pieces[rows, 1] - pieces[rows, 0])
        rows = rows[in_mpi > 0]
        more = pieces[rows]
        more[:, 0] = more[:, 1] - in_mpi[in_mpi > 0]
        more[:, 2] = IN_MPI
        pieces[rows, 1] = more[:, 0]
        parted = np.insert(pieces, rows + 1, more, axis=0)
        return parted[parted[:, 1] > parted[:, 0]]

    def has_nodes(self, rank: int) -> bool:
        """Return whether a rank's row has any nodes."""
        return bool((np.diff([self.graph.work_of[rank], self.graph.calls_of[rank]]) > 0).any())

    def ranks(self) -> list[int]:
        """Return the rows of the ranks that have nodes."""
        return [rank for rank in range(len(self.graph.ranks)) if self.has_nodes(rank)]

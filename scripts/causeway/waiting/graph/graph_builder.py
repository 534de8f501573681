"""The graph of a dataset as it grows, unit by unit of exports that share no rank.

Waits for events of other streams that the export records: which work waited for which.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from causeway.numeric.compiled import I8, compiled_borrowing, int64, record, void
from causeway.waiting.graph.blocking_copies import wait_for_own_copies
from causeway.waiting.graph.device_work import Rows
from causeway.waiting.graph.distinct_rows import distinct_rows
from causeway.waiting.graph.nodes import COLLECTIVE, NO_SCOPE, NODES, Graph, HostCalls, Texts, Work, nodes_of
from causeway.waiting.graph.scratch import Scratch
from causeway.waiting.graph.staying import StayingTime

StreamKey = tuple[int, int, int]
"""Rank, device and number of a stream."""


@dataclass
class Matched:
    """Collectives that all ranks of a communicator leave together.

    Attributes
    ----------
    ranks : list of int
    start : ndarray of int64, shape (ranks, collectives), ns
        When the kernel of each rank began, in the clock of the rank's export.
    bus_bytes : ndarray of int64, shape (collectives,), bytes
        Size times bus factor; -1 where it is not known.
    """

    ranks: list[int]
    start: np.ndarray
    bus_bytes: np.ndarray


class GraphBuilder:
    """Takes the work and the calls of exports and makes a graph of them.

    Parameters
    ----------
    texts : Texts
    scratch : Scratch
    resolution : int, ns
        See `Graph`.
    """

    def __init__(self, texts: Texts, scratch: Scratch, resolution: int = 0) -> None:
        self.texts = texts
        self.scratch = scratch
        self.resolution = resolution
        times = {"start": np.int64, "end": np.int64}
        self.work = scratch.columns(
            **times, stream=np.int32, kind=np.uint8, name=np.int32, operator=np.int32, memory=np.uint8
        )
        self.made_by = scratch.columns(call=np.int32)
        self.calls = scratch.columns(**times, thread=np.int32, name=np.int32, scope=np.int64, launches=np.bool_)
        self._streams: dict[StreamKey, int] = {}
        self._threads: dict[tuple[int, int], int] = {}
        self._work_of: dict[int, tuple[int, int]] = {}
        self._calls_of: dict[int, tuple[int, int]] = {}
        self._unordered: list[int] = []
        self._waits = [np.zeros((4, 0), np.int64)]

    def streams_of(self, rank: np.ndarray, device: np.ndarray, stream: np.ndarray) -> np.ndarray:
        """Return the number of each row's rank, device and stream.

        Parameters
        ----------
        rank, device, stream : ndarray of int64, shape (n,)

        Returns
        -------
        ndarray of int32, shape (n,)
        """
        return _numbered(self._streams, rank, device, stream)

    def threads_of(self, rank: np.ndarray, thread: np.ndarray) -> np.ndarray:
        """Return the number of each row's rank and thread.

        Parameters
        ----------
        rank, thread : ndarray of int64, shape (n,)

        Returns
        -------
        ndarray of int32, shape (n,)
        """
        return _numbered(self._threads, rank, thread)

    def ends_rank(self, rank: int, *, in_order: bool = True) -> None:
        """Note that what was appended since the last rank is that of a rank: of several exports if not `in_order`."""
        for extents, columns in ((self._work_of, self.work), (self._calls_of, self.calls)):
            extents[rank] = max((end for _, end in extents.values()), default=0), columns.rows
        if not in_order:
            self._unordered.append(rank)

    def add_waits(self, waits: np.ndarray) -> None:
        """Take event waits, on the dataset's time line: `waits` of shape (4, k), as `host_calls.event_waits`."""
        self._waits.append(waits)

    def _order(self, rank: int, work: Rows, made_by: np.ndarray, calls: Rows, streams: Sequence[StreamKey]) -> None:
        """Put work and calls of a rank into the order of their starts, of equal ones work by the stream's number."""
        begin, end = self._calls_of[rank]
        order = np.argsort(calls["start"][begin:end], kind="stable")
        index = np.full(order.size + 1, -1)
        index[order] = np.arange(begin, end)
        for column in calls.values():
            column[begin:end] = column[begin:end][order]
        own = slice(*self._work_of[rank])
        number = np.array([key[2] for key in streams])[work["stream"][own]]
        order = np.lexsort((number, work["start"][own]))
        made_by[own] = index[np.maximum(made_by[own] - begin, -1)]
        for column in (*work.values(), made_by):
            column[own] = column[own][order]

    def _scopes(self, calls: Rows, streams: Sequence[StreamKey]) -> np.ndarray:
        """Return what calls wait for, streams by the number of their row; a stream without work, and a call that takes
        no time: nothing; int32, shape (m,).
        """
        scopes = self.scratch.array(calls["scope"].size, np.int32)
        for rank, (begin, end) in self._calls_of.items():
            own = sorted((key[2], key[1], row) for row, key in enumerate(streams) if key[0] == rank)
            numbers = np.array([number for number, _, _ in own] or [-1])
            rows = np.array([row for _, _, row in own] or [NO_SCOPE], np.int32)
            for part in self.scratch.windows(end, begin):
                scope = calls["scope"][part]
                position = np.minimum(np.searchsorted(numbers, scope), numbers.size - 1)
                named = np.where(numbers[position] == scope, rows[position], NO_SCOPE)
                takes_time = calls["end"][part] > calls["start"][part]
                scopes[part] = np.where(takes_time, np.where(scope >= 0, named, scope), NO_SCOPE)
        return scopes

    def graph(self, collectives: Sequence[Matched], staying: StayingTime | None = None) -> tuple[Graph, np.ndarray]:
        """Return the graph of all that was taken, and for each work the work of another stream that it waited for
        explicitly; int32, shape (n,), -1: none. `Matched.start` is on the dataset's time line here.
        """
        scratch = self.scratch
        work = self.work.arrays()
        calls = self.calls.arrays()
        streams = sorted(self._streams)
        threads = sorted(self._threads)
        self._renumber(work["stream"], self._streams, streams)
        self._renumber(calls["thread"], self._threads, threads)
        made_by = self.made_by.arrays()
        for rank in self._unordered:
            self._order(rank, work, made_by["call"], calls, streams)
        calls["scope"] = self._scopes(calls, streams)
        wait_for_own_copies(work, made_by["call"], calls, self.resolution, scratch)
        del work["memory"]
        ranks = sorted(self._work_of)
        row_of = {rank: row for row, rank in enumerate(ranks)}
        devices = {key: number for number, key in enumerate(sorted({key[:2] for key in streams}))}
        member = scratch.array(len(work["start"]), np.int32, -1)
        graph = Graph(
            ranks=ranks, work=Work(**work, **made_by, member=member),
            calls=HostCalls(**calls), texts=self.texts.rows, scratch=scratch,
            stream_rank=np.array([row_of[key[0]] for key in streams], np.int32),
            thread_rank=np.array([row_of[key[0]] for key in threads], np.int32),
            stream_device=np.array([devices[key[:2]] for key in streams], np.int64),
            stream_key=np.array([key[:2] for key in streams], np.int64).reshape(-1, 2),
            work_of=np.array([self._work_of[rank] for rank in ranks], np.int64).reshape(-1, 2),
            calls_of=np.array([self._calls_of[rank] for rank in ranks], np.int64).reshape(-1, 2),
            staying=[staying.of(*key) for key in threads] if staying else [],
            mpi=[staying.mpi_of(*key) for key in threads] if staying else [],
            resolution=self.resolution,
        )  # fmt: skip
        _give_members(graph, collectives)
        return graph, explicit_waits(graph, np.concatenate(self._waits, axis=1), streams)

    def _renumber(self, codes: np.ndarray, numbers: dict, keys: list) -> None:
        """Change numbers by first appearance into those of the ordered keys."""
        if list(numbers) == keys:
            return
        to = np.empty(len(keys), np.int32)
        to[[numbers[key] for key in keys]] = np.arange(len(keys))
        for part in self.scratch.windows(codes.size):
            codes[part] = to[codes[part]]


def _numbered(codes: dict, *columns: np.ndarray) -> np.ndarray:
    """Return the number of each row of some columns, int32 of shape (n,); `codes` takes those that are new."""
    rows, number = distinct_rows(*columns)
    return np.array([codes.setdefault(key, len(codes)) for key in zip(*rows.tolist(), strict=True)], np.int32)[number]


def _give_members(graph: Graph, collectives: Sequence[Matched]) -> None:
    """Mark the work that belongs to matched collectives."""
    work = graph.work
    offsets = np.cumsum([0, *(group.bus_bytes.size for group in collectives)])
    members = np.zeros(offsets[-1], np.int32)
    groups: dict[int, list[tuple[int, np.ndarray]]] = {}
    for group, first in zip(collectives, offsets.tolist(), strict=False):
        for number, row in zip(group.ranks, group.start, strict=True):
            groups.setdefault(number, []).append((first, row))
    for rank, (begin, end) in zip(graph.ranks, graph.work_of.tolist(), strict=True):
        if rank not in groups:
            continue
        parts = [np.zeros(0, np.int64)]
        for part in graph.scratch.windows(end, begin):
            parts.append(part.start + np.flatnonzero(work.kind[part] == COLLECTIVE))
        rows = np.concatenate(parts)
        start = work.start[rows]
        for first, row in groups[rank]:
            position = np.searchsorted(start, row)
            matches = position < rows.size
            matches[matches] &= start[position[matches]] == row[matches]
            work.member[rows[position[matches]]] = first + np.flatnonzero(matches)
        given = work.member[rows]
        np.add.at(members, given[given >= 0], 1)
    graph.sizes = np.concatenate([np.zeros(0, np.int64), *(group.bus_bytes for group in collectives)])
    graph.members = members


EVENT_PAIRS = record("EVENT_PAIRS", moments=I8, offsets=I8, waiting=I8, waiting_of=I8, source=I8, source_of=I8)
"""Pairs of streams of which one waits for events of the other.

Attributes
----------
moments : ndarray of int64, shape (waits,), ns
    Of each pair, ascending.
offsets : ndarray of int64, shape (pairs + 1,)
    Where the moments of each pair begin.
waiting : ndarray of int64, shape (pairs,)
    Pairs by the stream that waits.
waiting_of : ndarray of int64, shape (streams + 1,)
    Where those of each stream begin.
source, source_of : ndarray of int64, shapes (pairs,) and (streams + 1,)
    The same by the stream of the event.
"""


Pair = tuple[int, int]
"""Row of the stream that waits, and of that of the event."""


def explicit_waits(graph: Graph, waits: np.ndarray, streams: list[tuple[int, int, int]]) -> np.ndarray:
    """Return for each work the work of another stream whose event it waited for: of the event's stream the last work
    that was launched before the wait, which the first work that is launched after it in the waiting stream needs.

    Parameters
    ----------
    graph : Graph
    waits : ndarray of int64, shape (4, k)
        Rank, stream, moment (ns, on the dataset's time line) and stream of the event.
    streams : list of (rank, device, stream)
        By number, ascending.

    Returns
    -------
    ndarray of int32, shape (n,)
        -1: none.
    """
    work = graph.work
    waited_for = graph.scratch.array(work.start.size, np.int32, -1)
    rows: dict[tuple[int, int], int] = {}
    for row, (rank, _, stream) in enumerate(streams):
        rows.setdefault((rank, stream), row)
    keys = np.unique(waits[[0, 1, 3]], axis=1) if waits.size else np.zeros((3, 0), np.int64)
    for number, rank in enumerate(graph.ranks):
        own_waits = waits[:, waits[0] == rank] if keys.size else waits
        pairs = {}
        for of_rank, stream, source in keys.T.tolist():
            if of_rank == rank and (rank, stream) in rows and (rank, source) in rows:
                moments = np.sort(own_waits[2, (own_waits[1] == stream) & (own_waits[3] == source)])
                pairs[rows[rank, stream], rows[rank, source]] = moments
        if pairs:
            _give(waited_for, graph, number, pairs)
    return waited_for


def _give(waited_for: np.ndarray, graph: Graph, rank: int, pairs: dict[Pair, np.ndarray]) -> None:
    work = graph.work
    offsets = np.cumsum([0, *(moments.size for moments in pairs.values())])
    moments = np.concatenate(list(pairs.values()))
    ends = [_by_stream([pair[side] for pair in pairs], graph.stream_rank.size) for side in (0, 1)]
    target = np.full(moments.size, -1)
    origin = np.full(moments.size, -1)
    state = np.full((graph.stream_rank.size, 2), -1)
    state[:, 0] = np.iinfo(np.int64).min
    reached = np.stack([offsets[:-1], offsets[:-1]])
    nodes = nodes_of(graph)
    columns = dict(zip(("waiting", "waiting_of", "source", "source_of"), (*ends[0], *ends[1]), strict=True))
    of_pairs = EVENT_PAIRS.of(moments=moments, offsets=offsets, **columns)
    for part in graph.scratch.windows(graph.work_of[rank, 1], graph.work_of[rank, 0]):
        _follow(part.start, part.stop, nodes, of_pairs, state, reached, target, origin)
    for number, (_, source) in enumerate(pairs):
        origin[reached[1, number] : offsets[number + 1]] = state[source, 1]
        span = slice(offsets[number], offsets[number + 1])
        usable = (target[span] >= 0) & (origin[span] >= 0)
        late = target[span][usable]
        early = origin[span][usable]
        before = work.end[early] <= work.start[late] + graph.resolution
        late = late[before]
        early = early[before]
        held = waited_for[late]
        later = (held < 0) | (work.end[early] > work.end[held])
        waited_for[late[later]] = early[later]


def _by_stream(stream: list[int], streams: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the pairs ordered by stream, and where those of each stream begin."""
    order = np.argsort(stream, kind="stable")
    return order, np.searchsorted(np.array(stream)[order], np.arange(streams + 1)).astype(np.int64)


@compiled_borrowing(void(int64, int64, NODES, EVENT_PAIRS, int64[:, ::1], int64[:, ::1], int64[::1], int64[::1]))
def _follow(begin, stop, nodes, pairs, state, reached, target, origin):
    """Go over work in its order; write for each moment the first work of the waiting stream that was launched then or
    later, and the last of the event's stream that was launched before any that was launched later.

    Parameters
    ----------
    begin, stop : int
        The work.
    nodes, pairs : NODES, EVENT_PAIRS
    state : array of int64, shape (streams, 2)
        The latest launch of each stream so far, and its last work.
    reached : array of int64, shape (2, pairs)
        The next moment of each pair for `target` and for `origin`.
    target, origin : arrays of int64, output
        For each moment; -1: none.
    """
    for w in range(begin, stop):
        c = nodes.call[w]
        if c < 0:
            continue
        s = nodes.stream[w]
        asked = nodes.call_start[c]
        if asked > state[s, 0]:
            for i in range(pairs.source_of[s], pairs.source_of[s + 1]):
                p = pairs.source[i]
                while reached[1, p] < pairs.offsets[p + 1] and pairs.moments[reached[1, p]] < asked:
                    origin[reached[1, p]] = state[s, 1]
                    reached[1, p] += 1
            for i in range(pairs.waiting_of[s], pairs.waiting_of[s + 1]):
                p = pairs.waiting[i]
                while reached[0, p] < pairs.offsets[p + 1] and pairs.moments[reached[0, p]] <= asked:
                    target[reached[0, p]] = w
                    reached[0, p] += 1
            state[s, 0] = asked
        state[s, 1] = w

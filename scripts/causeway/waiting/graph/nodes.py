"""The nodes of the graph as arrays: device work and host calls, rank by rank, of each rank ordered by start; and as
compiled code takes them, with what bound them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from causeway.events.few_values import Numbers
from causeway.numeric.compiled import I4, I8, U1, compiled, int32, int64, record, uint8
from causeway.numeric.intervals import Set
from causeway.waiting.graph.scratch import Scratch

KERNEL, COLLECTIVE, COPY, GRAPH = range(4)
"""Kinds of device work; a graph is an execution that was traced as a whole."""
NO_SCOPE = -1
ALL_STREAMS = -2
"""What a call waits for: nothing, all streams of its rank, else one stream's row."""


@dataclass(kw_only=True)
class Work:
    """Device work of a dataset; rows of a rank follow each other, ordered by start.

    Attributes
    ----------
    start, end : ndarray of int64, shape (n,), ns
        On the dataset's time line.
    stream : ndarray of int32, shape (n,)
        Row of rank, device and stream; rows of a rank follow each other.
    kind : ndarray of uint8, shape (n,)
    name, operator : ndarray of int32, shape (n,)
        Codes of texts; -1: no operator is known.
    call : ndarray of int32, shape (n,)
        The host call that made it; -1: not known.
    member : ndarray of int32, shape (n,)
        The matched collective of several ranks that it belongs to; -1: none.
    """

    start: np.ndarray
    end: np.ndarray
    stream: np.ndarray
    kind: np.ndarray
    name: np.ndarray
    operator: np.ndarray
    call: np.ndarray
    member: np.ndarray


@dataclass(kw_only=True)
class HostCalls:
    """Outermost calls of host threads; rows of a rank follow each other, ordered by start.

    Attributes
    ----------
    start, end : ndarray of int64, shape (m,), ns
    thread : ndarray of int32, shape (m,)
        Row of rank and thread; rows of a rank follow each other.
    name : ndarray of int32, shape (m,)
    scope : ndarray of int32, shape (m,)
        Row of the stream that the call waits for, or `NO_SCOPE`, `ALL_STREAMS`.
    launches : ndarray of bool, shape (m,)
        Whether it made device work.
    """

    start: np.ndarray
    end: np.ndarray
    thread: np.ndarray
    name: np.ndarray
    scope: np.ndarray
    launches: np.ndarray


@dataclass(kw_only=True)
class Graph:
    """A dataset's nodes. What follows from the others is found when a graph is made without it.

    Attributes
    ----------
    ranks : list of int
        By row.
    work : Work
    calls : HostCalls
    stream_rank, thread_rank : ndarray of int32, shapes (streams,) and (threads,)
        Row of the rank of each.
    stream_device : ndarray of int64, shape (streams,)
        A number for each rank and device.
    stream_key : ndarray of int64, shape (streams, 2)
        Rank and device of each.
    members : ndarray of int32, shape (collectives,)
        How many ranks have work of each matched collective.
    sizes : ndarray of int64, shape (collectives,), bytes
        Bus bytes (size x bus factor) of each; -1: not known.
    work_of, calls_of, returns_of : ndarray of int64, shape (ranks, 2)
        Where work, calls and returns of each rank begin and end.
    returns : ndarray of int32, shape (waiting calls,)
        Calls that wait, of each rank in the order of their ends.
    scratch : Scratch
        Where further arrays of the size of the graph belong.
    staying : list of Set
        By row of the thread: the time of its own that stays where the host is free, ns; empty: none is known.
    mpi : list of Set
        By row of the thread: its time in MPI, ns; empty: none is known.
    resolution : int
        What began by that much before something ended, ns, may have waited for it: times are rounded.
    """

    ranks: list[int]
    work: Work
    calls: HostCalls
    stream_rank: np.ndarray
    thread_rank: np.ndarray
    texts: list[str]
    stream_device: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    stream_key: np.ndarray = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    members: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))
    sizes: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    work_of: np.ndarray = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    calls_of: np.ndarray = field(default_factory=lambda: np.zeros((0, 2), np.int64))
    returns_of: np.ndarray = field(init=False)
    returns: np.ndarray = field(init=False)
    scratch: Scratch = field(default_factory=Scratch)
    staying: list[Set] = field(default_factory=list)
    mpi: list[Set] = field(default_factory=list)
    resolution: int = 0

    def __post_init__(self) -> None:
        ranks = len(self.ranks)
        if len(self.work_of) < ranks:
            self.work_of = _rows_of(self.stream_rank[self.work.stream], ranks)
        if len(self.calls_of) < ranks:
            self.calls_of = _rows_of(self.thread_rank[self.calls.thread], ranks)
        counts = np.zeros(ranks, np.int64)
        for row, part in self.parts(self.calls_of):
            counts[row] += np.count_nonzero(self.calls.scope[part] != NO_SCOPE)
        ends = np.cumsum(counts)
        self.returns_of = np.stack([ends - counts, ends], axis=1)
        self.returns = self.scratch.array(int(counts.sum()), np.int32)
        to = self.returns_of[:, 0].copy()
        for row, part in self.parts(self.calls_of):
            first = int(self.returns_of[row, 0])
            to[row] = order_returns(
                part.start, part.stop, self.calls.end, self.calls.scope, first, int(to[row]), self.returns
            )

    def parts(self, rows_of: np.ndarray) -> Iterator[tuple[int, slice]]:
        """Give the row of each rank and some of its work or calls at a time.

        Parameters
        ----------
        rows_of : ndarray of int64, shape (ranks, 2)
            `work_of` or `calls_of`.
        """
        for row, (begin, end) in enumerate(rows_of.tolist()):
            for part in self.scratch.windows(end, begin):
                yield row, part

    def joint_work(self) -> np.ndarray:
        """Return the number, row of the rank, start (ns) and collective of all work of matched collectives, in the
        order of the numbers; int64, shape (4, k).
        """
        work = self.work
        parts = [np.zeros((4, 0), np.int64)]
        for row, part in self.parts(self.work_of) if self.members.size else ():  # part by part: work lies in files
            joint = part.start + np.flatnonzero(work.member[part] >= 0)
            parts.append(np.stack([joint, np.full(joint.size, row), work.start[joint], work.member[joint]]))
        return np.concatenate(parts, axis=1)

    def cursors(self) -> np.ndarray:
        """Return for each rank its next work, call and return, and where each ends; int64, shape (ranks, 6)."""
        each = (self.work_of, self.calls_of, self.returns_of)
        return np.concatenate([np.stack([extents[:, side] for extents in each], axis=1) for side in (0, 1)], axis=1)


def _rows_of(rank: np.ndarray, ranks: int) -> np.ndarray:
    bounds = np.searchsorted(rank, np.arange(ranks + 1))
    return np.stack([bounds[:-1], bounds[1:]], axis=1).astype(np.int64)


@compiled(int64(int64, int64, I8, I4, int64, int64, int32[::1]))
def order_returns(begin, stop, end, scope, first, next_return, returns):
    """Put the calls of a rank that wait among `returns` by their ends, of equal ends in their order; return where the
    next belongs. A thread is in one call at a time: few of the earlier calls end later.

    Parameters
    ----------
    begin, stop : int
        The calls that are put.
    end : array of int64, shape (m,), ns
    scope : array of int32, shape (m,)
    first, next_return : int
        Where the rank's returns begin, and where the next belongs.
    returns : array of int32, output
    """
    for c in range(begin, stop):
        if scope[c] == NO_SCOPE:
            continue
        to = next_return
        while to > first and end[returns[to - 1]] > end[c]:
            returns[to] = returns[to - 1]
            to -= 1
        returns[to] = c
        next_return += 1
    return next_return


Texts = Numbers[str]
"""Texts with a code each: their position in the order of first appearance."""
NODES = record(
    "NODES",
    returns=I4,
    start=I8,
    end=I8,
    kind=U1,
    stream=I4,
    call=I4,
    member=I4,
    call_start=I8,
    call_end=I8,
    scope=I4,
    thread=I4,
    launches=U1,
    resolution=int64,
)
"""Work and calls of a graph, as in `nodes.Work` and `nodes.HostCalls`.

Attributes
----------
returns : ndarray of int32, shape (waiting calls,)
    Calls that wait, of each rank in the order of their ends.
start, end : ndarray of int64, shape (n,), ns
kind : ndarray of uint8, shape (n,)
stream, call, member : ndarray of int32, shape (n,)
    Of work; -1 in `call` and `member` where there is none.
call_start, call_end : ndarray of int64, shape (m,), ns
scope, thread : ndarray of int32, shape (m,)
launches : ndarray of uint8, shape (m,)
resolution : int, ns
    See `Graph`.
"""


@dataclass(kw_only=True)
class Links:
    """What each node waited for: see `links.link`.

    Attributes
    ----------
    before, other : ndarray of int32, shape (n,)
        Work before it in the stream; work of another stream.
    bound : ndarray of uint8, shape (n,)
    call_before, call_work : ndarray of int32, shape (m,)
        The call after which the thread went on; the work whose end a waiting call returned after; -1: none.
    start_up, between : int, ns
        Usual time from a call's return to the start of work on an idle stream, and between work of one stream.
    """

    before: np.ndarray
    other: np.ndarray
    bound: np.ndarray
    call_before: np.ndarray
    call_work: np.ndarray
    start_up: int
    between: int


BOUNDS = record(
    "BOUNDS", before=int32[::1], other=int32[::1], bound=uint8[::1], call_before=int32[::1], call_work=int32[::1]
)
"""The arrays of `Links`, which a search for them writes; it is given `other` for explicit waits, else -1.

Attributes
----------
before, other : ndarray of int32, shape (n,)
bound : ndarray of uint8, shape (n,)
call_before, call_work : ndarray of int32, shape (m,)
"""


def nodes_of(graph: Graph, **changed: np.ndarray) -> Any:
    """Return the nodes of a graph, with some of their arrays replaced."""
    work = graph.work
    calls = graph.calls
    arrays: dict[str, Any] = {
        "returns": graph.returns, "start": work.start, "end": work.end, "kind": work.kind, "stream": work.stream,
        "call": work.call, "member": work.member, "call_start": calls.start, "call_end": calls.end,
        "scope": calls.scope, "thread": calls.thread, "launches": calls.launches.view(np.uint8),
        "resolution": graph.resolution,
    }  # fmt: skip
    return NODES.of(**{**arrays, **changed})


def bounds_of(links: Links, **changed: np.ndarray) -> Any:
    """Return what bound each node, with some arrays replaced."""
    return BOUNDS.of(**{**vars(links), **changed})

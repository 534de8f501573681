"""The graph of a dataset as it grows, unit by unit of exports that share no rank."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from causeway.waiting.graph.blocking_copies import wait_for_own_copies
from causeway.waiting.graph.device_work import Rows
from causeway.waiting.graph.distinct_rows import distinct_rows
from causeway.waiting.graph.explicit_waits import explicit_waits
from causeway.waiting.graph.nodes import COLLECTIVE, NO_SCOPE, Graph, HostCalls, Texts, Work
from causeway.waiting.graph.scratch import Scratch
from causeway.waiting.graph.staying import StayingTime


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
        self.calls = scratch.columns(**times, thread=np.int32, name=np.int32, scope=np.int32, launches=np.bool_)
        self._streams: dict[tuple[int, int, int], int] = {}
        self._threads: dict[tuple[int, int], int] = {}
        self._work_of: dict[int, tuple[int, int]] = {}
        self._calls_of: dict[int, tuple[int, int]] = {}
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
        rows, number = distinct_rows(rank, device, stream)
        codes = [self._streams.setdefault(key, len(self._streams)) for key in zip(*rows.tolist(), strict=True)]
        return np.array(codes, np.int32)[number]

    def threads_of(self, rank: np.ndarray, thread: np.ndarray) -> np.ndarray:
        """Return the number of each row's rank and thread.

        Parameters
        ----------
        rank, thread : ndarray of int64, shape (n,)

        Returns
        -------
        ndarray of int32, shape (n,)
        """
        rows, number = distinct_rows(rank, thread)
        codes = [self._threads.setdefault(key, len(self._threads)) for key in zip(*rows.tolist(), strict=True)]
        return np.array(codes, np.int32)[number]

    def scopes_of(self, rank: int, scope: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Return what calls of a rank wait for, streams by the number of their row; a stream without work, and a call
        that takes no time: nothing. All work of the rank is known by then.

        Parameters
        ----------
        rank : int
        scope : ndarray of int64, shape (m,)
            Numbers of streams, or `NO_SCOPE`, `ALL_STREAMS`.
        start, end : ndarray of int64, shape (m,), ns
            On the dataset's time line.

        Returns
        -------
        ndarray of int32, shape (m,)
        """
        found = scope.astype(np.int32)
        waiting = np.flatnonzero(scope >= 0)
        if waiting.size:
            streams = sorted((key[2], key[1], code) for key, code in self._streams.items() if key[0] == rank)
            known = np.array([one[0] for one in streams] or [-1])
            codes = np.array([one[2] for one in streams] or [NO_SCOPE], np.int32)
            at = np.minimum(np.searchsorted(known, scope[waiting]), known.size - 1)
            found[waiting] = np.where(known[at] == scope[waiting], codes[at], NO_SCOPE)
        found[end <= start] = NO_SCOPE
        return found

    def ends_rank(self, rank: int) -> None:
        """Note that what was appended since the last rank is that of a rank."""
        for found, columns in ((self._work_of, self.work), (self._calls_of, self.calls)):
            found[rank] = max((end for _, end in found.values()), default=0), columns.rows

    def add_waits(self, waits: np.ndarray) -> None:
        """Take event waits, on the dataset's time line: `waits` of shape (4, k), as `host_calls.event_waits`."""
        self._waits.append(waits)

    def add(self, rows: Rows, host: Rows, waits: np.ndarray) -> None:
        """Take work, calls and event waits of whole ranks, `waits` of shape (4, k), as `joined_exports` gives them."""
        order = np.lexsort((rows["stream"], rows["start"], rows["rank"]))
        call_order = np.lexsort((host["start"], host["rank"]))  # of equal starts of a thread the order of the export
        rows = {name: values[order] for name, values in rows.items()}
        host = {name: values[call_order] for name, values in host.items()}
        index = np.empty(call_order.size + 1, np.int64)
        index[call_order] = np.arange(self.calls.rows, self.calls.rows + call_order.size)
        index[-1] = -1
        rows |= {"stream": self.streams_of(rows["rank"], rows["device"], rows["stream"]), "call": index[rows["call"]]}
        host |= {"thread": self.threads_of(host["rank"], host["thread"]), "launches": host["made"].astype(bool)}
        for rank in np.union1d(rows["rank"], host["rank"]).tolist():
            mine = slice(*np.searchsorted(rows["rank"], [rank, rank + 1]).tolist())
            part = {name: values[mine] for name, values in rows.items()}
            self.work.append(**part)
            self.made_by.append(call=part["call"])
            mine = slice(*np.searchsorted(host["rank"], [rank, rank + 1]).tolist())
            part = {name: values[mine] for name, values in host.items()}
            part["scope"] = self.scopes_of(rank, part["scope"], part["start"], part["end"])
            self.calls.append(**part)
            self.ends_rank(rank)
        self.add_waits(waits)

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
        self._renumber(calls["scope"], self._streams, streams)
        self._renumber(calls["thread"], self._threads, threads)
        made_by = self.made_by.arrays()
        wait_for_own_copies(work, made_by["call"], calls, self.resolution, scratch)
        del work["memory"]
        ranks = sorted(self._work_of)
        row_of = {rank: row for row, rank in enumerate(ranks)}
        devices = {key: number for number, key in enumerate(sorted({key[:2] for key in streams}))}
        member = scratch.array(len(work["start"]), np.int32, -1)
        graph = Graph(
            ranks=ranks, work=Work(**work, **made_by, member=member),
            calls=HostCalls(**calls), texts=self.texts.texts, scratch=scratch,
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
            codes[part] = np.where(codes[part] >= 0, to[np.maximum(codes[part], 0)], codes[part])


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
        mine = np.concatenate(parts)
        start = work.start[mine]
        for first, row in groups[rank]:
            at = np.searchsorted(start, row)
            found = at < mine.size
            found[found] &= start[at[found]] == row[found]
            work.member[mine[at[found]]] = first + np.flatnonzero(found)
        given = work.member[mine]
        np.add.at(members, given[given >= 0], 1)
    graph.sizes = np.concatenate([np.zeros(0, np.int64), *(group.bus_bytes for group in collectives)])
    graph.members = members

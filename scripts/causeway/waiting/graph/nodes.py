"""The nodes of the graph as arrays: device work and host calls, ordered by start."""

from dataclasses import dataclass, field

import numpy as np

KERNEL, COLLECTIVE, COPY, GRAPH = range(4)
"""Kinds of device work; a graph is an execution that was traced as a whole."""
NO_SCOPE = -1
ALL_STREAMS = -2
"""What a call waits for: nothing, all streams of its rank, else one stream's row."""


@dataclass(kw_only=True)
class Work:
    """Device work of a dataset, ordered by start.

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
    """Outermost calls of host threads, ordered by start.

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
    """A dataset's nodes and, once they are linked, what each waits for.

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
    texts : list of str
        Names by code.
    order : ndarray of int64, shape (n + m,)
        All nodes so that each comes after what it waits for: work by its number, calls by n + their number.
    members : ndarray of int32, shape (collectives,)
        How many ranks have work of each matched collective.
    sizes : ndarray of int64, shape (collectives,), bytes
        Bus bytes (size x bus factor) of each; -1: not known.
    """

    ranks: list[int]
    work: Work
    calls: HostCalls
    stream_rank: np.ndarray
    thread_rank: np.ndarray
    texts: list[str]
    stream_device: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    order: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    members: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int32))
    sizes: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))


class Texts:
    """Texts with a code each: their position in the order of first appearance."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._codes: dict[str, int] = {}

    def code(self, text: str) -> int:
        """Return the code of a text."""
        found = self._codes.get(text)
        if found is None:
            found = self._codes[text] = len(self.texts)
            self.texts.append(text)
        return found

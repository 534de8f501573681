"""Nodes of a graph and what bound them, as compiled code takes them."""

from typing import Annotated, Any, NamedTuple, Protocol

import numpy as np

from causeway.numeric.compiled import I4, I8, U1, Record, int32, int64, uint8
from causeway.waiting.graph.nodes import Graph


class Nodes(NamedTuple):
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
        See `nodes.Graph`.
    """

    returns: Annotated[np.ndarray, I4]
    start: Annotated[np.ndarray, I8]
    end: Annotated[np.ndarray, I8]
    kind: Annotated[np.ndarray, U1]
    stream: Annotated[np.ndarray, I4]
    call: Annotated[np.ndarray, I4]
    member: Annotated[np.ndarray, I4]
    call_start: Annotated[np.ndarray, I8]
    call_end: Annotated[np.ndarray, I8]
    scope: Annotated[np.ndarray, I4]
    thread: Annotated[np.ndarray, I4]
    launches: Annotated[np.ndarray, U1]
    resolution: Annotated[int, int64]


class Bounds(NamedTuple):
    """What each node waited for.

    Attributes
    ----------
    before, other : ndarray of int32, shape (n,)
        Work before it in the stream; work of another stream.
    bound : ndarray of uint8, shape (n,)
    call_before, call_work : ndarray of int32, shape (m,)
        The call after which the thread went on; the work whose end a waiting call returned after; -1: none.
    """

    before: Annotated[np.ndarray, I4]
    other: Annotated[np.ndarray, I4]
    bound: Annotated[np.ndarray, U1]
    call_before: Annotated[np.ndarray, I4]
    call_work: Annotated[np.ndarray, I4]


class NewBounds(NamedTuple):
    """The same while it is found; `other` is given for explicit waits, else -1.

    Attributes
    ----------
    before, other : ndarray of int32, shape (n,), output
    bound : ndarray of uint8, shape (n,), output
    call_before, call_work : ndarray of int32, shape (m,), output
    """

    before: Annotated[np.ndarray, int32[::1]]
    other: Annotated[np.ndarray, int32[::1]]
    bound: Annotated[np.ndarray, uint8[::1]]
    call_before: Annotated[np.ndarray, int32[::1]]
    call_work: Annotated[np.ndarray, int32[::1]]


NODES = Record(Nodes)
BOUNDS = Record(Bounds)
NEW_BOUNDS = Record(NewBounds)


class HasBounds(Protocol):
    """What has the arrays of `Bounds`."""

    before: np.ndarray
    other: np.ndarray
    bound: np.ndarray
    call_before: np.ndarray
    call_work: np.ndarray


def nodes_of(graph: Graph, **changed: np.ndarray) -> Nodes:
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


def bounds_of(links: HasBounds, **changed: np.ndarray) -> Bounds:
    """Return what bound each node, with some arrays replaced."""
    return BOUNDS.of(**{**{name: getattr(links, name) for name in Bounds._fields}, **changed})


def new_bounds_of(links: HasBounds) -> NewBounds:
    """Return the arrays that a search for bounds writes."""
    return NEW_BOUNDS.of(**{name: getattr(links, name) for name in NewBounds._fields})

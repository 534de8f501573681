"""What each node of a graph waited for, rank by rank."""

from bisect import bisect_right
from collections.abc import Callable

import numpy as np

from causeway.waiting.graph.links import BY_CALL, BY_STREAM, LINKED_STREAMS, LINKED_THREADS, link
from causeway.waiting.graph.nodes import Graph, Links, bounds_of, nodes_of
from causeway.waiting.graph.scratch import WINDOW

DEFAULT_START_UP_NS = 5_000
"""Start-up latency of exports in which fewer than `LEAST_STARTS` launches show it: usual for CUDA and HIP."""
DEFAULT_BETWEEN_NS = 1_000
"""Time between two pieces of work of a stream of which the second is queued, likewise: 1.1 us of kernels on an H200."""
LEAST_STARTS = 20
"""Launches that are needed for a median latency."""
PROBE = 1 << 18
"""Nodes from which the latencies are taken."""


def linked(graph: Graph, explicit: np.ndarray) -> Links:
    """Return what each node of a graph waited for.

    Parameters
    ----------
    graph : Graph
    explicit : ndarray of int32, shape (n,)
        For each work the work of another stream that it waited for by an event; -1: none.
    """
    work = graph.work
    calls = graph.calls
    links = links_of(graph, DEFAULT_START_UP_NS)
    probed = first_nodes(graph, PROBE)
    for rank, (begin, end) in enumerate(zip(graph.work_of[:, 0].tolist(), probed[:, 0].tolist(), strict=True)):
        links.other[begin:end] = explicit[begin:end]
        sweep(graph, links, rank, probed[rank])
    parts = [np.arange(*pair) for pair in zip(graph.work_of[:, 0], probed[:, 0], strict=True)]
    rows = np.concatenate([np.zeros(0, np.int64), *parts])
    direct = rows[(links.bound[rows] == BY_CALL) & (work.call[rows] >= 0)]
    direct = direct[calls.end[work.call[direct]] <= work.start[direct]]
    start_up = _median(work.start[direct] - calls.end[work.call[direct]], DEFAULT_START_UP_NS)
    queued = rows[links.bound[rows] == BY_STREAM]
    asked = np.full(queued.size, np.iinfo(np.int64).min)
    made = work.call[queued] >= 0
    asked[made] = calls.end[work.call[queued[made]]]
    # asked for so late that its own start-up latency held it back, work was not queued when the work before it ended
    queued = queued[asked <= work.end[links.before[queued]] - start_up]
    between = _median(work.start[queued] - work.end[links.before[queued]], DEFAULT_BETWEEN_NS)
    links = links_of(graph, start_up, explicit)
    for rank in range(len(graph.ranks)):
        sweep(graph, links, rank)
    links.between = max(between, 0)
    return links


def _median(values: np.ndarray, default: int) -> int:
    return int(np.sort(values)[(values.size - 1) // 2]) if values.size >= LEAST_STARTS else default


def offsets_of(rows: np.ndarray, ranks: int) -> np.ndarray:
    """Return where the rows of each rank begin; int64, shape (ranks + 1,).

    Parameters
    ----------
    rows : ndarray of integers, shape (n,)
        Row of the rank of each, ascending.
    ranks : int
    """
    return np.searchsorted(rows, np.arange(ranks + 1)).astype(np.int64)


def links_of(graph: Graph, start_up: int, explicit: np.ndarray | None = None) -> Links:
    """Return links that `sweep` is to find, with `explicit` of shape (n,), what is known of waits for events."""
    n = graph.work.start.size
    m = graph.calls.start.size
    array = graph.scratch.array
    return Links(
        before=array(n, np.int32), other=array(n, np.int32) if explicit is None else graph.scratch.copy(explicit),
        bound=array(n, np.uint8), call_before=array(m, np.int32), call_work=array(m, np.int32), start_up=start_up,
        between=0,
    )  # fmt: skip


def sweep(graph: Graph, links: Links, rank: int, until: np.ndarray | None = None) -> None:
    """Find the links of a rank's nodes.

    Parameters
    ----------
    graph : Graph
    links : Links
        Its `other` holds explicit waits.
    rank : int
        Its row.
    until : ndarray of int64, shape (3,), optional
        Where its work, calls and returns end; else where they do.
    """
    ranks = len(graph.ranks)
    cursors = graph.cursors()[rank]
    if until is not None:
        cursors[3:] = until
    nodes = nodes_of(graph)
    streams = LINKED_STREAMS.of(
        rank=graph.stream_rank, device=graph.stream_device, offsets=offsets_of(graph.stream_rank, ranks),
        recent=np.full((graph.stream_rank.size, 2), -1),
    )  # fmt: skip
    threads = LINKED_THREADS.of(
        rank=graph.thread_rank, offsets=offsets_of(graph.thread_rank, ranks),
        latest=np.full((graph.thread_rank.size, 3), -1),
    )  # fmt: skip
    bounds = bounds_of(links)
    done = WINDOW
    while done == WINDOW:
        done = link(cursors, WINDOW, nodes, streams, threads, links.start_up, bounds)
        graph.scratch.used(done)


def first_nodes(graph: Graph, most: int) -> np.ndarray:
    """Return where work, calls and returns of each rank end, if only the first nodes of all ranks in the order of time
    are taken; int64, shape (ranks, 3).

    Parameters
    ----------
    graph : Graph
    most : int
        How many: all, where there are no more. Of equal times returns of calls come first, then begins, then work; of
        these those of the first rank.
    """
    cursors = graph.cursors()
    if (cursors[:, 3:] - cursors[:, :3]).sum() <= most:
        return cursors[:, 3:].copy()
    low, high = (sign * (1 << 62) for sign in (-1, 1))
    while high - low > 1:  # the last moment up to which there are not too many
        middle = (low + high) // 2
        if (_until(middle, cursors, graph) - cursors[:, :3]).sum() <= most:
            low = middle
        else:
            high = middle
    ends, more = (_until(moment, cursors, graph) for moment in (low, high))
    left = most - int((ends - cursors[:, :3]).sum())
    for kind in (2, 1, 0):
        for rank in range(len(ends)):
            taken = min(left, int(more[rank, kind] - ends[rank, kind]))
            ends[rank, kind] += taken
            left -= taken
    return ends


def _until(moment: int, cursors: np.ndarray, graph: Graph) -> np.ndarray:
    """Return where the work, calls and returns of each rank that are not after a moment end."""
    calls = graph.calls
    kinds: tuple[tuple[np.ndarray, Callable[[int], int] | None], ...] = (
        (graph.work.start, None),
        (calls.start, None),
        (graph.returns, calls.end.__getitem__),
    )
    ends = np.zeros((len(cursors), 3), np.int64)
    for kind, (rows, key) in enumerate(kinds):
        for rank, cursor in enumerate(cursors.tolist()):
            ends[rank, kind] = bisect_right(rows, moment, cursor[kind], cursor[3 + kind], key=key)
    return ends

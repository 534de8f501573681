"""Waits for events of other streams that the export records: which work waited for which."""

import numpy as np

from causeway.numeric.compiled import I8, compiled_borrowing, int64, record, void
from causeway.waiting.graph.nodes import NODES, Graph, nodes_of

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
    found = graph.scratch.array(work.start.size, np.int32, -1)
    rows: dict[tuple[int, int], int] = {}
    for row, (rank, _, stream) in enumerate(streams):
        rows.setdefault((rank, stream), row)
    keys = np.unique(waits[[0, 1, 3]], axis=1) if waits.size else np.zeros((3, 0), np.int64)
    for number, rank in enumerate(graph.ranks):
        mine = waits[:, waits[0] == rank] if keys.size else waits
        pairs = {}
        for of_rank, stream, source in keys.T.tolist():
            if of_rank == rank and (rank, stream) in rows and (rank, source) in rows:
                moments = np.sort(mine[2, (mine[1] == stream) & (mine[3] == source)])
                pairs[rows[rank, stream], rows[rank, source]] = moments
        if pairs:
            _give(found, graph, number, pairs)
    return found


def _give(found: np.ndarray, graph: Graph, rank: int, pairs: dict[Pair, np.ndarray]) -> None:
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
        mine = slice(offsets[number], offsets[number + 1])
        usable = (target[mine] >= 0) & (origin[mine] >= 0)
        late = target[mine][usable]
        early = origin[mine][usable]
        before = work.end[early] <= work.start[late] + graph.resolution
        late = late[before]
        early = early[before]
        held = found[late]
        later = (held < 0) | (work.end[early] > work.end[held])
        found[late[later]] = early[later]


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

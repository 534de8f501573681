"""Small random graphs, and what each node waited for by the rules as they are written down, node by node."""

import numpy as np
from path_pieces import pieces_of

from causeway.waiting.graph.blocking_copies import DRAINED_NS
from causeway.waiting.graph.links import HAND_OVER_CALLS, INFERRED_NS, LAST_PART
from causeway.waiting.graph.nodes import ALL_STREAMS, KERNEL, NO_SCOPE, Graph, HostCalls, Work
from causeway.waiting.path.path_table import PathSums, last_ranks_of, rows_of


def random_graph(seed):
    """Return a graph of one or two ranks, and the explicit waits of its work; kinds, names and times are random."""
    rng = np.random.default_rng(seed)
    ranks = int(rng.integers(1, 3))
    streams = int(rng.integers(1, 4))
    threads = int(rng.integers(1, 3))
    calls = []
    work = []
    for rank in range(ranks):
        for thread in range(threads):
            now = int(rng.integers(0, 300))
            for _ in range(rng.integers(1, 30 if thread == 0 else 12)):
                now += int(rng.choice([0, rng.integers(0, 30), rng.integers(0, 2000)], p=[0.2, 0.6, 0.2]))
                length = int(rng.integers(1, 60))
                row = rank * threads + thread
                waits = rng.random() < 0.25
                stream = rank * streams + int(rng.integers(streams))
                if waits:
                    length += int(rng.integers(0, 2000))
                scope = NO_SCOPE if not waits or not length else int(rng.choice([ALL_STREAMS, stream]))
                call = [now, now + length, row, int(rng.integers(0, 5)), scope, 0]
                if rng.random() < 0.7:
                    call[5] = 1
                    work.append([now, stream, len(calls)])
                now += length
                calls.append(call)
    free = {}
    rows = []
    for begun, stream, call in work:
        ready = max(begun + int(rng.integers(0, 80)), free.get(stream, 0) - int(rng.random() < 0.1) * 5)
        start = max(ready + int(rng.choice([0, rng.integers(0, 20), rng.integers(0, 20000)], p=[0.5, 0.4, 0.1])), begun)
        end = start + int(rng.integers(0, 800))
        free[stream] = end
        rows.append([start, end, stream, int(rng.integers(0, 4)), call if rng.random() < 0.9 else -1])
    return built(rows, calls, ranks, streams, threads, rng)


def built(rows, calls, ranks, streams, threads, rng):
    """Return the graph of these rows, ordered, with collectives over both ranks, and explicit waits."""
    order = sorted(range(len(rows)), key=lambda i: (rows[i][2] // streams, rows[i][0], rows[i][2]))
    by_start = sorted(range(len(calls)), key=lambda i: (calls[i][2] // threads, calls[i][0], -calls[i][1]))
    place = {old: new for new, old in enumerate(by_start)}
    columns = np.array([rows[i] for i in order], np.int64).reshape(-1, 5)
    host = np.array([calls[i] for i in by_start], np.int64).reshape(-1, 6)
    call = np.array([place.get(one, -1) for one in columns[:, 4].tolist()], np.int32)
    stream_rank = np.repeat(np.arange(ranks), streams).astype(np.int32)
    stream_device = np.arange(ranks * streams) // max(streams - 1, 1)  # the last stream is of another device
    member = np.full(len(rows), -1, np.int32)
    each = [
        [i for i in range(len(rows)) if stream_rank[columns[i, 2]] == r and columns[i, 3] == 1] for r in range(ranks)
    ]
    joint = min(map(len, each)) if ranks > 1 else 0
    for items in each:
        member[items[:joint]] = np.arange(joint)
    work = Work(
        start=columns[:, 0].copy(), end=columns[:, 1].copy(), stream=columns[:, 2].astype(np.int32),
        kind=columns[:, 3].astype(np.uint8), name=columns[:, 3].astype(np.int32),
        operator=np.full(len(rows), -1, np.int32), call=call, member=member,
    )  # fmt: skip
    host = HostCalls(
        start=host[:, 0].copy(), end=host[:, 1].copy(), thread=host[:, 2].astype(np.int32),
        name=host[:, 3].astype(np.int32), scope=host[:, 4].astype(np.int32), launches=host[:, 5].astype(bool),
    )  # fmt: skip
    graph = Graph(
        ranks=list(range(ranks)), work=work, calls=host, stream_rank=stream_rank, stream_device=stream_device,
        thread_rank=np.repeat(np.arange(ranks), threads).astype(np.int32), texts=[f"name {i}" for i in range(6)],
        members=np.full(joint, ranks, np.int32), sizes=np.full(joint, -1, np.int64),
    )  # fmt: skip
    explicit = np.full(len(rows), -1, np.int32)
    for i in range(len(rows)):
        rank = stream_rank[work.stream[i]]
        early = [j for j in range(i) if work.end[j] <= work.start[i] and stream_rank[work.stream[j]] == rank]
        early = [j for j in early if work.stream[j] != work.stream[i]]
        if early and rng.random() < 0.15:
            explicit[i] = rng.choice(early)
    return graph, explicit


def in_time(graph):
    """Return the nodes in the order of time: returns of calls that wait, then begins of calls, then work."""
    work = graph.work
    calls = graph.calls
    n = work.start.size
    m = calls.start.size
    ranks = graph.stream_rank[work.stream].tolist()
    nodes = [(calls.end[c], 0, 0, 0, c, n + m + c) for c in range(m) if calls.scope[c] != NO_SCOPE]
    nodes += [(calls.start[c], 1, 0, 0, c, n + c) for c in range(m)]
    nodes += [(work.start[i], 2, ranks[i], work.stream[i], i, i) for i in range(n)]
    return [int(node[-1]) for node in sorted(nodes)]


def path_rows(paths, schedule, steps):
    """Return rank, step (-1: the whole run), kind, name, operator ('' where none is known) and ns of all ranks."""
    last_ranks = last_ranks_of(paths.graph, schedule)
    rows = []
    for row in paths.ranks():
        rank = paths.graph.ranks[row]
        sums = PathSums(paths.graph, last_ranks, steps.get(rank))
        sums.take(pieces_of(paths, schedule, row))
        rows += rows_of(rank, sums)
    return rows


def kernel_ns(paths, schedule):
    """Return how long kernels are on the paths, by the code of their name."""
    last_ranks = last_ranks_of(paths.graph, schedule)
    total = np.zeros(len(paths.graph.texts), np.int64)
    for row in paths.ranks():
        sums = PathSums(paths.graph, last_ranks)
        sums.take(pieces_of(paths, schedule, row))
        total += sums.kernel_ns
    return total


class PlainLinks:
    """What each node waited for: (what bound it, work before it, other work), call before a call, work before its
    return; looked up one by one among all nodes.
    """

    def __init__(self, graph, explicit, start_up):
        self.g = graph
        self.start_up = start_up
        n = graph.work.start.size
        m = graph.calls.start.size
        self.position = {int(node): at for at, node in enumerate(in_time(graph))}
        self.n = n
        self.m = m
        self.work = [self.of_work(i, int(explicit[i])) for i in range(n)]
        self.calls = [self.of_call(c) for c in range(m)]

    def two_latest(self, stream, before):
        """Return the last two pieces of work of a stream before a position of the order."""
        work = self.g.work
        mine = [j for j in range(self.n) if work.stream[j] == stream and self.position[j] < before]
        return sorted(mine, key=self.position.get)[-2:][::-1]

    def last_ended(self, streams, moment, after, before):
        """Return the work of these streams that ended last by a moment and after another; None if none did."""
        end = self.g.work.end
        found = None
        for stream in streams:
            ended = [j for j in self.two_latest(stream, before) if end[j] <= moment][:1]
            for j in ended:
                if end[j] > after and (found is None or end[j] > end[found]):
                    found = j
        return found

    def streams_of(self, rank):
        return [s for s in range(self.g.stream_rank.size) if self.g.stream_rank[s] == rank]

    def of_work(self, i, other):
        work = self.g.work
        calls = self.g.calls
        start = work.start[i]
        previous = next(iter(self.two_latest(work.stream[i], self.position[i])), None)
        options = []
        if previous is not None:
            options.append((work.end[previous], "stream"))
        if other >= 0:
            options.append((work.end[other], "work"))
        c = work.call[i]
        if c >= 0:
            running = calls.end[c] > start
            asked = calls.end[c] if not running else (calls.start[c] if calls.scope[c] != NO_SCOPE else start)
            options.append((asked, "call"))
        ready = None
        how = None
        for moment, word in options:  # of equal moments the first counts
            if ready is None or moment > ready:
                ready = moment
                how = word
        if other < 0 and (how is None or start - ready > 2 * self.start_up):
            after = -(1 << 62) if how is None and c < 0 else max(ready, start - INFERRED_NS)
            rank = self.g.stream_rank[work.stream[i]]
            found = self.last_ended(self.streams_of(rank), start, after, self.position[i])
            if found is None and how is not None and work.kind[i] == KERNEL:
                found = self.in_the_way(i)
            if found is not None:
                other = found
                how = "work"
        return how, previous, other if other >= 0 else None

    def in_the_way(self, i):
        """Return the kernel of another stream in whose last part the work starts; None if there is none."""
        work = self.g.work
        rank = self.g.stream_rank[work.stream[i]]
        latest = [self.two_latest(stream, self.position[i])[:1] for stream in self.streams_of(rank)]
        device = self.g.stream_device
        found = [
            (work.end[j], work.stream[j], j)
            for one in latest
            for j in one
            if work.stream[j] != work.stream[i]
            and device[work.stream[j]] == device[work.stream[i]]
            and work.kind[j] == KERNEL
            and work.end[j] > work.start[i] >= work.end[j] - (work.end[j] - work.start[j]) / LAST_PART
        ]
        return min(found)[2] if found else None

    def of_call(self, c):
        calls = self.g.calls
        rank = self.g.thread_rank[calls.thread[c]]
        here = self.position[self.n + c]
        earlier = [j for j in range(self.m) if self.position[self.n + j] < here]
        earlier = [j for j in earlier if self.g.thread_rank[calls.thread[j]] == rank]
        latest = {}
        for j in sorted(earlier, key=lambda j: self.position[self.n + j]):
            latest[int(calls.thread[j])] = j
        own = latest.get(int(calls.thread[c]))
        since = [j for j in earlier if own is not None and self.position[self.n + j] > self.position[self.n + own]]
        before = own
        if own is None or len(since) >= HAND_OVER_CALLS:
            for j in (latest[thread] for thread in sorted(latest)):
                if calls.end[j] <= calls.start[c] and (before is None or calls.end[j] > calls.end[before]):
                    before = j
        waited = None
        if calls.scope[c] != NO_SCOPE:
            streams = self.streams_of(rank) if calls.scope[c] == ALL_STREAMS else [int(calls.scope[c])]
            drains = DRAINED_NS if calls.launches[c] and calls.scope[c] != ALL_STREAMS else 0
            moment = calls.end[c] + drains
            waited = self.last_ended(streams, moment, calls.start[c], self.position[self.n + self.m + c])
        return before, waited

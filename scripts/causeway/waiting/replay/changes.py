"""What is changed before a replay, one thing at a time."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from causeway.numeric.compiled import I4, compiled, int32, int64, void
from causeway.numeric.intervals import overlap
from causeway.waiting.graph.nodes import COLLECTIVE, COPY, KERNEL, NO_SCOPE, Graph, Links
from causeway.waiting.graph.scratch import Scratch
from causeway.waiting.replay.replayed import Durations

FASTER = 10
"""Percent by which a kernel is taken to be faster: an improvement that tuning often gives, and small enough that what
limits the run rarely changes."""
MOST_KERNELS = 3
"""Kernels that are made faster, those with the longest time on critical paths."""
BEST_QUANTILE = 0.9
"""Quantile of the bus bandwidths of a dataset's matched collectives that counts as what the links can do: the highest
one may owe its value to clocks that disagree."""
LEAST_COLLECTIVES = 10
"""Collectives of known size that are needed for it."""
Change = Callable[[slice, np.ndarray], np.ndarray]
"""Gives the durations of some work, from which work it is and its durations as measured."""
Items = dict[int, np.ndarray]
"""Numbers of the items of each rank that has some; int32, shape (items,)."""


@dataclass(frozen=True, kw_only=True)
class OneChange:
    """One change of a graph.

    Attributes
    ----------
    word : str
        One of `vocabulary.REPLAYED_CHANGES`.
    name : str or None
        Of the kernel or the rank that is changed.
    durations : Durations
    naive_ns : int
        Upper bound that needs no graph: how much less time is summed, on the rank where that is most.
    """

    word: str
    name: str | None
    durations: Durations
    naive_ns: int


def changes(graph: Graph, links: Links, plain: Durations, kernel_ns: np.ndarray) -> Iterator[OneChange]:
    """Give the changes that apply to a graph; the first is no change.

    Parameters
    ----------
    graph : Graph
    links : Links
    plain : Durations
        As measured.
    kernel_ns : ndarray of int64, shape (texts,), ns
        How long kernels are on the measured paths, by the code of their name.
    """
    work = graph.work
    yield OneChange(word="nothing", name=None, durations=plain, naive_ns=0)
    for word, kind in (("collectives_free", COLLECTIVE), ("copies_free", COPY)):
        if any((work.kind[part] == kind).any() for _, part in graph.parts(graph.work_of)):

            def none(part: slice, own: np.ndarray, kind: int = kind) -> np.ndarray:
                return np.where(work.kind[part] == kind, np.minimum(own, 0), own)

            change = _of_work(graph, word, None, plain, none)
            yield _without_their_calls(graph, plain, change) if kind == COPY else change
    best = _best_bandwidth(graph, plain)
    if best is not None:

        def at_best(part: slice, own: np.ndarray) -> np.ndarray:
            joint = np.flatnonzero((work.member[part] >= 0) & (own > 0))
            size = graph.sizes[work.member[part][joint]]
            joint = joint[size > 0]
            changed = own.copy()
            changed[joint] = np.minimum(changed[joint], np.ceil(size[size > 0] / best).astype(np.int64))
            return changed

        yield _of_work(graph, "collectives_at_best_bandwidth", None, plain, at_best)
    if any(graph.calls.launches[part].any() for _, part in graph.parts(graph.calls_of)):
        yield from _host(graph, links, plain)
    for code in top_kernels(kernel_ns):

        def faster(part: slice, own: np.ndarray, code: int = code) -> np.ndarray:
            chosen = (work.kind[part] == KERNEL) & (work.name[part] == code)
            return np.where(chosen, own - own * FASTER // 100, own)

        yield _of_work(graph, "kernel_faster", graph.texts[code], plain, faster)
    late = _no_straggler(graph, links, plain)
    if late is not None:
        yield late


def _of_work(graph: Graph, word: str, name: str | None, plain: Durations, change: Change) -> OneChange:
    """Return a change of work alone; of collectives the time of waiting for late ranks counts as saved, too, in the
    naive bound of those that are free.
    """
    work = graph.work
    changed = graph.scratch.array(plain.work.size, np.int64)
    saved = np.zeros(len(graph.ranks), np.int64)
    for row, part in graph.parts(graph.work_of):
        changed[part] = change(part, plain.work[part])
        if word == "collectives_free":
            saved[row] += (work.end[part] - work.start[part])[work.kind[part] == COLLECTIVE].sum()
        else:
            saved[row] += (plain.work[part] - changed[part]).sum()
    return OneChange(word=word, name=name, durations=replace(plain, work=changed), naive_ns=int(saved.max()))


def _without_their_calls(graph: Graph, plain: Durations, change: OneChange) -> OneChange:
    """Return a change of copies in which the calls that make them take no time either, unless they wait: of pageable
    memory a call copies, too.
    """
    work = graph.work
    scratch = graph.scratch
    calls = scratch.copy(plain.call)
    saved = np.zeros(len(graph.ranks), np.int64)
    for row, part in graph.parts(graph.work_of):
        made_by = np.unique(work.call[part][(work.kind[part] == COPY) & (work.call[part] >= 0)])
        made_by = made_by[scratch.taken(graph.calls.scope, made_by) == NO_SCOPE]
        saved[row] += scratch.taken(calls, made_by).sum()
        scratch.put(calls, made_by, np.zeros(made_by.size, np.int64))
    naive = change.naive_ns + int(saved.max())
    return replace(change, durations=replace(change.durations, call=calls), naive_ns=naive)


def _host(graph: Graph, links: Links, plain: Durations) -> Iterator[OneChange]:
    """Give launches without cost, unless no launch call has a length (of calls that stand for the moment at which work
    was enqueued nothing is known), then a host that takes no time but for what it waits for and what is no time of
    the program: calls of MPI and the profiler's own work.
    """
    array = graph.scratch.array
    frees = np.array(["Free" in text for text in graph.texts], bool)
    for word in ("launches_free", "host_free"):
        call = array(plain.call.size, np.int64)
        gap = plain.gap if word == "launches_free" else array(plain.gap.size, np.int64)
        saved = np.zeros(len(graph.ranks), np.int64)
        for row, part in graph.parts(graph.calls_of):
            if word == "launches_free":
                call[part] = np.where(graph.calls.launches[part], 0, plain.call[part])
            else:
                start = graph.calls.start[part]
                gap[part] = np.minimum(plain.gap[part], _staying(graph, part, start - plain.gap[part], start))
                stays = _staying(graph, part, start, start + plain.call[part])
                call[part] = np.where(graph.calls.scope[part] == NO_SCOPE, stays, 0)
            saved[row] += (plain.call[part] - call[part] + plain.gap[part] - gap[part]).sum()
            # what only waits may go on for work that is not recorded
            waits = (links.call_work[part] >= 0) & ~frees[graph.calls.name[part]]
            call[part] = np.where(waits, plain.call[part], call[part])
        if word == "host_free" or saved.any():
            yield OneChange(
                word=word, name=None, durations=replace(plain, call=call, gap=gap), naive_ns=int(saved.max())
            )


def _staying(graph: Graph, part: slice, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return how much time of the threads of some calls stays between two moments of each where the host is free, 0
    where they are in the other order; all int64 of shape (calls,), ns.
    """
    staying = np.zeros(start.size, np.int64)
    thread = graph.calls.thread[part]
    for row in np.unique(thread).tolist() if graph.staying else ():
        of_thread = np.flatnonzero((thread == row) & (end > start))
        staying[of_thread] = overlap(start[of_thread], end[of_thread], graph.staying[row])
    return staying


def _best_bandwidth(graph: Graph, plain: Durations) -> float | None:
    """Return what counts as the best bus bandwidth of matched collectives, bytes per ns; None where too few of them
    have a known size.
    """
    work = graph.work
    parts = [np.zeros(0)]
    for _, part in graph.parts(graph.work_of) if graph.members.size else ():
        own = plain.work[part]
        joint = np.flatnonzero((work.member[part] >= 0) & (own > 0))
        size = graph.sizes[work.member[part][joint]]
        parts.append(size[size > 0] / own[joint[size > 0]])
    rates = np.concatenate(parts)
    return np.quantile(rates, BEST_QUANTILE, method="lower") if rates.size >= LEAST_COLLECTIVES else None


def top_kernels(kernel_ns: np.ndarray) -> list[int]:
    """Return the codes of the names of the kernels with the longest time on the ranks' critical paths: `kernel_ns`, of
    shape (texts,), as in `changes`.
    """
    order = np.argsort(-kernel_ns, kind="stable")[:MOST_KERNELS]
    return [int(code) for code in order if kernel_ns[code] > 0]


def _no_straggler(graph: Graph, links: Links, plain: Durations) -> OneChange | None:
    """Return a change in which the rank that delays the others longest lasts, item by item, as the median of the other
    ranks; None without such a rank, or where ranks do not run the same items in the same order.
    """
    if len(graph.ranks) < 3 or not graph.members.size:
        return None
    delays = _delays(graph)
    late = int(delays.argmax())
    if not delays[late]:
        return None
    work = graph.work
    calls = graph.calls
    scratch = graph.scratch
    items = _items(graph.work_of, work.name, work.stream, scratch)
    called = _items(graph.calls_of, calls.name, calls.thread, scratch)
    if items is None or called is None:
        return None
    own = _as_others(items, plain.work, late, scratch, work.member, none=True)
    call = _as_others(called, plain.call, late, scratch, links.call_work, none=True)
    gap = _as_others(called, plain.gap, late, scratch, links.call_work, none=False)
    durations = replace(plain, work=own, call=call, gap=gap)
    name = f"rank {graph.ranks[late]}"
    return OneChange(word="no_straggler", name=name, durations=durations, naive_ns=int(delays[late]))


def _delays(graph: Graph) -> np.ndarray:
    """Return how long each rank delayed the others at collectives, as their last one; int64, shape (ranks,), ns."""
    joint = graph.joint_work()
    _, rank, start, member = joint[:, graph.members[joint[3]] > 1]
    order = np.lexsort((rank, start, member))
    last = np.flatnonzero(np.append(np.diff(member[order]) != 0, True)) if order.size else order
    last = last[last > 0]
    delays = np.zeros(len(graph.ranks), np.int64)
    np.add.at(delays, rank[order[last]], start[order[last]] - start[order[last - 1]])
    return delays


def _items(rows_of: np.ndarray, name: np.ndarray, row: np.ndarray, scratch: Scratch) -> Items | None:
    """Return of each rank with items their numbers, in the order of its rows (streams or threads); None if the ranks do
    not run the same items.
    """
    items: Items = {}
    if len({end - begin for begin, end in rows_of.tolist() if end > begin}) > 1:
        return None
    for rank, (begin, end) in enumerate(rows_of.tolist()):
        if end == begin:
            continue
        counts = np.zeros(0, np.int64)
        for part in scratch.windows(end, begin):
            more = np.bincount(row[part], minlength=counts.size)
            more[: counts.size] += counts
            counts = more
        to = np.cumsum(counts) - counts
        numbers = items[rank] = scratch.array(end - begin, np.int32)
        for part in scratch.windows(end, begin):
            _number(part.start, part.stop, row, to, numbers)
        first = next(iter(items.values()))
        for part in scratch.windows(numbers.size):
            if (name[numbers[part]] != name[first[part]]).any():
                return None
    return items


@compiled(void(int64, int64, I4, int64[::1], int32[::1]))
def _number(begin, stop, row, to, numbers):
    """Write numbers of items where their rows go on.

    Parameters
    ----------
    begin, stop : int
        The items.
    row : array of int32
        Of each item.
    to : array of int64, shape (rows,)
        Where the next item of each row belongs; moved on.
    numbers : array of int32, output
    """
    for i in range(begin, stop):
        numbers[to[row[i]]] = i
        to[row[i]] += 1


def _as_others(
    items: Items, values: np.ndarray, late: int, scratch: Scratch, held: np.ndarray, *, none: bool
) -> np.ndarray:
    """Return values in which those of one rank are the medians of the other ranks, item by item; where `none`, only if
    an item has no number in `held` (-1). As they are, where the rank has no items.
    """
    if late not in items or len(items) < 2:
        return values
    changed = scratch.copy(values)
    for part in scratch.windows(items[late].size, ranks=len(items)):
        others = np.stack([values[rows[part]] for rank, rows in items.items() if rank != late])
        own = items[late][part]
        median = np.sort(others, axis=0)[(len(others) - 1) // 2]
        changed[own] = np.where(held[own] < 0, median, values[own]) if none else median
    return changed

"""What is changed before a replay, one thing at a time."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from causeway.waiting.graph.nodes import COLLECTIVE, COPY, KERNEL, Graph
from causeway.waiting.graph.read_graph import Links
from causeway.waiting.path.critical_path import CriticalPaths, Schedule
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


def changes(
    graph: Graph, links: Links, paths: CriticalPaths, schedule: Schedule, plain: Durations
) -> Iterator[OneChange]:
    """Give the changes that apply to a graph; the first is no change.

    Parameters
    ----------
    graph : Graph
    links : Links
    paths : CriticalPaths
    schedule : Schedule
        As measured.
    plain : Durations
        As measured.
    """
    work = graph.work
    yield OneChange(word="nothing", name=None, durations=plain, naive_ns=0)
    options = [
        ("collectives_free", None, work.kind == COLLECTIVE),
        ("copies_free", None, work.kind == COPY),
    ]
    for word, name, chosen in options:
        if chosen.any():
            fewer = np.where(chosen, np.minimum(plain.work, 0), plain.work)
            yield _of_work(graph, word, name, plain, fewer)
    at_best = _at_best_bandwidth(graph, plain)
    if at_best is not None:
        yield _of_work(graph, "collectives_at_best_bandwidth", None, plain, at_best)
    if graph.calls.launches.any():
        yield from _host(graph, plain)
    for code in _top_kernels(graph, paths, schedule):
        chosen = (work.kind == KERNEL) & (work.name == code)
        faster = np.where(chosen, plain.work - plain.work * FASTER // 100, plain.work)
        yield _of_work(graph, "kernel_faster", graph.texts[code], plain, faster)
    late = _no_straggler(graph, links, schedule, plain)
    if late is not None:
        yield late


def _of_work(graph: Graph, word: str, name: str | None, plain: Durations, work_ns: np.ndarray) -> OneChange:
    """Return a change of work alone; of collectives the time of waiting for late ranks counts as saved, too, in the
    naive bound of those that are free.
    """
    saved = plain.work - work_ns
    if word == "collectives_free":
        saved = np.where(graph.work.kind == COLLECTIVE, graph.work.end - graph.work.start, 0)
    by_rank = np.zeros(len(graph.ranks), np.int64)
    np.add.at(by_rank, graph.stream_rank[graph.work.stream], saved)
    return OneChange(word=word, name=name, durations=plain.but(work=work_ns), naive_ns=int(by_rank.max()))


def _host(graph: Graph, plain: Durations) -> Iterator[OneChange]:
    """Give launches without cost, then a host that takes no time at all but for what it waits for."""
    calls = graph.calls
    launching = np.where(calls.launches, 0, plain.call)
    rank = graph.thread_rank[calls.thread]
    for word, call, gap in (
        ("launches_free", launching, plain.gap),
        ("host_free", np.zeros_like(plain.call), np.minimum(plain.gap, 0)),
    ):
        saved = np.zeros(len(graph.ranks), np.int64)
        np.add.at(saved, rank, plain.call - call + plain.gap - gap)
        yield OneChange(word=word, name=None, durations=plain.but(call=call, gap=gap), naive_ns=int(saved.max()))


def _at_best_bandwidth(graph: Graph, plain: Durations) -> np.ndarray | None:
    """Return durations in which no matched collective of known size is slower than the best bandwidths were."""
    work = graph.work
    joint = np.flatnonzero((work.member >= 0) & (plain.work > 0))
    joint = joint[graph.sizes[work.member[joint]] > 0]
    if joint.size < LEAST_COLLECTIVES:
        return None
    size = graph.sizes[work.member[joint]]
    best = np.quantile(size / plain.work[joint], BEST_QUANTILE, method="lower")
    found = plain.work.copy()
    found[joint] = np.minimum(found[joint], np.ceil(size / best).astype(np.int64))
    return found


def _top_kernels(graph: Graph, paths: CriticalPaths, schedule: Schedule) -> list[int]:
    """Return the names of the kernels with the longest time on the ranks' critical paths."""
    total = np.zeros(len(graph.texts), np.int64)
    for rank in paths.ranks():
        pieces = paths.pieces(schedule, rank)
        mine = pieces[pieces[:, 2] == KERNEL]
        np.add.at(total, graph.work.name[mine[:, 3]], mine[:, 1] - mine[:, 0])
    order = np.argsort(-total, kind="stable")[:MOST_KERNELS]
    return [int(code) for code in order if total[code] > 0]


def _no_straggler(graph: Graph, links: Links, schedule: Schedule, plain: Durations) -> OneChange | None:
    """Return a change in which the rank that delays the others longest lasts, item by item, as the median of the other
    ranks; None without such a rank, or where ranks do not run the same items in the same order.
    """
    work = graph.work
    calls = graph.calls
    if len(graph.ranks) < 3 or not graph.members.size:
        return None
    rank = graph.stream_rank[work.stream]
    joint = np.flatnonzero((work.member >= 0) & (graph.members[work.member] > 1))
    delays = np.zeros(len(graph.ranks), np.int64)
    order = joint[np.lexsort((work.start[joint], work.member[joint]))]
    last = np.flatnonzero(np.append(np.diff(work.member[order]) != 0, True)) if order.size else order
    last = last[last > 0]
    np.add.at(delays, rank[order[last]], work.start[order[last]] - work.start[order[last - 1]])
    late = int(delays.argmax())
    if not delays[late]:
        return None
    call_rank = graph.thread_rank[calls.thread]
    own = _as_others(rank, work.name, work.stream, plain.work, late, work.member < 0)
    call = _as_others(call_rank, calls.name, calls.thread, plain.call, late, links.call_work < 0)
    gap = _as_others(call_rank, calls.name, calls.thread, plain.gap, late, np.ones(call_rank.size, bool))
    if own is None or call is None or gap is None:
        return None
    durations = plain.but(work=own, call=call, gap=gap)
    name = f"rank {graph.ranks[late]}"
    return OneChange(word="no_straggler", name=name, durations=durations, naive_ns=int(delays[late]))


def _as_others(
    rank: np.ndarray, name: np.ndarray, row: np.ndarray, values: np.ndarray, late: int, usable: np.ndarray
) -> np.ndarray | None:
    """Return values in which those of one rank are the medians of the other ranks, item by item in the order of each
    rank's rows (streams or threads); None if names differ.
    """
    ranks = np.unique(rank)
    each = [np.flatnonzero(rank == one) for one in ranks]
    if len({items.size for items in each}) > 1:
        return None
    each = [items[np.argsort(row[items], kind="stable")] for items in each]
    if any((name[items] != name[each[0]]).any() for items in each):
        return None
    if not each or late not in ranks:
        return values
    others = np.stack([values[items] for one, items in zip(ranks, each, strict=True) if one != late])
    mine = each[int(np.searchsorted(ranks, late))]
    median = np.sort(others, axis=0)[(len(others) - 1) // 2]
    found = values.copy()
    found[mine] = np.where(usable[mine], median, values[mine])
    return found

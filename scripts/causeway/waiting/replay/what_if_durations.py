"""How long launches last under a what-if of the causal analysis, launch by launch.

The analysis says what a changed cause does to the mean of a kernel's durations and to their 99th percentile. Which
launches become shorter decides what a run gains, because ranks wait for the slowest.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from causeway.core.codes import COPY_KINDS
from causeway.core.feature_registry import record_of
from causeway.waiting.graph.nodes import COLLECTIVE, COPY, KERNEL, Graph
from causeway.waiting.path.critical_path import Schedule

NONE = "none"
"""How `whatif.parquet` names an exposure that never occurs."""
LAUNCHES_IN_FLIGHT = "launches_in_flight"
TRANSFERS_IN_FLIGHT = "transfers_in_flight"
TAIL_QUANTILE = 0.99
MOST_SCALE = 1.5
"""Largest factor by which deviations from the mean may grow."""


@dataclass(frozen=True, kw_only=True)
class KernelWhatIf:
    """A what-if of one kernel, as `whatif.parquet` has it; changes as ratios, less than 0 where launches are shorter.

    Attributes
    ----------
    kernel : str
        Full name.
    feature, to : str
    mean, low, high : float
        Change of the mean duration, with its 90 % interval.
    p99 : float or None
        Change of the 99th percentile.
    """

    kernel: str
    feature: str
    to: str
    mean: float
    low: float
    high: float
    p99: float | None


def durations_under(graph: Graph, schedule: Schedule, work_ns: np.ndarray, change: KernelWhatIf) -> np.ndarray | None:
    """Return how long all work lasts under a what-if.

    Where an exposure never occurs (no copy, no other launch in flight), the launches during whose start it did are
    shorter by the same ratio, and the others are as they were. Otherwise all are moved and brought nearer to their
    mean, by a location and a scale that give the changed mean and 99th percentile.

    Parameters
    ----------
    graph : Graph
        Its kernels have their full names.
    schedule : Schedule
        As measured.
    work_ns : ndarray of int64, shape (n,), ns
        As measured.
    change : KernelWhatIf

    Returns
    -------
    ndarray of int64, shape (n,), ns; None where no launch can be changed like this
    """
    chosen = launches_of(graph, change.kernel)
    if not chosen.size:
        return None
    own = graph.scratch.taken(work_ns, chosen).astype(np.float64)
    exposed = exposed_launches(graph, schedule, chosen, change.feature) if change.to == NONE else None
    changed: np.ndarray | None
    if exposed is None:
        changed = _moved(own, change)
    else:
        total = own[exposed].sum()
        changed = own * (1.0 + change.mean * own.sum() / total * exposed) if total > 0 else None
    if changed is None or changed.min() < 0:
        return None
    found = graph.scratch.copy(work_ns)
    graph.scratch.put(found, chosen, np.rint(changed).astype(np.int64))
    return found


def _moved(own: np.ndarray, change: KernelWhatIf) -> np.ndarray:
    mean = own.mean()
    tail = float(np.quantile(own, TAIL_QUANTILE))
    scale = 1.0 + change.mean
    if change.p99 is not None and tail > mean:
        wanted = (tail * (1.0 + change.p99) - mean * (1.0 + change.mean)) / (tail - mean)
        scale = min(max(wanted, 0.0), MOST_SCALE)
    return np.maximum(mean * (1.0 + change.mean) + (own - mean) * scale, 0.0)


def launches_of(graph: Graph, kernel: str) -> np.ndarray:
    """Return the numbers of the launches of a kernel, by its full name; none of a collective, whose durations are
    mostly waiting, which a replay finds anew.

    Returns
    -------
    ndarray of int32, shape (k,), ascending
    """
    codes = [code for code, text in enumerate(graph.texts) if text == kernel]
    return _numbers(graph, (KERNEL,), codes)


def _numbers(graph: Graph, kinds: Sequence[int], codes: Sequence[int] | None = None) -> np.ndarray:
    """Return the numbers of the work of some kinds and, if given, of some names; int32, shape (k,), ascending."""
    work = graph.work
    found = [np.zeros(0, np.int32)]
    for part in graph.scratch.windows(work.kind.size):
        chosen = np.isin(work.kind[part], kinds)
        if codes is not None:
            chosen &= np.isin(work.name[part], codes)
        found.append((part.start + np.flatnonzero(chosen)).astype(np.int32))
    return np.concatenate(found)


def exposed_launches(graph: Graph, schedule: Schedule, chosen: np.ndarray, feature: str) -> np.ndarray | None:
    """Return which launches begin while something that a feature counts is in flight on their device.

    Parameters
    ----------
    graph : Graph
    schedule : Schedule
    chosen : ndarray of int64, shape (k,)
        Numbers of the launches, ascending.
    feature : str

    Returns
    -------
    ndarray of bool, shape (k,); None for features that count nothing of the kind
    """
    codes = None
    if feature not in (LAUNCHES_IN_FLIGHT, TRANSFERS_IN_FLIGHT):
        kinds = [f"copy ({COPY_KINDS[kind]})" for kind in record_of(feature).copy_kinds]
        codes = [code for code, text in enumerate(graph.texts) if text in kinds]
        if not kinds:
            return None
    others = _numbers(graph, (KERNEL, COLLECTIVE) if feature == LAUNCHES_IN_FLIGHT else (COPY,), codes)
    return in_flight(graph, schedule, chosen, others) > 0


def in_flight(graph: Graph, schedule: Schedule, chosen: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return how much work was in flight when launches began, on the same device and without themselves.

    Parameters
    ----------
    graph : Graph
    schedule : Schedule
    chosen : ndarray of integers, shape (k,)
        Numbers of the launches, ascending.
    others : ndarray of integers, shape (j,)
        Numbers of the work that counts, ascending.

    Returns
    -------
    ndarray of int32, shape (k,)
    """
    found = np.zeros(chosen.size, np.int32)
    for begin, end in graph.work_of.tolist():  # a device is of one rank
        mine = slice(*np.searchsorted(chosen, [begin, end]).tolist())
        count = slice(*np.searchsorted(others, [begin, end]).tolist())
        found[mine] = _in_flight(graph, schedule, chosen[mine], others[count])
        graph.scratch.used(end - begin)
    return found


def _in_flight(graph: Graph, schedule: Schedule, chosen: np.ndarray, others: np.ndarray) -> np.ndarray:
    taken = graph.scratch.taken
    found = np.zeros(chosen.size, np.int32)
    device = graph.stream_device[taken(graph.work.stream, chosen)].astype(np.int32)
    of_others = graph.stream_device[taken(graph.work.stream, others)].astype(np.int32)
    for one in np.unique(device):
        mine = np.flatnonzero(device == one)
        counted = others[of_others == one]
        moments = taken(schedule.start, chosen[mine])
        for times, sign in ((schedule.start, 1), (schedule.end, -1)):
            ordered = taken(times, counted)
            ordered.sort()
            found[mine] += sign * np.searchsorted(ordered, moments, side="right").astype(np.int32)
        found[mine] -= np.isin(chosen[mine], counted, assume_unique=True)
    return found


def with_moved_contention(
    graph: Graph, before: Schedule, after: Schedule, work_ns: np.ndarray, others: Sequence[KernelWhatIf]
) -> np.ndarray:
    """Return durations in which kernels that are slowed by launches in flight are slower or faster as more or fewer of
    their launches now begin beside others.

    Parameters
    ----------
    graph : Graph
    before, after : Schedule
        As measured, and as replayed with `work_ns`.
    work_ns : ndarray of int64, shape (n,), ns
    others : sequence of KernelWhatIf
        What each other kernel would gain with nothing in flight.

    Returns
    -------
    ndarray of int64, shape (n,), ns
    """
    found = graph.scratch.copy(work_ns)
    counted = _numbers(graph, (KERNEL, COLLECTIVE))
    for one in others:
        chosen = launches_of(graph, one.kernel)
        was, now = (in_flight(graph, schedule, chosen, counted).sum() for schedule in (before, after))
        if was > 0:
            longer = graph.scratch.taken(found, chosen) * (1.0 - one.mean * (now / was - 1.0))
            graph.scratch.put(found, chosen, np.rint(longer).astype(np.int64))
    return found

"""What `replay_what_ifs` does: what-ifs of kernels, replayed, so that they say what a run gains, not only a kernel.

A replay needs the duration of each launch under the what-if. The causal analysis says what a changed cause does to the
mean of a kernel's durations and to their 99th percentile. Which launches become shorter decides what a run gains,
because ranks wait for the slowest.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.core.codes import COMMUNICATION_KERNEL, COPY_KINDS
from causeway.core.feature_registry import record_of
from causeway.core.logs import LOG
from causeway.core.results import scope_folders
from causeway.core.tables import SCHEMAS, read_table, write_table
from causeway.core.vocabulary import SUPPORTED
from causeway.waiting.graph.graph_builder import Matched
from causeway.waiting.graph.linked_graph import linked_graph
from causeway.waiting.graph.nodes import COLLECTIVE, COPY, KERNEL, Graph, Links
from causeway.waiting.graph.scratch import Scratch
from causeway.waiting.path.critical_path import CriticalPaths, Schedule, measured
from causeway.waiting.replay.replay_table import limit_of
from causeway.waiting.replay.replayed import durations_of, replayed
from causeway.waiting.taken_gpus import NOT_REPLAYED, taken_gpus

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
    durations = graph.scratch.copy(work_ns)
    graph.scratch.put(durations, chosen, np.rint(changed).astype(np.int64))
    return durations


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
    parts = [np.zeros(0, np.int32)]
    for part in graph.scratch.windows(work.kind.size):
        chosen = np.isin(work.kind[part], kinds)
        if codes is not None:
            chosen &= np.isin(work.name[part], codes)
        parts.append((part.start + np.flatnonzero(chosen)).astype(np.int32))
    return np.concatenate(parts)


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
    counts = np.zeros(chosen.size, np.int32)
    for of_rank, own in _by_rank(graph, schedule, chosen, others):
        counts[of_rank] = own
    return counts


def _by_rank(
    graph: Graph, schedule: Schedule, chosen: np.ndarray, others: np.ndarray
) -> Iterator[tuple[slice, np.ndarray]]:
    """Give for each rank which of the chosen launches are its own, and their counts, as `in_flight`."""
    for begin, end in graph.work_of.tolist():  # a device is of one rank
        of_rank = slice(*np.searchsorted(chosen, [begin, end]).tolist())
        count = slice(*np.searchsorted(others, [begin, end]).tolist())
        yield of_rank, _in_flight(graph, schedule, chosen[of_rank], others[count])
        graph.scratch.used(end - begin)


def _in_flight(graph: Graph, schedule: Schedule, chosen: np.ndarray, others: np.ndarray) -> np.ndarray:
    taken = graph.scratch.taken
    counts = np.zeros(chosen.size, np.int32)
    device = graph.stream_device[taken(graph.work.stream, chosen)].astype(np.int32)
    of_others = graph.stream_device[taken(graph.work.stream, others)].astype(np.int32)
    for number in np.unique(device):
        on_device = np.flatnonzero(device == number)
        counted = others[of_others == number]
        moments = taken(schedule.start, chosen[on_device])
        for times, sign in ((schedule.start, 1), (schedule.end, -1)):
            ordered = taken(times, counted)
            ordered.sort()
            counts[on_device] += sign * np.searchsorted(ordered, moments, side="right").astype(np.int32)
        counts[on_device] -= np.isin(chosen[on_device], counted, assume_unique=True)
    return counts


def launches_beside(graph: Graph, schedule: Schedule, kernels: Collection[str]) -> dict[str, int]:
    """Return for each kernel how many other launches were in flight when its own began, summed over these; all kernels
    in one pass, as each rank's launches have to be ordered for it.

    Parameters
    ----------
    graph : Graph
    schedule : Schedule
    kernels : collection of str
        Full names.
    """
    codes = {code: text for code, text in enumerate(graph.texts) if text in kernels}
    chosen = _numbers(graph, (KERNEL,), list(codes))
    sums = dict.fromkeys(kernels, 0)
    for rows, counts in _by_rank(graph, schedule, chosen, _numbers(graph, (KERNEL, COLLECTIVE))):
        name = graph.scratch.taken(graph.work.name, chosen[rows])
        for code, kernel in codes.items():
            sums[kernel] += int(counts[name == code].sum())
    return sums


def with_moved_contention(
    graph: Graph, before: Mapping[str, int], after: Schedule, work_ns: np.ndarray, others: Sequence[KernelWhatIf]
) -> np.ndarray:
    """Return durations in which kernels that are slowed by launches in flight are slower or faster as more or fewer of
    their launches now begin beside others.

    Parameters
    ----------
    graph : Graph
    before : mapping of str to int
        As of `launches_beside` of the schedule as measured.
    after : Schedule
        As replayed with `work_ns`.
    work_ns : ndarray of int64, shape (n,), ns
    others : sequence of KernelWhatIf
        What each other kernel would gain with nothing in flight.

    Returns
    -------
    ndarray of int64, shape (n,), ns
    """
    durations = graph.scratch.copy(work_ns)
    now = launches_beside(graph, after, {what_if.kernel for what_if in others})
    for what_if in others:
        was = before[what_if.kernel]
        if was > 0:
            chosen = launches_of(graph, what_if.kernel)
            longer = graph.scratch.taken(durations, chosen) * (1.0 - what_if.mean * (now[what_if.kernel] / was - 1.0))
            graph.scratch.put(durations, chosen, np.rint(longer).astype(np.int64))
    return durations


MOST_WHAT_IFS = 8
"""What-ifs of a dataset that are replayed, those that win most GPU time: as many as the overview shows."""
WIDENED = 1.5
"""How much further than the replayed changes the ends of the interval lie from the value."""
MOVED_ERROR = 0.5
"""By how much of itself the effect of contention that moved may be too small."""
Chosen = tuple[str, int, KernelWhatIf]
"""Kernel's id, row of its `whatif.parquet`, what-if."""


def replay_what_ifs(
    name: str,
    folders: Sequence[str | Path],
    clocks_file: str | Path,
    collectives: Sequence[Matched],
    steps_file: str | Path,
    scopes: str | Path,
    kernels_file: str | Path,
    out: str | Path,
) -> None:
    """Write `replayed_what_ifs.parquet`: what each of the best what-ifs of kernels does to the time of the run; without
    rows, the reason in the metadata, where the dataset has no graph.

    Parameters
    ----------
    name : str
    folders : sequence of path
        Folders of tables, in the sheet's order.
    clocks_file : path
    collectives : sequence of Matched
        Their times in the clocks of the exports.
    steps_file, scopes, kernels_file : path
        `steps.parquet`; `causal/scopes.json` and `kernels.parquet` of `kernel_variability`.
    out : path

    Raises
    ------
    OSError
        If other programs take the disk's room while this runs.
    TableError
        If a table is damaged.
    """
    chosen = what_ifs(scopes, kernels_file)
    facts = {"dataset": name}
    rows = []
    if chosen and taken_gpus(folders, clocks_file).others:
        facts |= {"why": NOT_REPLAYED}
    elif chosen:
        linked, why = linked_graph(
            folders, clocks_file, collectives, full_names=True, scratch=Scratch(Path(out).parent)
        )
        facts |= {"why": why} if why else {}
        steps = np.unique(read_table(steps_file, "steps", ["step"]).column(0).to_numpy()).size
        rows = replayed_rows(*linked, chosen, steps) if linked else []
        LOG.info("%d of %d what-ifs replayed", len(rows), len(chosen))
    write_table(pa.Table.from_pylist(rows, SCHEMAS["replayed_what_ifs"]), out, "replayed_what_ifs", metadata=facts)


def what_ifs(scopes: str | Path, kernels_file: str | Path) -> list[Chosen]:
    """Return the supported what-ifs of kernels that win GPU time, most first, the best of each kernel and feature; none
    of collectives, whose durations are mostly waiting, which a replay finds anew.
    """
    kernels = read_table(kernels_file, "kernel_summary").to_pylist()
    names = {row["kernel"]: row["name"] for row in kernels if row["class"] != COMMUNICATION_KERNEL}
    best: dict[tuple[str, str], tuple[float, Chosen]] = {}
    for folder in scope_folders(scopes):
        if folder.name not in names:
            continue
        for number, row in enumerate(read_table(folder / "whatif.parquet", "whatif").to_pylist()):
            if row["verdict"] != SUPPORTED or row["asked"] or (row["saved_low"] or 0) <= 0:
                continue
            key = folder.name, row["feature"]
            if key in best and best[key][0] >= row["saved_ns"]:
                continue
            p99 = row["p99_change_percent"]
            what_if = KernelWhatIf(
                kernel=names[folder.name],
                feature=row["feature"],
                to=row["to"],
                mean=row["mean_change_percent"] / 100,
                low=row["mean_change_low"] / 100,
                high=row["mean_change_high"] / 100,
                p99=None if p99 is None else p99 / 100,
            )
            best[key] = row["saved_ns"], (folder.name, number, what_if)
    ordered = sorted(best.items(), key=lambda item: (-item[1][0], item[0]))
    return [chosen for _, (_, chosen) in ordered]


def replayed_rows(graph: Graph, links: Links, chosen: Sequence[Chosen], steps: int) -> list[dict]:
    """Return the rows of `replayed_what_ifs`, in the order of the what-ifs.

    The value is that of a replay in which other kernels that are slowed by launches in flight follow the launches that
    moved. The ends are those of the replays without that and with 1.5 times as much of it, times the interval of the
    change over the change, and `WIDENED`.
    """
    before = measured(graph, links)
    paths = CriticalPaths(graph, links)
    plain = durations_of(graph, links)
    runs = paths.runs(before)
    time = paths.run_time(before, runs)
    slowed = [what_if for _, _, what_if in chosen if _is_slowed_beside(what_if)]
    beside = launches_beside(graph, before, {what_if.kernel for what_if in slowed}) if slowed else {}
    rows = []
    for kernel, number, what_if in chosen[:MOST_WHAT_IFS]:
        work = durations_under(graph, before, plain.work, what_if)
        if work is None:
            continue
        after = replayed(graph, links, replace(plain, work=work))
        alone = paths.run_time(after, runs) - time
        others = [other for other in slowed if other.kernel != what_if.kernel]
        if others:
            work = with_moved_contention(graph, beside, after, work, others)
            after = replayed(graph, links, replace(plain, work=work))
        whole = paths.run_time(after, runs) - time
        most = whole + MOVED_ERROR * (whole - alone)
        ends = [change * end / what_if.mean for change in (alone, whole, most) for end in (what_if.low, what_if.high)]
        low, high = (whole + WIDENED * (end - whole) for end in (min(ends), max(ends)))
        rows.append(
            {"kernel": kernel, "what_if": number, "feature": what_if.feature, "to": what_if.to, "time_ns": time}
            | {"predicted_ns": time + whole, "run_change_percent": 100 * whole / time}
            | {"run_change_low": 100 * low / time, "run_change_high": 100 * high / time}
            | {"saved_per_step_ns": -whole / steps if steps else None, "limited_by": limit_of(paths, after, runs)[0]}
        )
    return rows


def _is_slowed_beside(change: KernelWhatIf) -> bool:
    return change.feature == LAUNCHES_IN_FLIGHT and change.to == NONE

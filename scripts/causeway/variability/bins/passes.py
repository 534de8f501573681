"""The two passes over the rows that lead to bins: moments of the value, then the targets made of them, put into bins.

Within a pass workers are alone with their shares; after it, exact integers are added, over the workers of a rank and
over ranks. Exact quartiles of kernels come out of the same two passes; only kernels with launches of a millisecond or
more may need another.

The time line is divided among workers: each owns a range of whole bins, so nothing but statistics of bins travels.
Where a share begins or ends inside a row group, that group is read by both neighbours. The workers of a rank, one by
default, are threads that share its memory, and a rank with n workers does what n ranks would. Compiled code and Arrow's
readers run without Python's global lock, so threads work side by side.
"""

import itertools
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from causeway.core.logs import LOG, Progress
from causeway.core.vocabulary import MEMORY_STALL
from causeway.numeric.moments import Moments, exponent_range
from causeway.numeric.mpi import Ranks
from causeway.variability.bins.bins import BinStreams, BinTable
from causeway.variability.bins.summaries import Histograms, Timeline, variance_between
from causeway.variability.rows.dataset import BinningSettings, PreparedDataset
from causeway.variability.rows.group_quantiles import QuartileSearch
from causeway.variability.rows.sources import Chunk, RowGroups, Source
from causeway.variability.rows.targets import Counter, Deviation, Sample, Stall
from causeway.variability.rows.transfers import LONG_AGO, TransferWindow, ends, latest_ends

OPEN_END = 1 << 62
"""A bin or position beyond all others."""


@dataclass(frozen=True)
class WorkerShare:
    """The part of a source that a worker works on: bins `low` up to `high`, of `width` positions each."""

    source: Source
    low: int
    high: int
    width: int

    def groups(self) -> list[RowGroups]:
        """Return the groups that hold rows of the share."""
        if not self.source.splittable:
            return self.source.rows.groups
        spans = [(group, *self.source.reach(group)) for group in self.source.rows.groups]
        begin = self.low * self.width
        end = self.high * self.width
        return [group for group, first, last in spans if last >= begin and first < end]

    def chunks(self, columns: list[str]) -> Iterator[tuple[Chunk, np.ndarray]]:
        """Yield the share's rows with their positions: int64, shape (rows,), ascending.

        `columns` are those of the table; rank and start_ns are always read where positions need them.
        """
        for chunk, position in positioned(self.source, columns, self.groups()):
            if not self.source.splittable:
                yield chunk, position
                continue
            begin, end = np.searchsorted(position, [self.low * self.width, self.high * self.width])
            if begin < end:
                yield chunk.slice(begin, end), position[begin:end]


def positioned(source: Source, columns: list[str], groups: list[RowGroups]) -> Iterator[tuple[Chunk, np.ndarray]]:
    """Yield chunks of a source's groups with the positions of their rows: int64, shape (rows,), ascending."""
    needed = list(dict.fromkeys([*columns, *(["start_ns"] if source.timed else []), "rank"]))
    counted = np.zeros(len(source.ranks), np.int64)
    for chunk in source.rows.chunks(needed, groups):
        if source.timed:
            yield chunk, source.position(chunk.column("start_ns"))
        elif source.splittable:
            yield chunk, chunk.numbers()
        else:
            rank_index = source.rank_indices(chunk)
            position = np.empty(chunk.size, np.int64)
            for rank in range(counted.size):
                rows = np.flatnonzero(rank_index == rank)
                position[rows] = counted[rank] + np.arange(rows.size)
                counted[rank] += rows.size
            yield chunk, position


def shares(sources: list[Source], width: int, worker: int, size: int) -> list[WorkerShare]:
    """Return what a worker works on: ranges of about an equal number of rows. Every worker finds the same limits by
    integer arithmetic from the row groups' statistics, so nothing is exchanged. Sources whose positions depend on
    earlier rows go to one worker whole.

    Parameters
    ----------
    sources : list of Source
    width : int
        Positions per bin; a share begins and ends at edges of bins.
    worker, size : int
        Number of the worker, from 0, and how many there are.
    """
    own_shares = []
    total = sum(source.rows.rows for source in sources)
    low_row = total * worker // size
    high_row = total * (worker + 1) // size
    begin = 0
    for source in sources:
        low, high = (_bin_at(source, row - begin, width) for row in (low_row, high_row))
        if low < high:
            own_shares.append(WorkerShare(source, low, high, width))
        begin += source.rows.rows
    return own_shares


def _bin_at(source: Source, row: int, width: int) -> int:
    """Return the bin before which rows up to about `row` lie; monotonic in `row`."""
    if row <= 0 or source.rows.rows == 0:
        return 0
    if row >= source.rows.rows:
        return OPEN_END // width
    if not source.splittable:
        return 0 if 2 * row < source.rows.rows else OPEN_END // width
    group = next(group for group in reversed(source.rows.groups) if group.row <= row)
    first, last = source.reach(group)
    return (first + (last - first) * (row - group.row) // group.rows) // width


TaskPlan = TypeVar("TaskPlan")
Part = TypeVar("Part")


class Team:
    """The workers of one rank; to be used in a `with` block.

    Parameters
    ----------
    ranks : Ranks
    count : int
        Workers per rank, on all ranks alike. A single one is the rank itself.

    Attributes
    ----------
    workers : range
        Numbers of this rank's workers among all.
    size : int
        Number of workers on all ranks.
    """

    def __init__(self, ranks: Ranks, count: int = 1) -> None:
        self.workers = range(ranks.rank * count, (ranks.rank + 1) * count)
        self.size = ranks.size * count
        self._pool = ThreadPoolExecutor(count) if count > 1 else None

    def __enter__(self) -> "Team":
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def map(self, task: Callable[[TaskPlan, int, int], Part], plan: TaskPlan) -> list[Part]:
        """Return what `task(plan, worker, size)` gives for each of this rank's workers, in their order."""
        run = map if self._pool is None else self._pool.map
        return list(run(lambda worker: task(plan, worker, self.size), self.workers))


@dataclass
class Plan:
    """What every worker knows; parts are filled in from pass to pass.

    Attributes
    ----------
    launch_ends, transfer_ends : dict of str to ndarray of int64
        Latest end of each group of rows, per export.
    targets : list of Deviation or Stall
    search : QuartileSearch
        For the quartiles of kernels; its table is empty, as each worker fills its own.
    values : Moments
        Of the value, per kernel.
    """

    settings: BinningSettings
    dataset: PreparedDataset
    launch_ends: dict[str, np.ndarray]
    transfer_ends: dict[str, np.ndarray]
    targets: list[Deviation | Stall]
    search: QuartileSearch
    values: Moments = field(init=False)

    @property
    def traced(self) -> bool:
        """Whether the value is that of a trace."""
        return not isinstance(self.dataset.sampler.value, Counter)

    def window(self, source: Source) -> TransferWindow:
        """Return a fresh window over a trace's transfers; an empty one for counters."""
        latest = self.transfer_ends.get(source.export, np.empty(0, np.int64))
        return TransferWindow(self.dataset.transfers[source.export], latest, self.settings.link_window_ns)

    def link_columns(self) -> list[str]:
        """Return the columns of launches by which they are linked to transfers."""
        return ["device"] if self.traced else []

    def samples(self, worker: int, size: int, what: str, columns: list[str]) -> Iterator[tuple[Source, Sample]]:
        """Yield a worker's rows; the first worker logs its progress."""
        own_shares = shares(self.dataset.sources, max(self.dataset.widths), worker, size)
        total = sum(group.rows for share in own_shares for group in share.groups())
        progress = Progress(f"{self.settings.dataset}: {what}", total, "rows") if worker == 0 else None
        done = 0
        for share in own_shares:
            for chunk, position in share.chunks(columns):
                yield share.source, self.dataset.sampler.sample(share.source, chunk, position)
                done += chunk.size
                if progress is not None:
                    progress.at(done)


@dataclass
class ValueSums:
    """What the first pass finds."""

    moments: Moments
    search: QuartileSearch
    launch_ends: dict[str, np.ndarray]


def find_range(plan: Plan, worker: int, size: int) -> list[tuple[int, int] | None]:
    """Return the ranges of exponents of a counter in a worker's rows: floating-point moments need them beforehand."""
    sampler = plan.dataset.sampler
    return [
        exponent_range(sample.value) for _, sample in plan.samples(worker, size, "range of values", sampler.columns())
    ]


def sum_values(plan: Plan, worker: int, size: int) -> ValueSums:
    """Sum up the moments of a worker's values, begin the search for quartiles, and find the latest end of each group
    of launches.
    """
    sampler = plan.dataset.sampler
    kernels = len(plan.dataset.configurations.kernels)
    sums = ValueSums(
        sampler.value.moments(sampler.groups),
        QuartileSearch(kernels, sampler.value.lowest_key),
        {export: latest.copy() for export, latest in plan.launch_ends.items()},
    )
    columns = [*sampler.columns(), *(["start_ns"] if plan.traced else [])]
    for source, sample in plan.samples(worker, size, "means", columns):
        sums.moments.add(sample.group, sample.value)
        sums.search.add(sample.kernel, sampler.value.keys(sample.value))
        if plan.traced:
            group = bisect_right(source.rows.groups, sample.chunk.row(0), key=lambda group: group.row) - 1
            latest = sums.launch_ends[source.export]
            latest[group] = max(latest[group], ends(sample.chunk).max())
    sums.moments.fold()
    return sums


@dataclass
class BinSums:
    """What the second pass finds: `bins` per target and width, `stalls` the moments of the memory stall."""

    bins: list[list[BinTable]]
    search: QuartileSearch
    histograms: Histograms
    timelines: list[Timeline]
    stalls: list[Moments]


def fill_bins(plan: Plan, worker: int, size: int) -> BinSums:
    """Make the targets of a worker's rows, divide them into bins, and describe the kernels."""
    dataset = plan.dataset
    sampler = plan.dataset.sampler
    value = sampler.value
    kernels = len(dataset.configurations.kernels)
    sums = BinSums(
        bins=[],
        search=plan.search.fresh(),
        histograms=Histograms(plan.values.low.astype(float), plan.values.high.astype(float)),
        timelines=[Timeline(kernels, dataset.span, target.largest) for target in plan.targets],
        stalls=[value.moments(sampler.groups) for _ in plan.targets],
    )
    columns = [*sampler.columns(), *dataset.features, *plan.link_columns()]
    done = [[[BinTable.empty(1 + len(dataset.features))] for _ in dataset.widths] for _ in plan.targets]
    rows = plan.samples(worker, size, "bins", columns)
    # one export after the other: what waits for further rows of one, some MB, must not stay for all
    for _, of_export in itertools.groupby(rows, key=lambda pair: pair[0].export):
        for parts, by_width in zip(done, _bins_of_export(plan, of_export, sums), strict=True):
            for part, bins in zip(parts, by_width, strict=True):
                part.append(bins)
    sums.bins = [[BinTable.join(part) for part in parts] for parts in done]
    for moments in sums.stalls:
        moments.fold()
    return sums


def _bins_of_export(plan: Plan, rows: Iterator[tuple[Source, Sample]], sums: BinSums) -> list[list[BinTable]]:
    """Return the bins of an export's rows per target and width; what else the pass finds is added to `sums`."""
    dataset = plan.dataset
    value = dataset.sampler.value
    streams: list[list[BinStreams]] = []
    for source, sample in rows:
        if not streams:
            made = 1 + len(dataset.features), plan.settings.out
            streams = [[BinStreams(source.ranks, width, *made) for width in dataset.widths] for _ in plan.targets]
            window = plan.window(source)
        sums.histograms.add(sample.kernel, sample.value)
        sums.search.add(sample.kernel, value.keys(sample.value))
        position = sample.position - source.run_begin if source.run_begin else sample.position
        features = [sample.feature(name) for name in dataset.features]
        for target, timeline, moments, by_width in zip(plan.targets, sums.timelines, sums.stalls, streams, strict=True):
            values = target.of(sample, window, moments)
            timeline.add(sample.kernel, position, values)
            for stream in by_width:
                stream.add(sample.rank_index, sample.position, [values, *features])
    return [[stream.finish() for stream in by_width] for by_width in streams]


def narrow_quartiles(plan: Plan, worker: int, size: int) -> QuartileSearch:
    """Count a worker's values in the ranges that are still open."""
    search = plan.search.fresh()
    sampler = plan.dataset.sampler
    for _, sample in plan.samples(worker, size, "quartiles of kernels", sampler.columns()):
        search.add(sample.kernel, sampler.value.keys(sample.value))
    return search


class Passes:
    """Runs the passes and holds what they find, on every rank.

    Attributes
    ----------
    plan : Plan
        Complete, for what follows.
    launches : ndarray of int64
        Rows with the value, per configuration.
    timelines : list of Timeline
    histograms : Histograms
    quartiles : ndarray of float64, shape (kernels, 3)
    bins : list of list of BinTable
        Per target and width; on rank 0 only, without rows elsewhere.
    """

    def __init__(
        self, settings: BinningSettings, dataset: PreparedDataset, ranks: Ranks, team: Team, targets: list[str]
    ) -> None:
        self.ranks = ranks
        self.team = team
        sampler = dataset.sampler
        ends_of = {source.export: np.full(len(source.rows.groups), LONG_AGO) for source in dataset.sources}
        transfers = {export: rows for export, rows in dataset.transfers.items() if rows is not None}
        latest = dict(zip(transfers, latest_ends(list(transfers.values()), ranks), strict=True))
        search = QuartileSearch(len(dataset.configurations.kernels), sampler.value.lowest_key)
        self.plan = Plan(settings, dataset, ends_of, latest, [], search)
        self._means(targets)
        self._bins()
        self._quartiles()

    def run(self, task: Callable[[TaskPlan, int, int], Part], what: str, plan: TaskPlan) -> list[Part]:
        """Let this rank's workers do a task; log how fast they were."""
        began = time.process_time()
        clock = time.monotonic()
        with self.ranks.together():
            parts = self.team.map(task, plan)
            spent = time.process_time() - began
        wall = time.monotonic() - clock
        log_rate(what, self.plan.dataset.rows // self.ranks.size, spent, wall, max(self.ranks.exchange(spent)))
        return parts

    def _means(self, targets: list[str]) -> None:
        plan = self.plan
        ranks = self.ranks
        sampler = self.plan.dataset.sampler
        if isinstance(sampler.value, Counter):
            ranges = [pair for part in self.run(find_range, "range of values", plan) for pair in part]
            sampler.value.span([pair for part in ranks.exchange(ranges) for pair in part])
            plan.search = QuartileSearch(plan.search.groups, sampler.value.lowest_key)
        first, *others = self.run(sum_values, "means", plan)
        for other in others:
            first.moments.merge(other.moments)
            first.search.table += other.search.table
            for export, latest in other.launch_ends.items():
                np.maximum(first.launch_ends[export], latest, out=first.launch_ends[export])
        moments = first.moments
        moments.reduce(ranks)
        plan.launch_ends = {export: ranks.highest(latest) for export, latest in first.launch_ends.items()}
        plan.search.table = ranks.total(first.search.table)
        plan.search.narrow()
        per_group = len(sampler.ranks) if sampler.per_rank else 1
        configurations = plan.dataset.configurations
        kernel = np.repeat(configurations.kernel_of, per_group)
        plan.values = sampler.value.moments(len(configurations.kernels))
        np.add.at(plan.values.table, kernel, moments.table)
        np.minimum.at(plan.values.low, kernel, moments.low)
        np.maximum.at(plan.values.high, kernel, moments.high)
        own = sampler.value.moments(len(configurations))
        own.table += moments.table.reshape(len(configurations), per_group, -1).sum(axis=1)
        self.launches = own.count
        self.between = variance_between(own, plan.values, configurations.kernel_of)
        plan.targets = [self._stall() if name == MEMORY_STALL else Deviation(name, moments) for name in targets]

    def _stall(self) -> Stall:
        """Return the memory stall; no transfer is longer than the time from the first start to the latest end."""
        plan = self.plan
        spans = [
            int(plan.transfer_ends[export].max()) - transfers.groups[0].first
            for export, transfers in plan.dataset.transfers.items()
            if transfers is not None and transfers.groups
        ]
        return Stall(plan.dataset.sampler.groups, float(max([0, *spans, int(plan.values.high.max())])))

    def _bins(self) -> None:
        plan = self.plan
        ranks = self.ranks
        first, *others = self.run(fill_bins, "bins", plan)
        for other in others:
            first.search.table += other.search.table
            first.histograms.counts += other.histograms.counts
            for timeline, more in zip(first.timelines, other.timelines, strict=True):
                timeline.table += more.table
            for moments, stalls in zip(first.stalls, other.stalls, strict=True):
                moments.merge(stalls)
        self.histograms = first.histograms
        self.timelines = first.timelines
        self.histograms.counts = ranks.total(self.histograms.counts)
        plan.search.table = ranks.total(first.search.table)
        for timeline in self.timelines:
            timeline.table = ranks.total(timeline.table)
        for target, moments in zip(plan.targets, first.stalls, strict=True):
            if isinstance(target, Stall):
                moments.reduce(ranks)
                target.moments = moments
                target.finish()
        of_targets = zip(*(sums.bins for sums in (first, *others)), strict=True)
        self.bins = [[self._collected(list(widths)) for _ in plan.dataset.widths] for widths in of_targets]

    def _collected(self, parts: list[list[BinTable]]) -> BinTable:
        """Take the first table out of every part and bring it to rank 0: one after the other, so that no more than
        one is there twice.
        """
        own = BinTable.join([tables.pop(0) for tables in parts])
        stacks = map(self.ranks.stack, (own.rank, own.bin, own.count, own.statistics))
        whole = [stack for stack in stacks if stack is not None]
        return BinTable.join([BinTable(*whole)]) if whole else BinTable.empty(own.statistics.shape[1])

    def _quartiles(self) -> None:
        """Read the values again, as often as the exact quartiles of the kernels need it."""
        plan = self.plan
        value = self.plan.dataset.sampler.value
        plan.search.narrow()
        while plan.search.open:
            first, *others = self.run(narrow_quartiles, "quartiles of kernels", plan)
            for other in others:
                first.table += other.table
            plan.search.table = self.ranks.total(first.table)
            plan.search.narrow()
        self.quartiles = plan.search.quartiles(value.from_keys(plan.search.order_statistics()))


def log_rate(what: str, rows: int, seconds: float, wall: float, busiest: float) -> None:
    """Log how fast rank 0 was, and the CPU-seconds of the busiest rank; the log of other ranks goes nowhere."""
    rate = rows / max(seconds, 1e-6) / 1e6
    LOG.info(
        "%s: %d rows in %.2f CPU-s (%.2f s), %.1f million rows per CPU-s; the busiest rank %.2f CPU-s",
        *(what, rows, seconds, wall, rate, busiest),
    )

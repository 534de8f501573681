"""A run in numbers: exact sums per configuration, rank and region, and the course of every kernel as sums over
consecutive launches.

Durations are integers. A launch's deviation is its duration less the mean of its configuration over all ranks, rounded
to a nanosecond, so its sums are exact, too. Each series of launches (of one kernel, configuration, region or the whole,
on one rank) is kept as at most a few thousand cells of equally many consecutive launches: what is resampled is cells,
so that memory and time do not grow with the launches. How many launches share a cell depends on the launches of the
series and, by a factor of a power of two, on the ranks of its run: of two series of equally many launches, the finer
cells sum to the coarser ones.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from causeway.comparison.runs.launches import LaunchBatch, Launches, RunFacts
from causeway.comparison.runs.matching import BLOCKS, Kernels
from causeway.core.errors import NotComparableError
from causeway.numeric.compiled import I8, compiled, int64, void

CELLS = 4096
"""Most cells of a group over all ranks."""
LEAST_CELLS = 64
"""Cells of a series that many ranks do not take from it."""
FOLLOWED = 2000
"""Kernels up to which the order of launches is kept."""
LEVELS = ("run", "rank", "region", "kernel", "configuration")
COUNT, DEVIATION, SPREAD = range(3)
FINENESS = 1000
"""Bins of durations for each factor of e: a quantile is known to .05 %."""
BINS = 1 << 16
"""More than any duration in 64 bits has."""
Batches = Callable[[], Iterator[LaunchBatch]]
"""Gives all launches, or calls of operators, of a run anew in each pass."""


@dataclass
class Series:
    """The launches of a group on the ranks that launched equally many: cells in the order of time, summed over these
    ranks.

    Attributes
    ----------
    ranks : tuple of int
    launches : int
    cells : ndarray of int64, shape (cells, 3)
        Launches, sum of deviations (ns), sum of absolute deviations (ns).
    width : int
        Launches of one rank in a cell; the last cell may have fewer.
    """

    ranks: tuple[int, ...]
    launches: int
    cells: np.ndarray
    width: int

    def in_cells_of(self, width: int) -> np.ndarray:
        """Return the cells summed to coarser ones; int64, shape (cells, 3). A coarser cell holds `width` launches, a
        multiple of the finer one's.
        """
        begins = np.arange(0, self.cells.shape[0], width // self.width)
        return np.add.reduceat(self.cells, begins, axis=0)


@dataclass(kw_only=True)
class Run(RunFacts):
    """One dataset, measured: further parameters than those of `RunFacts`.

    Parameters
    ----------
    kernels : Kernels
    strata : ndarray of int64, shape (n, 6)
        configuration, index of the rank, region (-1 for none), launches, sum of durations (ns), sum of absolute
        deviations (ns).
    histogram : (ndarray of int64, ndarray of int64), shapes (bins,)
        How long launches take: `BINS` times the kernel, plus the bin of their logarithm; and how many there are.
    leading : int
        Leading values of a shape that must agree where no shape agrees as a whole; 0: shapes agree as a whole or not.
    """

    kernels: Kernels
    strata: np.ndarray
    histogram: tuple[np.ndarray, np.ndarray]
    leading: int = BLOCKS
    _cells: dict[str, np.ndarray] = field(default_factory=dict, repr=False)
    _index: dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]] = field(default_factory=dict, repr=False)

    @property
    def launches(self) -> int:
        """Launches of the run."""
        return int(self.strata[:, 3].sum())

    @property
    def total_ns(self) -> int:
        """Sum of all durations, ns."""
        return int(self.strata[:, 4].sum())

    @property
    def has_graphs(self) -> bool:
        """Whether graphs were recorded as a whole, without their kernels."""
        return bool(self.graphs)

    def quantiles(self, kernel: int, shares: Sequence[float]) -> list[float]:
        """Return the durations of a kernel's launches at some shares of their number, 0 to 1, ns; none without any."""
        codes, numbers = self.histogram
        own = slice(*np.searchsorted(codes, (kernel * BINS, (kernel + 1) * BINS)))
        reached = np.cumsum(numbers[own])
        if not reached.size:
            return []
        index = np.searchsorted(reached, np.ceil(np.asarray(shares) * reached[-1])).clip(max=reached.size - 1)
        return np.exp((codes[own][index] % BINS) / FINENESS).tolist()

    def totals_by_rank(self) -> dict[tuple[int, int], tuple[int, int]]:
        """Return launches and time, ns, by configuration and rank; (0, 0) where there are none."""
        totals: dict[tuple[int, int], tuple[int, int]] = defaultdict(lambda: (0, 0))
        for configuration, rank, _, launches, time, _ in self.strata.tolist():
            before = totals[configuration, self.ranks[rank]]
            totals[configuration, self.ranks[rank]] = before[0] + launches, before[1] + time
        return totals

    def kernel_of(self) -> np.ndarray:
        """Return each configuration's kernel; int64, shape (configurations,)."""
        return np.array([kernel for kernel, _ in self.configurations], np.int64)

    def group_of(self, level: str) -> np.ndarray:
        """Return the group of each stratum at a level; int64, shape (strata,), -1 for none."""
        return _group(level, self.strata[:, 0], self.strata[:, 1], self.strata[:, 2], self.kernel_of())

    def series(self, level: str, group: int) -> list[Series]:
        """Return the series of a group, ranks that launched equally many together."""
        offset, count, width = self._index[level]
        ranks = len(self.ranks)
        cells = self._cells[level]
        alike: dict[int, list[int]] = {}
        for rank in range(ranks):
            number = int(count[group * ranks + rank])
            if number:
                alike.setdefault(number, []).append(rank)
        series = []
        for number, members in alike.items():
            begins = [offset[group * ranks + rank] for rank in members]
            size = int(offset[group * ranks + members[0] + 1] - begins[0])
            summed = np.add.reduce([cells[begin : begin + size] for begin in begins])
            launches = int(width[group * ranks + members[0]])
            series.append(Series(tuple(self.ranks[rank] for rank in members), number, summed, launches))
        return series


def _group(
    level: str, configuration: np.ndarray, rank: np.ndarray, region: np.ndarray, kernel_of: np.ndarray
) -> np.ndarray:
    if level == "configuration":
        return configuration
    if level == "kernel":
        return kernel_of[configuration]
    return {"rank": rank, "region": region, "run": np.zeros_like(rank)}[level]


@compiled(void(I8, I8, I8, I8, int64[::1], int64[:, ::1]))
def _fill(series, deviation, offset, width, seen, cells):
    """Add launches to the cells of their series; `seen` counts those of each series so far."""
    for i in range(series.size):
        s = series[i]
        if s >= 0:
            cell = offset[s] + seen[s] // width[s]
            seen[s] += 1
            cells[cell, 0] += 1
            cells[cell, 1] += deviation[i]
            cells[cell, 2] += abs(deviation[i])


def measure(
    dataset: str,
    folders: Sequence[str | Path],
    settings: Sequence[str] = (),
    by_message: bool = False,
    time: str | None = None,
) -> Run:
    """Return a dataset, measured in two passes over its launches; the other arguments as of `Launches`.

    Raises
    ------
    NotComparableError
        If there is nothing to measure.
    """
    launches = Launches(dataset, folders, settings, by_message, time)
    return measured(launches.facts, launches.batches, 0 if settings else BLOCKS)


def measured(facts: RunFacts, batches: Batches, leading: int = BLOCKS) -> Run:
    """Return launches, or calls of operators, measured; `leading` as in `Run`: with 0 the order of kernels is not kept.

    Raises
    ------
    NotComparableError
        If there is nothing to measure.
    """
    kernel_of = np.array([kernel for kernel, _ in facts.configurations], np.int64)
    strata, first, follows, histogram = _first_pass(facts, batches, kernel_of, bool(leading))
    if not strata.size:
        raise NotComparableError(f"dataset {facts.dataset} cannot be compared: its exports hold no kernel launch")
    number = np.zeros(len(facts.names), np.int64)
    np.add.at(number, kernel_of[strata[:, 0]], strata[:, 3])
    order = np.array([first.get(kernel, len(first)) for kernel in range(len(facts.names))], np.int64)
    shapes: list[set[tuple]] = [set() for _ in facts.names]
    for kernel, shape in facts.configurations:
        shapes[kernel].add(shape[:leading])
    known_shapes = [frozenset(kernel_shapes) for kernel_shapes in shapes]
    kernels = Kernels(facts.names, number, order, follows, known_shapes, facts.graphs)
    run = Run(**vars(facts), kernels=kernels, strata=strata, histogram=histogram, leading=leading)
    _second_pass(batches, run, kernel_of)
    return run


def _first_pass(
    facts: RunFacts, batches: Batches, kernel_of: np.ndarray, in_order: bool
) -> tuple[np.ndarray, dict[int, int], np.ndarray | None, tuple[np.ndarray, np.ndarray]]:
    """Return the strata, whose deviations the second pass adds, each kernel's position in the order of first launches,
    who follows whom (where `in_order`), and the histogram of `Run`.
    """
    ranks = len(facts.ranks)
    regions = len(facts.regions) + 1
    kernels = len(facts.names)
    sums: dict[int, list[int]] = {}
    first: dict[int, int] = {}
    follows = np.zeros((kernels, kernels), np.int64) if in_order and kernels <= FOLLOWED else None
    bins = np.zeros(0, np.int64)
    times = np.zeros(0, np.int64)
    for batch in batches():
        code = _stratum_code(batch.configuration, batch.rank, batch.region, ranks, regions)
        codes, inverse = np.unique(code, return_inverse=True)
        order = np.argsort(inverse, kind="stable")
        begins = np.searchsorted(inverse[order], np.arange(codes.size))
        totals = np.add.reduceat(batch.duration[order], begins) if codes.size else codes
        for stratum, n, total in zip(codes.tolist(), np.bincount(inverse).tolist(), totals.tolist(), strict=True):
            counts = sums.setdefault(stratum, [0, 0])
            counts[0] = counts[0] + n
            counts[1] = counts[1] + total
        kernel = kernel_of[batch.configuration]
        own = np.rint(FINENESS * np.log(np.maximum(batch.duration, 1))).astype(np.int64)
        own, counts_of_own = np.unique(kernel * BINS + own, return_counts=True)
        bins, inverse = np.unique(np.concatenate([bins, own]), return_inverse=True)
        times = np.bincount(inverse, np.concatenate([times, counts_of_own])).astype(np.int64)
        met, first_rows = np.unique(kernel, return_index=True)
        for number in met[np.argsort(first_rows)].tolist():
            first.setdefault(number, len(first))
        if follows is not None:
            _count_following(batch, kernel, follows)
    codes = np.array(sorted(sums), np.int64)
    counted = np.array([sums[code] for code in codes.tolist()], np.int64).reshape(-1, 2)
    deviations = np.zeros(codes.size, np.int64)
    strata = np.column_stack(
        [codes // regions // ranks, codes // regions % ranks, codes % regions - 1, counted, deviations]
    )
    return strata, first, follows, (bins, times)


def _stratum_code(
    configuration: np.ndarray, rank: np.ndarray, region: np.ndarray, ranks: int, regions: int
) -> np.ndarray:
    """Return one number per stratum, in the order of `Run.strata`; `regions` counts that outside any, too."""
    return (configuration * ranks + rank) * regions + region + 1


def _count_following(batch: LaunchBatch, kernel: np.ndarray, follows: np.ndarray) -> None:
    order = np.argsort(batch.stream, kind="stable")
    stream = batch.stream[order]
    kernel = kernel[order]
    same = stream[1:] == stream[:-1]
    np.add.at(follows, (kernel[:-1][same], kernel[1:][same]), 1)


def _second_pass(batches: Batches, run: Run, kernel_of: np.ndarray) -> None:
    """Fill the cells of every level, and the deviations of the strata."""
    ranks = len(run.ranks)
    regions = len(run.regions) + 1
    codes = _stratum_code(run.strata[:, 0], run.strata[:, 1], run.strata[:, 2], ranks, regions)
    mean = _rounded_means(run.strata, len(run.configurations))
    sizes: Mapping[str, int] = {
        "run": 1,
        "rank": ranks,
        "region": len(run.regions),
        "kernel": len(run.kernels.names),
        "configuration": len(run.configurations),
    }
    seen = {}
    for level in LEVELS:
        count = np.zeros(sizes[level] * ranks, np.int64)
        group = run.group_of(level)
        in_group = group >= 0
        np.add.at(count, group[in_group] * ranks + run.strata[in_group, 1], run.strata[in_group, 3])
        width = _widths(count, ranks)
        offset = np.concatenate([[0], np.cumsum(-(-count // width))])
        run._index[level] = offset, count, width
        run._cells[level] = np.zeros((int(offset[-1]), 3), np.int64)
        seen[level] = np.zeros(count.size, np.int64)
    for batch in batches():
        deviation = batch.duration - mean[batch.configuration]
        code = _stratum_code(batch.configuration, batch.rank, batch.region, ranks, regions)
        np.add.at(run.strata[:, 5], np.searchsorted(codes, code), np.abs(deviation))
        for level in LEVELS:
            group = _group(level, batch.configuration, batch.rank, batch.region, kernel_of)
            series = np.where(group >= 0, group * ranks + batch.rank, -1)
            offset, _, width = run._index[level]
            _fill(series, deviation, offset, width, seen[level], run._cells[level])


def _widths(count: np.ndarray, ranks: int) -> np.ndarray:
    """Return how many launches share a cell of each series: as few as one rank alone would need, times the smallest
    power of two with which the cells of all ranks are no more than `CELLS`, or `LEAST_CELLS` a series.

    So the widths of two series of equally many launches differ by a power of two, however many ranks their runs have.

    Parameters
    ----------
    count : ndarray of int64, shape (series,)
        Launches.
    ranks : int
        Ranks of the run.
    """
    most = max(LEAST_CELLS, CELLS // ranks)
    width = np.maximum(1, -(-count // CELLS))
    while np.any(many := (-(-count // width) > most)):
        width[many] *= 2
    return width


def _rounded_means(strata: np.ndarray, configurations: int) -> np.ndarray:
    """Return the mean duration of each configuration, rounded down to a nanosecond."""
    count = np.zeros(configurations, np.int64)
    total = np.zeros(configurations, np.int64)
    np.add.at(count, strata[:, 0], strata[:, 3])
    np.add.at(total, strata[:, 0], strata[:, 4])
    return total // np.maximum(count, 1)

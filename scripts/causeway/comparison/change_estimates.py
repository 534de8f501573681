"""The change of one group between two sides: estimate, interval, noise floor.

Changes are logarithms of ratios, so that a slowdown by a half and the speedup that undoes it are equally large.
Within a run, intervals come from a block bootstrap of sums over cells, with blocks of at least five autocorrelation
times.

References
----------
H. R. Kuensch, The jackknife and the bootstrap for general stationary observations, Ann. Stat. 17 (1989) 1217; D. N.
Politis and J. P. Romano, A circular block-resampling procedure for stationary data, in: R. LePage, L. Billard (eds.),
Exploring the Limits of Bootstrap, Wiley 1992, 263.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from causeway.comparison.runs.run_totals import COUNT, DEVIATION, SPREAD, Series
from causeway.comparison.sides import EqualMix, Side, half_change, launches_of
from causeway.numeric.block_resampling import TIMES_PER_BLOCK
from causeway.numeric.effective_size import blocked_correlation_time

GATHERED = 1 << 22
"""Sums that are looked up at once."""


@dataclass(frozen=True)
class Resampled:
    """Sums of resampled cells.

    Parameters
    ----------
    sums : list of ndarray of int64, shape (replicates, columns)
        One per table of cells; the rows of different tables belong to the same draw of blocks.
    blocks : float
        Independent blocks in the series.
    effective : float
        Cells over their autocorrelation time.
    """

    sums: list[np.ndarray]
    blocks: float
    effective: float


def resample(
    tables: Sequence[np.ndarray], influence: np.ndarray, replicates: int, rng: np.random.Generator
) -> Resampled:
    """Draw circular blocks of cells, the same ones from each table, as many as make a series of the same length.

    Parameters
    ----------
    tables : sequence of ndarray of int64, shape (cells, columns)
        Equally many cells each: one table, or the two of a pair of runs that launched the same sequence.
    influence : ndarray of float, shape (cells,)
        What each cell adds to the estimate: its autocorrelation sets the block length.
    replicates : int
    rng : Generator
    """
    n = influence.size
    time = blocked_correlation_time(influence)
    length = min(n, int(np.ceil(TIMES_PER_BLOCK * time)))
    blocks = -(-n // length)
    last = n - (blocks - 1) * length
    summed = []
    for table in tables:
        wrapped = np.concatenate([table, table[:length]])
        summed.append(np.concatenate([np.zeros((1, table.shape[1]), np.int64), np.cumsum(wrapped, axis=0)]))
    sums = [np.zeros((replicates, table.shape[1]), np.int64) for table in tables]
    step = max(1, GATHERED // blocks)
    for begin in range(0, replicates, step):
        starts = rng.integers(0, n, (min(step, replicates - begin), blocks))
        ends = starts + length
        ends[:, -1] = starts[:, -1] + last
        for total, prefix in zip(sums, summed, strict=True):
            for column in range(prefix.shape[1]):
                values = prefix[:, column]
                total[begin : begin + starts.shape[0], column] = (values[ends] - values[starts]).sum(axis=1)
    return Resampled(sums, n / length, n / time)


METRICS = {"time_per_launch": DEVIATION, "variability": SPREAD}
"""Metrics of a group and their columns in the cells."""
UNMEASURED = 0.02
"""By how much runs of one program are taken to differ where no repeats measure it: kernels of six processes on one H100
differed by up to 1.9 %, as clocks did, on an H200 by up to 1.7 %, whole runs by .8 and .3 %."""
LEAST_BLOCKS = 5
"""Fewer independent blocks than this on a side decide nothing."""
HALVES = "halves"
REPEATS = "repeats"


@dataclass(frozen=True)
class Estimate:
    """The change of a metric of one group.

    Parameters
    ----------
    change : float
        log(candidate / baseline).
    low, high : float or None
        Its interval; None where the launches are too few for one.
    error : float or None
        Standard error, with `freedom` degrees of freedom.
    floor : float or None
        Noise floor: how much the group differs from itself; None where that was not measured.
    blocks : (float, float)
        Independent blocks behind each side; with repeats, its runs.
    effective : (float, float)
        Effective number of launches (or cells of launches) behind each side.
    paired : bool
        Whether the launches of both runs were resampled together, each with its counterpart.
    """

    change: float
    low: float | None = None
    high: float | None = None
    error: float | None = None
    freedom: float = 0.0
    floor: float | None = None
    blocks: tuple[float, float] = (0.0, 0.0)
    effective: tuple[float, float] = (0.0, 0.0)
    paired: bool = False

    @property
    def decidable(self) -> bool:
        """Whether there is an interval that rests on enough."""
        return self.error is not None and self.low is not None

    def with_floor(self, least: float | None) -> "Estimate":
        """Return the estimate with at least the floor `least`."""
        floors = [value for value in (self.floor, least) if value is not None]
        return replace(self, floor=max(floors) if floors else None)


@dataclass(frozen=True)
class Choices:
    """Choices of the analyst.

    Parameters
    ----------
    replicates : int
        Of the bootstrap.
    confidence : float
        Of the intervals.
    rate : float
        False discovery rate, within each level and metric.
    same_within : float
        Change, as a fraction, that counts as none; for variability ten times that, which is measured less well.
    unmeasured : float
        By how much runs of one program are taken to differ where no repeats measure it, as a fraction; 0 with repeats.
    """

    replicates: int = 1000
    confidence: float = 0.95
    rate: float = 0.05
    same_within: float = 0.01
    unmeasured: float = 0.0

    def of_variability(self) -> "Choices":
        """Return what is chosen for variability, which is measured less well."""
        return replace(self, same_within=10 * self.same_within, unmeasured=10 * self.unmeasured)


def estimates(
    sides: Sequence[Side],
    level: str,
    groups: Sequence[int],
    mixed: EqualMix,
    choices: Choices,
    rng: np.random.Generator,
) -> dict[str, Estimate]:
    """Return the change of each metric of a group; of variability only where both sides vary at all.

    Parameters
    ----------
    sides : (baseline, candidate)
    level : str
    groups : (int, int)
    mixed : EqualMix
    choices : Choices
    rng : Generator
    """
    single = all(len(side.runs) == 1 for side in sides)
    logs = {"time_per_launch": [[np.log(time) for time in side] for side in mixed.times]}
    if all(share > 0 for side in mixed.deviations for share in side):
        logs["variability"] = [[np.log(share) for share in side] for side in mixed.deviations]
    drawn = [Drawn.of(sides, level, groups, index, choices.replicates, rng) for index in _run_indices(sides, single)]
    by_metric = {}
    for metric, values in logs.items():
        column = METRICS[metric]
        change = float(np.mean(values[1]) - np.mean(values[0]))
        if single:
            halves = [
                half_change(side.series(0, level, group), _mean_ns(side, level, group), column)
                for side, group in zip(sides, groups, strict=True)
            ]
            floor = floor_of(*halves)
            by_metric[metric] = replace(drawn[0].estimate(column, change, choices.confidence), floor=floor)
        else:
            within = [draw.variances(column) for draw in drawn]
            by_metric[metric] = between_runs(values, within, choices.confidence)
    return by_metric


def floor_of(first: float | None, second: float | None) -> float | None:
    """Return how much a group differs from itself, by the changes within its halves; None where one is not known."""
    return None if first is None or second is None else abs(second - first)


def _run_indices(sides: Sequence[Side], single: bool) -> list[tuple[int | None, int | None]]:
    """Return which runs are resampled together: both, if there is one on each side; else each alone."""
    if single:
        return [(0, 0)]
    return [(index, None) for index in range(len(sides[0].runs))] + [
        (None, index) for index in range(len(sides[1].runs))
    ]


def _mean_ns(side: Side, level: str, group: int) -> float:
    totals = launches_of(side.totals(0, level, group))
    return totals.time_ns / totals.launches


@dataclass(frozen=True)
class Drawn:
    """Replicates of one or two runs' relative noise in the metrics of a group.

    Parameters
    ----------
    noise : sequence of ndarray of float, shape (replicates, metrics), or None
        By side; None for a side that is not drawn.
    blocks, series, effective : sequence
        By side.
    paired : bool
    is_centred : bool
        Whether the noise is already around the estimate, and its own mean stays: that of a median may lie elsewhere.
    """

    noise: Sequence[np.ndarray | None]
    blocks: Sequence[float]
    series: Sequence[int]
    effective: Sequence[float]
    paired: bool
    is_centred: bool = False

    @classmethod
    def of(
        cls,
        sides: Sequence[Side],
        level: str,
        groups: Sequence[int],
        indices: Sequence[int | None],
        replicates: int,
        rng,
    ) -> "Drawn":
        """Resample the runs at `indices`, one per side or None.

        Both are drawn together where every series of one has its counterpart in the other: as many launches on the same
        ranks. Their cells then hold the same launches, in cells of the coarser of both where a run of more ranks has
        coarser ones.
        """
        series = [
            [] if index is None else side.series(index, level, group)
            for side, group, index in zip(sides, groups, indices, strict=True)
        ]
        totals = [
            0 if index is None else launches_of(side.totals(index, level, group)).time_ns
            for side, group, index in zip(sides, groups, indices, strict=True)
        ]
        shapes = [[(part.ranks, part.launches) for part in side] for side in series]
        paired = bool(series[0]) and shapes[0] == shapes[1]
        noise: list[np.ndarray | None] = [None, None]
        blocks = [0.0, 0.0]
        effective = [0.0, 0.0]
        together = (
            list(zip(*series, strict=True))
            if paired
            else [(part, None) for part in series[0]] + [(None, part) for part in series[1]]
        )
        for pair in together:
            width = max(part.width for part in pair if part is not None)
            tables = [part.in_cells_of(width) if part is not None else None for part in pair]
            drawn = _resampled(tables, totals, replicates, rng)
            sums = iter(drawn.sums)
            for side, (part, table) in enumerate(zip(pair, tables, strict=True)):
                if table is None:
                    continue
                noise[side] = _added(noise[side], part, next(sums), replicates)
                blocks[side] += drawn.blocks
                effective[side] += drawn.effective
        relative = [
            None if side_noise is None else _relative(side_noise, side_series, total)
            for side_noise, side_series, total in zip(noise, series, totals, strict=True)
        ]
        return cls(relative, blocks, [len(side) for side in series], effective, paired)

    def variances(self, column: int) -> float:
        """Return the variance of the logarithm of the one run that was drawn."""
        noise = next(replicates for replicates in self.noise if replicates is not None)
        return float(np.var(noise[:, column]))

    def estimate(self, column: int, change: float, confidence: float) -> Estimate:
        """Return the change with its interval from the replicates of both runs.

        Percentiles of the bootstrap, widened as Student's t is against the normal at `blocks - series` degrees of
        freedom per side (Welch and Satterthwaite), and by blocks / (blocks - series), since block sums are centred on
        their own mean.
        """
        freedoms = [blocks - series for blocks, series in zip(self.blocks, self.series, strict=True)]
        blocks, effective = ((counts[0], counts[1]) for counts in (self.blocks, self.effective))
        estimate = Estimate(change, blocks=blocks, effective=effective, paired=self.paired)
        before, after = self.noise
        if min(freedoms) < LEAST_BLOCKS - 1 or before is None or after is None:
            return estimate
        inflated = [np.sqrt(blocks / free) for blocks, free in zip(self.blocks, freedoms, strict=True)]
        if self.paired:
            noise = (after[:, column] - before[:, column]) * inflated[0]
            freedom = freedoms[0]
        else:
            parts = [side[:, column] * factor for side, factor in zip((before, after), inflated, strict=True)]
            variances = [float(np.var(part)) for part in parts]
            freedom = _satterthwaite(variances, freedoms)
            noise = parts[1] - parts[0]
        tail = (1 - confidence) / 2
        widened = stats.t.isf(tail, freedom) / stats.norm.isf(tail)
        middle = 0.0 if self.is_centred else noise.mean()
        low, high = change + np.quantile(noise - middle, [tail, 1 - tail]) * widened
        return replace(estimate, low=float(low), high=float(high), error=float(noise.std()), freedom=freedom)


def _satterthwaite(variances: Sequence[float], freedoms: Sequence[float]) -> float:
    total = math.fsum(variances)
    if total <= 0:
        return min(freedoms)
    return total**2 / math.fsum(
        variance**2 / free for variance, free in zip(variances, freedoms, strict=True) if variance > 0
    )


def _resampled(
    tables: Sequence[np.ndarray | None], totals: Sequence[int], replicates: int, rng: np.random.Generator
) -> Resampled:
    influence = np.zeros(next(table for table in tables if table is not None).shape[0])
    for sign, table, total in zip((-1.0, 1.0), tables, totals, strict=True):
        if table is not None:
            centred = table[:, DEVIATION] - table[:, COUNT] * (table[:, DEVIATION].sum() / table[:, COUNT].sum())
            influence += sign * centred / max(total, 1)
    return resample([table for table in tables if table is not None], influence, replicates, rng)


def _added(total: np.ndarray | None, series: Series, sums: np.ndarray, replicates: int) -> np.ndarray:
    """Add a series' resampled sums of deviations and spreads, each less what as many launches have on average, to
    those of others.
    """
    count, deviation, spread = series.cells.sum(axis=0)
    total = np.zeros((replicates, 3)) if total is None else total
    total[:, DEVIATION] += sums[:, DEVIATION] - sums[:, COUNT] * (deviation / count)
    total[:, SPREAD] += sums[:, SPREAD] - sums[:, COUNT] * (spread / count)
    return total


def _relative(noise: np.ndarray, series: Sequence[Series], total: int) -> np.ndarray:
    """Return the replicates as differences of logarithms from the estimate: of the time, and of deviation over time."""
    spread = sum(int(part.cells[:, SPREAD].sum()) for part in series)
    logs = np.zeros_like(noise)
    logs[:, DEVIATION] = np.log(np.maximum(1.0 + noise[:, DEVIATION] / max(total, 1), 1e-9))
    if spread:
        logs[:, SPREAD] = np.log(np.maximum(1.0 + noise[:, SPREAD] / spread, 1e-9)) - logs[:, DEVIATION]
    return logs


def between_runs(values: Sequence[Sequence[float]], within: Sequence[float], confidence: float) -> Estimate:
    """Return the change between the sides' mean logarithms, with the scatter between repeated runs as its noise.

    The variance of one run is that of the repeats around their side's mean, pooled over both sides (Student's t, its
    degrees of freedom), and never less than the mean variance within runs. The floor is the largest difference between
    two runs of one side.
    """
    change = float(np.mean(values[1]) - np.mean(values[0]))
    freedom = sum(len(side) - 1 for side in values)
    scatter = math.fsum(float(np.sum((np.asarray(side) - np.mean(side)) ** 2)) for side in values) / freedom
    variance = max(scatter, float(np.mean(within))) * math.fsum(1 / len(side) for side in values)
    reach = float(stats.t.isf((1 - confidence) / 2, freedom) * np.sqrt(variance))
    floor = max(float(np.ptp(side)) for side in values)
    counts = float(len(values[0])), float(len(values[1]))
    return Estimate(
        change=change,
        low=change - reach,
        high=change + reach,
        error=float(np.sqrt(variance)),
        freedom=float(freedom),
        floor=floor,
        blocks=counts,
        effective=counts,
    )

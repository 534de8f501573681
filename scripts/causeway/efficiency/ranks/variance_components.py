"""Components of variance of durations: within launch configuration, between ranks (devices, nodes), over time;
robustly, with intervals.

The natural logarithm of a launch's duration is held against the median of its configuration and cut at `CUT` times its
scale, so that a few outliers do not decide. The law of total variance then splits the squares: between configurations,
between runs (repeats of a job), between nodes of a run, between ranks of a node, between devices of a rank, over time
(blocks common to all ranks), and the rest, less what chance gives each of them. Intervals: bootstrap of whole blocks of
time.

The level of a block of time is what launches take in it whatever their mix. A mean of all launches of a block, even of
their deviations, moves where the mix of configurations does: the median of a configuration is no mean, and is known to
a step of a histogram. Here the deviation of a configuration in a block is its own level plus that of the block (two-way
layout, least squares; H. Scheffé, The Analysis of Variance, Wiley 1959). A configuration weighs as much as it has
launches, spread evenly over the blocks in which it runs. So what changes in one block against another is what the
configurations that run in both take, or what others that run beside them do.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from causeway.core.clock import Clock
from causeway.core.vocabulary import VARIANCE_PARTS
from causeway.efficiency.ranks.duration_cells import BLOCKS, UNIT, duration_cells
from causeway.numeric.mpi import Ranks

NS_PER_HOUR = 3.6e12
FEWEST_BLOCKS = 3
"""Blocks with launches that a trend needs."""
RESAMPLES = 200
PERMUTATIONS = 500
LEVEL = 0.01
"""Significance level of a change point."""


def components(
    folders: Sequence[Path],
    clocks: Mapping[int, Clock],
    nodes: Mapping[int, str | None],
    seed: int,
    runs: Mapping[int, str | None] | None = None,
    *,
    ranks: Ranks | None = None,
) -> dict | None:
    """Return shares of the variance of log durations; None without launches, and on other MPI ranks than 0.

    Parameters
    ----------
    folders : sequence of Path
        Exports with launches.
    clocks : mapping of int to Clock
        By rank.
    nodes : mapping of int to str or None
        By rank.
    seed : int
        Of resamples and permutations.
    runs : mapping of int to str or None
        The repeat of the job, by rank; without it all are of one.
    ranks : Ranks or None
        The processes that share the reading; None for this one alone. Their number changes no bit.

    Returns
    -------
    dict
        launches, configurations, seed; `shares` by `VARIANCE_PARTS` with value, low and high (95 %), or null where a
        level has one member only; `within` likewise, of the variance within configurations; `lanes`: rank, device,
        launches and mean deviation of each device; `trend_per_hour` (change of log duration per hour within
        configurations: Theil-Sen over the levels of blocks, with the interval of the bootstrap), `trend_launches` (the
        launches that it rests on), `shapeless_launches` (those whose grid and block are not recorded: their sizes are
        not told apart) and `change_points_ns` on the dataset's time line.
    """
    cells = duration_cells(folders, clocks, ranks or Ranks())
    if cells is None:
        return None
    devices = cells.devices
    count = cells.count
    total = cells.total
    weight = count.sum()
    run_of = np.array([str((runs or {}).get(rank) or "") for rank, _ in devices])
    node_of = np.array([f"{run}\n{nodes.get(rank) or ''}" for run, (rank, _) in zip(run_of, devices, strict=True)])
    rank_of = np.array([rank for rank, _ in devices])
    random = np.random.Generator(np.random.PCG64(seed))
    draws = [random.integers(0, BLOCKS, BLOCKS) for _ in range(RESAMPLES)]
    configurations = cells.configurations, cells.between
    levels = run_of, node_of, rank_of
    squares = cells.squares
    value = _shares(count, total, squares, configurations, levels)
    drawn = [_shares(count[:, draw], total[:, draw], squares[:, draw], configurations, levels) for draw in draws]
    drawn = [resample for resample in drawn if math.fsum(resample) > 0]
    single = {
        "run": len(set(run_of)) < 2,
        "node": len(set(node_of)) == len(set(run_of)),
        "rank": len(set(rank_of)) < 2,
        "device": len(devices) == len(set(rank_of)),
    }
    is_defined = {
        part: math.fsum(value) > 0 and not single.get(part, False) for part in VARIANCE_PARTS
    }  # without variance there is nothing to share
    shares = {
        part: _interval(value[index], [resample[index] for resample in drawn], is_defined[part])
        for index, part in enumerate(VARIANCE_PARTS)
    }
    inner = _within(value)
    drawn_inner = [_within(resample) for resample in drawn]
    varies = math.fsum(value[1:]) > 0
    within = {
        part: _interval(inner[index], [resample[index] for resample in drawn_inner], is_defined[part] and varies)
        for index, part in enumerate(VARIANCE_PARTS[1:])
    }
    block_levels = levels_of_blocks(cells.cells)
    series = block_levels.level
    middles = (cells.edges[:-1] + np.diff(cells.edges) / 2 - cells.edges[0])[block_levels.blocks]
    timed = series.size >= FEWEST_BLOCKS
    picks = [np.arange(series.size)] if timed else []
    for draw in draws if timed else ():
        chosen = np.searchsorted(block_levels.blocks, np.sort(draw[np.isin(draw, block_levels.blocks)]))
        if len(set(chosen.tolist())) >= FEWEST_BLOCKS:
            picks.append(chosen)
    slopes = [NS_PER_HOUR * _theil_sen(series[pick], middles[pick]) for pick in picks]
    return {
        "launches": int(weight),
        "configurations": cells.configurations,
        "seed": seed,
        "shares": shares,
        "within": within,
        "lanes": _deviations(devices, count, total, draws),
        "trend_per_hour": _interval(slopes[0] if timed else 0.0, slopes[1:], timed),
        "trend_launches": block_levels.launches,
        "shapeless_launches": cells.shapeless,
        "change_points_ns": [int(cells.edges[block_levels.blocks[index]]) for index in _changes(series, random)],
    }


def _spread(count: np.ndarray, total: np.ndarray) -> float:
    """Return the variance of group means about the common mean, weighted by counts."""
    weight = count.sum()
    means = np.divide(total, count, out=np.zeros_like(total), where=count > 0)
    return float((count * (means - total.sum() / weight) ** 2).sum() / weight) if weight else 0.0


def _shares(count, total, squares, configurations, nested) -> list[float]:
    """Return shares by `VARIANCE_PARTS` of the whole variance: nested means of devices, then of blocks of time of all
    devices together.

    Means of few launches differ by chance: a level with d degrees of freedom takes d times the mean square of the rest
    from each launch's squares, which is subtracted (epsilon squared, Kelley 1935). Zeros where no degree of freedom
    remains for the rest.

    Parameters
    ----------
    count, total, squares : ndarray, shape (devices, blocks)
        Of deviations from the medians of configurations.
    configurations : (int, float)
        How many there are, and the variance between their medians.
    nested : tuple of ndarray, shape (devices,)
        Run, node of a run, and rank of each device.
    """
    of_devices = count.sum(axis=1), total.sum(axis=1)

    def grouped(labels):
        names, first = np.unique(labels, return_index=True)
        if names.size == labels.size:
            return [sums[first] for sums in of_devices]
        return [np.array([sums[labels == name].sum() for name in names]) for sums in of_devices]

    size, between = configurations
    weight = count.sum()
    per_device, total_of_device = of_devices
    devices = int((per_device > 0).sum())
    blocks = int((count.sum(axis=0) > 0).sum())
    free = weight - size - (devices - 1) - (blocks - 1)
    if weight == 0 or free < 1:
        return [0.0] * len(VARIANCE_PARTS)
    run, node, rank = (_spread(*grouped(labels)) for labels in nested)
    device = _spread(per_device, total_of_device)
    centred = (
        total - count * np.divide(total_of_device, per_device, out=np.zeros(len(count)), where=per_device > 0)[:, None]
    )
    time = _spread(count.sum(axis=0), centred.sum(axis=0))
    within = squares.sum() / weight - (total.sum() / weight) ** 2
    chance = max(within - device - time, 0.0) / free
    levels = (*(len(np.unique(labels)) for labels in nested), devices)
    parts = [
        between - (size - 1) * chance,
        run - (levels[0] - 1) * chance,
        node - run - (levels[1] - levels[0]) * chance,
        rank - node - (levels[2] - levels[1]) * chance,
        device - rank - (levels[3] - levels[2]) * chance,
        time - (blocks - 1) * chance,
        weight * chance,
    ]
    whole = math.fsum(max(part, 0.0) for part in parts)
    return [max(float(part), 0.0) / float(whole) if whole else 0.0 for part in parts]


def _interval(value: float, drawn: Sequence[float], is_defined: bool = True) -> dict:
    """Return a value with the 95 % interval of its resamples, all null where it is not known."""
    if not is_defined or not drawn:
        return dict.fromkeys(("value", "low", "high"))
    low, high = np.quantile(drawn, [0.025, 0.975]).tolist()
    return {"value": value, "low": low, "high": high}


def _within(shares: Sequence[float]) -> list[float]:
    """Return the shares without the first one, of configurations, as shares of what remains."""
    whole = math.fsum(shares[1:])
    return [share / whole if whole else 0.0 for share in shares[1:]]


def _deviations(devices, count, total, draws) -> list[dict]:
    """Return the mean deviation of each device's log durations from the medians of their configurations."""
    drawn = [(count[:, draw].sum(axis=1), total[:, draw].sum(axis=1)) for draw in draws]
    rows = []
    for index, (rank, device) in enumerate(devices):
        means = [float(sums[index] / n[index]) for n, sums in drawn if n[index]]
        value = float(total[index].sum() / max(count[index].sum(), 1))
        rows.append(
            {"rank": rank, "device": device, "launches": int(count[index].sum()), "deviation": _interval(value, means)}
        )
    return sorted(rows, key=lambda row: (row["rank"], row["device"]))


def _theil_sen(series: np.ndarray, middles: np.ndarray) -> float:
    """Return the median slope over all pairs of blocks (Sen 1968). Without the interval of scipy's `theilslopes`,
    which nobody reads: that takes half a second to load in every run, and half of the time of all resamples.
    """
    apart = middles[:, None] - middles
    later = apart > 0
    return float(np.median((series[:, None] - series)[later] / apart[later]))


def _changes(series: np.ndarray, random: np.random.Generator, offset: int = 0) -> list[int]:
    """Return where the level changes: binary segmentation by CUSUM (Page 1954), each split held against
    permutations.
    """
    if series.size < 8:
        return []

    def cusum(values: np.ndarray) -> np.ndarray:
        n = values.shape[-1]
        k = np.arange(1, values.shape[-1])
        sums = np.cumsum(values - values.mean(axis=-1, keepdims=True), axis=-1)[..., :-1]
        return np.abs(sums) / np.sqrt(k * (n - k) / n)

    curve = cusum(series)
    split = int(curve[2:-2].argmax()) + 3
    chance = cusum(random.permuted(np.tile(series, (PERMUTATIONS, 1)), axis=1)).max(axis=1)
    if (1 + (chance >= curve[split - 1]).sum()) / (1 + PERMUTATIONS) > LEVEL:
        return []
    return [
        *_changes(series[:split], random, offset),
        offset + split,
        *_changes(series[split:], random, offset + split),
    ]


DIGITS = 9
"""Of levels, so that what is equal but for the order of sums is equal: a step of `UNIT` is 6e-8."""


@dataclass(frozen=True, kw_only=True)
class BlockLevels:
    """Levels of the largest set of blocks that configurations link.

    Attributes
    ----------
    blocks : ndarray of int64, shape (k,)
        Ascending; those of the set.
    level : ndarray of float64, shape (k,)
        Log durations, about their mean.
    launches : int
        Launches of the configurations that run in two of these blocks or more.
    """

    blocks: np.ndarray
    level: np.ndarray
    launches: int


def levels_of_blocks(cells: np.ndarray) -> BlockLevels:
    """Return the levels of blocks of time.

    Parameters
    ----------
    cells : ndarray of int64, shape (configurations, 2, BLOCKS)
        `DurationCells.cells`.
    """
    count = cells[:, 0]
    total = cells[:, 1]
    runs = count > 0
    several = runs.sum(axis=1) > 1
    launches = count[several].sum(axis=1)
    share = runs[several] / runs[several].sum(axis=1, keepdims=True)
    weight = launches[:, None] * share
    mean = np.divide(total[several], UNIT * count[several], out=np.zeros(weight.shape), where=runs[several])
    beside = np.stack([(weight[:, [block]] * share).sum(axis=0) for block in range(BLOCKS)])
    own = mean - (share * mean).sum(axis=1, keepdims=True)
    right = (weight * own).sum(axis=0)
    linked = _largest(beside > 0, weight.sum(axis=0), np.logical_or.reduce(runs))
    links = np.diag(weight.sum(axis=0)) - beside
    level = np.linalg.lstsq(links[np.ix_(linked, linked)], right[linked], rcond=None)[0]
    in_set = np.isin(np.arange(BLOCKS), linked)
    behind = int(launches[runs[several][:, in_set].any(axis=1)].sum())
    return BlockLevels(blocks=linked, level=np.round(level - level.mean(), DIGITS), launches=behind)


def _largest(linked: np.ndarray, weight: np.ndarray, used: np.ndarray) -> np.ndarray:
    """Return the set of linked blocks with the most launches behind it, of equal ones the first, ascending.

    Parameters
    ----------
    linked : ndarray of bool, shape (BLOCKS, BLOCKS)
        Whether a configuration runs in both.
    weight : ndarray of float, shape (BLOCKS,)
    used : ndarray of bool, shape (BLOCKS,)
        Whether any launch is in it.
    """
    left = set(np.flatnonzero(used).tolist())
    best = np.zeros(0, np.int64)
    while left:
        reached = {min(left)}
        fresh = reached
        while fresh:
            fresh = set(np.flatnonzero(linked[sorted(fresh)].any(axis=0)).tolist()) - reached
            reached = reached | fresh
        left -= reached
        component = np.array(sorted(reached), np.int64)
        if not best.size or weight[component].sum() > weight[best].sum():
            best = component
    return best

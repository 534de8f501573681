"""Components of variance of durations: within launch configuration, between ranks (devices, nodes), over time;
robustly, with intervals.

The natural logarithm of a launch's duration is held against the median of its configuration and cut at `CUT` times its
scale, so that a few outliers do not decide. The law of total variance then splits the squares: between configurations,
between runs (repeats of a job), between nodes of a run, between ranks of a node, between devices of a rank, over time
(blocks common to all ranks), and the rest, less what chance gives each of them. Intervals: bootstrap of whole blocks of
time.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from causeway.core.clock import Clock
from causeway.core.vocabulary import VARIANCE_PARTS
from causeway.efficiency.ranks.duration_cells import BLOCKS, duration_cells
from causeway.numeric.mpi import Ranks

RESAMPLES = 200


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
        Of resamples.
    runs : mapping of int to str or None
        The repeat of the job, by rank; without it all are of one.
    ranks : Ranks or None
        The processes that share the reading; None for this one alone. Their number changes no bit.

    Returns
    -------
    dict
        launches, configurations, seed; `shares` by `VARIANCE_PARTS` with value, low and high (95 %), or null where a
        level has one member only; `within` likewise, of the variance within configurations.
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
    return {
        "launches": int(weight),
        "configurations": cells.configurations,
        "seed": seed,
        "shares": shares,
        "within": within,
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

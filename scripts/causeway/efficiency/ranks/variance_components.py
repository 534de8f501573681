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
from causeway.core.tables import folder_bytes, read_table
from causeway.core.vocabulary import VARIANCE_PARTS
from causeway.efficiency.device_time import event_streams
from causeway.numeric.mpi import Ranks

NS_PER_HOUR = 3.6e12
BLOCKS = 32
"""Slices of the run's time: enough to see a warm-up, few enough that each holds launches of all ranks."""
FEWEST_BLOCKS = 3
"""Blocks with launches that a trend needs."""
RESAMPLES = 200
CUT = 4.0
STEPS = 64
"""Steps per factor e of the histograms that give medians: they are right to 1.6 %."""
OCTAVES = 42
"""The histograms' range: e^42 ns are beyond a century."""
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
        launches and mean deviation of each device; `trend_per_hour` (change of log duration per hour: Theil-Sen over
        blocks, with the interval of the bootstrap) and `change_points_ns` on the dataset's time line.
    """
    cells = _cells(folders, clocks, ranks or Ranks())
    if cells is None:
        return None
    devices, edges, count, total, squares, medians, between = cells
    weight = count.sum()
    run_of = np.array([str((runs or {}).get(rank) or "") for rank, _ in devices])
    node_of = np.array([f"{run}\n{nodes.get(rank) or ''}" for run, (rank, _) in zip(run_of, devices, strict=True)])
    rank_of = np.array([rank for rank, _ in devices])
    random = np.random.Generator(np.random.PCG64(seed))
    draws = [random.integers(0, BLOCKS, BLOCKS) for _ in range(RESAMPLES)]
    configurations = len(medians), between
    levels = run_of, node_of, rank_of
    value = _shares(count, total, squares, configurations, levels)
    drawn = [_shares(*(part[:, draw] for part in (count, total, squares)), configurations, levels) for draw in draws]
    drawn = [one for one in drawn if math.fsum(one) > 0]
    single = {
        "run": len(set(run_of)) < 2,
        "node": len(set(node_of)) == len(set(run_of)),
        "rank": len(set(rank_of)) < 2,
        "device": len(devices) == len(set(rank_of)),
    }
    known = {
        part: math.fsum(value) > 0 and not single.get(part, False) for part in VARIANCE_PARTS
    }  # without variance there is nothing to share
    shares = {
        part: _interval(value[at], [one[at] for one in drawn], known[part]) for at, part in enumerate(VARIANCE_PARTS)
    }
    inner = _within(value)
    drawn_inner = [_within(one) for one in drawn]
    varies = math.fsum(value[1:]) > 0
    within = {
        part: _interval(inner[at], [one[at] for one in drawn_inner], known[part] and varies)
        for at, part in enumerate(VARIANCE_PARTS[1:])
    }
    series, middles = _series(count, total, edges)
    timed = int((count.sum(axis=0) > 0).sum()) >= FEWEST_BLOCKS
    picks = [np.arange(BLOCKS), *(np.sort(draw) for draw in draws if len(set(draw)) > 2)] if timed else []
    from scipy.stats import theilslopes  # half a second, which only a dataset with launches that repeat needs

    with np.errstate(invalid="ignore"):  # theilslopes' own interval, which is not used, where all values are equal
        slopes = [NS_PER_HOUR * float(theilslopes(series[pick], middles[pick]).slope) for pick in picks]
    return {
        "launches": int(weight),
        "configurations": len(medians),
        "seed": seed,
        "shares": shares,
        "within": within,
        "lanes": _deviations(devices, count, total, draws),
        "trend_per_hour": _interval(slopes[0] if timed else 0.0, slopes[1:], timed),
        "change_points_ns": [int(edges[at]) for at in _changes(series, random)],
    }


def _keys(folder: Path) -> list[tuple]:
    """Return what tells each configuration of an export from others, in any export."""
    names = read_table(folder / "kernels.parquet", "kernels", ["name"]).column(0).to_pylist()
    rows = read_table(folder / "configurations.parquet", "configurations").drop_columns(["configuration"]).to_pylist()
    return [(names[row.pop("kernel")], *row.values()) for row in rows]


def _logs(batch) -> np.ndarray:
    return np.log(np.maximum(batch.column("duration_ns").to_numpy(), 1).astype(float))


WANTED = ["start_ns", "duration_ns", "configuration", "rank", "device"]
SLICE = 1 << 10
"""Histograms that are summed up over processes at a time."""


def _cells(folders, clocks, ranks):
    """Return sums of cut deviations by device and block; two passes, the first for medians and scales. None without
    launches, and on other MPI ranks than 0.
    """
    with ranks.together():
        mine = ranks.share_of([folder_bytes(folder) for folder in folders])
        keys = {at: _keys(folders[at]) for at in mine}
    keys = {at: one for part in ranks.exchange(keys) for at, one in part.items()}
    known: dict[tuple, int] = {}
    codes = [np.array([known.setdefault(key, len(known)) for key in keys[at]], np.int64) for at in range(len(folders))]
    del keys
    with ranks.together():
        histogram = np.zeros((len(known), STEPS * OCTAVES), np.int32)
        seen = {at: _count_durations(folders[at], codes[at], clocks, histogram) for at in mine}
    if ranks.size > 1:
        for begin in range(0, len(known), SLICE):
            part = histogram[begin : begin + SLICE]
            part[...] = ranks.total(part.astype(np.int64))
    seen = dict(sorted(pair for part in ranks.exchange(seen) for pair in part.items()))
    devices: dict[tuple[int, int], int] = {}
    for found, _ in seen.values():
        for device in found:
            devices.setdefault(device, len(devices))
    ends = [moment for _, found in seen.values() for moment in found]
    if not ends:
        return None
    launches = histogram.sum(axis=1)
    before = np.cumsum(histogram, axis=1)
    quartile = [
        (np.argmax(before >= np.maximum(launches * q, 1)[:, None], axis=1) + 0.5) / STEPS for q in (0.25, 0.5, 0.75)
    ]
    medians = quartile[1]
    scale = np.maximum((quartile[2] - quartile[0]) / 1.349, 1.0 / STEPS)
    del histogram, before
    edges = np.linspace(min(ends), max(ends) + 1, BLOCKS + 1).astype(np.int64)
    with ranks.together():
        sums = {at: _sum_deviations(folders[at], codes[at], clocks, medians, scale, edges) for at in mine}
    parts = ranks.collect(sums)
    if parts is None:
        return None
    count, total, squares = whole = np.zeros((3, len(devices), BLOCKS))
    for _, found in sorted(pair for part in parts for pair in part.items()):
        for device, one in found.items():
            whole[:, devices[device]] += one
    weights = launches / launches.sum()
    between = float((weights * (medians - (weights * medians).sum()) ** 2).sum())
    return list(devices), edges, count, total, squares, medians, between


def _count_durations(folder, code, clocks, histogram):
    """Count an export's durations by configuration and step of their logarithm, into `histogram`; return its devices,
    (rank, device) in the order of their first launches, and its first and last starts on the dataset's time line.
    """
    devices: dict[tuple[int, int], None] = {}
    ends: list[int] = []
    for batch in event_streams.chunks(folder, "launches", WANTED):
        step = np.minimum((_logs(batch) * STEPS).astype(np.int64), STEPS * OCTAVES - 1)
        np.add.at(histogram, (code[batch.column("configuration").to_numpy()], step), 1)
        for rank, device, start in _by_device(batch):
            devices.setdefault((rank, device))
            ends += clocks[rank].aligned(np.array([start[0], start[-1]])).tolist()
            ends = [min(ends), max(ends)]
    return list(devices), ends


def _sum_deviations(folder, codes, clocks, medians, scale, edges):
    """Return the sums of an export's devices: count, deviations and their squares; float, shape (3, blocks) each."""
    found: dict[tuple[int, int], np.ndarray] = {}
    for batch in event_streams.chunks(folder, "launches", WANTED):
        code = codes[batch.column("configuration").to_numpy()]
        deviation = np.clip(_logs(batch) - medians[code], -CUT * scale[code], CUT * scale[code])
        rank = batch.column("rank").to_numpy()
        device = batch.column("device").to_numpy()
        for one, number, start in _by_device(batch):
            mine = (rank == one) & (device == number)
            block = np.clip(np.searchsorted(edges, clocks[one].aligned(start), "right") - 1, 0, BLOCKS - 1)
            sums = found.setdefault((one, number), np.zeros((3, BLOCKS)))
            sums[0] += np.bincount(block, minlength=BLOCKS)
            sums[1] += np.bincount(block, deviation[mine], BLOCKS)
            sums[2] += np.bincount(block, deviation[mine] ** 2, BLOCKS)
    return found


def _by_device(batch):
    """Yield rank, device and start times (int64, ns) of each device in a batch, in order."""
    rank, device, start = (batch.column(name).to_numpy() for name in ("rank", "device", "start_ns"))
    for key in np.unique(rank.astype(np.int64) << 16 | device).tolist():
        yield key >> 16, key & 0xFFFF, start[(rank == key >> 16) & (device == key & 0xFFFF)]


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

    def grouped(labels):
        names = np.unique(labels)
        return [np.array([part.sum(axis=1)[labels == name].sum() for name in names]) for part in (count, total)]

    size, between = configurations
    weight = count.sum()
    per_device = count.sum(axis=1)
    devices = int((per_device > 0).sum())
    blocks = int((count.sum(axis=0) > 0).sum())
    free = weight - size - (devices - 1) - (blocks - 1)
    if weight == 0 or free < 1:
        return [0.0] * len(VARIANCE_PARTS)
    run, node, rank = (_spread(*grouped(labels)) for labels in nested)
    device = _spread(per_device, total.sum(axis=1))
    centred = (
        total
        - count * np.divide(total.sum(axis=1), per_device, out=np.zeros(len(count)), where=per_device > 0)[:, None]
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


def _interval(value: float, drawn: Sequence[float], known: bool = True) -> dict:
    """Return a value with the 95 % interval of its resamples, all null where it is not known."""
    if not known or not drawn:
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


def _series(count, total, edges):
    """Return the mean deviation per block of time, and the blocks' middles in ns since the first edge."""
    n = count.sum(axis=0)
    known = n > 0
    middle = (edges[:-1] + np.diff(edges) / 2) - edges[0]
    return np.interp(middle, middle[known], (total.sum(axis=0)[known] / n[known])), middle


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

    found = cusum(series)
    at = int(found[2:-2].argmax()) + 3
    chance = cusum(random.permuted(np.tile(series, (PERMUTATIONS, 1)), axis=1)).max(axis=1)
    if (1 + (chance >= found[at - 1]).sum()) / (1 + PERMUTATIONS) > LEVEL:
        return []
    return [*_changes(series[:at], random, offset), offset + at, *_changes(series[at:], random, offset + at)]

"""Describe kernels and configurations over all launches: histogram of the value, the target over time, shares."""

import math

import numpy as np
import pyarrow as pa

from causeway.core.tables import LAUNCH_SHAPE, SCHEMAS
from causeway.numeric.compiled import F8, I4, I8, bits_of, compiled, float64, int64, void
from causeway.numeric.moments import Moments
from causeway.variability.bins.ranking import robust_cv
from causeway.variability.rows.configurations import Configurations

HISTOGRAM_BINS = 32
SLICES = 64
FRACTION_BITS = 32


class Histograms:
    """Counts of values per group in 32 bins between the group's extremes.

    Bins are of equal ratio, or of equal width where the lowest value is not positive.

    Parameters
    ----------
    low, high : ndarray of float64, shape (groups,)
        Extremes of each group's values.
    """

    def __init__(self, low: np.ndarray, high: np.ndarray) -> None:
        steps = np.arange(HISTOGRAM_BINS + 1) / HISTOGRAM_BINS
        low = low[:, None]
        high = high[:, None]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            self.edges = np.where(low > 0, low * (high / low) ** steps, low + (high - low) * steps)
        self.counts = np.zeros((low.size, HISTOGRAM_BINS), np.int64)
        bits = self.edges[:, [0, -1]].copy().view(np.int64)
        width = np.where(low[:, 0] > 0, bits[:, 1] - bits[:, 0], 0)
        self._per_ratio = np.divide(HISTOGRAM_BINS, width, out=np.zeros(low.size), where=width > 0)

    def add(self, group: np.ndarray, value: np.ndarray) -> None:
        """Count values (int64 or float64, shape (n,)) of groups (int32)."""
        _count(group, value, self.edges, self._per_ratio, self.counts)


class Timeline:
    """Exact sums of a target per group and slice of a run's span.

    A target is split into a whole number and a fraction of 32 bits, both in units of `2^exponent`, so that sums are
    integers and depend on no order; what is beyond, less than 2^-32 units per launch, is cut off.

    Parameters
    ----------
    groups : int
        Number of groups.
    span : int
        Positions of the longest run: slice k begins at the first position p with 64 p >= k span.
    largest : float
        No target is larger.
    """

    def __init__(self, groups: int, span: int, largest: float) -> None:
        self.edges = np.array([-(-slice_ * span // SLICES) for slice_ in range(SLICES + 1)], np.int64)
        # whole units stay below 2^31, so that 2^32 launches can be added
        self.exponent = int(np.frexp(largest)[1]) - 31
        self.table = np.zeros((groups, SLICES, 3), np.int64)

    def add(self, group: np.ndarray, position: np.ndarray, target: np.ndarray) -> None:
        """Add targets (float64, shape (n,), not negative, NaN where null) of groups (int32) at positions in their
        run (int64).
        """
        _add_targets(group, position, target, 2.0**-self.exponent, self.edges, self.table)

    def sums(self) -> tuple[np.ndarray, np.ndarray]:
        """Return count (int64) and sum (float64) of targets, each of shape (groups, 64)."""
        unit = 2.0**self.exponent
        total = self.table[..., 1].astype(object) * (1 << FRACTION_BITS) + self.table[..., 2].astype(object)
        return self.table[..., 0], (total / (1 << FRACTION_BITS)).astype(float) * unit


@compiled([void(I4, value, float64[:, ::1], float64[::1], int64[:, ::1]) for value in (I8, F8)])
def _count(group, value, edges, per_ratio, counts):
    last = counts.shape[1] - 1
    for i in range(value.size):
        g = group[i]
        v = float(value[i])
        # bits of floats grow about as their logarithm, so this guess is one bin off at most, where ratios are equal
        guess = np.int64((bits_of(v) - bits_of(edges[g, 0])) * per_ratio[g]) if per_ratio[g] > 0.0 else last // 2
        k = min(max(guess, 0), last)
        while k > 0 and v < edges[g, k]:
            k -= 1
        while k < last and v >= edges[g, k + 1]:
            k += 1
        counts[g, k] += 1


@compiled(void(I4, I8, F8, float64, I8, int64[:, :, ::1]))
def _add_targets(group, position, target, scale, edges, table):
    k = np.int64(0)
    last = table.shape[1] - 1
    for i in range(target.size):
        v = target[i] * scale
        if v != v:
            continue
        p = position[i]
        if p < edges[k]:
            k = 0
        while k < last and p >= edges[k + 1]:
            k += 1
        g = group[i]
        whole = np.int64(v)
        table[g, k, 0] += 1
        table[g, k, 1] += whole
        table[g, k, 2] += np.int64((v - whole) * 4294967296.0)


def variance_between(groups: Moments, wholes: Moments, whole_of: np.ndarray) -> np.ndarray:
    """Return the share of the variance of each whole that lies between the means of its groups.

    As in a one-way analysis of variance (R. A. Fisher, Statistical Methods for Research Workers, 1925, chapter 7): 1
    less the sum of squares within groups over that in all.

    Parameters
    ----------
    groups, wholes : Moments
        Of the same values.
    whole_of : ndarray of int, shape (groups,)
        The whole that each group is a part of.

    Returns
    -------
    ndarray of float64, shape (wholes,), 0 .. 1
        NaN where nothing varies.
    """
    within: list[list[float]] = [[] for _ in range(wholes.count.size)]
    for whole, count, variance in zip(
        whole_of.tolist(), groups.count.tolist(), groups.variance().tolist(), strict=True
    ):
        if count > 1:
            within[whole].append((count - 1) * variance)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = 1 - np.array([math.fsum(parts) for parts in within]) / ((wholes.count - 1) * wholes.variance())
    return np.where(np.isfinite(share), np.clip(share, 0, 1), np.nan)


def kernel_table(
    configurations: Configurations,
    values: Moments,
    quartiles: np.ndarray,
    histograms: Histograms,
    timeline: Timeline,
    launches: np.ndarray,
    between: np.ndarray,
) -> pa.Table:
    """Return `kernels.parquet`: kernels that have the target, the largest share of its sum first, then by name.

    Parameters
    ----------
    configurations : Configurations
    values : Moments
        Of the value, per kernel, over all its launches.
    quartiles : ndarray of float64, shape (kernels, 3)
    histograms, timeline
        Summed over ranks.
    launches : ndarray of int64, shape (configurations,)
        Launches of each configuration.
    between : ndarray of float64, shape (kernels,)
        Of `variance_between`, of the kernels' configurations.
    """
    count, target = timeline.sums()
    sums = np.array([math.fsum(line) for line in target.tolist()])
    whole = math.fsum(sums.tolist())
    has_target = count.sum(axis=1) > 0
    chosen = [k for k in np.lexsort((np.arange(sums.size), -sums)).tolist() if has_target[k]]
    used = np.bincount(configurations.kernel_of[launches > 0], minlength=len(configurations.kernels))
    cv = np.where(values.count > 1, robust_cv(*quartiles.T), np.nan)  # one launch has no spread
    with np.errstate(invalid="ignore"):
        means = target / count
    facts = [configurations.kernels[k] for k in chosen]

    columns = {
        "kernel": [fact["id"] for fact in facts],
        **{name: [fact[name] for fact in facts] for name in ("name", "short_name", "class")},
        "launches": values.count[chosen],
        "configurations": used[chosen],
        "value_sum": values.total()[chosen],
        "value_min": values.low[chosen].astype(float),
        "value_max": values.high[chosen].astype(float),
        "value_median": quartiles[chosen, 1],
        "value_q1": quartiles[chosen, 0],
        "value_q3": quartiles[chosen, 2],
        "robust_cv": pa.array(cv[chosen], mask=np.isnan(cv[chosen])),
        "variance_between": pa.array(between[chosen], mask=np.isnan(between[chosen]) | (used[chosen] < 2)),
        "target_sum": sums[chosen],
        "target_share": sums[chosen] / whole if whole > 0 else np.zeros(len(chosen)),
        "histogram": histograms.counts[chosen].tolist(),
        "timeline": [
            [value if n else None for value, n in zip(means[k].tolist(), count[k].tolist(), strict=True)]
            for k in chosen
        ],
    }
    schema = SCHEMAS["kernel_summary"]
    return pa.table(
        {field.name: pa.array(columns[field.name], field.type, from_pandas=False) for field in schema}, schema=schema
    )


def configuration_table(configurations: Configurations, moments: Moments, ranks: list[int] | None) -> pa.Table:
    """Return `configurations.parquet`: mean and standard deviation of what the target deviates from, per configuration
    with launches.

    Parameters
    ----------
    configurations : Configurations
    moments : Moments
        Groups are configurations or, with `ranks`, configuration times number of ranks plus index of the rank.
    ranks : list of int or None
        Ranks of the traced program, if means are per rank.
    """
    mean = moments.mean()
    std = np.sqrt(moments.variance())
    groups = np.flatnonzero(moments.count)
    number = groups // len(ranks) if ranks else groups
    shapes = configurations.shapes().take(pa.array(number))
    schema = SCHEMAS["configuration_summary"]
    columns = {
        "configuration": number,
        **{name: shapes.column(name) for name in ("kernel", *LAUNCH_SHAPE, "label")},
        "rank": np.array(ranks)[groups % len(ranks)] if ranks else pa.nulls(groups.size, pa.uint32()),
        "launches": moments.count[groups],
        "mean": mean[groups],
        "std": pa.array(std[groups], mask=np.isnan(std[groups])),
    }
    return pa.table(columns).cast(schema)

"""How late a site's readings are: the shift at which utilisation or power follows the launches best.

It holds how far the site's clock is ahead of the node's, and how the tool reads: a reading that is an average over more
than the sampling interval, or comes late, looks late by as much, and one whose time is cut to whole seconds early. So
it says when a reading held, and is no measure of clocks alone: of clocks that agree it can be some tenths of a second.

For each shift each reading is regressed on the busy share of the sampling interval before it, shifted. With normal
errors the profile log likelihood of the shift s is -n/2 log(1 - r(s)^2), r being the correlation; devices of a node
share the shift, their log likelihoods add up. Shifts that twice the difference from the best does not exceed the 95 %
point of chi squared by are the interval (the likelihood-ratio interval of a parameter). Errors of successive readings
are alike: n is divided by (1 + a) / (1 - a), a being their autocorrelation at lag 1 (Bayley and Hammersley, J. R. Stat.
Soc. Suppl. 8 (1946) 184). The best shift counts only if the relation is significant for that many shifts that were
tried (Bonferroni), and the interval is short.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import chi2

MAX_SKEW_S = 120
"""Largest shift that is looked for: beyond, a time zone or the day is wrong, which no correlation should
repair."""
LEVEL = 0.01
"""Significance level of the relation, over all shifts."""
INTERVAL = 0.95
"""Level of the interval."""
WIDEST = 8.0
"""Sampling intervals: a wider interval is no clear maximum."""
FEWEST_READINGS = 12
"""Readings that a shift needs on a device."""
COVERED = 0.5
"""Share of the time in question that must have readings for a shift to count."""
LONGEST_WINDOW_NS = 1_000_000_000
"""nvidia-smi's utilisation is that of the last 1/6 s to 1 s, as its manual says: not of longer sampling intervals.
Readings of long runs are averaged over longer spans before."""
FINE = 20
"""Fine steps per sampling interval, around the best of the coarse ones, which are halves of it."""


@dataclass(frozen=True, kw_only=True)
class Load:
    """What one device did, and what was read of it.

    Attributes
    ----------
    busy_ns : ndarray of int64, shape (cells + 1,), ns
        Time in which launches ran before each edge of the cells, ascending from 0.
    origin_ns, width_ns : int
        The first edge, UTC of the node's clock, and the width of a cell.
    times : ndarray of int64, shape (n,), ns, ascending
        Of the readings, on the site's clock.
    values : ndarray of float, shape (n,)
    """

    busy_ns: np.ndarray
    origin_ns: int
    width_ns: int
    times: np.ndarray
    values: np.ndarray

    @property
    def span_ns(self) -> int:
        """Time from the first edge to the last."""
        return self.width_ns * (self.busy_ns.size - 1)


@dataclass(frozen=True, kw_only=True)
class Skew:
    """How late the readings are, by the node's clock: the clocks' difference and how the tool reads; negative: early.

    Attributes
    ----------
    skew_ns, low_ns, high_ns : int or None
        With its 95 % interval; None where there is no clear maximum.
    correlation : float or None
        At the best shift, of the device with most readings; None where nothing varies.
    readings : int
        Readings of all devices that were compared at the best shift.
    reason : str
        Why there is none; empty else.
    """

    skew_ns: int | None = None
    low_ns: int | None = None
    high_ns: int | None = None
    correlation: float | None = None
    readings: int = 0
    reason: str = ""


def estimate_skew(loads: Sequence[Load], interval_ns: int) -> Skew:
    """Estimate how late a site's readings are, by a node's clock.

    Parameters
    ----------
    loads : sequence of Load
        Of the devices of one node.
    interval_ns : int
        Sampling interval of the readings. The interval of the skew is widened by half of it at either end: a reading
        stands for some of the time before it, of which no tool says how much. What it stands for beyond the sampling
        interval is part of the skew.

    Returns
    -------
    Skew
    """
    step = max(interval_ns // 2, 1)
    count = MAX_SKEW_S * 1_000_000_000 // step
    coarse = step * np.arange(-count, count + 1, dtype=np.int64)
    likelihood, _, _ = _likelihood(loads, coarse, interval_ns)
    if not np.isfinite(likelihood).any() or likelihood.max() <= 0:
        return Skew(reason="neither the load nor the readings vary where both are known")
    best = int(coarse[np.argmax(likelihood)])
    fine = best + interval_ns * np.arange(-2 * FINE, 2 * FINE + 1, dtype=np.int64) // FINE
    shifts = np.union1d(coarse, fine)
    likelihood, correlation, counts = _likelihood(loads, shifts, interval_ns)
    peak = int(np.argmax(likelihood))
    kept = _independent(loads, int(shifts[peak]), interval_ns)
    likelihood, correlation, counts = _likelihood(loads, shifts, interval_ns, kept)
    peak = int(np.argmax(likelihood))
    at_peak = Skew(correlation=float(correlation[peak]), readings=int(counts[peak]))
    needed = chi2.isf(LEVEL / (2 * MAX_SKEW_S * 1_000_000_000 / interval_ns), 1)
    if 2 * likelihood[peak] < needed:
        return replace(at_peak, reason="the readings do not follow the load significantly at any shift")
    inside = shifts[2 * (likelihood[peak] - likelihood) <= chi2.ppf(INTERVAL, 1)]
    low = int(inside[0]) - interval_ns // 2
    high = int(inside[-1]) + interval_ns // 2
    if high - low > WIDEST * interval_ns:
        return replace(at_peak, reason="several shifts fit about as well: no clear maximum")
    if abs(int(shifts[peak])) >= int(coarse[-1]) - interval_ns:
        return replace(at_peak, reason="the best shift lies at the end of those tried: is the time zone right?")
    return replace(at_peak, skew_ns=int(shifts[peak]), low_ns=low, high_ns=high)


def _likelihood(
    loads: Sequence[Load], shifts: np.ndarray, interval_ns: int, kept: Sequence[float] | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return by shift the log likelihood beyond that of no relation (-inf with too few readings), the correlation of
    the device with most readings, and the number of readings.

    `kept` is the share of its readings that count as independent, by device.
    """
    total = np.full(shifts.size, -np.inf)
    correlation = np.zeros(shifts.size)
    counts = np.zeros(shifts.size, np.int64)
    largest = np.zeros(shifts.size, np.int64)
    for number, load in enumerate(loads):
        weight = 1.0 if kept is None else kept[number]
        fewest = max(FEWEST_READINGS, COVERED * load.span_ns / interval_ns)
        for k, shift in enumerate(shifts.tolist()):
            share, values = _compared(load, shift, interval_ns)
            if share.size < fewest:
                continue
            r = _correlation(share, values)
            total[k] = max(total[k], 0.0) - weight * share.size / 2 * np.log1p(-(min(max(r, 0.0), 0.999999) ** 2))
            counts[k] += share.size
            if share.size > largest[k]:
                largest[k] = share.size
                correlation[k] = r
    return total, correlation, counts


def _compared(load: Load, shift: int, interval_ns: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the busy share of the time before each reading that lies in the time in question, and the readings."""
    ends = load.times - (shift + load.origin_ns)
    window = min(interval_ns, LONGEST_WINDOW_NS) if interval_ns < 2 * LONGEST_WINDOW_NS else interval_ns
    inside = slice(np.searchsorted(ends, window), np.searchsorted(ends, load.span_ns, side="right"))
    ends = ends[inside]
    return (_before(load, ends) - _before(load, ends - window)) / window, load.values[inside]


def _before(load: Load, times: np.ndarray) -> np.ndarray:
    """Return the busy time before moments, ns since the first edge: exact at edges, linear between them."""
    cell = np.minimum(times // load.width_ns, load.busy_ns.size - 2)
    inner = (times - cell * load.width_ns) / load.width_ns
    return load.busy_ns[cell] + (load.busy_ns[cell + 1] - load.busy_ns[cell]) * inner


def _correlation(first: np.ndarray, second: np.ndarray) -> float:
    """Return the correlation of two series, 0 where one of them does not vary."""
    first = first - first.mean()
    second = second - second.mean()
    product = float(first @ first) * float(second @ second)
    return float(first @ second) / product**0.5 if product > 1e-20 else 0.0


def _independent(loads: Sequence[Load], shift: int, interval_ns: int) -> list[float]:
    """Return for each device the share of its readings that count as independent, from the errors at a shift."""
    shares = []
    for load in loads:
        share, values = _compared(load, shift, interval_ns)
        if share.size < 3 or not np.ptp(share):
            shares.append(1.0)
            continue
        errors = values - np.polyval(np.polyfit(share, values, 1), share)
        lag = min(max(_correlation(errors[:-1], errors[1:]), 0.0), 0.99)
        shares.append((1 - lag) / (1 + lag))
    return shares

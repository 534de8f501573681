"""What each cause of a table truly does to the duration: the generator is played again with the cause set, with the
same noise.

A cause is set to its 90th instead of its 10th percentile within its configuration (its largest and smallest value where
those are equal), a category to the levels that are named instead of those they are compared with. What the cause drives
follows it: total effects.
Between causes that do not drive one another all others are held.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from lab.validation.generator import KnownTable

LOW = 0.1
HIGH = 0.9
PERCENTILE_WORDS = {0.1: "10th percentile", 0.5: "median", 0.9: "90th percentile"}
"""How `whatif.parquet` names the values that it sets."""


@dataclass(frozen=True, kw_only=True)
class TimeTruth:
    """Changes of the duration between two values of a cause.

    Attributes
    ----------
    mean, p50, p99, spread : float, percent of what was observed
        Spread is the standard deviation. It, p50 and p99 are those of times over the observed mean of their kernel.
    cost_ns : float
        GPU time of all launches as they were less what it is with the cause at the better of the two values, by mean
        time within each configuration.
    """

    mean: float
    p50: float
    p99: float
    spread: float
    cost_ns: float


def time_truth(
    table: KnownTable, name: str, levels: Sequence[str] = (), against: Sequence[str] = ()
) -> TimeTruth | None:
    """Return what a cause truly does; None if it is a category without the level asked for, or constant.

    Parameters
    ----------
    table : KnownTable
    name : str
        One of `table.causes`.
    levels, against : sequence of str
        Of a category: the levels that are compared; what several do is their mean, as often as launches had them.
    """
    ends = effect_ends(table, name, levels, against)
    if ends is None:
        return None
    low, high = (table.play({name: end}) for end in ends)
    counts = np.bincount(table.kernel)
    mean_low, mean_high = (np.bincount(table.kernel, y) / counts for y in (low, high))
    better = np.where((mean_low <= mean_high)[table.kernel], low, high)
    changes = {"mean": change(np.mean, high, low, table.y)}
    for name, statistic in (("p50", _quantile(0.5)), ("p99", _quantile(0.99)), ("spread", np.std)):
        changes[name] = change(statistic, *(relative(y, table) for y in (high, low, table.y)))
    return TimeTruth(**changes, cost_ns=float(np.sum(table.y - better)))


def effect_ends(
    table: KnownTable, name: str, levels: Sequence[str] = (), against: Sequence[str] = ()
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the two values of a cause that its effect compares, each of shape (n_rows,); None as in `time_truth`."""
    values = table.drivers[name]
    return (
        _levels(values, table.kernel, levels, against) if values.dtype == object else percentiles(values, table.kernel)
    )


def change(
    statistic: Callable[[np.ndarray], np.floating], after: np.ndarray, before: np.ndarray, observed: np.ndarray
) -> float:
    """Return by how much a statistic of two sets of durations differs, in percent of that of the observed ones.

    Parameters
    ----------
    statistic : callable
        Gives a number from an ndarray of float, shape (n_rows,), ns.
    after, before, observed : ndarray of float, shape (n_rows,), ns
    """
    return 100.0 * float((statistic(after) - statistic(before)) / statistic(observed))


def what_if_truth(table: KnownTable, name: str, values: np.ndarray) -> tuple[float, float]:
    """Return the true change of the mean and of p99, percent of the observed, if a cause had other values.

    Parameters
    ----------
    table : KnownTable
    name : str
        One of `table.causes`.
    values : ndarray, shape (n_rows,)
        Floats, or objects (text).
    """
    played = table.play({name: values})
    before = relative(table.y, table)
    p99 = change(_quantile(0.99), relative(played, table), before, before)
    return change(np.mean, played, table.y, table.y), p99


def relative(times: np.ndarray, table: KnownTable) -> np.ndarray:
    """Return times over the observed mean of their kernel, so that kernels of all durations count alike.

    Parameters
    ----------
    times : ndarray of float, shape (n_rows,), ns
    table : KnownTable

    Returns
    -------
    ndarray of float, shape (n_rows,)
        About 1.
    """
    means = np.bincount(table.kernel, table.y) / np.bincount(table.kernel)
    return times / means[table.kernel]


def set_values(table: KnownTable, name: str, words: str) -> np.ndarray | None:
    """Return the values of a cause, shape (n_rows,), that a what-if names: a percentile of each configuration, none, or
    a category's level; None if the words name no such value.
    """
    values = table.drivers[name]
    if values.dtype == object:
        return np.full(values.size, words, dtype=object) if words in values else None
    if words == "none":
        return np.zeros(values.size)
    share = next((share for share, start in PERCENTILE_WORDS.items() if start in words), None)
    if share is None:
        return None
    changed = np.empty(values.size)
    for number in np.unique(table.kernel):
        rows = table.kernel == number
        changed[rows] = np.quantile(values[rows], share, method="inverted_cdf")
    return changed


def percentiles(values: np.ndarray, kernel: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Return for each row the 10th and the 90th percentile of its configuration, observed values (never interpolated),
    the smallest and the largest where both are equal; None if the values are constant in each configuration.

    Parameters
    ----------
    values : ndarray of float, shape (n_rows,)
    kernel : ndarray of int, shape (n_rows,)

    Returns
    -------
    low, high : ndarray of float, shape (n_rows,)
    """
    low = np.empty(values.size)
    high = np.empty(values.size)
    for number in np.unique(kernel):
        rows = kernel == number
        ends = np.quantile(values[rows], [LOW, HIGH], method="inverted_cdf")
        low[rows], high[rows] = ends if ends[0] < ends[1] else (values[rows].min(), values[rows].max())
    return None if np.array_equal(low, high) else (low, high)


def _levels(
    values: np.ndarray, kernel: np.ndarray, levels: Sequence[str], against: Sequence[str]
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return for each row one of the levels `against` and one of `levels`, in turn those of rows of its configuration
    that have them; None where no configuration has both.
    """
    before = values.astype(str).astype(object)
    after = before.copy()
    for number in np.unique(kernel):
        rows = np.flatnonzero(kernel == number)
        first, second = (before[rows][np.isin(before[rows].astype(str), list(some))] for some in (against, levels))
        if first.size and second.size:
            before[rows], after[rows] = (np.resize(some, rows.size) for some in (first, second))
    return None if np.array_equal(before, after) else (before, after)


def _quantile(share: float) -> Callable[[np.ndarray], np.floating]:
    return lambda values: np.quantile(values, share)

"""What a cause may be set to: values that were observed, alone and together with the other causes."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from causeway.causal.data.observations import Feature
from causeway.causal.data.outcome import Arrow
from causeway.causal.effects.scope_times import ScopeTimes
from causeway.causal.effects.tails import FEWEST_LAUNCHES
from causeway.causal.effects.time_effects import quantile_donors
from causeway.causal.preparation.categorical import USUAL_SHARE, listed
from causeway.core.feature_registry import FEATURES
from causeway.core.formatting import setting_value

MIN_SHARE = 0.02
"""A level counts as observed from this share of the launches."""
SUPPORT_ROWS = 1000
"""So many launches, evenly spread, are asked whether an intervention brings them where none was observed."""
SUPPORT_QUANTILE = 0.99
"""Quantile of the launches' distances to their nearest neighbour that counts as usual."""
SUPPORT_SLACK = 0.5
"""Standard deviations beyond the usual distance to the nearest launch."""
LEVEL_APART = 5.0
"""Standard deviations that two levels of a category are apart."""
QUANTILES = {0.1: "10th percentile", 0.5: "median", 0.9: "90th percentile"}
NONE_OF = frozenset(feature.name for feature in FEATURES if feature.at_zero)
"""Features that one would set to zero: nothing else in flight."""
NONE = "none"


@dataclass(frozen=True)
class Setting:
    """One value that a cause is set to.

    Attributes
    ----------
    before, after : str
        The value as it was and as it is set, in words.
    donor : ndarray of int, shape (n_rows,)
        For each row the row whose value it takes, or -1 where the value lies outside what was observed.
    """

    before: str
    after: str
    donor: np.ndarray


class Support:
    """What was observed of all causes together: an intervention may not combine them as no launch ever did.

    Parameters
    ----------
    values : list of ndarray, shape (n_rows,) or (n_rows, n_levels - 1)
        Causes as candidates hold them.
    """

    def __init__(self, values: list[np.ndarray]) -> None:
        from scipy.spatial import cKDTree

        self.parts = [
            value[:, None].astype(float) if value.ndim == 1 else LEVEL_APART * value.astype(float) for value in values
        ]
        self.points = np.hstack(self.parts)
        self.own = np.arange(0, len(self.points), max(1, len(self.points) // SUPPORT_ROWS))
        self.tree = cKDTree(self.points)
        near = self.tree.query(self.points[self.own], k=2)[0][:, 1]
        self.limit = float(np.quantile(near, SUPPORT_QUANTILE)) + SUPPORT_SLACK

    def outside(self, donors: Mapping[int, np.ndarray], weight: np.ndarray) -> float:
        """Return the share of the launches, 0 to 1, that an intervention would make unlike any launch.

        Parameters
        ----------
        donors : mapping of int to ndarray of int, shape (n_rows,)
            For each cause that is set, by its position: the row whose value each row takes, -1 for none.
        weight : ndarray of float, shape (n_rows,), positive
        """
        missing = np.any([donor < 0 for donor in donors.values()], axis=0)
        parts = [
            part[donors[cause][self.own]] if cause in donors else part[self.own]
            for cause, part in enumerate(self.parts)
        ]
        far = (self.tree.query(np.hstack(parts))[0] > self.limit) | missing[self.own]
        return float(weight[self.own][far].sum() / weight[self.own].sum())


def measured_values(column: Feature, pick: np.ndarray) -> np.ndarray | None:
    """Return a feature's values in some rows as measured, None for text.

    Parameters
    ----------
    column : Feature
    pick : ndarray of int, shape (n_rows,)

    Returns
    -------
    ndarray of float, shape (n_rows,), or None
        NaN where missing.
    """
    values = np.asarray(column.values)
    return None if values.dtype == object else values[pick].astype(float)


def observed_levels(numbers: np.ndarray, weight: np.ndarray, n_levels: int) -> np.ndarray:
    """Return which levels of a category count as observed: those with `least_share` of the launches, and of those that
    were analysed at least `FEWEST_LAUNCHES`, as what fewer took is no estimate of what others would take.

    Parameters
    ----------
    numbers : ndarray of int, shape (n_rows,)
        The number of each row's level.
    weight : ndarray of float, shape (n_rows,), positive
    n_levels : int

    Returns
    -------
    ndarray of bool, shape (n_levels,)
    """
    shares = np.bincount(numbers, weight, n_levels) / weight.sum()
    return (shares >= least_share(shares)) & (np.bincount(numbers, minlength=n_levels) >= FEWEST_LAUNCHES)


def least_share(shares: np.ndarray) -> float:
    """Return the share of the launches from which a level of a category counts as observed, given those of all levels:
    of many that hold few launches each, half of the share of a typical launch's level is enough.

    Parameters
    ----------
    shares : ndarray of float, shape (n_levels,)
        Their sum is 1.

    >>> least_share(np.full(64, 1 / 64)), least_share(np.array([0.5, 0.5]))
    (0.0078125, 0.02)
    """
    return min(MIN_SHARE, USUAL_SHARE * float(shares @ shares))


def settings_of(arrow: Arrow, times: ScopeTimes) -> list[Setting]:
    """Return what a cause that varies within configurations may be set to.

    Values are those that launches of the same configuration had; donor rows are positions among the used rows.
    """
    candidate = times.candidates[arrow.name]
    values = candidate.values[times.used]
    weight = times.weight
    if values.ndim > 1:
        groups = times.compared[arrow.name].groups
        return [Setting("as it was", listed(groups.fast), groups.low)] if groups.fast else []
    weight = weight * times.known(arrow.name)
    column = next((one for one in times.evidence.columns if one.name == candidate.name), None)
    raw = None if column is None else measured_values(column, times.used)
    alone = np.unique(times.configuration).size == 1
    middle = None if raw is None else float(np.median(raw[np.isfinite(raw)]))
    before = "as it was" if middle is None else f"as it was (median {setting_value(middle, candidate.unit)})"
    settings = []
    seen: list[np.ndarray] = []
    for share, name in QUANTILES.items():
        donor = quantile_donors(values, times.configuration, weight, share)
        zero = raw is not None and candidate.name in NONE_OF and not np.any(raw[donor])
        if zero or any(np.array_equal(values[donor], other) for other in seen):
            continue
        seen.append(values[donor])
        after = (
            f"{setting_value(float(raw[donor[0]]), candidate.unit)} ({name})"
            if alone and raw is not None and np.isfinite(raw[donor[0]])
            else f"the {name} within each configuration"
        )
        settings.append(Setting(before, after, donor))
    if candidate.name in NONE_OF and raw is not None:
        settings.append(Setting(before, NONE, zero_donors(values, raw, times.configuration, weight)))
    return settings


def level_donors(numbers: np.ndarray, level: int, configuration: np.ndarray) -> np.ndarray:
    """Return for each row one of its configuration with a level, -1 where no launch of it has that.

    Parameters
    ----------
    numbers : ndarray of int, shape (n_rows,)
        The number of each row's level.
    level : int
    configuration : ndarray of int, shape (n_rows,)

    Returns
    -------
    ndarray of int, shape (n_rows,)
    """
    first = np.full(int(configuration.max()) + 1, -1)
    with_level = np.flatnonzero(numbers == level)[::-1]
    first[configuration[with_level]] = with_level
    return first[configuration]


def zero_donors(values: np.ndarray, raw: np.ndarray, configuration: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return for each row one of its configuration where the feature is zero.

    Parameters
    ----------
    values : ndarray of float, shape (n_rows,)
        The cause as its candidate holds it.
    raw : ndarray of float, shape (n_rows,)
        As measured.
    configuration : ndarray of int, shape (n_rows,)
    weight : ndarray of float, shape (n_rows,), positive

    Returns
    -------
    ndarray of int, shape (n_rows,)
        -1 where too few launches of the configuration (or none) are at zero for that to be observed.
    """
    donor = np.full(values.size, -1)
    for number in np.unique(configuration):
        mine = np.flatnonzero(configuration == number)
        zero = mine[raw[mine] == 0]
        if weight[zero].sum() >= MIN_SHARE * weight[mine].sum():
            donor[mine] = zero[0]
    return donor

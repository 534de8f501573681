"""The configuration level: features that are constant within a configuration, and how much its launches vary.

A deviation from the configuration's own mean cannot be moved by what all launches of the configuration share; only its
scale can. Deviations that are standardised per configuration would erase exactly that, so here each configuration gives
one number, the logarithm of the mean absolute residual of its launches, and the number of *configurations* is the
sample size: ten million launches of two configurations are still two points and prove nothing.

The number is taken twice, in the measured unit and relative to the configuration's mean. Longer launches vary more in
ns merely because they are longer, and less relative to their mean if the noise is a constant; only a feature that acts
in the same direction both ways counts.
"""

from collections.abc import Sequence

import numpy as np
from scipy.special import fdtrc

from causeway.causal.data.observations import FEWEST_LAUNCHES, Candidate, Drop, Dropped, Observations
from causeway.causal.effects.evidence import ConfigurationEffect
from causeway.causal.selection.linear_model import ALPHA
from causeway.causal.statistics.basis import cluster_columns, group_means, medoids


def _position(candidate: Candidate) -> np.ndarray:
    """Return a feature's value per configuration on the scale of the analysis: logarithms of sizes (bytes are so
    already).
    """
    values = np.asarray(candidate.values, dtype=float)
    if candidate.unit == "bytes":
        return values
    return np.log(values) if values.min() > 0 else np.log1p(values) if values.min() >= 0 else values


def _within_kernel(values: np.ndarray, kernels: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return values - group_means(values, kernels, weights)[kernels]


def _test(
    response: np.ndarray, columns: np.ndarray, tested: int, weights: np.ndarray, kernels: np.ndarray
) -> tuple[float, float, float]:
    """Return p-value, partial R^2 and slope of column `tested` given the others and the kernels' means."""
    roots = np.sqrt(weights / weights.mean())
    y = _within_kernel(response, kernels, weights) * roots
    x = np.column_stack([_within_kernel(column, kernels, weights) * roots for column in columns.T])
    df = y.size - np.unique(kernels).size - x.shape[1]
    others = np.delete(x, tested, axis=1)
    own = x[:, tested]
    if others.shape[1]:
        fitted = np.linalg.lstsq(others, np.column_stack([y, own]), rcond=1e-8)[0]
        y = y - others @ fitted[:, 0]
        own = own - others @ fitted[:, 1]
    length = float(own @ own)
    if df < 1 or length < 0.02 * float(x[:, tested] @ x[:, tested]) or length <= 0 or float(y @ y) <= 0:
        return 1.0, 0.0, 0.0
    slope = float(own @ y) / length
    partial = min(slope**2 * length / float(y @ y), 1.0)
    return float(fdtrc(1, df, partial / max(1 - partial, 1e-12) * df)), partial, slope


class ConfigurationLevel:
    """One row per configuration, with the logarithm of the mean absolute residual in both scalings.

    Parameters
    ----------
    rows : Observations
    residual : ndarray, shape (n_rows,)
        Of the mean stage, in units of `spread`.
    spread : ndarray, shape (n_rows,)
        Standard deviation of each row's configuration, in the measured unit.
    """

    def __init__(self, rows: Observations, residual: np.ndarray, spread: np.ndarray) -> None:
        counts = np.bincount(rows.configuration)
        absolute = np.bincount(rows.configuration, rows.weight * np.abs(residual) * spread) / np.bincount(
            rows.configuration, rows.weight
        )
        first = np.unique(rows.configuration, return_index=True)[1]
        self.mean = rows.mean[first]
        kernels = rows.kernel[first]
        self.usable = np.flatnonzero((counts >= FEWEST_LAUNCHES) & (absolute > 0))
        self.kernels = np.unique(kernels[self.usable], return_inverse=True)[1]
        self.weights = counts[self.usable] / (counts[self.usable] + FEWEST_LAUNCHES)
        logs = np.log(absolute[self.usable])
        relative = bool(np.all(self.mean[self.usable] > 0))
        self.responses = [logs] + ([logs - np.log(self.mean[self.usable])] if relative else [])

    def test(self, columns: np.ndarray, tested: int) -> tuple[float, float, float]:
        """Test one column given the others.

        Parameters
        ----------
        columns : ndarray of float, shape (configurations, k)
            Of usable configurations.
        tested : int
            The column that is tested, by position.

        Returns
        -------
        p-value, partial R^2, slope per unit of the column : float
            Of the unit, ns or share of the mean, in which the column says less; 1, 0, 0 if the units disagree on the
            sign.
        """
        results = [_test(response, columns, tested, self.weights, self.kernels) for response in self.responses]
        if len({np.sign(slope) for _, _, slope in results}) > 1:
            return 1.0, 0.0, 0.0
        return max(p for p, _, _ in results), min(r2 for _, r2, _ in results), results[0][2]


def configuration_effects(
    candidates: Sequence[Candidate], rows: Observations, residual: np.ndarray, spread: np.ndarray
) -> tuple[list[ConfigurationEffect], list[Dropped], int]:
    """Find launch-level features that scale the variability.

    Parameters
    ----------
    candidates : list of Candidate
    rows : Observations
    residual, spread : ndarray of float, shape (n,)
        What the stages leave of the deviation, and the spread that they expect of each row, in its unit.

    Returns
    -------
    effects : list of ConfigurationEffect
    dropped : list of Dropped
        Features that could not be told apart, or not be judged for want of configurations.
    n_tests : int
    """
    numbers = [candidate for candidate in candidates if candidate.values.ndim == 1]
    dropped = [
        Dropped(c.name, "a category that is constant within configurations cannot be told from them")
        for c in candidates
        if c.values.ndim > 1
    ]
    if not numbers:
        return [], dropped, 0
    level = ConfigurationLevel(rows, residual, spread)
    n_kernels = np.unique(level.kernels).size
    varying = []
    positions = []
    for candidate in numbers:
        values = _position(candidate)[level.usable]
        inside = _within_kernel(values, level.kernels, level.weights) if values.size else values
        if values.size == 0 or np.ptp(inside) <= 1e-9 * max(np.abs(values).max(), 1e-300):
            dropped.append(Dropped(candidate.name, _why_constant(values, _position(candidate).size)))
        elif level.usable.size - n_kernels - 1 < 1:
            dropped.append(Dropped(candidate.name, _too_few(level.usable.size)))
        else:
            varying.append(candidate)
            positions.append(inside)
    if not varying:
        return [], dropped, 0
    merged, columns, more = _merge(varying, np.column_stack(positions))
    dropped += more
    chosen = _select(level, columns)
    effects = []
    for index in chosen:
        p_value, partial, slope = level.test(columns[:, chosen], chosen.index(index))
        scale = float(columns[:, index].std())
        position = _position(merged[index])
        position = (position - position.mean()) / scale
        effects.append(
            ConfigurationEffect(
                candidate=merged[index],
                slope=slope * scale,
                position=position,
                p_value=p_value,
                partial_r2=partial,
                n_configurations=int(level.usable.size),
            )
        )
    return effects, dropped, columns.shape[1]


def _why_constant(values: np.ndarray, n_configurations: int) -> str:
    """Return why a feature is of no use that has one value in all configurations of each kernel, given its values in
    those with enough launches, and how many configurations there are.
    """
    if values.size < 2:
        return _too_few(values.size)
    least = f", in configurations with at least {FEWEST_LAUNCHES} launches"
    among = "" if values.size == n_configurations else least
    return f"constant{' within each kernel' if np.ptp(values) > 0 else ''}{among}"


def _too_few(n_configurations: int) -> str:
    return (
        f"constant within configurations, and {n_configurations} configurations with at least {FEWEST_LAUNCHES}"
        " launches are too few to tell"
    )


def _merge(candidates: list[Candidate], columns: np.ndarray) -> tuple[list[Candidate], np.ndarray, list[Dropped]]:
    """Merge features that move together over the configurations."""
    unit = columns / np.sqrt((columns**2).sum(axis=0))
    similarity = np.abs(unit.T @ unit)
    names = [candidate.name for candidate in candidates]
    merged = []
    heads = []
    dropped = []
    for members in medoids(similarity, cluster_columns(similarity), names).values():
        head = candidates[members[0]]
        everyone = (head.name, *sorted(names[i] for i in members[1:]))
        merged.append(Candidate(**{**head.__dict__, "members": everyone}))
        heads.append(members[0])
        dropped += [
            Dropped(names[i], f"merged into {head.name}: they change together over the configurations", Drop.MERGED)
            for i in members[1:]
        ]
    return merged, columns[:, heads], dropped


def _select(level: ConfigurationLevel, columns: np.ndarray) -> list[int]:
    """Select forward while the best test holds at `ALPHA` over the number of features, then prune."""
    limit = ALPHA / columns.shape[1]
    chosen: list[int] = []
    while len(chosen) < columns.shape[1]:
        tests = [
            (level.test(columns[:, [*chosen, index]], len(chosen))[0], index)
            for index in range(columns.shape[1])
            if index not in chosen
        ]
        p_value, best = min(tests)
        if p_value > limit:
            break
        chosen.append(best)
    while chosen:
        p_value, weakest = max((level.test(columns[:, chosen], place)[0], index) for place, index in enumerate(chosen))
        if p_value <= limit:
            break
        chosen.remove(weakest)
    return chosen

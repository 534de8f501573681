"""What the causes of single kernels amount to over a dataset: a random-effects summary of their effects.

The search over all kernels together finds what only all of them can show. What acts in a few kernels alone is found in
these, and its effect is summed up here: in how many kernels, how large there, how different between them.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from causeway.causal.data.outcome import NORMAL_QUANTILE, Arrow, Estimate, Outcome, Scope, six_digits
from causeway.causal.effects.scope_times import CONFIDENCE, NOTHING_LEFT
from causeway.causal.report.sentences import with_level
from causeway.core import formatting
from causeway.core.vocabulary import SUPPORTED


@dataclass(frozen=True, kw_only=True)
class KernelEffects:
    """A cause that acts in kernels of a dataset, with its effects there; a row of `across_kernels.parquet`.

    Attributes
    ----------
    feature, level : str
        `level` is that of a category; empty for numbers.
    kernels : tuple of str
        Those in which the cause is supported, in their order.
    n_searched : int
        Kernels that were searched: all but the refused ones.
    mean_change : Estimate or None
        Change of the mean duration, percent: the random-effects mean over the kernels; None if no kernel has one.
    smallest, largest : float or None
        The smallest and the largest change among the kernels, percent.
    between_std : float or None
        Standard deviation of the effect between kernels, percent; None with one kernel.
    i_squared : float or None
        Share of the effects' variance that is not error, percent; None with one kernel.
    variance : float or None
        Percent of the dataset's variance within configurations, in the value's own unit squared, that the cause
        explains in these kernels by their own searches; None if nothing varies.
    cost : Estimate or None
        GPU time of the run, ns: the sum over the kernels but collectives, whose time includes waiting; None if the
        value measured is no time, or without other kernels.
    """

    feature: str
    level: str
    kernels: tuple[str, ...]
    n_searched: int
    mean_change: Estimate | None
    smallest: float | None
    largest: float | None
    between_std: float | None
    i_squared: float | None
    variance: float | None
    cost: Estimate | None

    @property
    def has_interval(self) -> bool:
        """Whether the mean is stated with its interval; that of one kernel is the kernel's own."""
        return len(self.kernels) != 2  # of two there is one degree of freedom, and Student's t is 6.3

    @property
    def sentence(self) -> str:
        """The row in words."""
        name = with_level(self.feature, self.level)
        words = f"{name} acts in {len(self.kernels)} of {self.n_searched} kernels"
        if self.variance is not None:
            words += f" and explains {formatting.percent(self.variance)} of the dataset's variance there"
        if self.mean_change is None:
            return f"{words}."
        ends = (self.mean_change.low, self.mean_change.high) if self.has_interval else ()
        value, *shown = formatting.signed(self.mean_change.value, *ends)
        return f"{words}: mean time {value} %{f' [{shown[0]}, {shown[1]}]' if shown else ''} there."


def random_effects(effects: np.ndarray, errors: np.ndarray) -> tuple[Estimate, float, float]:
    """Return the mean of effects that differ, their standard deviation between groups, and I² in percent.

    Parameters
    ----------
    effects, errors : ndarray of float, shape (groups,)
        Effect of each of two or more groups, percent, and its standard error, above 0.

    Returns
    -------
    mean : Estimate
        With its 90 % interval, which does not reach below -100 % where no effect does.
    between_std, i_squared : float

    References
    ----------
    R. Paule, J. Mandel, Consensus values and weighting factors, J. Res. Natl. Bur. Stand. 87 (1982) 377, for the
    variance between groups (statsmodels). G. Knapp, J. Hartung, Improved tests for a random effects meta-regression
    with a single covariate, Stat. Med. 22 (2003) 2693, for the interval, with their factor not below 1.
    """
    from statsmodels.stats.meta_analysis import combine_effects

    with np.errstate(divide="ignore"):  # of equal effects
        combined = combine_effects(effects, errors**2, method_re="iterated")
    mean = float(combined.mean_effect_re)
    error = math.sqrt(max(combined.var_eff_w_re, combined.var_hksj_re))
    half = float(stdtrit(effects.size - 1, 0.5 + CONFIDENCE / 2)) * error
    low = max(mean - half, NOTHING_LEFT) if effects.min() >= NOTHING_LEFT else mean - half
    estimate = Estimate(value=mean, low=low, high=mean + half)
    return estimate, math.sqrt(combined.tau2), 100.0 * max(0.0, float(combined.i2))


def effects_over_kernels(outcomes: Sequence[Outcome], variances: Mapping[str, float]) -> list[KernelEffects]:
    """Return each cause that is supported in a kernel, with what it does in all kernels together.

    Parameters
    ----------
    outcomes : sequence of Outcome
        Of the kernels of a dataset and target, corrected for their number.
    variances : mapping of str to float
        As of `scopes.variance_shares`.

    Returns
    -------
    list of KernelEffects
        What costs most GPU time first, then what acts in most kernels, then by name; empty with one kernel.
    """
    if len(outcomes) < 2:
        return []
    n_searched = sum(outcome.p_value is not None for outcome in outcomes)
    causes: dict[tuple[str, str], list[tuple[Scope, Arrow]]] = {}
    for outcome in outcomes:
        for arrow in outcome.arrows:
            if arrow.verdict == SUPPORTED:
                causes.setdefault((arrow.name, arrow.level), []).append((outcome.scope, arrow))
    rows = [_summary(feature, level, own, n_searched, variances) for (feature, level), own in causes.items()]
    return sorted(
        rows, key=lambda row: (-(row.cost.value if row.cost else 0.0), -len(row.kernels), row.feature, row.level)
    )


def _summary(
    feature: str, level: str, own: Sequence[tuple[Scope, Arrow]], n_searched: int, variances: Mapping[str, float]
) -> KernelEffects:
    """Return the summary of one cause, given with the scopes of the kernels in which it acts."""
    timed = [(scope, arrow.in_time) for scope, arrow in own if arrow.in_time is not None]
    means = [effect.mean for _, effect in timed]
    values = [mean.value for mean in means]
    errors = np.array([(mean.high - mean.low) / (2 * NORMAL_QUANTILE) for mean in means])
    mean = means[0] if len(means) == 1 else None
    between = None
    i_squared = None
    if len(means) > 1 and errors.min() > 0:
        mean, between, i_squared = random_effects(np.array(values), errors)
    return KernelEffects(
        feature=feature,
        level=level,
        kernels=tuple(scope.scope for scope, _ in own),
        n_searched=n_searched,
        mean_change=None if mean is None else _rounded(mean),
        smallest=min(values, default=None),
        largest=max(values, default=None),
        between_std=None if between is None else six_digits(between),
        i_squared=None if i_squared is None else six_digits(i_squared),
        variance=six_digits(math.fsum(variances[scope.scope] * arrow.variance.value for scope, arrow in own))
        if variances
        else None,
        cost=_total([effect.cost for scope, effect in timed if effect.cost is not None and not scope.is_collective]),
    )


def _total(costs: Sequence[Estimate]) -> Estimate | None:
    """Return the sum of costs of different launches, whose errors are independent; None without any."""
    if not costs:
        return None
    value = math.fsum(cost.value for cost in costs)
    below, above = (
        math.sqrt(math.fsum((getattr(cost, end) - cost.value) ** 2 for cost in costs)) for end in ("low", "high")
    )
    return _rounded(Estimate(value=value, low=value - below, high=value + above))


def _rounded(estimate: Estimate) -> Estimate:
    return Estimate(**{end: six_digits(getattr(estimate, end)) for end in ("value", "low", "high")})

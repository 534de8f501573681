"""What the causes of single kernels amount to over a dataset: a random-effects summary of their effects.

The search over all kernels together finds what only all of them can show. What acts in a few kernels alone is found in
these, and its effect is summed up here: in how many kernels, how large there, how different between them.

Where a cause acts one way in a kernel and another way in the whole dataset, both say so.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import stdtrit

from causeway.causal.data.feature_names import ABOUT
from causeway.causal.data.outcome import NORMAL_QUANTILE, Arrow, Estimate, Outcome, Scope, six_digits
from causeway.causal.effects.scope_times import CONFIDENCE, NOTHING_LEFT
from causeway.causal.report.sentences import with_level
from causeway.core import formatting
from causeway.core.vocabulary import SUPPORTED

VERBS = {"+": "raises", "-": "lowers"}

State = Literal["same", "opposite", "undecided", "another level", "not comparable", "kernel only", "dataset only"]


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """How a cause of a kernel or of the whole dataset compares in the two; a row of `agreement.parquet`.

    Attributes
    ----------
    kernel, feature : str
    in_kernel, in_dataset : Arrow or None
        None where the feature is no cause.
    """

    kernel: str
    feature: str
    in_kernel: Arrow | None
    in_dataset: Arrow | None

    @property
    def level(self) -> str:
        """The level of a category that stands out, in the kernel if it is a cause there; empty for numbers."""
        arrow = self.in_kernel or self.in_dataset
        return arrow.level if arrow else ""

    @property
    def state(self) -> State:
        """How the two compare: `undecided` if either has no single direction, `another level` if the signs are about
        different levels of a category, `not comparable` if one sign is about the target and one about the measured
        value.
        """
        here = self.in_kernel
        there = self.in_dataset
        if here is None or there is None:
            return "dataset only" if here is None else "kernel only"
        if here.level != there.level:
            return "another level"
        if "?" in (here.sign, there.sign):
            return "undecided"
        if here.sign_of != there.sign_of:
            return "not comparable"
        return "same" if here.sign == there.sign else "opposite"

    @property
    def sign_of(self) -> str | None:
        """What the signs are about, None if that differs or neither has one."""
        decided = (arrow for arrow in (self.in_kernel, self.in_dataset) if arrow is not None and arrow.sign != "?")
        found = {arrow.sign_of for arrow in decided}
        return found.pop() if len(found) == 1 else None


def agreement(kernels: Sequence[Outcome], whole: Outcome) -> list[Agreement]:
    """Return for each cause of a kernel or of the dataset how the two compare, by kernel, then feature.

    Parameters
    ----------
    kernels : sequence of Outcome
    whole : Outcome
        Of the whole dataset; all of them corrected.
    """
    in_dataset = {arrow.name: arrow for arrow in whole.arrows}
    rows = []
    for outcome in kernels:
        own = {arrow.name: arrow for arrow in outcome.arrows}
        rows += [
            Agreement(
                kernel=outcome.scope.scope,
                feature=feature,
                in_kernel=own.get(feature),
                in_dataset=in_dataset.get(feature),
            )
            for feature in sorted(own.keys() | in_dataset.keys())
        ]
    return rows


def contradictions(rows: Sequence[Agreement], whole: str) -> dict[str, list[str]]:
    """Return by scope the reasons that name a cause acting one way in a kernel and the other way in the dataset.

    Parameters
    ----------
    rows : sequence of Agreement
    whole : str
        The scope of the whole dataset.
    """
    found: dict[str, list[str]] = {}
    for row in rows:
        if row.in_kernel and row.in_dataset and row.state == "opposite":
            feature = with_level(row.feature, row.level)
            here = VERBS[row.in_kernel.sign]
            there = VERBS[row.in_dataset.sign]
            about = ABOUT[row.sign_of]
            in_kernel = f"{feature} {here} {about} here and {there} it in the whole dataset"
            in_dataset = f"{feature} {there} {about} over all kernels and {here} it in {row.kernel}"
            found.setdefault(row.kernel, []).append(in_kernel)
            found.setdefault(whole, []).append(in_dataset)
    return found


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
        found = combine_effects(effects, errors**2, method_re="iterated")
    mean = float(found.mean_effect_re)
    error = math.sqrt(max(found.var_eff_w_re, found.var_hksj_re))
    half = float(stdtrit(effects.size - 1, 0.5 + CONFIDENCE / 2)) * error
    low = max(mean - half, NOTHING_LEFT) if effects.min() >= NOTHING_LEFT else mean - half
    estimate = Estimate(value=mean, low=low, high=mean + half)
    return estimate, math.sqrt(found.tau2), 100.0 * max(0.0, float(found.i2))


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
    found: dict[tuple[str, str], list[tuple[Scope, Arrow]]] = {}
    for outcome in outcomes:
        for arrow in outcome.arrows:
            if arrow.verdict == SUPPORTED:
                found.setdefault((arrow.name, arrow.level), []).append((outcome.scope, arrow))
    rows = [_summary(feature, level, own, n_searched, variances) for (feature, level), own in found.items()]
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
        cost=_total([one.cost for scope, one in timed if one.cost is not None and not scope.is_collective]),
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

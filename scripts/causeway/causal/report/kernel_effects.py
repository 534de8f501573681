"""What the causes of single kernels amount to over a dataset: a random-effects summary of their effects.

The search over all kernels together finds what only all of them can show. What acts in a few kernels alone is found in
these, and its effect is summed up here: in how many kernels, how large there, how different between them.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.special import stdtrit

from causeway.causal.data.outcome import NORMAL_QUANTILE, Arrow, Estimate, Outcome, Scope, to_six_digits
from causeway.causal.effects.scope_times import CONFIDENCE, NOTHING_LEFT
from causeway.causal.report.documents import ends
from causeway.causal.report.sentences import quantity_of
from causeway.core import formatting
from causeway.core.feature_registry import cause_words
from causeway.core.vocabulary import SUPPORTED


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


def effects_over_kernels(outcomes: Sequence[Outcome], variances: Mapping[str, float]) -> list[dict]:
    """Return the rows of `across_kernels.parquet`: each cause that is supported in a kernel, with what it does in all
    kernels together.

    Parameters
    ----------
    outcomes : sequence of Outcome
        Of the kernels of a dataset and target, corrected for their number.
    variances : mapping of str to float
        As of `scopes.variance_shares`.

    Returns
    -------
    list of dict
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
        rows, key=lambda row: (-(row["cost_ns"] or 0.0), -len(row["kernels"]), row["feature"], row["level"] or "")
    )


def _summary(
    feature: str, level: str, own: Sequence[tuple[Scope, Arrow]], n_searched: int, variances: Mapping[str, float]
) -> dict:
    """Return the row of one cause, given with the scopes of the kernels in which it acts.

    The mean change is the random-effects mean over the kernels, without an interval over two of them: of one degree of
    freedom Student's t is 6.3. The variance is what the cause explains by the kernels' own searches, of the dataset's;
    the cost is summed over the kernels but collectives, whose time includes waiting. What no kernel knows is None.
    """
    timed = [(scope, arrow.in_time) for scope, arrow in own if arrow.in_time is not None]
    means = [effect.mean for _, effect in timed]
    values = [mean.value for mean in means]
    errors = np.array([(mean.high - mean.low) / (2 * NORMAL_QUANTILE) for mean in means])
    mean = means[0] if len(means) == 1 else None
    between = None
    i_squared = None
    if len(means) > 1 and errors.min() > 0:
        mean, between, i_squared = random_effects(np.array(values), errors)
    variance = math.fsum(variances[scope.scope] * arrow.variance.value for scope, arrow in own) if variances else None
    cost = _total([effect.cost for scope, effect in timed if effect.cost is not None and not scope.is_collective])
    row = {
        "feature": feature,
        "level": level or None,
        "kernels": [scope.scope for scope, _ in own],
        "searched": n_searched,
        **ends("mean_change", to_six_digits(mean), "_percent"),
        "smallest_percent": min(values, default=None),
        "largest_percent": max(values, default=None),
        "between_std": to_six_digits(between),
        "i_squared": to_six_digits(i_squared),
        "variance_percent": to_six_digits(variance),
        **ends("cost", to_six_digits(cost), "_ns"),
    }
    if len(own) == 2:
        row |= {"mean_change_low": None, "mean_change_high": None}
    scope, arrow = own[0]
    return row | {"sentence": _sentence(row, scope.target, arrow.node.group)}


def _sentence(row: Mapping, target: str, group: str) -> str:
    """Return a row in words; `group` is that of its feature."""
    cause = cause_words(row["feature"], group, row["level"])
    acts = f"{cause}: a cause in {len(row['kernels'])} of {row['searched']} kernels"
    if row["variance_percent"] is not None:
        acts += f", explains {formatting.percent(row['variance_percent'])} of the dataset's variance there"
    if row["mean_change_percent"] is None:
        return f"{acts}."
    interval = [row[f"mean_change_{end}"] for end in ("low", "high") if row[f"mean_change_{end}"] is not None]
    value, *shown = formatting.signed(row["mean_change_percent"], *interval)
    return f"{acts}; {quantity_of(target)} {value} %{f' [{shown[0]}, {shown[1]}]' if shown else ''}."


def _total(costs: Sequence[Estimate]) -> Estimate | None:
    """Return the sum of costs of different launches, whose errors are independent; None without any."""
    if not costs:
        return None
    value = math.fsum(cost.value for cost in costs)
    below, above = (
        math.sqrt(math.fsum((getattr(cost, end) - cost.value) ** 2 for cost in costs)) for end in ("low", "high")
    )
    return Estimate(value=value, low=value - below, high=value + above)

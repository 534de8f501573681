"""Shares of the variance: how much of it each cause carries, by the model of the time.

A launch takes the value of one cause from another launch of its configuration, and keeps all else. The mean square of
what that changes, over the sum for all causes and for the residual, is the cause's share: its total-effect index.

References
----------
M. Jansen, Analysis of variance designs for model output, Comput. Phys. Commun. 117 (1999) 35.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from causeway.causal.data.outcome import Estimate
from causeway.causal.effects.evidence import ConfigurationEffect, Evidence
from causeway.causal.effects.kernel_times import PickedSums
from causeway.causal.effects.scope_times import PICKS, Cause, ScopeTimes
from causeway.causal.effects.time_model import DRAWS
from causeway.numeric.seeds import generator


@dataclass(frozen=True, kw_only=True)
class Share:
    """What a cause carries of the variance of the target and of the measured value, percent, and their slopes along it,
    in standard deviations of both.
    """

    contribution: Estimate
    variance: Estimate
    effect: Estimate
    value_effect: Estimate


@dataclass(frozen=True, kw_only=True)
class Shares:
    """The shares of all causes by name, and what no cause carries of both variances, percent; all sum to 100."""

    of: Mapping[str, Share]
    unexplained: Estimate
    unexplained_variance: Estimate


def shares_of(
    times: ScopeTimes,
    evidence: Evidence,
    directions: Mapping[str, np.ndarray],
    effects: Sequence[ConfigurationEffect],
    mediated: Sequence[Cause] = (),
) -> Shares:
    """Return the shares of the causes.

    Parameters
    ----------
    times : ScopeTimes
        Of the causes that vary within configurations.
    evidence : Evidence
    directions : mapping of str to ndarray of float, shape (n_used,)
        By cause: the number along which its slope is taken.
    effects : sequence of ConfigurationEffect
        The causes between configurations; launches of a kernel take their values from one another.
    mediated : sequence of Cause
        Causes that act through others: their slopes are those of the total effect, without what lies on the way.
    """
    rows = evidence.rows
    spread = np.where(evidence.spread > 0, evidence.spread, 1.0)[times.used]
    gains = [one.slope * one.position[rows.configuration][times.used] for one in effects]
    scale = np.exp(np.sum(gains, axis=0)) if gains else np.ones(times.used.size)
    names, sums = times.picked(scale, spread, directions)
    between = [_between(times, evidence, gain, scale, one) for gain, one in zip(gains, effects, strict=True)]
    of_causes = [sums.squares[:, :-1], *(one.squares[:, :1] for one in between)]
    squares = np.concatenate([*of_causes, sums.squares[:, -1:]], axis=1)
    percent = percent_of(squares)
    unit = _units(times, evidence, scale)
    slopes = [(sums.cross[:, index], sums.steps[index]) for index in range(len(names))]
    for cause in mediated:
        among, total_of = times.picked(scale, spread, directions, cause)
        slopes[names.index(cause.name)] = (
            total_of.cross[:, among.index(cause.name)],
            total_of.steps[among.index(cause.name)],
        )
    slopes += [(one.cross[:, 0], one.steps[0]) for one in between]
    found = {}
    for index, name in enumerate([*names, *(one.candidate.name for one in effects)]):
        cross, steps = slopes[index]
        slope = cross / np.where(steps > 0, steps, 1.0) / unit[:, None]
        effect, value_effect = (times.slope(row) for row in slope)
        contribution, variance = (times.share(row) for row in percent[:, index])
        found[name] = Share(contribution=contribution, variance=variance, effect=effect, value_effect=value_effect)
    rest, rest_of_value = (times.share(row) for row in percent[:, -1])
    return Shares(of=found, unexplained=rest, unexplained_variance=rest_of_value)


def percent_of(squares: np.ndarray) -> np.ndarray:
    """Return the shares of sums of squares, percent, shape (2, n_causes + 1, 1 + DRAWS): of target and value, by cause
    and draw; those of the residual are last, and all that there is where nothing changes.

    Parameters
    ----------
    squares : ndarray of float, shape (2, n_causes + 1, 1 + DRAWS)
    """
    total = squares.sum(axis=1, keepdims=True)
    percent = 100.0 * squares / np.where(total > 0, total, 1.0)
    percent[:, -1] = np.where(total[:, 0] > 0, percent[:, -1], 100.0)
    return percent


def _units(times: ScopeTimes, evidence: Evidence, scale: np.ndarray) -> np.ndarray:
    """Return the standard deviations of the target and of the value, shape (2,); 1 where there is none."""
    value = scale * evidence.deviation[times.used]
    both = np.stack([np.abs(value) if evidence.rows.absolute else value, value])
    middle = both @ times.weight / times.weight.sum()
    spread = np.sqrt((both - middle[:, None]) ** 2 @ times.weight / times.weight.sum())
    return np.where(spread > 0, spread, 1.0)


def _between(
    times: ScopeTimes, evidence: Evidence, gain: np.ndarray, scale: np.ndarray, effect: ConfigurationEffect
) -> PickedSums:
    """Return the sums over pairs of launches of a kernel, one of which has its deviation scaled as in the other's
    configuration.
    """
    rows = evidence.rows
    rng = generator(0, "between configurations", effect.candidate.name)
    kernel = rows.kernel[times.used]
    deviation = scale * evidence.deviation[times.used]
    position = effect.position[rows.configuration][times.used]
    target = np.abs if rows.absolute else np.positive
    slopes = 1.0 + effect.error / abs(effect.slope) * np.append(0.0, rng.standard_normal(DRAWS))
    sums = PickedSums.empty(1, 1 + DRAWS)
    for _ in range(PICKS):
        donors = np.empty(kernel.size, np.int64)
        for code in np.unique(kernel):
            own = np.flatnonzero(kernel == code)
            chances = times.weight[own] / times.weight[own].sum()
            donors[own] = own[rng.choice(own.size, size=own.size, p=chances)]
        factor = np.expm1((gain[donors] - gain)[:, None] * slopes)
        of_target, of_value = (one[:, None] * factor for one in (target(deviation), deviation))
        sums.add(0, of_target, of_value, times.weight[:, None], position[donors] - position)
    return sums

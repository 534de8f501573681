"""What releases reveal of a user's report, measured: an audit of each section's epsilon, and guesses of membership.

An audit bounds epsilon from below. That its bound is below the claim says something only if it would not be with too
little noise, so that each audit is repeated with half of it.
"""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.stats import beta

from causeway.fleet.protection.noise import Noise
from causeway.fleet.report_layout import ReportLayout, Section
from causeway.fleet.study.attacks import Attack

AUDIT_CONFIDENCE = 0.99
LEAST_RUNS = 20_000
MOST_RUNS = 1_000_000
"""Releases of an audit with and without the user. At the most, half the noise is noticed down to an epsilon of 0.02."""
RUNS_BY_EPSILON = 400
"""Releases of an audit, times epsilon squared: errors of the measured privacy loss fall with the root of the runs."""


def audit(
    draw: Callable[[int, int], np.ndarray], claim: float, runs: int, confidence: float = AUDIT_CONFIDENCE
) -> dict[str, float]:
    """Return an empirical lower bound of epsilon, from releases of neighbouring inputs.

    Parameters
    ----------
    draw : callable
        `draw(with_user, runs)` gives the released value of the cell that the user's report fills, int64 or float64,
        shape (runs,).
    claim : float
        Epsilon that was claimed.
    runs : int
        Releases of each of both inputs.
    confidence : float
        Of the bound: it exceeds the true epsilon with probability 1 - confidence at most.

    Returns
    -------
    dict
        `lower_bound`, `claim` and `runs`. The threshold of the test is chosen on one half of the runs, its error rates
        are bounded on the other (Clopper and Pearson 1934; Jagielski, Ullman and Oprea 2020).
    """
    without, with_user = (draw(flag, runs) for flag in (0, 1))
    half = runs // 2
    levels = np.unique(np.quantile(np.concatenate([without[:half], with_user[:half]]), np.linspace(0.02, 0.98, 49)))
    bounds = [_bound(with_user[:half] > level, without[:half] > level, confidence) for level in levels]
    level = levels[int(np.argmax(bounds))]
    bound = _bound(with_user[half:] > level, without[half:] > level, confidence)
    return {"lower_bound": max(bound, 0.0), "claim": claim, "runs": float(runs)}


def _bound(hits: np.ndarray, alarms: np.ndarray, confidence: float) -> float:
    """Return the lower bound of the logarithm of the ratio of two rates, from flags of equally many runs."""
    size = len(hits)
    hit = int(hits.sum())
    alarm = int(alarms.sum())
    alpha = (1 - confidence) / 2
    least = beta.ppf(alpha, hit, size - hit + 1) if hit else 0.0
    most = beta.ppf(1 - alpha, alarm + 1, size - alarm) if alarm < size else 1.0
    return math.log(least / most) if least > 0 else -math.inf


def audit_section(section: Section, noise: Noise, runs: int) -> dict[str, float]:
    """Audit one server's noise on a section: a report with all its counts in one cell, against no report."""
    wide = replace(section, rows=runs, columns=1)

    def draw(with_user: int, count: int) -> np.ndarray:
        return noise.draw([replace(wide, rows=count)], f"audit/{with_user}") + with_user * section.contribution_bound

    return audit(draw, float(section.epsilon), runs)


def runs_of(section: Section) -> int:
    """Return the releases with which half of a section's noise is noticed, as far as they are affordable."""
    return min(max(LEAST_RUNS, math.ceil(RUNS_BY_EPSILON / float(section.epsilon) ** 2)), MOST_RUNS)


def audits(layout: ReportLayout, noise: Noise) -> list[Attack]:
    """Audit each section with one server's noise, and again with half of it, against the same claim.

    An audit held if its bound is at most the claim and that of half the noise is above; if neither is, it cannot tell.
    """
    attacks = []
    for section in layout.sections:
        runs = runs_of(section)
        figures = audit_section(section, noise, runs)
        control = audit_section(replace(section, epsilon=section.epsilon * 2), noise, runs)["lower_bound"]
        held = None if control <= figures["claim"] else True
        if figures["lower_bound"] > figures["claim"]:
            held = False
        attacks.append(
            Attack(
                group=15,
                name=f"audit of {section.name}",
                expected="the lower bound stays below the claimed epsilon, and exceeds it with half the noise",
                held=held,
                figures=figures | {"bound_with_half_the_noise": control},
            )
        )
    return attacks


def membership(layout: ReportLayout, noise: Noise, runs: int = 20_000) -> Attack:
    """Guess from one release whether a user took part, knowing all other reports and what the user would send.

    The guess is the likelier of both for Laplace noise, over one cell of every section, which the report fills.

    Parameters
    ----------
    layout : ReportLayout
    noise : Noise
        Of one server.
    runs : int
        Releases, half of them with the user.

    Notes
    -----
    Nobody guesses right more often than exp(eps) / (1 + exp(eps)), eps the sum over the sections (Kairouz, Oh and
    Viswanath 2015). The attack held if the lower limit of the measured share is not above that.
    """
    half = runs // 2
    evidence = np.zeros((2, half))
    for section in layout.sections:
        wide = [replace(section, rows=half, columns=1)]
        for with_user in (0, 1):
            seen = noise.draw(wide, f"membership/{with_user}") + with_user * section.contribution_bound
            evidence[with_user] += (np.abs(seen) - np.abs(seen - section.contribution_bound)) / section.noise_scale
    hits = int((evidence[1] > 0).sum() + (evidence[0] < 0).sum())
    right = hits + int((evidence == 0).sum()) // 2  # a coin is thrown for ties
    least = float(beta.ppf(1 - AUDIT_CONFIDENCE, right, 2 * half - right + 1))
    epsilon = float(sum(section.epsilon for section in layout.sections))
    most = math.exp(epsilon) / (1 + math.exp(epsilon))
    return Attack(
        group=15,
        name="membership of a user in a day",
        expected="accuracy of at most exp(eps) / (1 + exp(eps))",
        held=least <= most,
        figures={"epsilon": epsilon, "most_accuracy": most, "accuracy": right / (2 * half), "runs": 2.0 * half},
    )

"""Verdicts: what a search and an arrow are worth, by stated thresholds. "Inconclusive" and "no cause found" are
results.
"""

import numpy as np
from scipy.special import chndtrinc, fdtri

from causeway.causal.data.outcome import Verdict
from causeway.causal.selection.forward import ALPHA, MIN_TEST_SIZE
from causeway.core.names.prior_knowledge import CLOCK, LAG
from causeway.core.vocabulary import INCONCLUSIVE, SUPPORTED
from causeway.numeric.effective_size import REFUSED_BELOW

FLAGGED_BELOW = 300.0
"""Effective rows below which a reader is warned."""
STRONG = 50.0
"""Percent of the variance of the measured value: a cause that surely explains as much (the lower end of the interval)
needs `MIN_TEST_SIZE` effective rows. Chosen on 600 simulated tables with slow columns, in which all of 37 such causes
with fewer than 100 rows were true; judged on 400 of another generator: 93 of 93
(`tests/bench/causes/slow_columns.py`).
"""
PASSING = frozenset({CLOCK, LAG})
"""Roles of what stands for anything that changes with time: no strength makes up for few rows."""


def arrow_verdict(n_effective: float, share: float, role: str, between: bool = False) -> Verdict:
    """Return the verdict of an arrow that passed search, stability and multiplicity: it also needs 100 effective rows
    behind its own test, or half as many where it surely explains most of the variance and does not stand for time.

    `share` is the lower end of the share of the variance that it explains, percent.

    A cause at the configuration level rests on configurations, and its test already counts them.
    """
    is_strong = share >= STRONG and role not in PASSING
    return SUPPORTED if between or n_effective >= (MIN_TEST_SIZE if is_strong else REFUSED_BELOW) else INCONCLUSIVE


def detectable_share(n_effective: float, n_tests: int, df: int = 3, power: float = 0.8) -> float:
    """Return the smallest share of the variance that the search would have found with the given power.

    Notes
    -----
    With d tests at level `ALPHA / d` a group of `df` columns needs a noncentral chi-squared that exceeds the critical
    value with probability `power`; its noncentrality over (noncentrality + n) is the partial R^2 (J. Cohen, Statistical
    Power Analysis, 1988, ch. 9).
    """
    left = max(n_effective - df - 1, 1.0)
    critical = df * float(fdtri(df, left, 1 - ALPHA / max(n_tests, 1)))
    noncentrality = float(chndtrinc(critical, df, 1 - power))
    return float(np.clip(noncentrality / (noncentrality + n_effective), 0.0, 1.0))

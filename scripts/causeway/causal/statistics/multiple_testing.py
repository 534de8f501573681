"""What evidence is worth: levels of p-values and of likelihoods, and p-values after looking in many places.

The procedure of Benjamini and Hochberg is SciPy's `false_discovery_control`.
"""

import numpy as np

SIGNIFICANT = 0.05
"""Level of a test that is asked once, and of the false discovery rate over kernels: convention."""
STRONG = 6.0
VERY_STRONG = 10.0
"""Differences of the Bayesian information criterion, or of twice the log-likelihood, that are "strong" and "very
strong" evidence (R. E. Kass, A. E. Raftery, Bayes factors, J. Am. Stat. Assoc. 90 (1995) 773).
"""


def simes(p_values: np.ndarray) -> float:
    """Return Simes' p-value of the hypothesis that no candidate matters: `min p_(k) d / k`; 1 without candidates.

    Parameters
    ----------
    p_values : ndarray of float, shape (d,), in [0, 1]
        In any order.

    References
    ----------
    R. J. Simes, An improved Bonferroni procedure for multiple tests of significance, Biometrika 73 (1986) 751.
    """
    p_values = np.sort(np.asarray(p_values, dtype=float))
    return float(min(1.0, (p_values * p_values.size / np.arange(1, p_values.size + 1)).min())) if p_values.size else 1.0


def bonferroni(p_value: float, n_tests: float) -> float:
    """Return a p-value after Bonferroni over the candidates of a search, at most 1."""
    return float(min(1.0, p_value * max(n_tests, 1)))


def benjamini_bogomolov(p_value: float, n_selected: int, n_families: int) -> float:
    """Return the q-value of a hypothesis in one of `n_selected` families out of `n_families`; `p_value` is adjusted
    within the family.

    References
    ----------
    Y. Benjamini, M. Bogomolov, Selective inference on multiple families of hypotheses, J. R. Stat. Soc. B 76 (2014)
    297: if the false discovery rate selects R of m families, hypotheses within them are tested at R / m times the
    level.
    """
    return float(min(1.0, p_value * n_families / max(n_selected, 1)))

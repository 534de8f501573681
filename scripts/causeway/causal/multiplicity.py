"""Many candidates, many kernels: what a p-value is worth after looking in many places."""

import numpy as np


def simes(p_values: np.ndarray) -> float:
    """Return Simes' p-value of the hypothesis that no candidate matters: `min p_(k) d / k`; 1 without candidates.

    References
    ----------
    R. J. Simes, An improved Bonferroni procedure for multiple tests of significance, Biometrika 73 (1986) 751.
    """
    p_values = np.sort(np.asarray(p_values, dtype=float))
    return float(min(1.0, (p_values * p_values.size / np.arange(1, p_values.size + 1)).min())) if p_values.size else 1.0


def benjamini_hochberg(p_values: np.ndarray) -> np.ndarray:
    """Return q-values: the smallest false discovery rate at which each hypothesis is rejected.

    References
    ----------
    Y. Benjamini, Y. Hochberg, Controlling the false discovery rate, J. R. Stat. Soc. B 57 (1995) 289.
    """
    p_values = np.asarray(p_values, dtype=float)
    order = np.argsort(-p_values, kind="stable")
    scaled = p_values[order] * p_values.size / np.arange(p_values.size, 0, -1)
    q_values = np.empty(p_values.size)
    q_values[order] = np.minimum(1.0, np.minimum.accumulate(scaled)) if p_values.size else []
    return q_values


def adjusted(p_value: float, n_tests: int, n_scopes: int) -> float:
    """Return an arrow's p-value after Bonferroni over the candidates of its search and the scopes that are searched.

    Kernels are searched in independent jobs, none of which sees the others' p-values; Bonferroni needs only their number, and bounds what
    Benjamini and Hochberg's procedure over all of them would give.
    """
    return float(min(1.0, p_value * max(n_tests, 1) * max(n_scopes, 1)))

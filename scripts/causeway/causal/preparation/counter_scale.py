"""The scale of a counter where several configurations are searched together: its own unit, or standardised within
configurations.

Counters grow with the work of a launch. In kernels of all sizes, a thousand sectors more may mean the same everywhere
(a fixed cost each), or a tenth more than usual may (a fixed share of the time). On the wrong scale a cause drowns: of
the one, small kernels show nothing; of the other, what saturates in some kernel is blown up. So each counter is taken
on the scale on which most of them explain the target better, or on which it clearly does itself.
"""

import numpy as np

from causeway.causal.data.deviation import (
    PRIOR_LAUNCHES,
    clipped_deviation,
    configuration_spread,
    scale_response,
    standardised_deviation,
)
from causeway.causal.data.observations import Observations
from causeway.causal.selection.design_cache import independent_rows
from causeway.causal.selection.linear_model import LinearModel, fit_scores
from causeway.causal.selection.problem import Problem
from causeway.causal.statistics.basis import GroupCentring, build_basis

CLEARLY = 10.0
"""Difference of the Bayesian information criterion from which a counter is on another scale than most in a table."""
MOST = 20.0
"""A single counter counts for no more than this in the choice for all; if they count for half of it on average, they
are standardised.
"""
ROUNDING = 1e-9
"""A spread below this share of a column's size is what subtracting the mean of equal values leaves."""


def standardised_within_configuration(values: np.ndarray, centred: np.ndarray, rows: Observations) -> np.ndarray:
    """Return a centred column, shape (n_rows,), in spreads of each row's configuration, shrunk towards the kernel's
    typical one; 0 where nothing varies.

    Parameters
    ----------
    values, centred : ndarray of float, shape (n_rows,)
        The column, and what is left of it without the means of the configurations.
    rows : Observations

    Notes
    -----
    As for the target (`configuration_spread`): `s_c^2 = (n_c std_c^2 + 5 typical^2) / (n_c + 5)`, `typical` relative to
    the mean if all means are positive.
    """

    def mean(numbers: np.ndarray, groups: np.ndarray) -> np.ndarray:
        totals = np.bincount(groups, rows.weight)
        return np.bincount(groups, rows.weight * numbers) / np.where(totals > 0, totals, 1.0)

    largest = max(float(np.abs(values).max()), 1e-300)
    values = values / largest
    centred = centred / largest
    means = mean(values, rows.configuration)
    variance = mean(centred**2, rows.configuration)
    base = means if np.all(means > 0) else np.ones(means.size)
    kernel_of = np.zeros(means.size, dtype=int)
    kernel_of[rows.configuration] = rows.kernel
    typical = np.sqrt(mean((centred / base[rows.configuration]) ** 2, rows.kernel))[kernel_of] * base
    launches = np.bincount(rows.configuration, rows.weight / rows.weight.mean())
    spread = np.sqrt((launches * variance + PRIOR_LAUNCHES * typical**2) / (launches + PRIOR_LAUNCHES))
    unit = np.where(spread > ROUNDING * np.sqrt(mean(values**2, rows.configuration)), spread, np.inf)
    return centred / unit[rows.configuration]


def better_standardised(in_unit: list[np.ndarray], standardised: list[np.ndarray], rows: Observations) -> np.ndarray:
    """Return which columns explain the target, its mean or its size, clearly better standardised.

    Parameters
    ----------
    in_unit, standardised : list of ndarray, shape (n_rows,)
        Each column on both scales, winsorised.
    rows : Observations

    Returns
    -------
    ndarray of bool, shape (n_columns,)
    """
    deviation = standardised_deviation(rows, configuration_spread(rows))
    values, _ = clipped_deviation(deviation, rows.weight)
    centring = GroupCentring(rows.configuration, rows.weight)
    found = []
    responses = [centring.weighted(one) for one in (values, scale_response(centring.centred(deviation), rows.weight))]
    for columns in (in_unit, standardised):
        problem = Problem.of(build_basis(columns, centring), len(columns), independent_rows(rows))
        found.append(
            np.min([fit_scores(LinearModel(problem, response)) for response in responses], axis=0).clip(max=0.0)
        )  # 0: left out
    gain = np.clip(found[0] - found[1], -MOST, MOST)
    explains = np.minimum(*found) < -CLEARLY
    most = explains.any() and gain[explains].mean() > MOST / 2
    return gain > (-CLEARLY if most else CLEARLY)

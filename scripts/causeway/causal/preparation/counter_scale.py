"""How a counter is read where several configurations are searched together: by what it counts, or by what is usual in its configuration.

Counters grow with the work of a launch. In kernels of all sizes, a thousand sectors more may mean the same everywhere (a fixed cost each),
or a tenth more than usual may (a fixed share of the time). Read the wrong way, a cause drowns: of the one, small kernels show nothing; of
the other, what saturates in some kernel is blown up. So each counter is read in the way in which the target goes better with most of them,
or clearly better with it.
"""

import numpy as np

from causeway.causal.basis import GroupCentring, build_basis
from causeway.causal.deviation import PRIOR_LAUNCHES, configuration_spread, standardised_deviation
from causeway.causal.ground import independent_rows
from causeway.causal.rows import Rows
from causeway.causal.search import Model, Problem, fit_scores
from causeway.causal.stages import clipped, size_of

CLEARLY = 10.0
"""Difference of the Bayesian information criterion from which a counter is not read as counters usually are in a table."""
MOST = 20.0
"""A single counter tells no more than this of how counters are to be read; if they tell half of it on average, by what is usual."""
ROUNDING = 1e-9
"""A spread below this share of a column's size is what subtracting the mean of equal values leaves."""


def relative_to_usual(values: np.ndarray, centred: np.ndarray, rows: Rows) -> np.ndarray:
    """Return a centred column in spreads of each row's configuration, shrunk towards the kernel's typical one; 0 where nothing varies.

    As for the target (`configuration_spread`): `s_c^2 = (n_c std_c^2 + 5 typical^2) / (n_c + 5)`, `typical` relative to the mean if all
    means are positive.
    """

    def mean(numbers: np.ndarray, groups: np.ndarray) -> np.ndarray:
        totals = np.bincount(groups, rows.weight)
        return np.bincount(groups, rows.weight * numbers) / np.where(totals > 0, totals, 1.0)

    largest = max(float(np.abs(values).max()), 1e-300)
    values, centred = values / largest, centred / largest
    means, variance = mean(values, rows.configuration), mean(centred**2, rows.configuration)
    base = means if np.all(means > 0) else np.ones(means.size)
    kernel_of = np.zeros(means.size, dtype=int)
    kernel_of[rows.configuration] = rows.kernel
    typical = np.sqrt(mean((centred / base[rows.configuration]) ** 2, rows.kernel))[kernel_of] * base
    launches = np.bincount(rows.configuration, rows.weight / rows.weight.mean())
    spread = np.sqrt((launches * variance + PRIOR_LAUNCHES * typical**2) / (launches + PRIOR_LAUNCHES))
    usual = np.where(spread > ROUNDING * np.sqrt(mean(values**2, rows.configuration)), spread, np.inf)
    return centred / usual[rows.configuration]


def better_relative(counts: list[np.ndarray], relative: list[np.ndarray], rows: Rows) -> np.ndarray:
    """Return which columns tell the target clearly better by what is usual, of its mean or of its size.

    Parameters
    ----------
    counts, relative : list of ndarray, shape (n_rows,)
        The two readings of each column, winsorised.
    rows : Rows

    Returns
    -------
    ndarray of bool, shape (n_columns,)
    """
    deviation = standardised_deviation(rows, configuration_spread(rows))
    values, _ = clipped(deviation, rows.weight)
    centring, found = GroupCentring(rows.configuration, rows.weight), []
    responses = [centring.weighted(one) for one in (values, size_of(centring.centred(deviation), rows.weight))]
    for readings in (counts, relative):
        problem = Problem.of(build_basis(readings, centring), len(readings), independent_rows(rows))
        found.append(np.min([fit_scores(Model(problem, response)) for response in responses], axis=0).clip(max=0.0))  # 0: left out
    gain = np.clip(found[0] - found[1], -MOST, MOST)
    tells = np.minimum(*found) < -CLEARLY
    usually = tells.any() and gain[tells].mean() > MOST / 2
    return gain > (-CLEARLY if usually else CLEARLY)

"""Numeric columns on their way to candidates: gaps filled, centred within configurations, in logarithms, winsorised.

*The scale of a counter* where several configurations are searched together is its own unit, or standardised within
configurations. Counters grow with the work of a launch. In kernels of all sizes, a thousand sectors more may mean the
same everywhere (a fixed cost each), or a tenth more than usual may (a fixed share of the time). On the wrong scale a
cause drowns: of the one, small kernels show nothing; of the other, what saturates in some kernel is blown up. So each
counter is taken on the scale on which most of them explain the target better, or on which it clearly does itself.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from causeway.causal.data.feature_names import computed_name, derived_name
from causeway.causal.data.observations import (
    PRIOR_LAUNCHES,
    Candidate,
    Feature,
    Observations,
    clipped_deviation,
    configuration_spread,
    scale_response,
    standardised_deviation,
)
from causeway.causal.selection.linear_model import VERY_STRONG, LinearModel, fit_scores
from causeway.causal.selection.problem import Problem, independent_rows
from causeway.causal.statistics.basis import AT_ONCE, GroupCentring, build_basis, group_means

ROUNDING = 1e-9
"""A spread below this share of a column's size is what subtracting the mean of equal values leaves."""
MOST_MISSING = 0.5
"""A column that is missing in more of the rows is of no use."""
RELATIVE_UNITS = frozenset({"ratio", "%", "percent", "pct"})
"""A column in such a unit is computed from others, whatever its name."""
WINSOR_SHARE = 0.002
CLIP_SD = 6.0


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
    largest = max(float(np.abs(values).max()), 1e-300)
    values = values / largest
    centred = centred / largest
    means = group_means(values, rows.configuration, rows.weight)
    variance = group_means(centred**2, rows.configuration, rows.weight)
    base = means if np.all(means > 0) else np.ones(means.size)
    kernel_of = np.zeros(means.size, dtype=int)
    kernel_of[rows.configuration] = rows.kernel
    typical = (
        np.sqrt(group_means((centred / base[rows.configuration]) ** 2, rows.kernel, rows.weight))[kernel_of] * base
    )
    launches = np.bincount(rows.configuration, rows.weight / rows.weight.mean())
    spread = np.sqrt((launches * variance + PRIOR_LAUNCHES * typical**2) / (launches + PRIOR_LAUNCHES))
    unit = np.where(
        spread > ROUNDING * np.sqrt(group_means(values**2, rows.configuration, rows.weight)), spread, np.inf
    )
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
    scores = []
    responses = [
        centring.weighted(response) for response in (values, scale_response(centring.centred(deviation), rows.weight))
    ]
    for columns in (in_unit, standardised):
        problem = Problem(build_basis(columns, centring), len(columns), independent_rows(rows))
        scores.append(
            np.min([fit_scores(LinearModel(problem, response)) for response in responses], axis=0).clip(max=0.0)
        )  # 0: left out
    gain = np.clip(scores[0] - scores[1], -2 * VERY_STRONG, 2 * VERY_STRONG)
    explains = np.minimum(*scores) < -VERY_STRONG
    most = explains.any() and gain[explains].mean() > VERY_STRONG
    return gain > (-VERY_STRONG if most else VERY_STRONG)


@dataclass(eq=False)
class NumericColumn:
    """A numeric column on its way to a candidate; all arrays have shape (n_rows,).

    Attributes
    ----------
    column : Feature
        As measured.
    name : str
        Its own among all columns.
    values : ndarray of float
        Without missing values, on the scale of the analysis (log1p of bytes).
    recorded : ndarray of bool
        Where the value was measured and not filled in.
    centred : ndarray of float
        Minus the mean of the configuration.
    standardised : ndarray of float
        `centred` in spreads of the configuration; `centred` itself where only one scale is considered.
    searched : ndarray of float
        What the search takes, one of these two.
    logs : ndarray of float or None
        Logarithms, centred; of bytes, whose values are logarithms already, the values. None unless all values are
        known and above 0.
    """

    column: Feature
    name: str
    values: np.ndarray
    recorded: np.ndarray
    centred: np.ndarray = field(init=False)
    standardised: np.ndarray = field(init=False)
    searched: np.ndarray = field(init=False)
    logs: np.ndarray | None = None

    @property
    def is_counter(self) -> bool:
        """Whether it is measured during the launch, and not known at its start."""
        return self.column.tier == "counter"

    @property
    def is_computed(self) -> bool:
        """Whether name or unit says that the column is computed from others."""
        return computed_name(self.name) or self.column.unit in RELATIVE_UNITS

    @property
    def is_derived(self) -> bool:
        """Whether name or unit says that it is computed from others, or counts a part of what another one counts."""
        return derived_name(self.name) or self.column.unit in RELATIVE_UNITS

    def centre(self, centring: GroupCentring) -> None:
        """Work out `centred` and `logs`."""
        self.centred = centring.centred(self.values)
        if np.all((self.values > 0) & self.recorded):
            self.logs = self.centred if self.column.unit == "bytes" else centring.centred(np.log(self.values))

    def candidate(self, values: np.ndarray) -> Candidate:
        """Return the candidate with final values, alone in its cluster."""
        column = self.column
        return Candidate(self.name, column.tier, column.group, column.unit, values, (self.name,), own=column.own)


def numeric_column(column: Feature, name: str, rows: Observations) -> NumericColumn | str:
    """Return a measured column with its gaps filled, or the reason why it is of no use.

    Parameters
    ----------
    column : Feature
        With finite values, NaN where missing, or infinite ones, which count as missing.
    name : str
    rows : Observations
    """
    values = np.asarray(column.values, dtype=float)
    finite = np.isfinite(values)
    infinite = int(np.isinf(values).sum())
    if not finite.any():
        return "holds no value" + (f" ({infinite} infinite)" if infinite else "")
    if finite.mean() < 1 - MOST_MISSING:
        return f"missing in {100 * (1 - finite.mean()):.0f} % of the rows"
    if values[finite].min() == values[finite].max():
        return "constant"
    if column.unit == "bytes" and values[finite].min() >= 0:
        values = np.where(finite, np.log1p(np.where(finite, values, 0.0)), np.nan)
    largest = np.abs(values[finite]).max()
    if not 1e-150 < largest < 1e150:  # squares would overflow or vanish
        values = values / largest
    return NumericColumn(column, name, values if finite.all() else _filled(values, finite, rows), finite)


def _filled(values: np.ndarray, finite: np.ndarray, rows: Observations) -> np.ndarray:
    """Return values with gaps set to the weighted mean of the configuration's known values, or of all known values."""
    weights = np.where(finite, rows.weight, 0.0)
    safe = np.where(finite, values, 0.0)
    is_known = np.bincount(rows.configuration, weights) > 0
    overall = float((weights * safe).sum() / weights.sum())
    means = np.where(is_known, group_means(safe, rows.configuration, weights), overall)
    return np.where(finite, values, means[rows.configuration])


def prepared_again(number: NumericColumn, rows: Observations, centring: GroupCentring, standardised: bool) -> Candidate:
    """Return the candidate of a numeric column after preparation; `standardised` tells the scale that it is on."""
    again = replace(number, logs=None)
    again.centred = centring.centred(again.values)
    again.searched = (
        standardised_within_configuration(again.values, again.centred, rows) if standardised else again.centred
    )
    return again.candidate(final_values([again])[0])


def final_values(numbers: Sequence[NumericColumn]) -> list[np.ndarray]:
    """Return the values of numeric columns as candidates hold them, float32: winsorised, in standard deviations."""
    return [column.astype(np.float32) for column in each_winsorised([number.searched for number in numbers])]


def each_winsorised(columns: Sequence[np.ndarray]) -> Iterator[np.ndarray]:
    """Yield columns winsorised; few are held at once.

    Parameters
    ----------
    columns : sequence of ndarray of float, shape (n_rows,)
    """
    step = max(1, AT_ONCE // max(columns[0].size, 1))
    for first in range(0, len(columns), step):
        yield from np.ascontiguousarray(winsorised(np.column_stack(columns[first : first + step])).T)


def winsorised(columns: np.ndarray) -> np.ndarray:
    """Return columns, shape (n_rows, p), with `WINSOR_SHARE` of the rows pulled in (half at each end), scaled to
    standard deviation 1, clipped at `CLIP_SD`.
    """
    low, high = np.quantile(columns, [WINSOR_SHARE / 2, 1 - WINSOR_SHARE / 2], axis=0)
    clipped = np.clip(columns, low, high)
    clipped -= clipped.mean(axis=0)
    spread = clipped.std(axis=0)
    rare = spread == 0  # varies in fewer rows than are winsorised
    if rare.any():
        clipped[:, rare] = columns[:, rare] - columns[:, rare].mean(axis=0)
        spread = clipped.std(axis=0)
    return np.clip(clipped / np.where(spread > 0, spread, 1.0), -CLIP_SD, CLIP_SD)

"""Target leakage, rechecked after selection: leaked features that gaps and zeros had hidden.

Before the search, all columns are compared with all others, so the tests there are the cheap ones
(`preparation.target_leakage` states the concept). The search leaves a handful, and these are tested closely: each
beside every other column, on the rows where both are known and positive.
"""

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from causeway.causal.data.feature_names import computed_name
from causeway.causal.data.observations import FEWEST_ROWS, Candidate, Drop, Observations
from causeway.causal.preparation.exact_images import IMAGE, are_images, images_of_leaked, is_exact
from causeway.causal.preparation.leak_attribution import LeakAttribution
from causeway.causal.preparation.numeric_columns import NumericColumn, prepared_again
from causeway.causal.preparation.prepared import Prepared
from causeway.causal.preparation.target_leakage import LEAK_R2, ROUNDING, STILL_LEFT, in_proportion
from causeway.causal.selection.backward import Stages
from causeway.causal.statistics.basis import GroupCentring, group_means

REASON = "follows from the measured value itself (exactly, with at most one other column, where both are known)"


class LeakageRecheck:
    """Finds leaked features among what a search chose. What it worked out of a column holds for the next search.

    Parameters
    ----------
    prepared : Prepared
        Leaked features are dropped from it.
    rows : Observations
    """

    def __init__(self, prepared: Prepared, rows: Observations) -> None:
        self.prepared = prepared
        self.rows = rows
        self.measured = rows.mean + rows.signed

    def drop_leaked(self, stages: Stages) -> bool:
        """Drop counters that turn out to be leaked features; tell whether the search must be repeated.

        A member of its cluster that is none takes the place of a dropped counter.
        """
        prepared = self.prepared
        chosen = [prepared.within[index] for index in stages.parents()]
        members = {name for cause in chosen if not cause.levels for name in cause.members if name in prepared.numbers}
        suspects = sorted(name for name in members if prepared.numbers[name].is_counter)
        if not suspects:
            return False
        leaked = dict.fromkeys(self._leaked(suspects, stages), REASON)
        rest = [number for name, number in prepared.numbers.items() if name not in leaked]
        images = images_of_leaked(rest, [prepared.numbers[name] for name in sorted(leaked)])
        leaked |= {name: f"{IMAGE}: {source}" for name, source in images.items()}
        for name in sorted(leaked):
            if name in prepared.stand_ins:
                prepared.drop(name, leaked[name], Drop.LEAKED)
        again = False
        for candidate in prepared.within:
            if candidate.name in leaked:
                heir = next((name for name in candidate.members if name != candidate.name), None)
                stand_in = None if heir is None else self._candidate(heir, stages)
                prepared.drop(candidate.name, leaked[candidate.name], Drop.LEAKED, stand_in)
                again = True
        return again

    def _candidate(self, name: str, stages: Stages) -> Candidate:
        standardised = name in self.prepared.standardised
        return prepared_again(self.prepared.numbers[name], self.rows, stages.centring, standardised)

    @cached_property
    def scales(self) -> "list[PairwiseRelations]":
        """The relations in levels and, of a positive value, in logarithms; set up once, for all columns."""
        logarithmic = (False, True) if np.all(self.measured > 0) else (False,)
        return [PairwiseRelations(self.measured, is_log, self.prepared.numbers, self.rows) for is_log in logarithmic]

    def _leaked(self, suspects: list[str], stages: Stages) -> set[str]:
        """Return which suspects, or columns related to them, are functions of the measured value and at most one other
        column.
        """
        leaked: set[str] = set()
        for relations in self.scales:
            for name in suspects:
                if name not in leaked:
                    leaked |= set(_decided_by_name(relations.leaked(name, self.prepared, stages)))
        return leaked


def _decided_by_name(leaked: list[str]) -> list[str]:
    """Return the one of two columns whose name says that it is computed, if the data do not tell the leaked feature but
    the names do.
    """
    computed = [name for name in leaked if computed_name(name)]
    return computed if len(leaked) == 2 and len(computed) == 1 else leaked


def _centred_where(series: np.ndarray, usable: np.ndarray, rows: Observations) -> tuple[np.ndarray, float]:
    """Return a series minus its configuration's mean over usable rows, in standard deviations, 0 elsewhere; and
    its spread.
    """
    safe = np.where(usable, series, 0.0)
    means = group_means(safe, rows.configuration, rows.weight * usable)
    centred = np.where(usable, safe - means[rows.configuration], 0.0)
    spread = float(np.sqrt((centred**2).sum() / max(int(usable.sum()), 1)))
    return (centred / spread, spread) if spread > 0 else (centred, 1.0)


class PairwiseRelations:
    """Relations of each column with the measured value and one other column, on one scale, levels or logarithms.

    All other columns are tried at once beside each suspect, on the rows that each pair shares.

    Parameters
    ----------
    measured : ndarray of float, shape (n_rows,)
    logarithmic : bool
    numbers : dict of str to NumericColumn
    rows : Observations

    Attributes
    ----------
    names : list of str
        Of all columns before the first leaked feature was dropped.
    values, known : ndarray of float32, shape (p, n_rows)
        Centred within configurations, in standard deviations, 0 where unknown; and 1 where known.
    spread : ndarray of float, shape (p,)
        The standard deviations.
    """

    def __init__(
        self, measured: np.ndarray, logarithmic: bool, numbers: Mapping[str, NumericColumn], rows: Observations
    ) -> None:
        self.names = list(numbers)
        self.logarithmic = logarithmic
        self.raw_measured = measured
        self.rows = rows
        self.position = {name: i for i, name in enumerate(self.names)}
        everywhere = np.ones(len(rows), bool)
        self.measured, spread = _centred_where(np.log(measured) if logarithmic else measured, everywhere, rows)
        self.level = (1.0 if logarithmic else float(np.average(measured, weights=rows.weight))) / spread
        self.raw_values = [np.asarray(number.column.values, dtype=float) for number in numbers.values()]
        shape = (len(self.names), len(rows))
        self.values = np.empty(shape, np.float32)
        self.known = np.empty(shape, np.float32)
        self.spread = np.empty(shape[0])
        for i, number in enumerate(numbers.values()):
            usable = number.recorded & (number.values > 0) if logarithmic else number.recorded
            logarithm = logarithmic and number.column.unit != "bytes"  # whose values are logarithms already
            with np.errstate(divide="ignore", invalid="ignore"):
                series = np.log(number.values) if logarithm else number.values
            self.values[i], self.spread[i] = _centred_where(series, usable, rows)
            self.known[i] = usable
        self._residuals: dict[int, np.ndarray] = {}

    def rows_of(self, column: int) -> np.ndarray:
        """Return the mask of rows on which a column is known, shape (n_rows,)."""
        return self.known[column] > 0

    def leaked(self, name: str, prepared: Prepared, stages: Stages) -> list[str]:
        """Return the column if it follows from the measured value alone, or the leaked feature of the pair if it does
        so with another column's help.

        If nothing tells the leaked feature of the pair: both, and what is related to either of them.
        """
        column = self.position[name]
        there = np.asarray([other in prepared.numbers for other in self.names])
        residual = np.where(there, self.residual(column), 1.0)
        helper = int(np.argmin(residual))
        if residual[helper] >= 1.0 - LEAK_R2:
            return []
        pair = [column] if helper == column else [column, helper]
        if not self.is_exact(pair):
            return []
        if helper == column:
            return [name]
        exact = [np.flatnonzero(there & (self.residual(member) < 1.0 - LEAK_R2)) for member in pair]
        related = {int(i) for positions in exact for i in positions} | set(pair)
        index = self._leaked_of(pair, related, prepared, stages)
        return [self.names[i] for i in (sorted(related) if index is None else [pair[index]])]

    def is_exact(self, members: list[int]) -> bool:
        """Tell whether some columns give the measured value back but for rounding, on the rows where all are known."""
        rows = np.all([self.rows_of(member) for member in members], axis=0)
        columns = self.values[members][:, rows].T.astype(float)
        design = np.column_stack([np.ones(rows.sum()), columns])
        measured = self.measured[rows]
        slopes = np.linalg.lstsq(design, measured, rcond=None)[0]
        if is_exact(measured - design @ slopes, measured - measured.mean(), self.level):
            return True
        return are_images([self.raw_values[member][rows] for member in members], self.raw_measured[rows])

    def residual(self, column: int) -> np.ndarray:
        """Return what the measured value and each other column leave of a column, shape (p,), 1 - R^2; in its own place
        what the measured value alone leaves.

        1 where the measured value is not needed, or a column is known on too few of the rows.
        """
        if column not in self._residuals:
            self._residuals[column] = self._residual(column)
        return self._residuals[column]

    def _residual(self, column: int) -> np.ndarray:
        """Return the residuals of column x, from the sums of 1, x, t, x², t², xt over its rows and those of each u, of
        u, xu, tu, and of u².
        """
        usable = self.known[column]
        x = self.values[column]
        t = self.measured.astype(np.float32)
        on_known = np.stack([usable, x, usable * t, x * x, usable * t * t, x * t]) @ self.known.T
        on_values = np.stack([usable, x, usable * t]) @ self.values.T
        squares = np.square(self.values) @ usable
        size = on_known[0, column]
        counts = np.maximum(on_known[0], 1.0)
        mean_x = on_known[1] / counts
        mean_t = on_known[2] / counts
        mean_u = on_values[0] / counts
        var_x = on_known[3] / counts - mean_x**2
        var_t = on_known[4] / counts - mean_t**2
        var_u = squares / counts - mean_u**2
        cov_xt = on_known[5] / counts - mean_x * mean_t
        cov_xu = on_values[1] / counts - mean_x * mean_u
        cov_tu = on_values[2] / counts - mean_t * mean_u
        with np.errstate(divide="ignore", invalid="ignore"):
            alone = 1.0 - cov_xt**2 / (var_x * var_t)
            without = np.clip(1.0 - cov_xu**2 / (var_x * var_u), 0.0, 1.0)
            t_given_u = var_t - cov_tu**2 / var_u
            residual = without - (cov_xt - cov_xu * cov_tu / var_u) ** 2 / (t_given_u * var_x)
        usable = (
            (counts >= max(FEWEST_ROWS, 0.2 * size))
            & (var_u > 1e-6)
            & (t_given_u > 1e-4 * var_t)
            & (size >= FEWEST_ROWS)
        )
        if self.logarithmic:
            with np.errstate(divide="ignore", invalid="ignore"):
                x_given_t = var_x - cov_xt**2 / var_t
                u_given_t = var_u - cov_tu**2 / var_t
                partial = (cov_xu - cov_xt * cov_tu / var_t) / np.sqrt(x_given_t * u_given_t)
                sizes = self.spread * np.sqrt(np.maximum(u_given_t, 0.0))
                usable &= in_proportion(
                    np.nan_to_num(partial), self.spread[column] * np.sqrt(np.maximum(x_given_t, 0.0)), sizes
                )
        residual = np.where(usable & (without > ROUNDING) & (residual < STILL_LEFT * without), residual, 1.0)
        residual[column] = alone[column] if size >= FEWEST_ROWS and alone[column] < 1.0 - LEAK_R2 else 1.0
        return residual

    def _leaked_of(self, pair: list[int], related: set[int], prepared: Prepared, stages: Stages) -> int | None:
        """Return the leaked feature's position in a pair; None if nothing tells."""
        if not prepared.numbers[self.names[pair[1]]].is_counter:  # known at the launch's start
            return 0
        rows = self.rows_of(pair[0]) & self.rows_of(pair[1])
        some = [i for i, name in enumerate(self.names) if name in prepared.numbers]
        attribution = LeakAttribution(
            measured=self.measured[rows],
            columns=self.values[some][:, rows].T,
            further=[candidate.values[rows] for candidate in prepared.within if candidate.levels],
            raw=[self.raw_values[i][rows] for i in some],
            raw_measured=self.raw_measured[rows],
            centring=GroupCentring(
                np.unique(self.rows.configuration[rows], return_inverse=True)[1], self.rows.weight[rows]
            ),
            size=stages.problem.n_independent * float(rows.mean()),
        )
        members = [some.index(i) for i in pair]
        leak = attribution.leaked_member(members, np.isin(some, list(related)))
        return None if leak is None else members.index(leak)

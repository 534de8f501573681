"""Second look at what the search chose: leaks that gaps and zeros had hidden.

Before the search, all columns are compared with all others, so the checks there are the cheap ones. The search leaves a handful, and these
can be looked at closely: on the rows where everything is known and positive.
"""

from dataclasses import replace

import numpy as np

from causeway.causal.basis import normal_scores
from causeway.causal.determinism import computed_name
from causeway.causal.leaks import ALIAS_R2, MIN_ROWS, NOT_ROUNDING, OWN_SHARE, in_proportion
from causeway.causal.prepare import Number, Prepared, candidate_of
from causeway.causal.rows import Dropped, Rows
from causeway.causal.stages import Stages
from causeway.causal.which_leak import Bystanders, calculated_from, causes_without, leak_among, nearly_the_time

AT_ONCE = 64
"""So many columns are looked at in one go."""
MONOTONE = 0.995
"""A column whose ranks are those of the measured value this well, within configurations, is the measured value on a bent scale."""


class LateLeaks:
    """Finds leaks among what a search chose. What it learnt of a column holds for the next search.

    Parameters
    ----------
    prepared : Prepared
        Leaks are taken out of it.
    rows : Rows
    """

    def __init__(self, prepared: Prepared, rows: Rows) -> None:
        self.prepared, self.rows, self.measured = prepared, rows, rows.mean + rows.signed
        self.looks: list[_Look] = []

    def drop(self, stages: Stages) -> bool:
        """Drop counters that turn out to be the measured value in other clothes; tell whether the search must be repeated.

        The member of its cluster that is none takes the place of a dropped counter.
        """
        prepared = self.prepared
        chosen = [prepared.within[index] for index in stages.parents()]
        numbers = {name: prepared.numbers[name] for c in chosen if not c.levels for name in c.members if name in prepared.numbers}
        suspects = {name for name, number in numbers.items() if number.column.tier == "counter"}
        if not suspects:
            return False
        aliases = self._aliases(sorted(suspects), stages)
        for name in aliases:
            del prepared.numbers[name]
            prepared.determined.pop(name, None)
            prepared.reserve.pop(name, None)
            prepared.merged.pop(name, None)
        again = False
        for place, candidate in enumerate(prepared.within):
            if aliases.isdisjoint(candidate.members):
                continue
            left = tuple(name for name in candidate.members if name not in aliases)
            if candidate.name in left:
                prepared.within[place] = replace(candidate, members=left)
            else:
                heirs = [name for name in left if name in prepared.numbers]
                heir = candidate_of(prepared.numbers[heirs[0]], self.rows, stages.centring, prepared, left) if heirs else None
                prepared.within[place] = heir
                again = True
        prepared.within = [one for one in prepared.within if one is not None]
        reason = "follows from the measured value itself (R² > .99 with at most one other column, on the rows where both are known)"
        kept = [dropped for dropped in prepared.dropped if dropped.feature not in aliases]
        prepared.dropped = sorted([*kept, *(Dropped(name, reason) for name in aliases)], key=lambda one: one.feature)
        return again

    def look(self) -> None:
        """Take a look at all columns, in levels and, of a positive value, in logarithms; once."""
        if not self.looks:
            scales = (False, True) if np.all(self.measured > 0) else (False,)
            self.looks = [_Look(self.measured, logarithmic, self.prepared.numbers, self.rows) for logarithmic in scales]

    def _aliases(self, suspects: list[str], stages: Stages) -> set[str]:
        """Return which suspects, or columns tied to them, are functions of the measured value and at most one other column."""
        self.look()
        found: set[str] = set()
        for look in self.looks:
            look.learn(suspects)
            for name in suspects:
                if look.is_monotone(name):
                    found.add(name)
                elif name not in found:
                    found |= set(_told_by_name(look.leaks(name, self.prepared, stages)))
        return found


def _told_by_name(leaks: list[str]) -> list[str]:
    """Return the one of two columns whose name says that it is computed, if the data do not tell the leak but the names do."""
    computed = [name for name in leaks if computed_name(name)]
    return computed if len(leaks) == 2 and len(computed) == 1 else leaks


def _centred_where(series: np.ndarray, known: np.ndarray, rows: Rows) -> tuple[np.ndarray, float]:
    """Return a series minus its configuration's mean over known rows, in standard deviations, 0 where unknown; and its spread."""
    safe = np.where(known, series, 0.0)
    weight = rows.weight * known
    totals = np.bincount(rows.configuration, weight)
    centred = np.where(
        known, safe - (np.bincount(rows.configuration, weight * safe) / np.where(totals > 0, totals, 1.0))[rows.configuration], 0.0
    )
    spread = float(np.sqrt((centred**2).sum() / max(int(known.sum()), 1)))
    return (centred / spread, spread) if spread > 0 else (centred, 1.0)


class _Look:
    """A look at all numeric columns on one scale, levels or logarithms.

    All other columns are tried at once beside each suspect, on the rows that each pair shares: their sums are products of matrices.

    Attributes
    ----------
    names : list of str
        Of all columns before the first leak was dropped.
    values, known : ndarray of float32, shape (p, n_rows)
        Centred within configurations, in standard deviations, 0 where unknown; and 1 where known.
    spread : ndarray of float, shape (p,)
        The standard deviations.
    """

    def __init__(self, measured: np.ndarray, logarithmic: bool, numbers: dict[str, Number], rows: Rows) -> None:
        self.names, self.logarithmic, self.measured = list(numbers), logarithmic, measured
        self.place = {name: i for i, name in enumerate(self.names)}
        self.time, _ = _centred_where(np.log(measured) if logarithmic else measured, np.ones(len(rows), bool), rows)
        shape = (len(self.names), len(rows))
        self.values, self.known, self.spread = np.empty(shape, np.float32), np.empty(shape, np.float32), np.empty(shape[0])
        for i, number in enumerate(numbers.values()):
            known = number.known & (number.values > 0) if logarithmic else number.known
            logarithm = logarithmic and number.column.unit != "bytes"  # whose values are logarithms already
            with np.errstate(divide="ignore", invalid="ignore"):
                series = np.log(number.values) if logarithm else number.values
            self.values[i], self.spread[i] = _centred_where(series, known, rows)
            self.known[i] = known
        self._left: dict[int, np.ndarray] = {}
        self._monotone: dict[str, bool] = {}

    def rows_of(self, one: int) -> np.ndarray:
        """Return the mask of rows on which a column is known."""
        return self.known[one] > 0

    def is_monotone(self, name: str) -> bool:
        """Tell whether a column is the measured value on a bent scale."""
        if name not in self._monotone:
            mine = self.rows_of(self.place[name])
            values = self.values[self.place[name], mine]
            self._monotone[name] = bool(
                mine.sum() >= MIN_ROWS
                and np.unique(values).size >= MIN_ROWS
                and abs(np.corrcoef(normal_scores(values.astype(float)), normal_scores(self.time[mine]))[0, 1]) > MONOTONE
            )
        return self._monotone[name]

    def leaks(self, name: str, prepared: Prepared, stages: Stages) -> list[str]:
        """Return the column if it follows from the measured value alone, or the leak of the pair if it does so with another column's help.

        If nothing tells the leak of the pair: both, and what is tied to either of them.
        """
        one = self.place[name]
        there = np.asarray([other in prepared.numbers for other in self.names])
        left = np.where(there, self.left(one), 1.0)
        helper = int(np.argmin(left))
        if left[helper] >= 1.0 - ALIAS_R2:
            return []
        if helper == one:
            return [name]
        pair = [one, helper]
        tied = {int(i) for member in pair for i in np.flatnonzero(there & (self.left(member) < 1.0 - ALIAS_R2))} | set(pair)
        place = self._leak(pair, tied, prepared, stages)
        return [self.names[i] for i in (sorted(tied) if place is None else [pair[place]])]

    def left(self, one: int) -> np.ndarray:
        """Return what the measured value and each other column leave of a column, in its own place what the measured value alone leaves.

        1 where the measured value is not needed, or a column is known on too few of the rows.
        """
        if one not in self._left:
            self.learn([self.names[one]])
        return self._left[one]

    def learn(self, names: list[str]) -> None:
        """Work out what is left of some columns, many at once."""
        new = [self.place[name] for name in names if self.place[name] not in self._left]
        for first in range(0, len(new), AT_ONCE):
            some = new[first : first + AT_ONCE]
            mine, x, t = self.known[some], self.values[some], self.time.astype(np.float32)
            on_known = _sums([mine, x, mine * t, x * x, mine * t * t, x * t], self.known)
            on_values, squares = _sums([mine, x, mine * t], self.values), _sums([mine], np.square(self.values))
            for i, one in enumerate(some):
                self._left[one] = self._of_sums(one, on_known[:, i], on_values[:, i], squares[0, i])

    def _of_sums(self, one: int, on_known: np.ndarray, on_values: np.ndarray, squares: np.ndarray) -> np.ndarray:
        """Return what is left of column x; the sums are those of 1, x, t, x², t², xt over the rows of each u, of u, xu, tu, and of u²."""
        size = on_known[0, one]
        counts = np.maximum(on_known[0], 1.0)
        mean_x, mean_t, mean_u = on_known[1] / counts, on_known[2] / counts, on_values[0] / counts
        var_x, var_t, var_u = on_known[3] / counts - mean_x**2, on_known[4] / counts - mean_t**2, squares / counts - mean_u**2
        cov_xt = on_known[5] / counts - mean_x * mean_t
        cov_xu, cov_tu = on_values[1] / counts - mean_x * mean_u, on_values[2] / counts - mean_t * mean_u
        with np.errstate(divide="ignore", invalid="ignore"):
            alone = 1.0 - cov_xt**2 / (var_x * var_t)
            rest = np.clip(1.0 - cov_xu**2 / (var_x * var_u), 0.0, 1.0)
            t_given_u = var_t - cov_tu**2 / var_u
            left = rest - (cov_xt - cov_xu * cov_tu / var_u) ** 2 / (t_given_u * var_x)
        usable = (counts >= max(MIN_ROWS, 0.2 * size)) & (var_u > 1e-6) & (t_given_u > 1e-4 * var_t) & (size >= MIN_ROWS)
        if self.logarithmic:
            with np.errstate(divide="ignore", invalid="ignore"):
                x_given_t, u_given_t = var_x - cov_xt**2 / var_t, var_u - cov_tu**2 / var_t
                partial = (cov_xu - cov_xt * cov_tu / var_t) / np.sqrt(x_given_t * u_given_t)
                sizes = self.spread * np.sqrt(np.maximum(u_given_t, 0.0))
                usable &= in_proportion(np.nan_to_num(partial), self.spread[one] * np.sqrt(np.maximum(x_given_t, 0.0)), sizes)
        left = np.where(usable & (rest > NOT_ROUNDING) & (left < OWN_SHARE * rest), left, 1.0)
        left[one] = alone[one] if size >= MIN_ROWS and alone[one] < 1.0 - ALIAS_R2 else 1.0
        return left

    def _leak(self, pair: list[int], tied: set[int], prepared: Prepared, stages: Stages) -> int | None:
        """Return the leak's place in a pair; None if nothing tells."""
        numbers = [prepared.numbers[self.names[i]] for i in pair]
        if numbers[1].column.tier != "counter":  # known at the launch's start
            return 0
        rows = self.rows_of(pair[0]) & self.rows_of(pair[1])
        roots = stages.centring.roots[:, None]
        columns = (self.values[pair].T * roots)[rows]
        columns = columns - columns.mean(axis=0)
        place = nearly_the_time(_weighted_on(rows, self.time, roots), columns)
        if place is None:
            place = calculated_from(*(number.column.values for number in numbers), self.measured)
        if place is not None:
            return place
        names = {self.names[i] for i in tied}
        values = [one.values for one in prepared.within if names.isdisjoint(one.members)]
        size = stages.problem.n_independent
        frame = causes_without(self.time, values, stages.centring, size)
        untied = [i for i, name in enumerate(self.names) if i not in tied and name in prepared.numbers]
        beside = Bystanders(self.time * roots[:, 0], frame, self.values[untied].T * roots, size)
        return leak_among(columns, beside.on(rows))


def _sums(series: list[np.ndarray], columns: np.ndarray) -> np.ndarray:
    """Return the sums over rows of each series, shape (k, n_rows), times each column, shape (p, n_rows); shape (len(series), k, p)."""
    return (np.concatenate(series) @ columns.T).reshape(len(series), -1, len(columns))


def _weighted_on(rows: np.ndarray, series: np.ndarray, roots: np.ndarray) -> np.ndarray:
    part = (series * roots[:, 0])[rows]
    return part - part.mean()

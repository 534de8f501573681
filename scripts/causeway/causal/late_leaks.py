"""Second look at what the search chose: leaks that gaps and zeros had hidden.

Before the search, all columns are compared with all others, so the checks there are the cheap ones. The search leaves a handful, and these
can be looked at closely: on the rows where everything is known and positive.
"""

from dataclasses import dataclass, replace

import numpy as np

from causeway.causal.basis import normal_scores
from causeway.causal.determinism import computed_name
from causeway.causal.leaks import ALIAS_R2, MIN_ROWS, NOT_ROUNDING, OWN_SHARE, in_proportion
from causeway.causal.prepare import Prepared, candidate_of
from causeway.causal.rows import Dropped, Rows
from causeway.causal.stages import Stages
from causeway.causal.which_leak import Bystanders, calculated_from, causes_without, leak_among, nearly_the_time

MONOTONE = 0.995
"""A column whose ranks are those of the measured value this well, within configurations, is the measured value on a bent scale."""


def drop_late_aliases(stages: Stages, prepared: Prepared, rows: Rows) -> bool:
    """Drop counters that turn out to be the measured value in other clothes; tell whether the search must be repeated.

    The member of its cluster that is none takes the place of a dropped counter. Changes `prepared` in place.
    """
    chosen = [prepared.within[index] for index in stages.parents()]
    numbers = {name: prepared.numbers[name] for c in chosen if not c.levels for name in c.members if name in prepared.numbers}
    suspects = {name for name, number in numbers.items() if number.column.tier == "counter"}
    if not suspects:
        return False
    aliases = _aliases(sorted(suspects), prepared, rows, stages)
    for name in aliases:
        del prepared.numbers[name]
        prepared.determined.pop(name, None)
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
            heir = candidate_of(prepared.numbers[heirs[0]], stages.centring, left) if heirs else None
            prepared.within[place] = heir
            again = True
    prepared.within = [one for one in prepared.within if one is not None]
    reason = "follows from the measured value itself (R² > .99 with at most one other column, on the rows where both are known)"
    kept = [dropped for dropped in prepared.dropped if dropped.feature not in aliases]
    prepared.dropped = sorted([*kept, *(Dropped(name, reason) for name in aliases)], key=lambda one: one.feature)
    return again


def _aliases(suspects: list[str], prepared: Prepared, rows: Rows, stages: Stages) -> set[str]:
    """Return which of the suspects, or of the columns tied to them, are functions of the measured value and at most one other column."""
    measured = rows.mean + rows.signed
    found: set[str] = set()
    for logarithmic in (False, True):
        if logarithmic and not np.all(measured > 0):
            continue
        look = _Look.at(measured, logarithmic, prepared, rows, stages)
        for name in suspects:
            if look.is_monotone(name):
                found.add(name)
            elif name not in found:
                found |= set(_told_by_name(look.leaks(name)))
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


@dataclass
class _Look:
    """A look at all numeric columns on one scale, levels or logarithms; arrays of shape (n_rows, p), 0 where unknown.

    All other columns are tried at once beside a suspect, on the rows that each pair shares: their sums are products of matrices.
    """

    names: list[str]
    values: np.ndarray
    spread: np.ndarray
    logarithmic: bool
    known: np.ndarray
    time: np.ndarray
    measured: np.ndarray
    prepared: Prepared
    stages: Stages

    @classmethod
    def at(cls, measured: np.ndarray, logarithmic: bool, prepared: Prepared, rows: Rows, stages: Stages) -> "_Look":
        names = list(prepared.numbers)
        time, _ = _centred_where(np.log(measured) if logarithmic else measured, np.ones(len(rows), bool), rows)
        values = np.empty((len(rows), len(names)), np.float32)
        known, spread = np.empty((len(rows), len(names)), bool), np.empty(len(names))
        for i, number in enumerate(prepared.numbers.values()):
            known[:, i] = number.known & (number.values > 0) if logarithmic else number.known
            logarithm = logarithmic and number.column.unit != "bytes"  # whose values are logarithms already
            with np.errstate(divide="ignore", invalid="ignore"):
                series = np.log(number.values) if logarithm else number.values
            values[:, i], spread[i] = _centred_where(series, known[:, i], rows)
        return cls(names, values, spread, logarithmic, known, time, measured, prepared, stages)

    def is_monotone(self, name: str) -> bool:
        """Tell whether a column is the measured value on a bent scale."""
        one = self.names.index(name)
        mine = self.known[:, one]
        if mine.sum() < MIN_ROWS or np.unique(self.values[mine, one]).size < MIN_ROWS:
            return False
        ranks = np.corrcoef(normal_scores(self.values[mine, one].astype(float)), normal_scores(self.time[mine]))[0, 1]
        return bool(abs(ranks) > MONOTONE)

    def leaks(self, name: str) -> list[str]:
        """Return the column if it follows from the measured value alone, or the leak of the pair if it does so with another column's help.

        If nothing tells the leak of the pair: both, and what is tied to either of them.
        """
        one = self.names.index(name)
        left = self._left(one)
        helper = int(np.argmin(left))
        if left[helper] >= 1.0 - ALIAS_R2:
            return []
        if helper == one:
            return [name]
        pair = [one, helper]
        tied = {i for member in pair for i in np.flatnonzero(self._left(member) < 1.0 - ALIAS_R2)} | set(pair)
        place = self._leak(pair, tied)
        return [self.names[i] for i in (sorted(tied) if place is None else [pair[place]])]

    def _left(self, one: int) -> np.ndarray:
        """Return what the measured value and each other column leave of a column, in its own place what the measured value alone leaves.

        1 where the measured value is not needed, or a column is known on too few of the rows.
        """
        mine = self.known[:, one]
        if mine.sum() < MIN_ROWS:
            return np.ones(len(self.names))
        x, t = self.values[mine, one].astype(np.float32), self.time[mine].astype(np.float32)
        u, shared = self.values[mine], self.known[mine].astype(np.float32)
        counts = np.maximum(shared.sum(axis=0), 1.0)
        mean_x, mean_t, mean_u = x @ shared / counts, t @ shared / counts, u.sum(axis=0) / counts  # u is 0 where unknown
        var_x, var_t = (x * x) @ shared / counts - mean_x**2, (t * t) @ shared / counts - mean_t**2
        var_u = (u * u).sum(axis=0) / counts - mean_u**2
        cov_xt = (x * t) @ shared / counts - mean_x * mean_t
        cov_xu, cov_tu = x @ u / counts - mean_x * mean_u, t @ u / counts - mean_t * mean_u
        with np.errstate(divide="ignore", invalid="ignore"):
            alone = 1.0 - cov_xt**2 / (var_x * var_t)
            rest = np.clip(1.0 - cov_xu**2 / (var_x * var_u), 0.0, 1.0)
            t_given_u = var_t - cov_tu**2 / var_u
            left = rest - (cov_xt - cov_xu * cov_tu / var_u) ** 2 / (t_given_u * var_x)
        usable = (counts >= max(MIN_ROWS, 0.2 * x.size)) & (var_u > 1e-6) & (t_given_u > 1e-4 * var_t)
        if self.logarithmic:
            with np.errstate(divide="ignore", invalid="ignore"):
                x_given_t, u_given_t = var_x - cov_xt**2 / var_t, var_u - cov_tu**2 / var_t
                partial = (cov_xu - cov_xt * cov_tu / var_t) / np.sqrt(x_given_t * u_given_t)
                sizes = self.spread * np.sqrt(np.maximum(u_given_t, 0.0))
                usable &= in_proportion(np.nan_to_num(partial), self.spread[one] * np.sqrt(np.maximum(x_given_t, 0.0)), sizes)
        left = np.where(usable & (rest > NOT_ROUNDING) & (left < OWN_SHARE * rest), left, 1.0)
        left[one] = alone[one] if alone[one] < 1.0 - ALIAS_R2 else 1.0
        return left

    def _leak(self, pair: list[int], tied: set[int]) -> int | None:
        """Return the leak's place in a pair; None if nothing tells."""
        numbers = [self.prepared.numbers[self.names[i]] for i in pair]
        if numbers[1].column.tier != "counter":  # known at the launch's start
            return 0
        rows = self.known[:, pair].all(axis=1)
        roots = self.stages.centring.roots[:, None]
        columns = (self.values[:, pair] * roots)[rows]
        columns = columns - columns.mean(axis=0)
        place = nearly_the_time(_weighted_on(rows, self.time, roots), columns)
        if place is None:
            place = calculated_from(*(number.column.values for number in numbers), self.measured)
        if place is not None:
            return place
        names = {self.names[i] for i in tied}
        values = [one.values for one in self.prepared.within if names.isdisjoint(one.members)]
        size = self.stages.problem.n_independent
        frame = causes_without(self.time, values, self.stages.centring, size)
        untied = [i for i in range(len(self.names)) if i not in tied]
        beside = Bystanders(self.time * roots[:, 0], frame, self.values[:, untied] * roots, size)
        return leak_among(columns, beside.on(rows))


def _weighted_on(rows: np.ndarray, series: np.ndarray, roots: np.ndarray) -> np.ndarray:
    part = (series * roots[:, 0])[rows]
    return part - part.mean()

"""Second look at what the search chose: leaks that gaps and zeros had hidden.

Before the search, all columns are compared with all others, so the checks there are the cheap ones. The search leaves a handful, and these
can be looked at closely: on the rows where everything is known and positive.
"""

from dataclasses import replace

import numpy as np

from causeway.causal.basis import normal_scores
from causeway.causal.determinism import computed_name
from causeway.causal.leaks import ALIAS_R2, MIN_ROWS, OWN_SHARE, leak_of_pair
from causeway.causal.prepare import Prepared, candidate_of
from causeway.causal.rows import Dropped, Rows
from causeway.causal.stages import Stages

MONOTONE = 0.995
"""A column whose ranks are those of the measured value this well, within configurations, is the measured value on a bent scale."""
NOT_ROUNDING = 1e-4
"""Copies leave less of each other than this, and then the measured value's part in it is rounding."""


def drop_late_aliases(stages: Stages, prepared: Prepared, rows: Rows) -> bool:
    """Drop counters that turn out to be the measured value in other clothes; tell whether the search must be repeated.

    The member of its cluster that is none takes the place of a dropped counter. Changes `prepared` in place.
    """
    chosen = [prepared.within[index] for index in stages.parents()]
    suspects = {name for c in chosen if c.tier == "counter" and not c.levels for name in c.members if name in prepared.numbers}
    if not suspects:
        return False
    aliases = _aliases(sorted(suspects), prepared, rows)
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


def _aliases(suspects: list[str], prepared: Prepared, rows: Rows) -> set[str]:
    """Return which of the suspects are functions of the measured value and at most one other column."""
    measured = rows.mean + rows.signed
    names = list(prepared.numbers)
    everything = [prepared.numbers[name] for name in names]
    place = {name: i for i, name in enumerate(names)}
    found: set[str] = set()
    for logarithmic in (False, True):
        if logarithmic and not np.all(measured > 0):
            continue
        t = _centred_where(np.log(measured) if logarithmic else measured, np.ones(len(rows), bool), rows)
        values = np.empty((len(rows), len(names)), np.float32)
        known = np.empty((len(rows), len(names)), bool)
        for i, number in enumerate(everything):
            known[:, i] = number.known & (number.values > 0) if logarithmic else number.known
            with np.errstate(divide="ignore", invalid="ignore"):
                series = np.log(number.values) if logarithmic else number.values
            values[:, i] = _centred_where(series, known[:, i], rows)
        for name in suspects:
            if _monotone(place[name], values, known, t):
                found.add(name)
            elif name not in found:
                found |= set(_told_by_name([names[i] for i in _leaks(place[name], values, known, t)]))
    return found


def _told_by_name(leaks: list[str]) -> list[str]:
    """Return the one of two columns whose name says that it is computed, if the data do not tell the leak but the names do."""
    computed = [name for name in leaks if computed_name(name)]
    return computed if len(leaks) == 2 and len(computed) == 1 else leaks


def _centred_where(series: np.ndarray, known: np.ndarray, rows: Rows) -> np.ndarray:
    """Return a series minus its configuration's mean over known rows, in standard deviations; 0 where unknown."""
    safe = np.where(known, series, 0.0)
    weight = rows.weight * known
    totals = np.bincount(rows.configuration, weight)
    centred = np.where(
        known, safe - (np.bincount(rows.configuration, weight * safe) / np.where(totals > 0, totals, 1.0))[rows.configuration], 0.0
    )
    spread = float(np.sqrt((centred**2).sum() / max(int(known.sum()), 1)))
    return centred / spread if spread > 0 else centred


def _monotone(one: int, values: np.ndarray, known: np.ndarray, t: np.ndarray) -> bool:
    mine = known[:, one]
    if mine.sum() < MIN_ROWS or np.unique(values[mine, one]).size < MIN_ROWS:
        return False
    ranks = np.corrcoef(normal_scores(values[mine, one].astype(float)), normal_scores(t[mine]))[0, 1]
    return bool(abs(ranks) > MONOTONE)


def _leaks(one: int, values: np.ndarray, known: np.ndarray, t: np.ndarray) -> list[int]:
    """Return the column if it follows from the measured value alone, or the leak of the pair if it does so with another column's help.

    All other columns are tried at once, on the rows that a pair shares: their sums are products of matrices.
    """
    mine = known[:, one]
    if mine.sum() < MIN_ROWS:
        return []
    t_all = t
    x, t = values[mine, one].astype(np.float32), t[mine].astype(np.float32)
    u, shared = values[mine], known[mine].astype(np.float32)
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
    limit = 1.0 - ALIAS_R2
    if alone[one] < limit:
        return [one]
    usable = (counts >= max(MIN_ROWS, 0.2 * x.size)) & (var_u > 1e-6) & (t_given_u > 1e-4 * var_t)
    usable[one] = False
    helps = np.flatnonzero(usable & (rest > NOT_ROUNDING) & (left < limit) & (left < OWN_SHARE * rest))
    if helps.size == 0:
        return []
    helper = int(helps[np.argmin(left[helps])])
    rows = known[:, one] & known[:, helper]
    with_measured, with_one, with_helper = (
        _correlations(series[rows], values[rows]) for series in (t_all, values[:, one], values[:, helper])
    )
    leak = leak_of_pair(with_measured, with_one, with_helper, (one, helper), int(rows.sum()))
    return [one, helper] if leak is None else [(one, helper)[leak]]


def _correlations(series: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return the correlations of a series with columns; unknown cells count as their mean."""
    series = series - series.mean()
    means = columns.mean(axis=0)
    covariance = series.astype(np.float32) @ columns / series.size
    spread = np.sqrt(np.maximum((columns**2).mean(axis=0) - means**2, 1e-12) * max(float(series @ series) / series.size, 1e-12))
    return (covariance / spread).astype(float)

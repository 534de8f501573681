"""What each cause does to the time: with it at its 90th instead of its 10th percentile within the configuration."""

import math
from collections.abc import Sequence

import numpy as np

from causeway.causal.data.observations import Candidate
from causeway.causal.data.outcome import CONFIGURATION, Arrow, Ends, Estimate, TimeEffect
from causeway.causal.effects.scope_times import RowDonors, ScopeTimes
from causeway.causal.preparation.categorical import OTHER, PLACEMENT, USUAL_SHARE
from causeway.core.formatting import setting_value

LOW = 0.1
HIGH = 0.9
FEWEST_LAUNCHES = 20
"""Launches that were analysed with each of two values that are compared: the mean of so many is known to 0.22 of their
standard deviation, 1 / sqrt(20), and the smallest of them that is a warm-up or an accident does not decide it.
"""
ALIKE = 0.5
"""Another level of a place does the same where its change of the mean is clear and at least this part of the first."""
DOSES = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Quantiles at which the mean is compared to tell whether it rises and falls."""
TURN = 0.25
"""The mean turns where it goes back by more than this share of its whole range over the doses."""


def time_effects(times: ScopeTimes, arrows: Sequence[Arrow]) -> dict[str, TimeEffect]:
    """Return by name what each cause does to the time.

    Causes between configurations have none: what differs between configurations is compared there, not within them.
    Nor have those of `rare_launches`.

    Parameters
    ----------
    times : ScopeTimes
    arrows : sequence of Arrow
    """
    effects = {arrow.name: _effect(times, arrow) for arrow in arrows if arrow.stage != CONFIGURATION}
    return {name: effect for name, effect in effects.items() if effect is not None}


def rare_launches(times: ScopeTimes, arrows: Sequence[Arrow]) -> dict[str, int]:
    """Return by name of how many launches of the run a cause differs from the others, of the causes whose values cannot
    be compared, as fewer than `FEWEST_LAUNCHES` have one of them; parameters as of `time_effects`.
    """
    found = {}
    for arrow in arrows:
        if arrow.stage != CONFIGURATION:
            candidate = times.evidence.candidate_of(arrow)
            if not _moved(*extremes(times, candidate, arrow)).any():
                found[arrow.name] = times.launches(_rarer_rows(times, candidate, arrow))
    return found


def _moved(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Return which rows are compared, by the donors of both settings."""
    own = np.arange(low.size)
    return (low != own) | (high != own)


def _effect(times: ScopeTimes, arrow: Arrow) -> TimeEffect | None:
    candidate = times.evidence.candidate_of(arrow)
    low, high = extremes(times, candidate, arrow)
    moved = _moved(low, high)
    if not moved.any():
        return None
    between = times.change([arrow], {arrow.name: high}, {arrow.name: low}, _without_excluding(times, candidate, arrow))
    better = low if between.mean.value > 0 else high
    return TimeEffect(
        mean=between.mean,
        p50=between.p50,
        p99=between.p99,
        spread=between.spread,
        of_first=between.of_first,
        cost=times.saved([arrow], {arrow.name: better}),
        launches=times.launches(moved),
        monotone=candidate.values.ndim > 1 or candidate.two_valued or _monotone(times, arrow),
        against=_compared_level(times, candidate, low, high),
        alike=_alike(times, candidate, arrow, low, between.mean),
        ends=_ends(times, candidate, low, high),
    )


def _rarer_rows(times: ScopeTimes, candidate: Candidate, arrow: Arrow) -> np.ndarray:
    """Return the used rows that too few are of: those with the arrow's level or with any other one, whichever are
    fewer; of a number those that do not have the median of their configuration; bool, shape (n_used,).
    """
    if candidate.values.ndim > 1:
        named = level_numbers(candidate, times.used) == _named_level(candidate, arrow)
        return named if named.mean() <= 0.5 else ~named
    values = candidate.values[times.used]
    return values != values[quantile_donors(values, times.configuration, np.ones(values.size), 0.5)]


def _ends(times: ScopeTimes, candidate: Candidate, low: np.ndarray, high: np.ndarray) -> Ends | None:
    """Return what is compared of a number where its percentiles are equal."""
    if candidate.values.ndim > 1:
        return None
    values = candidate.values[times.used]
    donors = [quantile_donors(values, times.configuration, times.weight, share) for share in (LOW, HIGH)]
    is_moved = values[low] != values[high]
    at_ends = is_moved & (values[donors[0]] == values[donors[1]])
    if not at_ends.any():
        return None
    column = next((one for one in times.evidence.columns if one.name == candidate.name), None)

    def words(rows: np.ndarray) -> str:
        measured = np.unique([] if column is None else np.asarray(column.values, dtype=float)[times.used][rows])
        is_one = measured.size == 1 and np.isfinite(measured[0])
        return setting_value(float(measured[0]), candidate.unit) if is_one else ""

    return Ends(
        low=words(low[at_ends]),
        high=words(high[at_ends]),
        launches_low=times.launches(at_ends & (values <= values[low])),
        launches_high=times.launches(at_ends & (values >= values[high])),
        are_everywhere=bool(np.array_equal(at_ends, is_moved)),
    )


def _alike(times: ScopeTimes, candidate: Candidate, arrow: Arrow, low: np.ndarray, mean: Estimate) -> tuple[str, ...]:
    """Return the other levels of a place - rank, device, node - that change the mean as the arrow's does: several may
    be slow, of which an arrow names one.
    """
    if candidate.group != PLACEMENT or not arrow.level or mean.low <= 0 <= mean.high:
        return ()
    numbers = level_numbers(candidate, times.used)
    others = [one for one in np.unique(numbers).tolist() if candidate.levels[one] not in (arrow.level, OTHER)]
    settings: list[RowDonors] = []
    for one in others:
        settings += [{arrow.name: low}, {arrow.name: _of_level(times, numbers, one, low)}]
    sign = 1 if mean.value > 0 else -1
    changes = times.mean_changes([arrow], settings)[::2] if others else []
    return tuple(
        candidate.levels[one]
        for one, change in zip(others, changes, strict=True)
        if (change.low > 0 or change.high < 0) and sign * change.value >= ALIKE * abs(mean.value)
    )


def _of_level(times: ScopeTimes, numbers: np.ndarray, level: int, otherwise: np.ndarray) -> np.ndarray:
    """Return for each used row a row of its configuration with a level, that of `otherwise` where none has it; int,
    shape (n_used,).
    """
    donors = otherwise.copy()
    rows = np.flatnonzero(numbers == level)
    codes, first = np.unique(times.configuration[rows], return_index=True)
    for code, row in zip(codes.tolist(), rows[first].tolist(), strict=True):
        donors[times.configuration == code] = row
    return donors


def _without_excluding(times: ScopeTimes, candidate: Candidate, arrow: Arrow) -> np.ndarray:
    """Return which used rows met none of the causes that no launch met together with one: of launches beside a copy in
    one direction it is not known how long a copy in the other direction would make them, shape (n_used,).
    """
    excluded = np.zeros(times.used.size, dtype=bool)
    if candidate.values.ndim > 1:
        return ~excluded
    own = _above_least(candidate.values[times.used], times.configuration)
    for other in times.arrows:
        values = times.evidence.candidate_of(other).values
        if other.name == arrow.name or values.ndim > 1:
            continue
        others = _above_least(values[times.used], times.configuration)
        if own.any() and not np.any(own & others):
            excluded |= others
    return ~excluded


def _above_least(values: np.ndarray, configuration: np.ndarray) -> np.ndarray:
    """Return which values are not the smallest of their configuration."""
    least = np.full(int(configuration.max()) + 1, np.inf)
    np.minimum.at(least, configuration, values)
    return values > least[configuration]


def extremes(times: ScopeTimes, candidate: Candidate, arrow: Arrow) -> tuple[np.ndarray, np.ndarray]:
    """Return for each used row the donors that are compared: low and high values of a number in its configuration; of a
    category its commonest level there, other than the arrow's, and the arrow's; of places that are about as common the
    one whose launches take the median time.

    Where a configuration's 10th and 90th percentile are one value, the lowest and the highest that `FEWEST_LAUNCHES` of
    all such configurations reach take their place.

    Returns
    -------
    low, high : ndarray of int, shape (n_used,)
        The row itself where the cause does not vary in its configuration, or in too few launches.
    """
    if candidate.values.ndim > 1:
        return _levels(times, candidate, arrow)
    values = candidate.values[times.used]
    low = quantile_donors(values, times.configuration, times.weight, LOW)
    high = quantile_donors(values, times.configuration, times.weight, HIGH)
    same = (values[low] == values[high]) & _varies(values, times.configuration)
    if same.any():
        alike = np.ones(values.size)
        share = min((FEWEST_LAUNCHES - 0.5) / np.count_nonzero(same), 0.5)  # of 19 launches less than that, of 20 more
        low = np.where(same, quantile_donors(values, times.configuration, alike, share), low)
        high = np.where(same, quantile_donors(values, times.configuration, alike, 1 - share), high)
    constant = values[low] == values[high]
    own = np.arange(values.size)
    return np.where(constant, own, low), np.where(constant, own, high)


def _varies(values: np.ndarray, configuration: np.ndarray) -> np.ndarray:
    """Return which rows are of a configuration in which values differ, bool, shape (n_rows,)."""
    least = np.full(int(configuration.max()) + 1, np.inf)
    np.minimum.at(least, configuration, values)
    differs = np.zeros(least.size, dtype=bool)
    np.logical_or.at(differs, configuration, values > least[configuration])
    return differs[configuration]


def _compared_level(times: ScopeTimes, candidate: Candidate, low: np.ndarray, high: np.ndarray) -> str:
    """Return the level of a category that its own is compared with, where it is one in all configurations."""
    if candidate.values.ndim == 1:
        return ""
    numbers = level_numbers(candidate, times.used)
    compared = np.unique(numbers[low][numbers[low] != numbers[high]])
    return candidate.levels[compared[0]] if compared.size == 1 else ""


def quantile_donors(values: np.ndarray, configuration: np.ndarray, weight: np.ndarray, share: float) -> np.ndarray:
    """Return for each row the row of its configuration that has the quantile of a cause: a value that was observed.

    Parameters
    ----------
    values : ndarray of float, shape (n_rows,)
    configuration : ndarray of int, shape (n_rows,)
    weight : ndarray of float, shape (n_rows,), positive
    share : float
        0 .. 1; the smallest value at which this share of the weight is reached.

    Returns
    -------
    ndarray of int, shape (n_rows,)
        Positions.
    """
    order = np.lexsort((values, configuration))
    numbers = configuration[order]
    firsts = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 1))
    lasts = np.append(firsts[1:], order.size)
    donors = np.empty(values.size, dtype=np.int64)
    for first, last in zip(firsts, lasts, strict=True):
        mine = order[first:last]
        reached = np.cumsum(weight[mine])
        at = min(int(np.searchsorted(reached, share * reached[-1] * (1 - 1e-12))), mine.size - 1)
        donors[mine] = mine[at]
    return donors


def level_numbers(candidate: Candidate, used: np.ndarray) -> np.ndarray:
    """Return the number of the level of each used row.

    Parameters
    ----------
    candidate : Candidate
        A category.
    used : ndarray of int, shape (n_used,)

    Returns
    -------
    ndarray of int, shape (n_used,)
        Positions in `candidate.levels`.
    """
    values = candidate.values[used]
    return (values * np.arange(1, values.shape[1] + 1)).sum(axis=1).round().astype(int)


def _named_level(candidate: Candidate, arrow: Arrow) -> int:
    """Return the position of the arrow's level."""
    return candidate.levels.index(arrow.level) if arrow.level in candidate.levels else 0


def _levels(times: ScopeTimes, candidate: Candidate, arrow: Arrow) -> tuple[np.ndarray, np.ndarray]:
    numbers = level_numbers(candidate, times.used)
    named = _named_level(candidate, arrow)
    typical = _typical_first(times, numbers) if candidate.group == PLACEMENT else None
    own = np.arange(numbers.size)
    low = own.copy()
    high = own.copy()
    of_low = of_high = 0
    for code in np.unique(times.configuration):
        mine = np.flatnonzero(times.configuration == code)
        has = mine[numbers[mine] == named]
        others = mine[numbers[mine] != named]
        if has.size and others.size:
            rows = np.bincount(numbers[others], times.weight[others])
            common = int(np.argmax(rows))
            if typical is not None:
                usual = rows >= USUAL_SHARE * rows.max()
                common = next(one for one in typical if one < usual.size and usual[one] and one != named)
            compared = others[numbers[others] == common]
            low[mine] = compared[0]
            high[mine] = has[0]
            of_low += compared.size
            of_high += has.size
    return (low, high) if min(of_low, of_high) >= FEWEST_LAUNCHES else (own, own)


def _typical_first(times: ScopeTimes, numbers: np.ndarray) -> list[int]:
    """Return the levels of the used rows, that of the median row first where they are ordered by how much longer than
    the mean of their configuration their launches take, then those beside it: the commonest of places with as many
    rows each may be a slow one.

    Parameters
    ----------
    times : ScopeTimes
    numbers : ndarray of int, shape (n_used,)
    """
    rows = np.bincount(numbers, times.weight)
    sums = np.bincount(numbers, times.weight * times.evidence.rows.signed[times.used])
    levels = np.flatnonzero(rows)
    levels = levels[np.argsort(sums[levels] / rows[levels], kind="stable")]
    reached = np.cumsum(rows[levels])
    middle = int(np.searchsorted(reached, reached[-1] / 2))
    away = np.abs(np.arange(levels.size) - middle)
    return levels[np.argsort(away, kind="stable")].tolist()


def _monotone(times: ScopeTimes, arrow: Arrow) -> bool:
    """Tell whether the mean does not both rise and fall with a number, beyond what the draws leave open."""
    values = times.evidence.candidate_of(arrow).values[times.used]
    donors: list[RowDonors] = [
        {arrow.name: quantile_donors(values, times.configuration, times.weight, share)} for share in DOSES
    ]
    steps = times.mean_changes([arrow], donors)
    sure = [step.value for step in steps if step.low > 0 or step.high < 0]
    up = math.fsum(step for step in sure if step > 0)
    down = -math.fsum(step for step in sure if step < 0)
    return min(up, down) <= TURN * max(up, down)

"""What each cause does to the time: with it at its 90th instead of its 10th percentile within the configuration, or at
its slowest instead of its fastest levels.

Of numbers that act at one end alone, in at most a tenth of the launches, this end is compared with all others.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from causeway.causal.data.observations import FEWEST_LAUNCHES, Candidate
from causeway.causal.data.outcome import Ends, Estimate, TimeEffect
from causeway.causal.effects.levels import LevelGroups, in_turn, level_groups
from causeway.causal.effects.scope_times import Cause, RowDonors, ScopeTimes, in_tail
from causeway.causal.preparation.categorical import MIN_LEVEL_ROWS, listed
from causeway.causal.statistics.basis import group_means
from causeway.core.formatting import setting_value

EDGE = 1e-9
"""Part of the launches that is none: the outermost rank of an end belongs to it."""
TAIL_TELLS = 4.0
"""So many times as much of the variance as among all other launches must such an end explain for it to be compared with
them: of a straight effect of a normal number its top tenth explains .6 times as much.
"""
TAIL_Z = 5.0
"""Standard errors that its mean must lie from theirs, as the best of many ends is asked."""


def tails_of(times: ScopeTimes, causes: Mapping[str, Cause], effective: Mapping[str, float]) -> dict[str, float]:
    """Return the share of launches at the one end where a number acts alone, negative for the lowest values, of each
    cause that does.

    Parameters
    ----------
    times : ScopeTimes
    causes : mapping of str to Cause
    effective : mapping of str to float, 0 to 1
        What a row counts for in independent ones.
    """
    tails = {name: _tail(times, cause, effective[name]) for name, cause in causes.items()}
    return {name: tail for name, tail in tails.items() if tail}


def _tail(times: ScopeTimes, cause: Cause, effective: float) -> float:
    """Return the share of launches at the one end of a number that acts alone; 0 where none does."""
    candidate = times.candidates[cause.name]
    weight = times.weight * times.known(cause.name)
    rows = np.flatnonzero(weight > 0)
    if candidate.levels or candidate.two_valued or rows.size <= 2 * FEWEST_LAUNCHES:
        return 0.0
    ranks = times.ranks(cause.name)[rows]
    response = times.adjusted(cause)[rows]
    weight = weight[rows] / weight[rows].sum()
    response = response - weight @ response
    tail = 0.0
    most = 0.0
    for sign in (1, -1):
        outermost = np.argsort(-sign * ranks, kind="stable")
        part = np.cumsum(weight[outermost])
        mean = np.cumsum((weight * response)[outermost]) / part
        between = mean**2 * part / (1 - np.minimum(part, 0.5))  # of the variance, by the end and all others
        ordered = ranks[outermost]
        usable = (part <= LOW) & (np.diff(ordered, append=np.inf) != 0)
        usable[: FEWEST_LAUNCHES - 1] = False
        if not usable.any():
            continue
        index = int(np.argmax(np.where(usable, between, 0.0)))
        end = outermost[: index + 1]
        rest = outermost[index + 1 :]
        cross = np.cov(response[rest], ranks[rest], aweights=weight[rest])
        slope = (1 - part[index]) * cross[0, 1] ** 2 / cross[1, 1] if cross[1, 1] > 0 else 0.0
        error = np.sqrt(response[end].var() / max(end.size * effective, 1.0))
        if between[index] > max(most, TAIL_TELLS * slope) and abs(mean[index]) > TAIL_Z * error:
            most = between[index]
            tail = 1 - float(ordered[index]) + EDGE if sign > 0 else -float(ordered[index]) - EDGE
    return tail


def tail_and_rest(times: ScopeTimes, candidate: Candidate) -> tuple[np.ndarray, np.ndarray]:
    """Return for each used row the donors of a number that acts at one end alone: the other launches of its
    configuration in turn and those of the end in turn, the lower ones first; the row itself where its configuration
    lacks either.

    Returns
    -------
    low, high : ndarray of int, shape (n_used,)
    """
    tail = times.tails[candidate.name]
    weight = times.weight * times.known(candidate.name)
    end = in_tail(times.ranks(candidate.name), tail)
    donors = np.tile(np.arange(times.used.size), (2, 1))
    for code in np.unique(times.configuration):
        rows = np.flatnonzero(times.configuration == code)
        usable = rows[weight[rows] > 0]
        sides = [usable[end[usable] == at_end] for at_end in (tail < 0, tail > 0)]
        if all(side.size for side in sides):
            donors[:, rows] = [in_turn(side, rows.size) for side in sides]
    return donors[0], donors[1]


def ends_of_tail(times: ScopeTimes, candidate: Candidate, moved: np.ndarray) -> Ends:
    """Return the launches at one end of a number, which are compared with all others.

    Parameters
    ----------
    times : ScopeTimes
    candidate : Candidate
    moved : ndarray of bool, shape (n_used,)
        Where the two settings differ.
    """
    name = candidate.name
    tail = times.tails[name]
    is_known = times.known(name)
    end = in_tail(times.ranks(name), tail) & is_known & moved
    rest = ~end & is_known & moved
    is_upper = tail > 0
    words = f"their {'highest' if is_upper else 'lowest'} {100 * abs(tail):.2g} % in the configuration"
    others = f"{'lower' if is_upper else 'higher'} values"
    means: list[float | None] = [None, None]
    number = times.evidence.prepared.numbers.get(name)
    if number is not None and not np.ptp(times.configuration[moved]):
        measured = np.asarray(number.column.values, dtype=float)[times.used]
        cut = setting_value(float(measured[end].min() if is_upper else measured[end].max()), candidate.unit)
        words = f"{cut} and {'above' if is_upper else 'below'}"
        means = [times.mean_time(rest), times.mean_time(end)]
    sides = [(others, rest, means[0]), (words, end, means[1])]
    low, high = sides if is_upper else sides[::-1]
    return Ends(
        low=low[0],
        high=high[0],
        launches_low=times.launches(low[1]),
        launches_high=times.launches(high[1]),
        are_everywhere=True,
        mean_low=low[2],
        mean_high=high[2],
        tail=tail,
    )


LOW = 0.1
HIGH = 1 - LOW
WORTH_NAMING = 0.25
"""Part of the way from the fastest to the slowest levels from which further slow ones are named."""
DOSES = (LOW, 0.3, 0.5, 0.7, HIGH)
"""Quantiles at which the mean is compared to tell whether it rises and falls."""


class Compared:
    """The two settings of a cause that are compared.

    Parameters
    ----------
    times : ScopeTimes
    cause : Cause
    effective : float, 0 to 1
        What a row counts for in independent ones.

    Attributes
    ----------
    used, configuration : ndarray of int, shape (n_used,)
        As of `times`.
    low, high : ndarray of int, shape (n_used,)
        Used rows whose values are taken.
    better : ndarray of int, shape (n_used,)
        The rows whose values launches would have without the cost.
    moved : ndarray of bool, shape (n_used,)
        Where both settings differ.
    groups : LevelGroups or None
        Of a category.
    direction : ndarray of float, shape (n_used,)
        The cause as a number: in standard deviations, or whether a launch has one of the slowest levels.
    """

    def __init__(self, times: ScopeTimes, cause: Cause, effective: float) -> None:
        self.used = times.used  # not `times`, which holds this: a search's arrays would stay until a collection
        self.configuration = times.configuration
        self.candidate = times.candidates[cause.name]
        self.groups: LevelGroups | None = None
        own = np.arange(times.used.size)
        values = self.candidate.values[times.used]
        if self.candidate.levels:
            self.groups = self._groups(times, cause, effective)
            self.low = self.groups.low
            self.high = self.groups.high
            self.better = self.groups.usual
            numbers = self.candidate.codes[times.used]
            named = [self.candidate.levels.index(level) for level in self.groups.slow]
            self.direction = np.isin(numbers, named).astype(float)
        else:
            settings = tail_and_rest if cause.name in times.tails else extremes
            self.low, self.high = settings(times, self.candidate)
            self.better = self.low
            spread = float(values.std())
            self.direction = (values - values.mean()) / (spread if spread > 0 else 1.0)
        self.moved = (self.low != own) | (self.high != own)
        if not self._is_known():
            self.low = self.high = self.better = own
            self.moved = np.zeros(own.size, bool)

    def _groups(self, times: ScopeTimes, cause: Cause, effective: float) -> LevelGroups:
        """Return the groups of a category's levels by the time, or where that does not differ by the deviation."""
        numbers = self.candidate.codes[times.used]
        response = times.adjusted(cause)
        kernel = times.evidence.rows.kernel[times.used]
        given = (numbers, self.candidate.levels, times.configuration, kernel, times.weight)
        groups = level_groups(response, *given, times.time, effective)
        if groups.slow:
            return groups
        size = np.abs(response)
        means = group_means(size, times.configuration, times.weight)
        return level_groups(size - means[times.configuration], *given, times.time, effective)

    def _is_known(self) -> bool:
        """Tell whether enough launches have both of the values that are compared."""
        if not (self.groups or self.candidate.two_valued):
            return True
        return bool(min(map(np.count_nonzero, self.sides())) >= MIN_LEVEL_ROWS)

    def sides(self) -> tuple[np.ndarray, np.ndarray]:
        """Return which used rows have a low and which a high value, of a category or a number with two values; bool,
        shape (n_used,) each.
        """
        values = self.candidate.values[self.used]
        if not self.groups:
            return tuple((values == values[side]) & self.moved for side in (self.low, self.high))
        numbers = self.candidate.codes[self.used]
        pairs = self.configuration * (len(self.candidate.levels) + 1) + numbers
        return tuple(np.isin(pairs, pairs[side[self.moved]]) & self.moved for side in (self.low, self.high))


def time_effect(times: ScopeTimes, cause: Cause, compared: Compared) -> TimeEffect | None:
    """Return what a cause does to the time; None where its values cannot be compared, as too few launches have one."""
    if not compared.moved.any():
        return None
    low, high = ({cause.name: side} for side in (compared.low, compared.high))
    between = times.change([cause], high, low, _without_excluding(times, compared.candidate, cause))
    better = compared.better if compared.groups or between.mean.value > 0 else compared.high
    return TimeEffect(
        mean=between.mean,
        p50=between.p50,
        p99=between.p99,
        spread=between.spread,
        of_first=between.of_first,
        cost=times.saved([cause], {cause.name: better}),
        launches=times.launches(compared.moved),
        recorded=float(np.average(times.known(cause.name)[compared.moved], weights=times.weight[compared.moved])),
        monotone=bool(compared.candidate.levels) or compared.candidate.two_valued or _monotone(times, cause),
        ends=_ends_of(times, compared),
    )


def _ends_of(times: ScopeTimes, compared: Compared) -> Ends | None:
    """Return what is compared, where it is not two percentiles."""
    if compared.groups:
        return _ends_of_levels(times, compared, compared.groups)
    name = compared.candidate.name
    return ends_of_tail(times, compared.candidate, compared.moved) if name in times.tails else _ends(times, compared)


def _ends_of_levels(times: ScopeTimes, compared: Compared, groups: LevelGroups) -> Ends:
    """Return the groups of levels that are compared, with their means where the difference costs most."""
    low, high = compared.sides()
    shown = times.configuration == groups.shown
    means: list[float | None] = [None, None]  # of several kernels one configuration's say nothing of the change of all
    if not np.ptp(times.evidence.rows.kernel[times.used]):
        means = [times.mean_time(side & shown) for side in (low, high)]
    fast, slow = means
    return Ends(
        low=listed(groups.fast),
        high=listed(groups.slow),
        launches_low=times.launches(low),
        launches_high=times.launches(high),
        are_everywhere=True,
        mean_low=fast,
        mean_high=slow,
        levels_low=groups.fast,
        slower=tuple(
            (listed(levels), mean)
            for levels, mean in groups.slower
            if fast is not None and slow is not None and mean - fast > WORTH_NAMING * (slow - fast)
        ),
        configuration="" if groups.configuration is None else times.configuration_name(groups.shown),
    )


def _ends(times: ScopeTimes, compared: Compared) -> Ends | None:
    """Return what is compared of a number where its percentiles are equal."""
    candidate = compared.candidate
    low = compared.low
    high = compared.high
    values = candidate.values[times.used]
    is_known = times.known(candidate.name)
    donors = [quantile_donors(values, times.configuration, times.weight * is_known, share) for share in (LOW, HIGH)]
    is_moved = values[low] != values[high]
    at_ends = is_moved & (values[donors[0]] == values[donors[1]])
    if not at_ends.any() and not candidate.two_valued:
        return None
    at_ends = is_moved if candidate.two_valued else at_ends
    column = next((column for column in times.evidence.columns if column.name == candidate.name), None)

    def words(rows: np.ndarray) -> str:
        measured = np.unique([] if column is None else np.asarray(column.values, dtype=float)[times.used][rows])
        is_one = measured.size == 1 and np.isfinite(measured[0])
        return setting_value(float(measured[0]), candidate.unit) if is_one else ""

    sides = at_ends & (values <= values[low]), at_ends & (values >= values[high])
    is_alike = candidate.two_valued and not np.ptp(times.configuration[is_moved])  # else the mix of sizes differs, too
    means = [times.mean_time(side) if is_alike and side.any() else None for side in sides]
    return Ends(
        low=words(low[at_ends]),
        high=words(high[at_ends]),
        launches_low=times.launches(sides[0]),
        launches_high=times.launches(sides[1]),
        are_everywhere=bool(np.array_equal(at_ends, is_moved)),
        mean_low=means[0],
        mean_high=means[1],
    )


def _without_excluding(times: ScopeTimes, candidate: Candidate, cause: Cause) -> np.ndarray:
    """Return which used rows met none of the causes that no launch met together with one: of launches beside a copy in
    one direction those beside a copy in the other tell nothing. All rows for a category; bool, shape (n_used,).
    """
    excluded = np.zeros(times.used.size, dtype=bool)
    if candidate.levels:
        return ~excluded
    own = _above_least(candidate.values[times.used], times.configuration)
    for name, other in times.candidates.items():
        if name == cause.name or other.levels:
            continue
        others = _above_least(other.values[times.used], times.configuration)
        if own.any() and not np.any(own & others):
            excluded |= others
    return ~excluded


def _above_least(values: np.ndarray, configuration: np.ndarray) -> np.ndarray:
    """Return which values are not the smallest of their configuration."""
    least = np.full(int(configuration.max()) + 1, np.inf)
    np.minimum.at(least, configuration, values)
    return values > least[configuration]


def extremes(times: ScopeTimes, candidate: Candidate) -> tuple[np.ndarray, np.ndarray]:
    """Return for each used row the donors that are compared of a number: low and high values of its configuration, of
    launches in which it is known.

    Where the 10th and the 90th percentile are equal, they are the lowest and the highest value that `FEWEST_LAUNCHES`
    launches reach; where these are equal too, the row itself. Of a number with two values these are compared.

    Returns
    -------
    low, high : ndarray of int, shape (n_used,)
    """
    values = candidate.values[times.used]
    weight = times.weight * times.known(candidate.name)
    low = quantile_donors(values, times.configuration, weight, LOW)
    high = quantile_donors(values, times.configuration, weight, HIGH)
    same = (values[low] == values[high]) & _varies(values, times.configuration)
    if same.any():
        alike = (weight > 0).astype(float)
        fewest = MIN_LEVEL_ROWS if candidate.two_valued else FEWEST_LAUNCHES
        share = min((fewest - 0.5) / np.count_nonzero(same), 0.5)  # of 19 launches less than that, of 20 more
        low = np.where(same, quantile_donors(values, times.configuration, alike, share), low)
        high = np.where(same, quantile_donors(values, times.configuration, alike, 1 - share), high)
    constant = values[low] == values[high]
    own = np.arange(values.size)
    return np.where(constant, own, low), np.where(constant, own, high)


def _varies(values: np.ndarray, configuration: np.ndarray) -> np.ndarray:
    """Return which rows are of a configuration in which values differ, bool, shape (n_rows,)."""
    return np.isin(configuration, configuration[_above_least(values, configuration)])


def quantile_donors(values: np.ndarray, configuration: np.ndarray, weight: np.ndarray, share: float) -> np.ndarray:
    """Return for each row the row of its configuration that has the quantile of a cause: a value that was observed.

    Parameters
    ----------
    values : ndarray of float, shape (n_rows,)
    configuration : ndarray of int, shape (n_rows,)
    weight : ndarray of float, shape (n_rows,)
        0 where the value is not known; the row itself where a configuration has no weight.
    share : float
        0 to 1.

    Returns
    -------
    ndarray of int, shape (n_rows,)
    """
    order = np.lexsort((values, configuration))
    numbers = configuration[order]
    firsts = np.flatnonzero(np.diff(numbers, prepend=numbers[0] - 1))
    lasts = np.append(firsts[1:], order.size)
    donors = np.arange(values.size)
    for first, last in zip(firsts, lasts, strict=True):
        rows = order[first:last]
        reached = np.cumsum(weight[rows])
        if reached[-1] > 0:
            index = min(int(np.searchsorted(reached, share * reached[-1] * (1 - 1e-12))), rows.size - 1)
            donors[rows] = rows[index]
    return donors


def _monotone(times: ScopeTimes, cause: Cause) -> bool:
    """Tell whether the mean does not both rise and fall with a number, beyond what the draws leave open."""
    values = times.candidates[cause.name].values[times.used]
    weight = times.weight * times.known(cause.name)
    donors: Sequence[RowDonors] = [
        {cause.name: quantile_donors(values, times.configuration, weight, share)} for share in DOSES
    ]
    steps: list[Estimate] = times.mean_changes([cause], donors)
    return not (any(step.low > 0 for step in steps) and any(step.high < 0 for step in steps))

"""Numbers that act at one end alone, in at most a tenth of the launches, which is compared with all others."""

from collections.abc import Mapping

import numpy as np

from causeway.causal.data.observations import Candidate
from causeway.causal.data.outcome import Ends
from causeway.causal.effects.levels import in_turn
from causeway.causal.effects.scope_times import Cause, ScopeTimes, in_tail
from causeway.core.formatting import setting_value

FEWEST_LAUNCHES = 20
"""Launches that are compared at one end of a number, or that have its lowest or highest values where its percentiles
are equal: the mean of so many is known to 0.22 of their standard deviation, 1 / sqrt(20).
"""
LONGEST_TAIL = 0.1
"""Share of the launches at one end of a number that may act alone: what the 10th and the 90th percentile miss."""
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
    found = {name: _tail(times, cause, effective[name]) for name, cause in causes.items()}
    return {name: tail for name, tail in found.items() if tail}


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
    found = 0.0
    most = 0.0
    for sign in (1, -1):
        outermost = np.argsort(-sign * ranks, kind="stable")
        part = np.cumsum(weight[outermost])
        mean = np.cumsum((weight * response)[outermost]) / part
        between = mean**2 * part / (1 - np.minimum(part, 0.5))  # of the variance, by the end and all others
        ordered = ranks[outermost]
        usable = (part <= LONGEST_TAIL) & (np.diff(ordered, append=np.inf) != 0)
        usable[: FEWEST_LAUNCHES - 1] = False
        if not usable.any():
            continue
        at = int(np.argmax(np.where(usable, between, 0.0)))
        end = outermost[: at + 1]
        rest = outermost[at + 1 :]
        cross = np.cov(response[rest], ranks[rest], aweights=weight[rest])
        slope = (1 - part[at]) * cross[0, 1] ** 2 / cross[1, 1] if cross[1, 1] > 0 else 0.0
        error = np.sqrt(response[end].var() / max(end.size * effective, 1.0))
        if between[at] > max(most, TAIL_TELLS * slope) and abs(mean[at]) > TAIL_Z * error:
            most = between[at]
            found = 1 - float(ordered[at]) + EDGE if sign > 0 else -float(ordered[at]) - EDGE
    return found


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
    known = times.known(name)
    end = in_tail(times.ranks(name), tail) & known & moved
    rest = ~end & known & moved
    is_upper = tail > 0
    words = f"their {'highest' if is_upper else 'lowest'} {100 * abs(tail):.2g} % in the configuration"
    others = f"{'lower' if is_upper else 'higher'} values"
    means: list[float | None] = [None, None]
    number = times.evidence.prepared.numbers.get(name)
    if number is not None and not np.ptp(times.configuration[moved]):
        measured = np.asarray(number.column.values, dtype=float)[times.used]
        cut = setting_value(float(measured[end].min() if is_upper else measured[end].max()), candidate.unit)
        words = f"{cut} and {'above' if is_upper else 'below'}"
        time = (times.evidence.rows.mean + times.evidence.rows.signed)[times.used]
        means = [float(np.average(time[rows], weights=times.weight[rows])) for rows in (rest, end)]
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

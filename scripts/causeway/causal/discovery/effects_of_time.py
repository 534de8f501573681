"""Counters that are an effect of the time: energy, polls while running, anything that counts on while a launch lasts.

Such a column tells of each cause of the time what the time tells, and no more: given the time it has nothing to do
with it. A cause has: of two causes that act on the time, each says something of the other once the time is known.
Which columns are causes is known of what lies before the launch, and of two counters that are unrelated until the time
is given, as causes of a common effect are.

References
----------
J. Pearl, Causality, 2nd ed. (2009), 1.2.3: d-separation at a collider and on a chain.
"""

from collections.abc import Sequence

import numpy as np

from causeway.causal.data.observations import Candidate, Observations
from causeway.causal.selection.stages import Stages
from causeway.causal.statistics.basis import normal_scores

REASON = "an effect of the time: what it tells of the causes follows from the time alone"
NEAREST = 12
"""So many columns, those nearest to the time, are asked."""
RELATED = 20.0
"""Squared correlation times effective rows from which two columns are related: p = 1e-5, for some hundred pairs."""
UNRELATED = 6.0
"""The same below which two columns are not related: p = .01."""
EXPLAINED = 0.1
"""Share of a squared correlation that may be left given the time, of columns whose scores are not quite normal; it must
be left with its sign, as given their effect two causes turn it.
"""


def effects_of_time(
    candidates: list[Candidate], stages: Stages, rows: Observations, deviation: np.ndarray
) -> dict[str, str]:
    """Return the chosen counters that are effects of the time, each with the reason.

    Parameters
    ----------
    candidates : list of Candidate
        In the order of the search.
    stages : Stages
    rows : Observations
    deviation : ndarray of float, shape (n_rows,)
        Standardised.
    """
    chosen = [
        index for index in stages.parents() if candidates[index].tier == "counter" and not candidates[index].levels
    ]
    if not chosen:
        return {}
    sizes = [test.n_effective for stage in stages.both for test in stage.tests]
    numbers = [index for index, one in enumerate(candidates) if not one.levels]
    in_scores = _correlations(stages, normal_scores(deviation), [candidates[index].first for index in numbers])
    near = np.argsort(-np.abs(in_scores[1:, 0]), kind="stable")[:NEAREST]
    asked = np.unique([*near, *(numbers.index(index) for index in chosen)])
    as_measured = _correlations(stages, deviation, [candidates[numbers[at]].values for at in asked])
    in_scores = in_scores[np.ix_(np.append(0, 1 + asked), np.append(0, 1 + asked))]
    with_time = in_scores[1:, 0]
    plain = in_scores[1:, 1:]
    given = _partial(plain, with_time)
    given_measured = _partial(as_measured[1:, 1:], as_measured[1:, 0])
    n = min(sizes)
    is_root = np.asarray([candidates[numbers[at]].tier != "counter" for at in asked])
    acts = n * with_time**2 > RELATED
    opposed = (n * plain**2 < UNRELATED) & (n * given**2 > RELATED)
    found = {}
    for index in chosen:
        own = int(np.searchsorted(asked, numbers.index(index)))
        causes = acts & (is_root | (opposed & acts).any(axis=1))
        causes[own] = False
        left = (with_time - plain[own] * with_time[own]) / np.sqrt(
            np.maximum((1 - plain[own] ** 2) * (1 - with_time[own] ** 2), 1e-12)
        )
        tells = causes & (n * plain[own] ** 2 > RELATED) & (n * left**2 > RELATED)
        through_time = _is_rest(plain[own], given[own], n)
        through_time &= _is_rest(as_measured[1 + own, 1:], given_measured[own], n)
        if tells.any() and np.all(through_time[causes]):
            found[candidates[index].name] = REASON
    return found


def _correlations(stages: Stages, time: np.ndarray, columns: Sequence[np.ndarray]) -> np.ndarray:
    """Return the correlations within configurations of the time, which is first, and of columns, shape (k, k)."""
    unit = stages.centring.weighted(np.column_stack([time, *columns]))
    lengths = np.sqrt((unit**2).sum(axis=0))
    unit /= np.where(lengths > 0, lengths, 1.0)
    return unit.T @ unit


def _is_rest(plain: np.ndarray, given: np.ndarray, n: float) -> np.ndarray:
    """Tell which correlations given the time are nothing, or a rest of what they are without it."""
    return ((given * plain > 0) & (given**2 < EXPLAINED * plain**2)) | (n * given**2 < UNRELATED)


def _partial(correlations: np.ndarray, with_time: np.ndarray) -> np.ndarray:
    """Return the correlations of columns given the time, shape (k, k)."""
    left = np.sqrt(np.maximum(1 - with_time**2, 1e-12))
    return (correlations - np.outer(with_time, with_time)) / np.outer(left, left)

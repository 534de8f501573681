"""Which of the features of the program's order is a candidate: where nothing says better what a launch works on.

Launches of one kernel that the program makes in different places work on different tensors and have times of their
own. The launches before on the stream, and the order in the step, tell such places apart but not what differs there. An
operator, a module or the size of an input says that; where it tells about as much of the time, it is the better
name, and the order beside it would take a part of its effect or all. The launch before the last matters where it, and
nothing else, decides what is in the caches.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from causeway.causal.data.feature_roles import HOST_RECORD, LAUNCHED_SECOND_AFTER, PROGRAM_ORDER
from causeway.causal.data.observations import Feature, Observations
from causeway.causal.data.outcome import Outcome
from causeway.causal.statistics.basis import GroupCentring
from causeway.core.feature_registry import NAMES_A_LAUNCH
from causeway.core.formatting import elided
from causeway.events.distinct_texts import distinct_texts

AS_MUCH = 0.5
"""What the host recorded must tell less than this share of what the order tells, or the order is no candidate; likewise
the other orders beside the launch before the last.
"""
CLEARLY_MORE = 0.05
"""Share of the variance by which one order must tell more than the one before it in `PROGRAM_ORDER`. Chosen."""
LONGEST_NAME = 400
"""Characters of a kernel's full name in a note: its template arguments say what it computes."""
TOLD_BY_RECORD = "what the host recorded of the launch tells as much"


def superfluous_orders(
    columns: Sequence[Feature], rows: Observations, response: np.ndarray, beside_record: bool = False
) -> dict[str, str]:
    """Return the features of the program's order that are no candidates, each with the reason.

    Parameters
    ----------
    columns : sequence of Feature
    rows : Observations
    response : ndarray of float, shape (n_rows,)
        Whose variance the features are asked for.
    beside_record : bool
        One is a candidate even where what the host recorded tells as much.
    """
    orders = {one.name: one for one in columns if one.name in PROGRAM_ORDER}
    if np.ptp(rows.kernel):
        return dict.fromkeys(orders, "stands for something else in each kernel")

    response = GroupCentring(rows.configuration, rows.weight).centred(response)

    def told(*features: Feature) -> float:
        return variance_between(response, _groups(rows.configuration, features), rows.weight)

    shares = {name: told(orders[name]) for name in PROGRAM_ORDER if name in orders}
    if not shares:
        return {}
    best, *others = shares
    for name in others:
        allowed = AS_MUCH * shares[name] if name == LAUNCHED_SECOND_AFTER else shares[name]
        if shares[name] > shares[best] + CLEARLY_MORE and shares[best] <= allowed:
            best = name
    reasons = dict.fromkeys(set(shares) - {best}, f"tells no more of where the program makes a launch than {best}")
    recorded = [] if beside_record else [one for one in columns if one.name in HOST_RECORD]
    known = max((told(*features) for features in (*((one,) for one in recorded), recorded) if features), default=0.0)
    if known > 0 and known >= AS_MUCH * shares[best]:
        reasons[best] = TOLD_BY_RECORD
    return reasons


def with_kernel_names(outcome: Outcome, names: Mapping[str, str]) -> Outcome:
    """Return an outcome with a note on each kernel whose id stands in the level of a cause: its full name.

    Parameters
    ----------
    outcome : Outcome
    names : mapping of str to str
        Full name by id.
    """
    named = [arrow for arrow in outcome.arrows if arrow.name in NAMES_A_LAUNCH]
    levels = [level.split(" (grid")[0] for arrow in named for level in arrow.levels]
    notes = [f"{one} is the kernel {elided(names[one], LONGEST_NAME)}" for one in levels if one in names]
    return replace(outcome, notes=(*notes, *outcome.notes))


def _groups(configuration: np.ndarray, features: Sequence[Feature]) -> np.ndarray:
    """Return the number of the group of each row: those of one configuration that agree in all features."""
    codes = configuration
    for one in features:
        is_text = one.values.dtype == object
        distinct, own = distinct_texts(one.values.tolist()) if is_text else np.unique(one.values, return_inverse=True)
        codes = np.unique(codes.astype(np.int64) * distinct.size + own, return_inverse=True)[1]
    return codes


def variance_between(response: np.ndarray, groups: np.ndarray, weight: np.ndarray) -> float:
    """Return the share of the variance that lies between groups: predicted for each row by the mean of the other rows
    of its group, so that many small groups tell nothing.

    Parameters
    ----------
    response : ndarray of float, shape (n,)
        With a mean of about 0, which is predicted for a row alone in its group.
    groups : ndarray of int, shape (n,)
        From 0.
    weight : ndarray of float, shape (n,), positive

    Returns
    -------
    float
        At most 1; 0 or less where groups tell nothing.

    >>> around = np.array([1.0, 1.0, -1.0, -1.0])
    >>> variance_between(around, np.array([0, 0, 1, 1]), np.ones(4)), variance_between(around, np.arange(4), np.ones(4))
    (1.0, 0.0)
    """
    total = np.bincount(groups, weight * response)
    size = np.bincount(groups, weight)
    alone = np.bincount(groups)[groups] == 1
    rest = np.where(alone, 1.0, size[groups] - weight)
    predicted = np.where(alone, 0.0, (total[groups] - weight * response) / rest)
    before = float(weight @ response**2)
    return 1.0 - float(weight @ (response - predicted) ** 2) / before if before > 0 else 0.0

"""What is known of features before any data (`prior_knowledge`): which of them say the same of a launch in less detail,
which act through another one alone, which way they can act, and which stand for the place of a launch.

*The program's order.* Launches of one kernel that the program makes in different places work on different tensors and
have times of their own. The launches before on the stream, and the order in the step, tell such places apart but not
what differs there. An operator, a module or the size of an input says that; where it tells about as much of the time,
it is the better name, and the order beside it would take a part of its effect or all. The launch before the last
matters where it, and nothing else, decides what is in the caches.

*Ranks, devices, nodes, runs.* On a slow device all kernels take longer, so that each one begins later in its step. The
position in the step then tells the slow device from the others as well as its name does, with fewer degrees of freedom,
and is no cause but an effect. If it were one, the launches of a single place would follow it, too.

*Definitional parents.* What a target is computed from is taken out of it before its causes are searched.

The memory stall is |duration of the launch - duration of its linked transfer|. How long a transfer takes follows from
its bytes and its direction, so these two explain most of the target by arithmetic, with a sign that depends on which
of the two lasts longer. They are half of the definition and no causes. What they explain of the deviation is predicted
by a flexible model and taken out; the search then asks why this launch's transfer is exposed beyond what its bytes and
direction explain.

The predictions are cross-fitted: those of a block of time come from a model of the other blocks, or the model would
take out a part of what the causes did (V. Chernozhukov et al., Double/debiased machine learning, Econom. J. 21 (2018)
C1).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import numpy as np

from causeway.causal.data.feature_names import (
    HOST_RECORD,
    KERNEL_IN_FLIGHT,
    LAUNCHED_SECOND_AFTER,
    LAYOUT,
    PROGRAM_ORDER,
)
from causeway.causal.data.observations import Candidate, Feature, Observations
from causeway.causal.data.outcome import Outcome
from causeway.causal.preparation.categorical import MAX_LEVELS, PLACEMENT, category_candidates
from causeway.causal.selection.linear_model import STRONG
from causeway.causal.statistics.basis import GroupCentring, group_means
from causeway.core.codes import GPU_TIME
from causeway.core.feature_registry import NAMES_A_LAUNCH
from causeway.core.formatting import elided
from causeway.core.names.prior_knowledge import CLOCK, EXPOSURE, LEVER, knowledge_of
from causeway.core.vocabulary import KERNEL_VARIABILITY, MEMORY_STALL
from causeway.events.distinct_texts import distinct_texts
from causeway.numeric.process import single_threaded

DEFINED_BY: Mapping[str, tuple[str, ...]] = {MEMORY_STALL: ("transfer_bytes", "transfer_copy_kind")}
"""The features that define a target of the form |a - b|: those that a or b is a function of by arithmetic."""
REASON = "part of the target's definition: what it explains was taken out before the search"
FOLDS = 5
"""Parts of the rows, each predicted by a model of the others: the usual number of cross-fitting."""
BLOCKS_PER_FOLD = 4
"""Stretches of time that a fold consists of, so that a drift does not separate it from the others. Chosen."""
TREES = 50
RATE = 0.2
"""How much of each tree counts. Fifty trees explain what a hundred at 0.1 do, within .01 of the variance, in launches
of the H100 job, of the demo and of simulated runs, in 50 to 80 % of the time.
"""
LEAVES = 15


@dataclass(frozen=True, kw_only=True)
class WithoutDefinition:
    """A scope whose target was freed of its definitional parents.

    Attributes
    ----------
    rows : Observations
        The deviation, and the spread of each configuration, are those of what is left.
    dropped : tuple of str
        The definitional parents that the table has.
    explained : float or None
        Share of the deviation's variance that they explain, 0 .. 1, each configuration in its own standard deviations;
        None if there are none.
    """

    rows: Observations
    dropped: tuple[str, ...] = ()
    explained: float | None = None


def without_definition(columns: Sequence[Feature], rows: Observations, target: str, seed: int) -> WithoutDefinition:
    """Take out of the deviation what the columns that define the target explain of it.

    Parameters
    ----------
    columns : sequence of Feature
    rows : Observations
        In time order.
    target : str
    seed : int
        Of the model's trees.
    """
    defining = [column for column in columns if column.name in DEFINED_BY.get(target, ())]
    if not defining:
        return WithoutDefinition(rows=rows)
    names = tuple(sorted({column.name for column in defining}))
    centring = GroupCentring(rows.configuration, rows.weight)
    deviation = centring.centred(rows.signed)
    unit = _units(deviation, rows)
    # what is missing is a value of its own: sizes are never negative
    filled = [np.nan_to_num(_numbers(column).astype(float), nan=-1.0) for column in defining]
    design = [*filled, rows.mean, rows.configuration.astype(float)]
    left = centring.centred(deviation - unit * _cross_fitted(design, deviation / unit, rows.weight, seed))
    before = float(rows.weight @ (deviation / unit) ** 2)
    after = float(rows.weight @ (left / unit) ** 2)
    if after >= before:  # they vary too little to explain anything, and noise would be added
        return WithoutDefinition(rows=rows, dropped=names, explained=0.0)
    freed = replace(
        rows,
        signed=left,
        target=np.abs(left) if rows.absolute else rows.mean + left,
        std=_spread_of_configurations(left, rows),
        taken_out=rows.signed - left,
    )
    return WithoutDefinition(rows=freed, dropped=names, explained=1.0 - after / before)


def _cross_fitted(features: Sequence[np.ndarray], response: np.ndarray, weight: np.ndarray, seed: int) -> np.ndarray:
    """Return the prediction of the response for each row by trees that have not seen its block of time."""
    with single_threaded(["sklearn.ensemble", "sklearn.model_selection"]):  # takes a second to load
        from sklearn.ensemble import HistGradientBoostingRegressor
        from sklearn.model_selection import PredefinedSplit, cross_val_predict

        trees = HistGradientBoostingRegressor(
            max_iter=TREES,
            learning_rate=RATE,
            max_leaf_nodes=LEAVES,
            early_stopping=False,
            random_state=seed % 2**32,
        )
        folds = PredefinedSplit(np.arange(response.size) * FOLDS * BLOCKS_PER_FOLD // response.size % FOLDS)
        given = {"sample_weight": weight}
        return cross_val_predict(trees, np.column_stack(features), response, cv=folds, params=given)


def _units(deviation: np.ndarray, rows: Observations) -> np.ndarray:
    """Return what a deviation counts as one in, by row: the standard deviation of its configuration, as in the search.

    In nanoseconds the trees would explain the kernel whose stalls scatter most, and little of the others.
    """
    variance = group_means(deviation**2, rows.configuration, rows.weight)
    return np.sqrt(np.where(variance > 0, variance, 1.0))[rows.configuration]


def _spread_of_configurations(left: np.ndarray, rows: Observations) -> np.ndarray:
    """Return the standard deviation of what is left in each row's configuration; NaN where it was not known before."""
    variance = group_means(left**2, rows.configuration, rows.weight)
    counts = np.bincount(rows.configuration)
    corrected = np.sqrt(variance * counts / np.maximum(counts - 1, 1))[rows.configuration]
    return np.where(np.isfinite(rows.std), corrected, np.nan)


TELLS_ENOUGH = 0.5
"""Share of what an order of the program tells, from which another column is asked in its place: the last launch in that
of the launch before it, what the host recorded in that of any.
"""
LONGEST_NAME = 400
"""Characters of a kernel's full name in a note: its template arguments say what it computes."""
TOLD_BY_RECORD = "what the host recorded of the launch tells as much"
IN_FLIGHT = "launches_in_flight"
IDLE = "idle_before_ns"
ALL_TOLD = 1e-6
"""Share of the variance that is left where all is told: which of two tells more of it is rounding."""


def clocks_of_places(
    columns: Sequence[Feature], rows: Observations, response: np.ndarray, n_independent: float
) -> dict[str, str]:
    """Return the clocks that say where a launch ran rather than when, each with the reason.

    Parameters
    ----------
    columns : sequence of Feature
    rows : Observations
    response : ndarray of float, shape (n_rows,)
        What the clocks could explain.
    n_independent : float
        The number of independent rows.

    Notes
    -----
    A clock is one if its slope over all launches, set within the places, leaves more of the variance there than no
    slope at all: strong evidence by the likelihood, which has no degree of freedom here.
    """
    context = [column for column in columns if column.tier == "context"]
    clocks = [column for column in context if column.knowledge.role == CLOCK and column.values.dtype != object]
    reasons = {}
    for place in context:
        if place.group != PLACEMENT or place.knowledge.role != EXPOSURE or place.values.dtype != object:
            continue
        for clock in clocks:
            if n_independent * _contradiction(clock.values, place, rows, response) > STRONG:
                reasons[clock.name] = (
                    f"differs with {place.name}, and launches of the same {place.name} do not follow it"
                )
    return reasons


def _contradiction(values: np.ndarray, place: Feature, rows: Observations, response: np.ndarray) -> float:
    """Return by how much the logarithm of the variance within places rises if they have the slope of all launches."""
    finite = np.isfinite(values)
    if finite.sum() < 2:
        return 0.0
    codes = distinct_texts(place.values[finite].tolist())[1]
    configuration = rows.configuration[finite].astype(np.int64)
    weight = rows.weight[finite]
    overall = GroupCentring(np.unique(configuration, return_inverse=True)[1], weight)
    own = GroupCentring(np.unique(configuration * (codes.max() + 1) + codes, return_inverse=True)[1], weight)
    clock, wanted = (overall.weighted(part) for part in (values[finite], response[finite]))
    length = float(clock @ clock)
    if length <= 0:
        return 0.0
    slope = float(clock @ wanted) / length
    clock, wanted = (own.weighted(part) for part in (values[finite], response[finite]))
    without = float(wanted @ wanted)
    left = wanted - slope * clock
    return float(np.log(float(left @ left) / without)) if without > 0 else 0.0


def superfluous_orders(
    columns: Sequence[Feature],
    rows: Observations,
    response: np.ndarray,
    n_independent: float,
    beside_record: bool = False,
) -> dict[str, str]:
    """Return the features of the program's order that are no candidates, each with the reason.

    Parameters
    ----------
    columns : sequence of Feature
    rows : Observations
    response : ndarray of float, shape (n_rows,)
        Whose variance the features are asked for.
    n_independent : float
        Independent rows.
    beside_record : bool
        One is a candidate even where what the host recorded tells as much.
    """
    orders = {column.name: column for column in columns if column.name in PROGRAM_ORDER}
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
        allowed = TELLS_ENOUGH * shares[name] if name == LAUNCHED_SECOND_AFTER else shares[name]
        left = [max(1.0 - shares[order], ALL_TOLD) for order in (best, name)]
        if n_independent * np.log(left[0] / left[1]) > STRONG and shares[best] <= allowed:
            best = name
    reasons = dict.fromkeys(set(shares) - {best}, f"tells no more of where the program makes a launch than {best}")
    recorded = [] if beside_record else [column for column in columns if column.name in HOST_RECORD]
    host_share = max(
        (told(*features) for features in (*((column,) for column in recorded), recorded) if features), default=0.0
    )
    if host_share > 0 and host_share >= TELLS_ENOUGH * shares[best]:
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
    notes = [f"{level} is the kernel {elided(names[level], LONGEST_NAME)}" for level in levels if level in names]
    return replace(outcome, notes=(*notes, *outcome.notes))


def _groups(configuration: np.ndarray, features: Sequence[Feature]) -> np.ndarray:
    """Return the number of the group of each row: those of one configuration that agree in all features."""
    codes = configuration
    for feature in features:
        distinct, own = np.unique(_numbers(feature), return_inverse=True)
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


def ruled_out(
    columns: Sequence[Feature], rows: Observations, response: np.ndarray, n_independent: float
) -> dict[str, str]:
    """Return the features that are no candidates beside others that were measured, each with the reason.

    Parameters
    ----------
    columns : sequence of Feature
        As measured.
    rows : Observations
    response : ndarray of float, shape (n_rows,)
        The deviation in standard deviations, clipped.
    n_independent : float
        Independent rows.
    """
    by_name = _recorded(columns)
    centring = GroupCentring(rows.configuration, rows.weight)
    varying = {name: feature for name, feature in by_name.items() if centring.varies(_numbers(feature))}

    def told(features: Sequence[Feature]) -> float:
        return _information(features, centring, response, n_independent) if features else 0.0

    reasons = {}
    if KERNEL_IN_FLIGHT in varying and np.ptp(rows.kernel):
        reasons[KERNEL_IN_FLIGHT] = "stands for something else in each kernel"
        del varying[KERNEL_IN_FLIGHT]
    reasons |= _less_detail(varying, told)
    for name, feature in by_name.items():
        behind = [other for other in _named(feature.knowledge.through, varying) if other not in reasons]
        if not behind or name in reasons or name in behind:
            continue
        if feature.knowledge.role != LEVER:
            reasons[name] = f"can act on a launch's time through {behind[0]} alone, which was measured"
        elif name in varying and told([*_together([varying[other] for other in behind]), feature]) <= STRONG + told(
            _together([varying[other] for other in behind])
        ):
            reasons[name] = f"{' and '.join(behind)} say as much"
    return reasons


def _named(patterns: Sequence[str], features: Mapping[str, Feature]) -> list[str]:
    """Return the features whose names fit one of some patterns, in order."""
    return [name for name in features if any(fnmatchcase(name, pattern) for pattern in patterns)]


def _together(features: Sequence[Feature]) -> list[Feature]:
    """Return features as one category where they take few values together, so that a time that is no line of them is
    told by them.
    """
    words = [" ".join(map(str, row)) for row in zip(*(feature.values for feature in features), strict=True)]
    if len(set(words)) > MAX_LEVELS:
        return list(features)
    return [replace(features[0], name="together", values=np.array(words, dtype=object))]


def _less_detail(varying: Mapping[str, Feature], told: Callable[[Sequence[Feature]], float]) -> dict[str, str]:
    """Return of features that say the same in more and in less detail those that are no candidates: the data must
    clearly prefer the detail, or what says it in less stays.
    """
    reasons: dict[str, str] = {}
    classes: dict[tuple, list[str]] = {}
    for name, feature in varying.items():
        if feature.knowledge.detail:
            classes.setdefault(feature.knowledge.detail, []).append(name)
    for detail, coarse in classes.items():
        alternatives = [matches for patterns in detail if (matches := _named(patterns, varying))]
        alternatives = [
            names for names in alternatives if _says_all([varying[name] for name in coarse], varying, names)
        ]
        if not alternatives:
            continue
        least = max(0.0, *(told([varying[name]]) for name in coarse))
        more = [names for names in alternatives if told([varying[name] for name in names]) > least + STRONG]
        parts = [names for names in alternatives if _is_all_that_changes(names, coarse, varying, told, least)]
        kept = next(iter([*more, *parts]), coarse)
        if kept is not coarse:
            reasons |= dict.fromkeys(coarse, f"{' and '.join(kept)} say more")
        others = {name for names in alternatives for name in names} - set(kept)
        reasons |= dict.fromkeys(sorted(others), f"{' and '.join(kept)} say as much")
    return reasons


def _is_all_that_changes(
    names: Sequence[str],
    coarse: Sequence[str],
    varying: Mapping[str, Feature],
    told: Callable[[Sequence[Feature]], float],
    least: float,
) -> bool:
    """Tell whether one column is the part of a sum that changes: it says as much, and is not the whole of it."""
    if len(names) > 1 or varying[names[0]].values.dtype == object:
        return False
    part = varying[names[0]]
    is_whole = any(np.array_equal(varying[name].values, part.values) for name in coarse)
    return not is_whole and told([part]) > least - STRONG


def _says_all(coarse: Sequence[Feature], varying: Mapping[str, Feature], names: Sequence[str]) -> bool:
    """Tell whether what counts something is nowhere above zero where all of its parts are zero: where copies without a
    direction were in flight, the bytes of each direction do not say all.
    """
    parts = [varying[name].values for name in names]
    if (
        any(whole.values.dtype == object or whole.knowledge.role == LEVER for whole in coarse)
        or parts[0].dtype == object
    ):
        return True
    return all(bool(np.all((whole.values > 0) <= (np.nansum(parts, axis=0) > 0))) for whole in coarse)


def _recorded(columns: Sequence[Feature]) -> dict[str, Feature]:
    """Return by name what says in which state a launch was made: a user's table may have columns of the same names,
    which mean what the user means. Numbers, and the categories that are compared with them.
    """
    own = (column for column in columns if column.tier == "context")
    return {
        column.name: column
        for column in own
        if (column.values.dtype == object) == (column.name in (KERNEL_IN_FLIGHT, LAYOUT))
    }


def _numbers(feature: Feature) -> np.ndarray:
    """Return the values of a feature, the numbers of its levels where it has such."""
    is_text = feature.values.dtype == object
    return distinct_texts(feature.values.tolist(), "")[1] if is_text else feature.values


def _information(
    features: Sequence[Feature], centring: GroupCentring, response: np.ndarray, n_independent: float
) -> float:
    """Return by how much the Bayesian information criterion of a linear model falls with some features, each number
    with its size and whether it is above zero, each category with its levels; below 0 where they say nothing.
    """
    design = centring.weighted(np.column_stack([_columns(feature) for feature in features]))
    wanted = centring.weighted(response)
    solution, _, rank, _ = np.linalg.lstsq(design, wanted, rcond=1e-9)
    left = float(np.sum((wanted - design @ solution) ** 2)) / max(float(wanted @ wanted), 1e-300)
    return -n_independent * float(np.log(max(left, ALL_TOLD))) - float(rank * np.log(n_independent))


def _columns(feature: Feature) -> np.ndarray:
    """Return what a linear model is given of a feature, shape (n_rows, n_columns)."""
    if feature.values.dtype == object:
        candidates, _ = category_candidates([(feature.name, feature)])
        return candidates[0].values if candidates else np.zeros((feature.values.size, 1))
    values = np.nan_to_num(feature.values.astype(float))
    return np.column_stack([values / max(values.max(), 1.0), values > 0])


def against_sign(outcome: Outcome, candidates: Sequence[Candidate]) -> dict[str, str]:
    """Return the causes of a time that act the way that they cannot, each with the reason why it is no candidate: it
    stands for something else, which a search without it may name.
    """
    if outcome.scope.target not in (KERNEL_VARIABILITY, GPU_TIME):
        return {}
    by_name = {candidate.name: candidate for candidate in candidates}
    reasons: dict[str, str] = {}
    for arrow in outcome.arrows:
        if arrow.name not in by_name or arrow.level:
            continue
        sign = by_name[arrow.name].knowledge.sign
        why = by_name[arrow.name].knowledge.why
        effect = arrow.in_time.mean if arrow.in_time else arrow.value_effect
        if (sign == "+" and effect.high < 0) or (sign == "-" and effect.low > 0):
            tier = by_name[arrow.name].tier
            alike = [name for name in arrow.node.members if name == arrow.name or knowledge_of(name, tier).sign == sign]
            reasons |= dict.fromkeys(alike, f"{why}: it stands for something else")
    return reasons


def idle_where_alone(columns: Sequence[Feature]) -> list[Feature]:
    """Return the features with the idle time before a launch unknown where another launch was in flight: the device was
    not idle then, which `launches_in_flight` says.
    """
    recorded = _recorded(columns)
    if IN_FLIGHT not in recorded or IDLE not in recorded:
        return list(columns)
    alone = replace(recorded[IDLE], values=np.where(recorded[IN_FLIGHT].values > 0, np.nan, recorded[IDLE].values))
    return [alone if column is recorded[IDLE] else column for column in columns]

"""The causes of one scope: from measured columns to arrows with effect, sign, share and a verdict.

Some counters are an effect of the time: energy, polls while running, anything that counts on while a launch lasts.
Such a column tells of each cause of the time what the time tells, and no more: given the time it has nothing to do
with it. A cause has: of two causes that act on the time, each says something of the other once the time is known.
Which columns are causes is known of what lies before the launch, and of two counters that are unrelated until the time
is given, as causes of a common effect are.

References
----------
J. Pearl, Causality, 2nd ed. (2009), 1.2.3: d-separation at a collider and on a chain.

Columns that correlate above `basis.SIMILARITY` are merged before the search. Yet a cause and its near copy (or its
mirror image, with the opposite sign) differ. The medoid is chosen without looking at the target; with the other causes
in the model, the data often tell the members apart, and the one that explains the target clearly best represents them.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from causeway.causal.data.feature_names import HOST_RECORD
from causeway.causal.data.observations import (
    Candidate,
    Drop,
    Dropped,
    Feature,
    Observations,
    clipped_deviation,
    configuration_spread,
    standardised_deviation,
)
from causeway.causal.data.outcome import CONFIGURATION, Arrow, Outcome, Scope
from causeway.causal.data.scopes import Totals
from causeway.causal.discovery.arrows import (
    association_beyond,
    detectable_share,
    parents_between,
    parents_within,
    scope_p_value,
    weigh,
    with_determination,
    without_controls,
)
from causeway.causal.discovery.between_configurations import configuration_effects
from causeway.causal.discovery.leakage_recheck import LeakageRecheck
from causeway.causal.discovery.mean_and_scale import mediated_parents, run_stages
from causeway.causal.effects.evidence import Evidence
from causeway.causal.preparation.categorical import pooling_notes
from causeway.causal.preparation.known_relations import REASON as DEFINITION
from causeway.causal.preparation.known_relations import (
    TOLD_BY_RECORD,
    against_sign,
    clocks_of_places,
    idle_where_alone,
    ruled_out,
    superfluous_orders,
    without_definition,
)
from causeway.causal.preparation.numeric_columns import RELATIVE_UNITS
from causeway.causal.preparation.prepare import CONTROL_NAMES, LEAKED, leaked_columns, prepare
from causeway.causal.preparation.prepared import Prepared
from causeway.causal.selection.backward import Stage, Stages
from causeway.causal.selection.lagged import without_slow_waves
from causeway.causal.selection.linear_model import RELATED, UNRELATED, VERY_STRONG, effective_sizes, linear_model_of
from causeway.causal.selection.problem import DesignCache, independent_rows
from causeway.causal.statistics.basis import build_basis, normal_scores, unit_length
from causeway.core.codes import CONSTANT_TARGET, NO_FEATURE
from causeway.core.formatting import counted
from causeway.core.vocabulary import SUPPORTED
from causeway.numeric.effective_size import REFUSED_BELOW, shown_below
from causeway.numeric.process import single_threaded
from causeway.numeric.seeds import derived_seed


def promote_better_members(stages: Stages, prepared: Prepared) -> bool:
    """Replace medoids among the parents by clearly better members; tell whether any was replaced."""
    changed = False
    for stage in stages.both:
        for index in stage.chosen:
            candidate = prepared.within[index]
            if candidate is not stage.pruner.candidates[index]:  # replaced since the search
                continue
            others = [name for name in candidate.members if name in prepared.stand_ins]
            if candidate.unit not in RELATIVE_UNITS:  # a ratio may hold the measured time itself and would win by that
                others = [name for name in others if prepared.stand_ins[name].unit not in RELATIVE_UNITS]
            if not others:
                continue
            best = _best(stage, index, others, prepared)
            if best is not None:
                prepared.promote(best)
                changed = True
    return changed


def _best(stage: Stage, index: int, names: list[str], prepared: Prepared) -> str | None:
    """Return the member whose basis leaves clearly less of the response than that of candidate `index`; None if there
    is none.
    """
    model = linear_model_of(stage.problem, stage.response, [other for other in stage.chosen if other != index])
    left = float(model.residual @ model.residual)

    def unexplained(values: np.ndarray) -> float:
        rest, _ = model.residual_with(build_basis([values], stage.centring).columns)
        return max(float(rest @ rest) / left, 1e-12) if left > 0 else 1.0

    own = unexplained(prepared.within[index].values)
    fits = sorted((unexplained(prepared.stand_ins[name].values), name) for name in names)
    gain = stage.problem.n_independent * np.log(own / fits[0][0])
    return fits[0][1] if gain > VERY_STRONG else None


FOLLOWS_TIME = "an effect of the time: what it tells of the causes follows from the time alone"
NEAREST_TO_TIME = 12
"""So many columns, those nearest to the time, are asked."""


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
    numbers = [index for index, candidate in enumerate(candidates) if not candidate.levels]
    in_scores = _with_time_first(stages, normal_scores(deviation), [candidates[index].first for index in numbers])
    near = np.argsort(-np.abs(in_scores[1:, 0]), kind="stable")[:NEAREST_TO_TIME]
    asked = np.unique([*near, *(numbers.index(index) for index in chosen)])
    as_measured = _with_time_first(stages, deviation, [candidates[numbers[position]].values for position in asked])
    in_scores = in_scores[np.ix_(np.append(0, 1 + asked), np.append(0, 1 + asked))]
    with_time = in_scores[1:, 0]
    plain = in_scores[1:, 1:]
    given = _given_time(plain, with_time)
    given_measured = _given_time(as_measured[1:, 1:], as_measured[1:, 0])
    n = min(sizes)
    is_root = np.asarray([candidates[numbers[position]].tier != "counter" for position in asked])
    acts = n * with_time**2 > RELATED
    opposed = (n * plain**2 < UNRELATED) & (n * given**2 > RELATED)
    reasons = {}
    for index in chosen:
        own = int(np.searchsorted(asked, numbers.index(index)))
        causes = acts & (is_root | (opposed & acts).any(axis=1))
        causes[own] = False
        left = (with_time - plain[own] * with_time[own]) / np.sqrt(
            np.maximum((1 - plain[own] ** 2) * (1 - with_time[own] ** 2), 1e-12)
        )
        tells = causes & (n * plain[own] ** 2 > RELATED) & (n * left**2 > RELATED)
        through_time = n * np.maximum(given[own] ** 2, given_measured[own] ** 2) < UNRELATED
        if tells.any() and np.all(through_time[causes]):
            reasons[candidates[index].name] = FOLLOWS_TIME
    return reasons


def _with_time_first(stages: Stages, time: np.ndarray, columns: Sequence[np.ndarray]) -> np.ndarray:
    """Return the correlations within configurations of the time, which is first, and of columns, shape (k, k)."""
    unit = unit_length(stages.centring.weighted(np.column_stack([time, *columns])))
    return unit.T @ unit


def _given_time(correlations: np.ndarray, with_time: np.ndarray) -> np.ndarray:
    """Return the correlations of columns given the time, shape (k, k)."""
    left = np.sqrt(np.maximum(1 - with_time**2, 1e-12))
    return (correlations - np.outer(with_time, with_time)) / np.outer(left, left)


RECHECK_ROUNDS = 8
"""So often at most is what was chosen rechecked, and the search repeated."""


def discover(
    columns: list[Feature],
    rows: Observations,
    scope: Scope,
    unsearched: Sequence[Dropped] = (),
    totals: Totals | None = None,
) -> tuple[Outcome, Evidence | None]:
    """Find the causes of the target in one scope, on one thread.

    Parameters
    ----------
    columns : list of Feature
        Features, one value per row.
    rows : Observations
        In time order.
    scope : Scope
    unsearched : sequence of Dropped
        What was recorded and is not among the columns; listed with what was dropped.

    Returns
    -------
    outcome : Outcome
        Neither corrected for the number of kernels nor examined. A refusal when the rows cannot carry an answer; never
        an exception for degenerate values.
    evidence : Evidence or None
        What the arrows were read from; None for a refusal.

    Notes
    -----
    Where the order of the program was left out for what the host recorded, and none of that is a supported cause or
    determines the time, the search is made again with the order; where waiting for something was found to make launches
    quicker, without that.
    """
    impossible: dict[str, str] = {}
    with single_threaded():
        outcome, evidence = _discover(columns, rows, scope, totals, impossible)
        for _ in range(RECHECK_ROUNDS):
            reasons = against_sign(outcome, evidence.prepared.within if evidence else ())
            if not reasons:
                break
            impossible |= reasons
            outcome, evidence = _discover(columns, rows, scope, totals, impossible)
        order_left_out = any(drop.reason == TOLD_BY_RECORD for drop in outcome.dropped)
        if order_left_out and not any(_is_record(arrow) for arrow in outcome.arrows):
            outcome, evidence = _discover(columns, rows, scope, totals, impossible, order_beside_record=True)
    dropped = sorted((*outcome.dropped, *unsearched), key=lambda drop: drop.feature)
    return replace(outcome, dropped=tuple(dropped)), evidence


def _is_record(arrow: Arrow) -> bool:
    """Tell whether an arrow is a cause that the host recorded, supported or, with too few independent rows to be, one
    that determines the time.
    """
    return arrow.name in HOST_RECORD and (arrow.verdict == SUPPORTED or arrow.determines_time)


def _discover(
    columns: list[Feature],
    rows: Observations,
    scope: Scope,
    totals: Totals | None,
    impossible: dict[str, str],
    order_beside_record: bool = False,
) -> tuple[Outcome, Evidence | None]:
    rows, columns, refusal = _usable(idle_where_alone(columns), rows)
    outcome = Outcome(
        scope=scope,
        seed=derived_seed(scope.seed, scope.dataset, scope.target, scope.scope),
        n_rows=len(rows),
        n_effective=0.0,
        n_kernels=max(np.unique(rows.kernel).size, 1),
    )
    if refusal:
        return replace(outcome, refusal=refusal), None
    size = independent_rows(rows)
    if size < REFUSED_BELOW:
        refusal = f"{counted(shown_below(size, REFUSED_BELOW), 'effective sample')}, fewer than {REFUSED_BELOW:.0f}"
        return replace(outcome, n_effective=size, refusal=refusal), None
    freed = without_definition(columns, rows, scope.target, outcome.seed)
    excluded = dict.fromkeys(freed.dropped, (DEFINITION, Drop.DEFINITION))
    if freed.rows is not rows:  # what was computed from the target no longer follows from what is left of it
        excluded |= dict.fromkeys(leaked_columns(columns, rows, scope.target), (LEAKED, Drop.LEAKED))
    rows = freed.rows
    spread = configuration_spread(rows)
    deviation = standardised_deviation(rows, spread)
    response = clipped_deviation(deviation, rows.weight)[0]
    against = superfluous_orders(columns, rows, response, size, order_beside_record)
    against |= ruled_out(columns, rows, response, size) | clocks_of_places(columns, rows, response, size) | impossible
    excluded |= {name: (reason, Drop.RULED_OUT) for name, reason in against.items()}
    prepared = prepare(columns, rows, scope.target, excluded)
    if freed.explained is not None:
        prepared.notes.append(
            f"{' and '.join(freed.dropped)} explain {100 * freed.explained:.0f} % of the deviation's variance by the"
            " target's definition; causes are searched in the rest"
        )
    if not prepared.within and not prepared.between:
        return replace(outcome, n_effective=size, refusal=NO_FEATURE, dropped=prepared.dropped), None
    stages, refused = without_slow_waves(_searched(prepared, rows, deviation), prepared.within, rows)
    effects, dropped, n_between = configuration_effects(prepared.between, rows, stages.residual, spread)
    for drop in dropped:
        prepared.drop(drop.feature, drop.reason, drop.kind)
    mediated = mediated_parents(stages, prepared.within, rows, deviation)
    within = [*parents_within(stages, prepared.within), *mediated]
    parents = [*with_determination(within, stages, prepared.within, rows), *parents_between(effects, n_between)]
    kept, notes = without_controls(parents)
    evidence = Evidence(
        columns=columns,
        rows=rows,
        prepared=prepared,
        stages=stages,
        effects=tuple(effects),
        deviation=deviation,
        spread=spread,
    )
    arrows, unexplained, of_value, times = weigh(kept, evidence, scope, totals)
    evidence = replace(evidence, times=times)
    behind = [arrow.n_effective for arrow in arrows if arrow.stage != CONFIGURATION]
    controls = [index for index, candidate in enumerate(prepared.within) if candidate.name in CONTROL_NAMES]
    sizes, typical = effective_sizes(stages.problem, stages.centring.weighted(stages.residual))
    slow = {prepared.within[index].name for index in np.flatnonzero(sizes < REFUSED_BELOW)} - CONTROL_NAMES
    sizes = np.delete(sizes, controls)
    n_effective = min(behind) if behind else typical
    pooled = pooling_notes([*prepared.within, *prepared.between], {arrow.name for arrow in arrows})
    outcome = replace(
        outcome,
        n_effective=n_effective,
        dropped=tuple(sorted((*prepared.dropped, *refused), key=lambda drop: drop.feature)),
        notes=(*notes, *pooled, *prepared.notes),
        p_value=scope_p_value(stages, controls, [effect.p_value for effect in effects], n_between),
    )
    if not arrows and n_effective < REFUSED_BELOW:
        few = counted(shown_below(n_effective, REFUSED_BELOW), "effective sample")
        refusal = f"{few} after autocorrelation, fewer than {REFUSED_BELOW:.0f}"
        return replace(outcome, refusal=refusal), None
    if not arrows:  # what is said to be seen holds of every candidate with as many rows
        n_effective = float(sizes[sizes >= REFUSED_BELOW].min(initial=n_effective))
        outcome = replace(outcome, n_effective=n_effective)
        if not any(drop.kind == Drop.REFUSED for drop in outcome.dropped):
            outcome = replace(outcome, beyond=association_beyond(stages, prepared.within, rows, controls))
    share = detectable_share(n_effective, stages.problem.n_tests)
    outcome = replace(outcome, detectable_share=share, slow=tuple(sorted(slow)))
    return replace(outcome, arrows=arrows, unexplained=unexplained, unexplained_variance=of_value), evidence


def _searched(prepared: Prepared, rows: Observations, deviation: np.ndarray) -> Stages:
    """Search, recheck what was chosen, and search again while that changes the candidates."""
    grounds = DesignCache(rows, prepared.on_two_scales)
    leakage = LeakageRecheck(prepared, rows)
    stages = run_stages(list(prepared.within), grounds, deviation)
    for _ in range(RECHECK_ROUNDS):
        effects = effects_of_time(list(prepared.within), stages, rows, deviation)
        for name, reason in effects.items():
            prepared.drop(name, reason, Drop.RULED_OUT)
        if not effects and not leakage.drop_leaked(stages) and not promote_better_members(stages, prepared):
            break
        stages = run_stages(list(prepared.within), grounds, deviation)
    return stages


def _usable(columns: list[Feature], rows: Observations) -> tuple[Observations, list[Feature], str]:
    """Leave out rows without a deviation; return a reason if nothing can be said."""
    if len(rows) == 0:
        return rows, columns, "no launch has the target"
    usable = (
        np.isfinite(rows.target)
        & np.isfinite(rows.signed)
        & np.isfinite(rows.mean)
        & np.isfinite(rows.weight)
        & (rows.weight > 0)
    )
    if not usable.any():
        return rows.take(usable), [], "the target holds no finite value"
    alone = (np.bincount(rows.configuration, minlength=1) == 1)[rows.configuration] & (rows.signed == 0)
    keep = usable & ~alone
    if not keep.any():
        return rows.take(keep), [], "every configuration was launched once, so that no launch deviates from its mean"
    if not keep.all():
        columns = [replace(column, values=column.values[keep]) for column in columns]
        rows = rows.take(keep)
    if np.all(rows.signed == 0):
        return rows, columns, f"{CONSTANT_TARGET}: no launch deviates from the mean of its configuration"
    return rows, columns, ""

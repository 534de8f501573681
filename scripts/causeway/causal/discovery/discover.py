"""The causes of one scope: from measured columns to arrows with effect, sign, share, stability and a verdict."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from causeway.causal.data.feature_names import HOST_RECORD
from causeway.causal.data.observations import (
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
    parents_between,
    parents_within,
    weigh,
    with_determination,
    without_controls,
)
from causeway.causal.discovery.between_configurations import configuration_effects
from causeway.causal.discovery.effects_of_time import effects_of_time
from causeway.causal.discovery.equivalents import promote_better_members, with_whole_class
from causeway.causal.discovery.leakage_recheck import LeakageRecheck
from causeway.causal.discovery.mean_and_scale import mediated_parents, run_stages
from causeway.causal.discovery.verdicts import association_beyond, detectable_share, scope_p_value
from causeway.causal.effects.evidence import Evidence
from causeway.causal.preparation.categorical import pooling_notes
from causeway.causal.preparation.definition import REASON as DEFINITION
from causeway.causal.preparation.definition import without_definition
from causeway.causal.preparation.known_relations import (
    TOLD_BY_RECORD,
    against_sign,
    clocks_of_places,
    idle_where_alone,
    ruled_out,
    superfluous_orders,
)
from causeway.causal.preparation.prepare import CONTROL_NAMES, LEAKED, leaked_columns, prepare
from causeway.causal.preparation.prepared import Prepared
from causeway.causal.selection.lagged import without_slow_waves
from causeway.causal.selection.problem import DesignCache, independent_rows
from causeway.causal.selection.stages import Stages
from causeway.core.codes import CONSTANT_TARGET, NO_FEATURE
from causeway.core.formatting import counted
from causeway.core.vocabulary import SUPPORTED
from causeway.numeric.effective_size import REFUSED_BELOW, autocorrelations, bartlett_factor, shown_below
from causeway.numeric.process import single_threaded
from causeway.numeric.seeds import derived_seed

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
            found = against_sign(outcome, evidence.prepared.within if evidence else ())
            if not found:
                break
            impossible |= found
            outcome, evidence = _discover(columns, rows, scope, totals, impossible)
        order_left_out = any(one.reason == TOLD_BY_RECORD for one in outcome.dropped)
        if order_left_out and not any(_is_record(arrow) for arrow in outcome.arrows):
            outcome, evidence = _discover(columns, rows, scope, totals, impossible, order_beside_record=True)
    dropped = sorted((*outcome.dropped, *unsearched), key=lambda one: one.feature)
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
    excluded = dict.fromkeys(freed.dropped, DEFINITION)
    if freed.rows is not rows:  # what was computed from the target no longer follows from what is left of it
        excluded |= dict.fromkeys(leaked_columns(columns, rows, scope.target), LEAKED)
    rows = freed.rows
    spread = configuration_spread(rows)
    deviation = standardised_deviation(rows, spread)
    response = clipped_deviation(deviation, rows.weight)[0]
    excluded |= superfluous_orders(columns, rows, response, order_beside_record)
    excluded |= ruled_out(columns, rows, response, size) | clocks_of_places(columns, rows, response, size) | impossible
    prepared = prepare(columns, rows, scope.target, excluded)
    if freed.explained is not None:
        prepared.note(
            f"{' and '.join(freed.dropped)} explain {100 * freed.explained:.0f} % of the deviation's variance by the"
            " target's definition; causes are searched in the rest"
        )
    if not prepared.within and not prepared.between:
        return replace(outcome, n_effective=size, refusal=NO_FEATURE, dropped=prepared.dropped), None
    stages, refused = without_slow_waves(_searched(prepared, rows, deviation), prepared.within, rows)
    effects, dropped, n_between = configuration_effects(prepared.between, rows, stages.residual, spread)
    for one in dropped:
        prepared.drop(one.feature, one.reason)
    mediated = mediated_parents(stages, prepared.within, rows, deviation)
    direct = with_whole_class(parents_within(stages, prepared.within), stages, prepared)
    within = [*direct, *mediated]
    parents = [*with_determination(within, prepared, rows), *parents_between(effects, n_between)]
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
    sizes, typical = _sizes(stages, size)
    slow = {prepared.within[index].name for index in np.flatnonzero(sizes < REFUSED_BELOW)} - CONTROL_NAMES
    sizes = np.delete(sizes, controls)
    n_effective = min(behind) if behind else typical
    pooled = pooling_notes([*prepared.within, *prepared.between], {arrow.name for arrow in arrows})
    outcome = replace(
        outcome,
        n_effective=n_effective,
        dropped=tuple(sorted((*prepared.dropped, *refused), key=lambda one: one.feature)),
        notes=(
            *notes,
            *pooled,
            *prepared.notes,
        ),
        p_value=scope_p_value(stages, controls, [effect.p_value for effect in effects], n_between),
    )
    if not arrows and n_effective < REFUSED_BELOW:
        few = counted(shown_below(n_effective, REFUSED_BELOW), "effective sample")
        refusal = f"{few} after autocorrelation, fewer than {REFUSED_BELOW:.0f}"
        return replace(outcome, refusal=refusal), None
    if not arrows:  # what is said to be seen holds of every candidate with as many rows
        n_effective = float(sizes[sizes >= REFUSED_BELOW].min(initial=n_effective))
        outcome = replace(outcome, n_effective=n_effective)
        if not any(one.was_found for one in outcome.dropped):
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
            prepared.drop(name, reason)
        if not effects and not leakage.drop_leaked(stages) and not promote_better_members(stages, prepared):
            break
        stages = run_stages(list(prepared.within), grounds, deviation)
    return stages


def _usable(columns: list[Feature], rows: Observations) -> tuple[Observations, list[Feature], str]:
    """Leave out rows without a deviation; return a reason if nothing can be said."""
    if len(rows) == 0:
        return rows, columns, "no launch has the target"
    known = (
        np.isfinite(rows.target)
        & np.isfinite(rows.signed)
        & np.isfinite(rows.mean)
        & np.isfinite(rows.weight)
        & (rows.weight > 0)
    )
    if not known.any():
        return rows.take(known), [], "the target holds no finite value"
    alone = (np.bincount(rows.configuration, minlength=1) == 1)[rows.configuration] & (rows.signed == 0)
    keep = known & ~alone
    if not keep.any():
        return rows.take(keep), [], "every configuration was launched once, so that no launch deviates from its mean"
    if not keep.all():
        columns = [replace(column, values=column.values[keep]) for column in columns]
        rows = rows.take(keep)
    if np.all(rows.signed == 0):
        return rows, columns, f"{CONSTANT_TARGET}: no launch deviates from the mean of its configuration"
    return rows, columns, ""


def _sizes(stages: Stages, size: float) -> tuple[np.ndarray, float]:
    """Return the effective size behind the test of each candidate, given the autocorrelation of what is left, and that
    of the median column.

    Returns
    -------
    sizes : ndarray of float, shape (n_candidates,)
        `size` for a candidate that no row tells from a constant.
    typical : float
    """
    problem = stages.problem
    found = np.full(problem.n_candidates, size)
    if not problem.lags.size:
        return found, size
    of_residual = autocorrelations(stages.centring.weighted(stages.residual)[:, None], problem.n_lags)[0]
    factors = bartlett_factor(problem.lags, of_residual)
    np.minimum.at(found, problem.basis.owner, size / factors)
    return found, size / float(np.median(factors))

"""What is known of the causes of one scope beyond the search: refutations, what-ifs, a graph.

A what-if must not say of a mean what its cause does not: where the two ends of a cause are compared and the mean is not
clearly another at one of them, nothing is known to be saved by setting the cause to an end. The two estimates differ in
what they compare. Of skewed times the mean at the slow end rests on few launches, and so does the change from end to
end; from the launches as they were to the fast end there is no such launch to predict, and the interval is narrow.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from causeway.causal.data.outcome import (
    REFUSED,
    Arrow,
    Edge,
    Examination,
    Node,
    Outcome,
    Refutation,
    WhatIf,
    to_six_digits,
)
from causeway.causal.data.scopes import Totals
from causeway.causal.effects.evidence import Evidence
from causeway.causal.effects.interventions import InterventionModel, intervention_verdict, what_ifs
from causeway.causal.effects.user_interventions import UserIntervention, user_what_ifs
from causeway.causal.examination.context_graph import context_graph
from causeway.causal.examination.falsification import LASTING, falsify, is_lasting, is_refuted
from causeway.core.files.machine_errors import fail_if_of_the_machine
from causeway.core.logs import LOG
from causeway.core.vocabulary import INCONCLUSIVE, REFUTED, SUPPORTED
from causeway.numeric.process import give_back, single_threaded
from causeway.numeric.seeds import derived_seed

UNCLEAR = "refused: the mean is not clearly another at one end of the cause than at the other"
"""Why a what-if of a measured target, all of whose changes are of the mean, is not answered."""
Result = TypeVar("Result")


def without_unclear_costs(arrows: Sequence[Arrow]) -> tuple[Arrow, ...]:
    """Return causes without the cost of the worse of two ends where neither is known to be the worse one.

    A mean that both rises and falls may be the same at both ends: their cost is then that of both.
    """
    return tuple(
        replace(arrow, in_time=replace(arrow.in_time, cost=None))
        if arrow.in_time is not None and _unclear(arrow) and arrow.in_time.monotone
        else arrow
        for arrow in arrows
    )


def without_unclear_means(rows: Sequence[WhatIf], arrows: Sequence[Arrow], is_deviation: bool) -> list[WhatIf]:
    """Return built-in what-ifs without the mean, the 99th percentile and the time saved where setting a cause is the
    change whose mean is not clear.

    Parameters
    ----------
    rows : sequence of WhatIf
    arrows : sequence of Arrow
        With their effects in time.
    is_deviation : bool
        The target is a deviation, of which a change may be clear all the same; else it is the measured value itself,
        and the what-if is refused.
    """
    unclear = {arrow.name: arrow for arrow in arrows if _unclear(arrow)}
    clear_rows = []
    for row in rows:
        arrow = unclear.get(row.features[0])
        if arrow is None or row.change is None or row.user_intervention or not _same_change(row.after[0], arrow):
            clear_rows.append(row)
            continue
        without = replace(row, mean_change=None, p99_change=None, saved=None)
        if is_deviation:
            verdict, reason = intervention_verdict([arrow], row.change.low, row.change.high)
            clear_rows.append(replace(without, verdict=verdict, reason=reason))
        else:
            clear_rows.append(replace(without, change=None, verdict=REFUSED, reason=UNCLEAR))
    return clear_rows


def _unclear(arrow: Arrow) -> bool:
    """Tell whether the change of the mean between the ends of a cause is known, and its interval holds none."""
    return arrow.in_time is not None and arrow.in_time.mean.low <= 0 <= arrow.in_time.mean.high


def _same_change(after: str, arrow: Arrow) -> bool:
    """Tell whether setting a cause to a value is the change that was compared: from one of its ends to the other.

    The median is none, where the mean both rises and falls: it may take less time than both ends.
    """
    return (arrow.in_time is not None and arrow.in_time.monotone) or "median" not in after


@dataclass(frozen=True, kw_only=True)
class Extent:
    """How far a scope is examined.

    Attributes
    ----------
    interventions : sequence of UserIntervention
        What the user wants to know beside the built-in what-ifs.
    by_configuration : mapping
        The values that interventions refer to, `user_interventions.configuration_values`.
    totals : Totals or None
        What the rows of the scope stand for; None: as many launches as their weights say.
    """

    interventions: Sequence[UserIntervention] = ()
    by_configuration: Mapping[int, Mapping[str, float | None]] = field(default_factory=dict)
    totals: Totals | None = None


def examine(outcome: Outcome, evidence: Evidence | None, extent: Extent | None = None) -> Outcome:
    """Return an outcome with its examination, its refuted arrows marked, and all numbers to six digits.

    Parameters
    ----------
    outcome : Outcome
    evidence : Evidence or None
        What `discover` gave beside the outcome; None for a refusal.
    extent : Extent or None
    """
    extent = extent or Extent()
    if evidence is None or not outcome.arrows:
        refused = user_what_ifs(extent.interventions, outcome, None, extent.by_configuration)
        return to_six_digits(replace(outcome, examination=Examination(what_ifs=tuple(refused))))
    with single_threaded():
        return to_six_digits(_examined(outcome, evidence, extent))


def for_each_scope(outcome: Outcome, interventions: Sequence[UserIntervention]) -> list[Outcome]:
    """Return an outcome once for each scope that it answers for: the same but for the scope and the user-specified
    interventions, of which each scope has those that apply to it.
    """
    outcomes = []
    for scope, name in outcome.scope.answered:
        names = {intervention.name for intervention in interventions if intervention.applies_to(scope, name)}
        kept = tuple(
            row
            for row in outcome.examination.what_ifs
            if row.user_intervention is None or row.user_intervention in names
        )
        outcomes.append(
            replace(
                outcome,
                scope=replace(outcome.scope, scope=scope, name=name, kernel=None),
                examination=replace(outcome.examination, what_ifs=kept),
            )
        )
    return outcomes


def marked(arrows: Sequence[Arrow], attempts: Sequence[Refutation]) -> tuple[Arrow, ...]:
    """Return the arrows, supported ones that an attempt refuted with that verdict, and inconclusive those that may be
    readings of something else that lasts.
    """
    marked_arrows = []
    for arrow in arrows:
        if arrow.verdict == SUPPORTED and is_refuted(attempts, arrow.name):
            marked_arrows.append(replace(arrow, verdict=REFUTED))
        elif arrow.verdict == SUPPORTED and is_lasting(attempts, arrow.name):
            marked_arrows.append(replace(arrow, verdict=INCONCLUSIVE, weakness=LASTING))
        else:
            marked_arrows.append(arrow)
    return tuple(marked_arrows)


def _examined(outcome: Outcome, evidence: Evidence, extent: Extent) -> Outcome:
    """Return an outcome with arrows after all steps. A failure of a library costs its step and is reported; the rest
    stands.
    """
    scope = outcome.scope
    seed = derived_seed(scope.seed, scope.dataset, scope.target, scope.scope, "context")
    failures: list[str] = []

    def guarded(step: str, compute: Callable[[], Result], otherwise: Result) -> Result:
        try:
            return compute()
        except Exception as error:
            fail_if_of_the_machine(error, f"{step} of {scope.scope}")
            LOG.warning("%s: %s failed", scope.scope, step, exc_info=True)
            failures.append(f"{step} could not be computed: {type(error).__name__}: {error}"[:300])
            return otherwise

    def changes() -> list[WhatIf]:
        """Return what setting each cause would change, then what the user-specified interventions would."""
        model = InterventionModel(evidence.times, arrows)
        user = user_what_ifs(extent.interventions, outcome, model, extent.by_configuration)
        return [*what_ifs(model, arrows), *user]

    no_graph: tuple[tuple[Node, ...], tuple[Edge, ...]] = ((), ())
    given = (evidence, outcome.arrows, outcome.n_effective, seed)
    nodes, edges = guarded("the context graph", lambda: context_graph(*given), no_graph)
    give_back()  # of the search and the graph, before the models of the times take as much
    untried: list[Refutation] = []
    attempts = guarded("falsification", lambda: falsify(evidence, outcome.arrows), untried)
    arrows = marked(outcome.arrows, attempts)
    rows = without_unclear_means(guarded("the what-ifs", changes, []), arrows, evidence.rows.absolute)
    examination = Examination(
        context_nodes=nodes,
        context_edges=edges,
        refutations=tuple(attempts),
        what_ifs=tuple(rows),
        failures=tuple(failures),
    )
    return replace(outcome, arrows=without_unclear_costs(arrows), examination=examination)

"""What is known of the causes of one scope beyond the search: the draft that the verdicts over all kernels are read from."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from causeway.causal.baselines import baselines
from causeway.causal.discovery import Outcome, sentence_of
from causeway.causal.graph import contribution_rows, graph_document, rounded
from causeway.causal.heterogeneity import heterogeneity
from causeway.causal.interventions import what_ifs
from causeway.causal.neighbourhood import context_edges
from causeway.causal.refutation import refute, refuted_by
from causeway.causal.seeds import derived_seed
from causeway.causal.sentences import what_if_sentence
from causeway.causal.threads import single_threaded
from causeway.causal.verdicts import REFUTED, SUPPORTED, graph_verdict
from causeway.logs import LOG


@dataclass(frozen=True)
class Extent:
    """How the context graph is learnt: `boss` or `pc`, and how many resamples decide on directions within a tier."""

    context: str = "boss"
    context_resamples: int = 0


def examined(outcome: Outcome, extent: Extent | None = None) -> dict:
    """Return the draft of a scope: its documents before the number of kernels counts; see `settlement`.

    Parameters
    ----------
    outcome : Outcome
        Changed in place: refuted arrows get their verdict.
    extent : Extent
    """
    tables: dict[str, list[dict]] = {"refutations": [], "whatif": [], "heterogeneity": [], "baselines": []}
    around, context = [], []
    if outcome.evidence is not None:
        with single_threaded(), np.errstate(over="ignore", under="ignore"):
            around, context, tables = _steps(outcome, extent or Extent())
    draft = {"graph": graph_document(outcome, around, context), "contributions": contribution_rows(outcome), "nothing": outcome.nothing}
    return draft | {name: [_written(row) for row in rows] for name, rows in tables.items()}


def _steps(outcome: Outcome, extent: Extent) -> tuple[list, list, dict[str, list[dict]]]:
    scope, evidence, arrows = outcome.scope, outcome.evidence, outcome.arrows

    def seed(step: str) -> int:
        return derived_seed(scope.seed, scope.dataset, scope.target, scope.scope, step)

    def guarded(step: str, compute: Callable, otherwise):
        """Return what a step finds; a failure of a library costs its step and is said, and the rest of the analysis stands."""
        try:
            return compute()
        except Exception as error:
            LOG.warning("%s: %s failed", scope.scope, step, exc_info=True)
            outcome.reasons.append(f"{step} could not be computed: {type(error).__name__}: {error}"[:300])
            return otherwise

    tables = {"refutations": [], "whatif": [], "heterogeneity": []}
    around, context = [], []
    if arrows:
        learnt = lambda: context_edges(  # noqa: E731
            evidence, arrows, outcome.n_effective, seed("context"), extent.context, extent.context_resamples
        )
        around, context = guarded("the context graph", learnt, ([], []))
        tables["refutations"] = guarded("refutation", lambda: refute(evidence, arrows, seed("refutation")), [])
        _judge(outcome, tables["refutations"])
        tables["whatif"] = guarded("the what-ifs", lambda: what_ifs(evidence, outcome.arrows, seed("whatif")), [])
        _say(outcome, tables["whatif"])
        tables["heterogeneity"] = guarded("heterogeneity", lambda: heterogeneity(evidence, arrows), [])
        _contrast(outcome, tables["heterogeneity"])
    tables["baselines"] = guarded("the baselines", lambda: baselines(evidence, arrows, seed("baselines")), [])
    return around, context, tables


def _judge(outcome: Outcome, rows: list[dict]) -> None:
    """Give refuted arrows their verdict, and the graph the one that follows."""
    for place, arrow in enumerate(outcome.arrows):
        broken = refuted_by(rows, arrow.candidate.name)
        if broken and arrow.verdict == SUPPORTED:
            outcome.arrows[place] = replace(arrow, verdict=REFUTED)
            why = f"it does not survive {' and '.join(name.replace('_', ' ') for name in broken)}"
            outcome.sentences[place] = sentence_of(outcome.arrows[place], outcome.scope, why)
    outcome.verdict = graph_verdict([arrow.verdict for arrow in outcome.arrows])


def _say(outcome: Outcome, rows: list[dict]) -> None:
    """Add to each cause's sentence what setting it would change."""
    for place, arrow in enumerate(outcome.arrows):
        own = [row for row in rows if row["feature"] == arrow.candidate.name and row["change_percent"] is not None]
        if own:
            named = next((row for row in own if row["to"] == "none"), own[0])
            outcome.sentences[place] += " " + what_if_sentence(named, outcome.scope.target)


def _contrast(outcome: Outcome, rows: list[dict]) -> None:
    """Say where a cause acts in opposite ways."""
    for row in rows:
        if row["label"] != "opposite":
            continue
        own = [one for one in rows if (one["feature"], one["by"]) == (row["feature"], row["by"]) and one["group"] is not None]
        top, bottom = max(own, key=lambda one: one["slope"]), min(own, key=lambda one: one["slope"])
        level = next(arrow.level for arrow in outcome.arrows if arrow.candidate.name == row["feature"])
        name = row["feature"] + (f" = {level}" if level else "")
        ends = [f"{word} it on {row['by']} {one['group']} ({one['slope']:+.2f})" for word, one in (("raises", top), ("lowers", bottom))]
        outcome.reasons.append(f"{name} acts in opposite ways on the target: {' and '.join(ends)}")


def _written(row: dict) -> dict:
    """Return a row with its numbers to six digits."""
    return {name: rounded(value) if isinstance(value, float) else value for name, value in row.items()}

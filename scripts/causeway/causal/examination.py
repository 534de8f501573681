"""What is known of the causes of one scope beyond the search: the draft that the verdicts over all kernels are read from."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from causeway.causal.asked import Question, answers
from causeway.causal.baselines import baselines
from causeway.causal.discovery import Outcome, sentence_of
from causeway.causal.graph import contribution_rows, graph_document, rounded
from causeway.causal.heterogeneity import heterogeneity
from causeway.causal.interventions import model_of, what_ifs
from causeway.causal.neighbourhood import context_edges
from causeway.causal.refutation import refute, refuted_by
from causeway.causal.seeds import derived_seed
from causeway.causal.sentences import FEW, what_if_sentence
from causeway.causal.threads import single_threaded
from causeway.causal.verdicts import REFUTED, SUPPORTED, graph_verdict
from causeway.causal.words import ABOUT
from causeway.logs import LOG


@dataclass(frozen=True)
class Extent:
    """How far a scope is examined.

    Attributes
    ----------
    context : str
        How the context graph is learnt, `boss` or `pc`.
    context_resamples : int
        How many resamples decide on directions within a tier.
    questions : sequence of Question
        What is asked of the fitted model beside the built-in what-ifs.
    shapes : mapping
        By configuration the values that questions refer to, `asked.launch_values`.
    """

    context: str = "boss"
    context_resamples: int = 0
    questions: Sequence[Question] = ()
    shapes: Mapping[int, Mapping[str, float]] = field(default_factory=dict)


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
    extent = extent or Extent()
    if outcome.evidence is not None:
        with single_threaded(), np.errstate(over="ignore", under="ignore"):
            around, context, tables = _steps(outcome, extent)
    if not outcome.arrows:
        tables["whatif"] = _worded(answers(extent.questions, outcome, None, extent.shapes), outcome)
    draft = {"graph": graph_document(outcome, around, context), "contributions": contribution_rows(outcome), "nothing": outcome.nothing}
    return draft | {name: [_written(row) for row in rows] for name, rows in tables.items()}


def drafts_of(outcome: Outcome, extent: Extent) -> list[dict]:
    """Return a draft for each scope that an outcome answers for: the same but for the scope and what was asked of it."""
    draft, found = examined(outcome, extent), []
    for scope, name in outcome.scope.answered:
        asked = [question.name for question in extent.questions if question.concerns(scope, name)]
        rows = [row for row in draft["whatif"] if not row.get("asked") or row["asked"] in asked]
        found.append({**draft, "graph": {**draft["graph"], "scope": scope, "scope_name": name}, "whatif": rows})
    return found


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
        whys = _judge(outcome, tables["refutations"])
        tables["whatif"] = guarded("the what-ifs", lambda: _what_ifs(outcome, extent, seed("whatif")), [])
        _say(outcome, tables["whatif"], whys)
        tables["heterogeneity"] = guarded("heterogeneity", lambda: heterogeneity(evidence, arrows), [])
        _contrast(outcome, tables["heterogeneity"])
    tables["baselines"] = guarded("the baselines", lambda: baselines(evidence, arrows, seed("baselines")), [])
    return around, context, tables


def _what_ifs(outcome: Outcome, extent: Extent, seed: int) -> list[dict]:
    """Return what setting each cause would change, and what was asked."""
    model = model_of(outcome.evidence, outcome.arrows, seed)
    return _worded([*what_ifs(model, outcome.arrows), *answers(extent.questions, outcome, model, extent.shapes)], outcome)


def _worded(rows: list[dict], outcome: Outcome) -> list[dict]:
    """Add to each what-if its sentence, the reason of a refusal included."""
    groups = {arrow.candidate.name: arrow.candidate.group for arrow in outcome.arrows}
    for row in rows:
        answered = row["change_percent"] is not None
        row["sentence"] = what_if_sentence(row, outcome.scope.target, groups.get(row["feature"], "")) if answered else None
    return rows


def _judge(outcome: Outcome, rows: list[dict]) -> dict[str, str]:
    """Give refuted arrows their verdict, and the graph the one that follows; return the reasons by feature."""
    whys = {}
    for place, arrow in enumerate(outcome.arrows):
        broken = refuted_by(rows, arrow.candidate.name)
        if broken and arrow.verdict == SUPPORTED:
            outcome.arrows[place] = replace(arrow, verdict=REFUTED)
            whys[arrow.candidate.name] = f"it does not survive {' and '.join(name.replace('_', ' ') for name in broken)}"
            outcome.sentences[place] = sentence_of(outcome.arrows[place], outcome.scope, whys[arrow.candidate.name])
    outcome.verdict = graph_verdict([arrow.verdict for arrow in outcome.arrows])
    return whys


def _say(outcome: Outcome, rows: list[dict], whys: Mapping[str, str]) -> None:
    """Say in each cause's sentence what setting it would change."""
    for place, arrow in enumerate(outcome.arrows):
        name = arrow.candidate.name
        own = [row for row in rows if row["feature"] == name and row["change_percent"] is not None and not row.get("asked")]
        setting = next((row for row in own if row["to"] == "none"), own[0] if own else None)
        outcome.sentences[place] = sentence_of(arrow, outcome.scope, whys.get(name, FEW), setting)


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
        outcome.reasons.append(f"{name} acts in opposite ways on {ABOUT[row.get('slope_of')]}: {' and '.join(ends)}")


def _written(row: dict) -> dict:
    """Return a row with its numbers to six digits."""
    return {name: rounded(value) if isinstance(value, float) else value for name, value in row.items()}

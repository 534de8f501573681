"""Which facts the first screen says, in which order, and what it leaves out."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from causeway.core.codes import ALL_LAUNCHES, CONSTANT_TARGET, GPU_TIME, NO_FEATURE, Drop
from causeway.core.formatting import NANOSECONDS, count, counted, significant, time
from causeway.core.names.kernel_words import kernel_words
from causeway.core.queries import of_table
from causeway.core.results import read_rows_of_run
from causeway.core.schemas import Row
from causeway.core.tables import read_json, read_table
from causeway.core.vocabulary import COMPARED, KERNEL_VARIABILITY, MEMORY_STALL
from causeway.findings.first_screen.advice import MOST, advice, of_rule
from causeway.findings.first_screen.compared import ALWAYS, PairSide, compared_runs, of_comparison, step_times
from causeway.findings.first_screen.counted_work import counter_facts, counter_means, peak_facts, rule_facts
from causeway.findings.first_screen.facts import DatasetFacts
from causeway.findings.first_screen.losses import LossFact, migration_facts, shared_facts
from causeway.findings.first_screen.outliers import behind_steps
from causeway.findings.first_screen.run_facts import (
    ALIKE,
    IDLE,
    NOTICEABLE,
    SAME_RECORDING,
    RunFact,
    RunTables,
    percent_query,
)
from causeway.findings.first_screen.table_rows import apart_fact, largest_fact, settings_fact
from causeway.findings.first_screen.words import run_words, work_words
from causeway.findings.first_screen.words.recording_words import of_recording
from causeway.findings.first_screen.work import cause_of_most, class_facts, drift_fact, kernel_facts

RECORDING = "Recording"
RUN = "Run"
STEP = "Step"
WHERE = "Where"
WHICH_RANK = "Which rank"
OUTLIERS = "Outliers"
FILLS = "What fills the time"
PEAK = "Of the device's peak"
VARIES = "What varies"
TO_DO = "What to do"
NOT_SEARCHED = "Not searched"
QUESTIONS = (RECORDING, COMPARED, RUN, STEP, WHERE, WHICH_RANK, OUTLIERS, FILLS, PEAK, VARIES, TO_DO, NOT_SEARCHED)
"""The questions of the first screen, in their order; each has a line only if it has an answer."""
NO_IDLE_TIME = (
    "no_launches",
    "late_stamps",
    "unrecorded_steps",
    "missing_dispatches",
    "lost_launches",
    "unanswered_calls",
    "unrecorded_graphs",
)
"""Faults of a recording that leave idle time unknown."""
NO_DURATIONS = "overlapping_launches"
"""The fault that leaves it unknown how long single launches take."""
ALSO_SAID = 0.5
"""Share of what the largest loss is worth from which a second one is said."""
MOST_OUTLIERS = 3
MOST_FAULTS = 2
MOST_PEAKS = 3
MOST_MEANS = 8
_TIMED = re.compile(r"(?:time|latency|duration|elapsed)(?:_[a-z]+)?$", re.IGNORECASE)
"""Names of targets whose values are times, so that their sum says something, where no unit does."""
_OF_TARGET = (Drop.LEAKED, Drop.LEAKED_BY_NAME, Drop.DEFINITION)


@dataclass(frozen=True, kw_only=True)
class ScreenLine:
    """One line of the first screen.

    Attributes
    ----------
    question : str
        One of `QUESTIONS`.
    answer : str
        In words; may hold untrusted names.
    ns : int or None
        The time that the answer is about: of the run, or of all devices; None where it is about none.
    wins_ns : int or None
        What the run wins without the loss that the answer is about; None where that is not known.
    query : str or None
        SQL that gives a number of the answer.
    """

    question: str
    answer: str
    ns: int | None = None
    wins_ns: int | None = None
    query: str | None = None

    def as_json(self, dataset: str) -> dict[str, Any]:
        """Return the line as `findings.json` holds it."""
        return {"dataset": dataset} | vars(self)


def plan(facts: DatasetFacts) -> list[ScreenLine]:
    """Return the lines of the first screen of a dataset, in the order of `QUESTIONS`."""
    return sorted(_lines(facts), key=lambda line: QUESTIONS.index(line.question))


def plan_of_pair(document: Row, rows: Sequence[Row], datasets: Mapping[str, DatasetFacts]) -> list[dict[str, Any]]:
    """Return the lines of a compared pair as `findings.json` holds them; they are about the candidate."""
    facts = [datasets.get(document[side]["dataset"]) for side in ("baseline", "candidate")]
    sides = [_side(dataset.tables) if dataset else PairSide() for dataset in facts]
    return [
        ScreenLine(question=COMPARED, answer=text, query=query).as_json(document["candidate"]["dataset"])
        for text, query in _answers(document, rows, sides)
    ]


def _answers(document: Row, rows: Sequence[Row], sides: Sequence[PairSide]) -> list[tuple[str, str | None]]:
    """Return what is said of a pair, each with its query; of one that was not compared why."""
    if document["why"] is not None:
        return [(f"Not compared: {document['why']}", None)]
    fact = compared_runs(document, rows, sides)
    return of_comparison(fact) if fact is not None else []


def _side(tables: RunTables) -> PairSide:
    steps = tables.steps_table
    rows = steps.select(["step", "duration_ns", "warm_up"]).to_pylist() if steps is not None else []
    return _pair_side(tables.waiting, tables.operators, rows, tables.efficiency if tables.is_timed else {})


def _pair_side(
    waiting: Sequence[Row], operators: Sequence[Row], steps: Sequence[Row], efficiency: Mapping[str, Any]
) -> PairSide:
    warm_up = step_times(steps, is_warm_up=True)
    copies = efficiency.get("copies", ())
    parts = efficiency.get("waterfall_ns", {})
    return PairSide(
        waiting=waiting, operators=operators, steps=step_times(steps), warm_up=warm_up, copies=copies, parts=parts
    )


def lines_of_pair(document: Row, rows: Sequence[Row], results: Path) -> list[tuple[str, bool]]:
    """Return the lines for a page of the pair alone, each with whether it is the first about the step or the run."""
    sides = []
    for side in ("baseline", "candidate"):
        home = results / document[side]["dataset"]
        waiting, operators, steps = (home / f"{name}.parquet" for name in ("waiting", "operator_summary", "steps"))
        sides.append(
            _pair_side(
                read_rows_of_run(waiting, "waiting").to_pylist() if waiting.is_file() else (),
                read_table(operators, "operator_summary").to_pylist() if operators.is_file() else (),
                read_table(steps, "steps").to_pylist() if steps.is_file() else (),
                _efficiency(home / "efficiency.json"),
            )
        )
    fact = compared_runs(document, rows, sides)
    whole = [change.query for change in fact.changes if change.what in ALWAYS] if fact else []
    return [(text, query in whole[:1]) for text, query in _answers(document, rows, sides)]


def _efficiency(path: Path) -> Mapping[str, Any]:
    """Return the efficiency of a run; nothing where it has no time line."""
    document: Row = read_json(path) if path.is_file() else {"why": "absent"}
    return document if not document["why"] else {}


def _lines(facts: DatasetFacts) -> list[ScreenLine]:
    tables = facts.tables
    faults = facts.faults[:MOST_FAULTS]
    lines = [ScreenLine(question=RECORDING, answer=of_recording(fact), query=fact.query) for fact in faults]
    if any(fact.fault == SAME_RECORDING and 2 * fact.count > len(tables.folders) for fact in faults):
        return lines  # most of what follows would be counted twice
    run = facts.run
    if run is None:
        return [*lines, *_of_measurements(tables)]
    steps = run.steps is not None and run.steps.annotated
    is_idle_known = not any(fact.fault in NO_IDLE_TIME for fact in faults)
    said = run_words.of_run(run, is_idle_known=is_idle_known)
    lines.append(ScreenLine(question=STEP if steps else RUN, answer=said, ns=run.elapsed_ns, query=run.query))
    losses = facts.losses
    edges = facts.edges if is_idle_known else []
    lines += _said(WHERE, edges, run_words.of_edge, run, "ns")
    if not is_idle_known:
        losses = [fact for fact in losses if fact.part != IDLE]
    lines += [
        ScreenLine(
            question=WHERE,
            answer=run_words.of_loss(fact, run),
            ns=fact.lost_ns,
            wins_ns=fact.gain.saved_ns if fact.gain else None,
            query=percent_query(tables.dataset, fact.part),
        )
        for fact in _where(losses, run)
    ]
    migrations = migration_facts(tables)
    late = facts.late
    lines += [
        *_said(WHERE, shared_facts(tables, run), run_words.of_shared, run, "waited_ns"),
        *_said(WHERE, migrations, run_words.of_migrations, run, "under_ns"),
        *_said(WHERE, facts.turns, run_words.of_turns, run),
        *_said(WHERE, facts.uneven, run_words.of_uneven, run, "saved_ns"),
        *_said(WHERE, facts.unused, run_words.of_unused, run, "ns"),
        *_said(WHICH_RANK, facts.slow_groups, run_words.of_slow_group, run, "lost_ns"),
        *_said(WHICH_RANK, facts.slow_copies, run_words.of_slow_copies, run),
        *_said(WHICH_RANK, late[:1], run_words.of_late_rank, run, "waited_ns"),
        *_said(WHICH_RANK, facts.peers, run_words.of_peer, run, "waited_ns"),
        *_said(WHICH_RANK, facts.in_turn, run_words.of_in_turn, run, "waited_ns"),
    ]
    if is_idle_known:
        lines += _outliers(facts)
    unsure = any(fact.fault == NO_DURATIONS for fact in faults)
    shown = _at_medians(tables) if unsure else tables
    classes = class_facts(shown)
    kernels = kernel_facts(shown)
    if classes:
        column = "value_median * launches" if unsure else "value_sum"
        query = of_table(f"sum({column})", f"{tables.dataset}/{KERNEL_VARIABILITY}/kernels.parquet")
        total = sum(fact.total_ns for fact in classes)
        said = f"{'At their medians ' if unsure else ''}{work_words.of_work(classes, kernels)}"
        lines.append(ScreenLine(question=FILLS, answer=said, ns=total, query=query))
    lines += [] if unsure else _varies(facts)
    lines += [
        ScreenLine(question=TO_DO, answer=step.words, ns=step.saved_ns or None)
        for step in advice(
            run,
            faults,
            losses,
            late,
            kernels,
            turns=facts.turns,
            slow_copies=facts.slow_copies,
            peers=facts.peers,
            migrations=migrations,
            uneven=facts.uneven,
            slow_groups=facts.slow_groups,
            in_turn=facts.in_turn,
            edges=edges,
        )
    ]
    return [*lines, *_not_searched(tables)]


def _said(
    question: str, facts: Sequence[Any], words: Callable[..., str], run: RunFact, ns: str = ""
) -> list[ScreenLine]:
    """Return a line for each fact, in its words, with its time (the attribute `ns`) and its query where it has one."""
    return [
        ScreenLine(
            question=question,
            answer=words(fact, run),
            ns=getattr(fact, ns) if ns else None,
            query=getattr(fact, "query", None),
        )
        for fact in facts
    ]


def _at_medians(tables: RunTables) -> RunTables:
    """Return tables in which launches take the median of their kernel, where some durations are not to be trusted."""
    rows = [{**row, "value_sum": row["value_median"] * row["launches"]} for row in tables.kernels]
    return replace(tables, operators=(), targets={**tables.targets, KERNEL_VARIABILITY: rows})


def _where(losses: Sequence[LossFact], run: RunFact) -> list[LossFact]:
    """Return the largest loss, and behind it the one whose removal wins most if that is not far less, or more, as of
    what makes other ranks wait.
    """
    if not losses:
        return []
    worth = {fact.part: fact.lost_ns / run.devices if fact.gain is None else fact.gain.saved_ns for fact in losses}
    first, *others = losses
    best = max(others, key=lambda fact: worth[fact.part], default=first)
    return [first, best] if others and worth[best.part] >= ALSO_SAID * worth[first.part] else [first]


def _outliers(of: DatasetFacts) -> list[ScreenLine]:
    """Return the gaps, single events and slow steps that are a hundredth of the run or more, most time first."""
    tables = of.tables
    run = of.run
    if run is None or not tables.quality["analyses"].get("time_line", {"possible": True})["possible"]:
        return []
    unsure = any(fact.fault == NO_DURATIONS for fact in of.faults)
    events = [event for event in of.events if event.is_copy or not unsure]
    slow = {fact: behind_steps(fact, [*events, *of.gaps]) for fact in of.slow_steps}
    steps_of = {single: fact for fact, single in slow.items() if single is not None}
    facts = [(gap.total_ns, run_words.of_gap(gap, run) + run_words.in_steps(steps_of.get(gap), run)) for gap in of.gaps]
    facts += [
        (event.total_ns, run_words.of_event(event, run) + run_words.in_steps(steps_of.get(event), run))
        for event in events
    ]
    facts += [
        (fact.excess_ns * len(fact.ranks) * run.devices // run.ranks, run_words.of_slow_steps(fact, run))
        for fact, single in slow.items()
        if single is None
    ]
    facts += [
        (fact.excess_ns, run_words.of_first_step(fact))
        for fact in of.first_steps
        if behind_steps(fact, [*events, *of.gaps]) is None
    ]
    facts.sort(key=lambda fact: (-fact[0], fact[1]))
    return [ScreenLine(question=OUTLIERS, answer=f"{text}.", ns=ns) for ns, text in facts[:MOST_OUTLIERS]]


def _varies(facts: DatasetFacts) -> list[ScreenLine]:
    """Return the kernel whose variation costs most, if that is a hundredth of the devices' time; launches of different
    problem sizes are no variation. Kernels that all become slower are told together, unless its trend says it.
    """
    fact = next((fact for fact in facts.variations if not fact.is_mix), None)
    if facts.run is None:
        return []
    drift = drift_fact(facts.tables, facts.run) if fact is None or fact.trend is None else None
    if drift is not None:
        return [ScreenLine(question=VARIES, answer=work_words.of_drift(drift, facts.run), ns=drift.cost_ns)]
    if fact is None:
        return []
    said = work_words.of_variation(fact, facts.run)
    return [ScreenLine(question=VARIES, answer=said, ns=fact.cost_ns, query=fact.query)]


def _not_searched(tables: RunTables) -> list[ScreenLine]:
    """Return how many kernels had too little data to search for causes."""
    refused = [
        search
        for search in tables.searches
        if search.graph["p_value"] is None
        and search.graph["scope"] != "dataset"
        and NO_FEATURE not in search.graph["reasons"]
        and not any(reason.startswith(CONSTANT_TARGET) for reason in search.graph["reasons"])
    ]
    if not refused:
        return []
    most = max(search.graph["n_rows"] for search in refused)
    of = f"{counted(len(refused), 'kernel')}, with at most {counted(most, 'launch')} each"
    if any(map(_is_without_kernels, tables.targets.values())):
        of = f"At most {counted(most, 'row')}"
    words_ = f"{of}: too few to search for causes."
    return [ScreenLine(question=NOT_SEARCHED, answer=words_)]


def _of_measurements(tables: RunTables) -> list[ScreenLine]:
    """Return the lines of a dataset of counters or of a table, which has no time line."""
    lines: list[ScreenLine] = []
    is_table = any(export.get("kind") == "table" for export in tables.capabilities)
    for target, rows in tables.targets.items():
        if not rows or target == MEMORY_STALL or lines:
            continue
        unit = tables.units.get(target, "")
        launches = sum(row["launches"] for row in rows)
        rows = [{**row, "value_sum": row["value_sum"] * NANOSECONDS.get(unit, 1.0)} for row in rows]
        total = math.fsum(row["value_sum"] for row in rows)
        path = f"{tables.dataset}/{target}/kernels.parquet"
        of = f"{counted(launches, 'launch')} of {counted(len(rows), 'kernel')}"
        if is_table and _is_without_kernels(rows):
            of = counted(launches, "row")
        absent = [issue["count"] for issue in tables.quality.get("issues", ()) if issue["kind"] == "no_target"]
        if is_table and absent and len(tables.targets) == 1:
            of += f" ({count(sum(absent))} more without a number)"
        if unit in NANOSECONDS:
            each = f", {_each(rows[0], NANOSECONDS[unit])} each" if len(rows) == 1 < launches else ""
            name = f"{target} " if is_table and len(tables.targets) > 1 else ""
            beside = _beside(tables, target) if is_table else ""
            lines.append(
                ScreenLine(
                    question=RUN,
                    answer=f"{of}, {name}{time(total)} in all{each}{beside}; no time line, so idle time is not known.",
                    ns=round(total),
                    query=of_table("sum(value_sum)", path),
                )
            )
            if len(rows) > 1 or not is_table:
                own = RunTables(dataset="", targets={KERNEL_VARIABILITY: rows})
                answer = work_words.of_work(class_facts(own), kernel_facts(own))
                most = max(rows, key=lambda row: row["value_sum"])
                if is_table and most["launches"] > 1:
                    answer += f" Launches of {kernel_words(most['short_name'])}: {_each(most, NANOSECONDS[unit])}."
                lines.append(ScreenLine(question=FILLS, answer=answer, ns=round(total)))
    lines += [
        ScreenLine(question=STEP, answer=run_words.of_calls(rank, len(tables.steps["by_calls"])))
        for rank in (tables.steps or {"by_calls": ()})["by_calls"][:1]
    ]
    lines += [
        ScreenLine(question=PEAK, answer=work_words.of_peak(fact), ns=fact.total_ns or None)
        for fact in peak_facts(tables, MOST_PEAKS)
    ]
    if not lines or is_table:
        lines += _of_table(tables, said=bool(lines))
    elif (apart := apart_fact(tables, GPU_TIME)) is not None:
        answer = work_words.of_apart(apart, GPU_TIME, tables.units.get(GPU_TIME, "ns"))
        lines.append(ScreenLine(question=VARIES, answer=answer))
    rows = sum(export["tables"].get("counters", 0) for export in tables.capabilities)
    if rows and not any(line.question == RUN for line in lines):
        held = "with counters" if any(export["values"] for export in tables.capabilities) else "without a value"
        answer = f"{counted(rows, 'launch')} {held}; without durations, so where the time goes is not known."
        lines.append(ScreenLine(question=RUN, answer=answer))
        lines += [
            ScreenLine(question=FILLS, answer=work_words.of_counter(fact)) for fact in counter_facts(tables, MOST_PEAKS)
        ]
    asked = [line.question for line in lines]
    is_bare = asked == [RUN] or (asked == [RUN, FILLS] and lines[0].ns and not is_table)
    if is_bare and (means := counter_means(tables, MOST_MEANS)):
        lines.append(ScreenLine(question=FILLS, answer=work_words.of_means(means)))
    lines += [
        ScreenLine(question=TO_DO, answer=step.words, ns=step.saved_ns or None)
        for step in map(of_rule, rule_facts(tables)[:MOST])
    ]
    return lines


def _beside(tables: RunTables, target: str) -> str:
    """Return the sums of the other targets of a table that are times and have a unit, or none, as `target` has."""
    ns = {name: NANOSECONDS.get(tables.units.get(name, "")) for name in tables.targets}
    sums = {name: math.fsum(row["value_sum"] for row in rows) for name, rows in tables.targets.items() if rows}
    said = [
        f"{name} {time(total * unit) if (unit := ns[name]) else significant(total)}"
        for name, total in sums.items()
        if name != target and (ns[name] is None) == (ns[target] is None) and (ns[name] or _TIMED.search(name))
    ]
    return f"; {', '.join(said)} in all" if said else ""


def _each(row: Row, ns: float) -> str:
    """Return the median and the ends of the times of a kernel's launches, whose unit is so many ns."""
    median, least, most = (time(row[f"value_{name}"] * ns) for name in ("median", "min", "max"))
    return f"median {median}" + (f", {least} to {most}" if least != most else "")


def _is_without_kernels(rows: Sequence[Row]) -> bool:
    """Return whether rows of kernels are those of a table that names none: they may be of anything, as of epochs."""
    return [row.get("name") for row in rows] == [ALL_LAUNCHES]


def _of_table(tables: RunTables, said: bool) -> list[ScreenLine]:
    """Return the lines on how the first target of a table varies, and why; on its rows, too, if nothing was `said` of
    them.
    """
    lines: list[ScreenLine] = []
    for target, rows in [(target, rows) for target, rows in tables.targets.items() if rows][:1]:
        launches = sum(row["launches"] for row in rows)
        spread = math.fsum(row["target_sum"] for row in rows)
        total = math.fsum(abs(row["value_sum"]) for row in rows)
        share = f", on average by {significant(100 * spread / total, 2)} % of it" if total else ""
        if launches and not said:
            answer = f"{target}: {count(launches)} rows deviate from their configuration's mean{share}; no time line."
            if _is_without_kernels(rows):
                middle, least, most = (significant(rows[0][f"value_{name}"], 3) for name in ("median", "min", "max"))
                answer = f"{target}: {counted(launches, 'row')}, median {middle}, {least} to {most}"
                whole = f", {significant(total)} in all" if _TIMED.search(target) else ""
                answer += f"{whole}{_beside(tables, target)}; no time line."
            lines.append(ScreenLine(question=RUN, answer=answer))
        unit = tables.units.get(target, "")
        apart = apart_fact(tables, target, numbers=True)
        cause = cause_of_most(tables)
        explained = cause.row["variance_percent"] / 100 if cause is not None else 0.0
        dropped = [
            {(drop["feature"], drop["kind"]) for drop in search.graph.get("dropped", ())} for search in tables.searches
        ]
        of_target = {name for name, kind in set().union(*dropped) if kind in _OF_TARGET}
        of_target |= tables.targets.keys() - {target}
        settings = settings_fact(tables, target, of_target)
        between = settings.share if settings is not None else 0.0
        is_searched = any(search.graph["p_value"] is not None for search in tables.searches)
        # a place says more than what differs there
        if apart is not None and apart.share >= max(ALIKE * explained, between - NOTICEABLE):
            answer = work_words.of_apart(apart, target, unit)
        elif settings is not None and ALIKE * between > explained:
            answer = work_words.of_settings(settings, target, unit)
            lines += [] if is_searched else _not_searched(tables)
        elif cause is not None:
            answer = work_words.of_cause(cause, target)
        elif is_searched:
            answer = work_words.of_no_cause(
                [search.graph for search in tables.searches], spread / total if said and total else None
            )
        else:
            largest = largest_fact(tables, target, of_target) if _is_without_kernels(rows) else None
            if largest is not None:
                lines.append(ScreenLine(question=FILLS, answer=work_words.of_largest(largest, unit)))
            lines += _not_searched(tables)
            continue
        everywhere = set.intersection(*dropped) if dropped else set()
        if leaked := sorted(name for name, kind in everywhere if kind == Drop.LEAKED):
            answer += f" {work_words.of_leaked(leaked, target)}"
        lines.append(ScreenLine(question=VARIES, answer=answer))
    return lines

"""The facts of the first screen as findings: each loss, late rank, slow step and fault of a recording, finished when
made.
"""

from typing import Any

from causeway.core.names.kernel_words import kernel_words
from causeway.core.queries import of_table
from causeway.core.vocabulary import KERNEL_VARIABILITY, STEP_TIME, SUPPORTED
from causeway.findings.first_screen.advice import RECORD, against_loss, of_late
from causeway.findings.first_screen.facts import DatasetFacts
from causeway.findings.first_screen.losses import CHANGES, Gain, LateRankFact, LossFact
from causeway.findings.first_screen.outliers import SlowStepsFact
from causeway.findings.first_screen.plan import NO_IDLE_TIME
from causeway.findings.first_screen.run_facts import IDLE, OUTSIDE, RunFact, RunTables, percent_query
from causeway.findings.first_screen.words import run_words, work_words
from causeway.findings.first_screen.words.recording_words import of_recording
from causeway.findings.first_screen.work import VariationFact
from causeway.findings.headlines import MOST_WORDS
from causeway.findings.record import Effect, Evidence, Finding, Replay, Worth, link_to, of_dataset

OF_FILES = ("refused", "partial")
"""Faults that are findings of their own kind: see `quality`."""


def device_time_findings(facts: DatasetFacts) -> list[Finding]:
    """Return the findings on a dataset's recording and on its device time; a loss that the recording leaves unknown is
    none.
    """
    tables = facts.tables
    findings = [
        of_dataset(
            tables.dataset,
            fact.table,
            fact.query,
            value=fact.count,
            unit=fact.unit,
            kind="recording",
            key=fact.fault,
            quantity="fault of the recording",
            headline=of_recording(fact),
            sentence=of_recording(fact),
            link=link_to(tables.dataset, "quality"),
            suggestion=RECORD.get(fact.fault),
        )
        for fact in facts.faults
        if fact.fault not in OF_FILES
    ]
    run = facts.run
    if run is None:
        return findings
    unknown = {IDLE} if any(fact.fault in NO_IDLE_TIME for fact in facts.faults) else set()
    findings += [_of_loss(tables, run, fact) for fact in facts.losses if fact.part not in unknown]
    findings += [_of_variation(tables, run, fact) for fact in facts.variations if not fact.is_mix]
    findings += [_of_late_rank(tables, run, fact) for fact in facts.late]
    return findings + [_of_slow_steps(tables, run, fact) for fact in facts.slow_steps]


def _of_loss(tables: RunTables, run: RunFact, fact: LossFact) -> Finding:
    """Return a part of the devices' time that is not compute."""
    steps = against_loss(fact, run)
    return of_dataset(
        tables.dataset,
        f"{tables.dataset}/efficiency.json",
        percent_query(tables.dataset, fact.part),
        value=100 * fact.lost_ns / run.gpu_ns,
        unit="percent of the GPU time",
        kind="efficiency",
        key=fact.part,
        quantity="lost GPU time",
        headline=f"{run_words.loss_headline(fact, run)}.",
        sentence=_at_length(fact, run),
        worth=Worth(ns=fact.lost_ns),
        suggestion=steps[0].words if steps else None,
        link=link_to(tables.dataset, "efficiency"),
        **_won(tables, run, CHANGES.get(fact.part, ""), fact.gain),
    )


def _at_length(fact: LossFact, run: RunFact) -> str:
    """Return a loss with what its removal wins, or without where that would be too long."""
    headline = f"{run_words.loss_headline(fact, run)}."
    if fact.part == OUTSIDE:
        return headline
    return _short(headline, f"{headline} {run_words.gain_of(fact, run)}")


def _short(headline: str, sentence: str) -> str:
    """Return the sentence, or the headline where that would be too long."""
    return sentence if len(sentence.split()) <= MOST_WORDS else headline


def _won(tables: RunTables, run: RunFact, change: str, gain: Gain | None) -> dict[str, Any]:
    """Return what all devices win without a loss, its query and the replay that gives it; empty where not known."""
    if gain is None:
        return {}
    table = f"{tables.dataset}/replay.parquet"
    where = f"change = '{change}' AND step IS NULL"
    now, then = gain.columns
    row = gain.row
    return {
        "recoverable_ns": gain.saved_ns * run.devices,
        "recoverable_query": of_table(f"(greatest({now} - {then}, 0) * {run.devices})::BIGINT", table, where),
        "replay": Replay(
            change=change,
            time_ns=row["time_ns"],
            predicted_ns=row["predicted_ns"],
            step_ns=None,
            predicted_step_ns=None,
            limited_by=gain.limited_by,
            limited_name=gain.limited_name,
            query=of_table("predicted_ns", table, where),
        ),
    }


def _of_variation(tables: RunTables, run: RunFact, fact: VariationFact) -> Finding:
    """Return a kernel whose variation costs a hundredth of the devices' time."""
    text = work_words.of_variation(fact, run)
    return Finding(
        dataset=tables.dataset,
        target=KERNEL_VARIABILITY,
        scope=fact.kernel,
        scope_name=fact.name,
        kind="variability",
        subject=kernel_words(fact.name),
        quantity="time above the mean of the configuration",
        headline=text,
        sentence=text,
        verdict=SUPPORTED,
        effect=Effect(value=fact.cost_ns, unit="ns"),
        evidence=Evidence(
            table=f"{tables.dataset}/{KERNEL_VARIABILITY}/kernels.parquet", query=fact.query, value=fact.cost_ns
        ),
        n=fact.launches,
        is_negligible=fact.trend is not None,
        link=link_to(tables.dataset, KERNEL_VARIABILITY, "kernel", fact.kernel),
    )


def _of_late_rank(tables: RunTables, run: RunFact, fact: LateRankFact) -> Finding:
    """Return the ranks that the others wait for."""
    who = f"rank{'s' * (len(fact.ranks) > 1)} {', '.join(map(str, fact.ranks))}"
    key = f"rank{fact.ranks[0]}" if len(fact.ranks) == 1 else f"ranks{'_'.join(map(str, fact.ranks))}"
    return Finding(
        dataset=tables.dataset,
        kind="straggler",
        key=f"c{fact.group}/{key}",
        subject=who,
        quantity="time that other ranks wait",
        headline=f"{run_words.late_headline(fact)}.",
        sentence=_short(f"{run_words.late_headline(fact)}.", run_words.of_late_rank(fact, run)),
        verdict=SUPPORTED,
        effect=Effect(value=fact.waited_ns, unit="ns"),
        evidence=Evidence(table=f"{tables.dataset}/stragglers.json", query=fact.query, value=fact.waited_ns),
        n=fact.collectives,
        worth=Worth(ns=fact.waited_ns),
        recoverable_ns=fact.saved_ns * run.devices,
        suggestion=of_late(fact, run).words,
        link=link_to(tables.dataset, "stragglers"),
    )


def _of_slow_steps(tables: RunTables, run: RunFact, fact: SlowStepsFact) -> Finding:
    """Return slow steps with one cause."""
    table = f"{tables.dataset}/step_causes.parquet"
    pairs = ", ".join(f"({rank}, {step})" for rank, step in fact.pairs)
    where = f"cause = '{fact.cause}' AND (rank, step) IN ({pairs})"
    text = f"{run_words.of_slow_steps(fact, run)}."
    return Finding(
        dataset=tables.dataset,
        target=STEP_TIME,
        kind="step",
        key=f"rank{fact.ranks[0]}/{fact.cause}",
        subject=f"ranks {', '.join(map(str, fact.ranks))}",
        quantity="time of slow steps",
        headline=text,
        sentence=text,
        verdict=SUPPORTED,
        effect=Effect(value=fact.cause_ns, unit="ns"),
        evidence=Evidence(
            table=table, query=of_table("sum(excess_ns)::BIGINT", table, where), value=fact.cause_ns, filter=where
        ),
        n=len(fact.steps),
        assumption="What differs in a slow step from the usual steps of its rank is why it is slow.",
        worth=Worth(ns=max(fact.cause_ns, 0)),
        # no more than the cause on one rank: without it the steps still take what else is longer in them
        recoverable_ns=max(min(fact.excess_ns, fact.cause_ns // len(fact.ranks)), 0) * run.devices,
        link=link_to(tables.dataset, "steps"),
    )

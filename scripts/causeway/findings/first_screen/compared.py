"""What changed from one run to another, step time first: facts of both runs side by side, each once in words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from causeway.core.formatting import count, significant, time
from causeway.core.names.kernel_words import kernel_words
from causeway.core.queries import cell
from causeway.core.vocabulary import INCONCLUSIVE, NOT_IDLE, SAME
from causeway.findings.first_screen.facts import DatasetFacts
from causeway.findings.first_screen.run_facts import NOTICEABLE, RunFact, RunTables
from causeway.findings.first_screen.words import detail_words

MOST_REASONS = 3
MOST_KERNELS = 3
ALWAYS = ("Median step", "Run", "The same launches")
"""Changes that are said however small they are."""


@dataclass(frozen=True, kw_only=True)
class ChangeFact:
    """A quantity of both runs: its values (ns, of all devices where it is a time of theirs), the change in percent with
    its interval, the verdict of the comparison, and the query of the change.
    """

    what: str
    before: float
    after: float
    percent: float | None
    low: float | None = None
    high: float | None = None
    verdict: str = INCONCLUSIVE
    query: str | None = None


@dataclass(frozen=True, kw_only=True)
class ComparedRuns:
    """What is said of a pair: its changes, the reasons of idle time and the kernels that changed most, before and
    after, ns of all devices, numbers of launches, both models, the longest step of each, and whether repeats were
    measured.
    """

    changes: Sequence[ChangeFact]
    reasons: Sequence[tuple[str, int, int]]
    kernels: Sequence[tuple[str, int, int]]
    launches: tuple[int, int]
    models: tuple[str, str]
    longest: tuple[int, int] | None
    has_repeats: bool


def compared_runs(
    document: Mapping, rows: Sequence[Mapping], before: DatasetFacts, after: DatasetFacts
) -> ComparedRuns | None:
    """Return what is known of a compared pair; None where it was not compared.

    Parameters
    ----------
    document : mapping
        `comparison.json`.
    rows : sequence of mapping
        Rows of `comparison.parquet`, in its order.
    before, after : DatasetFacts
    """
    runs = [one.run for one in (before, after)]
    if document["why"] is not None or (document["same_content"]["sides"] or {}).get("is_all") or None in runs:
        return None
    table = f"compare/{document['baseline']['dataset']}__{document['candidate']['dataset']}/comparison.parquet"
    names = {
        "step": "Median step",
        "span": "Run",
        "idle": "Idle, all GPUs",
        "copies": "Copies, all GPUs",
        "time_per_launch": "The same launches",
    }
    changes = [
        ChangeFact(
            what=names[row["metric"]],
            before=row["baseline_value"],
            after=row["candidate_value"],
            percent=row["change_percent"],
            low=row["low_percent"],
            high=row["high_percent"],
            verdict=row["verdict"],
            query=cell("change_percent", table, index),
        )
        for index, row in enumerate(rows)
        if row["level"] == "run" and row["metric"] in names and row["baseline_value"] is not None
    ]
    changes.sort(key=lambda change: list(names.values()).index(change.what))
    least = NOTICEABLE * max(run.gpu_ns for run in runs)
    sums = [_reasons(one.tables) for one in (before, after)]
    reasons = [(words, sums[0].get(words, 0), sums[1].get(words, 0)) for words in {**sums[0], **sums[1]}]
    kernels = [
        (row["kernel"], row["baseline_ns"], row["candidate_ns"])
        for row in document["decomposition"]
        if abs(row["candidate_ns"] - row["baseline_ns"] - row["launches_ns"]) >= least
    ]
    return ComparedRuns(
        changes=changes,
        reasons=sorted(
            (row for row in reasons if abs(row[2] - row[1]) >= least), key=lambda row: (-abs(row[2] - row[1]), row[0])
        ),
        kernels=sorted(kernels, key=lambda row: (-abs(row[2] - row[1]), row[0])),
        launches=tuple(document[side]["launches"] for side in ("baseline", "candidate")),
        models=tuple(_model(run) for run in runs),
        longest=tuple(run.steps.longest_ns for run in runs) if all(run.steps for run in runs) else None,
        has_repeats=document["noise"] == "repeats",
    )


def _reasons(tables: RunTables) -> dict[str, int]:
    """Return idle time by what is behind it, in words, ns of all devices."""
    sums: dict[str, int] = {}
    for row in tables.waiting:
        if row["reason"] not in NOT_IDLE:
            words = detail_words(row["reason"], row["detail"])
            sums[words] = sums.get(words, 0) + row["wait_ns"]
    return sums


def _model(run: RunFact) -> str:
    return f"{run.devices} x {', '.join(run.gpus) or 'GPU'}"


def _change(fact: ChangeFact) -> str:
    words = f"{fact.what} {time(fact.before)} to {time(fact.after)}"
    if fact.percent is None:
        return words
    return f"{words} ({_signed(fact.percent)}{_interval(fact)})"


def _interval(fact: ChangeFact) -> str:
    return "" if fact.low is None else f" [{significant(fact.low, 2)}, {significant(fact.high, 2)}]"


def _signed(percent: float) -> str:
    sign = "+" if percent > 0 else "−" if percent < 0 else ""
    return f"{sign}{significant(abs(percent), 3 if abs(percent) >= 100 else 2)} %"


def of_comparison(fact: ComparedRuns) -> list[tuple[str, str | None]]:
    """Return what changed, line by line, with the query of the change that the line is about: step time, the run, idle
    time with its reasons, copies, kernels; then what the numbers rest on.
    """
    if fact.models[0] != fact.models[1]:
        lines: list[tuple[str, str | None]] = [(f"{fact.models[0]} before, {fact.models[1]} after.", None)]
    else:
        lines = []
    for change in fact.changes:
        if change.what not in ALWAYS and not _is_said(change, fact):
            continue
        words = _change(change)
        if change.what == "Median step" and fact.longest is not None:
            words += f", longest {time(fact.longest[0])} to {time(fact.longest[1])}"
        if change.what == "Idle, all GPUs" and fact.reasons:
            words += f": {', '.join(_pair(*row) for row in fact.reasons[:MOST_REASONS])}"
        if change.what == "The same launches":
            counts = (
                ""
                if fact.launches[0] == fact.launches[1]
                else f", {count(fact.launches[0])} to {count(fact.launches[1])} of them"
            )
            words = f"The same launches take {_signed(change.percent)}{_interval(change)}{counts}"
            if fact.kernels:
                named = ", ".join(_pair(kernel_words(_base(name)), *ns) for name, *ns in fact.kernels[:MOST_KERNELS])
                words += f"; beyond their number: {named}"
        if change.verdict not in (INCONCLUSIVE, SAME):
            words += ", beyond noise"
        elif change.verdict == SAME:
            words += ", the same within noise"
        lines.append((f"{words}.", change.query))
    if not fact.has_repeats:
        lines.append(("One run each: how much two runs of one program differ was not measured.", None))
    return lines


def _is_said(change: ChangeFact, fact: ComparedRuns) -> bool:
    """Return whether a time of the devices changes by a hundredth of the run's."""
    span = next((one for one in fact.changes if one.what == "Run"), None)
    whole = span.before if span is not None else change.before
    return abs(change.after - change.before) >= NOTICEABLE * whole


def _pair(words: str, before: int, after: int) -> str:
    return f"{words} {time(before) if before else '0'} to {time(after) if after else '0'}"


def _base(name: str) -> str:
    """Return a demangled name without return type, namespace, template arguments and parameters."""
    text = name.split("<")[0].split("(")[0].removeprefix("void ")
    return text.rpartition("::")[2] or name

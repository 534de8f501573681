"""What changed from one run to another, step time first: facts of both runs side by side, each once in words."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from causeway.core.formatting import count, elided, significant, time
from causeway.core.names.kernel_words import LONGEST, kernel_words, matrix_product
from causeway.core.queries import cell
from causeway.core.schemas import Row
from causeway.core.vocabulary import INCONCLUSIVE, NOT_IDLE, SAME
from causeway.findings.first_screen.run_facts import NOTICEABLE
from causeway.findings.first_screen.words import detail_words

MOST_REASONS = 3
MOST_KERNELS = 3
FEWEST_OF_P99 = 100
"""Steps of which a hundredth is one."""
SIDES = ("baseline", "candidate")
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
    """What is said of a pair: its changes; reasons of idle time, operators and kernels that changed most, before and
    after, ns of all devices; numbers of launches, both models, the slowest steps of each, and whether repeats were
    measured.
    """

    changes: Sequence[ChangeFact]
    reasons: Sequence[tuple[str, int, int]]
    operators: Sequence[tuple[str, int, int]]
    kernels: Sequence[tuple[str, int, int]]
    launches: tuple[int, int]
    models: tuple[str, str]
    slowest: tuple[str, float, float] | None
    has_repeats: bool


@dataclass(frozen=True, kw_only=True)
class PairSide:
    """What is read of one run of a pair beside the comparison: rows of `waiting` and of `operator_summary`, and the
    durations of its steps behind the warm-up, mean of their ranks, ns.
    """

    waiting: Sequence[Row] = ()
    operators: Sequence[Row] = ()
    steps: Sequence[float] = ()


def step_times(rows: Iterable[Row]) -> list[float]:
    """Return the duration of each step of a table `steps` that is no warm-up, mean of its ranks, ns."""
    times: dict[int, list[int]] = {}
    for row in rows:
        if not row["warm_up"]:
            times.setdefault(row["step"], []).append(row["duration_ns"])
    return [sum(each) / len(each) for each in times.values()]


def compared_runs(document: Row, rows: Sequence[Row], sides: Sequence[PairSide]) -> ComparedRuns | None:
    """Return what is known of a compared pair; None where it was not compared.

    Parameters
    ----------
    document : mapping
        `comparison.json`.
    rows : sequence of mapping
        Rows of `comparison.parquet`, in its order.
    sides : sequence of PairSide
        The baseline, the candidate.
    """
    if document["why"] is not None or (document["same_content"]["sides"] or {}).get("is_all"):
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
    least = NOTICEABLE * max(_gpu_ns(document[side]) for side in SIDES)
    kernels = [
        (row["kernel"], row["baseline_ns"], row["candidate_ns"])
        for row in document["decomposition"]
        if abs(row["candidate_ns"] - row["baseline_ns"] - row["launches_ns"]) >= least
    ]
    return ComparedRuns(
        changes=changes,
        reasons=_side_by_side([_reasons(side) for side in sides], least),
        operators=_side_by_side([_operators(side) for side in sides], least),
        kernels=sorted(kernels, key=lambda row: (-abs(row[2] - row[1]), row[0])),
        launches=(document["baseline"]["launches"], document["candidate"]["launches"]),
        models=(_model(document["baseline"]["devices"]), _model(document["candidate"]["devices"])),
        slowest=_slowest(sides),
        has_repeats=document["noise"] == "repeats",
    )


def _gpu_ns(side: Row) -> int:
    return int(side["span_ns"] or 0) * max(sum(int(one["number"]) for one in side["devices"]), 1)


def _side_by_side(sums: Sequence[Mapping[str, int]], least: float) -> list[tuple[str, int, int]]:
    """Return times of both sides that differ by so much at least, the largest difference first."""
    before, after = sums
    pairs = [(words, before.get(words, 0), after.get(words, 0)) for words in {**before, **after}]
    changed = [row for row in pairs if abs(row[2] - row[1]) >= least]
    return sorted(changed, key=lambda row: (-abs(row[2] - row[1]), row[0]))


def _reasons(side: PairSide) -> dict[str, int]:
    """Return idle time by what is behind it, in words, ns of all devices."""
    sums: dict[str, int] = {}
    for row in side.waiting:
        if row["reason"] not in NOT_IDLE:
            words = detail_words(row["reason"], row["detail"])
            sums[words] = sums.get(words, 0) + row["wait_ns"]
    return sums


def _operators(side: PairSide) -> dict[str, int]:
    """Return the kernels' time by the operator that launched them, ns: the same names on devices of any maker."""
    return {row["name"]: row["gpu_ns"] for row in side.operators if row["level"] == "operator" and row["name"]}


def _slowest(sides: Sequence[PairSide]) -> tuple[str, float, float] | None:
    """Return the 99th percentile of the steps of both sides, or the longest where one has fewer than a hundred."""
    before, after = (side.steps for side in sides)
    if not (before and after):
        return None
    if min(len(before), len(after)) >= FEWEST_OF_P99:
        return "p99", float(np.quantile(before, 0.99)), float(np.quantile(after, 0.99))
    return "longest", float(max(before)), float(max(after))


def _model(devices: Sequence[Row]) -> str:
    return ", ".join(f"{one['number']} x {one['name'] or 'GPU'}" for one in devices)


def _change(fact: ChangeFact) -> str:
    words = f"{fact.what} {time(fact.before)} to {time(fact.after)}"
    if fact.percent is None:
        return words
    return f"{words} ({_signed(fact.percent)}{_interval(fact)})"


def _interval(fact: ChangeFact) -> str:
    return (
        "" if fact.low is None or fact.high is None else f" [{significant(fact.low, 2)}, {significant(fact.high, 2)}]"
    )


def _signed(percent: float) -> str:
    sign = "+" if percent > 0 else "−" if percent < 0 else ""
    return f"{sign}{significant(abs(percent), 3 if abs(percent) >= 100 else 2)} %"


def of_comparison(fact: ComparedRuns) -> list[tuple[str, str | None]]:
    """Return what changed, line by line, with the query of the change that the line is about: step time, the run, idle
    time with its reasons, copies, kernels; then what the numbers rest on.
    """
    lines: list[tuple[str, str | None]] = []
    if fact.models[0] != fact.models[1]:
        lines = [(f"{fact.models[0]} before, {fact.models[1]} after.", None)]
    elif fact.models[0].partition(" x ")[2] not in ("GPU", ""):
        lines = [(f"{fact.models[0]} on both sides.", None)]
    for change in fact.changes:
        if change.what not in ALWAYS and not _is_said(change, fact):
            continue
        words = _change(change)
        if change.what == "Median step" and fact.slowest is not None:
            words += f", {_pair(*fact.slowest)}"
        if change.what == "Idle, all GPUs" and fact.reasons:
            words += f": {', '.join(_pair(*row) for row in fact.reasons[:MOST_REASONS])}"
        if change.what == "The same launches" and change.percent is not None:
            lines += _of_operators(fact)
            counts = (
                ""
                if fact.launches[0] == fact.launches[1]
                else f", {count(fact.launches[0])} to {count(fact.launches[1])} of them"
            )
            words = f"The same launches take {_signed(change.percent)}{_interval(change)}{counts}"
        if change.verdict not in (INCONCLUSIVE, SAME):
            words += ", beyond noise"
        elif change.verdict == SAME:
            words += ", the same within noise"
        lines.append((f"{words}.", change.query))
    if not any(change.what == "The same launches" for change in fact.changes):
        lines += _of_operators(fact)  # devices of two makers have no kernel in common
    if fact.kernels:
        named = ", ".join(
            _pair(matrix_product(name) or kernel_words(_base(name)), *ns) for name, *ns in fact.kernels[:MOST_KERNELS]
        )
        lines.append((f"Kernels that changed beyond their number: {named}.", None))
    if not fact.has_repeats:
        lines.append(("One run each: how much two runs of one program differ was not measured.", None))
    return lines


def _of_operators(fact: ComparedRuns) -> list[tuple[str, str | None]]:
    """Return which operators take other times; nothing where none does."""
    if not fact.operators:
        return []
    named = ", ".join(_pair(elided(name, LONGEST), *ns) for name, *ns in fact.operators[:MOST_KERNELS])
    return [(f"Kernels by operator: {named}.", None)]


def _is_said(change: ChangeFact, fact: ComparedRuns) -> bool:
    """Return whether a time of the devices changes by a hundredth of the run's."""
    span = next((one for one in fact.changes if one.what == "Run"), None)
    whole = span.before if span is not None else change.before
    return abs(change.after - change.before) >= NOTICEABLE * whole


def _pair(words: str, before: float, after: float) -> str:
    return f"{words} {time(before) if before else '0'} to {time(after) if after else '0'}"


def _base(name: str) -> str:
    """Return a demangled name without return type, namespace, template arguments and parameters."""
    text = name.split("<")[0].split("(")[0].removeprefix("void ")
    return text.rpartition("::")[2] or name

"""What changed from one run to another, step time first: facts of both runs side by side, each once in words."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from causeway.core.formatting import count, elided, significant, time
from causeway.core.names.kernel_words import LONGEST, kernel_words, matrix_product
from causeway.core.queries import cell
from causeway.core.schemas import Row
from causeway.core.vocabulary import FEWEST_OF_P99, INCONCLUSIVE, NOT_IDLE, SAME
from causeway.findings.first_screen.run_facts import COMMUNICATION, COPIES, NOTICEABLE
from causeway.findings.first_screen.words.run_words import PARTS, detail_words

MOST_REASONS = 3
MOST_KERNELS = 3
SIDES = ("baseline", "candidate")
SAME_LAUNCHES = "The same launches"
SAME_CALLS = "The same operator calls"
"""Said where no kernel is known to be on both sides."""
ALWAYS = ("Median step", "Run", SAME_LAUNCHES, SAME_CALLS)
"""Changes that are said however small they are."""
MOST_OPERATORS = 3
OTHER_NUMBER = 0.05
"""Share by which a step holds more or fewer calls of an operator than before, for that to be part of its change."""
LONGEST_INPUT = 60
"""Characters of an operator's input."""


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
class CallFact:
    """The kernels' time in one call of an operator with one input (None: with any) in both runs, ns: the change with
    its interval, numbers of calls, and what it makes of all calls of the candidate, and of a step of one rank, ns.
    `before` is the operator's name in the baseline.
    """

    operator: str
    before: str
    dims: str | None
    change: ChangeFact
    calls: tuple[int, int]
    whole_ns: int
    step_ns: int | None


@dataclass(frozen=True, kw_only=True)
class ComparedRuns:
    """What is said of a pair: its changes; calls of operators, those whose change makes most first; reasons of idle
    time, copies and communication outside compute, operators and kernels that changed most, before and after, ns of all
    devices; numbers of launches and of calls, both models, the slowest steps of each, whether repeats were measured,
    and the runs without input shapes.
    """

    changes: Sequence[ChangeFact]
    calls: Sequence[CallFact]
    numbers_of_calls: tuple[int, int]
    unshaped: Sequence[str]
    reasons: Sequence[tuple[str, int, int]]
    exposed: Sequence[tuple[str, int, int]]
    operators: Sequence[tuple[str, int, int]]
    kernels: Sequence[tuple[str, int, int]]
    launches: tuple[int, int]
    models: tuple[str, str]
    slowest: tuple[str, float, float] | None
    has_repeats: bool


@dataclass(frozen=True, kw_only=True)
class PairSide:
    """What is read of one run of a pair beside the comparison: rows of `waiting` and of `operator_summary`, the
    durations of its steps behind the warm-up, mean of their ranks, ns, and the parts of its devices' time, ns.
    """

    waiting: Sequence[Row] = ()
    operators: Sequence[Row] = ()
    steps: Sequence[float] = ()
    parts: Mapping[str, int] = field(default_factory=dict)


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
        "time_per_launch": SAME_LAUNCHES,
        "time_per_call": SAME_CALLS,
    }
    changes = [
        _change_of(names[row["metric"]], row, cell("change_percent", table, index))
        for index, row in enumerate(rows)
        if row["level"] == "run" and row["metric"] in names and row["baseline_value"] is not None
    ]
    by_kernel = any(change.what == SAME_LAUNCHES for change in changes)
    changes = [change for change in changes if change.what != SAME_CALLS or (not by_kernel and change.low is not None)]
    changes.sort(key=lambda change: list(names.values()).index(change.what))
    least = NOTICEABLE * max(_gpu_ns(document[side]) for side in SIDES)
    kernels = [
        (row["kernel"], row["baseline_ns"], row["candidate_ns"])
        for row in document["decomposition"]
        if abs(row["candidate_ns"] - row["baseline_ns"] - row["launches_ns"]) >= least
    ]
    operators = document["operators"]
    return ComparedRuns(
        changes=changes,
        calls=[call for call in _calls(operators, rows, table, sides) if abs(call.whole_ns) >= least]
        if operators
        else (),
        numbers_of_calls=(operators["baseline"]["calls"], operators["candidate"]["calls"]) if operators else (0, 0),
        unshaped=operators["without_shapes"] if operators else (),
        reasons=_side_by_side([_reasons(side) for side in sides], least),
        exposed=_side_by_side([_exposed(side) for side in sides], least),
        operators=_side_by_side([_operators(side) for side in sides], least),
        kernels=sorted(kernels, key=lambda row: (-abs(row[2] - row[1]), row[0])),
        launches=(document["baseline"]["launches"], document["candidate"]["launches"]),
        models=(_model(document["baseline"]["devices"]), _model(document["candidate"]["devices"])),
        slowest=_slowest(sides),
        has_repeats=document["noise"] == "repeats",
    )


def _gpu_ns(side: Row) -> int:
    return int(side["span_ns"] or 0) * max(sum(int(model["number"]) for model in side["devices"]), 1)


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


def _exposed(side: PairSide) -> dict[str, int]:
    """Return the time of copies and communication outside compute, in words, ns of all devices."""
    return {f"{PARTS[part][:1].upper()}{PARTS[part][1:]}": side.parts.get(part, 0) for part in (COPIES, COMMUNICATION)}


def _operators(side: PairSide) -> dict[str, int]:
    """Return the kernels' time by the operator that launched them, ns: the same names on devices of any maker."""
    return {row["name"]: row["gpu_ns"] for row in side.operators if row["level"] == "operator" and row["name"]}


def _change_of(what: str, row: Row, query: str) -> ChangeFact:
    return ChangeFact(
        what=what,
        before=row["baseline_value"],
        after=row["candidate_value"],
        percent=row["change_percent"],
        low=row["low_percent"],
        high=row["high_percent"],
        verdict=row["verdict"],
        query=query,
    )


def _calls(operators: Row, rows: Sequence[Row], table: str, sides: Sequence[PairSide]) -> list[CallFact]:
    """Return the calls of operators that both runs have, by input where all runs recorded inputs: those whose change
    makes most of all calls first. Where a step holds more or fewer calls than before, that is part of the change.
    """
    steps = [len(side.steps) for side in sides]
    by_name = {row["operator"]: row for row in operators["decomposition"]}
    by_input = {row["name"]: row for row in operators["shapes"]}
    facts = []
    for index, row in enumerate(rows):
        call = None
        if row["level"] == "operator_shape":
            call = by_input.get(row["candidate"])
        elif row["level"] == "operator" and operators["without_shapes"]:
            call = by_name.get(row["candidate"])
        if call is not None and row["change_percent"] is not None:
            calls = row["baseline_launches"], row["candidate_launches"]
            before = row["baseline_value"]
            after = row["candidate_value"]
            more = 1.0
            if all(steps) and all(calls) and after != before:
                of_before = calls[0] / steps[0] * steps[1] / calls[1]  # calls that one of the candidate's stands for
                more = (after - before * of_before) / (after - before) if abs(of_before - 1) >= OTHER_NUMBER else 1.0
            fact = CallFact(
                operator=call["operator"],
                before=call.get("baseline_operator", row["baseline"]),
                dims=call.get("dims"),
                change=_change_of(row["candidate"], row, cell("change_percent", table, index)),
                calls=calls,
                whole_ns=round(more * call["time_ns"]),
                step_ns=None if call["step_ns"] is None else round(more * call["step_ns"]),
            )
            facts.append(fact)
    return sorted(facts, key=lambda fact: (-abs(fact.whole_ns), fact.change.what))


def _slowest(sides: Sequence[PairSide]) -> tuple[str, float, float] | None:
    """Return the 99th percentile of the steps of both sides, or the longest where one has fewer than a hundred."""
    before, after = (side.steps for side in sides)
    if not (before and after):
        return None
    if min(len(before), len(after)) >= FEWEST_OF_P99:
        return "p99", float(np.quantile(before, 0.99)), float(np.quantile(after, 0.99))
    return "longest", float(max(before)), float(max(after))


def _model(devices: Sequence[Row]) -> str:
    return ", ".join(f"{model['number']} x {model['name'] or 'GPU'}" for model in devices)


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
    time with its reasons, copies, operators by input, kernels; then what the numbers rest on.
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
        if change.what in (SAME_LAUNCHES, SAME_CALLS) and change.percent is not None:
            lines += _of_operators(fact)
            numbers = fact.launches if change.what == SAME_LAUNCHES else fact.numbers_of_calls
            words = f"{change.what} take {_signed(change.percent)}{_interval(change)}{_numbers(numbers, ' of them')}"
        lines.append((f"{words}{_noise(change)}.", change.query))
    lines += [(f"{_pair(f'{what}, all GPUs', *ns)}.", None) for what, *ns in fact.exposed]
    if not any(change.what in (SAME_LAUNCHES, SAME_CALLS) for change in fact.changes):
        lines += _of_operators(fact)  # devices of two makers have no kernel in common
    if fact.kernels:
        named = ", ".join(
            _pair(matrix_product(name) or kernel_words(_base(name)), *ns) for name, *ns in fact.kernels[:MOST_KERNELS]
        )
        lines.append((f"Kernels that changed beyond their number: {named}.", None))
    if not fact.has_repeats:
        lines.append(("One run each: how much two runs of one program differ was not measured.", None))
    return lines


def _numbers(numbers: tuple[int, int], of_what: str) -> str:
    return "" if numbers[0] == numbers[1] else f", {count(numbers[0])} to {count(numbers[1])}{of_what}"


def _noise(change: ChangeFact) -> str:
    if change.verdict == SAME:
        return ", the same within noise"
    return "" if change.verdict == INCONCLUSIVE else ", beyond noise"


def _of_operators(fact: ComparedRuns) -> list[tuple[str, str | None]]:
    """Return which operators take other times: a call with the same input, then all kernels of each that is not named
    so; nothing where none does.
    """
    lines: list[tuple[str, str | None]] = []
    shown = fact.calls[:MOST_OPERATORS]
    if shown:
        by = (
            f"name alone, as {' and '.join(fact.unshaped)} recorded no input shapes" if fact.unshaped else "input shape"
        )
        lines.append((f"Operators by {by}, time per call: {'; '.join(map(_call, shown))}.", shown[0].change.query))
    named = {name for call in shown for name in (call.operator, call.before)}
    others = [row for row in fact.operators if row[0] not in named]
    if others:
        words = ", ".join(_pair(elided(name, LONGEST), *ns) for name, *ns in others[:MOST_KERNELS])
        lines.append((f"Kernels by {'other ' if shown else ''}operator: {words}.", None))
    return lines


def _call(fact: CallFact) -> str:
    """Return a call of an operator before and after, and what the change is worth."""
    name = elided(fact.operator, LONGEST) + ("" if fact.dims is None else f" {elided(fact.dims, LONGEST_INPUT)}")
    worth = fact.whole_ns if fact.step_ns is None else fact.step_ns
    where = f"in {count(fact.calls[1])} calls" if fact.step_ns is None else "a step"
    signed = f"{'+' if worth > 0 else '−' if worth < 0 else ''}{time(abs(worth)) if worth else '0'} {where}"
    numbers = _numbers(fact.calls, " calls")
    change = fact.change
    percent = "" if change.percent is None else f" ({_signed(change.percent)}{_interval(change)})"
    return f"{name} {time(change.before)} to {time(change.after)}{percent}{numbers}, {signed}{_noise(change)}"


def _is_said(change: ChangeFact, fact: ComparedRuns) -> bool:
    """Return whether a time of the devices changes by a hundredth of the run's."""
    span = next((other for other in fact.changes if other.what == "Run"), None)
    whole = span.before if span is not None else change.before
    return abs(change.after - change.before) >= NOTICEABLE * whole


def _pair(words: str, before: float, after: float) -> str:
    return f"{words} {time(before) if before else '0'} to {time(after) if after else '0'}"


def _base(name: str) -> str:
    """Return a demangled name without return type, namespace, template arguments and parameters."""
    text = name.replace("(anonymous namespace)::", "").split("<")[0].split("(")[0].removeprefix("void ")
    return text.rpartition("::")[2] or name

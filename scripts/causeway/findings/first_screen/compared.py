"""What changed from one run to another, step time first: facts of both runs side by side, each once in words."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from causeway.core.codes import NO_CALLS
from causeway.core.formatting import changed_by, count, difference, elided, quantity, time
from causeway.core.names.build_numbers import without_build_numbers
from causeway.core.names.kernel_words import LONGEST, demangled_words
from causeway.core.queries import cell
from causeway.core.schemas import Row
from causeway.core.vocabulary import (
    COUNTS_ALIKE,
    EXACT,
    FEWEST_OF_P99,
    INCONCLUSIVE,
    NORMALISED,
    NOT_IDLE,
    OTHER_WORK,
    SAME,
    SEQUENCE,
)
from causeway.findings.first_screen.compared_kernels import (
    OTHER_NUMBER,
    compared_tables,
    is_alike,
    is_kernel,
    kernel_details,
    kernels_by_name,
    launch_ratio,
)
from causeway.findings.first_screen.run_facts import COMMUNICATION, COPIES, NOTICEABLE
from causeway.findings.first_screen.words.pair_words import of_detail, of_tables, of_tail, pair
from causeway.findings.first_screen.words.run_words import PARTS, detail_words
from causeway.findings.first_screen.words.run_words import percent as share_words

MOST_REASONS = 3
MOST_KERNELS = 3
SIDES = ("baseline", "candidate")
SAME_LAUNCHES = "The same launches"
SAME_CALLS = "The same operator calls"
"""Said where no kernel is known to be on both sides."""
ALWAYS = ("Median step", "Run")
"""Changes that are said however small they are."""
NOT_EXPLAINED = "not explained"
MOST_OPERATORS = 3
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
class Amount:
    """What times of a whole run are divided by where the runs differ in it, before and after, and how it is called: the
    steps, the devices, and without steps how often the same kernels were launched, if that differs.
    """

    divisors: tuple[float, float] = (1.0, 1.0)
    of: str = ", all GPUs"
    steps: tuple[int, int] | None = None
    is_of_launches: bool = False

    def of_each(self, sums: Sequence[Mapping[str, float]]) -> list[dict[str, float]]:
        """Return times of both runs by words, each divided."""
        return [
            {words: ns / divisor for words, ns in own.items()} for own, divisor in zip(sums, self.divisors, strict=True)
        ]


@dataclass(frozen=True, kw_only=True)
class PairSide:
    """What is read of one run of a pair beside the comparison: rows of `waiting` and of `operator_summary`, the
    durations of its steps behind the warm-up and of those that warm up, mean of their ranks, ns, its copies by device
    and direction, and the parts of its devices' time, ns.
    """

    waiting: Sequence[Row] = ()
    operators: Sequence[Row] = ()
    steps: Sequence[float] = ()
    warm_up: Sequence[float] = ()
    copies: Sequence[Row] = ()
    parts: Mapping[str, int] = field(default_factory=dict)


def step_times(rows: Sequence[Row], is_warm_up: bool = False) -> list[float]:
    """Return the duration of each step of a table `steps` that warms up on all ranks, or of the others, mean of its
    ranks, ns.
    """
    times: dict[int, list[int]] = {}
    steady = {row["step"] for row in rows if not row["warm_up"]}
    for row in rows:
        if row["warm_up"] == is_warm_up and is_warm_up != (row["step"] in steady):
            times.setdefault(row["step"], []).append(row["duration_ns"])
    return [sum(each) / len(each) for each in times.values()]


class ComparedRuns:
    """What is said of a pair: its changes; calls of operators, those whose change makes most first; reasons of idle
    time, copies and communication outside compute, operators and kernels that changed most, before and after, ns;
    numbers of launches and of calls, both models, the slowest steps of each, whether repeats were measured, and the
    runs without input shapes.

    Then: what changed between plain tables; what times of whole runs are divided by; what is behind the change of
    kernels, and those of which the slowest launches alone changed; why the launches are not the same, where they are
    not, steps that warm up, kernels' names in the baseline by those in the candidate where they are others, and whether
    all kernels changed alike; the idle share before and after, what is behind most of it; and rates of
    copies that changed, by direction, GB/s; where no kernel is on both sides the time of all, ns; and the run that has
    kernels alone, where the other has copies and calls.
    """

    def __init__(self, document: Row, rows: Sequence[Row], sides: Sequence[PairSide]) -> None:
        before, after = (document[side] for side in SIDES)
        table = f"compare/{before['dataset']}__{after['dataset']}/comparison.parquet"
        whole = next((row for row in rows if row["level"] == "run" and row["metric"] == "time_per_launch"), None)
        self.other_work = whole["reason"] if whole and whole["reason_code"] == OTHER_WORK else ""
        amount = self.amount = _amount(document, rows, sides, bool(self.other_work))
        operators = document["operators"]
        is_by_input = bool(self.other_work and operators and not operators["without_shapes"])
        names = {
            "step": "Median step",
            "span": "Run",
            "idle": f"Idle{amount.of}",
            "copies": f"Copies{amount.of}",
            "time_per_launch": SAME_LAUNCHES,
            "time_per_call": SAME_CALLS,
        }
        changes = [
            _of_amount(_change_of(names[metric], row, cell("change_percent", table, index)), metric, amount)
            for index, row in enumerate(rows)
            if row["level"] == "run" and (metric := row["metric"]) in names and row["baseline_value"] is not None
        ]
        changes.sort(key=lambda change: list(names.values()).index(change.what))
        self.changes = [
            change
            for change in changes
            if change.what != SAME_CALLS or (change.low is not None and (is_by_input or not whole))
        ]
        least = NOTICEABLE * max(map(_gpu_ns, (before, after)))
        calls = _calls(operators, rows, table, sides, _compared_ranks(document)) if operators else []
        self.calls = [call for call in calls if abs(call.whole_ns) >= least]
        self.numbers_of_calls = [operators[side]["calls"] for side in SIDES] if operators else [0, 0]
        self.unshaped = operators["without_shapes"] if operators else ()
        ends = [(whole or {}).get(f"{end}_percent") or 0 for end in ("low", "high")]
        is_change = whole and whole["verdict"] != SAME and ends[0] * ends[1] > 0
        least_kernel = NOTICEABLE * max(side["gpu_time_ns"] or 0 for side in (before, after)) if is_change else least
        kernels = [
            (row["kernel"], row["baseline_ns"] / amount.divisors[0], row["candidate_ns"] / amount.divisors[1])
            for row in kernels_by_name(document["decomposition"])
            if abs(row["candidate_ns"] - row["baseline_ns"] - row["launches_ns"]) >= min(least, least_kernel)
        ]
        self.kernels = sorted(kernels, key=lambda row: (-abs(row[2] - row[1]), row[0]))
        self.details = kernel_details(document, rows)
        told = {kernel[0] for kernel in kernels}
        self.tails = [
            row["candidate"]
            for row in filter(is_kernel, rows)
            if row["candidate"] not in told
            and self.details[row["candidate"]].tail is not None
            and row["candidate_total_ns"] >= least
        ]
        of_each = [_gpu_ns(side) / divisor for side, divisor in zip((before, after), amount.divisors, strict=True)]
        least_each = NOTICEABLE * max(of_each)
        reasons = amount.of_each(list(map(_reasons, sides)))
        self.reasons = _side_by_side(reasons, least_each)
        self.most_idle = max(reasons[1].items(), key=lambda pair: pair[1], default=("", 0))[0]
        self.exposed = _side_by_side(amount.of_each(list(map(_exposed, sides))), least_each)
        copied = [list(map(time, (row.before, row.after))) for row in self.changes if row.what.startswith("Copies")]
        self.exposed = [row for row in self.exposed if list(map(time, row[1:])) not in copied]
        are_known = operators and _are_annotated_alike(document)
        self.operators = _side_by_side(amount.of_each(list(map(_operators, sides))), least_each) if are_known else []
        self.launches = before["launches"], after["launches"]
        self.models = _model(before["devices"]), _model(after["devices"])
        self.slowest = _slowest(sides)
        self.has_repeats = document["noise"] == "repeats"
        self.tables = compared_tables(document, rows, table)
        self.warm_up = [side.warm_up for side in sides]
        self.former = {
            row["candidate"]: row["baseline"]
            for row in document["matches"]
            if row["candidate"] and row["baseline"] and len({without_build_numbers(row[side]) for side in SIDES}) > 1
        }
        self.is_alike = whole is not None and is_alike(rows, whole["change_percent"], document)
        self.idle_shares = _idle_shares(document, rows)
        self.rates = _rates(sides)
        # of kernels alone it is not known what ran beside them, unless neither side has calls: neither copies nor
        # idle time are compared
        lacks_calls = [any(row["detail"] == NO_CALLS for row in side.waiting) for side in sides]
        bare = [lacks and not side.copies for lacks, side in zip(lacks_calls, sides, strict=True)]
        is_bare = any(bare) and not all(lacks_calls) and any(side.copies for side in sides)
        self.bare = document[SIDES[bare.index(True)]]["dataset"] if is_bare else ""
        if self.bare:
            self.changes = [change for change in self.changes if not change.what.startswith(("Idle", "Copies"))]
            self.exposed = [row for row in self.exposed if not row[0].endswith(PARTS[COPIES][1:])]
        is_lone = not any(document.get("matched", {EXACT: 1}).get(how) for how in (EXACT, NORMALISED, SEQUENCE))
        self.lone_times = (before["gpu_time_ns"], after["gpu_time_ns"]) if is_lone else None


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
    return ComparedRuns(document, rows, sides)


def _amount(document: Row, rows: Sequence[Row], sides: Sequence[PairSide], is_other_work: bool) -> Amount:
    """Return what the times of whole runs are divided by: what differs by a twentieth or more. Launches count where the
    runs do the same work, and all kernels are launched about as many times as often as those with most time.
    """
    before, after = (len(side.steps) for side in sides)
    gpus = [_gpus(document[side]) for side in SIDES]
    launches = launch_ratio(rows)
    has_other_steps = bool(before and after) and abs(after / before - 1) >= OTHER_NUMBER
    totals = [sum(row[f"{side}_launches"] for row in filter(is_kernel, rows)) for side in SIDES]
    is_same_mix = max(launches * totals[0], totals[1]) <= COUNTS_ALIKE * min(launches * totals[0], totals[1])
    has_other_launches = not (before and after) and abs(launches - 1) >= OTHER_NUMBER
    by_launch = has_other_launches and is_same_mix and not is_other_work
    divisors = (float(before), float(after)) if has_other_steps else (1.0, launches if by_launch else 1.0)
    of = " a step" if has_other_steps else ""
    if gpus[0] != gpus[1]:
        divisors = divisors[0] * gpus[0], divisors[1] * gpus[1]
        of += " and GPU" if of else " a GPU"
    else:
        of += ", all GPUs"
    return Amount(
        divisors=divisors,
        of=f"{of} for as many launches" if by_launch else of,
        steps=(before, after) if has_other_steps else None,
        is_of_launches=has_other_launches,
    )


def _compared_ranks(document: Row) -> list[int]:
    """Return of how many ranks the calls of operators are compared on each side: of those of both, if there are any."""
    ranks = [set(document[side]["ranks"]) for side in SIDES]
    return [len(ranks[0] & ranks[1] or own) for own in ranks]


def _of_amount(change: ChangeFact, metric: str, amount: Amount) -> ChangeFact:
    """Return a time of all devices divided; its verdict was of the whole."""
    before, after = amount.divisors
    if metric not in ("idle", "copies") or before == after:
        return change
    percents = [
        None if percent is None else 100 * ((1 + percent / 100) * before / after - 1)
        for percent in (change.percent, change.low, change.high)
    ]
    return replace(
        change,
        before=change.before / before,
        after=change.after / after,
        percent=percents[0],
        low=percents[1],
        high=percents[2],
        verdict=INCONCLUSIVE,
    )


def _rates(sides: Sequence[PairSide]) -> list[tuple[str, float, float]]:
    """Return the rates of copies by direction before and after, GB/s, that differ by a twentieth; longest first, and
    without directions that take less than a hundredth of the time of all.
    """
    sums: list[dict[str, tuple[int, int]]] = [{}, {}]
    for side, own in zip(sides, sums, strict=True):
        for row in side.copies:
            size, spent = own.get(row["direction"], (0, 0))
            own[row["direction"]] = size + row["bytes"], spent + row["sized_ns"]
    before, after = sums
    least = [NOTICEABLE * sum(spent for _, spent in own.values()) for own in sums]  # whole ns
    both = [words for words in before if words in after and before[words][1] + after[words][1] >= math.fsum(least)]
    both.sort(key=lambda words: -before[words][1])
    rates = [(words, _gb_per_s(*before[words]), _gb_per_s(*after[words])) for words in both]
    return [rate for rate in rates if rate[1] and abs(rate[2] / rate[1] - 1) >= OTHER_NUMBER]


def _gb_per_s(size: int, spent_ns: int) -> float:
    return size / max(spent_ns, 1)


def _idle_shares(document: Row, rows: Sequence[Row]) -> tuple[float, float] | None:
    """Return the share of the devices' time in which they are idle, before and after; None where it is not known."""
    idle = next((row for row in rows if row["level"] == "run" and row["metric"] == "idle"), None)
    if idle is None or not all(document[side]["span_ns"] for side in SIDES):
        return None
    if None in (idle["baseline_value"], idle["candidate_value"]):
        return None
    return tuple(idle[f"{side}_value"] / _gpu_ns(document[side]) for side in SIDES)  # type: ignore[return-value]


def _gpus(side: Row) -> int:
    return max(sum(int(model["number"]) for model in side["devices"]), 1)


def _gpu_ns(side: Row) -> int:
    return int(side["span_ns"] or side.get("gpu_time_ns") or 0) * _gpus(side)


def _side_by_side(sums: Sequence[Mapping[str, float]], least: float) -> list[tuple[str, float, float]]:
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
            words = NOT_EXPLAINED if row["detail"] == NO_CALLS else detail_words(row["reason"], row["detail"])
            sums[words] = sums.get(words, 0) + row["wait_ns"]
    return sums


def _exposed(side: PairSide) -> dict[str, int]:
    """Return the time of copies and communication outside compute, in words, ns of all devices."""
    return {f"{PARTS[part][:1].upper()}{PARTS[part][1:]}": side.parts.get(part, 0) for part in (COPIES, COMMUNICATION)}


def _are_annotated_alike(document: Row) -> bool:
    """Return whether operators launched about as much of the kernels' time on both sides: else one run recorded ranges
    that the other lacks, and their times say nothing.
    """
    shares = [document["operators"][side]["gpu_time_ns"] / (document[side].get("gpu_time_ns") or 1) for side in SIDES]
    return max(shares) <= COUNTS_ALIKE * min(shares)


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


def _calls(
    operators: Row, rows: Sequence[Row], table: str, sides: Sequence[PairSide], ranks: Sequence[int] = (1, 1)
) -> list[CallFact]:
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
                of_rank = [number / steps[side] / ranks[side] for side, number in enumerate(calls)]
                of_before = of_rank[0] / of_rank[1]  # calls that one of the candidate's stands for
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
    return f"{words} ({changed_by(fact.percent, fact.low, fact.high)})"


def of_comparison(fact: ComparedRuns) -> list[tuple[str, str | None]]:
    """Return what changed, line by line, with the query of the change that the line is about; then what the numbers
    rest on.
    """
    lines = _of_runs(fact) if fact.tables is None else of_tables(fact.tables)
    if not fact.has_repeats:
        lines.append(("One run each: how much two runs of one program differ was not measured.", None))
    return lines


def _of_runs(fact: ComparedRuns) -> list[tuple[str, str | None]]:
    """Return step time, the run, idle time with its reasons, copies, operators by input, kernels."""
    lines: list[tuple[str, str | None]] = []
    if fact.models[0] != fact.models[1]:
        lines = [(f"{fact.models[0]} before, {fact.models[1]} after.", None)]
    elif fact.models[0].partition(" x ")[2] not in ("GPU", ""):
        lines = [(f"{fact.models[0]} on both sides.", None)]
    same_work = [change for change in fact.changes if change.what in (SAME_LAUNCHES, SAME_CALLS)]
    for change in [change for change in fact.changes if change not in same_work]:
        if change.what.startswith("Idle") and not _is_said(change, fact) and _has_other_idle_share(fact):
            lines.append((f"{_change(change)}{_idle_share(fact)}.", change.query))
        if change.what not in ALWAYS and not _is_said(change, fact):
            continue
        words = _change(change)
        if change.what == "Median step" and fact.slowest is not None:
            words += f", {pair(*fact.slowest)}"
        if change.what == "Run" and fact.amount.steps:
            words += _numbers(fact.amount.steps, " steps")
        if change.what == "Run" and fact.amount.is_of_launches:
            words += _numbers(fact.launches, " launches")
        if change.what.startswith("Idle") and fact.reasons:
            words += f": {', '.join(pair(*row) for row in fact.reasons[:MOST_REASONS])}"
        if change.what.startswith("Copies") and fact.rates:
            rates = (f"{words} at {quantity(a, 'GB/s')} to {quantity(b, 'GB/s')}" for words, a, b in fact.rates)
            words += f": {', '.join(rates)}"
        lines.append((f"{words}{_noise(change)}.", change.query))
        if change.what == "Median step" and len(fact.warm_up[0]) != len(fact.warm_up[1]):
            numbers = len(fact.warm_up[0]), len(fact.warm_up[1])
            lines.append(
                (f"{pair('Steps that warm up', *map(math.fsum, fact.warm_up))}{_numbers(numbers, ' of them')}.", None)
            )
    if fact.bare:
        lines.append((f"Idle time and copies are not compared: {fact.bare} has neither copies nor calls.", None))
    lines += _of_operators(fact)
    lines += [(f"{_of_same_work(change, fact)}.", change.query) for change in same_work]
    if fact.lone_times is not None:
        launches = _numbers(fact.launches, " launches")
        lines.append((f"No kernel is on both sides: {pair('GPU time', *fact.lone_times)}{launches}.", None))
    lines += [(f"{pair(f'{what}{fact.amount.of}', *ns)}.", None) for what, *ns in fact.exposed]
    if fact.kernels:
        named = ", ".join(
            f"{pair(_named(fact, name), *ns)}{of_detail(fact.details.get(name))}"
            for name, *ns in fact.kernels[:MOST_KERNELS]
        )
        lines.append((f"Kernels that changed beyond their number{_each(fact)}: {named}.", None))
    if fact.tails:
        named = ", ".join(
            f"{demangled_words(name)} {of_tail(fact.details[name])}" for name in fact.tails[:MOST_KERNELS]
        )
        lines.append((f"Slowest launches alone changed: {named}.", None))
    return lines


def _of_same_work(change: ChangeFact, fact: ComparedRuns) -> str:
    """Return what launches or calls of both runs take, or why these are not the same work."""
    if change.percent is None:
        return _change(change)
    percent = changed_by(change.percent, change.low, change.high)
    if change.what == SAME_CALLS:
        return f"{change.what} take {percent}{_numbers(fact.numbers_of_calls, ' of them')}{_noise(change)}"
    if fact.other_work:
        launches = _numbers(fact.launches, " launches")
        return f"As far as it is the same work, kernels take {percent}{launches}; {fact.other_work}"
    noise = _noise(change)
    alike = ", all kernels alike" if fact.is_alike and noise and change.verdict != SAME else ""
    return f"{change.what} take {percent}{_numbers(fact.launches, ' launches in all')}{alike}{noise}"


def _named(fact: ComparedRuns, name: str) -> str:
    """Return a kernel in words, and what it was called before where these are others."""
    words = demangled_words(name)
    before = demangled_words(fact.former.get(name, name))
    return words if before == words else f"{words}, before {before},"


def _each(fact: ComparedRuns) -> str:
    """Return of what times of kernels and operators are, where the runs differ in it."""
    return "" if fact.amount.of == Amount.of else f",{fact.amount.of.removeprefix(',')}"


def _has_other_idle_share(fact: ComparedRuns) -> bool:
    return fact.idle_shares is not None and abs(fact.idle_shares[1] - fact.idle_shares[0]) >= OTHER_NUMBER


def _idle_share(fact: ComparedRuns) -> str:
    before, after = map(share_words, fact.idle_shares or ())
    return f", {before} to {after} of the time, most of it {fact.most_idle}"


def _numbers(numbers: Sequence[int], of_what: str) -> str:
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
        words = ", ".join(pair(elided(name, LONGEST), *ns) for name, *ns in others[:MOST_KERNELS])
        lines.append((f"Kernels by {'other ' if shown else ''}operator{_each(fact)}: {words}.", None))
    return lines


def _call(fact: CallFact) -> str:
    """Return a call of an operator before and after, and what the change is worth."""
    name = elided(fact.operator, LONGEST) + ("" if fact.dims is None else f" {elided(fact.dims, LONGEST_INPUT)}")
    worth = fact.whole_ns if fact.step_ns is None else fact.step_ns
    where = f"in {count(fact.calls[1])} calls" if fact.step_ns is None else "a step"
    signed = f"{difference(worth)} {where}"
    numbers = _numbers(fact.calls, " calls")
    change = fact.change
    percent = "" if change.percent is None else f" ({changed_by(change.percent, change.low, change.high)})"
    return f"{name} {time(change.before)} to {time(change.after)}{percent}{numbers}, {signed}{_noise(change)}"


def _is_said(change: ChangeFact, fact: ComparedRuns) -> bool:
    """Return whether a time of the devices changes by a hundredth of the run's."""
    span = next((other for other in fact.changes if other.what == "Run"), None)
    whole = span.before if span is not None else change.before
    return abs(change.after - change.before) >= NOTICEABLE * whole / fact.amount.divisors[0]

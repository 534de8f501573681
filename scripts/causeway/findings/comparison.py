"""Findings of comparisons: which kernels, and whether the whole run, got slower, faster, more variable or less
efficient.
"""

import hashlib
import math
from collections.abc import Sequence
from typing import Any

from causeway.core.formatting import changed_by, elided, name_in_sentence, time
from causeway.core.queries import cell, in_document, value_at, within
from causeway.core.schemas import Row
from causeway.core.vocabulary import (
    CHANGE_WORDS,
    EXACT,
    FOR_THE_BETTER,
    FOR_THE_WORSE,
    INCONCLUSIVE,
    METRIC_NAMES,
    NORMALISED,
    SEQUENCE,
    SUPPORTED,
)
from causeway.findings.headlines import short
from causeway.findings.record import NOTICEABLE, Effect, Evidence, Finding

MOST = 10
"""Changes of kernels that are findings of their own, those with the most time at stake; the table has all."""
CHANGES = (*FOR_THE_WORSE, *FOR_THE_BETTER)
"""Verdicts of rows that claim a change."""
LEVELS = ("run", "kernel")
"""Levels whose changes are findings."""
LONGEST_INPUT = 60
"""Characters of an operator's input in a headline."""
UNITS = {"efficiency": "percentage points"}
OTHER_PARTS = ("launches_ns", "configurations_ns", "lone_ns")
"""Parts of a change of the GPU time that are none of the same launches."""
OTHER_LAUNCHES = "other launches and kernels{} change the GPU time by {}."
"""The end of a headline: than where, and by how much."""
UNDECIDED = "inconclusive: the data do not decide"
KERNEL_SUGGESTIONS = {
    CHANGE_WORDS["time_per_launch"][0]: (
        "Look at what changed for this kernel: its launch configurations, the clocks, what runs beside it, the"
        " compiler."
    ),
    CHANGE_WORDS["variability"][0]: "Look at the causes of this kernel's variability on both sides.",
}
SLOWER_OPERATORS = "Look at which operators take longer, and with which input, in the comparison's table."
RUN_SUGGESTIONS = {
    CHANGE_WORDS["time_per_launch"][0]: (
        "Look at which kernels are slower, in the comparison's table; if all are, at the clocks and what runs beside"
        " them."
    ),
    CHANGE_WORDS["time_per_call"][0]: SLOWER_OPERATORS,
    CHANGE_WORDS["variability"][0]: (
        "Look at which kernels vary more, in the comparison's table, and at their causes on both sides."
    ),
    CHANGE_WORDS["efficiency"][0]: (
        "Look at where device time is lost on both sides: launches that come late, copies, uneven ranks."
    ),
    CHANGE_WORDS["step"][0]: (
        "Look at which kernels are slower, and at what the devices wait for within a step, on both sides."
    ),
    CHANGE_WORDS["copies"][0]: "Look at which copies are new, larger or slower.",
    CHANGE_WORDS["idle"][0]: "Look at what the devices wait for on both sides.",
    CHANGE_WORDS["span"][0]: "Look at where the difference in GPU time comes from, and at what the devices wait for.",
}
OTHER_WORK = (
    "Look at which kernels are new, and which are launched more often, in the comparison's table: whether the work has"
    " grown, or is done in another way."
)
"""What to try where launches and kernels of one side alone add GPU time."""


def comparison_findings(document: Row, rows: Sequence[Row]) -> list[Finding]:
    """Return the findings of one comparison: each claimed change of the whole run, what launches and kernels of one
    side alone change, and each claimed change of the kernels with the most time; else that there is none. What concerns
    less than `NOTICEABLE` of the GPU time stays in the table: a kernel with a smaller share of it on both sides, an
    efficiency that moves by fewer points, durations that deviate by less from their mean on both sides. Of runs that
    were not compared, that they were not, and why.

    Parameters
    ----------
    document : mapping
        `comparison.json`.
    rows : sequence of mapping
        Rows of `comparison.parquet`, in its order: evidence names them by their index.
    """
    if document["why"] is not None:
        return [_not_compared(document)]
    by_operator = _has_no_common_kernel(document)
    changed = [
        index
        for index, row in enumerate(rows)
        if row["verdict"] in CHANGES and (by_operator or row["metric"] != "time_per_call")
    ]
    claimed = [index for index in changed if _is_noticeable(document, rows[index])]
    whole = [index for index in claimed if rows[index]["level"] == "run"]
    whole.sort(key=lambda index: rows[index]["metric"] != "step")
    kernels = [index for index in claimed if rows[index]["level"] == "kernel"]
    kernels.sort(key=lambda index: -abs(rows[index]["candidate_total_ns"] * rows[index]["change_percent"]))
    operators = [index for index in claimed if rows[index]["level"] == _level_of_operators(document)]
    operators.sort(key=lambda index: -abs(rows[index]["candidate_total_ns"] * rows[index]["change_percent"]))
    findings = [_change(document, rows, index) for index in whole]
    findings += _changed_work(document, rows) if claimed and not by_operator else []
    findings += [_change(document, rows, index) for index in kernels[:MOST]]
    if by_operator:
        findings += [_change(document, rows, index) for index in operators[:MOST]]
        return [*findings, _no_common_kernel(document)]
    return findings or _no_change(document, rows, is_small=any(rows[index]["level"] in LEVELS for index in changed))


def _level_of_operators(document: Row) -> str | None:
    """Return the level of the rows that say what became of operators: with each input, where inputs were recorded."""
    operators = document["operators"]
    return None if operators is None else "operator" if operators["without_shapes"] else "operator_shape"


def _not_compared(document: Row) -> Finding:
    """Return that a candidate was not compared with its baseline, and why."""
    baseline, candidate = _datasets(document)
    path = f"{_folder(document)}/comparison.json"
    return Finding(
        **_facts(document, "not_compared"),
        subject=short(candidate),
        quantity="runs that were compared",
        headline=f"{short(candidate)} could not be compared with {short(baseline)}.",
        sentence=f"{candidate} could not be compared with {baseline}: {document['why']}",
        verdict=INCONCLUSIVE,
        evidence=Evidence(table=path, query=in_document(path, "why", kind="text"), value=document["why"]),
        suggestion="Compare exports whose kernel launches can be read and that have kernels in common.",
    )


def _is_noticeable(document: Row, row: Row) -> bool:
    """Return whether a change concerns a noticeable share of the GPU time, and, of variability, one of the time."""
    if row["metric"] == "efficiency":
        return bool(abs(row["change_percent"]) >= 100 * NOTICEABLE)
    if row["metric"] == "variability" and max(row["baseline_value"], row["candidate_value"]) < NOTICEABLE:
        return False
    if row["level"] not in ("kernel", "operator", "operator_shape"):
        return True
    sides = ("baseline", "candidate")
    return any(row[f"{side}_total_ns"] >= NOTICEABLE * document[side]["gpu_time_ns"] for side in sides)


def _finding(document: Row, rows: Sequence[Row], index: int, *, key: str, **facts: Any) -> Finding:
    """Return a finding about the candidate whose number is the change in a row of the table."""
    row = rows[index]
    table = f"{_folder(document)}/comparison.parquet"
    return Finding(
        **_facts(document, key),
        effect=Effect(
            value=row["change_percent"],
            low=row["low_percent"],
            high=row["high_percent"],
            unit=UNITS.get(row["metric"], "percent"),
        ),
        evidence=Evidence(
            table=table, query=cell("change_percent", table, index), value=row["change_percent"], rows=(index,)
        ),
        n=row["candidate_launches"],
        n_effective=row["candidate_effective"] or None,
        assumption=document["assumption"],
        **facts,
    )


def _facts(document: Row, key: str) -> dict[str, Any]:
    """Return what every finding of a comparison states."""
    baseline, candidate = _datasets(document)
    link = f"{_folder(document)}/comparison.html"
    return {"dataset": candidate, "kind": "comparison", "key": f"{baseline}/{key}", "link": link}


def _folder(document: Row) -> str:
    return f"compare/{'__'.join(_datasets(document))}"


def _datasets(document: Row) -> tuple[str, str]:
    """Return the names of baseline and candidate."""
    return document["baseline"]["dataset"], document["candidate"]["dataset"]


def _amount(row: Row, with_interval: bool = True) -> str:
    """Return metric and change of a row in words, with the interval where it has one and `with_interval`."""
    unit = "points" if row["metric"] == "efficiency" else "%"
    low, high = (row["low_percent"], row["high_percent"]) if with_interval else (None, None)
    return f"{METRIC_NAMES[row['metric']]} {changed_by(row['change_percent'], low, high, unit)}"


def _short_hash(name: str) -> str:
    """Return a short key of a kernel's name: stable from run to run, whatever the name holds."""
    return hashlib.sha256(name.encode()).hexdigest()[:10]


def _change(document: Row, rows: Sequence[Row], index: int) -> Finding:
    """Return one claimed change. What it costs stands in the page's decomposition: it may be a price paid for
    something else.
    """
    row = rows[index]
    baseline, candidate = _datasets(document)
    whole = row["level"] == "run"
    kind = "Kernel" if row["level"] == "kernel" else "Operator"
    subject = candidate if whole else f"{kind} {name_in_sentence(row['candidate'])}"
    name = short(candidate if whole else row["candidate"])
    than = f"{row['verdict']}{' per launch' if whole and row['metric'] == 'time_per_launch' else ''} than"
    if row["level"] == "operator_shape":
        shape = next(shape for shape in document["operators"]["shapes"] if shape["name"] == row["candidate"])
        name = f"{short(shape['operator'])} {elided(shape['dims'] or 'without a known input', LONGEST_INPUT)}"
    return _finding(
        document,
        rows,
        index,
        key=f"{row['metric']}/{'run' if whole else _short_hash(row['candidate'])}",
        scope_name=row["candidate"] if row["level"] == "kernel" else None,
        subject=name,
        quantity=METRIC_NAMES[row["metric"]],
        headline=(f"{name} is {than} {'' if whole else 'in '}{short(baseline)}: {_amount(row, with_interval=False)}."),
        sentence=f"{subject} is {than} {'' if whole else 'in '}{baseline}: {_amount(row)}.",
        verdict=SUPPORTED,
        suggestion=(RUN_SUGGESTIONS if whole else KERNEL_SUGGESTIONS).get(row["verdict"]),
    )


def _no_change(document: Row, rows: Sequence[Row], *, is_small: bool) -> list[Finding]:
    """Return that no change is claimed, or (`is_small`) none but of little time, with how large a change of the whole
    run could be; nothing if the table has no such row.
    """
    baseline, candidate = _datasets(document)
    subject = short(candidate)
    headline = f"{subject}: {'only small changes' if is_small else 'no change'} from {short(baseline)}"
    headline += f" {'are' if is_small else 'is'} beyond noise."
    shared = document["same_content"]["sides"]
    is_one = shared is not None and shared["is_all"]
    if is_one:
        headline = f"{subject} and {short(baseline)} are the same recording: there are no two runs to compare."
    other = _other_work(document, rows)
    also = "" if other is None else f" Other launches and kernels change the GPU time by {_other_amount(*other)}."
    if other is not None:
        headline = f"{headline.rstrip('.')} for the same launches; {OTHER_LAUNCHES.format('', _other_amount(*other))}"
    for index, row in enumerate(rows):
        if row["level"] == "run" and row["metric"] == "time_per_launch":
            state = "the same within noise" if row["verdict"] == "same" else UNDECIDED
            what = f"Only changes of less than {100 * NOTICEABLE:.0f} % of the GPU time" if is_small else "No change"
            verb = "are" if is_small else "is"
            sentence = f"{what} from {baseline} to {candidate} {verb} beyond noise: {_amount(row)}, {state}.{also}"
            if is_one:
                sentence = f"{candidate} is the same recording as {baseline}: there are no two runs to compare."
            finding = _finding(
                document,
                rows,
                index,
                key="none",
                subject=subject,
                quantity=METRIC_NAMES[row["metric"]],
                headline=headline,
                sentence=sentence,
                verdict=INCONCLUSIVE,
            )
            return [finding]
    return []


def _has_no_common_kernel(document: Row) -> bool:
    return not any(document["matched"][how] for how in (EXACT, NORMALISED, SEQUENCE))


def _no_common_kernel(document: Row) -> Finding:
    """Return that no kernel of one run is known to be one of the other, and how the GPU time differs."""
    baseline, candidate = _datasets(document)
    path = f"{_folder(document)}/comparison.json"
    times = [document[side]["gpu_time_ns"] for side in ("baseline", "candidate")]
    before, after = (value_at(side, "gpu_time_ns", kind="integer") for side in ("baseline", "candidate"))
    percent = 100 * (times[1] - times[0]) / times[0] if times[0] else None
    gpu_times = f"GPU time {time(times[0])} to {time(times[1])}"
    return Finding(
        **_facts(document, "no_common_kernel"),
        subject=short(candidate),
        quantity="GPU time of kernels of one side alone",
        effect=None if percent is None else Effect(value=percent, unit="percent"),
        headline=f"{short(candidate)} has no kernel in common with {short(baseline)}: {gpu_times}.",
        sentence=(
            f"{baseline} and {candidate} have no kernel in common, so that no launches are the same: {gpu_times}. Span,"
            " copies, idle time, steps, efficiency, and operators by name and input are compared, as far as both were"
            " measured."
        ),
        verdict=INCONCLUSIVE,
        evidence=Evidence(
            table=path, query=within(path, f"(100 * ({after} - {before}))::DOUBLE / {before}"), value=percent
        )
        if percent is not None
        else Evidence(table=path, query=within(path, before), value=times[0]),
        assumption=document["assumption"],
        suggestion=(
            SLOWER_OPERATORS
            if document["operators"]
            else "Compare runs of the same kernels, or record operators with their input shapes on both sides."
        ),
    )


def _changed_work(document: Row, rows: Sequence[Row]) -> list[Finding]:
    """Return that launches and kernels of one side alone change the GPU time, which no claim on the same launches
    holds; nothing where they change less than `NOTICEABLE` of it.
    """
    other = _other_work(document, rows)
    if other is None:
        return []
    percent, factor = other
    amount = _other_amount(percent, factor)
    baseline, candidate = _datasets(document)
    path = f"{_folder(document)}/comparison.json"
    parts = " + ".join(value_at("change_ns", part, kind="integer") for part in OTHER_PARTS)
    before = value_at("baseline", "gpu_time_ns", kind="integer")
    if factor == 1:
        change = f"(100 * ({parts}))::DOUBLE / {before}"
    else:
        change = f"100 * (({before} + {parts})::DOUBLE / {factor:.17e} - {before}) / {before}"
    gpu_times = " to ".join(time(document[side]["gpu_time_ns"]) for side in ("baseline", "candidate"))
    finding = Finding(
        **_facts(document, "other_work"),
        subject=short(candidate),
        quantity="GPU time of launches and kernels of one side alone",
        effect=Effect(value=percent, unit="percent"),
        headline=f"{short(candidate)}: {OTHER_LAUNCHES.format(f' than in {short(baseline)}', amount)}",
        sentence=(
            f"From {baseline} to {candidate} the GPU time goes from {gpu_times}: {amount} by launches,"
            " configurations and kernels that only one of them has."
        ),
        verdict=SUPPORTED,
        evidence=Evidence(table=path, query=within(path, change), value=percent),
        assumption=document["assumption"],
        suggestion=OTHER_WORK if percent > 0 else None,
    )
    return [finding]


def _other_work(document: Row, rows: Sequence[Row]) -> tuple[float, float] | None:
    """Return by how much launches and kernels of one side alone change the baseline's GPU time, in percent, and by what
    the candidate's is divided before: 1, or its factor of steps and GPUs where that leaves less of a change.

    None where that is less than `NOTICEABLE`: a longer recording does no other work, and neither do more GPUs. No
    change of the same launches holds it.
    """
    before = document["baseline"]["gpu_time_ns"]
    other = sum(document["change_ns"][part] for part in OTHER_PARTS)
    gpus = [sum(model["number"] for model in document[side]["devices"]) for side in ("baseline", "candidate")]
    steps = [(row["baseline_launches"], row["candidate_launches"]) for row in rows if row["metric"] == "step"]
    more = math.prod(after / before for before, after in (gpus, *steps) if before and after)
    if not before:
        return None
    factor = min((1.0, more), key=lambda of: abs((before + other) / of - before))
    if abs((before + other) / factor - before) < NOTICEABLE * before:
        return None
    return 100 * other / before if factor == 1 else 100 * ((before + other) / factor - before) / before, factor


def _other_amount(percent: float, factor: float) -> str:
    """Return what other work changes in words; `percent` and `factor` as `_other_work` gives them."""
    return changed_by(percent) + ("" if factor == 1 else ", for as many steps and GPUs")

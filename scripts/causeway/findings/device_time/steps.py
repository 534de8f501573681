"""Findings of slow steps: per rank and cause the steps that are slow because of it."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from causeway.core.codes import PROFILER
from causeway.core.formatting import elided, first_of, name_in_sentence, time_three_digits
from causeway.core.queries import of_table, rows_where
from causeway.core.vocabulary import INCONCLUSIVE, STEP_TIME, SUPPORTED
from causeway.findings import headlines, suggestions
from causeway.findings.device_time.step_waits import IDLE, StepWait, slow_by_profiler, wait_behind
from causeway.findings.record import Effect, Evidence, Finding, Worth, link_to

COMMUNICATION = "exposed_communication"
"""The cause of a slow step in which a rank waits for another one."""
FEWEST_REPEATS = 20
LEAST_CONFIDENCE = 0.95
MOST_TIMES_AS_LONG = 3.0
"""Of a rank whose steps were found by repeats of its launches, where no annotation says that they are steps: fewer
repeats, a smaller share of launches that match the usual one, or one that takes so many times as long say that the
capture is shorter than a few steps and its layers repeat, with the rest of a step between some of them. Such an excess
is no loss.
"""


def step_findings(
    document: Mapping, causes: Sequence[Mapping], waits: Mapping[int, Sequence[StepWait]] = MappingProxyType({})
) -> list[Finding]:
    """Return the findings of one dataset's `steps.json`: one for each rank and cause that is the main cause of a slow
    step; of steps that are slow because the profiler was at work in them one of their own, which is no loss.

    Parameters
    ----------
    document : mapping
        The document.
    causes : sequence of mapping
        Rows of its `step_causes.parquet`.
    waits : mapping of int to sequence of StepWait
        What is behind the idle time of slow steps, by rank, where that is known.
    """
    by_profiler = {
        rank: slow_by_profiler(found, [step for step in document["slow"] if step["rank"] == rank])
        for rank, found in waits.items()
    }
    groups: dict[tuple[int, str, bool], list[Mapping]] = {}
    for step in document["slow"]:
        if step["cause"] is not None:
            of_profiler = step["step"] in by_profiler.get(step["rank"], ())
            groups.setdefault((step["rank"], step["cause"], of_profiler), []).append(step)
    found = []
    for (rank, cause, of_profiler), steps in sorted(groups.items()):
        numbers = [step["step"] for step in groups.get((rank, cause, True), ())]
        chosen = (numbers, "IN" if of_profiler else "NOT IN") if numbers else None
        found.append(_slow(document, causes, rank, cause, steps, waits.get(rank, ()), chosen))
    return found


def _slow(
    document: Mapping,
    causes: Sequence[Mapping],
    rank: int,
    cause: str,
    steps: Sequence[Mapping],
    waits: Sequence[StepWait],
    chosen: tuple[Sequence[int], str] | None,
) -> Finding:
    """Return the finding of slow steps; `chosen` are the steps that are slow because of the profiler, and whether it is
    about them or the others, in SQL; None where there are none.
    """
    table = f"{document['dataset']}/step_causes.parquet"
    where = rows_where({"rank": rank, "cause": cause, "verdict": SUPPORTED})
    rows = [row for row in causes if (row["rank"], row["cause"], row["verdict"]) == (rank, cause, SUPPORTED)]
    of_profiler = False
    if chosen is not None:
        of_profiler = chosen[1] == "IN"
        where += f" AND step {chosen[1]} ({', '.join(map(str, chosen[0]))})"
        rows = [row for row in rows if (row["step"] in chosen[0]) == of_profiler]
    query = of_table("sum(excess_ns)::BIGINT", table, where)
    value = sum(row["excess_ns"] for row in rows)
    longer = sum(step["duration_ns"] for step in steps) / sum(step["usual_ns"] for step in steps) - 1
    excess = sum(step["duration_ns"] - step["usual_ns"] for step in steps)
    largest = max(steps, key=lambda step: (step["cause_ns"], -step["step"]))
    late = _late_ranks(document, steps)
    numbers = [step["step"] for step in steps]
    is_annotated = document["source"] in ("annotations", "graphs")
    is_known = is_annotated or of_profiler or _are_steps(document, rank, steps)
    is_loss = is_known and not of_profiler
    one = "Step" if is_annotated else "Repeat"
    candidates = [wait for wait in waits if not of_profiler or wait.reason == PROFILER]
    behind = wait_behind(candidates, numbers, value) if cause in IDLE else None
    source = "" if is_annotated else ", repeats of the launch sequence (steps or layers; no annotation names steps)"
    return Finding(
        dataset=document["dataset"],
        target=STEP_TIME,
        kind="step",
        key=f"rank{rank}/{cause}{f'/{PROFILER}' if of_profiler else ''}",
        subject=f"rank {rank}",
        quantity="time of slow steps",
        headline=headlines.of_slow_steps(
            rank, numbers, 100 * longer, excess, largest, one, behind and behind.detail, late
        ),
        sentence=(
            f"{one}{'s' * (len(numbers) > 1)} {first_of(numbers)} of rank {rank}{source} took {100 * longer:,.0f} %"
            f" longer than usual, {time_three_digits(excess)} in all; {time_three_digits(value)} of GPU time is"
            f" because {headlines.SLOW[cause]}{_named(largest, late)}{_said(behind, numbers)}."
            + ("" if is_known else " Whether that is a loss is not known: it may be the rest of a longer step.")
            + (" The program without a profiler does not lose that." if of_profiler else "")
        ),
        verdict=SUPPORTED if is_known else INCONCLUSIVE,
        effect=Effect(value=value, unit="ns"),
        evidence=Evidence(table=table, query=query, value=value, filter=where),
        n=len(numbers),
        assumption="What differs in a slow step from the usual steps of its rank is why it is slow.",
        worth=Worth(ns=value) if is_loss else None,
        recoverable_ns=max(value, 0) if is_loss else None,
        recoverable_query=query if is_loss else None,
        suggestion=(
            suggestions.WAITING[PROFILER]
            if of_profiler
            else suggestions.for_slow_steps(cause, behind and behind.reason, behind and behind.detail)
        ),
        is_negligible=of_profiler,
        link=link_to(document["dataset"], "steps"),
    )


def _said(behind: StepWait | None, steps: Sequence[int]) -> str:
    """Return what is behind idle time, as a part of a sentence."""
    if behind is None:
        return ""
    return f"; the largest part of that, {time_three_digits(behind.total(steps))}: {elided(behind.detail, 80)}"


def _are_steps(document: Mapping, rank: int, slow: Sequence[Mapping]) -> bool:
    """Return whether repeats of a rank's launches are alike and many enough to be taken for steps."""
    found = next(one for one in document["ranks"] if one["rank"] == rank)
    is_sure = found["steps"] >= FEWEST_REPEATS and (found["confidence"] or 0.0) >= LEAST_CONFIDENCE
    return is_sure and all(step["duration_ns"] <= MOST_TIMES_AS_LONG * step["usual_ns"] for step in slow)


def _late_ranks(document: Mapping, steps: Sequence[Mapping]) -> list[int]:
    """Return the ranks, ascending, that are slow for a reason of their own in steps in which a rank waits for one."""
    waiting = {step["step"] for step in steps if step["waits_for"] is not None}
    named = {step["waits_for"] for step in steps} - {None}
    others = {
        one["rank"] for one in document["slow"] if one["step"] in waiting and one["cause"] not in (None, COMMUNICATION)
    }
    return sorted(named | others)


def _named(step: Mapping, late: Sequence[int]) -> str:
    """Return what is known of the cause, as the end of a sentence: launches, the kernel that loses most, ratio, and
    the ranks that are slow in the same steps.
    """
    words = ""
    if step["cause"] == "added_launches" and step["launches"] is not None:
        words += f" ({step['launches']:+,} in step {step['step']})"
    if step["name"] is not None:
        words += f", most of all {name_in_sentence(step['name'])}"
    if step["cause"] in ("larger_launches", "lower_clock") and step["ratio"] is not None:
        words += f", by a factor of {step['ratio']:.2f}"
    if len(late) == 1:
        words += f"; rank {late[0]} is slow in the same step for a reason of its own"
    elif late:
        words += f"; ranks {first_of(late)} are slow in the same steps for reasons of their own"
        words += f", in step {step['step']} rank {step['waits_for']} most" if step["waits_for"] is not None else ""
    return words

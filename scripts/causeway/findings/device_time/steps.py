"""Findings of slow steps: per rank and cause the steps that are slow because of it."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from causeway.core.formatting import elided, first_of, name_in_sentence, time_three_digits
from causeway.core.queries import of_table, rows_where
from causeway.core.vocabulary import INCONCLUSIVE, STEP_TIME, SUPPORTED
from causeway.findings import headlines, suggestions
from causeway.findings.device_time.step_waits import IDLE, StepWait, wait_behind
from causeway.findings.record import Effect, Evidence, Finding, Worth, link_to

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
    step.

    Parameters
    ----------
    document : mapping
        The document.
    causes : sequence of mapping
        Rows of its `step_causes.parquet`.
    waits : mapping of int to sequence of StepWait
        What is behind the idle time of slow steps, by rank, where that is known.
    """
    groups: dict[tuple[int, str], list[Mapping]] = {}
    for step in document["slow"]:
        if step["cause"] is not None:
            groups.setdefault((step["rank"], step["cause"]), []).append(step)
    return [
        _slow(document, causes, rank, cause, steps, waits.get(rank, ()))
        for (rank, cause), steps in sorted(groups.items())
    ]


def _slow(
    document: Mapping,
    causes: Sequence[Mapping],
    rank: int,
    cause: str,
    steps: Sequence[Mapping],
    waits: Sequence[StepWait],
) -> Finding:
    table = f"{document['dataset']}/step_causes.parquet"
    where = rows_where({"rank": rank, "cause": cause, "verdict": SUPPORTED})
    query = of_table("sum(excess_ns)::BIGINT", table, where)
    rows = [row for row in causes if (row["rank"], row["cause"], row["verdict"]) == (rank, cause, SUPPORTED)]
    value = sum(row["excess_ns"] for row in rows)
    longer = sum(step["duration_ns"] for step in steps) / sum(step["usual_ns"] for step in steps) - 1
    excess = sum(step["duration_ns"] - step["usual_ns"] for step in steps)
    largest = max(steps, key=lambda step: (step["cause_ns"], -step["step"]))
    numbers = [step["step"] for step in steps]
    is_annotated = document["source"] == "annotations"
    is_loss = is_annotated or _are_steps(document, rank, steps)
    one = "Step" if is_annotated else "Repeat"
    behind = wait_behind(waits, numbers, value) if cause in IDLE else None
    source = "" if is_annotated else ", repeats of the launch sequence (steps or layers; no annotation names steps)"
    return Finding(
        dataset=document["dataset"],
        target=STEP_TIME,
        kind="step",
        key=f"rank{rank}/{cause}",
        subject=f"rank {rank}",
        quantity="time of slow steps",
        headline=headlines.of_slow_steps(rank, numbers, 100 * longer, excess, largest, one, behind and behind.detail),
        sentence=(
            f"{one}{'s' * (len(numbers) > 1)} {first_of(numbers)} of rank {rank}{source} took {100 * longer:,.0f} %"
            f" longer than usual, {time_three_digits(excess)} in all; {time_three_digits(value)} of GPU time is"
            f" because {headlines.SLOW[cause]}{_named(largest)}{_said(behind, numbers)}."
            + ("" if is_loss else " Whether that is a loss is not known: it may be the rest of a longer step.")
        ),
        verdict=SUPPORTED if is_loss else INCONCLUSIVE,
        effect=Effect(value=value, unit="ns"),
        evidence=Evidence(table=table, query=query, value=value, filter=where),
        n=len(numbers),
        assumption="What differs in a slow step from the usual steps of its rank is why it is slow.",
        worth=Worth(ns=value) if is_loss else None,
        recoverable_ns=max(value, 0) if is_loss else None,
        recoverable_query=query if is_loss else None,
        suggestion=suggestions.for_slow_steps(cause, behind and behind.reason, behind and behind.detail),
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


def _named(step: Mapping) -> str:
    """Return what is known of the cause, as the end of a sentence: launches, the kernel that loses most, ratio."""
    words = ""
    if step["cause"] == "added_launches" and step["launches"] is not None:
        words += f" ({step['launches']:+,} in step {step['step']})"
    if step["name"] is not None:
        words += f", most of all {name_in_sentence(step['name'])}"
    if step["cause"] in ("larger_launches", "lower_clock") and step["ratio"] is not None:
        words += f", by a factor of {step['ratio']:.2f}"
    if step["waits_for"] is not None:
        words += f"; rank {step['waits_for']} is slow in the same step for a reason of its own"
    return words

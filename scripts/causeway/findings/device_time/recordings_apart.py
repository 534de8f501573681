"""Verdict on the recordings of several ranks: what ranks wait for before all are recorded is no behaviour of the
program, and what one of them did not record is not known.
"""

from collections.abc import Mapping, Sequence

from causeway.core.formatting import time, time_three_digits
from causeway.core.queries import in_document
from causeway.findings.record import NOTICEABLE, Finding, link_to, made_from, of_dataset, undecided

OF_UNRECORDED = ("load_imbalance", "orchestration", "idle", "waiting")
"""Claims that count time without work: where that was not recorded, it is nobody's loss."""
MOST_RANKS = 8
"""Ranks that are named with a time each."""
RECORDINGS = (
    "Start the profiler on all ranks at the same step, with a barrier behind its start, and stop it likewise: what only"
    " some ranks recorded cannot be compared."
)


@made_from("efficiency")
def apart_findings(document: Mapping) -> list[Finding]:
    """Return the verdict on the recordings of one dataset's `efficiency.json`: that collectives wait for the start of a
    recording for a noticeable part of the run's GPU work, or that recordings have too little in common; none else.
    """
    recordings = document.get("recordings")
    if document["why"] or not recordings:
        return []
    if recordings["are_apart"]:
        return [_apart(document, recordings)]
    held = {int(rank): ns for rank, ns in recordings["held_ns"].items()}
    if not held or max(held.values()) < NOTICEABLE * recordings["whole_ns"]:
        return []
    return [_held(document, recordings, held)]


def _held(document: Mapping, recordings: Mapping, held: Mapping[int, int]) -> Finding:
    longest = max(held, key=lambda rank: (held[rank], -rank))
    ranks = sorted(held)
    waits = " and ".join(time(ns) for ns in sorted(held.values(), reverse=True)[:2])
    times = [f"{time_three_digits(held[rank])} on rank {rank}" for rank in ranks[:MOST_RANKS]]
    more = f" (and {len(ranks) - MOST_RANKS} more)" if len(ranks) > MOST_RANKS else ""
    return _finding(
        document,
        path=("held_ns", str(longest)),
        value=held[longest],
        quantity="waiting for the start of a recording",
        headline=(
            f"Recordings begin {time(recordings['begins_ns'])} apart: collectives wait {waits} for their start, which"
            " is in no loss."
        ),
        sentence=(
            f"The recordings of the ranks begin up to {time_three_digits(recordings['begins_ns'])} apart. A collective"
            f" that began before all ranks were recorded took {', '.join(times)}{more}: that is the start of the"
            " recordings, not the program's, and is in no loss. Ranks are compared in the"
            f" {time_three_digits(recordings['common_ns'])} after it that all of them recorded, of"
            f" {time_three_digits(recordings['whole_ns'])}."
        ),
    )


def _apart(document: Mapping, recordings: Mapping) -> Finding:
    common, whole = (time_three_digits(recordings[key]) for key in ("common_ns", "whole_ns"))
    return _finding(
        document,
        path=("common_ns",),
        value=recordings["common_ns"],
        quantity="time that all ranks recorded",
        headline=(
            f"Recordings of the ranks have {time(recordings['common_ns'])} of {time(recordings['whole_ns'])} in common:"
            " time not recorded counts as idle."
        ),
        sentence=(
            f"The recordings of the ranks have {common} of {whole} of GPU work in common. Each rank counts from its own"
            " first to its own last GPU work, and time that was not recorded counts as idle."
        ),
    )


def _finding(document: Mapping, *, path: tuple, value: int, **facts: object) -> Finding:
    name = f"{document['dataset']}/efficiency.json"
    return of_dataset(
        document["dataset"],
        name,
        in_document(name, "recordings", *path, kind="integer"),
        value=value,
        unit="ns",
        kind="recording",
        link=link_to(document["dataset"], "efficiency"),
        suggestion=RECORDINGS,
        **facts,
    )


def not_recorded(findings: Sequence[Finding], documents: Sequence[Mapping]) -> list[Finding]:
    """Return findings; of datasets whose recordings have too little in common, a loss without work is undecided where
    it is no more than the time that was not recorded.

    Parameters
    ----------
    findings : sequence of Finding
        Before their replays are looked at.
    documents : sequence of mapping
        `efficiency.json` of each dataset.
    """
    lacking = {one["dataset"]: ns for one in documents if (ns := _unrecorded_ns(one))}
    found = []
    for one in findings:
        lacks = lacking.get(one.dataset, 0)
        lost = 0 if one.worth is None else one.worth.ns
        is_of_it = one.kind == "efficiency" and one.key in OF_UNRECORDED and lacks >= lost and lacks
        why = f"{time_three_digits(lacks)} of GPU time were not recorded and count as time without work"
        found.append(undecided(one, why, RECORDINGS) if is_of_it else one)
    return found


def _unrecorded_ns(document: Mapping) -> int:
    """Return how much of a dataset's GPU time is not recorded but counts, ns: where ranks are measured in times of
    their own, which are shorter than the longest of them.
    """
    recordings = document.get("recordings")
    if document["why"] or not recordings or not recordings["are_apart"]:
        return 0
    return sum(document["elapsed_ns"] - one["elapsed_ns"] for one in document["breakdown"].values())

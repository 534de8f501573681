"""The document `findings.json`: all findings with their severity, in the order in which they are read."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from causeway.core.finding_kinds import FINDING_KINDS, REFUTED_TURN
from causeway.core.schemas import Row
from causeway.core.vocabulary import REFUTED, SUPPORTED
from causeway.findings.folding import folded
from causeway.findings.invariants import SHARE_OF_TIME, CheckBasis, checked
from causeway.findings.record import MOMENTS, NOTICEABLE, Finding, explains_little

SCHEMA_VERSION = "5"
HIGH = 0.10
"""Share of a dataset's GPU time from which a supported finding is of high severity; of medium severity it is from
`NOTICEABLE`.
"""

LEAST_IN_STEPS = 0.8
"""Share of the GPU time that steps must be, for a loss to be that of so many steps."""


@dataclass(frozen=True, kw_only=True)
class DatasetTime:
    """What the findings of a dataset are measured against.

    Attributes
    ----------
    gpu_ns : float or None
        GPU time of the dataset: elapsed time x devices; without times, the sum of its launches' durations; None where
        neither is known.
    explorer : bool
        Whether the dataset has an explorer.
    steps : int
        Steps of the dataset, those of all ranks added up; 0 where none were found.
    steps_ns : int or None
        GPU time of these steps: what they last on each rank, times its devices; None where it is not known.
    impossible : frozenset of str
        Analyses that the dataset's inputs rule out.
    based_on : str or None
        What a filter kept of the dataset's tables, in words; None where it is not a reduced one.
    """

    gpu_ns: float | None = None
    explorer: bool = False
    steps: int = 0
    steps_ns: int | None = None
    impossible: frozenset[str] = frozenset()
    based_on: str | None = None


def with_steps(time: DatasetTime, document: Row) -> DatasetTime:
    """Return what findings are measured against, with the steps of a dataset's `steps.json`."""
    ranks = [rank for rank in document["ranks"] if rank["steps"]]
    return replace(
        time,
        steps=sum(rank["steps"] for rank in ranks),
        steps_ns=sum(rank["time_ns"] * rank["devices"] for rank in ranks),
    )


def severity(finding: Finding) -> str:
    """Return how much a finding with its share of the GPU time matters: `high`, `medium`, `low` or `none`.

    `high`: supported, and at least 10 % of the dataset's GPU time is at stake; or an input that could not be read, or
    what must be known of recordings before all else. `medium`: at least 1 %; or an input read in part. `low`: less, or
    a bound that is not known, or a claim the data do not decide. `none`: nothing to act upon: refuted, or nothing was
    found, or launches barely vary.
    """
    if finding.kind == "recording":
        return "high"
    if finding.kind == "quality":
        return "high" if finding.evidence.value == "refused" else "medium"
    nothing = finding.kind == "no_cause" or (finding.kind == "straggler" and finding.verdict != SUPPORTED)
    if nothing or finding.is_negligible or finding.verdict == REFUTED:
        return "none"
    lost = finding.effect if is_loss(finding) else None
    share = lost.value / 100 if lost else finding.recoverable_share
    if finding.verdict != SUPPORTED or share is None or is_small(finding):
        return "low"
    return "high" if share >= HIGH else "medium"


def is_loss(finding: Finding) -> bool:
    """Return whether a finding is a part of the devices' time that is lost."""
    return finding.kind == "efficiency" and finding.effect is not None and finding.effect.unit == SHARE_OF_TIME


def is_small(finding: Finding) -> bool:
    """Return whether a finding is known to be worth less than the floor that losses have to reach, or is a cause that
    explains next to nothing: it never counts among the first.
    """
    if is_loss(finding):
        return False  # it is a hundredth of the devices' time, whatever a replay says
    is_of_little_worth = finding.recoverable_share is not None and finding.recoverable_share < NOTICEABLE
    return is_of_little_worth or explains_little(finding)


def ranked(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings, which have their share of the GPU time, in the order in which they are read.

    What must be known of recordings; what is worth a noticeable share of the GPU time, most first, then by the 99th
    percentile; supported claims of unknown worth on a whole dataset; kernels whose time the size of their work decides,
    most time first; what is worth less than `NOTICEABLE` of the GPU time, most first, with causes that explain next to
    nothing; causes of unknown worth in one kernel; that launches barely vary; what the data do not decide or refute;
    inputs that were not read.
    """
    return sorted(findings, key=_sort_key)


def _sort_key(finding: Finding) -> tuple[Any, ...]:
    kind = FINDING_KINDS[finding.kind]
    group: tuple[int, ...]
    if finding.kind == "recording":  # first: what else is said is to be read with it
        group = (-1, 0 if finding.effect else 1)
    elif finding.recoverable_ns is not None or is_loss(finding):
        worth = finding.worth.ns if finding.worth else 0
        won = worth if finding.recoverable_ns is None else finding.recoverable_ns
        wins_little = finding.recoverable_share is not None and finding.recoverable_share < NOTICEABLE
        group = (2 if is_small(finding) or wins_little else 0, -won)
    elif finding.kind == "quality":
        group = (4, 0)
    elif finding.is_negligible:
        group = (3, -1)
    elif finding.verdict == SUPPORTED and kind.order is not None:
        of_kernel = finding.kind == "cause" and finding.scope != "dataset"
        group = (2, 1) if of_kernel else (1, kind.order)  # behind what is worth a little
        if explains_little(finding):
            group = (2, 1)
        elif of_kernel and finding.worth and finding.worth.is_cost and finding.role not in MOMENTS:
            group = (1, len(FINDING_KINDS), -finding.worth.ns)  # sizes of the work
    else:
        group = (3, REFUTED_TURN if finding.verdict == REFUTED else kind.undecided)
    tail = 0.0 if finding.p99 is None else abs(finding.p99.value)
    unit, size = ("", 0.0) if finding.effect is None else (finding.effect.unit, abs(finding.effect.value))
    return (*group, -tail, unit, -size, finding.id)  # sizes compare in one unit only


def summarise(
    findings: Iterable[Finding], times: Mapping[str, DatasetTime], config_hash: str, first_screen: Sequence[Row] = ()
) -> dict[str, Any]:
    """Return the document `findings.json`.

    Parameters
    ----------
    findings : iterable of Finding
        Without severity, share of the GPU time and explorer, which are added here.
    times : mapping of str to DatasetTime
        By dataset; one that is not in it has neither GPU time nor explorer.
    config_hash : str
        Hash of the configuration, hexadecimal.
    first_screen : sequence of mapping
        Lines as `first_screens` gives them.
    """
    gpu_ns = {dataset: time.gpu_ns for dataset, time in times.items() if time.gpu_ns}
    shared = [
        replace(finding, recoverable_share=finding.recoverable_ns / gpu_ns[finding.dataset])
        if finding.recoverable_ns is not None and finding.dataset in gpu_ns
        else finding
        for finding in findings
    ]
    basis = CheckBasis(gpu_ns=gpu_ns, impossible={dataset: time.impossible for dataset, time in times.items()})
    kept, dropped = checked(ranked(shared), basis)
    rows = [
        _placed(finding, times.get(finding.dataset, DatasetTime()), index).as_json()
        for index, finding in enumerate(ranked(folded(kept)))
    ]
    return {
        "schema_version": SCHEMA_VERSION,
        "config_hash": config_hash,
        "first_screen": list(first_screen),
        "findings": rows,
        "dropped": [{"invariant": name, "count": count} for name, count in dropped.items()],
    }


def _placed(finding: Finding, time: DatasetTime, index: int | None = None) -> Finding:
    """Return a finding, and those behind it, with severity and what they are based on; by its index in the document,
    with the explorer's window.
    """
    is_explored = time.explorer and index is not None and finding.kind in ("cause", "variability")
    return replace(
        finding,
        severity=severity(finding),
        explorer=f"{finding.dataset}/explorer/index.html#finding_{index}" if is_explored else None,
        based_on=time.based_on,
        worth_per_step_ns=_per_step(finding, time),
        also=tuple(_placed(other, time) for other in finding.also),
    )


def _per_step(finding: Finding, time: DatasetTime) -> int | None:
    """Return what a finding is worth in one step of one rank, rounded to ns; None where either is not known, or the
    steps are less than `LEAST_IN_STEPS` of the GPU time: then it may lie outside them.
    """
    steps = time.steps
    if finding.worth is None or not steps or _are_short(time):
        return None
    return (2 * finding.worth.ns + steps) // (2 * steps)


def _are_short(time: DatasetTime) -> bool:
    """Return whether steps are known to be less than `LEAST_IN_STEPS` of the GPU time."""
    return time.steps_ns is not None and time.steps_ns < LEAST_IN_STEPS * (time.gpu_ns or 0)

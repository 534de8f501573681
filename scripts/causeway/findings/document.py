"""The document `findings.json`: all findings with their severity, in the order in which they are read."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from causeway.core.vocabulary import INCONCLUSIVE, REFUTED, SUPPORTED
from causeway.findings.record import NOTICEABLE, Finding

SCHEMA_VERSION = "2"
WITHOUT_BOUND = ("comparison", "efficiency", "straggler", "cause", "variability")
"""Kinds of supported claims of a whole dataset that have no bound, in their order; those of one kernel follow."""
UNDECIDED = {
    ("cause", INCONCLUSIVE): 0,
    ("comparison", INCONCLUSIVE): 0,
    ("no_cause", INCONCLUSIVE): 1,
    ("no_cause", SUPPORTED): 1,
    ("straggler", INCONCLUSIVE): 1,
    ("cause", REFUTED): 2,
    ("no_cause", REFUTED): 2,
    ("comparison", REFUTED): 2,
}
"""Order of the claims that the data do not decide or refute."""
HIGH = 0.10
"""Share of a dataset's GPU time from which a supported finding is of high severity; of medium severity it is from
`NOTICEABLE`.
"""


@dataclass(frozen=True, kw_only=True)
class DatasetTime:
    """What the findings of a dataset are measured against.

    Attributes
    ----------
    gpu_ns : int or None
        GPU time of the dataset: elapsed time x devices; without times, the sum of its launches' durations; None where
        neither is known.
    explorer : bool
        Whether the dataset has an explorer.
    """

    gpu_ns: int | None = None
    explorer: bool = False


def severity(finding: Finding) -> str:
    """Return how much a finding with its share of the GPU time matters: `high`, `medium`, `low` or `none`.

    `high`: supported, and at least 10 % of the dataset's GPU time could be recovered; or an input that could not be
    read. `medium`: at least 1 %; or an input read in part. `low`: less, or a bound that is not known, or a claim the
    data do not decide. `none`: nothing to act upon: refuted, or nothing was found.
    """
    if finding.kind == "quality":
        return "high" if finding.evidence.value == "refused" else "medium"
    nothing = finding.kind == "no_cause" or (finding.kind == "straggler" and finding.verdict != SUPPORTED)
    if nothing or finding.verdict == REFUTED:
        return "none"
    if finding.verdict != SUPPORTED or finding.recoverable_share is None or is_small(finding):
        return "low"
    return "high" if finding.recoverable_share >= HIGH else "medium"


def is_small(finding: Finding) -> bool:
    """Return whether a finding is known to be worth less than the floor that losses have to reach: it never counts
    among the first.
    """
    return finding.recoverable_share is not None and finding.recoverable_share < NOTICEABLE


def ranked(findings: Iterable[Finding]) -> list[Finding]:
    """Return findings, which have their share of the GPU time, in the order in which they are read.

    What could save a noticeable share of the GPU time, most first; supported claims without a bound, on a whole dataset
    before those on one kernel; what could save less than `NOTICEABLE` of the GPU time; what the data do not decide or
    refute; inputs that were not read.
    """
    return sorted(findings, key=_sort_key)


def _sort_key(finding: Finding) -> tuple:
    if finding.recoverable_ns is not None:
        group = (2 if is_small(finding) else 0, -finding.recoverable_ns)
    elif finding.kind == "quality":
        group = (4, 0)
    elif finding.verdict == SUPPORTED and finding.kind in WITHOUT_BOUND:
        of_kernel = finding.kind == "cause" and finding.scope != "dataset"
        group = (1, WITHOUT_BOUND.index(finding.kind) + of_kernel * len(WITHOUT_BOUND))
    else:
        group = (3, UNDECIDED.get((finding.kind, finding.verdict), len(UNDECIDED)))
    unit, size = ("", 0.0) if finding.effect is None else (finding.effect.unit, finding.effect.value)
    return (*group, unit, -size, finding.id)  # sizes compare in one unit only


def summarise(findings: Iterable[Finding], times: Mapping[str, DatasetTime], config_hash: str) -> dict:
    """Return the document `findings.json`.

    Parameters
    ----------
    findings : iterable of Finding
        Without severity, share of the GPU time and explorer, which are added here.
    times : mapping of str to DatasetTime
        By dataset; one that is not in it has neither GPU time nor explorer.
    config_hash : str
        Hash of the configuration, hexadecimal.
    """
    time_of = {dataset: time for dataset, time in times.items() if time.gpu_ns}
    shared = [
        replace(finding, recoverable_share=finding.recoverable_ns / time_of[finding.dataset].gpu_ns)
        if finding.recoverable_ns is not None and finding.dataset in time_of
        else finding
        for finding in findings
    ]
    found = []
    for index, finding in enumerate(ranked(shared)):
        explored = times.get(finding.dataset, DatasetTime()).explorer and finding.kind in ("cause", "variability")
        link = f"{finding.dataset}/explorer/index.html#finding_{index}" if explored else None
        found.append(replace(finding, severity=severity(finding), explorer=link).as_json())
    return {"schema_version": SCHEMA_VERSION, "config_hash": config_hash, "findings": found}

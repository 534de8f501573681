"""The document `findings.json`: all findings with their severity, in the order in which they are read."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from causeway.findings.record import NOTICEABLE

SCHEMA_VERSION = "2"
WITHOUT_BOUND = ("comparison", "efficiency", "straggler", "cause", "variability")
"""Kinds of supported claims of a whole dataset that have no bound, in their order; those of one kernel follow."""
UNDECIDED = {
    ("cause", "inconclusive"): 0,
    ("comparison", "inconclusive"): 0,
    ("no_cause", "inconclusive"): 1,
    ("no_cause", "supported"): 1,
    ("straggler", "inconclusive"): 1,
    ("cause", "refuted"): 2,
    ("no_cause", "refuted"): 2,
    ("comparison", "refuted"): 2,
}
HIGH = 0.10
"""Share of a dataset's GPU time from which a supported finding is of high severity; of medium severity it is from `NOTICEABLE`."""


@dataclass(frozen=True)
class Times:
    """What a dataset's findings are measured against.

    Parameters
    ----------
    gpu_ns : int or None
        GPU time of the dataset: elapsed time x devices; without times, the sum of its launches' durations; None where neither is known.
    explorer : bool
        Whether the dataset has an explorer.
    """

    gpu_ns: int | None
    explorer: bool = False


def severity(finding: Mapping, share: float | None) -> str:
    """Return how much a finding matters: `high`, `medium`, `low` or `none`.

    `high`: supported, and at least 10 % of the dataset's GPU time could be recovered; or an input that could not be read. `medium`: at
    least 1 %; or an input read in part. `low`: less, or a bound that is not known, or a claim the data do not decide. `none`: nothing to
    act upon: refuted, or nothing was found.
    """
    if finding["kind"] == "quality":
        return "high" if finding["evidence"]["value"] == "refused" else "medium"
    nothing = finding["kind"] == "no_cause" or (finding["kind"] == "straggler" and finding["verdict"] != "supported")
    if nothing or finding["verdict"] == "refuted":
        return "none"
    if finding["verdict"] != "supported" or share is None or share < NOTICEABLE:
        return "low"
    return "high" if share >= HIGH else "medium"


def is_small(finding: Mapping) -> bool:
    """Return whether a finding is known to be worth less than the floor that losses have to reach: it never counts among the first."""
    share = finding["recoverable_share"]
    return share is not None and share < NOTICEABLE


def ranked(findings: Iterable[dict]) -> list[dict]:
    """Return findings, which have their share of the GPU time, in the order in which they are read.

    What could save a noticeable share of the GPU time, most first; supported claims without a bound, on a whole dataset before those on
    one kernel; what could save less than `NOTICEABLE` of the GPU time; what the data do not decide or refute; inputs that were not read.
    """
    return sorted(findings, key=_place)


def _place(finding: Mapping) -> tuple:
    saves, kind, effect = finding["recoverable_ns"], finding["kind"], finding["effect"] or {}
    if saves is not None:
        group = (2 if is_small(finding) else 0, -saves)
    elif kind == "quality":
        group = (4, 0)
    elif finding["verdict"] == "supported" and kind in WITHOUT_BOUND:
        of_kernel = kind == "cause" and finding["scope"] != "dataset"
        group = (1, WITHOUT_BOUND.index(kind) + of_kernel * len(WITHOUT_BOUND))
    else:
        group = (3, UNDECIDED.get((kind, finding["verdict"]), len(UNDECIDED)))
    return (*group, effect.get("unit", ""), -effect.get("value", 0.0), finding["id"])  # sizes compare in one unit only


def summarise(findings: Iterable[dict], times: Mapping[str, Times], config_hash: str) -> dict:
    """Return the document `findings.json`.

    Parameters
    ----------
    findings : iterable of dict
        Made by `record.finding`.
    times : mapping of str to Times
        By dataset; one that is not in it has neither GPU time nor explorer.
    config_hash : str
        Hash of the configuration, hexadecimal.
    """
    weighed = []
    for finding in findings:
        whole, saves = times.get(finding["dataset"], Times(None)).gpu_ns, finding["recoverable_ns"]
        share = saves / whole if saves is not None and whole else None
        weighed.append({**finding, "recoverable_share": share, "severity": severity(finding, share)})
    found = ranked(weighed)
    for place, finding in enumerate(found):
        if times.get(finding["dataset"], Times(None)).explorer and finding["kind"] in ("cause", "variability"):
            finding["explorer"] = f"{finding['dataset']}/explorer/index.html#finding_{place}"
    return {"schema_version": SCHEMA_VERSION, "config_hash": config_hash, "findings": found}

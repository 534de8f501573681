"""The document `findings.json`: all findings with their severity, in the order in which they are read."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

SCHEMA_VERSION = "2"
ORDER = {
    ("cause", "supported"): 0,
    ("comparison", "supported"): 0,
    ("straggler", "supported"): 0,
    ("efficiency", "supported"): 0,
    ("variability", "supported"): 1,
    ("cause", "inconclusive"): 2,
    ("comparison", "inconclusive"): 2,
    ("no_cause", "inconclusive"): 3,
    ("no_cause", "supported"): 3,
    ("straggler", "inconclusive"): 3,
    ("cause", "refuted"): 4,
    ("no_cause", "refuted"): 4,
    ("comparison", "refuted"): 4,
    ("quality", "supported"): 5,
}
HIGH, MEDIUM = 0.10, 0.01
"""Shares of a dataset's GPU time from which a supported finding is of high or medium severity."""


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
    if finding["verdict"] != "supported" or share is None or share < MEDIUM:
        return "low"
    return "high" if share >= HIGH else "medium"


def ranked(findings: Iterable[dict]) -> list[dict]:
    """Return findings in the order in which they are read: what could save most first, then by kind, verdict and effect."""

    def key(finding: dict) -> tuple:
        saves = finding["recoverable_ns"]
        size = (finding["effect"] or {}).get("value", 0.0)
        return (saves is None, -(saves or 0), ORDER.get((finding["kind"], finding["verdict"]), 6), -size, finding["id"])

    return sorted(findings, key=key)


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
    found = []
    for place, finding in enumerate(ranked(findings)):
        known = times.get(finding["dataset"], Times(None))
        saves = finding["recoverable_ns"]
        share = saves / known.gpu_ns if saves is not None and known.gpu_ns else None
        window = known.explorer and finding["kind"] in ("cause", "variability")
        added = {"recoverable_share": share, "severity": severity(finding, share)}
        added |= {"explorer": f"{finding['dataset']}/explorer/index.html#finding_{place}"} if window else {}
        found.append({**finding, **added})
    return {"schema_version": SCHEMA_VERSION, "config_hash": config_hash, "findings": found}

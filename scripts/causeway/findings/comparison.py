"""Findings of comparisons: which kernels, and whether the whole run, got slower, faster, more variable or less efficient."""

import hashlib
from collections.abc import Mapping, Sequence

from causeway.findings.record import evidence, finding, shortened
from causeway.queries import cell

MOST = 10
"""Changes of kernels that are findings of their own, those with the most time at stake; the table has all."""
COUNTED = ("slower", "faster", "more variable", "steadier", "less efficient", "more efficient", "longer", "shorter")
WHAT = {
    "time_per_launch": "time for the same launches",
    "variability": "variability",
    "efficiency": "parallel efficiency of the devices",
    "span": "span",
}
UNITS = {"efficiency": "percentage points"}
SUGGESTIONS = {
    "slower": "Look at what changed for this kernel: its launch configurations, the clocks, what runs beside it, the compiler.",
    "more variable": "Look at the causes of this kernel's variability on both sides.",
    "less efficient": "Look at where device time is lost on both sides: launches that come late, copies, uneven ranks.",
    "longer": "Look at where the difference in GPU time comes from, and at what the devices wait for.",
}
CALLED_OFF = "inconclusive: the data do not decide"


def of_comparison(document: Mapping, rows: Sequence[Mapping]) -> list[dict]:
    """Return the findings of one comparison: each claimed change of the whole run and of the kernels with the most time; else that none is.

    Parameters
    ----------
    document : mapping
        `comparison.json`.
    rows : sequence of mapping
        Rows of `comparison.parquet`, in its order: evidence names them by their number.
    """
    claimed = [(place, row) for place, row in enumerate(rows) if row["verdict"] in COUNTED and row["level"] in ("run", "kernel")]
    whole = [pair for pair in claimed if pair[1]["level"] == "run"]
    kernels = [pair for pair in claimed if pair[1]["level"] == "kernel"]
    kernels.sort(key=lambda pair: -abs(pair[1]["candidate_total_ns"] * pair[1]["change_percent"]))
    found = [_change(document, place, row) for place, row in [*whole, *kernels[:MOST]]]
    return found or _nothing(document, rows)


def _pair(document: Mapping) -> tuple[str, str]:
    return document["baseline"]["dataset"], document["candidate"]["dataset"]


def _made(document: Mapping, place: int, row: Mapping, what: str, **facts: object) -> dict:
    """Return a finding about the candidate whose number is the change in a row of the table."""
    baseline, candidate = _pair(document)
    folder = f"compare/{baseline}__{candidate}"
    table = f"{folder}/comparison.parquet"
    effect = {"value": row["change_percent"], "low": row["low_percent"], "high": row["high_percent"]}
    return finding(
        candidate,
        None,
        "dataset",
        "comparison",
        f"{baseline}/{what}",
        effect={**effect, "unit": UNITS.get(row["metric"], "percent")},
        evidence=evidence(table, cell("change_percent", table, place), row["change_percent"], [place]),
        n=row["candidate_launches"],
        n_effective=row["candidate_effective"] or None,
        assumption=document["assumption"],
        link=f"{folder}/comparison.html",
        **facts,
    )


def _words(row: Mapping) -> str:
    unit = "points" if row["metric"] == "efficiency" else "%"
    interval = "" if row["low_percent"] is None else f" [{row['low_percent']:+.3g}, {row['high_percent']:+.3g}]"
    return f"{row['change_percent']:+.3g} {unit}{interval}"


def _key(name: str) -> str:
    """Return a short key of a kernel's name: stable from run to run, whatever the name holds."""
    return hashlib.sha256(name.encode()).hexdigest()[:10]


def _change(document: Mapping, place: int, row: Mapping) -> dict:
    """Return one claimed change. What it costs stands in the page's decomposition: it may be a price paid for something else."""
    baseline, candidate = _pair(document)
    subject = candidate if row["level"] == "run" else f"Kernel {shortened(row['candidate'])}"
    sentence = f"{subject} is {row['verdict']} than in {baseline}: {WHAT[row['metric']]} {_words(row)}."
    facts = {"sentence": sentence, "verdict": "supported", "suggestion": SUGGESTIONS.get(row["verdict"])}
    if row["level"] == "kernel":
        facts["scope_name"] = row["candidate"]
    what = f"{row['metric']}/run" if row["level"] == "run" else f"{row['metric']}/{_key(row['candidate'])}"
    return _made(document, place, row, what, **facts)


def _nothing(document: Mapping, rows: Sequence[Mapping]) -> list[dict]:
    """Return that no change is claimed, with how large a change of the whole run could be."""
    baseline, candidate = _pair(document)
    known = [(place, row) for place, row in enumerate(rows) if row["level"] == "run" and row["metric"] == "time_per_launch"]
    if not known:
        return []
    place, row = known[0]
    state = "the same within noise" if row["verdict"] == "same" else CALLED_OFF
    sentence = f"No change from {baseline} to {candidate} is beyond noise: {WHAT[row['metric']]} {_words(row)}, {state}."
    return [_made(document, place, row, "none", sentence=sentence, verdict="inconclusive")]

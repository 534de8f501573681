"""Limits of the configuration, judged by intervals: what a continuous integration job stops on."""

from collections.abc import Mapping, Sequence

from causeway.core.formatting import elided, name_in_quotes
from causeway.core.vocabulary import BROKEN, COULD_NOT_TELL, HELD, INCONCLUSIVE, MISSING_DATA, NEW, PASSES, REGRESSED

LIMITS = {
    "max_slowdown_percent": ("run", "time_per_launch", "time for the same launches", 1),
    "max_kernel_slowdown_percent": ("kernel", "time_per_launch", "time for the same launches", 1),
    "max_span_increase_percent": ("run", "span", "span", 1),
    "max_variability_increase_percent": ("run", "variability", "variability", 1),
    "max_kernel_variability_increase_percent": ("kernel", "variability", "variability", 1),
    "max_efficiency_loss_points": ("run", "efficiency", "parallel efficiency of the devices", -1),
}
"""Per limit: level, metric, its name, and the sign of a change for the worse."""


def judge(document: Mapping, rows: Sequence[Mapping], limits: Mapping) -> list[dict]:
    """Return every limit that is set, with its state for each group it concerns and one sentence.

    A limit is broken only if the whole interval lies beyond it, held if the whole interval lies within; else it is not
    decided.

    Parameters
    ----------
    document : mapping
        `comparison.json`.
    rows : sequence of mapping
        Rows of `comparison.parquet`.
    limits : mapping
        `gate` of the configuration; null for a limit that is not set. Kernels with less than `min_share` of either
        run's GPU time are not judged one by one.
    """
    names = f"{document['baseline']['dataset']} -> {document['candidate']['dataset']}"
    totals = [document[side]["gpu_time_ns"] for side in ("baseline", "candidate")]
    found = []
    for limit, (level, metric, words, sign) in LIMITS.items():
        if limits[limit] is None:
            continue
        judged = [
            row
            for row in rows
            if row["level"] == level and row["metric"] == metric and row["change_percent"] is not None
        ]
        if level == "kernel":
            judged = [row for row in judged if _share(row, totals) >= limits["min_share"]]
        if not judged and level == "run":
            found.append(
                _state(
                    names, limit, None, INCONCLUSIVE, f"{names}: {words} was not compared, so {limit} cannot be judged."
                )
            )
        found += [_judged(names, limit, float(limits[limit]), row, words, sign) for row in judged]
    found += _least_efficiency(names, rows, limits["min_efficiency"])
    if limits["forbid_new_kernels"]:
        new = [row for row in rows if row["level"] == "kernel" and row["verdict"] == NEW]
        found += [
            _state(
                names,
                "forbid_new_kernels",
                row["candidate"],
                BROKEN,
                f"{names}: kernel {name_in_quotes(row['candidate'])} is new.",
            )
            for row in new
        ]
    return found


def missing(document: Mapping, exports: Mapping[str, Sequence[Mapping]]) -> list[dict]:
    """Return a state for each thing that a comparison lacks: an export that was refused or read in part, or ranks that
    only one side has. Whatever the limits, a gate does not open on them.

    Parameters
    ----------
    document : mapping
        `comparison.json`.
    exports : mapping of str to sequence of mapping
        Each dataset's `capabilities.json`, all exports.
    """
    names = f"{document['baseline']['dataset']} -> {document['candidate']['dataset']}"
    found = []
    ranks = []
    for side in ("baseline", "candidate"):
        main = document[side]["dataset"]
        repeats = document[side].get("repeats", [])
        for export in (export for dataset in (main, *repeats) for export in exports.get(dataset, ())):
            if export["status"] != "read":
                word = "could not be read" if export["status"] == "refused" else "could be read in part only"
                why = export["error"]["found"] if export["error"] else "see its capabilities.json"
                found.append(f"export {export['export']} of the {side} {word}: {elided(' '.join(why.split()), 200)}")
        ranks.append(sorted({rank for export in exports.get(main, ()) for rank in export["ranks"] or ()}))
    if ranks[0] != ranks[1]:
        found.append(f"the baseline has ranks {ranks[0]}, the candidate {ranks[1]}")
    sentences = [f"{names}: {sentence}; the gate stays closed." for sentence in found]
    return [_state(names, MISSING_DATA, None, INCONCLUSIVE, sentence) for sentence in sentences]


def _share(row: Mapping, totals: Sequence[int]) -> float:
    return max(
        (row[f"{side}_total_ns"] or 0) / max(total, 1)
        for side, total in zip(("baseline", "candidate"), totals, strict=True)
    )


def _judged(names: str, limit: str, most: float, row: Mapping, words: str, sign: int) -> dict:
    ends = (
        sorted(sign * row[key] for key in ("low_percent", "high_percent")) if row["low_percent"] is not None else None
    )
    state = INCONCLUSIVE if ends is None or ends[0] <= most < ends[1] else BROKEN if ends[0] > most else HELD
    unit = "points" if row["metric"] == "efficiency" else "%"
    what = words if row["level"] == "run" else f"{words} of kernel {name_in_quotes(row['candidate'])}"
    interval = f" [{row['low_percent']:+.2f}, {row['high_percent']:+.2f}]" if ends else ", without interval"
    verb = {BROKEN: "breaks", HELD: "keeps", INCONCLUSIVE: "does not decide"}[state]
    sentence = (
        f"{names}: {what} changed by {row['change_percent']:+.2f} {unit}{interval}, which {verb} {limit} = {most:g}."
    )
    return _state(names, limit, row["candidate"], state, sentence)


def _least_efficiency(names: str, rows: Sequence[Mapping], least: float | None) -> list[dict]:
    """Judge the candidate's own efficiency; its interval is that of the change, as if all noise were its own: wide,
    not narrow.
    """
    if least is None:
        return []
    row = next((row for row in rows if row["level"] == "run" and row["metric"] == "efficiency"), None)
    if row is None:
        return [
            _state(
                names,
                "min_efficiency",
                None,
                INCONCLUSIVE,
                f"{names}: efficiency was not compared, so min_efficiency cannot be judged.",
            )
        ]
    value = row["candidate_value"]
    state = INCONCLUSIVE
    if row["low_percent"] is not None:
        low, high = (value + (row[key] - row["change_percent"]) / 100 for key in ("low_percent", "high_percent"))
        state = BROKEN if high < least else HELD if low >= least else INCONCLUSIVE
    verb = {BROKEN: "breaks", HELD: "keeps", INCONCLUSIVE: "does not decide"}[state]
    sentence = (
        f"{names}: the candidate's parallel efficiency is {value:.3f}, which with its interval {verb} min_efficiency ="
        f" {least:g}."
    )
    return [_state(names, "min_efficiency", None, state, sentence)]


def _state(names: str, limit: str, group: str | None, state: str, sentence: str) -> dict:
    return {"pair": names, "limit": limit, "group": group, "state": state, "sentence": sentence}


def reasons(states: Sequence[Mapping], strict: bool) -> list[str]:
    """Return one sentence per limit that stops the job: the broken ones and missing data; with `strict` also those that
    the data do not decide.
    """
    stops = (BROKEN, INCONCLUSIVE) if strict else (BROKEN,)
    return [state["sentence"] for state in states if state["state"] in stops or state["limit"] == MISSING_DATA]


def outcome(states: Sequence[Mapping], stops: Sequence[str]) -> str:
    """Return what the gate says as a whole: `REGRESSED`, `PASSES` or `COULD_NOT_TELL`.

    It passes only where the gate is open, a limit is held, and every limit of a whole run is: one that the interval
    straddles leaves the gate open, but does not show that nothing regressed. Limits of single kernels may be
    undecided; with many kernels some always are.

    Parameters
    ----------
    states : sequence of mapping
        From `judge` and `missing`.
    stops : sequence of str
        From `reasons`; not empty where the gate is closed.
    """
    if any(state["state"] == BROKEN for state in states):
        return REGRESSED
    held = any(state["state"] == HELD for state in states)
    undecided = any(state["state"] == INCONCLUSIVE and _of_whole_run(state["limit"]) for state in states)
    return PASSES if held and not undecided and not stops else COULD_NOT_TELL


def _of_whole_run(limit: str) -> bool:
    return limit not in LIMITS or LIMITS[limit][0] == "run"

"""Limits of the configuration, judged by intervals: what a continuous integration job stops on."""

from collections.abc import Mapping, Sequence

from causeway.core.formatting import elided, name_in_quotes
from causeway.core.vocabulary import (
    BROKEN,
    COULD_NOT_TELL,
    GONE,
    HELD,
    INCONCLUSIVE,
    MISSING_DATA,
    NEW,
    NOT_JUDGED,
    OTHER_WORK,
    PASSES,
    REGRESSED,
)

LIMITS = {
    "max_slowdown_percent": ("run", "time_per_launch", "time for the same launches", 1),
    "max_kernel_slowdown_percent": ("kernel", "time_per_launch", "time for the same launches", 1),
    "max_step_slowdown_percent": ("run", "step", "median time of a step", 1),
    "max_span_increase_percent": ("run", "span", "span", 1),
    "max_variability_increase_percent": ("run", "variability", "variability", 1),
    "max_kernel_variability_increase_percent": ("kernel", "variability", "variability", 1),
    "max_efficiency_loss_points": ("run", "efficiency", "parallel efficiency of the devices", -1),
}
"""Per limit: level, metric, its name, and the sign of a change for the worse."""
MOST_UNJUDGED = 0.1
"""Share of either run's GPU time that kernels without an interval may have together before a limit of kernels counts
as not judged: some kernels are launched a few times only, and what they take of a run is not nothing.
"""
MOST_LEFT_OUT = 0.001
"""Share of an export's launches that could not be used beyond which it lacks data: long events are those that a full
buffer or a broken number hits, and the longest launches of a run take some ten times its mean, so that this share of
them is 1 % of the time, as much as a change that is looked for.
"""
LOST = "dropped_events"
"""Issue of an export whose profiler says that it lost events, and not how many."""
FEWEST_LAUNCHES = 0.5
"""Launches of the kernels of both runs that a run must have of the other's, or a step of one of the other's step: a
solver may need some iterations more or less, half of the work is that of a run that ended early, or of another problem.
"""
NOT_COMPARED = {
    "time_per_launch": "the runs have no configuration in common whose launches take time",
    "variability": "in one of the runs no duration of a configuration of both differs from its mean",
    "span": "one of the runs has no time line",
    "step": "one of the runs has no steps",
    "efficiency": "one of the runs has no efficiency tree",
}
"""Why there is no row of a metric."""
VERBS = {BROKEN: "breaks", HELD: "keeps", INCONCLUSIVE: "does not decide"}
WHOLE_TIME = "max_slowdown_percent"
"""Limit that also holds with the kernels and configurations that only one run has: work may have moved into them."""


def has_limit(limits: Mapping) -> bool:
    """Return whether `gate` of the configuration sets any limit."""
    return bool(_limits_that_are_set(limits))


def _limits_that_are_set(limits: Mapping) -> list[str]:
    active = [limit for limit in (*LIMITS, "min_efficiency") if limits[limit] is not None]
    return [*active, *(["forbid_new_kernels"] if limits["forbid_new_kernels"] else [])]


def judge(document: Mapping, rows: Sequence[Mapping], limits: Mapping) -> list[dict]:
    """Return every limit that is set, with its state for each group it concerns and one sentence.

    A limit is broken only if the whole interval lies beyond it, held if the whole interval lies within, and not decided
    if the interval straddles it. Without an interval it is not judged. A kernel without one is not decided as long as
    its change is within the limit and all such kernels have little of the time (`MOST_UNJUDGED`). Nothing is judged
    where a recording stands on both sides, or the runs were not compared.

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
    if document["why"] is not None:
        return [_unjudged(names, limit, "the runs were not compared") for limit in _limits_that_are_set(limits)]
    totals = [document[side]["gpu_time_ns"] for side in ("baseline", "candidate")]
    shared = document["same_content"]["sides"]
    if shared is not None:
        return [_not_two_runs(names, limit, shared) for limit in _limits_that_are_set(limits)]
    judgements: list[dict] = []
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
            judgements += _kernels_without_interval(
                names, limit, document["decomposition"], judged, totals, limits["min_share"]
            )
        elif not judged:
            judgements.append(_not_compared(names, limit, words, metric))
        states = [_judged(names, limit, float(limits[limit]), row, words, sign) for row in judged]
        if limit == WHOLE_TIME:
            states = [
                _with_work_of_one_run(state, document["decomposition"], float(limits[limit]), row)
                for state, row in zip(states, judged, strict=True)
            ]
        judgements += states
    judgements += _least_efficiency(names, rows, limits["min_efficiency"])
    if limits["forbid_new_kernels"]:
        every = [row for row in rows if row["level"] == "kernel" and row["verdict"] == NEW]
        new = [row for row in every if _share(row, totals) >= limits["min_share"]]
        small = f" with {100 * limits['min_share']:g} % of the GPU time or more" if len(every) > len(new) else ""
        judgements += [
            _state(
                names,
                "forbid_new_kernels",
                row["candidate"],
                BROKEN,
                f"{names}: kernel {name_in_quotes(row['candidate'])} is new.",
            )
            for row in new
        ] or [_state(names, "forbid_new_kernels", None, HELD, f"{names}: no kernel{small} is new.")]
    return judgements


def missing(document: Mapping, exports: Mapping[str, Sequence[Mapping]], rows: Sequence[Mapping] = ()) -> list[dict]:
    """Return a state for each thing that a comparison lacks: an export that was refused or read in part, or of which
    launches were left out or lost, also of a repeat that is in no number, a repeat that holds nothing to compare, ranks
    that only one side has, or most launches of one side; and why the runs were not compared, where they were not.
    Whatever the limits, a gate does not open on them.

    Parameters
    ----------
    document : mapping
        `comparison.json`.
    exports : mapping of str to sequence of mapping
        Each dataset's `capabilities.json`, all exports.
    rows : sequence of mapping
        Rows of `comparison.parquet`.
    """
    names = f"{document['baseline']['dataset']} -> {document['candidate']['dataset']}"
    reasons = [] if document["why"] is None else [document["why"].removesuffix(".")]
    ranks = []
    for side in ("baseline", "candidate"):
        main = document[side]["dataset"]
        unread = [repeat for repeat in document.get("unread_repeats", ()) if repeat["side"] == side]
        copies = [copy["dataset"] for copy in (document.get("same_content") or {}).get("repeats", ())]
        named = dict.fromkeys(
            (main, *document[side].get("repeats", []), *(repeat["dataset"] for repeat in unread), *copies)
        )
        for repeat in unread:
            if all(export["status"] == "read" for export in exports.get(repeat["dataset"], ())):
                reasons.append(f"{repeat['dataset']}, a repeat of the {side}, is in no number: {repeat['why']}")
        for export in (export for dataset in named for export in exports.get(dataset, ())):
            if export["status"] != "read":
                word = "could not be read" if export["status"] == "refused" else "could be read in part only"
                why = export["error"]["found"] if export["error"] else "see its capabilities.json"
                reasons.append(f"export {export['export']} of the {side} {word}: {elided(' '.join(why.split()), 200)}")
            else:
                reasons += [f"export {export['export']} of the {side} {words}" for words in _left_out(export)]
        ranks.append(sorted({rank for export in exports.get(main, ()) for rank in export["ranks"] or ()}))
    if ranks[0] != ranks[1]:
        reasons.append(f"the baseline has ranks {ranks[0]}, the candidate {ranks[1]}")
    reasons += _fewer_launches(rows)
    sentences = [f"{names}: {sentence}; the gate stays closed." for sentence in reasons]
    return [_state(names, MISSING_DATA, None, INCONCLUSIVE, sentence) for sentence in sentences]


def _left_out(export: Mapping) -> list[str]:
    """Return what an export that was read lacks: launches that could not be used, and events that the profiler lost."""
    lacks = []
    left_out = export.get("left_out") or {"rows": 0, "of": 0}
    if left_out["rows"] > MOST_LEFT_OUT * left_out["of"]:
        share = 100 * left_out["rows"] / left_out["of"]
        lacks.append(f"lacks {left_out['rows']:,} of {left_out['of']:,} launches ({share:.2g} %) that cannot be used")
    lost = next((issue for issue in export.get("issues", ()) if issue["kind"] == LOST), None)
    if lost is not None:
        lacks.append(f"may lack launches: {elided(' '.join(lost['detail'].split()), 200)}")
    return lacks


def _fewer_launches(rows: Sequence[Mapping]) -> list[str]:
    """Return that one run launched the kernels of both far less often than the other, if it did.

    A longer candidate lacks nothing where its steps have as many launches; a shorter one may have ended early.
    """
    both = [
        [row[f"{side}_launches"] for side in ("baseline", "candidate")]
        for row in rows
        if row["level"] == "kernel" and row["metric"] == "time_per_launch" and row["change_percent"] is not None
    ]
    counts = [sum(side) for side in zip(*both, strict=True)] if both else [0, 0]
    steps = [
        (row["baseline_launches"], row["candidate_launches"])
        for row in rows
        if row["metric"] == "step" and row["baseline_launches"]
    ]
    by_step = [n / of for n, of in zip(counts, steps[0], strict=True)] if steps else counts
    looked_at = (counts, by_step) if counts[1] > counts[0] else (counts,)
    if any(min(each) >= FEWEST_LAUNCHES * max(each) for each in looked_at):
        return []
    of_steps = f"in {steps[0][0]:,} and {steps[0][1]:,} steps" if steps else "and no steps are known"
    return [
        f"the kernels of both runs were launched {counts[0]:,} times by the baseline and {counts[1]:,} times by the"
        f" candidate, {of_steps}: one of them may have ended early"
    ]


def _share(row: Mapping, totals: Sequence[int], key: str = "total_ns") -> float:
    return max(
        (row[f"{side}_{key}"] or 0) / max(total, 1)
        for side, total in zip(("baseline", "candidate"), totals, strict=True)
    )


def _not_compared(names: str, limit: str, words: str, metric: str) -> dict:
    why = f"{words} was not compared, as {NOT_COMPARED[metric]}"
    return _unjudged(names, limit, why, "; compare exports that have it, or leave this limit away")


def _not_two_runs(names: str, limit: str, shared: Mapping) -> dict:
    """Return that a limit is not judged because a recording stands on both sides: it would be held against itself."""
    what = "both sides are the same recording" if shared["is_all"] else "both sides have a recording in common"
    return _unjudged(names, limit, f"{what} (equal content)", "; name exports of two runs")


def _kernels_without_interval(
    names: str, limit: str, kernels: Sequence[Mapping], rows: Sequence[Mapping], totals: Sequence[int], least: float
) -> list[dict]:
    """Return one state if the kernels of both runs that have no interval are too much of a run to be passed over."""
    with_interval = {row["candidate"] for row in rows if row["low_percent"] is not None}
    others = [
        part
        for part in kernels
        if part["match"] not in (NEW, GONE)
        and part["kernel"] not in with_interval
        and _share(part, totals, "ns") >= least
    ]
    together = {f"{side}_ns": sum(part[f"{side}_ns"] for part in others) for side in ("baseline", "candidate")}
    share = _share(together, totals, "ns")
    if share <= MOST_UNJUDGED:
        return []
    is_other_work = _is_mostly_other_work(others, rows)
    why = "most of it for work that one run alone has" if is_other_work else "most often for too few launches"
    what = f"kernels with {100 * share:.0f} % of the GPU time have no interval, {why}"
    return [_unjudged(names, limit, what, f"; {_advice('time_per_launch', limit, is_other_work)}")]


def _is_mostly_other_work(kernels: Sequence[Mapping], rows: Sequence[Mapping]) -> bool:
    """Return whether kernels with more than half of the candidate's time have no interval as they are other work."""
    other = {row["candidate"] for row in rows if row["reason_code"] == OTHER_WORK}
    time = sum(part["candidate_ns"] for part in kernels)
    return 2 * sum(part["candidate_ns"] for part in kernels if part["kernel"] in other) > time


def _advice(metric: str, limit: str, is_other_work: bool) -> str:
    """Return what would let a limit be judged: where one run has other work, more launches of it would not."""
    more = "" if metric == "span" else "capture more launches, "
    away = "raise min_share, or leave this limit away" if "kernel" in limit else "or leave this limit away"
    if is_other_work:
        return f"compare runs of the same problem sizes, {away}"
    return f"{more}name repeats of both runs, {away}"


def _judged(names: str, limit: str, most: float, row: Mapping, words: str, sign: int) -> dict:
    if row["low_percent"] is None:
        interval = ", without interval"
        state = NOT_JUDGED if row["level"] == "run" or sign * row["change_percent"] > most else INCONCLUSIVE
    else:
        interval = f" [{row['low_percent']:+.2f}, {row['high_percent']:+.2f}]"
        low, high = sorted(sign * row[key] for key in ("low_percent", "high_percent"))
        state = _state_of_interval(low, high, most)
    unit = "points" if row["metric"] == "efficiency" else "%"
    what = words if row["level"] == "run" else f"{words} of kernel {name_in_quotes(row['candidate'])}"
    change = f"{what} changed by {row['change_percent']:+.2f} {unit}{interval}"
    if state == NOT_JUDGED:
        advice = f": {row['reason']}; {_advice(row['metric'], limit, row['reason_code'] == OTHER_WORK)}"
        return _unjudged(names, limit, change, advice, f" = {most:g}", row["candidate"])
    sentence = f"{names}: {change}, which {VERBS[state]} {limit} = {most:g}."
    return _state(names, limit, row["candidate"], state, sentence)


def _state_of_interval(low: float, high: float, most: float) -> str:
    return BROKEN if low > most else HELD if high <= most else INCONCLUSIVE


def _with_work_of_one_run(state: dict, kernels: Sequence[Mapping], most: float, row: Mapping) -> dict:
    """Return the state of a limit of the whole GPU time, with what only one run launches counted.

    The interval is that of the same launches: what only one run launches was measured once. Beyond the limit, the limit
    is not judged, as nothing shows whether other kernels do the same work.
    """
    share, other = _work_of_one_run(kernels)
    if other <= 0 or state["state"] not in (HELD, INCONCLUSIVE):
        return state
    change, low, high = (share * row[f"{key}_percent"] + other for key in ("change", "low", "high"))
    reached = _state_of_interval(low, high, most)
    if reached in (HELD, state["state"]):
        return state
    said = "which does not decide it"
    if reached == BROKEN:
        reached = NOT_JUDGED
        said = (
            f"so {state['limit']} cannot be judged and the gate stays closed: whether these do the same work is not"
            " known; compare with a baseline that has them, raise this limit, or leave it away"
        )
    sentence = (
        f"{state['sentence'].removesuffix('.')}; with kernels and configurations of one run alone, GPU time changed by"
        f" {change:+.2f} % [{low:+.2f}, {high:+.2f}], {_as_recorded(kernels, most)}{said}."
    )
    return {**state, "state": reached, "sentence": sentence}


def _as_recorded(kernels: Sequence[Mapping], most: float) -> str:
    """Return how the GPU time changed without the baseline being scaled, if that keeps the limit: where the candidate
    launches kernels of both runs less often, other kernels may do their work, and for less.
    """
    before, after = (sum(part[f"{side}_ns"] for part in kernels) for side in ("baseline", "candidate"))
    recorded = 100 * (after / before - 1)
    fewer = sum(part["launches_ns"] for part in kernels if part["match"] not in (NEW, GONE)) < 0
    if not fewer or recorded > most:
        return ""
    return (
        f"for as many launches of the kernels of both runs; as recorded, with fewer of them, by {recorded:+.2f} %,"
        " which counts if both runs did the same work, "
    )


def _work_of_one_run(kernels: Sequence[Mapping]) -> tuple[float, float]:
    """Return the share of the kernels of both runs in the baseline's GPU time, and how much more time kernels and
    configurations of one run alone take in the candidate than in the baseline, in percent of the baseline's GPU time.

    The baseline is scaled to as many launches of the kernels of both runs as the candidate has.
    """
    both = [part for part in kernels if part["match"] not in (NEW, GONE)]
    common = sum(part["baseline_ns"] for part in both)
    if not common:
        return 0.0, 0.0
    gone = sum(part["baseline_ns"] for part in kernels if part["match"] == GONE)
    new = sum(part["candidate_ns"] for part in kernels if part["match"] == NEW)
    launched = (common + sum(part["launches_ns"] for part in both)) / common
    more = new - launched * gone + sum(part["configurations_ns"] for part in both)
    return common / (common + gone), 100 * more / (launched * (common + gone))


def _least_efficiency(names: str, rows: Sequence[Mapping], least: float | None) -> list[dict]:
    """Judge the candidate's own efficiency; its interval is that of the change, as if all noise were its own: wide,
    not narrow.
    """
    if least is None:
        return []
    row = next((row for row in rows if row["level"] == "run" and row["metric"] == "efficiency"), None)
    if row is None:
        return [_not_compared(names, "min_efficiency", "efficiency", "efficiency")]
    value = row["candidate_value"]
    what = f"the candidate's parallel efficiency is {value:.3f}"
    if row["low_percent"] is None:
        advice = f": {row['reason']}; {_advice('efficiency', 'min_efficiency', is_other_work=False)}"
        return [_unjudged(names, "min_efficiency", f"{what}, without interval", advice, f" = {least:g}")]
    low, high = (value + (row[key] - row["change_percent"]) / 100 for key in ("low_percent", "high_percent"))
    state = _state_of_interval(-high, -low, -least)
    sentence = f"{names}: {what}, which with its interval {VERBS[state]} min_efficiency = {least:g}."
    return [_state(names, "min_efficiency", None, state, sentence)]


def _unjudged(names: str, limit: str, why: str, advice: str = "", most: str = "", group: str | None = None) -> dict:
    """Return that a limit is not judged; `advice` begins with a punctuation mark, `most` is the limit's value."""
    sentence = f"{names}: {why}, so {limit}{most} cannot be judged and the gate stays closed{advice}."
    return _state(names, limit, group, NOT_JUDGED, sentence)


def _state(names: str, limit: str, group: str | None, state: str, sentence: str) -> dict:
    return {"pair": names, "limit": limit, "group": group, "state": state, "sentence": sentence}


def reasons(states: Sequence[Mapping], strict: bool) -> list[str]:
    """Return one sentence per limit that stops the job: the broken ones, those not judged, and missing data; with
    `strict` also those that the interval does not decide.
    """
    stops = (BROKEN, NOT_JUDGED, INCONCLUSIVE) if strict else (BROKEN, NOT_JUDGED)
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

"""Every group of both sides at every level, matched, estimated and judged: the rows of `comparison.parquet`."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from causeway.comparison.change_estimates import Choices, Estimate, estimates
from causeway.comparison.change_verdicts import (
    BETTER,
    WORDS,
    WORSE,
    Reason,
    adjusted,
    claim_floor,
    p_value,
    typical_floor,
    verdict,
)
from causeway.comparison.runs.matching import Match, match_configurations
from causeway.comparison.runs.run_totals import LEVELS
from causeway.comparison.runs.settings import COVERED
from causeway.comparison.sides import (
    EqualMix,
    LaunchTotals,
    Side,
    at_equal_mix,
    launches_of,
    shapes_by_kernel,
)
from causeway.core.formatting import percent
from causeway.core.vocabulary import EXACT, GONE, NEW, OTHER_WORK
from causeway.numeric.seeds import generator_64

MOST = {"configuration": 500, "region": 60}
"""Groups of a level that are compared, those with the most time; tables stay readable, and few tests cost less
power.
"""


@dataclass(frozen=True)
class Pair:
    """One group on both sides: its numbers, its name on each side, how it was matched, and its kernel's match."""

    level: str
    groups: tuple[int, int]
    names: tuple[str, str]
    match: str
    note: str = ""


@dataclass(frozen=True)
class Grouping:
    """What the groups are called in rows: the whole, levels, metrics, configurations, one configuration in words."""

    whole: str
    levels: Mapping[str, str]
    metrics: Mapping[str, str]
    parts: str
    words: Callable[[Sequence], str]


def shape_words(shape: Sequence) -> str:
    """Return a launch configuration in words: grid, block, and its label if it has one."""
    sides = ["x".join(str(value) for value in shape[first : first + 3] if value is not None) or "?" for first in (0, 3)]
    return f"grid {sides[0]}, block {sides[1]}" + (f", {shape[-1]}" if shape[-1] else "")


OF_LAUNCHES = Grouping(
    "all kernels",
    {level: level for level in LEVELS},
    {"time_per_launch": "time_per_launch", "variability": "variability"},
    "configurations",
    shape_words,
)


def configuration_pairs(sides: Sequence[Side], matches: Sequence[Match]) -> dict[int, tuple[int, str, Match]]:
    """Return for each matched configuration of the baseline the candidate's, how it was matched, and the kernel's
    match.
    """
    by_kernel = [shapes_by_kernel(side.main) for side in sides]
    main = sides[0].main
    pairs: dict[int, tuple[int, str, Match]] = {}
    for match in matches:
        if match.baseline is not None and match.candidate is not None and not match.has_other_inputs:
            ours = by_kernel[0].get(match.baseline, {})
            theirs = by_kernel[1].get(match.candidate, {})
            pairs |= {
                number: (other, how, match)
                for number, other, how in match_configurations(
                    ours, theirs, main.leading, main.thread_columns if match.how == EXACT else None
                )
            }
    return pairs


def pairs_of(
    sides: Sequence[Side],
    matches: Sequence[Match],
    configurations: Mapping[int, tuple],
    grouping: Grouping = OF_LAUNCHES,
) -> Iterator[Pair]:
    """Yield the groups that both sides have, level by level."""
    baseline, candidate = (side.main for side in sides)
    yield Pair("run", (0, 0), (grouping.whole, grouping.whole), EXACT)
    for level, before, after in (
        ("rank", baseline.ranks, candidate.ranks),
        ("region", baseline.regions, candidate.regions),
    ):
        indices = {name: index for index, name in enumerate(after)}
        for index, name in enumerate(before):
            if name in indices:
                yield Pair(level, (index, indices[name]), (str(name), str(name)), EXACT)
    for match in matches:
        if match.baseline is not None and match.candidate is not None:
            names = baseline.kernels.names[match.baseline], candidate.kernels.names[match.candidate]
            yield Pair("kernel", (match.baseline, match.candidate), names, match.how, match.note)
    for number, (other, how, match) in configurations.items():
        ours, theirs = (
            f"{run.kernels.names[kernel]} | {grouping.words(shape)}"
            for run, (kernel, shape) in (
                (baseline, baseline.configurations[number]),
                (candidate, candidate.configurations[other]),
            )
        )
        words = [match.note] if match.note else []
        words += [f"configurations matched by {how}"] if how != EXACT else []
        yield Pair("configuration", (number, other), (ours, theirs), match.how, "; ".join(words))


@dataclass
class Judged:
    """A group with its estimates, and per side the totals of its own launches."""

    pair: Pair
    estimates: dict[str, Estimate]
    totals: list[LaunchTotals]
    mixed: EqualMix

    def uncovered(self, metric: str, called: str) -> Reason | None:
        """Return that too little of the group is in configurations (`called` so) that both sides have; None where
        enough is.
        """
        parts = [(self.mixed.covered, "time is in")]
        if metric == "variability":
            parts.append((self.mixed.covered_deviations, "deviations are of"))
        share, what = min(parts)
        if share >= COVERED:
            return None
        return Reason(OTHER_WORK, (f"only {percent(100 * share)}" if share else "none", what, called))


def compare_groups(
    sides: Sequence[Side], matches: Sequence[Match], choices: Choices, seed: int, grouping: Grouping = OF_LAUNCHES
) -> tuple[list[dict], dict[str, int]]:
    """Return the rows of all groups, and how many groups of a level were left out, by what rows call it.

    Parameters
    ----------
    sides : (baseline, candidate)
    matches : sequence of Match
    choices : Choices
    seed : int
    grouping : Grouping
        Levels and metrics that it does not name are left out.
    """
    configurations = configuration_pairs(sides, matches)
    to_candidate = {number: other for number, (other, *_) in configurations.items()}
    levels: dict[str, list[Judged]] = {}
    has_common = any(match.how not in (NEW, GONE) for match in matches)
    for pair in pairs_of(sides, matches, configurations, grouping) if has_common else ():
        if pair.level not in grouping.levels:
            continue
        mixed = at_equal_mix(sides, pair.level, pair.groups, to_candidate)
        if mixed is None or min(time for side in mixed.times for time in side) <= 0:
            continue
        totals = [
            launches_of(side.totals(0, pair.level, group)) for side, group in zip(sides, pair.groups, strict=True)
        ]
        levels.setdefault(pair.level, []).append(Judged(pair, {}, totals, mixed))
    kept: dict[str, list[Judged]] = {}
    left_out = {}
    for level, judged in levels.items():
        judged.sort(key=lambda judgement: -max(total.time_ns for total in judgement.totals))
        kept[level] = judged[: MOST.get(level, len(judged))]
        left_out[grouping.levels[level]] = len(judged) - len(kept[level])
        for judgement in kept[level]:
            rng = generator_64(seed, sides[0].main.dataset, sides[1].main.dataset, level, *judgement.pair.names)
            judgement.estimates = estimates(sides, level, judgement.pair.groups, judgement.mixed, choices, rng)
    rows = []
    for metric in grouping.metrics:
        weights = [
            (judgement.estimates.get(metric), max(total.time_ns for total in judgement.totals))
            for judgement in kept.get("kernel", [])
        ]
        least = typical_floor([(estimate.floor, weight) for estimate, weight in weights if estimate is not None])
        for level, judged in kept.items():
            # sums over many kernels are steadier than any of them
            own = level in ("run", "rank") and metric == "time_per_launch"
            with_metric = [judgement for judgement in judged if metric in judgement.estimates]
            chosen = choices if metric == "time_per_launch" else choices.of_variability()
            rows += _judged_rows(with_metric, metric, None if own else least, chosen, grouping)
    return rows, left_out


def _judged_rows(
    judged: Sequence[Judged], metric: str, least: float | None, choices: Choices, grouping: Grouping
) -> list[dict]:
    """Return the rows of one family of tests; no floor is below `least`."""
    group_estimates = [judgement.estimates[metric].with_floor(least) for judgement in judged]
    group_estimates = [
        replace(estimate, low=None, high=None, error=None) if judgement.uncovered(metric, grouping.parts) else estimate
        for judgement, estimate in zip(judged, group_estimates, strict=True)
    ]
    p_values = [p_value(estimate, choices) for estimate in group_estimates]
    rows = []
    for judgement, estimate, p, q in zip(judged, group_estimates, p_values, adjusted(p_values), strict=True):
        values = (
            [total.time_ns / total.launches for total in judgement.totals]
            if metric == "time_per_launch"
            else [total.deviation_ns / total.time_ns if total.time_ns else 0.0 for total in judgement.totals]
        )
        other_work = judgement.uncovered(metric, grouping.parts)
        unit = "ns" if metric == "time_per_launch" else "ratio"
        pair = replace(judgement.pair, level=grouping.levels[judgement.pair.level])
        row = row_of(pair, grouping.metrics[metric], unit, values, estimate, p, q, choices, other_work)
        if other_work:
            row["note"] = "; ".join(filter(None, [row["note"], other_work.words]))
        for side, total in zip(("baseline", "candidate"), judgement.totals, strict=True):
            row |= {f"{side}_launches": total.launches, f"{side}_total_ns": total.time_ns}
        rows.append(row)
    return rows


def row_of(
    pair: Pair,
    metric: str,
    unit: str,
    values: Sequence[float],
    estimate: Estimate,
    p: float | None,
    q: float | None,
    choices: Choices,
    why: Reason | None = None,
    relative: bool = True,
) -> dict:
    """Return one row of the table with its verdict, and `why` in place of the verdict's reason; changes in percent, or
    in percentage points where the metric is a ratio that is compared as such: more of it is for the better.
    """
    word, reason = verdict(estimate, q, choices)
    if not relative:
        word = {WORSE: BETTER, BETTER: WORSE}.get(word, word)
    reason = why or reason

    def percent(value: float | None) -> float | None:
        if value is None:
            return None
        return 100.0 * (math.expm1(min(value, 700.0)) if relative else value)

    return {
        "level": pair.level,
        "metric": metric,
        "baseline": pair.names[0],
        "candidate": pair.names[1],
        "match": pair.match,
        "note": pair.note or None,
        "unit": unit,
        "baseline_value": float(values[0]),
        "candidate_value": float(values[1]),
        "change_percent": percent(estimate.change),
        "low_percent": percent(estimate.low),
        "high_percent": percent(estimate.high),
        "floor_percent": percent(claim_floor(estimate, choices)),
        "p_value": p,
        "q_value": q,
        "verdict": WORDS[metric].get(word, word),
        "reason": reason.words,
        "reason_code": reason.code,
        "baseline_effective": estimate.effective[0],
        "candidate_effective": estimate.effective[1],
        "paired": estimate.paired,
        "baseline_launches": None,
        "candidate_launches": None,
        "baseline_total_ns": None,
        "candidate_total_ns": None,
    }


def lone_rows(sides: Sequence[Side], matches: Sequence[Match], grouping: Grouping = OF_LAUNCHES) -> list[dict]:
    """Return the rows of kernels and ranks that only one side has."""
    rows = []
    for match in matches:
        for index, number in enumerate((match.baseline, match.candidate)):
            if (match.baseline is None) == (match.candidate is None) or number is None:
                continue
            totals = launches_of(sides[index].totals(0, "kernel", number))
            name = sides[index].main.kernels.names[number]
            rows.append(_lone(grouping, "kernel", name, match.how, index, totals, match.note))
    for index, how in ((0, GONE), (1, NEW)) if "rank" in grouping.levels else ():
        others = sides[1 - index].main.ranks
        for number, rank in enumerate(sides[index].main.ranks):
            if rank not in others:
                totals = launches_of(sides[index].totals(0, "rank", number))
                rows.append(_lone(grouping, "rank", str(rank), how, index, totals))
    return rows


def _lone(
    grouping: Grouping, level: str, name: str, how: str, index: int, totals: LaunchTotals, note: str = ""
) -> dict:
    pair = Pair(grouping.levels[level], (-1, -1), (name, name), how, note)
    why = Reason("one_side", (how, ("baseline", "candidate")[index]))
    metric = grouping.metrics["time_per_launch"]
    row = row_of(pair, metric, "ns", (0.0, 0.0), Estimate(0.0), None, None, Choices(), why)
    side, other = (("baseline", "candidate"), ("candidate", "baseline"))[index]
    value = totals.time_ns / totals.launches if totals.launches else None
    empty = {"change_percent": None, "verdict": how, f"{other}_value": None, f"{side}_value": value, other: None}
    return {**row, **empty, f"{side}_launches": totals.launches, f"{side}_total_ns": totals.time_ns}

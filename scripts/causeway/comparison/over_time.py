"""Efficiency and span of two runs: the efficiency over time is a series as launches are, the span a single number."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from causeway.comparison.change_estimates import (
    LEAST_BLOCKS,
    Choices,
    Drawn,
    Estimate,
    between_runs,
    floor_of,
    resample,
)
from causeway.comparison.change_verdicts import Reason, adjusted, p_value
from causeway.comparison.groups import Pair, row_of
from causeway.core.tables import read_table
from causeway.core.vocabulary import EXACT
from causeway.numeric.effective_size import blocked_correlation_time
from causeway.numeric.seeds import generator_64

COLUMNS = [
    "level",
    "rank",
    "elapsed_ns",
    "n_devices",
    "kernel_ns",
    "memory_ns",
    "busy_ns",
    "device_parallel_efficiency",
]
STEP_COLUMNS = ["step", "duration_ns", "warm_up"]


class Course:
    """Device time and busy device time per bin of one run, ns; of all ranks (None) and of each.

    Attributes
    ----------
    cells : dict of (int or None) to ndarray of int64, shape (bins, 2)
    value : dict of (int or None) to float
        Parallel efficiency.
    times : dict of str to (int or None)
        Of all devices together, ns: in which a copy ran, and in which nothing ran.
    """

    def __init__(self, path: str | Path) -> None:
        rows = read_table(path, "efficiency", COLUMNS).to_pylist()
        bins: dict[int | None, list[tuple[int, int]]] = {}
        for row in rows:
            if row["level"] == "bin":
                bins.setdefault(row["rank"], []).append((row["elapsed_ns"] * row["n_devices"], row["kernel_ns"]))
        self.cells = {rank: np.array(cells, np.int64) for rank, cells in bins.items()}
        self.value = {
            row["rank"]: row["device_parallel_efficiency"]
            for row in rows
            if row["level"] in ("dataset", "rank") and row["device_parallel_efficiency"] is not None
        }
        whole = next((row for row in rows if row["level"] == "dataset"), None)
        self.times = {
            "copies": whole and whole["memory_ns"],
            "idle": whole and whole["elapsed_ns"] * whole["n_devices"] - whole["busy_ns"],
        }

    def half_change(self, rank: int | None) -> float | None:
        """Return the efficiency of the second half less that of the first; None with too few bins."""
        cells = self.cells[rank]
        middle = cells.shape[0] // 2
        if middle < 4:
            return None
        first = cells[:middle].sum(axis=0)
        second = cells[middle:].sum(axis=0)
        return float(second[1] / second[0] - first[1] / first[0])


def _noise(cells: np.ndarray, replicates: int, rng: np.random.Generator) -> tuple[np.ndarray, float, float]:
    """Return replicates of a run's efficiency less their mean, the number of blocks and the effective number of
    bins.
    """
    device, busy = cells.sum(axis=0)
    ratio = busy / device
    drawn = resample([cells], cells[:, 1] - ratio * cells[:, 0], replicates, rng)
    sums = drawn.sums[0]
    ratios = sums[:, 1] / np.maximum(sums[:, 0], 1)
    return ratios - ratios.mean(), drawn.blocks, drawn.effective


def _single(courses: Sequence[Course], rank: int | None, choices: Choices, rng: np.random.Generator) -> Estimate:
    change = courses[1].value[rank] - courses[0].value[rank]
    parts = [_noise(course.cells[rank], choices.replicates, rng) for course in courses]
    return _difference(change, parts, floor_of(*(course.half_change(rank) for course in courses)), choices)


def _difference(
    change: float, parts: Sequence[tuple[np.ndarray, float, float]], floor: float | None, choices: Choices
) -> Estimate:
    """Return a change with its interval from each side's replicates, number of blocks and effective number."""
    noise, blocks, effective = zip(*parts, strict=True)
    drawn = Drawn(
        [replicates[:, None] for replicates in noise], blocks, (1, 1), effective, paired=False, is_centred=True
    )
    return replace(drawn.estimate(0, change, choices.confidence), floor=floor)


def compare_efficiency(
    names: Sequence[str], sides: Sequence[Sequence[Course]], choices: Choices, seed: int
) -> list[dict]:
    """Return the rows of the parallel efficiency of the devices, whole and by rank; changes in percentage points.

    Parameters
    ----------
    names : (str, str)
        The datasets.
    sides : per side, the courses of its runs
    choices : Choices
    seed : int
    """
    rows = []
    every = [course for side in sides for course in side]
    shared = set.intersection(*({rank for rank in course.value if rank in course.cells} for course in every))
    for level, ranks in (("run", [None] if None in shared else []), ("rank", sorted(shared - {None}))):
        estimates = []
        for rank in ranks:
            if all(len(side) == 1 for side in sides):
                rng = generator_64(seed, *names, "efficiency", rank)
                estimates.append(_single([side[0] for side in sides], rank, choices, rng))
            else:
                values = [[course.value[rank] for course in side] for side in sides]
                estimates.append(between_runs(values, [0.0], choices.confidence))
        p_values = [p_value(estimate, choices) for estimate in estimates]
        for rank, estimate, p, q in zip(ranks, estimates, p_values, adjusted(p_values), strict=True):
            word = "all devices" if rank is None else str(rank)
            pair = Pair(level, (0, 0), (word, word), EXACT)
            first = [side[0].value[rank] for side in sides]
            rows.append(row_of(pair, "efficiency", "ratio", first, estimate, p, q, choices, relative=False))
    return rows


TIMES = {"span": "a span", "copies": "the time of copies", "idle": "the idle time"}
"""Times of a whole run that are one number each."""


def compare_times(metric: str, times: Sequence[Sequence[int | None]], choices: Choices) -> list[dict]:
    """Return the row of a time of the whole run, a key of `TIMES`: with repeats judged by the scatter between runs,
    else without interval; none where a run has no such time.

    Parameters
    ----------
    metric : str
    times : per side, per run, int or None
        ns.
    choices : Choices
    """
    recorded = [[time for time in side if time] for side in times]
    if recorded != [list(side) for side in times]:
        return []
    logs = [[float(np.log(time)) for time in side] for side in recorded]
    pair = Pair("run", (0, 0), (metric, metric), EXACT)
    values = [side[0] for side in recorded]
    if all(len(side) == 1 for side in recorded):
        why = Reason("one_number", (TIMES[metric],))
        return [row_of(pair, metric, "ns", values, Estimate(logs[1][0] - logs[0][0]), None, None, choices, why)]
    estimate = between_runs(logs, [0.0], choices.confidence)
    p = p_value(estimate, choices)
    return [row_of(pair, metric, "ns", values, estimate, p, p, choices)]


def _step_times(path: str | Path) -> np.ndarray:
    """Return the duration of each step that is no warm-up, mean of its ranks, ns, in order; float64."""
    rows = read_table(path, "steps", STEP_COLUMNS).to_pylist()
    steps: dict[int, list[int]] = {}
    for row in rows:
        if not row["warm_up"]:
            steps.setdefault(row["step"], []).append(row["duration_ns"])
    return np.array([sum(steps[step]) / len(steps[step]) for step in sorted(steps)])


def compare_steps(
    names: Sequence[str], sides: Sequence[Sequence[str | Path]], choices: Choices, seed: int
) -> list[dict]:
    """Return the row of the median time of a step, without those that warm up, whose launches are the numbers of steps;
    none where a run has no such step.

    Parameters
    ----------
    names : (str, str)
        The datasets.
    sides : per side, `steps.parquet` of its runs
    choices : Choices
    seed : int
    """
    times = [[_step_times(path) for path in side] for side in sides]
    if not all(run.size and np.median(run) > 0 for side in times for run in side):
        return []
    values = [float(np.median(side[0])) for side in times]
    logs = [[float(np.log(np.median(run))) for run in side] for side in times]
    if all(len(side) == 1 for side in times):
        estimate = _of_steps([side[0] for side in times], logs, choices, generator_64(seed, *names, "step"))
    else:
        estimate = between_runs(logs, [0.0], choices.confidence)
    p = p_value(estimate, choices)
    pair = Pair("run", (0, 0), ("steps", "steps"), EXACT)
    numbers = {f"{word}_launches": side[0].size for word, side in zip(("baseline", "candidate"), times, strict=True)}
    return [row_of(pair, "step", "ns", values, estimate, p, p, choices) | numbers]


def _of_steps(
    times: Sequence[np.ndarray], logs: Sequence[Sequence[float]], choices: Choices, rng: np.random.Generator
) -> Estimate:
    """Return the change of the median time of a step between one run on each side: steps are drawn one by one, and what
    they vary is taken to be as much larger as the autocorrelation of being above the median makes it.
    """
    change = logs[1][0] - logs[0][0]
    if min(run.size for run in times) < 2 * LEAST_BLOCKS:
        return Estimate(change)
    parts = []
    for run in times:
        correlation = max(1.0, blocked_correlation_time(np.sign(run - np.median(run))))
        drawn = np.log(np.median(rng.choice(run, (choices.replicates, run.size)), axis=1) / np.median(run))
        parts.append((drawn * np.sqrt(correlation), run.size / correlation, run.size / correlation))
    halves = [_half_change(run) for run in times]
    return _difference(change, parts, abs(halves[1] - halves[0]), choices)


def _half_change(times: np.ndarray) -> float:
    """Return the logarithm of the median time of a step in the second half over the first."""
    middle = times.size // 2
    return float(np.log(np.median(times[middle:]) / np.median(times[:middle])))


def decomposition(sides: Sequence, matches: Sequence, pairs: Mapping[int, int]) -> list[dict]:
    """Return where the difference of the total GPU time comes from, kernel by kernel; the parts sum to it exactly but
    for rounding to ns.

    For a kernel on both sides, over the configurations of both: `time_ns = S_c - n_c S_b / n_b` (launches take longer
    or shorter), `launches_ns = (n_c - n_b) S_b / n_b` (there are more or fewer), with n launches and S time;
    `configurations_ns` is what configurations of one side alone add or take away. New and gone kernels count whole.
    """
    rows = []
    for match in matches:
        totals = [
            {} if number is None else side.totals(0, "kernel", number)
            for side, number in zip(sides, (match.baseline, match.candidate), strict=True)
        ]
        sums = [sum(total.time_ns for total in side.values()) for side in totals]
        shared = [
            (totals[0][ours], totals[1][other])
            for ours, other in pairs.items()
            if ours in totals[0] and other in totals[1]
        ]
        launches = round(math.fsum((after[0] - before[0]) * before[1] / before[0] for before, after in shared))
        common = sum(after[1] - before[1] for before, after in shared)
        lone = match.baseline is None or match.candidate is None
        run, number = (
            (sides[1].main, match.candidate) if match.candidate is not None else (sides[0].main, match.baseline)
        )
        rows.append(
            {
                "kernel": run.kernels.names[number],
                "match": match.how,
                "baseline_ns": sums[0],
                "candidate_ns": sums[1],
                "time_ns": common - launches,
                "launches_ns": launches,
                "configurations_ns": 0 if lone else sums[1] - sums[0] - common,
                "lone_ns": sums[1] - sums[0] if lone else 0,
            }
        )
    return sorted(rows, key=lambda row: (-abs(row["candidate_ns"] - row["baseline_ns"]), row["kernel"]))

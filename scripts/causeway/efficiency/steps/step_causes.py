"""Which steps are slow, and what they have more of than the usual steps of their rank.

A slow step's excess over the median is divided, to the nanosecond, among the parts of the step: idle time before its
first launch and after it, exposed communication, exposed copies, and kernels, which are divided by what is different in
the step: more launches, more threads per launch, a lower clock, or none of these. What is left (kernels beside each
other, medians that do not add up) is `other`. Each part is compared with the same part of the usual steps.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from causeway.core.vocabulary import INCONCLUSIVE, REFUTED, SUPPORTED
from causeway.efficiency.steps.step_parts import StepParts
from causeway.numeric.block_resampling import block_numbers, resampled_rows
from causeway.numeric.seeds import generator

WARM_UP_RATIO = 1.5
"""A first step that takes so many times the median is warm-up."""
WARM_UP_LAUNCHES = 0.05
"""A first step whose launches differ from the median by more than this share is warm-up."""
WARM_UP_SHARE = 1 / 3
"""Share of the steps that may be warm-up: of a run that never becomes steady nothing is called so."""
MIN_STEPS = 10
"""Steps after the warm-up that a rank needs before any of them is called slow."""
SLOW_SHARE = 0.05
"""Excess over the median, as a share of it, from which a step is slow."""
SLOW_DEVIATIONS = 5.0
"""The same in robust standard deviations: of 10^5 steps with normal noise less than one is beyond by chance."""
NORMAL_MAD = 1.4826
"""Median absolute deviation to standard deviation of a normal distribution, 1 / Phi^-1(3/4)."""
MOST_SLOW = 1_000
"""Slow steps of a dataset whose causes are looked for, those with the largest excess."""
MORE_THREADS = 1.02
"""Ratio of threads per launch from which a kernel's launches are larger than usual."""
LOWER_CLOCK = 0.97
"""Ratio to the usual clock below which the clock is lower than usual."""
LEAST_EXPECTED = 0.3
MOST_EXPECTED = 2.0
"""What kernels lose at a lower clock, over what they would lose if their time were inverse to it; between these bounds
the clock is their cause: memory does not slow down with it, and the mean of few samples is imprecise.
"""
MIN_SHARE = 0.2
"""Share of a step's excess from which a part is its cause."""
NO_SHARE = 0.1
"""A part whose interval ends below this share of the excess is refuted as a cause."""
LEVEL = 0.05
"""False discovery rate over all parts of all slow steps of a dataset."""
DRAWS = 400
"""Resamples behind an interval."""
IDLE_BEFORE = "idle_before_first_launch"
IDLE_INSIDE = "idle_inside"
COMMUNICATION = "exposed_communication"
COPIES = "exposed_copies"
ADDED = "added_launches"
LARGER = "larger_launches"
CLOCK = "lower_clock"
SLOWER = "slower_kernels"
OTHER = "other"
OF_PARTS = {
    IDLE_BEFORE: "idle_before",
    IDLE_INSIDE: "idle_inside",
    COMMUNICATION: "exposed_communication",
    COPIES: "exposed_copies",
}


@dataclass(frozen=True, kw_only=True)
class StepCauses:
    """Slow steps for `steps.json`, and the rows of `step_causes.parquet`."""

    slow: list[dict] = field(default_factory=list)
    rows: list[dict] = field(default_factory=list)


def warm_up(parts: StepParts) -> np.ndarray:
    """Return which steps are warm-up, bool, shape (steps,): the first ones, as long as they take `WARM_UP_RATIO` times
    the median or have other numbers of launches, at most a third of all.
    """
    duration = parts.steps.end - parts.steps.start
    launches = parts.launches
    other = np.abs(launches - np.median(launches)) > WARM_UP_LAUNCHES * np.median(launches)
    differs = (duration > WARM_UP_RATIO * np.median(duration)) | other
    first = int(np.argmin(np.append(differs, False)))
    most = int(WARM_UP_SHARE * duration.size)
    return np.arange(duration.size) < min(first, most)


def deviation(values: np.ndarray) -> float:
    """Return the robust standard deviation of values, from their median absolute deviation.

    Parameters
    ----------
    values : ndarray of int64 or float64, shape (n,), n at least 1
    """
    return NORMAL_MAD * float(np.median(np.abs(values - np.median(values))))


def is_slow(duration: np.ndarray, usual: np.ndarray) -> np.ndarray:
    """Return which steps are slow, bool, shape (steps,).

    Parameters
    ----------
    duration : ndarray of int64, shape (steps,), ns
    usual : ndarray of bool, shape (steps,)
        Steps after the warm-up, with which they are compared; only these can be slow.
    """
    if usual.sum() < MIN_STEPS:
        return np.zeros(duration.size, bool)
    median = float(np.median(duration[usual]))
    least = max(SLOW_SHARE * median, SLOW_DEVIATIONS * deviation(duration[usual]))
    return usual & (duration - median > least)


def slow_steps(parts: StepParts, seed: int, dataset: str) -> list[dict]:
    """Return the slow steps of a rank, each with its causes, whose `q_value` is still a p-value; of more than
    `MOST_SLOW` those with the largest excess.

    Parameters
    ----------
    parts : StepParts
    seed : int
    dataset : str
        Part of the derived seeds.
    """
    duration = parts.steps.end - parts.steps.start
    usual = ~warm_up(parts)
    slow = is_slow(duration, usual)
    longest = np.flatnonzero(slow)
    longest = longest[np.argsort(-duration[longest], kind="stable")][:MOST_SLOW]
    return [
        _judge(parts, step, usual & ~slow, generator(seed, dataset, "step_time", parts.steps.rank, step))
        for step in np.sort(longest).tolist()
    ]


def causes_of(slow: Sequence[dict]) -> StepCauses:
    """Return the slow steps of a dataset and their causes.

    Parameters
    ----------
    slow : sequence of dict
        Slow steps of all ranks, as `slow_steps` gives them.
    """
    judged = sorted(slow, key=lambda step: (-step["excess_ns"], step["rank"], step["step"]))[:MOST_SLOW]
    rows = [row for step in judged for row in step.pop("causes")]
    tested = [row for row in rows if row["cause"] != OTHER]
    if tested:
        from scipy.stats import false_discovery_control  # half a second of CPU time, where it is needed

        for row, q in zip(tested, false_discovery_control([row["q_value"] for row in tested]), strict=True):
            row["q_value"] = float(q)
            if q <= LEVEL and row["low_ns"] > 0 and row["share"] >= MIN_SHARE:
                row["verdict"] = SUPPORTED
    _name_main(judged, rows)
    order = sorted(
        range(len(rows)), key=lambda index: (rows[index]["rank"], rows[index]["step"], -rows[index]["excess_ns"])
    )
    judged.sort(key=lambda step: (step["rank"], step["step"]))
    return StepCauses(slow=judged, rows=[rows[index] for index in order])


def _judge(parts: StepParts, step: int, usual: np.ndarray, random: np.random.Generator) -> dict:
    """Return a slow step with its causes, whose `q_value` is still a p-value."""
    duration = parts.steps.end - parts.steps.start
    median = round(float(np.median(duration[usual])))
    excess = (int(duration[step]) - median) * parts.devices
    key = {"rank": parts.steps.rank, "step": int(parts.steps.number[step])}
    from scipy.special import stdtr  # most exports have no slow step, and it takes a fifth of a second to load

    blocks = block_numbers(duration[usual].astype(float), int(usual.sum()))
    drawn = [resampled_rows(blocks, random) for _ in range(DRAWS)]
    picked = random.integers(0, int(usual.sum()), DRAWS)
    rows = []
    for cause, series, more in _divided(parts, step, usual):
        reference = series[usual]
        middle = round(float(np.median(reference)))
        size = int(series[step]) - middle
        noise = np.array([np.median(reference[rows_]) for rows_ in drawn]) - middle + reference[picked] - middle
        low, high = np.quantile(size - noise, [0.05, 0.95])
        z = size / max(deviation(reference) * np.sqrt(1 + 1 / reference.size), 1.0)
        row = {"cause": cause, "excess_ns": size, "low_ns": min(int(low), size), "high_ns": max(int(high), size)}
        verdict = REFUTED if high < NO_SHARE * excess else INCONCLUSIVE  # until the q-values are known
        row |= {"share": size / excess, "q_value": float(stdtr(reference.size - 1, -z)), "verdict": verdict}
        rows.append(key | {"name": None, "launches": None, "ratio": None} | row | more)
    left = excess - sum(row["excess_ns"] for row in rows)
    rows.append(
        key
        | dict.fromkeys(("name", "launches", "ratio", "low_ns", "high_ns", "q_value"))
        | {"cause": OTHER, "excess_ns": left, "share": left / excess, "verdict": INCONCLUSIVE}
    )
    times = {"duration_ns": int(duration[step]), "usual_ns": median, "excess_ns": excess}
    return key | times | {"causes": rows}


def _divided(parts: StepParts, step: int, usual: np.ndarray):
    """Give the parts into which a slow step is divided: the cause, the part in every step, and what else is known."""
    for cause, part in OF_PARTS.items():
        yield cause, parts.parts[part], {}
    count = parts.count[usual]
    more = parts.count[step] - np.rint(np.median(count, axis=0)).astype(np.int64)
    size = np.where(parts.count > 0, parts.threads / np.maximum(parts.count, 1), np.nan)
    with np.errstate(invalid="ignore"):
        sizes = np.nan_to_num(_median(size[usual]), nan=0.0)
        ratio = np.where(sizes > 0, np.nan_to_num(size[step], nan=0.0) / np.maximum(sizes, 1), 1.0)
    added = more != 0
    larger = ~added & (ratio > MORE_THREADS)
    rest = ~added & ~larger
    clock, clock_ratio = _clock(parts, step, usual, rest)
    nothing: dict = {}
    groups = ((ADDED, added, nothing), (LARGER, larger, nothing), (clock, rest, {"ratio": clock_ratio}))
    for cause, chosen, extra in groups:
        if not chosen.any():
            continue
        columns = np.flatnonzero(chosen)
        excess = parts.kernel_ns[step, columns] - np.median(parts.kernel_ns[usual][:, columns], axis=0)
        top = int(columns[np.argmax(excess)])
        facts = dict(extra)
        if excess.max() > 0:
            facts["name"] = parts.kernels[top]
        if cause == ADDED:
            facts["launches"] = int(more[chosen].sum())
        if cause == LARGER:
            facts["ratio"] = float(ratio[top])
        yield cause, parts.kernel_ns[:, columns].sum(axis=1), facts


def _median(values: np.ndarray) -> np.ndarray:
    """Return the median of each column, of the rows where it is known; NaN where in none."""
    is_number = ~np.isnan(values)
    filled = np.sort(np.where(is_number, values, np.inf), axis=0)
    many = is_number.sum(axis=0)
    middle = np.take_along_axis(filled, np.maximum(many - 1, 0)[None, :] // 2, axis=0)[0]
    return np.where(many > 0, middle, np.nan)


def _clock(parts: StepParts, step: int, usual: np.ndarray, rest: np.ndarray) -> tuple[str, float | None]:
    """Return whether kernels with the usual launches are slower because of the clock, and the clock's ratio to the
    usual one, None where it was not sampled.
    """
    sampled = parts.clock_hz[usual & (parts.clock_hz > 0)]
    if parts.clock_hz[step] <= 0 or not sampled.size:
        return SLOWER, None
    ratio = float(parts.clock_hz[step] / np.median(sampled))
    if ratio >= LOWER_CLOCK:
        return SLOWER, ratio
    before = float(np.median(parts.kernel_ns[usual][:, rest].sum(axis=1)))
    lost = float(parts.kernel_ns[step, rest].sum()) - before
    expected = before * (1 / ratio - 1)
    return (CLOCK if LEAST_EXPECTED * expected <= lost <= MOST_EXPECTED * expected else SLOWER), ratio


def _name_main(judged: Sequence[dict], rows: Sequence[Mapping]) -> None:
    """Add to each slow step its main cause: the supported one with the largest excess; and where that is exposed
    communication, the rank it waits for: one that is slow in the same step for a reason of its own.
    """
    best: dict[tuple[int, int], Mapping] = {}
    for row in rows:
        key = row["rank"], row["step"]
        if row["verdict"] == SUPPORTED and (key not in best or row["excess_ns"] > best[key]["excess_ns"]):
            best[key] = row
    own: dict[int, tuple[int, int]] = {}
    for (rank, step), row in sorted(best.items()):
        if row["cause"] != COMMUNICATION:
            own[step] = max(own.get(step, (0, -1)), (row["excess_ns"], -1 - rank))
    for slow in judged:
        main = best.get((slow["rank"], slow["step"]))
        waits = main is not None and main["cause"] == COMMUNICATION and slow["step"] in own
        slow |= {
            "cause": main["cause"] if main else None,
            "name": main["name"] if main else None,
            "cause_ns": main["excess_ns"] if main else None,
            "launches": main["launches"] if main else None,
            "ratio": main["ratio"] if main else None,
            "waits_for": -1 - own[slow["step"]][1] if waits else None,
        }

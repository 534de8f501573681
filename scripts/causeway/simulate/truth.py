"""What removing a planted cause does to the times: the same run with and without it, with the same random numbers.

Memory stalls of simulated launches, for the ground truth: |duration of the launch - that of its linked transfer|.
"""

import dataclasses
from collections.abc import Iterable

import numpy as np

from causeway.core.errors import CausewayError
from causeway.simulate.scenario import Scenario, is_collective
from causeway.simulate.schedule import simulate_batches
from causeway.simulate.stream_events import RankBatch

STRAGGLER = "straggler"
TAIL_QUANTILE = 0.99
"""The tail as `p99_change_percent` of contributions has it."""


def removals_of(scenario: Scenario) -> list[str]:
    """Return all that can be removed from a run: each planted cause of each kernel, and the straggler."""
    removals = [f"{kernel.short_name}:{cause}" for kernel in scenario.kernels for cause in kernel.causes]
    return removals + [STRAGGLER] * (scenario.straggler != "none")


def without(scenario: Scenario, removed: Iterable[str]) -> Scenario:
    """Return a run without some of what is planted in it; random numbers stay those that they were.

    Parameters
    ----------
    scenario : Scenario
    removed : iterable of str
        `straggler`, a cause, or `kernel:cause` for that of one kernel, by its short name.

    Raises
    ------
    CausewayError
        If nothing of the name is planted.
    """
    for name in removed:
        if name == STRAGGLER and scenario.straggler != "none":
            scenario = dataclasses.replace(scenario, straggler="none")
            continue
        short_name, _, cause = name.rpartition(":")
        concerned = [
            kernel for kernel in scenario.kernels if cause in kernel.causes and short_name in ("", kernel.short_name)
        ]
        if not concerned:
            raise CausewayError(
                f"simulated trace: nothing planted is called {name!r}; there are {', '.join(removals_of(scenario))}"
            )
        kernels = (
            dataclasses.replace(kernel, causes={key: value for key, value in kernel.causes.items() if key != cause})
            if kernel in concerned
            else kernel
            for kernel in scenario.kernels
        )
        scenario = dataclasses.replace(scenario, kernels=tuple(kernels))
    return scenario


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunTimes:
    """The times of a run.

    Attributes
    ----------
    durations : list of ndarray of float64, shape (launches of the kernel,), ns
        By kernel: of its launches, batch by batch, rank by rank, in the order of their starts.
    stalls : list of ndarray of float64, shape (launches of the kernel,), ns
        Their memory stalls; NaN without a linked transfer.
    configurations : list of ndarray of int64, shape (launches of the kernel,)
        A number for each launch's configuration.
    step_ns : float
        Mean time from the begin of an iteration to that of the next.
    """

    durations: list[np.ndarray]
    stalls: list[np.ndarray]
    configurations: list[np.ndarray]
    step_ns: float


def times_of(scenario: Scenario) -> RunTimes:
    """Simulate a run and return its times."""
    scenario = dataclasses.replace(scenario, gpu_metrics_us=None)
    parts: list[list[tuple]] = [[] for _ in scenario.kernels]
    begins = []
    for batches in simulate_batches(scenario):
        begins.append(batches[0].ranges["start"])
        last = int(max(batch.ranges["end"][-1] for batch in batches))
        for batch in batches:
            kernels = batch.kernels
            stall = memory_stalls(batch)
            for number, part in enumerate(parts):
                own = kernels["kernel"] == number
                part.append(
                    (
                        (kernels["end"] - kernels["start"])[own].astype(float),
                        stall[own],
                        (kernels["block"] << 32 | kernels["grid"])[own],
                    )
                )
    durations, stalls, configurations = (
        [np.concatenate([piece[index] for piece in part]) for part in parts] for index in range(3)
    )
    step = (last - int(begins[0][0])) / scenario.iterations
    return RunTimes(durations=durations, stalls=stalls, configurations=configurations, step_ns=step)


def spread(values: np.ndarray, configurations: np.ndarray) -> float:
    """Return the mean absolute deviation from the means of the configurations.

    Parameters
    ----------
    values : ndarray of float64, shape (n,)
    configurations : ndarray of int64, shape (n,)

    Returns
    -------
    float
        In the unit of the values.
    """
    _, which = np.unique(configurations, return_inverse=True)
    means = np.bincount(which, values) / np.bincount(which)
    return float(np.abs(values - means[which]).mean())


def percent(after: float, before: float) -> float | None:
    """Return the change from `before` in percent, to six decimals; None from 0."""
    return round(100 * (after / before - 1), 6) if before else None


def effects_of(scenario: Scenario) -> list[dict]:
    """Return what each removal does to the kernel that it concerns, and to a step.

    Returns
    -------
    list of dict
        In the order of `removals_of`: `removed`; `kernel` (full name; None for the straggler, which concerns the
        collectives); change in percent of the mean duration, of its 99th percentile, of the mean absolute deviation
        within configurations, of the mean memory stall, of a step; `saved_ns`, GPU time of the kernel in the run.
    """
    before = times_of(scenario)
    effects = []
    for name in removals_of(scenario):
        after = times_of(without(scenario, [name]))
        short = name.rpartition(":")[0]
        concerned = [
            number
            for number, kernel in enumerate(scenario.kernels)
            if (is_collective(kernel) if name == STRAGGLER else kernel.short_name == short)
        ]
        effects += [_effect(name, scenario, number, before, after) for number in concerned]
    return effects


def _effect(name: str, scenario: Scenario, number: int, before: RunTimes, after: RunTimes) -> dict:
    old = before.durations[number]
    new = after.durations[number]
    spreads = [spread(run.durations[number], run.configurations[number]) for run in (after, before)]
    stalls = [float(np.nanmean(run.stalls[number])) for run in (after, before)]
    return {
        "removed": name,
        "kernel": scenario.kernels[number].name,
        "launches": len(old),
        "mean_change_percent": percent(float(new.mean()), float(old.mean())),
        "p99_change_percent": percent(*(float(np.quantile(durations, TAIL_QUANTILE)) for durations in (new, old))),
        "spread_change_percent": percent(*spreads),
        "memory_stall_change_percent": percent(*stalls),
        "saved_ns": int(old.sum() - new.sum()),
        "step_change_percent": percent(after.step_ns, before.step_ns),
    }


NEAREST = 24
"""Transfers looked at per launch, counted back from the last that begins before it ends. All copies of an iteration
that could reach into a launch are among them: streams of copies are serial, and there are four."""
WINDOW_NS = 1_000_000
"""How long before a launch its transfer may have ended; the default of `link_window_us` under `bins`."""


def memory_stalls(batch: RankBatch) -> np.ndarray:
    """Return the memory stall of each launch of a rank's batch; NaN for one without a linked transfer.

    Linked is the transfer that overlaps the launch for longest; if none does, the last that ended before it within
    `WINDOW_NS`; of equals the one that begins earlier.

    Returns
    -------
    ndarray of float64, shape (launches,), ns
    """
    parts = [part for part in (batch.copies, batch.memsets) if part]
    start, end = (np.concatenate([part[name] for part in parts]) for name in ("start", "end"))
    order = np.argsort(start, kind="stable")
    start = start[order]
    end = end[order]
    begin = batch.kernels["start"]
    finish = batch.kernels["end"]
    last = np.searchsorted(start, finish, side="left") - 1
    best = np.full(len(begin), -WINDOW_NS - 1, dtype=np.int64)
    linked = np.full(len(begin), -1, dtype=np.int64)
    for back in range(NEAREST):
        index = np.maximum(last - back, 0)
        inside = last - back >= 0
        # an overlap is positive; where there is none, the time since the transfer's end counts as a negative one
        overlap = np.minimum(end[index], finish) - np.maximum(start[index], begin)
        better = inside & (overlap >= best) & ((overlap > 0) | (end[index] <= begin))
        best = np.where(better, overlap, best)
        linked = np.where(better, index, linked)
    duration = np.where(linked >= 0, (end - start)[linked], 0)
    return np.where(linked >= 0, np.abs(finish - begin - duration), np.nan)

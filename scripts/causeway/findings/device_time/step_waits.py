"""What is behind the idle time of slow steps, beyond what is usual for their rank."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from causeway.core.codes import HOST_CODE, IN_RANGE, PROFILER

IDLE = ("idle_before_first_launch", "idle_inside")
"""Causes of slow steps of which `waiting` tells what is behind them."""
OF_PROFILER = "the profiler's own work"
"""What is behind all that slow steps wait for the profiler, whatever it did."""
LEAST_SHARE = 0.5
"""Share of what slow steps wait beyond the usual that one reason must make up to be named."""


@dataclass(frozen=True)
class StepWait:
    """A reason of idle time with what is behind it, as `waiting` has them, and how much more of it slow steps of a rank
    have than the median of its other steps, by step, ns.
    """

    reason: str
    detail: str
    excess_ns: Mapping[int, int]

    def total(self, steps: Iterable[int]) -> int:
        """Return how much more some of the slow steps have, ns."""
        return sum(self.excess_ns[step] for step in steps)


def idle_ranks(document: Mapping) -> list[int]:
    """Return the ranks of a `steps.json` that have steps slow for idle time, ascending."""
    return sorted({step["rank"] for step in document["slow"] if step["cause"] in IDLE})


def step_waits(document: Mapping, rank: int, rows: Sequence[Mapping]) -> list[StepWait]:
    """Return what slow steps of a rank wait beyond the usual, one for each reason and what is behind it.

    Parameters
    ----------
    document : mapping
        The document `steps.json`.
    rank : int
    rows : sequence of mapping
        Rows of `waiting` of the rank, each of a step; a step without a row for a reason did not wait for it.
    """
    slow = {step["step"] for step in document["slow"] if step["rank"] == rank}
    steps = next(one for one in document["ranks"] if one["rank"] == rank)["steps"] - len(slow)
    named = f"{IN_RANGE}{document['ranges']}"
    waits: dict[tuple[str, str], Counter] = {}
    for row in rows:
        # time inside the range of the whole step alone: nothing tells what the host did
        detail = HOST_CODE if row["detail"] == named else row["detail"]
        detail = OF_PROFILER if row["reason"] == PROFILER else detail
        waits.setdefault((row["reason"], detail), Counter())[row["step"]] += row["wait_ns"]
    found = []
    for (reason, detail), by_step in sorted(waits.items()):
        others = [ns for step, ns in by_step.items() if step not in slow]
        usual = 0  # as most steps have none; else the zeros of those that have none count
        if 2 * len(others) >= max(steps, 1):
            usual = round(median([*others, *[0] * max(steps - len(others), 0)]))
        found.append(StepWait(reason, detail, {step: by_step[step] - usual for step in slow}))
    return found


def wait_behind(waits: Sequence[StepWait], steps: Collection[int], idle_ns: int) -> StepWait | None:
    """Return what makes up most of the idle time that slow steps have beyond the usual, `idle_ns`; None where nothing
    makes up `LEAST_SHARE` of it.
    """
    best = min(waits, key=lambda one: (-one.total(steps), one.reason, one.detail), default=None)
    return best if best is not None and best.total(steps) >= max(LEAST_SHARE * idle_ns, 1) else None


def slow_by_profiler(waits: Sequence[StepWait], slow: Sequence[Mapping]) -> frozenset[int]:
    """Return those of the slow steps of a rank, as `steps.json` has them, of whose cause the profiler's own work makes
    up `LEAST_SHARE`: it is no loss of the program.
    """
    excess = next((one.excess_ns for one in waits if one.reason == PROFILER), {})
    idle = [step for step in slow if step["cause"] in IDLE]
    return frozenset(
        step["step"] for step in idle if excess.get(step["step"], 0) >= max(LEAST_SHARE * step["cause_ns"], 1)
    )

"""Which runs a scaling study consists of. Read whenever the workflow is parsed, so this module stays light."""

import math
from collections.abc import Mapping

Settings = Mapping[str, object]
"""The configuration's `scaling`."""
OVERHEAD_LAUNCHES = 100_000
"""Launches of a dataset whose time is start and end alone: the runs on larger datasets do not identify that cost."""


def sizes(settings: Settings) -> dict[str, dict[int, int]]:
    """Return the number of launches by number of ranks: `strong`, the same for all, and `weak`, the same for each rank.

    On the most ranks both are the whole dataset.
    """
    ranks = sorted(set(settings["ranks"]))
    return {
        "strong": dict.fromkeys(ranks, settings["launches"]),
        "weak": {count: settings["launches"] * count // ranks[-1] for count in ranks},
    }


def runs(settings: Settings) -> list[tuple[int, int]]:
    """Return (launches, ranks) of every run once: the largest datasets first, each from few ranks to many."""
    wanted = [*sizes(settings).values(), dict.fromkeys(settings["ranks"], min(OVERHEAD_LAUNCHES, settings["launches"]))]
    return sorted(
        {(launches, ranks) for size in wanted for ranks, launches in size.items()}, key=lambda run: (-run[0], run[1])
    )


def datasets(settings: Settings) -> list[int]:
    """Return the numbers of launches of the datasets that the runs need, the largest first."""
    return list(dict.fromkeys(launches for launches, _ in runs(settings)))


def tasks(settings: Settings) -> int:
    """Return the most ranks of a run; at least 2, as a job with fewer is no MPI job to Slurm's plugin."""
    return max(2, *settings["ranks"])


def simulation_minutes(wildcards, attempt: int) -> int:
    """Return a generous time in minutes to write a dataset, more at each attempt: a second writes some four million
    launches.
    """
    return attempt * (10 + round(int(wildcards.launches) / 50e6))


def minutes(settings: Settings) -> int:
    """Return a generous time for all runs, minutes: one each, and their launches at a tenth of the usual rate."""
    each = [1 + launches / ranks / 12e6 for launches, ranks in runs(settings)]
    return 10 + round(math.fsum(each) * (settings["repetitions"] + 1))

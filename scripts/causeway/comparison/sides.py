"""The runs of one side of a comparison: the dataset that is compared, and further runs of the same program that show
its noise.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from causeway.comparison.runs.matching import match_configurations, match_kernels, pairs_in
from causeway.comparison.runs.run_totals import Run, Series
from causeway.core.names.build_numbers import without_build_numbers


class LaunchTotals(NamedTuple):
    """Launches of a configuration, the sum of their durations and of their absolute deviations from its mean, ns."""

    launches: int
    time_ns: int
    deviation_ns: int


@dataclass
class Side:
    """A run and its repeats, whose groups are found by the numbers of the first.

    Parameters
    ----------
    runs : list of Run
        The dataset that is compared, then its repeats.
    """

    runs: list[Run]
    _maps: list[dict[str, dict[int, int]]] = field(init=False, repr=False)
    _totals: dict[tuple[int, str], dict[int, dict[int, LaunchTotals]]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self._maps = [_numbers(run, self.main) for run in self.runs]

    @property
    def main(self) -> Run:
        """The dataset that is compared."""
        return self.runs[0]

    def series(self, index: int, level: str, group: int) -> list[Series]:
        """Return a group's series in one of the runs; empty where the run does not have the group."""
        number = self._maps[index][level].get(group)
        return [] if number is None else self.runs[index].series(level, number)

    def totals(self, index: int, level: str, group: int) -> Mapping[int, LaunchTotals]:
        """Return what was measured of a group in one of the runs by the main run's configurations."""
        key = index, level
        if key not in self._totals:
            self._totals[key] = self._summed(index, level)
        number = self._maps[index][level].get(group)
        return {} if number is None else self._totals[key].get(number, {})

    def _summed(self, index: int, level: str) -> dict[int, dict[int, LaunchTotals]]:
        run = self.runs[index]
        main = {number: ours for ours, number in self._maps[index]["configuration"].items()}
        by_group: dict[int, dict[int, LaunchTotals]] = {}
        for group, (configuration, _, _, *measured) in zip(
            run.group_of(level).tolist(), run.strata.tolist(), strict=True
        ):
            ours = main.get(
                configuration, -1 - configuration
            )  # a configuration that only the repeat has keeps a number of its own
            sums = by_group.setdefault(group, {}).get(ours, (0, 0, 0))
            by_group[group][ours] = LaunchTotals(*(before + more for before, more in zip(sums, measured, strict=True)))
        by_group.pop(-1, None)
        return by_group


def _numbers(run: Run, main: Run) -> dict[str, dict[int, int]]:
    """Return for each level the run's number of each of the main run's groups: by name, kernels also by names without
    numbers of the build, configurations as those of two sides.
    """
    groups: dict[str, tuple[Sequence, Sequence]] = {
        "run": ([0], [0]),
        "rank": (main.ranks, run.ranks),
        "region": (main.regions, run.regions),
    }
    numbers = {}
    for level, (ours, theirs) in groups.items():
        indices = {name: number for number, name in enumerate(theirs)}
        numbers[level] = {number: indices[name] for number, name in enumerate(ours) if name in indices}
    names = main.kernels.names, run.kernels.names
    numbers["kernel"] = {
        ours: other
        for ours, other in pairs_in(match_kernels(main.kernels, run.kernels)).items()
        if without_build_numbers(names[0][ours]) == without_build_numbers(names[1][other])
    }
    shapes = shapes_by_kernel(main)
    others = shapes_by_kernel(run)
    numbers["configuration"] = {
        ours: theirs
        for kernel, other in numbers["kernel"].items()
        for ours, theirs, _ in match_configurations(
            shapes.get(kernel, {}), others.get(other, {}), main.leading, main.thread_columns
        )
    }
    return numbers


def shapes_by_kernel(run: Run) -> dict[int, dict[tuple, int]]:
    """Return the numbers of a run's configurations by shape, by kernel."""
    by_kernel: dict[int, dict[tuple, int]] = {}
    for number, (kernel, shape) in enumerate(run.configurations):
        by_kernel.setdefault(kernel, {})[shape] = number
    return by_kernel


@dataclass(frozen=True)
class EqualMix:
    """A group of all runs at the same launches.

    Parameters
    ----------
    times : per side, per run, list of list of float
        Time for the candidate's launches, ns.
    deviations : per side, per run, list of list of float
        Sum of the absolute deviations of these launches over their time.
    covered, covered_deviations : float
        Share of the group's time, and of its deviations, in the common configurations, least over the runs.
    """

    times: list[list[float]]
    deviations: list[list[float]]
    covered: float
    covered_deviations: float


def at_equal_mix(sides: Sequence[Side], level: str, groups: Sequence[int], pairs: Mapping[int, int]) -> EqualMix | None:
    """Return each run's time and variability for the same launches: the candidate's launches in the configurations that
    all runs have.

    A kernel's mean moves when a program launches more of its larger configurations; that is no slowdown. So every run
    is charged for the same launches: `sum over configurations of n_candidate * mean` (a Paasche index), and of their
    mean absolute deviations likewise: a further kernel whose durations scatter makes no other one more variable.

    Parameters
    ----------
    sides : (baseline, candidate)
    level : str
    groups : (int, int)
        The group's number on each side.
    pairs : mapping of int to int
        The candidate's configuration by the baseline's.

    Returns
    -------
    EqualMix or None
        Where no configuration is in common (covered: 0), of all launches on each side, as many as the candidate's. None
        if a run does not have the group.
    """
    sums = [
        [side.totals(index, level, group) for index in range(len(side.runs))]
        for side, group in zip(sides, groups, strict=True)
    ]
    if not all(totals for side in sums for totals in side):
        return None
    back = {ours: theirs for theirs, ours in pairs.items()}
    common = [
        ours
        for ours in sorted(back)
        if all(back[ours] in totals for totals in sums[0]) and all(ours in totals for totals in sums[1])
    ]
    indices = [back[ours] for ours in common], common
    weights = [sums[1][0][ours].launches for ours in common]
    if not common:
        sums = [[{0: launches_of(totals)} for totals in side] for side in sums]
        indices = [0], [0]
        weights = [sums[1][0][0].launches]
    times, deviations = (
        [
            [_weighted(totals, kept, weights, column) for totals in side]
            for side, kept in zip(sums, indices, strict=True)
        ]
        for column in ("time_ns", "deviation_ns")
    )
    covered, covered_deviations = (
        min(_covered(totals, kept, column) for side, kept in zip(sums, indices, strict=True) for totals in side)
        if common
        else 0.0
        for column in ("time_ns", "deviation_ns")
    )
    shares = [
        [deviation / time if time else 0.0 for deviation, time in zip(*side, strict=True)]
        for side in zip(deviations, times, strict=True)
    ]
    return EqualMix(times, shares, covered, covered_deviations)


def _weighted(totals: Mapping[int, LaunchTotals], kept: Sequence[int], weights: Sequence[int], column: str) -> float:
    """Return what so many launches of these configurations have of a column, by the mean of each."""
    return math.fsum(
        weight * getattr(totals[configuration], column) / totals[configuration].launches
        for configuration, weight in zip(kept, weights, strict=True)
    )


def _covered(totals: Mapping[int, LaunchTotals], kept: Sequence[int], column: str) -> float:
    """Return the share of a column in these configurations; 1 of nothing."""
    whole = sum(getattr(sums, column) for sums in totals.values())
    return sum(getattr(totals[configuration], column) for configuration in kept) / whole if whole else 1.0


def launches_of(totals: Mapping[int, LaunchTotals]) -> LaunchTotals:
    """Return the sums over all configurations; zeros of none."""
    return LaunchTotals(*(sum(column) for column in zip((0, 0, 0), *totals.values(), strict=True)))


def half_change(series: Sequence[Series], mean_ns: float, column: int) -> float | None:
    """Return the logarithm of second half over first half of a group's series, in time per launch or in variability.

    `column` 1: time per launch, with the mix of configurations taken out; 2: mean absolute deviation. None with too few
    launches.
    """
    halves = [np.zeros(3), np.zeros(3)]
    for part in series:
        middle = part.cells.shape[0] // 2
        if middle < 4:
            continue
        halves[0] += part.cells[:middle].sum(axis=0)
        halves[1] += part.cells[middle:].sum(axis=0)
    if not all(half[0] for half in halves):
        return None
    means = [half[column] / half[0] + (mean_ns if column == 1 else 0.0) for half in halves]
    return float(np.log(means[1] / means[0])) if min(means) > 0 else None

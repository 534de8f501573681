"""The runs of one side of a comparison: the dataset that is compared, and further runs of the same program that show
its noise.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from causeway.comparison.matching import match_configurations
from causeway.comparison.run_totals import Run, Series

BLOCKS = 6
"""Columns of a shape that are the grid and the block."""


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
    _totals: dict[tuple[int, str], dict[int, dict[int, tuple[int, int]]]] = field(default_factory=dict, repr=False)

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

    def totals(self, index: int, level: str, group: int) -> Mapping[int, tuple[int, int]]:
        """Return launches and sum of durations (ns) of a group in one of the runs by the main run's configurations."""
        key = index, level
        if key not in self._totals:
            self._totals[key] = self._summed(index, level)
        number = self._maps[index][level].get(group)
        return {} if number is None else self._totals[key].get(number, {})

    def _summed(self, index: int, level: str) -> dict[int, dict[int, tuple[int, int]]]:
        run = self.runs[index]
        main = {number: ours for ours, number in self._maps[index]["configuration"].items()}
        found: dict[int, dict[int, tuple[int, int]]] = {}
        for group, (configuration, _, _, count, total) in zip(
            run.group_of(level).tolist(), run.strata.tolist(), strict=True
        ):
            ours = main.get(
                configuration, -1 - configuration
            )  # a configuration that only the repeat has keeps a number of its own
            known = found.setdefault(group, {}).get(ours, (0, 0))
            found[group][ours] = known[0] + count, known[1] + total
        found.pop(-1, None)
        return found


def _numbers(run: Run, main: Run) -> dict[str, dict[int, int]]:
    """Return for each level the run's number of each of the main run's groups: by name, configurations as those of
    two sides.
    """
    names = {
        "run": ([0], [0]),
        "rank": (main.ranks, run.ranks),
        "region": (main.regions, run.regions),
        "kernel": (main.kernels.names, run.kernels.names),
    }
    found = {}
    for level, (ours, theirs) in names.items():
        indices = {name: number for number, name in enumerate(theirs)}
        found[level] = {number: indices[name] for number, name in enumerate(ours) if name in indices}
    shapes = shapes_by_kernel(main)
    others = shapes_by_kernel(run)
    found["configuration"] = {
        ours: theirs
        for kernel, other in found["kernel"].items()
        for ours, theirs, _ in match_configurations(shapes.get(kernel, {}), others.get(other, {}), BLOCKS)
    }
    return found


def shapes_by_kernel(run: Run) -> dict[int, dict[tuple, int]]:
    """Return the numbers of a run's configurations by shape, by kernel."""
    found: dict[int, dict[tuple, int]] = {}
    for number, (kernel, shape) in enumerate(run.configurations):
        found.setdefault(kernel, {})[shape] = number
    return found


def at_equal_mix(
    sides: Sequence[Side], level: str, groups: Sequence[int], pairs: Mapping[int, int]
) -> tuple[list[list[float]], float] | None:
    """Return each run's time for the same launches, ns: the candidate's launches in the configurations that all runs
    have.

    A kernel's mean moves when a program launches more of its larger configurations; that is no slowdown. So every run
    is charged for the same launches: `sum over configurations of n_candidate * mean` (a Paasche index).

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
    (list of lists of float, float) or None
        Times per side and run, and the share of the group's time that lies in the common configurations, least over the
        runs. Where there is none (share 0), times are means over all launches times the candidate's launches. None if a
        run does not have the group.
    """
    found = [
        [side.totals(index, level, group) for index in range(len(side.runs))]
        for side, group in zip(sides, groups, strict=True)
    ]
    if not all(totals for side in found for totals in side):
        return None
    back = {ours: theirs for theirs, ours in pairs.items()}
    common = [
        ours
        for ours in sorted(back)
        if all(back[ours] in totals for totals in found[0]) and all(ours in totals for totals in found[1])
    ]
    indices = [back[ours] for ours in common], common
    weights = {ours: found[1][0][ours][0] for ours in common}
    if common:
        baseline = [
            math.fsum(weights[ours] * totals[back[ours]][1] / totals[back[ours]][0] for ours in common)
            for totals in found[0]
        ]
        candidate = [
            math.fsum(weights[ours] * totals[ours][1] / totals[ours][0] for ours in common) for totals in found[1]
        ]
        return [baseline, candidate], min(
            _covered(totals, kept) for side, kept in zip(found, indices, strict=True) for totals in side
        )
    launches = sum(count for count, _ in found[1][0].values())
    means = [[launches * _mean(totals) for totals in side] for side in found]
    return means, 0.0


def _covered(totals: Mapping[int, tuple[int, int]], kept: Sequence[int]) -> float:
    return sum(totals[one][1] for one in kept) / max(sum(total for _, total in totals.values()), 1)


def _mean(totals: Mapping[int, tuple[int, int]]) -> float:
    return sum(total for _, total in totals.values()) / sum(count for count, _ in totals.values())


def deviation_share(series: Sequence[Series], total_ns: int) -> float:
    """Return the sum of |duration - mean of its configuration| over the sum of durations."""
    return sum(int(one.cells[:, 2].sum()) for one in series) / total_ns if total_ns else 0.0


def launches_of(totals: Mapping[int, tuple[int, int]]) -> tuple[int, int]:
    """Return launches and sum of durations over all configurations."""
    return sum(count for count, _ in totals.values()), sum(total for _, total in totals.values())


def half_change(series: Sequence[Series], mean_ns: float, column: int) -> float | None:
    """Return the logarithm of second half over first half of a group's series, in time per launch or in variability.

    `column` 1: time per launch, with the mix of configurations taken out; 2: mean absolute deviation. None with too few
    launches.
    """
    halves = [np.zeros(3), np.zeros(3)]
    for one in series:
        middle = one.cells.shape[0] // 2
        if middle < 4:
            continue
        halves[0] += one.cells[:middle].sum(axis=0)
        halves[1] += one.cells[middle:].sum(axis=0)
    if not all(half[0] for half in halves):
        return None
    means = [half[column] / half[0] + (mean_ns if column == 1 else 0.0) for half in halves]
    return float(np.log(means[1] / means[0])) if min(means) > 0 else None

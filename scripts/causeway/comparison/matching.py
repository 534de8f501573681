"""Which kernel of the candidate is which of the baseline, and how that is known.

Exact names first, then normalised names, then the position among the neighbours in the order of launches. Each match
records how it was made; what is left is new or gone.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from causeway.comparison.names import normalised
from causeway.core.vocabulary import EXACT, GONE, NEW, NORMALISED, SEQUENCE

COUNTS_ALIKE = 1.25
"""Kernels that only their neighbours identify must also be launched about as often per neighbour: within this
factor.
"""


@dataclass(frozen=True)
class Match:
    """One kernel of the baseline with one of the candidate (numbers in their runs), how it was found, and what is
    uncertain about it.
    """

    baseline: int | None
    candidate: int | None
    how: str
    note: str = ""


@dataclass(frozen=True)
class Kernels:
    """What matching needs of a run's kernels.

    Parameters
    ----------
    names : sequence of str
        Full names.
    launches : ndarray of int64, shape (kernels,)
    first : ndarray of int64, shape (kernels,)
        Position in the order of kernels by their first launch.
    follows : ndarray of int64, shape (kernels, kernels), or None
        How often kernel j was the next one on the stream after kernel i; None where the run has too many kernels.
    """

    names: Sequence[str]
    launches: np.ndarray
    first: np.ndarray
    follows: np.ndarray | None = field(repr=False)


def match_kernels(baseline: Kernels, candidate: Kernels) -> list[Match]:
    """Return every kernel of both runs, in a match or alone: matches first in the baseline's order, then the gone,
    then the new.
    """
    found = _by_key(baseline, candidate, lambda name: name, EXACT, set(), set())
    taken = [{match.baseline for match in found}, {match.candidate for match in found}]
    found += _by_key(baseline, candidate, normalised, NORMALISED, *taken)
    found += _by_neighbours(baseline, candidate, found)
    used = {match.baseline for match in found}, {match.candidate for match in found}
    found.sort(key=lambda match: match.baseline)
    found += [Match(kernel, None, GONE) for kernel in range(len(baseline.names)) if kernel not in used[0]]
    return found + [Match(None, kernel, NEW) for kernel in range(len(candidate.names)) if kernel not in used[1]]


def _by_key(
    baseline: Kernels, candidate: Kernels, key: Callable[[str], str], how: str, used_b: set[int], used_c: set[int]
) -> list[Match]:
    """Match the unused kernels with equal keys.

    Where several share a key, as the instances of one template do, they are told apart by the order of their first
    launches, which needs
    equally many on both sides; the note says so.
    """
    groups: tuple[dict[str, list[int]], ...] = (defaultdict(list), defaultdict(list))
    for side, kernels, used in ((0, baseline, used_b), (1, candidate, used_c)):
        for kernel in sorted(set(range(len(kernels.names))) - used, key=lambda kernel: kernels.first[kernel]):
            groups[side][key(kernels.names[kernel])].append(kernel)
    found = []
    for name, ours in groups[0].items():
        theirs = groups[1].get(name, [])
        if len(ours) == len(theirs):
            note = (
                ""
                if len(ours) == 1
                else f"one of {len(ours)} kernels with this name, told apart by the order of their first launches"
            )
            found += [Match(*pair, how, note) for pair in zip(ours, theirs, strict=True)]
    return found


def _neighbour(follows: np.ndarray, kernel: int) -> int | None:
    """Return the kernel that follows `kernel` most often, other than itself; None if there is none or several do so
    equally often.
    """
    row = follows[kernel].copy()
    row[kernel] = 0
    best = int(row.max(initial=0))
    return int(row.argmax()) if best > 0 and np.count_nonzero(row == best) == 1 else None


def _by_neighbours(baseline: Kernels, candidate: Kernels, known: Sequence[Match]) -> list[Match]:
    """Match kernels that run between the same two matched kernels and about as often, each the only one of its run
    that does.
    """
    if baseline.follows is None or candidate.follows is None:
        return []
    to_candidate = {match.baseline: match.candidate for match in known}
    found: list[Match] = []
    while True:
        kernels_between: tuple[dict[Hashable, list[int]], ...] = (defaultdict(list), defaultdict(list))
        taken = set(to_candidate), set(to_candidate.values())
        for side, kernels in enumerate((baseline, candidate)):
            for kernel in sorted(set(range(len(kernels.names))) - taken[side]):
                around = [_neighbour(kernels.follows.T, kernel), _neighbour(kernels.follows, kernel)]
                around = [to_candidate.get(other) for other in around] if side == 0 else around
                if None not in around and set(around) <= taken[1]:
                    kernels_between[side][tuple(around)].append(kernel)
        fresh = []
        for around, ours in kernels_between[0].items():
            theirs = kernels_between[1].get(around, [])
            if len(ours) == len(theirs) == 1 and _as_often(
                baseline, candidate, to_candidate, ours[0], theirs[0], around
            ):
                names = " and ".join(repr(candidate.names[other][:40]) for other in dict.fromkeys(around))
                fresh.append(
                    Match(
                        ours[0],
                        theirs[0],
                        SEQUENCE,
                        f"other name, the same position in the order of launches, between {names}",
                    )
                )
        if not fresh:
            return found
        found += fresh
        to_candidate |= {match.baseline: match.candidate for match in fresh}


def _as_often(
    baseline: Kernels, candidate: Kernels, to_candidate: Mapping[int, int], ours: int, theirs: int, around: tuple
) -> bool:
    before = next(kernel for kernel, other in to_candidate.items() if other == around[0])
    rates = (
        baseline.launches[ours] / baseline.launches[before],
        candidate.launches[theirs] / candidate.launches[around[0]],
    )
    return max(rates) <= COUNTS_ALIKE * min(rates)


def match_configurations(
    baseline: Mapping[Hashable, int], candidate: Mapping[Hashable, int], blocks: int
) -> list[tuple[int, int, str]]:
    """Return the pairs of launch configurations of a matched kernel: (number in baseline, number in candidate, how).

    Parameters
    ----------
    baseline, candidate : mapping of shape to int
        Configurations by the tuple of their shape.
    blocks : int
        How many leading values of the shape are the grid and the block, which alone must agree where nothing agrees as
        a whole: registers and memory change with the compiler.
    """
    found = [(baseline[shape], candidate[shape], EXACT) for shape in baseline if shape in candidate]
    if found:
        return found
    ours, theirs = ({shape[:blocks]: number for shape, number in side.items()} for side in (baseline, candidate))
    if len(ours) == len(baseline) and len(theirs) == len(candidate):
        found = [(ours[shape], theirs[shape], "grid and block") for shape in ours if shape in theirs]
    if not found and len(baseline) == len(candidate) == 1:
        found = [(*baseline.values(), *candidate.values(), "the only one")]
    return found

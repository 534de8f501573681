"""Which kernel of the candidate is which of the baseline, and how that is known.

Exact names first, then names without numbers of the build, then names without what changes from build to build or from
one GPU to the next, then the position among the neighbours in the order of launches. Each match records how it was
made; what is left is new or gone.

A name that holds a number of the build may stand for another kernel in another build (`triton_poi_fused_add_1`, once a
kernel was added before it): where the kernels that differ in such numbers alone are not the same ones on both sides, a
name is exact only if it is launched with the same grids and blocks.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from causeway.core.names.build_numbers import SCANNED, without_build_numbers
from causeway.core.schemas import GRID_AND_BLOCK
from causeway.core.vocabulary import COUNTS_ALIKE, EXACT, GONE, NEW, NORMALISED, SEQUENCE

BLOCKS = len(GRID_AND_BLOCK)
"""Columns of a shape that are the grid and the block."""


@dataclass(frozen=True)
class Match:
    """One kernel of the baseline with one of the candidate (numbers in their runs), how it was found, what is
    uncertain about it, and whether operators launched it with other inputs alone, or it is a graph that may be another
    one: that is other work.
    """

    baseline: int | None
    candidate: int | None
    how: str
    note: str = ""
    has_other_inputs: bool = False


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
    shapes : sequence of frozenset of tuple
        Grids and blocks of each kernel; empty where they are not known.
    graphs : frozenset of int
        Kernels that are graphs recorded as a whole.
    """

    names: Sequence[str]
    launches: np.ndarray
    first: np.ndarray
    follows: np.ndarray | None = field(repr=False)
    shapes: Sequence[frozenset] = field(default=(), repr=False)
    graphs: frozenset[int] = frozenset()

    def shapes_of(self, kernel: int) -> frozenset:
        """Return the grids and blocks of a kernel; empty where they are not known."""
        return self.shapes[kernel] if self.shapes else frozenset()


def match_kernels(baseline: Kernels, candidate: Kernels) -> list[Match]:
    """Return every kernel of both runs, in a match or alone: matches first in the baseline's order, then the gone,
    then the new.
    """
    matches, alike = _of_builds(baseline, candidate)
    for key, how in ((str, EXACT), (normalised, NORMALISED)):
        pairs = pairs_in(matches)
        taken = {*pairs, *alike[0]}, {*pairs.values(), *alike[1]}
        matches += _by_key(baseline, candidate, key, how, *taken)
    matches = _with_graphs_by_order(baseline, candidate, matches)
    matches += _by_neighbours(baseline, candidate, matches)
    return _with_the_rest(baseline, candidate, matches, alike)


def _with_graphs_by_order(baseline: Kernels, candidate: Kernels, matches: Sequence[Match]) -> list[Match]:
    """Return matches, those of whole graphs as what they are: by the order of first executions, which their names say.
    Where a graph has another share of the executions, the order may be another: then they are other work.
    """
    pairs = [pair for pair in pairs_in(matches).items() if pair[0] in baseline.graphs and pair[1] in candidate.graphs]
    if not pairs:
        return list(matches)
    ours, theirs = zip(*pairs, strict=True)
    is_alike = _shares_agree(baseline, candidate, ours, theirs)
    note = "graphs are matched by the order of their first executions"
    note += "" if is_alike else f"; some have other shares of the executions (factor of {COUNTS_ALIKE:g} or more)"
    return [
        replace(match, how=SEQUENCE, note=note, has_other_inputs=not is_alike) if match.baseline in ours else match
        for match in matches
    ]


def match_operators(baseline: Kernels, candidate: Kernels) -> list[Match]:
    """Return every operator of both runs, in a match or alone, in the order of `match_kernels`: by their exact names,
    then by names without the maker's library. A match needs to be the only one: `aten::miopen_batch_norm` is
    `aten::cudnn_batch_norm` where each run has one of them.
    """
    matches = _by_key(baseline, candidate, str, EXACT, set(), set())
    pairs = pairs_in(matches)
    loose = _by_key(baseline, candidate, without_library, NORMALISED, set(pairs), set(pairs.values()))
    matches += [replace(match, note="by names without the maker's library") for match in loose if not match.note]
    return _with_the_rest(baseline, candidate, matches, ({}, {}))


def _with_the_rest(
    baseline: Kernels, candidate: Kernels, matches: Sequence[Match], alike: tuple[dict[int, str], dict[int, str]]
) -> list[Match]:
    """Return matches in the baseline's order, then the gone, then the new; `alike` are notes on these."""
    pairs = dict(sorted(pairs_in(matches).items()))
    by_baseline = {match.baseline: match for match in matches}
    gone = set(range(len(baseline.names))) - pairs.keys()
    new = set(range(len(candidate.names))) - set(pairs.values())
    return [
        *(by_baseline[kernel] for kernel in pairs),
        *(Match(kernel, None, GONE, alike[0].get(kernel, "")) for kernel in sorted(gone)),
        *(Match(None, kernel, NEW, alike[1].get(kernel, "")) for kernel in sorted(new)),
    ]


def pairs_in(matches: Sequence[Match]) -> dict[int, int]:
    """Return the candidate's kernels by the baseline's, of the matches that have both."""
    pairs = ((match.baseline, match.candidate) for match in matches)
    return {baseline: other for baseline, other in pairs if baseline is not None and other is not None}


def _of_builds(baseline: Kernels, candidate: Kernels) -> tuple[list[Match], tuple[dict[int, str], dict[int, str]]]:
    """Match the kernels whose names hold numbers of the build.

    Returns
    -------
    matches : list of Match
    alike : (dict of int to str, dict of int to str)
        The kernels of each side that are too many to be told apart, with the note that says so.
    """
    groups: dict[str, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for side, kernels in enumerate((baseline, candidate)):
        for kernel, name in enumerate(kernels.names):
            if (stripped := without_build_numbers(name)) != name:
                groups[stripped][side].append(kernel)
    matches: list[Match] = []
    alike: tuple[dict[int, str], dict[int, str]] = ({}, {})
    for ours, theirs in groups.values():
        names = [
            {kernels.names[kernel] for kernel in group} for kernels, group in ((baseline, ours), (candidate, theirs))
        ]
        if names[0] == names[1] or not (ours and theirs):
            continue  # matched by their exact names, or of one run alone
        pairs = _told_apart(baseline, candidate, ours, theirs)
        matches += pairs
        used = {match.baseline for match in pairs}, {match.candidate for match in pairs}
        rest = (
            [kernel for kernel in ours if kernel not in used[0]],
            [kernel for kernel in theirs if kernel not in used[1]],
        )
        if all(rest):
            note = (
                f"not matched: {len(rest[0])} and {len(rest[1])} kernels have this name but for numbers of the build,"
                " and neither grids and blocks nor their order and share of the launches tell them apart"
            )
            for side in (0, 1):
                alike[side].update(dict.fromkeys(rest[side], note))
    return matches, alike


def _told_apart(baseline: Kernels, candidate: Kernels, ours: Sequence[int], theirs: Sequence[int]) -> list[Match]:
    """Return the matches among kernels with one name but for numbers of the build: the same name with the same grids
    and blocks, then grids and blocks that no other of them has, then equally many in the order of their first launches
    if each has about the same share of the launches, then the only ones.
    """
    left = list(ours), list(theirs)
    matches: list[Match] = []

    def take(pairs: Sequence[tuple[int, int]], how: str, note: str) -> None:
        matches.extend(Match(*pair, how, note) for pair in pairs)
        for side in (0, 1):
            gone = {pair[side] for pair in pairs}
            left[side][:] = [kernel for kernel in left[side] if kernel not in gone]

    named = {candidate.names[kernel]: kernel for kernel in theirs}
    exact = [(kernel, named[baseline.names[kernel]]) for kernel in ours if baseline.names[kernel] in named]
    take([pair for pair in exact if baseline.shapes_of(pair[0]) == candidate.shapes_of(pair[1])], EXACT, "")
    if len(ours) == len(theirs) == 1:
        take([(kernel, other) for kernel in left[0] for other in left[1]], NORMALISED, "other numbers of the build")
    several = (
        f"other numbers of the build; {len(ours)} and {len(theirs)} kernels have this name but for them, told apart by"
    )
    by_shape: dict[frozenset, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    for side, kernels in enumerate((baseline, candidate)):
        for kernel in left[side]:
            by_shape[kernels.shapes_of(kernel)][side].append(kernel)
    alone = [(own[0], other[0]) for shapes, (own, other) in by_shape.items() if shapes and len(own) == len(other) == 1]
    take(alone, NORMALISED, f"{several} grids and blocks")
    ordered = [
        sorted(group, key=kernels.first.item) for kernels, group in zip((baseline, candidate), left, strict=True)
    ]
    if len(ordered[0]) == len(ordered[1]) and _shares_agree(baseline, candidate, *ordered):
        take(list(zip(*ordered, strict=True)), NORMALISED, f"{several} their order and share of the launches")
    return matches


def _shares_agree(baseline: Kernels, candidate: Kernels, ours: Sequence[int], theirs: Sequence[int]) -> bool:
    """Return whether kernels, in pairs, have about the same share of the launches of all of them."""
    counts = baseline.launches[list(ours)], candidate.launches[list(theirs)]
    shares = [count / max(count.sum(), 1) for count in counts]
    return bool(np.all(np.maximum(*shares) <= COUNTS_ALIKE * np.minimum(*shares)))


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
    matches = []
    for name, ours in groups[0].items():
        theirs = groups[1].get(name, [])
        if len(ours) == len(theirs):
            note = (
                ""
                if len(ours) == 1
                else f"one of {len(ours)} kernels with this name, told apart by the order of their first launches"
            )
            matches += [Match(*pair, how, note) for pair in zip(ours, theirs, strict=True)]
    return matches


def _neighbour(follows: np.ndarray, kernel: int) -> int | None:
    """Return the kernel that follows `kernel` most often, other than itself; None if there is none or several do so
    equally often.
    """
    row = follows[kernel].copy()
    row[kernel] = 0
    best = int(row.max(initial=0))
    return int(row.argmax()) if best > 0 and np.count_nonzero(row == best) == 1 else None


def _by_neighbours(baseline: Kernels, candidate: Kernels, earlier: Sequence[Match]) -> list[Match]:
    """Match kernels that run between the same two matched kernels and about as often, each the only one of its run
    that does.
    """
    if baseline.follows is None or candidate.follows is None:
        return []
    follows = baseline.follows, candidate.follows
    to_candidate = pairs_in(earlier)
    matches: list[Match] = []
    while True:
        kernels_between: tuple[dict[tuple[int, ...], list[int]], ...] = (defaultdict(list), defaultdict(list))
        taken = set(to_candidate), set(to_candidate.values())
        for side, kernels in enumerate((baseline, candidate)):
            for kernel in sorted(set(range(len(kernels.names))) - taken[side]):
                beside = (_neighbour(follows[side].T, kernel), _neighbour(follows[side], kernel))
                known_beside = [other for other in beside if other is not None]
                if side == 0:
                    known_beside = [to_candidate[other] for other in known_beside if other in to_candidate]
                if len(known_beside) == len(beside) and set(known_beside) <= taken[1]:
                    kernels_between[side][tuple(known_beside)].append(kernel)
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
            return matches
        matches += fresh
        to_candidate |= pairs_in(fresh)


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
    baseline: Mapping[tuple, int], candidate: Mapping[tuple, int], blocks: int, threads: int | None = None
) -> list[tuple[int, int, str]]:
    """Return the pairs of launch configurations of a matched kernel: (number in baseline, number in candidate, how).

    Parameters
    ----------
    baseline, candidate : mapping of shape to int
        Configurations by the tuple of their shape, its last value the label.
    blocks : int
        How many leading values of the shape are the grid and the block, which alone must agree where nothing agrees as
        a whole, beside the label: registers and memory change with the compiler. 0: shapes agree as a whole or not at
        all.
    threads : int, optional
        How many leading values multiply to the threads of a launch, 0 where that is not known: other numbers of threads
        are other work. None for a kernel of another name: a library that takes another tile launches others for the
        same work.
    """
    pairs = [(baseline[shape], candidate[shape], EXACT) for shape in baseline if shape in candidate]
    if pairs or not blocks:
        return pairs
    ours, theirs = (
        {(*shape[:blocks], shape[-1]): number for shape, number in side.items()} for side in (baseline, candidate)
    )
    if len(ours) == len(baseline) and len(theirs) == len(candidate):
        pairs = [(ours[shape], theirs[shape], "grid and block") for shape in ours if shape in theirs]
    if not pairs and len(baseline) == len(candidate) == 1:
        (own, number) = next(iter(baseline.items()))
        (shape, other) = next(iter(candidate.items()))
        is_alike = threads is None or (threads > 0 and _product(own[:threads]) == _product(shape[:threads]))
        if own[-1] == shape[-1] and is_alike:
            pairs = [(number, other, "the only one")]
    return pairs


def _product(sizes: Sequence[int | None]) -> int:
    return math.prod(size for size in sizes if size is not None)


ARCHITECTURE = re.compile(
    r"(?<![a-z])(?:sm_?\d{2,3}[a-z]?|compute_\d{2,3}[a-z]?|gfx[0-9a-f]{3,4}|maxwell|pascal|volta|turing|ampere|ada|hopper|blackwell)(?![a-z])"
    r"|(?<=cutlass_)\d{2,3}(?=_)|(?<=cutlass)\d{2,3}(?=_)"
)
LAMBDA = re.compile(r"\{lambda[^{}]*\}(?:#\d+)?|\[lambda[^\[\]]*\](?:::operator ?\(\))?|\$_\d+|lambda_?\d+|ut\d+_")
ADDRESS = re.compile(r"0x[0-9a-f]+")
ANONYMOUS = re.compile(r"\(anonymous namespace\)|\{anonymous\}|<unnamed>|_global__n__[0-9a-f_]+|::_n_[0-9a-f_]+")
SUFFIX = re.compile(r"\s*\[clone[^\]]*\]|\.(?:kd|isra|part|constprop|cold)(?:\.\d+)*$")
LIBRARY = re.compile(r"(?<=::)_?(?:cudnn|miopen)_")
"""A maker's library in the name of an operator of PyTorch."""
OPEN = "<("
CLOSE = ">)"


def _outside(text: str) -> str:
    """Return the characters of a C++ name outside template arguments and parameter lists; brackets that do not match
    end the search.
    """
    kept = []
    depth = 0
    for position, character in enumerate(text):
        if character in OPEN:
            depth += 1
        elif character in CLOSE and not (character == ">" and text[position - 1 : position] == "-"):
            depth -= 1
            if depth < 0:
                return text
        elif depth == 0:
            kept.append(character)
    return "".join(kept) if depth == 0 else text


def normalised(name: str) -> str:
    """Return what stays of a kernel's name over builds and GPUs.

    Template arguments, parameters, return type, clone suffixes, addresses and what a compiler numbers
    (`without_build_numbers`) are left out; numbers of lambdas, and
    names of architectures (`sm80`, `hopper`, `gfx90a`), are replaced by a placeholder. Two names that agree in this are
    *candidates* for the same kernel.
    """
    text = " ".join(without_build_numbers(name[:SCANNED]).lower().split())
    text = ANONYMOUS.sub("anonymous", SUFFIX.sub("", text))
    text = ADDRESS.sub("@", LAMBDA.sub("lambda", text))
    text = _outside(text).strip()
    text = text.rsplit(" ", 1)[-1]  # without the return type
    return ARCHITECTURE.sub("arch", text)


def without_library(operator: str) -> str:
    """Return an operator's name without the library of the device's maker.

    >>> without_library("aten::miopen_batch_norm"), without_library("aten::cudnn_batch_norm")
    ('aten::batch_norm', 'aten::batch_norm')
    """
    return LIBRARY.sub("", operator)

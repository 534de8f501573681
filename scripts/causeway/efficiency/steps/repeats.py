"""Steps without annotations: the longest part of the launches that repeats, by the order of the kernels alone.

The first launches of steps are found by a pair of successive kernels that occurs once per step. For each pair the
launches are cut before each of its occurrences; the better the pieces agree in how often each kernel occurs in them,
the better is the pair. A piece that is part of a step (a layer) leaves out the kernels that occur once per step;
several steps together make fewer pieces.
"""

from dataclasses import dataclass, replace

import numpy as np

from causeway.events.few_values import few_distinct

MOST_SCORED = 200_000
"""Launches on which pairs are judged: hundreds of steps of a training run."""
MOST_LAUNCHES = 4_000_000
"""Launches of one export that are searched: they are held in memory, with 40 bytes each."""
CANDIDATES = 60
"""Pairs that are judged: one of each group that occur as often and at the same mean distance, largest groups first."""
SAME_DISTANCE = 0.02
"""Relative difference up to which mean distances count as the same."""
MIN_REPEATS = 3
"""Repeats that are called steps; fewer may be chance."""
LONG_REPEAT = 100
"""Launches of a repeat of which two are enough: so long a sequence does not return by chance."""
MIN_LAUNCHES = 8
"""Launches of a step: shorter repeats are loops of an algorithm or of a benchmark inside what a user calls a step."""
NEARLY_BEST = 0.05
"""How much lower than the best score that of a pair with more repeats may be: what happens once in ten steps (a log, a
checkpoint) does not make ten steps one.
"""
MIN_SHARE = 0.8
"""Share of the launches of the steps that must be in each step as often as in most; below, no steps are found."""
MIN_COVERAGE = 0.5
"""Share of all launches that the steps must hold."""
ONCE = 0.95
"""Share of steps in which the pair that begins a step occurs exactly once."""
WHOLE = 0.8
"""Share of a usual step's launches that the first and the last piece need to count as a step."""


@dataclass(frozen=True, kw_only=True)
class Repeats:
    """Where steps begin in a sequence of launches.

    Attributes
    ----------
    first : ndarray of int64, shape (steps,)
        Position of each step's first launch; empty where no steps were found.
    stop : int
        Position behind the last step's last launch.
    period : int or None
        Median number of launches of a step.
    confidence : float or None
        Share of the steps' launches whose kernel occurs in the step as often as in most steps, 0 to 1.
    coverage : float or None
        Share of all launches that lie in the steps, 0 to 1.
    reason : str or None
        Why no steps were found.
    """

    first: np.ndarray
    stop: int = 0
    period: int | None = None
    confidence: float | None = None
    coverage: float | None = None
    reason: str | None = None


NO_REPEATS = Repeats(first=np.empty(0, np.int64))


def _nothing(reason: str, judged: Repeats = NO_REPEATS) -> Repeats:
    return replace(judged, first=NO_REPEATS.first, stop=0, reason=reason)


@dataclass(frozen=True, kw_only=True)
class _Cut:
    """A sequence cut before positions: how well the pieces agree."""

    first: np.ndarray
    stop: int
    matching: float
    score: float
    usual: np.ndarray


def _cut(kernel: np.ndarray, first: np.ndarray, kinds: int) -> _Cut:
    """Cut a sequence of kernels (int64, shape (n,), below `kinds`) before positions, and judge the pieces.

    Score: (share of launches whose kernel occurs as often as in most pieces + mean over kernels of the share of pieces
    in which it occurs as often as in most) / 2 x share of the sequence that the pieces cover. The usual number of a
    kernel is its commonest one, also 0; of equals the larger.
    """
    length = int(np.median(np.diff(first)))
    stop = min(int(first[-1]) + length, kernel.size)
    span = kernel[first[0] : stop]
    piece = np.repeat(np.arange(first.size), np.diff(first, append=stop))
    key, times = _counted(span * np.int64(first.size) + piece, kinds * first.size)
    of = key // first.size
    pairs, frequency = np.unique(of << 32 | times, return_counts=True)
    kind = pairs >> 32
    order = np.lexsort((pairs & 0xFFFFFFFF, frequency, kind))
    last = order[np.flatnonzero(np.append(np.diff(kind[order]) > 0, True))]  # the commonest number of each kernel
    usual = np.zeros(kinds, np.int64)
    share = np.zeros(kinds)
    absent = first.size - np.bincount(of, minlength=kinds)
    present = absent[kind[last]] <= frequency[last]
    usual[kind[last]] = np.where(present, pairs[last] & 0xFFFFFFFF, 0)
    share[kind[last]] = np.where(present, frequency[last], 0) / first.size
    matching = float(np.minimum(times, usual[of]).sum() / span.size)
    repeated = np.bincount(span, minlength=kinds) >= 2
    by_kernel = float(share[repeated].mean()) if repeated.any() else 0.0
    score = (matching + by_kernel) / 2 * span.size / kernel.size
    return _Cut(first=first, stop=stop, matching=matching, score=score, usual=usual)


def _counted(keys: np.ndarray, bound: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct keys, ascending, and how often each occurs; keys (int64, shape (n,)) are at least 0 and below
    `bound`. They are counted in place of being sorted where a counter for every possible key takes less memory.
    """
    if bound > keys.size:
        return np.unique(keys, return_counts=True)
    counts = np.bincount(keys, minlength=1)
    distinct = np.flatnonzero(counts)
    return distinct, counts[distinct]


def _pairs(kernel: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the pairs of successive kernels: positions of second members ordered by pair, then time; where each pair
    begins among them; how often it occurs.
    """
    kinds = int(kernel.max()) + 1
    code = kernel[:-1] * np.int64(kinds) + kernel[1:]
    if kinds <= 1 << 8:
        code = code.astype(np.uint16)  # sorted by its digits, in linear time
    order = np.argsort(code, kind="stable")
    code = code[order]
    begin = np.flatnonzero(np.append(True, code[1:] != code[:-1]))
    return order + 1, begin, np.diff(begin, append=code.size)


def _candidates(kernel: np.ndarray) -> list[np.ndarray]:
    """Return the positions of chosen pairs.

    All pairs that occur once per step have the same number of occurrences and nearly the same mean distance. Of the
    groups of such pairs the largest are chosen, and of each the pair with the most regular distances.
    """
    positions, begin, count = _pairs(kernel)
    distance = np.diff(positions, append=positions[-1]).astype(np.float64)
    distance[begin[1:] - 1] = 0.0  # from one pair to the next
    distance[-1] = 0.0
    many = np.maximum(count - 1, 1)
    mean = np.add.reduceat(distance, begin) / many
    spread = np.sqrt(np.maximum(np.add.reduceat(distance**2, begin) / many - mean**2, 0)) / np.maximum(mean, 1)
    usable = np.flatnonzero((count >= 2) & (mean >= MIN_LAUNCHES))
    if not usable.size:
        return []
    class_of = np.rint(np.log(mean[usable]) / SAME_DISTANCE).astype(np.int64)
    _, group, size = np.unique(count[usable] << 20 | class_of, return_inverse=True, return_counts=True)
    order = np.lexsort((positions[begin[usable]], spread[usable], group, -size[group]))
    best = order[np.flatnonzero(np.append(True, np.diff(group[order]) != 0))][:CANDIDATES]
    return [positions[begin[pair] : begin[pair] + count[pair]] for pair in usable[best].tolist()]


def _begin_of_step(kernel: np.ndarray, gap: np.ndarray, chosen: _Cut, kinds: int) -> _Cut:
    """Return the cut at the pair that occurs once per step with the longest median pause before it."""
    positions, begin, count = _pairs(kernel)
    steps = chosen.first.size
    best = (-1.0, chosen)
    for pair in np.flatnonzero(np.abs(count - steps) <= max(1, (1 - ONCE) * steps)).tolist():
        first = positions[begin[pair] : begin[pair] + count[pair]]
        if first.size < 2:
            continue
        once = np.bincount(np.searchsorted(chosen.first, first, "right"), minlength=steps + 1)[1:steps]
        pause = float(np.median(gap[first]))
        if (once == 1).sum() >= ONCE * (steps - 1) and pause > best[0]:
            cut = _cut(kernel, first, kinds)
            if cut.score >= chosen.score - NEARLY_BEST:
                best = (pause, cut)
    return _earlier(kernel, gap, best[1], kinds)


def _earlier(kernel: np.ndarray, gap: np.ndarray, cut: _Cut, kinds: int) -> _Cut:
    """Return the cut a few launches earlier where the pause is longer there: what precedes a step's first launch may
    differ from step to step, as after a step that writes a log.
    """
    best = (float(np.median(gap[cut.first])), 0)
    for back in range(1, min(MIN_LAUNCHES, int(cut.first[0]) + 1)):
        first = cut.first - back
        same = np.bincount(kernel[first]).max() >= ONCE * first.size
        best = max(best, (float(np.median(gap[first])) if same else -1.0, -back))
    return _cut(kernel, cut.first + best[1], kinds) if best[1] else cut


def find_repeats(kernel: np.ndarray, gap: np.ndarray) -> Repeats:
    """Return the steps in a sequence of launches.

    Parameters
    ----------
    kernel : ndarray of int64, shape (launches,), at least 0
        Kernel of each launch, in the order of the launching calls.
    gap : ndarray of int64, shape (launches,), ns
        Pause of the host (without calls: of the device) before each launch; tells which of several equal ways to cut
        begins with the pause.
    """
    if kernel.size < 2 * MIN_LAUNCHES:
        return _nothing(f"{kernel.size} launches are too few to repeat")
    kernel = few_distinct(kernel)[1].astype(np.int64)
    kinds = int(kernel.max()) + 1
    part = kernel[:MOST_SCORED]
    cuts = [_cut(part, first, kinds) for first in _candidates(part)]
    if not cuts:
        return _nothing(f"no pair of kernels returns after {MIN_LAUNCHES} launches or more")
    best = max(cut.score for cut in cuts)
    chosen = max((cut for cut in cuts if cut.score >= best - NEARLY_BEST), key=lambda cut: (cut.first.size, cut.score))
    if part.size < kernel.size:
        pair = part[chosen.first[0] - 1 : chosen.first[0] + 1]
        chosen = _cut(kernel, np.flatnonzero((kernel[:-1] == pair[0]) & (kernel[1:] == pair[1])) + 1, kinds)
    return _judged(kernel, _ends(kernel, _begin_of_step(kernel, gap, chosen, kinds), kinds), kinds)


def _ends(kernel: np.ndarray, cut: _Cut, kinds: int) -> tuple[np.ndarray, int]:
    """Return where steps begin and where the last one stops: launches before the first pair are a step if they are
    one nearly as a whole, those after the last pair likewise.
    """
    whole = max(int(cut.usual.sum()), 1)
    length = float(np.median(np.diff(cut.first)))

    def share(piece: np.ndarray) -> float:
        return float(np.minimum(np.bincount(piece, minlength=kinds), cut.usual).sum()) / whole

    first = cut.first
    if share(kernel[: first[0]]) >= WHOLE and first[0] <= (2 - WHOLE) * length:
        first = np.concatenate([[0], first])
    last = int(first[-1])
    tail = min(kernel.size, last + round((2 - WHOLE) * length))
    if share(kernel[last:tail]) < WHOLE:
        return first[:-1], last
    return first, tail if tail == kernel.size else min(kernel.size, last + round(length))


def _judged(kernel: np.ndarray, ends: tuple[np.ndarray, int], kinds: int) -> Repeats:
    first, stop = ends
    if first.size < 2:
        return _nothing("no part of the launches repeats as a whole")
    period = int(np.median(np.diff(np.append(first, stop))))
    judged = _cut(kernel[:stop], first, kinds)
    coverage = (stop - int(first[0])) / kernel.size
    repeats = Repeats(first=first, stop=stop, period=period, confidence=judged.matching, coverage=coverage)
    if first.size < MIN_REPEATS and period < LONG_REPEAT:
        return _nothing(f"only {first.size} repeats, of {period} launches each", repeats)
    if judged.matching < MIN_SHARE:
        return _nothing(
            f"{100 * judged.matching:.0f} % of the launches match, less than {100 * MIN_SHARE:.0f} %", repeats
        )
    if coverage < MIN_COVERAGE:
        return _nothing(f"repeats hold {100 * coverage:.0f} % of the launches only", repeats)
    return repeats


def windows_of(
    repeats: Repeats, moment: np.ndarray, until: np.ndarray, free: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return start and end of each step, ns: a step begins where what went before it ended (the last call, also one
    that waits for the device; without calls the last launch), at its own first launch at the latest.

    Parameters
    ----------
    repeats : Repeats
    moment, until : ndarray of int64, shape (launches,), ns
        In the order of the moments: when each launch's call began and returned; without calls the launch itself.
    free : ndarray of int64, shape (steps,), ns
        End of the calls that began before each step's first launch; the earliest time where there is none.

    Returns
    -------
    start, end : ndarray of int64, shape (steps,), ns
    """
    ends = np.maximum.accumulate(until)
    first = repeats.first
    before = np.maximum(first - 1, 0)
    start = np.maximum(np.maximum(ends[before], free), moment[before] + 1)
    start = np.where(first > 0, np.minimum(start, moment[first]), moment[first])
    stop = int(ends[repeats.stop - 1])
    if repeats.stop < moment.size:
        stop = min(stop, int(moment[repeats.stop]))
    return start, np.append(start[1:], max(stop, int(moment[repeats.stop - 1]) + 1))

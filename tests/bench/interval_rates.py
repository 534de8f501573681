"""The rates of interval operations in millions of intervals per CPU-second, beside the same ones in plain NumPy."""

import statistics
import sys
import time

import numpy as np
from tests.bench.inputs import ROOT

sys.path.insert(0, str(ROOT / "scripts"))

LEAST = 30.0
"""Millions of intervals per CPU-second that every operation has to reach."""
MILLIONS = (1, 15)
"""Intervals of each input: in the caches, and far beyond them."""


def made(millions, seed, overlapping):
    """Return intervals ascending in start, of 1 to 19 ns after pauses of 1 to 19 ns, or overlapping each other."""
    random = np.random.default_rng(seed)
    length, step = random.integers(1, 20, (2, int(millions * 1e6)))
    start = np.cumsum(step + (0 if overlapping else np.append(0, length[:-1])))
    return start, start + length


def numpy_union(start, end):
    """Merge as one does without compiled code: sort, running maximum, cut where the next one begins later."""
    order = np.argsort(start, kind="stable")
    start = start[order]
    end = np.maximum.accumulate(end[order])
    fresh = np.append(True, start[1:] > end[:-1])
    return start[fresh], end[np.append(np.flatnonzero(fresh)[1:] - 1, end.size - 1)]


def numpy_intersection(first, second):
    """Intersect two sets by the depth of all edges in order."""
    edges = np.concatenate([first[0], second[0], first[1], second[1]])
    depth = np.repeat([1, -1], edges.size // 2)
    order = np.lexsort((depth, edges))
    inside = np.flatnonzero(np.cumsum(depth[order]) == 2)
    low = edges[order][inside]
    high = edges[order][inside + 1]
    return low[low < high], high[low < high]


def rate(work, count, repetitions):
    """Return millions of intervals per CPU-second, the median of the repetitions, and what the work returned."""
    spent = []
    for _ in range(repetitions):
        began = time.process_time()
        found = work()
        spent.append(time.process_time() - began)
    return count / statistics.median(spent) / 1e6, found


def interval_rates(options):
    """Print one row per operation and size."""
    from causeway.numeric import intervals

    print(f"{'':34}{'M intervals':>12}{'M per CPU-s':>13}{'NumPy':>8}   bar")
    for millions in MILLIONS:
        sets, loose = ([made(millions, seed, overlapping) for seed in (1, 2)] for overlapping in (False, True))
        mixed = np.random.default_rng(3).permutation(int(millions * 1e6))
        mixed = loose[0][0][mixed], loose[0][1][mixed]
        for name, work, peer, inputs in (
            ("union, ascending", lambda a=loose[0]: intervals.union(*a), lambda a=loose[0]: numpy_union(*a), 1),
            ("union, in any order", lambda a=mixed: intervals.union(*a), lambda a=mixed: numpy_union(*a), 1),
            (
                "intersection of sets",
                lambda s=sets: intervals.intersection(*s),
                lambda s=sets: numpy_intersection(*s),
                2,
            ),
            ("intersection, overlapping inputs", lambda a=loose: intervals.intersection(*a), None, 2),
            ("difference of sets", lambda s=sets: intervals.difference(*s), None, 2),
            ("difference, overlapping inputs", lambda a=loose: intervals.difference(*a), None, 2),
            ("overlap of each with a union", lambda s=sets: intervals.overlap(*s[0], s[1]), None, 2),
            ("length of a union", lambda a=loose[0]: intervals.length(a), None, 1),
        ):
            count = inputs * int(millions * 1e6)
            ours, found = rate(work, count, max(options.repetitions, 5))
            theirs = ""
            if peer is not None:
                theirs, expected = rate(peer, count, 1)
                assert all(np.array_equal(one, other) for one, other in zip(found, expected, strict=True)), name
                theirs = f"{theirs:.1f}"
            verdict = "holds" if ours >= LEAST else "FAILS"
            print(f"{name:34}{count / 1e6:>12.0f}{ours:13.1f}{theirs:>8}   at least {LEAST:.0f}: {verdict}")
            sys.stdout.flush()

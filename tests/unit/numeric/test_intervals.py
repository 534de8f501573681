import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causeway.numeric import intervals

FEW = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12)), max_size=12)


def arrays(pairs):
    start = np.array([start for start, _ in pairs], np.int64)
    return start, start + np.array([length for _, length in pairs], np.int64)


def points(pairs):
    """Return the unit cells that intervals cover: brute force."""
    return {cell for start, length in pairs for cell in range(start, start + length)}


def cells(found):
    start, end = found
    assert (start < end).all()
    assert (start[1:] > end[:-1]).all()  # ascending, disjoint, not touching
    return {cell for low, high in zip(start, end, strict=True) for cell in range(low, high)}


@settings(deadline=None)
@given(FEW, FEW)
def test_sets_agree_with_cells(first, second):
    a = arrays(first)
    b = arrays(second)
    assert cells(intervals.union(*a)) == points(first)
    assert cells(intervals.intersection(a, b)) == points(first) & points(second)
    assert intervals.length(a) == len(points(first))


@settings(deadline=None)
@given(FEW)
def test_stretches_begin_where_neighbouring_cells_lead_back_to(pairs):
    pairs = [(start, length + 1) for start, length in pairs]  # none is empty
    covered = points(pairs)
    for (begin, _), found in zip(pairs, intervals.stretches(*arrays(pairs)).tolist(), strict=True):
        while begin - 1 in covered:
            begin -= 1
        assert found == begin


@settings(deadline=None)
@given(FEW, FEW)
def test_overlap_of_each_with_a_union_agrees_with_cells(first, second):
    start, end = arrays(first)
    expected = [len(set(range(low, high)) & points(second)) for low, high in zip(start, end, strict=True)]
    assert intervals.overlap(start, end, arrays(second)).tolist() == expected


@pytest.mark.parametrize("cases", [2_000, pytest.param(10_000, marks=pytest.mark.slow)])
def test_random_cases_agree_with_a_bitmap(cases):
    """Every operation on random intervals, one bit per nanosecond: dense and sparse ones, touching ones, empty ones
    and none at all.
    """
    random = np.random.default_rng(7)
    for case in range(cases):
        size = int(random.integers(8, 160))
        maps = []
        sets = []
        for _ in range(2):
            n = int(random.integers(0, 12))
            start = random.integers(0, size, n)
            end = np.minimum(start + random.integers(0, 1 + size // (1 + case % 9), n), size)
            bitmap = np.zeros(size, bool)
            for low, high in zip(start.tolist(), end.tolist(), strict=True):
                bitmap[low:high] = True
            maps.append(bitmap)
            sets.append((start, end))
        first, second = maps
        for found, expected in (
            (intervals.union(*sets[0]), first),
            (intervals.intersection(*sets), first & second),
        ):
            steps = np.diff(expected.astype(np.int8), prepend=0, append=0)
            assert np.array_equal(found[0], np.flatnonzero(steps == 1)), case
            assert np.array_equal(found[1], np.flatnonzero(steps == -1)), case
        assert intervals.length(sets[0]) == first.sum(), case
        covered = np.concatenate(([0], np.cumsum(second)))
        assert np.array_equal(intervals.overlap(*sets[0], sets[1]), covered[sets[0][1]] - covered[sets[0][0]]), case


def test_touching_intervals_merge_and_empty_ones_cover_nothing():
    start, end = intervals.union(np.array([10, 0, 5, 20]), np.array([12, 5, 10, 20]))
    assert (start.tolist(), end.tolist()) == ([0], [12])


def test_large_times_stay_exact():
    far = 2**62
    start = np.array([far, far + 3])
    end = np.array([far + 2, far + 4])
    assert intervals.length((start, end)) == 3
    assert intervals.overlap(np.array([far + 1]), np.array([far + 4]), (start, end)).tolist() == [2]


def test_an_interval_that_ends_before_it_starts_is_refused():
    with pytest.raises(ValueError, match="interval 1 ends at 4, before its start 5"):
        intervals.union(np.array([0, 5]), np.array([1, 4]))
    with pytest.raises(ValueError, match="interval 0 ends at 4, before its start 5"):
        intervals.union(np.array([5, 6]), np.array([4, 7]))


@settings(deadline=None)
@given(FEW, FEW)
def test_parts_inside_and_outside_of_a_set_are_all_of_each_interval(pairs, cover):
    start, end = arrays(pairs)
    low, high = intervals.union(*arrays(cover))
    inside, outside = intervals.split(start, end, (low, high))
    covered = points(cover)
    for at, (begin, length) in enumerate(pairs):
        own = set(range(begin, begin + length))
        within = [cell for of, _, a, b in inside.T.tolist() if of == at for cell in range(a, b)]
        beyond = [cell for of, a, b in outside.T.tolist() if of == at for cell in range(a, b)]
        assert sorted(within) == sorted(own & covered)
        assert sorted(beyond) == sorted(own - covered)
    for _, member, a, b in inside.T.tolist():
        assert low[member] <= a < b <= high[member]

"""Rows of several levels put together: the same sums whether or not they had to be merged."""

import numpy as np
import pytest

from causeway.levels.pyramid.level import Level, merged, merged_if_needed, stacked

COLUMNS = ("values", "offset", "buckets", "counts", "busy")


def level(*cells):
    """A level with one launch of value 1 in each (series, cell), and as much busy time."""
    values = np.asarray([[*cell, 1, 1, 1, 0, 0, 1, 1] for cell in cells], np.int64)
    n = len(cells)
    busy = np.asarray([[*cell, 7] for cell in cells], np.int64)
    return Level(1000, values, np.arange(n + 1), np.full(n, 5, np.uint16), np.ones(n, np.uint32), busy)


def rows_of(found):
    """The rows of a level, whatever their order."""
    sketches = [
        tuple(zip(found.buckets[a:b].tolist(), found.counts[a:b].tolist(), strict=True))
        for a, b in zip(found.offset[:-1], found.offset[1:], strict=True)
    ]
    values = sorted((tuple(row), sketch) for row, sketch in zip(found.values.tolist(), sketches, strict=True))
    return values, sorted(map(tuple, found.busy.tolist()))


@pytest.mark.parametrize(
    ("second", "copied"),
    [([(0, 1), (0, 3)], False), ([(1, 0), (0, 2)], True), ([(0, 2), (3, 0), (3, 1)], True)],
    ids=["other cells", "one cell of both", "the first cell of both"],
)
def test_rows_are_merged_where_a_cell_occurs_twice_and_only_there(second, copied):
    first = [(0, 2), (1, 0), (1, 5)]
    rows = stacked([level(*first), level(*second)])
    expected = rows_of(merged(stacked([level(*first), level(*second)])))
    found = merged_if_needed(rows)
    assert (found is not rows) == copied
    assert rows_of(found) == expected
    assert len(found.values) == len({*first, *second})


def test_busy_time_alone_may_occur_twice():
    one = level((0, 0))
    other = level((1, 0))
    other.busy[0, 0] = 0
    found = merged_if_needed(stacked([one, other]))
    assert found.busy.tolist() == [[0, 0, 14]]


def test_levels_that_are_stacked_are_emptied():
    parts = [level((0, 0), (0, 1)), level((1, 0))]
    rows = stacked(parts)
    assert rows.offset.tolist() == [0, 1, 2, 3]
    assert [len(rows.values), len(rows.buckets), len(rows.counts), len(rows.busy)] == [3, 3, 3, 3]
    assert not any(len(getattr(part, name)) for part in parts for name in COLUMNS if name != "offset")

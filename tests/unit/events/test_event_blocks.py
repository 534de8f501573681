"""Ordered rows of several sources as one: merged beside a plain sort, with columns of one value."""

import numpy as np
import pyarrow as pa
import pytest

from causeway.events.event_blocks import is_repeated, merged, numbers, only, repeated, shortened


def source(random, kind, sizes):
    """Give blocks of random lengths, ordered by start, with two columns of one value and one of many."""
    starts = np.sort(random.integers(0, 500, sum(sizes)))
    for part in np.split(starts, np.cumsum(sizes)[:-1]):
        n = part.size
        yield {"start": part, "rank": repeated(3, n), "kind": repeated(kind, n, np.uint8), "own": part * 10 + kind}


@pytest.mark.parametrize("seed", range(10))
def test_merged_blocks_are_the_sorted_rows(seed):
    random = np.random.default_rng(seed)
    sizes = [random.integers(1, 40, random.integers(1, 5)).tolist() for _ in range(3)]
    rows = [
        row
        for kind in range(3)
        for block in source(np.random.default_rng(kind), kind, sizes[kind])
        for row in zip(*(block[name].tolist() for name in ("start", "rank", "kind", "own")), strict=True)
    ]
    blocks = list(merged([source(np.random.default_rng(kind), kind, sizes[kind]) for kind in range(3)]))
    found = [np.concatenate([block[name] for block in blocks]).tolist() for name in ("start", "rank", "kind", "own")]
    assert list(zip(*found, strict=True)) == sorted(rows, key=lambda row: row[0])
    assert all(is_repeated(block["rank"]) for block in blocks)


def test_what_is_not_asked_for_is_left_out():
    blocks = [{"start": np.arange(3), "bytes": np.arange(3)}]
    assert [list(block) for block in only(iter(blocks), ["start"])] == [["start"]]


@pytest.mark.parametrize("values", [[], [4], [4, 4, 4], [4, 4, 5]])
def test_columns_of_one_value_take_no_memory(values):
    column = shortened(np.array(values, np.uint16))
    assert column.tolist() == values
    assert column.dtype == np.uint16
    assert is_repeated(column) == (len(set(values)) == 1)


@pytest.mark.parametrize("values", [[], [None], [None, None], [1, None, 3], [1, 2]])
def test_absent_numbers(values):
    found = numbers(pa.array(values, pa.int64()), -7)
    assert found.dtype == np.int64
    assert found.tolist() == [-7 if value is None else value for value in values]

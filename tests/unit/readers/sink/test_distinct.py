"""Distinct values by hashing are those by sorting."""

import numpy as np
import pyarrow as pa
import pytest

from causeway.readers.sink.distinct import distinct, distinct_rows, mapped_texts


@pytest.mark.parametrize("few", [1, 3, 200, 4097, 1 << 40])
def test_distinct_values_equal_numpys(few):
    rng = np.random.default_rng(few)
    values = rng.integers(-few // 2, few // 2 + 1, 20_000) * 0x1_0001
    values[:2] = np.iinfo(np.int64).min, np.iinfo(np.int64).max
    for found, expected in zip(
        distinct(values), np.unique(values, return_index=True, return_inverse=True), strict=True
    ):
        assert np.array_equal(found, expected)


@pytest.mark.parametrize("rows", [0, 1, 100, 10_000])
def test_distinct_rows_are_numbered_by_their_first_occurrence(rows):
    rng = np.random.default_rng(rows)
    columns = [rng.integers(0, 4, rows), rng.integers(-3, 0, rows).astype(np.int32), np.zeros(rows, np.uint16)]
    expected: dict[tuple, int] = {}
    numbers = [
        expected.setdefault(row, len(expected)) for row in zip(*(column.tolist() for column in columns), strict=True)
    ]
    first, inverse = distinct_rows(columns)
    assert inverse.tolist() == numbers
    assert [tuple(int(column[at]) for column in columns) for at in first] == list(expected)


def test_rows_with_very_many_distinct_ones():
    columns = [np.arange(30_000) % 7001, np.arange(30_000) % 3]
    first, inverse = distinct_rows(columns)
    assert first.tolist() == list(range(3 * 7001))
    assert np.array_equal(inverse, np.arange(30_000) % (3 * 7001))


@pytest.mark.parametrize("texts", [3, 127, 128])
@pytest.mark.parametrize("index", [pa.int8(), pa.uint8(), pa.int32()])
def test_texts_of_a_dictionary_with_small_indices(texts, index):
    indices = pa.array([*range(texts), None, 0], index)
    column = pa.DictionaryArray.from_arrays(indices, pa.array([f"k{number}" for number in range(texts)]))
    numbers = mapped_texts(column, lambda text: -1 if text is None else int(text[1:]))
    assert numbers.tolist() == [*range(texts), -1, 0]

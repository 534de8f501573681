"""Distinct rows: as NumPy's own search of the stacked columns."""

import numpy as np
import pytest

from causeway.waiting.graph.distinct_rows import distinct_rows


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_rows_and_numbers_are_those_of_numpy(columns):
    random = np.random.default_rng(columns)
    bounds = np.array([1 << 32, 3, 1 << 33])
    for n in (0, 1, 2, 50, 1_000):
        made = [
            random.integers(0, bounds[i], max(n // 4, 1))[random.integers(0, max(n // 4, 1), n)] for i in range(columns)
        ]
        rows, number = distinct_rows(*made)
        expected, place = np.unique(np.stack(made), axis=1, return_inverse=True)
        assert rows.tolist() == expected.tolist()
        assert number.tolist() == place.reshape(-1).tolist()

"""Distinct texts by hashing, against numpy's sort."""

import numpy as np
import pytest

from causeway.events.distinct_texts import distinct_texts


@pytest.mark.parametrize("unknown", ["None", "(not known)"])
def test_texts_are_those_of_numpy_and_what_is_not_known_is_one_of_them(unknown):
    draw = np.random.default_rng(1)
    values = draw.choice(np.array(["b", "a", "kernel 2", "", None, 17, "é"], dtype=object), 500).tolist()
    as_text = [unknown if value in ("", None) else str(value) for value in values]
    expected, inverse = np.unique(np.array(as_text), return_inverse=True)
    distinct, codes = distinct_texts(values, unknown)
    assert distinct.tolist() == expected.tolist()
    assert codes.tolist() == inverse.tolist()
    assert [part.tolist() for part in distinct_texts([])] == [[], []]

"""Texts of which few differ (kernels, operators, layouts): the distinct ones, by hashing rather than by sorting."""

from collections.abc import Sequence

import numpy as np


def distinct_texts(values: Sequence[object] | np.ndarray, unknown: str = "None") -> tuple[np.ndarray, np.ndarray]:
    """Return the distinct texts and where each value stands among them, as `numpy.unique` with `return_inverse` does.

    Parameters
    ----------
    values : sequence of object, or ndarray, shape (n,)
        What is no text is written as one.
    unknown : str
        The text of None and of an empty text.

    Returns
    -------
    distinct : ndarray of str, shape (m,), ascending
    codes : ndarray of int64, shape (n,)

    >>> distinct_texts(["b", None, "a", "b"])
    (array(['None', 'a', 'b'], dtype='<U4'), array([2, 0, 1, 2]))
    """
    text_of = {value: unknown if value is None or value == "" else str(value) for value in dict.fromkeys(values)}
    distinct, numbers = np.unique(np.array([*text_of.values()], dtype=str), return_inverse=True)
    code_of = dict(zip(text_of, numbers.tolist(), strict=True))
    return distinct, np.fromiter(map(code_of.__getitem__, values), np.int64, len(values))

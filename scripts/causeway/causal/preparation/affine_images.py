"""Affine images of leaked columns: a column that is `a + b x` of a leaked column x but for rounding is leaked as well.

Profilers print one quantity in several forms: cycles with and without an eligible warp in percent (100 - x), per
scheduler and in percent of the peak (b x). Whatever x says of the measured value, its image says, too. The scale on
which x was found out need not find out the image: a rate is a product with the time, 100 minus the rate is none.
"""

from collections.abc import Sequence

import numpy as np

from causeway.causal.preparation.exact_images import NEAREST, is_affine_image
from causeway.causal.preparation.numeric_columns import NumericColumn

IMAGE = "follows exactly from a column that follows from the measured value itself"
"""Why an affine image of a leaked column is no candidate; that column's name stands behind it."""
NEAR = 0.8
"""Squared correlation below which no line is tried: rounding to five values takes less away."""
AT_ONCE = 256
"""So many columns are compared with the leaked ones in one go."""


def images_of_leaked(numbers: Sequence[NumericColumn], leaked: Sequence[NumericColumn]) -> dict[str, str]:
    """Return the names of counters that are affine images of leaked ones, each with the name of that one."""
    counters = [number for number in numbers if number.is_counter]
    raw, given = ([np.asarray(one.column.values, dtype=float) for one in some] for some in (counters, leaked))
    found = zip(counters, affine_images(raw, given), strict=True)
    return {number.name: leaked[at].name for number, at in found if at is not None}


def affine_images(columns: Sequence[np.ndarray], leaked: Sequence[np.ndarray]) -> list[int | None]:
    """Return for each column the position of a leaked one that it is an affine image of, or of such an image; None
    where there is none.

    Parameters
    ----------
    columns, leaked : sequence of ndarray of float, shape (n_rows,)
        As measured, NaN where missing.
    """
    found: list[int | None] = [None] * len(columns)
    sources = dict(enumerate(leaked))
    number = {at: at for at in sources}
    while sources:
        rest = [at for at, one in enumerate(found) if one is None]
        near = _nearest([columns[at] for at in rest], list(sources.values()))
        names = list(sources)
        new = {}
        for at, chosen in zip(rest, near, strict=True):
            source = next((names[i] for i in chosen if is_affine_image(columns[at], sources[names[i]])), None)
            if source is not None:
                found[at] = number[len(leaked) + at] = number[source]
                new[len(leaked) + at] = columns[at]
        sources = new
    return found


def _nearest(columns: Sequence[np.ndarray], others: Sequence[np.ndarray]) -> list[list[int]]:
    """Return for each column the others that a line leaves little of, on the rows where both are known, the nearest
    first, `NEAREST` at most.
    """
    known, values = _standardised(others)
    squares = values**2
    found = []
    for first in range(0, len(columns), AT_ONCE):
        mine, own = _standardised(columns[first : first + AT_ONCE])
        size = np.maximum(mine @ known.T, 1.0)
        mean_own = own @ known.T / size
        mean_values = mine @ values.T / size
        spread_own = own**2 @ known.T / size - mean_own**2
        spread_values = mine @ squares.T / size - mean_values**2
        covariance = own @ values.T / size - mean_own * mean_values
        scale = spread_own * spread_values
        explained = np.where(scale > 0, covariance**2 / np.where(scale > 0, scale, 1.0), 0.0)
        for row in explained:
            order = np.argsort(-row, kind="stable")[:NEAREST]
            found.append([int(at) for at in order if row[at] > NEAR])
    return found


def _standardised(columns: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return which values are known and the columns in standard deviations from their mean, 0 where unknown; float32,
    shape (n_columns, n_rows) each.
    """
    shape = (len(columns), columns[0].size if columns else 0)
    known = np.zeros(shape, np.float32)
    values = np.zeros(shape, np.float32)
    for at, column in enumerate(columns):
        there = np.isfinite(column)
        known[at] = there
        if there.any():
            series = column[there] / (np.abs(column[there]).max() or 1.0)
            spread = series.std()
            values[at, there] = (series - series.mean()) / (spread if spread > 0 else 1.0)
    return known, values

"""Exact images of the measured time: what tells a column that was computed from the time from one that determines it.

A memory-bound kernel of varying work follows the bytes that it moves with R^2 above .99, and so does a column that was
computed from the time. What tells the two apart is how exact the relation is. A computed column gives the time back but
for rounding; what determines the time by physics leaves the noise of timers, clocks and scheduling. Only exact images
are leaked features; a column that merely determines the time is a candidate like any other, and its arrow says so
(`determines_time`).

A rate need not be in proportion to its amount, `(amount + 1) / time`: then no linear relation of the values or of their
logarithms is exact, but `rate * time` is an affine function of the amount, and the amount none of the rate.

An affine image of a leaked column is leaked, too: a column that is `a + b x` of a leaked column x but for rounding is
leaked as well.

Profilers print one quantity in several forms: cycles with and without an eligible warp in percent (100 - x), per
scheduler and in percent of the peak (b x). Whatever x says of the measured value, its image says, too. The scale on
which x was found out need not find out the image: a rate is a product with the time, 100 minus the rate is none.
"""

from collections.abc import Callable, Sequence

import numpy as np

from causeway.causal.data.observations import FEW_VALUES, FEWEST_ROWS
from causeway.causal.preparation.numeric_columns import NumericColumn
from causeway.numeric.seeds import generator

EXACT = 0.002
"""A relation is exact that leaves less than this share of the time's standard deviation, or of the time itself. Chosen:
rounding to three digits leaves about .1 % of the time; causes are told from images while launches of equal work differ
by more, and are named with noise of 1 % in all of 20 tables.
"""
MISFIT = 0.1
"""Most that a relation which is exact but for rounding leaves, of what the column itself, or the time, varies by."""
ROUNDING = 1e-9
"""Relative error of double precision, some digits spared."""
PROJECTIONS = 12
"""Directions on which columns are compared at first: equal ones are never missed, the others are looked at again."""
NEAREST = 6
"""So many columns are looked at beside each image, the nearest first: an exact one is among them."""
BEYOND_STEP = 1.2
"""Half steps of rounding that the line of least squares may leave: it misses the true line by a little. Chosen."""
LEAST_ROUNDING = 0.5
"""Half steps that rounding leaves at least, as a standard deviation: evenly spread errors have 0.58."""
PRINTED_DIGITS = 9
"""Digits of a printed number; one that takes more was not rounded."""
TIME_UNITS = frozenset(
    "ns us µs ms s nsecond usecond msecond second seconds nanosecond nanoseconds microsecond microseconds millisecond"
    " milliseconds cycle cycles clk clks clock clocks".split()
)
"""Units of times and of cycles, as profilers write them."""


def has_time_unit(unit: str) -> bool:
    """Tell whether a unit is that of a time, of cycles, or of an amount per time.

    >>> [unit for unit in ("ns", "byte/second", "GB/s", "cycle", "byte", "%", "inst/cycle") if has_time_unit(unit)]
    ['ns', 'byte/second', 'GB/s', 'cycle', 'inst/cycle']
    """
    amount, _, per = unit.lower().rpartition("/")
    return per.strip() in TIME_UNITS or (not amount and unit.lower() in TIME_UNITS)


def is_exact(residual: np.ndarray, measured: np.ndarray, level: float) -> bool:
    """Tell whether what a relation leaves of the measured value is no more than rounding.

    Parameters
    ----------
    residual, measured : ndarray of float, shape (n_rows,)
        Centred, in one unit.
    level : float
        Size of the measured value in that unit: its mean, or 1 if these are logarithms; 0 if not known.
    """
    left = float(np.sqrt(np.mean(residual**2)))
    return left <= EXACT * max(float(np.sqrt(np.mean(measured**2))), abs(level))


def is_unit_copy(slopes: np.ndarray) -> np.ndarray:
    """Tell which slopes of columns on the time are a power of 1000: the time in another unit.

    Parameters
    ----------
    slopes : ndarray of float, shape (...)

    Returns
    -------
    ndarray of bool, shape (...)
    """
    size = np.abs(slopes)
    power = np.log10(np.where(size > 0, size, np.nan)) / 3
    return np.nan_to_num(np.abs(power - np.round(power)) * 3 * np.log(10), nan=np.inf) < EXACT


def error_of_time(image: np.ndarray, other: np.ndarray) -> float:
    """Return the relative error of the time if `image`, a column times or divided by the time, were an affine function
    of another column.

    Parameters
    ----------
    image, other : ndarray of float, shape (n_rows,)
        Rows where both are known.

    Returns
    -------
    float
        Standard deviation of the misfit over the image itself, from the 90 % quantile of its size, as if it were
        normal; infinite if nothing can be said.
    """
    rows = np.isfinite(image) & np.isfinite(other) & (image != 0)
    if rows.sum() < 3 or np.ptp(other[rows]) == 0:
        return np.inf
    design = np.column_stack([np.ones(rows.sum()), other[rows] / np.abs(other[rows]).max()]) / image[rows, None]
    misfit = 1.0 - design @ np.linalg.lstsq(design, np.ones(rows.sum()), rcond=None)[0]
    return float(np.quantile(np.abs(misfit), 0.9)) / 1.645  # the 90 % quantile of |z|, z standard normal


def keeps_order(column: np.ndarray, time: np.ndarray) -> bool:
    """Tell whether a column rises or falls with the time without exception over all launches, whatever their kernel, in
    many steps of both.

    A logarithm, a reciprocal or whole microseconds do, in kernels of any size. What determines the time does not: the
    order of launches that take nearly the same time is that of noise. Of a time of few values no two launches take
    nearly the same, so that it proves nothing: a cause that decides which of two values a coarse timer gives is in
    order, too.

    Parameters
    ----------
    column, time : ndarray of float, shape (n_rows,)
        As measured, without gaps.

    Notes
    -----
    Every pair of launches of different times counts, and `FEWEST_ROWS` launches in a row must differ in both. One
    that is low in some launches of the commonest time, and the same in all slower ones, is in order as well, but one
    step long. That n values in any order happen to rise or fall has the chance 2 / n!.

    Examples
    --------
    >>> time = np.arange(1.0, 101.0)
    >>> keeps_order(np.log(time), time), keeps_order(np.round(1e4 / time), time), keeps_order(time % 7, time)
    (True, True, False)
    >>> keeps_order(time, np.floor(time / 51))
    False
    """
    for signed in (column, -column):
        order = np.lexsort((signed, time))
        times = time[order]
        values = signed[order]
        first = np.flatnonzero(np.diff(times, prepend=-np.inf) > 0)  # of each time: among equal ones is no order
        last = np.append(first[1:], times.size) - 1
        if np.all(values[last[:-1]] <= values[first[1:]]) and _steps_of_both(values, times) >= FEWEST_ROWS:
            return True
    return False


def _steps_of_both(values: np.ndarray, times: np.ndarray) -> int:
    """Return how many launches, in a row that rises in both, differ in both from the one before; counted as far as
    `FEWEST_ROWS`.

    Parameters
    ----------
    values, times : ndarray of float, shape (n_rows,)
        By time, then by value; the values do not fall.
    """
    count = 0
    last_value = -np.inf
    last_time = -np.inf
    for value, time in zip(values.tolist(), times.tolist(), strict=True):
        if value > last_value and time > last_time:
            last_value = value
            last_time = time
            count += 1
            if count == FEWEST_ROWS:
                break
    return count


def decimal_step(values: np.ndarray, largest: int, smallest: int) -> float:
    """Return the step of the digits that values were printed with: the largest power of ten of which all are multiples;
    0 if there is none.

    Parameters
    ----------
    values : ndarray of float, shape (n_rows,)
        Finite.
    largest, smallest : int
        Powers of ten that are tried, from the coarsest to the finest.

    Examples
    --------
    >>> decimal_step(np.array([2.5, 0.25, 10.0]), 3, -6), decimal_step(np.array([1 / 3]), 3, -6)
    (0.01, 0.0)
    """
    for power in range(largest, smallest - 1, -1):
        steps = values / 10.0**power
        if np.abs(steps).max() < 2.0**50 and np.all(
            np.abs(steps - np.round(steps)) <= 1e-6 * np.minimum(np.abs(steps), 1.0)
        ):
            return 10.0**power
    return 0.0


def is_affine_image(column: np.ndarray, other: np.ndarray) -> bool:
    """Tell whether a column is `a + b x` of another one, x, but for the rounding of both.

    Parameters
    ----------
    column, other : ndarray of float, shape (n_rows,)
        As measured, NaN where missing.

    Notes
    -----
    Half a step of the last printed digit of the one, and b times that of the other, is the most that rounding takes
    away, and no line leaves less than the one of least squares. Where nothing was rounded, it is single precision.

    Of a column of few values rounding is told from a count that determines the other column: what rounding takes away
    is spread evenly over the whole step, what a count leaves is noise, which lies near 0 or has tails.

    Examples
    --------
    >>> x = np.round(30 + 5 * np.sin(np.arange(400.0)), 2)
    >>> is_affine_image(np.round(100 - 1.012 * x, 2), x), is_affine_image(100 - x + 0.2 * np.cos(7 * x), x)
    (True, False)
    >>> is_affine_image(np.round(x), x), is_affine_image(np.round(x), 2 * np.round(x) + x / 99)
    (True, False)
    """
    rows = np.isfinite(column) & np.isfinite(other)
    y, x = sorted((column[rows], other[rows]), key=lambda series: np.unique(series).size)
    few, many = (np.unique(series).size for series in (y, x))
    if many < FEWEST_ROWS or few < FEW_VALUES:
        return False
    y_unit, x_unit = (np.abs(series).max() for series in (y, x))
    y_centred, x_centred = (series / unit - np.mean(series / unit) for series, unit in ((y, y_unit), (x, x_unit)))
    slope = float(x_centred @ y_centred / (x_centred @ x_centred))
    residual = y_centred - slope * x_centred
    left = float(np.sqrt(np.mean(residual**2)))
    spread = float(y_centred.std())
    if few >= FEWEST_ROWS and left <= EXACT * spread:
        return True
    rounding = (_step(y) / y_unit + abs(slope) * _step(x) / x_unit) / 2
    if few >= FEWEST_ROWS:
        return bool(left <= min(rounding, MISFIT * spread))
    return bool(np.abs(residual).max() <= BEYOND_STEP * rounding and left >= LEAST_ROUNDING * rounding)


def _step(values: np.ndarray) -> float:
    """Return the step of the last digit that values were printed with; 0 if they were not rounded."""
    first = int(np.floor(np.log10(np.abs(values).max())))
    return decimal_step(values, first, first + 1 - PRINTED_DIGITS)


def _images_of(column: np.ndarray, time: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a column times the time and divided by it, shape (n_rows,) each: the amount behind a rate, the clock
    behind cycles.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        return column * time, column / time


def image_error(column: np.ndarray, other: np.ndarray, time: np.ndarray) -> float:
    """Return the relative error of the time if a column times or divided by it were an affine function of another one.

    Parameters
    ----------
    column, other, time : ndarray of float, shape (n_rows,)
        As measured; NaN where missing. Times are positive.

    Returns
    -------
    float
        The smaller one of both forms; infinite where the error is no smaller than what a relation has that is not
        exact.
    """
    limit = min(EXACT, MISFIT * float(np.std(np.log(time))))
    if error_of_time(column, np.arange(column.size)) <= limit / MISFIT:
        return np.inf  # nearly constant: times the time it is a copy of the time, of which there may be another
    error = min(error_of_time(image, other) for image in _images_of(column, time))
    return error if error < limit else np.inf


def is_image(column: np.ndarray, other: np.ndarray, time: np.ndarray) -> bool:
    """Tell whether a column times or divided by the time is an affine function of another one, but for rounding.

    Parameters
    ----------
    column, other, time : ndarray of float, shape (n_rows,)
        As of `image_error`.
    """
    return bool(np.isfinite(image_error(column, other, time)))


def are_images(columns: Sequence[np.ndarray], time: np.ndarray) -> bool:
    """Tell whether one of two columns is an image of the other (`is_image`).

    Parameters
    ----------
    columns : sequence of ndarray of float, shape (n_rows,)
        As of `image_error`. False for fewer or more than two.
    time : ndarray of float, shape (n_rows,)
        False where one is not positive.
    """
    if len(columns) != 2 or not np.all(time > 0):
        return False
    return is_image(columns[0], columns[1], time) or is_image(columns[1], columns[0], time)


def _of_one_form(column: np.ndarray, other: np.ndarray, time: np.ndarray) -> bool:
    """Tell whether a column is the image of another one and this one none of it, or a much poorer one."""
    error = max(image_error(column, other, time), ROUNDING)
    if not np.isfinite(error):
        return False
    return error < MISFIT * min(error_of_time(image, column) for image in _images_of(other, time))


def product_images(
    columns: Sequence[np.ndarray],
    counters: Sequence[bool],
    time: np.ndarray,
    calculated: Callable[[np.ndarray, np.ndarray, np.ndarray], int | None] = lambda column, other, time: None,
) -> np.ndarray:
    """Return the counters that were computed from the time and another column, where the form of the relation tells.

    Parameters
    ----------
    columns : sequence of ndarray of float, shape (n_rows,)
        As measured, without gaps.
    counters : sequence of bool
        Which of them may be computed from the time; what is known when the launch begins is not.
    time : ndarray of float, shape (n_rows,), positive
    calculated : callable
        `leak_attribution.calculated_from`: which of two columns, shape (n_rows,) each, was calculated, 0, 1 or None,
        where the relation is exact both ways.

    Returns
    -------
    ndarray of bool, shape (n_columns,)
        Those of which the image is an affine function of another column, that one's image none of it. `amount / time`
        is among them only if `calculated` tells: the amount is the time times the rate as well. 100 minus a rate is
        of another form than the rate, and tells no more than the rate does where that is there.

    Notes
    -----
    An exact relation makes the unit vectors of an image and of a column equal but for the sign. Pairs that may be equal
    are looked up among their projections on a few orthonormal directions, which never lengthen a distance.
    """
    computed = np.zeros(len(columns), bool)
    if len(columns) < 2 or time.size <= PROJECTIONS or not np.any(counters):
        return computed
    from scipy.spatial import cKDTree  # a third of a second, which only datasets with counters need

    directions = np.linalg.qr(generator(0, "exact images").standard_normal((time.size, PROJECTIONS)))[0]
    projected = np.stack([_projected(column, directions) for column in columns])
    tree = cKDTree(np.concatenate([projected, -projected]))
    reach = 4 * EXACT
    for j in np.flatnonzero(np.asarray(counters, bool)).tolist():
        projections = np.stack([_projected(image, directions) for image in _images_of(columns[j], time)])
        near = tree.query(projections, k=min(NEAREST, 2 * len(columns)), distance_upper_bound=reach)[1]
        others = {int(i) % len(columns) for i in near.ravel() if i < 2 * len(columns)} - {int(j)}
        images = [i for i in sorted(others) if is_image(columns[j], columns[i], time)]
        one_way = {i for i in images if _of_one_form(columns[j], columns[i], time)}
        both_ways = [columns[i] for i in images if i not in one_way]
        computed[j] = any(
            not counters[i]
            or (i in one_way and not any(is_affine_image(columns[i], column) for column in both_ways))
            or calculated(columns[j], columns[i], time) == 0
            for i in images
        )
    return computed


def _projected(column: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Return the coordinates of a column's unit vector, its mean taken off, on some directions."""
    largest = np.abs(column).max()
    centred = column / (largest or 1.0)
    centred = centred - centred.mean()
    return directions.T @ (centred / (np.sqrt(centred @ centred) or 1.0))


IMAGE = "follows exactly from a column that follows from the measured value itself"
"""Why an affine image of a leaked column is no candidate; that column's name stands behind it."""
NEAR_LINE = 0.8
"""Squared correlation below which no line is tried: rounding to five values takes less away."""
AT_ONCE = 256
"""So many columns are compared with the leaked ones in one go."""


def images_of_leaked(numbers: Sequence[NumericColumn], leaked: Sequence[NumericColumn]) -> dict[str, str]:
    """Return the names of counters that are affine images of leaked ones, each with the name of that one."""
    counters = [number for number in numbers if number.is_counter]
    raw, given = ([np.asarray(number.column.values, dtype=float) for number in some] for some in (counters, leaked))
    images = zip(counters, affine_images(raw, given), strict=True)
    return {number.name: leaked[source].name for number, source in images if source is not None}


def affine_images(columns: Sequence[np.ndarray], leaked: Sequence[np.ndarray]) -> list[int | None]:
    """Return for each column the position of a leaked one that it is an affine image of, or of such an image; None
    where there is none.

    Parameters
    ----------
    columns, leaked : sequence of ndarray of float, shape (n_rows,)
        As measured, NaN where missing.
    """
    positions: list[int | None] = [None] * len(columns)
    sources = dict(enumerate(leaked))
    number = {index: index for index in sources}
    while sources:
        rest = [index for index, position in enumerate(positions) if position is None]
        near = _nearest_columns([columns[index] for index in rest], list(sources.values()))
        names = list(sources)
        new = {}
        for index, chosen in zip(rest, near, strict=True):
            source = next((names[i] for i in chosen if is_affine_image(columns[index], sources[names[i]])), None)
            if source is not None:
                positions[index] = number[len(leaked) + index] = number[source]
                new[len(leaked) + index] = columns[index]
        sources = new
    return positions


def _nearest_columns(columns: Sequence[np.ndarray], others: Sequence[np.ndarray]) -> list[list[int]]:
    """Return for each column the others that a line leaves little of, on the rows where both are known, the nearest
    first, `NEAREST` at most.
    """
    finite, values = _known_and_standardised(others)
    squares = values**2
    nearest = []
    for first in range(0, len(columns), AT_ONCE):
        own_finite, own = _known_and_standardised(columns[first : first + AT_ONCE])
        size = np.maximum(own_finite @ finite.T, 1.0)
        mean_own = own @ finite.T / size
        mean_values = own_finite @ values.T / size
        spread_own = own**2 @ finite.T / size - mean_own**2
        spread_values = own_finite @ squares.T / size - mean_values**2
        covariance = own @ values.T / size - mean_own * mean_values
        scale = spread_own * spread_values
        explained = np.where(scale > 0, covariance**2 / np.where(scale > 0, scale, 1.0), 0.0)
        for row in explained:
            order = np.argsort(-row, kind="stable")[:NEAREST]
            nearest.append([int(position) for position in order if row[position] > NEAR_LINE])
    return nearest


def _known_and_standardised(columns: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return which values are known and the columns in standard deviations from their mean, 0 where unknown; float32,
    shape (n_columns, n_rows) each.
    """
    shape = (len(columns), columns[0].size if columns else 0)
    finite = np.zeros(shape, np.float32)
    values = np.zeros(shape, np.float32)
    for index, column in enumerate(columns):
        there = np.isfinite(column)
        finite[index] = there
        if there.any():
            series = column[there] / (np.abs(column[there]).max() or 1.0)
            spread = series.std()
            values[index, there] = (series - series.mean()) / (spread if spread > 0 else 1.0)
    return finite, values

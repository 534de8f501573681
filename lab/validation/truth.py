"""The true contributions and slopes of a table's causes, by pick-freeze: one cause at a time is picked from another
row.
"""

from collections.abc import Callable

import numpy as np

PICK_FREEZE_DRAWS = 30


def shares_and_slopes(
    rng: np.random.Generator,
    duration: Callable[[list[np.ndarray], np.ndarray], np.ndarray],
    parts: list[np.ndarray],
    noise: np.ndarray,
    values: list[np.ndarray],
    y: np.ndarray,
    kernel: np.ndarray,
) -> tuple[list[float], list[float | None], list[float | None], list[float]]:
    """Return the contributions in percent, that of the noise last, the slopes of the absolute and the signed deviation
    from the mean, and the shares of the variance of the run time, likewise in percent.

    Parameters
    ----------
    rng : Generator
    duration : callable
        Gives the run times, ns, shape (n_rows,), for the causes' parts and the noise.
    parts : list of ndarray of float, shape (n_rows,)
        One per cause.
    noise : ndarray of float, shape (n_rows,)
    values : list of ndarray, shape (n_rows,)
        The causes as measured; text has no slope.
    y : ndarray of float, shape (n_rows,), ns
    kernel : ndarray of int, shape (n_rows,)

    Notes
    -----
    The unnormalised total-effect index `E[Var over x_j of |deviation|]` is half the mean squared change under
    pick-freeze (M. Jansen, Comput. Phys. Commun. 117 (1999) 35), that of the run time half the mean squared change of
    the signed deviation. Deviations are in standard deviations of their kernel,
    and every kernel weighs the same; slopes are in standard deviations of what they are about, per standard deviation
    of the cause.
    """
    counts = np.bincount(kernel)
    mean = (np.bincount(kernel, y) / counts)[kernel]
    spread = np.sqrt(np.bincount(kernel, (y - mean) ** 2) / counts)[kernel]
    weights = 1.0 / counts[kernel]

    def deviation(changed: list[np.ndarray], noise_values: np.ndarray) -> np.ndarray:
        return (duration(changed, noise_values) - mean) / spread

    signed = deviation(parts, noise)
    own = np.abs(signed)
    numbers = [None if value.dtype == object else _standardised(value, kernel) for value in values]
    sums = np.zeros(len(parts) + 1)
    of_time = np.zeros(len(parts) + 1)
    moved = np.zeros(len(parts))
    of_size = np.zeros(len(parts))
    of_value = np.zeros(len(parts))
    order = np.argsort(kernel, kind="stable")
    for _ in range(PICK_FREEZE_DRAWS):
        partner = np.empty(y.size, dtype=np.int64)
        shuffled = rng.permutation(y.size)
        partner[order] = shuffled[np.argsort(kernel[shuffled], kind="stable")]
        for j, part in enumerate(parts):
            other = deviation([*parts[:j], part[partner], *parts[j + 1 :]], noise)
            change = np.abs(other) - own
            sums[j] += weights @ change**2
            of_time[j] += weights @ (other - signed) ** 2
            if numbers[j] is not None:
                step = weights * (numbers[j][partner] - numbers[j])
                of_size[j] += change @ step
                of_value[j] += (other - signed) @ step
                moved[j] += step @ (numbers[j][partner] - numbers[j])
        other = deviation(parts, noise[partner])
        sums[-1] += weights @ (np.abs(other) - own) ** 2
        of_time[-1] += weights @ (other - signed) ** 2
    slopes, moves = (
        [None if number is None else float(c / m / unit) for number, c, m in zip(numbers, cross, moved, strict=True)]
        for cross, unit in ((of_size, _spread(own, weights)), (of_value, _spread(signed, weights)))
    )
    return list(100 * sums / sums.sum()), slopes, moves, list(100 * of_time / of_time.sum())


def _spread(values: np.ndarray, weights: np.ndarray) -> float:
    """Return the weighted standard deviation."""
    return float(np.sqrt(np.average((values - np.average(values, weights=weights)) ** 2, weights=weights)))


def _standardised(values: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """Return values minus their kernel's mean, the outermost thousandth pulled in, in standard deviations."""
    centred = values - (np.bincount(kernel, values) / np.bincount(kernel))[kernel]
    centred = np.clip(centred, *np.quantile(centred, [0.001, 0.999]))
    return (centred - centred.mean()) / centred.std()

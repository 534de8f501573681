"""Distractors: columns beside the drivers that are no causes: copies, sums, shares, ratios, leaked features
(functions of the measured time), noise, identifiers, constants, and gaps.
"""

from dataclasses import dataclass, field

import numpy as np

from lab.validation.autocorrelated import autoregressive
from lab.validation.measurement import observe


@dataclass
class Distractors:
    """All columns, drivers and distractors.

    Attributes
    ----------
    columns : dict of str to ndarray, each of shape (n_rows,)
    stands_for : dict of str to str
        Of a column that stands for a cause, the cause.
    leaked : set of str
        Leaked features.
    """

    columns: dict[str, np.ndarray]
    stands_for: dict[str, str] = field(default_factory=dict)
    leaked: set[str] = field(default_factory=set)


def add_distractors(
    rng: np.random.Generator,
    drivers: dict[str, np.ndarray],
    causes: list[str],
    names: list[str],
    y: np.ndarray,
    kernel: np.ndarray,
    gaps: bool,
) -> Distractors:
    """Return the drivers with distractors, one column per name in `names` beyond the drivers.

    Parameters
    ----------
    rng : Generator
    drivers : dict of str to ndarray, shape (n_rows,)
        Floats, or objects (text).
    causes : list of str
        The drivers that cause the run time.
    names : list of str
    y : ndarray of float, shape (n_rows,), ns
        Measured run time.
    kernel : ndarray of int, shape (n_rows,)
    gaps : bool
        Some cells are missing.
    """
    distractors = Distractors(dict(drivers))
    numbers = [name for name, values in drivers.items() if values.dtype != object]
    free = iter(names)
    leaked = [y / 1e3, np.log(y), np.floor(y * 1.41 / 32), np.round(1e9 / y, 3)]
    if numbers:
        leaked.append(drivers[numbers[-1]] / y)
    for values in leaked[: max(1, len(names) // 8)]:
        name = next(free)
        distractors.columns[name] = values
        distractors.leaked.add(name)
    fixed = [np.full(y.size, 7.0), np.full(y.size, np.nan), np.asarray([f"id{k}" for k in range(y.size)], dtype=object)]
    for values in fixed[: len(names) // 10]:
        distractors.columns[next(free)] = values
    for count, name in enumerate(free):
        if len(distractors.columns) >= len(drivers) + len(names) - 8:
            break
        distractors.columns[name] = _distractor(rng, count, drivers, numbers, y.size)
    note_copies(distractors, drivers, causes, kernel)
    if gaps:
        for name in numbers:
            if rng.random() < 0.1:
                values = distractors.columns[name].copy()
                values[rng.random(y.size) < 0.02] = np.nan
                distractors.columns[name] = values
    return distractors


SAME_CORRELATION = 0.95
"""Correlation (of values or ranks, within kernels) above which a column cannot be distinguished from a cause: an arrow
means the cluster.
"""


def note_copies(
    distractors: Distractors, drivers: dict[str, np.ndarray], causes: list[str], kernel: np.ndarray
) -> None:
    """Note which of `distractors` cannot be distinguished from a cause; drivers, leaked features and text stand for
    themselves.

    Parameters
    ----------
    distractors : Distractors
        Changed in place.
    drivers : dict of str to ndarray, shape (n_rows,)
        Floats, or objects (text).
    causes : list of str
    kernel : ndarray of int, shape (n_rows,)
    """
    from scipy.stats import rankdata

    def within(values: np.ndarray) -> np.ndarray:
        centred = values - (np.bincount(kernel, values) / np.bincount(kernel))[kernel]
        pair = np.column_stack([centred, rankdata(centred)])
        pair = pair - pair.mean(axis=0)
        return pair / np.maximum(np.sqrt((pair**2).sum(axis=0)), 1e-300)

    own = {name: within(drivers[name]) for name in causes if drivers[name].dtype != object}
    for name, values in distractors.columns.items():
        if name in drivers or name in distractors.leaked or values.dtype == object or not np.all(np.isfinite(values)):
            continue
        pair = within(values)
        alike = {cause: float(np.abs((pair * other).sum(axis=0)).max()) for cause, other in own.items()}
        best = max(alike, key=alike.get, default=None)
        if best is not None and alike[best] > SAME_CORRELATION:
            distractors.stands_for[name] = best


def _distractor(
    rng: np.random.Generator, count: int, drivers: dict[str, np.ndarray], numbers: list[str], rows: int
) -> np.ndarray:
    """Return one further column: in turn copies, noisy copies, sums, ratios, shares of a total, and noise of every
    kind.
    """
    kind = count % 10
    if kind < 5 and numbers:
        first, other = (numbers[k] for k in rng.integers(0, len(numbers), 2))
        x = drivers[first]
        z = drivers[other]
        if kind == 0:
            return x * 32.0 * (1.0 + 0.002 * rng.standard_normal(rows))
        if kind == 1:
            return x + 0.7 * x.std() * rng.standard_normal(rows)
        if kind == 2 and first != other:
            return x + z
        if kind == 3 and first != other:
            return x / (np.abs(z) + 1.0)
        if kind == 4 and first != other and x.min() >= 0 and z.min() >= 0:
            return 100.0 * x / np.maximum(x + z, 1e-9)
    series = autoregressive(rng, rows, rng.uniform(0.0, 0.9, 1))[:, 0]
    return observe(rng, series, np.zeros(rows), False, True).values

"""Duration aliases: columns that are the measured time in other clothes, and would explain it perfectly without causing it.

They are recognised by name and by data. By data: within configurations, the column's logarithm follows from the logarithm of the measured
value and at most two other columns (cycles = time x clock; throughput = bytes / time), while without the measured value it does not.
"""

import re
from collections.abc import Callable

import numpy as np

ALIAS_NAMES = re.compile(
    r"(^|_|\.)(duration|elapsed|run_?time|wall_?time|gpu_?time|kernel_?time|exec(ution)?_?time|end_?(ns|time|timestamp)|latency_total)(_|\.|$)"
    r"|per_second|per_sec(_|\.|$)|(_|\.)throughput_per|bytes_per_s(_|$)|flops?_per_s|(^|_)(gb|mb|gib|mib)ps(_|$)"
    r"|(^|_|\.)((elapsed|active|busy|gpu|sm|sq|total|clock)_?)?cycles(_?(elapsed|active|busy|total|avg|sum|max|min))*(\.(avg|sum|max|min))*$",
    re.IGNORECASE,
)
"""Names that profilers give to time, to cycles (time x clock) and to rates (amount / time): Nsight Compute 2024, rocprofiler 6."""

ALIAS_R2 = 0.99
MIN_ROWS = 50
OWN_SHARE = 0.1
"""An alias loses this much: with the measured value the unexplained part shrinks below a tenth of what the other columns leave."""
NOT_ROUNDING = 1e-4
"""Copies leave less of each other than this, and then the measured value's part in it is rounding."""
ROUNDING = 1e-5
"""More than single precision takes from a squared correlation."""
AT_ONCE = 256
"""So many rows of a matrix of correlations are gone through in one go."""
UNIT_SLOPE = 0.1
"""A rate is in proportion to its amount: in logarithms, the slope of one on the other differs from 1 by less than this."""


def alias_by_name(name: str, target: str) -> bool:
    """Tell whether a counter's name says that it is the target itself, a time, cycles or a rate per time."""
    return name == target or bool(ALIAS_NAMES.search(name))


def correlation_matrix(columns: np.ndarray) -> np.ndarray:
    """Return the correlations of columns, float32, shape (p, p); 0 where a column has no variance.

    Parameters
    ----------
    columns : ndarray of float, shape (n_rows, p)
        Each with mean 0.
    """
    lengths = np.sqrt((columns.astype(np.float64) ** 2).sum(axis=0))
    unit = (columns / np.where(lengths > 0, lengths, 1.0)).astype(np.float32)
    return unit.T @ unit


def aliases_by_data(
    measured: np.ndarray,
    columns: np.ndarray,
    correlations: np.ndarray,
    derived: np.ndarray,
    leak_of: Callable[[list[int], np.ndarray], int | None],
    logarithmic: bool,
) -> np.ndarray:
    """Find the columns that are a function of the measured value and at most two others.

    Parameters
    ----------
    measured : ndarray of float, shape (n_rows,)
        Measured value (or its logarithm), centred within configurations.
    columns : ndarray of float, shape (n_rows, p)
        Columns (or their logarithms), centred likewise.
    correlations : ndarray of float32, shape (p, p)
        `correlation_matrix(columns)`.
    derived : ndarray of bool, shape (p,)
        Columns whose names say that they are computed from others.
    leak_of : callable
        Given two or three columns tied by the measured value, and which of all columns, shape (p,), are so in a pair or are aliases by
        themselves, says which of the two or three is the leak; None if nothing tells.
    logarithmic : bool
        The columns are logarithms: they are tied only if they are in proportion to each other.

    Returns
    -------
    ndarray of bool, shape (p,)

    Notes
    -----
    With t the measured value, the squared multiple correlation grows by partial correlations: 1 - R^2(t, u, v) =
    (1 - r_t^2)(1 - r_u.t^2)(1 - r_v.tu^2). A single u is sought among all columns; else the best u and v greedily, first u for each column
    given t, then v given both. Columns are judged in turn, raw before derived and less before more correlated with the measured value, and
    only those that passed can help to explain a later one. Of a pair of which neither the data nor the names tell the leak, both are found,
    and what is tied to either of them as well: a lost cause does less harm than a reported leak.
    """
    p = columns.shape[1]
    if p == 0 or not np.any(measured):
        return np.zeros(p, dtype=bool)
    unit = measured / np.sqrt(measured @ measured)
    lengths = np.sqrt((columns.astype(float) ** 2).sum(axis=0))
    with_measured = (columns.T @ unit) / np.where(lengths > 0, lengths, 1.0)
    left = np.maximum(1.0 - with_measured**2, 1e-12)
    found = left < 1 - ALIAS_R2
    single = with_measured.astype(np.float32)
    partial = correlations - np.outer(single, single)
    scale = np.sqrt(left).astype(np.float32)
    partial /= scale
    partial /= scale[:, None]

    def unexplained(j: int) -> np.ndarray:
        """Return what the measured value and each single column leave of column j; 1 where the measured value is not needed for it."""
        without = 1.0 - correlations[j].astype(float) ** 2
        with_it = left[j] * (1.0 - np.minimum(partial[j].astype(float) ** 2, 1.0))
        needed = (without > NOT_ROUNDING) & (with_it < OWN_SHARE * without) & ~alone
        needed[j] = False
        if logarithmic:
            needed &= in_proportion(partial[j].astype(float), lengths[j] * np.sqrt(left[j]), lengths * np.sqrt(left))
        return np.where(needed, with_it, 1.0)

    alone = found.copy()
    near = left * (1.0 - _nearest(partial).astype(float) ** 2) < 1 - ALIAS_R2 + ROUNDING
    tied = np.asarray([alone[j] or bool(near[j] and unexplained(j).min(initial=1.0) < 1 - ALIAS_R2) for j in range(p)])
    passed = np.zeros(p, dtype=bool)
    untold = np.zeros(p, dtype=bool)
    for j in np.lexsort((np.arange(p), np.round(np.abs(with_measured), 6), derived)):
        while not found[j]:
            members = _one_helper(np.where(passed | untold, unexplained(j), 1.0)) if tied[j] else []
            members = members or _two_helpers(j, partial, left, passed, correlations, with_measured, lengths if logarithmic else None)
            if not members:
                break
            names = derived[[j, *members]]
            place = int(np.argmax(names)) if names.sum() == 1 else leak_of([j, *members], tied)
            if place is None and len(members) == 2:
                place = 0
            if place is None:
                untold[[j, *members]] = found[[j, *members]] = True
            else:
                leak = [j, *members][place]
                found[leak] = True
                untold[leak] = False
            passed &= ~found
        passed[j] = not found[j]
    return found


def _nearest(correlations: np.ndarray) -> np.ndarray:
    """Return the largest absolute correlation of each column with another one, shape (p,)."""
    found = np.zeros(len(correlations), correlations.dtype)
    for start in range(0, len(correlations), AT_ONCE):
        block = np.abs(correlations[start : start + AT_ONCE])
        places = np.arange(len(block))
        block[places, start + places] = 0.0
        found[start : start + AT_ONCE] = block.max(axis=1)
    return found


def in_proportion(partial: np.ndarray, own: float | np.ndarray, others: np.ndarray) -> np.ndarray:
    """Tell whether a column's slope on each other one, or that one's on it, is nearly 1 or -1.

    Parameters
    ----------
    partial : ndarray, shape (p,)
        Their correlations given the measured value.
    own : float or ndarray, shape (p,)
    others : ndarray, shape (p,)
        Their standard deviations given the measured value, in common units.
    """
    ratio = own / np.where(others > 0, others, np.inf)
    slopes = np.abs(np.stack([partial * ratio, partial / np.where(ratio > 0, ratio, np.inf)]))
    return (np.abs(slopes - 1.0) < UNIT_SLOPE).any(axis=0)


def _one_helper(unexplained: np.ndarray) -> list[int]:
    best = int(np.argmin(unexplained))
    return [best] if unexplained[best] < 1 - ALIAS_R2 else []


def _two_helpers(
    j: int,
    partial: np.ndarray,
    left: np.ndarray,
    passed: np.ndarray,
    correlations: np.ndarray,
    with_measured: np.ndarray,
    lengths: np.ndarray | None,
) -> list[int]:
    """Return the two columns that, with the measured value, leave next to nothing of column j; empty if there are none.

    With `lengths`, the columns' standard deviations in common units, column j must be in proportion to both.
    """
    row = np.where(passed, partial[j], 0.0)
    first = int(np.argmax(np.abs(row)))
    rest = 1.0 - min(float(row[first]) ** 2, 1.0)
    others = 1.0 - np.minimum(partial[first] ** 2, 1.0)
    second = np.where(
        passed & (others > 1e-4), (row - row[first] * partial[first]) / np.sqrt(np.maximum(max(rest, 1e-9) * others, 1e-12)), 0.0
    )
    second[first] = 0.0
    other = int(np.argmax(np.abs(second)))
    unexplained = left[j] * rest * (1.0 - min(float(second[other]) ** 2, 1.0))
    helpers = [first, other]
    slopes = _needs_measured(j, helpers, correlations, with_measured) if unexplained < 1 - ALIAS_R2 else None
    if slopes is None or (lengths is not None and np.any(np.abs(np.abs(slopes * lengths[j] / lengths[helpers]) - 1) > 2 * UNIT_SLOPE)):
        return []
    return helpers


def _needs_measured(column: int, helpers: list[int], correlations: np.ndarray, with_measured: np.ndarray) -> np.ndarray | None:
    """Return the slopes on the helpers, in standard deviations, if the column is explained only with the measured value; else None."""

    def solved(matrix: np.ndarray, vector: np.ndarray) -> tuple[float, np.ndarray]:
        slopes = np.linalg.lstsq(matrix, vector, rcond=1e-9)[0]
        return float(max(1.0 - vector @ slopes, 0.0)), slopes

    among = correlations[np.ix_(helpers, helpers)].astype(float)
    towards = correlations[helpers, column].astype(float)
    extended = np.block([[np.ones((1, 1)), with_measured[helpers][None, :]], [with_measured[helpers][:, None], among]])
    without, _ = solved(among, towards)
    with_it, slopes = solved(extended, np.concatenate(([with_measured[column]], towards)))
    return slopes[1:] if without > NOT_ROUNDING and with_it < 1 - ALIAS_R2 and with_it < OWN_SHARE * without else None

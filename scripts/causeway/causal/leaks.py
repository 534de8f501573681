"""Duration aliases: columns that are the measured time in other clothes, and would explain it perfectly without causing it.

They are recognised by name and by data. By data: within configurations, the column's logarithm follows from the logarithm of the measured
value and at most two other columns (cycles = time x clock; throughput = bytes / time), while without the measured value it does not.
"""

import re

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
CLOSE, OTHER = 0.9, 0.7
"""Of a pair of which one follows the measured value this closely by itself and the other does not, the first is the leak."""
THIRD_COLUMNS = 10
THIRD_CORRELATION = 0.15
EVIDENCE = 4.0
"""Difference of twice the log-likelihood from which third columns decide between the two of a pair."""
OWN_SHARE = 0.1
"""An alias loses this much: with the measured value the unexplained part shrinks below a tenth of what the other columns leave."""


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


def aliases_by_data(measured: np.ndarray, columns: np.ndarray, correlations: np.ndarray, derived: np.ndarray) -> np.ndarray:
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

    Returns
    -------
    ndarray of bool, shape (p,)

    Notes
    -----
    With t the measured value, the squared multiple correlation grows by partial correlations: 1 - R^2(t, u, v) =
    (1 - r_t^2)(1 - r_u.t^2)(1 - r_v.tu^2). The best u and v are sought greedily, first u for each column given t, then v given both.
    Of rate = amount / time both the rate and the amount follow from the other two. So columns are judged in turn, raw before derived
    and less before more correlated with the measured value, and only those that passed can help to explain a later one. Of a pair of which
    neither the data nor the names tell the leak, both are found unless one is not tied to the measured value at all: a lost cause does
    less harm than a reported leak.
    """
    p = columns.shape[1]
    found = np.zeros(p, dtype=bool)
    if p == 0 or not np.any(measured):
        return found
    unit = measured / np.sqrt(measured @ measured)
    lengths = np.sqrt((columns.astype(float) ** 2).sum(axis=0))
    with_measured = (columns.T @ unit) / np.where(lengths > 0, lengths, 1.0)
    left = np.maximum(1.0 - with_measured**2, 1e-12)
    found = left < 1 - ALIAS_R2
    partial = correlations - np.outer(with_measured, with_measured).astype(np.float32)
    scale = np.sqrt(left).astype(np.float32)
    partial /= scale
    partial /= scale[:, None]
    passed = np.zeros(p, dtype=bool)
    for j in np.lexsort((np.arange(p), np.round(np.abs(with_measured), 6), derived)):
        if found[j]:
            continue
        row = np.where(passed, partial[j], 0.0)
        first = int(np.argmax(np.abs(row)))
        rest = 1.0 - min(float(row[first]) ** 2, 1.0)
        others = 1.0 - np.minimum(partial[first] ** 2, 1.0)
        second = np.where(
            passed & (others > 1e-4), (row - row[first] * partial[first]) / np.sqrt(np.maximum(max(rest, 1e-9) * others, 1e-12)), 0.0
        )
        second[first] = 0.0
        other = int(np.argmax(np.abs(second)))
        for helpers, unexplained in (([first], rest), ([first, other], rest * (1.0 - min(float(second[other]) ** 2, 1.0)))):
            if left[j] * unexplained < 1 - ALIAS_R2 and _needs_measured(j, helpers, correlations, with_measured):
                found[j] = True
                if len(helpers) == 1 and derived[j] == derived[first]:
                    leak = leak_of_pair(with_measured, correlations[j], correlations[first], (j, first), measured.size)
                    tied = measured.size * with_measured[first] ** 2 > EVIDENCE
                    found[j], found[first] = leak != 1, leak == 1 or (leak is None and tied)
                    passed[first] = not found[first]
                break
        passed[j] = not found[j]
    return found


def leak_of_pair(with_measured: np.ndarray, with_one: np.ndarray, with_other: np.ndarray, pair: tuple[int, int], n_rows: int) -> int | None:
    """Tell which of two columns, each a function of the other and the measured value, is the leak: 0, 1, or None if nothing tells.

    Of rate = amount / time, both columns tell the time given the other. But the amount was there before the time: a third column that goes
    with the time goes with the amount only if it is tied to it otherwise, and one that goes with the amount has no news about the time once
    the amount is known. Of the rate, neither holds.

    Parameters
    ----------
    with_measured, with_one, with_other : ndarray, shape (p,)
        Correlations of all columns with the measured value and with the two.
    pair : tuple of int
        Positions of the two among the p columns.
    n_rows : int

    Notes
    -----
    For an original, each third column satisfies one of two vanishing correlations: with it, or with the time given it. What is left of the
    smaller one is summed over the columns nearest to the pair or to the time. The time itself tells too: an amount need not go with it, a
    rate does. Where the two contradict each other, nothing is told.
    """
    own = np.abs(with_measured[list(pair)])
    if own.max() > CLOSE and own.min() < OTHER:
        return int(own[1] > own[0])
    strength = np.maximum(np.maximum(np.abs(with_one), np.abs(with_other)), np.abs(with_measured))
    strength[list(pair)] = 0.0
    strength[with_measured**2 > ALIAS_R2] = 0.0
    third = np.argsort(-strength, kind="stable")[:THIRD_COLUMNS]
    third = third[strength[third] > THIRD_CORRELATION]
    violated = []
    for own, position in ((with_one, pair[0]), (with_other, pair[1])):
        of_time = float(with_measured[position])
        partial = (with_measured[third] - own[third] * of_time) ** 2
        partial /= np.maximum(1 - own[third] ** 2, 1e-3) * max(1 - of_time**2, 1e-3)
        violated.append((float(np.minimum(np.minimum(partial, own[third] ** 2), 1.0).sum()), of_time**2))
    told = {int(other > one) for one, other in zip(*violated, strict=True) if n_rows * abs(other - one) > EVIDENCE}
    return told.pop() if len(told) == 1 else None


def _needs_measured(column: int, helpers: list[int], correlations: np.ndarray, with_measured: np.ndarray) -> bool:
    """Tell whether the column is explained only with the measured value beside its helpers."""

    def unexplained(matrix: np.ndarray, vector: np.ndarray) -> float:
        return float(max(1.0 - vector @ np.linalg.lstsq(matrix, vector, rcond=1e-9)[0], 0.0))

    among = correlations[np.ix_(helpers, helpers)].astype(float)
    towards = correlations[helpers, column].astype(float)
    extended = np.block([[np.ones((1, 1)), with_measured[helpers][None, :]], [with_measured[helpers][:, None], among]])
    without = unexplained(among, towards)
    with_it = unexplained(extended, np.concatenate(([with_measured[column]], towards)))
    return with_it < 1 - ALIAS_R2 and with_it < OWN_SHARE * without

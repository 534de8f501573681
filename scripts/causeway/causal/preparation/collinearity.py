"""Deterministic columns: totals, parts, ratios and percentages of others. Left in, they decide the false discovery
rate.

Of hit + miss = requests only two can stay. Raw counters are kept before derived ones and short names before long ones,
so that totals and raw counters stay and parts and percentages go.
"""

import numpy as np

from causeway.causal.data.counter_names import derived_name

DETERMINED_R2 = 0.995
NEIGHBOURS = 10
RIDGE = 1e-7


def precedence(names: list[str]) -> list[int]:
    """Return positions of names in the order in which columns are kept: raw before derived, short before long, then
    by name.
    """
    return sorted(range(len(names)), key=lambda i: (derived_name(names[i]), len(names[i]), names[i]))


def determined_columns(
    levels: np.ndarray, logs: np.ndarray, known: np.ndarray, positive: np.ndarray, names: list[str], order: list[int]
) -> dict[int, list[int]]:
    """Find columns that follow from the columns kept before them, in levels or in logarithms.

    Parameters
    ----------
    levels : ndarray of float, shape (n_rows, p)
        Columns, centred within configurations, not winsorised (clipping breaks sums).
    logs : ndarray of float, shape (n_rows, p)
        Their logarithms, zeros at a floor below the smallest positive value; NaN columns where values are negative.
    known : ndarray of bool, shape (n_rows, p)
        Where a value was measured: a relation in levels is tested on rows where all its columns are.
    positive : ndarray of bool, shape (n_rows, p)
        Where a value is known and above 0: a relation in logarithms is tested on rows where all its columns are.
    names : list of str
    order : list of int
        Precedence of the columns.

    Returns
    -------
    dict of int to list of int
        For each determined column, the columns that determine it.
    """
    found: dict[int, list[int]] = {}
    usable = ~np.isnan(logs[0]) if len(logs) else np.zeros(len(names), dtype=bool)
    for matrix, candidates, valid in ((levels, np.ones(len(names), dtype=bool), known), (logs, usable, positive)):
        _one_scale(matrix, valid, [i for i in order if candidates[i]], found)
    return found


def _one_scale(matrix: np.ndarray, valid: np.ndarray, positions: list[int], found: dict[int, list[int]]) -> None:
    """Go through the columns in order and add to `found` those that the kept ones before them determine.

    A column that was found on another scale can still help to determine others: it is itself a function of kept ones.
    """
    if len(positions) < 3:
        return
    columns = np.ascontiguousarray(
        matrix.T[positions], dtype=np.float64
    )  # column after column: few are looked at together
    valid = np.ascontiguousarray(valid.T[positions])
    whole = valid.all(axis=1)
    columns -= columns.mean(axis=1)[:, None]
    lengths = np.sqrt((columns**2).sum(axis=1))
    columns /= np.where(lengths > 0, lengths, 1.0)[:, None]
    unit = columns.astype(np.float32)
    correlations = unit @ unit.T
    del unit
    kept = np.zeros(len(positions), dtype=bool)
    for here, position in enumerate(positions):
        if position in found:
            kept[here] = True
            continue
        strength = np.where(kept[:here], np.abs(correlations[here, :here]), 0.0)
        near = (
            np.argpartition(-strength, NEIGHBOURS - 1)[:NEIGHBOURS]
            if here > NEIGHBOURS
            else np.flatnonzero(kept[:here])
        )
        near = near[strength[near] > 0.02]
        if near.size >= 2:
            if whole[here] and whole[near].all():
                among = correlations[np.ix_(near, near)].astype(float)
                towards = correlations[near, here].astype(float)
                weights = np.linalg.solve(among + RIDGE * np.eye(near.size), towards)
                holds = 2 * weights @ towards - weights @ among @ weights > DETERMINED_R2 and _tight(
                    columns[here], weights @ columns[near]
                )
            else:
                holds, weights = _on_positive_rows(columns, valid, here, near)
            if holds:
                found[position] = [positions[i] for i, weight in zip(near, weights, strict=True) if abs(weight) > 0.03]
                continue
        kept[here] = True


def _on_positive_rows(columns: np.ndarray, valid: np.ndarray, here: int, near: np.ndarray) -> tuple[bool, np.ndarray]:
    """Tell whether the relation holds on the rows where all its columns are positive, with its weights.

    Neighbours that are zero in much of these rows cannot take part and get weight 0.
    """
    rows = valid[here]
    usable = near[valid[near][:, rows].mean(axis=1) > 0.9] if rows.any() else near[:0]
    rows = rows & valid[usable].all(axis=0)
    weights = np.zeros(near.size)
    if usable.size < 2 or rows.sum() < max(50, 0.2 * rows.size):
        return False, weights
    part = columns[usable][:, rows].T
    part = part - part.mean(axis=0)
    column = columns[here, rows] - columns[here, rows].mean()
    total = float(column @ column)
    if total <= 0:
        return False, weights
    fitted = np.linalg.lstsq(part, column, rcond=1e-7)[0]
    weights[np.isin(near, usable)] = fitted
    residual = column - part @ fitted
    return 1 - float(residual @ residual) / total > DETERMINED_R2 and _tight(column, part @ fitted), weights


def _tight(column: np.ndarray, fitted: np.ndarray) -> bool:
    """Tell whether the relation holds for the bulk of the rows, not only for a few extreme ones that carry the
    variance.
    """
    spread = np.median(np.abs(column - np.median(column)))
    return bool(np.median(np.abs(column - fitted)) <= 0.15 * spread) if spread > 0 else True

"""Where no single column tells the target at its own launch: pairs of columns, and columns one launch earlier.

Nothing is named a cause by this; the sentence of a search without a cause says what goes with the target instead, so
that "would have been seen" is said of what was searched.
"""

from collections.abc import Sequence

import numpy as np
from scipy.special import fdtrc

from causeway.causal.data.observations import Candidate, Observations
from causeway.causal.data.outcome import Association
from causeway.causal.selection.forward import ALPHA
from causeway.causal.selection.linear_model import linear_model_of
from causeway.causal.selection.stages import Stages
from causeway.causal.statistics.basis import GroupCentring
from causeway.numeric.effective_size import autocorrelations, bartlett_factor

MOST_COLUMNS = 30
"""Columns whose pairs are scanned: those that tell most by themselves; 435 pairs."""
LEAST_SHARE = 0.05
"""Share of the variance that is worth a sentence where no column alone tells anything."""


def association_beyond(
    stages: Stages, candidates: Sequence[Candidate], rows: Observations, controls: Sequence[int] = ()
) -> Association | None:
    """Return what goes most closely with the deviation among products of two columns and columns one launch earlier;
    None if nothing does at `ALPHA` over all that are scanned, or with more than `LEAST_SHARE` of its variance.

    Parameters
    ----------
    stages : Stages
    candidates : sequence of Candidate
        In the order of the search.
    rows : Observations
        In time order.
    controls : sequence of int
        Candidates that are never named.
    """
    stage = stages.mean
    model = linear_model_of(stage.problem, stage.response, list(stage.pruner.given))
    explained, df = model.scan()
    numbers = [
        index
        for index in np.argsort(-explained, kind="stable").tolist()
        if df[index] and not candidates[index].levels and index not in controls
    ]
    firsts = [candidates[index].first for index in numbers]
    best = numbers[:MOST_COLUMNS]
    pairs = [(i, j) for i in range(len(best)) for j in range(i)]
    products = [firsts[i] * firsts[j] for i, j in pairs]
    earlier = [_one_launch_earlier(column, rows) for column in firsts]
    if not earlier:
        return None
    columns = np.column_stack([*products, *earlier])
    squares, sizes = _partial_squares(columns, stage.centring, model.residual, stage.problem.n_lags)
    left = np.maximum(stage.problem.n_independent / sizes - model.q.shape[1] - 2, 1.0)
    p_values = fdtrc(1, left, squares / np.maximum(1 - squares, 1e-12) * left)
    at = int(np.lexsort((-squares, p_values))[0])
    if p_values[at] * p_values.size > ALPHA or squares[at] < LEAST_SHARE:
        return None
    is_pair = at < len(pairs)
    names = [candidates[numbers[i]].name for i in (pairs[at] if is_pair else (at - len(pairs),))]
    return Association(features=tuple(sorted(names)), is_earlier=not is_pair, share=float(squares[at]))


def _one_launch_earlier(column: np.ndarray, rows: Observations) -> np.ndarray:
    """Return the values of a column at the launch of the kernel before, on the same rank where ranks are known; at the
    first one its own, shape (n_rows,).
    """
    rank = np.zeros(len(rows), int) if rows.launch is None else rows.launch["rank"]
    order = np.lexsort((np.arange(len(rows)), rank, rows.kernel))
    is_first = np.diff(rank[order], prepend=-1) != 0
    is_first |= np.diff(rows.kernel[order], prepend=-1) != 0
    before = np.empty(len(rows), int)
    before[order] = np.where(is_first, order, np.roll(order, 1))
    return column[before]


def _partial_squares(
    columns: np.ndarray, centring: GroupCentring, residual: np.ndarray, n_lags: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the squared correlation of each column with the residual, and what autocorrelation divides the rows by,
    shape (n_columns,) each.
    """
    weighted = centring.weighted(columns)
    lengths = np.sqrt((weighted**2).sum(axis=0))
    weighted /= np.where(lengths > 0, lengths, 1.0)
    total = float(residual @ residual)
    squares = (residual @ weighted) ** 2 / (total if total > 0 else 1.0)
    of_residual = autocorrelations(residual[:, None], n_lags)[0]
    return np.clip(squares, 0.0, 1.0), bartlett_factor(autocorrelations(weighted, n_lags), of_residual)

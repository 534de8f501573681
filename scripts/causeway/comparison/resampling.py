"""Block bootstrap of sums over cells, with blocks of at least five autocorrelation times.

References
----------
H. R. Kuensch, The jackknife and the bootstrap for general stationary observations, Ann. Stat. 17 (1989) 1217; D. N.
Politis and J. P. Romano, A circular block-resampling procedure for stationary data, in: R. LePage, L. Billard (eds.),
Exploring the Limits of Bootstrap, Wiley 1992, 263.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from causeway.numeric.block_resampling import TIMES_PER_BLOCK
from causeway.numeric.effective_size import blocked_correlation_time

GATHERED = 1 << 22
"""Sums that are looked up at once."""


@dataclass(frozen=True)
class Resampled:
    """Sums of resampled cells.

    Parameters
    ----------
    sums : list of ndarray of int64, shape (replicates, columns)
        One per table of cells; the rows of different tables belong to the same draw of blocks.
    blocks : float
        Independent blocks in the series.
    effective : float
        Cells over their autocorrelation time.
    """

    sums: list[np.ndarray]
    blocks: float
    effective: float


def resample(
    tables: Sequence[np.ndarray], influence: np.ndarray, replicates: int, rng: np.random.Generator
) -> Resampled:
    """Draw circular blocks of cells, the same ones from each table, as many as make a series of the same length.

    Parameters
    ----------
    tables : sequence of ndarray of int64, shape (cells, columns)
        Equally many cells each: one table, or the two of a pair of runs that launched the same sequence.
    influence : ndarray of float, shape (cells,)
        What each cell adds to the estimate: its autocorrelation sets the block length.
    replicates : int
    rng : Generator
    """
    n = influence.size
    time = blocked_correlation_time(influence)
    length = min(n, int(np.ceil(TIMES_PER_BLOCK * time)))
    blocks = -(-n // length)
    last = n - (blocks - 1) * length
    summed = []
    for table in tables:
        wrapped = np.concatenate([table, table[:length]])
        summed.append(np.concatenate([np.zeros((1, table.shape[1]), np.int64), np.cumsum(wrapped, axis=0)]))
    sums = [np.zeros((replicates, table.shape[1]), np.int64) for table in tables]
    step = max(1, GATHERED // blocks)
    for begin in range(0, replicates, step):
        starts = rng.integers(0, n, (min(step, replicates - begin), blocks))
        ends = starts + length
        ends[:, -1] = starts[:, -1] + last
        for total, prefix in zip(sums, summed, strict=True):
            for column in range(prefix.shape[1]):
                values = prefix[:, column]
                total[begin : begin + starts.shape[0], column] = (values[ends] - values[starts]).sum(axis=1)
    return Resampled(sums, n / length, n / time)

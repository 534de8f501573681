"""Block bootstrap of sums over cells, with blocks of at least five autocorrelation times.

References
----------
H. R. Kuensch, The jackknife and the bootstrap for general stationary observations, Ann. Stat. 17 (1989) 1217; D. N. Politis and
J. P. Romano, A circular block-resampling procedure for stationary data, 1992.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import fft

BLOCK_TIMES = 5
"""Autocorrelation times in a block."""
LEAST_STEPS, LEAST_SUMS = 12, 48
"""Steps of a series from which an autocorrelation is estimated, and sums of steps."""
GATHERED = 1 << 22
"""Sums that are looked up at once."""


def generator(seed: int, *parts: object) -> np.random.Generator:
    """Return a generator on a seed derived from the configured one and the names of what it is for, never from the order of the work."""
    text = "\x1f".join(str(part) for part in (seed, *parts))
    return np.random.default_rng(int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big"))


def autocorrelation_time(values: np.ndarray) -> float:
    """Return the autocorrelation time of a series in its own steps, at least 1: the longest that is seen at any coarseness.

    Launches of different kernels take turns, so what follows at once may be unrelated and what follows an iteration later is not: the time
    is estimated on the series and on its sums over 2, 4, 8 ... steps, as long as `LEAST_SUMS` of them are left.

    Parameters
    ----------
    values : ndarray of float, shape (n,)
    """
    longest, width = 1.0, 1
    summed = values - values.mean() if values.size else values
    while summed.size >= (LEAST_STEPS if width == 1 else LEAST_SUMS):
        longest = max(longest, 1.0 + width * (_time_at_one_coarseness(summed, 2.0 if width == 1 else 3.0) - 1.0))
        width *= 2
        summed = summed[: summed.size // 2 * 2].reshape(-1, 2).sum(axis=1)
    return longest


def _time_at_one_coarseness(values: np.ndarray, beyond: float) -> float:
    """Return `1 + 2 sum rho` up to the first lag that is within `beyond` standard errors of white noise.

    It is at least what the first lag alone gives in an AR(1) process.

    The first lag is corrected for its bias in short series (Kendall, Note on bias in the estimation of autocorrelation, Biometrika 41
    (1954) 403): without, long times in short series are taken for half of what they are.
    """
    n = values.size
    centred = values - values.mean()
    if not centred.any():
        return 1.0
    size = fft.next_fast_len(2 * n, real=True)
    covariance = fft.irfft(np.abs(fft.rfft(centred, size)) ** 2, size)[: n // 2]
    rho = covariance[1:] / covariance[0]
    noise = np.flatnonzero(rho < beyond / np.sqrt(n))
    last = int(noise[0]) if noise.size else rho.size
    if last == 0:
        return 1.0
    first = min(rho[0] + (1 + 3 * rho[0]) / n, 1 - 1 / n)
    return float(max(1.0 + 2.0 * rho[:last].sum(), (1 + first) / (1 - first)))


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


def resample(tables: Sequence[np.ndarray], influence: np.ndarray, replicates: int, rng: np.random.Generator) -> Resampled:
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
    time = autocorrelation_time(influence)
    length = min(n, int(np.ceil(BLOCK_TIMES * time)))
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

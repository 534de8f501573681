"""Order bins by how much their target varies; choose those to keep and a control sample of the rest.

Causes sought among rows that were chosen by their outcome are biased, so a random sample of other bins is kept beside
them, each row with the probability with which it was chosen: weights of 1 / probability then restore the whole.
"""

import math

import numpy as np
import pyarrow as pa

from causeway.core.schemas import STATISTICS
from causeway.core.tables import SCHEMAS
from causeway.variability.bins.bins import BinTable

VARIANCE, Q1, MEDIAN, Q3 = (STATISTICS.index(name) for name in ("variance", "q1", "median", "q3"))
NORMAL_IQR = 0.7413
"""Interquartile range to standard deviation of a normal distribution, 1 / (2 * 0.6745): Arachchige, Prendergast and
Staudte, "Robust analogs to the coefficient of variation", Journal of Applied Statistics 49 (2022)."""


def robust_cv(q1: np.ndarray, median: np.ndarray, q3: np.ndarray) -> np.ndarray:
    """Return the robust coefficient of variation 0.7413 (q3 - q1) / median; NaN where the median is not positive."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(median > 0, NORMAL_IQR * (q3 - q1) / median, np.nan)


def scores(bins: BinTable, by: str) -> np.ndarray:
    """Return the score of each bin's target, by `variance`, `robust_cv` or `iqr`; NaN where undefined (a single
    launch, a zero median).
    """
    target = bins.statistics[:, 0]
    if by == "variance":
        return target[:, VARIANCE].copy()
    spread = (
        target[:, Q3] - target[:, Q1] if by == "iqr" else robust_cv(target[:, Q1], target[:, MEDIAN], target[:, Q3])
    )
    return np.where(bins.count > 1, spread, np.nan)


def rank_bins(
    bins: BinTable,
    by: str,
    keep_share: float,
    keep_count: int | None,
    control_ratio: float,
    control_min_rows: int,
    seed: int,
    keep_max_rows: int | None = None,
) -> pa.Table:
    """Return `ranking.parquet` in the order of the bins.

    Parameters
    ----------
    bins : BinTable
        Ordered by rank and bin; column 0 is the target.
    by : str
        `variance`, `robust_cv` or `iqr` of the target.
    keep_share, keep_count : float 0 to 1, int or None
        How many bins to keep: a share of them, rounded up, unless a number is given. Bins without a score are never
        kept.
    control_ratio : float
        Wanted launches in control bins per launch in kept bins.
    control_min_rows : int
        Kept and control launches shall be at least this many.
    seed : int
        Of the control sample: whether a bin is chosen depends on (seed, rank, bin) alone.
    keep_max_rows : int or None
        Only so many of the first bins are kept that they hold no more launches than this, but one at least: what is
        kept of a run of any length stays within the memory of the steps that read it.
    """
    score = scores(bins, by)
    nulls_last = np.isnan(score)
    by_score = np.lexsort((bins.bin, bins.rank, np.where(nulls_last, 0.0, -score), nulls_last))
    order = np.empty(score.size, np.int64)
    order[by_score] = np.arange(score.size)
    wanted = math.ceil(keep_share * score.size) if keep_count is None else keep_count
    wanted = min(wanted, int((~nulls_last).sum()))
    if keep_max_rows is not None:
        fitting = np.searchsorted(np.cumsum(bins.count[by_score[:wanted]]), keep_max_rows, side="right")
        wanted = min(wanted, max(1, int(fitting)))
    kept = order < wanted
    kept_rows = int(bins.count[kept].sum())
    rest_rows = int(bins.count[~kept].sum())
    chance = min(1.0, max(control_ratio * kept_rows, control_min_rows - kept_rows) / rest_rows) if rest_rows else 0.0
    control = ~kept & (uniform(seed, bins.rank, bins.bin) < chance)
    probability = np.where(kept, 1.0, chance)
    columns = {
        "rank": bins.rank,
        "bin": bins.bin,
        "score": pa.array(score, mask=nulls_last),
        "order": order,
        "kept": kept,
        "control": control,
        "inclusion_probability": pa.array(probability, mask=~(kept | control)),
    }
    return pa.table(columns).cast(SCHEMAS["ranking"])


def uniform(seed: int, *parts: np.ndarray) -> np.ndarray:
    """Hash integers to numbers in [0, 1): the finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014) over the
    seed and each part.

    Parameters
    ----------
    seed : int
    parts : ndarrays of int64, shape (n,)

    Returns
    -------
    ndarray of float64, shape (n,)
    """
    state = np.full(parts[0].shape, seed, np.uint64)
    with np.errstate(over="ignore"):
        for part in parts:
            state = state + part.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
            state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            state ^= state >> np.uint64(31)
    return (state >> np.uint64(11)) * 2.0**-53

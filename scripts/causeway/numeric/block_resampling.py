"""Blocks of successive rows, and resamples of whole blocks: rows of a time series that resemble their neighbours
stay together.

References
----------
H. R. Kuensch, The jackknife and the bootstrap for general stationary observations, Ann. Stat. 17 (1989) 1217.
"""

import numpy as np

from causeway.numeric.effective_size import autocorrelations, correlation_time, lag_count

TIMES_PER_BLOCK = 5
"""Autocorrelation times in a block: in a series whose correlation falls exponentially, that of a block's two ends is
below 1 %.
"""
MIN_BLOCKS = 10


def block_numbers(series: np.ndarray, n_rows: int) -> np.ndarray:
    """Return for each row the number of its block, blocks of at least five autocorrelation times of the series, at
    least ten of them.

    Parameters
    ----------
    series : ndarray of float, shape (n_rows,)
        In time order.
    n_rows : int

    Returns
    -------
    ndarray of int64, shape (n_rows,)
        0, 0, ..., 1, 1, ..., ascending. All blocks but the last are equally long.
    """
    time = correlation_time(autocorrelations(series[:, None] - series.mean(), lag_count(n_rows))[0])
    length = max(1, min(int(np.ceil(TIMES_PER_BLOCK * time)), n_rows // MIN_BLOCKS))
    return np.arange(n_rows) // length


def resampled_rows(blocks: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the rows of a resample of whole blocks, as many blocks as there are, drawn with replacement.

    Parameters
    ----------
    blocks : ndarray of int, shape (n_rows,)
        The number of each row's block, 0 .. n_blocks - 1.
    rng : Generator

    Returns
    -------
    ndarray of int64, shape (n_drawn,)
        Positions of rows, block after block; n_drawn is n_rows where all blocks are equally long.
    """
    order = np.argsort(blocks, kind="stable")
    starts = np.searchsorted(blocks[order], np.arange(blocks.max() + 2))
    drawn = rng.integers(0, blocks.max() + 1, blocks.max() + 1)
    sizes = starts[drawn + 1] - starts[drawn]
    before = np.cumsum(sizes) - sizes  # rows of the blocks drawn earlier
    return order[np.arange(sizes.sum()) + np.repeat(starts[drawn] - before, sizes)]

"""Weights of the rows in the draws behind an interval.

A draw gives each block of successive rows a weight instead of drawing it several times or not at all. A mean varies as
much as under resampling of blocks, but no block is ever left out: a level of a category that lies in two blocks of ten,
such as the one slow run of several, is missing from every ninth resample.

Levels keep their weight. How many launches ran on each rank is a fact of the run, no accident that another draw would
change; what a draw varies is how these launches did. Then the blocks of a level alone show how uncertain its mean is,
and k blocks show too little: under draws their mean has (k - 1) / (k + 1) of its variance. Intervals are widened for
that, and take Student's t of the level's blocks. A level in a single block shows nothing; its category is left to
vary.

References
----------
D. Rubin, The Bayesian bootstrap, Ann. Stat. 9 (1981) 130.
W. Deming, F. Stephan, On a least squares adjustment of a sampled frequency table when the expected marginal totals are
known, Ann. Math. Stat. 11 (1940) 427: raking.
"""

from collections.abc import Sequence

import numpy as np
from scipy.special import stdtrit

from causeway.causal.statistics.basis import two_valued

RAKING_ROUNDS = 5
"""Times the levels of several categories are given their weight in turn."""
FEWEST_BLOCKS = 2
"""Blocks in which each level of a category must lie for its levels to keep their weight: one shows no spread."""


class DrawWeights:
    """Draws of the rows' weights: blocks weigh exponentially distributed times, levels of categories and of two-valued
    numbers as in all rows.

    Parameters
    ----------
    weights : ndarray of float, shape (n_rows,), positive
    blocks : ndarray of int, shape (n_rows,)
        The number of each row's block, 0 .. n_blocks - 1.
    causes : sequence of ndarray, shape (n_rows,) or (n_rows, n_levels - 1)
        Numbers, and indicators of categories.
    n_draws : int
    rng : Generator

    Attributes
    ----------
    widening : ndarray of float, shape (n_causes,), at least 1
        How many times wider an interval of what each cause does must be than the draws say.
    """

    def __init__(
        self,
        weights: np.ndarray,
        blocks: np.ndarray,
        causes: Sequence[np.ndarray],
        n_draws: int,
        rng: np.random.Generator,
    ) -> None:
        self._weights = weights
        n_blocks = np.unique(blocks).size
        levels = []
        self.widening = np.ones(len(causes))
        for cause, codes in enumerate(map(_level_codes, causes)):
            if codes is None:
                continue
            pairs = np.unique(np.stack([codes, blocks]), axis=1)
            fewest = int(np.bincount(pairs[0]).min())
            if fewest >= FEWEST_BLOCKS:
                levels.append(codes)
                self.widening[cause] = max(_half_width(fewest) / _half_width(n_blocks), 1.0)
        self._parts = [blocks, *(levels or [np.zeros(weights.size, np.int64)])]
        totals = [np.bincount(part, weights) for part in self._parts]
        by_block = rng.standard_exponential((n_draws, int(blocks.max()) + 1))
        self._factors = [by_block, *(np.ones((n_draws, total.size)) for total in totals[1:])]
        for draw, row in enumerate(self.of_rows().T):
            for _ in range(RAKING_ROUNDS if len(levels) > 1 else 1):
                for part, total, factors in zip(self._parts[1:], totals[1:], self._factors[1:], strict=True):
                    factor = total / np.bincount(part, row)
                    factors[draw] *= factor
                    row = row * factor[part]

    def of_rows(self) -> np.ndarray:
        """Return the weights, float, shape (n_rows, n_draws), positive; made when asked for, since many are kept."""
        drawn = np.repeat(self._weights[None, :], len(self._factors[0]), axis=0)
        for part, factors in zip(self._parts, self._factors, strict=True):
            drawn *= factors[:, part]
        return drawn.T


def _half_width(blocks: int) -> float:
    """Return half a 90 % interval of the mean of some blocks, in its standard deviations under draws."""
    return float(stdtrit(blocks - 1, 0.95)) * np.sqrt((blocks + 1) / (blocks - 1))


def _level_codes(values: np.ndarray) -> np.ndarray | None:
    """Return the number of each row's level, 0, 1, ..., none of them empty; None for other numbers."""
    if values.ndim == 1:
        return (values > values.min()).astype(np.int64) if two_valued(values) else None
    codes = np.where(values.any(axis=1), values.argmax(axis=1) + 1, 0)
    return np.unique(codes, return_inverse=True)[1]

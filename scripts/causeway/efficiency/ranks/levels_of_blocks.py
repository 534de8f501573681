"""How long launches take in each block of time, whatever their mix: held against launches of the same configuration in
other blocks, with weights that are the same in all blocks.

A mean of all launches of a block, even of their deviations, moves where the mix of configurations does: the median of a
configuration is no mean, and is known to a step of a histogram. Here the deviation of a configuration in a block is
its own level plus that of the block (two-way layout, least squares; H. Scheffé, The Analysis of Variance, Wiley 1959).
A configuration weighs as much as it has launches, spread evenly over the blocks in which it runs. So what changes in
one block against another is what the configurations that run in both take, or what others that run beside them do.
"""

from dataclasses import dataclass

import numpy as np

from causeway.efficiency.ranks.duration_cells import BLOCKS, UNIT

DIGITS = 9
"""Of levels, so that what is equal but for the order of sums is equal: a step of `UNIT` is 6e-8."""


@dataclass(frozen=True, kw_only=True)
class BlockLevels:
    """Levels of the largest set of blocks that configurations link.

    Attributes
    ----------
    blocks : ndarray of int64, shape (k,)
        Ascending; those of the set.
    level : ndarray of float64, shape (k,)
        Log durations, about their mean.
    launches : int
        Launches of the configurations that run in two of these blocks or more.
    """

    blocks: np.ndarray
    level: np.ndarray
    launches: int


def levels_of_blocks(cells: np.ndarray) -> BlockLevels:
    """Return the levels of blocks of time.

    Parameters
    ----------
    cells : ndarray of int64, shape (configurations, 2, BLOCKS)
        `DurationCells.cells`.
    """
    count = cells[:, 0]
    total = cells[:, 1]
    runs = count > 0
    several = runs.sum(axis=1) > 1
    launches = count[several].sum(axis=1)
    share = runs[several] / runs[several].sum(axis=1, keepdims=True)
    weight = launches[:, None] * share
    mean = np.divide(total[several], UNIT * count[several], out=np.zeros(weight.shape), where=runs[several])
    beside = np.stack([(weight[:, [block]] * share).sum(axis=0) for block in range(BLOCKS)])
    own = mean - (share * mean).sum(axis=1, keepdims=True)
    right = (weight * own).sum(axis=0)
    found = _largest(beside > 0, weight.sum(axis=0), np.logical_or.reduce(runs))
    links = np.diag(weight.sum(axis=0)) - beside
    level = np.linalg.lstsq(links[np.ix_(found, found)], right[found], rcond=None)[0]
    in_set = np.isin(np.arange(BLOCKS), found)
    behind = int(launches[runs[several][:, in_set].any(axis=1)].sum())
    return BlockLevels(blocks=found, level=np.round(level - level.mean(), DIGITS), launches=behind)


def _largest(linked: np.ndarray, weight: np.ndarray, used: np.ndarray) -> np.ndarray:
    """Return the set of linked blocks with the most launches behind it, of equal ones the first, ascending.

    Parameters
    ----------
    linked : ndarray of bool, shape (BLOCKS, BLOCKS)
        Whether a configuration runs in both.
    weight : ndarray of float, shape (BLOCKS,)
    used : ndarray of bool, shape (BLOCKS,)
        Whether any launch is in it.
    """
    left = set(np.flatnonzero(used).tolist())
    best = np.zeros(0, np.int64)
    while left:
        reached = {min(left)}
        fresh = reached
        while fresh:
            fresh = set(np.flatnonzero(linked[sorted(fresh)].any(axis=0)).tolist()) - reached
            reached = reached | fresh
        left -= reached
        one = np.array(sorted(reached), np.int64)
        if not best.size or weight[one].sum() > weight[best].sum():
            best = one
    return best

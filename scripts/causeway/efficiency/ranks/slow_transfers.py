"""Which transfers of collectives are slow: beside their like, and by how much.

Alike are collectives of one operation and message size. Where an export has no sizes, a program's messages differ from
place to place in its steps: alike are then those of one place in the sequence that repeats, and without such a sequence
those of one launch shape. Where not even that is known, none is called slow.
"""

import numpy as np

from causeway.efficiency.ranks.collectives import MatchedCollectives

SIGMAS = 5.0
"""Robust standard deviations beyond which something is no chance: below one false alarm in a million of normal ones."""
ROBUST_SIGMA = 1.4826
"""Standard deviation of a normal distribution over its median absolute deviation."""
SLOW = 1.5
"""A transfer is slow where it takes this many times the lower quartile of its like, and more than `SIGMAS` robust
standard deviations.
"""
NEIGHBOURS = 4
"""Transfers at the same place of a sequence, nearest before and after, of which the second shortest is usual."""
EXPLAINED = 0.5
"""A sequence is one where at most this share stays slow of what is long without it."""
BLOCK = 1 << 16
"""Transfers that are held beside those at the same place at once."""
LONGEST = 512
SEARCHED = 10_000
"""Collectives of the longest sequence that is looked for, and collectives at the begin among which."""


def slow_transfers(
    transfer: np.ndarray, group: MatchedCollectives, chosen: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return which transfers take much longer than their like, and what each of these takes more.

    Parameters
    ----------
    transfer : ndarray of int64, shape (n,), ns
        Of the chosen collectives of the group.
    group : MatchedCollectives
    chosen : ndarray of bool, shape (collectives,)
        n of them.

    Returns
    -------
    slow : ndarray of bool, shape (n,)
    excess : ndarray of int64, shape (n,), ns
        Against the median of its like that are not slow; 0 where it is not slow.
    """
    size = group.bytes[chosen]
    shape = np.full(size.size, -1) if group.shape is None else group.shape[chosen]
    number = {word: at for at, word in enumerate(dict.fromkeys(group.operations))}
    operation = np.array([number[word] for word in group.operations])[chosen]
    slow = np.zeros(transfer.size, bool)
    excess = np.zeros(transfer.size, np.int64)
    known = size >= 0
    _among_kinds(transfer, np.flatnonzero(known), np.stack([operation, size.astype(np.int64)]), slow, excess)
    rest = np.flatnonzero(~known & (shape >= 0))
    _among_kinds(transfer, rest, np.stack([operation, shape]), slow, excess)
    unsized = np.flatnonzero(~known)
    period = _period(transfer[unsized])
    if period:
        slow[unsized], excess[unsized] = _at_positions(transfer[unsized], period)
    return slow, excess


def _among_kinds(transfer: np.ndarray, at: np.ndarray, kinds: np.ndarray, slow: np.ndarray, excess: np.ndarray) -> None:
    """Fill in which of some transfers are slow among those of equal `kinds`, of shape (any, n), and by how much."""
    if not at.size:
        return
    _, code = np.unique(kinds[:, at], axis=1, return_inverse=True)
    code = code.ravel()
    for kind in range(int(code.max()) + 1):
        mine = at[code == kind]
        own = transfer[mine]
        usual, middle = np.quantile(own, [0.25, 0.5])
        below = own[own <= middle]
        chance = SIGMAS * ROBUST_SIGMA * 2 * float(np.median(np.abs(below - usual)))
        slow[mine] = own > max(SLOW * usual, usual + chance)
        usual = np.median(own[~slow[mine]])
        excess[mine] = np.where(slow[mine], np.maximum(own - usual, 0), 0).astype(np.int64)


def _period(transfer: np.ndarray) -> int:
    """Return the length of the sequence that repeats: of those that leave slow at most the share `EXPLAINED` of what is
    longer than `SLOW` times the lower quartile the one with the smallest sum of its length and the transfers that it
    leaves slow, as a long one fits what is slow by chance; 0 where none does.
    """
    head = transfer[:SEARCHED]
    long = int((head > SLOW * np.quantile(head, 0.25)).sum()) if head.size else 0
    best = 0
    least = head.size
    for period in range(2, min(LONGEST, head.size // (NEIGHBOURS + 1)) + 1) if long else ():
        if period >= least:
            break
        left = int((head > SLOW * _usual(head, period)).sum())
        if left <= EXPLAINED * long and left + period < least:
            best = period
            least = left + period
    return best


def _at_positions(transfer: np.ndarray, period: int) -> tuple[np.ndarray, np.ndarray]:
    """Return which transfers are slow beside those at the same place of a sequence, and by how much."""
    blocks = range(0, transfer.size, BLOCK)
    usual = np.concatenate([_usual(transfer, period, slice(first, first + BLOCK)) for first in blocks])
    more = transfer - usual
    chance = SIGMAS * ROBUST_SIGMA * float(np.median(np.abs(more) / np.maximum(usual, 1)))
    slow = more > max(SLOW - 1, chance) * usual
    return slow, np.where(slow, more, 0)


def _usual(transfer: np.ndarray, period: int, rows: slice = slice(None)) -> np.ndarray:
    """Return the second shortest of the nearest transfers at the same place of a sequence, for each of `rows`; ns."""
    count = transfer.size
    offsets = period * np.array([step for far in range(1, NEIGHBOURS + 1) for step in (-far, far)])
    beside = np.arange(count)[rows, None] + offsets
    inside = (beside >= 0) & (beside < count)
    nearest = np.argsort(~inside, axis=1, kind="stable")[:, :NEIGHBOURS]
    near = np.take_along_axis(beside, nearest, axis=1)
    return np.sort(transfer[near], axis=1)[:, 1]

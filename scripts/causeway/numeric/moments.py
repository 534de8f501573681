"""Exact, mergeable moments of groups.

Moments are integers from the first row to the last division: count, sum and sum of squares, as multiples of a power of
two, in 32-bit limbs that are stored in 64 bits. Adding is exact, so the result depends neither on the order of rows nor
on how they are spread over ranks; the one rounding is that of the final division, to the nearest float64.
"""

import math

import numpy as np

from causeway.core.errors import CausewayError
from causeway.numeric.compiled import F8, I4, I8, compiled, float64, int64, void
from causeway.numeric.mpi import Ranks

LIMB_BITS = 32
LIMB_MASK = (1 << LIMB_BITS) - 1
FOLD_ROWS = 1 << 30
"""Rows after which carries are moved up: a limb takes 2^31 contributions of 32 bits before it could overflow."""


class Moments:
    """Exact count, sum, sum of squares, minimum and maximum per group.

    Parameters
    ----------
    groups : int
        Number of groups, numbered from 0.
    exponents : (int, int) or None
        For float64 values: the smallest and largest binary exponent (`exponent_range`) among all values of all ranks.
        None for int64.

    Attributes
    ----------
    table : ndarray of int64, shape (groups, 1 + limbs of the sum + limbs of the sum of squares)
        Summed over ranks by plain integer addition after `fold`.
    low, high : ndarray, shape (groups,)
        Extremes; where a group is empty, the largest and the smallest number of the type.
    """

    def __init__(self, groups: int, exponents: tuple[int, int] | None = None) -> None:
        self.floating = exponents is not None
        if exponents is not None:
            lowest, highest = exponents
            self.unit = lowest - 53
            self.sum_limbs = (highest - lowest) // LIMB_BITS + 4
            square_limbs = (2 * (highest - lowest) + 52) // LIMB_BITS + 4
            self.low = np.full(groups, np.inf)
            self.high = np.full(groups, -np.inf)
        else:
            self.unit = 0
            self.sum_limbs = 2
            square_limbs = 4
            limits = np.iinfo(np.int64)
            self.low = np.full(groups, limits.max)
            self.high = np.full(groups, limits.min)
        self.table = np.zeros((groups, 1 + self.sum_limbs + square_limbs), np.int64)
        self.unfolded = 0

    def add(self, group: np.ndarray, value: np.ndarray) -> None:
        """Add values to their groups.

        Parameters
        ----------
        group : ndarray of int32, shape (n,)
            Numbers of groups, 0 .. groups - 1.
        value : ndarray, shape (n,)
            int64, or finite float64 within `exponents`.
        """
        group = np.ascontiguousarray(group, np.int32)
        if self.floating:
            _add_floats(group, value, self.unit, self.sum_limbs, self.table, self.low, self.high)
        else:
            _add_integers(group, value, self.table, self.low, self.high)
        self.unfolded += value.size
        if self.unfolded >= FOLD_ROWS:
            self.fold()

    def fold(self) -> None:
        """Move carries up, so that every limb but the highest of each number is below 2^32 and tables of many ranks
        can be added.
        """
        limbs = self.table.shape[1]
        for column in range(1, limbs):
            if column in (self.sum_limbs, limbs - 1):
                continue
            self.table[:, column + 1] += self.table[:, column] >> LIMB_BITS
            self.table[:, column] &= LIMB_MASK
        self.unfolded = 0

    def merge(self, other: "Moments") -> None:
        """Add the values of another instance of the same groups and exponents."""
        self.fold()
        other.fold()
        self.table += other.table
        self.low = np.minimum(self.low, other.low)
        self.high = np.maximum(self.high, other.high)

    def reduce(self, ranks: Ranks) -> None:
        """Add the values of all ranks."""
        self.fold()
        self.table = ranks.total(self.table)
        self.low = ranks.lowest(self.low)
        self.high = ranks.highest(self.high)

    @property
    def count(self) -> np.ndarray:
        """Values per group; int64, shape (groups,)."""
        return self.table[:, 0]

    def sums(self) -> list[tuple[int, int, int]]:
        """Return (count, sum, sum of squares) per group as Python integers, the sums in multiples of `2**unit` and of
        `2**(2 * unit)`.
        """
        split = 1 + self.sum_limbs
        totals = [_joined(self.table[:, 1:split]), _joined(self.table[:, split:])]
        return list(zip(self.table[:, 0].tolist(), *totals, strict=True))

    def total(self) -> np.ndarray:
        """Sum per group, correctly rounded; float64, shape (groups,)."""
        return np.array([_scaled(total, 1, self.unit) for _, total, _ in self.sums()], float)

    def mean(self) -> np.ndarray:
        """Arithmetic mean per group, correctly rounded; float64, shape (groups,), NaN for an empty group."""
        return np.array([_scaled(total, n, self.unit) if n else np.nan for n, total, _ in self.sums()], float)

    def variance(self) -> np.ndarray:
        """Sample variance (ddof 1) per group, correctly rounded; float64, shape (groups,), NaN below two values.

        (n sum(x^2) - sum(x)^2) / (n (n - 1)): exact in integers, so it does not cancel.
        """
        exact = [
            _scaled(n * squares - total * total, n * (n - 1), 2 * self.unit) if n > 1 else np.nan
            for n, total, squares in self.sums()
        ]
        return np.array(exact, float)


def _joined(limbs: np.ndarray) -> list[int]:
    total = limbs[:, -1].astype(object)
    for column in range(limbs.shape[1] - 2, -1, -1):
        total = total * (1 << LIMB_BITS) + limbs[:, column].astype(object)
    return total.tolist()


def _scaled(numerator: int, denominator: int, exponent: int) -> float:
    """Return numerator * 2^exponent / denominator: Python divides integers with one, correct rounding."""
    return numerator / (denominator << -exponent) if exponent < 0 else (numerator << exponent) / denominator


def exponent_range(value: np.ndarray) -> tuple[int, int] | None:
    """Return the smallest and largest binary exponent (that of `frexp`) of values; None if all are zero.

    Parameters
    ----------
    value : ndarray of float64, shape (n,)
        Finite.
    """
    exponent = np.frexp(value)[1][value != 0]
    return (int(exponent.min()), int(exponent.max())) if exponent.size else None


def require_finite(value: np.ndarray, first_row: int, what: str) -> None:
    """Refuse NaN and infinities: an average that holds one says nothing.

    Parameters
    ----------
    value : ndarray of float64, shape (n,)
    first_row : int
        Number of the first of them.
    what : str
        What is measured, for the message.

    Raises
    ------
    CausewayError
        Naming `what` and the row, counted from `first_row`.
    """
    bad = np.flatnonzero(~np.isfinite(value))
    if bad.size:
        raise CausewayError(
            f"{what}: row {first_row + bad[0]} holds {value[bad[0]]}, which is no number;"
            " expected finite values, or none (null) where nothing was measured"
        )


@compiled(void(I4, I8, int64[:, ::1], int64[::1], int64[::1]))
def _add_integers(group, value, table, low, high):
    mask = np.uint64(LIMB_MASK)
    half = np.uint64(LIMB_BITS)
    for i in range(value.size):
        g = group[i]
        v = value[i]
        low[g] = min(low[g], v)
        high[g] = max(high[g], v)
        # no `row = table[g]`: making a view takes longer than the sums
        table[g, 0] += 1
        table[g, 1] += v & LIMB_MASK
        table[g, 2] += v >> LIMB_BITS
        magnitude = np.uint64(abs(v))
        a = magnitude & mask
        b = magnitude >> half
        square = a * a
        table[g, 3] += np.int64(square & mask)
        table[g, 4] += np.int64(square >> half)
        if b != 0:  # beyond 4.3 s in nanoseconds: rare
            product = a * b
            table[g, 4] += 2 * np.int64(product & mask)
            table[g, 5] += 2 * np.int64(product >> half)
            square = b * b
            table[g, 5] += np.int64(square & mask)
            table[g, 6] += np.int64(square >> half)


@compiled(void(int64[:, ::1], int64, int64, int64, int64, int64))
def _put(table, g, first, magnitude, shift, sign):
    """Add sign * magnitude * 2^shift to the limbs of group g that begin at `first`; magnitude < 2^54, so it touches
    three limbs.
    """
    limb = first + shift // 32
    offset = shift % 32
    table[g, limb] += sign * ((magnitude << offset) & LIMB_MASK)
    table[g, limb + 1] += sign * ((magnitude >> (32 - offset)) & LIMB_MASK)
    table[g, limb + 2] += sign * ((magnitude >> 32) >> (32 - offset))


@compiled(void(I4, F8, int64, int64, int64[:, ::1], float64[::1], float64[::1]))
def _add_floats(group, value, unit, sum_limbs, table, low, high):
    for i in range(value.size):
        g = group[i]
        v = value[i]
        table[g, 0] += 1
        low[g] = min(low[g], v)
        high[g] = max(high[g], v)
        if v == 0.0:
            continue
        fraction, exponent = math.frexp(v)
        whole = np.int64(fraction * 9007199254740992.0)  # 2^53: the mantissa as an integer
        shift = exponent - 53 - unit
        sign = 1 if whole > 0 else -1
        whole = abs(whole)
        _put(table, g, 1, whole, shift, sign)
        upper = whole >> 26
        lower = whole & 0x3FFFFFF
        first = 1 + sum_limbs
        _put(table, g, first, upper * upper, 2 * shift + 52, 1)
        _put(table, g, first, 2 * upper * lower, 2 * shift + 26, 1)
        _put(table, g, first, lower * lower, 2 * shift, 1)

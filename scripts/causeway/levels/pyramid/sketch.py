"""Quantiles of bounded relative error, from counts of logarithmic buckets.

The buckets are those of DDSketch (Masson, Rim and Lee, "DDSketch: a fast and fully-mergeable quantile sketch with
relative-error guarantees", VLDB 2019), as the library `ddsketch` defines them: a quantile differs from the value of its
rank by at most the stated relative error. Counts of buckets are exact integers, so sketches of neighbouring cells and
streams merge by addition, in any order, without loss. What the library lacks is speed, so values find their bucket by a
table that is made with its own mapping.
"""

import numpy as np
from ddsketch.mapping import LogarithmicMapping

from causeway.numeric.compiled import I8, U2, bits_of, compiled_borrowing, int64

LARGEST = (1 << 53) - 1
"""Values above (104 days in ns) count as this one; the exact maximum stands beside the sketch."""
SUB_BITS = 6
"""Each octave has 2^6 entries in the table that gives a value's first possible bucket."""
HEAD_SHIFT = 52 - SUB_BITS
FIRST_HEAD = 1023 << SUB_BITS
"""Of the bits of a float64: what is left of them is its exponent and first mantissa bits; those of 1.0."""
SMALLEST_ERROR = 0.01
"""Below it a table entry would span several buckets."""


class Buckets:
    """The buckets of non-negative integers.

    Parameters
    ----------
    error : float
        Relative error of quantiles, from `SMALLEST_ERROR` up to 0.5.

    Attributes
    ----------
    upper : ndarray of int64, shape (buckets,)
        Largest integer of each bucket, ascending; bucket 0 holds 0 alone, and bucket k + 1 what the library's mapping
        gives the key k.
    first : ndarray of uint16
        For the exponent and first mantissa bits of a float64, the bucket of the smallest integer that has them.
    """

    def __init__(self, error: float) -> None:
        if not SMALLEST_ERROR <= error <= 0.5:
            raise ValueError(f"relative error {error}; expected {SMALLEST_ERROR} to 0.5")
        self.error = error
        self.mapping = LogarithmicMapping(error)
        last = self.mapping.key(LARGEST)
        self.upper = np.array([0, *(self._largest(key) for key in range(last + 1))], np.int64)
        self.upper[-1] = LARGEST
        heads = np.arange(
            np.float64(1).view(np.int64) >> (52 - SUB_BITS), (np.float64(LARGEST).view(np.int64) >> (52 - SUB_BITS)) + 1
        )
        smallest = np.ceil((heads << (52 - SUB_BITS)).view(np.float64)).astype(np.int64)
        self.first = np.searchsorted(self.upper, np.minimum(smallest, LARGEST)).astype(np.uint16)

    def _largest(self, key: int) -> int:
        """Return the largest integer whose key is at most `key`."""
        guess = int(min(self.mapping.gamma**key, LARGEST))
        while guess > 1 and self.mapping.key(guess) > key:
            guess -= 1
        while guess < LARGEST and self.mapping.key(guess + 1) <= key:
            guess += 1
        return guess

    def __len__(self) -> int:
        return self.upper.size


@compiled_borrowing(int64(int64, I8, U2))
def bucket_of(value, upper, first):
    """Return the bucket of a value; 0 for one that is negative."""
    bucket = np.int64(0)
    if 0 < value <= LARGEST:
        bucket = np.int64(first[(bits_of(float(value)) >> HEAD_SHIFT) - FIRST_HEAD])
        while upper[bucket] < value:
            bucket += 1
    elif value > LARGEST:
        bucket = np.int64(upper.size - 1)
    return bucket

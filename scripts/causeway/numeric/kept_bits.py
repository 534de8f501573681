"""Numbers for drawings with as many bits as a drawing shows, so that they compress."""

import numpy as np


def with_bits(values: np.ndarray, bits: int) -> np.ndarray:
    """Return numbers rounded to few bits.

    Parameters
    ----------
    values : ndarray of float, any shape
    bits : int
        Behind the leading one, 1 to 22.

    Returns
    -------
    ndarray of float32, the same shape
        Off by at most 2 to the power of -(bits + 1) of a value; powers of two, 0 and NaN stay what they are.
    """
    dropped = np.uint32(23 - bits)
    held = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((held + np.uint32(1 << int(dropped) - 1)) >> dropped << dropped).view(np.float32)

"""Mode `ldp`: each client adds its own noise, and nobody needs to be trusted; a baseline, since sums are then far noisier.

Optimised unary encoding (Wang et al., USENIX Security 2017): of a one-hot vector, the one is kept with probability 1/2 and each zero turned
on with q = 1 / (e^eps + 1). A client reports its application and the duration bin of one launch, with half of the budget each.
"""

import math
import secrets

import numpy as np

from causeway.errors import CausewayError
from causeway.fleet.envelope import RefusedError
from causeway.fleet.layout import Layout

SECTIONS = ("applications", "durations")
_ONE = 1 << 32


def flip_word(epsilon: float) -> int:
    """Return q as a multiple of 2**-32, rounded up: the probability that is really used, so that epsilon is never exceeded.

    With keep probability 1/2 and flip probability q the loss is ln((1/2)(1 - q) / ((1/2) q)) = ln(1/q - 1), which falls as q grows.
    """
    if not epsilon > 0:
        raise CausewayError(f"epsilon is {epsilon}, expected above 0")
    return math.ceil(_ONE / (math.exp(epsilon) + 1))


def spent(epsilon: float) -> float:
    """Return the privacy loss of one section with the probabilities that are really used."""
    return math.log(_ONE / flip_word(epsilon) - 1)


def cells_of(layout: Layout) -> int:
    """Return the number of cells that this mode reports."""
    return sum(layout.by_name[name].rows * layout.by_name[name].columns for name in SECTIONS)


def one_hot(vector: np.ndarray, layout: Layout, chance: float) -> np.ndarray:
    """Return the two sections as one-hot flags: of a section's units, the one that `chance` in [0, 1) falls on."""
    flags = []
    for name in SECTIONS:
        cells = vector[layout.by_name[name].cells].astype(np.int64)
        hot = np.zeros(len(cells), bool)
        if cells.any():
            hot[np.searchsorted(np.cumsum(cells), int(chance * cells.sum()), side="right")] = True
        flags.append(hot)
    return np.concatenate(flags)


def randomise(flags: np.ndarray, epsilon: float, drawn: np.ndarray | None = None) -> bytes:
    """Return randomised flags, packed. `drawn` (uint32 per flag) is for simulations; clients leave it out and use the system's entropy."""
    if drawn is None:
        drawn = np.frombuffer(secrets.token_bytes(4 * len(flags)), np.uint32)
    limit = np.where(flags, np.uint32(_ONE // 2), np.uint32(flip_word(epsilon / len(SECTIONS))))
    return np.packbits(drawn < limit).tobytes()


def flags_of(body: bytes, cells: int) -> np.ndarray:
    """Return the flags of a report; raises `RefusedError` for the wrong length."""
    if len(body) != -(-cells // 8):
        raise RefusedError("length")
    return np.unpackbits(np.frombuffer(body, np.uint8), count=cells)


def estimate(sums: np.ndarray, reports: int, epsilon: float) -> tuple[np.ndarray, float]:
    """Return unbiased counts, float64, and their standard deviation for cells that are rarely set.

    (sum - n q) / (1/2 - q), with variance n q (1 - q) / (1/2 - q)**2 (Wang et al. 2017, section 4).
    """
    q = flip_word(epsilon / len(SECTIONS)) / _ONE
    return (sums - reports * q) / (0.5 - q), math.sqrt(reports * q * (1 - q)) / (0.5 - q)

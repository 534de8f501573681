"""Mode `ldp`: local differential privacy; each client adds its own noise and trusts no server. A baseline: sums are
then far noisier.

Optimised unary encoding (Wang et al., USENIX Security 2017): of a one-hot vector, the one is kept with probability 1/2
and each zero turned on with q = 1 / (e^eps + 1). A client reports its application and the duration bin of one launch,
with half of the budget each.
"""

import math
import secrets

import numpy as np

from causeway.core.errors import CausewayError
from causeway.fleet.protection.envelope import ReportRefusedError
from causeway.fleet.report_layout import ReportLayout

SECTIONS = ("applications", "durations")
_ONE = 1 << 32


def flip_threshold(epsilon: float) -> int:
    """Return q as a multiple of 2**-32, rounded up, so that epsilon is never exceeded.

    Raises `CausewayError` unless epsilon is above 0.

    With keep probability 1/2 and flip probability q the privacy loss is ln((1/2)(1 - q) / ((1/2) q)) = ln(1/q - 1),
    which falls as q grows.
    """
    if not epsilon > 0:
        raise CausewayError(f"epsilon is {epsilon}, expected above 0")
    return math.ceil(_ONE / (math.exp(epsilon) + 1))


def flip_probability(epsilon: float) -> float:
    """Return q of each section of a report, as it is drawn; `epsilon` is that of the whole report."""
    return flip_threshold(epsilon / len(SECTIONS)) / _ONE


def cells_of(layout: ReportLayout) -> int:
    """Return the number of cells that this mode reports."""
    return sum(layout.by_name[name].rows * layout.by_name[name].columns for name in SECTIONS)


def one_hot(vector: np.ndarray, layout: ReportLayout, uniform: float) -> np.ndarray:
    """Return the two sections as one-hot flags: of a section's units, the one that a uniform draw selects.

    Parameters
    ----------
    vector : ndarray of uint32, shape (cells of the layout,)
    layout : ReportLayout
    uniform : float, in [0, 1)

    Returns
    -------
    ndarray of bool, shape (cells_of(layout),); all False in a section without counts.
    """
    flags = []
    for name in SECTIONS:
        cells = vector[layout.by_name[name].cells].astype(np.int64)
        hot = np.zeros(len(cells), bool)
        if cells.any():
            hot[np.searchsorted(np.cumsum(cells), int(uniform * cells.sum()), side="right")] = True
        flags.append(hot)
    return np.concatenate(flags)


def randomise(flags: np.ndarray, epsilon: float, drawn: np.ndarray | None = None) -> bytes:
    """Return randomised flags, eight to a byte.

    Parameters
    ----------
    flags : ndarray of bool, shape (n,)
    epsilon : float
        Of the report: each section has an equal part.
    drawn : ndarray of uint32, shape (n,), or None
        For simulations; clients leave it out and use the system's entropy.
    """
    if drawn is None:
        drawn = np.frombuffer(secrets.token_bytes(4 * len(flags)), np.uint32)
    limit = np.where(flags, np.uint32(_ONE // 2), np.uint32(flip_threshold(epsilon / len(SECTIONS))))
    return np.packbits(drawn < limit).tobytes()


def flags_of(body: bytes, cells: int) -> np.ndarray:
    """Return the flags of a report: uint8 (0 or 1), shape (cells,); raises `ReportRefusedError` for a wrong length."""
    if len(body) != -(-cells // 8):
        raise ReportRefusedError("length")
    return np.unpackbits(np.frombuffer(body, np.uint8), count=cells)


def estimate(sums: np.ndarray, reports: int, epsilon: float) -> tuple[np.ndarray, float]:
    """Return unbiased counts, float64, the same shape as `sums` (any shape), and their standard deviation in rarely set
    cells.

    (sum - n q) / (1/2 - q), with variance n q (1 - q) / (1/2 - q)**2 (Wang et al. 2017, section 4).
    """
    q = flip_probability(epsilon)
    return (sums - reports * q) / (0.5 - q), math.sqrt(reports * q * (1 - q)) / (0.5 - q)

"""Which ends of collectives are one moment: scatter over ranks, or over the devices of one rank."""

import numpy as np

GOOD_NS = 20_000
GOOD_SHARE = 0.5
"""Ends that scatter by at most `GOOD_NS`, or by at most this share of what starts scatter, count as common events."""
QUANTILE = 0.95


def scatter(times: np.ndarray) -> float:
    """Return how far ranks' times of common events (`times`, ns, shape (ranks, events)) lie from their median: the 95th
    percentile, ns.
    """
    centred = times - times[0]  # exact; the rest is small
    return float(np.quantile(np.abs(centred - np.median(centred, axis=0)), QUANTILE))


def are_common(ends: float, starts: float) -> bool:
    """Return whether ends are common events, by how far they and the starts scatter, ns."""
    return ends <= max(GOOD_NS, GOOD_SHARE * starts)

"""Noise of a server: discrete Laplace (two-sided geometric), by opendp from the system's entropy; or, for simulations
alone, from a seed.

The production source takes no seed.
"""

import functools
from typing import Protocol

import numpy as np

from causeway.fleet.draws import generator
from causeway.fleet.report_layout import Section


class Noise(Protocol):
    """A source of a server's noise.

    Attributes
    ----------
    simulated : bool
        Whether the noise comes from a seed; a production ledger then refuses the release.
    """

    simulated: bool

    def draw(self, sections: list[Section], purpose: str) -> np.ndarray:
        """Return noise for the cells of some sections, in order: int64, shape (cells of all sections,)."""


class SecureNoise:
    """Production noise."""

    simulated = False

    def draw(self, sections: list[Section], purpose: str) -> np.ndarray:
        """Return int64 noise, shape (cells of all sections,); `purpose` changes nothing, each call draws anew."""
        # not `opendp.prelude`, which loads scikit-learn: two CPU-seconds of a server's first release
        from opendp.domains import atom_domain, vector_domain
        from opendp.measurements import make_laplace
        from opendp.metrics import l1_distance
        from opendp.mod import enable_features

        enable_features("contrib")
        parts = []
        for section in sections:
            domain = vector_domain(atom_domain(T=int))
            mechanism = make_laplace(domain, l1_distance(T=int), scale=section.noise_scale)
            parts.append(np.array(mechanism([0] * (section.rows * section.columns)), np.int64))
        return np.concatenate(parts)


class SeededNoise:
    """A simulation's noise: the same for the same seed and purpose; the difference of two geometric draws is discrete
    Laplace.

    With parameter p = 1 - exp(-1 / scale), P(k) is proportional to exp(-|k| / scale) (Inusah and Kozubowski 2006).
    """

    simulated = True

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def draw(self, sections: list[Section], purpose: str) -> np.ndarray:
        """Return int64 noise, shape (cells of all sections,), for a purpose, e.g. server, epoch and window."""
        parts = []
        for section in sections:
            rng = generator(self._seed, f"noise/{purpose}/{section.name}")
            size = section.rows * section.columns
            p = -np.expm1(-1 / section.noise_scale)
            parts.append(rng.geometric(p, size) - rng.geometric(p, size))
        return np.concatenate(parts).astype(np.int64)


def noise_tail(distance: np.ndarray) -> np.ndarray:
    """Return the probability that the sum of two Laplace noises of scale 1 lies above a distance: (2 + t) exp(-t) / 4
    at t from 0 on, and by symmetry below (Kotz et al. 2001, section 2.3).

    Parameters
    ----------
    distance : ndarray of float64, any shape

    Returns
    -------
    ndarray of float64, of the same shape
    """
    away = np.abs(distance)
    beyond = (2 + away) * np.exp(-away) / 4
    return np.where(distance >= 0, beyond, 1 - beyond)


def noise_half_width(scale: float, confidence: float, terms: int = 2) -> float:
    """Return the half-width of the two-sided interval of a sum of `terms` (1 or 2) independent Laplace noises.

    For the tails of two see `noise_tail`; discrete noise has slightly lighter ones than continuous noise rounded up.
    """
    return _unit_half_width(confidence, terms) * scale


@functools.cache
def _unit_half_width(confidence: float, terms: int) -> float:
    """Return `noise_half_width` of noises of scale 1: tables ask for the same few again and again."""
    low = 0.0
    high = 60.0
    for _ in range(80):
        middle = (low + high) / 2
        tail = 0.5 * np.exp(-middle) if terms == 1 else float(noise_tail(np.array(middle)))
        low, high = (middle, high) if 2 * tail > 1 - confidence else (low, middle)
    return high

"""Random draws of the simulation, by (seed, purpose, client): the same for any number of ranks and any order of work.

A counter-based generator (Philox 4x64, numpy) gives each client a stretch of one long stream, so that any range of clients can be drawn
alone. These draws are for the simulated world; keys, shares and production noise take the operating system's entropy and never come here.
"""

import hashlib

import numpy as np

WORDS_PER_STEP = 4
"""Philox 4x64 gives four words per step of its counter."""


def words(seed: int, purpose: str, first: int, count: int, each: int) -> np.ndarray:
    """Draw `each` words for the clients `first` to `first + count - 1`.

    Parameters
    ----------
    seed : int
        Of the world, 0 to 2**64 - 1.
    purpose : str
        Tells streams apart.
    first, count : int
        Range of clients.
    each : int
        Words per client.

    Returns
    -------
    ndarray of uint64, shape (count, each); a client's row does not depend on the range it is drawn with.
    """
    key = int.from_bytes(hashlib.blake2b(purpose.encode(), digest_size=8).digest(), "little")
    stretch = -(-each // WORDS_PER_STEP)
    bits = np.random.Philox(key=np.array([seed, key], np.uint64))
    bits.advance(first * stretch)
    return bits.random_raw(count * stretch * WORDS_PER_STEP).reshape(count, -1)[:, :each]


def uniform(drawn: np.ndarray) -> np.ndarray:
    """Return words as float64 in (0, 1), both ends excluded, so that logarithms of them are finite."""
    return ((drawn >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


def uniforms(seed: int, purpose: str, first: int, count: int, each: int) -> np.ndarray:
    """Draw float64 in (0, 1), shape (count, each); see `words`."""
    return uniform(words(seed, purpose, first, count, each))


def generator(seed: int, purpose: str, which: int = 0) -> np.random.Generator:
    """Return a generator for draws that are made once, in a fixed order, such as those of one application."""
    key = int.from_bytes(hashlib.blake2b(f"{purpose}/{which}".encode(), digest_size=8).digest(), "little")
    return np.random.Generator(np.random.Philox(key=np.array([seed, key], np.uint64)))


def pick(chance: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return for each uniform draw an index, with probability proportional to `weights`."""
    edges = np.cumsum(weights)
    return np.minimum(np.searchsorted(edges, chance * edges[-1], side="right"), len(weights) - 1)

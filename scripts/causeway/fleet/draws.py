"""Random draws of the simulation, by (seed, purpose, client): the same for any number of ranks and any order of work.

A counter-based generator (Philox 4x64, numpy) gives each client a stretch of one long stream, so that any range of
clients can be drawn alone. These draws are for simulations only; keys, secret shares and production noise take the
operating system's entropy.
"""

import hashlib

import numpy as np

WORDS_PER_STEP = 4
"""Philox 4x64 gives four words per step of its counter."""


def words(seed: int, purpose: str, first: int, count: int, per_client: int) -> np.ndarray:
    """Draw `per_client` words for the clients `first` to `first + count - 1`.

    Parameters
    ----------
    seed : int
        Of the simulation, 0 to 2**64 - 1.
    purpose : str
        Name of the stream of random numbers.
    first, count : int
        Range of clients.
    per_client : int
        Words for each client.

    Returns
    -------
    ndarray of uint64, shape (count, per_client); a client's row does not depend on the range it is drawn with.
    """
    key = int.from_bytes(hashlib.blake2b(purpose.encode(), digest_size=8).digest(), "little")
    stretch = -(-per_client // WORDS_PER_STEP)
    bits = np.random.Philox(key=np.array([seed, key], np.uint64))
    bits.advance(first * stretch)
    return bits.random_raw(count * stretch * WORDS_PER_STEP).reshape(count, -1)[:, :per_client]


def uniform(drawn: np.ndarray) -> np.ndarray:
    """Return the words `drawn` (uint64, any shape) as float64 of the same shape, in (0, 1): without 0, so that
    logarithms are finite.
    """
    return ((drawn >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


def uniforms(seed: int, purpose: str, first: int, count: int, per_client: int) -> np.ndarray:
    """Draw float64 in (0, 1), shape (count, per_client); see `words`."""
    return uniform(words(seed, purpose, first, count, per_client))


def generator(seed: int, purpose: str, which: int = 0) -> np.random.Generator:
    """Return a generator for draws that are made once, in a fixed order, such as those of one application."""
    key = int.from_bytes(hashlib.blake2b(f"{purpose}/{which}".encode(), digest_size=8).digest(), "little")
    return np.random.Generator(np.random.Philox(key=np.array([seed, key], np.uint64)))


def pick(drawn: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return an index for each draw, with probability proportional to its weight (inverse transform sampling).

    Parameters
    ----------
    drawn : ndarray of float64, shape (n,), in (0, 1)
    weights : ndarray of float64, shape (m,), not negative

    Returns
    -------
    ndarray of int64, shape (n,), 0 to m - 1
    """
    edges = np.cumsum(weights)
    return np.minimum(np.searchsorted(edges, drawn * edges[-1], side="right"), len(weights) - 1)

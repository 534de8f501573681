"""From kernel names to tokens and k-grams, by which sequences of launches are compared.

A name never leaves the client. A token is a keyed hash (HMAC-SHA-256) of the name without the parts that a GPU
generation or a tile size changes, so that one application's launches look alike on several generations.
"""

import hashlib
import hmac
import re
from collections.abc import Iterable

import numpy as np

LONGEST_NAME = 4096
"""Longer names are hashed as they are: no pattern is searched for in what may be made up to slow the client down."""

_GENERATION = re.compile(
    r"(?:volta|turing|ampere|ada|hopper|blackwell|maxwell|pascal|sm_?\d{2,3}[a-z]?|gfx[0-9a-f]{3,4})(?=_|\b)"
)
_TILES = re.compile(r"\d+x\d+(?:x\d+)*|stage\d+|warpgroupsize\d+|_\d+cta|cta\d+")

MIX = np.uint64(0x9E3779B97F4A7C15)
"""2**64 over the golden ratio, the multiplier of Fibonacci hashing (Knuth, TAOCP 3, section 6.4)."""


def canonical(name: str) -> str:
    """Return a kernel's name without its GPU generation and tile sizes, in lower case."""
    if len(name) > LONGEST_NAME:
        return name
    return _TILES.sub("#", _GENERATION.sub("@", name.lower()))


def tokens_of(names: Iterable[str], key: bytes) -> np.ndarray:
    """Return the tokens of kernel names: the first 8 bytes of HMAC-SHA-256 of the canonical name, never 0.

    Parameters
    ----------
    names : iterable of str
    key : bytes

    Returns
    -------
    ndarray of uint64, shape (names,)
    """
    digests = (hmac.digest(key, canonical(name).encode("utf-8", "surrogatepass"), hashlib.sha256) for name in names)
    tokens = np.frombuffer(b"".join(digest[:8] for digest in digests), np.uint64)
    return np.where(tokens == 0, np.uint64(1), tokens)


def grams_of(tokens: np.ndarray, k: int) -> np.ndarray:
    """Return the k-grams of sequences of tokens.

    Parameters
    ----------
    tokens : ndarray of uint64, shape (..., n)
        Launches in order; 0 stands for "no launch" behind the end of a short sequence.
    k : int
        Launches per gram.

    Returns
    -------
    ndarray of uint64, shape (..., max(n - k + 1, 0)); 0 where a gram would hold a 0.
    """
    n = tokens.shape[-1] - k + 1
    if n <= 0:
        return np.zeros((*tokens.shape[:-1], 0), np.uint64)
    mixed = np.zeros((*tokens.shape[:-1], n), np.uint64)
    whole = np.ones((*tokens.shape[:-1], n), bool)
    for offset in range(k):
        part = tokens[..., offset : offset + n]
        whole &= part != 0
        mixed = (mixed ^ (mixed >> np.uint64(29))) * MIX + part
    mixed ^= mixed >> np.uint64(32)
    return np.where(whole, np.where(mixed == 0, np.uint64(1), mixed), np.uint64(0))

"""Seeds and random generators: one per dataset, target, scope and step, derived from the configured seed and names,
never from the order of the work.

`generator` is the way for new code. Two variants differ in their digest only and stay, since another one would draw
other samples and change published results: `generator_64` (comparisons of runs) and `generator_of_path` (rows that
figures draw). Not here, with reasons of their own: `simulate.random_numbers` (the simulated exports and every number
measured on them hang on its streams), `fleet.draws` (counter-based, so that any range of clients can be drawn alone),
and `np.random.default_rng([seed, number, ...])` in `lab` (all parts are integers, which NumPy's `SeedSequence` mixes
itself).
"""

import hashlib
from typing import Literal

import numpy as np


def _digest(separator: str, order: Literal["big", "little"], parts: tuple[object, ...]) -> int:
    """Return the first 64 bits of the SHA-256 digest of the parts' texts."""
    text = separator.join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], order)


def derived_seed(seed: int, *parts: object) -> int:
    """Return a seed of 63 bits, which fits a signed column of a table, from the configured seed and the names of what
    it is for, e.g. dataset, target, scope and step.
    """
    return _digest("\x1f", "big", (seed, *parts)) >> 1


def generator(seed: int, *parts: object) -> np.random.Generator:
    """Return NumPy's default generator (PCG64) on the derived seed."""
    return np.random.default_rng(derived_seed(seed, *parts))


def generator_64(seed: int, *parts: object) -> np.random.Generator:
    """Return the same on all 64 bits of the digest."""
    return np.random.default_rng(_digest("\x1f", "big", (seed, *parts)))


def generator_of_path(seed: int, *parts: str) -> np.random.Generator:
    """Return a generator on 64 bits of the digest of `seed/part/part`, read from the lowest byte."""
    return np.random.default_rng(_digest("/", "little", (seed, *parts)))

"""Seeds: one per dataset, target, scope and step, derived from the configured seed, never from the order of the work."""

import hashlib

import numpy as np


def derived_seed(seed: int, *parts: object) -> int:
    """Return a seed of 63 bits from the configured seed and the names of what it is for, e.g. dataset, target, scope and step."""
    text = "\x1f".join(str(part) for part in (seed, *parts))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def generator(seed: int, *parts: object) -> np.random.Generator:
    """Return NumPy's generator on the derived seed."""
    return np.random.default_rng(derived_seed(seed, *parts))

"""Series with a memory: what follows one another in time resembles."""

import numpy as np


def remembering(rng: np.random.Generator, rows: int, memory: np.ndarray) -> np.ndarray:
    """Return AR(1) series of variance 1 with innovations of Student's t (5 degrees of freedom), shape (rows, len(memory))."""
    from scipy.signal import lfilter

    found = np.empty((rows, memory.size))
    for j, rho in enumerate(memory):
        steps = rng.standard_t(5, rows + 300) * np.sqrt(3 / 5)
        found[:, j] = lfilter([np.sqrt(1 - rho**2)], [1.0, -rho], steps)[300:]
    return found


def phases(rng: np.random.Generator, rows: int, memory: float, count: int = 4) -> np.ndarray:
    """Return the phase of the program at each row: a Markov chain that stays with probability `memory`."""
    moves = rng.random(rows) > memory
    drawn = rng.integers(0, count, rows)
    last = np.maximum.accumulate(np.where(moves | (np.arange(rows) == 0), np.arange(rows), 0))
    return drawn[last]

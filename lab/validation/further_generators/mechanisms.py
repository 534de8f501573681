"""What makes a GPU kernel slower from launch to launch, each with the column that shows it: clock states, memory
traffic, overlapping copies, neighbours on the device, divergence, bank conflicts, atomics, cold caches, replays.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

CLOCKS_MHZ = (1980.0, 1755.0, 1410.0)
"""Clock states: boost, sustained under a power limit, throttled by heat; of the order of a data-centre GPU's."""
COLD_AFTER_US = 250.0
"""Idle time after which most of a second-level cache holds other data."""


@dataclass(frozen=True)
class Mechanism:
    """One way to be slower.

    Attributes
    ----------
    name : str
        Of its column.
    acts_on : str
        "compute" or "memory", a part of the time that it stretches, or "extra", time that it adds.
    values : ndarray of float, shape (n_rows,)
        Its column.
    slows : callable
        Gives from values of the column how much it slows, dimensionless, at least 0, same shape.
    """

    name: str
    acts_on: str
    values: np.ndarray
    slows: Callable[[np.ndarray], np.ndarray]


def states(rng: np.random.Generator, rows: int, stay: float, chances: tuple[float, ...]) -> np.ndarray:
    """Return a Markov chain that stays with probability `stay` and else moves to a state drawn with `chances`.

    Returns
    -------
    ndarray of int, shape (rows,)
        Positions in `chances`.
    """
    drawn = rng.choice(len(chances), size=rows, p=chances)
    moved = (rng.random(rows) > stay) | (np.arange(rows) == 0)
    return drawn[np.maximum.accumulate(np.where(moved, np.arange(rows), 0))]


def mechanisms_of(rng: np.random.Generator, kernel: np.ndarray) -> list[Mechanism]:
    """Return all mechanisms with their columns, in a fixed order, whether they act or not.

    Parameters
    ----------
    rng : Generator
    kernel : ndarray of int, shape (n_rows,)
    """
    rows = kernel.size
    kernels = int(kernel.max()) + 1
    clock = np.asarray(CLOCKS_MHZ)[states(rng, rows, 0.96, (0.5, 0.35, 0.15))] - 15.0 * rng.integers(0, 3, rows)
    volume = rng.integers(2**20, 2**26, kernels)[kernel]
    traffic = np.floor(volume * np.exp(0.25 * rng.standard_normal(rows)) / 32.0) * 32.0
    copying = states(rng, rows, 0.85, (0.65, 0.35)) == 1
    copied = np.where(copying, np.floor(rng.gamma(2.0, 2**19, rows)), 0.0)
    neighbours = np.minimum(rng.poisson(np.asarray([0.2, 1.5])[states(rng, rows, 0.9, (0.6, 0.4))]), 6).astype(float)
    lanes = np.round(32.0 - np.minimum(rng.gamma(1.2, 3.0, rows), 28.0), 2)
    conflicts = rng.negative_binomial(2, 0.002, rows).astype(float) * rng.integers(1, 9, kernels)[kernel]
    atomics = np.floor(40.0 * (1.0 + rng.pareto(2.5, rows)))
    idle = np.round(rng.lognormal(4.5, 1.1, rows), 3)
    replays = (rng.random(rows) < rng.uniform(0.06, 0.5)).astype(float)
    return [
        Mechanism("graphics_mhz", "compute", clock, lambda v: CLOCKS_MHZ[0] / v - 1.0),
        Mechanism("vram_in_bytes", "memory", traffic, lambda v: v / np.median(traffic / volume) / volume),
        Mechanism("overlapped_pcie", "memory", copied, lambda v: v / (v + 2**20)),
        Mechanism("coresident", "compute", neighbours, lambda v: v),
        Mechanism("lanes_on", "compute", lanes, lambda v: 32.0 / np.maximum(v, 1.0) - 1.0),
        Mechanism("smem_replayed", "extra", conflicts, lambda v: v / np.mean(conflicts)),
        Mechanism("red_same_word", "extra", atomics, lambda v: np.log2(v / 40.0)),
        Mechanism("quiet_before_us", "extra", idle, lambda v: 1.0 - np.exp(-v / COLD_AFTER_US)),
        Mechanism("ecc_hit", "extra", replays, lambda v: v),
    ]

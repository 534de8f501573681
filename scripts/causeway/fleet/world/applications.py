"""Simulated applications, shaped like a benchmark suite's: families with versions, kernels that many share, repeated
layers.

A family is a sequence of layers, each a short run of kernels, repeated; a version changes some kernels of the layers.
Most kernels come from a pool that all applications use, some belong to the family, few to the version alone. Besides
the known applications there are unknown ones, half of them new versions of known families, which are the harder ones to
reject.
"""

from dataclasses import dataclass

import numpy as np

from causeway.fleet.draws import generator

GENERATIONS = ("ampere", "hopper", "blackwell")
SPEED = (1.0, 0.62, 0.45)
"""Duration of a launch on each generation, relative to the first."""
COMMON_KERNELS = 120
"""Kernels that every application may use."""
CHANGED = 0.2
"""Share of the kernels of a family's layers that a version changes."""
KINDS = ("gemm", "elementwise", "reduce", "softmax", "norm", "conv", "scatter", "copy", "attention", "sort")


@dataclass(frozen=True, kw_only=True)
class SimulatedApplication:
    """One application of the simulated fleet.

    Attributes
    ----------
    name, family, version : str
    in_catalogue : bool
        Whether the catalogue will hold it.
    body : ndarray of int64, shape (launches,)
        Kernels of one iteration, in order of launch.
    busy : float
        Share of the time in which its GPU works, 0 to 1.
    mib_per_s : float
        Data moved per second of run time.
    """

    name: str
    family: str
    version: str
    in_catalogue: bool
    body: np.ndarray
    busy: float
    mib_per_s: float


@dataclass(frozen=True, kw_only=True)
class Suite:
    """All applications and their kernels.

    Attributes
    ----------
    applications : tuple of SimulatedApplication
        The known ones first, in the order of their popularity.
    names : list of list of str
        Kernel names by GPU generation, then kernel.
    median_ns, spread, occupancy : ndarray of float64, shape (kernels,)
        Median duration on the first generation, standard deviation of the logarithm of durations, mean occupancy (0 to
        1).
    variant : ndarray of int64, shape (kernels,)
        The kernel that a run's autotuning may choose instead.
    """

    applications: tuple[SimulatedApplication, ...]
    names: list[list[str]]
    median_ns: np.ndarray
    spread: np.ndarray
    occupancy: np.ndarray
    variant: np.ndarray

    @property
    def n_known(self) -> int:
        """Number of applications that the catalogue will hold."""
        return sum(application.in_catalogue for application in self.applications)


class _Kernels:
    """Kernels as they are made, each with the variant that autotuning may choose."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.stems: list[tuple[str, str, int]] = []

    def make(self, owner: str, count: int) -> np.ndarray:
        """Return the indices of new kernels."""
        first = len(self.stems)
        self.stems += [(owner, KINDS[int(self.rng.integers(len(KINDS)))], first + index) for index in range(count)]
        return np.arange(first, first + count)

    def names(self, generation: str) -> list[str]:
        """Return all names on a generation: half of the matrix products' names hold it."""
        names = []
        for owner, kind, number in self.stems:
            tile = f"{32 << (number % 3)}x{64 << (len(generation) % 2)}"
            if kind in ("gemm", "conv") and number % 2:
                names.append(f"{generation}_xmma_{kind}_{owner}_{number}_{tile}_tn")
            else:
                names.append(
                    f"void {owner}::{kind}_kernel<float, {number}, Functor_{number * 7 % 31}>(float*, float const*,"
                    " int)"
                )
        return names


def _layers(
    rng: np.random.Generator, common: np.ndarray, popularity: np.ndarray, own: np.ndarray
) -> list[tuple[np.ndarray, int]]:
    """Return a family's layers: the kernels of each, and its number of repetitions."""
    layers = []
    for _ in range(int(rng.integers(3, 7))):
        length = int(rng.integers(6, 17))
        shared = rng.choice(common, length, p=popularity)
        specific = rng.choice(own, length)
        layers.append((np.where(rng.random(length) < 0.6, shared, specific), int(rng.integers(1, 9))))
    return layers


def _version(rng: np.random.Generator, layers: list, own: np.ndarray, common: np.ndarray, changed: float) -> np.ndarray:
    """Return the body of a version: some kernels of the layers are exchanged."""
    parts = []
    for kernels, repeats in layers:
        new = np.where(rng.random(len(kernels)) < 0.7, rng.choice(own, len(kernels)), rng.choice(common, len(kernels)))
        parts += [np.where(rng.random(len(kernels)) < changed, new, kernels)] * repeats
    return np.concatenate(parts)


def make_suite(seed: int, applications: int, versions: int, unknown: int) -> Suite:
    """Make applications.

    Parameters
    ----------
    seed : int
    applications : int
        Known applications.
    versions : int
        Of each known family.
    unknown : int
        Applications that the catalogue will not hold; every second is a new version of a known family.
    """
    rng = generator(seed, "suite")
    kernels = _Kernels(rng)
    common = kernels.make("at::native", COMMON_KERNELS)
    popularity = 1 / np.arange(1, len(common) + 1)
    popularity /= popularity.sum()
    families = []
    made = []
    for number in range(-(-applications // versions) + (unknown + 1) // 2):
        own = kernels.make(f"family{number:02d}", 10)
        families.append(
            (_layers(rng, common, popularity, own), float(rng.uniform(0.2, 0.95)), float(rng.lognormal(5, 1)))
        )
    known_families = -(-applications // versions)

    def add(family: int, version: int, in_catalogue: bool) -> None:
        layers, busy, moved = families[family]
        own = kernels.make(f"model{family:02d}v{version}", 5)
        body = _version(rng, layers, own, common, CHANGED if version else 0.0)
        name = f"model{family:02d}_v{version}"
        made.append(
            SimulatedApplication(
                name=name,
                family=f"model{family:02d}",
                version=f"v{version}",
                in_catalogue=in_catalogue,
                body=body,
                busy=busy * rng.uniform(0.9, 1.0),
                mib_per_s=moved * rng.uniform(0.5, 2),
            )
        )

    for number in range(applications):
        add(number % known_families, number // known_families, True)
    order = rng.permutation(applications)  # popularity does not follow the family
    made[:] = [made[index] for index in order]
    for number in range(unknown):
        if number % 2:
            add(known_families + number // 2, 0, False)
        else:
            add(int(rng.integers(known_families)), 100 + number, False)
    plain = len(kernels.stems)
    kernels.make("tuned", plain)
    median = rng.lognormal(np.log(15_000), 1.2, plain)
    return Suite(
        applications=tuple(made),
        names=[kernels.names(generation) for generation in GENERATIONS],
        median_ns=np.concatenate([median, median * rng.uniform(0.8, 1.1, plain)]),
        spread=np.tile(rng.uniform(0.03, 0.35, plain), 2),
        occupancy=np.tile(rng.beta(3, 3, plain), 2),
        variant=np.concatenate([np.arange(plain, 2 * plain), np.arange(plain, 2 * plain)]),
    )

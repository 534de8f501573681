"""Worlds: tables with known causes, made without regard to what the causal analysis assumes, so that it can fail on them.

Drivers remember their past, belong to phases, drive one another through bent functions, and are seen as counts, percentages with a
ceiling, zero-inflated bytes, small integers, heavy tails, or text. Run times are products of bent effects, some of which compete (only the
worse of two bottlenecks is felt) or act on the noise alone; the noise is skewed, with rare slow launches. Around the drivers stand sums,
shares, ratios, near and noisy copies, leaks of the measured time under any name, identifiers, constants and gaps. Names do not tell which
column is which.
"""

from dataclasses import dataclass, field

import numpy as np

from causeway.validation.effects import EFFECT_SIZE, Effect, effect_of, felt
from causeway.validation.observed import Observed, names_for, observe
from causeway.validation.series import phases, remembering
from causeway.validation.surroundings import surround
from causeway.validation.truth import shares_and_slopes

SIZES = 1.5
"""Standard deviation, between kernels, of the logarithm of what is measured where kernels are `sized`."""


@dataclass(frozen=True)
class World:
    """What a table is drawn from.

    Attributes
    ----------
    rows, columns, drivers, causes, kernels : int
    noise : float
        Standard deviation of the noise, in that of a typical cause's effect.
    memory : float, 0 to 1
        Largest lag-1 autocorrelation of a driver.
    noise_memory : float, 0 to 1
        Lag-1 autocorrelation of the noise.
    hidden : bool
        An unmeasured cause moves the run time and three measured columns that do nothing.
    feedback : bool
        Long launches heat the device, heat lowers the clock of later ones, a low clock makes launches long: one of the causes.
    paradox : bool
        Between kernels, the causes are related to the run time the other way round.
    sized : bool
        Kernels do more or less work: what is measured differs between them by factors, and a cause acts by how far it is from what is
        usual in its kernel. Else kernels differ by shifts, and the same unit of a cause does much the same in each.
    texts : bool
        Some drivers are text.
    gaps : bool
        Some cells are missing.
    """

    rows: int = 1642
    columns: int = 100
    drivers: int = 30
    causes: int = 6
    kernels: int = 1
    noise: float = 1.0
    memory: float = 0.5
    noise_memory: float = 0.0
    hidden: bool = False
    feedback: bool = False
    paradox: bool = False
    sized: bool = False
    texts: bool = True
    gaps: bool = True


@dataclass
class Table:
    """A drawn table with its truth.

    Attributes
    ----------
    y : ndarray of float, shape (n_rows,), ns
        Measured run time, rows in time order.
    kernel : ndarray of int, shape (n_rows,)
    columns : dict of str to ndarray, shape (n_rows,)
        Floats, NaN where missing, or objects (text).
    causes : list of str
        Columns that cause y.
    stands_for : dict of str to str
        Columns that are a cause in all but name (a copy in other units): the cause.
    leaks, proxies : set of str
        The measured time in other clothes; columns moved by the hidden cause.
    shares : dict of str to float, percent
        Structural share of each cause, and of `unexplained`, in the variance of the absolute deviation from the kernel's mean.
    slopes : dict of str to float
        Change of the absolute deviation, in its standard deviations, per standard deviation of the cause when the cause alone is set;
        text has none.
    moves : dict of str to float
        The same of the signed deviation, which moves with the run time itself.
    """

    y: np.ndarray
    kernel: np.ndarray
    columns: dict[str, np.ndarray]
    causes: list[str] = field(default_factory=list)
    stands_for: dict[str, str] = field(default_factory=dict)
    leaks: set[str] = field(default_factory=set)
    proxies: set[str] = field(default_factory=set)
    shares: dict[str, float] = field(default_factory=dict)
    slopes: dict[str, float] = field(default_factory=dict)
    moves: dict[str, float] = field(default_factory=dict)


def latent_drivers(rng: np.random.Generator, world: World) -> np.ndarray:
    """Return the drivers before they are observed, shape (rows, drivers): memory, phases, and each other's doing."""
    z = remembering(rng, world.rows, world.memory * rng.uniform(0.2, 1.0, world.drivers))
    phase = phases(rng, world.rows, max(world.memory, 0.2))
    common = remembering(rng, world.rows, np.full(3, world.memory))
    for j in range(world.drivers):
        share = rng.uniform(0, 0.5)
        z[:, j] = np.sqrt(1 - share) * z[:, j] + np.sqrt(share) * common[:, rng.integers(3)]
        if rng.random() < 0.3:
            z[:, j] += 0.7 * rng.standard_normal(4)[phase]
        if j and rng.random() < 0.3:
            other = z[:, rng.integers(j)]
            bent = (np.tanh(1.5 * other), np.abs(other), np.maximum(other, 0.3))[rng.integers(3)]
            z[:, j] = 0.8 * z[:, j] + 0.7 * (bent - bent.mean()) / bent.std()
        z[:, j] = (z[:, j] - z[:, j].mean()) / z[:, j].std()
    return z


def draw(world: World, seed: int) -> Table:
    """Draw a table; the same world and seed give the same one."""
    rng = np.random.default_rng([seed, world.rows, world.columns])
    kernel = _kernels(rng, world)
    z = latent_drivers(rng, world)
    hidden = remembering(rng, world.rows, np.asarray([world.memory]))[:, 0]
    affected = range(world.causes, world.causes + 3) if world.hidden else range(0)
    for j in affected:
        z[:, j] = 0.8 * z[:, j] + 0.6 * hidden
    level = rng.standard_normal((world.kernels, world.drivers)) * (1.0 if world.kernels > 1 else 0.0)
    names = names_for(rng, world.columns)
    shift = np.zeros_like(level) if world.sized else level
    seen = [observe(rng, z[:, j], shift[kernel, j], j < world.causes, world.texts and not world.sized) for j in range(world.drivers)]
    effects = [effect_of(rng, seen[j], number) for number, j in enumerate(range(world.causes))]
    strength = _strengths(rng, world)
    base = np.exp(0.3 * rng.standard_normal(world.kernels)) * 1e5
    if world.paradox:
        directions = np.asarray([effect.direction for effect in effects])
        base *= np.exp(-0.3 * level[:, : world.causes] @ directions)
    noise = remembering(rng, world.rows, np.asarray([world.noise_memory]))[:, 0] if world.noise_memory else _skewed(rng, world.rows)
    parts = [effect.part * strength[kernel, number] for number, effect in enumerate(effects)]
    of_hidden = 0.8 * hidden if world.hidden else np.zeros(world.rows)

    def duration(values: list[np.ndarray], noise_values: np.ndarray) -> np.ndarray:
        mean, scale = felt(effects, values)
        spread = world.noise * np.exp(np.clip(scale, -1.5, 1.5))
        return base[kernel] * np.exp(EFFECT_SIZE * (mean + of_hidden + spread * noise_values))

    y = duration(parts, noise)
    clock: Observed | None = None
    if world.feedback:
        y, clock, part = _heated(rng, y, base[kernel])
        effects.append(Effect("clock", -1, part, "mean", None))
        parts.append(part)
        seen.append(clock)
    causes = [names[j] for j in range(world.causes)] + ([names[world.drivers]] if clock else [])
    used = [*range(world.causes), *([world.drivers] if clock else [])]
    shares, *directions = shares_and_slopes(rng, duration, parts, noise, [seen[j].values for j in used], y, kernel)
    work = np.exp(SIZES * level[kernel]) if world.sized else np.ones((1, len(seen)))
    columns = {names[j]: one.values if one.values.dtype == object else one.values * work[:, j] for j, one in enumerate(seen)}
    found = surround(rng, columns, causes, names[len(seen) :], y, kernel, world.gaps)
    order = rng.permutation(list(found.columns))
    return Table(
        y,
        kernel,
        {str(name): found.columns[name] for name in order},
        causes,
        found.stands_for,
        found.leaks,
        {names[j] for j in affected},
        dict(zip([*causes, "unexplained"], shares, strict=True)),
        *({name: slope for name, slope in zip(causes, slopes, strict=True) if slope is not None} for slopes in directions),
    )


def _kernels(rng: np.random.Generator, world: World) -> np.ndarray:
    """Return the kernel of each row; some are launched three times as often as others."""
    if world.kernels == 1:
        return np.zeros(world.rows, dtype=np.int64)
    chance = rng.uniform(1, 3, world.kernels)
    return rng.choice(world.kernels, size=world.rows, p=chance / chance.sum())


def _strengths(rng: np.random.Generator, world: World) -> np.ndarray:
    """Return how strongly each cause acts in each kernel, shape (kernels, causes); never the other way round."""
    if world.kernels == 1:
        return np.ones((1, world.causes))
    return rng.uniform(0.5, 1.5, (world.kernels, world.causes))


def _skewed(rng: np.random.Generator, rows: int) -> np.ndarray:
    """Return noise of variance about 1: a shifted gamma, and one launch in fifty much slower."""
    noise = (rng.gamma(6.0, 1.0, rows) - 6.0) / np.sqrt(6.0)
    return noise + np.where(rng.random(rows) < 0.02, rng.exponential(2.0, rows), 0.0)


def _heated(rng: np.random.Generator, y: np.ndarray, base: np.ndarray) -> tuple[np.ndarray, Observed, np.ndarray]:
    """Return run times with the feedback through the clock, the clock as observed (steps of 15 MHz), and its part in the log run time."""
    steady = np.log(y / base) / EFFECT_SIZE
    heat, parts, clocks = 0.0, np.empty(y.size), np.empty(y.size)
    jitter = rng.standard_normal(y.size)
    for t in range(y.size):
        clocks[t] = 15.0 * np.floor((1400.0 - 25.0 * heat + 12.0 * jitter[t]) / 15.0)
        parts[t] = -0.03 * (clocks[t] - 1400.0)
        heat = 0.93 * heat + 0.15 * np.clip(steady[t] + parts[t], -3.0, 3.0)
    return y * np.exp(EFFECT_SIZE * parts), Observed("integer", clocks), parts

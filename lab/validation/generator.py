"""The generator: tables with known causes, made without regard to what the causal analysis assumes, so that it can fail
on them.

Drivers are autocorrelated, belong to phases, drive one another through nonlinear functions, and are measured as counts,
percentages with a ceiling, zero-inflated bytes, small integers, heavy tails, or text. Run times are products of
nonlinear effects, some of which compete (only the worse of two bottlenecks acts) or act on the noise alone; the noise
is skewed, with rare slow launches. Distractors are sums, shares, ratios, near and noisy copies, functions of the
measured time under any name, identifiers, constants and gaps. Names do not say which column is which.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from causeway.core.vocabulary import UNEXPLAINED
from lab.validation.autocorrelated import autoregressive, phases
from lab.validation.distractors import add_distractors
from lab.validation.effects import EFFECT_SIZE, Effect, combined_effects, effect_of, part_at
from lab.validation.measurement import Observed, names_for, observe
from lab.validation.truth import shares_and_slopes

SIZES = 1.5
"""Standard deviation, between kernels, of the logarithm of what is measured where kernels are `sized`."""


@dataclass(frozen=True)
class GeneratorSettings:
    """What a table is drawn from.

    Attributes
    ----------
    rows, columns, drivers, causes, kernels : int
    noise : float
        Standard deviation of the noise, in that of a typical cause's effect.
    autocorrelation : float, 0 to 1
        Largest lag-1 autocorrelation of a driver.
    noise_autocorrelation : float, 0 to 1
        Lag-1 autocorrelation of the noise.
    hidden : bool
        An unmeasured cause moves the run time and three measured columns that do nothing.
    feedback : bool
        Long launches heat the device, heat lowers the clock of later ones, a low clock makes launches long: one of the
        causes.
    paradox : bool
        Between kernels, the causes are related to the run time the other way round.
    sized : bool
        Kernels do more or less work: what is measured differs between them by factors, and a cause acts by how far it
        is from its mean in its kernel. Else kernels differ by shifts, and the same unit of a cause does much the
        same in each.
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
    autocorrelation: float = 0.5
    noise_autocorrelation: float = 0.0
    hidden: bool = False
    feedback: bool = False
    paradox: bool = False
    sized: bool = False
    texts: bool = True
    gaps: bool = True


@dataclass
class KnownTable:
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
        Columns that cannot be distinguished from a cause (a copy in other units): the cause.
    leaked, proxies : set of str
        Leaked features, computed from the measured time; columns moved by the hidden cause.
    shares : dict of str to float, percent
        Structural share of each cause, and of `unexplained`, in the variance of the absolute deviation from the
        kernel's mean.
    value_shares : dict of str to float, percent
        The same in the variance of the run time itself, kernels in their standard deviations.
    slopes : dict of str to float
        Change of the absolute deviation, in its standard deviations, per standard deviation of the cause when the cause
        alone is set; text has none.
    moves : dict of str to float
        The same of the signed deviation, which moves with the run time itself.
    drivers : dict of str to ndarray, shape (n_rows,)
        Each cause without gaps.
    play : callable or None
        Gives the run times, ns, shape (n_rows,), when some causes have other values (dict of str to ndarray, shape
        (n_rows,)) and all else, the noise too, stays; what a changed cause drives follows it. With a second argument,
        a seed, the noise is that of another run.
    roles : dict of str to str
        What one can do about a column: "lever", "exposure", "mediator", "clock", "lag"; else a mediator.
    target : str
        What y is: a name of the vocabulary of targets.
    definition : set of str
        Columns that are parts of the target's definition: neither causes nor errors.
    determining : set of str
        Causes that alone explain more than 99 % of the logarithm of y.
    """

    y: np.ndarray
    kernel: np.ndarray
    columns: dict[str, np.ndarray]
    causes: list[str] = field(default_factory=list)
    stands_for: dict[str, str] = field(default_factory=dict)
    leaked: set[str] = field(default_factory=set)
    proxies: set[str] = field(default_factory=set)
    shares: dict[str, float] = field(default_factory=dict)
    value_shares: dict[str, float] = field(default_factory=dict)
    slopes: dict[str, float] = field(default_factory=dict)
    moves: dict[str, float] = field(default_factory=dict)
    drivers: dict[str, np.ndarray] = field(default_factory=dict)
    play: Callable[..., np.ndarray] | None = None
    roles: dict[str, str] = field(default_factory=dict)
    target: str = "y"
    definition: set[str] = field(default_factory=set)
    determining: set[str] = field(default_factory=set)


def latent_drivers(rng: np.random.Generator, settings: GeneratorSettings) -> np.ndarray:
    """Return the drivers before they are measured, float, shape (rows, drivers): autocorrelated, in phases, and driven
    by each other.
    """
    z = autoregressive(rng, settings.rows, settings.autocorrelation * rng.uniform(0.2, 1.0, settings.drivers))
    phase = phases(rng, settings.rows, max(settings.autocorrelation, 0.2))
    common = autoregressive(rng, settings.rows, np.full(3, settings.autocorrelation))
    for j in range(settings.drivers):
        share = rng.uniform(0, 0.5)
        z[:, j] = np.sqrt(1 - share) * z[:, j] + np.sqrt(share) * common[:, rng.integers(3)]
        if rng.random() < 0.3:
            z[:, j] += 0.7 * rng.standard_normal(4)[phase]
        if j and rng.random() < 0.3:
            other = z[:, rng.integers(j)]
            transformed = (np.tanh(1.5 * other), np.abs(other), np.maximum(other, 0.3))[rng.integers(3)]
            z[:, j] = 0.8 * z[:, j] + 0.7 * (transformed - transformed.mean()) / transformed.std()
        z[:, j] = (z[:, j] - z[:, j].mean()) / z[:, j].std()
    return z


def draw(settings: GeneratorSettings, seed: int) -> KnownTable:
    """Draw a table; the same settings and seed give the same one."""
    rng = np.random.default_rng([seed, settings.rows, settings.columns])
    kernel = _kernels(rng, settings)
    z = latent_drivers(rng, settings)
    hidden = autoregressive(rng, settings.rows, np.asarray([settings.autocorrelation]))[:, 0]
    affected = range(settings.causes, settings.causes + 3) if settings.hidden else range(0)
    for j in affected:
        z[:, j] = 0.8 * z[:, j] + 0.6 * hidden
    level = rng.standard_normal((settings.kernels, settings.drivers)) * (1.0 if settings.kernels > 1 else 0.0)
    names = names_for(rng, settings.columns)
    shift = np.zeros_like(level) if settings.sized else level
    seen = [
        observe(rng, z[:, j], shift[kernel, j], j < settings.causes, settings.texts and not settings.sized)
        for j in range(settings.drivers)
    ]
    effects = [effect_of(rng, seen[j], number) for number, j in enumerate(range(settings.causes))]
    strength = _strengths(rng, settings)
    base = np.exp(0.3 * rng.standard_normal(settings.kernels)) * 1e5
    if settings.paradox:
        directions = np.asarray([effect.direction for effect in effects])
        base *= np.exp(-0.3 * level[:, : settings.causes] @ directions)
    noise = _noise(rng, settings)
    strengths = [strength[kernel, number] for number in range(len(effects))]
    parts = [effect.part * factor for effect, factor in zip(effects, strengths, strict=True)]
    of_hidden = 0.8 * hidden if settings.hidden else np.zeros(settings.rows)

    def duration(values: list[np.ndarray], noise_values: np.ndarray) -> np.ndarray:
        mean, scale = combined_effects(effects, values)
        spread = settings.noise * np.exp(np.clip(scale, -1.5, 1.5))
        return base[kernel] * np.exp(EFFECT_SIZE * (mean + of_hidden + spread * noise_values))

    y = duration(parts, noise)
    clock: Observed | None = None
    if settings.feedback:
        y, clock, part = _heated(rng, y, base[kernel])
        effects.append(Effect("clock", -1, part, "mean", None))
        parts.append(part)
        strengths.append(np.ones(settings.rows))
        seen.append(clock)
    causes = [names[j] for j in range(settings.causes)] + ([names[settings.drivers]] if clock else [])
    used = [*range(settings.causes), *([settings.drivers] if clock else [])]
    shares, *directions, of_time = shares_and_slopes(
        rng, duration, parts, noise, [seen[j].values for j in used], y, kernel
    )
    work = np.exp(SIZES * level[kernel]) if settings.sized else np.ones((1, len(seen)))
    columns = {
        names[j]: source.values if source.values.dtype == object else source.values * work[:, j]
        for j, source in enumerate(seen)
    }

    def play(changed: dict[str, np.ndarray], noise_seed: int | None = None) -> np.ndarray:
        now = list(parts)
        for number, (name, j) in enumerate(zip(causes, used, strict=True)):
            if name in changed:
                text = seen[j].values.dtype == object
                values = changed[name] if text else changed[name] / work[:, j]
                now[number] = part_at(effects[number], seen[j].values, values) * strengths[number]
        other = noise if noise_seed is None else _noise(np.random.default_rng(noise_seed), settings)
        return duration(now, other)

    distractors = add_distractors(rng, columns, causes, names[len(seen) :], y, kernel, settings.gaps)
    order = rng.permutation(list(distractors.columns))
    slopes, moves = (
        {name: slope for name, slope in zip(causes, ours, strict=True) if slope is not None} for ours in directions
    )
    return KnownTable(
        y=y,
        kernel=kernel,
        columns={str(name): distractors.columns[name] for name in order},
        causes=causes,
        stands_for=distractors.stands_for,
        leaked=distractors.leaked,
        proxies={names[j] for j in affected},
        shares=dict(zip([*causes, UNEXPLAINED], shares, strict=True)),
        value_shares=dict(zip([*causes, UNEXPLAINED], of_time, strict=True)),
        slopes=slopes,
        moves=moves,
        drivers={name: columns[name] for name in causes},
        play=play,
    )


def _kernels(rng: np.random.Generator, settings: GeneratorSettings) -> np.ndarray:
    """Return the kernel of each row; some are launched three times as often as others."""
    if settings.kernels == 1:
        return np.zeros(settings.rows, dtype=np.int64)
    chance = rng.uniform(1, 3, settings.kernels)
    return rng.choice(settings.kernels, size=settings.rows, p=chance / chance.sum())


def _strengths(rng: np.random.Generator, settings: GeneratorSettings) -> np.ndarray:
    """Return how strongly each cause acts in each kernel, shape (kernels, causes); never the other way round."""
    if settings.kernels == 1:
        return np.ones((1, settings.causes))
    return rng.uniform(0.5, 1.5, (settings.kernels, settings.causes))


def _noise(rng: np.random.Generator, settings: GeneratorSettings) -> np.ndarray:
    """Return the noise, variance about 1, shape (rows,)."""
    if settings.noise_autocorrelation:
        return autoregressive(rng, settings.rows, np.asarray([settings.noise_autocorrelation]))[:, 0]
    return _skewed(rng, settings.rows)


def _skewed(rng: np.random.Generator, rows: int) -> np.ndarray:
    """Return noise of variance about 1: a shifted gamma, and one launch in fifty much slower."""
    noise = (rng.gamma(6.0, 1.0, rows) - 6.0) / np.sqrt(6.0)
    return noise + np.where(rng.random(rows) < 0.02, rng.exponential(2.0, rows), 0.0)


def _heated(rng: np.random.Generator, y: np.ndarray, base: np.ndarray) -> tuple[np.ndarray, Observed, np.ndarray]:
    """Return run times with the feedback through the clock, the clock as observed (steps of 15 MHz), and its part in
    the log run time.
    """
    steady = np.log(y / base) / EFFECT_SIZE
    heat = 0.0
    parts = np.empty(y.size)
    clocks = np.empty(y.size)
    jitter = rng.standard_normal(y.size)
    for t in range(y.size):
        clocks[t] = 15.0 * np.floor((1400.0 - 25.0 * heat + 12.0 * jitter[t]) / 15.0)
        parts[t] = -0.03 * (clocks[t] - 1400.0)
        heat = 0.93 * heat + 0.15 * np.clip(steady[t] + parts[t], -3.0, 3.0)
    return y * np.exp(EFFECT_SIZE * parts), Observed("integer", clocks), parts

"""A generator written without a look at the method: run times add up as in a roofline.

Launch overhead, compute time at the clock of the moment, memory time at what contention leaves of the bandwidth, and
stalls that add nanoseconds; kernels are bound by one or the other, so that a cause matters where its part does. Noise
is a little jitter and, once in a hundred launches, an interruption of heavy tail. Times are multiples of 32 ns.
"""

from dataclasses import dataclass

import numpy as np

from causeway.core.vocabulary import UNEXPLAINED
from lab.validation.autocorrelated import autoregressive
from lab.validation.distractors import Distractors, note_copies
from lab.validation.further_generators.mechanisms import Mechanism, mechanisms_of, states
from lab.validation.generator import KnownTable
from lab.validation.truth import shares_and_slopes

TICK_NS = 32.0
"""Step of the time stamps."""
LEAST_ACTIVE = 3


@dataclass(frozen=True)
class AdditiveSettings:
    """What a table is drawn from.

    Attributes
    ----------
    rows, columns, kernels : int
    active : float, 0 to 1
        Chance of each mechanism to act; at least three do unless it is 0.
    jitter : float
        Standard deviation of the noise, in 3 % of the run time.
    hidden : bool
        Heat that nobody measures makes launches longer, and moves the power and two more columns that do nothing.
    """

    rows: int = 1642
    columns: int = 60
    kernels: int = 3
    active: float = 0.6
    jitter: float = 1.0
    hidden: bool = False


def draw_additive(settings: AdditiveSettings, seed: int) -> KnownTable:
    """Draw a table; the same settings and seed give the same one."""
    rng = np.random.default_rng([seed, settings.rows, settings.columns, settings.kernels])
    chance = rng.dirichlet(np.full(settings.kernels, 4.0))
    kernel = rng.choice(settings.kernels, size=settings.rows, p=chance)
    kernel[: settings.kernels] = np.arange(settings.kernels)
    mechanisms = mechanisms_of(rng, kernel)
    acting = _acting(rng, mechanisms, settings.active)
    slowing = [_Slowing(rng, mechanism, kernel) for mechanism in acting]
    total = rng.lognormal(11.0, 0.7, settings.kernels)[kernel]
    bound = rng.uniform(0.2, 0.8, settings.kernels)[kernel]
    heat = autoregressive(rng, settings.rows, np.asarray([0.8]))[:, 0] if settings.hidden else np.zeros(settings.rows)
    of_heat = 0.03 * heat
    noise = _noise(rng, settings) + of_heat

    def duration(values: list[np.ndarray], noise_values: np.ndarray) -> np.ndarray:
        parts = {"compute": total * bound, "memory": total * (1.0 - bound), "extra": np.full(kernel.size, 2500.0)}
        for cause, now in zip(slowing, values, strict=True):
            if cause.mechanism.acts_on == "extra":
                parts["extra"] = parts["extra"] + total * cause.strength * cause.slowness(now)
            else:
                parts[cause.mechanism.acts_on] = parts[cause.mechanism.acts_on] * (
                    1.0 + cause.strength * cause.slowness(now)
                )
        return TICK_NS * np.round((sum(parts.values()) + total * noise_values) / TICK_NS)

    values = [mechanism.values for mechanism in acting]
    y = duration(values, noise)
    causes = [mechanism.name for mechanism in acting]
    shares, slopes, moves, of_time = shares_and_slopes(rng, duration, values, noise, values, y, kernel)

    def play(changed: dict[str, np.ndarray], noise_seed: int | None = None) -> np.ndarray:
        other = noise if noise_seed is None else _noise(np.random.default_rng(noise_seed), settings) + of_heat
        return duration([changed.get(cause.name, cause.values) for cause in acting], other)

    columns = _columns(rng, mechanisms, y, heat, settings.columns)
    note_copies(columns, {cause.name: cause.values for cause in mechanisms}, causes, kernel)
    order = rng.permutation(list(columns.columns))
    return KnownTable(
        y=y,
        kernel=kernel,
        columns={str(name): columns.columns[name] for name in order},
        causes=causes,
        stands_for=columns.stands_for,
        leaked=columns.leaked,
        proxies={"watts", "fan_rpm", "hotspot_celsius"} if settings.hidden else set(),
        shares=dict(zip([*causes, UNEXPLAINED], shares, strict=True)),
        value_shares=dict(zip([*causes, UNEXPLAINED], of_time, strict=True)),
        slopes=dict(zip(causes, slopes, strict=True)),
        moves=dict(zip(causes, moves, strict=True)),
        drivers={cause.name: cause.values for cause in acting},
        play=play,
    )


class _Slowing:
    """A mechanism that acts, with its strength: one standard deviation of it costs 1 to 6 % of the time, in each
    kernel between half and one and a half of that.
    """

    def __init__(self, rng: np.random.Generator, mechanism: Mechanism, kernel: np.ndarray) -> None:
        self.mechanism = mechanism
        raw = mechanism.slows(mechanism.values)
        spread = np.sqrt(np.mean([raw[kernel == number].var() for number in np.unique(kernel)]))
        share = 1.0 if mechanism.acts_on == "extra" else 0.5
        by_kernel = rng.uniform(0.5, 1.5, int(kernel.max()) + 1)
        self.strength = rng.uniform(0.01, 0.06) / (share * max(float(spread), 1e-9)) * by_kernel[kernel]

    def slowness(self, values: np.ndarray) -> np.ndarray:
        return np.maximum(self.mechanism.slows(values), 0.0)


def _acting(rng: np.random.Generator, mechanisms: list[Mechanism], active: float) -> list[Mechanism]:
    """Return the mechanisms that act."""
    luck = rng.random(len(mechanisms))
    if not active:
        return []
    limit = max(active, float(np.sort(luck)[LEAST_ACTIVE - 1]))
    return [mechanism for mechanism, chance in zip(mechanisms, luck, strict=True) if chance <= limit]


def _noise(rng: np.random.Generator, settings: AdditiveSettings) -> np.ndarray:
    """Return the noise in shares of the kernel's time: jitter and rare interruptions."""
    jitter = 0.03 * settings.jitter * (rng.gamma(4.0, 0.5, settings.rows) - 2.0)
    interrupted = rng.random(settings.rows) < 0.01
    return jitter + np.where(interrupted, 0.1 * (1.0 + np.minimum(rng.pareto(2.2, settings.rows), 30.0)), 0.0)


def _columns(
    rng: np.random.Generator, mechanisms: list[Mechanism], y: np.ndarray, heat: np.ndarray, count: int
) -> Distractors:
    """Return the mechanisms' columns and, up to `count`, what an export holds beside them."""
    rows = y.size
    own = {mechanism.name: mechanism.values for mechanism in mechanisms}
    columns = Distractors(dict(own))
    leaked = {
        "ticks_spent": y * own["graphics_mhz"] / 1e3,
        "vram_rate": own["vram_in_bytes"] / y,
        "joule_per_launch": y * 1e-9 * (180.0 + 60.0 * rng.random(rows)),
    }
    columns.columns |= leaked
    columns.leaked |= set(leaked)
    written = np.floor(own["vram_in_bytes"].mean() * rng.gamma(3.0, 0.3, rows))
    beside = {
        "vram_out_bytes": written,
        "vram_all_bytes": own["vram_in_bytes"] + written,
        "vram_in_sectors": own["vram_in_bytes"] / 32.0,
        "lanes_off": np.round(32.0 - own["lanes_on"] + 0.3 * rng.standard_normal(rows), 2),
        "board_celsius": np.round(55.0 + np.cumsum(rng.standard_normal(rows)) / np.sqrt(rows) * 8.0),
        "watts": np.round(200.0 + 0.05 * own["graphics_mhz"] + 6.0 * (rng.standard_normal(rows) + heat)),
        "fan_rpm": np.round(3000.0 + 80.0 * (rng.standard_normal(rows) + heat)),
        "hotspot_celsius": np.round(70.0 + 2.0 * (0.7 * rng.standard_normal(rows) + heat), 1),
        "ordinal": np.arange(rows, dtype=np.float64),
        "pool_bytes": 2.0**20 * (900 + 64 * np.cumsum(states(rng, rows, 0.99, (0.4, 0.3, 0.3)) - 0.9) // 10),
        "engine": np.asarray(["none", "in", "out"], dtype=object)[states(rng, rows, 0.8, (0.6, 0.2, 0.2))],
        "wave": np.sin(2 * np.pi * np.arange(rows) / rows * rng.uniform(1, 6)),
        "firmware": np.full(rows, 535.0),
    }
    columns.columns |= beside
    numbers = list(own)
    for number in range(max(count - len(columns.columns), 0)):
        columns.columns[f"probe_{number:03d}"] = _probe(rng, number, [own[name] for name in numbers], rows)
    return columns


def _probe(rng: np.random.Generator, number: int, drivers: list[np.ndarray], rows: int) -> np.ndarray:
    """Return a column of no effect: in turn a coarse reading of a mechanism, a count, a level that wanders, a share."""
    if number % 5 == 0:
        driver = drivers[rng.integers(len(drivers))]
        return driver + rng.uniform(0.8, 2.0) * driver.std() * rng.standard_normal(rows)
    if number % 5 == 1:
        return rng.poisson(rng.uniform(0.3, 50.0), rows).astype(float)
    if number % 5 == 2:
        steps = rng.standard_normal(rows)
        return np.round(np.convolve(steps, np.ones(40) / 40, mode="same"), 4)
    if number % 5 == 3:
        return np.round(100.0 * rng.beta(8.0, 2.0, rows), 1)
    return rng.lognormal(8.0, 0.8, rows)

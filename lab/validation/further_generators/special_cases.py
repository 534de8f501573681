"""Simulated datasets in which an analysis of causes goes wrong most easily, each of a few lines: a cause that is the
whole time, a binary cause of any prevalence, an exposure behind a counter, slow waves, correlated causes, ratios and
totals that act, causes in some kernels alone, an exposed copy.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from causeway.numeric.seeds import generator
from lab.validation.autocorrelated import autoregressive
from lab.validation.further_generators.composed import Columns, Composition, composed
from lab.validation.generator import KnownTable

BASE_NS = 80_000.0
NOISE = 0.02
"""Standard deviation of the noise in the logarithm of the time."""
PREVALENCES = (0.05, 0.15, 0.3, 0.5, 0.7, 0.85, 0.95)
"""Shares of launches in which a binary cause is on; a seed takes the one of its rest by seven."""


@dataclass(frozen=True)
class WorldSettings:
    """A world by its name in `WORLDS`, and the number of launches."""

    world: str
    rows: int = 1642


def draw_world(settings: WorldSettings, seed: int) -> KnownTable:
    """Draw a table of a world; the same settings and seed give the same one."""
    rng = generator(seed, "world", settings.world, settings.rows)
    return composed(rng, WORLDS[settings.world](rng, settings.rows, seed))


def _skewed(rows: int, size: float = NOISE) -> Callable[[np.random.Generator], np.ndarray]:
    """Return the noise of a shifted gamma distribution, as a function of a generator."""
    return lambda rng: size * (rng.gamma(4.0, 0.5, rows) - 2.0)


def _log_linear(**slopes: float) -> Callable[[Columns, np.ndarray], np.ndarray]:
    """Return times whose logarithm moves by `slopes` per unit of each cause."""

    def duration(causes: Columns, noise: np.ndarray) -> np.ndarray:
        return BASE_NS * np.exp(sum(slope * causes[name] for name, slope in slopes.items()) + noise)

    return duration


def _one_kernel(rows: int) -> np.ndarray:
    return np.zeros(rows, dtype=np.int64)


def _determined(rng: np.random.Generator, rows: int, seed: int) -> Composition:
    """Instructions issued are all that the time depends on: R2 > .99."""
    work = np.floor(1e6 * np.exp(0.2 * rng.standard_normal(rows)))
    return Composition(
        sources={"smsp__inst_issued_41": work},
        duration=lambda causes, noise: 2000.0 + 0.08 * causes["smsp__inst_issued_41"] * np.exp(noise),
        noise_of=_skewed(rows, 0.004),
        kernel=_one_kernel(rows),
        facts={"determining": {"smsp__inst_issued_41"}},
    )


def _prevalence(rng: np.random.Generator, rows: int, seed: int) -> Composition:
    """A binary cause is on in 5 to 95 % of the launches and costs 6 %."""
    on = (rng.random(rows) < PREVALENCES[seed % len(PREVALENCES)]).astype(float)
    return Composition(
        sources={"fe__state_busy_7": on},
        duration=_log_linear(fe__state_busy_7=0.06),
        noise_of=_skewed(rows),
        kernel=_one_kernel(rows),
    )


def _behind(rng: np.random.Generator, rows: int, seed: int) -> Composition:
    """Bytes copied beside the launch make reads miss the cache, and only the misses cost time."""
    copied = np.where(rng.random(rows) < 0.4, np.floor(rng.gamma(3.0, 2**19, rows)), 0.0)
    own = np.floor(rng.gamma(8.0, 4000.0, rows))

    def observe(sources: Columns, changed: Columns) -> Columns:
        exposure = changed.get("h2d_bytes_in_flight", sources["h2d_bytes_in_flight"])
        misses = sources["lts__miss_events_3"] + np.floor(exposure / 64.0)
        return {"h2d_bytes_in_flight": exposure, "lts__miss_events_3": misses}

    return Composition(
        sources={"h2d_bytes_in_flight": copied, "lts__miss_events_3": own},
        duration=_log_linear(lts__miss_events_3=2.5e-6),
        noise_of=_skewed(rows),
        kernel=_one_kernel(rows),
        observe=observe,
        facts={"roles": {"h2d_bytes_in_flight": "exposure"}},
    )


def _energy(rng: np.random.Generator, rows: int, seed: int) -> Composition:
    """Energy is the time multiplied by a power that wavers by 3 to 12 %: an image of the time too rough to be known as
    one.
    """
    wavering = rng.uniform(0.03, 0.12)
    issued, lines = (1000.0 * np.exp(0.3 * rng.standard_normal(rows)) for _ in range(2))
    return Composition(
        sources={"smsp__issue_a_2": issued, "dram__lines_4": lines},
        duration=_log_linear(smsp__issue_a_2=8e-5, dram__lines_4=5e-5),
        noise_of=_skewed(rows, 0.03),
        kernel=_one_kernel(rows),
        computed=lambda own, y: {"gpc__state_energy_6": y * 2e-7 * (1.0 + wavering * own.standard_normal(rows))},
    )


def _waves(rng: np.random.Generator, rows: int) -> np.ndarray:
    """Return one slow wave of random period and phase, amplitude 1."""
    return np.sin(2 * np.pi * (np.arange(rows) / rows * rng.uniform(1.0, 8.0) + rng.random()))


def _null_waves(rng: np.random.Generator, rows: int, seed: int) -> Composition:
    """Nothing causes the time; it follows a slow wave, and so do eight columns that have nothing to do with it."""
    beside = {f"host__wave_{number}": _waves(rng, rows) + 0.3 * rng.standard_normal(rows) for number in range(8)}
    skewed = _skewed(rows)
    return Composition(
        sources={},
        duration=lambda _, noise: BASE_NS * np.exp(noise),
        noise_of=lambda own: skewed(own) + 0.03 * _waves(own, rows),
        kernel=_one_kernel(rows),
        beside=beside,
    )


def _correlated(rng: np.random.Generator, rows: int, seed: int) -> Composition:
    """Two causes correlate by .8, and with a third column that does nothing."""
    common = rng.standard_normal(rows)
    first, other, third = (np.sqrt(0.8) * common + np.sqrt(0.2) * rng.standard_normal(rows) for _ in range(3))
    return Composition(
        sources={"l1tex__tags_a_1": 1000.0 + 100.0 * first, "lts__reads_b_2": 500.0 + 60.0 * other},
        duration=_log_linear(l1tex__tags_a_1=2.5e-4, lts__reads_b_2=3e-4),
        noise_of=_skewed(rows),
        kernel=_one_kernel(rows),
        beside={"dram__reads_x_3": 800.0 + 90.0 * third},
    )


def _ratio(rng: np.random.Generator, rows: int, seed: int) -> Composition:
    """A ratio of two counters acts (even seeds), or their sum; the counters do not."""
    hits, misses = (np.floor(np.exp(0.4 * rng.standard_normal(rows)) * size) + 1.0 for size in (40_000, 30_000))
    ratio = seed % 2 == 0
    name = "lts__hit_9" if ratio else "lts__requests_9"
    acting = 100.0 * hits / (hits + misses) if ratio else hits + misses
    return Composition(
        sources={name: acting},
        duration=_log_linear(**{name: -0.04 / acting.std() if ratio else 0.04 / acting.std()}),
        noise_of=_skewed(rows),
        kernel=_one_kernel(rows),
        beside={"lts__tags_a_10": hits, "lts__tags_b_11": misses},
    )


def _opaque(rng: np.random.Generator, rows: int, seed: int) -> Composition:
    """Three causes, one of them a category, with names that say nothing at all."""
    first, second, third = (f"c{rng.integers(16**6):06x}" for _ in range(3))
    slow = autoregressive(rng, rows, np.asarray([0.6]))[:, 0]
    mode = rng.choice(np.asarray(["p", "q", "r"], dtype=object), rows, p=[0.6, 0.25, 0.15])

    def duration(causes: Columns, noise: np.ndarray) -> np.ndarray:
        log_time = 0.03 * causes[first] + 0.02 * np.maximum(causes[second], 0.0) + 0.05 * (causes[third] == "r")
        return BASE_NS * np.exp(log_time + noise)

    return Composition(
        sources={first: slow, second: rng.standard_t(6, rows), third: mode},
        duration=duration,
        noise_of=_skewed(rows),
        kernel=_one_kernel(rows),
    )


def _some_kernels(rng: np.random.Generator, rows: int, seed: int) -> Composition:
    """Of eight kernels, two are slowed by a counter that varies in all."""
    kernel = rng.integers(0, 8, rows)
    level = rng.lognormal(6.0, 1.0, 8)[kernel]
    conflicts = np.floor(level * np.exp(0.3 * rng.standard_normal(rows)))
    base = rng.lognormal(11.0, 0.6, 8)[kernel]
    slope = np.where(kernel < 2, 0.2, 0.0)
    return Composition(
        sources={"l1tex__banks_shared_5": conflicts},
        duration=lambda causes, noise: base * np.exp(slope * causes["l1tex__banks_shared_5"] / level + noise),
        noise_of=_skewed(rows),
        kernel=kernel,
    )


def _exposed_copy(rng: np.random.Generator, rows: int, seed: int) -> Composition:
    """The time by which a linked transfer outlasts its launch: bytes, direction, and other copies beside it."""
    linked = np.floor(2.0**21 * np.exp(0.2 * rng.standard_normal(rows)))
    kind = rng.choice(np.asarray(["host to device", "device to host"], dtype=object), rows, p=[0.7, 0.3])
    others = np.where(rng.random(rows) < 0.35, np.floor(rng.gamma(3.0, 2**19, rows)), 0.0)
    rate = np.where(kind == "host to device", 24.0, 20.0)

    def duration(causes: Columns, noise: np.ndarray) -> np.ndarray:
        transfer = 3000.0 + linked / rate * (1.0 + causes["d2h_bytes_in_flight"] / 2**23)
        return np.abs(40_000.0 * np.exp(noise) - transfer)

    return Composition(
        sources={"d2h_bytes_in_flight": others},
        duration=duration,
        noise_of=_skewed(rows),
        kernel=_one_kernel(rows),
        beside={"transfer_bytes": linked, "transfer_copy_kind": kind},
        facts={
            "roles": {"d2h_bytes_in_flight": "exposure"},
            "target": "memory_stall",
            "definition": {"transfer_bytes", "transfer_copy_kind"},
        },
    )


WORLDS = {
    "behind": _behind,
    "correlated": _correlated,
    "determined": _determined,
    "energy": _energy,
    "exposed_copy": _exposed_copy,
    "null_waves": _null_waves,
    "opaque": _opaque,
    "prevalence": _prevalence,
    "ratio": _ratio,
    "some_kernels": _some_kernels,
}
"""By name: what composes a table from a generator, the number of rows and the seed."""

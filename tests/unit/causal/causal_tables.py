"""Tables with known causes, made independently of the method's assumptions.

Drivers hang together through hidden factors and have the marginals that GPU counters have (counts, log-normal, zero-inflated bytes, heavy
tails). Their effects are straight, saturating, thresholds, products; noise is heavy-tailed, its scale depends on drivers, and it may be
autocorrelated. Around them stand copies, sums, ratios, percentages, constants, aliases of the duration, noise columns.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.signal import lfilter


@dataclass
class Table:
    y: np.ndarray
    columns: dict[str, np.ndarray]
    causes: dict[str, str]  # name: stage
    aliases: set[str] = field(default_factory=set)  # of the duration
    same: dict[str, set[str]] = field(default_factory=dict)  # names that stand for a driver
    kernel: np.ndarray | None = None
    shares: dict[str, float] = field(default_factory=dict)
    signs: dict[str, str] = field(default_factory=dict)


def series(rng, n, k, rho):
    """Standard normal AR(1) columns."""
    noise = rng.standard_normal((n + 200, k))
    if not rho:
        return noise[200:]
    return lfilter([np.sqrt(1 - rho**2)], [1, -rho], noise, axis=0)[200:]


def marginal(kind, z, rng):
    if kind == "lognormal":
        return np.exp(rng.uniform(0.3, 0.9) * z) * 10 ** rng.integers(1, 7)
    if kind == "count":
        return np.floor(np.exp(0.6 * z) * rng.integers(20, 400))
    if kind == "bytes":
        return np.where(z > rng.uniform(-0.5, 0.8), np.exp(0.5 * np.abs(z)) * 2**20, 0.0)
    if kind == "uniform":
        from scipy.special import ndtr

        return ndtr(z) * 100
    if kind == "heavy":
        return np.sinh(z) * 1000 + 20000
    return z * 10 + 1000


KINDS = ("lognormal", "lognormal", "count", "bytes", "uniform", "heavy", "normal")


def effect(kind, u):
    """u: standard normal score of the driver."""
    if kind == "straight":
        return u
    if kind == "saturating":
        return np.tanh(1.2 * (u + 0.3))
    if kind == "threshold":
        return (u > 0.7).astype(float) * 2.0
    if kind == "convex":
        return np.exp(0.6 * u)
    return u


def scores(x):
    from scipy.special import ndtri
    from scipy.stats import rankdata

    return ndtri((rankdata(x) - 0.5) / len(x))


def make_table(seed, n=1642, p=100, n_drivers=25, n_causes=6, noise=1.0, rho=0.0, noise_rho=None, interactions=True, hidden=False, load=(0.0, 0.6)):
    rng = np.random.default_rng(seed)
    noise_rho = rho if noise_rho is None else noise_rho
    n_drivers = min(n_drivers, max(p // 3, n_causes + 2))
    factors = series(rng, n, max(2, n_drivers // 5), rho)
    own = series(rng, n, n_drivers, rho)
    a = rng.uniform(*load, n_drivers)
    z = np.sqrt(a) * factors[:, rng.integers(0, factors.shape[1], n_drivers)] + np.sqrt(1 - a) * own
    hide = series(rng, n, 1, rho)[:, 0]
    proxies = []
    if hidden:
        proxies = list(range(n_causes, min(n_causes + 3, n_drivers)))
        for j in proxies:
            z[:, j] = 0.6 * hide + 0.8 * z[:, j]
    drivers = np.column_stack([marginal(KINDS[rng.integers(len(KINDS))], z[:, j], rng) for j in range(n_drivers)])
    names = [f"unit{j % 7}_events_{j:03d}" for j in range(n_drivers)]
    # what the causes do
    mean, log_scale = np.zeros(n), np.zeros(n)
    causes = {}
    parts = []
    for c in range(n_causes):
        u = scores(drivers[:, c]) if np.unique(drivers[:, c]).size > n / 3 else (drivers[:, c] - drivers[:, c].mean()) / drivers[:, c].std()
        in_mean = c % 3 != 2
        if in_mean:
            g = effect(("straight", "saturating", "threshold", "convex")[rng.integers(4)], u)
            g = (g - g.mean()) / g.std() * rng.uniform(0.5, 1.1) * rng.choice([-1, 1])
            mean += g
            parts.append(g)
            causes[names[c]] = "mean"
        if not in_mean or rng.random() < 0.2:
            log_scale += rng.uniform(0.45, 0.8) * rng.choice([-1, 1]) * np.clip(u, -3, 3)
            causes[names[c]] = "both" if in_mean else "scale"
    if interactions and len(parts) >= 2:
        mean += 0.4 * parts[0] * parts[1]
    if hidden:
        mean += 0.8 * hide
    eps = series(rng, n, 1, noise_rho)[:, 0] if noise_rho else rng.standard_t(5, n) / np.sqrt(5 / 3)
    y = 1e5 * np.exp(0.1 * mean + 0.1 * noise * np.exp(log_scale - 0.5 * log_scale.var()) * eps)
    columns = {name: drivers[:, j] for j, name in enumerate(names)}
    same = {name: {name} for name in names}
    aliases = set()

    def add(name, values):
        columns[name] = values

    for i, (name, values) in enumerate(
        [
            ("gpu_time_duration", y * 1.0),
            ("sm_cycles_elapsed", y * 1.41 * np.exp(0.002 * rng.standard_normal(n))),
            ("dram_bytes_per_second", (drivers[:, -1] + 1) / y),
            ("wall", y + 5.0 * rng.standard_normal(n)),
            ("rate_of_events", (np.abs(drivers[:, 0]) + 1) / y),
        ]
    ):
        add(name, values)
        aliases.add(name)
    add("compute_capability", np.full(n, 8.0))
    add("clock_locked", np.zeros(n))
    k = 0
    while len(columns) < p:
        kind = k % 6
        k += 1
        i, j = rng.integers(0, n_drivers, 2)
        if kind == 0:
            add(f"copy_of_{names[i]}_{k}", drivers[:, i] * 32 * (1 + 0.01 * rng.standard_normal(n)))
            same[names[i]].add(f"copy_of_{names[i]}_{k}")
        elif kind == 1 and i != j:
            add(f"sum_of_{names[i]}_{names[j]}_{k}", drivers[:, i] + drivers[:, j])
        elif kind == 2 and i != j:
            add(f"pct_ratio_of_{names[i]}_{names[j]}_{k}", 100 * drivers[:, i] / (np.abs(drivers[:, j]) + 1))
        else:
            add(f"idle_unit_{k}", marginal(KINDS[rng.integers(len(KINDS))], series(rng, n, 1, rho)[:, 0], rng))
    order = rng.permutation(list(columns))
    return Table(y, {name: columns[name] for name in order}, causes, aliases, same)


def null_table(seed, n=1642, p=60, rho=0.0):
    rng = np.random.default_rng(seed)
    z = series(rng, n, p + 1, rho)
    columns = {f"metric_{j:03d}": marginal(KINDS[j % len(KINDS)], z[:, j], rng) for j in range(p)}
    return Table(1e5 * (1 + 0.05 * z[:, p]), columns, {})

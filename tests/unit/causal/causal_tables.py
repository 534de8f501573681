"""Tables with known causes, made independently of the method's assumptions.

Drivers hang together through hidden factors and have the marginals that GPU counters have (counts, log-normal,
zero-inflated bytes, heavy tails). Their effects are straight, saturating, thresholds, products; noise is heavy-tailed,
its scale depends on drivers, and it may be autocorrelated. Around them stand copies, sums, ratios, percentages,
constants, aliases of the duration, noise columns.
"""

from dataclasses import dataclass, field

import numpy as np
from scipy.signal import lfilter

from causeway.causal.data.outcome import CONFIGURATION
from causeway.causal.effects.interventions import InterventionModel
from causeway.causal.effects.time_effects import Compared, time_effect


def intervention_model(outcome, evidence, seed=0) -> InterventionModel:
    """Return what the what-ifs of an outcome are computed from."""
    return InterventionModel(evidence.times, outcome.arrows)


@dataclass
class Table:
    y: np.ndarray
    columns: dict[str, np.ndarray]
    causes: dict[str, str]  # name: stage
    aliases: set[str] = field(default_factory=set)  # of the duration
    same: dict[str, set[str]] = field(default_factory=dict)  # names that stand for a driver
    kernel: np.ndarray | None = None
    shares: dict[str, float] = field(default_factory=dict)
    signs: dict[str, dict[str, str]] = field(default_factory=dict)  # of "target" and "value", where clear


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


def make_table(
    seed,
    n=1642,
    p=100,
    n_drivers=25,
    n_causes=6,
    noise=1.0,
    rho=0.0,
    noise_rho=None,
    interactions=True,
    hidden=False,
    load=(0.0, 0.6),
):
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
    causes = {}
    acts = []
    inputs = []
    for c in range(n_causes):
        u = (
            scores(drivers[:, c])
            if np.unique(drivers[:, c]).size > n / 3
            else (drivers[:, c] - drivers[:, c].mean()) / drivers[:, c].std()
        )
        in_mean = c % 3 != 2
        kind = ("straight", "saturating", "threshold", "convex")[rng.integers(4)]
        g = effect(kind, u)
        size = rng.uniform(0.5, 1.1) * rng.choice([-1, 1]) if in_mean else 0.0
        in_scale = not in_mean or rng.random() < 0.2
        slope = rng.uniform(0.45, 0.8) * rng.choice([-1, 1]) if in_scale else 0.0
        acts.append((kind, g.mean(), g.std(), size, slope))
        inputs.append(u)
        causes[names[c]] = "both" if in_mean and in_scale else "mean" if in_mean else "scale"
    eps = series(rng, n, 1, noise_rho)[:, 0] if noise_rho else rng.standard_t(5, n) / np.sqrt(5 / 3)
    inputs = np.column_stack(inputs)
    centre = np.var(inputs @ np.asarray([act[4] for act in acts]))

    def structure(values, noise_values):
        parts = [(effect(kind, u) - m) / s * size for u, (kind, m, s, size, _) in zip(values.T, acts, strict=True)]
        mean = np.sum(parts, axis=0)
        moving = [part for part, act in zip(parts, acts, strict=True) if act[3]]
        if interactions and len(moving) >= 2:
            mean = mean + 0.4 * moving[0] * moving[1]
        if hidden:
            mean = mean + 0.8 * hide
        log_scale = np.clip(values, -3, 3) @ np.asarray([act[4] for act in acts])
        return 1e5 * np.maximum(
            1 + 0.03 * mean + 0.03 * noise * np.exp(np.clip(log_scale - 0.5 * centre, -2.0, 1.5)) * noise_values, 0.2
        )

    y = structure(inputs, eps)
    shares, *slopes = true_shares(structure, inputs, eps, drivers[:, :n_causes], rng)
    columns = {name: drivers[:, j] for j, name in enumerate(names)}
    same = {name: {name} for name in names}
    aliases = set()

    def add(name, values):
        columns[name] = values

    for name, values in [
        ("gpu_time_duration", y * 1.0),
        ("sm_cycles_elapsed", y * 1.41 * np.exp(0.002 * rng.standard_normal(n))),
        ("dram_bytes_per_second", (drivers[:, -1] + 1) / y),
        ("wall", y + 5.0 * rng.standard_normal(n)),
        ("rate_of_events", (np.abs(drivers[:, 0]) + 1) / y),
    ]:
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
    signs = {
        name: {
            about: "+" if slope > 0 else "-"
            for about, slope in zip(("target", "value"), both, strict=True)
            if abs(slope) > 0.05
        }
        for name, *both in zip(causes, *slopes, strict=True)
    }
    return Table(
        y,
        {name: columns[name] for name in order},
        causes,
        aliases,
        same,
        shares=dict(zip([*causes, "unexplained"], shares, strict=True)),
        signs=signs,
    )


def true_shares(structure, inputs, eps, drivers, rng, swaps=40):
    """Percent of the variance of |y - mean| of each cause and the noise, and the slopes of |y - mean| and of y on
    each driver, in sd.
    """
    y = structure(inputs, eps)
    middle = y.mean()
    absolute = np.abs(y - middle)
    x = (drivers - drivers.mean(axis=0)) / drivers.std(axis=0)
    x = np.clip(x, *np.quantile(x, [0.001, 0.999], axis=0))
    sums = np.zeros(inputs.shape[1] + 1)
    cross = np.zeros((2, inputs.shape[1]))
    square = np.zeros(inputs.shape[1])
    for _ in range(swaps):
        partner = rng.permutation(len(y))
        for j in range(inputs.shape[1]):
            other = inputs.copy()
            other[:, j] = inputs[partner, j]
            changed = structure(other, eps)
            change = np.abs(changed - middle) - absolute
            moved = x[partner, j] - x[:, j]
            sums[j] += (change**2).sum()
            cross[:, j] += change @ moved, (changed - y) @ moved
            square[j] += moved @ moved
        sums[-1] += ((np.abs(structure(inputs, eps[partner]) - middle) - absolute) ** 2).sum()
    return 100 * sums / sums.sum(), *(cross / square / [[absolute.std()], [y.std()]])


def null_table(seed, n=1642, p=60, rho=0.0):
    rng = np.random.default_rng(seed)
    z = series(rng, n, p + 1, rho)
    columns = {f"metric_{j:03d}": marginal(KINDS[j % len(KINDS)], z[:, j], rng) for j in range(p)}
    return Table(1e5 * (1 + 0.05 * z[:, p]), columns, {})


def pooled_table(seed, n=1201, p=100, n_kernels=17, n_causes=6, heterogeneity=0.5):
    """Kernels whose means of drivers and of y are related opposite to what happens within each kernel (Simpson's
    paradox).
    """
    rng = np.random.default_rng(seed)
    kernel = np.sort(rng.integers(0, n_kernels, n))
    kernel = kernel[rng.permutation(n)]
    n_drivers = max(n_causes + 4, p // 3)
    level = rng.standard_normal((n_kernels, n_drivers))
    z = rng.standard_normal((n, n_drivers)) * 0.7
    factor = rng.standard_normal(n)
    z[:, ::3] += 0.5 * factor[:, None]
    sign = rng.choice([-1, 1], n_causes)
    mean = np.zeros(n)
    base = rng.standard_normal(n_kernels)
    causes = {}
    signs = {}
    names = [f"counter_{j:03d}" for j in range(n_drivers)]
    for c in range(n_causes):
        u = np.exp(0.5 * z[:, c])  # rare and large: a skewed driver moves the deviation and its size alike
        u = (u - u.mean()) / u.std()
        strength = rng.uniform(0.6, 1.0) * (1 + heterogeneity * rng.uniform(-1, 1, n_kernels))
        mean += sign[c] * strength[kernel] * u
        base -= 2.0 * sign[c] * level[:, c]  # between kernels the other way round
        causes[names[c]] = "mean"
        # a skewed driver's tail raises the deviation whichever way it moves the value
        signs[names[c]] = {"target": "+", "value": "+" if sign[c] > 0 else "-"}
    y = np.exp(0.4 * base[kernel]) * 1e5 * (1 + 0.03 * mean + 0.03 * rng.standard_t(5, n))
    drivers = np.exp(0.5 * z + 1.0 * level[kernel]) * 1000
    columns = {name: drivers[:, j] for j, name in enumerate(names)}
    k = 0
    while len(columns) < p:
        i, j = rng.integers(0, n_drivers, 2)
        k += 1
        if k % 3 == 0:
            columns[f"total_{k}"] = drivers[:, i] + drivers[:, j]
        else:
            columns[f"idle_{k}"] = np.exp(0.5 * rng.standard_normal(n) + rng.standard_normal(n_kernels)[kernel])
    columns["time_duration"] = y
    return Table(y, columns, causes, {"time_duration"}, {}, kernel, {}, signs)


def rows_of(y, kernel=None, configuration=None, weight=None):
    """Rows of measured values, with the statistics of the rows themselves."""
    from causeway.causal.data.observations import Observations

    y = np.asarray(y, dtype=float)
    kernel = np.zeros(y.size, int) if kernel is None else kernel
    configuration = kernel if configuration is None else configuration
    mean = np.zeros(y.size)
    std = np.full(y.size, np.nan)
    for number in np.unique(configuration):
        mine = configuration == number
        mean[mine] = y[mine].mean()
        if mine.sum() > 1:
            std[mine] = y[mine].std(ddof=1)
    weight = np.ones(y.size) if weight is None else weight
    return Observations(np.abs(y - mean), y - mean, mean, std, weight, kernel, configuration)


def columns_of(table):
    from causeway.causal.data.observations import Feature

    return [Feature(name, values) for name, values in table.columns.items()]


def counts(table, outcome):
    """True and false causes among the arrows, and causes that were missed; an arrow means its cluster."""
    clusters = [set(arrow.node.members) for arrow in outcome.arrows]
    true = sum(bool(members & set(table.causes)) for members in clusters)
    missed = sum(not any(name in members for members in clusters) for name in table.causes)
    return np.array([true, len(clusters) - true, missed])


def f1(sums):
    true, false, missed = sums
    return 2 * true / (2 * true + false + missed)


def time_effects(times, arrows):
    """Return by name what each cause that varies within configurations does to the time, of those that can be told."""
    found = {}
    for arrow in arrows:
        if arrow.stage != CONFIGURATION:
            times.compared[arrow.name] = Compared(times, arrow, 1.0)
            found[arrow.name] = time_effect(times, arrow, times.compared[arrow.name])
    return {name: effect for name, effect in found.items() if effect is not None}

"""Mean changes on tables of another generator, which nothing was chosen on: causes that act in some levels alone or
differently in each, beyond a threshold of another cause, by themselves, and beside a spread that differs.
"""

import numpy as np
import pytest
from causal_tables import series
from test_effects_of_levels import found_and_played

pytestmark = pytest.mark.slow

N = 1500
TABLES = 12


def in_one_level(rng):
    noise = rng.gamma(400, 1 / 400, N)
    columns = {"op": rng.choice(list("abcd"), N, p=[0.5, 0.25, 0.15, 0.1]), "x": rng.lognormal(0, 1, N)}
    return columns, lambda c: 1e5 * noise * (1 + 0.3 * np.log1p(c["x"]) * (c["op"] == "d")), {"op": "d"}


def both_ways_in_one_level(rng):
    noise = np.exp(0.03 * rng.standard_normal(N))
    columns = {"op": rng.choice(list("abc"), N), "x": rng.standard_normal(N)}
    return columns, lambda c: 1e5 * noise * (1 + 0.08 * c["x"] ** 2 * (c["op"] == "c")), {"op": "c"}


def beyond_a_threshold(rng):
    noise = np.exp(0.05 * rng.standard_normal(N))
    columns = {"x": rng.uniform(size=N), "z": rng.exponential(size=N)}
    return columns, lambda c: 1e5 * noise * (1 + 0.4 * c["x"] * (c["z"] > 1.2)), {}


def each_combination_its_own(rng):
    noise = np.exp(0.05 * rng.standard_normal(N))
    effects = rng.normal(0, 0.15, (6, 3))
    columns = {"a": rng.choice(list("abcdef"), N), "b": rng.choice(list("uvw"), N)}

    def play(c):
        of_both = effects[np.searchsorted(list("abcdef"), c["a"]), np.searchsorted(list("uvw"), c["b"])]
        return 1e5 * noise * np.exp(of_both)

    return columns, play, {"a": "f", "b": "w"}


def additive_with_outliers(rng):
    noise = 3 * rng.standard_t(3, N)
    columns = {"op": rng.choice(list("abcd"), N), "x": rng.uniform(size=N)}
    return columns, lambda c: 100 + 8 * c["x"] + 5 * (c["op"] == "b") + noise, {"op": "b"}


def beside_a_wider_level(rng):
    noise = rng.standard_normal(N)
    columns = {"op": rng.choice(list("abc"), N, p=[0.5, 0.3, 0.2]), "x": rng.uniform(size=N)}
    return columns, lambda c: 100 + 10 * c["x"] + 3 * noise * (1 + (c["op"] == "c") * 2), {"op": "c"}


def counted_in_one_level(rng):
    noise = series(rng, N, 1, 0.5)[:, 0]
    columns = {"op": rng.choice(list("abcde"), N), "copies": rng.integers(0, 4, N).astype(float)}
    return (
        columns,
        lambda c: 1e5 * np.exp(0.04 * noise) * (1 + 0.25 * np.sqrt(c["copies"]) * (c["op"] == "b")),
        {"op": "b"},
    )


KINDS = (
    in_one_level,
    both_ways_in_one_level,
    beyond_a_threshold,
    each_combination_its_own,
    additive_with_outliers,
    beside_a_wider_level,
    counted_in_one_level,
)


def test_intervals_hold_what_was_played():
    """The 90 % intervals of 168 changes; of 84 tables, .905 when this was written, .55 before products took levels."""
    held = []
    for kind in KINDS:
        for seed in range(TABLES):
            for effect, truth, _ in found_and_played(*kind(np.random.default_rng(4242 + seed))[:2]).values():
                held.append(effect.mean.low <= truth <= effect.mean.high)
    assert len(held) == 2 * TABLES * len(KINDS)
    assert 0.86 <= np.mean(held) <= 0.97

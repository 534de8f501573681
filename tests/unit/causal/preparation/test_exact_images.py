"""What was computed from the time is a leak, exactly; what determines the time, but for its noise, is a cause."""

import numpy as np
import pytest
from causal_tables import rows_of

from causeway.causal.data.observations import Feature
from causeway.causal.data.outcome import Scope
from causeway.causal.discovery.discover import discover
from causeway.causal.preparation.exact_images import has_time_unit, is_image, is_unit_copy, keeps_order, product_images
from causeway.causal.preparation.leak_attribution import calculated_from
from causeway.causal.preparation.prepare import prepare
from support import few

pytestmark = pytest.mark.usefixtures("rough_shares")
N = 600


def arrows(columns, y, **facts):
    table = [Feature(name, values, **facts.get(name, {})) for name, values in columns.items()]
    return discover(table, rows_of(y), Scope("d", "y", "k"))[0].arrows


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(8, 20))])
def test_a_cause_that_determines_the_time_is_named(seed):
    """A memory-bound kernel of varying work, with noise of 1 to 3 %; every second one with two counters that add up."""
    rng = np.random.default_rng(7000 + seed)
    sectors, requests = np.exp(0.5 * rng.standard_normal((2, N))) * [[3e6], [2e6]]
    work = 0.01 * sectors + (0.02 * requests if seed % 2 else 0.0) + 2e3
    y = work * np.exp(rng.uniform(0.01, 0.03) * rng.standard_normal(N))
    columns = {"sectors": sectors, "requests": requests, "wall": y + 5 * rng.standard_normal(N)}
    columns |= {f"idle_{k}": rng.standard_normal(N) for k in range(5)}
    found = {arrow.name: arrow.determines_time for arrow in arrows(columns, y)}
    assert found.get("sectors") is (seed % 2 == 0)
    assert ("requests" in found) == bool(seed % 2)
    assert "wall" not in found


@pytest.mark.parametrize("seed", few(range(4), 1))
def test_the_rate_of_a_cause_that_determines_the_time_is_the_leak(seed):
    rng = np.random.default_rng(7100 + seed)
    sectors = np.exp(0.6 * rng.standard_normal(N)) * 3e6
    y = 0.01 * sectors * np.exp(0.02 * rng.standard_normal(N))
    columns = {"sectors": sectors, "xyz": (sectors + seed) / y, "idle": rng.standard_normal(N)}
    assert [arrow.name for arrow in arrows(columns, y)] == ["sectors"]


@pytest.mark.parametrize("offset", [0.0, 1.0, 50.0])
def test_a_rate_that_is_not_in_proportion_to_its_amount_is_a_leak(offset):
    rng = np.random.default_rng(7200)
    amount = np.floor(100 * rng.random(N))
    y = 1e5 * np.exp(0.1 * rng.standard_normal(N))
    columns = {"amount": amount, "xyz": (amount + offset) / y, "z": rng.standard_normal(N)}
    dropped = prepare([Feature(name, values) for name, values in columns.items()], rows_of(y), "y").dropped
    assert "amount" not in {one.feature for one in dropped}
    raw = [columns[name] for name in ("amount", "xyz", "z")]
    assert product_images(raw, [True] * 3, y).tolist() == [False, offset > 0, False]
    assert product_images(raw, [True] * 3, y, calculated_from).tolist() == [False, True, False]
    assert product_images(raw, [False, True, True], y).tolist() == [False, True, False]


def test_noise_of_one_percent_is_no_image_and_rounding_is():
    rng = np.random.default_rng(7300)
    amount = np.exp(rng.standard_normal(N)) * 1e4
    y = 1e5 * np.exp(0.2 * rng.standard_normal(N))
    assert is_image(amount / y, amount, y)
    assert is_image(np.round(amount / y, 5), amount, y)
    assert not is_image(amount / y * np.exp(0.01 * rng.standard_normal(N)), amount, y)
    assert not is_image(amount * (1 + 1e-4 * rng.standard_normal(N)), amount, y)


def test_the_time_in_another_unit_is_a_copy_whatever_its_overhead():
    assert is_unit_copy(np.array([1.0, 1e-3, -1e6, 1.0015, 0.9985])).all()
    assert not is_unit_copy(np.array([1.02, 2.0, 0.01, 0.0, 500.0])).any()
    rng = np.random.default_rng(7400)
    y = 1e5 * np.exp(0.3 * rng.standard_normal(N))
    columns = {"wall": y / 1e3 + 5 + 0.6 * rng.standard_normal(N), "z": rng.standard_normal(N)}
    assert arrows(columns, y) == ()
    slow = {"x": 0.37 * y * np.exp(0.01 * rng.standard_normal(N)), "z": rng.standard_normal(N)}
    assert [arrow.determines_time for arrow in arrows(slow, y)] == [True]
    assert arrows(slow, y, x={"unit": "usecond"}) == ()


@pytest.mark.parametrize(
    ("unit", "is_time"), [("ns", True), ("Gbyte/s", True), ("inst/cycle", True), ("byte", False), ("", False)]
)
def test_units_of_times_are_known(unit, is_time):
    assert has_time_unit(unit) == is_time


@pytest.mark.parametrize("image", [np.log, lambda y: np.round(1e9 / y, 3), lambda y: np.floor(y * 1.41 / 32)])
def test_a_function_of_the_time_is_found_in_kernels_of_all_sizes(image):
    """Over kernels that differ by factors no linear relation within configurations is exact, but the order is."""
    random = np.random.default_rng(3)
    time = 10 ** random.uniform(4, 6, 17)[np.arange(1200) % 17] * np.exp(0.1 * random.standard_normal(1200))
    assert keeps_order(image(time), time)
    assert not keeps_order(image(time * np.exp(0.003 * random.standard_normal(1200))), time)


def test_a_few_levels_in_the_order_of_the_time_are_no_function_of_it():
    time = np.sort(np.random.default_rng(4).uniform(1, 2, 500))
    assert not keeps_order(np.floor(np.arange(500) / 20), time)
    assert keeps_order(np.floor(np.arange(500) / 8), time)


def order_by_pairs(column, time):
    """By brute force: the longest row of launches that rise in both, if all pairs keep the order; else 0."""
    longest = []
    order = sorted(range(len(time)), key=lambda i: (time[i], column[i]))
    if any(time[i] < time[j] and column[i] > column[j] for i in order for j in order):
        return 0
    for position, i in enumerate(order):
        before = [longest[k] for k, j in enumerate(order[:position]) if time[j] < time[i] and column[j] < column[i]]
        longest.append(1 + max(before, default=0))
    return max(longest)


def test_the_order_is_that_of_all_pairs_of_launches():
    """Against all pairs, for coarse and fine times and columns that are in order, nearly so, or not at all."""
    random = np.random.default_rng(5)
    seen = set()
    for case in range(120):
        exact = np.sort(random.uniform(0, 1, 160))[random.permutation(160)]
        time = np.floor(exact * random.choice([2, 20, 49, 55, 70, 200]))
        column = np.floor((exact + 0.5) * random.choice([30, 60, 90, 400]) + random.uniform())
        if case % 4 == 0:
            column[random.integers(160)] = random.choice(column)
        if case % 4 == 1:
            column = -column
        expected = max(order_by_pairs(column, time), order_by_pairs(-column, time)) >= 50
        assert keeps_order(column, time) == expected
        seen.add(expected)
    assert seen == {True, False}


@pytest.mark.parametrize("values", [2, 3, 4, 6, 30, 400])
def test_columns_independent_of_a_coarse_time_are_no_function_of_it(values):
    random = np.random.default_rng(6)
    time = 2048 + 32.0 * random.integers(0, values, 1500)
    assert not any(keeps_order(random.standard_normal(1500), time) for _ in range(100))


def test_launches_that_are_slow_and_others_that_have_little_are_not_one_step_each():
    time = np.full(5000, 2048.0)
    column = np.full(5000, 7.0)
    time[:60] += np.arange(1, 61)
    column[60:120] -= np.arange(1, 61)
    assert order_by_pairs(column[:200], time[:200]) == 2
    assert not keeps_order(column, time)


def test_a_cause_that_decides_between_two_values_of_a_timer_is_found():
    """1,500 launches of 2,048 or 2,144 ns: the cause makes the slower one likelier, and nothing else does."""
    random = np.random.default_rng(7)
    cause = random.standard_normal(1500)
    time = np.where(cause + 0.8 * random.standard_normal(1500) > 0.4, 2144.0, 2048.0)
    columns = {
        "cause": cause,
        "noise": random.standard_normal(1500),
        "other": random.exponential(1.0, 1500),
        "count": random.integers(0, 100, 1500).astype(float),
    }
    assert [arrow.name for arrow in arrows(columns, time)] == ["cause"]
    step = np.where(cause > 0.4, 2144.0, 2048.0)  # without noise, in the order of its cause throughout
    assert not keeps_order(cause, step)

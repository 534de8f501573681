"""Second looks at what the search chose: leaks that gaps hide; and causes beside their sums."""

import numpy as np
import pytest
from causal_tables import rows_of

from causeway.causal.data.observations import Feature
from causeway.causal.data.outcome import Scope
from causeway.causal.discovery.discover import discover

pytestmark = pytest.mark.usefixtures("rough_shares")


def arrows(columns, y):
    outcome, _ = discover([Feature(name, values) for name, values in columns.items()], rows_of(y), Scope("d", "y", "k"))
    return {arrow.name for arrow in outcome.arrows}, {one.feature: one.reason for one in outcome.dropped}


def gappy(values, rng):
    return np.where(rng.random(values.size) < 0.03, np.nan, values)


@pytest.fixture
def world():
    """An amount that is a cause, the rate of it that leaks the time, and counters that go with the amount."""
    rng = np.random.default_rng(611)
    amount = np.exp(0.6 * rng.standard_normal(1500)) * 1e6
    y = 1e5 * (1 + 0.04 * np.log(amount / 1e6) ** 2 + 0.03 * rng.standard_normal(1500))
    beside = {f"beside_{k}": np.log(amount) + 0.3 * rng.standard_normal(1500) for k in range(3)}
    return rng, amount, y, beside


@pytest.mark.parametrize("gaps", ["amount", "rate", "both", "none"])
def test_of_amount_and_rate_the_rate_is_the_leak_whatever_has_gaps(world, gaps):
    rng, amount, y, beside = world
    columns = {"abc": amount, "xyz": amount / y, **beside}
    for name, place in (("amount", "abc"), ("rate", "xyz")):
        if gaps in (name, "both"):
            columns[place] = gappy(columns[place], rng)
    found, dropped = arrows(columns, y)
    assert found == {"abc"}
    assert "measured value" in dropped["xyz"]


@pytest.mark.parametrize("gaps", ["amount", "rate", "both", "none"])
def test_a_thousand_minus_a_rate_is_a_leak_and_no_witness_against_the_amount(world, gaps):
    """The rate is below 1,000: 1,000 minus it is positive, and the amount a product of its own with the time."""
    rng, amount, y, beside = world
    rate = 10 * amount / 1e6 * 1e5 / y
    columns = {"abc": amount, "xyz": rate, **beside}
    for name, place in (("amount", "abc"), ("rate", "xyz")):
        if gaps in (name, "both"):
            columns[place] = gappy(columns[place], rng)
    found, dropped = arrows(columns | {"left": 1000 - 2 * columns["xyz"]}, y)
    assert found == {"abc"}
    assert dropped["left"] == "follows exactly from a column that follows from the measured value itself: xyz"


def test_a_rate_of_something_that_is_often_zero_is_an_alias():
    rng = np.random.default_rng(616)
    y = 1e5 * np.exp(0.1 * rng.standard_normal(900))
    amount = np.where(rng.random(900) < 0.6, np.exp(rng.standard_normal(900)) * 1e6, 0.0)
    assert arrows({"amount": amount, "speed": amount / y, "z": rng.standard_normal(900)}, y)[0] == set()


def test_a_bent_copy_of_the_measured_time_is_a_leak():
    rng = np.random.default_rng(612)
    y = 1e5 * np.exp(0.3 * rng.standard_normal(800))
    found, dropped = arrows({"x": np.exp(-((y / 1e5) ** 2)), "z": rng.standard_normal(800)}, y)
    assert found == set()
    assert "measured value" in dropped["x"]


def test_a_cause_is_told_from_the_two_columns_of_which_it_is_the_difference():
    rng = np.random.default_rng(613)
    cause, other = np.exp(0.5 * rng.standard_normal((2, 1500))) * 1000
    y = 1e5 * (1 + 0.05 * (cause > 1500) + 0.02 * rng.standard_normal(1500))
    found, _ = arrows({"the_cause_with_a_long_name": cause, "b": other, "ab": cause + other}, y)
    assert found == {"the_cause_with_a_long_name"}


def test_two_causes_do_not_give_way_to_the_difference_between_them():
    rng = np.random.default_rng(614)
    one, other = np.exp(0.5 * rng.standard_normal((2, 1500))) * 1000
    y = 1e5 * (1 + 0.05 * (one > 1500) + 0.05 * (other > 1500) + 0.02 * rng.standard_normal(1500))
    found, _ = arrows({"a": one, "b": other, "the_sum_of_both": one + other, "the_difference": one - other}, y)
    assert found == {"a", "b"}


def test_a_cause_is_told_from_its_sum_with_another_column_where_that_has_gaps():
    rng = np.random.default_rng(615)
    one, other = np.exp(0.5 * rng.standard_normal((2, 1500))) * 1000
    y = 1e5 * (1 + 0.05 * (one > 1500) + 0.02 * rng.standard_normal(1500))
    found, _ = arrows({"a": one, "b": other, "the_sum": gappy(one + other, rng)}, y)
    assert found == {"a"}

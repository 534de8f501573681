"""What ten percentiles, one level, whole columns and one column at a time cannot see: thresholds, second slow hosts, gaps,
pairs and the launch before. Truth is by construction.
"""

import re

import numpy as np
import pytest
from causal_documents import documents_of
from causal_tables import rows_of

from causeway.causal.data.observations import Feature
from causeway.causal.data.outcome import Scope
from causeway.causal.discovery.discover import discover

pytestmark = pytest.mark.usefixtures("rough_shares")
N = 2400


def searched(columns, y):
    table = [Feature(name, values) for name, values in columns.items()]
    return explained(table, y)


def explained(table, y):
    outcome = discover(table, rows_of(y), Scope("d", "y", "k"))[0]
    return outcome, documents_of(outcome)["graph"]["sentences"]


def noise(rng):
    return {f"z{k}": rng.standard_normal(N) for k in range(6)}


@pytest.mark.parametrize("seed", [61, 62])
def test_two_columns_that_tell_only_together_are_named_where_no_cause_is(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.standard_normal((2, N))
    alike = np.sign(a) == np.sign(b)
    outcome, (sentence,) = searched(
        {"a": a, "b": b} | noise(rng), 1e5 * (1 + 0.1 * alike + 0.02 * rng.standard_normal(N))
    )
    assert outcome.arrows == ()
    assert "a single column's effect at its launch above" in sentence
    assert (outcome.beyond.features, outcome.beyond.is_earlier) == (("a", "b"), False)
    # of the product of two normal numbers and the sign of it, the correlation is (E|z|)^2 = 2 / pi
    assert outcome.beyond.share == pytest.approx(
        (2 / np.pi) ** 2 * alike.var() * 0.01 / (alike.var() * 0.01 + 4e-4), abs=0.05
    )
    assert "A and b together go with some" in sentence


@pytest.mark.parametrize("seed", [63, 64])
def test_a_column_of_the_launch_before_is_named_where_no_cause_is(seed):
    rng = np.random.default_rng(seed)
    a = rng.standard_normal(N)
    y = 1e5 * (1 + 0.05 * np.append(0.0, a[:-1]) + 0.04 * rng.standard_normal(N))
    outcome, (sentence,) = searched({"a": a} | noise(rng), y)
    assert outcome.arrows == ()
    assert (outcome.beyond.features, outcome.beyond.is_earlier) == (("a",), True)
    assert outcome.beyond.share == pytest.approx(25 / 41, abs=0.05)
    assert "A one launch earlier goes with some" in sentence


@pytest.mark.parametrize("tables", [6, pytest.param(20, marks=pytest.mark.slow)])
def test_of_columns_that_do_nothing_nothing_more_is_said(tables):
    said = 0
    for seed in range(400, 400 + tables):
        rng = np.random.default_rng(seed)
        outcome, _ = searched({f"z{k}": rng.standard_normal(N) for k in range(40)}, 1e5 + rng.standard_normal(N))
        said += outcome.beyond is not None
    assert said == 0


@pytest.mark.parametrize("seed", [65, 66])
def test_of_a_column_with_gaps_the_percentiles_are_those_of_what_was_recorded(seed):
    """The column moves the logarithm of the time by .025 a standard deviation: 2.56 of them lie between its 10th and its
    90th percentile.
    """
    rng = np.random.default_rng(seed)
    link = rng.standard_normal(N)
    y = 1e5 * np.exp(0.025 * link + 0.02 * rng.standard_normal(N))
    link[rng.random(N) < 0.4] = np.nan
    outcome, (sentence,) = searched({"link": link} | noise(rng), y)
    (arrow,) = outcome.arrows
    assert arrow.in_time.mean.low < 2.5 * 2.563 < arrow.in_time.mean.high
    assert arrow.in_time.recorded == pytest.approx(0.6, abs=0.03)
    assert re.search(r"percentile, recorded in (59|60|61|62) % of the launches", sentence)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("seed", [67, 68])
def test_of_what_acts_at_one_end_alone_the_value_and_the_means_are_said(seed, sign):
    rng = np.random.default_rng(seed)
    load = rng.standard_normal(N)
    acts = sign * load > np.quantile(sign * load, 0.96)
    y = 1e5 * (1 + 0.4 * acts + 0.03 * rng.standard_normal(N))
    outcome, (sentence,) = searched({"load": load} | noise(rng), y)
    (arrow,) = outcome.arrows
    ends = arrow.in_time.ends
    means = (ends.mean_low, ends.mean_high)[::sign]
    launches = (ends.launches_low, ends.launches_high)[::sign]
    assert launches == (N - acts.sum(), acts.sum())
    assert means == pytest.approx((y[~acts].mean(), y[acts].mean()), rel=1e-3)
    change = 100 * (y[acts].mean() - y[~acts].mean()) / y.mean()
    effect = arrow.in_time.mean
    assert effect.low < sign * change < effect.high
    cut = sign * np.min(sign * load[acts])
    words = f"to {cut:.3g} and above (96" if sign > 0 else f"from {cut:.3g} and below (96"
    assert words in sentence


def test_of_two_columns_of_one_name_the_one_that_acts_at_its_end_gives_its_own_value():
    rng = np.random.default_rng(69)
    load = 7 + rng.standard_normal(N)
    acts = load > np.quantile(load, 0.96)
    table = [Feature("load", rng.standard_normal(N)), Feature("load", load)]
    _, (sentence,) = explained(table, 1e5 * (1 + 0.4 * acts + 0.03 * rng.standard_normal(N)))
    assert f"to {load[acts].min():.3g} and above (96" in sentence


def test_a_straight_effect_is_said_between_percentiles():
    for seed in range(430, 440):
        rng = np.random.default_rng(seed)
        x = rng.standard_normal(N)
        outcome, _ = searched({"x": x}, 1e5 * (1 + 0.03 * x + 0.03 * rng.standard_normal(N)))
        (arrow,) = outcome.arrows
        assert arrow.in_time.ends is None


@pytest.mark.parametrize("seed", [69, 70])
def test_two_slow_hosts_of_thirty_are_both_named(seed):
    rng = np.random.default_rng(seed)
    host = rng.integers(0, 30, N)
    y = 1e5 * (1 + 0.2 * (host == 21) + 0.11 * (host == 7) + 0.05 * rng.standard_normal(N))
    names = np.array([f"node{number:02d}" for number in host], object)
    outcome, (sentence,) = searched({"host": names} | noise(rng), y)
    (arrow,) = outcome.arrows
    assert arrow.levels == ("node21",)
    assert dict(arrow.in_time.ends.slower)["node07"] == pytest.approx(y[host == 7].mean(), rel=1e-6)
    assert "(also slower: node07: " in sentence

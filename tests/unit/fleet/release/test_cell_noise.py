"""How much noise released counts hold: of the servers, and of the reports themselves, against repeated draws."""

import json
import math
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from fleet_samples import learn, small_layout
from scipy import integrate, optimize
from scipy.stats import norm

from causeway.core.tables import read_table
from causeway.fleet.release import aggregate, designer
from causeway.fleet.release.cell_noise import ReportNoise, ServerNoise, facts_of, from_facts, of_servers
from causeway.fleet.release.estimates import estimate

LAYOUT = small_layout()
CATALOGUE = learn({"a": ["x", "y", "z", "w"], "b": ["p", "q", "r"], "c": ["u", "v", "t"]})
PER_HOUR = 400
ROWS = np.array([0.6, 0.25, 0.1, 0.05, 0.0])
"""Shares of the reports by row: three applications, two clusters."""
BINS = LAYOUT.by_name["durations"].columns


def local_day(rng, monkeypatch, budget, threshold=100):
    """Release a day of flags that clients randomised; return it with each application's reports and each cell's
    launches.
    """
    q = 1 / (math.exp(budget / 2) + 1)
    rows = rng.choice(5, (24, PER_HOUR), p=ROWS)
    bins = rng.choice([2, 5, 6], rows.shape, p=[0.7, 0.2, 0.1])
    exact = np.zeros((24, 5 + 3 * BINS), int)
    for hour in range(24):
        exact[hour, :5] = np.bincount(rows[hour], minlength=5)
        known = rows[hour] < 3
        exact[hour, 5:] = np.bincount(rows[hour][known] * BINS + bins[hour][known], minlength=3 * BINS)
    sums = rng.binomial(exact, 0.5) + rng.binomial(PER_HOUR - exact, q)
    arrays = {"sums": sums.astype(np.uint32), "reports": np.full(24, PER_HOUR)}
    monkeypatch.setattr(aggregate, "read_shards", lambda folder: [(arrays, 1)])
    settings = aggregate.ReleaseSettings(
        mode="ldp",
        layout=LAYOUT,
        shards=Path(),
        ledgers=Path(),
        budget=Fraction(budget),
        delta=0.0,
        threshold=threshold,
        epoch=1,
        population="p",
        seed=1,
    )
    return aggregate.aggregate(settings), exact.sum(0)


@pytest.mark.parametrize("budget", [pytest.param(1, marks=pytest.mark.slow), 6])
def test_intervals_of_local_noise_hold_the_counts_as_often_as_they_say(budget, tmp_path, monkeypatch):
    """At a budget of 6 a set flag varies four times as much as one that is not set."""
    rng = np.random.default_rng(budget)
    errors = []
    widths = []
    inside = []
    cells = []
    for _ in range(120):
        day, exact = local_day(rng, monkeypatch, budget)
        designer.write(day.release, day.noise, LAYOUT, CATALOGUE, tmp_path / "cells", tmp_path / "applications")
        table = read_table(tmp_path / "applications", "fleet_applications")
        reports, low, high = (table.column(f"reports{end}").to_numpy() for end in ("", "_low", "_high"))
        errors.append(reports - exact[:3])
        widths.append((high - low) / 2)
        inside.append((low <= exact[:3]) & (exact[:3] <= high))
        found = estimate(day.release, day.noise, LAYOUT, np.arange(3))
        away = np.abs(found.noisy["durations"] - 16 * exact[5:].reshape(3, BINS))
        cells.append(away <= found.half_width["durations"])
    assert np.mean(inside) == pytest.approx(0.95, abs=0.03)
    assert np.mean(cells) == pytest.approx(0.95, abs=0.02)
    assert np.mean(widths, axis=0) == pytest.approx(1.96 * np.std(errors, axis=0), rel=0.2)


def test_a_day_of_local_noise_below_the_threshold_is_not_released(tmp_path, monkeypatch):
    """Of 9,600 reports: neither hours nor the day's durations, of which the page would give medians."""
    day, _ = local_day(np.random.default_rng(1), monkeypatch, 6, threshold=9600)
    assert day.release.detail is not None
    day, _ = local_day(np.random.default_rng(1), monkeypatch, 6, threshold=9601)
    assert day.release.detail is None
    assert not day.release.released.any()
    assert not day.release.traffic.any()
    assert day.release.epsilon == 6
    designer.write(day.release, day.noise, LAYOUT, CATALOGUE, tmp_path / "cells", tmp_path / "applications")
    assert read_table(tmp_path / "cells", "fleet_estimates").num_rows == 0
    for row in read_table(tmp_path / "applications", "fleet_applications").to_pylist():
        assert row["released"] is False
        assert row["reports"] is row["median_duration_ns"] is None


def test_a_common_application_is_released_from_local_noise_and_empty_cells_are_one_in_a_hundred():
    noise = ReportNoise((500,) * 24, 1.0)
    q = 1 / (math.exp(0.5) + 1)
    rng = np.random.default_rng(2)
    for hours in (1, 5, 24):
        empty = (rng.binomial(500 * hours, q, 200_000) - 500 * hours * q) / (0.5 - q)
        released = np.arange(24) < hours
        assert (empty > noise.threshold(1, released)).mean() == pytest.approx(0.01, abs=0.002)
        three = rng.permutation(empty)[:199_998].reshape(-1, 3).sum(1)
        assert (three > noise.threshold(3, released)).mean() == pytest.approx(0.01, abs=0.003)
    assert noise.threshold(1, np.zeros(24, bool)) == 0.5


def test_flags_that_are_drawn_vary_by_the_drawing_too():
    """Each of 800 reports has its launches half in this cell; one of 16 is drawn, and its flag randomised."""
    noise = ReportNoise((800,), 8.0, 16)
    q = 1 / (math.exp(4) + 1)
    rng = np.random.default_rng(3)
    drawn = rng.binomial(800, 0.5, 50_000)
    seen = rng.binomial(drawn, 0.5) + rng.binomial(800 - drawn, q)
    counts = (seen - 800 * q) / (0.5 - q) * 16
    assert counts.mean() == pytest.approx(800 * 8, rel=0.01)
    assert noise.variance(np.array([800.0 * 8]))[0] == pytest.approx(counts.var(), rel=0.03)


def test_noise_of_two_servers_over_several_windows():
    rng = np.random.default_rng(4)
    noise = ServerNoise(7.0)
    released = np.arange(24) < 9
    draws = rng.laplace(0, 7, (2, 9, 100_000)).sum((0, 1))
    zeros = np.zeros(1)
    assert noise.variance(zeros, released)[0] == pytest.approx(draws.var(), rel=0.03)
    assert (np.abs(draws) <= noise.half_width(zeros, released)[0]).mean() == pytest.approx(0.95, abs=0.004)
    assert 0.003 < (draws > noise.threshold(1, released)).mean() < 0.012
    assert noise.threshold(9) == noise.threshold(1, released)  # nine cells of one release are nine draws as well
    assert ServerNoise(0.0).half_width(zeros)[0] == 0
    assert ServerNoise(0.0).threshold() == 0.5


@pytest.mark.parametrize("count", [53.0, 70.0, 95.0, 300.0])
def test_the_least_of_a_count_that_is_given_only_beyond_the_noise(count):
    """By integrals of the density of two Laplace noises of scale 10, exp(-|x|) (1 + |x|) / 4 in units of it."""
    noise = ServerNoise(10.0)
    limit = noise.threshold()

    def beyond(distance):
        tail = integrate.quad(lambda x: math.exp(-x) * (1 + x) / 4, abs(distance) / 10, 60)[0]
        return tail if distance > 0 else 1 - tail

    def excess(true):
        return beyond(count - true) / beyond(limit - true) - 0.025

    expected = optimize.brentq(excess, 0, count) if excess(0) < 0 else 0.0
    assert noise.least_if_given(np.array([count]))[0] == pytest.approx(expected, abs=1e-6)
    assert (expected == 0) == (count < 90)
    assert np.isnan(noise.least_if_given(np.array([limit - 1]))[0])


@pytest.mark.parametrize("true", [0, 10, 20, 40, 100, pytest.param(400, marks=pytest.mark.slow)])
def test_ends_of_counts_that_are_given_hold_the_truth_among_those(true):
    """Discrete noise of scale 20, of which 103.8 is the threshold; count by count, whatever the chance to be given."""
    rng = np.random.default_rng(true)
    p = -math.expm1(-1 / 20)
    draws = true + sum(rng.geometric(p, 1_000_000) - rng.geometric(p, 1_000_000) for _ in range(2))
    noise = ServerNoise(20.0)
    given = draws[draws > noise.threshold()].astype(float)
    low = noise.least_if_given(given)
    high = given + noise.half_width(given)
    assert (true < low - 1e-9).mean() == pytest.approx(0.025, abs=0.005)
    assert (high < true).mean() < 0.028
    assert (true < given - noise.half_width(given)).mean() > (0.02 if true > 40 else 0.1)  # the plain end


def test_the_least_of_a_count_with_local_noise_and_of_an_exact_one():
    noise = ReportNoise((1000,), 2.0)
    deviation = math.sqrt(float(noise.variance(np.zeros(1))[0]))
    count = 4 * deviation
    low = noise.least_if_given(np.array([count]))[0]
    ratio = norm.sf((count - low) / deviation) / norm.sf((noise.threshold() - low) / deviation)
    assert ratio == pytest.approx(0.025)
    assert ServerNoise(0.0).least_if_given(np.array([7.0, 1.0])).tolist() == [7, 1]


def test_noise_comes_back_from_a_document():
    noise = of_servers(LAYOUT) | {"durations": ReportNoise((3, 4), 0.5, 16)}
    assert from_facts(json.loads(json.dumps(facts_of(noise)))) == noise

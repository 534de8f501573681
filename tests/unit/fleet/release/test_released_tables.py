"""The designer's tables: days of which hours stayed closed, what nobody measured, values that bins hold back."""

import numpy as np
import pytest
from fleet_samples import learn, small_layout

from causeway.core.tables import read_table
from causeway.fleet.attribution.encoding import RANDOM_STARTS, WindowMeasurements, encode
from causeway.fleet.release import designer
from causeway.fleet.release.cell_noise import ServerNoise, of_servers
from causeway.fleet.release.estimates import estimate, unknown_reports
from causeway.fleet.release.release import Release, released_cells, requests
from causeway.fleet.report_layout import DETAIL, TRAFFIC

LAYOUT = small_layout()
CATALOGUE = learn({"a": ["x", "y", "z", "w"], "b": ["p", "q", "r"], "c": ["u", "v", "t"]})
EXACT = dict.fromkeys(LAYOUT.by_name, ServerNoise(0.0))
SCALES = {
    part: np.concatenate(
        [np.full(one.rows * one.columns, one.noise_scale) for one in LAYOUT.sections if one.part == part]
    )
    for part in (DETAIL, TRAFFIC)
}
"""Scale of the noise of each cell, by part of the report."""


def day_of(n, hours=24, seed=1, occupied=1.0, **values):
    """Return the sums of n reports by hour, shape (24, cells), their applications and hours; a share `occupied` of
    them measured the occupancy.
    """
    rng = np.random.default_rng(seed)
    row = rng.choice(3, n, p=[0.6, 0.3, 0.1])
    hour = rng.integers(0, hours, n)
    occupancy = np.where(rng.random(n) < occupied, values.get("occupancy", 0.6), np.nan)
    measured = WindowMeasurements(
        row=row,
        slot=rng.integers(0, 4, (n, 16)),
        kernel=np.zeros((n, 16), int),
        duration_ns=np.full((n, 16), values.get("duration_ns", 5000)),
        occupancy=np.repeat(occupancy[:, None], 16, axis=1),
        busy=np.full(n, values.get("busy", 0.99)),
        totals=np.tile([59_400.0, 4e6, values.get("mib", np.nan)], (n, 1)),
    )
    counts = encode(measured, LAYOUT, rng.random((n, RANDOM_STARTS)))
    sums = np.zeros((24, LAYOUT.cells), np.int64)
    np.add.at(sums, (hour[counts.report], counts.cell), counts.value)
    return sums, np.bincount(row, minlength=3), np.bincount(hour, minlength=24)


def released(sums, by_hour, threshold, rng=None):
    """Release hours from a threshold on, and the day, with two servers' Laplace noise if there is a generator."""
    traffic = np.zeros((24, 5), np.int64)
    detail = None
    for request in requests(1):
        found = released_cells(sums, request, LAYOUT)
        if rng is not None:
            noise = rng.laplace(0, SCALES[request.part], (2, len(found)))
            found = found + np.rint(noise.sum(0)).astype(np.int64)
        if request.window < 0:
            detail = found if by_hour.sum() >= threshold else None
        elif by_hour[request.window] >= threshold:
            traffic[request.window] = found
    return Release(traffic=traffic, released=by_hour >= threshold, detail=detail, epsilon=1.0)


def tables(folder, made, noise=None):
    """Return the rows of both tables."""
    paths = folder / "cells.parquet", folder / "applications.parquet"
    designer.write(made, noise or of_servers(LAYOUT), LAYOUT, CATALOGUE, *paths)
    names = "fleet_estimates", "fleet_applications"
    return [read_table(path, name).to_pylist() for path, name in zip(paths, names, strict=True)]


def test_reports_of_a_day_with_closed_hours_are_those_of_the_day(tmp_path):
    """Without noise, so that only what is counted can differ: 5 of 24 hours hold fewer than 42 reports."""
    sums, exact, by_hour = day_of(1000)
    made = released(sums, by_hour, 42)
    assert 0 < made.released.sum() < 24
    assert (made.traffic.sum(0)[:3] < exact).all()
    cells, rows = tables(tmp_path, made, EXACT)
    assert [row["reports"] for row in rows] == exact.tolist()
    shares = {
        row["column"]: row["share"] for row in cells if row["section"] == "durations" and row["application"] == "a"
    }
    assert shares["4 us to 8 us"] == 1.0


@pytest.mark.parametrize("hours", [pytest.param(24, marks=pytest.mark.slow), 8])
def test_intervals_of_reports_hold_the_day_whatever_hours_are_closed(hours):
    """Over 24 hours none reaches 100 reports; over 8 of them some do. Half-widths: by the noise of the rows that every
    report fills, 16 units each, worked out here.
    """
    sums, exact, by_hour = day_of(1000 if hours == 24 else 840, hours)
    scale = dict.fromkeys(("kernels", "durations"), 16 / 0.3)
    columns = {"kernels": 4, "durations": 14}
    precision = [16**2 / (columns[name] * 4 * scale[name] ** 2) for name in scale]
    half_width = 1.96 / np.sqrt(precision[0] + precision[1])
    rng = np.random.default_rng(hours)
    inside = []
    found_share = []
    for _ in range(300):
        made = released(sums, by_hour, 100, rng)
        found = estimate(made, of_servers(LAYOUT), LAYOUT, np.arange(3))
        assert found.reports_half_width[:3] == pytest.approx(half_width, rel=1e-3)
        inside.append(np.abs(found.reports[:3] - exact) <= found.reports_half_width[:3])
        found_share.append(found.distributions["durations"][0, 3])
    assert (made.released.sum() == 0) == (hours == 24)
    assert not made.released.all()
    assert np.mean(inside) == pytest.approx(0.95, abs=0.025)
    assert np.mean(found_share) == pytest.approx(1.0, abs=0.02)


def test_shares_are_divided_by_the_days_reports_where_hours_are_closed():
    """Three quarters of application a's launches last 5 us, one quarter 300 us."""
    sums, _, by_hour = day_of(1000)
    more, _, more_by_hour = day_of(3000, duration_ns=300_000, seed=2)
    sums = 3 * sums + more // 3
    by_hour = 3 * by_hour + more_by_hour // 3
    rng = np.random.default_rng(5)
    shares = []
    for threshold in (0, int(np.median(by_hour)), int(by_hour.max()) + 1):
        made = released(sums, by_hour, threshold, rng)
        found = estimate(made, of_servers(LAYOUT), LAYOUT, np.arange(3))
        shares.append(found.distributions["durations"][0, [3, 9]])
    assert np.array(shares) == pytest.approx(np.tile([0.75, 0.25], (3, 1)), abs=0.03)


def test_a_day_of_which_nothing_was_released_has_no_numbers(tmp_path):
    sums, _, by_hour = day_of(50)
    cells, rows = tables(tmp_path, released(sums, by_hour, 100, np.random.default_rng(1)))
    assert cells == []
    for row in rows:
        assert row["released"] is False
        assert [name for name, value in row.items() if value is not None and name not in NAMES] == []


NAMES = ("application", "family", "version", "released")


def test_what_no_agent_measured_has_no_value_with_noise_or_without(tmp_path):
    sums, exact, by_hour = day_of(24_000, occupied=0)
    for made, noise in (
        (released(sums, by_hour, 2, np.random.default_rng(3)), None),
        (released(sums, by_hour, 2), EXACT),
    ):
        cells, rows = tables(tmp_path, made, noise)
        for row in rows:
            assert row["released"] is True
            for name in ("occupancy", "mib"):
                assert [row[name + end] for end in ("", "_low", "_high")] == [None] * 3
            assert row["busy"] > 0.8
            assert row["gpu_ms"] > 0
        shares = [row["share"] for row in cells if row["section"] == "occupancy"]
        assert shares == [None] * 12
    assert exact.min() > 2000


@pytest.mark.parametrize("share", [pytest.param(0.0, marks=pytest.mark.slow), 0.3])
def test_reports_of_unknown_applications_are_those_of_all_clusters(share):
    """Two clusters over 24 hours: 48 cells with noise of both servers, each with a variance of 4 (1 / .2)**2."""
    sums, _, by_hour = day_of(3000)
    rng = np.random.default_rng(12)
    sums[:, 3:5] = rng.multinomial(round(3000 * share), np.full(48, 1 / 48)).reshape(24, 2)
    exact = int(sums[:, 3:5].sum())
    assert exact == round(3000 * share)
    found = [
        unknown_reports(estimate(released(sums, by_hour, 2, rng), of_servers(LAYOUT), LAYOUT, np.arange(3)), LAYOUT)
        for _ in range(500)
    ]
    inside = [low <= exact <= high for _, low, high in found]
    assert np.mean(inside) == pytest.approx(0.95 if share else 0.975, abs=0.025)
    if share:
        half = 1.959964 * np.sqrt(48 * 4) * 5
        assert [(low + half, high - half) for value, low, high in found] == [
            pytest.approx((value, value)) for value, _, _ in found
        ]
    made = estimate(released(sums, by_hour, 10_000, rng), of_servers(LAYOUT), LAYOUT, np.arange(3))
    assert unknown_reports(made, LAYOUT) is None
    exactly = estimate(released(sums, by_hour, 2), EXACT, LAYOUT, np.arange(3))
    assert unknown_reports(exactly, LAYOUT) == (exact, exact, exact)


def test_noise_alone_is_taken_for_a_measurement_once_in_a_hundred_times():
    sums, _, by_hour = day_of(3000, occupied=0)
    rng = np.random.default_rng(6)
    found = [
        estimate(released(sums, by_hour, 2, rng), of_servers(LAYOUT), LAYOUT, np.arange(3)).measured for _ in range(400)
    ]
    assert 0.002 < np.mean([one["occupancy"] for one in found]) < 0.02
    assert 0.002 < np.mean([one["resources"][:, 2] for one in found]) < 0.02
    assert np.mean([one["resources"][0, 1] for one in found]) > 0.97


def test_what_half_of_the_agents_measured_is_the_mean_of_those(tmp_path):
    """All that was measured lies between .5 and .75; divided by all reports, it would be spread over four bins."""
    sums, _, by_hour = day_of(24_000, occupied=0.5)
    cells, rows = tables(tmp_path, released(sums, by_hour, 2, np.random.default_rng(7)))
    shares = {
        row["column"]: row["share"] for row in cells if row["section"] == "occupancy" and row["application"] == "a"
    }
    assert shares["0.5 to 0.75"] == pytest.approx(1, abs=0.03)
    assert rows[0]["occupancy"] == pytest.approx(0.625, abs=0.01)


@pytest.mark.slow
def test_what_is_published_of_shares_and_totals_holds_the_truth(tmp_path):
    """Of 300 draws of a day of 2,500 reports, three quarters of whose launches last 5 us; MiB near the noise."""
    sums, _, by_hour = day_of(2000, mib=15_000)
    more, _, more_by_hour = day_of(500, duration_ns=300_000, seed=2, mib=15_000)
    sums = sums + more
    by_hour = by_hour + more_by_hour
    (true_cells, true_rows) = tables(tmp_path, released(sums, by_hour, 2), EXACT)
    exact = [row["share"] for row in true_cells]
    section = LAYOUT.by_name["resources"]
    exact_mib = sums.sum(0)[section.cells].reshape(3, 3)[:, 2] * 12_500.0
    rng = np.random.default_rng(11)
    inside = {name: [] for name in ("large", "small", "mib")}
    for _ in range(300):
        cells, rows = tables(tmp_path, released(sums, by_hour, 2, rng))
        for row, share in zip(cells, exact, strict=True):
            if row["share"] is not None and row["section"] in ("kernels", "durations") and share:
                kind = "large" if share > 0.5 else "small"
                inside[kind].append(row["share_low"] <= share <= row["share_high"])
        for row, mib in zip(rows, exact_mib, strict=True):
            if row["mib"] is not None:
                inside["mib"].append(row["mib_low"] <= mib <= row["mib_high"])
    assert len(true_rows) == 3
    assert np.mean(inside["large"]) == pytest.approx(0.95, abs=0.025)
    assert np.mean(inside["small"]) == pytest.approx(0.95, abs=0.025)
    assert 50 < len(inside["mib"]) < 800
    assert np.mean(inside["mib"]) > 0.935


def test_no_value_lies_outside_its_own_interval(tmp_path):
    """Also where an application has few reports, in many draws."""
    sums, _, by_hour = day_of(400)
    rng = np.random.default_rng(8)
    for threshold in (2, 100):
        for _ in range(12):
            cells, rows = tables(tmp_path, released(sums, by_hour, threshold, rng))
            for row in rows:
                for name in ("reports", "median_duration_ns", "busy", "occupancy", "variable_share", "gpu_ms", "mib"):
                    if row[name] is not None:
                        high = np.inf if row[f"{name}_high"] is None else row[f"{name}_high"]
                        assert 0 <= row[f"{name}_low"] <= row[name] <= high, (name, row)
            assert all(
                row["share_low"] <= row["share"] <= row["share_high"] for row in cells if row["share"] is not None
            )


@pytest.mark.parametrize(("busy", "duration"), [(0.99, 100_000_000), (0.02, 600), (0.6, 5000)])
def test_the_intervals_of_binned_values_hold_the_truth_beyond_the_bins(busy, duration, tmp_path):
    """Four bins end at means of .125 and .875, the durations' last begins at 16.384 ms and has no end."""
    sums, _, by_hour = day_of(24_000, busy=busy, occupancy=busy, duration_ns=duration)
    for rng, noise in ((np.random.default_rng(9), None), (None, EXACT)):
        _, rows = tables(tmp_path, released(sums, by_hour, 2, rng), noise)
        for row in rows:
            for name in ("busy", "occupancy"):
                assert 0.125 <= row[name] <= 0.875
                assert row[f"{name}_low"] <= busy <= row[f"{name}_high"]
                assert 0 <= row[f"{name}_low"] < row[f"{name}_high"] <= 1
                if noise:
                    assert row[f"{name}_high"] - row[f"{name}_low"] == 0.25
            high = row["median_duration_ns_high"]
            assert row["median_duration_ns_low"] <= duration <= (np.inf if high is None else high)
            assert row["median_duration_open"] is (duration > 16_384_000)
            assert (high is None) == (duration > 16_384_000)
            if high is None:
                assert row["median_duration_ns"] == row["median_duration_ns_low"] == 16_384_000
    assert (rows[0]["median_duration_ns_low"], high) == {
        100_000_000: (16_384_000, None),
        600: (0, 1000),
        5000: (4000, 8000),
    }[duration]

"""What is `a + b x` of a leaked column is leaked as well; what only goes with it is not."""

import numpy as np
import pytest
from causal_tables import rows_of
from scipy.optimize import linprog

from causeway.causal.data.observations import Feature
from causeway.causal.data.outcome import Scope
from causeway.causal.discovery.discover import discover
from causeway.causal.preparation.exact_images import affine_images, is_affine_image
from causeway.causal.preparation.prepare import prepare

N = 600


def line_exists(y, x, y_step, x_step):
    """Return whether a line exists from which no rounded point is farther than rounding of both takes it."""
    for sign in (1, -1):  # |y - a - b x| <= (y_step + |b| x_step) / 2, b of one sign; bounds on a, b
        rows = np.concatenate(
            [
                np.column_stack([np.ones(y.size), x - sign * x_step / 2]),
                np.column_stack([-np.ones(y.size), -x - sign * x_step / 2]),
            ]
        )
        limits = np.concatenate([y + y_step / 2, -y + y_step / 2])
        bounds = [(None, None), (0, None) if sign > 0 else (None, 0)]
        if linprog([0, 0], A_ub=rows, b_ub=limits, bounds=bounds).status == 0:
            return True
    return False


@pytest.mark.parametrize("seed", range(12))
def test_a_line_is_found_where_one_exists_within_the_printed_digits(seed):
    """Random slopes, offsets and digits; the noise of every second one is twice the steps of both columns."""
    rng = np.random.default_rng(8100 + seed)
    slope = rng.choice([-1, 1]) * np.exp(rng.uniform(-2, 2))
    x_digits, y_digits = rng.integers(1, 4, 2)
    steps = 10.0 ** -np.array([y_digits, x_digits])
    exact = 60 + 20 * rng.standard_normal(N)
    noise = 2 * (steps[0] + abs(slope) * steps[1]) * rng.standard_normal(N) if seed % 2 else 0.0
    x = np.round(exact, x_digits)
    y = np.round(100 + slope * exact + noise, y_digits)
    assert line_exists(y, x, *steps) is (seed % 2 == 0)
    assert is_affine_image(y, x) is (seed % 2 == 0)


def test_columns_of_all_digits_are_compared_to_single_precision():
    rng = np.random.default_rng(8200)
    x = 1e9 * np.exp(0.1 * rng.standard_normal(N))
    y = (100 - x / 3e7).astype(np.float32).astype(float)
    assert is_affine_image(y, x)
    assert not is_affine_image(y * (1 + 1e-2 * rng.standard_normal(N)), x)


def test_few_values_are_a_line_if_they_are_rounded_and_none_if_they_are_counts():
    """A count of 0 to 9 that sets the other column, with noise far below a step or of tails beyond half of one, is
    itself; 10 values of it rounded are an image, by the bounds on what rounding does. Four values are nothing.
    """
    rng = np.random.default_rng(8250)
    count = np.floor(10 * rng.random(N))
    near = 20 + 3 * count + 0.2 * rng.standard_normal(N)
    wide = 20 + 3 * count + 0.6 * rng.standard_normal(N)
    assert [is_affine_image(count, one) for one in (near, wide)] == [False, False]
    assert [is_affine_image(one, count) for one in (near, wide)] == [False, False]
    x = 20 + 30 * rng.random(N)
    rounded = np.round(7 - x / 3)
    assert line_exists(rounded, x, 1.0, 1e-12)
    assert np.unique(rounded).size == 11
    assert is_affine_image(rounded, x)
    assert is_affine_image(x, rounded)
    assert not is_affine_image(np.round(x / 12), x)  # 2, 3 and 4
    assert not is_affine_image(np.arange(N) % 49 * 1.0, np.arange(N) % 49 * 2.0)
    assert is_affine_image(np.arange(N) % 50 * 1.0, np.arange(N) % 50 * 2.0)


def test_images_of_images_are_found_and_gaps_are_left_out():
    """The third column is a line of the second, beside which the leaked one has too coarse digits to say so."""
    rng = np.random.default_rng(8300)
    x = 40 + 10 * rng.standard_normal(N)
    gaps = rng.random((4, N)) < 0.2
    columns = [100 - 2 * x, 1e4 - 200 * (100 - 2 * x), rng.standard_normal(N), x + 3 * rng.standard_normal(N)]
    columns = [np.where(gap, np.nan, column) for gap, column in zip(gaps, columns, strict=True)]
    other = rng.standard_normal(N)
    assert affine_images(columns, [other, np.round(x, 3)]) == [1, 1, None, None]
    assert affine_images(columns, [other]) == [None] * 4
    assert affine_images(columns, []) == [None] * 4
    assert affine_images([], [x]) == []


def details_page():
    """Return what Nsight Compute's details page prints of launches whose time varies for a reason that it does not
    count: the instructions are the same in all, so that each rate is one over the cycles.
    """
    rng = np.random.default_rng(8400)
    time = np.round(21e3 * np.exp(0.08 * rng.standard_normal(N)), -1)
    rate = (
        1288437 / 40 / (time * 1.095 * (1 + 0.0008 * rng.standard_normal(N)) * (0.985 + 0.001 * rng.standard_normal(N)))
    )
    columns = {
        "issue_slots_busy": np.round(25 * rate, 2),
        "no_eligible": np.round(100 - 25.3 * rate, 2),
        "issued_warps": np.round(rate / 4, 2),
        "hit_rate": np.round(40 + 0.3 * rng.standard_normal(N), 2),
    }
    return time, [Feature(name, values, unit="%") for name, values in columns.items()]


def test_the_complement_of_a_leaked_rate_is_no_candidate():
    time, columns = details_page()
    found = prepare(columns, rows_of(time), "gpu_time")
    assert [one.name for one in found.within] == ["hit_rate"]
    reasons = {one.feature: one.reason for one in found.dropped}
    assert reasons == {
        "issue_slots_busy": "follows from the measured value itself (exactly, with at most one other column)",
        "no_eligible": "follows exactly from a column that follows from the measured value itself: issue_slots_busy",
        "issued_warps": "follows exactly from a column that follows from the measured value itself: issue_slots_busy",
    }
    assert discover(columns, rows_of(time), Scope("d", "gpu_time", "k"))[0].arrows == ()


def test_the_complement_of_what_its_name_gives_away_is_none_either():
    """The column that is dropped by its name alone need not be an exact function of the time."""
    rng = np.random.default_rng(8500)
    time = 1e5 * np.exp(0.1 * rng.standard_normal(N))
    busy = np.round(50 + 10 * rng.standard_normal(N) - 40 * np.log(time / 1e5), 2)
    columns = [Feature("sm_throughput", busy), Feature("idle_slots", 100 - busy), Feature("z", rng.standard_normal(N))]
    found = prepare(columns, rows_of(time), "gpu_time")
    assert [one.name for one in found.within] == ["z"]
    found = prepare(columns[1:], rows_of(time), "gpu_time")
    assert [one.name for one in found.within] == ["idle_slots", "z"]


def test_what_is_known_before_a_launch_is_no_image():
    rng = np.random.default_rng(8600)
    time = 1e5 * np.exp(0.1 * rng.standard_normal(N))
    queue = time + 1e4 * rng.standard_normal(N)
    columns = [Feature("queue", queue, "context"), Feature("sm_throughput", 3 * queue + 1)]
    assert [one.name for one in prepare(columns, rows_of(time), "gpu_time").within] == ["queue"]

import numpy as np
import pytest

from causeway.simulate import random_numbers
from causeway.simulate.stream_events import busy_before, issue


def test_streams_of_random_numbers_depend_on_seed_and_purpose_only():
    first = random_numbers.generator(1, "copies", 0).random(3)
    assert (random_numbers.generator(1, "copies", 0).random(3) == first).all()
    for other in (
        random_numbers.generator(2, "copies", 0),
        random_numbers.generator(1, "copies", 1),
        random_numbers.generator(1, "gaps", 0),
    ):
        assert (other.random(3) != first).all()


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.95])
def test_autoregression_is_stationary_and_continues_over_batches(rho):
    random = random_numbers.generator(3, "x")
    first, state = random_numbers.standard_normal(random, (200, 300), rho, None)
    second, _ = random_numbers.standard_normal(random, (200, 300), rho, state)
    values = np.concatenate([first, second], axis=1)
    assert values.var() == pytest.approx(1, abs=0.08)
    assert values[:, 0].var() == pytest.approx(1, abs=0.3)
    assert np.corrcoef(values[:, 299], values[:, 300])[0, 1] == pytest.approx(rho, abs=0.2)
    assert np.corrcoef(values[:, :-1].ravel(), values[:, 1:].ravel())[0, 1] == pytest.approx(rho, abs=0.02)


@pytest.mark.parametrize("cv", [0.01, 0.3])
def test_factors_have_mean_one_and_the_given_spread(cv):
    factors = random_numbers.factors(random_numbers.generator(1).standard_normal(400_000), cv)
    assert factors.min() > 0
    assert factors.mean() == pytest.approx(1, abs=5 * cv / 400_000**0.5)
    assert factors.std() == pytest.approx(cv, rel=0.02)


def test_spikes_are_as_rare_and_as_large_as_said():
    drawn = random_numbers.spikes(random_numbers.generator(1), (100_000,), 0.02, 0.5)
    assert (drawn > 0).mean() == pytest.approx(0.02, rel=0.1)
    assert drawn[drawn > 0].mean() == pytest.approx(0.5, rel=0.1)
    assert drawn.max() <= random_numbers.TAIL_LIMIT
    assert not random_numbers.spikes(random_numbers.generator(1), (5,), 0.0, 0.5).any()


def test_calls_follow_each_other_and_end_before_their_events():
    random = random_numbers.generator(1)
    start = 20_000 + np.cumsum(random.integers(6_000, 50_000, (2, 3, 40)), axis=-1)
    begin, end = issue(random, start, 1_000)
    assert (begin >= 1_000).all()
    assert (end > begin).all()
    assert (end <= start).all()
    assert (begin[..., 1:] >= end[..., :-1]).all()


def test_time_covered_before_a_moment_by_hand_and_by_brute_force():
    assert busy_before(
        np.array([10, 12, 40]), np.array([20, 15, 50]), np.array([0, 10, 14, 20, 30, 45, 99])
    ).tolist() == [
        0,
        0,
        4,
        10,
        10,
        15,
        20,
    ]
    assert busy_before(np.array([], dtype=np.int64), np.array([], dtype=np.int64), np.array([5])).tolist() == [0]
    random = random_numbers.generator(2)
    start = np.sort(random.integers(0, 500, 60))
    end = start + random.integers(1, 30, 60)
    covered = ((start <= np.arange(600)[:, None]) & (np.arange(600)[:, None] < end)).any(axis=1)
    moments = random.integers(0, 600, 50)
    assert busy_before(start, end, moments).tolist() == [int(covered[:moment].sum()) for moment in moments]

"""What a change is called: by its interval, the noise floor, and how many changes were looked at."""

import numpy as np
import pytest

from causeway.comparison.change_estimates import Choices, Estimate
from causeway.comparison.change_verdicts import adjusted, p_value, same_margin, typical_floor, verdict

CHOICES = Choices(rate=0.05, same_within=0.01)


def change(size, low, high, floor=0.01, error=0.005):
    return Estimate(size, low, high, error, 50, floor)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(("size", "floor"), [(0.05, 0.03), (0.05, 0.05), (0.01, 0.05)])
def test_a_p_value_is_how_often_a_true_change_at_the_floor_shows_as_much(sign, size, floor):
    shown = floor + 0.02 * np.random.default_rng(7).standard_t(6, 400_000)
    wanted = (np.abs(shown) >= size).mean()
    found = p_value(Estimate(sign * size, sign * size - 0.05, sign * size + 0.05, 0.02, 6, floor), CHOICES)
    assert found == pytest.approx(wanted, abs=0.004)


@pytest.mark.parametrize(("size", "wanted"), [(0.02, 0.0), (-0.02, 0.0), (0.01, 1.0), (-0.01, 1.0), (0.0, 1.0)])
def test_a_change_without_noise_is_certain_beyond_the_floor_alone(size, wanted):
    assert p_value(change(size, size, size, error=0.0), CHOICES) == wanted


@pytest.mark.parametrize("estimate", [Estimate(0.3), change(0.3, 0.2, 0.4, floor=None), change(0.3, None, None)])
def test_what_has_no_interval_or_no_floor_is_not_tested(estimate):
    assert p_value(estimate, CHOICES) is None


def test_q_values_are_those_of_benjamini_and_hochberg_by_hand_over_what_was_tested():
    """Of three tests the smallest p-value counts three times, the next one and a half times, the largest once."""
    assert adjusted([None, 0.04, 0.01, None, 0.021]) == [
        None,
        pytest.approx(0.04),
        pytest.approx(0.03),
        None,
        pytest.approx(0.0315),
    ]
    assert adjusted([None, None]) == [None, None]
    assert adjusted([]) == []


@pytest.mark.parametrize(
    ("estimate", "q", "word", "why"),
    [
        (change(0.03, 0.02, 0.04), 0.05, "worse", "the interval lies beyond the noise floor"),
        (change(-0.03, -0.04, -0.02), 0.05, "better", "the interval lies beyond the noise floor"),
        (change(0.03, 0.02, 0.04), 0.051, "inconclusive", "not beyond what chance gives among so many comparisons"),
        (change(0.03, 0.02, 0.04), None, "inconclusive", "not beyond what chance gives among so many comparisons"),
        (change(0.02, 0.01, 0.03), 0.0, "inconclusive", "the interval reaches into the noise floor"),
        (change(-0.02, -0.03, -0.01), 0.0, "inconclusive", "the interval reaches into the noise floor"),
        (change(0.01, 0.0, 0.03), 0.0, "inconclusive", "the interval holds no change, and changes beyond"),
        (change(-0.01, -0.03, 0.0), 0.0, "inconclusive", "the interval holds no change, and changes beyond"),
        (change(0.0, -0.01, 0.01), 1.0, "same", "the interval lies within 1 %"),
        (change(0.0, -0.01, 0.012), 1.0, "inconclusive", "the interval holds no change, and changes beyond"),
        (change(0.0, -0.012, 0.01), 1.0, "inconclusive", "the interval holds no change, and changes beyond"),
        (change(0.0, -0.03, 0.02, floor=0.03), 1.0, "same", "the interval lies within 3 %"),
        (change(0.02, -0.06, 0.08, floor=0.08), 1.0, "inconclusive", "which is too wide to call this the same"),
        (change(0.02, -0.08, 0.06, floor=0.08), 1.0, "inconclusive", "which is too wide to call this the same"),
        (change(0.02, -0.09, 0.06, floor=0.08), 1.0, "inconclusive", "the interval holds no change, and changes"),
        (change(0.06, 0.051, 0.08, floor=0.07), 1.0, "inconclusive", "the interval reaches into the noise floor"),
        (Estimate(0.3), None, "inconclusive", "too few independent launches for an interval"),
        (change(0.3, 0.2, 0.4, floor=None), None, "inconclusive", "no noise floor"),
    ],
)
def test_a_verdict_and_its_reason(estimate, q, word, why):
    said, reason = verdict(estimate, q, CHOICES)
    assert (said, why in reason.words) == (word, True), reason


def test_the_same_is_the_floor_but_neither_less_than_asked_nor_five_times_more():
    floors = [0.0, 0.01, 0.02, 0.05, 0.06]
    assert [same_margin(floor, 0.01) for floor in floors] == pytest.approx([0.01, 0.01, 0.02, 0.05, 0.05])


@pytest.mark.parametrize(
    ("floors", "wanted"),
    [
        ([(0.3, 10), (0.01, 30), (0.02, 25)], 0.02),  # half of the time is reached at 33 of 65
        ([(0.3, 10), (0.01, 35), (0.02, 25)], 0.01),  # at 35 of 70, already
        ([(None, 90), (0.2, 1), (0.1, 3)], 0.1),
        ([(0.2, 7)], 0.2),
        ([(0.2, 0), (0.1, 0)], 0.1),  # kernels that took no time
        ([(None, 5)], None),
        ([], None),
    ],
)
def test_the_typical_floor_is_the_one_of_half_of_the_time(floors, wanted):
    assert typical_floor(floors) == wanted

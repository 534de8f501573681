"""The time line: own times there and back, against whole numbers of any size."""

from fractions import Fraction
from math import floor

import numpy as np
import pytest

from causeway.core.clock import Clock, clocks_of

YEAR_2023 = 1_700_000_000_000_000_000


@pytest.mark.parametrize("drift", [0, 50_000, -123_456])
def test_aligned_times_are_those_of_exact_arithmetic(drift):
    clock = Clock(-5_000_000_000, drift, YEAR_2023)
    own = YEAR_2023 + np.arange(-(10**14), 10**15, 10**14 + 7)
    exact = [t - 5_000_000_000 + floor(Fraction((t - YEAR_2023) * drift, 10**9) + Fraction(1, 2)) for t in own.tolist()]
    assert clock.aligned(own).tolist() == exact
    assert int(clock.aligned(int(own[0]))) == exact[0]


@pytest.mark.parametrize("drift", [0, 50_000, -123_456, 1_000_000])
def test_an_own_time_is_the_first_that_is_aligned_to_a_moment_or_later(drift):
    clock = Clock(-5_000_000_000, drift, YEAR_2023)
    times = np.random.default_rng(1).integers(YEAR_2023 - 10**9, YEAR_2023 + 10**15, 10_000)
    own = clock.own(times)
    assert (clock.aligned(own) >= times).all()
    assert (clock.aligned(own - 1) < times).all()
    assert np.abs(clock.own(clock.aligned(times)) - times).max() <= (drift < 0)


def test_a_clock_may_count_from_a_moment_of_the_time_line():
    clock = Clock(70, 1_000_000, 1_000)
    times = np.array([1_000, 2_000_000])
    assert clock.counting_from(500).aligned(times).tolist() == (clock.aligned(times) - 500).tolist()


def test_every_export_has_a_clock_with_or_without_drift():
    document = {"exports": {"0": {"shift_ns": 5}, "1": {"shift_ns": 1, "drift_ppb": 2, "reference_ns": 3}}}
    assert clocks_of(document) == {"0": Clock(5), "1": Clock(1, 2, 3)}

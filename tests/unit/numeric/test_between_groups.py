"""What lies between the groups of a whole: against exact fractions, and numpy's regression of all values."""

from fractions import Fraction

import numpy as np
import pytest

from causeway.numeric.between_groups import between_groups
from causeway.numeric.moments import Moments, exponent_range

WHOLE_OF = np.array([0, 0, 0, 0, 1, 2, 3])
SIZES = [64, 128, 512, 4096, 64, 64, 64]


def summed(group, value, floating=False):
    """Return the moments of seven groups and of the four wholes that they make."""
    exponents = exponent_range(value) if floating else None
    groups = Moments(7, exponents)
    wholes = Moments(4, exponents)
    groups.add(group, value)
    wholes.add(WHOLE_OF[group].astype(np.int32), value)
    return groups, wholes


@pytest.fixture
def drawn():
    """Draw large numbers that differ little: a whole of four groups, one of one, one without variance, an empty one."""
    random = np.random.default_rng(2)
    group = random.integers(0, 6, 600).astype(np.int32)
    value = np.int64(10**12) + 3 * np.array(SIZES)[group] + random.integers(0, 3000, 600)
    value[group == 5] = 7
    return group, value


def test_the_share_between_groups_and_the_deviation_are_those_of_exact_fractions(drawn):
    group, value = drawn
    found = between_groups(*summed(group, value), WHOLE_OF, SIZES)
    kept = WHOLE_OF[group] == 0
    mean = Fraction(int(value[kept].sum()), int(kept.sum()))
    total = sum((Fraction(int(one)) - mean) ** 2 for one in value[kept])
    means = {one: Fraction(int(value[group == one].sum()), int((group == one).sum())) for one in range(4)}
    between = sum((means[one] - mean) ** 2 for one in group[kept].tolist())
    assert found.variance[0] == pytest.approx(float(between / total), rel=1e-12)
    assert found.deviation[0] == float(sum(abs(means[one] - mean) for one in group[kept].tolist()))
    assert found.variance[1] == pytest.approx(0, abs=1e-12)
    assert found.deviation[1] == found.deviation[2] == 0
    assert np.isnan(found.variance[2:]).all()
    assert np.isnan(found.deviation[3])


@pytest.mark.parametrize("floating", [False, True])
def test_the_line_is_the_regression_of_all_values(drawn, floating):
    group, value = drawn
    value = value - 10**12 + 5000  # numpy's regression would cancel
    value = value / 1024 if floating else value
    found = between_groups(*summed(group, value, floating), WHOLE_OF, SIZES)
    kept = WHOLE_OF[group] == 0
    size = np.array(SIZES, float)[group[kept]]
    slope, constant = np.polyfit(size, value[kept], 1)
    assert found.slope[0] == pytest.approx(slope, rel=1e-9)
    assert found.constant[0] == pytest.approx(constant, rel=1e-9)
    assert found.line[0] == pytest.approx(np.corrcoef(size, value[kept])[0, 1] ** 2, rel=1e-9)
    assert found.line[0] < found.variance[0]
    assert np.isnan(found.line[1:]).all()


def test_a_line_through_all_values_is_found_exactly():
    group = np.array([0, 1, 2, 3, 3, 2], np.int32)
    value = 1000 + 7 * np.array(SIZES)[group]
    found = between_groups(*summed(group, value), WHOLE_OF, SIZES)
    assert (found.line[0], found.constant[0], found.slope[0]) == (1, 1000, 7)


@pytest.mark.parametrize("sizes", [[64, 64, 128, 128], [64, 128, 256, None]])
def test_two_sizes_or_an_unknown_one_make_no_line(drawn, sizes):
    found = between_groups(*summed(*drawn), WHOLE_OF, [*sizes, 64, 64, 64])
    assert np.isnan([found.line[0], found.constant[0], found.slope[0]]).all()
    assert found.variance[0] > 0

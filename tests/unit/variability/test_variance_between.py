"""What of the variance of a kernel lies between its configurations, against exact fractions."""

from fractions import Fraction

import numpy as np
import pytest

from causeway.numeric.moments import Moments
from causeway.variability.bins.summaries import variance_between

WHOLE_OF = np.array([0, 0, 0, 0, 1, 2, 3])


def test_the_share_between_groups_is_that_of_exact_fractions():
    """Large numbers that differ little: a whole of four groups, one of one, one without variance, an empty one."""
    random = np.random.default_rng(2)
    group = random.integers(0, 6, 600).astype(np.int32)
    value = np.int64(10**12) + 3000 * group + random.integers(0, 3000, 600)
    value[group == 5] = 7
    groups = Moments(7)
    wholes = Moments(4)
    groups.add(group, value)
    wholes.add(WHOLE_OF[group].astype(np.int32), value)
    found = variance_between(groups, wholes, WHOLE_OF)
    kept = WHOLE_OF[group] == 0
    mean = Fraction(int(value[kept].sum()), int(kept.sum()))
    total = sum((Fraction(int(one)) - mean) ** 2 for one in value[kept])
    means = {one: Fraction(int(value[group == one].sum()), int((group == one).sum())) for one in range(4)}
    between = sum((means[one] - mean) ** 2 for one in group[kept].tolist())
    assert found[0] == pytest.approx(float(between / total), rel=1e-12)
    assert found[1] == pytest.approx(0, abs=1e-12)
    assert np.isnan(found[2:]).all()

"""The errors that the evaluation of a simulated day states."""

import numpy as np
import pytest
from fleet_samples import small_layout

from causeway.fleet.release.cell_noise import ServerNoise
from causeway.fleet.release.estimates import DISTRIBUTIONS, estimate
from causeway.fleet.release.release import Release
from causeway.fleet.report_layout import DETAIL
from causeway.fleet.study.evaluation import whole_budget_errors

LAYOUT = small_layout()
FAMILIES = np.arange(3)


def exact_day(seed=1):
    """Return a day's estimates without noise: 500 reports, each counted once in every section."""
    rng = np.random.default_rng(seed)
    detail = []
    for section in (one for one in LAYOUT.sections if one.part == DETAIL):
        shares = rng.dirichlet(np.full(section.columns, 0.5), section.rows)
        detail.append(np.rint(500 * section.contribution_bound * shares).ravel())
    traffic = np.zeros((24, 5), np.int64)
    traffic[0, :3] = 500
    made = Release(
        traffic=traffic, released=np.ones(24, bool), detail=np.concatenate(detail).astype(np.int64), epsilon=-1.0
    )
    return estimate(made, dict.fromkeys(LAYOUT.by_name, ServerNoise(0.0)), LAYOUT, FAMILIES)


class GivenNoise:
    """Each server adds half of what was counted: shares of a row's own sum stay, those of the exact sum double."""

    simulated = True

    def __init__(self, counts):
        self.counts = counts

    def draw(self, sections, purpose):
        return np.concatenate([self.counts[section.name].ravel() / 2 for section in sections])


def test_a_histogram_that_is_released_alone_is_divided_by_its_own_noisy_sum():
    """Nothing else is released beside it, so that no exact sum is known; at an epsilon of 1e6 hardly
    anything is shrunk.
    """
    reference = exact_day()
    found = whole_budget_errors(reference, LAYOUT, FAMILIES, GivenNoise(reference.noisy), 1e6)
    assert found == pytest.approx(dict.fromkeys(DISTRIBUTIONS, 0.0), abs=1e-3)

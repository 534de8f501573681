"""The errors that the evaluation of a simulated day states."""

import numpy as np
import pytest
from fleet_samples import learn, small_layout

from causeway.fleet.release.cell_noise import ServerNoise
from causeway.fleet.release.estimates import DISTRIBUTIONS, estimate
from causeway.fleet.release.release import Release
from causeway.fleet.report_layout import DETAIL
from causeway.fleet.study.evaluation import kernel_pairs, whole_budget_errors
from causeway.fleet.study.goals import goals
from causeway.fleet.world.applications import SimulatedApplication, Suite

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


DOCUMENT = {
    "attribution": {"precision": 1.0, "recall": 0.97, "false_accepts": 0.0},
    "bytes_per_report": {"clear": 14_160, "share2": 14_500, "ldp": 157},
    "modes": {
        "share2": {"total_variation": {"durations": {"by_traffic": 0.01}}},
        "ldp": {"total_variation": {"durations": {"by_traffic": 0.5}}},
    },
    "alone": {},
    "overhead": {"share_of_day": 1e-6},
}
COVERED = [
    {"hour": hour, "what": what, "mode": mode, "sampled": 0.9, "released": released}
    for hour in (1, 24)
    for what in ("applications", "kernels", "kernels by time")
    for mode, released in (("clear", 1.0), ("share2", 0.8), ("ldp", 0.1))
]


@pytest.mark.parametrize(
    ("mode", "released", "error", "sent"),
    [("share2", 0.8, 0.01, 14_500), ("ldp", 0.1, 0.5, 157), ("clear", None, None, None), ("ahe", None, None, None)],
)
def test_goals_are_those_of_the_mode_that_is_shown(mode, released, error, sent):
    """What agents sampled is the same in every mode; sums without protection are no release."""
    found = {goal["goal"]: goal["value"] for goal in goals(DOCUMENT, COVERED, mode)}
    assert found["applications sampled in an hour"] == found["kernels sampled in a day"] == 0.9
    assert found["applications released of the first hour"] == found["kernels released in a day"] == released
    assert found.get("noise: durations, its part of it") == error
    assert found["bytes of a report"] == sent


def test_kernels_weigh_as_long_as_gpus_run_them():
    """Of equally many sessions of both, GPUs work for .9 and for .3 of the time: three quarters and one quarter. In
    the first application the kernel of 30 us, launched once, has .6 of it, that of 10 us, launched twice, .4.
    """
    bodies = {"first": (np.array([0, 1, 1]), 0.9), "second": (np.array([1]), 0.3)}
    made = tuple(
        SimulatedApplication(name=name, family=name, version="", in_catalogue=True, body=body, busy=busy, mib_per_s=0.0)
        for name, (body, busy) in bodies.items()
    )
    suite = Suite(
        applications=made,
        names=[["x", "y"]],
        median_ns=np.array([3e4, 1e4]),
        spread=np.zeros(2),
        occupancy=np.ones(2),
        variant=np.arange(2),
    )
    catalogue = learn({"first": ["x", "y", "y"] * 3, "second": ["y"] * 9})
    pairs = kernel_pairs(suite, catalogue, np.array([0.5, 0.5]))
    assert pairs.application.tolist() == [0, 0, 1]
    assert pairs.kernel.tolist() == [0, 1, 1]
    assert pairs.weight == pytest.approx([0.75 * 0.6, 0.75 * 0.4, 0.25])

"""A clock explains the time only where that drifts more than it wanders anyway."""

import numpy as np
import pytest
from causal_tables import rows_of, series
from scipy import stats

from causeway.causal.data.observations import Drop, Feature
from causeway.causal.data.outcome import Scope
from causeway.causal.discovery.discover import discover
from causeway.causal.report.across_kernels import correct
from causeway.causal.report.documents import graph_document
from causeway.causal.selection.lagged import p_value_beside_waves, stretches

pytestmark = pytest.mark.usefixtures("rough_shares")
N = 1000
TIME = np.arange(N) / N
DRIFTS = {
    "line": TIME,
    "step": (TIME > 0.4).astype(float),
    "warm-up": np.exp(-TIME / 0.1),
    "return": np.abs(TIME - 0.5),
}


def searched(rng, y):
    table = [
        Feature("since_start_ns", np.cumsum(rng.uniform(5e4, 15e4, N)), "context", "time", "ns"),
        Feature("z", rng.standard_normal(N)),
    ]
    return discover(table, rows_of(1e5 * (1 + 0.02 * y)), Scope("d", "y", "k"))[0]


def test_a_time_that_wanders_by_itself_is_no_drift():
    """Autoregressive noise at .98 and .99, half of it white, in 40 series; without the test 17 have a drift."""
    found = refused = 0
    for seed in range(40):
        rng = np.random.default_rng(9900 + seed)
        y = np.sqrt(0.5) * (series(rng, N, 1, (0.98, 0.99)[seed % 2])[:, 0] + rng.standard_normal(N))
        outcome = searched(rng, y)
        found += any(arrow.name == "since_start_ns" for arrow in outcome.arrows)
        refused += any(one.reason.startswith("refused as a drift") for one in outcome.dropped)
    assert found <= 5
    assert refused >= 10


@pytest.mark.parametrize("tables", [4, pytest.param(8, marks=pytest.mark.slow)])
@pytest.mark.parametrize("drift", DRIFTS)
def test_drifts_stay(drift, tables):
    """A third of the variance, beside white noise and beside noise that is forgotten within ten launches."""
    shape = (DRIFTS[drift] - DRIFTS[drift].mean()) / DRIFTS[drift].std()
    found = 0
    for seed in range(tables):
        rng = np.random.default_rng(9950 + seed)
        y = np.sqrt(1 / 3) * shape + np.sqrt(2 / 3) * series(rng, N, 1, (0.0, 0.5)[seed % 2])[:, 0]
        found += [arrow.name for arrow in searched(rng, y).arrows] == ["since_start_ns"]
    assert found >= 7 / 8 * tables


def test_what_was_refused_is_said():
    rng = np.random.default_rng(9903)
    for _ in range(20):
        outcome = searched(rng, np.sqrt(0.5) * (series(rng, N, 1, 0.99)[:, 0] + rng.standard_normal(N)))
        if any(one.kind == Drop.REFUSED for one in outcome.dropped):
            break
    (sentence,) = graph_document(correct([outcome])[0])["sentences"]
    assert "time since the start of the run (refused as a drift: other slow waves of the deviation" in sentence


def test_the_test_is_that_of_the_lowest_cosines():
    """By hand: what a line explains over the mean square of cosines of 1 to 11 half periods of what it leaves."""
    rng = np.random.default_rng(9960)
    y = 0.05 * TIME + series(rng, N, 1, 0.9)[:, 0]
    line = TIME - TIME.mean()
    left = y - y.mean() - line * (line @ y) / (line @ line)
    waves = [np.cos(np.pi * half * (np.arange(N) + 0.5) / N) for half in range(1, 12)]
    noise = sum((wave @ left) ** 2 / (wave @ wave) for wave in waves) / 10
    expected = stats.f.sf((line @ y) ** 2 / (line @ line) / noise, 1, 10)
    assert p_value_beside_waves(y, line[:, None], np.array([0])) == pytest.approx(expected, rel=1e-9)


def test_the_stretches_of_ranks_count_as_one():
    """Two ranks with the same times tell no more than one: the same F ratio, the same degrees of freedom."""
    rng = np.random.default_rng(9980)
    y = 0.3 * TIME + series(rng, N, 1, 0.9)[:, 0]
    one = p_value_beside_waves(y, TIME[:, None], np.array([0]))
    both = p_value_beside_waves(np.tile(y, 2), np.tile(TIME, 2)[:, None], np.array([0, N]))
    assert one < 1
    assert both == pytest.approx(one, rel=1e-9)


def test_a_clock_that_begins_anew_in_every_step_has_many_stretches():
    assert stretches((np.arange(N) % 40).astype(float)).tolist() == list(range(0, N, 40))
    assert stretches(np.concatenate([TIME, TIME])).tolist() == [0, N]
    assert stretches(TIME + 0.2 * np.sin(np.arange(N))).tolist() == [0]


def test_a_position_in_the_step_is_not_compared_with_slow_waves():
    """A sawtooth of 40 launches is slow beside noise, and no drift: its 25 cycles are evidence."""
    rng = np.random.default_rng(9985)
    position = (np.arange(N) % 40).astype(float)
    table = [Feature("iteration_position", position, "context", "time", "ns"), Feature("z", rng.standard_normal(N))]
    y = position / position.std() + rng.standard_normal(N)
    outcome = discover(table, rows_of(1e5 * (1 + 0.02 * y)), Scope("d", "y", "k"))[0]
    assert [arrow.name for arrow in outcome.arrows] == ["iteration_position"]


def test_a_clock_that_differs_between_stretches_alone_is_no_drift():
    """One rank recorded in the second step, the next in the first: nothing within a recording tells of a trend."""
    rng = np.random.default_rng(9995)
    step = np.repeat([1.0, 0.0], N // 2)
    assert stretches(step).tolist() == [0, N // 2]
    assert p_value_beside_waves(rng.standard_normal(N) + step, step[:, None], stretches(step)) == 1.0

"""A clock explains the time only where that drifts more than it wanders anyway."""

import numpy as np
import pytest
from causal_tables import rows_of, series
from scipy import stats

from causeway.causal.data.observations import Feature
from causeway.causal.data.outcome import Scope
from causeway.causal.discovery.discover import discover
from causeway.causal.report.across_kernels import correct
from causeway.causal.report.documents import graph_document
from causeway.causal.selection.lagged import p_value_beside_waves

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
    return discover(table, rows_of(1e5 * (1 + 0.02 * y)), Scope("d", "y", "k", resamples=0))[0]


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


@pytest.mark.parametrize("drift", DRIFTS)
def test_drifts_stay(drift):
    """A third of the variance, beside white noise and beside noise that is forgotten within ten launches."""
    shape = (DRIFTS[drift] - DRIFTS[drift].mean()) / DRIFTS[drift].std()
    found = 0
    for seed in range(8):
        rng = np.random.default_rng(9950 + seed)
        y = np.sqrt(1 / 3) * shape + np.sqrt(2 / 3) * series(rng, N, 1, (0.0, 0.5)[seed % 2])[:, 0]
        found += [arrow.name for arrow in searched(rng, y).arrows] == ["since_start_ns"]
    assert found >= 7


def test_what_was_refused_is_said():
    rng = np.random.default_rng(9903)
    for _ in range(20):
        outcome = searched(rng, series(rng, N, 1, 0.99)[:, 0])
        if any(one.was_found for one in outcome.dropped):
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
    assert p_value_beside_waves(y, line[:, None]) == pytest.approx(expected, rel=1e-9)


def test_a_clock_that_begins_anew_is_no_drift():
    rng = np.random.default_rng(9970)
    position = (np.arange(N) % 40).astype(float)
    assert p_value_beside_waves(rng.standard_normal(N), position[:, None]) == 0.0
    assert p_value_beside_waves(rng.standard_normal(N), TIME[:, None]) > 0.0

"""Two slow waves that go together by chance are no cause; slow causes, and patterns that repeat, are."""

import numpy as np
import pytest
from causal_tables import rows_of, series
from scipy import stats

from causeway.causal.data.observations import Candidate, Feature
from causeway.causal.data.outcome import Scope
from causeway.causal.discovery.discover import discover
from causeway.causal.discovery.mean_and_scale import run_stages
from causeway.causal.report.across_kernels import correct
from causeway.causal.report.documents import graph_document
from causeway.causal.selection.lagged import is_slow, p_value_given, past, refused_under_lags
from causeway.causal.selection.problem import DesignCache, Problem
from causeway.causal.statistics.basis import Basis

pytestmark = pytest.mark.usefixtures("rough_shares")
N = 1200


def wave(rng):
    """Slow sine of .8 to 4 periods, and white noise."""
    return np.sin(2 * np.pi * (rng.uniform(0.8, 4) * np.arange(N) / N + rng.random())) + 0.5 * rng.standard_normal(N)


def searched(columns, y, kernel=None):
    table = [Feature(name, values) for name, values in columns.items()]
    return discover(table, rows_of(y, kernel), Scope("d", "y", "k"))[0]


def test_independent_slow_waves_have_no_cause():
    refused = 0
    for seed in range(9000, 9012):
        rng = np.random.default_rng(seed)
        outcome = searched({f"c{k}": wave(rng) for k in range(20)}, 1e5 * (1 + 0.03 * wave(rng)))
        assert outcome.arrows == ()
        refused += any(one.reason.startswith("refused under own lags") for one in outcome.dropped)
    assert refused  # without the test some of them have a cause


@pytest.mark.parametrize(("slope", "noise"), [(0.5, 0.0), (0.8, 0.9)])
def test_slow_causes_stay(slope, noise):
    found = []
    for seed in range(9100, 9104):
        x = series(np.random.default_rng(seed), N, 8, 0.97)
        rest = series(np.random.default_rng(seed + 500), N, 1, noise)[:, 0]
        outcome = searched({f"c{k}": x[:, k] for k in range(8)}, 1e5 * (1 + 0.03 * (slope * x[:, 0] + rest)))
        found.append([arrow.name for arrow in outcome.arrows])
    assert all(names in ([], ["c0"]) for names in found)
    assert found.count(["c0"]) >= 3


def test_a_pattern_that_repeats_is_no_slow_wave():
    rng = np.random.default_rng(9200)
    pulses = (np.arange(N) % 8 == 0).astype(float)
    assert not is_slow(pulses - pulses.mean())
    assert is_slow(wave(rng))
    found = searched({"x": pulses, "z": rng.standard_normal(N)}, 100 + pulses + rng.standard_normal(N))
    assert [arrow.name for arrow in found.arrows] == ["x"]


def test_a_state_that_changes_now_and_then_stays():
    rng = np.random.default_rng(9300)
    state = (np.arange(N) // 60 % 2).astype(float)
    found = searched({"x": state, "z": rng.standard_normal(N)}, 100 + 3 * state + rng.standard_normal(N))
    assert [arrow.name for arrow in found.arrows] == ["x"]


def test_a_clock_that_is_read_late_is_refused_and_the_sentence_does_not_deny_it():
    """A device throttles now and then, and its clock is read eight launches late: a regression on the reading explains
    far more than the search "would have seen".
    """
    rng = np.random.default_rng(990000)
    throttled = np.cumsum(rng.random(2000) < 0.01) % 2
    y = 1e5 * (1 + 0.15 * throttled + 0.02 * rng.standard_normal(2000))
    clock = np.roll(1755e6 - 345e6 * throttled, 8) + 15e6 * rng.integers(-1, 2, 2000)
    outcome = searched({"sm_clock_hz": clock, "z": rng.standard_normal(2000)}, y)
    assert outcome.arrows == ()
    assert 0.05 < outcome.detectable_share < np.corrcoef(clock, y)[0, 1] ** 2 / 5  # of the clock, not of white noise
    assert 100 <= outcome.n_effective < 200  # of 2,000 rows: the states last for 100 launches
    (sentence,) = graph_document(correct([outcome])[0])["sentences"]
    assert sentence.startswith("No cause found that holds: sm_clock_hz (refused under own lags")
    assert "would have been seen" not in sentence


def test_the_test_is_that_of_a_regression_with_lags():
    """Against least squares by hand."""
    rng = np.random.default_rng(9400)
    x = series(rng, 400, 1, 0.9)[:, 0]
    y = np.concatenate([[0], 0.5 * x[:-1]]) + 0.15 * x + rng.standard_normal(400)
    x -= x.mean()
    y -= y.mean()
    problem = Problem(Basis((x / np.sqrt(x @ x)).astype(np.float32)[:, None], np.zeros(1, int)), 1, 400.0)
    held = past(np.column_stack([y, x]), 3)
    assert held[5].tolist() == [y[4], x[4], y[3], x[3], y[2], x[2]]
    rss = []
    for design in (held, np.column_stack([held, x])):
        residual = y - design @ np.linalg.lstsq(design, y, rcond=None)[0]
        rss.append(residual @ residual)
    df = 400 - 1 - 7
    expected = stats.f.sf((rss[0] - rss[1]) / (rss[1] / df), 1, df)
    found = p_value_given(y, x[:, None], held, problem, 0)
    assert 0.2 < np.log(found) / np.log(expected) <= 1.001  # autocorrelation of what is left can only take evidence
    white = np.random.default_rng(1).standard_normal(400)
    assert p_value_given(white, held[:, 1:2], held, problem, 0) == 1.0


@pytest.mark.parametrize("strength", [0.0, 0.5])
def test_a_parent_is_refused_if_nothing_new_in_it_goes_with_what_is_new(strength):
    rng = np.random.default_rng(9500)
    slow = np.sin(2 * np.pi * 1.5 * np.arange(N) / N)
    new = rng.standard_normal((2, N))
    x = slow + 0.5 * new[0]
    rows = rows_of(100 + slow + strength * new[0] + 0.5 * new[1])
    candidate = Candidate("x", "counter", "g", "", (x - x.mean()) / x.std(), ("x",))
    stages = run_stages([candidate], DesignCache(rows), rows.signed / rows.std)
    assert stages.mean.chosen == [0]
    assert refused_under_lags(stages.mean, 0) == (strength == 0)

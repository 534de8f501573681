import numpy as np
import pytest
from causal_tables import rows_of, series
from scipy import stats

from causeway.causal.data.observations import Candidate
from causeway.causal.discovery.mean_and_scale import run_stages
from causeway.causal.discovery.stability_selection import ODDS, half_level, selection_frequencies, stood_in
from causeway.causal.selection.design_cache import DesignCache
from causeway.causal.selection.problem import Problem
from causeway.causal.statistics.basis import GroupCentring, build_basis
from causeway.numeric.block_resampling import block_numbers, half_samples


def test_blocks_are_longer_than_the_autocorrelation():
    rng = np.random.default_rng(1)
    white = rng.standard_normal(4000)
    slow = series(rng, 4000, 1, 0.9)[:, 0]
    assert np.bincount(block_numbers(white, 4000)).max() <= 15
    assert 60 <= np.bincount(block_numbers(slow, 4000))[0] <= 400
    assert block_numbers(np.arange(4000.0), 4000).max() + 1 >= 10


def test_half_samples_are_complementary_and_keep_blocks_whole():
    blocks = np.arange(100) // 7
    masks = half_samples(blocks, 6, np.random.default_rng(2))
    for first, second in zip(masks[::2], masks[1::2], strict=True):
        assert np.array_equal(first, ~second)
    for mask in masks:
        assert all(mask[blocks == block].std() == 0 for block in np.unique(blocks))
        assert 0.4 < mask.mean() < 0.6


def test_a_strong_cause_is_always_found_again_and_others_seldom():
    rng = np.random.default_rng(3)
    x, z = rng.standard_normal((2, 1000))
    y = 100 + x + rng.standard_normal(1000)
    candidates = [Candidate(name, "counter", "g", "", values, (name,)) for name, values in (("x", x), ("z", z))]
    rows = rows_of(y)
    stages = run_stages(candidates, DesignCache(rows), rows.signed / rows.std)
    assert stages.parents() == [0]
    of_cause, of_other = selection_frequencies(stages, 20, np.random.default_rng(4))
    assert of_cause == 1
    assert of_other < 0.6


def test_what_one_outburst_alone_shows_is_found_in_half_of_the_halves():
    rng = np.random.default_rng(8)
    x = 0.05 * rng.standard_normal(1000)
    deviation = 0.3 * rng.standard_normal(1000)
    x[500:506] += 1.0
    deviation[500:506] += 3.0
    candidates = [Candidate("x", "counter", "g", "", x / x.std(), ("x",))]
    rows = rows_of(100 + deviation)
    stages = run_stages(candidates, DesignCache(rows), rows.signed / rows.std)
    assert stages.parents() == [0]
    (frequency,) = selection_frequencies(stages, 20, np.random.default_rng(4))
    assert frequency < 0.8


def test_a_cause_counts_as_found_where_a_stand_in_tells_the_same():
    """Which of two columns that tell the slow launches apart a half-sample prefers is chance; an unrelated one is no
    stand-in.
    """
    rng = np.random.default_rng(630)
    slow = (np.arange(640) % 8 == 0).astype(float)
    candidates = [slow, slow + 0.02 * rng.standard_normal(640), rng.standard_normal(640)]
    centring = GroupCentring(np.zeros(640, dtype=int), np.ones(640))
    problem = Problem.of(build_basis(candidates, centring), 3, 640.0)
    response = centring.weighted(5 * slow + 0.1 * rng.standard_normal(640))
    assert stood_in(problem, response, [1], 0)
    assert not stood_in(problem, response, [2], 0)
    assert not stood_in(problem, response, [], 0)


@pytest.mark.parametrize("df", [1, 3])
def test_half_of_the_rows_find_what_all_rows_just_show_in_three_of_four_cases(df):
    """Drawn anew with half of the rows, an effect of the noncentrality `c - df` of the whole passes the level with
    the stated odds.
    """
    rng = np.random.default_rng(6)
    alpha = 1e-4
    n = 400
    critical = df * stats.f.isf(alpha, df, n - 1 - df)
    limit = half_level(alpha, df, n)
    assert alpha < limit < 0.1
    found = []
    for _ in range(1000):
        x = np.linalg.qr(rng.standard_normal((n // 2, df)))[0]
        y = x @ np.full(df, np.sqrt((critical - df) / 2 / df)) + rng.standard_normal(n // 2)
        explained = float(((x.T @ y) ** 2).sum())
        left = n // 2 - 1 - df
        found.append(stats.f.sf(explained / df / ((float(y @ y) - explained) / left), df, left) <= limit)
    assert abs(np.mean(found) - ODDS) < 0.06

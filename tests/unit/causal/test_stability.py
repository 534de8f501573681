import numpy as np
from causal_tables import rows_of, series

from causeway.causal.discovery import Scope, discover
from causeway.causal.rows import Candidate, Column
from causeway.causal.stability import block_numbers, half_samples, selection_frequencies
from causeway.causal.stages import run_stages


def test_blocks_are_longer_than_the_autocorrelation():
    rng = np.random.default_rng(1)
    white, slow = rng.standard_normal(4000), series(rng, 4000, 1, 0.9)[:, 0]
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
    stages = run_stages(candidates, rows, rows.signed / rows.std)
    assert stages.parents() == [0]
    of_cause, of_other = selection_frequencies(stages, 20, np.random.default_rng(4))
    assert of_cause == 1
    assert of_other < 0.6


def test_a_cause_counts_as_found_where_a_stand_in_tells_the_same():
    """Two columns tell the slow launches apart; which of them a half-sample prefers is chance, and the cause is stable all the same."""
    rng = np.random.default_rng(630)
    slow = np.arange(640) % 8 == 0
    run = np.asarray([f"run {k % 8}" for k in range(640)], dtype=object)
    clock = np.where(slow, 1.0, 0.0) + 0.02 * rng.standard_normal(640)
    y = 1000 + 500 * slow + 10 * rng.standard_normal(640)
    outcome = discover([Column("run", run, "context"), Column("state", clock, "context")], rows_of(y), Scope("d", "y", "k", resamples=20))
    assert [arrow.stability >= 0.9 for arrow in outcome.arrows] == [True]

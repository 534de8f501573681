import numpy as np
import pyarrow as pa
import pytest

from causeway.core.tables import SCHEMAS
from causeway.variability.bins.bins import BinTable
from causeway.variability.bins.ranking import rank_bins, robust_cv, uniform


def bins_of(variances, counts=None, ranks=None):
    """Return bins whose target has the given variances (NaN: a single launch)."""
    variances = np.array(variances, float)
    n = variances.size
    statistics = np.zeros((n, 1, 8))
    statistics[:, 0, 3] = variances
    statistics[:, 0, 5:8] = np.stack([np.ones(n), np.full(n, 2.0), 1 + np.nan_to_num(variances)], axis=1)
    counts = np.where(np.isnan(variances), 1, 10) if counts is None else np.array(counts)
    return BinTable(np.zeros(n, np.int64) if ranks is None else np.array(ranks), np.arange(n), counts, statistics)


def ranked(bins, by="variance", share=0.1, count=None, ratio=1.0, least=0, seed=7, most=None):
    found = rank_bins(bins, by, share, count, ratio, least, seed, most)
    assert found.schema.equals(SCHEMAS["ranking"])
    return found.to_pandas()


def test_order_by_score_then_rank_then_bin_and_no_score_last():
    found = ranked(bins_of([1, 5, np.nan, 5, 2], ranks=[0, 1, 1, 0, 1]))
    assert found.order.tolist() == [3, 1, 4, 0, 2]
    assert found.score.isna().tolist() == [False, False, True, False, False]


@pytest.mark.parametrize(
    ("share", "count", "kept"), [(0.1, None, 1), (0.21, None, 3), (1.0, None, 9), (0.1, 4, 4), (0.1, 99, 9)]
)
def test_the_best_share_or_number_is_kept_and_none_without_a_score(share, count, kept):
    found = ranked(bins_of([9, 8, 7, 6, 5, 4, 3, 2, 1, np.nan]), share=share, count=count)
    assert np.flatnonzero(found.kept).tolist() == list(range(kept))
    assert (found.inclusion_probability[found.kept] == 1).all()


@pytest.mark.parametrize(("most", "kept"), [(10, 2), (11, 2), (12, 2), (13, 3), (17, 3), (18, 4), (3, 1), (1000, 4)])
def test_the_kept_bins_hold_no_more_launches_than_allowed_but_one_bin_is_kept(most, kept):
    found = ranked(bins_of([9, 8, 7, 6, 5, 4], counts=[4, 6, 3, 5, 9, 9]), count=4, most=most)
    assert np.flatnonzero(found.kept).tolist() == list(range(kept))
    assert (
        ranked(bins_of([9, 8, 7, 6, 5, 4], counts=[4, 6, 3, 5, 9, 9]), count=4, most=most, ratio=0).control.sum() == 0
    )


def test_control_bins_have_one_known_probability_and_it_is_their_share():
    found = ranked(bins_of(np.arange(20_000.0)), share=0.1, ratio=2.0)
    rest = found[~found.kept]
    chance = rest.inclusion_probability[rest.control].unique()
    assert chance.tolist() == [2.0 * 2000 * 10 / (18_000 * 10)]
    assert rest.control.mean() == pytest.approx(chance[0], abs=0.01)
    assert rest.inclusion_probability[~rest.control].isna().all()


def test_a_small_dataset_is_kept_whole():
    found = ranked(bins_of(np.arange(50.0)), least=20_000)
    assert (found.kept | found.control).all()
    assert (found.inclusion_probability == 1).all()


def test_the_choice_depends_on_seed_rank_and_bin_not_on_position():
    whole = ranked(bins_of(np.arange(1000.0)))
    half = bins_of(np.arange(1000.0))
    half = BinTable(half.rank[::2], half.bin[::2], half.count[::2], half.statistics[::2])
    part = ranked(half).set_index("bin")
    both = whole.set_index("bin").loc[part.index]
    low = part.kept | both.kept
    assert (
        (part.control == both.control)
        | low
        | (part.inclusion_probability.fillna(0) != both.inclusion_probability.fillna(0))
    ).all()
    assert (ranked(bins_of(np.arange(1000.0)), seed=8).control != whole.control).any()


def test_hash_is_uniform_and_its_parts_independent():
    rank, number = np.divmod(np.arange(100_000), 1000)
    values = uniform(3, rank, number)
    assert (np.histogram(values, 10, (0, 1))[0] / 10_000).tolist() == pytest.approx([1] * 10, abs=0.05)
    by_rank = values.reshape(100, 1000)
    assert abs(np.corrcoef(by_rank[0], by_rank[1])[0, 1]) < 0.1
    assert uniform(3, np.array([5]), np.array([9]))[0] == uniform(3, np.array([1, 5]), np.array([0, 9]))[1]


def test_scores_by_other_statistics():
    bins = bins_of([4.0, 2.0, np.nan])
    assert ranked(bins, by="iqr").score.tolist()[:2] == [4.0, 2.0]
    assert ranked(bins, by="robust_cv").score.tolist()[:2] == [0.7413 * 4 / 2, 0.7413 * 2 / 2]
    assert ranked(bins, by="iqr").score.isna().tolist() == [False, False, True]
    assert np.isnan(robust_cv(np.array([-1.0]), np.array([0.0]), np.array([1.0]))[0])


def test_no_bins():
    none = np.empty(0, np.int64)
    found = rank_bins(BinTable(none, none, none, np.empty((0, 1, 8))), "variance", 0.1, None, 1.0, 20_000, 1)
    assert found.num_rows == 0
    assert isinstance(found, pa.Table)

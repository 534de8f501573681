"""The model of mean and scale: its trees, and their table of all combinations of levels."""

import numpy as np
import pytest

from causeway.causal.effects.location_scale import Causes, cross_fitted
from causeway.causal.statistics.basis import quantile_levels


def drawn(rows=600):
    """Return two causes whose effects do not add up, a number of seven levels and a category of three, and a
    deviation.
    """
    draw = np.random.default_rng(3)
    number = draw.integers(0, 7, rows).astype(float)
    category = draw.integers(0, 3, rows)
    indicators = (category[:, None] == np.array([1, 2])).astype(float)
    deviation = np.where(category == 1, number, -number) + 0.1 * draw.standard_normal(rows)
    return [number, indicators], deviation - deviation.mean(), category


def test_predictions_from_the_table_are_those_of_the_trees():
    """Also where one cause takes the value of another row."""
    within, deviation, _ = drawn()
    rows = np.arange(deviation.size)
    causes = Causes(within, rows.size)
    assert causes.combinations.shape == (7 * 3, 3)
    assert np.array_equal(causes.combinations[causes.combination(rows, None, None)], causes.features)
    plain = Causes(within, rows.size)
    plain.combinations = None
    donors = np.random.default_rng(4).permutation(rows)
    fitted = [cross_fitted(one, rows % 5, deviation, np.ones(rows.size), 1) for one in (causes, plain)]
    for (test, by_table), (_, by_trees) in zip(*fitted, strict=True):
        assert by_table.has_trees
        for cause in (None, 0, 1):
            own = by_table.predict(test, cause, donors[test]), by_trees.predict(test, cause, donors[test])
            for one, other in zip(*own, strict=True):
                assert np.array_equal(one, other)


def test_more_combinations_than_rows_have_no_table():
    draw = np.random.default_rng(5)
    assert Causes([draw.standard_normal(100), draw.standard_normal(100)], 100).combinations is None
    assert Causes([], 100).combinations is None


def test_quantile_levels_weigh_the_same_and_keep_what_is_missing():
    values = np.arange(1000.0)
    weight = np.where(values < 500, 3.0, 1.0)
    values[7] = np.nan
    levels = quantile_levels(values, 10, weight)
    assert np.isnan(levels[7])
    shares = np.bincount(levels[np.isfinite(levels)].astype(int), weight[np.isfinite(levels)]) / weight.sum()
    assert shares.size == 10
    assert shares == pytest.approx(0.1, abs=0.003)
    assert np.all(np.diff(levels[np.isfinite(levels)]) >= 0)
    assert np.isnan(quantile_levels(np.full(3, np.nan), 10)).all()

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causeway.ranks import Ranks
from causeway.variability import quantiles
from causeway.variability.quantiles import QuartileSearch, keys_of, values_of


def quartiles_of(keys, group, groups, values=lambda found: found):
    count = np.bincount(group, minlength=groups)
    low = np.array([keys[group == g].min() if count[g] else 0 for g in range(groups)], np.int64)
    high = np.array([keys[group == g].max() if count[g] else 0 for g in range(groups)], np.int64)
    search, passes = QuartileSearch(count, low, high), 0
    while search.open:
        for part in np.array_split(np.arange(keys.size), 3):
            search.add(group[part], keys[part])
        search.narrow(Ranks())
        passes += 1
    return search.quartiles(values(search.order_statistics())), passes


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2**50)), min_size=1, max_size=60), st.booleans())
def test_integers_equal_numpy(rows, narrow):
    group, keys = (np.array(part, np.int64) for part in zip(*rows, strict=True))
    if narrow:
        keys %= 20
    found, _ = quartiles_of(keys, group, 3)
    for g in range(3):
        expected = np.quantile(keys[group == g], [0.25, 0.5, 0.75]) if (group == g).any() else np.full(3, np.nan)
        np.testing.assert_allclose(found[g], expected, rtol=1e-15)


@settings(deadline=None)
@given(st.lists(st.floats(-1e300, 1e300), min_size=1, max_size=60))
def test_floats_equal_numpy(values):
    values = np.array(values)
    found, _ = quartiles_of(keys_of(values), np.zeros(values.size, np.int64), 1, values_of)
    np.testing.assert_allclose(found[0], np.quantile(values, [0.25, 0.5, 0.75]), rtol=1e-12)


@given(st.lists(st.floats(allow_nan=False), min_size=1, max_size=40))
def test_keys_order_as_values_do(values):
    values = np.array(values)
    keys = keys_of(values)
    np.testing.assert_array_equal(values_of(keys), values)
    np.testing.assert_array_equal(np.argsort(keys, kind="stable"), np.argsort(values + 0.0, kind="stable"))


@pytest.mark.parametrize(("spread", "passes"), [(2**14 - 1, 1), (2**28 - 1, 2), (2**40, 3)])
def test_number_of_passes_follows_from_the_spread(spread, passes):
    keys = np.concatenate([[0, spread], np.random.default_rng(0).integers(0, spread, 2000)])
    found, needed = quartiles_of(keys, np.zeros(keys.size, np.int64), 1)
    assert needed <= passes
    np.testing.assert_array_equal(found[0], np.quantile(keys, [0.25, 0.5, 0.75]))


def test_many_groups_use_fewer_buckets_and_stay_exact(monkeypatch):
    monkeypatch.setattr(quantiles, "TABLE_BYTES", 1 << 10)
    rng = np.random.default_rng(3)
    keys, group = rng.integers(0, 10**6, 4000), rng.integers(0, 50, 4000)
    found, _ = quartiles_of(keys, group, 50)
    expected = [np.quantile(keys[group == g], [0.25, 0.5, 0.75]) for g in range(50)]
    np.testing.assert_allclose(found, expected, rtol=1e-15)

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causeway.variability.rows import group_quantiles
from causeway.variability.rows.group_quantiles import QuartileSearch, keys_of, values_of


def quartiles_of(keys, group, groups, values=lambda found: found):
    """Search as several workers do: each with a table of its own, which are then added."""
    search = QuartileSearch(groups, int(keys.min()))
    passes = 0
    while search.open:
        workers = [search.fresh() for _ in range(3)]
        for worker, part in zip(workers, np.array_split(np.arange(keys.size), 3), strict=True):
            worker.add(group[part].astype(np.int32), keys[part])
        search.table = sum(worker.table for worker in workers)
        search.narrow()
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


@pytest.mark.parametrize(("largest", "passes"), [(2**7 - 1, 1), (2**20 - 1, 2), (2**34 - 1, 3), (2**62, 5)])
def test_number_of_passes_follows_from_the_size(largest, passes):
    """The first pass resolves 1/64 of a key, each further one 2^14 times as much: durations below a millisecond need
    two.
    """
    keys = np.concatenate([[0, largest], np.random.default_rng(0).integers(largest // 2, largest, 2000)])
    found, needed = quartiles_of(keys, np.zeros(keys.size, np.int64), 1)
    assert needed == passes
    np.testing.assert_allclose(found[0], np.quantile(keys, [0.25, 0.5, 0.75]), rtol=1e-15)


@pytest.mark.parametrize("bits", [0, 1, 6])
def test_first_buckets_hold_what_their_ranges_say(bits):
    rng = np.random.default_rng(bits)
    edges = [2**k + step for k in range(64) for step in (-1, 0, 1)]
    distances = [
        value >> shift for shift in range(64) for value in rng.integers(0, 2**64, 50, dtype=np.uint64).tolist()
    ]
    distances = sorted({value for value in [*edges, *distances, 2**64 - 1] if 0 <= value < 2**64})
    for lowest in (-(2**63), 0):
        inside = [value for value in distances if lowest + value < 2**63]
        keys = np.array([lowest + value for value in inside], np.int64)
        table = np.zeros((1, group_quantiles._first_buckets(bits)), np.int64)
        group_quantiles._count_first(np.zeros(keys.size, np.int32), keys, lowest, bits, table)
        filled = np.flatnonzero(table[0])
        ranges = [group_quantiles._first_range(int(bucket), bits) for bucket in filled]
        counts = [sum(low <= value <= high for value in inside) for low, high in ranges]
        assert counts == table[0][filled].tolist()


def test_many_groups_use_fewer_buckets_and_stay_exact(monkeypatch):
    monkeypatch.setattr(group_quantiles, "TABLE_BYTES", 1 << 10)
    rng = np.random.default_rng(3)
    keys = rng.integers(0, 10**6, 4000)
    group = rng.integers(0, 50, 4000)
    found, _ = quartiles_of(keys, group, 50)
    expected = [np.quantile(keys[group == g], [0.25, 0.5, 0.75]) for g in range(50)]
    np.testing.assert_allclose(found, expected, rtol=1e-15)

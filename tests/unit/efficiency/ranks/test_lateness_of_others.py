"""What the other ranks' lateness lets a rank be by chance, beside the same from all values but its own."""

import numpy as np
import pytest

from causeway.efficiency.ranks import stragglers

COUNTS = (1, 2, 3, 7, 40)


def made(seed):
    """Return lateness of some ranks with ties, zeros and, of every fifth, nothing else; ns."""
    random = np.random.default_rng(seed)
    shape = int(random.integers(2, 9)), int(random.choice(COUNTS))
    lateness = np.round(random.standard_t(2, shape) * 4) * 1000.0
    lateness[random.random(shape) < 0.3] = 0
    return lateness * (seed % 5 > 0)


@pytest.mark.parametrize("seed", range(60))
def test_each_rank_beside_all_others(seed):
    lateness = made(seed)
    found = stragglers._of_others(lateness)
    tail = np.quantile(lateness, 0.99, axis=1)
    for rank in range(len(lateness)):
        others = [value for row, values in enumerate(lateness.tolist()) if row != rank for value in values]
        sizes = sorted(abs(value) for value in others if value)
        middle = (sizes[(len(sizes) - 1) // 2] + sizes[len(sizes) // 2]) / 2 if sizes and len(lateness) > 2 else 0.0
        tails = sorted(value for row, value in enumerate(tail.tolist()) if row != rank)
        median = (tails[(len(tails) - 1) // 2] + tails[len(tails) // 2]) / 2
        assert found[rank] == max(2.0 * median, 5.0 * 1.4826 * middle)


@pytest.mark.parametrize("seed", range(30))
def test_a_median_without_some_values(seed):
    random = np.random.default_rng(seed)
    values = np.sort(random.integers(0, 6, int(random.integers(1, 30))).astype(float))
    removed = np.sort(random.choice(values.size, int(random.integers(0, values.size + 1)), replace=False))
    left = np.delete(values, removed)
    expected = float(np.median(left)) if left.size else 0.0
    assert stragglers.median_without(values, values[removed]) == expected


@pytest.mark.parametrize("seed", range(20))
def test_how_often_others_are_as_late_is_counted_without_the_rank_itself(seed):
    """A rank is late often if a binomial test says so: of `times` and of what the others were as late."""
    from scipy.stats import binom

    random = np.random.default_rng(seed)
    lateness = np.round(random.standard_normal((5, 60)) * 3)
    lateness[0] += seed / 5
    threshold = np.array([3.0, 2.0, 4.0, 3.0, 1.0])
    expected = []
    for rank, limit in enumerate(threshold.tolist()):
        times = sum(value > limit for value in lateness[rank].tolist())
        others = sum(value > limit for row in range(5) if row != rank for value in lateness[row].tolist())
        enough = times >= max(3, 0.03 * 60)
        expected.append(enough and 5 * binom.sf(times - 1, 60, (others + 1) / 241) <= 0.01)
    assert stragglers._often(lateness, threshold).tolist() == expected

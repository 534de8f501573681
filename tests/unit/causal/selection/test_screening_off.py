import numpy as np
import pytest
from causal_tables import rows_of

from causeway.causal.data.observations import Candidate
from causeway.causal.discovery.mean_and_scale import run_stages
from causeway.causal.selection.design_cache import DesignCache
from causeway.causal.selection.forward import preferred
from causeway.causal.selection.problem import Problem
from causeway.causal.selection.screening_off import PREFERENCE, CorrelationCache, screening
from causeway.causal.statistics.basis import GroupCentring, build_basis

N = 1500


def cache_of(*columns):
    unit = np.column_stack(
        [(column - column.mean()) / np.sqrt(((column - column.mean()) ** 2).sum()) for column in columns]
    )
    return CorrelationCache(unit.astype(np.float32), np.arange(unit.shape[1]), np.ones(unit.shape[1], bool))


def drawn(seed=1):
    """A counter x with three relatives of its own, an unrelated counter z with two, and what was computed from them."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((7, N))
    x, z = noise[:2]
    relatives = [x + 0.8 * noise[2], -x + noise[3], x + 1.2 * noise[4], z + 0.7 * noise[5], z + noise[6]]
    return x, z, relatives


@pytest.mark.parametrize(
    "computed", [lambda x, z: x + z, lambda x, z: x / np.exp(0.5 * z), lambda x, z: np.exp(x) / (np.exp(x) + np.exp(z))]
)
def test_a_counter_is_told_from_what_was_computed_of_it(computed):
    x, z, relatives = drawn()
    cache = cache_of(x, computed(x, z), z, *relatives)
    assert cache.preference(0, 1) == PREFERENCE
    assert cache.preference(1, 0) == -PREFERENCE
    assert cache.preference(0, 0) == 0.0


def test_a_copy_with_noise_is_told_from_the_counter_and_strangers_are_left_open():
    x, z, relatives = drawn(2)
    noisy = x + 0.7 * np.random.default_rng(3).standard_normal(N)
    cache = cache_of(x, noisy, z, *relatives)
    assert cache.preference(0, 1) == PREFERENCE
    alone = cache_of(x, noisy, z)
    assert alone.preference(0, 1) == 0.0


def test_information_is_the_squared_partial_correlation():
    """Against the correlation of what regressions on the other column leave."""
    x, z, relatives = drawn(4)
    columns = np.column_stack([x, x + z, *relatives])
    columns = columns - columns.mean(axis=0)
    among = np.corrcoef(columns.T)

    def partial(target, third, given):
        left = [
            columns[:, one] - columns[:, given] * (columns[:, given] @ columns[:, one]) / (columns[:, given] ** 2).sum()
            for one in (target, third)
        ]
        return np.corrcoef(*left)[0, 1] ** 2

    thirds = [third for third in range(2, 7) if np.abs(among[:2, third]).max() > 0.15]
    expected = sum(min(partial(0, third, 1), 0.5) - min(partial(1, third, 0), 0.5) for third in thirds)
    assert screening(among[0, 2:], among[1, 2:], among[0, 1]) == pytest.approx(expected, abs=1e-9)


def test_the_search_takes_the_counter_although_its_copy_fits_a_little_better_by_chance():
    """The same table with and without the relatives: only they can tell."""
    taken = {}
    for seed in range(30):
        x, z, relatives = drawn(100 + seed)
        rng = np.random.default_rng(seed)
        copy = x + 0.45 * rng.standard_normal(N)
        y = 100 + 0.14 * x + rng.standard_normal(N)
        if abs(np.corrcoef(y, copy)[0, 1]) <= abs(np.corrcoef(y, x)[0, 1]):
            continue
        for around in (relatives, relatives[3:]):
            names = ["x", "copy", "z", *(f"r{k}" for k in range(len(around)))]
            candidates = [
                Candidate(name, "counter", "g", "", (values / values.std()).astype(np.float32), (name,))
                for name, values in zip(names, [x, copy, z, *around], strict=True)
            ]
            rows = rows_of(y)
            chosen = [
                names[one] for one in run_stages(candidates, DesignCache(rows), rows.signed / rows.std).mean.chosen
            ]
            taken.setdefault(len(around), []).append(chosen)
    assert len(taken[5]) >= 4
    assert sum(chosen == ["x"] for chosen in taken[5]) > sum(chosen == ["x"] for chosen in taken[2])
    assert all(chosen != ["copy"] for chosen in taken[5])


@pytest.mark.parametrize("seed", range(5))
def test_asking_only_those_that_could_be_best_gives_what_asking_all_gives(seed):
    rng = np.random.default_rng(seed)
    hidden = rng.standard_normal((400, 4))
    columns = [hidden[:, k % 4] + rng.uniform(0.2, 1.5) * rng.standard_normal(400) for k in range(60)]
    centring = GroupCentring(np.zeros(400, int), np.ones(400))
    problem = Problem.of(build_basis(columns, centring), 60, 400.0)
    decided = 0
    for candidate in range(60):
        score = rng.normal(scale=4.0, size=60)
        score[rng.integers(0, 60, 3)] = np.inf
        score[candidate] = 0.0
        every = score.copy()
        for rival in np.flatnonzero(score < score[candidate] + PREFERENCE):
            every[rival] -= problem.correlation_cache.preference(int(rival), candidate)
        decided += int(np.argmin(every) != np.argmin(score))
        assert preferred(problem, score.copy(), candidate) == np.argmin(every)
    assert decided > 10  # screening off does decide here


def test_correlations_learnt_together_are_those_of_each():
    columns = np.random.default_rng(31).standard_normal((N, 12))
    together = cache_of(*columns.T)
    alone = cache_of(*columns.T)
    together.learn([3, 7, 11])
    together.learn([7, 2])
    for one in (2, 3, 7, 11):
        assert together.correlations(one) == pytest.approx(np.corrcoef(columns.T)[one], abs=1e-5)
        assert together.correlations(one) == pytest.approx(alone.correlations(one), abs=1e-6)

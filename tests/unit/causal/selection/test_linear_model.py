import gc
import weakref

import numpy as np
import pytest
from causal_tables import series
from scipy.stats import f as f_distribution

from causeway.causal.data.observations import Candidate
from causeway.causal.selection.backward import Pruner
from causeway.causal.selection.linear_model import ROWS_AT_ONCE, LinearModel, best_test, forward
from causeway.causal.selection.problem import Design, Problem
from causeway.causal.statistics.basis import GroupCentring, build_basis


def problem_of(columns):
    n = columns[0].shape[0]
    centring = GroupCentring(np.zeros(n, int), np.ones(n))
    return Problem(build_basis(columns, centring), len(columns), float(n)), centring


def test_partial_f_of_a_candidate_equals_the_textbook():
    rng = np.random.default_rng(1)
    x, z = rng.standard_normal((2, 200))
    y = x + 0.3 * z + rng.standard_normal(200)
    problem, _ = problem_of([x, z])
    response = y - y.mean()
    model = LinearModel(problem, response)
    model.add_candidate(0)
    explained, df = model.scan()
    p_values, partial = model.tests(explained, df, np.full(2, 200.0))
    both, one = (problem.basis.columns[:, np.isin(problem.basis.owner, who)].astype(float) for who in ([0, 1], [0]))
    rest = [
        float(((response - part @ np.linalg.lstsq(part, response, rcond=None)[0]) ** 2).sum()) for part in (one, both)
    ]
    extra = both.shape[1] - one.shape[1]
    left = 200 - 1 - both.shape[1]
    expected = f_distribution.sf((rest[0] - rest[1]) / extra / (rest[1] / left), extra, left)
    assert df[1] == extra
    assert partial[1] == pytest.approx(1 - rest[1] / rest[0], rel=1e-4)
    assert p_values[1] == pytest.approx(expected, rel=1e-3)


def test_parents_of_any_shape_are_found_and_a_grandparent_is_not():
    rng = np.random.default_rng(2)
    a, b, c = rng.standard_normal((3, 1500))
    cause = a + 0.7 * rng.standard_normal(1500)
    y = cause + (np.abs(b) - 0.8) + 2 * (c > 1.5) + rng.standard_normal(1500)
    problem, _ = problem_of([a, cause, b, c, *rng.standard_normal((20, 1500))])
    assert sorted(forward(problem, y - y.mean())) == [1, 2, 3]


def test_a_slow_series_without_effect_is_not_significant_but_a_slow_cause_is():
    rng = np.random.default_rng(3)
    slow, other = series(rng, 2000, 2, 0.98).T
    columns = [slow, *series(rng, 2000, 30, 0.98).T]
    problem, _ = problem_of(columns)
    assert best_test(LinearModel(problem, other - other.mean()), set(), 0.01 / 31) is None
    y = 0.4 * slow + rng.standard_normal(2000)
    assert forward(problem, y - y.mean()) == [0]


def test_pruning_removes_a_proxy_of_a_threshold():
    rng = np.random.default_rng(4)
    x = rng.standard_normal(3000)
    proxy = x + 0.5 * rng.standard_normal(3000)
    y = 3.0 * (x > 0.3) + rng.standard_normal(3000)
    problem, centring = problem_of([x, proxy])
    candidates = [Candidate(name, "counter", "g", "", values, (name,)) for name, values in (("x", x), ("proxy", proxy))]
    tests = Pruner(Design(candidates, np.zeros(3000, int), centring, problem)).prune(y - y.mean(), [0, 1])
    assert [test.candidate for test in tests] == [0]


def test_a_ratio_that_mimics_an_interaction_gives_way_to_the_counter_behind_it():
    rng = np.random.default_rng(5)
    u, v = np.exp(0.5 * rng.standard_normal((2, 3000)))
    y = np.log(u) - np.log(v) + 0.4 * np.log(u) * np.log(v) + rng.standard_normal(3000)
    ratio = u / (v + 0.3) * (1 + 0.1 * rng.standard_normal(3000))
    columns = {"u": u, "v": v, "u_ratio": ratio}
    problem, centring = problem_of(list(columns.values()))
    candidates = [Candidate(name, "counter", "g", "", values, (name,)) for name, values in columns.items()]
    tests = Pruner(Design(candidates, np.zeros(3000, int), centring, problem)).prune(y - y.mean(), [0, 2])
    assert [test.candidate for test in tests] == [0, 1]


def test_a_model_ends_with_its_last_reference():
    """Its basis is as large as the data: one that waits for the search for cycles, which is seldom, is a leak."""
    rng = np.random.default_rng(4)
    x, z, y = rng.standard_normal((3, 200))
    problem, _ = problem_of([x, z])
    gc.disable()
    try:
        model = LinearModel(problem, y)
        model.add_candidate(0)
        model.add(problem.basis.columns[:, problem.basis.of(1)])
        known = weakref.ref(model)
        del model
        assert known() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("room", [0, 7, 100])
@pytest.mark.parametrize("n_rows", [300, ROWS_AT_ONCE - 1, 2 * ROWS_AT_ONCE + 1])
def test_a_model_of_columns_added_in_parts_is_the_least_squares_fit_of_all(n_rows, room):
    rng = np.random.default_rng(31)
    problem, _ = problem_of(list(rng.standard_normal((3, n_rows))))
    basis = problem.basis.columns.astype(float)
    parts = [np.asfortranarray(rng.standard_normal((n_rows, width)) / np.sqrt(n_rows)) for width in (5, 1, 30)]
    parts[2][:, 4] = parts[0][:, 1]  # is held already
    response = basis.sum(axis=1) + sum(part.sum(axis=1) for part in parts) + rng.standard_normal(n_rows) / 9
    model = LinearModel(problem, response, room)
    held = np.zeros((n_rows, 0))
    for number, part in enumerate(parts):
        model.add_candidate(number)
        held = np.hstack([held, basis[:, problem.basis.of(number)], part])
        wanted = response - held @ np.linalg.lstsq(held, response, rcond=None)[0]
        before = part.copy()
        rest, new = model.residual_with(part)
        assert rest == pytest.approx(wanted, abs=1e-9)
        assert new == (29 if number == 2 else part.shape[1])
        assert np.array_equal(part, before)
        model.add(part)
        assert model.residual == pytest.approx(wanted, abs=1e-9)
        assert model.q.T @ model.q == pytest.approx(np.eye(model.q.shape[1]), abs=1e-9)
        assert model.coordinates() == pytest.approx(basis.T @ model.q, abs=1e-5)

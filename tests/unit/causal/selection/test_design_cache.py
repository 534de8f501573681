"""What searches share is worked out once, and is what each would have worked out."""

from dataclasses import replace

import numpy as np
import pytest
from causal_tables import rows_of

from causeway.causal.data.observations import Candidate, Feature
from causeway.causal.discovery.leakage_recheck import LeakageRecheck
from causeway.causal.preparation.numeric_columns import NumericColumn
from causeway.causal.preparation.prepared import Prepared
from causeway.causal.selection.linear_model import linear_model_of
from causeway.causal.selection.problem import DesignCache
from causeway.causal.statistics.basis import NEW_SHARE, GroupCentring, build_basis, orthonormal_transform

N = 400


def number(name, values):
    return Candidate(name, "counter", "counters", "", values.astype(np.float32), (name,))


@pytest.fixture
def candidates():
    rng = np.random.default_rng(21)
    text = rng.integers(0, 3, N)
    category = Candidate(
        "text", "launch", "launch", "", (text[:, None] == [1, 2]).astype(float), ("text",), ("a", "b", "c")
    )
    flag = number("flag", rng.integers(0, 2, N) * 2.0 - 1.0)
    return [*(number(f"n{k}", rng.standard_normal(N) ** (1 + k % 2)) for k in range(70)), category, flag]


@pytest.fixture
def rows():
    rng = np.random.default_rng(22)
    return rows_of(1e5 + rng.standard_normal(N), configuration=rng.integers(0, 3, N))


def fresh(candidates, rows, precision=1.0):
    return build_basis([one.values for one in candidates], GroupCentring(rows.configuration, rows.weight * precision))


def same(basis, other):
    return np.array_equal(basis.columns, other.columns) and np.array_equal(basis.owner, other.owner)


def test_a_ground_for_other_candidates_holds_what_a_new_one_would(candidates, rows):
    grounds = DesignCache(rows)
    first = grounds.plain(candidates)
    assert same(first.problem.basis, fresh(candidates, rows))
    assert grounds.plain(list(candidates)) is first
    rng = np.random.default_rng(23)
    changed = [
        number("new", rng.standard_normal(N)),
        *candidates[5:30],
        number("other", np.abs(rng.standard_normal(N))),
        *candidates[31:],
    ]
    changed.append(replace(candidates[2], members=("n2", "n3")))
    assert same(grounds.plain(changed).problem.basis, fresh(changed, rows))
    precision = rng.uniform(0.5, 2.0, N)
    for some in (candidates, changed, changed[:40]):
        assert same(grounds.weighted(some, precision).problem.basis, fresh(some, rows, precision))
    assert same(grounds.plain(candidates[:3]).problem.basis, fresh(candidates[:3], rows))


def test_a_ground_without_candidates_is_empty(rows):
    grounds = DesignCache(rows)
    assert grounds.plain([]).problem.basis.columns.shape == (N, 0)
    assert grounds.plain([number("x", np.arange(N) % 7)]).problem.basis.owner.tolist()[0] == 0
    assert grounds.plain([]).problem.basis.columns.shape == (N, 0)


def test_autocorrelations_of_one_candidate_are_those_of_all(candidates, rows):
    problem = DesignCache(rows).plain(candidates).problem
    for candidate in (0, 70, 71):
        assert problem.lags_of(candidate) == pytest.approx(problem.lags[problem.basis.of(candidate)], abs=1e-6)


def test_models_that_hold_the_same_candidates_share_their_products(candidates, rows):
    problem = DesignCache(rows).plain(candidates).problem
    response = np.random.default_rng(24).standard_normal(N)
    for chosen in ([0, 1, 70, 71], [71, 0], [5, 1]):
        model = linear_model_of(problem, response, chosen)
        model.coordinates()
        model.add_candidate(2)
        model.add(problem.basis.columns[:, problem.basis.of(6)] * 0.8)  # whatever is no candidate is worked out
        assert model.coordinates() == pytest.approx(problem.basis.columns.T @ model.q, abs=1e-5)
    assert set(problem._products) == {0, 1, 70, 71, 5, 2}


@pytest.mark.parametrize("noise", [1.0, 1e-3, 1e-8])
def test_a_scan_sees_what_little_a_model_leaves(noise, candidates, rows):
    problem = DesignCache(rows).plain(candidates).problem
    rng = np.random.default_rng(29)
    columns = problem.basis.columns.astype(float)
    little = columns[:, problem.basis.of(9)][:, 0] + 0.1 * rng.standard_normal(N) / np.sqrt(N)
    response = columns[:, problem.basis.of(1)].sum(axis=1) + noise * little
    model = linear_model_of(problem, response, [1])
    explained, _ = model.scan()
    assert np.argmax(explained) == 9
    rest, _ = model.residual_with(problem.basis.columns[:, problem.basis.of(9)])
    assert explained[9] == pytest.approx(float(model.residual @ model.residual - rest @ rest), rel=1e-3)


@pytest.mark.parametrize("width", [1, 2, 3, 5])
def test_what_candidates_explain_leaves_out_directions_that_the_model_nearly_holds(width):
    rng = np.random.default_rng(27)
    columns = [rng.standard_normal((N, width)) for _ in range(50)]
    for part in columns[:25]:  # half of them nearly hold something twice, or lie nearly in the model
        part[:, -1] = (part[:, 0] if width > 1 else 0.0) + rng.uniform(0, 0.3) * rng.standard_normal(N)
    categories = [Candidate(f"c{k}", "launch", "launch", "", part, (f"c{k}",)) for k, part in enumerate(columns)]
    base = number("base", rng.standard_normal(N))
    categories[0] = replace(categories[0], values=base.values[:, None] + 0.05 * columns[0])
    problem = DesignCache(rows_of(1e5 + rng.standard_normal(N))).plain([base, *categories]).problem
    response = rng.standard_normal(N)
    model = linear_model_of(problem, response - response.mean(), [0])
    explained, df = model.scan()
    for candidate in range(1, 51):
        part = problem.basis.columns[:, problem.basis.of(candidate)].astype(float)
        rest = part - model.q @ (model.q.T @ part)
        left, sizes, _ = np.linalg.svd(rest, full_matrices=False)
        new = left[:, sizes**2 > NEW_SHARE]
        assert df[candidate] == new.shape[1]
        assert explained[candidate] == pytest.approx(float(((model.residual @ new) ** 2).sum()), rel=1e-3, abs=1e-4)


def test_an_orthonormal_basis_spans_the_columns_and_leaves_out_what_adds_little():
    rng = np.random.default_rng(25)
    a, b, c = np.linalg.qr(rng.standard_normal((N, 3)))[0].T
    columns = np.column_stack([a, 0.6 * a + 0.8 * b, 0.8 * a + 0.6 * b, 0.9 * (np.sqrt(0.99) * a + 0.1 * c)])
    basis = columns @ orthonormal_transform(columns.T @ columns, 0.02)
    assert basis.T @ basis == pytest.approx(np.eye(2), abs=1e-12)
    assert basis @ (basis.T @ columns[:, :3]) == pytest.approx(columns[:, :3], abs=1e-12)
    assert np.abs(basis.T @ c).max() < 0.15  # adds a hundredth
    assert orthonormal_transform(np.zeros((0, 0)), 0.02).shape == (0, 0)


def test_a_cluster_is_represented_by_another_member():
    prepared = Prepared("abc")
    prepared.add(number("a", np.ones(N)))
    prepared.merge("a", {name: number(name, np.ones(N)) for name in "bc"})
    prepared.promote("b")
    assert (prepared.within[0].name, prepared.within[0].members) == ("b", ("b", "a", "c"))


@pytest.mark.parametrize("logarithmic", [False, True])
def test_what_the_time_and_another_column_leave_equals_a_regression_on_shared_rows(logarithmic):
    rng = np.random.default_rng(26)
    time = 1e5 * np.exp(0.2 * rng.standard_normal(N))
    amount = np.exp(rng.standard_normal(N))
    columns = {
        "amount": amount,
        "rate": amount / time,
        "other": amount + np.exp(rng.standard_normal(N)),
        "sum": amount + time,
    }
    for name in ("amount", "other"):
        columns[name] = np.where(rng.random(N) < 0.1, np.nan, columns[name])
    configuration = rng.integers(0, 2, N)
    rows = rows_of(time, configuration=configuration)
    numbers = {}
    for name, values in columns.items():
        known = np.isfinite(values)
        numbers[name] = NumericColumn(Feature(name, values), name, np.where(known, values, 1.0), known)
    prepared = Prepared(columns)
    prepared.keep_numbers(numbers)
    relations = LeakageRecheck(prepared, rows).scales[int(logarithmic)]
    for name in ("rate", "sum", "other"):
        residual = relations.residual(relations.position[name])
        for other in columns:
            if other == name or residual[relations.position[other]] == 1.0:
                continue
            shared = np.isfinite(columns[name]) & np.isfinite(columns[other])
            x = relations.values[relations.position[name]]
            u = relations.values[relations.position[other]]
            t = relations.measured
            design = np.column_stack([np.ones(shared.sum()), u[shared], t[shared]])
            rest = x[shared] - design @ np.linalg.lstsq(design, x[shared], rcond=None)[0]
            assert residual[relations.position[other]] == pytest.approx(rest.var() / x[shared].var(), abs=1e-4)
    pair = ("rate", "amount") if logarithmic else ("sum", "amount")
    assert relations.residual(relations.position[pair[0]])[relations.position[pair[1]]] < 0.01

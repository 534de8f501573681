import numpy as np
import pytest
from scipy.special import ndtri

from causeway.causal.statistics.basis import (
    GroupCentring,
    build_basis,
    functions_of,
    normal_scores,
    orthonormal_transform,
)


def test_normal_scores_take_ties_at_their_average_rank():
    values = np.array([3.0, 1.0, 3.0, 2.0, 3.0, -5.0])
    ranks = np.array([5.0, 2.0, 5.0, 3.0, 5.0, 1.0])
    assert normal_scores(values) == pytest.approx(ndtri((ranks - 0.5) / 6))


def test_weighted_fixed_effects_equal_a_regression_with_indicators():
    rng = np.random.default_rng(1)
    groups = rng.integers(0, 4, 80)
    weights = rng.uniform(0.5, 3, 80)
    x = rng.standard_normal(80) + groups
    y = rng.standard_normal(80) - groups
    centring = GroupCentring(np.unique(groups, return_inverse=True)[1], weights)
    a = centring.weighted(x)
    b = centring.weighted(y)
    roots = np.sqrt(weights)
    design = np.column_stack([x, *(groups == g for g in range(4))]) * roots[:, None]
    assert a @ b / (a @ a) == pytest.approx(np.linalg.lstsq(design, y * roots, rcond=None)[0][0])


def test_two_values_have_one_function_and_a_normal_column_needs_no_second_linear_one():
    binary = np.repeat([0.0, 1.0], 50)
    assert functions_of(binary).shape == (1, 100)
    x = np.random.default_rng(2).standard_normal(500)
    basis = build_basis([x, binary.repeat(5)], GroupCentring(np.zeros(500, int), np.ones(500)))
    assert basis.owner.tolist() == [0, 0, 1]
    assert (basis.columns**2).sum(axis=0) == pytest.approx(1, abs=1e-5)


def test_a_candidate_that_is_constant_within_groups_has_no_column():
    groups = np.repeat([0, 1, 2], 20)
    basis = build_basis([groups.astype(float)], GroupCentring(groups, np.ones(60)))
    assert basis.columns.shape == (60, 0)


@pytest.mark.parametrize("groups", [np.zeros(60, int), np.repeat([0, 1, 2], 20), np.arange(60) % 4])
def test_columns_row_after_row_are_centred_and_weighted_alike(groups):
    rng = np.random.default_rng(3)
    columns = rng.standard_normal((60, 5))
    centring = GroupCentring(groups, rng.uniform(0.5, 3, 60))
    assert centring.weighted_rows(columns.T) == pytest.approx(centring.weighted(columns).T, abs=1e-12)


def test_an_orthonormal_basis_takes_the_longest_column_first_and_leaves_out_what_is_nearly_in_it():
    """By hand: of columns a and b of unit length with a product of .6, (b - .6 a) / .8 is what is new in b."""
    gram = np.array([[1.0, 0.6], [0.6, 1.0]])
    assert orthonormal_transform(gram, 0.1) == pytest.approx(np.array([[1, -0.75], [0, 1.25]]))
    assert orthonormal_transform(gram, 0.65) == pytest.approx(np.array([[1], [0]]))  # .64 is new
    longer = np.diag([1.0, 1.5]) @ gram @ np.diag([1.0, 1.5])
    assert orthonormal_transform(longer, 0.1) == pytest.approx(np.array([[0, 1.25], [1 / 1.5, -0.5]]))
    assert orthonormal_transform(gram, 2.0).shape == (2, 0)

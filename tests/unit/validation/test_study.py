"""The study of the method's errors: tables are drawn alike, claims are scored as defined, baselines name columns."""

import numpy as np
import pytest

from causeway.core.tables import SCHEMAS
from lab.validation.baselines import baseline_claims
from lab.validation.cases import CASES, chosen
from lab.validation.features_file import features_table, plain_columns
from lab.validation.generator import GeneratorSettings, KnownTable, draw
from lab.validation.result_page import as_markdown
from lab.validation.scores import Claim, f1, score_claims, share_scores
from lab.validation.selection import inclusion_probabilities, selection_scores
from lab.validation.truth import shares_and_slopes

SETTINGS = GeneratorSettings(rows=300, columns=30, drivers=10, causes=3)


def test_one_table_and_seed_give_the_same_table():
    table, again, other = (draw(SETTINGS, seed) for seed in (3, 3, 4))
    assert np.array_equal(table.y, again.y)
    assert not np.array_equal(table.y, other.y)
    assert list(table.columns) == list(again.columns)
    assert len(table.causes) == 3
    assert set(table.causes) < set(table.columns)
    assert sum(table.shares.values()) == pytest.approx(100)
    assert sum(table.value_shares.values()) == pytest.approx(100)
    assert not table.leaked & set(table.causes)


def test_a_drawn_table_has_the_columns_of_features():
    features = features_table(draw(SETTINGS, 3))
    kept = SCHEMAS["kept"].names
    assert features.column_names[: len(kept)] == kept
    assert features.num_rows == 300
    target, signed = (features.column(name).to_numpy() for name in ("target", "signed_deviation"))
    assert np.array_equal(target, np.abs(signed))


def test_claims_are_scored_by_hand():
    table = KnownTable(
        y=np.ones(3), kernel=np.zeros(3, int), columns={}, causes=["a", "b", "c", "tiny"], stands_for={"copy": "b"},
        leaked={"time"}, shares={"a": 40.0, "b": 30.0, "c": 9.5, "tiny": 0.5, "unexplained": 20.0},
        slopes={"a": 0.5, "b": -0.2, "c": 0.01}, moves={"b": 0.3},
    )  # fmt: skip
    claims = [
        Claim("a", ("a",), "+", 50.0, 0.5, "target"),
        Claim("x", ("x", "copy"), "-", 20.0, 0.1, "value"),  # by a member that is a copy of b
        Claim("time", ("time",), "?", 10.0, 0.1, "target"),
    ]
    found = score_claims(claims, 20.0, table)
    assert (found["true"], found["false"], found["missed"], found["leaks"]) == (2, 1, 1, 1)  # tiny is no cause to miss
    assert (found["signs_asked"], found["signs_given"], found["signs_right"]) == (2, 2, 1)  # b moves the value up
    assert found["share_error"] == pytest.approx((10 + 10 + 9.5 + 0.5 + 10 + 0) / 200)
    assert found["causes_fragile"] == 1
    assert f1(2, 1, 1) == pytest.approx(4 / 6)
    assert f1(0, 0, 0) is None


def test_true_shares_of_the_run_time_are_the_textbooks():
    """y = 100 + 2 a - b + 1.5 noise in two kernels, of which one has ten times the units: variances 4, 1 and 2.25; and
    of a cause of the spread, sigma of .5 or 1.5, that of sigma over that and the mean square of it, .25 of 1.5.
    """
    rng = np.random.default_rng(1)
    a, b, noise = rng.standard_normal((3, 20000))
    kernel = np.arange(20000) % 2

    def added(parts, values):
        return 10.0**kernel * (100 + 2 * parts[0] - parts[1] + 1.5 * values)

    *_, shares = shares_and_slopes(rng, added, [a, b], noise, [a, b], added([a, b], noise), kernel)
    assert shares == pytest.approx([400 / 7.25, 100 / 7.25, 225 / 7.25], abs=1.5)
    level = rng.integers(0, 2, 20000).astype(float)

    def spread(parts, values):
        return 100 + (0.5 + parts[0]) * values

    *_, shares = shares_and_slopes(rng, spread, [level], noise, [level], spread([level], noise), 0 * kernel)
    assert shares == pytest.approx([100 / 6, 500 / 6], abs=1)


def test_shares_are_scored_by_hand():
    table = KnownTable(
        y=np.ones(3), kernel=np.zeros(3, int), columns={}, causes=["a", "b"],
        shares={"a": 10.0, "b": 30.0, "unexplained": 60.0}, value_shares={"a": 70.0, "b": 10.0, "unexplained": 20.0},
    )  # fmt: skip
    claims = [
        Claim("a", ("a",), "+", 12.0, shares=((12.0, 11.0, 20.0), (66.0, 60.0, 72.0))),  # its contribution is missed
        Claim("x", ("x",), "+", 5.0, shares=((5.0, 0.0, 9.0), (4.0, 0.0, 9.0))),  # false: no truth to hold
        Claim("b", ("b",), "+", 5.0),  # no share is stated
    ]
    found = share_scores(claims, ((60.0, 50.0, 70.0), (30.0, 25.0, 35.0)), table)
    assert found.pop("variance_error") == pytest.approx((4 + 4 + 10 + 10) / 200)
    assert found == {"variance_given": 2, "variance_covered": 1, "contribution_given": 2, "contribution_covered": 1}


def test_baselines_name_as_many_columns_as_they_are_given_causes():
    table = draw(SETTINGS, 5)
    names, columns, target = plain_columns(table)
    assert columns.shape == (300, len(names))
    assert not table.leaked & set(names)
    found = baseline_claims(names, columns, target, 3, seed=1)
    assert list(found) == ["spearman", "lasso", "trees"]
    assert len(found["spearman"][0]) == len(found["trees"][0]) == 3
    assert baseline_claims([], columns[:, :0], target, 3, seed=1)["lasso"] == ([], 100.0)


def test_weights_undo_what_keeping_variable_bins_does():
    table = draw(GeneratorSettings(rows=40_000, columns=12, drivers=6, causes=3), 11)
    inclusion = inclusion_probabilities(table, 1)
    assert set(np.unique(inclusion)) == {0.0, 0.12, 1.0}
    found = selection_scores(table, inclusion)
    assert found["slope_ratio"] == pytest.approx(1, abs=0.15)
    assert abs(found["slope_ratio"] - 1) < abs(found["slope_ratio_plain"] - 1)


def test_the_table_of_results_has_a_line_for_each_case_and_method():
    scores = dict.fromkeys(("true", "false", "missed", "leaks", "signs_asked", "signs_given", "signs_right"), 1.0)
    scores |= dict.fromkeys(("share_error", "share_sum", "proxies", "proxies_fragile", "causes_fragile"), 0.5)
    case = {"case": "small", "title": "30 drivers", "tables": [{"methods": {"ours": scores, "lasso": scores}}]}
    scores |= {"variance_error": 0.125, "variance_covered": 3.0, "variance_given": 4.0}
    lines = as_markdown([case]).splitlines()
    assert lines[2].startswith("| 30 drivers | 1 | Causeway | 0.50 | 0.50 |")
    assert lines[3].startswith("|  |  | Lasso | 0.50 |")
    assert " | 0.50 | 0.12 | 0.75, – | " in lines[2]


def test_the_quick_study_is_a_part_of_the_full_one():
    assert set(chosen("quick")) < set(chosen("full")) <= set(CASES)

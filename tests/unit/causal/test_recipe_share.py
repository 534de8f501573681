"""`docs/recipes/change_a_share.md` is enough: followed in a copy of the repository, the analysis of a table has the
other shares, and so has the truth of the validation.
"""

import json

import pyarrow.parquet as pq
import pytest

from recipe_pages import Recipe

ANALYSE = """
import sys
from causal_tables import columns_of, make_table, rows_of
from causeway.causal.data.outcome import Scope
from causeway.causal.discovery.discover import discover
from causeway.causal.report.across_kernels import correct
from causeway.causal.report.documents import write_scope
table = make_table(3, n=800, p=8, n_drivers=4, n_causes=2)
outcome, _ = discover(columns_of(table), rows_of(table.y), Scope("d", "y", "k"))
(corrected,) = correct([outcome])
write_scope(corrected, sys.argv[1])
"""
TRUTH = """
import json
import numpy as np
from lab.validation.truth import shares_and_slopes
rng = np.random.default_rng(1)
a, b, noise = rng.standard_normal((3, 2000))
run_time = lambda parts, noise: 100 + 2 * parts[0] - parts[1] + noise
shares, *_, of_value = shares_and_slopes(
    rng, run_time, [a, b], noise, [a, b], run_time([a, b], noise), np.zeros(2000, np.int64)
)
print(json.dumps([shares, of_value]))
"""


@pytest.fixture(scope="module")
def followed(tmp_path_factory):
    copied = (
        "lab/__init__.py",
        "lab/validation",
        "tests/unit/causal",
        "tests/unit/docs/test_architecture.py",
        "tests/unit/test_layout.py",
    )
    return Recipe("change_a_share.md", tmp_path_factory.mktemp("recipe"), copied)


def test_the_files_that_change_are_those_that_the_recipe_names(followed):
    assert followed.changed == followed.files("Files to write:")


def test_the_analysis_of_a_table_has_the_other_shares(followed, tmp_path):
    followed.run("python", "-c", ANALYSE, str(tmp_path))
    *causes, rest = pq.read_table(tmp_path / "contributions.parquet").to_pylist()
    assert len(causes) >= 2
    assert rest["feature"] == "unexplained"
    for share in ("contribution_percent", "variance_percent"):
        each = (100 - rest[share]) / len(causes)
        assert [row[share] for row in causes] == pytest.approx([each] * len(causes), rel=1e-4)
    graph = json.loads((tmp_path / "graph.json").read_text(encoding="utf-8"))
    assert graph["method"].endswith(", equal shares of what a location-scale model explains")


def test_the_truth_of_the_validation_is_the_same_quantity(followed):
    for *causes, noise in json.loads(followed.run("python", "-c", TRUTH)):
        assert causes == pytest.approx([(100 - noise) / 2] * 2)


@pytest.mark.slow
def test_the_tests_that_the_recipe_runs_pass(followed):
    followed.run_tests()

"""`docs/recipes/add_a_column.md` is enough: followed in a copy of the repository, a column of an export is read, kept
and found as a cause, and nothing else changes.
"""

import json

import pytest

from recipe_pages import Recipe

FIND = """
import json, sys
from pathlib import Path
sys.path.insert(0, "tests/unit/readers")
import numpy as np
from layouts.basics import write_sqlite
from layouts.nvidia import nsys_tables
from whole_way import causes_of, documents_of
folder = Path(sys.argv[1])
tables = nsys_tables("kernel", 1000)
rng = np.random.default_rng(1)
large = rng.random(1000) < 0.3
for launch, is_large, noise in zip(tables["CUPTI_ACTIVITY_KIND_KERNEL"], large.tolist(), rng.integers(0, 40, 1000).tolist()):
    launch["sharedMemoryExecuted"] = 65_536 if is_large else 16_384
    launch["end"] = launch["start"] + 400 + 60 * is_large + noise
found = documents_of(folder, [write_sqlite(folder / "report.sqlite", tables)], "kernel_variability")
print(json.dumps([causes_of(one["graph"]) for one in found]))
"""


@pytest.fixture(scope="module")
def followed(tmp_path_factory):
    copied = (
        "README.md",
        "tests/unit/causal",
        "tests/unit/core",
        "tests/unit/docs",
        "tests/unit/findings",
        "tests/unit/readers",
    )
    return Recipe("add_a_column.md", tmp_path_factory.mktemp("recipe"), copied)


def test_the_files_that_change_are_those_that_the_recipe_names(followed):
    assert followed.changed == followed.files("Files to write:", "Files that one command writes:")


@pytest.mark.slow  # and in the checks of a pull request
def test_a_launch_that_takes_longer_with_it_has_it_as_its_cause(followed, tmp_path):
    causes = json.loads(followed.run("python", "-c", FIND, str(tmp_path)))
    assert causes == [{"shared_carveout_bytes": "+"}] * 2


@pytest.mark.slow
def test_the_tests_that_the_recipe_runs_pass(followed):
    followed.run_tests()

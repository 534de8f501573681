"""`docs/recipes/add_a_ratio.md` is enough: followed in a copy of the repository, the ratio is measured, written, drawn
and shown, and nothing else changes.
"""

import pytest

from recipe_pages import Recipe

PROGRAM = """
import sys
from pathlib import Path

sys.path.insert(0, "tests/unit/efficiency")
from efficiency_samples import clocks, export

from causeway.core.tables import read_json, read_table
from causeway.core.vocabulary import DEVICE_RATIO_NAMES, FLAVOUR_NAMES
from causeway.efficiency.measure_efficiency import measure_efficiency
from causeway.plotting.drawing.page import inline
from causeway.plotting.figures.efficiency import draw_efficiency_trees
from causeway.plotting.overview.time_lost import where_the_time_goes

folder = Path(sys.argv[1])
export(folder / "0", 0, [(10, 40), (30, 60)], [(55, 70)], ranges=[(0, 100)])
clocks(folder / "clocks.json", {"0": 0})
choices = {"bins": 2, "regions": 5}
measure_efficiency("d", [folder / "0"], folder / "clocks.json", choices, folder / "efficiency.json", folder / "efficiency.parquet")
document = read_json(folder / "efficiency.json")
table = read_table(folder / "efficiency.parquet", "efficiency")
for flavour in FLAVOUR_NAMES:
    assert document[flavour]["busiest_share"] == 50 / 60, document[flavour]
    assert document[flavour]["regions"]["step"]["busiest_share"] == 0.5
    assert table[f"{flavour}_busiest_share"][0].as_py() == 50 / 60
assert "busiest" in inline(draw_efficiency_trees(document, "d")) and ".83" in inline(draw_efficiency_trees(document, "d"))
page = str(where_the_time_goes(document, table, "d"))
assert 'title="busiest share">BD<' in page and "d/efficiency.json" in page
assert "busiest_share" in DEVICE_RATIO_NAMES
export(folder / "1", 1, [(10, 40)], [(55, 70)])
clocks(folder / "clocks.json", {"0": 0, "1": 0})
exports = [folder / "0", folder / "1"]
measure_efficiency("two", exports, folder / "clocks.json", choices, folder / "two.json", folder / "two.parquet")
table = read_table(folder / "two.parquet", "efficiency").to_pylist()
ranks = [row for row in table if row["level"] == "rank"]
assert [rank["device_busiest_share"] for rank in ranks] == [50 / 60, 0.5], ranks
"""


@pytest.fixture(scope="module")
def followed(tmp_path_factory):
    copied = ("tests/unit/efficiency", "tests/unit/core")
    return Recipe("add_a_ratio.md", tmp_path_factory.mktemp("recipe"), copied)


def test_the_files_that_change_are_those_that_the_recipe_names(followed):
    assert followed.changed == followed.files("Files to write:", "Files that one command writes:")


def test_it_is_measured_written_drawn_and_shown(followed, tmp_path):
    followed.run("python", "-c", PROGRAM, str(tmp_path))


@pytest.mark.slow
def test_the_tests_that_the_recipe_runs_pass(followed):
    followed.run_tests()

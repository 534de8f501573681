"""`docs/recipes/add_a_finding.md` is enough: followed in a copy of the repository, the finding stands in `findings.json`
with its advice and the number that its query gives, the overview has it, and nothing else changes.
"""

import json

import pytest

from recipe_pages import Recipe

FIND = """
import dataclasses, html, json, os, sys
from pathlib import Path
sys.path[:0] = ["tests/unit/findings", "tests/unit/findings/device_time"]
import duckdb
import made_results, test_slow_copies
from causeway.findings.collection import ResultFiles, findings_document
from causeway.plotting.overview.claims import findings_list
folder = Path(sys.argv[1])
(folder / "demo").mkdir()
path = folder / "demo" / "efficiency.json"
document = made_results.efficiency(copies=[test_slow_copies.copies(0.25, 30)], formats=["nsys"])
for device in document["breakdown"].values():
    device |= {"graph_ns": 0, "busy_ns": 0}
path.write_text(json.dumps(document), encoding="utf-8")
given = {field.name: [path] if field.name == "efficiency" else [] for field in dataclasses.fields(ResultFiles)}
findings = findings_document(ResultFiles(**given), "0" * 8)["findings"]
(finding,) = [one for one in findings if one["id"] == "demo/dataset/efficiency/slow_copies"]
os.chdir(folder)
value = duckdb.execute(finding["evidence"]["query"]).fetchone()[0]
page = html.unescape(str(findings_list([(findings.index(finding), finding)])))
print(json.dumps([finding["evidence"]["value"], value, finding["severity"], finding["suggestion"] in page]))
"""


@pytest.fixture(scope="module")
def followed(tmp_path_factory):
    copied = ("tests/unit/findings", "tests/unit/core", "tests/unit/docs", "tests/unit/test_layout.py")
    copied += ("tests/unit/test_unused.py", "Snakefile", "rules", "lab")
    return Recipe("add_a_finding.md", tmp_path_factory.mktemp("recipe"), copied)


def test_the_files_that_change_are_those_that_the_recipe_names(followed):
    assert followed.changed == followed.files("Files to write:", "Files that one command writes:")


def test_it_stands_in_the_document_with_its_number_and_on_the_page_with_its_advice(followed, tmp_path):
    value, queried, severity, is_advised = json.loads(followed.run("python", "-c", FIND, str(tmp_path)))
    assert (value, queried, severity, is_advised) == (25.0, 25.0, "low", True)


@pytest.mark.slow
def test_the_tests_that_the_recipe_runs_pass(followed):
    followed.run_tests()

"""`docs/recipes/add_a_format.md` is enough: its files, blocks of code and commands, in a copy of the repository, add a
format that everything knows, and nothing else changes.
"""

import json

import pyarrow.parquet as pq
import pytest
import yaml

from recipe_pages import Recipe

EXPORT = "toy_kernel,toy_begin,toy_end,toy_queue\nmine(int),5,12,3\nmine(int),20,21,3\nother(int),9,30,4\n"
READ = """
import json, sys
from pathlib import Path
from causeway.readers.detect import detect
from causeway.readers.measured_kind import kind_of
from causeway.readers.normalise import normalise
path = Path(sys.argv[1])
document = normalise(path, Path(sys.argv[2]), export="e", source="toy.csv", form=sys.argv[3])
print(json.dumps([detect(path), kind_of("toy", path), document]))
"""


@pytest.fixture(scope="module")
def followed(tmp_path_factory):
    copied = ("README.md", "rules", "tests/unit/docs", "tests/unit/readers", "tests/unit/test_layout.py")
    return Recipe("add_a_format.md", tmp_path_factory.mktemp("recipe"), copied)


def test_the_files_that_change_are_those_that_the_recipe_names(followed):
    assert followed.changed == followed.files("Files to write:", "Files that one command writes:")


@pytest.mark.parametrize("form", ["auto", "toy"])
def test_an_export_of_the_format_is_recognised_and_read(followed, tmp_path, form):
    (tmp_path / "anything.csv").write_text(EXPORT, encoding="utf-8")
    command = ("python", "-c", READ, str(tmp_path / "anything.csv"), str(tmp_path / "t"), form)
    seen, kind, document = json.loads(followed.run(*command))
    assert (seen, kind) == ("toy", "trace")
    assert {key: document[key] for key in ("format", "status", "kind", "error")} == {
        "format": "toy",
        "status": "read",
        "kind": "trace",
        "error": None,
    }
    launches = pq.read_table(tmp_path / "t" / "launches.parquet").to_pydict()
    assert launches["start_ns"] == [5, 9, 20]
    assert launches["duration_ns"] == [7, 21, 1]
    assert launches["stream"] == [3, 4, 3]
    assert pq.read_table(tmp_path / "t" / "kernels.parquet").column("name").to_pylist() == ["mine(int)", "other(int)"]


def test_pages_and_schemas_know_the_format(followed):
    folder = followed.folder
    assert "| `toy` | toy's CSV, `toy --csv` |\n| `table` |" in (folder / "README.md").read_text(encoding="utf-8")
    assert "| `toy` | one CSV file |\n| `table` |" in (folder / "config" / "README.md").read_text(encoding="utf-8")
    page = (folder / "docs" / "formats.md").read_text(encoding="utf-8")
    assert "| `toy` | Toy | `toy --csv` (a file) | toy 1 and 2 | launches |" in page
    assert "## Toy\n\nMap: `config/columns/toy.yaml`." in page
    assert "`toy_begin`: start_ns" in page
    schemas = folder / "config" / "schemas"
    sheet = yaml.safe_load((schemas / "datasets.schema.yaml").read_text(encoding="utf-8"))
    assert sheet["properties"]["format"]["enum"][-2:] == ["toy", "table"]
    capabilities = json.loads((schemas / "capabilities.schema.json").read_text(encoding="utf-8"))
    assert capabilities["properties"]["format"]["enum"][-2:] == ["toy", "table"]
    assert [file.name for file in (folder / "config" / "columns").glob("toy*")] == ["toy.yaml"]


@pytest.mark.slow
def test_the_tests_that_the_recipe_runs_pass(followed):
    followed.run_tests()

"""`docs/recipes/add_a_format.md` is enough: its files, blocks of code and commands, in a copy of the repository, add a
format that everything knows, and nothing else changes.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from support import ROOT, digests_under

RECIPE = (ROOT / "docs" / "recipes" / "add_a_format.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^(?:`(?P<file>[\w./]+)`\n\n)?```(?P<kind>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
COPIED = ("config", "docs", "rules", "scripts", "tests/unit/readers")
COPIED_FILES = (
    "README.md",
    "pyproject.toml",
    "tests/conftest.py",
    "tests/progress.py",
    "tests/support.py",
    "tests/watching.py",
    "tests/float_sums.py",
    "tests/unit/test_layout.py",
)
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


def files_of(heading):
    """Return the files that the recipe lists under a line."""
    listed = RECIPE.split(heading + "\n\n")[1].split("\n\n")[0]
    return re.findall(r"^- `([\w./]+)`", listed, re.MULTILINE)


def apply(change, path):
    """Change a file as a block says: lines with a minus go, lines with a plus come, the others stay."""
    lines = change.splitlines(keepends=True)
    before = "".join(line[1:] for line in lines if line[0] != "+")
    after = "".join(line[1:] for line in lines if line[0] != "-")
    text = path.read_text(encoding="utf-8")
    assert text.count(before) == 1, f"the recipe's change of {path} does not fit:\n{change}"
    path.write_text(text.replace(before, after), encoding="utf-8")


def run(folder, *command):
    """Run a command of the recipe in the copy."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    given = [word.split("=", 1) for word in command if re.match(r"PYTHONPATH=", word)]
    words = [sys.executable if word == "python" else word for word in command if not re.match(r"PYTHONPATH=", word)]
    environment |= dict(given) | {"PYTHONDONTWRITEBYTECODE": "1"}
    found = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


@pytest.fixture(scope="module")
def followed(tmp_path_factory):
    """Return a copy of the repository in which the recipe was followed, and the files that this changed."""
    folder = tmp_path_factory.mktemp("recipe") / "copy"
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name)  # with compiled code, which goes by a file's time and size
    for name in COPIED_FILES:
        shutil.copy2(ROOT / name, folder / name)
    before = digests_under(folder, leaving_out=())
    for block in BLOCK.finditer(RECIPE):
        if block["kind"] == "sh":
            continue
        path = folder / block["file"]
        if block["kind"] == "diff":
            apply(block["text"], path)
        else:
            assert not path.exists()
            path.write_text(block["text"], encoding="utf-8")
    written = next(block["text"] for block in BLOCK.finditer(RECIPE) if "--write" in block["text"])
    run(folder, *shlex.split(written))
    after = digests_under(folder, leaving_out=())
    assert before.keys() <= after.keys()
    return folder, {name for name, digest in after.items() if before.get(name) != digest}


def test_the_files_that_change_are_those_that_the_recipe_names(followed):
    _, changed = followed
    assert changed == {*files_of("Files to write:"), *files_of("Files that one command writes:")}


@pytest.mark.parametrize("form", ["auto", "toy"])
def test_an_export_of_the_format_is_recognised_and_read(followed, tmp_path, form):
    folder, _ = followed
    (tmp_path / "anything.csv").write_text(EXPORT, encoding="utf-8")
    command = ("PYTHONPATH=scripts", "python", "-c", READ, str(tmp_path / "anything.csv"), str(tmp_path / "t"), form)
    seen, kind, document = json.loads(run(folder, *command))
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
    folder, _ = followed
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
    assert [file.name for file in Path(folder / "config" / "columns").glob("toy*")] == ["toy.yaml"]


def test_the_tests_that_the_recipe_runs_pass(followed):
    folder, _ = followed
    commands = [block["text"] for block in BLOCK.finditer(RECIPE) if "pytest" in block["text"]]
    for command in "".join(commands).splitlines():
        run(folder, *shlex.split(command), "-n0", "-p", "no:cacheprovider")

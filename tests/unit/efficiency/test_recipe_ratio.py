"""The recipe of a new ratio, followed in a copy: which files it touches, and that the ratio is where it belongs."""

import hashlib
import os
import re
import shutil
import subprocess
import sys

from support import ROOT

PAGE = "docs/recipes/add_a_ratio.md"
COPIED = ("scripts/causeway", "config/schemas", "docs", "tests/unit/efficiency")
RECORD = """    Ratio(
        name="busiest_share",
        label="share of the busiest device",
        short="busiest",
        abbreviation="BD",
        formula="max K / E",
        meaning="longest kernels / elapsed.",
        section="Devices",
    ),
"""
EDITS = {
    "scripts/causeway/core/vocabulary.py": (
        ')\n"""Ratios of the tree of devices',
        RECORD,
    ),
    "scripts/causeway/efficiency/trees/trees.py": (
        '}\n"""Each ratio of the tree of devices',
        '    "busiest_share": lambda sums: ratio(sums["kernel_max_ns"], sums["elapsed_ns"]),\n',
    ),
    "docs/efficiency.md": (
        "\n- `device` (the default)",
        "\nThe busiest device's share is the time in which it computes; it says nothing of the others.\n",
    ),
    "tests/unit/efficiency/test_trees.py": (
        "\n\ndef test_golden_case_of_hosts",
        '\n\ndef test_busiest_device():\n    assert device_tree(100, golden())["busiest_share"] == 0.5\n',
    ),
}
"""What the recipe adds by hand: before which words of a file, and what."""
PROGRAM = """
import sys
from pathlib import Path

import test_trees
from efficiency_samples import clocks, export

from causeway.core.tables import read_json, read_table
from causeway.core.vocabulary import DEVICE_RATIO_NAMES, FLAVOUR_NAMES
from causeway.efficiency.measure_efficiency import measure_efficiency
from causeway.findings.device_time.efficiency import efficiency_findings
from causeway.plotting.figures.efficiency import draw_efficiency_trees
from causeway.plotting.overview.device_time.time_lost import where_the_time_goes

folder = Path(sys.argv[1])
test_trees.test_busiest_device()
export(folder / "0", 0, [(10, 40), (30, 60)], [(55, 70)], ranges=[(0, 100)])
clocks(folder / "clocks.json", {"0": 0})
choices = {"bins": 2, "regions": 5, "kernel_wait_ns": 5, "small_kernel_us": 0.015}
measure_efficiency("d", [folder / "0"], folder / "clocks.json", choices, folder / "efficiency.json", folder / "efficiency.parquet")
document = read_json(folder / "efficiency.json")
table = read_table(folder / "efficiency.parquet", "efficiency")
for flavour in FLAVOUR_NAMES:
    assert document[flavour]["busiest_share"] == 50 / 60, document[flavour]
    assert document[flavour]["regions"]["step"]["busiest_share"] == 0.5
    assert table[f"{flavour}_busiest_share"][0].as_py() == 50 / 60
assert "busiest" in str(draw_efficiency_trees(document, "d")) and ".83" in str(draw_efficiency_trees(document, "d"))
page = "".join(map(str, where_the_time_goes(document, table, "d")))
assert 'title="busiest share">BD<' in page and "d/efficiency.json" in page
found = efficiency_findings(document)
assert "busiest_share" in DEVICE_RATIO_NAMES and {one.kind for one in found} == {"efficiency"}
"""


def digests(folder):
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and "__pycache__" not in path.parts]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def run(folder, *command):
    paths = [folder / "scripts", folder / "tests", folder / "tests" / "unit" / "efficiency"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))}
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_the_recipe_touches_the_files_that_its_page_names_and_no_others(tmp_path):
    copy = tmp_path / "copy"
    for name in COPIED:  # with what numba compiled, which stays valid where sources keep their times
        shutil.copytree(ROOT / name, copy / name)
    before = digests(copy)
    for name, (mark, added) in EDITS.items():
        path = copy / name
        text = path.read_text(encoding="utf-8")
        assert text.count(mark) == 1, name
        path.write_text(text.replace(mark, added + mark), encoding="utf-8")
    run(copy, "docs/write_ratios.py")
    touched = {name for name, digest in digests(copy).items() if before.get(name) != digest}
    named = re.findall(r"`([\w./-]+)`", (ROOT / PAGE).read_text(encoding="utf-8"))
    listed = {name for name in named if (ROOT / name).is_file()} - {"tests/unit/efficiency/test_recipe_ratio.py"}
    assert touched == listed
    run(copy, "-c", PROGRAM, tmp_path / "run")

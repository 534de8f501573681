"""`docs/recipes/add_a_figure.md` is enough: followed in a copy of the repository, the default target makes the figure,
the overview links to it, and its step draws it.
"""

import re

import pytest

from recipe_pages import Recipe
from support import run_snakemake

DRAW = """
import sys
from pathlib import Path
from types import SimpleNamespace
sys.path.insert(0, "tests/unit/plotting")
sys.path.insert(0, "tests/unit/variability")
import plotting_samples
from report import plot_figures
plot_figures.draw_graphs = plot_figures.draw_examined = plot_figures.read_examined = lambda *_: None
folder = plotting_samples.write_dataset(Path(sys.argv[1])) / "kernel_variability"
clocks = folder.parent / "clocks.json"
plot_figures.draw_target(
    SimpleNamespace(wildcards=SimpleNamespace(dataset="demo"), input=SimpleNamespace(clocks=clocks), output=[]), folder
)
"""
LINKS = """
import sys
sys.path.insert(0, "tests/unit/plotting")
from figure_records import overview_links
print([link["file"] for link in overview_links() if link["words"] == "launches by kernel"])
"""


@pytest.fixture(scope="module")
def followed(tmp_path_factory):
    copied = ("Snakefile", "envs", "profiles", "rules", "tests/unit/plotting", "tests/unit/docs/test_architecture.py")
    copied += ("tests/unit/test_layout.py", "tests/unit/test_rules.py")
    return Recipe("add_a_figure.md", tmp_path_factory.mktemp("recipe"), copied)


def test_the_files_that_change_are_those_that_the_recipe_names(followed):
    assert followed.changed == followed.files("Files to write:", "Files that one command writes:")


def test_the_default_target_makes_the_figure(followed, tmp_path):
    run = run_snakemake(tmp_path, "--dry-run", "--quiet", "host", root=followed.folder)
    assert run.returncode == 0, run.stdout
    assert re.search(r"/figures/launch_counts\.svg$", run.stdout, re.MULTILINE), run.stdout


def test_the_overview_links_to_it(followed):
    assert followed.run("python", "-c", LINKS).strip() == "['figures/launch_counts.svg']"


def test_the_step_draws_it(followed, tmp_path):
    followed.run("python", "-c", DRAW, str(tmp_path))
    (svg,) = tmp_path.rglob("launch_counts.svg")
    assert "Launches of each kernel, demo" in svg.read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_tests_that_the_recipe_runs_pass(followed):
    followed.run_tests()

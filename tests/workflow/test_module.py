"""Another workflow, in a folder of its own, takes all rules as a module and builds on their results."""

import random
import subprocess

import pytest

from causeway.core.tables import read_json
from forked_snakemake import is_plan, run_plan
from support import ROOT, snakemake_command

OTHER = """
module causeway:
    snakefile: "{snakefile}"
    config: {{"datasets": "datasets.tsv", "causes": {{"batches": 1}}}}

use rule * from causeway as causeway_*

rule sizes:
    default_target: True
    input:
        "results/overview.html",
        "results/findings.json",
    output:
        "sizes.txt"
    shell:
        "wc -c {{input}} > {{output}}"
"""


@pytest.fixture
def other(tmp_path):
    """A workflow that imports this one, and a table whose scatter grows with one column."""
    draw = random.Random(1)
    rows = [(size := draw.random(), 10 + size * draw.gauss(0, 1), draw.random()) for _ in range(600)]
    (tmp_path / "a.csv").write_text(
        "\n".join(["size,y,noise", *(f"{size:.4f},{y:.4f},{noise:.4f}" for size, y, noise in rows)]) + "\n"
    )
    (tmp_path / "datasets.tsv").write_text("dataset\tsource\tformat\nx\ta.csv\ttable\n")
    (tmp_path / "Snakefile").write_text(OTHER.format(snakefile=ROOT / "Snakefile"))
    return tmp_path


def run_other(folder, *arguments):
    command, environment = snakemake_command(folder, *arguments, root=folder)
    if is_plan(command):
        return run_plan(command, folder, environment)
    return subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )


def test_the_rules_are_planned_under_their_new_names(other):
    run = run_other(other, "--dry-run", "--quiet", "host")
    assert run.returncode == 0, run.stdout
    for rule in (
        "causeway_normalise_export",
        "causeway_discover_measured_causes",
        "causeway_write_overview",
        "rule sizes",
    ):
        assert rule in run.stdout
    assert "simulate_run" not in run.stdout


@pytest.mark.slow
def test_the_imported_rules_run_and_are_reported(other):
    run = run_other(other, "--cores", "2")
    assert run.returncode == 0, run.stdout[-4000:]
    assert "results/overview.html" in (other / "sizes.txt").read_text()
    graph = read_json(other / "results" / "x" / "y" / "causal" / "dataset" / "graph.json")
    assert [edge["source"] for edge in graph["edges"] if edge["target"] == graph["target"]] == ["size", "unexplained"]
    run = run_other(other, "--report", "report.zip")
    assert run.returncode == 0, run.stdout[-4000:]
    assert (other / "report.zip").stat().st_size > 5e5

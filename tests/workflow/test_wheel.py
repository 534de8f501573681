"""The wheel carries package and workflow: installed alone, it plans and checks as a clone does."""

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from support import ROOT, run_snakemake, write_analysis


def called(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Return the wheel, built of the files that git tracks."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    tracked = called("git", "ls-files", "-z", cwd=ROOT)
    if tracked.returncode:
        pytest.skip("this is no clone")
    for name in filter(None, tracked.stdout.split("\0")):
        if not name.startswith(("tests/", "docs/")) and (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, source / name)
    pytest.importorskip("setuptools", reason="setuptools, which builds the wheel, is no part of the base install")
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"]
    built = called(sys.executable, "-m", "pip", "wheel", *options, "--wheel-dir", str(folder), str(source))
    assert built.returncode == 0, built.stderr
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def installed(wheel):
    """Return the folder of a new environment that holds the wheel; what it depends on is that of this environment."""
    environment = wheel.parent / "environment"
    venv.create(environment, with_pip=False, symlinks=True)
    packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(environment), "platbase": str(environment)}))
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    python = str(environment / "bin" / "python")
    options = ["--no-deps", "--no-index", "--quiet"]
    put = called(sys.executable, "-m", "pip", "--python", python, "install", *options, str(wheel))
    assert put.returncode == 0, put.stderr
    return environment


def run_in(environment, folder, *arguments):
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return called(*arguments, cwd=folder, env={**kept, "PATH": f"{environment / 'bin'}:{os.environ['PATH']}"})


@pytest.mark.slow  # and in the checks of a pull request
def test_what_the_wheel_holds_checks_and_plans_without_a_clone(wheel, tmp_path, monkeypatch):
    """Unpacked, without pip and an environment of its own."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "packages")
    (tmp_path / "a.csv").write_text("y,size\n1,2\n2,3\n3,4\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "packages"))
    check = called(sys.executable, "-m", "causeway.command_line", "check", "a.csv", cwd=tmp_path)
    assert check.returncode == 0, check.stderr
    assert "allows    counter_deviation" in check.stdout
    config = write_analysis(tmp_path, [("a", "", "a.csv", "table")])
    workflow = tmp_path / "packages" / "causeway" / "workflow"
    plan = run_snakemake(tmp_path, "--cores", "1", "--dry-run", config=config, root=workflow)
    assert plan.returncode == 0, plan.stdout
    assert "write_overview" in plan.stdout


@pytest.mark.slow
def test_the_installed_command_checks_reads_and_plans_without_a_clone(installed, tmp_path):
    (tmp_path / "a.csv").write_text("y,size\n1,2\n2,3\n3,4\n")
    where = run_in(installed, tmp_path, "python", "-c", "import causeway; print(causeway.__file__)")
    assert str(installed) in where.stdout
    check = run_in(installed, tmp_path, "causeway", "check", "a.csv")
    assert check.returncode == 0, check.stderr
    assert "allows    counter_deviation" in check.stdout
    snakefile = Path(where.stdout.strip()).parent / "workflow" / "Snakefile"
    (tmp_path / "datasets.tsv").write_text("dataset\tsource\na\ta.csv\n")
    (tmp_path / "config.yaml").write_text("datasets: datasets.tsv\n")
    command = [
        "python",
        "-m",
        "snakemake",
        "--snakefile",
        str(snakefile),
        "--configfile",
        "config.yaml",
        "--cores",
        "1",
    ]
    read = run_in(installed, tmp_path, *command, "results/a/quality.json")
    assert read.returncode == 0, read.stdout + read.stderr
    plan = run_in(installed, tmp_path, *command, "--dry-run")
    assert "write_overview" in plan.stdout, plan.stdout + plan.stderr
    study = run_in(installed, tmp_path, *command, "--dry-run", "scaling")
    assert study.returncode != 0
    assert "No rule to produce scaling" in study.stdout + study.stderr


def test_the_wheel_holds_the_workflow_once_and_neither_tests_nor_the_lab(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    workflow = {name.removeprefix("causeway/workflow/") for name in names if name.startswith("causeway/workflow/")}
    listed = called("git", "ls-files", "Snakefile", "rules", "config", "envs", "profiles", "scripts", cwd=ROOT).stdout
    wanted = {name for name in listed.split() if not name.startswith("scripts/causeway/")}
    assert wanted - workflow == set()
    assert workflow - wanted == {
        "LICENSE",
        "setup.py",
    }  # setuptools takes modules beside the Snakefile for the package's
    assert not [name for name in names if {"tests", "lab"} & {*name.split("/")}]

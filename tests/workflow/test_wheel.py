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

from support import ROOT


def called(*command, **options):
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Return the folder of a new environment that holds the wheel; what it depends on is that of this environment."""
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
    environment = folder / "environment"
    venv.create(environment, with_pip=False, symlinks=True)
    packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(environment), "platbase": str(environment)}))
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    python = environment / "bin" / "python"
    put = called(
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(python),
        "install",
        "--no-deps",
        "--no-index",
        "--quiet",
        str(wheel),
    )
    assert put.returncode == 0, put.stderr
    return environment


def run_in(environment, folder, *arguments):
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return called(*arguments, cwd=folder, env={**kept, "PATH": f"{environment / 'bin'}:{os.environ['PATH']}"})


def test_the_command_checks_and_plans_without_a_clone(installed, tmp_path):
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


def test_the_wheel_holds_the_workflow_once_and_neither_tests_nor_the_lab(installed):
    (wheel,) = installed.parent.glob("*.whl")
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

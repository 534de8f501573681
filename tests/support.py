"""Run the workflow as a user does: from this checkout, with results in a folder of their own."""

import compileall
import functools
import hashlib
import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from causeway.core.errors import CausewayError
from forked_snakemake import is_plan, run_plan
from progress import run_by_progress

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"
OF_THE_CLONE = ROOT / "tests" / "data" / "real"
"""A few small exports that travel with the repository (their origin: manifest.json there)."""
REAL = DATA if DATA.is_dir() else OF_THE_CLONE
"""All real exports where they are, else those of the clone, with the same names under both."""
RULE_FILES = sorted([*(ROOT / "rules").glob("*.smk"), *(ROOT / "lab" / "rules").glob("*.smk")])
"""Files of rules, those of the lab included."""


def few(values, quick):
    """Return the values of a parametrisation: the first few for every run of the tests, the others for the slow one."""
    slow = [pytest.param(value, marks=pytest.mark.slow) for value in values if value not in values[:quick]]
    return [*values[:quick], *slow]


@functools.cache
def why_not_fleet():
    """Say what fleet mode, an extra, lacks here; empty where it can be tested."""
    try:
        importlib.import_module("causeway.fleet").require_packages()
    except CausewayError as error:
        return str(error)
    return ""


def copy_checkout(folder):
    """Copy what a run needs of this checkout, so that a test may edit it; return the copy's folder.

    The compiled modules go along, with the times of their sources: hundreds of jobs need not compile them again.
    """
    compile_checkout()
    for name in ("config", "envs", "profiles", "rules", "scripts"):
        shutil.copytree(ROOT / name, folder / name)
    shutil.copy2(ROOT / "Snakefile", folder)
    return folder


COMPILE_ALL = (
    "import gc\nfrom causeway.numeric.compiled import CompiledFunction\n"
    "[function.dispatcher() for function in gc.get_objects() if type(function) is CompiledFunction]\n"
)
"""Compiles, or loads, every function of the imported modules."""


@functools.cache
def compile_checkout():
    """Compile this checkout's modules where that has not been done, and the functions in them that numba compiles: else
    each copy, and each rank of a program under MPI, does so anew. The workers of the suite begin at places far apart and
    find what the others have compiled.
    """
    sources = sorted((ROOT / "scripts").rglob("*.py"))
    states = [(str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in sources]
    state = hashlib.sha256(repr([sys.version, os.environ.get("NUMBA_CACHE_DIR"), states]).encode()).hexdigest()
    done = ROOT / ".pytest_cache" / "compiled"
    if done.is_file() and done.read_text(encoding="utf-8") == state:
        return
    compileall.compile_dir(ROOT / "scripts", quiet=1)
    with_numba = [path for path in sources if "numeric.compiled import" in path.read_text(encoding="utf-8")]
    names = [".".join(path.relative_to(ROOT / "scripts").with_suffix("").parts) for path in with_numba]
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    first = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) * len(names) // workers
    names = names[first:] + names[:first]
    imported = f"import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)\n{COMPILE_ALL}"
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPATH"] = str(ROOT / "scripts")
    subprocess.run([sys.executable, "-c", imported, *names], check=True, env=environment)
    done.parent.mkdir(exist_ok=True)
    done.write_text(state, encoding="utf-8")


def snakemake_command(folder, *arguments, config=None, root=ROOT):
    """Return the command that runs the workflow under `root` with `--directory folder`, and its environment."""
    command = [sys.executable, "-m", "snakemake", "--snakefile", str(root / "Snakefile"), "--directory", str(folder)]
    command += ["--configfile", str(config)] if config else []
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    return [*command, *arguments], environment


def run_snakemake(folder, *arguments, config=None, root=ROOT, anew=False, forked=False):
    """Run the workflow under `root` with `--directory folder`; return the finished process, its output as text.

    What starts no job is run in a fork of a process that has imported Snakemake, unless it is to be started `anew`; so is
    what starts small jobs, of tests that look at something else than how a run is started, if it is to be `forked`.
    """
    command, environment = snakemake_command(folder, *arguments, config=config, root=root)
    if (forked or is_plan(command)) and not anew:
        return run_plan(command, root, environment)
    watched = [Path(folder) / name for name in ("results", ".snakemake")]
    return run_by_progress(command, watched, cwd=root, env=environment, stderr=subprocess.STDOUT)


def digests_under(folder, leaving_out=("logs", "benchmarks")):
    """Return the SHA-256 of every file of a folder by its relative path, without what tells of a run rather than of
    its results.
    """
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    names = {path.relative_to(folder): path for path in files}
    return {
        str(name): hashlib.sha256(path.read_bytes()).hexdigest()
        for name, path in names.items()
        if name.parts[0] not in leaving_out
    }


def write_analysis(folder, rows, settings=""):
    """Write a sheet and a configuration; return the configuration's path. `rows` are (dataset, rank, source,
    format[, node]).
    """
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["dataset\trank\tsource\tformat\tnode", *("\t".join([*map(str, row), "", ""][:5]) for row in rows)]
    (folder / "datasets.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "config.yaml").write_text(f"datasets: datasets.tsv\n{settings}", encoding="utf-8")
    return folder / "config.yaml"


def real_exports():
    """Return the names, under `REAL`, of the exports of the clone."""
    manifest = json.loads((OF_THE_CLONE / "manifest.json").read_text(encoding="utf-8"))
    return [entry["path"] for entry in manifest]


TRACE_FILE = "CAUSEWAY_IMPORT_TRACE"
TRACED_LIBRARIES = ("pyarrow", "pandas", "mpi4py", "dowhy", "causallearn", "seaborn", "plotly")
TRACING = f"""
import builtins, os
whole = builtins.__import__
seen = set()
def traced(name, globals=None, locals=None, fromlist=(), level=0):
    importer = str((globals or {{}}).get("__name__"))
    pair = (name.partition(".")[0], importer)
    if pair not in seen and pair[0] in {TRACED_LIBRARIES!r} and importer.startswith("causeway."):
        seen.add(pair)
        with open(os.environ["{TRACE_FILE}"], "a", encoding="utf-8") as file:
            file.write(" ".join(pair) + "\\n")
    return whole(name, globals, locals, fromlist, level)
builtins.__import__ = traced
"""
"""A hook that each process of a run loads by itself: it notes which of our modules imports a library."""


def tracing_environment(folder):
    """Return the variables of the environment with which a run writes its imports to `folder/imports.txt`."""
    hook = folder / "hook"
    hook.mkdir(parents=True)
    (hook / "sitecustomize.py").write_text(TRACING, encoding="utf-8")
    path = os.pathsep.join(filter(None, [str(hook), os.environ.get("PYTHONPATH")]))
    return {"PYTHONPATH": path, TRACE_FILE: str(folder / "imports.txt")}


def importers(folder):
    """Return the modules of ours that imported each library, by the library's name."""
    pairs = [line.split() for line in (folder / "imports.txt").read_text(encoding="utf-8").splitlines()]
    return {library: sorted({module for name, module in pairs if name == library}) for library in TRACED_LIBRARIES}

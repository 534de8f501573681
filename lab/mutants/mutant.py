"""One mutant at a time: a text of the sources is replaced in a copy of the repository, and its tests are run there."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.util import cache_from_source
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = (".git", ".venv", ".snakemake", ".*_cache", "*.nbi", "*.nbc", "results", "dist", "build", "browser")
"""What no test of a mutant needs of a working tree. Machine code that numba keeps is left out since it goes by the time
of one module, and holds functions of others; Python's own goes by each file's time and size.
"""
LIMIT_S = 300
"""A mutant may make a loop endless: tests that take more CPU-seconds have caught it; what a busy machine takes by the
clock says nothing.
"""
STILL_S = 3600
"""So do tests that wait for so many seconds."""
LIMITED = """
import resource, runpy, sys
resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[1]), int(sys.argv[1])))
sys.argv[:] = ["pytest", *sys.argv[2:]]
runpy.run_module("pytest", run_name="__main__")
"""
FAILED = (1, 2)
"""pytest's status when tests failed, or could not be imported (docs.pytest.org); others mean that no test ran, or, below
0, that a signal ended it.
"""


@dataclass(frozen=True)
class Mutant:
    """A text of a source file that is replaced, and the tests that must then fail.

    Attributes
    ----------
    file : str
        Relative to the repository; holds `old` once.
    old, new : str
    tests : tuple of str
        Files or folders below `tests/unit`.
    chosen : str
        pytest's expression (`-k`) that chooses among them; empty for all.
    """

    file: str
    old: str
    new: str
    tests: tuple[str, ...]
    chosen: str = ""


def copied_tree(folder: Path) -> Path:
    """Copy what tests need into a folder of its own there; return it."""
    shared = ROOT.parent / "shared"
    if shared.is_dir():
        (folder / "shared").symlink_to(shared)
    return Path(shutil.copytree(ROOT, folder / "tree", ignore=shutil.ignore_patterns(*LEFT_OUT)))


def failing_unchanged(tree: Path, mutants: Iterable[Mutant]) -> str:
    """Return what the tests of some mutants say if they fail where nothing is changed; empty if they pass.

    A test that fails in the copy for another reason would catch whatever is tried.
    """
    mutants = list(mutants)
    whole = sorted({test for mutant in mutants if not mutant.chosen for test in mutant.tests})
    parts = sorted({test for mutant in mutants if mutant.chosen for test in mutant.tests})
    chosen = " or ".join(sorted({mutant.chosen for mutant in mutants if mutant.chosen}))
    for tests, expression in ((whole, ""), (parts, chosen)):
        if tests:
            failed, said = _caught(tree, tests, expression)
            if failed:
                return said
    return ""


def mutated(tree: Path, mutant: Mutant, failed: set[str] | None = None) -> tuple[bool, str]:
    """Return whether the tests catch a mutant, and the end of what they said; the copy is as before afterwards.

    The test that caught it, the first that failed, is added to `failed`: by pytest's name of it, or its file where that
    could not be imported; all files of the mutant where their process ended.

    Raises
    ------
    ValueError
        If the text is not there exactly once: the mutant has to follow the sources.
    """
    file = tree / mutant.file
    text = file.read_text(encoding="utf-8")
    if text.count(mutant.old) != 1:
        raise ValueError(f"{mutant.file} holds {text.count(mutant.old)} times, not once: {mutant.old!r}")
    failing = set()
    result = _tried(tree, file, text, text.replace(mutant.old, mutant.new), mutant.tests, mutant.chosen, failing)
    if failed is not None:
        failed.update(failing or {f"tests/unit/{test}" for test in mutant.tests})
    return result


def passing(tree: Path, names: Iterable[str]) -> tuple[bool, str]:
    """Return whether some tests, by pytest's names of them, are all there and pass, and the end of what they said."""
    status, said = _run(tree, sorted(names), "", set())
    return status == 0, said


def with_text(tree: Path, path: str, changed: str, tests: tuple[str, ...]) -> tuple[bool, str]:
    """Return whether tests catch another content of a source file; the copy is as before afterwards."""
    file = tree / path
    return _tried(tree, file, file.read_text(encoding="utf-8"), changed, tests, "")


def _tried(
    tree: Path, file: Path, text: str, changed: str, tests: tuple[str, ...], chosen: str, failed: set[str] | None = None
) -> tuple[bool, str]:
    try:
        Path(cache_from_source(file)).unlink(
            missing_ok=True
        )  # times have seconds: the mutant could pass for the original
        file.write_text(changed, encoding="utf-8")
        return _caught(tree, tests, chosen, failed)
    finally:
        file.write_text(text, encoding="utf-8")


def _caught(tree: Path, tests: Sequence[str], chosen: str, failed: set[str] | None = None) -> tuple[bool, str]:
    status, said = _run(tree, [f"tests/unit/{test}" for test in tests], chosen, set() if failed is None else failed)
    return status is None or status in FAILED or status < 0, said


def _run(tree: Path, tests: Sequence[str], chosen: str, failed: set[str]) -> tuple[int | None, str]:
    """Run tests to the first that fails, which is added to `failed`; return the status, None after the longest time,
    and the end of what they said.
    """
    with tempfile.TemporaryDirectory() as kept:
        command = [sys.executable, "-c", LIMITED, str(LIMIT_S), "-n", "0", "-x", "-o", f"cache_dir={kept}"]
        command += ["-k", chosen] * bool(chosen) + [*tests]
        environment = os.environ | {"PYTHONPATH": "", "PYTHONDONTWRITEBYTECODE": "1"}
        try:
            run = subprocess.run(
                command, cwd=tree, env=environment, capture_output=True, text=True, check=False, timeout=STILL_S
            )
        except subprocess.TimeoutExpired:
            return None, f"waited for {STILL_S} s"
        told = Path(kept, "v", "cache", "lastfailed")
        if told.is_file():
            failed.update(json.loads(told.read_text(encoding="utf-8")))
    return run.returncode, run.stdout[-2000:]

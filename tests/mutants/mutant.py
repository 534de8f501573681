"""One mutant at a time: a text of the sources is replaced in a copy of the repository, and its tests are run there."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("scripts", "tests", "config", "docs", "pyproject.toml")
LIMIT_S = 300
"""A mutant may make a loop endless: tests that take longer have caught it."""
FAILED = (1, 2)
"""pytest's status when tests failed, or could not be imported; others mean that no test ran (docs.pytest.org)."""


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
    """Copy what tests need into a folder; return it."""
    for part in PARTS:
        source = ROOT / part
        ignored = shutil.ignore_patterns("__pycache__", *(("browser",) if part == "tests" else ()))
        copied = folder / part
        shutil.copytree(source, copied, ignore=ignored) if source.is_dir() else shutil.copy(source, copied)
    return folder


def mutated(tree: Path, mutant: Mutant) -> tuple[bool, str]:
    """Return whether the tests catch a mutant, and the end of what they said; the copy is as before afterwards.

    Raises
    ------
    ValueError
        If the text is not there exactly once: the mutant has to follow the sources.
    """
    file = tree / mutant.file
    text = file.read_text(encoding="utf-8")
    if text.count(mutant.old) != 1:
        raise ValueError(f"{mutant.file} holds {text.count(mutant.old)} times, not once: {mutant.old!r}")
    return _tried(tree, file, text, text.replace(mutant.old, mutant.new), mutant.tests, mutant.chosen)


def with_text(tree: Path, path: str, changed: str, tests: tuple[str, ...]) -> tuple[bool, str]:
    """Return whether tests catch another content of a source file; the copy is as before afterwards."""
    file = tree / path
    return _tried(tree, file, file.read_text(encoding="utf-8"), changed, tests, "")


def _tried(tree: Path, file: Path, text: str, changed: str, tests: tuple[str, ...], chosen: str) -> tuple[bool, str]:
    try:
        file.write_text(changed, encoding="utf-8")
        return _caught(tree, tests, chosen)
    finally:
        file.write_text(text, encoding="utf-8")


def _caught(tree: Path, tests: tuple[str, ...], chosen: str) -> tuple[bool, str]:
    command = [sys.executable, "-m", "pytest", "-n", "0", "-x", "-p", "no:cacheprovider"]
    command += ["-k", chosen] * bool(chosen) + [f"tests/unit/{one}" for one in tests]
    environment = os.environ | {"PYTHONPATH": "", "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        run = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, text=True, check=False, timeout=LIMIT_S
        )
    except subprocess.TimeoutExpired:
        return True, f"took longer than {LIMIT_S} s"
    return run.returncode in FAILED, run.stdout[-2000:]

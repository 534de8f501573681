"""The inputs of `../shared/cases`, each analysed as its user would: by `causeway run`."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from progress import run_by_progress
from support import ROOT

CASES = ROOT.parent / "shared" / "cases"


@dataclass
class Analysed:
    """A finished `causeway run` of one case.

    Attributes
    ----------
    folder : Path
        Folder of the analysis; its results lie in `results`.
    code : int
        Exit code of the command.
    printed : str
        What it printed, standard output and standard error together.
    """

    folder: Path
    code: int
    printed: str

    @property
    def results(self):
        return self.folder / "results"

    def document(self, name):
        """Return a JSON document of the results by its relative path."""
        return json.loads((self.results / name).read_text(encoding="utf-8"))

    def datasets(self):
        """Return the names of the datasets that were analysed."""
        return self.document("datasets.json")["datasets"]

    def findings(self):
        """Return all findings, the most important first."""
        return self.document("findings.json")["findings"]

    def answers(self, question):
        """Return what the first screens say to a question, of all datasets, line by line."""
        lines = self.document("findings.json")["first_screen"]
        return [line["answer"] for line in lines if line["question"] == question]

    def overview(self):
        """Return the HTML of the first page."""
        return (self.results / "overview.html").read_text(encoding="utf-8")


def causeway(*arguments, cwd=ROOT):
    """Run `python -m causeway.command_line` with arguments; return the finished process, its output as one text."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPATH"] = str(ROOT / "scripts")
    command = [sys.executable, "-m", "causeway.command_line", *map(str, arguments)]
    return run_by_progress(command, [cwd], cwd=cwd, env=environment, stderr=subprocess.STDOUT)


@pytest.fixture(scope="session")
def cases():
    """Return the folder of cases, or skip."""
    if not CASES.is_dir():
        pytest.skip("the folder of cases, ../shared/cases, is absent")
    return CASES


@pytest.fixture(scope="session")
def analysed(cases, tmp_path_factory):
    """Return a function that analyses inputs of the cases, given by relative path, once for all tests that ask."""
    done = {}

    def analyse(*inputs, options=()):
        key = (inputs, tuple(options))
        if key not in done:
            folder = tmp_path_factory.mktemp("case")
            paths = [cases / name for name in inputs]
            process = causeway("run", *paths, "--out", folder / "out", "--cores", "2", *options)
            done[key] = Analysed(folder / "out", process.returncode, process.stdout)
        return done[key]

    return analyse

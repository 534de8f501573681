"""A budgeted share of the fuzzing of `python -m tests.fuzz`: every layout, in a worker process, within time and
memory.
"""

import json
import random
import subprocess
import sys

import pytest
from layouts import LAYOUTS

from fuzz import workers
from fuzz.mutations import mutate
from fuzz.trial import schedule
from support import ROOT

ROUNDS = [1, pytest.param(50, marks=pytest.mark.slow)]
"""Mutations of each layout: one by default."""


def fuzz(*arguments):
    command = [sys.executable, "-m", "tests.fuzz", "--made-up", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("rounds", ROUNDS)
def test_no_mutation_of_any_layout_is_a_surprise(rounds):
    run = fuzz("--inputs", str(rounds * len(LAYOUTS)))
    assert run.returncode == 0, run.stdout + run.stderr
    outcome = json.loads(run.stdout)
    assert outcome["inputs"] == rounds * len(LAYOUTS)
    assert outcome["findings"] == []


@pytest.mark.slow
def test_a_wrong_reader_is_found():
    """The judgement can fail: with a reader that crashes, hangs, eats memory, ends its process or leaves files, each
    is a finding.
    """
    run = fuzz("--inputs", "6", "--only", "table.parquet", "--break", "--longest", "6")
    assert run.returncode == 1
    found = " ".join(what for _, what, _ in json.loads(run.stdout)["findings"])
    for sign in (
        "ZeroDivisionError",
        "longer than",
        "of memory",
        "its process ended",
        "beside tables",
        "rows came out",
    ):
        assert sign in found, sign


def test_a_worker_begins_anew_after_some_inputs_and_goes_on(monkeypatch):
    begun = []
    start = workers.Worker._start

    def noted(worker):
        start(worker)
        begun.append((worker.at, worker.process.pid))

    monkeypatch.setattr(workers, "INPUTS_OF_A_PROCESS", 2)
    monkeypatch.setattr(workers.Worker, "_start", noted)
    outcome = workers.fuzz(3, ["table.csv"], first=3)
    assert outcome["inputs"] == 3
    assert [at for at, _ in begun] == [3, 5]
    assert len({pid for _, pid in begun}) == 2


@pytest.mark.parametrize("name", LAYOUTS)
def test_an_input_is_made_again_from_its_number(tmp_path, name):
    contents = []
    for attempt in ("a", "b"):
        folder = tmp_path / attempt
        folder.mkdir()
        path = LAYOUTS[name](folder, "kernel(int)", 6)
        mutate(path, random.Random(f"{name} 3"))
        files = [file for file in sorted(folder.rglob("*")) if file.is_file()]
        contents.append([(file.relative_to(folder), len(file.read_bytes())) for file in files])
    assert contents[0] == contents[1]


def test_every_source_has_its_turn():
    names = [*LAYOUTS, "real a", "real b"]
    turns = [schedule(at, names) for at in range(2 * len(LAYOUTS))]
    assert len(set(turns)) == len(turns)
    assert {name for name, _ in turns} == set(names)

"""Slow steps of programs on an H200 whose slow steps were drawn at random (lab/experiments/library_programs.py):
which steps are called slow, why, and what the host did in them.
"""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from causeway.core.results import rows_by_rank
from causeway.core.tables import read_json, read_table
from causeway.efficiency.steps.find_steps import find_steps
from causeway.findings.device_time.step_waits import idle_ranks, step_waits
from causeway.findings.device_time.steps import step_findings
from causeway.findings.suggestions import COMPILED_AGAIN
from causeway.readers.normalise import normalise
from causeway.waiting.explain_waiting import explain_waiting

RECORDED = Path(__file__).parents[2] / "data" / "experiments" / "libraries"


@pytest.fixture
def analysed(tmp_path):
    """Analyse the steps of a program; return `steps.json`, its findings, and the numbers of the steps drawn slow.
    Without annotations the ranges of the steps are taken out of the recording.
    """

    def analyse(name, annotated=True):
        path = RECORDED / f"{name}.json.gz"
        if not annotated:
            trace = json.loads(gzip.decompress(path.read_bytes()))
            trace["traceEvents"] = [one for one in trace["traceEvents"] if "ProfilerStep#" not in one.get("name", "")]
            path = tmp_path / f"{name}.json"
            path.write_text(json.dumps(trace))
        normalise(path, tmp_path / "0", export="0", source=name)
        clocks = tmp_path / "clocks.json"
        clocks.write_text(json.dumps({"exports": {"0": {"shift_ns": 0, "ranks": [0]}}}))
        steps, rows, causes, waits = (tmp_path / one for one in ("s.json", "s.parquet", "c.parquet", "w.parquet"))
        find_steps("d", [tmp_path / "0"], clocks, 1, steps, rows, causes)
        explain_waiting("d", [tmp_path / "0"], clocks, rows, waits)
        document = read_json(steps)
        behind = {
            rank: step_waits(document, rank, table.to_pylist())
            for rank, table in rows_by_rank(waits, "waiting", idle_ranks(document))
        }
        drawn = json.loads((RECORDED / f"{name}.steps.json").read_text())
        first = document["ranks"][0]["warm_up"]
        slow = [number for number, one in enumerate(drawn) if one.get("slow") and number >= first]
        return document, step_findings(document, read_table(causes, "step_causes").to_pylist(), behind), slow

    return analyse


@pytest.mark.parametrize(
    ("name", "cause", "behind"),
    [
        ("loaded", "idle_before_first_launch", "data loader: enumerate(DataLoader)"),
        ("allocated", "idle_before_first_launch", "cudaFree"),
        ("collected", "idle_before_first_launch", "host code not recorded"),
        ("saved", "exposed_copies", None),
        ("evaluated", "added_launches", None),
        ("logged", "idle_before_first_launch", "host code not recorded"),
        ("paused", "idle_inside", "host code not recorded"),
    ],
)
def test_the_steps_that_were_drawn_slow_are_found_with_their_cause(analysed, name, cause, behind):
    document, (finding,), drawn = analysed(name)
    assert [one["step"] for one in document["slow"]] == drawn
    assert len(drawn) >= 3
    assert {one["cause"] for one in document["slow"]} == {cause}
    assert finding.verdict == "supported"
    assert ("the largest part of that" in finding.sentence) == (behind is not None)
    assert (behind or "") in finding.sentence


def test_large_batches_that_are_copied_while_the_host_is_ahead_slow_down_their_own_steps(analysed):
    """The step after the warm-up is a little longer as well, for the host."""
    document, findings, drawn = analysed("larger_batches")
    copies = [one["step"] for one in document["slow"] if one["cause"] == "exposed_copies"]
    assert copies == drawn
    assert [one["step"] for one in document["slow"] if one["step"] not in copies] == [1]
    assert findings[0].worth.ns > 50 * findings[1].worth.ns


def test_steps_in_which_a_network_is_compiled_again_say_so(analysed):
    """Those just after may be slow as well, by a few milliseconds."""
    document, (finding,), drawn = analysed("recompiled")
    found = {one["step"]: one["excess_ns"] for one in document["slow"]}
    assert drawn == [step for step, excess in found.items() if excess > 10**8]
    assert all(step - 1 in drawn or step - 2 in drawn for step in found if step not in drawn)
    assert "compilation: _compile.compile_inner" in finding.sentence
    assert finding.suggestion == COMPILED_AGAIN


def test_a_program_that_reads_its_loss_in_half_of_the_steps_has_no_slow_ones(analysed):
    """Every step does the same on the device; the host waits in half of them, for those before as well."""
    document, findings, _ = analysed("read_back")
    assert document["slow"] == findings == []
    assert document["ranks"][0]["on_device"]
    assert document["ranks"][0]["steps"] == 200


@pytest.mark.parametrize(
    ("name", "drawn_as", "cause", "missing"),
    [
        ("allocated", "slow", "idle_inside", 0),
        ("paused", "slow", "idle_inside", 0),
        ("read_back", "printed", "idle_inside", 1),  # after the last launch, at the end of the recording
    ],
)
def test_without_annotations_the_repeats_of_a_host_that_runs_ahead_tell_the_same_slow_steps(
    analysed, name, drawn_as, cause, missing
):
    """Repeats are counted from 0, some steps after the first annotated one, which the program does not repeat."""
    document, findings, _ = analysed(name, annotated=False)
    drawn = json.loads((RECORDED / f"{name}.steps.json").read_text())
    drawn = np.flatnonzero([one[drawn_as] for one in drawn])
    found = np.array([one["step"] for one in document["slow"]])
    assert document["source"] == "repeats"
    assert document["ranks"][0]["on_device"]
    assert found.size == drawn.size - missing >= 3
    assert np.unique(drawn[: found.size] - found).size == 1
    assert {one["cause"] for one in document["slow"]} == {cause}
    assert [one.key for one in findings] == [f"rank0/{cause}"]

"""Slow steps: planted ones are found under their names, others are not; parts sum to the excess; warm-up."""

from itertools import pairwise

import numpy as np
import pytest
from efficiency_samples import export
from step_samples import analysed, found

from support import few

NAMES = {
    "operator": "added_launches",
    "sequence": "larger_launches",
    "loader": "idle_before_first_launch",
    "clock": "lower_clock",
}


def assert_found(folder, **values):
    document, rows, causes, truth = analysed(folder, **values)
    planted = truth["slow"]
    own = [step for step in document["slow"] if step["rank"] == truth["rank"]]
    others = [step for step in document["slow"] if step["rank"] != truth["rank"]]
    assert [(step["step"], step["cause"]) for step in own] == [(step, NAMES[truth["plant"]]) for step in planted]
    assert [step["step"] for step in others] == planted
    assert {(step["cause"], step["waits_for"]) for step in others} == {("exposed_communication", truth["rank"])}
    if truth["plant"] == "operator":
        assert {(step["name"], step["launches"]) for step in own} == {(truth["operator"], 4)}
    assert len(rows) == 80
    assert all(row["busy_ns"] + row["idle_ns"] == row["duration_ns"] for row in rows)
    for step in document["slow"]:
        mine = [row for row in causes if (row["rank"], row["step"]) == (step["rank"], step["step"])]
        assert sum(row["excess_ns"] for row in mine) == step["excess_ns"]
        assert {row["verdict"] for row in mine} <= {"supported", "inconclusive", "refuted"}
        assert all(row["low_ns"] <= row["excess_ns"] <= row["high_ns"] for row in mine if row["low_ns"] is not None)


@pytest.mark.parametrize("annotated", [True, False])
@pytest.mark.parametrize("plant", NAMES)
def test_planted_causes_are_found_in_their_steps(tmp_path, plant, annotated):
    assert_found(tmp_path, plant=plant, annotated=annotated, seed=101)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(102, 111))
@pytest.mark.parametrize("plant", NAMES)
def test_planted_causes_are_found_on_further_seeds(tmp_path, plant, seed):
    assert_found(tmp_path, plant=plant, annotated=seed % 2 == 0, seed=seed)


@pytest.mark.parametrize("seed", few(range(101, 104), 1))
def test_nothing_is_found_where_nothing_is_planted(tmp_path, seed):
    document, rows, causes, _ = analysed(tmp_path, seed=seed, noise=0.1)
    assert document["slow"] == causes == []
    assert len(rows) == 80


def test_equal_inputs_give_equal_bytes(tmp_path):
    written = []
    for name in ("a", "b"):
        analysed(tmp_path / name, plant="loader", seed=3)
        written.append([(tmp_path / name / file).read_bytes() for file in ("steps.json", "step_causes.parquet")])
    assert written[0] == written[1]


def made(folder, durations):
    """Return what is found in steps of given durations, half of each with a kernel."""
    edges = np.concatenate([[0], np.cumsum(durations)]).tolist()
    spans = list(pairwise(edges))
    kernels = [(low, low + (high - low) // 2) for low, high in spans]
    ranges = [(low, high, {"name": f"step {at}"}) for at, (low, high) in enumerate(spans)]
    return found(folder, [export(folder / "0", kernels=kernels, ranges=ranges)])


def test_slow_first_steps_are_warm_up_and_not_slow(tmp_path):
    document, rows, _ = made(tmp_path, [5000, 1600, 1000, 1002, 998, 1001, 1600, 999, 1000, 1001, 1000, 1003, 1000])
    assert [row["warm_up"] for row in rows] == [True, True] + [False] * 11
    assert document["ranks"][0]["warm_up"] == 2
    assert document["ranks"][0]["median_ns"] == 1000
    assert [step["step"] for step in document["slow"]] == [6]


def test_the_99th_percentile_is_that_of_the_steps_after_the_warm_up(tmp_path):
    """By sorting: between the 99th and the 100th of 101 steps."""
    durations = np.random.default_rng(3).permutation(np.arange(1000, 1101))
    document, rows, _ = made(tmp_path / "many", [9000, *durations.tolist()])
    usual = sorted(row["duration_ns"] for row in rows if not row["warm_up"])
    assert len(usual) == 101
    assert document["p99_ns"] == usual[99]
    document, _, _ = made(tmp_path / "few", durations[:99].tolist())
    assert document["p99_ns"] is None


def test_few_steps_are_never_slow(tmp_path):
    document, rows, _ = made(tmp_path, [1000] * 8 + [9000])
    assert len(rows) == 9
    assert document["slow"] == []

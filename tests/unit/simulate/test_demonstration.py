"""The default run has something to show in every part of a report, and its ground truth lists all of it."""

import contextlib
import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from causeway.core.errors import CausewayError
from causeway.simulate.device_metrics import METRICS, TENSOR_PERCENT
from causeway.simulate.runs import LEAST_STALL_CHANGE, write_run
from causeway.simulate.scenario import DEMONSTRATION, causes_of, delayed_iterations, trace_scenario
from causeway.simulate.schedule import COMPUTE_STREAM, INPUT_GB_S, simulate_batches
from causeway.simulate.truth import (
    WINDOW_NS,
    effects_of,
    memory_stalls,
    removals_of,
    spread,
    times_of,
    without,
)
from causeway.variability.rows.transfer_links import link

from .observed import joined

ROOT = Path(__file__).parents[3]
LATE = DEMONSTRATION["straggler_rank"]


def scenario(**values):
    return trace_scenario({key: value for key, value in (DEMONSTRATION | values).items() if key != "kind"})


@pytest.fixture(scope="module")
def demo():
    """Return the scenario, and per rank its batch; all iterations in one."""
    whole = scenario(iterations_per_batch=1000)
    return whole, next(iter(simulate_batches(whole)))


@pytest.fixture(scope="module")
def truth(tmp_path_factory):
    return write_run(DEMONSTRATION | {"iterations": 40}, tmp_path_factory.mktemp("run"))


def number_of(whole, short_name):
    return next(number for number, kernel in enumerate(whole.kernels) if kernel.short_name.startswith(short_name))


def test_collectives_end_together_and_one_rank_is_late_in_the_iterations_that_the_truth_names(demo, truth):
    whole, batches = demo
    own = number_of(whole, "nccl")
    start, end = (
        np.stack([one.kernels[key][one.kernels["kernel"] == own] for one in batches]) for key in ("start", "end")
    )
    assert np.ptp(end, axis=0).max() < 500
    delayed = delayed_iterations(whole)
    assert 0.5 < delayed.mean() < 0.7
    late = start.argmax(axis=0) == LATE
    assert late[delayed].mean() > 0.8
    assert late[~delayed].mean() < 0.45
    others = np.delete(start, LATE, axis=0)
    assert np.median((start[LATE] - others.max(axis=0))[delayed]) > 100_000
    assert truth["straggler"]["rank"] == LATE
    assert truth["straggler"]["kind"] == "host"
    assert len(truth["straggler"]["iterations"]) > 15
    assert truth["waiting"] == [whole.kernels[own].name]
    assert truth["waiting"][0] not in truth["targets"]["kernel_variability"]


def test_the_clocks_of_the_ranks_differ_by_more_than_a_collective_lasts(truth):
    errors = np.array([clock["error_ns"] for clock in truth["clocks"].values()])
    drifts = np.array([clock["drift"] for clock in truth["clocks"].values()])
    assert len(set(errors)) == len(set(drifts)) == 4
    assert np.ptp(errors) > 300_000
    assert np.ptp(drifts) > 5e-6


def test_each_iteration_begins_with_a_copy_that_no_launch_hides(demo, truth):
    whole, batches = demo
    for one in batches:
        own = one.copies["stream"] == COMPUTE_STREAM
        start = one.copies["start"][own]
        end = one.copies["end"][own]
        assert len(start) == whole.iterations == truth["exposed_copies"]["per_rank"] * 14
        assert (one.copies["kind"][own] == 1).all()
        assert (one.copies["bytes"][own] == truth["exposed_copies"]["bytes"]).all()
        compute = one.kernels["stream"] == COMPUTE_STREAM
        before = np.searchsorted(one.kernels["start"][compute], end)
        assert (before == np.searchsorted(one.kernels["end"][compute], start)).all()  # none in between
        assert (end - start).mean() == pytest.approx(1_200 + whole.input_bytes / INPUT_GB_S * 1.015, rel=0.01)
        step = np.diff(one.ranges["start"]).mean()
        assert 0.03 < (end - start).mean() / step < 0.1


def test_the_tensor_cores_are_sampled(demo, truth):
    whole, batches = demo
    assert "Tensor Active [Throughput %]" in truth["sampled"] == list(METRICS)
    one = batches[1]
    metric = METRICS.index("Tensor Active [Throughput %]")
    own = one.samples["metric"] == metric
    gemm = one.kernels["kernel"] == number_of(whole, "Kernel2")
    edges = one.samples["time"][own]
    start = one.kernels["start"][gemm]
    end = one.kernels["end"][gemm]
    for index in (1, 7, 300, 800):
        busy = np.maximum(0, np.minimum(end, edges[index]) - np.maximum(start, edges[index - 1])).sum()
        wanted = busy / (edges[index] - edges[index - 1]) * TENSOR_PERCENT
        assert one.samples["value"][own][index] == pytest.approx(wanted, abs=1.5)


@pytest.fixture(scope="module")
def effects(demo):
    return {effect["removed"]: effect for effect in effects_of(demo[0])}


def test_one_cause_is_worth_five_percent_of_its_kernels_time_as_a_formula_says(demo, effects):
    whole, batches = demo
    found = effects["softmax_warp_forward:launches_in_flight"]
    assert found["mean_change_percent"] < -5
    seen = joined([one.kernels for one in batches])
    own = seen["kernel"] == number_of(whole, "softmax")
    added = seen["effect"][own].mean()  # relative to a mean duration without effects
    assert found["mean_change_percent"] == pytest.approx(-100 * added / (1 + added), abs=0.15)
    assert found["saved_ns"] > 0.8 * added * 60_000 * own.sum()


def test_every_removal_shortens_what_it_concerns_and_noise_alone_does_not_change_the_mean(effects, demo):
    assert list(effects) == removals_of(demo[0])
    for name, effect in effects.items():
        if name.endswith(":block_x"):
            assert abs(effect["mean_change_percent"]) < 0.2
            assert effect["spread_change_percent"] < -40
        else:
            assert effect["mean_change_percent"] < -0.5, name
            assert effect["saved_ns"] > 0
    assert effects["straggler"]["step_change_percent"] < -2


def test_random_numbers_stay_those_that_they_were(demo):
    whole = demo[0]
    before = times_of(whole)
    after = times_of(without(whole, ["launches_in_flight"]))
    null = number_of(whole, "vectorized_gather")
    assert (before.durations[null] == after.durations[null]).all()
    changed = number_of(whole, "softmax")
    assert (before.durations[changed] != after.durations[changed]).any()
    assert not any("launches_in_flight" in kernel.causes for kernel in without(whole, ["launches_in_flight"]).kernels)


def test_memory_stalls_are_those_of_the_analysis(demo):
    for one in demo[1][:2]:
        moved = {key: np.concatenate([one.copies[key], one.memsets[key]]) for key in ("start", "end")}
        order = np.argsort(moved["start"], kind="stable")
        start, end = (moved[key][order] for key in ("start", "end"))
        k_start = one.kernels["start"]
        k_end = one.kernels["end"]
        zeros = np.zeros(len(k_start), np.int64)
        linked, _ = link(k_start, k_end, zeros, start, end, np.zeros(len(start), np.int64), WINDOW_NS)
        wanted = np.abs(k_end - k_start - (end - start)[linked])
        assert (linked >= 0).all()
        assert (memory_stalls(one) == wanted).all()


def test_a_cause_of_memory_stalls_is_planted_that_bytes_and_kind_do_not_explain(effects, tmp_path):
    truth = write_run(DEMONSTRATION, tmp_path)
    softmax = next(name for name in truth["memory_stall"] if "softmax" in name)
    assert truth["memory_stall"][softmax] == {"launches_in_flight": "+"}
    assert effects["softmax_warp_forward:launches_in_flight"]["memory_stall_change_percent"] < -LEAST_STALL_CHANGE
    assert sum(map(len, truth["memory_stall"].values())) == 1
    assert truth["effects"] == json.loads((tmp_path / "truth.json").read_text())["effects"]
    planted = {kernel.name: causes_of(kernel) for kernel in scenario().kernels if "nccl" not in kernel.short_name}
    assert truth["targets"]["kernel_variability"] == planted


def mean_of(folder, short_name):
    """Return the mean duration of a kernel over all ranks, from the exports themselves."""
    found = []
    for path in sorted(folder.glob("rank*.sqlite")):
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as base:
            found += base.execute(
                "SELECT end - start FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.shortName"
                " WHERE s.value = ?",
                (short_name,),
            ).fetchall()
    return np.mean(found)


def test_the_command_line_writes_the_run_without_a_cause_and_the_truth_predicted_its_mean(tmp_path):
    command = [sys.executable, "-m", "causeway.simulate", "demo"]
    environment = {"PYTHONPATH": str(ROOT / "scripts"), "PATH": "/usr/bin:/bin"}
    for name, more in (("a", []), ("b", ["--without", "softmax_warp_forward:launches_in_flight"])):
        done = subprocess.run(
            [*command, str(tmp_path / name), "--iterations", "30", "--ranks", "3", *more],
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
    truth = json.loads((tmp_path / "a" / "truth.json").read_text())
    predicted = next(e for e in truth["effects"] if e["removed"] == "softmax_warp_forward:launches_in_flight")
    before, after = (mean_of(tmp_path / name, "softmax_warp_forward") for name in ("a", "b"))
    assert 100 * (after / before - 1) == pytest.approx(predicted["mean_change_percent"], abs=0.01)
    assert json.loads((tmp_path / "b" / "truth.json").read_text())["without"] == [
        "softmax_warp_forward:launches_in_flight"
    ]


def test_what_is_not_planted_cannot_be_removed():
    with pytest.raises(CausewayError, match=r"'weather'.*softmax_warp_forward:launches_in_flight"):
        without(scenario(), ["weather"])
    with pytest.raises(CausewayError, match="'straggler'"):
        without(scenario(straggler="none"), ["straggler"])
    with pytest.raises(CausewayError, match="set input_bytes to 0"):
        scenario(causes={"Kernel2": {"last_h2d_bytes": 0.1}})
    with pytest.raises(CausewayError, match="0 is the least"):
        scenario(input_bytes=-1)


def test_spread_is_that_of_the_configurations():
    values = np.array([1.0, 3.0, 10.0, 14.0])
    configurations = np.array([5, 5, 9, 9])
    assert spread(values, configurations) == pytest.approx((1 + 1 + 2 + 2) / 4)


def test_one_rank_runs_on_one_node_and_too_many_nodes_are_refused_with_what_to_set():
    alone = trace_scenario({"ranks": 1})
    assert (alone.ranks, alone.nodes) == (1, 1)
    assert (trace_scenario({"ranks": 4}).nodes, trace_scenario({}).nodes) == (2, 2)
    with pytest.raises(CausewayError, match="2 ranks on 3 nodes leave a node without a rank; set nodes to at most 2"):
        trace_scenario({"ranks": 2, "nodes": 3})
    with pytest.raises(CausewayError, match="ranks is 0; 1 is the least"):
        trace_scenario({"ranks": 0})

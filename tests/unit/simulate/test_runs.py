import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from causeway.core.errors import CausewayError
from causeway.simulate.counters import CounterScenario
from causeway.simulate.runs import write_run
from causeway.simulate.scenario import SIGNS, Scenario, trace_scenario

ROOT = Path(__file__).parents[3]
SCHEMA = yaml.safe_load((ROOT / "config" / "schemas" / "simulated.schema.yaml").read_text())


@pytest.mark.parametrize(
    ("values", "part"),
    [
        ({"kind": "video"}, "'video'"),
        ({"kind": "trace", "rank": 4}, "'rank'"),
        ({"kind": "trace", "launches": 4}, "'launches'"),
        ({"kind": "counters", "ranks": 4}, "'ranks'"),
        ({"kind": "counters", "launches": 2}, "2 launches of 3 kernels"),
        ({"kind": "counters", "header": 19}, "19 columns"),
        ({"kind": "trace", "ranks": 1, "nodes": 2}, "1 ranks on 2 nodes"),
        ({"kind": "trace", "iterations": 0}, "iterations is 0; 1 is the least"),
        ({"kind": "trace", "clock_rank": 4}, "clock_rank is 4"),
        ({"kind": "trace", "clock_from": 0.9}, "clock_from"),
        ({"kind": "trace", "collective": "tree"}, "'tree'"),
        ({"kind": "trace", "format": "nvprof"}, "'nvprof'"),
        ({"kind": "trace", "causes": {"gemm": {}}}, "'gemm'"),
        ({"kind": "trace", "causes": {"Kernel2": {"weather": 1}}}, "'weather'"),
        ({"kind": "trace", "causes": {"Kernel2": {"block_x": -1}}}, "positive strength"),
        ({"kind": "trace", "causes": {"Kernel2": {"gpc_clock_frequency_hz": 1}}}, "set clock_rank"),
    ],
)
def test_a_wrong_scenario_is_named_and_nothing_is_written(tmp_path, values, part):
    with pytest.raises(CausewayError, match=part):
        write_run(values, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_truth_names_every_kernel_and_its_causes(tmp_path):
    truth = write_run({"kind": "trace", "iterations": 3, "causes": {"Kernel2": {}}}, tmp_path)
    assert truth == json.loads((tmp_path / "truth.json").read_text())
    kernels = {kernel.name: kernel for kernel in trace_scenario().kernels}
    told = truth["targets"]["kernel_variability"]
    assert set(told) == set(kernels) == set(truth["launches"])
    for name, causes in told.items():
        expected = (
            {} if kernels[name].short_name == "Kernel2" else {cause: SIGNS[cause] for cause in kernels[name].causes}
        )
        assert causes == expected
    assert sum(truth["launches"].values()) == sum(
        rows["CUPTI_ACTIVITY_KIND_KERNEL"] for rows in truth["exports"].values()
    )
    assert sorted(truth["exports"]) == ["rank0.sqlite", "rank1.sqlite", "rank2.sqlite", "rank3.sqlite"]


def test_a_waiting_collective_is_left_out_of_the_truth(tmp_path):
    truth = write_run({"kind": "trace", "iterations": 2, "collective": "wait"}, tmp_path)
    assert not [name for name in truth["targets"]["kernel_variability"] if "nccl" in name]


def test_the_schema_knows_the_keys_and_the_defaults_it_states():
    Draft202012Validator.check_schema(SCHEMA)
    known = {field.name: field.default for cls in (Scenario, CounterScenario) for field in dataclasses.fields(cls)}
    keys = set(SCHEMA["properties"]) - {"kind", "causes"}
    assert keys <= set(known)
    assert set(SCHEMA["properties"]["causes"]["additionalProperties"]["properties"]) == set(SIGNS)
    for key in (
        "ranks",
        "nodes",
        "iterations",
        "neighbour_pause_us",
        "gpu_metrics_us",
        "clock_from",
        "clock_to",
        "clock_factor",
        "launches",
        "header",
    ):
        assert f"{known[key]:g} by default" in SCHEMA["properties"][key]["description"], key


@pytest.mark.parametrize(
    "good",
    [
        {"kind": "trace", "ranks": 2, "causes": {"Kernel2": {"launches_in_flight": 0.1}}},
        {"kind": "counters", "launches": 9},
    ],
)
def test_the_schema_accepts(good):
    Draft202012Validator(SCHEMA).validate(good)


@pytest.mark.parametrize(
    "bad",
    [
        {},
        {"kind": "trace", "rank": 2},
        {"kind": "trace", "ranks": 0},
        {"kind": "trace", "causes": {"x": {"weather": 1}}},
    ],
)
def test_the_schema_refuses(bad):
    assert not Draft202012Validator(SCHEMA).is_valid(bad)


def test_the_command_line(tmp_path):
    command = [sys.executable, "-m", "causeway.simulate"]
    environment = {"PYTHONPATH": str(ROOT / "scripts"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [*command, "demo", str(tmp_path / "a"), "--iterations", "2", "--seed", "3"],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "a" / "rank3.sqlite").exists()
    done = subprocess.run(
        [*command, "demo_counters", str(tmp_path / "b"), "--launches", "1"],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr.strip().endswith("one of each is the least")
    assert "Traceback" not in done.stderr

"""A clock that is capped several times, seen only in telemetry whose own clock is off: it is named as the cause, and
nothing is where the clock does not act.
"""

import pytest
from whole_way import causes_of, documents_of

from causeway.core.tables import read_json
from causeway.simulate.runs import write_run
from causeway.simulate.scenario import SimulatedKernel
from lab.site_telemetry import write_telemetry

SECOND = 1_000_000_000
CAPPED = ({"sm_clock_hz", "throttle_power_cap"}, {"rank"})
"""What stands for the cap, and what it stands behind: one rank of the two is capped."""


def kernel(name, base_us, causes):
    return SimulatedKernel(
        name=f"void {name}()", short_name=name, mangled_name=name, base_us=base_us, cv=0.05, causes=causes
    )


def analyse(folder, seed, causes):
    """Return the causes that are named for each kernel, the graphs' verdicts, and whether the skew lies in its
    interval.
    """
    skew_s = 37 + seed % 13 / 7
    kernels = (kernel("bound", 8000.0, causes), kernel("unbound", 4000.0, {}))
    values = {"kernels": kernels, "program": (0, 1, 0, 1), "closing": (0, 1), "neighbour": None, "copies": ()}
    values |= {"ranks": 2, "nodes": 1, "iterations": 3000, "seed": seed, "gpu_metrics_us": None}
    values |= {"clock_rank": 0, "clock_from": 0.5, "clock_to": 0.7, "clock_factor": 0.9, "clock_drops": 5}
    write_run(values, folder / "run")
    write_telemetry(values, folder / "run", 1000, skew_s)
    files = sorted((folder / "run").glob("*.sqlite"))
    telemetry = sorted((folder / "run").glob("telemetry*.csv"))
    graphs = [one["graph"] for one in documents_of(folder, files, "kernel_variability", telemetry=telemetry)]
    clock = read_json(folder / "results" / "telemetry.json")["sources"][0]["clocks"][0]
    names = [graph["scope_name"].removeprefix("void ").removesuffix("()") for graph in graphs]
    return (
        {name: causes_of(graph) for name, graph in zip(names, graphs, strict=True)},
        {name: graph["verdict"] for name, graph in zip(names, graphs, strict=True)},
        clock["skew_ns"] is not None and clock["low_ns"] <= skew_s * SECOND <= clock["high_ns"],
    )


def is_right(found, verdicts):
    """Return whether the cap is the first cause of the kernel that it slows, and nothing is one of the other's."""
    named = set(found["bound"])
    clock, places = CAPPED
    return bool(named & clock) and named <= clock | places and verdicts["bound"] == "supported" and not found["unbound"]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_cap_is_named_on_nine_of_ten_seeds(tmp_path):
    found = [analyse(tmp_path / str(seed), seed, {"gpc_clock_frequency_hz": 1.0}) for seed in range(700, 710)]
    assert sum(is_right(*one[:2]) for one in found) >= 9
    assert sum(one[2] for one in found) >= 9


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_cap_that_slows_nothing_is_no_cause(tmp_path):
    found = [analyse(tmp_path / str(seed), seed, {})[0] for seed in range(720, 730)]
    assert found == [{"bound": {}, "unbound": {}}] * 10

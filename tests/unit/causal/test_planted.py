"""From a simulated run's exports to graphs: every planted cause is found in its kernel with its sign, and none is invented."""

import json
from types import SimpleNamespace

import pytest

import assemble_features
import bin_launches
import discover_causes
from causeway.causal.settlement import settled
from causeway.readers.normalise import normalise
from causeway.simulate.runs import write_run
from causeway.tables import read_json, write_json

CAUSES = {
    "batches": 1,
    "kernels_share": 0.999,
    "kernels_count": 20,
    "max_rows": 50000,
    "resamples": 20,
    "context": "boss",
    "context_resamples": 0,
}


def analyse(folder, scenario, target):
    """Run the way from exports to graphs; return found and planted causes with their signs by kernel."""
    write_run(scenario, str(folder / "run"))
    out = folder / "results"
    files = sorted(path for path in (folder / "run").iterdir() if path.name != "truth.json")
    names = [str(i) for i in range(len(files))]
    clocks = {}
    for i, (name, file) in enumerate(zip(names, files, strict=True)):
        rank = i if len(files) > 1 else None
        normalise(file, out / "tables" / name, export=name, source=file.name, rank=rank, position=i, form="auto", node=None, targets=("y",))
        found = read_json(out / "tables" / name / "capabilities.json")
        clocks[name] = {"shift_ns": (found["time"] or {}).get("session_start_ns") or 0, "ranks": found["ranks"]}
    first = min(clock["shift_ns"] for clock in clocks.values())
    for clock in clocks.values():
        clock["shift_ns"] -= first
    write_json({"dataset": "d", "method": "session_start", "exports": clocks, "residual_ns": None, "reason": ""}, out / "clocks.json")
    options = {"--ranks": "1", "--dataset": "d", "--tables": out / "tables", "--clocks": out / "clocks.json", "--out": out}
    words = [str(word) for option in options.items() for word in option]
    bin_launches.main([*words, "--exports", *names, "--targets", target])
    root = out / target
    paths = {"features": root / "features.parquet", "kernels": root / "kernels.parquet", "kept": root / "kept.parquet"}
    job = SimpleNamespace(
        input=SimpleNamespace(**paths, tables=[str(out / "tables" / name) for name in names], clocks=out / "clocks.json"),
        output=SimpleNamespace(features=paths["features"], drafts=root / "causal" / "drafts" / "0.json"),
        params=SimpleNamespace(nodes={}, causes=CAUSES, seed=1),
        wildcards=SimpleNamespace(dataset="d", target=target, batch="0"),
        log=[folder / "log"],
    )
    assemble_features.main(job)
    discover_causes.main(job)
    found = {}
    for draft in settled(read_json(job.output.drafts)["drafts"]):
        graph = draft["graph"]
        edges = [edge for edge in graph["edges"] if edge["target"] == target and edge["source"] != "unexplained"]
        found[graph["scope_name"]] = {edge["source"]: edge["sign"] for edge in edges}
    truth = json.loads((folder / "run" / "truth.json").read_text())["targets"][target]
    return found, truth


def test_every_planted_cause_of_the_traces_and_no_other(tmp_path):
    found, planted = analyse(tmp_path, {"kind": "trace", "seed": 17}, "kernel_variability")
    assert found == planted


def test_every_planted_cause_of_the_counters_and_no_other(tmp_path):
    found, planted = analyse(tmp_path, {"kind": "counters", "seed": 17}, "gpu_time")
    assert found == planted


OTHERS = {
    "Kernel2": {"gpc_clock_frequency_hz": 1.0},
    "vectorized_elementwise_kernel": {"d2h_bytes_in_flight": 0.08},
    "softmax_warp_forward": {"since_start_ns": 0.1},
    "vectorized_layer_norm_kernel": {"d2d_bytes_in_flight": 0.1},
    "vectorized_gather_kernel": {"transfers_in_flight": 0.08},
    "reduce_kernel": {"grid_x": 0.8},
}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(31, 36))
def test_a_clock_drop_and_other_causes_on_five_seeds(tmp_path, seed):
    found, planted = analyse(tmp_path, {"kind": "trace", "seed": seed, "clock_rank": 2, "causes": OTHERS}, "kernel_variability")
    assert found == planted

import gzip
import json
from pathlib import Path

import pytest

from causeway.simulate.kineto_json import KinetoJson, microseconds
from causeway.simulate.runs import write_run
from causeway.simulate.scenario import trace_scenario
from causeway.simulate.schedule import simulate_batches

SMALL = {"iterations": 12, "ranks": 2, "nodes": 1, "iterations_per_batch": 5, "seed": 2}
REAL = Path(__file__).parents[4] / "shared" / "data" / "kineto" / "tracelens" / "b200_rank0_of_8.json.gz"


def load(path):
    return json.loads(gzip.decompress(path.read_bytes()), parse_float=str)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kineto")
    write_run({"kind": "trace", "format": "kineto"} | SMALL, folder)
    return folder


@pytest.mark.parametrize(("ns", "text"), [(0, "0.000"), (1_200_030_001, "1200030.001"), (999, "0.999")])
def test_microseconds_are_exact(ns, text):
    assert microseconds(ns) == text


@pytest.mark.parametrize("rank", [0, 1])
def test_what_is_read_back_is_what_was_played(folder, rank):
    trace = load(folder / f"rank{rank}.json.gz")
    batches = [batch[rank] for batch in simulate_batches(trace_scenario(SMALL))]
    events = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    kernels = [event for event in events if event["cat"] == "kernel"]

    def ns(text):
        whole, part = text.split(".")
        return int(whole) * 1000 + int(part)

    assert [(ns(e["ts"]), ns(e["dur"])) for e in kernels] == [
        (start + 1_200_000_000, end - start)
        for b in batches
        for start, end in zip(b.kernels["start"].tolist(), b.kernels["end"].tolist(), strict=True)
    ]
    assert [e["args"]["grid"][0] for e in kernels] == [grid for b in batches for grid in b.kernels["grid"].tolist()]
    copies = [event for event in events if event["cat"] == "gpu_memcpy"]
    assert sum(e["args"]["bytes"] for e in copies) == sum(int(b.copies["bytes"].sum()) for b in batches)
    assert len([e for e in events if e["cat"] in ("cuda_runtime", "cuda_driver")]) == sum(
        len(b.calls["start"]) for b in batches
    )
    assert [e["name"] for e in events if e["cat"] == "user_annotation"] == [f"ProfilerStep#{i}" for i in range(12)]
    assert trace["distributedInfo"]["rank"] == rank
    assert {e["pid"] for e in kernels} == {rank}
    calls = {e["args"]["correlation"]: e for e in events if e["cat"] in ("cuda_runtime", "cuda_driver")}
    assert all(ns(calls[e["args"]["correlation"]]["ts"]) < ns(e["ts"]) for e in kernels + copies)
    rows = json.loads((folder / "truth.json").read_text())["exports"][f"rank{rank}.json.gz"]
    assert rows["kernel"] == len(kernels)
    assert rows["gpu_memcpy"] == len(copies)


def test_layout_is_that_of_a_real_trace(folder):
    if not REAL.exists():
        pytest.skip("the real exports are not beside this repository")
    real = load(REAL)
    ours = load(folder / "rank0.json.gz")
    assert set(ours) <= set(real)
    assert set(ours["distributedInfo"]) == set(real["distributedInfo"])
    assert set(ours["deviceProperties"][0]) == set(real["deviceProperties"][0])
    keys = {}
    for event in real["traceEvents"]:
        keys.setdefault(event.get("cat"), set()).update(event, event.get("args", {}))
    for event in ours["traceEvents"]:
        if event.get("cat") in keys and event["ph"] == "X":
            assert {*event, *event["args"]} <= keys[event["cat"]], event


def test_same_seed_same_bytes(folder, tmp_path):
    write_run({"kind": "trace", "format": "kineto"} | SMALL, tmp_path)
    assert (tmp_path / "rank1.json.gz").read_bytes() == (folder / "rank1.json.gz").read_bytes()


def test_no_file_is_left_by_a_writer_that_fails(tmp_path):
    with pytest.raises(RuntimeError, match="stop"), KinetoJson(tmp_path / "x.json.gz", trace_scenario(), 0):
        raise RuntimeError("stop")
    assert list(tmp_path.iterdir()) == []

"""Our one pass over each real Kineto trace beside HolisticTraceAnalysis 0.6.1 (rounding off): breakdown, overlap, idle
time by cause.

`tests/data/hta_reference.json` holds HTA's answers; test_kineto_beside_hta.py of the readers lists why its set of
events differs in some traces. These are left out here, with the reason; idle by cause is compared where host operators
disturb the rest, as HTA leaves them out of it; test_kineto_beside_hta.py compares merged ranks and launches without
calls as HTA takes them. HTA sums overlaps of neighbours in a stream as negative waits; we keep both sums, so the
difference of ours is theirs.
"""

import gzip
import json

import numpy as np
import pytest

from causeway.efficiency.device_time import event_streams, measure, states, sweep
from causeway.readers.normalise import normalise
from support import DATA, ROOT

REFERENCE = json.loads((ROOT / "tests" / "data" / "hta_reference.json").read_text(encoding="utf-8"))["traces"]
FILES = {path.name: path for path in sorted((DATA / "kineto").rglob("*.json.gz"))} if DATA.is_dir() else {}
LEFT_OUT = {
    "resnet50_num_workers_0.pt.trace.json.gz": "HTA drops launches without a call",
    "resnet50_num_workers_4.pt.trace.json.gz": "HTA drops launches without a call",
    "merged_4ranks_all_events.json.gz": "HTA takes four ranks for one",
    "merged_4ranks_nccl_only.json.gz": "HTA takes four ranks for one",
}
HOST_EVENTS = ("b200_rank0_of_8.json.gz", "triton_example.json.gz", "mi300x_torch_compile_triton.json.gz")
COMPARED = sorted(name for name, entry in REFERENCE.items() if entry.get("rows") and name not in LEFT_OUT)


@pytest.fixture(scope="module")
def ours(tmp_path_factory):
    known = {}

    def read(name):
        if not FILES:
            pytest.skip("the folder of real exports, ../shared/data, is absent")
        if name not in known:
            folder = tmp_path_factory.mktemp("hta") / "0"
            normalise(FILES[name], folder, export="0", source=name)
            opened = measure.open_export(folder)
            known[name] = measure.measure(opened, [], np.array([0, 1]))
        return known[name]

    return read


@pytest.mark.parametrize("name", [name for name in COMPARED if name not in HOST_EVENTS])
def test_temporal_breakdown_and_overlap(ours, name):
    found = ours(name)
    theirs = REFERENCE[name]
    assert len(found.opened.devices) == 1
    begin, stop = next(iter(found.opened.windows.values()))
    total = found.total[0]
    times = {part: int(states.time_in(total, part)) for part in states.SETS}
    mine = {"kernel_us": stop - begin, "idle_us": int(total[0]), "compute_us": times["compute"]}
    mine["non_compute_us"] = times["busy"] - times["compute"]
    allowed = 1e-3 + 0.25 * found.path[0] * theirs["step_us"]  # HTA keeps microseconds as float64
    for what, value in mine.items():
        assert value / 1000 == pytest.approx(theirs[what], abs=allowed), what
    share = 100 * times["overlap"] / times["communication"] if times["communication"] else None
    assert share == (
        None if theirs["overlap_percent"] is None else pytest.approx(theirs["overlap_percent"], abs=0.0051)
    )


@pytest.mark.parametrize("name", HOST_EVENTS)
def test_with_the_host_operators_that_hta_counts_its_breakdown_is_ours(ours, name):
    """HTA takes for GPU work whatever has a stream, also operators of the host: they lie in one more sweep, as
    computing kernels. It takes collectives in symmetric memory for compute, too; nothing runs beside them.
    """
    opened = ours(name).opened
    theirs = REFERENCE[name]
    with gzip.open(FILES[name]) as file:
        trace = json.load(file)
    operators = [
        event for event in trace["traceEvents"] if event.get("cat") == "cpu_op" and "stream" in event.get("args", {})
    ]
    assert len(operators) == theirs["others_taken_as_gpu_work"]
    times = np.array([[round(1000 * event["ts"]), round(1000 * event["dur"])] for event in operators], np.int64).T
    rows = [{"start": times[0], "end": times[0] + times[1], "kind": np.zeros(len(operators), np.uint8)}]
    rows += [
        {key: block[key] for key in rows[0]}
        for source in (event_streams.launches, event_streams.transfers)
        for block in source(opened.folder)
    ]
    events = {key: np.concatenate([one[key] for one in rows]) for key in rows[0]}
    order = np.argsort(events["start"], kind="stable")
    begin = int(events["start"].min())
    stop = int(events["end"].max())
    swept = sweep.Sweep([begin], [stop])
    swept.take(np.zeros(order.size, np.int32), events["kind"][order], events["start"][order], events["end"][order])
    swept.finish()
    busy, compute = (int(states.time_in(swept.total[0], part)) for part in ("busy", "compute"))
    found = {
        "kernel_us": stop - begin,
        "idle_us": stop - begin - busy,
        "compute_us": compute,
        "non_compute_us": busy - compute,
    }
    kernels = [event for event in trace["traceEvents"] if event.get("cat") == "kernel"]
    in_switches = [round(1000 * event["dur"]) for event in kernels if "multimem_all_reduce" in event["name"]]
    assert len(in_switches) == (73 if name.startswith("b200") else 0)
    found["compute_us"] += sum(in_switches)
    found["non_compute_us"] -= sum(in_switches)
    allowed = 1e-3 + 0.25 * order.size * theirs["step_us"]
    assert {what: value / 1000 for what, value in found.items()} == pytest.approx(
        {what: theirs[what] for what in found}, abs=allowed
    )


def test_every_trace_is_compared_or_left_out_for_a_reason():
    assert set(COMPARED) | set(LEFT_OUT) == {name for name, entry in REFERENCE.items() if entry.get("rows")}

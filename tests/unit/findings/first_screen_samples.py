"""A made dataset of two devices over 1 s, as the facts of the first screen read it."""

from causeway.findings.first_screen.losses import Gain, LossFact
from causeway.findings.first_screen.run_facts import RunFact, RunTables

MS = 1_000_000


def device(compute=400, communication=0, copies=0):
    """What one device does, ms."""
    return {
        "compute_ns": compute * MS,
        "communication_ns": communication * MS,
        "exposed_communication_ns": communication * MS,
        "exposed_memory_ns": copies * MS,
        "graph_ns": 0,
    }


def efficiency(**changes):
    parts = {"useful": 800, "communication": 300, "transfers": 100, "orchestration": 800, "outside": 0}
    found = {
        "why": None,
        "elapsed_ns": 1000 * MS,
        "origin_ns": 0,
        "device": {"n_devices": 2, "ranks": {"0": {}, "1": {}}},
        "waterfall_ns": {part: ms * MS for part, ms in parts.items()},
        "breakdown": {"0/0": device(400, 150, 50), "1/0": device(400, 150, 50)},
        "launch_path": {"launches": 4000},
        "launch_shapes": [],
        "copies": [],
        "recordings": None,
        "shared": [],
    }
    return found | changes


def quality(**changes):
    exports = [{"export": "e0", "source": "r.sqlite", "status": "read", "rows": 4000}]
    return {"exports": exports, "issues": [], "analyses": {"time_line": {"possible": True, "why": None}}} | changes


def wait(ms, reason="launch_starved", detail="host code not recorded"):
    return {"rank": 0, "device": 0, "reason": reason, "detail": detail, "step": None, "wait_ns": ms * MS}


def replay(change, saved_ms, limit="kernel", name=None):
    times = {"time_ns": 1000 * MS, "predicted_ns": (1000 - saved_ms) * MS}
    row = {"change": change, "name": name, "step": None, "limited_by": limit, "limited_name": "x"}
    return row | times | {"device_time_ns": times["time_ns"], "predicted_device_time_ns": times["predicted_ns"]}


def kernel(name="gemm_kernel", ms=800, launches=1000, cost_ms=0, kind="compute"):
    row = {"kernel": f"{name}-0", "short_name": name, "name": name, "class": kind, "launches": launches}
    mean = ms * MS / launches
    row |= {
        "value_sum": float(ms * MS),
        "value_median": mean,
        "value_q1": mean,
        "value_q3": mean,
        "value_max": mean,
        "value_min": mean,
    }
    return row | {"target_sum": 2.0 * cost_ms * MS, "configurations": 1}


def tables(**changes):
    found = {"dataset": "demo", "quality": quality(), "efficiency": efficiency()}
    found |= {"targets": {"kernel_variability": [kernel()]}, "units": {"kernel_variability": "ns"}}
    return RunTables(**found | changes)


def run(**changes):
    facts = {"elapsed_ns": 1000 * MS, "devices": 2, "ranks": 2, "gpus": ("NVIDIA H100",), "steps": None}
    facts |= {"parts": efficiency()["waterfall_ns"], "recorded": ("kernels",), "launches": 4000, "query": "SELECT 1"}
    return RunFact(**facts | changes)


def gain(ms, limit="kernel", **changes):
    return Gain(saved_ns=ms * MS, limited_by=limit, row={}, columns=("a", "b"), **changes)


def idle(reasons, unknown_ms=0, won_ms=None):
    """Idle time of both devices with its reasons, (reason, detail, ms)."""
    rows = [(reason, detail, ms * MS) for reason, detail, ms in reasons]
    lost = sum(ns for _, _, ns in rows) + unknown_ms * MS
    won = None if won_ms is None else gain(won_ms)
    return LossFact(part="orchestration", lost_ns=lost, reasons=rows, unknown_ns=unknown_ms * MS, gain=won)

"""Made-up results that findings are read from."""

from dataclasses import dataclass, field

from causeway.findings.record import Analysis

NOTHING = (
    "No cause found: 412 effective samples; an effect above 8 % of the variance of the durations would have been seen."
)
SENTENCE = (
    "More bytes raise its deviation and explain 27 % [21, 33] of the variance of the durations; found in 95 % of"
    " resamples; robustness 0.38."
)


@dataclass
class Search:
    graph: dict
    contributions: list
    table: str
    tables: dict = field(default_factory=dict)


def kernel(number=0, share=0.6, target_sum=4_000_000.0):
    facts = {
        "kernel": f"k{number}",
        "name": f"void ns::k{number}<4>(int)",
        "short_name": f"k{number}",
        "class": "compute",
    }
    return facts | {
        "launches": 1000,
        "configurations": 1,
        "target_share": share,
        "target_sum": target_sum,
        "value_sum": 20_000_000.0,
        "robust_cv": 0.21,
        "variance_between": None,
    }


def in_time(mean=4.2, cost=540_000.0, spread=12.0):
    """What a cause does to the duration, as `contributions.parquet` has it, with intervals of a fifth each side."""
    found = {"role": "exposure", "monotone": True, "launches": 900, "determines_time": False}
    for name, value in (("mean", mean), ("p99", 2 * mean), ("spread", spread)):
        ends = sorted((0.8 * value, 1.2 * value))
        found |= {f"{name}_change_percent": value, f"{name}_change_low": ends[0], f"{name}_change_high": ends[1]}
    return found | {"cost_ns": cost, "cost_low": 0.8 * cost, "cost_high": 1.2 * cost}


def cause(feature="h2d_bytes_in_flight", percent=27.0, verdict="supported", sentence=SENTENCE, cost=540_000.0, **facts):
    low, high = (None, None) if percent is None else (0.8 * percent, 1.2 * percent)
    ends = {"variance_percent": percent, "variance_low": low, "variance_high": high}
    ends |= {"contribution_percent": 3.0, "contribution_low": 2.0, "contribution_high": 4.0}  # of |deviation|
    ends |= in_time(cost=cost) if cost is not None else {}
    return (
        {"feature": feature, "sign": "+", "verdict": verdict, "robustness": 0.38, **ends}
        | {"sentence": sentence}
        | facts
    )


def search(scope="k0", causes=(), sentences=None, verdict="supported", reasons=(), p_value=0.4):
    rows = list(causes)
    rows += (
        [cause("unexplained", 100.0 - sum(row["variance_percent"] or 0 for row in rows), sentence=None) | {"sign": "?"}]
        if rows
        else []
    )
    graph = {
        "scope": scope,
        "scope_name": None if scope == "dataset" else f"void ns::{scope}<4>(int)",
        "n_rows": 900,
        "n_effective": 412.5,
        "p_value": p_value,
    }
    sentences = [row["sentence"] for row in causes] if sentences is None else sentences
    graph |= {"verdict": verdict if rows else "inconclusive", "sentences": sentences, "reasons": list(reasons)}
    return Search(graph, rows, f"demo/kernel_variability/causal/{scope}/contributions.parquet")


def analysis(searches=(), kernels=None, target="kernel_variability", unit="ns"):
    kernels = [kernel(0, 0.6), kernel(1, 0.4, 1_000_000.0)] if kernels is None else kernels
    return Analysis(
        dataset="demo",
        target=target,
        unit=unit,
        kernels=kernels,
        kernels_table=f"demo/{target}/kernels.parquet",
        searches=searches,
    )


def quality(*statuses):
    error = {"source": "r.sqlite", "found": "zero bytes", "expected": "a database", "advice": "Export it again."}
    exports = [
        {"export": str(i), "source": f"run/r{i}.sqlite", "status": status, "error": None if status == "read" else error}
        for i, status in enumerate(statuses)
    ]
    return {"dataset": "demo", "exports": exports}


def efficiency(**changes):
    """An `efficiency.json` of two devices over 1 s, as far as findings read it."""
    parts = {"useful": 1_000_000_000, "communication": 0, "transfers": 10_000_000, "outside": 200_000_000}
    parts["orchestration"] = 2_000_000_000 - sum(parts.values())
    device = {"exposed_memory_ns": 9_000_000}
    path = {"launches": 4000}
    found = {
        "dataset": "demo",
        "why": None,
        "elapsed_ns": 1_000_000_000,
        "device": {"n_devices": 2},
        "comm_aware": {"n_devices": 2, "kernel_ns": 1_000_000_000, "kernel_max_ns": 600_000_000},
        "waterfall_ns": parts,
    }
    found |= {"breakdown": {"0/0": device, "1/0": device}, "launch_path": path, "copies": []}
    return found | changes


def stragglers(verdict="straggler", pattern="persistent", why=None):
    never = {"share": 0.0, "collectives": 0, "last_share": 0.05, "last_collectives": 5}
    ranks = [{"rank": r, **never, "pattern": "none", "waiting_for_it_ns": 0, "alone_ns": 0} for r in (4, 7)]
    often = {"share": 0.9, "collectives": 90, "last_share": 0.95, "last_collectives": 95}
    ranks[1] |= (
        often
        | {"pattern": pattern, "waiting_for_it_ns": 2_500_000, "alone_ns": 2_500_000}
        | ({"why": why} if why else {})
    )
    group = {
        "communicator": "a'b; DROP TABLE x",
        "n_ranks": 2,
        "collectives": 100,
        "sized": 100,
        "verdict": verdict,
        "threshold_ns": 12_000,
    }
    return {"dataset": "demo", "groups": [group | {"excess_transfer_ns": 800_000, "ranks": ranks}]}

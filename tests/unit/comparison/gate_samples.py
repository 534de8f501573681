"""A comparison of two runs of 1000 ns, and rows and limits for its gate."""

from causeway.comparison.gate import LIMITS

NONE = {
    **dict.fromkeys(LIMITS),
    "min_efficiency": None,
    "min_share": 0.01,
    "forbid_new_kernels": False,
    "strict": False,
}
SIDES = ("baseline", "candidate")
DOCUMENT = {
    "why": None,
    **{side: {"dataset": side, "gpu_time_ns": 1000} for side in SIDES},
    "decomposition": [],
    "same_content": {"sides": None, "repeats": []},
}


def row(change, low, high, level="run", metric="time_per_launch", total=500, **more):
    totals = {
        "baseline_total_ns": total,
        "candidate_total_ns": total,
        "candidate": "k",
        "verdict": "?",
        "candidate_value": 0.9,
        "reason": "too few launches",
        "reason_code": "too_few",
    }
    return {
        "level": level,
        "metric": metric,
        "change_percent": change,
        "low_percent": low,
        "high_percent": high,
        **totals,
        **more,
    }

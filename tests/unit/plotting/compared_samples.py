"""A made-up comparison of two datasets: rows and document as far as figures and page read them, consistent in
themselves.
"""

CHANGES = (0.3, -12.0, 41.0, 2.2, -0.05, 640.0)
VERDICTS = ("same", "faster", "inconclusive", "slower", "same", "inconclusive")
VARIABILITY = {"same": "same", "faster": "steadier", "slower": "more variable", "inconclusive": "inconclusive"}
EFFICIENCY = {"same": "same", "faster": "more efficient", "slower": "less efficient", "inconclusive": "inconclusive"}


def row_of(number, level, metric, candidate, verdict, launches=1200, total=10**9):
    """One row of `comparison.parquet`; every sixth group has no interval."""
    change = CHANGES[number % 6]
    known = number % 6 != 4
    values = (0.9, 0.9 + change / 1000) if metric == "efficiency" else (1000.0, 1000.0 * (1 + change / 100))
    values = tuple(value / 10_000 for value in values) if metric == "variability" else values
    return {
        "level": level,
        "metric": metric,
        "match": "exact",
        "unit": "ns" if metric == "time_per_launch" else "ratio",
        "verdict": verdict,
        "reason": "as the test has it",
        "reason_code": "beyond_floor",
        "baseline": candidate,
        "candidate": candidate,
        "note": None,
        "change_percent": change,
        "low_percent": change - abs(change) / 2 - 0.1 if known else None,
        "high_percent": change + 3 * abs(change) if known else None,
        "floor_percent": 0.5 + number % 7,
        "baseline_value": values[0],
        "candidate_value": values[1],
        "p_value": 0.01,
        "q_value": 0.02,
        "baseline_effective": 100.0,
        "candidate_effective": 100.0,
        "paired": False,
        "baseline_launches": launches,
        "candidate_launches": launches + number,
        "baseline_total_ns": total // (number + 1),
        "candidate_total_ns": total // (number + 1),
    }


def _replayed(seconds, saved):
    facts = {"predicted_ns": round(seconds * 1e9), "saved_ns": round(saved * 1e9), "saved_percent": 100 * saved / 4}
    return facts | {"limited_by": "kernel", "limited_name": "<b>a kernel</b>"}


def compared(names, ranks=2):
    """Return document and rows of a comparison of kernels of these names, the last one new."""
    rows = [
        row_of(0, "run", "time_per_launch", "all kernels", "same"),
        row_of(1, "run", "variability", "all kernels", "steadier"),
    ]
    rows += [
        row_of(3, "run", "efficiency", "all devices", "less efficient"),
        row_of(0, "run", "span", "span", "inconclusive"),
    ]
    for rank in range(ranks):
        verdict = VERDICTS[rank % 6]
        rows += [
            row_of(rank, "rank", "time_per_launch", str(rank), verdict),
            row_of(rank, "rank", "variability", str(rank), "same"),
        ]
        rows.append(row_of(rank, "rank", "efficiency", str(rank), EFFICIENCY[verdict]))
    rows += [
        row_of(number, "kernel", "time_per_launch", name, VERDICTS[number % 6]) for number, name in enumerate(names)
    ]
    rows += [
        row_of(number, "kernel", "variability", name, VARIABILITY[VERDICTS[number % 6]])
        for number, name in enumerate(names)
    ]
    parts = [
        {
            "kernel": name,
            "match": "exact",
            "baseline_ns": 10**9,
            "candidate_ns": 10**9,
            "time_ns": (-1) ** number * 10**8 // (number + 1),
            "launches_ns": 10**7,
            "configurations_ns": 0,
            "lone_ns": 0,
        }
        for number, name in enumerate(names)
    ]
    parts[-1] |= {"match": "new", "time_ns": 0, "launches_ns": 0, "lone_ns": 3 * 10**7}
    change = {
        key: sum(part[key] for part in parts) for key in ("time_ns", "launches_ns", "configurations_ns", "lone_ns")
    }
    total = 4 * 10**9

    def side(dataset, gpu_time):
        return {
            "dataset": dataset,
            "repeats": [],
            "launches": 48_000,
            "kernels": len(names),
            "ranks": list(range(ranks)),
            "devices": [{"name": "NVIDIA H100 80GB HBM3", "number": ranks}],
            "gpu_time_ns": gpu_time,
            "span_ns": total,
        }

    document = {
        "why": None,
        "baseline": side("the_run_before_the_change_of_compiler", total),
        "candidate": side("the_run_after_the_change_of_compiler", total + sum(change.values())),
        "assumption": "One run on each side: how much two runs of the same program differ was not measured.",
        "same_content": {"sides": None, "repeats": []},
        "unread_repeats": [],
        "matched": {"exact": len(names) - 1, "normalised": 1, "sequence": 0, "new": 1, "gone": 0},
        "matches": [{"how": "normalised", "baseline": names[0], "candidate": names[0], "note": "one of two instances"}],
        "decomposition": parts,
        "change_ns": change,
        "operators": None,
        "replayed": {side: {"time_ns": 4 * 10**9, "device_time_ns": 3 * 10**9} for side in ("baseline", "candidate")},
        "not_compared": ["No region is on both sides."],
        "replays": [
            {"change": "nothing", "name": None, "baseline": _replayed(4.0, 0.0), "candidate": _replayed(4.2, 0.0)},
            {"change": "kernel_faster", "name": names[0], "baseline": None, "candidate": _replayed(3.9, 0.3)},
        ],
        "causes": [
            {
                "target": "kernel_variability",
                "feature": "a_counter_with_a_long_name",
                "baseline_percent": 40.0,
                "candidate_percent": 10.0,
                "change": -30.0,
                "low": -41.5,
                "high": -18.25,
                "verdict": "changed",
            },
            {
                "target": "memory_stall",
                "feature": "queue_ns",
                "baseline_percent": None,
                "candidate_percent": 12.0,
                "change": None,
                "low": None,
                "high": None,
                "verdict": "appeared",
            },
        ],
    }
    return document, rows

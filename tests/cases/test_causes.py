"""Causes that lie in one launch of each rank, or in one launch: the notes of `nvidia/first_launch_differs` and
`nvidia/one_other_input`.
"""

import json
import re
import sqlite3
import statistics

import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.slow


def statements(analysed):
    """Return all statements, those behind others too."""
    return [one for finding in analysed.findings() for one in (finding, *finding["also"])]


def graphs(analysed, target):
    """Return the documents of a target's searches by scope."""
    (dataset,) = (path.name for path in analysed.results.iterdir() if (path / target / "causal").is_dir())
    found = (analysed.results / dataset / target / "causal").glob("*/graph.json")
    return {path.parent.name: json.loads(path.read_text(encoding="utf-8")) for path in found}


def durations(path, kernel):
    """Return the durations of a kernel's launches by process, in their order, ns."""
    query = (
        "select globalPid, end - start from CUPTI_ACTIVITY_KIND_KERNEL join StringIds on StringIds.id = shortName"
        " where value = ? order by globalPid, start"
    )
    with sqlite3.connect(path) as export:
        rows = export.execute(query, (kernel,)).fetchall()
    return {process: [time for own, time in rows if own == process] for process, _ in rows}


def test_first_launch_differs(analysed, cases):
    found = analysed("nvidia/first_launch_differs.sqlite")
    assert found.code == 0, found.printed
    by_rank = durations(cases / "nvidia/first_launch_differs.sqlite", "eval")
    assert [len(one) for one in by_rank.values()] == [100] * 4  # 4 first launches against 396, worth 4 x 0.1 ms
    firsts = statistics.mean(one[0] for one in by_rank.values())
    assert firsts / statistics.mean(time for one in by_rank.values() for time in one[1:]) == pytest.approx(
        0.914, abs=0.03
    )

    assert not [one for one in found.answers("What varies") if "cause: " in one]
    assert not any(
        "launch before it" in one["headline"] or "launched after" in one["sentence"] for one in statements(found)
    )
    assert "39.7 ms" not in found.overview()
    assert not [one for one in statements(found) if one["kind"] == "cause"]
    (eval_,) = (graph for scope, graph in graphs(found, "kernel_variability").items() if scope.startswith("eval"))
    reasons = {one["feature"]: one["reason"] for one in eval_["dropped"]}
    assert "more than about one launch of each rank" in reasons["launched_after"]
    assert eval_["verdict"] == "inconclusive"
    (slow,) = (reason for reason in eval_["reasons"] if reason.startswith("successive launches resemble each other"))
    assert 70 <= int(re.search(r"explains (\d+) %", slow)[1]) <= 85  # slowly in time: no recorded column tells it


def test_one_other_input(analysed, cases):
    found = analysed("nvidia/one_other_input.sqlite")
    assert found.code == 0, found.printed
    with sqlite3.connect(cases / "nvidia/one_other_input.sqlite") as export:
        sizes = [size for (size,) in export.execute("select bytes from CUPTI_ACTIVITY_KIND_MEMCPY order by start")]
    ordered = sorted(sizes)
    assert [ordered[round(share * len(sizes))] for share in (0.1, 0.9, 0.99)] == [1024] * 3
    assert (sizes[0], len(sizes), sizes.count(1024)) == (15472, 1200, 1199)

    assert not [one for one in found.answers("What varies") if "cause: " in one]
    texts = [one["sentence"] for one in statements(found)] + [one["headline"] for one in statements(found)]
    assert not any("percentile" in text or "17 %" in text or "arger inputs" in text for text in texts)
    (graph,) = (graph for scope, graph in graphs(found, "kernel_variability").items() if scope != "dataset")
    reasons = {one["feature"]: one["reason"] for one in graph["dropped"]}
    assert reasons["last_h2d_bytes"] == "constant within configurations but for 1 launch"
    for target in ("kernel_variability", "memory_stall"):
        for path in found.results.glob(f"*/{target}/causal/*/contributions.parquet"):
            rows = pq.read_table(path).to_pylist()
            assert [row["feature"] for row in rows if row["mean_change_percent"] is not None] == []
            ends = [row[f"{name}_change_low"] for row in rows for name in ("mean", "p50", "p99", "spread")]
            assert min((end for end in ends if end is not None), default=0) >= -100

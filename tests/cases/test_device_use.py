"""What device time is lost to, where it is not used, and what graphs have of it: three small exports."""

import html
import re
import sqlite3

import duckdb
import pytest

pytestmark = pytest.mark.slow


def first_screen(case):
    """Return the text of the first page without its marks."""
    return " ".join(html.unescape(re.sub("<[^>]*>", "", case.overview())).split())


def document(case, name):
    (dataset,) = case.datasets()
    return case.document(f"{dataset}/{name}")


def rows(cases, name, query):
    with sqlite3.connect(f"file:{cases / 'nvidia' / name}?mode=ro", uri=True) as connection:
        return connection.execute(query).fetchall()


def test_copies_and_idle_time_are_what_all_devices_lose_and_sampled_code_is_named(analysed, cases):
    name = "busiest_and_samples.sqlite"
    case = analysed(f"nvidia/{name}")
    assert case.code == 0, case.printed
    efficiency = document(case, "efficiency.json")
    parts = efficiency["waterfall_ns"]
    total = efficiency["elapsed_ns"] * efficiency["device"]["n_devices"]
    assert sum(parts.values()) == total
    ((copied,),) = rows(cases, name, "SELECT sum(end - start) FROM CUPTI_ACTIVITY_KIND_MEMCPY")
    assert parts["transfers"] <= copied
    assert round(100 * parts["transfers"] / total) == 20
    assert round(100 * parts["orchestration"] / total) == 28
    assert round(parts["orchestration"] / 1e6) == 216
    idle = sum(one["idle_ns"] for one in efficiency["breakdown"].values())
    assert parts["orchestration"] == idle
    text = first_screen(case)
    for gone in ("367 ms", "48 %", "busiest device's", "The largest part of that, 216 ms: host code not recorded"):
        assert gone not in text
    path = case.results / case.datasets()[0] / "waiting.parquet"
    details = dict(
        duckdb.execute(
            "SELECT detail, sum(wait_ns) FROM read_parquet(?) WHERE step IS NULL GROUP BY 1", [str(path)]
        ).fetchall()
    )
    assert details["host code in sort_candidates"] > 0.9 * idle  # all but what lies before the first sample of a gap
    assert details.get("host code not recorded", 0) < 0.05 * idle
    idle_, copies = case.answers("Where")
    assert idle_.startswith("Idle 28 % (54 ms of 192 ms per GPU): sort_candidates 51.9 ms.")
    assert copies.startswith("Copies outside compute 20 % (38 ms of 192 ms per GPU)")
    assert "host code in sort_candidates" in text
    everything = case.overview() + str(case.findings())
    assert "sampled stacks name it" not in everything


def test_a_launch_of_one_thread_does_not_use_the_device(analysed):
    case = analysed("nvidia/one_thread.sqlite")
    assert case.code == 0, case.printed
    text = first_screen(case)
    assert "add runs for 100 % of the GPU time (2 s) on 1 of 108 multiprocessors, 1 thread of 32 in a warp." in text
    assert "Launch more blocks" in text
    for gone in ("no loss of a hundredth", "Record more launches", "the largest loss is load imbalance"):
        assert gone not in text
    (shape,) = document(case, "efficiency.json")["launch_shapes"]
    assert (shape["blocks"], shape["threads"], shape["multiprocessors"]) == (1, 1, 108)
    assert case.findings()[0]["headline"].startswith("add runs for 100 %")


def test_a_program_that_runs_in_a_graph_is_told_so(analysed, cases):
    name = "graph_default.sqlite"
    case = analysed(f"nvidia/{name}")
    assert case.code == 0, case.printed
    ((executions, graphs),) = rows(
        cases, name, "SELECT count(*), sum(end - start) FROM CUPTI_ACTIVITY_KIND_GRAPH_TRACE"
    )
    ((kernels,),) = rows(cases, name, "SELECT sum(end - start) FROM CUPTI_ACTIVITY_KIND_KERNEL")
    efficiency = document(case, "efficiency.json")
    assert efficiency["graphs"]["executions"] == executions == 200
    assert efficiency["graphs"]["duration_ns"] == graphs
    assert round((graphs + kernels) / 1e6) == 2_004
    text = first_screen(case)
    (filled,) = case.answers("What fills the time")
    assert filled == f"2 s of kernels: CUDA graphs traced as a whole {100 * graphs / (graphs + kernels):.1f} %."
    assert case.answers("Recording") == ["200 CUDA graphs were traced as a whole: the kernels inside are not recorded."]
    assert "Of the kernels' time sample_token has 100.0 %" not in text
    assert case.answers("Where")[0].startswith("Idle 16 % (396 ms of 2.4 s)")
    steps = document(case, "steps.json")
    assert steps["source"] == "graphs"
    assert steps["ranks"][0]["steps"] >= 199  # behind the last execution no kernel was launched
    assert "skip launch calls" not in text
    assert "CUDA or HIP graphs, fused" not in text
    assert not [one for one in case.answers("What to do") if "Capture the launches" in one]

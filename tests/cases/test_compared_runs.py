"""Two runs whose kernels bear other numbers of the build, and gates on runs of which launches are missing."""

import html
import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from conftest import causeway

pytestmark = pytest.mark.slow
LAUNCHES = 900
SLOWEST = 129


@pytest.fixture
def named(analysed):
    return analysed(
        "nvidia/names_before.sqlite",
        "nvidia/names_after.sqlite",
        options=("--compare", "names_before", "names_after"),
    )


def test_kernels_are_matched_but_for_numbers_of_the_build(named):
    (folder,) = (named.results / "compare").glob("*__*")
    document = json.loads((folder / "comparison.json").read_text(encoding="utf-8"))
    assert document["why"] is None
    assert document["matched"]["normalised"] == 2
    assert document["matched"]["gone"] == document["matched"]["new"] == 0
    rows = pq.read_table(folder / "comparison.parquet").to_pylist()
    kernels = {row["baseline"]: row for row in rows if row["level"] == "kernel" and row["metric"] == "time_per_launch"}
    relax = kernels["__omp_offloading_31_18a8104__Z6relaxPdS_i_l42"]
    assert relax["candidate"] == "__omp_offloading_2d_77ab31c__Z6relaxPdS_i_l42"
    assert relax["baseline_value"] == pytest.approx(400_000, rel=0.002)
    assert relax["candidate_value"] == pytest.approx(520_000, rel=0.002)
    assert relax["change_percent"] == pytest.approx(30, abs=0.3)
    assert relax["verdict"] == "slower"
    julia = kernels["julia_broadcast_kernel_1234"]
    assert julia["candidate"] == "julia_broadcast_kernel_1301"
    assert julia["change_percent"] == pytest.approx(0, abs=0.3)
    assert julia["verdict"] == "same"
    whole = {row["metric"]: row for row in rows if row["level"] == "run"}
    assert round(whole["span"]["baseline_value"] / 1e6) == 219
    assert round(whole["span"]["candidate_value"] / 1e6) == 255
    assert {"efficiency", "idle"} <= whole.keys()


def test_pages_have_the_full_names_and_the_change(named):
    (folder,) = (named.results / "compare").glob("*__*")
    page = " ".join(
        (folder / "comparison.html").read_text(encoding="utf-8").split()
    )  # also of blanks that do not break
    assert "no kernel in common" not in page
    assert "__omp_offloading_2d_77ab31c__Z6relaxPdS_i_l42" in page
    assert "other numbers of the build" in page
    lines = named.answers("Compared")
    assert any(line.startswith("Run 219 ms to 255 ms (+16.3 %)") for line in lines)
    assert all(html.escape(line, quote=False) in page for line in lines), "the page says what the first screen says"
    headlines = [one["headline"] for one in named.findings() if one["kind"] == "comparison"]
    assert any("slower" in one and "+29.9 %" in one for one in headlines)
    assert "no kernel in common" not in named.printed


def trace(path, factor=1.0, launches=LAUNCHES, broken=0, field=None):
    """Write a trace, the slowest launches of which take `factor` longer, and of the slowest `broken` ones cannot be
    read: without a number, or begun and not ended.
    """
    durations = np.random.default_rng(3).gamma(4.0, 25.0, LAUNCHES).round(3)
    slowest = np.argsort(-durations)[:SLOWEST]
    durations[slowest] = (durations[slowest] * factor).round(3)
    unread = set(slowest[:broken].tolist())
    events = []
    for number, duration in enumerate(durations[:launches].tolist()):
        event = {"cat": "kernel", "name": "work", "pid": 0, "tid": 7, "ts": 1000 * number, "ph": "X", "dur": duration}
        event["args"] = {"device": 0, "stream": 7, "correlation": number, "grid": [64, 1, 1], "block": [128, 1, 1]}
        if number in unread:
            event |= {"dur": float("nan")} if field == "dur" else {"ph": "B"}
        events.append(event)
    path.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return trace(tmp_path_factory.mktemp("traces") / "base.json")


def gate(base, candidate, out):
    limits = ("--limit", "max_slowdown_percent=5", "--set", "compare.causes=false", "--cores", "2")
    process = causeway("gate", base, candidate, *limits, "--out", out, "--markdown", out.parent / "gate.md")
    verdicts = json.loads((out / "results/compare/gate.json").read_text(encoding="utf-8"))
    return process, verdicts, (out.parent / "gate.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"factor": 1.4, "broken": SLOWEST, "field": "dur"}, "129 of 900 launches"),
        ({"factor": 1.4, "broken": SLOWEST, "field": "ph"}, "129 of 900 launches"),
        ({"broken": 5, "field": "dur"}, "lacks 5 of 900 launches"),
        ({"launches": 90}, "900 times by the baseline and 90 times by the candidate"),
    ],
    ids=["no number", "begun", "few", "died"],
)
def test_a_gate_does_not_open_on_launches_that_are_missing(facts, said, base, tmp_path):
    process, verdicts, markdown = gate(base, trace(tmp_path / "candidate.json", **facts), tmp_path / "out")
    assert process.returncode == 1
    assert verdicts["outcome"] == "could not tell"
    logs = "".join(path.read_text(encoding="utf-8") for path in (tmp_path / "out").rglob("judge_gate.log"))
    for text in (process.stdout, " ".join(verdicts["reasons"]), markdown, logs):
        assert said in text


def test_a_gate_says_which_limits_there_are():
    printed = " ".join(causeway("gate", "--help").stdout.split())
    limits = ("max_slowdown_percent", "max_kernel_slowdown_percent", "max_span_increase_percent", "min_efficiency")
    assert all(limit in printed for limit in (*limits, "forbid_new_kernels", "min_share", "strict"))


def test_a_slower_run_breaks_the_gate_and_the_page_that_is_named_is_there(base, tmp_path):
    process, verdicts, _ = gate(base, trace(tmp_path / "slow.json", 1.4), tmp_path / "out")
    assert process.returncode == 1
    assert verdicts["outcome"] == "regressed"
    (line,) = (line for line in process.stdout.splitlines() if line.startswith("open first"))
    (page,) = (tmp_path / "out/results/compare").glob("*/comparison.html")
    assert line.split()[-1] == str(page)

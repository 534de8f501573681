"""Faults of the recording that must not be told as the program's behaviour."""

import re

import duckdb
import pytest

from conftest import causeway

pytestmark = pytest.mark.slow

FOLDER = "pytorch-amd"


def plain(page):
    """Return the text of a page, with plain spaces."""
    return re.sub(r"<[^>]+>", "", page).replace("\xa0", " ")


def texts(findings):
    """Return every headline, sentence and suggestion, also of further claims, as one text."""
    every = [*findings, *(one for finding in findings for one in finding["also"])]
    return "\n".join(f"{one['headline']} {one['sentence']} {one['suggestion']}" for one in every)


def test_durations_over_their_successors_are_cut(analysed):
    run = analysed(f"{FOLDER}/durations_overrun/trace.json")
    assert run.code == 0, run.printed
    (dataset,) = run.datasets()
    launches = f"'{run.results}/{dataset}/tables/0/launches.parquet'"
    summed, first, last = duckdb.sql(
        f"SELECT sum(duration_ns)::BIGINT, min(start_ns), max(start_ns + duration_ns) FROM {launches}"
    ).fetchall()[0]
    assert (round(summed / 1e6, 3), round((last - first) / 1e6, 3)) == (18.622, 18.736)
    by_kernel = duckdb.sql(
        f"SELECT name, value_sum FROM '{run.results}/{dataset}/kernel_variability/kernels.parquet' ORDER BY name"
    ).fetchall()
    assert [(name, round(time / 1e6, 3)) for name, time in by_kernel] == [("attention_bwd", 15.012), ("gemm", 3.610)]
    efficiency = run.document(f"{dataset}/efficiency.json")
    assert round(efficiency["elapsed_ns"] / 1e6, 3) == 18.736
    busy = sum(one["busy_ns"] for one in efficiency["breakdown"].values())
    assert round(busy / 1e6, 3) == 18.622
    issue = next(one for one in run.document(f"{dataset}/quality.json")["issues"] if one["kind"] == "outlasting")
    assert issue["count"] == 2
    assert "148.998 ms were cut off, at most 89.497 ms of one" in issue["detail"]
    assert "148.998 ms were cut off" in plain(run.overview())
    assert "96.2" not in texts(run.findings())


def test_kernels_of_graphs_that_are_stamped_late_tell_no_step_and_no_idle_time(analysed):
    run = analysed(f"{FOLDER}/graph_kernels_stamped_late/TP0.trace.json")
    assert run.code == 0, run.printed
    (dataset,) = run.datasets()
    steps = run.document(f"{dataset}/steps.json")
    (by_calls,) = steps["by_calls"]
    assert (by_calls["steps"], by_calls["empty"], by_calls["launches"]) == (6, 0, [24, 24, 24])
    assert [round(ns / 1e6, 1) for ns in by_calls["kernel_ns"]] == [4.0, 4.0, 4.0]
    assert steps["slow"] == []
    assert "no step's time and no idle time can be told" in run.document(f"{dataset}/efficiency.json")["why"]
    first = run.findings()[0]
    assert (first["kind"], first["severity"]) == ("recording", "high")
    assert first["headline"] == run.answers("Recording")[0]
    assert "bear times later than they ran: idle time, gaps and step times cannot be known" in first["headline"]
    assert run.answers("Step") == ["By their calls, 6 steps with 24 launches each, 4.02 ms of kernels at the median."]
    assert run.answers("Where") == []
    said = texts(run.findings())
    assert not re.search(r"took [\d,]+ % longer|is lost|mostly for the host|host is late", said)


def test_steps_without_kernels_are_unrecorded_and_no_idleness_of_the_host(analysed):
    run = analysed(f"{FOLDER}/steps_without_kernels/TP0-DECODE.trace.json")
    assert run.code == 0, run.printed
    (dataset,) = run.datasets()
    launch = next(one for one in run.findings() if one["id"].endswith("one_launch"))
    assert launch["headline"] == "One launch of cross_device_reduce_2stage has 99.7 % of all kernel time."
    assert "400 ms of 401 ms" in launch["sentence"]
    assert run.answers("Recording")[0].startswith("14 steps hold neither calls nor kernels")
    assert run.answers("Step")[0].endswith("16 steps with 0 to 90 launches, 14 of them none.")
    assert "cross_device_reduce_2stage: 99.7 % in 1 launch" in run.answers("What fills the time")[0]
    (by_calls,) = run.document(f"{dataset}/steps.json")["by_calls"]
    assert (by_calls["steps"], by_calls["empty"]) == (16, 14)
    assert "no idle time and no reason for it" in run.document(f"{dataset}/efficiency.json")["why"]
    waiting = f"'{run.results}/{dataset}/waiting.parquet'"
    assert duckdb.sql(f"SELECT count(*) FROM {waiting}").fetchall() == [(0,)]
    said = texts(run.findings())
    assert not re.search(r"[Dd]evices wait|is lost|host was late|host is late|CUDA or HIP graphs", said)


def test_the_share_of_steps_is_that_of_their_sum(analysed):
    run = analysed(f"{FOLDER}/share_of_steps/rank0.pt.trace.json")
    assert run.code == 0, run.printed
    (dataset,) = run.datasets()
    (rank,) = run.document(f"{dataset}/steps.json")["ranks"]
    elapsed = run.document(f"{dataset}/efficiency.json")["elapsed_ns"]
    assert (rank["steps"], round(elapsed / 1e6, 2)) == (16, 93.76)
    assert round(100 * rank["time_ns"] / elapsed) == 100
    said = texts(run.findings())
    assert "of the GPU time: what is lost outside of them" not in said
    assert any(one["worth_per_step_ns"] for one in run.findings())


def test_the_refusal_of_another_accelerator_names_what_was_not_read(cases):
    process = causeway("check", cases / FOLDER / "device_events_of_other_category" / "rank0.json")
    assert process.returncode == 1
    assert "20 mtia_ccp_events, 20 mtia_runtime" in process.stdout
    assert "Work of this accelerator is not read" in process.stdout
    assert "ProfilerActivity.CUDA" not in process.stdout

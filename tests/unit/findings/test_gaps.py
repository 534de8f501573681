"""Gaps of devices on the first screen: between which ranges they stand."""

from dataclasses import replace as changed

import first_screen_samples as made
import pytest
from first_screen_samples import MS, replay, run, tables
from tests.unit.waiting.waiting_samples import write_export

from causeway.findings.first_screen.facts import DatasetFacts
from causeway.findings.first_screen.outliers import GapFact, gap_facts
from causeway.findings.first_screen.plan import plan
from causeway.findings.first_screen.run_facts import StepsFact, run_fact
from causeway.findings.first_screen.words import run_words


@pytest.mark.parametrize(
    ("ranges", "between"),
    [
        (["request {}"], "request *"),
        (["request {}", "decode"], "request *"),
        (["request {}", "wait for work"], None),
        (["whole run"], None),
    ],
)
def test_gaps_between_ranges_are_told_by_these(ranges, between, tmp_path):
    """Five requests of 40 ms, one each 200 ms, of four launches each; a range in the gaps says what stands there."""
    spans = {"request {}": (-1, 41), "decode": (20, 40), "wait for work": (60, 180), "whole run": (-1, 199)}
    burst = [(200 * number, number) for number in range(5)]
    launches = [(begin + 10 * i) * MS for begin, _ in burst for i in range(4)]
    rows = [
        {"start_ns": (at + spans[name][0]) * MS, "duration_ns": (spans[name][1] - spans[name][0]) * MS}
        | {"rank": 0, "thread": 1, "kind": "range", "name": name.format(number)}
        for at, number in burst
        for name in ranges
    ]
    tables_of = {"launches": [{"start_ns": at, "duration_ns": 10 * MS, "rank": 0} for at in launches], "ranges": rows}
    write_export(tmp_path / "e0", tables_of)
    given = tables(folders=[tmp_path / "e0"], waiting=[made.wait(640)], replay=[replay("host_free", 640)])
    given.efficiency.update(elapsed_ns=840 * MS, device={"n_devices": 1, "ranks": {"0": {}}})
    given.efficiency["waterfall_ns"] = {"useful": 200 * MS, "orchestration": 640 * MS, "outside": 0}
    (gap,) = gap_facts(given, run_fact(given))
    assert (gap.count, gap.total_ns, gap.between) == (4, 640 * MS, between)
    said = {line.question: line.answer for line in plan(DatasetFacts(given))}
    for question in ("Where", "Outliers"):
        assert ("between one range request * and the next" in said[question]) == (between is not None)
    if between:
        told = "host code that is not recorded 640 ms, 640 ms of it between one range request * and the next."
        assert told in said["Where"]


def test_two_gaps_are_both_named():
    """The longer one of two stood for both."""
    common = {"after": "gemm", "before": "softmax", "per_step": False, "start_ns": 0, "devices": 1}
    gap = GapFact(count=2, total_ns=120 * MS, median_ns=100 * MS, longest_ns=100 * MS, **common)
    assert run_words.of_gap(gap, run()).startswith("2 gaps of 20 ms and 100 ms, after")
    alike = changed(gap, total_ns=190 * MS)
    assert run_words.of_gap(alike, run()).startswith("2 gaps of 100 ms, after")


def test_the_median_of_two_gaps_is_between_them(tmp_path):
    """Gaps of 84.2 and 76.9 ms of torchcodec were told as two of 84.2 ms."""
    launches = [{"start_ns": at * MS, "duration_ns": MS, "rank": 0} for at in (0, 77, 162)]
    write_export(tmp_path / "e0", {"launches": launches})
    given = tables(folders=[tmp_path / "e0"])
    (gap,) = gap_facts(given, run(devices=1))
    assert (gap.count, gap.median_ns, gap.longest_ns) == (2, 80 * MS, 84 * MS)


HOST_RANGES = ("waited for", 300, 400), ("ProfilerStep#1", 290, 420), ("whole batch", 0, 1000)


@pytest.mark.parametrize(("reason", "meanwhile"), [("unknown", "waited for"), ("launch_starved", None)])
def test_what_the_host_does_in_a_gap_is_told_where_calls_do_not_tell_why(reason, meanwhile, tmp_path):
    """A gap of 400 ms between two kernels without calls, in which a synchronising operator runs: "not explained"."""
    of_gemm = {"duration_ns": 300 * MS, "rank": 0}
    ranges = [
        {"start_ns": at * MS, "duration_ns": length * MS, "rank": 0, "thread": 1, "kind": "annotation", "name": name}
        for name, at, length in HOST_RANGES
    ]
    launches = [{"start_ns": at * MS, **of_gemm} for at in (0, 700)]
    write_export(tmp_path / "e0", {"launches": launches, "ranges": ranges})
    given = tables(folders=[tmp_path / "e0"], waiting=[made.wait(400, reason)])
    given.efficiency.update(device={"n_devices": 1, "ranks": {"0": {}}})
    (gap,) = gap_facts(given, run_fact(given))
    assert gap.meanwhile == meanwhile
    ends = ", while the host is in waited for" if meanwhile else ")"
    assert run_words.of_gap(gap, run()).endswith(ends)


@pytest.mark.parametrize(("share", "per_step"), [(0.5, False), (0.9, True)])
def test_gaps_outside_steps_are_not_one_a_step(share, per_step, tmp_path):
    """Twelve steps without gaps, then an evaluation of twelve batches with one each."""
    launches = [{"start_ns": at * 80 * MS, "duration_ns": 20 * MS, "rank": 0} for at in range(13)]
    write_export(tmp_path / "e0", {"launches": launches})
    parts = {"useful": 260 * MS, "orchestration": 720 * MS}
    steps = StepsFact(
        count=12, mean_ns=1, median_ns=1, p99_ns=None, longest_ns=1, parts=parts, share=share, annotated=True
    )
    (gap,) = gap_facts(tables(folders=[tmp_path / "e0"]), run(devices=1, steps=steps))
    assert (gap.count, gap.per_step) == (12, per_step)

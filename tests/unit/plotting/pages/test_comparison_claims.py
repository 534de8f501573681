"""The comparison's page: how the run changed stands first, and bold is only what concerns a share of the GPU time."""

import re

from compared_samples import compared

from causeway.findings.comparison import comparison_findings
from causeway.plotting.pages.comparison_page import draw_comparison


def made(**of_tiny):
    """Return document and rows of two runs as of one public pair (no data loading workers against four): a kernel of
    1 us with 174 us of 640 ms is slower, the run 19 % shorter, its efficiency 0.16 points higher.
    """
    document, rows = compared(["gemm", "tiny", "new"])
    for side, gpu_ns in (("baseline", 640_354_000), ("candidate", 649_808_000)):
        document[side]["gpu_time_ns"] = gpu_ns
    for row in rows:
        is_run = row["level"] == "run"
        row["verdict"] = "inconclusive" if is_run else "same"
        if is_run and row["metric"] == "efficiency":
            row |= {"change_percent": 0.16, "low_percent": 0.11, "high_percent": 0.22, "verdict": "more efficient"}
        if is_run and row["metric"] == "span":
            row |= {"unit": "ns", "baseline_value": 927_970_000, "candidate_value": 747_140_000}
            row |= {"change_percent": -19.49, "low_percent": None, "high_percent": None}
        if row["level"] == "kernel" and row["candidate"] == "tiny" and row["metric"] == "time_per_launch":
            row |= {"change_percent": 24.2, "low_percent": 12.2, "high_percent": 36.9, "verdict": "slower"}
            row |= {"baseline_total_ns": 174_000, "candidate_total_ns": 87_000} | of_tiny
    return document, rows


def head_of(document, rows):
    claims = [finding.headline for finding in comparison_findings(document, rows)]
    page = str(draw_comparison(document, rows, claims, changes="", totals="", ratios=""))
    head = page[page.index("<header") : page.index("<h2>")]
    return head, " ".join(re.findall("<b>(.*?)</b>", head[head.index("</header>") :], re.DOTALL))


def test_span_and_efficiency_stand_first_and_small_changes_are_not_bold():
    head, bold = head_of(*made())
    run = "Span 928 ms → 747 ms, −19.5 % (inconclusive); parallel efficiency 0.9 → 0.902, +0.16 points"
    assert head.index(run) < head.index("[+0.11, +0.22] (more efficient).") < head.index("only small changes")
    candidate = "the_run_after_the_change_of_compiler"
    baseline = "the_run_before_the_change_of_compiler"
    assert bold == f"{candidate}: only small changes from {baseline} are beyond noise."


def test_a_kernel_with_a_share_of_the_gpu_time_on_either_side_is_claimed():
    for side in ("baseline", "candidate"):
        for total, is_claimed in ((6_600_000, True), (6_400_000 if side == "candidate" else 6_300_000, False)):
            _, bold = head_of(*made(**{f"{side}_total_ns": total}))
            assert ("tiny is slower" in bold) == is_claimed
            assert ("only small changes" in bold) != is_claimed


def test_efficiency_is_claimed_from_a_point_on():
    for points, is_claimed in ((-1.2, True), (0.99, False)):
        document, rows = made()
        row = next(one for one in rows if one["metric"] == "efficiency")
        row |= {"change_percent": points, "low_percent": points - 0.1, "high_percent": points + 0.1}
        assert ("more efficient" in head_of(document, rows)[1]) == is_claimed


def test_counters_have_neither_span_nor_efficiency():
    document, rows = made()
    head, _ = head_of(document, [row for row in rows if row["metric"] not in ("span", "efficiency")])
    assert "Span" not in head
    assert "only small changes" in head


def test_a_run_is_slower_than_the_other_and_a_kernel_than_in_it():
    document, rows = compared(["gemm"])
    for row in rows:
        row["verdict"] = "slower" if row["metric"] == "time_per_launch" else "same"
    run, kernel, *_ = comparison_findings(document, rows)
    baseline = "the_run_before_the_change_of_compiler"
    assert run.headline.startswith(f"the_run_after_the_change_of_compiler is slower than {baseline}: ")
    assert run.sentence.startswith(f"the_run_after_the_change_of_compiler is slower than {baseline}: ")
    assert kernel.headline.startswith(f"gemm is slower than in {baseline}: ")
    assert kernel.sentence.startswith(f"Kernel gemm is slower than in {baseline}: ")

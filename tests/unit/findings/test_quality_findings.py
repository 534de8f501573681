"""Findings about inputs that could not be used, what they call them; and about recordings: times that are none of the
program's, and one launch that has most of the time.
"""

import pytest
from made_results import quality

from causeway.core.files.source_names import shown_sources
from causeway.findings.collection import quality_findings
from causeway.findings.kernels import one_launch_findings
from causeway.findings.record import Analysis

CALLS = {"rank": 0, "ranges": "step *", "steps": 6, "empty": 0}
CALLS |= {"launches": [24, 24, 24], "kernel_ns": [4_010_000, 4_020_000, 4_030_000]}


def test_unreadable_inputs_are_named_without_the_folders_of_the_machine():
    """Alone by the file's name; among others by as much as tells them apart."""
    document = quality("refused")
    source = "/home/alice/project/run/r0.sqlite"
    document["exports"][0]["source"] = source
    (alone,) = quality_findings(document)
    assert alone.sentence == "r0.sqlite could not be read and is in no result: zero bytes. Export it again."
    assert alone.subject == "r0.sqlite"
    (among,) = quality_findings(document, shown_sources([source, "/home/alice/project/other/r0.sqlite"]))
    assert among.sentence.startswith("run/r0.sqlite could not be read")
    assert "alice" not in f"{alone} {among}"


def issues_of(*kinds):
    known = {"severity": "caution", "count": 100, "detail": "launches that are late", "rules_out": ["time_line"]}
    return {"dataset": "d", "issues": [known | {"kind": kind, "export": "0"} for kind in kinds], "exports": []}


def row(name, launches, total, largest):
    return {
        "kernel": f"{name}-0123456789",
        "name": name,
        "short_name": name,
        "class": "compute",
        "launches": launches,
        "value_sum": float(total),
        "value_max": float(largest),
    }


def analysis(*rows, target="kernel_variability"):
    return Analysis(dataset="d", target=target, unit="ns", kernels=rows, kernels_table="d/t/kernels.parquet")


@pytest.mark.parametrize(
    ("rows", "share"),
    [
        ((row("wait", 1, 400, 400), row("gemm", 90, 100, 2)), 80.0),
        ((row("wait", 5, 500, 400), row("gemm", 90, 100, 2)), 400 / 6),
        ((row("wait", 1, 90, 90), row("gemm", 90, 100, 2)), None),
        ((row("wait", 1, 400, 400), row("gemm", 3, 100, 50)), None),
    ],
)
def test_one_launch_with_most_of_the_time_is_named(rows, share):
    found = one_launch_findings(analysis(*rows))
    assert [one.effect.value for one in found] == ([] if share is None else [pytest.approx(share)])
    assert one_launch_findings(analysis(*rows, target="memory_stall")) == []

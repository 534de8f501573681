"""Losses of datasets that lack most of their launches: the time in which those ran counts as idle, and decides nothing."""

import re

import pytest
from made_results import efficiency, kernel

from causeway.findings.device_time.efficiency import efficiency_findings
from causeway.findings.device_time.missing_launches import MISSING_LAUNCHES, without_missing
from causeway.findings.device_time.replay_savings import with_replays
from causeway.findings.device_time.waiting import waiting_findings
from causeway.findings.document import DatasetTime, summarise
from causeway.findings.kernels import variability_findings
from causeway.findings.record import Analysis
from causeway.plotting.overview.findings_list import findings_list

REPLAY = {"change": "host_free", "name": None, "step": None, "time_ns": 1_000_000_000, "predicted_ns": 600_000_000}
REPLAY |= {"device_time_ns": 1_000_000_000, "predicted_device_time_ns": 600_000_000, "naive_ns": 0}
REPLAY |= {"limited_by": "kernel", "limited_name": "k"}


def quality(missing, dataset="demo"):
    """Two exports of 60 and 84 launches; what is missing is of both."""
    issues = [{"kind": "missing_dispatches", "count": count, "export": e} for e, count in enumerate(missing)]
    return {
        "dataset": dataset,
        "issues": [*issues, {"kind": "calls_without_launch", "count": 9_000, "export": 0}],
        "exports": [{"rows": 60}, {"rows": 84}],
    }


def document(missing, dataset="demo"):
    lost = {finding.key: finding for finding in efficiency_findings(efficiency(shared=[{"at_once_ns": 7_000_000}]))}
    rows = [{"rank": 0, "device": 0, "step": None, "reason": "launch_starved", "detail": "x", "wait_ns": 790_000_000}]
    waits = waiting_findings("demo", rows, 2_000_000_000, lost["orchestration"])
    lost |= {one.key: one for one in waits}
    del lost["idle"]
    kernels = Analysis(
        dataset="demo",
        target="kernel_variability",
        unit="ns",
        kernels=[kernel(0, 0.6), kernel(1, 0.4)],
        kernels_table="t",
    )
    found = with_replays(
        without_missing(list(lost.values()), [quality(missing, dataset)]), {"demo": [REPLAY]}, {"demo": 2}
    )
    gpu_time = {"demo": DatasetTime(gpu_ns=2_000_000_000)}
    return summarise(found + variability_findings(kernels), gpu_time, "0" * 64)["findings"]


def text(markup):
    return re.sub("<[^>]*>", " ", str(markup))


@pytest.mark.parametrize(
    ("missing", "dataset", "decided"),
    [((40, 105), "demo", False), ((40, 104), "demo", True), ((0, 0), "demo", True), ((40, 105), "other", True)],
)
def test_a_dataset_that_lacks_more_launches_than_it_holds_has_no_loss_that_is_decided(missing, dataset, decided):
    """144 launches are there."""
    found = document(missing, dataset)
    by_key = {one["id"].rpartition("/")[2]: one for one in found}
    loss = by_key["orchestration"]
    first = found[0]["id"].rpartition("/")[2]
    assert by_key["shared_devices"]["verdict"] == "supported", "what runs at once was seen"
    if decided:
        assert (loss["verdict"], loss["severity"], first) == ("supported", "high", "orchestration")
        assert loss["replay"] is not None
        assert "missing" not in loss["sentence"]
        return
    assert (loss["verdict"], loss["severity"]) == ("inconclusive", "low")
    assert [loss[key] for key in ("worth_ns", "recoverable_ns", "recoverable_query", "replay")] == [None] * 4
    assert loss["headline"].endswith("mostly for the host (unsure).")
    assert "145 launches are missing from the exports, which hold 144, and the time in which" in loss["sentence"]
    assert loss["suggestion"] == MISSING_LAUNCHES
    assert [one["verdict"] for one in loss["also"]] == ["inconclusive"], "nor is its reason decided"
    assert {key: one["verdict"] for key, one in by_key.items() if key in ("load_imbalance", "small_kernels")} == {
        "load_imbalance": "inconclusive",
        "small_kernels": "inconclusive",
    }
    assert {one["id"] for one in found[:2]} == {
        by_key["shared_devices"]["id"],
        "demo/kernel_variability/k0/variability",
    }
    assert "inconclusive" in text(findings_list([(0, loss)]))

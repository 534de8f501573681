"""Findings: what is claimed, in which order, and the bound on what a cure could save."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from causeway.errors import TableError
from causeway.findings import Analysis, of_kernels, of_quality, of_search, ranked, recoverable_ns, shortened, summarise
from causeway.tables import write_json

SCHEMA = Path(__file__).resolve().parents[2] / "config" / "schemas" / "findings.schema.json"
NOTHING = "No cause found: 412 effective samples; an effect above 8 % of the variance would have been seen."
SENTENCE = "More bytes raise its deviation (27 % of its variance [21, 33]); found in 95 % of resamples; robustness .38."


@dataclass
class Search:
    graph: dict
    contributions: list
    table: str


def kernel(number=0, share=0.6, target_sum=4_000_000.0):
    facts = {"kernel": f"k{number}", "name": f"void ns::k{number}<4>(int)", "short_name": f"k{number}", "class": "compute"}
    return facts | {"launches": 1000, "target_share": share, "target_sum": target_sum, "robust_cv": 0.21}


def cause(feature="h2d_bytes_in_flight", percent=27.0, verdict="supported"):
    ends = {"contribution_percent": percent, "contribution_low": 21.0, "contribution_high": 33.0}
    return {"feature": feature, "sign": "+", "verdict": verdict, "stability": 0.95, "robustness": 0.38, **ends}


def search(scope="k0", causes=(), sentences=None, verdict="supported", reasons=()):
    rows = list(causes)
    rows += [{**cause("unexplained", 100.0 - sum(row["contribution_percent"] or 0 for row in rows)), "sign": "?"}] if rows else []
    graph = {"scope": scope, "scope_name": None if scope == "dataset" else f"void ns::{scope}<4>(int)", "n_rows": 900, "n_effective": 412.5}
    said = [f"{SENTENCE}" for _ in causes] if sentences is None else sentences
    graph |= {"verdict": verdict if rows else "inconclusive", "sentences": said, "reasons": list(reasons)}
    return Search(graph, rows, f"demo/kernel_variability/causal/{scope}/contributions.parquet")


def analysis(searches=(), kernels=None, target="kernel_variability", unit="ns"):
    kernels = [kernel(0, 0.6), kernel(1, 0.4, 1_000_000.0)] if kernels is None else kernels
    return Analysis("demo", target, unit, kernels, f"demo/{target}/kernels.parquet", searches)


def quality(*statuses):
    error = {"source": "r.sqlite", "found": "zero bytes", "expected": "a database", "advice": "Export it again."}
    exports = [
        {"export": str(i), "source": f"run/r{i}.sqlite", "status": status, "error": None if status == "read" else error}
        for i, status in enumerate(statuses)
    ]
    return {"dataset": "demo", "exports": exports}


def test_the_bound_worked_by_hand():
    # launches of 10, 10, 10 and 30 ns: mean 15, |t - mean| 5 + 5 + 5 + 15 = 30, of which 15 ns lie above the mean
    assert recoverable_ns(100.0, 30.0) == 15
    assert recoverable_ns(40.0, 30.0) == 6
    assert recoverable_ns(0.0, 30.0) == 0
    assert recoverable_ns(None, 30.0) is None


@pytest.mark.parametrize("share", [0.05, 0.3, 0.7, 0.95])
def test_the_bound_holds_when_the_cause_is_taken_away(share):
    rng = np.random.default_rng(5)
    part, rest = rng.normal(0, np.sqrt(share), 200_000), rng.normal(0, np.sqrt(1 - share), 200_000)
    with_cause, without = np.abs(part + rest).sum(), np.abs(rest).sum()
    saved = (with_cause - without) / 2  # time above the mean, before and after
    assert saved <= recoverable_ns(100 * share, with_cause) * 1.001


def test_a_cause_carries_effect_interval_evidence_and_bound():
    (finding,) = of_search(analysis(), search(causes=[cause()]))
    assert finding["sentence"] == f"k0: {SENTENCE}"
    assert finding["effect"] == {"value": 27.0, "low": 21.0, "high": 33.0, "unit": "percent of the variance"}
    assert finding["evidence"] == {"table": "demo/kernel_variability/causal/k0/contributions.parquet", "rows": [0]}
    assert finding["recoverable_ns"] == 540_000, "27 % of half of 4 ms"
    assert (finding["n"], finding["n_effective"], finding["verdict"]) == (900, 412.5, "supported")
    assert finding["link"] == "overview.html#demo--kernel_variability--k0"
    assert finding["id"] == "demo/kernel_variability/k0/cause/h2d_bytes_in_flight"


@pytest.mark.parametrize(
    ("target", "unit", "scope", "verdict"),
    [
        ("memory_stall", "ns", "k0", "supported"),  # a long stall may be hidden work: no time is lost by it
        ("dram_read", "bytes", "k0", "supported"),
        ("y", "", "k0", "supported"),
        ("kernel_variability", "ns", "dataset", "supported"),  # kernels weigh the same there, whatever time they take
        ("kernel_variability", "ns", "k0", "inconclusive"),
        ("kernel_variability", "ns", "k0", "refuted"),
        ("kernel_variability", "ns", "k9", "supported"),  # a kernel without a row in the summary
    ],
)
def test_no_bound_where_it_cannot_be_defended(target, unit, scope, verdict):
    (finding,) = of_search(analysis(target=target, unit=unit), search(scope, [cause(verdict=verdict)]))
    assert finding["recoverable_ns"] is None


def test_a_counter_in_nanoseconds_has_a_bound():
    (finding,) = of_search(analysis(target="gpu_time", unit="ns"), search(causes=[cause()]))
    assert finding["recoverable_ns"] == 540_000


def test_a_search_without_result_is_a_finding():
    (finding,) = of_search(analysis(), search("dataset", sentences=[NOTHING]))
    assert finding["sentence"] == f"All kernels together: {NOTHING}"
    assert (finding["kind"], finding["verdict"], finding["effect"]) == ("no_cause", "inconclusive", None)
    assert finding["evidence"]["table"].endswith("/causal/dataset/graph.json")
    (refused,) = of_search(analysis(), search(sentences=[], reasons=["Refused: 42 effective samples are too few."]))
    assert refused["sentence"] == "k0: Refused: 42 effective samples are too few."


def test_causes_without_their_sentences_stop():
    with pytest.raises(TableError, match="2 causes but 1 sentences"):
        of_search(analysis(), search(causes=[cause(), cause("grid_x")], sentences=[SENTENCE]))


def test_the_kernel_with_the_largest_share_is_named():
    (finding,) = of_kernels(analysis())
    assert finding["sentence"] == "k0 holds 60 % of the kernel variability, in 1,000 of 2,000 launches; robust CV 0.21."
    assert finding["evidence"] == {"table": "demo/kernel_variability/kernels.parquet", "rows": [0]}
    assert of_kernels(analysis(kernels=[])) == []


def test_unreadable_inputs_are_findings():
    refused, partial = of_quality(quality("read", "refused", "partial"))
    assert refused["sentence"] == "run/r1.sqlite could not be read and is in no result: zero bytes. Export it again."
    assert "was read in part" in partial["sentence"]
    assert refused["target"] is None
    assert refused["link"] == "overview.html#demo--quality"


def test_the_most_useful_claim_comes_first():
    causes = [cause("a", 30.0), cause("b", 60.0), cause("c", 5.0, "inconclusive"), cause("d", None)]
    found = summarise(
        [quality("refused")],
        [analysis([search("dataset", [cause("z", 90.0)]), search("k0", causes), search("k1", sentences=[NOTHING])])],
        "0123456789abcdef",
    )["findings"]
    assert [finding["id"].split("/", 2)[2] for finding in found[:4]] == ["k0/cause/b", "k0/cause/a", "dataset/cause/z", "k0/cause/d"]
    assert [finding["kind"] for finding in found[4:]] == ["variability", "cause", "no_cause", "quality"]
    assert ranked(reversed(found)) == found


def test_a_target_without_launches_claims_nothing():
    assert summarise([], [analysis([search(sentences=[NOTHING])], kernels=[])], "0" * 16)["findings"] == []


def test_names_are_cut_not_trusted():
    assert shortened("a\n b") == "a b"
    assert len(shortened("x" * 100_000)) == 60


def test_the_document_fits_its_schema_and_a_wrong_one_does_not(tmp_path):
    found = summarise([quality("refused")], [analysis([search("k0", [cause()]), search("dataset", sentences=[NOTHING])])], "0" * 16)
    write_json(found, tmp_path / "findings.json", "findings")
    assert json.loads((tmp_path / "findings.json").read_text()) == found
    for change in ({"verdict": "true"}, {"surplus": 1}, {"recoverable_ns": -1}, {"sentence": ""}):
        wrong = {**found, "findings": [{**found["findings"][0], **change}]}
        with pytest.raises(TableError, match="findings"):
            write_json(wrong, tmp_path / "wrong.json", "findings")
    assert not (tmp_path / "wrong.json").exists()


def test_every_property_of_the_schema_is_described():
    def undescribed(rule, path):
        for name, part in rule.get("properties", {}).items():
            if "description" not in part and "$ref" not in part:
                yield f"{path}/{name}"
            yield from undescribed(part, f"{path}/{name}")
        if rule.get("type") == "object":
            assert rule["additionalProperties"] is False, path

    schema = json.loads(SCHEMA.read_text())
    assert [*undescribed(schema, ""), *undescribed(schema["$defs"]["finding"], "finding")] == []

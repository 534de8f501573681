"""Findings: what is claimed, in which order, and what it is worth."""

import itertools
import json
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from causeway.core.errors import TableError
from causeway.core.tables import write_json
from causeway.findings.causes import cause_findings, subject_of
from causeway.findings.document import DatasetTime, is_small, summarise
from causeway.findings.efficiency import efficiency_findings
from causeway.findings.kernels import variability_findings
from causeway.findings.quality import quality_findings
from causeway.findings.record import Analysis, Effect, Evidence, Worth
from causeway.findings.stragglers import straggler_findings

SCHEMA = Path(__file__).resolve().parents[3] / "config" / "schemas" / "findings.schema.json"
NOTHING = "No cause found: 412 effective samples; an effect above 8 % of the variance would have been seen."
SENTENCE = (
    "More bytes raise its deviation (27 % of its variance [21, 33]); found in 95 % of resamples; robustness 0.38."
)


@dataclass
class Search:
    graph: dict
    contributions: list
    table: str
    tables: dict = field(default_factory=dict)


def kernel(number=0, share=0.6, target_sum=4_000_000.0):
    facts = {
        "kernel": f"k{number}",
        "name": f"void ns::k{number}<4>(int)",
        "short_name": f"k{number}",
        "class": "compute",
    }
    return facts | {"launches": 1000, "target_share": share, "target_sum": target_sum, "robust_cv": 0.21}


def in_time(mean=4.2, cost=540_000.0, spread=12.0):
    """What a cause does to the duration, as `contributions.parquet` has it, with intervals of a fifth each side."""
    found = {"role": "exposure", "monotone": True, "probability": 0.93, "launches": 900, "determines_time": False}
    for name, value in (("mean", mean), ("p99", 2 * mean), ("spread", spread)):
        ends = sorted((0.8 * value, 1.2 * value))
        found |= {f"{name}_change_percent": value, f"{name}_change_low": ends[0], f"{name}_change_high": ends[1]}
    return found | {"cost_ns": cost, "cost_low": 0.8 * cost, "cost_high": 1.2 * cost}


def cause(feature="h2d_bytes_in_flight", percent=27.0, verdict="supported", sentence=SENTENCE, cost=540_000.0, **facts):
    low, high = (None, None) if percent is None else (0.8 * percent, 1.2 * percent)
    ends = {"contribution_percent": percent, "contribution_low": low, "contribution_high": high}
    ends |= in_time(cost=cost) if cost is not None else {}
    return (
        {"feature": feature, "sign": "+", "verdict": verdict, "stability": 0.95, "robustness": 0.38, **ends}
        | {"sentence": sentence}
        | facts
    )


def search(scope="k0", causes=(), sentences=None, verdict="supported", reasons=()):
    rows = list(causes)
    rows += (
        [
            cause("unexplained", 100.0 - sum(row["contribution_percent"] or 0 for row in rows), sentence=None)
            | {"sign": "?"}
        ]
        if rows
        else []
    )
    graph = {
        "scope": scope,
        "scope_name": None if scope == "dataset" else f"void ns::{scope}<4>(int)",
        "n_rows": 900,
        "n_effective": 412.5,
    }
    sentences = [row["sentence"] for row in causes] if sentences is None else sentences
    graph |= {"verdict": verdict if rows else "inconclusive", "sentences": sentences, "reasons": list(reasons)}
    return Search(graph, rows, f"demo/kernel_variability/causal/{scope}/contributions.parquet")


def analysis(searches=(), kernels=None, target="kernel_variability", unit="ns"):
    kernels = [kernel(0, 0.6), kernel(1, 0.4, 1_000_000.0)] if kernels is None else kernels
    return Analysis(
        dataset="demo",
        target=target,
        unit=unit,
        kernels=kernels,
        kernels_table=f"demo/{target}/kernels.parquet",
        searches=searches,
    )


def quality(*statuses):
    error = {"source": "r.sqlite", "found": "zero bytes", "expected": "a database", "advice": "Export it again."}
    exports = [
        {"export": str(i), "source": f"run/r{i}.sqlite", "status": status, "error": None if status == "read" else error}
        for i, status in enumerate(statuses)
    ]
    return {"dataset": "demo", "exports": exports}


def all_findings(analyses, qualities=()):
    """The findings of some analyses, as the entry script makes them."""
    found = [finding for quality in qualities for finding in quality_findings(quality)]
    for one in analyses:
        found += variability_findings(one)
        found += [finding for search in one.searches for finding in cause_findings(one, search)]
    return found


def test_a_cause_carries_effect_interval_evidence_and_worth():
    (finding,) = cause_findings(analysis(), search(causes=[cause()]))
    assert finding.sentence == f"k0: {SENTENCE}"
    assert finding.effect == Effect(value=4.2, low=0.8 * 4.2, high=1.2 * 4.2, unit="percent of the mean time")
    assert finding.explained == Effect(value=27.0, low=21.6, high=1.2 * 27, unit="percent of the variance")
    assert (finding.p99.value, finding.spread.value) == (8.4, 12.0)
    table = "demo/kernel_variability/causal/k0/contributions.parquet"
    query = f"SELECT mean_change_percent FROM read_parquet('{table}', file_row_number = true) WHERE file_row_number = 0"
    assert finding.evidence == Evidence(table=table, rows=(0,), filter="file_row_number = 0", query=query, value=4.2)
    assert finding.worth == Worth(ns=540_000, low=432_000, high=648_000)
    assert finding.recoverable_ns == 540_000
    assert (finding.subject, finding.quantity, finding.direction) == ("k0", "mean time", "raises")
    assert (finding.role, finding.lever, finding.probability) == ("exposure", "bytes in flight from the host", 0.93)
    assert finding.headline == (
        "k0: mean time rises 4.2 % from low to high bytes copied host-to-device; its variation costs 540 µs of GPU time."
    )
    assert (finding.n, finding.n_effective, finding.verdict) == (900, 412.5, "supported")
    assert finding.link == "overview.html#demo--kernel_variability--k0"
    assert finding.id == "demo/kernel_variability/k0/cause/h2d_bytes_in_flight"


def test_a_cause_without_change_in_time_states_what_it_explains():
    (finding,) = cause_findings(analysis(), search(causes=[cause(cost=None)]))
    assert (finding.quantity, finding.effect.value, finding.worth) == ("explained variance", 27.0, None)
    assert finding.headline == "k0: bytes copied host-to-device explains 27 % of the variance of duration."
    assert finding.suggestion is None, "nobody knows whether time is won"


@pytest.mark.parametrize(
    ("target", "unit", "scope", "verdict", "worth"),
    [
        ("kernel_variability", "ns", "dataset", "supported", 540_000),
        ("gpu_time", "ns", "k0", "supported", 540_000),
        ("memory_stall", "ns", "k0", "supported", None),  # a long stall may be hidden work: no time is lost by it
        ("dram_read", "bytes", "k0", "supported", None),
        ("y", "", "k0", "supported", None),
        ("kernel_variability", "ns", "k0", "inconclusive", None),
        ("kernel_variability", "ns", "k0", "refuted", None),
    ],
)
def test_only_a_supported_cause_of_time_has_something_to_recover(target, unit, scope, verdict, worth):
    (finding,) = cause_findings(analysis(target=target, unit=unit), search(scope, [cause(verdict=verdict)]))
    assert finding.recoverable_ns == worth
    assert (finding.recoverable_query is None) == (worth is None)


@pytest.mark.parametrize(("cost", "whole"), [(1234.5, 1235), (1235.5, 1236), (0.4, 0), (-7.6, -8)])
def test_worth_is_whole_ns_as_its_query_gives_it(tmp_path, cost, whole):
    duckdb = pytest.importorskip("duckdb")
    (finding,) = cause_findings(analysis(), search(causes=[cause(cost=cost)]))
    path = tmp_path / finding.evidence.table
    path.parent.mkdir(parents=True)
    duckdb.execute(f"COPY (SELECT {cost}::DOUBLE AS cost_ns) TO '{path}' (FORMAT parquet)")
    query = finding.recoverable_query.replace(finding.evidence.table, path.as_posix())
    assert finding.worth.ns == whole
    assert finding.recoverable_ns == max(whole, 0) == duckdb.execute(query).fetchone()[0]


@pytest.mark.parametrize(
    ("changes", "advised"),
    [
        ({}, "Move the copies"),
        ({"verdict": "inconclusive"}, None),
        ({"cost_low": -1.0}, "Move the copies"),  # spread is won with the mean
        ({"cost_low": -1.0, "spread_change_low": -1.0}, None),
        (
            {"cost_low": -1.0} | {f"spread_change_{end}": -5.0 - i for i, end in enumerate(("high", "percent", "low"))},
            None,
        ),
        ({f"mean_change_{end}": -5.0 - i for i, end in enumerate(("high", "percent", "low"))}, "Vary this feature"),
        ({"monotone": False}, "Vary this feature"),
    ],
)
def test_advice_needs_time_won_or_spread_won_without_losing_time(changes, advised):
    (finding,) = cause_findings(analysis(), search(causes=[cause(**changes)]))
    assert finding.suggestion is advised if advised is None else finding.suggestion.startswith(advised)


def test_kernels_of_one_short_name_are_told_apart_by_their_id():
    twins = [kernel(0) | {"short_name": "gemm"}, kernel(1) | {"short_name": "gemm"}, kernel(2)]
    assert [subject_of(analysis(kernels=twins), f"k{i}", None) for i in range(3)] == ["gemm (k0)", "gemm (k1)", "k2"]
    assert subject_of(analysis(kernels=twins), "dataset", None) == "All kernels"


def test_one_kernel_is_stated_once():
    alone = analysis([search("dataset", [cause()]), search("k0", [cause()])], [kernel()])
    assert [finding.scope for one in alone.searches for finding in cause_findings(alone, one)] == ["k0"]


def test_a_search_without_result_is_a_finding():
    (finding,) = cause_findings(analysis(), search("dataset", sentences=[NOTHING]))
    assert finding.sentence == f"All kernels together: {NOTHING}"
    assert (finding.kind, finding.verdict, finding.effect) == ("no_cause", "inconclusive", None)
    assert finding.evidence.table.endswith("/causal/dataset/graph.json")
    (refused,) = cause_findings(
        analysis(), search(sentences=[], reasons=["Refused: 42 effective samples are too few."])
    )
    assert refused.sentence == "k0: Refused: 42 effective samples are too few."


def test_causes_without_their_sentences_stop():
    with pytest.raises(TableError, match="no sentence beside grid_x"):
        cause_findings(analysis(), search(causes=[cause(), cause("grid_x", sentence=None)]))


def test_the_kernel_with_the_largest_share_is_named():
    (finding,) = variability_findings(analysis())
    assert finding.sentence == "k0 has 60 % of the kernel variability, in 1,000 of 2,000 launches; robust CV 0.21."
    table = "demo/kernel_variability/kernels.parquet"
    query = f"SELECT 100 * target_share FROM '{table}' WHERE kernel = 'k0'"
    assert finding.evidence == Evidence(table=table, rows=(0,), filter="kernel = 'k0'", query=query, value=60.0)
    assert variability_findings(analysis(kernels=[])) == []


def test_unreadable_inputs_are_findings():
    refused, partial = quality_findings(quality("read", "refused", "partial"))
    assert refused.sentence == "run/r1.sqlite could not be read and is in no result: zero bytes. Export it again."
    assert "was read in part" in partial.sentence
    assert refused.target is None
    assert refused.link == "overview.html#demo--quality"


def test_the_most_useful_claim_comes_first():
    causes = [cause("grid_x", cost=3e5), cause("queue_ns", cost=6e5), cause("grid_y", 5.0, "inconclusive")]
    searches = [search("dataset", [cause("grid_z", cost=5e5)]), search("k0", causes), search("k1", sentences=[NOTHING])]
    searches += [search("k2", [cause("block_x", cost=2e6)])]
    findings = all_findings([analysis(searches)], [quality("refused")])
    found = summarise(findings, {}, "0123456789abcdef")["findings"]
    assert [finding["id"].split("/", 2)[2] for finding in found] == [
        *("k2/cause/block_x", "k0/cause/queue_ns", "dataset/cause/grid_z"),  # by what they are worth
        *("k1/no_cause", "quality/0"),
    ]
    assert [one["id"].split("/", 2)[2] for one in found[1]["also"]] == [
        *("k0/cause/grid_x", "k0/variability", "k0/cause/grid_y"),
    ]
    assert summarise(reversed(findings), {}, "0123456789abcdef")["findings"] == found


def test_of_equal_worth_the_longer_tail_comes_first():
    tail = {"p99_change_percent": 40.0, "p99_change_low": 30.0, "p99_change_high": 50.0}
    one = [search("k0", [cause("grid_x")]), search("k1", [cause("grid_x", **tail)])]
    found = summarise(all_findings([analysis(one, [kernel(2)])]), {}, "0" * 16)["findings"]
    assert [finding["scope"] for finding in found if finding["kind"] == "cause"] == ["k1", "k0"]


@pytest.mark.parametrize(("gpu_ns", "place"), [(50_000_000, 0), (60_000_000, 3), (None, 0)])
def test_what_is_worth_less_than_a_hundredth_of_the_time_is_not_among_the_first(gpu_ns, place):
    """A cause worth .54 ms: of 50 ms it is more than 1 %, of 60 ms less, and where the GPU time is not known nobody
    can say.
    """
    parts = {"useful": 50_000_000, "load_imbalance": 0, "communication": 0, "transfers": 700_000, "orchestration": 0}
    copies = efficiency(elapsed_ns=(gpu_ns or 0) // 2, waterfall_ns=parts)
    found = [
        *variability_findings(analysis(kernels=[kernel(3)])),
        *cause_findings(analysis(target="y", unit=""), search("dataset", [cause(cost=None)])),
        *cause_findings(analysis(), search("k0", [cause()])),
    ]
    found += [finding for finding in efficiency_findings(copies) if finding.id.endswith("transfers")]
    document = summarise(found, {"demo": DatasetTime(gpu_ns=gpu_ns)}, "0" * 16)["findings"]
    ids = [finding["id"].partition("/")[2] for finding in document]
    small = ids.index("kernel_variability/k0/cause/h2d_bytes_in_flight")
    assert small == place + (gpu_ns == 50_000_000), (
        "below copies of .7 ms where these are a finding, else below all claims"
    )
    assert ("dataset/efficiency/transfers" in ids) == (gpu_ns in (50_000_000, 60_000_000))
    (finding,) = cause_findings(analysis(), search("k0", [cause()]))
    weighed = replace(finding, recoverable_share=document[small]["recoverable_share"])
    assert is_small(weighed) == (gpu_ns == 60_000_000)
    assert document[small]["severity"] == ("medium" if gpu_ns == 50_000_000 else "low")


def efficiency(**changes):
    """An `efficiency.json` of two devices over 1 s, as far as findings read it."""
    parts = {"useful": 1_000_000_000, "load_imbalance": 200_000_000, "communication": 0, "transfers": 10_000_000}
    parts["orchestration"] = 2_000_000_000 - sum(parts.values())
    device = {
        "idle_host_ns": 300_000_000,
        "idle_kernel_wait_ns": 100_000_000,
        "idle_other_ns": 0,
        "exposed_memory_ns": 9_000_000,
    }
    path = {"launches": 4000, "small_share": 0.5, "small_time_share": 0.125, "small_kernel_ns": 10_000}
    found = {
        "dataset": "demo",
        "why": None,
        "elapsed_ns": 1_000_000_000,
        "device": {"n_devices": 2},
        "waterfall_ns": parts,
    }
    return found | {"breakdown": {"0/0": device, "1/0": device}, "launch_path": path} | changes


def stragglers(verdict="straggler", pattern="persistent", why=None):
    ranks = [{"rank": r, "share": 0.0, "collectives": 0, "pattern": "none", "waiting_for_it_ns": 0} for r in (4, 7)]
    ranks[1] |= {"share": 0.9, "collectives": 90, "pattern": pattern, "waiting_for_it_ns": 2_500_000} | (
        {"why": why} if why else {}
    )
    group = {
        "communicator": "a'b; DROP TABLE x",
        "n_ranks": 2,
        "collectives": 100,
        "verdict": verdict,
        "threshold_ns": 12_000,
    }
    return {"dataset": "demo", "groups": [group | {"excess_transfer_ns": 800_000, "ranks": ranks}]}


def test_losses_of_gpu_time_are_findings_worth_all_that_is_lost():
    found = {finding.id.rpartition("/")[2]: finding for finding in efficiency_findings(efficiency())}
    assert list(found) == ["load_imbalance", "orchestration", "idle", "small_kernels"], "1 % of the time at least"
    lost = found["load_imbalance"]
    assert lost.sentence.startswith("10 % of the GPU time (200 ms of 2.00 s on 2 devices) is lost to load imbalance")
    assert (lost.recoverable_ns, lost.effect.value) == (200_000_000, 10.0)
    assert found["idle"].effect.value == 75.0
    assert "waits for the host" in found["idle"].sentence
    assert "host is late" in found["idle"].suggestion
    assert (
        found["small_kernels"].sentence
        == "50 % of 4,000 launches are shorter than 10.0 µs and have 12 % of the kernel time."
    )
    assert efficiency_findings(efficiency(why="no launches")) == []
    shared = {
        finding.id: finding
        for finding in efficiency_findings(efficiency(shared=[{"at_once_ns": 7_000_000}, {"at_once_ns": 500_000}]))
    }
    words = shared["demo/dataset/efficiency/shared_devices"].sentence
    assert words == "2 GPUs are shared by several ranks, whose kernels run at once for 7.50 ms in all."


@pytest.mark.parametrize(("alone", "found"), [(100_000_000, False), (200_000_000, True)])
def test_copies_that_are_lost_are_not_counted_twice(alone, found):
    parts = {
        "useful": 1_800_000_000,
        "load_imbalance": 0,
        "communication": 0,
        "transfers": 105_000_000,
        "orchestration": 0,
    }
    device = {"idle_host_ns": 0, "idle_kernel_wait_ns": 0, "idle_other_ns": 0, "exposed_memory_ns": alone // 2}
    document = efficiency(waterfall_ns=parts, breakdown={"0/0": device, "1/0": device})
    assert any(one.id.endswith("exposed_copies") for one in efficiency_findings(document)) is found


@pytest.mark.parametrize(
    ("why", "because", "suggestion"),
    [
        ({"cause": "host", "kernels": [], "clock": None}, "launched late", "host of this rank"),
        (
            {"cause": "compute", "kernels": [{"kernel": "gemm"}], "clock": {"slower": True}},
            "most of all gemm; its clock",
            "kernels of",
        ),
        (None, "for it in all.", "explorer"),
    ],
)
def test_a_late_rank_is_named_with_what_it_costs_and_why(why, because, suggestion):
    (finding,) = straggler_findings(stragglers(why=why))
    assert finding.sentence.startswith(
        "Rank 7 is late in 90 of 100 collectives of communicator a'b; DROP TABLE x; the others wait 2.50"
    )
    assert because in finding.sentence
    assert suggestion in finding.suggestion
    assert finding.recoverable_ns == 2_500_000
    assert finding.id == "demo/dataset/straggler/c0/rank7"
    assert "DROP" not in finding.evidence.query


def test_slow_transfers_and_nobody_late_are_findings_too():
    both = straggler_findings(stragglers("mixed"))
    assert [finding.recoverable_ns for finding in both] == [2_500_000, 800_000]
    (nobody,) = straggler_findings(stragglers("inconclusive", "none"))
    assert (nobody.recoverable_ns, nobody.verdict) == (None, "inconclusive")
    assert "beyond 12.0 µs would have been seen" in nobody.sentence


def test_severity_is_a_matter_of_share_and_verdict():
    found = [
        *efficiency_findings(efficiency()),
        *straggler_findings(stragglers("mixed")),
        *quality_findings(quality("refused", "partial")),
    ]
    found += cause_findings(analysis(), search("k0", [cause(verdict="refuted")]))
    found += cause_findings(analysis(), search("k1", [cause("b", verdict="inconclusive")]))
    document = summarise(found, {"demo": DatasetTime(gpu_ns=2_000_000_000, explorer=True)}, "0" * 16)["findings"]
    by_id = {
        finding["id"].partition("/")[2]: (finding["severity"], finding["recoverable_share"]) for finding in document
    }
    assert by_id["dataset/efficiency/orchestration"] == ("high", 0.395)
    assert by_id["dataset/straggler/c0/rank7"] == ("low", 0.00125)
    assert by_id["dataset/quality/0"][0] == "high"
    assert by_id["dataset/quality/1"][0] == "medium"
    assert [by_id[f"kernel_variability/{name}"][0] for name in ("k0/cause/h2d_bytes_in_flight", "k1/cause/b")] == [
        "none",
        "low",
    ]
    bounds = [finding["recoverable_ns"] for finding in document if finding["recoverable_ns"] is not None]
    assert all(first >= second for first, second in itertools.pairwise(bounds)), "over all kinds"
    assert document[0]["explorer"] is None
    assert [finding["explorer"] for finding in document if finding["kind"] == "cause"] == [
        f"demo/explorer/index.html#finding_{place}"
        for place, finding in enumerate(document)
        if finding["kind"] == "cause"
    ]


def test_the_document_fits_its_schema_and_a_wrong_one_does_not(tmp_path):
    searches = [search("k0", [cause()]), search("dataset", sentences=[NOTHING])]
    found = summarise(all_findings([analysis(searches)], [quality("refused")]), {}, "0123456789abcdef")
    write_json(found, tmp_path / "findings.json", "findings")
    assert json.loads((tmp_path / "findings.json").read_text()) == found
    for change in ({"verdict": "true"}, {"surplus": 1}, {"recoverable_ns": -1}, {"headline": ""}, {"probability": 2}):
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

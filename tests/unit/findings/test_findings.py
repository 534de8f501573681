"""Findings: what is claimed, in which order, and what it is worth."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from made_results import NOTHING, analysis, cause, in_time, kernel, quality, search

from causeway.core.errors import TableError
from causeway.core.tables import write_json
from causeway.findings.causes import cause_findings, subject_of
from causeway.findings.collection import quality_findings
from causeway.findings.document import DatasetTime, is_small, summarise
from causeway.findings.kernels import variability_findings
from causeway.findings.record import Effect, Evidence, Worth

SCHEMA = Path(__file__).resolve().parents[3] / "config" / "schemas" / "findings.schema.json"


def all_findings(analyses, qualities=()):
    """The findings of some analyses, as the entry script makes them."""
    found = [finding for quality in qualities for finding in quality_findings(quality)]
    for one in analyses:
        found += variability_findings(one)
        found += [finding for search in one.searches for finding in cause_findings(one, search)]
    return found


def test_a_cause_carries_effect_interval_evidence_and_worth():
    (finding,) = cause_findings(analysis(), search(causes=[cause()]))
    assert finding.sentence == (
        "k0: from the 10th to the 90th percentile of bytes copied host-to-device, the mean time changes by +4.2 % [3.4, 5]."
        " It explains 27 % [22, 32] of the variance."
    )
    assert finding.effect == Effect(value=4.2, low=0.8 * 4.2, high=1.2 * 4.2, unit="percent of the mean time")
    assert finding.explained == Effect(
        value=27.0, low=21.6, high=1.2 * 27, unit="percent of the variance of the durations"
    )
    assert (finding.p99.value, finding.spread.value) == (8.4, 12.0)
    table = "demo/kernel_variability/causal/k0/contributions.parquet"
    query = f"SELECT mean_change_percent FROM read_parquet('{table}', file_row_number = true) WHERE file_row_number = 0"
    assert finding.evidence == Evidence(table=table, rows=(0,), filter="file_row_number = 0", query=query, value=4.2)
    assert finding.worth == Worth(ns=540_000, low=432_000, high=648_000)
    assert finding.recoverable_ns == 540_000
    assert (finding.subject, finding.quantity, finding.direction) == ("k0", "mean time", "raises")
    assert (finding.role, finding.lever) == ("exposure", "bytes in flight from the host")
    assert finding.headline == (
        "k0: mean time rises 4.2 % from low to high bytes copied host-to-device; its variation costs 540 µs of GPU time."
    )
    assert (finding.n, finding.n_effective, finding.verdict) == (900, 412.5, "supported")
    assert finding.link == "overview.html#demo--kernel_variability--k0"
    assert finding.id == "demo/kernel_variability/k0/cause/h2d_bytes_in_flight"


def test_a_cause_without_change_in_time_states_what_it_explains():
    (finding,) = cause_findings(analysis(), search(causes=[cause(cost=None)]))
    assert (finding.quantity, finding.effect.value, finding.worth) == ("explained variance", 27.0, None)
    assert finding.headline == "k0: bytes copied host-to-device explains 27 % of the variance of the durations."
    assert finding.suggestion is None, "nobody knows whether time is won"
    assert finding.evidence.value == 27.0
    assert finding.evidence.query.startswith("SELECT variance_percent FROM ")


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
    assert finding.recoverable_ns == max(whole, 0) == duckdb.execute(query).fetchall()[0][0]


def test_a_cost_that_may_be_none_is_not_said_and_nothing_is_recovered_by_it():
    """As `vectorized_layer_norm_kernel` of the demo had it: 1.86 ms [-1.11, 4.84]."""
    unclear = cause(cost=1_863_600.0, cost_low=-1_114_690.0, cost_high=4_841_890.0)
    (finding,) = cause_findings(analysis(), search(causes=[unclear]))
    assert "costs" not in finding.headline
    assert (finding.recoverable_ns, finding.recoverable_query) == (None, None)
    assert finding.worth == Worth(ns=1_863_600, low=-1_114_690, high=4_841_890)
    (finding,) = cause_findings(analysis(), search(causes=[unclear | {"cost_low": 1.0}]))
    assert "its variation costs 1.86 ms" in finding.headline
    assert finding.recoverable_ns == 1_863_600


@pytest.mark.parametrize(
    ("feature", "role", "is_known"),
    [
        ("since_start_ns", "clock", False),
        ("step_position", "clock", False),
        ("previous_deviation", "lag", False),
        ("shape_elements", "lever", False),  # of two layers the one with three times the work takes three times as long
        ("shape_bytes", "lever", False),
        ("launched_after", "clock", True),
        ("launch_in_step", "clock", True),
        ("h2d_bytes_in_flight", "exposure", True),
    ],
)
def test_of_time_itself_and_sizes_nobody_knows_what_could_be_saved(feature, role, is_known):
    """A kernel whose matrix shrinks gets faster from launch to launch: not a second of that can be won by acting."""
    (finding,) = cause_findings(analysis(), search(causes=[cause(feature, role=role)]))
    assert (finding.recoverable_ns == 540_000) == is_known
    assert (finding.recoverable_ns is None) != is_known
    assert ("costs 540 µs of GPU time" in finding.headline) == is_known
    assert finding.worth == Worth(ns=540_000, low=432_000, high=648_000)


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
    assert finding.headline.endswith("no cause of varying duration was found in what was recorded.")


def test_a_search_that_was_refused_found_not_nothing():
    few = "Inconclusive: 42 effective samples, fewer than 100."
    (refused,) = cause_findings(analysis(), search(sentences=[few], reasons=[few], p_value=None))
    assert refused.sentence == f"k0: {few}"
    assert refused.headline == "k0: too little data to search for causes of varying duration."
    assert refused.suggestion.startswith("Look at what limits the kernels with the most time")
    (refused,) = cause_findings(analysis(target="y", unit=""), search(sentences=[few], reasons=[few], p_value=None))
    assert refused.suggestion.startswith("Record more launches")  # of what is no time no kernel has most


def test_of_what_does_not_vary_more_launches_are_not_advised():
    reason = "the target is constant: no launch deviates from the mean of its configuration"
    (finding,) = cause_findings(analysis(), search(reasons=[reason], p_value=None))
    assert finding.headline == "k0: duration does not vary within a configuration."
    assert finding.suggestion is None


def test_where_no_column_can_be_a_cause_more_launches_are_not_advised():
    reason = "no feature is left after preparation"
    (finding,) = cause_findings(analysis(), search(reasons=[reason], p_value=None))
    assert finding.headline == "k0: no recorded column can be a cause of varying duration."
    assert finding.suggestion.startswith("Measure more: further counters")


def test_what_barely_varies_is_nothing_to_act_upon():
    """Deviations of 1,120 and 200 ns in 20 ms each, 0.0033 % of them, and on the other side of a hundredth."""
    little = [kernel(0, 0.85, 1_120.0), kernel(1, 0.15, 200.0)]
    little[0]["robust_cv"] = 0.00262
    (finding,) = variability_findings(analysis(kernels=little))
    assert finding.headline == "Duration barely varies: by 0.0033 % in all, most of it in k0."
    assert finding.sentence == (
        "k0 has 85 % of the kernel variability, in 1,000 of 2,000 launches; robust CV 0.0026. That is little: all"
        " launches deviate by 0.0033 % of the launches' time."
    )
    assert finding.suggestion is None
    document = summarise([finding], {"demo": DatasetTime(gpu_ns=40_000_000)}, "0" * 64)
    assert document["findings"][0]["severity"] == "none"
    for sums, severity in ((399_000.0, "none"), (401_000.0, "low")):
        (finding,) = variability_findings(analysis(kernels=[kernel(0, 1.0, sums), kernel(1, 0.0, 0.0)]))
        document = summarise([finding], {"demo": DatasetTime(gpu_ns=40_000_000)}, "0" * 64)
        assert document["findings"][0]["severity"] == severity


def test_what_barely_varies_within_configurations_may_differ_between_them():
    """A robust CV of 1.2 over four grids, and deviations of 0.36 % from their means."""
    of_grids = {"configurations": 4, "robust_cv": 1.2, "variance_between": 0.994}
    (finding,) = variability_findings(analysis(kernels=[kernel(0, 1.0, 72_000.0) | of_grids]))
    assert finding.headline == "Duration barely varies within a configuration: by 0.36 % in all, most of it in k0."
    assert finding.sentence == (
        "k0 has 100 % of the kernel variability, in 1,000 of 1,000 launches; robust CV 1.20 over 4 configurations,"
        " between whose means lies 99.4 % of the variance. That is little: all launches deviate from the means of their configurations by 0.36 % of the launches' time."
    )


def test_of_the_only_kernel_is_said_how_much_it_varies():
    """It has all of the variability, which says nothing: deviations of 760 µs in 20 ms are 3.8 %."""
    (finding,) = variability_findings(analysis(kernels=[kernel(0, 1.0, 760_000.0)]))
    assert finding.headline == "k0 is the only kernel; its 1,000 launches deviate by 3.8 % in all."
    (finding,) = variability_findings(analysis(kernels=[kernel(0, 1.0)], target="memory_stall"))
    assert finding.headline == "k0 has 100 % of the memory stall, in 1,000 launches."
    assert finding.sentence.endswith("; robust CV of their durations 0.21."), "that table's CV is of durations"


def test_the_kernel_with_the_largest_share_is_named():
    (finding,) = variability_findings(analysis())
    assert finding.sentence == "k0 has 60 % of the kernel variability, in 1,000 of 2,000 launches; robust CV 0.21."
    table = "demo/kernel_variability/kernels.parquet"
    query = f"SELECT 100 * target_share FROM '{table}' WHERE kernel = 'k0'"
    assert finding.evidence == Evidence(table=table, rows=(0,), filter="kernel = 'k0'", query=query, value=60.0)
    assert variability_findings(analysis(kernels=[])) == []
    assert variability_findings(analysis(kernels=[kernel(0, share=0.0)])) == []


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


def test_sizes_of_the_work_stand_behind_losses_and_before_what_is_small_most_time_first():
    sizes = {key: cause("shape_elements", role="lever", cost=ns) for key, ns in (("k0", 1e6), ("k1", 5e6))}
    searches = [search(key, [one]) for key, one in sizes.items()]
    searches += [search("k2", [cause("queue_ns", cost=2e6)]), search("k3", [cause("queue_ns", cost=2e5)])]
    searches += [search("dataset", [cause("previous_deviation", role="lag", cost=9e6)])]
    kernels = [kernel(number) for number in range(4)]
    found = summarise(all_findings([analysis(searches, kernels)]), {"demo": DatasetTime(gpu_ns=10**8)}, "0" * 16)
    causes = [one["scope"] for one in found["findings"] if one["kind"] == "cause"]
    assert causes == ["k2", "dataset", "k1", "k0", "k3"]


def test_of_equal_worth_the_longer_tail_comes_first():
    tail = {"p99_change_percent": 40.0, "p99_change_low": 30.0, "p99_change_high": 50.0}
    one = [search("k0", [cause("grid_x")]), search("k1", [cause("grid_x", **tail)])]
    found = summarise(all_findings([analysis(one, [kernel(2)])]), {}, "0" * 16)["findings"]
    assert [finding["scope"] for finding in found if finding["kind"] == "cause"] == ["k1", "k0"]


@pytest.mark.parametrize(("gpu_ns", "place"), [(50_000_000, 0), (60_000_000, 2), (None, 0)])
def test_what_is_worth_less_than_a_hundredth_of_the_time_is_not_among_the_first(gpu_ns, place):
    """A cause worth .54 ms: of 50 ms it is more than 1 %, of 60 ms less, and where the GPU time is not known nobody
    can say.
    """
    found = [
        *variability_findings(analysis(kernels=[kernel(3)])),
        *cause_findings(analysis(target="y", unit=""), search("dataset", [cause(cost=None)])),
        *cause_findings(analysis(), search("k0", [cause()])),
    ]
    document = summarise(found, {"demo": DatasetTime(gpu_ns=gpu_ns)}, "0" * 16)["findings"]
    ids = [finding["id"].partition("/")[2] for finding in document]
    small = ids.index("kernel_variability/k0/cause/h2d_bytes_in_flight")
    assert small == place
    (finding,) = cause_findings(analysis(), search("k0", [cause()]))
    weighed = replace(finding, recoverable_share=document[small]["recoverable_share"])
    assert is_small(weighed) == (gpu_ns == 60_000_000)
    assert document[small]["severity"] == ("medium" if gpu_ns == 50_000_000 else "low")


def test_the_document_fits_its_schema_and_a_wrong_one_does_not(tmp_path):
    searches = [search("k0", [cause()]), search("dataset", sentences=[NOTHING])]
    found = summarise(all_findings([analysis(searches)], [quality("refused")]), {}, "0123456789abcdef")
    write_json(found, tmp_path / "findings.json", "findings")
    assert json.loads((tmp_path / "findings.json").read_text()) == found
    for change in ({"verdict": "true"}, {"surplus": 1}, {"recoverable_ns": -1}, {"headline": ""}):
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


def collective(number):
    return kernel(number) | {"class": "communication"}


def test_a_cause_of_the_time_of_a_collective_is_worth_nothing_and_advises_to_look_for_the_late_rank():
    """Rank 2 of four computes for 10 ms longer than the others, which wait in the collective: it is 10 ms shorter on
    rank 2, and making it as short everywhere, 30 ms of GPU time, moves no work.
    """
    rank = cause("rank", level="2", **in_time(-20.0, cost=30e6))
    own = [search("k0", [rank]), search("k1", [cause(cost=400_000.0)])]
    kernels = [collective(0), kernel(1)]
    found = [one for part in own for one in cause_findings(analysis(own, kernels), part)]
    found += variability_findings(analysis(own, [collective(0), kernel(1, 0.1)]))
    waits, spends, varies = found
    assert (waits.worth, waits.recoverable_ns, waits.recoverable_query) == (None, None, None)
    assert waits.headline == "k0: mean time falls 20 % with rank = 2."
    for one in (waits, varies):
        assert "time of a collective includes waiting for the last rank" in one.suggestion
        assert "move the work" not in one.suggestion
    assert spends.recoverable_ns == 400_000
    document = summarise(found, {"demo": DatasetTime(gpu_ns=100_000_000)}, "0")
    assert document["dropped"] == []
    assert [one["scope"] for one in document["findings"]] == ["k1", "k0"]
    unsure = cause_findings(analysis(own, kernels), search("k0", [rank | {"verdict": "inconclusive"}]))
    assert unsure[0].suggestion is None


def test_a_counter_of_a_collective_is_no_waiting():
    counted = analysis(kernels=[collective(0)], target="dram_bytes", unit="bytes")
    (found,) = cause_findings(counted, search("k0", [cause("rank", level="2")]))
    assert "collective" not in found.suggestion

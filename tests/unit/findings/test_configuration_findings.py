"""The kernel that deviates most between its configurations: when it is named, and in which words."""

import duckdb
import pyarrow as pa
import pytest
from made_results import analysis, cause, kernel, search

from causeway.core.tables import SCHEMAS, write_table
from causeway.findings.causes import cause_findings
from causeway.findings.folding import folded
from causeway.findings.headlines import MOST_WORDS, word_count
from causeway.findings.kernels import configuration_findings, variability_findings
from causeway.findings.suggestions import COLLECTIVE, CONFIGURATIONS, ITS_LAUNCHES, SIZES, THIS_KERNEL


def several(number=0, between=3_000_000.0, within=1_000_000.0, **more):
    """Return a kernel of 20 ms in 40 configurations that deviates so much between them and within them, ns."""
    facts = {"configurations": 40, "variance_between": 0.92, "between_sum": between}
    facts |= {"size_variance": 0.85, "size_constant": 1500.0, "size_slope": 0.0188}
    return kernel(number, 0.5, within) | facts | more


def test_it_is_named_with_the_line_over_its_threads():
    (finding,) = configuration_findings(analysis(kernels=[several(), several(1, 2_000_000.0)]))
    assert finding.headline == "k0 deviates by 15 % between its 40 configurations; threads explain 85 %."
    assert word_count(finding.headline, finding.subject) <= MOST_WORDS
    assert finding.sentence == (
        "k0 has 50.0 % of the kernels' time. Its launches deviate from its mean by 3.00 ms as they are of 40"
        " configurations, and by 1 ms within these: between these lies 92.0 % of the variance. A straight line in a"
        " launch's threads explains 85.0 % of it: 1.5 µs and 18.8 µs for each million threads. In 1 more that comes to"
        " 2.00 ms."
    )
    assert finding.suggestion == SIZES
    assert finding.worth is None
    assert finding.id == "demo/kernel_variability/k0/variability/configurations"


@pytest.mark.parametrize("size_variance", [0.49, None])
def test_where_threads_explain_less_than_half_it_is_not_said_of_them(size_variance):
    line = dict.fromkeys(("size_constant", "size_slope")) if size_variance is None else {}
    (finding,) = configuration_findings(analysis(kernels=[several(size_variance=size_variance, **line)]))
    assert finding.headline == "k0 deviates by 15 % between its 40 configurations."
    assert finding.sentence.endswith("between these lies 92.0 % of the variance.")
    assert finding.suggestion == CONFIGURATIONS


def test_of_a_collective_it_says_where_to_look():
    """Its time includes waiting, whatever its grid."""
    (finding,) = configuration_findings(analysis(kernels=[several() | {"class": "communication"}]))
    assert finding.suggestion == COLLECTIVE


def test_launches_that_each_have_a_configuration_deviate_by_nothing_within_it():
    (finding,) = configuration_findings(analysis(kernels=[several(within=0.0)]))
    assert "and by nothing within these" in finding.sentence


@pytest.mark.parametrize(
    "kernels",
    [
        [kernel()],
        [several(between=900_000.0)],
        [several(between=150_000.0, within=0.0)],
    ],
    ids=["one configuration", "less than within them", "less than 1 % of the time"],
)
def test_it_is_not_named_where_that_is_little(kernels):
    assert configuration_findings(analysis(kernels=kernels)) == []


def test_only_of_times():
    """Of the memory stall the table's values are durations as well, which the kernel variability tells of."""
    assert configuration_findings(analysis(kernels=[several()], target="memory_stall")) == []
    assert configuration_findings(analysis(kernels=[])) == []


def test_its_number_stands_in_the_table(tmp_path, monkeypatch):
    (finding,) = configuration_findings(analysis(kernels=[several(1), several(0, 5_000_000.0)]))
    schema = SCHEMAS["kernel_summary"]
    nothing = {field.name: [] if pa.types.is_list(field.type) else 0 for field in schema}
    rows = [nothing | several(1), nothing | several(0, 5_000_000.0)]
    write_table(pa.Table.from_pylist(rows, schema=schema), tmp_path / finding.evidence.table, "kernel_summary")
    monkeypatch.chdir(tmp_path)
    assert duckdb.sql(finding.evidence.query).fetchall() == [(5_000_000.0,)]
    assert finding.evidence.rows == (1,)


@pytest.mark.parametrize(
    ("scope", "verdicts", "kernels", "stands"),
    [
        ("k0", ["supported"], 2, True),
        ("k0", ["inconclusive", "supported"], 2, True),
        ("k0", ["inconclusive"], 2, False),
        ("k0", [], 2, False),  # two launches, nothing was searched
        ("k1", ["supported"], 2, False),
        ("dataset", ["supported"], 2, False),
        ("dataset", ["supported"], 1, True),  # the only kernel
    ],
)
def test_the_kernel_that_varies_most_is_not_sent_to_causes_that_were_not_found(scope, verdicts, kernels, stands):
    searches = [search(scope, [cause(verdict=verdict) for verdict in verdicts])]
    rows = [kernel(number, 0.6 - 0.2 * number) for number in range(kernels)]
    (finding,) = variability_findings(analysis(searches, rows))
    assert finding.scope == "k0"
    assert finding.suggestion == (THIS_KERNEL if stands else ITS_LAUNCHES)


@pytest.mark.parametrize(
    ("counter", "group", "is_total"),
    [
        ("dram_bytes", "memory system activity", True),
        ("sm__sass_thread_inst_executed_op_ffma_pred_on_sum", "counters", True),
        ("TCC_HIT_sum", "counters", True),
        ("l2_hit_ratio", "memory system activity", False),
        ("sm__inst_executed_avg_per_cycle_active", "counters", False),
        ("h2d_bytes_in_flight", "contention", False),  # of other work
    ],
)
def test_a_total_of_a_launch_promises_no_saving(counter, group, is_total):
    """As of a sweep over the sizes of a pooling kernel: 22 of 29.5 ms were to be saved if every launch moved as few
    bytes as the smallest.
    """
    row = cause(counter, cost=400_000.0, group=group, determines_time=False)
    (finding,) = cause_findings(analysis(target="gpu_time"), search("k0", [row]))
    assert (finding.recoverable_ns is None) == is_total
    assert ("its variation costs 400 µs" in finding.headline) != is_total
    assert finding.worth.ns == 400_000


def test_of_totals_that_promise_nothing_the_one_that_costs_most_stands_in_front():
    """Of two that move together, as bytes and instructions, one was given the sign of a correction."""
    rows = [cause("a_sum", cost=400_000.0, group="counters"), cause("dram_bytes", cost=900_000.0, group="counters")]
    found = cause_findings(analysis(target="gpu_time"), search("k0", rows))
    for order in (found, found[::-1]):
        (main,) = folded(order)
        assert (main.key, [one.key for one in main.also]) == ("dram_bytes", ["a_sum"])

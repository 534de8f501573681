"""The first screen of counters without durations: it was empty."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from first_screen_samples import tables

from causeway.findings.first_screen.advice import of_rule
from causeway.findings.first_screen.counted_work import PeakFact, rule_facts
from causeway.findings.first_screen.facts import DatasetFacts
from causeway.findings.first_screen.plan import plan
from causeway.findings.first_screen.words import work_words


def answers(folder, values, counters, **of_run):
    """Return what is said of four launches of two kernels, the second and the fourth of copy_kernel."""
    tables_of = {
        "counters": {"configuration": [0, 1, 0, 1], **counters},
        "configurations": {"configuration": [0, 1], "kernel": [0, 1]},
        "kernels": {"kernel": [0, 1], "short_name": ["gemm_kernel", "copy_kernel"]},
    }
    for name, columns in tables_of.items():
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    given = tables(
        folders=[folder],
        capabilities=[{"tables": {"counters": 4}, "values": values}],
        **{"efficiency": {}, "targets": {}, **of_run},
    )
    return [(line.question, line.answer) for line in plan(DatasetFacts(given))]


def test_what_counters_add_up_to_is_said_with_the_kernel_that_has_most(tmp_path):
    """`ncu --metrics dram__bytes.sum` alone, as many record it."""
    counters = {"dram_bytes": [1e6, 9e6, 1e6, 9e6], "clock": [1e9] * 4, "op_ffma_sum": [4.0, None, 4.0, 0.0]}
    assert answers(tmp_path, {"dram_bytes": "bytes", "clock": "Hz", "op_ffma_sum": ""}, counters) == [
        ("Run", "4 launches with counters; without durations, so where the time goes is not known."),
        ("What fills the time", "dram_bytes: 20 MB in all, 90 % in copy_kernel."),
        ("What fills the time", "op_ffma_sum: 8 in all, 100 % in gemm_kernel."),
    ]


@pytest.mark.parametrize("memory", ["gpu_comp_mem", "gpu_dram"])
@pytest.mark.parametrize(("time", "weight"), [({}, "2 launches"), ({"gpu_time": [10.0, 1.0, 30.0, 1.0]}, "40 ns")])
def test_what_kernels_reach_of_the_device_needs_no_durations(time, weight, memory, tmp_path):
    counters = {"sm_throughput": [0.8, 0.1, 0.6, 0.1], memory: [0.3, 0.9, 0.3, 0.9]}
    said = [text for question, text in answers(tmp_path, {}, counters | time) if question == "Of the device's peak"]
    compute = "60" if not time else "65"  # of the launch in the middle, or means over their time
    assert f"gemm_kernel ({weight}): compute {compute} % of peak, memory 30 % of peak; bound by compute." in said
    assert len(said) == 2


@pytest.mark.parametrize(
    ("compute", "memory", "said"),
    [
        ([0.9, 0.1, 0.1], [0.1, 0.9, 0.9], "compute 10 % of peak, memory 90 % of peak; bound by memory."),
        ([0.9, 0.9, 0.1], [0.2, 0.1, 0.9], "compute 90 % of peak, memory 10 % of peak; bound by compute."),
        ([0.9, None, 0.2], [0.2, None, 0.7], "compute 20 % of peak, memory 70 % of peak; bound by memory."),
    ],
)
def test_what_bounds_a_kernel_rests_on_one_launch(tmp_path, compute, memory, said):
    """Medians of compute and of memory may be of two launches, and those of an even number of none."""
    counters = {"configuration": [0] * 3, "sm_throughput": compute, "gpu_dram": memory}
    (told,) = [text for question, text in answers(tmp_path, {}, counters) if question == "Of the device's peak"]
    assert told == f"gemm_kernel (3 launches): {said}"


def test_a_warm_up_does_not_count_where_nothing_tells_how_long_it_ran(tmp_path):
    """The mean of one launch of few blocks and of three that fill the device is what none of them reached."""
    counters = {"configuration": [0] * 4, "occupancy_ratio": [0.14, 0.85, 0.86, 0.85]}
    said = [text for question, text in answers(tmp_path, {}, counters) if question == "Of the device's peak"]
    assert said == ["gemm_kernel (4 launches): occupancy 85 %."]


def test_what_is_of_one_unit_of_the_device_does_not_add_up(tmp_path):
    """`ncu --metrics smsp__sass_thread_inst_executed_op_fadd_pred_on` gives mean, most and least of the partitions."""
    name = "smsp__sass_thread_inst_executed_op_fadd_pred_on"
    per_unit = {f"{name}_{rollup}": [100.0, 0.0, 120.0, 0.0] for rollup in ("avg", "max", "min")}
    counters = {**per_unit, f"{name}_sum": [8000.0, 0.0, 9600.0, 0.0]}
    said = answers(tmp_path, dict.fromkeys(counters, "instructions"), counters)
    assert [text for question, text in said if question == "What fills the time"] == [
        f"{name}_sum: 17,600 instructions in all, 100 % in gemm_kernel."
    ]


def test_a_kernel_without_a_value_reaches_nothing_of_the_device(tmp_path):
    """Values that are words make a column of text; a metric of one kernel alone is empty for the other."""
    counters = {"sm_throughput": [0.8, None, 0.8, None], "gpu_dram": ["n/a"] * 4, "op_ffma_sum": ["n/a"] * 4}
    assert answers(tmp_path, {"op_ffma_sum": ""}, counters) == [
        ("Run", "4 launches with counters; without durations, so where the time goes is not known."),
        ("Of the device's peak", "gemm_kernel (2 launches): compute 80 % of peak; bound by compute."),
    ]


@pytest.mark.parametrize(
    ("compute", "memory", "said"),
    [
        (0.1, None, "gemm (2 launches): compute 10 % of peak, occupancy 20 %."),
        (None, None, "gemm (2 launches): occupancy 20 %."),
        (None, 0.9, "gemm (2 launches): memory 90 % of peak, occupancy 20 %; bound by memory."),
        (
            0.1,
            0.2,
            "gemm (2 launches): compute 10 % of peak, memory 20 % of peak, occupancy 20 %; bound by neither: small"
            " launches or latency.",
        ),
    ],
)
def test_what_was_not_measured_bounds_no_kernel(compute, memory, said):
    """With the occupancy alone "bound by neither" was said."""
    fact = PeakFact(kernel="gemm", total_ns=0, launches=2, compute=compute, memory=memory, occupancy=0.2)
    assert work_words.of_peak(fact) == said


@pytest.mark.parametrize(("timed", "first"), [(True, "copy"), (False, "gemm")])
def test_the_rule_that_saves_most_is_advised(timed, first):
    """With durations what it saves of all kernels, without them what it says of its kernel; less than 1 % is not said."""
    rules = [
        {
            "kernel": "gemm",
            "rule": "Occupancy",
            "speedup": 0.5,
            "text": "A warp is a group of threads. Too few warps, 1.5 of 8. See the guide.",
        },
        {"kernel": "copy", "rule": "Uncoalesced", "speedup": 0.3, "text": "Sectors (75% of 8) are unused. Look."},
        {"kernel": "copy", "rule": "Stall", "speedup": 0.2, "text": "Waits."},
        {"kernel": "tiny", "rule": "Stall", "speedup": 0.009, "text": "Waits."},
    ]
    rows = [{"short_name": name, "value_sum": ns} for name, ns in (("gemm", 100.0), ("copy", 900.0), ("tiny", 9.0))]
    given = tables(targets={"gpu_time": rows} if timed else {}, capabilities=[{"tables": {}, "rules": rules}])
    facts = rule_facts(given)
    assert [fact.kernel for fact in facts] == (["copy", "gemm"] if timed else ["gemm", "copy"])
    assert facts[0].kernel == first
    said = {of_rule(fact).words: of_rule(fact).saved_ns for fact in facts}
    of_all = {share: f", {share} of all kernels' time" if timed else "" for share in ("5 %", "27 %")}
    rule = "Nsight Compute's rule"
    assert said == {
        f"gemm: {rule} Occupancy estimates a speedup of 50 %{of_all['5 %']}. Too few warps, 1.5 of 8.": 50 * timed,
        f"copy: {rule} Uncoalesced estimates a speedup of 30 %{of_all['27 %']}. Sectors (75% of 8) are unused.": 270
        * timed,
    }


def test_launches_without_a_counter_do_not_lower_its_mean(tmp_path):
    counters = {"sm_throughput": [0.8, 0.1, None, 0.1], "gpu_time": [10.0, 1.0, 30.0, 1.0]}
    said = [text for question, text in answers(tmp_path, {}, counters) if question == "Of the device's peak"]
    assert said[0] == "gemm_kernel (40 ns): compute 80 % of peak; bound by compute."


def test_the_occupancy_of_amds_counters_is_a_share(tmp_path):
    """`rocprofv3 --pmc OccupancyPercent`: nothing of it was said."""
    counters = {"OccupancyPercent": [20.0, 4.0, 30.0, 4.0], "gpu_time": [1.0, 9.0, 1.0, 9.0]}
    said = [text for question, text in answers(tmp_path, {}, counters) if question == "Of the device's peak"]
    assert said == ["copy_kernel (18 ns): occupancy 4 %.", "gemm_kernel (2 ns): occupancy 25 %."]


def test_counters_that_do_not_add_up_are_told_by_their_means(tmp_path):
    """Metrics of rocprof: of them nothing was said."""
    counters = {"GPUBusy": [100.0, 50.0, None, 60.0], "names": ["a", "b", "c", "d"]}
    assert answers(tmp_path, {"GPUBusy": "percent", "names": ""}, counters)[1:] == [
        ("What fills the time", "On average: GPUBusy 70 %.")
    ]


def test_counters_beside_times_are_told_too_those_in_per_cent_first(tmp_path):
    """rocprof with metrics and `--timestamp on`: only the times were said."""
    counters = {
        "VALUInsts": [8.0, 2.0, 5.0, 1.0],
        "VALUBusy": [60.0, 70.0, 80.0, 70.0],
        "gpu_time": [1.0, 9.0, 1.0, 9.0],
    }
    units = {"VALUInsts": "", "VALUBusy": "percent", "gpu_time": "ns"}
    row = {"operator": None, "class": "compute", "launches": 2, "value_median": 1.0}
    rows = [
        {**row, "kernel": number, "short_name": name, "name": name, "value_sum": total}
        for number, (name, total) in enumerate((("gemm_kernel", 2.0), ("copy_kernel", 18.0)))
    ]
    said = answers(tmp_path, units, counters, targets={"gpu_time": rows}, units={"gpu_time": "ns"})
    assert said[-1] == ("What fills the time", "On average: VALUBusy 70 %, VALUInsts 4.")

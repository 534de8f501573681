"""The first screen of counters without durations: it was empty."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from first_screen_samples import tables

from causeway.findings.first_screen import words
from causeway.findings.first_screen.facts import DatasetFacts
from causeway.findings.first_screen.plan import plan
from causeway.findings.first_screen.work import PeakFact


def answers(folder, values, counters):
    """Return what is said of four launches of two kernels, the second and the fourth of copy_kernel."""
    tables_of = {
        "counters": {"configuration": [0, 1, 0, 1], **counters},
        "configurations": {"configuration": [0, 1], "kernel": [0, 1]},
        "kernels": {"kernel": [0, 1], "short_name": ["gemm_kernel", "copy_kernel"]},
    }
    for name, columns in tables_of.items():
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
    given = tables(
        efficiency={}, targets={}, folders=[folder], capabilities=[{"tables": {"counters": 4}, "values": values}]
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
    compute = "70" if not time else "65"  # means over the launches, or over their time
    assert f"gemm_kernel ({weight}): compute {compute} % of peak, memory 30 % of peak; bound by compute." in said
    assert len(said) == 2


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
    assert words.of_peak(fact) == said

"""What stands beside: kernels of another rank on the same GPU, copies more numerous than launches, memory that is set."""

from dataclasses import replace

import first_screen_samples as made
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from first_screen_samples import MS, idle, run, tables

from causeway.findings.first_screen import losses, work
from causeway.findings.first_screen.advice import advice
from causeway.findings.first_screen.losses import CopiesFact, LossFact
from causeway.findings.first_screen.words import run_words, work_words
from causeway.findings.first_screen.work import variation_facts


@pytest.mark.parametrize("memory", ["pinned", "pageable"])
def test_many_small_copies_are_to_be_copied_at_once(memory):
    """4,800 copies of 4 kB before 60 launches: "copy on a stream of its own" and "wait less often" were said, and "pin
    the host's memory" of pageable ones.
    """
    copy = CopiesFact(
        kind=1,
        direction="host to device",
        total_ns=6 * MS,
        copies=4800,
        bytes=4800 * 4096,
        gb_per_s=3.2,
        memory=memory,
    )
    gain = losses.Gain(saved_ns=15 * MS, row={}, columns=("time_ns", "predicted_ns"))
    fact = LossFact(part="transfers", lost_ns=6 * MS, overlap_ns=6 * MS, gain=gain, copies=(copy,))
    said = advice(run(launches=60), [], [idle([("start_up", "", 12)], won_ms=9), fact], [], [])
    assert [step.words.split(":")[0] for step in said] == ["Gather what goes host to device and copy it at once"]
    assert "at once" not in advice(run(launches=4800), [], [fact], [], [])[0].words


def test_memory_that_is_set_is_no_copy():
    rates = {"bytes": 10**9, "gb_per_s": 1000.0, "memory": None}
    copy = CopiesFact(kind=255, direction="memset", total_ns=90 * MS, copies=2, **rates)
    fact = LossFact(part="transfers", lost_ns=90 * MS, copies=(copy,))
    assert "1 GB set by memset in 2 calls" in run_words.of_loss(fact, run(devices=1, ranks=1))
    assert advice(run(), [], [fact], [], [])[0].words.startswith("Set less memory")


def test_a_kernel_that_is_slower_beside_another_rank_on_its_gpu_is_told_so(tmp_path):
    """100 launches of a server; every second meets a kernel of the trainer on the same GPU, which takes its time."""
    lengths = [490 if at % 2 else 250 for at in range(100)]
    tables_of = {
        "launches": {
            "rank": [0] * 100 + [1] * 50,
            "device": [0] * 150,
            "configuration": [0] * 100 + [1] * 50,
            "start_ns": [1000 * at for at in range(100)] + [1000 * at - 100 for at in range(1, 100, 2)],
            "duration_ns": lengths + [600] * 50,
        },
        "configurations": {"configuration": [0, 1], "kernel": [0, 1]},
        "kernels": {"kernel": [0, 1], "short_name": ["attention", "gemm"], "class": ["compute"] * 2},
    }
    for name, values in tables_of.items():
        pq.write_table(pa.table(values), tmp_path / f"{name}.parquet")
    what = "beside work of another rank on the same GPU"
    of = replace(tables(efficiency={"shared": [{"devices": {"0/0": {}, "1/0": {}}}]}), folders=[tmp_path])
    assert work._slower(of, "attention") == (what, 490, 250)
    assert work._slower(replace(of, efficiency={"shared": []}), "attention") is None
    (fact,) = variation_facts(tables(targets={"kernel_variability": [made.kernel("fan", cost_ms=300)]}), run())
    said = work_words.of_variation(replace(fact, slower=(what, 490_000.0, 250_000.0)), run())
    assert "Beside work of another rank on the same GPU it takes 490 µs, else 250 µs." in said


def test_a_kernel_that_is_slower_beside_collectives_is_told_so(tmp_path):
    """Products of 500 ns, of which every second one has an all-reduce on another stream beside it: 675 ns."""
    tables_of = {
        "launches": {
            "rank": [0] * 120,
            "device": [0] * 120,
            "configuration": [0] * 80 + [1] * 40,
            "start_ns": [1000 * at for at in range(80)] + [1000 * at - 100 for at in range(1, 80, 2)],
            "duration_ns": [675 if at % 2 else 500 for at in range(80)] + [250] * 40,
        },
        "configurations": {"configuration": [0, 1], "kernel": [0, 1]},
        "kernels": {
            "kernel": [0, 1],
            "short_name": ["gemm", "ncclDevKernel_AllReduce"],
            "class": ["compute", "communication"],
        },
    }
    for name, values in tables_of.items():
        pq.write_table(pa.table(values), tmp_path / f"{name}.parquet")
    of = replace(tables(efficiency={"shared": []}), folders=[tmp_path])
    assert work._slower(of, "gemm") is None, "all end before the middle of a product"
    tables_of["launches"]["duration_ns"][80:] = [900] * 40
    pq.write_table(pa.table(tables_of["launches"]), tmp_path / "launches.parquet")
    assert work._slower(of, "gemm") == ("beside collectives on its GPU", 675, 500)


def test_pageable_copies_are_to_be_pinned_without_kernels_too():
    """A benchmark of copies alone: pageable memory was told, but not what helps."""
    copy = CopiesFact(
        kind=2,
        direction="device to host",
        total_ns=90 * MS,
        copies=4,
        bytes=10**9,
        gb_per_s=4.5,
        memory="pageable",
    )
    fact = LossFact(part="transfers", lost_ns=90 * MS, copies=(copy,))
    assert advice(run(launches=0), [], [fact], [], [])[0].words.startswith("Pin the host's memory")
    pinned = replace(fact, copies=(replace(copy, memory="pinned"),))
    assert advice(run(launches=0), [], [pinned], [], []) == []

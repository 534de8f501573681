"""The formulas of the trees, against the golden case worked by hand and against published numbers."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from causeway.core.vocabulary import BALANCE, COMMUNICATION, HIDDEN_COPIES, ORCHESTRATION, PARALLEL
from causeway.efficiency.trees.trees import (
    DeviceTime,
    HostTime,
    device_tree,
    host_tree,
    scalability,
    waterfall,
)
from causeway.numeric import intervals

RATIOS = (PARALLEL, BALANCE, COMMUNICATION, ORCHESTRATION)
PE, LB, COMM, ORCH = RATIOS


def union(*pairs):
    return intervals.union(*(np.array(edge, np.int64) for edge in zip(*pairs, strict=True)))


def golden():
    """E = 100; GPU 0: kernels [10,40] [30,60], copy [55,70]; GPU 1: kernel [20,40], copies [0,10] [35,45]."""
    found = []
    for process, kernels, copies in ((0, [(10, 40), (30, 60)], [(55, 70)]), (1, [(20, 40)], [(0, 10), (35, 45)])):
        kernel = union(*kernels)
        copy = union(*copies)
        found.append(
            DeviceTime(
                process,
                intervals.length(kernel),
                (intervals.length(copy) - intervals.length(intervals.intersection(copy, kernel))),
            )
        )
    return found


def test_golden_case_of_devices():
    assert [(device.kernel_ns, device.other_ns) for device in golden()] == [(50, 10), (20, 15)]
    for by_process in (False, True):  # one rank per device: both flavours agree
        tree = device_tree(100, golden(), by_process)
        assert tree[PE] == 0.35
        assert tree[LB] == 0.70
        assert tree[COMM] == pytest.approx(0.833333, abs=5e-7)
        assert tree[ORCH] == 0.60


def test_hidden_copies_are_a_share_of_all_copies():
    """GPU 1 of the golden case copies for 20 of which 5 are inside its kernel, GPU 0 for 15 of which none is."""
    devices = [DeviceTime(0, 50, 10, 15, 0), DeviceTime(1, 20, 15, 20, 5)]
    for by_process in (False, True):
        tree = device_tree(100, devices, by_process)
        assert (tree["copy_ns"], tree["hidden_copy_ns"]) == (35, 5)
        assert tree[HIDDEN_COPIES] == 5 / 35
    assert device_tree(100, [DeviceTime(0, 50, 0)])[HIDDEN_COPIES] is None


def test_golden_case_of_hosts():
    tree = host_tree(100, [HostTime(1, 40, 40, 20), HostTime(1, 30, 20, 50)])
    assert tree["parallel_efficiency"] == 0.35
    assert tree["mpi_parallel_efficiency"] == 0.65
    assert tree["mpi_communication_efficiency"] == 0.80
    assert tree["mpi_load_balance"] == 0.8125
    assert tree["device_offload_efficiency"] == pytest.approx(0.538462, abs=5e-7)


def test_a_process_with_several_devices():
    """One process drives both devices of the golden case: TALP sums over them, 70 of K and 95 of K + M."""
    both = [DeviceTime(0, device.kernel_ns, device.other_ns) for device in golden()]
    assert device_tree(100, both)[LB] == 0.70  # maxima over devices do not care who drives them
    tree = device_tree(100, both, by_process=True)
    assert (tree[PE], tree[LB], tree[ORCH]) == (0.35, 0.50, 0.95)
    assert tree[COMM] == pytest.approx(70 / 95)
    full = device_tree(100, [DeviceTime(0, 100, 0), DeviceTime(0, 100, 0)], by_process=True)
    assert (full[PE], full[LB], full[ORCH]) == (1.0, 0.5, 2.0)  # understated by g, above 1


def test_a_shared_device():
    """Two ranks take turns on one device, 40 and 30 of 100: one device that is busy 70, or two that are idle in
    turn.
    """
    assert device_tree(100, [DeviceTime("gpu", 70, 0)])[PE] == 0.70
    apart = device_tree(100, [DeviceTime(0, 40, 0), DeviceTime(1, 30, 0)], by_process=True)
    assert (apart[PE], apart[LB], apart[COMM], apart[ORCH]) == (0.35, 0.875, 1.0, 0.40)


def test_a_rank_without_mpi_takes_no_part_in_the_minimum():
    tree = host_tree(100, [HostTime(1, 40, 40, 20), HostTime(1, 30, 20, 50), HostTime(1, 100, 0, None)])
    assert tree["mpi_communication_efficiency"] == 0.80  # 100 - 20, not 100 - 0
    assert tree["mpi_parallel_efficiency"] == pytest.approx((100 - 70 / 3) / 100)
    assert tree["mpi_load_balance"] == pytest.approx((100 - 70 / 3) / 80)


def test_without_mpi_there_is_no_mpi_tree():
    tree = host_tree(100, [HostTime(1, 60, 40, None)])
    assert tree["parallel_efficiency"] == tree["device_offload_efficiency"] == 0.6
    assert (
        tree["mpi_parallel_efficiency"]
        is tree["mpi_load_balance"]
        is tree["mpi_communication_efficiency"]
        is tree["mpi_ns"]
        is None
    )


def test_published_numbers_agree_with_the_product():
    """LLaMA fine-tuning on 128 GPUs: LB 0.728 x Comm 0.795 x Orch 0.824, published as Par. Eff 0.476.

    The product of the printed factors is 0.47690; that of the factors before they were rounded lies between 0.47598 and
    0.47782, and a published 0.476 between 0.4755 and 0.4765: the numbers agree within their rounding.
    """
    printed = (Fraction("0.728"), Fraction("0.795"), Fraction("0.824"))
    half = Fraction("0.0005")
    low, high = (math.prod(factor + sign * half for factor in printed) for sign in (-1, 1))
    assert low < Fraction("0.476") + half
    assert high > Fraction("0.476") - half
    # two devices whose true factors round to the printed ones, and whose parallel efficiency rounds to 0.476
    elapsed = 1_000_000
    active = 823_600
    most = 654_400
    tree = device_tree(elapsed, [DeviceTime(0, most, active - most), DeviceTime(1, 297_800, 0)])
    assert [round(tree[name], 3) for name in RATIOS] == [0.476, 0.728, 0.795, 0.824]


TIMES = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 1000), st.integers(0, 1000), st.integers(0, 1000)),
    min_size=1,
    max_size=6,
)


@given(TIMES)
def test_products_are_exact_and_the_waterfall_sums_up(times):
    devices = [DeviceTime(process, compute, other) for process, compute, other, _ in times]
    elapsed = max(device.kernel_ns + device.other_ns for device in devices) + 7
    for by_process in (False, True):
        tree = device_tree(elapsed, devices, by_process)
        if tree["kernel_ns"]:
            total, most, active, count = (
                tree[name] for name in ("kernel_ns", "kernel_max_ns", "active_max_ns", "n_devices")
            )
            assert Fraction(total, count * most) * Fraction(most, active) * Fraction(active, elapsed) == Fraction(
                total, count * elapsed
            )
            assert tree[PE] == pytest.approx(tree[LB] * tree[COMM] * tree[ORCH])
            assert by_process or max(tree[name] for name in RATIOS) <= 1
    measured = [sum(time[1:]) + time[1] for time in times]
    whole = max(measured) + 7
    parts = waterfall(whole, [(*time[1:], own) for time, own in zip(times, measured, strict=True)])
    assert sum(parts.values()) == whole * len(times)
    assert min(parts.values()) >= 0
    for name, at in (("useful", 1), ("communication", 2), ("transfers", 3), ("orchestration", 1)):
        assert parts[name] == sum(time[at] for time in times)  # of each device what it is there, nothing of another


def test_nothing_measured_is_not_a_number():
    assert set(device_tree(100, []).values()) >= {None}
    assert device_tree(100, [DeviceTime(0, 0, 0)])[LB] is None


def test_scalability():
    first = {"kernel_ns": 800, "n_devices": 2, "parallel_efficiency": 0.8}
    second = {"kernel_ns": 1000, "n_devices": 4, "parallel_efficiency": 0.5}
    assert scalability(first, second, weak=False) == {"computation_scalability": 0.8, "global_efficiency": 0.4}
    assert scalability(first, second, weak=True) == {"computation_scalability": 1.6, "global_efficiency": 0.8}
    assert scalability(first, {**second, "kernel_ns": 0}, weak=True)["global_efficiency"] is None

"""What a compiler numbers in a kernel's name is no part of the kernel; other numbers are."""

import itertools

import pytest

from causeway.core.names.build_numbers import in_build_order, names_of_one_kernel, without_build_numbers

SMALL = frozenset({(64, 1, 1, 128, 1, 1)})
LARGE = frozenset({(256, 1, 1, 128, 1, 1)})


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("__omp_offloading_31_18a8104__Z6relaxPdS_i_l42", "__omp_offloading_2d_77ab31c__Z6relaxPdS_i_l57"),
        ("__omp_offloading_fd02_c0934_main_l10_debug__", "__omp_offloading_31_18a8104_main_l12_debug__"),
        ("nvkernel_solve_F1L204_2", "nvkernel_solve_F1L310_14"),
        ("solve_42_gpu", "solve_57_gpu"),
        ("solve_42_gpu__red", "solve_57_gpu__red"),
        ("main$_omp_fn$0", "main$_omp_fn$3"),
        ("relax_$ck_L42_3", "relax_$ck_L57_4"),
        ("julia_broadcast_kernel_1234", "julia_broadcast_kernel_1301"),
        ("julia_gpu_mul__17(CuKernelContext, Int64)", "julia_gpu_mul__2301(CuKernelContext, Int64)"),
        ("triton_poi_fused_add_mul_0", "triton_poi_fused_add_mul_12"),
        ("triton_red_fused_sum_5_0d1d2de", "triton_red_fused_sum_6_0d1d2de"),
        ("triton__0", "triton__7"),
        ("nvfuser_pointwise_f0_c1_r0_g0", "nvfuser_pointwise_f12_c1_r3_g2"),
        ("void nvfuser_N::nvfuser_reduction_f1_c1_r0_g0(T)", "void nvfuser_N::nvfuser_reduction_f2_c1_r0_g0(T)"),
        ("loop_add_fusion_3", "loop_add_fusion_14"),
        ("fusion.7", "fusion.8"),
        ("attention_3f2a9c1b_fwd", "attention_00b1c2d3_fwd"),
    ],
)
def test_names_of_two_builds_are_one_name(one, other):
    assert without_build_numbers(one) == without_build_numbers(other) != one


@pytest.mark.parametrize(
    "name",
    [
        "copy_128",
        "sgemm_128x64_nn",
        "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_nn",
        "cutlass_80_tensorop_f16_s16816gemm_f16_256x128_32x3_nn_align8",
        "reduce_20240101",
        "deadbeef",
        "gpu_kernel_12",
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
        "void f<float8_e4m3fn, 128>(int)",
        "",
    ],
)
def test_numbers_of_the_kernel_stay(name):
    assert without_build_numbers(name) == name


def test_kernels_of_different_functions_stay_apart():
    assert without_build_numbers("julia_scan_1") != without_build_numbers("julia_sort_1")
    assert without_build_numbers("triton_poi_fused_add_0") != without_build_numbers("triton_poi_fused_mul_0")
    assert without_build_numbers("solve_42_gpu") != without_build_numbers("solve_42_gpu__red")


def test_a_compiler_counts_in_numbers():
    assert in_build_order(["k_10", "k_9", "k", "k_1000"]) == ["k", "k_9", "k_10", "k_1000"]


def test_ranks_of_several_builds_share_a_kernel_in_whatever_order_they_come():
    exports = [
        {"julia_mul_1234": SMALL, "copy": SMALL},
        {"julia_mul_1301": LARGE, "copy": SMALL},
        {"julia_mul_999": SMALL},
    ]
    for order in itertools.permutations(exports):
        assert names_of_one_kernel(order) == {"julia_mul_1301": "julia_mul_1234", "julia_mul_999": "julia_mul_1234"}


def test_in_one_build_other_numbers_are_other_kernels():
    # the second rank runs one region more of the same program, the third another one alone
    ranks = [{"solve_42_gpu": SMALL}, {"solve_42_gpu": SMALL, "solve_57_gpu": SMALL}, {"solve_57_gpu": SMALL}]
    assert names_of_one_kernel(ranks) == {}
    # two builds of two ranks each; what the ranks of a build have together is compared
    other = [{"solve_45_gpu": SMALL}, {"solve_45_gpu": SMALL, "solve_60_gpu": SMALL}]
    assert names_of_one_kernel([*ranks, *other]) == {"solve_45_gpu": "solve_42_gpu", "solve_60_gpu": "solve_57_gpu"}


@pytest.mark.parametrize(
    ("second", "one"),
    [
        # as many, in the order of their numbers, with the same grids and blocks
        ({"julia_b_101": SMALL, "julia_b_99": LARGE}, {"julia_b_99": "julia_b_7", "julia_b_101": "julia_b_10"}),
        ({"julia_b_101": LARGE, "julia_b_99": SMALL}, {}),
        ({"julia_b_101": SMALL}, {}),
    ],
)
def test_several_kernels_with_one_name_need_the_same_shapes(second, one):
    found = names_of_one_kernel([{"julia_b_7": LARGE, "julia_b_10": SMALL}, second])
    # the name of a kernel is the first in the order of text
    expected = {}
    for name, other in one.items():
        first, rest = sorted([name, other])
        expected[rest] = first
    assert found == expected


def test_one_export_and_none_have_nothing_to_share():
    assert names_of_one_kernel([]) == {}
    assert names_of_one_kernel([{"julia_b_7": LARGE, "julia_b_10": SMALL}]) == {}


def test_a_long_name_takes_no_time():
    for name in ("triton_" + "a_1" * 40_000, "nvkernel_" + "_F1L1_" * 20_000, "f" * 100_000, "1a" * 50_000):
        assert len(without_build_numbers(name)) <= len(name)

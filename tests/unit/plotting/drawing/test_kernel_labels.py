"""Kernel names for people: short, told apart, never trusted."""

import time

import pytest
from variability_samples import HOSTILE

from causeway.plotting.drawing.labels import LIMIT, full_name, short_names


@pytest.mark.parametrize(
    ("full", "short"),
    [
        ("Fan2(float *, float *, float *, int, int, int)", "Fan2"),
        ("void stencil::advance<4, double>(double const*, double*, int)", "advance<…>"),
        ("void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, 2>(float*)", "CatArrayBatchedCopy<…>"),
        (
            "void <unnamed>::softmax_warp_forward<float, float, float, (int)6>(T2 *, const T1 *)",
            "softmax_warp_forward<…>",
        ),
        ("std::enable_if<!T7, void>::type internal::gemvx::kernel<int, (bool)0>(T1)", "kernel<int, 0>"),
        ("main::{lambda(int)#1}::operator()(int) const", "main::{lambda(int)#1}::operator()(int) const"),
        ("void cutlass::Kernel2<cutlass_80_tensorop_gemm>(T1::Params)", "Kernel2<cutlass_80_tensorop_gemm>"),
        ("triton_poi_fused_add_0", "triton_poi_fused_add_0"),
        ("f(void (*)(int))", "f"),
        ("saxpy(double *) [clone .kd]", "saxpy"),
        ("a->b(int)", "a->b"),
        ("x > y (", "x > y ("),
        ("", "(no name)"),
    ],
)
def test_namespace_return_type_and_parameters_go_template_arguments_fold(full, short):
    assert short_names([full]) == {full: short}


def test_middle_is_elided():
    name = "sm90_depthwise_fprop_f64f64_f64f64_f64_nn_n_stage3_warpsize2x2x1_tensor16x8x16_aligna8_execute_kernel__5x_cudnn"
    short = short_names([name])[name]
    assert len(short) == LIMIT
    assert short.startswith("sm90_depthwise")
    assert short.endswith("_cudnn")
    assert "…" in short


def test_matrix_products_are_called_by_type_layout_and_tile():
    first = "sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x256x8_stage3_ffma_aligna4_execute_kernel__5x_cublas"
    names = [first, first.replace("64x256x8", "128x128x8"), first.replace("stage3", "stage4")]
    names += ["void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x128_64x4_tn_align8>(Params)"]
    assert list(short_names(names).values()) == [
        "cuBLAS GEMM f32 TN, tile 128x128x8",
        "cuBLAS GEMM f32 TN, tile 64x256x8",
        "cuBLAS GEMM f32 TN, tile 64x256x8 #2",
        "CUTLASS GEMM bf16 TN, tile 128x128",
    ]


def test_names_that_would_look_alike_show_where_they_differ():
    names = [
        f"void at::native::vectorized_elementwise_kernel<4, at::native::{what}Functor<float>>(int)"
        for what in ("Add", "Mul")
    ]
    short = short_names(names)
    assert [("Add" in short[names[0]]), ("Mul" in short[names[1]])] == [True, True]
    nested = [f"k<Wrapper<long_shared_beginning_{'x' * 60}, {i}>>()" for i in range(3)]
    assert sorted(text[-3:] for text in short_names(nested).values()) == ["0>>", "1>>", "2>>"]


def test_no_two_names_are_equal_whatever_comes():
    names = [f"ns{i}::same(int)" for i in range(5)] + [
        "same",
        "same #2",
        "same #3",
        " same",
        "k<1>()",
        "k<1>(int)",
        "x\x00",
        "x\x01",
    ]
    short = short_names(names)
    assert len(set(short.values())) == len(set(names)) == len(short)
    assert short_names(reversed(names)) == short, "the order of the names does not matter"


def test_a_name_of_100_kb_is_quick_and_short():
    names = [HOSTILE, HOSTILE + "1", "<" * 100_000, "(" * 50_000 + ")" * 50_000, "k<" * 50_000]
    began = time.process_time()
    short = short_names(names)
    assert time.process_time() - began < 2
    assert max(map(len, short.values())) < LIMIT + 8
    assert len(set(short.values())) == len(names)
    assert len(full_name(HOSTILE)) < 1600
    assert f"{len(HOSTILE):,} characters" in full_name(HOSTILE)
    assert not any(character in full_name(HOSTILE) for character in "\x00\u202e")

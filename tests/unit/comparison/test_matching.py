"""Kernels of two runs are matched by name, then by what stays of a name, then by their neighbours; never silently."""

import numpy as np
import pytest

from causeway.comparison.matching import Kernels, Match, match_configurations, match_kernels
from causeway.comparison.names import normalised


def kernels(names, order=None, count=100):
    """Return kernels that run in the given order (by default, in that of their names), over and over."""
    order = order or list(range(len(names)))
    follows = np.zeros((len(names), len(names)), np.int64)
    for before, after in zip(order, order[1:] + order[:1], strict=True):
        follows[before, after] = count
    return Kernels(names, np.full(len(names), count), np.array([order.index(k) for k in range(len(names))]), follows)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("void ns::gemm<float, 128>(float const*, int)", "void ns::gemm<__half, 256>(__half const*)"),
        ("sm80_xmma_gemm_f16f16_tn", "sm90_xmma_gemm_f16f16_tn"),
        ("ampere_sgemm_128x64_nn", "hopper_sgemm_128x64_nn"),
        ("cutlass_80_wmma_tensorop_s161616gemm", "cutlass_90_wmma_tensorop_s161616gemm"),
        ("run(int)::{lambda(int)#1}", "run(int)::{lambda(int)#7}"),
        ("void f<1>(int) [clone .kd]", "void f<2>(int)"),
        ("jit_0x7f00aa", "jit_0x7f00bb"),
        ("Cijk_Ailk_gfx90a_MT64", "Cijk_Ailk_gfx942_MT64"),
    ],
)
def test_names_of_the_same_kernel_are_alike(one, other):
    assert normalised(one) == normalised(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("gemm_nn", "gemm_tn"),
        ("void a::scan<int>(int)", "void a::sort<int>(int)"),
        ("copy_128", "copy_256"),
        ("adapt", "upt"),
    ],
)
def test_names_of_different_kernels_are_not(one, other):
    assert normalised(one) != normalised(other)


def test_a_name_with_brackets_that_do_not_match_stays_itself():
    assert normalised("a<b(c") == "a<b(c"
    assert normalised("") == ""


def test_each_match_says_how_it_was_made():
    before = kernels(["load", "void mul<float>(int)", "old_name", "store", "dropped"], [0, 1, 2, 3, 4])
    after = kernels(["store", "fresh", "void mul<half>(int)", "new_name", "load"], [4, 2, 3, 0, 1])
    found = {(m.baseline, m.candidate): m for m in match_kernels(before, after)}
    assert found[0, 4].how == found[3, 0].how == "exact"
    assert found[1, 2].how == "normalised"
    assert found[2, 3].how == "sequence"
    assert "position in the order" in found[2, 3].note
    # `dropped` and `fresh` run at the same place, too: between store and load
    assert found[4, 1].how == "sequence"


def test_kernels_at_other_places_are_new_and_gone():
    before = kernels(["a", "b", "c", "gone"], [0, 3, 1, 2])
    after = kernels(["a", "b", "c", "new"], [0, 1, 3, 2])
    assert match_kernels(before, after)[-2:] == [Match(3, None, "gone"), Match(None, 3, "new")]


def test_one_that_runs_ten_times_as_often_is_not_the_same():
    before = kernels(["a", "b", "x"], [0, 2, 1])
    after = kernels(["a", "b", "y"], [0, 2, 1])
    after.launches[2] *= 10
    assert [match.how for match in match_kernels(before, after)] == ["exact", "exact", "gone", "new"]


def test_instances_of_one_template_are_told_apart_by_order_and_the_note_says_so():
    before = kernels(["f<1>(int)", "f<2>(int)"])
    after = kernels(["f<8>(int)", "f<9>(int)"], [1, 0])
    found = match_kernels(before, after)
    assert [(m.baseline, m.candidate, m.how) for m in found] == [(0, 1, "normalised"), (1, 0, "normalised")]
    assert all("told apart by the order" in match.note for match in found)


def test_unequally_many_instances_are_not_matched_by_their_common_name():
    found = match_kernels(kernels(["f<1>(int)", "f<2>(int)"]), kernels(["f<8>(int)"]))
    assert sorted(match.how for match in found) == ["gone", "gone", "new"]


def test_configurations_match_as_a_whole_then_by_grid_and_block_then_alone():
    assert match_configurations({(1, 2, 9): 0}, {(1, 2, 9): 5, (3, 2, 9): 6}, 2) == [(0, 5, "exact")]
    assert match_configurations({(1, 2, 9): 0, (4, 2, 9): 1}, {(1, 2, 8): 5, (4, 2, 8): 6}, 2) == [
        (0, 5, "grid and block"),
        (1, 6, "grid and block"),
    ]
    assert match_configurations({(1, 2, 9): 0}, {(7, 7, 7): 5}, 2) == [(0, 5, "the only one")]
    assert match_configurations({(1, 2): 0, (3, 2): 1}, {(7, 7): 5}, 2) == []

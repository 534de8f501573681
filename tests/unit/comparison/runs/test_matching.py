"""Kernels of two runs are matched by name, then by what stays of a name, then by their neighbours; never silently."""

import numpy as np
import pytest

from causeway.comparison.runs.matching import Kernels, Match, match_configurations, match_kernels, normalised


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
    assert match_configurations({(1, 2, 9, None): 0}, {(1, 2, 9, None): 5, (3, 2, 9, None): 6}, 2) == [(0, 5, "exact")]
    ours = {(1, 2, 9, None): 0, (4, 2, 9, None): 1}
    theirs = {(1, 2, 8, None): 5, (4, 2, 8, None): 6}
    assert match_configurations(ours, theirs, 2) == [(0, 5, "grid and block"), (1, 6, "grid and block")]
    assert match_configurations({(2, 2, 9, None): 0}, {(4, 1, 7, None): 5}, 2) == [(0, 5, "the only one")]
    assert match_configurations({(1, 2, 9, None): 0, (3, 2, 9, None): 1}, {(7, 7, 9, None): 5}, 2) == []


def test_other_numbers_of_threads_or_another_message_are_other_work():
    """A batch of twice the size was matched as "the only one", and its kernel claimed to be slower."""
    ours = {(512, 256, 9, None): 0}
    theirs = {(1024, 256, 9, None): 5}
    assert match_configurations(ours, theirs, 2, threads=2) == match_configurations(ours, theirs, 2, threads=0) == []
    assert match_configurations(ours, theirs, 2) == [(0, 5, "the only one")]
    ours = {(1024, 256, 9, None): 0}  # of work-items: as many in blocks of another size
    assert match_configurations(ours, {(1024, 128, 9, None): 5}, 2, threads=1) == [(0, 5, "the only one")]
    assert match_configurations(ours, {(2048, 128, 9, None): 5}, 2, threads=1) == []
    ours = {(24, 512, 9, "message 25 bytes"): 0}
    theirs = {(24, 512, 9, "message 100 bytes"): 5}
    assert match_configurations(ours, theirs, 2, threads=2) == match_configurations(ours, theirs, 2) == []


def with_shapes(names, shapes, launches=None, order=None):
    """Return kernels with one grid each, launched so often."""
    made = kernels(names, order)
    counts = made.launches if launches is None else np.array(launches)
    return Kernels(names, counts, made.first, None, [frozenset({(grid, 1, 1, 128, 1, 1)}) for grid in shapes])


def pairs_of(found):
    return {(match.baseline, match.candidate) for match in found if None not in (match.baseline, match.candidate)}


def test_a_name_that_differs_in_numbers_of_the_build_is_matched_and_the_note_says_so():
    before = with_shapes(["__omp_offloading_31_18a8104__Z1fv_l42", "julia_k_1234"], [4, 8])
    after = with_shapes(["julia_k_1301", "__omp_offloading_2d_77ab31c__Z1fv_l42"], [8, 4])
    found = match_kernels(before, after)
    assert [(m.baseline, m.candidate, m.how, m.note) for m in found] == [
        (0, 1, "normalised", "other numbers of the build"),
        (1, 0, "normalised", "other numbers of the build"),
    ]


def test_a_counter_of_the_build_that_moved_on_is_no_exact_name():
    # a kernel of grid 2 was added before the second one, whose number is now 2
    before = with_shapes(["triton_poi_fused_add_0", "triton_poi_fused_add_1"], [1, 3])
    after = with_shapes(["triton_poi_fused_add_0", "triton_poi_fused_add_1", "triton_poi_fused_add_2"], [1, 2, 3])
    found = match_kernels(before, after)
    assert pairs_of(found) == {(0, 0), (1, 2)}
    assert [match.how for match in found] == ["exact", "normalised", "new"]
    assert "told apart by grids and blocks" in found[1].note


def test_the_same_names_on_both_sides_are_exact_whatever_their_shapes():
    names = ["triton_poi_fused_add_0", "triton_poi_fused_add_1"]
    found = match_kernels(with_shapes(names, [1, 2]), with_shapes(names, [2, 4]))
    assert [(m.baseline, m.candidate, m.how) for m in found] == [(0, 0, "exact"), (1, 1, "exact")]


def test_kernels_of_equal_shapes_are_told_apart_by_order_and_share_of_the_launches():
    before = with_shapes(["julia_b_10", "julia_b_11"], [1, 1], [30, 10])
    after = with_shapes(["julia_b_73", "julia_b_71"], [1, 1], [12, 33], order=[1, 0])
    found = match_kernels(before, after)
    assert pairs_of(found) == {(0, 1), (1, 0)}
    assert all("order and share of the launches" in match.note for match in found)


@pytest.mark.parametrize(
    ("names", "shapes", "launches"),
    [
        (["julia_b_73", "julia_b_71"], [1, 1], [30, 10]),  # launched first: the one with few launches
        (["julia_b_71", "julia_b_72", "julia_b_73"], [1, 1, 1], [30, 10, 5]),
    ],
)
def test_kernels_that_nothing_tells_apart_stay_unmatched_and_it_is_said(names, shapes, launches):
    before = with_shapes(["julia_b_10", "julia_b_11"], [1, 1], [30, 10])
    order = [1, 0] if len(names) == 2 else None
    found = match_kernels(before, with_shapes(names, shapes, launches, order))
    assert pairs_of(found) == set()
    assert [match.how for match in found] == ["gone", "gone", *["new"] * len(names)]
    assert all(match.note.startswith(f"not matched: 2 and {len(names)} kernels have this name") for match in found)

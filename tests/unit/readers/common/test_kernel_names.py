"""Classes, short names and ids of kernels; the peers' known wrong answers come out right."""

import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causeway.readers.common.kernel_names import (
    UNNAMED,
    clean_kernel_name,
    clean_text,
    kernel_class,
    kernel_id,
    qualified_name,
    says_communication,
    short_name,
)
from causeway.readers.common.vocabularies import BoundedVocabulary, Vocabulary


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # HolisticTraceAnalysis files the first two under communication, the next two under compute
        ("hipblasLtGemmKernel", "compute"),
        ("hipMemcpyAsync", "memory"),
        ("rcclGenericKernel", "communication"),
        ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 2>(RankData*, RankSignals, int)", "communication"),
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "communication"),
        ("ncclKernel_Broadcast_RING_LL_Sum_int8_t(ncclWorkElem)", "communication"),
        ("void mscclpp::allreduce<float>(float*)", "communication"),
        ("nvshmemi_init_array_kernel", "communication"),
        ("void deep_ep::internode::dispatch<true>(int)", "communication"),
        ("hcclAllReduce", "communication"),
        ("Memcpy HtoD (Pageable -> Device)", "memory"),
        ("Memset (Device)", "memory"),
        ("[CUDA memcpy Device-to-Host]", "memory"),
        ("__amd_rocclr_copyBuffer", "memory"),
        ("__amd_rocclr_fillBufferAligned", "memory"),
        ("MEMORY_COPY_HOST_TO_DEVICE", "memory"),
        ("CopyHostToDevice", "memory"),
        ("FillBuffer", "memory"),
        ("Fan2(float *, float *, float *, int, int, int)", "compute"),
        ("void fused<ncclComm>(ncclComm*)", "compute"),  # a communicator among its arguments only
        ("CatArrayBatchedCopy", "compute"),
        ("MemcpyLikeKernel", "compute"),
        ("", "compute"),
        # PyTorch's symmetric memory
        (
            "void c10d::symmetric_memory::(anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(int)",
            "communication",
        ),
        ("void multimem_one_shot_reduce_kernel<float, 16>(float*, float*, unsigned long)", "communication"),
        ("void one_shot_all_reduce_kernel<c10::BFloat16, 16, 8>(c10::BFloat16**)", "communication"),
        ("void two_shot_all_reduce_kernel_inplace<float, 16, 8>(float**)", "communication"),
        ("c10d::symmetric_memory::barrier_kernel(unsigned int**, int, int, int, unsigned long)", "communication"),
        ("c10d::nvshmem_extension::exchangeSplitAndOffset(long*, int, int)", "communication"),
        ("c10d::nccl_extension::lsa_put_signal_kernel(void**, void**)", "communication"),
        ("void c10d::intra_node_comm::oneShotAllReduceKernel<8u, true>(float*)", "communication"),
        ("void two_shot::twoShotAllReduceKernel<8u>(float*)", "communication"),
        # vLLM, SGLang, FlashInfer, TensorRT-LLM, aiter, quickreduce
        ("void sglang::cross_device_reduce_2stage<__half, 8>(RankData*)", "communication"),
        (
            "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<(int)1, __half>(int)",
            "communication",
        ),
        ("void moereduce_allreduce_fusion_kernel_oneshot_lamport<__half, 8>(int)", "communication"),
        ("void flashinfer::trtllm_mnnvl_allreduce::rmsNormLamport<float>(float*)", "communication"),
        ("void tensorrt_llm::kernels::mnnvl::rmsNormLamport<float>(float*)", "communication"),
        ("void tensorrt_llm::kernels::moe_comm::moeA2ADispatchKernel<8>(int const*)", "communication"),
        ("void aiter::reduce_scatter_cross_device_store<__hip_bfloat16, 8>(aiter::RankData*)", "communication"),
        ("_ZN5aiter33reduce_scatter_cross_device_storeIDF16bLi8EEEvPNS_8RankDataE", "communication"),
        ("void quickreduce::allreduce_prototype_twoshot<quickreduce::CodecQ4, __half>(__half*)", "communication"),
        # tokens of experts, of any library: what is done, and that it is between devices
        ("void acme::ep::internode::dispatch<false, 8>(int4*, float*, long*, int)", "communication"),
        ("void acme::ep::intranode::cached_notify_combine<8>(void**, int)", "communication"),
        ("void my_ep::internode_ll::combine<__nv_bfloat16>(void*)", "communication"),
        ("void ns::EpCombineInterNodeKernel<float>(float*)", "communication"),
        ("ep_dispatch_kernel", "communication"),
        ("kernel_dispatch_token_intra_node", "communication"),
        ("a2a_combine_recv_kernel", "communication"),
        ("void ns::moe_a2a<8>(int)", "communication"),
        ("void moe::moe_dispatch<8>(int)", "compute"),
        ("void flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<128>>(Params)", "compute"),
        ("void at::native::dispatch_kernel<float>(float*)", "compute"),
        ("void cub::DeviceReduceDispatchKernel<Policy>(int)", "compute"),
        ("rocprim::detail::radix_sort_block_sort_dispatch(int)", "compute"),
        ("void cutlass::epilogue::dispatch_combine(int)", "compute"),
        ("void step::Endpoint::combine(int)", "compute"),
        ("_fwd_kernel_ep_scatter_1", "compute"),
        ("void fused_gemm<acme::ep::internode::dispatch>(int)", "compute"),
        # others
        ("userbuffers_fp16_sum_inplace_gpu_rw_ag(int, int, int)", "communication"),
        ("kuserbuffers_pushrecv(int, int, int, int*)", "communication"),
        ("rocshmem::rocshmem_barrier_all_kernel()", "communication"),
        ("void hybrid_ep::dispatch_kernel<16>(int)", "communication"),
        ("EpDispatchIntraNodeKernel_bf16", "communication"),
        ("ncclSymkDevKernel_AllGather_LL(ncclSymkDevWorkArgs4K)", "communication"),
        ("mscclKernel_Sum_float_Simple", "communication"),
        ("void stream_executor::gpu::AllReduceKernelImpl<float, (ReductionKind)0>(float*)", "communication"),
        ("allToAllV_2d(void*, void*, long*)", "communication"),
        ("ALLREDUCE_sum", "communication"),
        # reductions of one device
        ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>(at::native::ReduceOp<float>)", "compute"),
        ("void blockReduceAll<float>(float*)", "compute"),
        ("void warpAllReduce<float>(float*)", "compute"),
        ("block_all_reduce_sum_f32_f32_kernel(float*, float*, int)", "compute"),
        ("oneflow::cuda::BlockAllReduceKernel(float*)", "compute"),
        ("smallReduceKernel", "compute"),
        ("void small_reduce_kernel<float>(float*)", "compute"),
        ("globalReduce", "compute"),
        ("void Kokkos::forall_reduce<int>(int)", "compute"),
        ("void at::native::_scatter_gather_elementwise_kernel<128, 8>(int)", "compute"),
        ("void scatter_reduce_two<float>(float*)", "compute"),
        ("void softmax<WarpAllReduce>(float*)", "compute"),
        ("multimemory_kernel", "compute"),
        # PyTorch's compiler names a kernel by what is around it: this one prepares the input of a collective
        ("triton_poi_fused_all_reduce_0", "compute"),
        ("triton_red_fused_add_all_gather_into_tensor_wait_tensor_3", "compute"),
        ("two_shot_all_reduce_kernel", "communication"),
    ],
)
def test_classes(name, expected):
    assert kernel_class(name) == expected


def test_names_that_the_user_calls_communication_are_it():
    assert kernel_class("void acme::fabric::k1<8>(int)", ("acme::fabric::",)) == "communication"
    assert kernel_class("Memcpy PtoP", ("PtoP",)) == "communication"
    assert kernel_class("void acme::Fabric::k1<8>(int)", ("acme::fabric::",)) == "compute"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("dispatch(F)", True), ("combine(B)", True), ("MoE dispatch", True), ("moe/combine_backward", True),
        ("token_dispatch", True), ("all_to_all", True), ("nccl:broadcast", True), ("c10d::allreduce_", True),
        ("dispatch_attention", False), ("kernel dispatch", False), ("combine heads", False), ("forward", False),
        ("", False), ("aten::reduce", False),
    ],
)  # fmt: skip
def test_ranges_that_say_communication(name, expected):
    assert says_communication(name) == expected


@pytest.mark.parametrize(
    ("symbol", "expected"),  # real symbols, spelt as `c++filt` does
    [
        (
            "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi64ELi8ELb0ELb0ELb1ELi1EEEvPT0_PT_PfS4_S4_S4_diiiiiiib",
            (
                "void aiter::add_rmsnorm_quant_kernel<std::bfloat16_t, std::bfloat16_t, 64, 8, false, false, true,"
                " 1>(std::bfloat16_t*, std::bfloat16_t*, float*, std::bfloat16_t*, std::bfloat16_t*, std::bfloat16_t*,"
                " double, int, int, int, int, int, int, int, bool)"
            ),
        ),
        ("_Z4Fan2PfS_S_iii", "Fan2(float*, float*, float*, int, int, int)"),
        ("_Z4Fan2PfS_S_iii.kd", "Fan2(float*, float*, float*, int, int, int)"),
        ("_Z4Fan2PfS_S_iii [clone .kd]", "Fan2(float*, float*, float*, int, int, int)"),
        (b"_ZN3foo3barEv", "foo::bar()"),
        ("_ZNK2at6nativeL6kernelIN3c104HalfEEEvPT_", "void at::native::kernel<c10::Half>(c10::Half*) const"),
        # no symbols, or none that can be spelt
        ("_Z", "_Z"),
        ("_Zoo_kernel", "_Zoo_kernel"),
        ("_Z1f" + "P" * 200_000 + "i", "_Z1f" + "P" * 200_000 + "i"),
        ("_Z1f" + "1aI" * 5_000 + "i" + "E" * 5_000, "_Z1f" + "1aI" * 5_000 + "i" + "E" * 5_000),
        ("Cijk_Ailk_Bljk_HHS_BH_MT128x128x32_SE", "Cijk_Ailk_Bljk_HHS_BH_MT128x128x32_SE"),
        ("triton_poi_fused_add_0", "triton_poi_fused_add_0"),
    ],
)
def test_symbols_are_demangled_in_one_spelling(symbol, expected):
    assert clean_kernel_name(symbol) == expected


def test_a_symbol_that_expands_without_bounds_stays_as_it_is():
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    twice = "".join(f"1bIS{digits[2 * n - 1] if n else ''}_S{digits[2 * n - 1] if n else ''}_E" for n in range(18))
    symbol = f"_Z1f1a{twice}"  # each of a few dozen letters doubles the name
    assert clean_kernel_name(symbol) == symbol


@given(st.text(alphabet="_ZNSIELKPRTaibv0123456789.", max_size=60))
def test_any_symbol_gives_a_name(text):
    name = clean_kernel_name("_Z" + text)
    assert name
    assert len(name) <= 70_000
    assert clean_kernel_name(name) == name or name.startswith("_Z")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "void ck_tile::kentry<2, ck_tile::FmhaBatchPrefillWithPagedKVCacheKernel<ck_tile::Pipeline<float>>>(int)",
            "kentry<FmhaBatchPrefillWithPagedKVCacheKernel>",
        ),
        (
            "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>(at::native::ReduceOp<float>)",
            "reduce_kernel",
        ),
        ("Fan1(float *, float *, int, int)", "Fan1"),
        (
            "void (anonymous namespace)::elementwise_kernel_with_index<int, at::f(int)::{lambda()#1}>(int)",
            "elementwise_kernel_with_index",
        ),
        ("at::native::<unnamed>::fused<float, (int)4, void a::b<c>(d)::[lambda() (instance 1)]>(x)", "fused"),
        ("copy_blocked[v1,cw51cXT](Array<long long, 1, C, mutable, aligned>, long long)", "copy_blocked"),
        (
            "void cutlass::Kernel<cutlass_80_tensorop_d884gemm_32x32>(T1::Params)",
            "Kernel<cutlass_80_tensorop_d884gemm_32x32>",
        ),
        ("std::enable_if<!T7, void>::type internal::gemvx::kernel<int, int, double>(p)", "gemvx::kernel"),
        ("void shift::operator<< <int>(int)", "shift::operator__"),
        ("ampere_sgemm_128x64_nn", "ampere_sgemm_128x64_nn"),
        ("_ZN5aiter4normEv", "_ZN5aiter4normEv"),
        ("void less<(a<b)>(int) const", "less"),
        ("K1: Baseline (interleaved, divergent)", "K1: Baseline (interleaved, divergent)"),  # a text of a table
        ("void foo<A :: B>(int)", "foo"),
        # comparisons and shifts within parentheses are no brackets
        ("void ns::scan<((3)>(2)), int>(int)", "scan"),
        ("void ns::scan<&bar, (n > 3)>(int)", "scan"),
        ("void ns::scan<(1 >> 2), float>(float)", "scan"),
        ("void ns::scan<(a < b), float>(float)", "scan"),
        (  # the lambda that a general kernel runs is in a function of the program
            "void clover::par_ranged2d_kernel<PdV_kernel(bool, int, clover::Buffer2D<double> &)::[lambda(int, int)"
            " (instance 1)]>(clover::Range2d, T1)",
            "par_ranged2d_kernel<PdV_kernel>",
        ),
        (
            "void loops::each<256, void Solver<double, 3>::advance<2>(std::function<void (int)>) const"
            "::{lambda(int)#1}>(int, {lambda(int)#1})",
            "each<advance>",
        ),
        (  # PyTorch's are in functions of loops, and stay
            "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<at::native::FillFunctor"
            "<float> >(at::TensorIteratorBase&, at::native::FillFunctor<float> const&)::{lambda(int)#1}>(int)",
            "elementwise_kernel",
        ),
        ("void each<Run::operator()(int) const::{lambda(int)#1}>(int)", "each"),
        ("void each<Wrapped<run(int)::{lambda(int)#1}> >(int)", "each"),
    ],
)
def test_short_names(name, expected):
    assert short_name(name) == expected


def test_amd_symbol_marks_do_not_make_another_kernel():
    assert {clean_kernel_name(f"vecCopy(double*){mark}") for mark in ("", ".kd", " [clone .kd]", " (.kd)")} == {
        "vecCopy(double*)"
    }


def test_names_that_are_missing_or_cannot_be_shown():
    assert clean_kernel_name(None) == clean_kernel_name("") == clean_kernel_name("  ") == UNNAMED
    assert clean_kernel_name(b"a\x00b\xffc") == "a\ufffdb\ufffdc"
    assert clean_text("two\nlines\x1b[31m") == "two lines\ufffd[31m"
    assert clean_text("Überlauf µs 核") == "Überlauf µs 核"


def test_ids_are_short_safe_and_follow_from_the_full_name():
    one = kernel_id("void f<1>(int)")
    other = kernel_id("void f<2>(int)")
    assert one != other
    assert one == "f-" + one[-10:]
    long = kernel_id("k" * 100_000)
    assert len(long) == 51
    assert set(long) <= set(string.ascii_lowercase + string.digits + "-")


@settings(max_examples=40, deadline=None)
@given(st.text(max_size=300))
def test_any_text_has_a_name_a_class_and_an_id(text):
    name = clean_kernel_name(text)
    assert name
    assert name == clean_kernel_name(name)
    assert name.isprintable()
    assert short_name(name)
    assert kernel_class(name) in ("compute", "communication", "memory")
    assert len(kernel_id(name)) <= 51
    qualified_name(name)


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "name", ["<" * 100_000, "a<" * 50_000, "void a<" + "x<b>," * 20_000 + ">(c)", "<script>alert(1)</script>" * 4_000]
)
def test_long_names_take_no_long_time(name):
    assert short_name(clean_kernel_name(name))


def test_a_vocabulary_numbers_in_order_of_first_use():
    words = Vocabulary()
    assert [words.code(text) for text in "abcab"] == [0, 1, 2, 0, 1]
    assert words.texts == ["a", "b", "c"]


def test_names_of_ranges_are_bounded_and_those_beyond_differ_in_words_only(monkeypatch):
    monkeypatch.setattr(BoundedVocabulary, "MOST", 3)
    names = BoundedVocabulary()
    codes = [names.code(text) for text in ("a 1", "a 2", "b", "a 3", "a 4", "b", "c 5", "d 6", "e 7", "a 1", "a 9")]
    assert codes == [0, 1, 2, 3, 3, 2, 4, 5, 6, 0, 3]
    assert names.texts == ["a 1", "a 2", "b", "a #", "c #", "d #", BoundedVocabulary.OTHER]
    assert names.merged == 6


def test_the_characters_of_names_are_bounded_too(monkeypatch):
    monkeypatch.setattr(BoundedVocabulary, "MOST_CHARS", 1000)
    names = BoundedVocabulary()
    for number in range(500):
        names.code(f"{number} " + "x" * 400)
    assert sum(map(len, names.texts)) < 3000
    assert names.merged == 497


@pytest.mark.parametrize(
    ("functor", "policy", "expected"),
    [
        ("ParallelFor<MiniMD::ForceCompute", "Kokkos::RangePolicy<Kokkos::HIP>", "ParallelFor<ForceCompute>"),
        ("ParallelFor<LMP::PairCut<Kokkos::Cuda>", "Kokkos::RangePolicy<Kokkos::Cuda, LMP::TagInit>", "ParallelFor<PairCut, TagInit>"),
        ("ParallelReduce<Kokkos::Impl::CombinedFunctorReducer<Dot<double>, X>", "Kokkos::RangePolicy<Kokkos::HIP>", "ParallelReduce<Dot>"),
        ("ParallelFor<__nv_dl_wrapper_t<__nv_dl_tag<void (*)(int), &solver::step, 1u>>", "Kokkos::RangePolicy<Kokkos::Cuda>", "ParallelFor<step>"),
        ("ParallelFor<advance(int)::{lambda(int)#1}", "Kokkos::RangePolicy<Kokkos::HIP>", "ParallelFor<advance>"),
    ],
)  # fmt: skip
def test_kernels_of_kokkos_are_named_after_their_functor(functor, policy, expected):
    """All were `hip_parallel_launch_local_memory`."""
    whole = f"Kokkos::Impl::{functor}, {policy}, Kokkos::HIP>"
    name = f"void Kokkos::Impl::hip_parallel_launch_local_memory<{whole}, 1024u, 1u>({whole})"
    assert short_name(name) == expected

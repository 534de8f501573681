"""Names of kernels: the short ones, and what work they tell."""

import pytest

from causeway.core.names.kernel_words import kernel_words
from causeway.core.names.work_classes import work_of


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x128x8_stage3_warpsize2x2x1_ffma_aligna4_alignc4_execute_kernel__5x_cublas", "cuBLAS GEMM f32 TN, tile 128x128x8"),
        ("Kernel<cutlass_80_tensorop_s1688gemm_128x256_16x3_nt_align4>", "CUTLASS GEMM NT, tile 128x256"),
        ("sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x128x16_kernel_cudnn", "cuDNN fprop tf32, tile 128x128x16"),
        ("sm86_xmma_dgrad_implicit_gemm_i8i8_i8i32_f32_tilesize128x64x64_kernel_trt", "TensorRT dgrad i8, tile 128x64x64"),
        ("flash_fwd_kernel", "flash_fwd_kernel"),
    ],
)  # fmt: skip
def test_names_of_kernels_keep_what_tells_them_apart(name, said):
    assert kernel_words(name) == said


@pytest.mark.parametrize(
    ("name", "operator", "kind", "work"),
    [
        ("attention_bwd", "aten::mm", "compute", "attention"),
        ("ampere_scudnn_128x64_relu", "aten::cudnn_convolution", "compute", "convolution"),
        ("par_ranged2d_kernel", None, "compute", "other kernels"),
        ("cutlass_80_tensorop_bf16_s16816gemm", "prefill", "compute", "matrix products"),
        ("decode_step", "prefill", "compute", "other kernels"),
        ("my_kernel", "pool workers", "compute", "pooling"),
        ("ForEachPixelNaiveBy4", None, "compute", "other kernels"),
        ("multi_tensor", "aten::_foreach_add_", "compute", "optimizer and foreach"),
        ("vectorized_elementwise_kernel", "aten::native_layer_norm", "compute", "normalisation"),
        ("_occa_weightedNorm2_0", "aten::linalg_vector_norm", "compute", "reductions"),
        ("NormKernel1", None, "compute", "reductions"),
        ("__omp_offloading_30_57b9f__QMnorm_modPnorm_l23", None, "compute", "reductions"),
        ("ncclDevKernel_AllReduce", None, "communication", "collectives"),
        ("acme::ep::dispatch", None, "communication", "exchange between GPUs"),
        ("__amd_rocclr_copyBuffer", "aten::copy_", "memory", "copies"),
        ("fused_moe_kernel", "vllm::outplace_fused_experts", "compute", "matrix products"),
        ("Marlin", None, "compute", "matrix products"),
        ("gptq_marlin_repack_kernel", None, "compute", "other kernels"),
        ("bmm_MxE4m3_MxE2m1MxE4m3_Fp32_t128x16x256u2", "vllm::moe_forward", "compute", "matrix products"),
        ("quantize_with_block_size", "vllm::moe_forward", "compute", "quantisation"),
        ("routingIndicesHistogramKernel", "vllm::moe_forward", "compute", "routing of experts"),
        ("finalizeKernelVecLoad", "vllm::moe_forward", "compute", "routing of experts"),
        ("nvjet_tst_192x192", "trtllm::FusedMoE", "compute", "matrix products"),
        ("aiter_fused_moe_kernel_bf16", "vllm::rocm_aiter_fused_moe", "compute", "matrix products"),
        ("_ZN5aiter42fmoe_bf16_pertokenFp8_g1u1_vs_silu_1tg_32x320E", None, "compute", "matrix products"),
        ("fused_moe_lora_kernel", "vllm::moe_forward", "compute", "matrix products"),
        ("_fused_moe_lora_kernel", "vllm::moe_forward", "compute", "matrix products"),
        ("fused_moe_silu", None, "compute", "matrix products"),
        ("fused_moe", None, "compute", "matrix products"),
        ("triton_poi_fused_moe_forward_silu_1", "CompiledFxGraph", "compute", "routing of experts"),
        ("topkGatingSoftmax", "vllm::moe_forward", "compute", "routing of experts"),
        ("topkGatingSoftmax", None, "compute", "routing of experts"),
        ("fused_gdn_gating_softmax_kernel", None, "compute", "softmax"),
        ("moe_align_block_size_kernel", None, "compute", "routing of experts"),
        ("_ZN5cudnn21bn_bw_1C11_kernel_new", None, "compute", "normalisation"),
        ("volta_h884cudnn_256x64_ldg8_relu_exp_small_nhwc_tn_v1", None, "compute", "convolution"),
    ],
)
def test_kernels_are_told_by_their_work(name, operator, kind, work):
    assert work_of(name, operator, kind) == work

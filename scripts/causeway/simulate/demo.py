"""The demonstration run: kernels named as a training step's, and what is planted in them."""

from causeway.simulate.scenarios import MIB, Copy, Kernel

PROGRAM_REPEATS = 5


def kernels() -> tuple[Kernel, ...]:
    """Return the kernels of the demonstration run, the planted causes with them."""
    return (
        Kernel(
            "void cutlass::Kernel2<cutlass_80_tensorop_f16_s16816gemm_relu_f16_128x128_32x4_tn_align8>(T1::Params)",
            "Kernel2",
            "_ZN7cutlass7Kernel2I63cutlass_80_tensorop_f16_s16816gemm_relu_f16_128x128_32x4_tn_align8EEvNT_6ParamsE",
            120,
            causes={"h2d_bytes_in_flight": 0.08},
            blocks=(128,),
            grids=(1024,),
            registers=154,
            dynamic_shared_bytes=65536,
        ),
        Kernel(
            "void at::native::vectorized_elementwise_kernel<(int)4, at::native::CUDAFunctor_add<c10::Half>, "
            "std::array<char *, (unsigned long)3>>(int, T2, T3)",
            "vectorized_elementwise_kernel",
            "_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIN3c104HalfEEESt5arrayIPcLm3EEEEviT0_T1_",
            40,
            causes={"launches_in_flight": 0.07},
            blocks=(128,),
            grids=(4096,),
            registers=28,
        ),
        Kernel(
            "void <unnamed>::softmax_warp_forward<c10::Half, c10::Half, float, (int)10, (bool)0, (bool)0>(T2 *, const T1 *,"
            " int, int, int, const bool *, int, bool)",
            "softmax_warp_forward",
            "_ZN43_GLOBAL__N__fae31c2b_10_SoftMax_cu_9f978f6320softmax_warp_forwardIN3c104HalfES2_fLi10ELb0ELb0EEEvPT0_PKT_iiiPKbib",
            60,
            causes={"h2d_bytes_in_flight": 0.08, "launches_in_flight": 0.07},
            blocks=(128,),
            grids=(2048,),
            registers=40,
        ),
        Kernel(
            "void at::native::reduce_kernel<(int)512, (int)1, at::native::ReduceOp<float, at::native::MeanOps<float, float, float, float>, "
            "unsigned int, float, (int)4, (int)4>>(T3)",
            "reduce_kernel",
            "_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIfNS0_7MeanOpsIffffEEjfLi4ELi4EEEEEvT1_",
            50,
            cv=0.012,
            causes={"block_x": 0.8},
            blocks=(64, 128, 256, 512),
            grids=(33, 66, 132),
            registers=32,
            static_shared_bytes=16,
        ),
        Kernel(
            "void at::native::vectorized_gather_kernel<(int)16, long>(char *, char *, T2 *, int, long, long, long, long, bool)",
            "vectorized_gather_kernel",
            "_ZN2at6native24vectorized_gather_kernelILi16ElEEvPcS2_PT0_illllb",
            60,
            grids=(512, 1024, 768, 1536),
            grids_over_time=True,
            grid_share=0.6,
            registers=24,
        ),
        Kernel(
            "void at::native::<unnamed>::vectorized_layer_norm_kernel<c10::Half, float>(int, T2, const T1 *, const T1 *, "
            "const T1 *, T2 *, T2 *, T1 *)",
            "vectorized_layer_norm_kernel",
            "_ZN2at6native53_GLOBAL__N__ba0e0d3e_20_layer_norm_kernel_cu_9c5ada8a_112vectorized_layer_norm_"
            "kernelIN3c104HalfEfEEviT0_PKT_S8_S8_PS5_S9_PS6_",
            30,
            causes={"idle_before_ns": 0.16},
            blocks=(128,),
            grids=(2048,),
            registers=38,
            dynamic_shared_bytes=48,
            gap_us=10,
            gap_sigma=0.8,
        ),
        Kernel(
            "ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevComm *, unsigned long, ncclWork *)",
            "ncclDevKernel_AllReduce_Sum_f16_RING_LL",
            "_Z39ncclDevKernel_AllReduce_Sum_f16_RING_LLP11ncclDevCommmP8ncclWork",
            250,
            cv=0.08,
            rho=0.9,
            blocks=(512,),
            grids=(24,),
            registers=96,
            static_shared_bytes=29152,
            driver_launch=True,
        ),
        Kernel(
            "void at::native::<unnamed>::fused_dropout_kernel_vec<c10::Half, float, unsigned int, (int)1, (int)4, "
            "bool>(at::cuda::detail::TensorInfo<const T1, T3>, "
            "at::cuda::detail::TensorInfo<T1, T3>, at::cuda::detail::TensorInfo<T6, T3>, T3, T2, at::PhiloxCudaState)",
            "fused_dropout_kernel_vec",
            "_ZN2at6native58_GLOBAL__N__9a4f3e5c_10_Dropout_cu_4a2c1f5424fused_dropout_kernel_"
            "vecIN3c104HalfEfjLi1ELi4EbEEvNS_4cuda6detail10TensorInfoIKT_T1_EENS7_IS8_SA_EENS7_IT4_SA_EESA_T0_NS_"
            "15PhiloxCudaStateE",
            60,
            cv=0.12,
            spike_share=0.02,
            spike_size=0.8,
            grids=(1056,),
            registers=48,
        ),
    )


def copies() -> tuple[Copy, ...]:
    """Return the copies of the demonstration run: host to device, device to host and within the device, each on its own stream."""
    return (
        Copy(1, 13, 1, 2, 1 * MIB, 0.8, 260, 25),
        Copy(2, 14, 2, 1, MIB // 2, 0.6, 230, 25),
        Copy(8, 15, 2, 2, 24 * MIB, 0.5, 260, 1400),
    )

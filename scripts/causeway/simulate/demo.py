"""The demonstration run: kernels named as a training step's, and what is planted in them."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from causeway.core.errors import CausewayError
from causeway.simulate.scenario import MIB, Copy, Scenario, SimulatedKernel, check

PROGRAM_REPEATS = 5
DEMONSTRATION: dict[str, Any] = {
    "kind": "trace",
    "ranks": 4,
    "nodes": 2,
    "iterations": 560,
    "seed": 1,
    "collective": "wait",
    "clock_error_us": 400.0,
    "clock_drift_ppm": 8.0,
    "straggler": "host",
    "straggler_rank": 2,
    "straggler_share": 0.6,
    "straggler_us": 300.0,
    "input_bytes": 3 * MIB,
    "effects": True,
    "causes": {
        "vectorized_elementwise_kernel": {"h2d_bytes_in_flight": 0.08, "launches_in_flight": 0.07},
        "softmax_warp_forward": {"launches_in_flight": 0.5},
    },
}
"""The run `demo` under `simulated` in config/config.yaml: what is set differs from the plain scenario so that every
part of a report has something to show. One cause costs its kernel more than 5 % of its time.
"""


def kernels() -> tuple[SimulatedKernel, ...]:
    """Return the kernels of the demonstration run, the planted causes with them."""
    return (
        SimulatedKernel(
            name="void cutlass::Kernel2<cutlass_80_tensorop_f16_s16816gemm_relu_f16_128x128_32x4_tn_align8>("
            "T1::Params)",
            short_name="Kernel2",
            mangled_name="_ZN7cutlass7Kernel2I63cutlass_80_tensorop_f16_s16816gemm_relu_f16_128x128_32x4_tn_align8EEvNT_6ParamsE",
            base_us=120,
            causes={"h2d_bytes_in_flight": 0.08},
            blocks=(128,),
            grids=(1024,),
            registers=154,
            dynamic_shared_bytes=65536,
        ),
        SimulatedKernel(
            name="void at::native::vectorized_elementwise_kernel<(int)4, at::native::CUDAFunctor_add<c10::Half>, "
            "std::array<char *, (unsigned long)3>>(int, T2, T3)",
            short_name="vectorized_elementwise_kernel",
            mangled_name="_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIN3c104HalfEEESt5arrayIPcLm3EEEEviT0_T1_",
            base_us=40,
            causes={"launches_in_flight": 0.07},
            blocks=(128,),
            grids=(4096,),
            registers=28,
        ),
        SimulatedKernel(
            name="void <unnamed>::softmax_warp_forward<c10::Half, c10::Half, float, (int)10, (bool)0, (bool)0>(T2 *,"
            " const T1 *, int, int, int, const bool *, int, bool)",
            short_name="softmax_warp_forward",
            mangled_name="_ZN43_GLOBAL__N__fae31c2b_10_SoftMax_cu_9f978f6320softmax_warp_forwardIN3c104HalfES2_fLi10ELb0ELb0EEEvPT0_PKT_iiiPKbib",
            base_us=60,
            causes={"h2d_bytes_in_flight": 0.08, "launches_in_flight": 0.07},
            blocks=(128,),
            grids=(2048,),
            registers=40,
        ),
        SimulatedKernel(
            name="void at::native::reduce_kernel<(int)512, (int)1, at::native::ReduceOp<float,"
            " at::native::MeanOps<float, float, float, float>, unsigned int, float, (int)4, (int)4>>(T3)",
            short_name="reduce_kernel",
            mangled_name="_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIfNS0_7MeanOpsIffffEEjfLi4ELi4EEEEEvT1_",
            base_us=50,
            cv=0.012,
            causes={"block_x": 0.8},
            blocks=(64, 128, 256, 512),
            grids=(33, 66, 132),
            registers=32,
            static_shared_bytes=16,
        ),
        SimulatedKernel(
            name="void at::native::vectorized_gather_kernel<(int)16, long>(char *, char *, T2 *, int, long, long, long,"
            " long, bool)",
            short_name="vectorized_gather_kernel",
            mangled_name="_ZN2at6native24vectorized_gather_kernelILi16ElEEvPcS2_PT0_illllb",
            base_us=60,
            grids=(512, 1024, 768, 1536),
            grids_over_time=True,
            grid_share=0.6,
            registers=24,
        ),
        SimulatedKernel(
            name="void at::native::<unnamed>::vectorized_layer_norm_kernel<c10::Half, float>(int, T2, const T1 *,"
            " const T1 *, const T1 *, T2 *, T2 *, T1 *)",
            short_name="vectorized_layer_norm_kernel",
            mangled_name="_ZN2at6native53_GLOBAL__N__ba0e0d3e_20_layer_norm_kernel_cu_9c5ada8a_112vectorized_layer_norm_"
            "kernelIN3c104HalfEfEEviT0_PKT_S8_S8_PS5_S9_PS6_",
            base_us=30,
            causes={"idle_before_ns": 0.16},
            blocks=(128,),
            grids=(2048,),
            registers=38,
            dynamic_shared_bytes=48,
            gap_us=10,
            gap_sigma=0.8,
        ),
        SimulatedKernel(
            name="ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevComm *, unsigned long, ncclWork *)",
            short_name="ncclDevKernel_AllReduce_Sum_f16_RING_LL",
            mangled_name="_Z39ncclDevKernel_AllReduce_Sum_f16_RING_LLP11ncclDevCommmP8ncclWork",
            base_us=250,
            cv=0.08,
            rho=0.9,
            blocks=(512,),
            grids=(24,),
            registers=96,
            static_shared_bytes=29152,
            driver_launch=True,
        ),
        SimulatedKernel(
            name="void at::native::<unnamed>::fused_dropout_kernel_vec<c10::Half, float, unsigned int, (int)1, (int)4, "
            "bool>(at::cuda::detail::TensorInfo<const T1, T3>, "
            "at::cuda::detail::TensorInfo<T1, T3>, at::cuda::detail::TensorInfo<T6, T3>, T3, T2, at::PhiloxCudaState)",
            short_name="fused_dropout_kernel_vec",
            mangled_name="_ZN2at6native58_GLOBAL__N__9a4f3e5c_10_Dropout_cu_4a2c1f5424fused_dropout_kernel_"
            "vecIN3c104HalfEfjLi1ELi4EbEEvNS_4cuda6detail10TensorInfoIKT_T1_EENS7_IS8_SA_EENS7_IT4_SA_EESA_T0_NS_"
            "15PhiloxCudaStateE",
            base_us=60,
            cv=0.12,
            spike_share=0.02,
            spike_size=0.8,
            grids=(1056,),
            registers=48,
        ),
    )


def copies() -> tuple[Copy, ...]:
    """Return the copies of the demonstration run: host to device, device to host and within the device, each on its
    own stream.
    """
    return (
        Copy(
            kind=1,
            stream=13,
            source_kind=1,
            target_kind=2,
            median_bytes=1 * MIB,
            sigma=0.8,
            pause_us=260,
            bandwidth_gb_s=25,
        ),
        Copy(
            kind=2,
            stream=14,
            source_kind=2,
            target_kind=1,
            median_bytes=MIB // 2,
            sigma=0.6,
            pause_us=230,
            bandwidth_gb_s=25,
        ),
        Copy(
            kind=8,
            stream=15,
            source_kind=2,
            target_kind=2,
            median_bytes=24 * MIB,
            sigma=0.5,
            pause_us=260,
            bandwidth_gb_s=1400,
        ),
    )


def trace_scenario(values: Mapping[str, Any] | None = None) -> Scenario:
    """Return the demonstration run with the given values in place of its own.

    Parameters
    ----------
    values : mapping or None
        Fields of `Scenario`, and `causes`: for a kernel's short name the causes that replace its own, `{}` for none.

    Raises
    ------
    CausewayError
        For an unknown key, kernel or cause, or a value out of its range.
    """
    values = dict(values or {})
    causes = values.pop("causes", None) or {}
    known = {field.name for field in dataclasses.fields(Scenario)}
    unknown = sorted(set(values) - known)
    if unknown:
        raise CausewayError(
            f"simulated trace: unknown keys {unknown}; known are {', '.join(sorted(known | {'causes', 'kind'}))}"
        )
    parts: dict[str, Any] = {
        "kernels": kernels(),
        "program": (0, 1, 2, 3, 4) * PROGRAM_REPEATS,
        "closing": (5,) * PROGRAM_REPEATS + (6,),
        "neighbour": 7,
        "copies": copies(),
        **values,
    }
    parts["without"] = tuple(parts.get("without", ()))
    parts.setdefault("nodes", min(Scenario.nodes, parts.get("ranks", Scenario.ranks)))  # no node without a rank
    names = [kernel.short_name for kernel in parts["kernels"]]
    unknown = sorted(set(causes) - set(names))
    if unknown:
        raise CausewayError(f"simulated trace: causes for unknown kernels {unknown}; known are {names}")
    parts["kernels"] = tuple(
        dataclasses.replace(kernel, causes=causes[kernel.short_name]) if kernel.short_name in causes else kernel
        for kernel in parts["kernels"]
    )
    scenario = Scenario(**parts)
    check(scenario)
    return scenario

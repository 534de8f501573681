"""Large exports of any size, written in bounded memory: Kineto JSON, rocprofv3 JSON, Nsight Compute CSV, and
rocprof's tables.
"""

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path

KERNELS = 29
SHAPES = 31
ROWS_AT_ONCE = 500
START_US = 4_458_676_983_543


def kineto_events(n: int) -> list[str]:
    """Return the events of one launch as PyTorch writes them: an operator, a Python frame, the call, the launch and
    the arrow between.
    """
    ts = START_US + 30 * n
    return [
        f"""  {{
    "ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 3143, "tid": 3143,
    "ts": {ts - 9}.183, "dur": 13.211,
    "args": {{
      "External id": {n},"Record function id": 0, "Concrete Inputs": ["", ""], "Input type": ["float", "float"], "Input Strides": [[4096, 1], [1, 4096]], "Input Dims": [[1024, 4096], [4096, 4096]], "Ev Idx": {n}
    }}
  }}""",
        f"""  {{
    "ph": "X", "cat": "python_function", "name": "torch/nn/modules/linear.py({n % 700}): forward", "pid": 3143, "tid": 3143,
    "ts": {ts - 10}.183, "dur": 15.001,
    "args": {{
      "Python parent id": {n}, "Python id": {n + 1}, "Ev Idx": {n}
    }}
  }}""",
        f"""  {{
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 3143, "tid": 3143,
    "ts": {ts}.183, "dur": 3.112,
    "args": {{
      "External id": {n}, "cbid": 211, "correlation": {n}
    }}
  }}""",
        f"""  {{
    "ph": "X", "cat": "kernel", "name": "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, at::detail::Array<char*, {n % KERNELS}> >(int, at::native::FillFunctor<float>, at::detail::Array<char*, 1>)", "pid": 0, "tid": 7,
    "ts": {ts + 5}.183, "dur": {5 + n % 977 // 100}.{10 * (n % 100):03},
    "args": {{
      "External id": {n},"queued": 0, "device": 0, "context": 1,"stream": 7, "correlation": {n},"registers per thread": 32,"shared memory": 0, "blocks per SM": 1.212, "warps per SM": 9.696,"grid": [{1 + n % SHAPES}, 1, 1],"block": [256, 1, 1], "est. achieved occupancy %": 15
    }}
  }}""",
        (
            f'  {{\n    "ph": "s", "id": {n}, "pid": 3143, "tid": 3143, "ts": {ts}.183,\n    "cat": "ac2g", "name":'
            ' "ac2g"\n  }'
        ),
        (
            f'  {{\n    "ph": "f", "id": {n}, "pid": 0, "tid": 7, "ts": {ts + 5}.183,\n    "cat": "ac2g", "name":'
            ' "ac2g", "bp": "e"\n  }'
        ),
    ]


def kineto(launches: int) -> Iterator[str]:
    """Give the text of a Kineto trace, some 1.7 kB per launch."""
    yield """{
  "schemaVersion": 1,
  "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85027520512, "numSms": 132}],
  "cupti_version": 22,
  "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 8},
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": 1712361600000000000,
  "traceEvents": [
"""
    for begin in range(0, launches, ROWS_AT_ONCE):
        events = [event for n in range(begin, min(launches, begin + ROWS_AT_ONCE)) for event in kineto_events(n)]
        yield (",\n" if begin else "") + ",\n".join(events)
    yield '\n  ],\n  "traceName": "trace.json"\n}\n'


def rocprofv3(launches: int) -> Iterator[str]:
    """Give the text of rocprofv3's JSON, some 0.9 kB per launch: its launch and its call."""
    yield """{"rocprofiler-sdk-tool": [{"metadata": {"pid": 77, "init_time": 1, "fini_time": 99},
"agents": [{"id": {"handle": 11}, "type": 2, "logical_node_type_id": 0, "node_id": 1, "name": "gfx942"}],
"strings": {"buffer_records": [{"kind": "HIP_RUNTIME_API", "operations": ["NONE", "hipLaunchKernel"]}]},
"kernel_symbols": ["""
    yield ",".join(f'{{"kernel_id": {k}, "formatted_kernel_name": "kernel_{k}(float*)"}}' for k in range(KERNELS))
    yield '], "buffer_records": {"kernel_dispatch": [\n'
    for begin in range(0, launches, ROWS_AT_ONCE):
        rows = [
            f'{{"size": 176, "kind": 11, "operation": 0, "thread_id": 78, "correlation_id": {{"internal": {n},'
            f' "external": 0}}, "start_timestamp": {10**15 + 9000 * n}, "end_timestamp":'
            f' {10**15 + 9000 * n + 4000 + n % 977}, "dispatch_info": {{"size": 136, "agent_id": {{"handle": 11}},'
            f' "queue_id": {{"handle": 1}}, "kernel_id": {n % KERNELS}, "dispatch_id": {n}, "private_segment_size": 0,'
            ' "group_segment_size": 0, "workgroup_size": {"x": 256, "y": 1, "z": 1}, "grid_size": {"x":'
            f' {256 * (1 + n % SHAPES)}, "y": 1, "z": 1}}}}, "stream_id": {{"handle": 0}}}}'
            for n in range(begin, min(launches, begin + ROWS_AT_ONCE))
        ]
        yield (",\n" if begin else "") + ",\n".join(rows)
    yield '], "hip_api": [\n'
    for begin in range(0, launches, ROWS_AT_ONCE):
        rows = [
            '{"size": 48, "kind": "HIP_RUNTIME_API", "operation": 1, "thread_id": 78, "correlation_id": {"internal":'
            f' {n}}}, "start_timestamp": {10**15 + 9000 * n - 3000}, "end_timestamp": {10**15 + 9000 * n - 1000}}}'
            for n in range(begin, min(launches, begin + ROWS_AT_ONCE))
        ]
        yield (",\n" if begin else "") + ",\n".join(rows)
    yield "]}}]}\n"


METRICS = {
    "gpu__time_duration.sum": "nsecond",
    "dram__bytes_read.sum": "byte",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "%",
    "launch__registers_per_thread": "register/thread",
    **{f"smsp__counter_{n:02}.sum": "" for n in range(16)},
}
NCU_HEAD = (
    "ID,Process ID,Process Name,Host Name,Kernel Name,Context,Stream,Block Size,Grid Size,Device,CC,Section Name,Metric"
    " Name,Metric Unit"
)


def ncu(launches: int) -> Iterator[str]:
    """Give the text of Nsight Compute's long CSV, some 4 kB per launch: twenty metrics."""
    yield "==PROF== Connected to process 77\n"
    yield ",".join(f'"{name}"' for name in [*NCU_HEAD.split(","), "Metric Value"]) + "\n"
    for n in range(launches):
        head = f'"{n}","77","app","127.0.0.1","void kernel_{n % KERNELS}<float, 4>(float*, int)","1","7","(256, 1, 1)"'
        head += f',"({1 + n % SHAPES}, 1, 1)","0","9.0","Command line profiler metrics"'
        yield "".join(
            f'{head},"{metric}","{unit}","{32 if at == 3 else 1000 + 37 * n + at:,}"\n'
            for at, (metric, unit) in enumerate(METRICS.items())
        )


ROCPROF_HEAD = (
    "Index,KernelName,gpu-id,queue-id,queue-index,pid,tid,grd,wgr,lds,scr,arch_vgpr,accum_vgpr,sgpr,wave_size,sig,obj"
)
ROCPROF_HEAD += ",DispatchNs,BeginNs,EndNs,CompleteNs,DurationNs"


def rocprof(launches: int) -> Iterator[str]:
    """Give the text of rocprof's results.csv, some 0.2 kB per launch."""
    yield ",".join(f'"{name}"' for name in ROCPROF_HEAD.split(",")) + "\n"
    for n in range(launches):
        at = 10**15 + 10_000 * n
        yield (
            f'{n},"kernel_{n % KERNELS}(float*) [clone'
            f' .kd]",2,0,{n},77,77,{256 * (1 + n % SHAPES)},256,0,0,16,0,32,64,0x0,0x7f50a7abb600,'
            f"{at},{at + 500},{at + 3017 + n % 977},{at + 6000},{2517 + n % 977}\n"
        )


def write(path: Path, text: Callable[[int], Iterator[str]], launches: int) -> Path:
    """Write an export, packed where its name ends in `.gz`; reuse it if it is there."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(path.name + ".partial")
        with (
            gzip.open(partial, "wt", compresslevel=1) if path.suffix == ".gz" else open(partial, "w", encoding="utf-8")
        ) as handle:
            handle.writelines(text(launches))
        partial.replace(path)
    return path

"""One made-up run of rocprofv3 as it writes it: CSV files (2026) and JSON; `rocpd_samples` writes databases."""

import csv
import json
import random

HOST = 0
GPUS = (1, 2)
SECRET = "hunter2-s3cr3t"  # noqa: S105 - planted, to be looked for
KERNELS = {
    3: ("void scale<float>(float*, int)", 1000, 24, 0, 48),
    5: ("ncclDevKernel_Generic(ncclDevKernelArgs)", 0, 96, 32, 112),
    8: ("__amd_rocclr_copyBuffer", 512, 8, 0, 32),
}
"""kernel id -> name, static LDS in bytes, VGPRs, accumulation VGPRs, SGPRs."""
HANDLE = 37_000
KINDS = [
    {"kind": "NONE", "operations": []},
    {"kind": "HIP_RUNTIME_API_EXT", "operations": ["hipLaunchKernel", "hipMemcpyAsync", "hipStreamSynchronize"]},
    {"kind": "MARKER_CORE_RANGE_API", "operations": ["roctxThreadRangeA"]},
    {"kind": "KERNEL_DISPATCH", "operations": ["NONE", "ENQUEUE", "COMPLETE"]},
    {
        "kind": "MEMORY_COPY",
        "operations": [
            "MEMORY_COPY_NONE",
            "MEMORY_COPY_HOST_TO_DEVICE",
            "MEMORY_COPY_DEVICE_TO_HOST",
            "MEMORY_COPY_DEVICE_TO_DEVICE",
        ],
    },
]
UNREADABLE_ID = 17_332_996_360_099_338_395
"""An unsigned 64-bit number, as agents have them (hive_id)."""


def make_run(n=40, pid=4242, seed=1):
    """Return a run of `n` launches with their calls, copies, markers and counters."""
    chosen = random.Random(seed)
    run = {"pid": pid, "launches": [], "calls": [], "copies": [], "ranges": [], "counters": []}
    time = 10_000_000
    correlation = 0
    free: dict[tuple[int, int], int] = {}  # a stream runs one launch after the other
    for at in range(n):
        correlation += 1
        kernel = chosen.choice(list(KERNELS))
        thread = pid + at % 2
        call = (0, correlation, thread, time, time + chosen.randrange(500, 900))
        run["calls"].append(call)
        start = call[4] + chosen.randrange(-50, 5000)
        block = (256, 1, 1) if kernel != 5 else (128, 2, 1)
        launch = {
            "number": at + 1,
            "kernel": kernel,
            "thread": thread,
            "correlation": correlation,
            "start": start,
            "stop": start + chosen.randrange(1000, 90_000),
            "agent": chosen.choice(GPUS),
            "queue": 1 + at % 4,
            "stream": at % 4,
            "scratch": 0,
            "block": block,
            "grid": (block[0] * chosen.choice((4, 16)), block[1] * 2, 1),
        }
        stream = launch["agent"], launch["stream"]
        waits = max(0, free.get(stream, start) - start)
        launch["start"] += waits
        launch["stop"] += waits
        free[stream] = launch["stop"]
        run["launches"].append(launch)
        run["counters"].append((launch, {"SQ_WAVES": [4.0 * at, 1.0, 2.0], "TCC_HIT_sum": [chosen.random() * 1e6]}))
        time += 10_000
        if at % 5 == 0:
            correlation += 1
            kind = chosen.choice((1, 2, 3))
            ends = {1: (HOST, GPUS[0]), 2: (GPUS[1], HOST), 3: GPUS}[kind]
            run["calls"].append((1, correlation, thread, time, time + 700))
            run["copies"].append(
                (
                    kind,
                    correlation,
                    thread,
                    time + 800,
                    time + 800 + chosen.randrange(100, 9000),
                    *ends,
                    at % 4,
                    1 << at % 20,
                )
            )
            time += 10_000
        if at % 8 == 0:
            correlation += 1
            run["ranges"].append((f"step {at}, <phase>", correlation, thread, time - 15_000, time + 60_000))
    chosen.shuffle(run["launches"])  # completion order
    return run


def write_csv(run, folder, prefix=None):
    """Write the files of `rocprofv3 --output-format csv`; every field is quoted, also numbers."""
    folder.mkdir(parents=True, exist_ok=True)
    prefix = str(run["pid"]) if prefix is None else prefix

    def table(name, header, rows):
        with open(folder / f"{prefix}{'_' if prefix else ''}{name}.csv", "w", newline="") as handle:
            writer = csv.writer(handle, quoting=csv.QUOTE_ALL, lineterminator="\n")
            writer.writerow(header.split())
            writer.writerows(rows)

    table(
        "kernel_trace",
        "Kind Agent_Id Queue_Id Stream_Id Thread_Id Dispatch_Id Kernel_Id Kernel_Name Correlation_Id Start_Timestamp"
        " End_Timestamp LDS_Block_Size Scratch_Size VGPR_Count Accum_VGPR_Count SGPR_Count"
        " Workgroup_Size_X Workgroup_Size_Y Workgroup_Size_Z Grid_Size_X Grid_Size_Y Grid_Size_Z",
        [
            [
                "KERNEL_DISPATCH",
                f"Agent {one['agent']}",
                one["queue"],
                one["stream"],
                one["thread"],
                one["number"],
                one["kernel"],
                KERNELS[one["kernel"]][0],
                one["correlation"],
                one["start"],
                one["stop"],
                _allocated(one),
                one["scratch"],
                *KERNELS[one["kernel"]][2:],
                *one["block"],
                *one["grid"],
            ]
            for one in run["launches"]
        ],
    )
    api = "Domain Function Process_Id Thread_Id Correlation_Id Start_Timestamp End_Timestamp"
    calls = [
        ["HIP_RUNTIME_API_EXT", KINDS[1]["operations"][op], run["pid"], thread, correlation, *times]
        for op, correlation, thread, *times in run["calls"]
    ]
    table("hip_api_trace", api, calls)
    ranges = [
        ["MARKER_CORE_RANGE_API", text, run["pid"], thread, correlation, *times]
        for text, correlation, thread, *times in run["ranges"]
    ]
    table("marker_api_trace", api, ranges)
    table(
        "memory_copy_trace",
        "Kind Direction Stream_Id Source_Agent_Id Destination_Agent_Id Correlation_Id Start_Timestamp End_Timestamp",
        [
            [
                "MEMORY_COPY",
                KINDS[4]["operations"][kind],
                stream,
                f"Agent {source}",
                f"Agent {target}",
                correlation,
                start,
                stop,
            ]
            for kind, correlation, _, start, stop, source, target, stream, _ in run["copies"]
        ],
    )
    table(
        "counter_collection",
        "Correlation_Id Dispatch_Id Agent_Id Queue_Id Process_Id Thread_Id Grid_Size Kernel_Id Kernel_Name"
        " Workgroup_Size LDS_Block_Size Scratch_Size VGPR_Count Accum_VGPR_Count SGPR_Count"
        " Counter_Name Counter_Value Start_Timestamp End_Timestamp",
        [
            [
                one["correlation"],
                one["number"],
                f"Agent {one['agent']}",
                one["queue"],
                run["pid"],
                one["thread"],
                _volume(one["grid"]),
                one["kernel"],
                KERNELS[one["kernel"]][0],
                _volume(one["block"]),
                _allocated(one),
                one["scratch"],
                *KERNELS[one["kernel"]][2:],
                name,
                repr(sum(values)),
                one["start"],
                one["stop"],
            ]
            for one, counters in run["counters"]
            for name, values in counters.items()
        ],
    )
    table(
        "agent_info",
        "Node_Id Logical_Node_Id Agent_Type Cu_Count Max_Engine_Clk_Fcompute Name Product_Name",
        [
            [HOST, HOST, "CPU", 64, 0, "cpu", "A CPU"],
            *([gpu, gpu, "GPU", 256, 2200, "gfx950", "A GPU"] for gpu in GPUS),
        ],
    )


def _allocated(launch):
    """Return the LDS of a launch as the CSV files have it: in units of 512 bytes."""
    return -(-KERNELS[launch["kernel"]][1] // 512) * 512


def _volume(size):
    return size[0] * size[1] * size[2]


def _xyz(size):
    return dict(zip("xyz", size, strict=True))


def json_process(run):
    """Return one process as rocprofv3's JSON has it."""

    def info(one):
        return {
            "size": 72,
            "agent_id": {"handle": HANDLE + one["agent"]},
            "queue_id": {"handle": one["queue"]},
            "kernel_id": one["kernel"],
            "dispatch_id": one["number"],
            "private_segment_size": one["scratch"],
            "group_segment_size": KERNELS[one["kernel"]][1],
            "workgroup_size": _xyz(one["block"]),
            "grid_size": _xyz(one["grid"]),
        }

    def record(kind, operation, correlation, thread, start, stop, **more):
        times = {"start_timestamp": start, "end_timestamp": stop}
        return {
            "size": 64,
            "kind": kind,
            "operation": operation,
            "thread_id": thread,
            "correlation_id": {"internal": correlation, "external": 0},
            **times,
            **more,
        }

    agents = [
        {
            "id": {"handle": HANDLE},
            "type": 1,
            "node_id": HOST,
            "logical_node_id": HOST,
            "product_name": "A CPU",
            "cu_count": 64,
        }
    ]
    agents += [
        {
            "id": {"handle": HANDLE + gpu},
            "type": 2,
            "node_id": gpu,
            "logical_node_id": gpu,
            "product_name": "A GPU",
            "cu_count": 256,
            "max_engine_clk_fcompute": 2200,
            "hive_id": UNREADABLE_ID,
        }
        for gpu in GPUS
    ]
    counters = [
        {"agent_id": {"handle": HANDLE + gpu}, "id": {"handle": 100 * gpu + at}, "name": name, "is_constant": 0}
        for gpu in GPUS
        for at, name in enumerate(("SQ_WAVES", "TCC_HIT_sum"))
    ]
    return {
        "metadata": {
            "node": {"id": 0, "hostname": f"{SECRET}.cluster", "machine_id": SECRET},
            "pid": run["pid"],
            "command": ["python", "train.py", f"--token={SECRET}"],
            "config": {"output_path": f"/home/{SECRET}"},
        },
        "agents": agents,
        "counters": counters,
        "strings": {
            "callback_records": KINDS,
            "buffer_records": KINDS,
            "marker_api": [{"key": correlation, "value": text} for text, correlation, *_ in run["ranges"]],
            "correlation_id": {"external": {}},
        },
        "code_objects": [{"uri": f"file:///home/{SECRET}/a.out", "size": 1}],
        "kernel_symbols": [
            {
                "size": 88,
                "kernel_id": number,
                "formatted_kernel_name": name,
                "kernel_name": "_Z.kd",
                "group_segment_size": lds,
                "arch_vgpr_count": vgpr,
                "accum_vgpr_count": accum,
                "sgpr_count": sgpr,
            }
            for number, (name, lds, vgpr, accum, sgpr) in KERNELS.items()
        ],
        "callback_records": {
            "counter_collection": [
                {
                    "thread_id": one["thread"],
                    "dispatch_data": {
                        "correlation_id": {"internal": one["correlation"]},
                        "start_timestamp": one["start"],
                        "end_timestamp": one["stop"],
                        "dispatch_info": info(one),
                    },
                    "records": [
                        {"counter_id": {"handle": 100 * one["agent"] + at}, "value": value}
                        for at, values in enumerate(found.values())
                        for value in values
                    ],
                    "stream_id": {"handle": one["queue"]},
                }
                for one, found in run["counters"]
            ]
        },
        "buffer_records": {
            "kernel_dispatch": [
                record(
                    3,
                    2,
                    one["correlation"],
                    one["thread"],
                    one["start"],
                    one["stop"],
                    dispatch_info=info(one),
                    stream_id={"handle": one["stream"]},
                )
                for one in run["launches"]
            ],
            "hip_api": [record(1, op, correlation, *rest) for op, correlation, *rest in run["calls"]],
            "hsa_api": [],
            "marker_api": [record(2, 0, correlation, *rest) for _, correlation, *rest in run["ranges"]],
            "memory_copy": [
                record(
                    4,
                    kind,
                    correlation,
                    thread,
                    start,
                    stop,
                    src_agent_id={"handle": HANDLE + source},
                    dst_agent_id={"handle": HANDLE + target},
                    stream_id={"handle": stream},
                    bytes=size,
                )
                for kind, correlation, thread, start, stop, source, target, stream, size in run["copies"]
            ],
            "pc_sample_host_trap": [{"exec_mask": 1, "list": [[1, 2], {"a": None}]}],
        },
    }


def write_json(runs, path):
    """Write processes as JSON."""
    path.write_text(json.dumps({"rocprofiler-sdk-tool": [json_process(run) for run in runs]}), encoding="utf-8")
    return path

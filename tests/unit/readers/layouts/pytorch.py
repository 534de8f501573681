"""Made-up traces of PyTorch's profiler, Kineto, and of JAX's."""

import gzip
import json

from layouts.basics import SECRET, layout


def kineto_document(kernel, rows):
    events = [
        {"ph": "M", "name": "process_name", "pid": 5, "args": {"name": SECRET}},
        {
            "ph": "X",
            "cat": "python_function",
            "name": f"/home/{SECRET}/train.py(3): main",
            "pid": 5,
            "tid": 5,
            "ts": 1,
            "dur": 100,
            "args": {"Call stack": SECRET},
        },
        {
            "ph": "X",
            "cat": "user_annotation",
            "name": "step",
            "pid": 5,
            "tid": 5,
            "ts": 0,
            "dur": 10 * rows,
            "args": {},
        },
        {"ph": "X", "cat": "overhead", "name": "Activity Buffer Request", "pid": -1, "tid": 0, "ts": 1, "dur": 2},
    ]
    for n in range(rows):
        call = {
            "ph": "X",
            "cat": "cuda_runtime",
            "name": "cudaLaunchKernel",
            "pid": 5,
            "tid": 5,
            "ts": 10 * n,
            "dur": 1.5,
        }
        events.append(call | {"args": {"correlation": n, "env": SECRET}})
        args = {
            "device": 0,
            "stream": 7,
            "correlation": n,
            "grid": [4, 1, 1],
            "block": [32, 1, 1],
            "environment": SECRET,
        }
        events.append(
            {
                "ph": "X",
                "cat": "kernel",
                "name": kernel,
                "pid": 0,
                "tid": 7,
                "ts": 10 * n + 2,
                "dur": 5.125,
                "args": args,
            }
        )
        if n % 4 == 0:
            args = {"device": 0, "stream": 8, "correlation": 1000 + n, "bytes": 4096}
            copy = {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy HtoD (Pageable -> Device)", "pid": 0, "tid": 8}
            events.append(copy | {"ts": 10 * n + 1, "dur": 3, "args": args})
    top = {
        "schemaVersion": 1,
        "hostname": SECRET,
        "distributedInfo": {"rank": 3, "host": SECRET},
        "traceName": f"/scratch/{SECRET}.json",
    }
    return top | {
        "deviceProperties": [{"id": 0, "name": "A GPU", "numSms": 132, "totalGlobalMem": 1 << 36}],
        "traceEvents": events,
    }


@layout("kineto.json", "kineto")
def kineto(folder, kernel, rows):
    (folder / "trace.json").write_text(json.dumps(kineto_document(kernel, rows)), encoding="utf-8")
    return folder / "trace.json"


@layout("kineto.json.gz", "kineto")
def kineto_gz(folder, kernel, rows):
    (folder / "trace.json.gz").write_bytes(gzip.compress(json.dumps(kineto_document(kernel, rows)).encode(), mtime=0))
    return folder / "trace.json.gz"


@layout("kineto counters", "kineto")
def kineto_counters(folder, kernel, rows):
    document = kineto_document(kernel, 0)
    for n in range(rows):
        args = {
            "smsp__inst_executed.sum": 100 * n,
            "sm__throughput.avg.pct_of_peak_sustained_elapsed": n + 0.5,
            "host": SECRET,
        }
        event = {
            "ph": "X",
            "cat": "cuda_profiler_range",
            "name": kernel,
            "pid": 0,
            "tid": 0,
            "ts": 10 * n,
            "dur": 5,
            "args": args,
        }
        document["traceEvents"].append(event)
    (folder / "trace.json").write_text(json.dumps(document), encoding="utf-8")
    return folder / "trace.json"


@layout("jax.json.gz", "kineto")
def jax_gz(folder, kernel, rows):
    names = [(1, None, f"{SECRET} /device:GPU:0"), (1, 14, "Stream #14(Compute)"), (1, 90, "XLA Ops")]
    events = [
        {
            "ph": "M",
            "pid": pid,
            "tid": tid,
            "name": "process_name" if tid is None else "thread_name",
            "args": {"name": name},
        }
        for pid, tid, name in [*names, (701, None, "/host:CPU"), (701, 33, SECRET)]
    ]
    events = [{key: value for key, value in event.items() if value is not None} for event in events]
    path = f"$/home/{SECRET}/train.py:3 step"
    events.append({"ph": "X", "pid": 701, "tid": 33, "ts": 0.5, "dur": 10 * rows, "name": path})
    events.append({"ph": "X", "pid": 701, "tid": 33, "ts": 0.5, "dur": 10 * rows, "name": "train"})
    for n in range(rows):
        link = {"correlation_id": str(n), "context_id": "$$1", "host": SECRET}
        details = "regs:24 static_shared:0 dynamic_shared:1024 grid:4,1,1 block:128,1,1 occ_pct:50"
        call = {"ph": "X", "pid": 701, "tid": 33, "ts": 10 * n + 1.125, "dur": 1.5, "name": kernel, "args": link}
        launch = {"ph": "X", "pid": 1, "tid": 14, "ts": 10 * n + 4.25, "dur": 2.125, "name": kernel}
        events += [call, launch | {"args": link | {"kernel_details": details, "hlo_op": SECRET}}]
        events.append(launch | {"tid": 90, "name": "fusion", "args": {"hlo_op": "fusion"}})
        if n % 4 == 0:
            copied = {
                "correlation_id": str(1000 + n),
                "memcpy_details": "kind_src:pinned kind_dst:device size:64 dest:0",
            }
            events.append(launch | {"ts": 10 * n + 7.5, "dur": 1.25, "name": "MemcpyH2D", "args": copied})
    document = {"displayTimeUnit": "ns", "metadata": {"host": SECRET}, "traceEvents": [*events, {}]}
    (folder / "jax.trace.json.gz").write_bytes(gzip.compress(json.dumps(document).encode(), mtime=0))
    return folder / "jax.trace.json.gz"

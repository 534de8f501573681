"""Traces of one program on devices of two makers: the same operators and inputs, kernels of other names and number."""

import json

import numpy as np

STEPS = 60
GAP = 2_000
WORK = (
    ("aten::mm", [[4096, 4096], [4096, 4096]], 300_000),
    ("aten::mm", [[4096, 4096], [4096, 11008]], 800_000),
    ("aten::batch_norm", [[32, 256, 56, 56], [256]], 90_000),
    ("aten::add_", [[4096, 4096], [4096, 4096], []], 40_000),
    ("aten::mm", [[4096, 4096], [4096, 4096]], 300_000),
)
"""Operators of a step, their inputs, and the time of a call, ns."""
MAKERS = {
    "nvidia": ("NVIDIA H100 80GB HBM3", "sm90_xmma_gemm_bf16bf16_{}_tn", "cudnn_batch_norm", 1),
    "amd": ("AMD Instinct MI300X", "Cijk_Alik_Bljk_BBS_BH_MT{}_MI16x16x16", "miopen_batch_norm", 2),
}
"""Device, name of a kernel, name of the operator that normalises, and kernels of a product of matrices."""


def write_trace(path, maker, seed, factors=None, steps=STEPS, with_shapes=True, scatter=0.02, extra=()):
    """Write a trace; return what each call took: (step, operator, sizes as text, ns).

    `factors` multiplies the time of calls by operator or by (operator, position in `WORK`); `extra` are operators
    (name, ns) that each step calls beside.
    """
    device, kernel, norm, parts = MAKERS[maker]
    rng = np.random.default_rng(seed)
    events = []
    truth = []
    clock = host = 1_000_000
    correlation = 0

    def event(cat, name, pid, tid, start, length, args):
        times = {"ts": start / 1000, "dur": length / 1000}
        events.append({"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, **times, "args": args})

    for step in range(steps):
        begin = host
        for place, (name, sizes, mean) in enumerate([*WORK, *((one, [[8]], ns) for one, ns in extra)]):
            factor = (factors or {}).get((name, place), (factors or {}).get(name, 1.0))
            called = name.replace("batch_norm", norm)
            args = {"Input Dims": sizes, "Input type": ["c10::BFloat16"] * len(sizes)} if with_shapes else {}
            launches = parts if name == "aten::mm" else 1
            event("cpu_op", called, 1, 1, host, 10_000 * launches, args)
            total = 0
            for part in range(launches):
                correlation += 1
                length = int(mean * factor * np.exp(scatter * rng.normal()) / launches)
                start = host + 10_000 * part + 1_000
                event("cuda_runtime", "cudaLaunchKernel", 1, 1, start, 3_000, {"correlation": correlation})
                clock = max(clock + GAP, start + 5_000)
                args = {"device": 0, "stream": 7, "correlation": correlation, "grid": [64 + place, 1, 1]}
                own = kernel.format(f"{place}x{part}")
                event("kernel", own, 0, 7, clock, length, args | {"block": [256, 1, 1]})
                clock += length
                total += length
            truth.append((step, called, " ".join(map(str, sizes[: 2 if len(sizes) > 2 else None])), total))
            host += 10_000 * launches + 2_000
        host = max(host, clock) + 5_000  # the host waits for the device in each step
        event("user_annotation", f"ProfilerStep#{step}", 1, 1, begin, host - begin, {})
    head = {"deviceProperties": [{"id": 0, "name": device}], "traceEvents": events}
    path.write_text(json.dumps(head), encoding="utf-8")
    return truth

"""Experiments on a GPU for Nsight Compute: arguments that decide a launch's time are drawn at random.

    ncu ... --clock-control none --csv --page raw --print-units base \\
        python counters_of_launches.py ARMS.json SECONDS [later]

The file gets the arguments of each launch, in order; launches end after the given time, so that a run of any speed ends.
With `later` other kernels are launched, which no rule of the analysis was made on.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import torch
from kernels import Kernels


def later(path: str, seconds: float) -> None:
    """Launch kernels that read, compute and look up amounts that are drawn."""
    kernels = Kernels()
    draw = np.random.default_rng(20261127)
    values = torch.rand(64 << 20, device="cuda")
    indices = torch.randint(0, 1 << 26, (8 << 20,), device="cuda", dtype=torch.int32)
    torch.cuda.synchronize()
    until = time.monotonic() + seconds
    launched = []
    while time.monotonic() < until and len(launched) < 900:
        count = int(draw.integers(4, 64)) << 20
        kernels.launch("read_values", values, np.int64(count // 4), kernels.sums)
        launched.append({"kernel": "read_values", "count": count})
        rounds = int(draw.integers(500, 8000))
        kernels.launch("multiply_add", kernels.sums, rounds)
        launched.append({"kernel": "multiply_add", "rounds": rounds})
        count = int(draw.integers(1, 8)) << 20
        mask = int(draw.choice([1 << 18, 1 << 22, 1 << 26]))
        kernels.launch("look_up", values, mask - 1, indices, np.int64(count), kernels.sums)
        launched.append({"kernel": "look_up", "count": count, "mask": mask})
        torch.cuda.synchronize()
    Path(path).write_text(json.dumps(launched))


def main() -> None:
    path, seconds, *which = sys.argv[1:]
    if which == ["later"]:
        later(path, float(seconds))
        return
    kernels = Kernels()
    draw = np.random.default_rng(20261126)
    values = torch.zeros(1 << 26, device="cuda")
    counters = torch.zeros(1 << 16, dtype=torch.int32, device="cuda")
    torch.cuda.synchronize()
    until = time.monotonic() + float(seconds)
    launched = []
    while time.monotonic() < until and len(launched) < 900:
        stride = int(draw.choice([1, 2, 4, 8]))
        rounds = int(draw.choice([8, 64, 128, 256]))
        kernels.launch("gather", values, (1 << 26) - 1, stride, 16, rounds, kernels.sums)
        launched.append({"kernel": "gather", "stride": stride, "rounds": rounds})
        stride = int(draw.choice([1, 2, 4, 8, 16, 32]))
        kernels.launch("conflict", kernels.sums, stride, 512)
        launched.append({"kernel": "conflict", "stride": stride})
        distinct = int(draw.choice([64, 256, 1024, 16384]))
        kernels.launch("add_atomically", counters, distinct, 16)
        launched.append({"kernel": "add_atomically", "distinct": distinct})
        torch.cuda.synchronize()
    Path(path).write_text(json.dumps(launched))


if __name__ == "__main__":
    main()

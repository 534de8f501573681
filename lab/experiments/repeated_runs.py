"""One run of a program of which there are many: python repeated_runs.py TRACE.json.gz ROUNDS MEBIBYTES.

A step trains a perceptron, computes for some rounds and reads some values; runs differ in these two numbers or in nothing.
"""

import gzip
import sys
from pathlib import Path

import torch
from kernels import Kernels
from programs import MIB, Perceptron
from torch.profiler import ProfilerActivity, profile, schedule

STEPS = 60


def main() -> None:
    path = Path(sys.argv[1])
    rounds = int(sys.argv[2])
    count = int(float(sys.argv[3]) * MIB) // 4
    torch.backends.cuda.matmul.allow_tf32 = True
    kernels = Kernels()
    net = Perceptron(4096, 1024)
    values = torch.rand(512 * MIB // 4, device="cuda")

    def step() -> None:
        kernels.launch("multiply_add", kernels.sums, rounds)
        kernels.read(values[:count])
        net.train(net.resident)

    for _ in range(100):
        step()
    torch.cuda.synchronize()
    plain = path.with_suffix("")
    both = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    plan = schedule(wait=0, warmup=3, active=STEPS, repeat=1)
    with profile(
        activities=both, schedule=plan, on_trace_ready=lambda recording: recording.export_chrome_trace(str(plain))
    ) as profiler:
        for _ in range(3 + STEPS):
            step()
            torch.cuda.synchronize()
            profiler.step()
    path.write_bytes(gzip.compress(plain.read_bytes(), 9, mtime=0))
    plain.unlink()


if __name__ == "__main__":
    main()

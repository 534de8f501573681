"""Programs on a GPU, as they are and with one change: what a replay of the first predicts can be compared with the second.

    python changed_programs.py FOLDER [PROGRAM ...]

writes for each program `NAME.before.json.gz` and `NAME.after.json.gz`, traces of PyTorch's profiler (Kineto), and `NAME.times.json`:
seconds of a step of both without a profiler, medians of repetitions that take turns, and with it, and the changes of which the
replay is asked.
"""

import gzip
import json
import statistics
import sys
import time
import traceback
from pathlib import Path

import torch
from further_programs import JUDGES, UNSEEN
from kernels import Kernels
from launch_programs import LOOPS
from programs import MIB, Pair, Perceptron, Step, WithKernel, graph_of, spin
from torch.profiler import ProfilerActivity, profile, schedule

WARM_UP = 10
REPETITIONS = 5
CALLS_AND_WORK = ("cuda_runtime", "cuda_driver", "kernel", "gpu_memcpy", "gpu_memset")


def pageable_copies() -> Pair:
    """Each step copies its batch of 64 MiB from pageable memory; then batches lie on the device."""
    net = Perceptron(8192, 2048)
    batch = net.resident.cpu()
    return Pair(lambda: net.train(batch.cuda()), lambda: net.train(net.resident), ("copies_free",))


def pinned_copies() -> Pair:
    """The same from pinned memory, without blocking."""
    net = Perceptron(8192, 2048)
    batch = net.resident.cpu().pin_memory()
    return Pair(
        lambda: net.train(batch.to("cuda", non_blocking=True)), lambda: net.train(net.resident), ("copies_free",)
    )


def copies_beside() -> Pair:
    """Batches are copied on a stream of their own during the step before, which lasts less long."""
    net = Perceptron(8192, 1024)
    batch = torch.rand(64 * MIB // 1024, 1024).pin_memory()
    stream = torch.cuda.Stream()
    on_device = [torch.empty_like(batch, device="cuda") for _ in range(2)]
    copied = [torch.cuda.Event() for _ in range(2)]
    used = [torch.cuda.Event() for _ in range(2)]
    turn = [0]

    def before() -> None:
        now = turn[0] % 2
        following = 1 - now
        turn[0] += 1
        with torch.cuda.stream(stream):
            stream.wait_event(used[following])
            on_device[following].copy_(batch, non_blocking=True)
            copied[following].record()
        torch.cuda.current_stream().wait_event(copied[now])
        net.train(on_device[now][:8192])
        used[now].record()

    return Pair(before, lambda: net.train(on_device[0][:8192]), ("copies_free",))


def results_to_host() -> Pair:
    """Each step copies 32 MiB of results to the host, which waits for them."""
    net = Perceptron(8192, 1024)

    def before() -> None:
        net.train(net.resident)
        net.resident.cpu()

    return Pair(before, lambda: net.train(net.resident), ("copies_free",))


def small_launches() -> Pair:
    """150 small operators; then their CUDA graph."""
    values = torch.rand(4096, device="cuda")

    def before() -> None:
        for _ in range(75):
            values.mul_(0.999)
            values.add_(0.001)

    return Pair(before, graph_of(before), ("host_free",), steps=12)


def host_work() -> Pair:
    """The host prepares for 2 ms and reads the loss; then a CUDA graph, no preparation, and the loss is not read."""
    net = Perceptron(4096, 1024)

    def before() -> None:
        spin(2000)
        net.train(net.resident).item()

    return Pair(before, graph_of(lambda: net.train(net.resident)), ("host_free",))


def faster_kernel() -> Pair:
    """A kernel in the only stream takes a tenth less."""
    program = WithKernel(Kernels())

    def step(share: float) -> None:
        program.products(4)
        program.own(share)
        program.products(4)

    return Pair(lambda: step(1.0), lambda: step(0.9), ("kernel_faster",))


def faster_kernel_beside() -> Pair:
    """A kernel beside longer ones of another stream takes a tenth less."""
    program = WithKernel(Kernels(), rounds=20000)
    stream = torch.cuda.Stream()

    def step(share: float) -> None:
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            program.own(share)
        program.products(12)
        torch.cuda.current_stream().wait_stream(stream)

    return Pair(lambda: step(1.0), lambda: step(0.9), ("kernel_faster",))


def faster_kernel_late_host() -> Pair:
    """The host works for longer than the kernel lasts, which takes a tenth less."""
    program = WithKernel(Kernels(), rounds=20000)

    def step(share: float) -> None:
        program.own(share)
        spin(1500)

    return Pair(lambda: step(1.0), lambda: step(0.9), ("kernel_faster",))


def two_streams() -> Pair:
    """Two streams of like length that meet at the end of a step; a kernel of one takes a tenth less."""
    program = WithKernel(Kernels(), rounds=30000)
    other = WithKernel(Kernels(), size=2048)
    stream = torch.cuda.Stream()

    def step(share: float) -> None:
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(6):
                program.own(share)
                program.kernels.launch("neighbour", program.kernels.sums, 2000)
        other.products(50)
        torch.cuda.current_stream().wait_stream(stream)

    return Pair(lambda: step(1.0), lambda: step(0.9), ("kernel_faster",), 15)


MADE_ON = (
    pageable_copies,
    pinned_copies,
    copies_beside,
    results_to_host,
    small_launches,
    host_work,
    faster_kernel,
    faster_kernel_beside,
    faster_kernel_late_host,
    two_streams,
)
"""Programs whose recordings the rules of the graph were made on."""


def seconds_per_step(step: Step, steps: int) -> float:
    """Return how long a step takes, without a profiler."""
    torch.cuda.synchronize()
    began = time.perf_counter()
    for _ in range(steps):
        step()
    torch.cuda.synchronize()
    return (time.perf_counter() - began) / steps


def traced(step: Step, steps: int, path: Path) -> None:
    """Trace some steps."""
    plain = path.with_suffix("")
    plan = schedule(wait=0, warmup=3, active=steps, repeat=1)
    both = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    with profile(
        activities=both, schedule=plan, on_trace_ready=lambda recording: recording.export_chrome_trace(str(plain))
    ) as profiler:
        for number in range(3 + steps):
            if number == 3:
                torch.cuda.synchronize()
            step()
            if number == 2 + steps:
                torch.cuda.synchronize()
            profiler.step()
    path.write_bytes(gzip.compress(plain.read_bytes(), 9, mtime=0))
    plain.unlink()


def traced_seconds(path: Path, steps: int) -> float:
    """Return seconds of a step of a trace: from its first call or work to the end of its last."""
    with gzip.open(path, "rt") as file:
        events = json.load(file)["traceEvents"]
    timed = [event for event in events if event.get("cat") in CALLS_AND_WORK]
    return (max(event["ts"] + event["dur"] for event in timed) - min(event["ts"] for event in timed)) / 1e6 / steps


def record(folder: Path, name: str, pair: Pair) -> None:
    """Write the two traces of a program, and its times."""
    both = {"before": pair.before, "after": pair.after}
    for step in both.values():
        seconds_per_step(step, WARM_UP)
    times: dict[str, list[float]] = {word: [] for word in both}
    for _ in range(REPETITIONS):
        for word, step in both.items():
            times[word].append(seconds_per_step(step, 2 * pair.steps))
    for word, step in both.items():
        traced(step, pair.steps, folder / f"{name}.{word}.json.gz")
    said = {word: statistics.median(seconds) for word, seconds in times.items()}
    traces = {f"traced_{word}": traced_seconds(folder / f"{name}.{word}.json.gz", pair.steps) for word in both}
    facts = {"changes": pair.changes, "steps": pair.steps}
    (folder / f"{name}.times.json").write_text(json.dumps(facts | said | traces))
    print(name, said, flush=True)


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    torch.backends.cuda.matmul.allow_tf32 = True
    wanted = sys.argv[2:]
    for program in (*MADE_ON, *UNSEEN, *JUDGES, *LOOPS):
        name = program.__name__
        if wanted and name not in wanted:
            continue
        try:
            record(folder, name, program())
        except Exception:
            traceback.print_exc()
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()

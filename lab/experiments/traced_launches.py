"""Experiments on a GPU: what a launch meets is drawn at random, its time is traced by PyTorch's profiler (Kineto).

    python traced_launches.py FOLDER [EXPERIMENT ...]

writes for each experiment `NAME.json.gz`, the trace, and `NAME.arms.json`: the kernel that is observed and what was drawn for each of
its launches, in their order. The trace holds nothing of what was drawn but what a profiler sees.
"""

import json
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from kernels import Kernels
from torch.profiler import ProfilerActivity, profile

MIB = 1 << 20
Arms = Iterator[dict]


def spin(microseconds: float) -> None:
    """Keep the host busy."""
    until = time.perf_counter_ns() + int(microseconds * 1000)
    while time.perf_counter_ns() < until:
        pass


def floats(mebibytes: int) -> torch.Tensor:
    """Return random float32 values of a size on the device."""
    return torch.rand(mebibytes * MIB // 4, device="cuda")


def cache(kernels: Kernels, draw: np.random.Generator) -> Arms:
    """`read_values` finds its 24 MiB in the L2 cache, unless the kernel before has read 256 MiB of others."""
    same = floats(24)
    other = floats(256)
    for _ in range(900):
        before = str(draw.choice(["read_others", "multiply_add", "neighbour"]))
        if before == "read_others":
            kernels.read(other, before)
        else:
            kernels.launch(before, kernels.sums, 4000)
        kernels.read(same)
        yield {"before": before}


class Copies:
    """Copies on a stream of their own that last longer than the launch beside them."""

    def __init__(self) -> None:
        self.stream = torch.cuda.Stream()
        self.pinned = torch.empty(64 * MIB, dtype=torch.uint8, pin_memory=True)
        self.small = torch.empty(64 * MIB, dtype=torch.uint8, device="cuda")
        self.large = torch.empty(2, 2048 * MIB, dtype=torch.uint8, device="cuda")

    def start(self, direction: str) -> None:
        """Start one, `h2d`, `d2h` or `d2d`, or none, and wait until it has begun."""
        with torch.cuda.stream(self.stream):
            if direction == "h2d":
                self.small.copy_(self.pinned, non_blocking=True)
            elif direction == "d2h":
                self.pinned.copy_(self.small, non_blocking=True)
            elif direction == "d2d":
                self.large[0].copy_(self.large[1], non_blocking=True)
        spin(80)


def copies(kernels: Kernels, draw: np.random.Generator) -> Arms:
    """`read_values` reads 512 MiB beside a copy, or alone."""
    values = floats(512)
    beside = Copies()
    for _ in range(900):
        direction = str(draw.choice(["none", "h2d", "d2h", "d2d"]))
        beside.start(direction)
        kernels.read(values)
        torch.cuda.synchronize()
        yield {"copy": direction}


class Longer:
    """A kernel on a stream of its own that lasts longer than the launch beside it."""

    def __init__(self, kernels: Kernels) -> None:
        self.kernels = kernels
        self.stream = torch.cuda.Stream()
        self.sums = torch.zeros_like(kernels.sums)

    def start(self, wanted: bool) -> None:
        """Start it, or do not, and wait until it has begun."""
        if wanted:
            with torch.cuda.stream(self.stream):
                self.kernels.launch("neighbour", self.sums, 120_000, blocks=264)
        spin(60)


def neighbours(kernels: Kernels, draw: np.random.Generator) -> Arms:
    """`multiply_add` shares the multiprocessors with a longer kernel, or has them for itself."""
    longer = Longer(kernels)
    for _ in range(900):
        beside = bool(draw.integers(2))
        longer.start(beside)
        kernels.launch("multiply_add", kernels.sums, 6000)
        torch.cuda.synchronize()
        yield {"beside": beside}


def sizes(kernels: Kernels, draw: np.random.Generator) -> Arms:
    """An operator's input has one of five lengths; its kernel has one grid for all of them."""
    values = floats(384)

    @torch.library.custom_op("experiment::total", mutates_args=())
    def total(part: torch.Tensor) -> torch.Tensor:
        kernels.read(part)
        return kernels.sums.clone()

    for _ in range(900):
        mebibytes = int(draw.choice([64, 96, 128, 256, 384]))
        total(values[: mebibytes * MIB // 4])
        yield {"elements": mebibytes * MIB // 4}


def hidden(kernels: Kernels, draw: np.random.Generator) -> Arms:
    """An argument that no trace shows decides the time of `add_atomically`; copies, waits and kernels before do nothing."""
    counters = torch.zeros(1 << 16, dtype=torch.int32, device="cuda")
    pinned = torch.empty(MIB, dtype=torch.uint8, pin_memory=True)
    input_ = torch.empty(MIB, dtype=torch.uint8, device="cuda")
    for _ in range(900):
        distinct = int(draw.choice([64, 256, 1024, 16384]))
        before = str(draw.choice(["multiply_add", "neighbour"]))
        copied = bool(draw.integers(2))
        if copied:
            input_.copy_(pinned, non_blocking=True)
        kernels.launch(before, kernels.sums, 1000)
        if draw.integers(2):
            torch.cuda.synchronize()
            spin(float(draw.choice([20, 100, 300])))
        kernels.launch("add_atomically", counters, distinct, 16)
        yield {"distinct": distinct, "before": before, "copied": copied}


def sizes_and_copies(kernels: Kernels, draw: np.random.Generator) -> Arms:
    """An operator's input has one of two lengths that hardly differ, and its kernel runs beside a copy, or alone."""
    values = floats(512)
    beside = Copies()

    @torch.library.custom_op("experiment::total_beside", mutates_args=())
    def total_beside(part: torch.Tensor) -> torch.Tensor:
        kernels.read(part)
        return kernels.sums.clone()

    for _ in range(900):
        mebibytes = int(draw.choice([464, 488, 512]))
        direction = str(draw.choice(["none", "h2d", "d2h"]))
        beside.start(direction)
        total_beside(values[: mebibytes * MIB // 4])
        torch.cuda.synchronize()
        yield {"elements": mebibytes * MIB // 4, "copy": direction}


def decoy(kernels: Kernels, draw: np.random.Generator) -> Arms:
    """`multiply_add` meets a longer kernel, which acts, and mostly with it a copy to the host, which does not."""
    longer = Longer(kernels)
    beside = Copies()
    for _ in range(900):
        kernel = bool(draw.integers(2))
        copied = bool(draw.random() < (0.8 if kernel else 0.2))
        beside.start("d2h" if copied else "none")
        longer.start(kernel)
        kernels.launch("multiply_add", kernels.sums, 6000)
        torch.cuda.synchronize()
        yield {"beside": kernel, "copied": copied}


def idle(kernels: Kernels, draw: np.random.Generator) -> Arms:
    """`multiply_add` begins at once or after the device had nothing to do for up to 20 ms."""
    for _ in range(600):
        milliseconds = float(draw.choice([0, 1, 5, 20]))
        time.sleep(milliseconds / 1000)
        kernels.launch("multiply_add", kernels.sums, 6000)
        torch.cuda.synchronize()
        yield {"idle_ms": milliseconds}


def power(kernels: Kernels, draw: np.random.Generator) -> Arms:
    """A matrix product of zeros or of random numbers, in blocks of .5 to 2 s, or no work; only the power differs.

    After four of them `read_values` reads 512 MiB, whose time the memory decides.
    """
    values = floats(512)
    random, zeros, product = (torch.zeros(16384, 16384, dtype=torch.bfloat16, device="cuda") for _ in range(3))
    random.normal_()
    until = time.monotonic() + 30
    while time.monotonic() < until:
        numbers = str(draw.choice(["zeros", "random", "idle"], p=[0.4, 0.4, 0.2]))
        block = time.monotonic() + float(draw.uniform(0.5, 2.0))
        while time.monotonic() < block:
            if numbers == "idle":
                time.sleep(0.01)
                continue
            for _ in range(4):
                factor = random if numbers == "random" else zeros
                torch.matmul(factor, factor, out=product)
                yield {"values": numbers}
            kernels.read(values)
            torch.cuda.synchronize()


OBSERVED = {
    "cache": "read_values",
    "copies": "read_values",
    "neighbours": "multiply_add",
    "sizes": "read_values",
    "hidden": "add_atomically",
    "idle": "multiply_add",
    "sizes_and_copies": "read_values",
    "decoy": "multiply_add",
    "power": "nvjet",
}
"""Experiments, each a function of this module, with what the name of the observed kernel holds."""


def record(
    name: str, experiment: Callable[[Kernels, np.random.Generator], Arms], observed: str, folder: Path, kernels: Kernels
) -> None:
    """Record one experiment; its random draws follow from its name alone."""
    draw = np.random.default_rng(np.frombuffer(name.encode(), np.uint8))
    arms = experiment(kernels, draw)
    for _ in range(3):  # compiles the kernels
        next(arms)
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], record_shapes=True) as profiler:
        drawn = []
        for arm in arms:
            drawn.append(arm)
        torch.cuda.synchronize()
    profiler.export_chrome_trace(str(folder / f"{name}.json.gz"))
    columns = {key: [arm[key] for arm in drawn] for key in drawn[0]}
    document = {"observed": observed, "device": torch.cuda.get_device_name(), "arms": columns}
    (folder / f"{name}.arms.json").write_text(json.dumps(document, separators=(",", ":")) + "\n")
    print(name, len(drawn), flush=True)


def record_all(experiments: dict[str, str], functions: dict[str, Callable]) -> None:
    """Record the experiments that the command line names, or all: names with what the observed kernel's name holds."""
    folder, *names = sys.argv[1:]
    kernels = Kernels()
    for name in names or experiments:
        try:
            record(name, functions[name], experiments[name], Path(folder), kernels)
        except Exception:  # one that fails must not lose the others
            traceback.print_exc()


if __name__ == "__main__":
    record_all(OBSERVED, globals())

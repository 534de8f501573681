"""Experiments that no rule of the analysis was made on: written before they were recorded, and recorded once.

    python further_launches.py FOLDER [EXPERIMENT ...]

What a launch meets is drawn at random, as in `traced_launches.py`, which says what is written. These kernels are bound
by other things: Tensor Cores, random reads, memory of the host; causes come in pairs, continuously, or from another
program. Those of `LATER` were written after the rules had been changed for the others.
"""

import multiprocessing
import time
from multiprocessing.connection import Connection

import numpy as np
import torch
from kernels import Kernels
from traced_launches import MIB, Arms, Copies, floats, record_all, spin

LAUNCHES = 800


def product_cache_and_neighbour(kernels: Kernels, draw: np.random.Generator) -> Arms:
    """A matrix product finds its factors in the L2 cache or not, and shares the multiprocessors or not."""
    factors = torch.randn(2, 2048, 2048, device="cuda").to(torch.bfloat16)
    product = torch.empty(2048, 2048, device="cuda", dtype=torch.bfloat16)
    other = floats(256)
    stream = torch.cuda.Stream()
    sums = torch.zeros_like(kernels.sums)
    for _ in range(LAUNCHES):
        cold = bool(draw.integers(2))
        beside = bool(draw.integers(2))
        if cold:
            kernels.read(other, "read_others")
        else:
            kernels.launch("multiply_add", kernels.sums, 4000)
        torch.cuda.synchronize()
        if beside:
            with torch.cuda.stream(stream):
                kernels.launch("neighbour", sums, 60_000, blocks=132)
        spin(60)
        torch.matmul(*factors, out=product)
        torch.cuda.synchronize()
        yield {"cold": cold, "beside": beside}


def lookups(kernels: Kernels, draw: np.random.Generator) -> Arms:
    """An operator looks up as many values as it is given indices, a number drawn from a range; the size of the table,
    of which it reads the same 16 MiB, does nothing.
    """
    table = floats(1024)
    indices = torch.randint(0, 1 << 22, (8 << 20,), device="cuda", dtype=torch.int32)

    @torch.library.custom_op("experiment::look_up", mutates_args=())
    def look_up(table: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
        kernels.launch("look_up", table, (1 << 22) - 1, indices, np.int64(indices.numel()), kernels.sums)
        return kernels.sums.clone()

    for _ in range(LAUNCHES):
        count = int(draw.integers(1 << 20, 8 << 20))
        mebibytes = int(draw.choice([64, 256, 1024]))
        look_up(table[: mebibytes * MIB // 4], indices[:count])
        yield {"count": count, "table_mib": mebibytes}


def host_memory(kernels: Kernels, draw: np.random.Generator) -> Arms:
    """`read_values` reads 8 MiB of the host's memory, beside a copy in one of three directions or none."""
    values = torch.rand(8 * MIB // 4).pin_memory()
    beside = Copies()
    for _ in range(LAUNCHES):
        direction = str(draw.choice(["none", "h2d", "d2h", "d2d"]))
        beside.start(direction)
        kernels.read(values)
        torch.cuda.synchronize()
        yield {"copy": direction}


def neighbour_kinds(kernels: Kernels, draw: np.random.Generator) -> Arms:
    """`read_values` reads 128 MiB beside a longer kernel that computes, one that reads memory, or alone."""
    values = floats(128)
    other = floats(4096)
    stream = torch.cuda.Stream()
    sums = torch.zeros_like(kernels.sums)
    for _ in range(LAUNCHES):
        beside = str(draw.choice(["none", "neighbour", "read_others"]))
        with torch.cuda.stream(stream):
            if beside == "neighbour":
                kernels.launch("neighbour", sums, 120_000, blocks=264)
            elif beside == "read_others":
                kernels.launch("read_others", other, np.int64(other.numel() // 4), sums, blocks=264)
        spin(60)
        kernels.read(values)
        torch.cuda.synchronize()
        yield {"beside": beside}


def matrices(_kernels: Kernels, draw: np.random.Generator) -> Arms:
    """A matrix product has one of four numbers of rows and one of two inner sizes."""
    left = torch.randn(8192, 8192, device="cuda").to(torch.bfloat16)
    right = torch.randn(8192, 4096, device="cuda").to(torch.bfloat16)
    for _ in range(LAUNCHES):
        rows = int(draw.choice([4096, 5120, 6144, 8192]))
        inner = int(draw.choice([4096, 8192]))
        torch.mm(left[:rows, :inner], right[:inner])
        yield {"rows": rows, "inner": inner}


def stalls(kernels: Kernels, draw: np.random.Generator) -> Arms:
    """`multiply_add` needs 16 MiB from the host, whose copy has the bus for itself or shares it with one that lasts
    longer, in its own or the other direction; whether another kernel came before does nothing.
    """
    pinned = torch.empty(16 * MIB, dtype=torch.uint8, pin_memory=True)
    input_ = torch.empty(16 * MIB, dtype=torch.uint8, device="cuda")
    long = torch.empty(2, 256 * MIB, dtype=torch.uint8, pin_memory=True)
    targets = torch.empty(2, 256 * MIB, dtype=torch.uint8, device="cuda")
    stream = torch.cuda.Stream()
    for _ in range(LAUNCHES):
        direction = str(draw.choice(["none", "h2d", "d2h"]))
        kernel = bool(draw.integers(2))
        with torch.cuda.stream(stream):
            if direction == "h2d":
                targets[0].copy_(long[0], non_blocking=True)
            elif direction == "d2h":
                long[1].copy_(targets[1], non_blocking=True)
        spin(80)
        if kernel:
            kernels.launch("neighbour", kernels.sums, 1000)
        input_.copy_(pinned, non_blocking=True)
        kernels.launch("multiply_add", kernels.sums, 6000)
        torch.cuda.synchronize()
        yield {"copy": direction, "kernel": kernel}


def _other_program(orders: Connection) -> None:
    """Keep the device busy while the last order says so."""
    own = Kernels()
    own.launch("neighbour", own.sums, 20_000)
    torch.cuda.synchronize()
    orders.send("ready")
    busy = False
    while True:
        while orders.poll(0 if busy else None):
            busy = orders.recv()
            if busy is None:
                return
        if busy:
            own.launch("neighbour", own.sums, 20_000)
            torch.cuda.synchronize()


def two_programs(kernels: Kernels, draw: np.random.Generator) -> Arms:
    """Another program uses the device in blocks of .1 to .6 s, which no trace of this one shows; the kernel before
    does nothing.
    """
    here, there = multiprocessing.get_context("spawn").Pipe()
    other = multiprocessing.get_context("spawn").Process(target=_other_program, args=(there,), daemon=True)
    other.start()
    try:
        here.recv()
        for _ in range(40):
            busy = bool(draw.integers(2))
            here.send(busy)
            time.sleep(0.02)
            until = time.monotonic() + float(draw.uniform(0.1, 0.6))
            for _ in range(60):
                if time.monotonic() > until:
                    break
                before = str(draw.choice(["read_others", "none"]))
                if before == "read_others":
                    kernels.read(kernels.sums, "read_others")
                kernels.launch("multiply_add", kernels.sums, 6000)
                torch.cuda.synchronize()
                spin(2000)
                yield {"busy": busy, "before": before}
    finally:
        here.send(None)
        other.join(10)


def encoder(_kernels: Kernels, draw: np.random.Generator) -> Arms:
    """A training step of a small encoder whose sequences have one of four lengths, while the next batch is copied from
    the host on a stream of its own, or not. One row per step, not per launch.
    """
    layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, device="cuda", dtype=torch.bfloat16)
    model = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
    optimiser = torch.optim.AdamW(model.parameters(), fused=True)
    beside = Copies()
    for _ in range(60):
        length = int(draw.choice([128, 256, 384, 512]))
        copied = bool(draw.integers(2))
        batch = torch.randn(16, length, 512, device="cuda", dtype=torch.bfloat16)
        if copied:
            beside.start("h2d")
        model(batch).square().mean().backward()
        optimiser.step()
        optimiser.zero_grad()
        yield {"length": length, "copied": copied}


def grids_beside(kernels: Kernels, draw: np.random.Generator) -> Arms:
    """`read_values` reads 128 MiB beside one of three grids of a kernel that reads memory, too, or alone."""
    values = floats(128)
    other = floats(4096)
    stream = torch.cuda.Stream()
    sums = torch.zeros_like(kernels.sums)
    for _ in range(LAUNCHES):
        blocks = int(draw.choice([0, 33, 132, 264]))
        if blocks:
            with torch.cuda.stream(stream):
                kernels.launch("read_others", other, np.int64(other.numel() // 4), sums, blocks=blocks)
        spin(60)
        kernels.read(values)
        torch.cuda.synchronize()
        yield {"blocks": blocks}


def two_inputs(kernels: Kernels, draw: np.random.Generator) -> Arms:
    """An operator's kernel looks up as many values as its second and third input have indices together."""
    table = floats(64)
    indices = torch.randint(0, 1 << 22, (2, 8 << 20), device="cuda", dtype=torch.int32)
    both = torch.randint(0, 1 << 22, (16 << 20,), device="cuda", dtype=torch.int32)

    @torch.library.custom_op("experiment::look_up_both", mutates_args=())
    def look_up_both(table: torch.Tensor, first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        count = np.int64(first.numel() + second.numel())
        kernels.launch("look_up", table, (1 << 22) - 1, both, count, kernels.sums)
        return kernels.sums.clone()

    for _ in range(LAUNCHES):
        first, second = (int(size) for size in draw.integers(1 << 20, 8 << 20, size=2))
        look_up_both(table, indices[0, :first], indices[1, :second])
        yield {"first": first, "second": second}


def product_of_inputs(kernels: Kernels, draw: np.random.Generator) -> Arms:
    """An operator's kernel computes as many rounds as the product of its inputs' sizes says."""
    values = floats(1)

    @torch.library.custom_op("experiment::rounds", mutates_args=())
    def rounds(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
        kernels.launch("multiply_add", kernels.sums, first.numel() * second.numel())
        return kernels.sums.clone()

    for _ in range(LAUNCHES):
        first = int(draw.choice([20, 40, 60, 80]))
        second = int(draw.choice([50, 75, 100]))
        rounds(values[:first], values[:second])
        yield {"first": first, "second": second}


def copy_and_neighbour(kernels: Kernels, draw: np.random.Generator) -> Arms:
    """`read_values` reads 256 MiB beside a copy from the host or none, and a kernel that reads memory, too, or none."""
    values = floats(256)
    other = floats(4096)
    beside = Copies()
    stream = torch.cuda.Stream()
    sums = torch.zeros_like(kernels.sums)
    for _ in range(LAUNCHES):
        copied = bool(draw.integers(2))
        kernel = bool(draw.integers(2))
        beside.start("h2d" if copied else "none")
        if kernel:
            with torch.cuda.stream(stream):
                kernels.launch("read_others", other, np.int64(other.numel() // 4), sums, blocks=132)
        spin(60)
        kernels.read(values)
        torch.cuda.synchronize()
        yield {"copied": copied, "kernel": kernel}


def waits(kernels: Kernels, draw: np.random.Generator) -> Arms:
    """`add_atomically` waits for up to 3 ms behind a kernel, which does nothing; an argument that no trace shows acts."""
    counters = torch.zeros(1 << 16, dtype=torch.int32, device="cuda")
    for _ in range(LAUNCHES):
        distinct = int(draw.choice([256, 1024, 16384]))
        rounds = int(draw.choice([1000, 30_000, 120_000]))
        kernels.launch("neighbour", kernels.sums, rounds)
        kernels.launch("add_atomically", counters, distinct, 16)
        torch.cuda.synchronize()
        yield {"distinct": distinct, "rounds": rounds}


def batches(_kernels: Kernels, draw: np.random.Generator) -> Arms:
    """A batch of matrix products has one of four sizes."""
    left = torch.randn(64, 1024, 512, device="cuda").to(torch.bfloat16)
    right = torch.randn(64, 512, 1024, device="cuda").to(torch.bfloat16)
    for _ in range(LAUNCHES):
        batch = int(draw.choice([32, 40, 52, 64]))
        torch.bmm(left[:batch], right[:batch])
        yield {"batch": batch}


OBSERVED = {
    "product_cache_and_neighbour": "nvjet",
    "lookups": "look_up",
    "host_memory": "read_values",
    "neighbour_kinds": "read_values",
    "matrices": "nvjet",
    "stalls": "multiply_add",
    "two_programs": "multiply_add",
    "encoder": "nvjet",
}
"""Experiments, each a function of this module, with what the name of the observed kernel holds."""
LATER = {
    "grids_beside": "read_values",
    "two_inputs": "look_up",
    "product_of_inputs": "multiply_add",
    "copy_and_neighbour": "read_values",
    "waits": "add_atomically",
    "batches": "nvjet",
}
"""Likewise."""


if __name__ == "__main__":
    record_all(OBSERVED | LATER, globals())

"""More experiments, each written with what should be said of it before it was recorded, and recorded once: ten judge
the rules that `traced_launches.py` and `further_launches.py` led to, those of `LATER` what the ten led to.

    python third_launches.py FOLDER [EXPERIMENT ...]
"""

import numpy as np
import torch
from further_launches import LAUNCHES
from kernels import Kernels
from traced_launches import MIB, Arms, Copies, floats, record_all, spin


def grids(kernels: Kernels, draw: np.random.Generator) -> Arms:
    """A kernel that computes has one of four grids: the grid should be named."""
    for _ in range(LAUNCHES):
        blocks = int(draw.choice([264, 396, 528, 1056]))
        kernels.launch("multiply_add", kernels.sums, 6000, blocks=blocks)
        yield {"blocks": blocks}


def number_types(kernels: Kernels, draw: np.random.Generator) -> Arms:
    """An operator's input has as many elements of 2, 4 or 8 bytes: bytes should be named, not elements."""
    count = 48 * MIB
    inputs = {size: torch.zeros(count, device="cuda", dtype=kind) for size, kind in NUMBERS.items()}

    @torch.library.custom_op("experiment::total_of_type", mutates_args=())
    def total_of_type(part: torch.Tensor) -> torch.Tensor:
        kernels.launch("read_values", part, np.int64(part.numel() * part.element_size() // 16), kernels.sums)
        return kernels.sums.clone()

    for _ in range(LAUNCHES):
        size = int(draw.choice(list(NUMBERS)))
        total_of_type(inputs[size])
        yield {"bytes": size}


def strides(kernels: Kernels, draw: np.random.Generator) -> Arms:
    """An operator's input has as many elements, each, each second or each eighth of a tensor: the stride should be
    named, or nothing.
    """
    values = floats(512)
    count = 16 * MIB

    @torch.library.custom_op("experiment::total_with_stride", mutates_args=())
    def total_with_stride(part: torch.Tensor) -> torch.Tensor:
        kernels.launch("read_with_stride", part, part.stride(0), np.int64(part.numel()), kernels.sums)
        return kernels.sums.clone()

    for _ in range(LAUNCHES):
        stride = int(draw.choice([1, 2, 8]))
        total_with_stride(values[::stride][:count])
        yield {"stride": stride}


def two_before(kernels: Kernels, draw: np.random.Generator) -> Arms:
    """`read_values` finds its 24 MiB in the L2 cache or not, which the kernel before the last decides; the last is
    always the same. No wait and no idle time should be named.
    """
    same = floats(24)
    other = floats(256)
    for _ in range(LAUNCHES):
        cold = bool(draw.integers(2))
        if cold:
            kernels.read(other, "read_others")
        else:
            kernels.launch("multiply_add", kernels.sums, 4000)
        kernels.launch("neighbour", kernels.sums, 1000)
        kernels.read(same)
        yield {"cold": cold}


def number_beside(kernels: Kernels, draw: np.random.Generator) -> Arms:
    """`multiply_add` runs beside none to three longer kernels: launches in flight should be named."""
    streams = [torch.cuda.Stream() for _ in range(3)]
    sums = torch.zeros(3, kernels.sums.numel(), device="cuda")
    for _ in range(LAUNCHES):
        number = int(draw.integers(4))
        for stream in range(number):
            with torch.cuda.stream(streams[stream]):
                kernels.launch("neighbour", sums[stream], 120_000, blocks=132)
        spin(60)
        kernels.launch("multiply_add", kernels.sums, 6000)
        torch.cuda.synchronize()
        yield {"number": number}


def size_and_neighbour(kernels: Kernels, draw: np.random.Generator) -> Arms:
    """An operator's input has one of three sizes and its kernel runs beside one that reads memory, or alone: both should
    be named, with the change at the mean of the other's draws.
    """
    values = floats(256)
    other = floats(4096)
    stream = torch.cuda.Stream()
    sums = torch.zeros_like(kernels.sums)

    @torch.library.custom_op("experiment::total_and_neighbour", mutates_args=())
    def total_and_neighbour(part: torch.Tensor) -> torch.Tensor:
        kernels.read(part)
        return kernels.sums.clone()

    for _ in range(LAUNCHES):
        mebibytes = int(draw.choice([128, 192, 256]))
        beside = bool(draw.integers(2))
        if beside:
            with torch.cuda.stream(stream):
                kernels.launch("read_others", other, np.int64(other.numel() // 4), sums, blocks=132)
        spin(60)
        total_and_neighbour(values[: mebibytes * MIB // 4])
        torch.cuda.synchronize()
        yield {"mebibytes": mebibytes, "beside": beside}


def correlated(kernels: Kernels, draw: np.random.Generator) -> Arms:
    """An operator's input has one of four sizes; before the larger ones a copy ends mostly, which does nothing: the size
    alone should be named.
    """
    values = floats(384)
    pinned = torch.empty(MIB, dtype=torch.uint8, pin_memory=True)
    input_ = torch.empty(MIB, dtype=torch.uint8, device="cuda")

    @torch.library.custom_op("experiment::total_after_copy", mutates_args=())
    def total_after_copy(part: torch.Tensor) -> torch.Tensor:
        kernels.read(part)
        return kernels.sums.clone()

    for _ in range(LAUNCHES):
        mebibytes = int(draw.choice([128, 192, 256, 384]))
        copied = bool(draw.random() < (0.8 if mebibytes >= 256 else 0.2))
        if copied:
            input_.copy_(pinned, non_blocking=True)
        total_after_copy(values[: mebibytes * MIB // 4])
        torch.cuda.synchronize()
        yield {"mebibytes": mebibytes, "copied": copied}


def rare_copies(kernels: Kernels, draw: np.random.Generator) -> Arms:
    """One in 25 launches of a kernel that reads 512 MiB runs beside a copy from the host, and half after a kernel that
    does nothing: the copy should be named, or nothing.
    """
    values = floats(512)
    beside = Copies()
    for _ in range(LAUNCHES):
        copied = bool(draw.random() < 0.04)
        after = bool(draw.integers(2))
        beside.start("h2d" if copied else "none")
        if after:
            kernels.launch("neighbour", kernels.sums, 100)
        kernels.read(values)
        torch.cuda.synchronize()
        yield {"copied": copied, "after": after}


def phases(kernels: Kernels, draw: np.random.Generator) -> Arms:
    """An argument that no trace shows and the kernel before stay as they are for 30 to 90 launches, each on its own:
    nothing should be named, though over few phases both agree by chance.
    """
    counters = torch.zeros(1 << 16, dtype=torch.int32, device="cuda")
    left = {"distinct": 0, "before": 0}
    distinct = 1024
    before = "multiply_add"
    for _ in range(LAUNCHES):
        for phase in left:
            left[phase] -= 1
        if left["distinct"] < 0:
            distinct = int(draw.choice([1024, 16384]))
            left["distinct"] = int(draw.integers(30, 90))
        if left["before"] < 0:
            before = str(draw.choice(["multiply_add", "neighbour"]))
            left["before"] = int(draw.integers(30, 90))
        kernels.launch(before, kernels.sums, 1000)
        kernels.launch("add_atomically", counters, distinct, 16)
        torch.cuda.synchronize()
        yield {"distinct": distinct, "before": before}


def generation(kernels: Kernels, draw: np.random.Generator) -> Arms:
    """Texts of one of many lengths grow by a token at each step, whose attention reads all tokens before; after some
    steps the next text begins. The size of the second input should be named, not the order or the time.
    """
    width = 64 * 128
    table = torch.rand(4096, width, device="cuda")
    token = torch.rand(1, width, device="cuda")

    @torch.library.custom_op("experiment::attend", mutates_args=())
    def attend(query: torch.Tensor, earlier: torch.Tensor) -> torch.Tensor:
        kernels.read(earlier)
        return query.clone()

    length = 0
    left = 0
    for _ in range(LAUNCHES):
        if not left:
            length = int(draw.integers(512, 3900))
            left = int(draw.integers(10, 60))
        length += 1
        left -= 1
        kernels.launch("multiply_add", kernels.sums, 200)
        attend(token, table[:length])
        if draw.random() < 0.5:
            torch.cuda.synchronize()
        yield {"length": length}


def layouts(_kernels: Kernels, draw: np.random.Generator) -> Arms:
    """A sum of two matrices, of which the second is transposed, or each second column or row of a larger one: its layout
    should be named.
    """
    first = torch.rand(4096, 4096, device="cuda")
    large = torch.rand(8192, 8192, device="cuda")
    out = torch.empty_like(first)
    second = {"transposed": large[:4096, :4096].t(), "columns": large[:4096, ::2], "rows": large[::2, :4096]}
    for _ in range(LAUNCHES):
        layout = str(draw.choice(list(second)))
        torch.add(first, second[layout], out=out)
        yield {"layout": layout}


def copied_layouts(kernels: Kernels, draw: np.random.Generator) -> Arms:
    """A tensor is made contiguous from one of three orders of its dimensions, after a kernel that does nothing: the
    layout alone should be named.
    """
    values = torch.rand(64, 512, 512, device="cuda")
    orders = {"0 2 1": (0, 2, 1), "1 0 2": (1, 0, 2), "2 1 0": (2, 1, 0)}
    for _ in range(LAUNCHES):
        order = str(draw.choice(list(orders)))
        before = str(draw.choice(["multiply_add", "neighbour"]))
        kernels.launch(before, kernels.sums, 1000)
        values.permute(orders[order]).contiguous()
        yield {"order": order, "before": before}


def second_before(kernels: Kernels, draw: np.random.Generator) -> Arms:
    """As `two_before`, but the launch before is one of two as well, which does nothing."""
    same = floats(16)
    other = floats(192)
    for _ in range(LAUNCHES):
        cold = bool(draw.integers(2))
        last = str(draw.choice(["neighbour", "multiply_add"]))
        if cold:
            kernels.read(other, "read_others")
        else:
            kernels.launch("neighbour", kernels.sums, 9000)
        kernels.launch(last, kernels.sums, 800)
        kernels.read(same)
        if draw.integers(2):
            torch.cuda.synchronize()
        yield {"cold": cold, "last": last}


def first_before(kernels: Kernels, draw: np.random.Generator) -> Arms:
    """The launch before decides whether `read_values` finds its 16 MiB in the L2 cache; the one before that is one of
    two, and does nothing.
    """
    same = floats(16)
    other = floats(192)
    for _ in range(LAUNCHES):
        cold = bool(draw.integers(2))
        second = str(draw.choice(["neighbour", "multiply_add"]))
        kernels.launch(second, kernels.sums, 2000)
        if cold:
            kernels.read(other, "read_others")
        else:
            kernels.launch("neighbour", kernels.sums, 3000)
        kernels.read(same)
        yield {"cold": cold, "second": second}


NUMBERS = {2: torch.float16, 4: torch.float32, 8: torch.float64}
"""Types of numbers by the bytes of one."""
OBSERVED = {
    "grids": "multiply_add",
    "number_types": "read_values",
    "strides": "read_with_stride",
    "two_before": "read_values",
    "number_beside": "multiply_add",
    "size_and_neighbour": "read_values",
    "correlated": "read_values",
    "rare_copies": "read_values",
    "phases": "add_atomically",
    "generation": "read_values",
}
"""Experiments, each a function of this module, with what the name of the observed kernel holds."""
LATER = {
    "layouts": "elementwise_kernel",
    "copied_layouts": "direct_copy_kernel",
    "second_before": "read_values",
    "first_before": "read_values",
}
"""Likewise."""


if __name__ == "__main__":
    record_all(OBSERVED | LATER, globals())

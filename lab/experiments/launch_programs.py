"""Programs whose launches are one CUDA graph when changed, and whose other code of the host stays: what `launches_free` is
asked of. Written after the rules of the replay stood.
"""

import ctypes
import subprocess
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import torch
from kernels import Kernels
from programs import Pair, Step, WithKernel, graph_of, spin


@cache
def _library() -> ctypes.CDLL:
    built = Path(mkdtemp()) / "launch_loop.so"
    source = Path(__file__).with_name("launch_loop.cu")
    subprocess.run(["nvcc", "-shared", "-Xcompiler", "-fPIC", "-arch=native", "-o", built, source], check=True)
    return ctypes.CDLL(str(built))


class Loop:
    """Launches in a loop of C++, on PyTorch's current stream."""

    def __init__(self) -> None:
        self.sums = torch.zeros(132 * 256, device="cuda")

    def launch(self, count: int, rounds: int) -> None:
        """Launch a kernel some times, of some rounds each."""
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        failed = _library().launch_many(ctypes.c_void_p(self.sums.data_ptr()), count, rounds, stream)
        if failed:
            raise RuntimeError(f"CUDA error {failed}")


def _both(launches: Step, host: Step, parts: int, steps: int) -> Pair:
    """Return a step of parts, each some code of the host and launches; then launches are a graph."""
    graph = graph_of(launches)

    def step(launch: Step) -> None:
        for _ in range(parts):
            host()
            launch()

    return Pair(lambda: step(launches), lambda: step(graph), ("launches_free",), steps)


def loop_of_small() -> Pair:
    """The host works for 50 µs, then launches 200 kernels of a microsecond."""
    loop = Loop()
    return _both(lambda: loop.launch(200, 100), lambda: spin(50), 1, 12)


def loop_of_long() -> Pair:
    """The same with kernels of 19 µs, for which the host is never late."""
    loop = Loop()
    return _both(lambda: loop.launch(60, 8000), lambda: spin(50), 1, 20)


def loops_between_work() -> Pair:
    """Eight times 60 µs of the host's work and 20 kernels of a microsecond."""
    loop = Loop()
    return _both(lambda: loop.launch(20, 100), lambda: spin(60), 8, 12)


def loops_that_are_read() -> Pair:
    """Four times the host waits for the device and launches 40 kernels of 3 µs."""
    loop = Loop()
    return _both(lambda: loop.launch(40, 1000), torch.cuda.synchronize, 4, 12)


def loop_beside_products() -> Pair:
    """A product of matrices, then 200 kernels of a microsecond: the host launches them meanwhile."""
    loop = Loop()
    program = WithKernel(Kernels(), size=6144)
    graph = graph_of(lambda: loop.launch(200, 100))

    def step(launch: Step) -> None:
        program.products(1)
        launch()

    return Pair(lambda: step(lambda: loop.launch(200, 100)), lambda: step(graph), ("launches_free",), 12)


LOOPS = (loop_of_small, loop_of_long, loops_between_work, loops_that_are_read, loop_beside_products)
"""Recorded when all rules stood."""

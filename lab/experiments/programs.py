"""Parts of programs of which there are two: as they are, and with one change."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from kernels import Kernels
from torch import nn

MIB = 1 << 20
Step = Callable[[], object]


@dataclass
class Pair:
    """One program: a step as it is and as changed, the changes of a replay that stand for it, and steps of a trace."""

    before: Step
    after: Step
    changes: tuple[str, ...]
    steps: int = 30


def spin(microseconds: float) -> None:
    """Keep the host busy."""
    until = time.perf_counter_ns() + int(microseconds * 1000)
    while time.perf_counter_ns() < until:
        pass


def graph_of(step: Step) -> Step:
    """Return the replay of a step that is captured as a CUDA graph."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


class Perceptron:
    """The training of three layers of a width over a batch of rows."""

    def __init__(self, rows: int, width: int) -> None:
        layers = [nn.Linear(width, width), nn.GELU(), nn.Linear(width, width), nn.GELU(), nn.Linear(width, width)]
        self.model = nn.Sequential(*layers).cuda()
        self.resident = torch.rand(rows, width, device="cuda")
        self.optimiser = torch.optim.SGD(self.model.parameters(), lr=1e-4)

    def train(self, batch: torch.Tensor) -> torch.Tensor:
        """Make one step of training."""
        loss = self.model(batch).square().mean()
        loss.backward()
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=False)
        return loss


class WithKernel:
    """Products of matrices and one kernel of our own, whose time is proportional to its rounds."""

    def __init__(self, kernels: Kernels, size: int = 4096, rounds: int = 60000) -> None:
        self.kernels = kernels
        self.matrix = torch.rand(size, size, device="cuda", dtype=torch.bfloat16) / size
        self.rounds = rounds

    def products(self, count: int) -> None:
        """Multiply matrices."""
        for _ in range(count):
            torch.matmul(self.matrix, self.matrix)

    def own(self, share: float = 1.0) -> None:
        """Launch the kernel with a share of its rounds."""
        self.kernels.launch("multiply_add", self.kernels.sums, int(self.rounds * share))


class Encoder:
    """The training of a transformer's encoder in bfloat16."""

    def __init__(self, width: int = 768, layers: int = 6, rows: int = 16, length: int = 512) -> None:
        layer = nn.TransformerEncoderLayer(width, width // 64, 4 * width, 0.0, batch_first=True)
        self.model = nn.TransformerEncoder(layer, layers).cuda().bfloat16()
        self.optimiser = torch.optim.AdamW(self.model.parameters(), lr=1e-5, capturable=True)
        self.resident = torch.rand(rows, length, width, device="cuda", dtype=torch.bfloat16)

    def train(self, batch: torch.Tensor) -> torch.Tensor:
        """Make one step of training."""
        loss = self.model(batch).float().square().mean()
        loss.backward()
        self.optimiser.step()
        self.optimiser.zero_grad(set_to_none=False)
        return loss

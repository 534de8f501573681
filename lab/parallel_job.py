"""A simulated training job whose ranks share the work in a known way: PyTorch profiler traces, and who does the same.

`data`: all ranks do the same. `tensor`: likewise, in groups that exchange results in each layer. `pipeline`: stages of
layers, the first with an embedding, the last with a loss, each on several ranks. `expert`: half of the ranks hold the
dense layers, the others the experts. Kernels of some ranks have other tile sizes, and traces end a few launches early.
"""

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from causeway.core.errors import CausewayError
from causeway.simulate.random_numbers import generator
from lab.trace_file import trace_event, write_trace

KINDS = ("data", "tensor", "pipeline", "expert")
ATTENTION = (("sm90_xmma_gemm_bf16_tilesize{}x64_qkv", 120.0), ("flash_fwd_splitkv_kernel", 90.0))
DENSE = (("sm90_xmma_gemm_bf16_tilesize{}x64_mlp", 160.0), ("vectorized_gelu", 30.0))
EXPERTS = (("grouped_gemm_tilesize{}x32", 180.0), ("permute_tokens", 25.0))
EMBEDDING = ("indexing_backward_embedding", 60.0)
LOSS = (("sm90_xmma_gemm_bf16_tilesize{}x64_qkv", 260.0), ("cross_entropy_forward_backward", 70.0))
OPTIMIZER = (("multi_tensor_adam", 80.0),)
"""Kernels: name (with a tile size, which may differ from rank to rank) and mean duration in microseconds."""
TILES = ("128x64", "128x128", "256x128")
COLLECTIVES = {
    "allreduce": ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 60.0),
    "all_to_allv": ("ncclDevKernel_SendRecv", 50.0),
    "send": ("ncclDevKernel_SendRecv", 20.0),
}
ELEMENTS = 1 << 20
MOST_CUT = 12
"""Launches by which traces end early, at most."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ParallelJob:
    """The job.

    Parameters
    ----------
    kind : str
        Of `KINDS`.
    ranks, stages : int
        Ranks, a multiple of the stages of a pipeline and of 2.
    iterations, layers, microbatches : int
    noise : float
        Log-scale spread of durations.
    slow_rank : int or None
        A rank whose kernels take `slow` times as long.
    slow : float
    """

    kind: str = "data"
    seed: int = 1
    ranks: int = 4
    stages: int = 2
    iterations: int = 12
    layers: int = 4
    microbatches: int = 4
    noise: float = 0.05
    slow_rank: int | None = None
    slow: float = 1.3


def write_parallel_job(values: Mapping[str, object], folder: Path) -> dict:
    """Write `rank0.json.gz` and so on; return kind, slow rank, and `roles`: the role of each rank.

    Raises
    ------
    CausewayError
        For an unknown key, or a value out of its range.
    """
    fields = sorted(part.name for part in dataclasses.fields(ParallelJob))
    unknown = sorted(set(values) - set(fields))
    if unknown:
        raise CausewayError(f"simulated parallel job: unknown keys {unknown}; known are {', '.join(fields)}")
    job = ParallelJob(**values)
    if job.kind not in KINDS or job.ranks % 2 or job.ranks % job.stages:
        raise CausewayError(
            f"simulated parallel job: kind {job.kind!r} on {job.ranks} ranks; known are {', '.join(KINDS)}, ranks are a"
            f" multiple of 2 and of the {job.stages} stages"
        )
    folder.mkdir(parents=True, exist_ok=True)
    ranks = [_Rank(job, number) for number in range(job.ranks)]
    _run(ranks)
    for rank in ranks:
        rank.write(folder / f"rank{rank.number}.json.gz")
    return {"kind": job.kind, "slow_rank": job.slow_rank, "roles": [_role(job, rank.number) for rank in ranks]}


def _role(job: ParallelJob, rank: int) -> int:
    """Return the role of a rank: stages between the first and the last do the same."""
    if job.kind == "expert":
        return rank * 2 // job.ranks
    if job.kind != "pipeline":
        return 0
    stage = rank * job.stages // job.ranks
    return 0 if stage == 0 else 1 if stage < job.stages - 1 else min(job.stages - 1, 2)


def _program(job: ParallelJob, rank: int) -> list[tuple]:
    """Return what a rank does in a step: kernels (name, microseconds) and collectives (operation, members)."""
    world = tuple(range(job.ranks))
    if job.kind == "pipeline":
        return _stage(job, rank, world)
    done: list[tuple] = []
    pair = (rank // 2 * 2, rank // 2 * 2 + 1)
    for _ in range(job.layers):
        if job.kind == "expert":
            done += [*(EXPERTS if rank * 2 >= job.ranks else (*ATTENTION, DENSE[1])), ("all_to_allv", world)]
        else:
            done += [*ATTENTION, *DENSE]
        if job.kind == "tensor":
            done.append(("allreduce", pair))
    peers = tuple(range(rank % 2, job.ranks, 2)) if job.kind == "tensor" else world
    edges = [EMBEDDING, *LOSS] if job.kind != "expert" else []
    return [*edges[:1], *done, *edges[1:], ("allreduce", peers), *OPTIMIZER]


def _stage(job: ParallelJob, rank: int, world: tuple[int, ...]) -> list[tuple]:
    """Return what a rank of a pipeline does in a step."""
    width = job.ranks // job.stages
    stage = rank // width
    done: list[tuple] = []
    for _ in range(job.microbatches):
        if stage:
            done.append(("send", (rank - width, rank)))
        done += [EMBEDDING] if stage == 0 else []
        done += [*ATTENTION, *DENSE] * job.layers
        if stage < job.stages - 1:
            done.append(("send", (rank, rank + width)))
        else:
            done += LOSS
    members = tuple(stage * width + member for member in range(width))
    return [*done, ("allreduce", members), ("allreduce", world), *OPTIMIZER]


class _Rank:
    """One rank: its host and its stream, in ns since the run's zero."""

    def __init__(self, job: ParallelJob, number: int) -> None:
        self.job = job
        self.number = number
        self.random = generator(job.seed, "parallel", number)
        self.tile = TILES[int(self.random.integers(len(TILES)))]
        self.program = _program(job, number) * job.iterations
        self.at = 0
        self.host = self.device = 0.0
        self.calls: list[tuple[float, float]] = []
        self.kernels: list[tuple[str, float, float, dict]] = []

    def launch(self) -> float:
        """Return when the next launch can start."""
        begin = self.host + 500 * self.random.random()
        self.host = begin + 4000 * np.exp(0.1 * self.random.standard_normal())
        self.calls.append((begin, self.host))
        return max(self.device + 1000.0, self.host + 3000.0)

    def advance(self) -> bool:
        """Run kernels up to the next collective; return whether one is there."""
        while self.at < len(self.program) and isinstance(self.program[self.at][1], float):
            name, mean_us = self.program[self.at]
            slow = self.job.slow if self.number == self.job.slow_rank else 1.0
            start = self.launch()
            self.device = start + 1000 * mean_us * slow * np.exp(self.job.noise * self.random.standard_normal())
            self.kernels.append((name.format(self.tile), start, self.device, {}))
            self.at += 1
        return self.at < len(self.program)

    def write(self, path: Path) -> None:
        """Write the trace, without a few of the last launches."""
        kept = len(self.kernels) - int(self.random.integers(MOST_CUT + 1))
        events = [
            trace_event("cuda_runtime", "cudaLaunchKernel", (100, 100), span, {"correlation": number})
            for number, span in enumerate(self.calls[:kept])
        ]
        for number, (name, begin, end, extra) in enumerate(self.kernels[:kept]):
            args = {"correlation": number, "device": 0, "stream": 7, "context": 1, **extra}
            args |= {"grid": [64, 1, 1], "block": [256, 1, 1], "registers per thread": 32}
            events.append(trace_event("kernel", name, (0, 7), (begin, end), args))
        write_trace(path, self.number, self.job.ranks, events)


def _run(ranks: list[_Rank]) -> None:
    """Let all ranks run: a collective begins on each of its members when that one is ready, and ends on all of them
    when the last one has begun and the transfer is over.
    """
    starts: dict[int, float] = {}
    numbers: dict[tuple, int] = {}
    while True:
        waiting = [rank for rank in ranks if rank.advance()]
        if not waiting:
            return
        for rank in waiting:
            if rank.number not in starts:
                starts[rank.number] = rank.launch()
        asked = {rank.number: rank.program[rank.at] for rank in waiting}
        for operation, members in sorted(set(asked.values())):
            if all(asked.get(member) == (operation, members) for member in members):
                number = numbers[operation, members] = numbers.get((operation, members), -1) + 1
                kernel, mean_us = COLLECTIVES[operation]
                end = max(starts[member] for member in members) + 1000 * mean_us
                extra = {"Collective name": operation, "Group size": len(members), "dtype": "BFloat16", "Seq": number}
                extra |= {"In msg nelems": ELEMENTS, "Out msg nelems": ELEMENTS}
                extra |= {"Process Group Name": f"{operation}{members[0]}", "Process Group Ranks": str(list(members))}
                for member in members:
                    rank = ranks[member]
                    rank.kernels.append((kernel, starts.pop(member), end, extra))
                    rank.device = end
                    rank.at += 1

"""A simulated training job of equal steps, in some of which something differs: PyTorch profiler traces of its ranks.

Of each step a loader, launches of layers, one collective that all ranks leave together, and an optimizer; the host
waits for the device at the end of a step. Planted in steps of one rank: an operator more, a longer sequence, a late
loader, or a clock cap, which only the samples beside the trace show (`samples.csv`: time_ns (UTC), rank, device,
metric, value).
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from causeway.core.errors import CausewayError
from causeway.simulate.random_numbers import generator
from lab.trace_file import BASE_NS, trace_event, write_trace

LAYER = (("gemm_qkv", 220.0, 512), ("flash_attention", 180.0, 384), ("gemm_mlp", 300.0, 1024), ("gelu", 60.0, 2048))
EMBEDDING = ("embedding_gather", 40.0, 256)
HEAD = (("layer_norm", 50.0, 256), ("cross_entropy", 90.0, 128))
COLLECTIVE = ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", 150.0, 24)
OPTIMIZER = (("multi_tensor_adam", 80.0, 320),) * 3
OPERATOR = ("topk_router", 260.0, 640)
"""Kernels: name, mean duration in microseconds, grid. The operator is the one that is planted."""
LOADER_US = 150.0
CALL_US = 6.0
LATE_LOADER = 0.4
LONGER_SEQUENCE = 1.5
CLOCK_HZ = 1.98e9
CLOCK_CAP = 0.75
PLANTS = ("none", "operator", "sequence", "loader", "clock")
SAMPLE_NS = 200_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class StepJob:
    """The job.

    Parameters
    ----------
    plant : str
        Of `PLANTS`.
    slow : sequence of int
        Steps that are different; two drawn ones if empty.
    slow_rank : int
        The rank in which they are.
    annotated : bool
        Whether the trace names its steps.
    """

    seed: int = 1
    ranks: int = 2
    iterations: int = 40
    layers: int = 6
    plant: str = "none"
    slow: Sequence[int] = ()
    slow_rank: int = 0
    annotated: bool = True
    noise: float = 0.02


def step_job(values: Mapping[str, Any]) -> StepJob:
    """Return the job with the given values in place of its own.

    Raises
    ------
    CausewayError
        For an unknown key, or a value out of its range.
    """
    fields = {part.name for part in dataclasses.fields(StepJob)}
    unknown = sorted(set(values) - fields)
    if unknown:
        raise CausewayError(f"simulated steps: unknown keys {unknown}; known are {', '.join(sorted(fields))}")
    job = StepJob(**values)
    if job.plant not in PLANTS:
        raise CausewayError(f"simulated steps: unknown plant {job.plant!r}; known are {', '.join(PLANTS)}")
    if not 0 <= job.slow_rank < job.ranks or any(not 0 <= step < job.iterations for step in job.slow):
        raise CausewayError(
            f"simulated steps: rank {job.slow_rank} and steps {list(job.slow)} must lie within {job.ranks} ranks and"
            f" {job.iterations} iterations"
        )
    if job.plant != "none" and not job.slow:
        drawn = generator(job.seed, "slow").choice(np.arange(5, job.iterations), 2, replace=False)
        job = dataclasses.replace(job, slow=tuple(sorted(drawn.tolist())))
    return job


def write_step_job(values: Mapping[str, object], folder: Path) -> dict:
    """Write `rank0.json.gz` and so on, and `samples.csv`; return what is planted.

    Raises
    ------
    CausewayError
        As `step_job`.
    """
    job = step_job(values)
    folder.mkdir(parents=True, exist_ok=True)
    ranks = [_Rank(job, number) for number in range(job.ranks)]
    for step in range(job.iterations):
        for rank in ranks:
            rank.before_collective(step)
        start = [rank.collective_start() for rank in ranks]
        end = max(start) + 1000 * COLLECTIVE[1]
        for rank, own in zip(ranks, start, strict=True):
            rank.after_collective(step, own, end)
    samples = ["time_ns,rank,device,metric,value"]
    for rank in ranks:
        rank.write(folder / f"rank{rank.number}.json.gz")
        samples += rank.samples()
    (folder / "samples.csv").write_text("\n".join(samples) + "\n", encoding="utf-8")
    planted = [] if job.plant == "none" else list(job.slow)
    return {"plant": job.plant, "rank": job.slow_rank, "slow": planted, "operator": OPERATOR[0], "seed": job.seed}


class _Rank:
    """One rank: its host thread and its stream, both in ns since the run's zero."""

    def __init__(self, job: StepJob, number: int) -> None:
        self.job = job
        self.number = number
        self.random = generator(job.seed, "rank", number)
        self.host = self.device = 0.0
        self.begin: list[float] = []
        self.calls: list[tuple[str, float, float, int]] = []
        self.kernels: list[tuple[str, float, float, int, int]] = []

    def _planted(self, step: int, plant: str) -> bool:
        return self.job.plant == plant and self.number == self.job.slow_rank and step in self.job.slow

    def _launch(self, step: int, kernel: tuple[str, float, int]) -> None:
        name, mean_us, grid = kernel
        scale = np.exp(self.job.noise * self.random.standard_normal())
        if self._planted(step, "sequence") and kernel in LAYER:
            scale *= LONGER_SEQUENCE
            grid = int(grid * LONGER_SEQUENCE)
        if self._planted(step, "clock"):
            scale /= CLOCK_CAP
        called = self._call("cudaLaunchKernel")
        start = max(self.device + 1000.0, called + 3000.0)
        self.device = start + 1000 * mean_us * scale
        self.kernels.append((name, start, self.device, len(self.calls), grid))

    def _call(self, name: str) -> float:
        begin = self.host + 1500 * self.random.random()
        self.host = begin + 1000 * CALL_US * np.exp(0.1 * self.random.standard_normal())
        self.calls.append((name, begin, self.host, len(self.calls) + 1))
        return self.host

    def before_collective(self, step: int) -> None:
        """Load, launch the layers, and call the collective."""
        self.begin.append(self.host)
        usual_us = self.job.layers * math.fsum(mean for _, mean, _ in LAYER)
        late = LATE_LOADER * usual_us if self._planted(step, "loader") else 0.0
        self.host += 1000 * (LOADER_US * np.exp(0.2 * self.random.standard_normal()) + late)
        self._launch(step, EMBEDDING)
        for layer in range(self.job.layers):
            for kernel in LAYER:
                self._launch(step, kernel)
            if layer == self.job.layers // 2 and self._planted(step, "operator"):
                for _ in range(4):
                    self._launch(step, OPERATOR)
        for kernel in HEAD:
            self._launch(step, kernel)
        self._call("cudaLaunchKernel")

    def collective_start(self) -> float:
        """Return when the rank reaches the collective."""
        return max(self.device + 1000.0, self.host + 3000.0)

    def after_collective(self, step: int, start: float, end: float) -> None:
        """Leave the collective with the others, launch the optimizer, and wait for the device."""
        self.kernels.append((COLLECTIVE[0], start, end, len(self.calls), COLLECTIVE[2]))
        self.device = end
        for kernel in OPTIMIZER:
            self._launch(step, kernel)
        called = self.host
        self.host = max(self.host, self.device) + 4000.0
        self.calls.append(("cudaDeviceSynchronize", called, self.host, len(self.calls) + 1))

    def samples(self) -> list[str]:
        """Return the sampled clock as lines."""
        times = np.arange(0, self.host, SAMPLE_NS)
        step = np.searchsorted(self.begin, times, "right") - 1
        capped = [self._planted(int(index), "clock") for index in step]
        values = CLOCK_HZ * np.where(capped, CLOCK_CAP, 1.0) * (1 + 0.002 * self.random.standard_normal(times.size))
        return [
            f"{BASE_NS + int(time)},{self.number},{self.number},sm_clock_hz,{value:.0f}"
            for time, value in zip(times.tolist(), values.tolist(), strict=True)
        ]

    def write(self, path: Path) -> None:
        """Write the trace."""
        events = [
            trace_event("user_annotation", f"ProfilerStep#{index}", (100, 100), (begin, end), {})
            for index, (begin, end) in enumerate(zip(self.begin, [*self.begin[1:], self.host], strict=True))
            if self.job.annotated
        ]
        events += [
            trace_event("cuda_runtime", name, (100, 100), (begin, end), {"correlation": number})
            for name, begin, end, number in self.calls
        ]
        for name, begin, end, number, grid in self.kernels:
            args: dict[str, object] = {"correlation": number, "device": self.number, "stream": 7, "context": 1}
            args |= {"grid": [grid, 1, 1], "block": [256, 1, 1], "registers per thread": 32}
            if name == COLLECTIVE[0]:
                args |= {"Collective name": "allreduce", "Group size": self.job.ranks, "Process Group Name": "0"}
            events.append(trace_event("kernel", name, (self.number, 7), (begin, end), args))
        write_trace(path, self.number, self.job.ranks, events)

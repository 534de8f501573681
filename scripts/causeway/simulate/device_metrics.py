"""Sampled metrics of a simulated device: clocks, and how busy its parts are, at a fixed interval."""

import numpy as np

from causeway.simulate import random_numbers
from causeway.simulate.scenario import Scenario, relative_clock
from causeway.simulate.stream_events import Columns, RankBatch, busy_before

METRICS = (
    "GPC Clock Frequency [MHz]",
    "SYS Clock Frequency [MHz]",
    "GPU Active [Throughput %]",
    "SMs Active [Throughput %]",
    "DRAM Read Bandwidth [Throughput %]",
    "PCIe RX Throughput [Throughput %]",
    "PCIe TX Throughput [Throughput %]",
    "Tensor Active [Throughput %]",
)
"""Names of the metrics, as Nsight Systems spells them, in the order of their numbers."""
BASE_CLOCK_HZ = 1_980_000_000
"""Highest clock of an H100 SXM."""
TENSOR_PERCENT = 62
"""How busy the tensor cores are while a kernel that uses them runs; a choice without a source."""


def sample_metrics(scenario: Scenario, interval_us: float, batch: RankBatch, span: tuple[int, int]) -> Columns:
    """Sample one rank's device as its metrics unit would: each value describes the interval that ends at its time.

    Parameters
    ----------
    scenario : Scenario
    interval_us : float
    batch : RankBatch
    span : tuple of int, ns
        From the batch's start to its end.

    Returns
    -------
    dict of ndarray of int64, shape (n_times * len(METRICS),)
        `time` (ns since the run's zero, ascending), `metric` (index into `METRICS`) and `value` (Hz for clocks, else
        percent).
    """
    interval_ns = int(1000 * interval_us)
    times = np.arange(-(-span[0] // interval_ns), -(-span[1] // interval_ns), dtype=np.int64) * interval_ns
    copies = batch.copies
    kernels = batch.kernels
    begins = batch.ranges["start"]

    def percent(start: np.ndarray, end: np.ndarray) -> np.ndarray:
        edges = np.concatenate([[times[0] - interval_ns], times]) if len(times) else times
        return np.rint(100 * np.diff(busy_before(start, end, edges)) / interval_ns).astype(np.int64)

    first = int(np.searchsorted(begins, times[0], side="right") - 1) if len(times) else 0
    iteration = np.clip(np.searchsorted(begins, times, side="right") - 1, max(first, 0), None)
    first_iteration = int(batch.ranges["iteration"][0])
    clock = relative_clock(scenario, first_iteration, len(begins))[batch.rank]
    active = percent(kernels["start"], kernels["end"])
    moving = {kind: np.zeros(len(times), dtype=np.int64) for kind in (1, 2)}
    if copies:
        for kind in moving:
            chosen = copies["kind"] == kind
            moving[kind] = percent(copies["start"][chosen], copies["end"][chosen])
    tensor = np.isin(kernels["kernel"], [n for n, kernel in enumerate(scenario.kernels) if "tensorop" in kernel.name])
    tensor_active = percent(kernels["start"][tensor], kernels["end"][tensor]) * TENSOR_PERCENT // 100
    random = random_numbers.generator(scenario.seed, "samples", batch.rank, first_iteration)
    jitter = np.rint(random.uniform(-3e6, 3e6, len(times))).astype(np.int64)
    gpc = np.rint(BASE_CLOCK_HZ * clock[iteration]).astype(np.int64) + jitter
    values = [gpc, gpc - 150_000_000, active, np.minimum(active, 98), active * 45 // 100, moving[1], moving[2]]
    values.append(tensor_active)
    return {
        "time": np.repeat(times, len(values)),
        "metric": np.tile(np.arange(len(values)), len(times)),
        "value": np.stack(values, axis=1).ravel() if len(times) else np.zeros(0, dtype=np.int64),
    }

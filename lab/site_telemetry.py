"""Telemetry that a site would have recorded beside a simulated run: what `nvidia-smi --query-gpu` writes, per node, for
tests.
"""

import csv
import datetime
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from causeway.simulate import random_numbers
from causeway.simulate.nsys_sqlite import BASE_UTC_NS
from causeway.simulate.rank_export import FIRST_EVENT_NS
from causeway.simulate.scenario import Scenario, relative_clock, trace_scenario
from causeway.simulate.schedule import simulate_batches
from causeway.simulate.stream_events import RankBatch, busy_before

HEADER = (
    "timestamp",
    "index",
    "power.draw [W]",
    "clocks.current.sm [MHz]",
    "temperature.gpu",
    "utilization.gpu [%]",
    "clocks_throttle_reasons.active",
)
BESIDE = 20
"""Sampling intervals that are recorded before and after the run."""
PARTS = 20
"""Pieces of a sampling interval in which the busy time is held."""
BASE_MHZ = 1980
CLOCK_STEP_MHZ = 15
"""An H100's clock changes in steps of 15 MHz."""
IDLE_W = 90.0
BUSY_W = 520.0
NOISE_W = 6.0
IDLE_REASON = 0x1
POWER_CAP = 0x4
"""Bits of the throttle reasons, as nvml.h has them."""


def write_telemetry(values: Mapping[str, object], folder: Path, interval_ms: float, skew_s: float = 0.0) -> None:
    """Write the telemetry of a run, `telemetry_node0.csv` and so on: the run is simulated once more.

    Parameters
    ----------
    values : mapping
        As of `causeway.simulate.runs.write_run`.
    folder : Path
    interval_ms : float
        Between two samples.
    skew_s : float
        How far the clock of the record is ahead of the nodes'.
    """
    scenario = trace_scenario(values)
    telemetry = SiteTelemetry(scenario, interval_ms, skew_s)
    for batches in simulate_batches(scenario):
        telemetry.take(batches)
    telemetry.write(folder)


class SiteTelemetry:
    """The telemetry of a run, collected batch by batch.

    Parameters
    ----------
    scenario : Scenario
    interval_ms, skew_s : float
        As of `write_telemetry`.
    """

    def __init__(self, scenario: Scenario, interval_ms: float, skew_s: float) -> None:
        self.scenario = scenario
        self.skew_ns = round(skew_s * 1e9)
        self.interval_ns = round(interval_ms * 1e6)
        self.part_ns = max(self.interval_ns // PARTS, 1)
        self.busy = [np.zeros(0, np.int64) for _ in range(scenario.ranks)]
        self.begins: list[np.ndarray] = []
        self.clocks: list[np.ndarray] = []
        self.end_ns = 0
        self.done = 0

    def take(self, batches: list[RankBatch]) -> None:
        """Take a batch of all ranks."""
        last = max(int(batch.kernels["end"].max()) for batch in batches)
        low = int(batches[0].ranges["start"][0]) // self.part_ns
        high = last // self.part_ns + 1
        edges = np.arange(low, high + 1, dtype=np.int64) * self.part_ns
        for batch in batches:
            held = self.busy[batch.rank]
            wide = np.zeros(max(high, held.size), np.int64)
            wide[: held.size] = held
            wide[low:high] += np.diff(busy_before(batch.kernels["start"], batch.kernels["end"], edges))
            self.busy[batch.rank] = wide
        count = len(batches[0].ranges["start"])
        self.begins.append(batches[0].ranges["start"])
        self.clocks.append(relative_clock(self.scenario, self.done, count))
        self.done += count
        self.end_ns = max(self.end_ns, last)

    def write(self, folder: Path) -> None:
        """Write a file for each node."""
        per_node = -(-self.scenario.ranks // self.scenario.nodes)
        begins = np.concatenate(self.begins)
        clocks = np.concatenate(self.clocks, axis=1)
        for node in range(self.scenario.nodes):
            ranks = range(node * per_node, min((node + 1) * per_node, self.scenario.ranks))
            random = random_numbers.generator(self.scenario.seed, "telemetry", node)
            phase = int(random.integers(0, self.interval_ns))
            count = self.end_ns // self.interval_ns + 2 * BESIDE
            times = phase + (np.arange(count, dtype=np.int64) - BESIDE) * self.interval_ns
            times = times + random.integers(0, max(self.interval_ns // 100, 1), count)  # the loop sleeps a little more
            path = folder / f"telemetry_node{node}.csv"
            with open(path, "w", encoding="ascii", newline="") as file:
                writer = csv.writer(file, lineterminator="\n", delimiter=",")
                writer.writerow([HEADER[0], *(f" {name}" for name in HEADER[1:])])
                columns = [self._columns(rank, times, begins, clocks[rank], random) for rank in ranks]
                for row, time in enumerate(times.tolist()):
                    for index, column in enumerate(columns):
                        writer.writerow([self._stamp(time), f" {index}", *(f" {values[row]}" for values in column)])

    def _stamp(self, time_ns: int) -> str:
        """Return the site's clock as nvidia-smi writes it, to the millisecond."""
        utc = BASE_UTC_NS + FIRST_EVENT_NS + time_ns + self.skew_ns
        day = datetime.datetime.fromtimestamp(utc // 10**9, datetime.UTC).strftime("%Y/%m/%d %H:%M:%S")
        return f"{day}.{utc % 10**9 // 10**6:03d}"

    def _columns(
        self, rank: int, times: np.ndarray, begins: np.ndarray, clock: np.ndarray, random: np.random.Generator
    ) -> list[list[str]]:
        """Return power, clock, temperature, utilisation and throttle reasons of a device at some times, as text."""
        total = np.concatenate([[0], np.cumsum(self.busy[rank])])
        edges = np.arange(total.size, dtype=np.int64) * self.part_ns
        upto = np.interp(times, edges, total)
        share = np.clip((upto - np.interp(times - self.interval_ns, edges, total)) / self.interval_ns, 0, 1)
        iteration = np.clip(np.searchsorted(begins, times, side="right") - 1, 0, None)
        running = (times >= begins[0]) & (times <= self.end_ns)
        relative = np.where(running, clock[iteration], 1.0)
        power = IDLE_W + BUSY_W * share * relative**2 + random.normal(0, NOISE_W, times.size)
        steps = BASE_MHZ * relative // CLOCK_STEP_MHZ + random.integers(-1, 1, times.size)
        heat = 35 + 30 * share + random.normal(0, 1, times.size)
        reasons = np.where(share == 0, IDLE_REASON, np.where(relative < 1, POWER_CAP, 0))
        return [
            [f"{watts:.2f} W" for watts in power],
            [f"{int(CLOCK_STEP_MHZ * number)} MHz" for number in steps],
            [f"{round(degrees)}" for degrees in heat],
            [f"{round(100 * busy)} %" for busy in share],
            [f"0x{bits:016x}" for bits in reasons.tolist()],
        ]

"""The schedule of a scenario: kernels, copies and calls of every rank over time, in batches of iterations.

All iterations of a batch and all ranks advance together, one launch position after the other, so that a run of any
length costs a few array operations per position and memory for one batch. An iteration ends with a device
synchronisation, and the next one begins on all ranks after the slowest has ended: nothing of an iteration reaches into
the next, which is what makes this possible. How much longer a launch lasts by planted effects follows from the state
of its device when it starts.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from causeway.simulate import random_numbers
from causeway.simulate.device_metrics import sample_metrics
from causeway.simulate.rank_tables import RankTables
from causeway.simulate.scenario import (
    MIB,
    SATURATION,
    Copy,
    Scenario,
    SimulatedKernel,
    delayed_iterations,
    is_collective,
    relative_clock,
)
from causeway.simulate.stream_events import Columns, RankBatch, StreamEvents, in_flight, issue, no_events, renewal

COPY_KINDS = {"h2d_bytes_in_flight": 1, "d2h_bytes_in_flight": 2, "d2d_bytes_in_flight": 8}
"""CUPTI's number of the direction whose bytes a cause counts."""


@dataclass(frozen=True, kw_only=True)
class CopyStream:
    """The copies of one direction, on a stream and a host thread of their own.

    Attributes
    ----------
    copy : Copy
        Their description in the scenario.
    events : StreamEvents
    size : ndarray of int64, shape (ranks, iterations, slots), bytes
    thread : int
        Index of the host thread that issues them.
    """

    copy: Copy
    events: StreamEvents
    size: np.ndarray
    thread: int


@dataclass(frozen=True, kw_only=True)
class DeviceState:
    """What else the devices do in a batch of iterations; times are ns since the iteration's start.

    Attributes
    ----------
    copies : list of CopyStream
    neighbours : StreamEvents
        Launches of the second stream.
    last_input : ndarray of int64, shape (ranks, iterations), bytes, or None
        Size of the last copy from the host before each iteration; None where the scenario has no such copies.
    elapsed_ns : ndarray of float64, shape (iterations,), ns
        Nominal time from the run's start to each iteration's.
    """

    copies: list[CopyStream]
    neighbours: StreamEvents
    last_input: np.ndarray | None
    elapsed_ns: np.ndarray


def inputs_of(copies: list[CopyStream]) -> CopyStream | None:
    """Return the copies from host to device, None where there are none."""
    return next((stream for stream in copies if stream.copy.kind == COPY_KINDS["h2d_bytes_in_flight"]), None)


def relative_change(
    kernel: SimulatedKernel, begin: np.ndarray, busy_until: np.ndarray, state: DeviceState
) -> np.ndarray:
    """Sum the planted relative changes of a kernel's duration.

    Parameters
    ----------
    kernel : SimulatedKernel
    begin : ndarray of int64, shape (ranks, iterations), ns
        Start of one launch per rank and iteration.
    busy_until : ndarray of int64, shape (ranks, iterations), ns
        End of the launch before it on its stream.
    state : DeviceState

    Returns
    -------
    ndarray of float64, shape (ranks, iterations); 0 without a cause that depends on the state.
    """
    total = np.zeros(begin.shape)
    for cause, strength in kernel.causes.items():
        if cause in SATURATION:
            total += strength * _fraction(cause, begin, busy_until, state)
    return total


def _fraction(cause: str, begin: np.ndarray, busy_until: np.ndarray, state: DeviceState) -> np.ndarray:
    """Return which part of a cause's full effect acts at each start; see `SATURATION`."""
    full = SATURATION[cause]
    if cause == "launches_in_flight":
        return in_flight(state.neighbours, begin).sum(axis=2) / full
    if cause == "transfers_in_flight":
        return sum(in_flight(stream.events, begin).sum(axis=2) for stream in state.copies) / full
    if cause == "idle_before_ns":
        begun = state.neighbours.valid & (state.neighbours.start < begin[..., None])
        latest = state.neighbours.end.max(axis=2, where=begun, initial=np.iinfo(np.int64).min)
        return np.clip(1 - np.maximum(0, begin - np.maximum(busy_until, latest)) / full, 0, 1)
    if cause == "since_start_ns":
        return np.exp(-(state.elapsed_ns + begin) / full)
    inputs = inputs_of(state.copies) if cause == "last_h2d_bytes" else None
    if inputs is not None and state.last_input is not None:
        ended = (inputs.events.valid & (inputs.events.end <= begin[..., None])).sum(axis=2)
        last = np.take_along_axis(inputs.size, np.maximum(ended - 1, 0)[..., None], 2)[..., 0]
        return np.clip(2 * np.where(ended > 0, last, state.last_input) / full - 1, 0, 1)
    moving = sum(
        (in_flight(stream.events, begin) * stream.size).sum(axis=2)
        for stream in state.copies
        if stream.copy.kind == COPY_KINDS[cause]
    )
    return np.minimum(1, moving / full)


LEAD_NS = 30_000
"""Time from an iteration's start to its first launch: room for the calls that issue it."""
PAUSE_NS = 20_000
"""Time between the last rank's end of an iteration and the start of the next."""
MIN_DURATION_NS = 5_000
COMPUTE_STREAM = 7
NEIGHBOUR_STREAM = 16
COMPUTE_THREAD = 0
NEIGHBOUR_THREAD = 1
FIRST_COPY_THREAD = 2
LAUNCH, LAUNCH_DRIVER, MEMCPY, MEMSET, SYNCHRONIZE = range(5)
"""Numbers of the API calls; the writers have their names."""
INPUT_NS = 12_000
"""Time from an iteration's start to that of the copy of its input; its call ends a little before."""
INPUT_GB_S = 25
"""Bandwidth of that copy: PCIe 4.0 with 16 lanes, less what protocols take."""
CHANGES_OF_SIZE = 8
"""How often the input size changes in a run."""


@dataclass(frozen=True, kw_only=True)
class KernelStream:
    """The launches of one stream.

    Attributes
    ----------
    stream, thread : int
        Number of the stream; index of the host thread that issues its launches.
    events : StreamEvents
    kernel : ndarray of int64, shape (slots,) or ()
        Indices into the scenario's kernels.
    call : ndarray of int64, shape (slots,) or ()
        Numbers of the API calls.
    block, grid : ndarray of int64, shape (ranks, iterations, slots)
    mean_ns : ndarray of float64, the same shape, ns
        Mean duration of the launch configuration, without effects.
    effect : ndarray of float64, the same shape
        Planted relative change of the duration.
    """

    stream: int
    thread: int
    events: StreamEvents
    kernel: np.ndarray
    call: np.ndarray
    block: np.ndarray
    grid: np.ndarray
    mean_ns: np.ndarray
    effect: np.ndarray


def nominal_ns(scenario: Scenario, kernels: tuple[int, ...]) -> float:
    """Return the expected length of a sequence of launches without effects, ns."""
    return math.fsum(1000 * (scenario.kernels[k].base_us + scenario.kernels[k].gap_us) for k in kernels)


def simulate_batches(scenario: Scenario) -> Iterator[list[RankBatch]]:
    """Yield the run batch by batch: a list with one `RankBatch` per rank, in order of rank."""
    simulation = _Simulation(scenario)
    for first in range(0, scenario.iterations, scenario.iterations_per_batch):
        yield simulation.batch(first, min(scenario.iterations_per_batch, scenario.iterations - first))


class _Simulation:
    """The state that is carried from batch to batch: time, correlation numbers, autoregressive noise, last input."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.now = 0
        self.correlation = np.full(scenario.ranks, 1000, dtype=np.int64)
        self.noise_state: dict[int, np.ndarray | None] = {}
        self.last_input = np.zeros(scenario.ranks, dtype=np.int64)
        self.lead_ns = LEAD_NS + scenario.input_bytes / INPUT_GB_S
        self.window_ns = self.lead_ns + nominal_ns(scenario, scenario.program)
        self.span_ns = self.window_ns + nominal_ns(scenario, scenario.closing)
        self.delayed_ranks = (np.arange(scenario.ranks) == scenario.straggler_rank) | (scenario.straggler == "network")

    def batch(self, first: int, count: int) -> list[RankBatch]:
        """Simulate the iterations `first` to `first + count - 1` on all ranks."""
        scenario = self.scenario
        shape = (scenario.ranks, count)
        copies = [self._copies(index, copy, first, shape) for index, copy in enumerate(scenario.copies)]
        neighbours = self._neighbours(first, shape)
        state = DeviceState(
            copies=list(copies),
            neighbours=neighbours.events if neighbours else no_events(*shape),
            last_input=self._inputs_before(copies),
            elapsed_ns=(first + np.arange(count)) * (self.span_ns + PAUSE_NS),
        )
        inputs = self._input_copies(first, shape)
        launches = self._launches(first, shape, state, inputs)
        copies += inputs
        streams = [launches.events, state.neighbours, *(stream.events for stream in copies)]
        ends = [events.end.max(axis=2, where=events.valid, initial=0) for events in streams]
        synchronised = np.maximum.reduce(ends) + 3_000
        begin = self.now + np.concatenate([[0], np.cumsum(synchronised.max(axis=0) + 2_000 + PAUSE_NS)])
        span = (int(begin[0]), int(begin[-1]))
        self.now = span[1]
        result = []
        for rank in range(scenario.ranks):
            tables = RankTables(rank, begin[:-1], ahead=scenario.host == "ahead")
            self._add_events(tables, launches, neighbours, copies)
            last_call = launches.events.call_end[rank, :, -1]
            tables.add_calls(last_call + 1_000, synchronised[rank], thread=COMPUTE_THREAD, call=SYNCHRONIZE)
            ranges = {
                "start": begin[:-1],
                "end": begin[:-1] + synchronised[rank] + 2_000,
                "iteration": first + np.arange(count),
            }
            numbered = tables.numbered(int(self.correlation[rank]))
            self.correlation[rank] += len(numbered["calls"]["start"])
            batch = RankBatch(rank=rank, **numbered, ranges=ranges, samples={})
            if scenario.gpu_metrics_us:
                batch = replace(batch, samples=sample_metrics(scenario, scenario.gpu_metrics_us, batch, span))
            result.append(batch)
        return result

    def _noise(
        self,
        index: int,
        kernel: SimulatedKernel,
        first: int,
        shape: tuple[int, int],
        slots: int,
        cv: np.ndarray | float,
    ) -> np.ndarray:
        """Draw the noise factors of a kernel's launches, shape (ranks, iterations, slots), mean 1."""
        random = random_numbers.generator(self.scenario.seed, "noise", index, first)
        ranks, count = shape
        normal, self.noise_state[index] = random_numbers.standard_normal(
            random, (ranks, count * slots), kernel.rho, self.noise_state.get(index)
        )
        factors = random_numbers.factors(normal.reshape(ranks, count, slots), cv)
        return factors + random_numbers.spikes(random, (ranks, count, slots), kernel.spike_share, kernel.spike_size)

    def _copies(self, index: int, copy: Copy, first: int, shape: tuple[int, int]) -> CopyStream:
        random = random_numbers.generator(self.scenario.seed, "copies", index, first)
        mean_ns = copy.median_bytes * np.exp(copy.sigma**2 / 2) / copy.bandwidth_gb_s
        slots = int(1.6 * self.span_ns / (mean_ns + 1000 * copy.pause_us)) + 4
        drawn = copy.median_bytes * np.exp(copy.sigma * random.standard_normal((*shape, slots)))
        size = np.rint(drawn / 256).astype(np.int64) * 256 + 256
        duration = np.rint(1_200 + size / copy.bandwidth_gb_s * random.uniform(0.97, 1.06, size.shape)).astype(np.int64)
        events = renewal(random, duration, copy.pause_us, self.span_ns)
        return CopyStream(copy=copy, events=events, size=size, thread=FIRST_COPY_THREAD + index)

    def _input_copies(self, first: int, shape: tuple[int, int]) -> list[CopyStream]:
        """Return the copies on the compute stream with which iterations begin; empty without."""
        scenario = self.scenario
        if not scenario.input_bytes:
            return []
        random = random_numbers.generator(scenario.seed, "input", first)
        size = np.full((*shape, 1), scenario.input_bytes, dtype=np.int64)
        duration = np.rint(1_200 + size / INPUT_GB_S * random.uniform(0.97, 1.06, size.shape)).astype(np.int64)
        start = np.full(size.shape, INPUT_NS, dtype=np.int64)
        events = StreamEvents(
            start=start,
            end=start + duration,
            valid=np.ones(size.shape, dtype=bool),
            call_start=start - 5_500,
            call_end=start - 3_000,
        )
        copy = Copy(
            kind=1,
            stream=COMPUTE_STREAM,
            source_kind=1,
            target_kind=2,
            median_bytes=scenario.input_bytes,
            sigma=0.0,
            pause_us=0.0,
            bandwidth_gb_s=INPUT_GB_S,
        )
        return [CopyStream(copy=copy, events=events, size=size, thread=COMPUTE_THREAD)]

    def _inputs_before(self, copies: list[CopyStream]) -> np.ndarray | None:
        """Return the size of the last copy from the host before each iteration, shape (ranks, iterations); None without
        such copies.

        Keeps that after the batch for the next one.
        """
        inputs = inputs_of(copies)
        if inputs is None:
            return None
        valid = inputs.events.valid
        slot = np.where(valid.any(axis=2), valid.shape[2] - 1 - np.argmax(valid[..., ::-1], axis=2), -1)
        own = np.where(slot >= 0, np.take_along_axis(inputs.size, np.maximum(slot, 0)[..., None], 2)[..., 0], 0)
        line = np.concatenate([self.last_input[:, None], own], axis=1)
        for iteration in range(1, line.shape[1]):
            line[:, iteration] = np.where(line[:, iteration] > 0, line[:, iteration], line[:, iteration - 1])
        self.last_input = line[:, -1]
        return line[:, :-1]

    def _neighbours(self, first: int, shape: tuple[int, int]) -> KernelStream | None:
        """Return the launches of the second stream, None without one."""
        scenario = self.scenario
        if scenario.neighbour is None:
            return None
        kernel = scenario.kernels[scenario.neighbour]
        random = random_numbers.generator(scenario.seed, "neighbours", first)
        slots = int(1.6 * self.window_ns / (1000 * (kernel.base_us + scenario.neighbour_pause_us))) + 4
        factors = self._noise(scenario.neighbour, kernel, first, shape, slots, kernel.cv)
        duration = np.maximum(MIN_DURATION_NS, np.rint(1000 * kernel.base_us * factors)).astype(np.int64)
        return KernelStream(
            stream=NEIGHBOUR_STREAM,
            thread=NEIGHBOUR_THREAD,
            events=renewal(random, duration, scenario.neighbour_pause_us, self.window_ns),
            kernel=np.array(scenario.neighbour),
            call=np.array(LAUNCH),
            effect=np.zeros(duration.shape),
            **_configurations(random, kernel, (*shape, slots), np.zeros(shape[1])),
        )

    def _launches(
        self, first: int, shape: tuple[int, int], state: DeviceState, inputs: list[CopyStream]
    ) -> KernelStream:
        """Simulate the compute stream, launch position by launch position, behind the copies of its input."""
        scenario = self.scenario
        order = [*scenario.program, *scenario.closing]
        drawn = {index: self._drawn(index, order.count(index), first, shape) for index in sorted(set(order))}
        wide = (*shape, len(order))
        start, end, block, grid = (np.zeros(wide, dtype=np.int64) for _ in range(4))
        mean = np.zeros(wide)
        effect = np.zeros(wide)
        used = dict.fromkeys(drawn, 0)
        clock = relative_clock(scenario, first, shape[1])
        delayed = delayed_iterations(scenario)[first : first + shape[1]]
        delay = 1000 * scenario.straggler_us * (np.broadcast_to(delayed, shape) & self.delayed_ranks[:, None])
        stretch = 1 + delay / (self.span_ns - self.lead_ns) * (scenario.straggler == "compute")
        random = random_numbers.generator(scenario.seed, "gaps", first)
        previous = np.full(shape, LEAD_NS // 2 + 4_000, dtype=np.int64)
        for stream in inputs:
            previous = np.maximum(previous, stream.events.end[..., 0])
        busy_until = np.full(shape, -PAUSE_NS, dtype=np.int64)
        for position, index in enumerate(order):
            kernel = scenario.kernels[index]
            configurations, factors = drawn[index]
            slot = used[index]
            used[index] += 1
            gap = np.exp(kernel.gap_sigma * random.standard_normal(shape)) * kernel.gap_us * 1000
            begin = previous + np.maximum(600, np.rint(gap)).astype(np.int64)
            if position == 0:
                begin = np.maximum(begin, LEAD_NS) + (delay.astype(np.int64) if scenario.straggler == "host" else 0)
            if position == len(scenario.program):
                waited = state.neighbours.end.max(axis=2, where=state.neighbours.valid, initial=0)
                begin = np.maximum(begin, waited + 2_000)
            block[..., position] = configurations["block"][..., slot]
            grid[..., position] = configurations["grid"][..., slot]
            mean[..., position] = configurations["mean_ns"][..., slot]
            effect[..., position] = relative_change(kernel, begin, busy_until, state)
            slow = clock ** -kernel.causes.get("gpc_clock_frequency_hz", 0.0)
            scale = 1000 * kernel.base_us
            duration = mean[..., position] + scale * ((1 + effect[..., position]) * slow * factors[..., slot] - 1)
            duration = duration if is_collective(kernel) else duration * stretch
            finish = begin + np.maximum(MIN_DURATION_NS, np.rint(duration)).astype(np.int64)
            if scenario.collective == "wait" and is_collective(kernel):
                common_end = begin.max(axis=0) + (finish - begin).min(axis=0)
                if scenario.straggler == "network":
                    common_end = common_end + delay[0].astype(np.int64)
                finish = common_end[None, :] + random.integers(0, 500, shape)
            start[..., position] = begin
            end[..., position] = finish
            previous = busy_until = finish
        call_start, call_end = issue(random_numbers.generator(scenario.seed, "calls", first), start, LEAD_NS // 2)
        calls = [LAUNCH_DRIVER if scenario.kernels[index].driver_launch else LAUNCH for index in order]
        return KernelStream(
            stream=COMPUTE_STREAM,
            thread=COMPUTE_THREAD,
            events=StreamEvents(
                start=start, end=end, valid=np.ones(wide, dtype=bool), call_start=call_start, call_end=call_end
            ),
            kernel=np.array(order),
            call=np.array(calls),
            block=block,
            grid=grid,
            mean_ns=mean,
            effect=effect,
        )

    def _drawn(self, index: int, slots: int, first: int, shape: tuple[int, int]) -> tuple[Columns, np.ndarray]:
        """Draw the launch configurations of a kernel's launches, and the noise factors of their durations."""
        kernel = self.scenario.kernels[index]
        random = random_numbers.generator(self.scenario.seed, "configurations", index, first)
        progress = (first + np.arange(shape[1])) / self.scenario.iterations
        configurations = _configurations(random, kernel, (*shape, slots), progress)
        cv = kernel.cv * np.ones((*shape, slots))
        for feature, sizes, choices in (("block_x", "block", kernel.blocks), ("grid_x", "grid", kernel.grids)):
            cv *= (configurations[sizes] / min(choices)) ** kernel.causes.get(feature, 0.0)
        return configurations, self._noise(index, kernel, first, shape, slots, cv)

    def _add_events(
        self, tables: RankTables, launches: KernelStream, neighbours: KernelStream | None, copies: list[CopyStream]
    ) -> None:
        """Add the events of all streams of a rank, and the memset with which each iteration begins."""
        rank = tables.rank
        for kernels in (launches, neighbours) if neighbours else (launches,):
            columns = {name: getattr(kernels, name)[rank] for name in ("block", "grid", "mean_ns", "effect")}
            columns |= {"stream": kernels.stream, "kernel": kernels.kernel}
            tables.add("kernels", kernels.events, thread=kernels.thread, call=kernels.call, **columns)
        for stream in copies:
            copy = stream.copy
            columns = {"kind": copy.kind, "source_kind": copy.source_kind, "target_kind": copy.target_kind}
            columns |= {"stream": copy.stream, "bytes": stream.size[rank]}
            tables.add("copies", stream.events, thread=stream.thread, call=MEMCPY, **columns)
        start = np.full((self.scenario.ranks, len(tables.begin), 1), 9_000)
        memset = StreamEvents(
            start=start,
            end=start + 2_000,
            valid=np.ones_like(start, dtype=bool),
            call_start=start - 7_000,
            call_end=start - 3_000,
        )
        columns = {"stream": COMPUTE_STREAM, "bytes": 4 * MIB}
        tables.add("memsets", memset, thread=COMPUTE_THREAD, call=MEMSET, **columns)


def _configurations(
    random: np.random.Generator, kernel: SimulatedKernel, shape: tuple[int, ...], progress: np.ndarray
) -> Columns:
    """Draw the launch configuration of every launch of a kernel, and the mean duration (ns) that belongs to it."""
    block = np.array(kernel.blocks)[random.integers(0, len(kernel.blocks), shape)]
    if kernel.grids_over_time:
        which = np.minimum((progress * CHANGES_OF_SIZE).astype(int), CHANGES_OF_SIZE - 1) % len(kernel.grids)
        which = np.broadcast_to(which[None, :, None], shape)
    else:
        which = random.integers(0, len(kernel.grids), shape)
    grid = np.array(kernel.grids)[which]
    mean = 1000 * kernel.base_us * (1 - kernel.grid_share + kernel.grid_share * grid / kernel.grids[0])
    return {"block": block, "grid": grid, "mean_ns": mean}

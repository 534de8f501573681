"""Play a scenario: the schedule of kernels, copies and calls of every rank, in batches of iterations.

All iterations of a batch and all ranks advance together, one launch position after the other, so that a run of any length costs a few
array operations per position and memory for one batch. An iteration ends with a device synchronisation, and the next one begins on all
ranks after the slowest has ended: nothing of an iteration reaches into the next, which is what makes this possible.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from causeway.simulate import noise
from causeway.simulate.lanes import Columns, Lane, busy_before, by_start, in_flight, issue, renewal
from causeway.simulate.scenarios import SATURATION, Copy, Kernel, Scenario, delayed, is_collective

LEAD_NS = 30_000
"""Time from an iteration's start to its first launch: room for the calls that issue it."""
PAUSE_NS = 20_000
"""Time between the last rank's end of an iteration and the start of the next."""
MIN_DURATION_NS = 5_000
COMPUTE_STREAM, NEIGHBOUR_STREAM = 7, 16
COMPUTE_THREAD, NEIGHBOUR_THREAD, FIRST_COPY_THREAD = 0, 1, 2
LAUNCH, LAUNCH_DRIVER, MEMCPY, MEMSET, SYNCHRONIZE = range(5)
"""Numbers of the API calls; the writers have their names."""
CHANGES_OF_SIZE = 8
"""How often the input size changes in a run."""
METRICS = (
    "GPC Clock Frequency [MHz]",
    "SYS Clock Frequency [MHz]",
    "GPU Active [Throughput %]",
    "SMs Active [Throughput %]",
    "DRAM Read Bandwidth [Throughput %]",
    "PCIe RX Throughput [Throughput %]",
    "PCIe TX Throughput [Throughput %]",
)
BASE_CLOCK_HZ = 1_980_000_000


@dataclass
class RankBatch:
    """The events of one rank in a batch of iterations, ordered by start; times are ns since the run's zero, equal on all ranks.

    `kernels` has start, end, stream, kernel (number), block, grid, mean_ns (of the configuration, without effects), effect (planted
    relative change) and correlation; `copies` start, end, stream, bytes, kind, source_kind, target_kind, correlation; `memsets` start,
    end, stream, bytes, correlation; `calls` start, end, thread, call, correlation; `ranges` start, end, iteration; `samples` time,
    metric, value.
    """

    rank: int
    kernels: Columns
    copies: Columns
    memsets: Columns
    calls: Columns
    ranges: Columns
    samples: Columns


def nominal_ns(scenario: Scenario, positions: tuple[int, ...]) -> float:
    """Return the expected length of a sequence of launches without effects."""
    return sum(1000 * (scenario.kernels[k].base_us + scenario.kernels[k].gap_us) for k in positions)


def play(scenario: Scenario) -> Iterator[list[RankBatch]]:
    """Yield the run batch by batch: a list with one `RankBatch` per rank.

    Parameters
    ----------
    scenario : Scenario

    Yields
    ------
    list of RankBatch, one per rank, in order of rank
    """
    player = _Player(scenario)
    for first in range(0, scenario.iterations, scenario.iterations_per_batch):
        yield player.batch(first, min(scenario.iterations_per_batch, scenario.iterations - first))


class _Player:
    """The state that is carried from batch to batch: time, correlation numbers, autoregressive noise."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.now = 0
        self.correlation = np.full(scenario.ranks, 1000, dtype=np.int64)
        self.noise_state: dict[int, np.ndarray | None] = {}
        self.last_input = np.zeros(scenario.ranks, dtype=np.int64)
        self.window_ns = LEAD_NS + nominal_ns(scenario, scenario.program)
        self.span_ns = self.window_ns + nominal_ns(scenario, scenario.closing)
        self._straggles = (np.arange(scenario.ranks) == scenario.straggler_rank) | (scenario.straggler == "network")

    def batch(self, first: int, count: int) -> list[RankBatch]:
        """Play iterations `first` to `first + count` on all ranks."""
        scenario, shape = self.scenario, (self.scenario.ranks, count)
        copies = [self._copies(i, copy, first, shape) for i, copy in enumerate(scenario.copies)]
        neighbours = self._neighbours(first, shape)
        inputs = next((c for c in copies if c["spec"].kind == 1), None)
        if inputs is not None:
            inputs["before"], self.last_input = self._carried(inputs)
        launches = self._launches(first, shape, copies, neighbours)
        lanes = [part["lane"] for part in (launches, neighbours, *copies)]
        ends = [lane.end.max(axis=2, where=lane.valid, initial=0) for lane in lanes]
        synchronised = np.maximum.reduce(ends) + 3_000
        begin = self.now + np.concatenate([[0], np.cumsum(synchronised.max(axis=0) + 2_000 + PAUSE_NS)])
        span = (int(begin[0]), int(begin[-1]))
        self.now = span[1]
        result = []
        for rank in range(scenario.ranks):
            result.append(self._collect(rank, first, begin[:-1, None], launches, neighbours, copies, synchronised[rank]))
            if scenario.gpu_metrics_us:
                result[-1].samples = self._samples(result[-1], span)
        return result

    def _noise(self, number: int, kernel: Kernel, first: int, shape: tuple[int, int], slots: int, cv: np.ndarray | float) -> np.ndarray:
        """Draw the noise factors of a kernel's launches, shape (ranks, iterations, slots), mean 1."""
        random = noise.generator(self.scenario.seed, "noise", number, first)
        ranks, count = shape
        normal, self.noise_state[number] = noise.standard_normal(random, (ranks, count * slots), kernel.rho, self.noise_state.get(number))
        factors = noise.factors(normal.reshape(ranks, count, slots), cv)
        return factors + noise.spikes(random, (ranks, count, slots), kernel.spike_share, kernel.spike_size)

    def _copies(self, number: int, copy: Copy, first: int, shape: tuple[int, int]) -> dict:
        random = noise.generator(self.scenario.seed, "copies", number, first)
        mean_ns = copy.median_bytes * np.exp(copy.sigma**2 / 2) / copy.bandwidth_gb_s
        slots = int(1.6 * self.span_ns / (mean_ns + 1000 * copy.pause_us)) + 4
        size = np.rint(copy.median_bytes * np.exp(copy.sigma * random.standard_normal((*shape, slots))) / 256).astype(np.int64) * 256 + 256
        duration = np.rint(1_200 + size / copy.bandwidth_gb_s * random.uniform(0.97, 1.06, size.shape)).astype(np.int64)
        lane = renewal(random, duration, copy.pause_us, self.span_ns)
        return {"lane": lane, "bytes": size, "spec": copy, "thread": FIRST_COPY_THREAD + number}

    def _carried(self, inputs: dict) -> tuple[np.ndarray, np.ndarray]:
        """Return the size of the last input before each iteration, shape (ranks, iterations), and that after all of them."""
        size, valid = inputs["bytes"], inputs["lane"].valid
        slot = np.where(valid.any(axis=2), valid.shape[2] - 1 - np.argmax(valid[..., ::-1], axis=2), -1)
        own = np.where(slot >= 0, np.take_along_axis(size, np.maximum(slot, 0)[..., None], 2)[..., 0], 0)
        line = np.concatenate([self.last_input[:, None], own], axis=1)
        for place in range(1, line.shape[1]):
            line[:, place] = np.where(line[:, place] > 0, line[:, place], line[:, place - 1])
        return line[:, :-1], line[:, -1]

    def _neighbours(self, first: int, shape: tuple[int, int]) -> dict:
        scenario, number = self.scenario, self.scenario.neighbour
        if number is None:
            return {"lane": renewal(noise.generator(0), np.zeros((*shape, 0), dtype=np.int64), 1, 0)}
        kernel = scenario.kernels[number]
        random = noise.generator(scenario.seed, "neighbours", first)
        slots = int(1.6 * self.window_ns / (1000 * (kernel.base_us + scenario.neighbour_pause_us))) + 4
        factors = self._noise(number, kernel, first, shape, slots, kernel.cv)
        duration = np.maximum(MIN_DURATION_NS, np.rint(1000 * kernel.base_us * factors)).astype(np.int64)
        lane = renewal(random, duration, scenario.neighbour_pause_us, self.window_ns)
        return {"lane": lane, **_configurations(random, kernel, (*shape, slots), np.zeros(shape[1]))}

    def _launches(self, first: int, shape: tuple[int, int], copies: list[dict], neighbours: dict) -> dict:
        """Play the compute stream position by position."""
        scenario = self.scenario
        order = [*scenario.program, *scenario.closing]
        progress = (first + np.arange(shape[1])) / scenario.iterations
        wide = (*shape, len(order))
        start, end, block, grid = (np.zeros(wide, dtype=np.int64) for _ in range(4))
        base, effect = np.zeros(wide), np.zeros(wide)
        factors, settings, taken = {}, {}, dict.fromkeys(set(order), 0)
        for number in sorted(taken):
            kernel, slots = scenario.kernels[number], order.count(number)
            random = noise.generator(scenario.seed, "configurations", number, first)
            settings[number] = _configurations(random, kernel, (*shape, slots), progress)
            cv = kernel.cv * np.ones((*shape, slots))
            for feature, sizes, smallest in (("block_x", "block", kernel.blocks), ("grid_x", "grid", kernel.grids)):
                cv *= (settings[number][sizes] / min(smallest)) ** kernel.causes.get(feature, 0.0)
            factors[number] = self._noise(number, kernel, first, shape, slots, cv)
        late = np.broadcast_to(delayed(scenario)[first : first + shape[1]], shape) & self._straggles[:, None]
        delay = 1000 * scenario.straggler_us * late
        compute = 1 + delay / (self.span_ns - LEAD_NS) * (scenario.straggler == "compute")
        random = noise.generator(scenario.seed, "gaps", first)
        previous = np.full(shape, LEAD_NS // 2 + 4_000, dtype=np.int64)
        busy_until = np.full(shape, -PAUSE_NS, dtype=np.int64)
        for position, number in enumerate(order):
            kernel, slot = scenario.kernels[number], taken[number]
            taken[number] += 1
            gap = np.exp(kernel.gap_sigma * random.standard_normal(shape)) * kernel.gap_us * 1000
            begin = previous + np.maximum(600, np.rint(gap)).astype(np.int64)
            if position == 0:
                begin = np.maximum(begin, LEAD_NS) + (delay.astype(np.int64) if scenario.straggler == "host" else 0)
            if position == len(scenario.program):
                waited = neighbours["lane"].end.max(axis=2, where=neighbours["lane"].valid, initial=0)
                begin = np.maximum(begin, waited + 2_000)
            own = settings[number]
            block[..., position], grid[..., position] = own["block"][..., slot], own["grid"][..., slot]
            base[..., position] = own["mean_ns"][..., slot]
            effect[..., position] = self._effect(kernel, begin, busy_until, copies, neighbours["lane"], first)
            slow = self._clock(first, shape) ** -kernel.causes.get("gpc_clock_frequency_hz", 0.0)
            scale = 1000 * kernel.base_us
            duration = base[..., position] + scale * ((1 + effect[..., position]) * slow * factors[number][..., slot] - 1)
            duration = duration if is_collective(kernel) else duration * compute
            finish = begin + np.maximum(MIN_DURATION_NS, np.rint(duration)).astype(np.int64)
            if scenario.collective == "wait" and is_collective(kernel):
                together = begin.max(axis=0) + (finish - begin).min(axis=0)
                if scenario.straggler == "network":
                    together = together + delay[0].astype(np.int64)
                finish = together[None, :] + random.integers(0, 500, shape)
            start[..., position], end[..., position] = begin, finish
            previous = busy_until = finish
        call_start, call_end = issue(noise.generator(scenario.seed, "calls", first), start, LEAD_NS // 2)
        lane = Lane(start, end, np.ones(wide, dtype=bool), call_start, call_end)
        return {"lane": lane, "block": block, "grid": grid, "mean_ns": base, "effect": effect, "order": np.array(order)}

    def _clock(self, first: int, shape: tuple[int, int]) -> np.ndarray:
        """Return the clock of each rank and iteration, relative to the base clock."""
        scenario = self.scenario
        clock = np.ones(shape)
        if scenario.clock_rank is not None:
            progress = (first + np.arange(shape[1])) / scenario.iterations
            dropped = (progress >= scenario.clock_from) & (progress < scenario.clock_to)
            clock[scenario.clock_rank, dropped] = scenario.clock_factor
        return clock

    def _effect(
        self, kernel: Kernel, begin: np.ndarray, busy_until: np.ndarray, copies: list[dict], neighbours: Lane, first: int
    ) -> np.ndarray:
        """Sum the planted relative changes, from the state of the device at the launch's start."""
        total = np.zeros(begin.shape)
        for cause, strength in kernel.causes.items():
            if cause not in SATURATION:
                continue
            full = SATURATION[cause]
            if cause == "launches_in_flight":
                part = in_flight(neighbours, begin).sum(axis=2) / full
            elif cause == "transfers_in_flight":
                part = sum(in_flight(c["lane"], begin).sum(axis=2) for c in copies) / full
            elif cause == "idle_before_ns":
                begun = neighbours.valid & (neighbours.start < begin[..., None])
                busy = np.maximum(busy_until, neighbours.end.max(axis=2, where=begun, initial=-PAUSE_NS))
                part = np.clip(1 - np.maximum(0, begin - busy) / full, 0, 1)
            elif cause == "since_start_ns":
                since = (first + np.arange(begin.shape[1])) * (self.span_ns + PAUSE_NS) + begin
                part = np.exp(-since / full)
            elif cause == "last_h2d_bytes":
                inputs = next(c for c in copies if c["spec"].kind == 1)
                ended = (inputs["lane"].valid & (inputs["lane"].end <= begin[..., None])).sum(axis=2)
                last = np.take_along_axis(inputs["bytes"], np.maximum(ended - 1, 0)[..., None], 2)[..., 0]
                last = np.where(ended > 0, last, inputs["before"])
                part = np.clip(2 * last / full - 1, 0, 1)
            else:
                kind = {"h2d_bytes_in_flight": 1, "d2h_bytes_in_flight": 2, "d2d_bytes_in_flight": 8}[cause]
                moving = sum((in_flight(c["lane"], begin) * c["bytes"]).sum(axis=2) for c in copies if c["spec"].kind == kind)
                part = np.minimum(1, moving / full)
            total += strength * part
        return total

    def _collect(
        self, rank: int, first: int, begin: np.ndarray, launches: dict, neighbours: dict, copies: list[dict], synchronised: np.ndarray
    ) -> RankBatch:
        """Flatten one rank's lanes into tables ordered by start, and number the calls."""
        scenario, lane = self.scenario, launches["lane"]
        count = len(begin)
        tables: dict[str, list[Columns]] = {"kernels": [], "copies": [], "memsets": [], "calls": []}

        def add(table: str, lane: Lane, thread: int, call: np.ndarray | int, **columns: np.ndarray | int) -> None:
            valid = lane.valid[rank]

            def flat(values: np.ndarray | int) -> np.ndarray:
                return np.broadcast_to(values, valid.shape)[valid]

            events = {"start": (lane.start[rank] + begin)[valid], "end": (lane.end[rank] + begin)[valid]}
            events |= {name: flat(values) for name, values in columns.items()}
            calls = {"start": (lane.call_start[rank] + begin)[valid], "end": (lane.call_end[rank] + begin)[valid]}
            calls |= {"thread": flat(thread), "call": flat(call)}
            calls |= {"table": flat(list(tables).index(table)), "part": flat(len(tables[table])), "row": np.arange(int(valid.sum()))}
            tables[table].append(events)
            tables["calls"].append(calls)

        call = np.array([LAUNCH_DRIVER if scenario.kernels[k].driver_launch else LAUNCH for k in launches["order"]])
        detail = {name: launches[name][rank] for name in ("block", "grid", "mean_ns", "effect")}
        add("kernels", lane, COMPUTE_THREAD, call, stream=COMPUTE_STREAM, kernel=launches["order"], **detail)
        if scenario.neighbour is not None:
            detail = {name: neighbours[name][rank] for name in ("block", "grid", "mean_ns")} | {"kernel": scenario.neighbour, "effect": 0.0}
            add("kernels", neighbours["lane"], NEIGHBOUR_THREAD, LAUNCH, stream=NEIGHBOUR_STREAM, **detail)
        for copy in copies:
            spec = copy["spec"]
            kinds = {"kind": spec.kind, "source_kind": spec.source_kind, "target_kind": spec.target_kind}
            add("copies", copy["lane"], copy["thread"], MEMCPY, stream=spec.stream, bytes=copy["bytes"][rank], **kinds)
        fixed = np.zeros((scenario.ranks, count, 1), dtype=np.int64)
        cleared = Lane(fixed + 9_000, fixed + 11_000, np.ones_like(fixed, dtype=bool), fixed + 2_000, fixed + 6_000)
        add("memsets", cleared, COMPUTE_THREAD, MEMSET, stream=COMPUTE_STREAM, bytes=4 * 1024 * 1024)
        last = lane.call_end[rank, :, -1] + 1_000
        tables["calls"].append(
            {
                "start": last + begin[:, 0],
                "end": synchronised + begin[:, 0],
                "thread": np.full(count, COMPUTE_THREAD),
                "call": np.full(count, SYNCHRONIZE),
                "table": np.full(count, -1),
                "part": np.zeros(count, dtype=np.int64),
                "row": np.zeros(count, dtype=np.int64),
            }
        )
        calls = by_start(tables["calls"])
        calls["correlation"] = self.correlation[rank] + np.arange(len(calls["start"]))
        self.correlation[rank] += len(calls["start"])
        for number, name in enumerate(("kernels", "copies", "memsets")):
            for part, events in enumerate(tables[name]):
                chosen = (calls["table"] == number) & (calls["part"] == part)
                events["correlation"] = np.empty(len(events["start"]), dtype=np.int64)
                events["correlation"][calls["row"][chosen]] = calls["correlation"][chosen]
        ranges = {"start": begin[:, 0], "end": begin[:, 0] + synchronised + 2_000, "iteration": first + np.arange(count)}
        return RankBatch(
            rank,
            by_start(tables["kernels"]),
            by_start(tables["copies"]) if tables["copies"] else {},
            by_start(tables["memsets"]),
            {name: calls[name] for name in ("start", "end", "thread", "call", "correlation")},
            ranges,
            {},
        )

    def _samples(self, batch: RankBatch, span: tuple[int, int]) -> Columns:
        """Sample the device as its metrics unit would: each value describes the interval that ends at its time."""
        every = int(1000 * self.scenario.gpu_metrics_us)
        times = np.arange(-(-span[0] // every), -(-span[1] // every), dtype=np.int64) * every
        events, kernels = batch.copies, batch.kernels

        def percent(start: np.ndarray, end: np.ndarray) -> np.ndarray:
            edges = np.concatenate([[times[0] - every], times]) if len(times) else times
            return np.rint(100 * np.diff(busy_before(start, end, edges)) / every).astype(np.int64)

        first = int(np.searchsorted(batch.ranges["start"], times[0], side="right") - 1) if len(times) else 0
        index = np.clip(np.searchsorted(batch.ranges["start"], times, side="right") - 1, max(first, 0), None)
        clock = self._clock(int(batch.ranges["iteration"][0]), (self.scenario.ranks, len(batch.ranges["start"])))[batch.rank]
        active = percent(kernels["start"], kernels["end"])
        moving = {}
        for kind in (1, 2):
            chosen = events["kind"] == kind if events else np.zeros(0, dtype=bool)
            moving[kind] = percent(events["start"][chosen], events["end"][chosen]) if events else np.zeros(len(times), dtype=np.int64)
        random = noise.generator(self.scenario.seed, "samples", batch.rank, int(batch.ranges["iteration"][0]))
        jitter = np.rint(random.uniform(-3e6, 3e6, len(times))).astype(np.int64)
        gpc = np.rint(BASE_CLOCK_HZ * clock[index]).astype(np.int64) + jitter
        values = [gpc, gpc - 150_000_000, active, np.minimum(active, 98), active * 45 // 100, moving[1], moving[2]]
        return {
            "time": np.repeat(times, len(values)),
            "metric": np.tile(np.arange(len(values)), len(times)),
            "value": np.stack(values, axis=1).ravel() if len(times) else np.zeros(0, dtype=np.int64),
        }


def _configurations(random: np.random.Generator, kernel: Kernel, shape: tuple[int, ...], progress: np.ndarray) -> Columns:
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

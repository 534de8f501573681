"""The scenario of a simulated run: kernels with their planted causes, copies, a neighbour stream, ranks, iterations.

The demonstration run: kernels named as a training step's, and what is planted in them.
"""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from causeway.core.errors import CausewayError
from causeway.core.files.yaml_files import read_yaml
from causeway.core.installation import workflow_folder
from causeway.simulate import random_numbers

MIB = 1 << 20

SIGNS = {
    "h2d_bytes_in_flight": "+",
    "d2h_bytes_in_flight": "+",
    "d2d_bytes_in_flight": "+",
    "transfers_in_flight": "+",
    "last_h2d_bytes": "+",
    "launches_in_flight": "+",
    "idle_before_ns": "-",
    "since_start_ns": "-",
    "gpc_clock_frequency_hz": "-",
    "block_x": "+",
    "grid_x": "+",
}
"""Causes that can be planted, with the direction in which the feature moves the launch's deviation and its magnitude.

Each is rare by design (10 - 25 % of the launches differ from the rest), so that the signed deviation and its magnitude
move alike: a slowdown e that is present with probability p deviates by e (1 - p) where present and by -e p elsewhere,
and e (1 - p) > e p for p < 1/2. The last two scale the noise and leave the mean alone.
"""

SATURATION = {
    "h2d_bytes_in_flight": 2 * MIB,
    "d2h_bytes_in_flight": 1 * MIB,
    "d2d_bytes_in_flight": 32 * MIB,
    "transfers_in_flight": 1,
    "last_h2d_bytes": 4 * MIB,
    "launches_in_flight": 1,
    "idle_before_ns": 5_000,
    "since_start_ns": 100_000_000,
}
"""Value of the feature at which an effect is whole (or, for the falling ones, gone).

Inputs (`last_h2d_bytes`) act from half of it on.
"""


@dataclass(frozen=True, kw_only=True)
class SimulatedKernel:
    """A kernel of the run.

    Parameters
    ----------
    name : str
        Demangled name, as Nsight Systems spells it.
    short_name, mangled_name : str
    base_us : float, microseconds
        Mean duration at the first grid size, without planted effects.
    cv : float
        Coefficient of variation of the log-normal noise.
    rho : float, 0 <= rho < 1
        Lag-1 autocorrelation of the noise over successive launches of the kernel on a rank.
    spike_share, spike_size : float
        Share of launches with a rare addition, and its mean as a factor of `base_us`.
    causes : mapping of str to float
        Planted causes: keys of `SIGNS`; the value is the relative change of the duration where the effect is whole, or
        for `block_x` and `grid_x` the exponent with which the noise grows in the size.
    blocks, grids : tuple of int
        Launch configurations: every combination occurs, drawn at random per launch.
    grids_over_time : bool
        The grid size changes eight times during the run instead: the input size changes.
    grid_share : float, 0 to 1
        Share of the mean duration that is proportional to the grid size. It moves the configuration's mean and not the
        deviation from it.
    gap_us, gap_sigma : float
        Median and log-scale spread of the pause before a launch on its stream.
    """

    name: str
    short_name: str
    mangled_name: str
    base_us: float
    cv: float = 0.03
    rho: float = 0.0
    spike_share: float = 0.0
    spike_size: float = 0.0
    causes: Mapping[str, float] = field(default_factory=dict)
    blocks: tuple[int, ...] = (256,)
    grids: tuple[int, ...] = (1056,)
    grids_over_time: bool = False
    grid_share: float = 0.0
    registers: int = 32
    static_shared_bytes: int = 0
    dynamic_shared_bytes: int = 0
    gap_us: float = 1.2
    gap_sigma: float = 0.2
    driver_launch: bool = False


@dataclass(frozen=True, kw_only=True)
class Copy:
    """Copies of one direction on a stream of their own, issued by a host thread without regard to the kernels.

    Parameters
    ----------
    kind : int
        CUPTI's number of the direction: 1 host to device, 2 device to host, 8 within the device.
    stream : int
    source_kind, target_kind : int
        CUPTI's numbers of the memories.
    median_bytes : int
    sigma : float
        Log-scale spread of the size.
    pause_us : float, microseconds
        Mean pause between copies.
    bandwidth_gb_s : float, 10^9 bytes per second
    """

    kind: int
    stream: int
    source_kind: int
    target_kind: int
    median_bytes: int
    sigma: float
    pause_us: float
    bandwidth_gb_s: float


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A run.

    Parameters
    ----------
    kernels : tuple of SimulatedKernel
    program, closing : tuple of int
        The launches of one iteration on the compute stream, as indices into `kernels`.
    neighbour : int or None
        The kernel of a second stream. It is launched beside `program`; the compute stream waits for it before
        `closing`.
    neighbour_pause_us : float, microseconds
        Mean pause between its launches.
    copies : tuple of Copy
    ranks, nodes, iterations : int
        Each rank has a device and an export of its own; nodes hold equally many ranks.
    iterations_per_batch : int
        Simulated and written at once. Random numbers are drawn batch by batch, so another value is another run.
    seed : int
    gpu_metrics_us : float or None, microseconds
        Interval of the sampled device metrics; None writes none.
    collective : {"noise", "wait"}
        Duration of the collective kernel: noise of its own, or until the last rank has begun it, so that all end
        together.
    clock_rank, clock_from, clock_to, clock_factor
        The rank whose device clock drops to `clock_factor` of its usual value, from and to these shares of the run.
        Only kernels with the cause `gpc_clock_frequency_hz` slow down, by clock ** -strength.
    clock_drops : int
        How often: the shares are then those of each of as many equal parts of the run.
    clock_error_us : float, microseconds
        Largest error of the ranks' session start times.
    clock_drift_ppm : float, parts per million
        Largest drift of the ranks' clocks.
    straggler : {"none", "compute", "host", "network"}
        What delays collectives: the kernels of one rank last longer; its host launches late; all ranks begin on time,
        but the transfer takes longer.
    straggler_rank, straggler_share, straggler_us
        The rank (not for `network`); the share of iterations in which it happens, drawn at random; by how much.
    host : {"close", "ahead"}
        When calls are made: each a queue delay before its event, by one thread for each stream, whatever the device
        did; or all of an iteration in one go by one thread, which then waits for the device. Only then is the time of
        an iteration that of its device work, and a replay of the trace says what shorter launches are worth.
    input_bytes : int
        Size of a copy from the host with which each iteration begins on the compute stream, before its first launch:
        nothing hides it. 0 for none.
    without : tuple of str
        What is removed from the run as it is otherwise, with the same random numbers: a cause, `kernel:cause` for
        that of one kernel (its short name), or `straggler`.
    effects : bool
        Whether the ground truth has what each removal does to the times; each costs a simulation more.
    format : {"nsys", "kineto"}
        What the exports are written as: Nsight Systems SQLite, or PyTorch profiler traces (without sampled metrics).
    """

    kernels: tuple[SimulatedKernel, ...]
    program: tuple[int, ...]
    closing: tuple[int, ...]
    neighbour: int | None
    neighbour_pause_us: float = 330.0
    copies: tuple[Copy, ...] = ()
    ranks: int = 4
    nodes: int = 2
    iterations: int = 560
    iterations_per_batch: int = 512
    seed: int = 1
    gpu_metrics_us: float | None = 1000.0
    collective: str = "noise"
    clock_rank: int | None = None
    clock_from: float = 0.6
    clock_to: float = 0.75
    clock_factor: float = 0.8
    clock_drops: int = 1
    clock_error_us: float = 0.0
    clock_drift_ppm: float = 0.0
    straggler: str = "none"
    straggler_rank: int = 0
    straggler_share: float = 1.0
    straggler_us: float = 300.0
    host: str = "close"
    input_bytes: int = 0
    without: tuple[str, ...] = ()
    effects: bool = False
    format: str = "nsys"


KNOWN = {
    "collective": ("noise", "wait"),
    "host": ("close", "ahead"),
    "format": ("nsys", "kineto"),
    "straggler": ("none", "compute", "host", "network"),
}
"""What may stand in a field that takes one of some words."""


def check(scenario: Scenario) -> None:
    """Raise `CausewayError` for a scenario that cannot be simulated."""
    for name in ("ranks", "nodes", "iterations", "iterations_per_batch", "clock_drops"):
        if getattr(scenario, name) < 1:
            raise CausewayError(f"simulated trace: {name} is {getattr(scenario, name)}; 1 is the least")
    if scenario.ranks < scenario.nodes:
        raise CausewayError(
            f"simulated trace: {scenario.ranks} ranks on {scenario.nodes} nodes leave a node without a rank; set nodes"
            f" to at most {scenario.ranks}"
        )
    for name in ("clock_rank", "straggler_rank"):
        rank = getattr(scenario, name)
        if rank is not None and not 0 <= rank < scenario.ranks:
            raise CausewayError(f"simulated trace: {name} is {rank}, the ranks are 0 to {scenario.ranks - 1}")
    if not 0 < scenario.clock_factor <= 1 or not 0 <= scenario.clock_from < scenario.clock_to <= 1:
        raise CausewayError(
            "simulated trace: clock_factor, clock_from and clock_to are shares between 0 and 1, in this order of time"
        )
    for name, choices in KNOWN.items():
        if getattr(scenario, name) not in choices:
            raise CausewayError(
                f"simulated trace: {name} is {getattr(scenario, name)!r}; known are {', '.join(choices)}"
            )
    if scenario.straggler == "host" and scenario.host == "ahead":
        raise CausewayError("simulated trace: a host that runs ahead is not late; set host to close")
    if scenario.straggler != "none" and scenario.collective != "wait":
        raise CausewayError("simulated trace: a straggler shows where others wait for it; set collective to wait")
    if scenario.input_bytes < 0:
        raise CausewayError(f"simulated trace: input_bytes is {scenario.input_bytes}; 0 is the least")
    if scenario.input_bytes and any("last_h2d_bytes" in kernel.causes for kernel in scenario.kernels):
        raise CausewayError("simulated trace: last_h2d_bytes is a cause; set input_bytes to 0, they would be the last")
    for kernel in scenario.kernels:
        label = f"simulated kernel {kernel.short_name}"
        unknown = sorted(set(kernel.causes) - set(SIGNS))
        if unknown:
            raise CausewayError(f"{label}: unknown causes {unknown}; known are {sorted(SIGNS)}")
        if min(kernel.causes.values(), default=1) <= 0:
            raise CausewayError(f"{label}: a cause needs a positive strength; its sign is fixed")
        if "gpc_clock_frequency_hz" in kernel.causes and scenario.clock_rank is None:
            raise CausewayError(f"{label}: the clock is a cause, but it drops on no rank; set clock_rank")
        if kernel.base_us < 10:
            raise CausewayError(f"{label}: base_us is {kernel.base_us}; a launch call needs 10 or more")


def is_collective(kernel: SimulatedKernel) -> bool:
    """Return whether a kernel is a collective operation, which all ranks end together where `collective` is `wait`."""
    return "nccl" in kernel.short_name


def causes_of(kernel: SimulatedKernel) -> dict[str, str]:
    """Return the planted causes of a kernel with their signs."""
    return {cause: SIGNS[cause] for cause in kernel.causes}


def clock_of(scenario: Scenario, rank: int) -> tuple[int, float]:
    """Return the error of a rank's host clock: its offset at the run's zero in ns, and its drift, as a ratio."""
    offset_ns = int(1000 * scenario.clock_error_us * np.sin(1 + 2 * rank))
    return offset_ns, 1e-6 * scenario.clock_drift_ppm * float(np.cos(2 + 3 * rank))


@dataclass(frozen=True, kw_only=True)
class HostClock:
    """The host clock of a rank.

    Attributes
    ----------
    shift_ns : int
        Its reading at the run's zero.
    drift : float
        Its gain per nanosecond, as a ratio.
    """

    shift_ns: int
    drift: float

    def readings(self, times: np.ndarray) -> np.ndarray:
        """Return the clock's readings at `times` of the run: int64, ns, both of the same shape."""
        return times + self.shift_ns + (np.rint(times * self.drift).astype(np.int64) if self.drift else 0)


def relative_clock(scenario: Scenario, first: int, count: int) -> np.ndarray:
    """Return the device clock of each rank relative to the base clock, in iterations `first` to `first + count - 1`.

    Returns
    -------
    ndarray of float64, shape (ranks, count), 0 (excluded) to 1
    """
    clock = np.ones((scenario.ranks, count))
    if scenario.clock_rank is not None:
        progress = (first + np.arange(count)) / scenario.iterations
        if scenario.clock_drops > 1:
            progress = progress * scenario.clock_drops % 1
        dropped = (progress >= scenario.clock_from) & (progress < scenario.clock_to)
        clock[scenario.clock_rank, dropped] = scenario.clock_factor
    return clock


def delayed_iterations(scenario: Scenario) -> np.ndarray:
    """Return in which iterations the planted delay happens; bool, shape (iterations,)."""
    if scenario.straggler == "none":
        return np.zeros(scenario.iterations, bool)
    return (
        random_numbers.generator(scenario.seed, "straggler").uniform(size=scenario.iterations)
        < scenario.straggler_share
    )


PROGRAM_REPEATS = 5
FILE = Path(__file__).parent / "assets" / "demo.yaml"
DEMONSTRATION: dict[str, Any] = read_yaml(workflow_folder() / "config" / "config.yaml")["simulated"]["demo"]
"""The run `demo` of the configuration: what is set differs from the plain scenario so that every part of a report has
something to show. One cause costs its kernel more than 5 % of its time.
"""


def demo_parts() -> tuple[tuple[SimulatedKernel, ...], tuple[Copy, ...]]:
    """Return the kernels of the demonstration run, the planted causes with them, and its copies."""
    parts = read_yaml(FILE)
    kernels: Iterator[dict[str, Any]] = (
        {name: tuple(value) if isinstance(value, list) else value for name, value in kernel.items()}
        for kernel in parts["kernels"]
    )
    return tuple(SimulatedKernel(**kernel) for kernel in kernels), tuple(Copy(**copy) for copy in parts["copies"])


def trace_scenario(values: Mapping[str, Any] | None = None) -> Scenario:
    """Return the demonstration run with the given values in place of its own.

    Parameters
    ----------
    values : mapping or None
        Fields of `Scenario`, and `causes`: for a kernel's short name the causes that replace its own, `{}` for none.

    Raises
    ------
    CausewayError
        For an unknown key, kernel or cause, or a value out of its range.
    """
    values = dict(values or {})
    causes = values.pop("causes", None) or {}
    keys = {field.name for field in dataclasses.fields(Scenario)}
    unknown = sorted(set(values) - keys)
    if unknown:
        raise CausewayError(
            f"simulated trace: unknown keys {unknown}; known are {', '.join(sorted(keys | {'causes', 'kind'}))}"
        )
    kernels, copies = demo_parts()
    parts: dict[str, Any] = {
        "kernels": kernels,
        "program": (0, 1, 2, 3, 4) * PROGRAM_REPEATS,
        "closing": (5,) * PROGRAM_REPEATS + (6,),
        "neighbour": 7,
        "copies": copies,
        **values,
    }
    parts["without"] = tuple(parts.get("without", ()))
    parts.setdefault("nodes", min(Scenario.nodes, parts.get("ranks", Scenario.ranks)))  # no node without a rank
    names = [kernel.short_name for kernel in parts["kernels"]]
    unknown = sorted(set(causes) - set(names))
    if unknown:
        raise CausewayError(f"simulated trace: causes for unknown kernels {unknown}; known are {names}")
    parts["kernels"] = tuple(
        dataclasses.replace(kernel, causes=causes[kernel.short_name]) if kernel.short_name in causes else kernel
        for kernel in parts["kernels"]
    )
    scenario = Scenario(**parts)
    check(scenario)
    return scenario

"""What a simulated run is: kernels with their planted causes, copies, a neighbour stream, ranks and iterations."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field

from causeway.errors import CausewayError

MIB = 1 << 20

SIGNS = {
    "h2d_bytes_in_flight": "+",
    "d2h_bytes_in_flight": "+",
    "d2d_bytes_in_flight": "+",
    "transfers_in_flight": "+",
    "launches_in_flight": "+",
    "idle_before_ns": "-",
    "since_start_ns": "-",
    "gpc_clock_hz": "-",
    "block_x": "+",
    "grid_x": "+",
}
"""Causes that can be planted, with the direction in which the feature moves the launch's deviation and its magnitude.

Each is rare by design (10 - 25 % of the launches differ from the rest), so that the signed deviation and its magnitude move alike: a
slowdown e that is present with probability p deviates by e (1 - p) where present and by -e p elsewhere, and e (1 - p) > e p for p < 1/2.
The last two scale the noise and leave the mean alone.
"""

SATURATION = {
    "h2d_bytes_in_flight": 2 * MIB,
    "d2h_bytes_in_flight": 1 * MIB,
    "d2d_bytes_in_flight": 32 * MIB,
    "transfers_in_flight": 1,
    "launches_in_flight": 1,
    "idle_before_ns": 5_000,
    "since_start_ns": 100_000_000,
}
"""Value of the feature at which an effect is whole (or, for the falling ones, gone)."""


@dataclass(frozen=True)
class Kernel:
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
        Planted causes: keys of `SIGNS`; the value is the relative change of the duration where the effect is whole, or for `block_x`
        and `grid_x` the exponent with which the noise grows in the size.
    blocks, grids : tuple of int
        Launch configurations: every combination occurs, drawn at random per launch.
    grids_over_time : bool
        The grid size changes eight times during the run instead: the input size changes.
    grid_share : float, 0 to 1
        Share of the mean duration that is proportional to the grid size. It moves the configuration's mean and not the deviation from it.
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


@dataclass(frozen=True)
class Copy:
    """Copies of one direction on a stream of their own, issued by a host thread without regard to the kernels."""

    kind: int
    stream: int
    source_kind: int
    target_kind: int
    median_bytes: int
    sigma: float
    pause_us: float
    bandwidth_gb_s: float


@dataclass(frozen=True)
class Scenario:
    """A run: `program` and `closing` are the launches of one iteration on the compute stream, as indices into `kernels`.

    The neighbour stream's kernel is `neighbour`; it pauses before `closing` begins, where the compute stream waits for it.
    """

    kernels: tuple[Kernel, ...]
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
    clock_error_us: float = 0.0


def trace_scenario(values: Mapping[str, object] | None = None) -> Scenario:
    """Return the demonstration run with the given values in place of its own.

    Parameters
    ----------
    values : mapping or None
        Fields of `Scenario`; `kernels` may be a list of mappings with the fields of `Kernel` and `launches`, the number per iteration.

    Raises
    ------
    CausewayError
        For an unknown key or cause, or a value out of its range.
    """
    from causeway.simulate import demo

    values = dict(values or {})
    parts: dict[str, object] = {
        "kernels": demo.kernels(),
        "program": (0, 1, 2, 3, 4) * demo.PROGRAM_REPEATS,
        "closing": (5,) * demo.PROGRAM_REPEATS + (6,),
        "neighbour": 7,
        "copies": demo.copies(),
    }
    known = {f.name for f in dataclasses.fields(Scenario)}
    for key, value in values.items():
        if key not in known:
            raise CausewayError(f"simulated run: unknown key {key!r}; known are {', '.join(sorted(known))}")
        parts[key] = value
    scenario = Scenario(**parts)
    check(scenario)
    return scenario


def check(scenario: Scenario) -> None:
    """Raise `CausewayError` for a scenario that cannot be played."""
    if scenario.ranks < 1 or scenario.iterations < 1 or scenario.nodes < 1:
        raise CausewayError("simulated run: ranks, nodes and iterations must be 1 or more")
    for kernel in scenario.kernels:
        unknown = sorted(set(kernel.causes) - set(SIGNS))
        if unknown:
            raise CausewayError(f"simulated kernel {kernel.short_name}: unknown causes {unknown}; known are {sorted(SIGNS)}")
        if min(kernel.causes.values(), default=1) <= 0:
            raise CausewayError(f"simulated kernel {kernel.short_name}: a cause needs a positive strength; its sign is fixed")
        if kernel.base_us < 10:
            raise CausewayError(f"simulated kernel {kernel.short_name}: base_us is {kernel.base_us}; a launch call needs 10 or more")


def causes_of(kernel: Kernel) -> dict[str, str]:
    """Return the planted causes of a kernel with their signs."""
    return {cause: SIGNS[cause] for cause in kernel.causes}

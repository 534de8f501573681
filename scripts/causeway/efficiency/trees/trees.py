"""Efficiency trees: products of ratios of exact integers, in three flavours for devices and one for hosts.

Sources: POP metrics and TALP, as computed by DLB 9d67ac94 (`src/talp/perf_metrics.c`, model hybrid-v2); the golden case is worked by hand
in the tests. All inputs are integer nanoseconds; the one rounding is that of each final division.
"""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

FLAVOURS = ("device", "talp", "comm_aware")
RATIOS = ("parallel_efficiency", "load_balance", "communication_efficiency", "orchestration_efficiency")
WATERFALL = ("useful", "load_imbalance", "communication", "transfers", "orchestration")


@dataclass(frozen=True)
class DeviceTime:
    """What one device did for one process.

    Parameters
    ----------
    process : hashable
        The rank that drives it.
    kernel_ns : int
        Length of the union of its kernels: of all of them, or of those that are not communication (`comm_aware`).
    other_ns : int
        Length of the union of its copies and sets (`comm_aware`: and communication kernels) outside those kernels.
    """

    process: object
    kernel_ns: int
    other_ns: int


def ratio(above: int | Fraction, below: int | Fraction) -> float | None:
    """Return a quotient, correctly rounded; None where there is nothing to divide by."""
    return float(Fraction(above) / Fraction(below)) if below else None


def device_tree(elapsed_ns: int, devices: Sequence[DeviceTime], by_process: bool = False) -> dict:
    """Return the tree of devices: PE = sum K / (E G) = LB x CommE x OE.

    LB = sum K / (G max K); CommE = max K / max(K + M); OE = max(K + M) / E.

    Parameters
    ----------
    elapsed_ns : int
        E, the longest wall time of a rank.
    devices : sequence of DeviceTime
    by_process : bool
        False: maxima over devices, so that no factor exceeds 1. True: maxima over processes, each with the sums over its devices, as TALP
        prints it: with g devices per process LB is understated by up to g, and OE can exceed 1.

    Returns
    -------
    dict
        `RATIOS` (None where undefined), and behind them elapsed_ns, n_devices, kernel_ns, kernel_max_ns, active_max_ns.
    """
    kernels, active = [device.kernel_ns for device in devices], [device.kernel_ns + device.other_ns for device in devices]
    if by_process:
        names = list(dict.fromkeys(device.process for device in devices))
        kernels = [sum(device.kernel_ns for device in devices if device.process == name) for name in names]
        active = [sum(device.kernel_ns + device.other_ns for device in devices if device.process == name) for name in names]
    count, total = len(devices), sum(kernels)
    most, most_active = max(kernels, default=0), max(active, default=0)
    return {
        "parallel_efficiency": ratio(total, elapsed_ns * count),
        "load_balance": ratio(total, count * most),
        "communication_efficiency": ratio(most, most_active),
        "orchestration_efficiency": ratio(most_active, elapsed_ns) if count else None,
        "elapsed_ns": elapsed_ns,
        "n_devices": count,
        "kernel_ns": total,
        "kernel_max_ns": most,
        "active_max_ns": most_active,
    }


def waterfall(elapsed_ns: int, devices: Sequence[tuple[int, int, int]]) -> dict[str, int]:
    """Return where the E x G device-nanoseconds went; the parts are not negative and sum to E G exactly.

    The device tree with communication kernels apart, in differences instead of quotients: useful = sum C; load imbalance = G max C -
    sum C; communication = G (max(C + N) - max C); transfers = G (max(C + N + M) - max(C + N)); orchestration = G (E - max(C + N + M)).

    Parameters
    ----------
    elapsed_ns : int
    devices : sequence of (int, int, int)
        C: union of computing kernels; N: communication kernels outside them; M: copies and sets outside both; ns, one per device.
    """
    count = len(devices)
    steps = [max((sum(times[:parts]) for times in devices), default=0) for parts in (1, 2, 3)]
    useful = sum(times[0] for times in devices)
    heights = [count * step for step in (*steps, elapsed_ns)]
    parts = [useful, heights[0] - useful, *(high - low for low, high in itertools.pairwise(heights))]
    return dict(zip(WATERFALL, parts, strict=True))


@dataclass(frozen=True)
class HostTime:
    """Sums over the CPUs of one rank, ns: `omp` are the three OpenMP losses together, `mpi_worker` OpenMP workers that idle during MPI."""

    cpus: int
    useful_ns: int
    gpu_ns: int
    mpi_ns: int | None
    mpi_worker_ns: int = 0
    omp_ns: int = 0


def host_tree(elapsed_ns: int, ranks: Sequence[HostTime]) -> dict:
    """Return the tree of hosts (TALP, hybrid-v2).

    PE = useful / (useful + mpi + omp + gpu); non = E - (mpi + mpiw) / C, maxnon = E - min_p (mpi_p + mpiw_p) / C_p; MPI PE = non / E =
    CommE (maxnon / E) x LB (non / maxnon); device offload efficiency = (useful + omp) / (useful + omp + gpu).

    A rank without MPI (`mpi_ns` None) takes no part in the minimum; if none has any, there is no MPI tree: None, never 1.
    """
    cpus = sum(rank.cpus for rank in ranks)
    useful, gpu, omp = (sum(getattr(rank, name) for rank in ranks) for name in ("useful_ns", "gpu_ns", "omp_ns"))
    with_mpi = [rank for rank in ranks if rank.mpi_ns is not None]
    mpi = sum(rank.mpi_ns for rank in with_mpi)
    found = {
        "parallel_efficiency": ratio(useful, useful + mpi + omp + gpu),
        "device_offload_efficiency": ratio(useful + omp, useful + omp + gpu),
        "mpi_parallel_efficiency": None,
        "mpi_communication_efficiency": None,
        "mpi_load_balance": None,
        "elapsed_ns": elapsed_ns,
        "cpus": cpus,
        "useful_ns": useful,
        "gpu_ns": gpu,
        "omp_ns": omp,
        "mpi_ns": mpi if with_mpi else None,
    }
    if with_mpi and cpus and elapsed_ns:
        outside = elapsed_ns - Fraction(mpi + sum(rank.mpi_worker_ns for rank in with_mpi), cpus)
        most = elapsed_ns - min(Fraction(rank.mpi_ns + rank.mpi_worker_ns, rank.cpus) for rank in with_mpi)
        found |= {
            "mpi_parallel_efficiency": ratio(outside, elapsed_ns),
            "mpi_communication_efficiency": ratio(most, elapsed_ns),
            "mpi_load_balance": ratio(outside, most),
        }
    return found


def classic(elapsed_ns: int, useful_ns: Sequence[int]) -> dict:
    """Return the classic POP metrics of useful times, one per rank or device: PE = LB x CommE, LB = avg / max, CommE = max / E."""
    most = max(useful_ns, default=0)
    return {
        "parallel_efficiency": ratio(sum(useful_ns), len(useful_ns) * elapsed_ns),
        "load_balance": ratio(sum(useful_ns), len(useful_ns) * most),
        "communication_efficiency": ratio(most, elapsed_ns),
    }


def scalability(reference: Mapping, run: Mapping, weak: bool) -> dict:
    """Return a run's computation scalability and global efficiency against a reference run.

    Computation scalability = useful(reference) / useful(run), times devices(run) / devices(reference) for weak scaling, where each
    device's share of the problem stays the same. Global efficiency = PE x computation scalability.

    Parameters
    ----------
    reference, run : mapping
        Trees with kernel_ns, n_devices and parallel_efficiency.
    weak : bool
    """
    factor = Fraction(run["n_devices"], reference["n_devices"]) if weak and reference["n_devices"] else Fraction(1)
    scale = Fraction(reference["kernel_ns"], run["kernel_ns"]) * factor if run["kernel_ns"] and reference["kernel_ns"] else None
    efficiency = run["parallel_efficiency"]
    return {
        "computation_scalability": None if scale is None else float(scale),
        "global_efficiency": None if scale is None or efficiency is None else efficiency * float(scale),
    }

"""Efficiency trees: products of ratios of exact integers, in three flavours for devices and one for hosts; of a series
of runs, strong or weak scaling, computation scalability and global efficiency against the smallest run.

Sources: POP metrics and TALP, as computed by DLB 9d67ac94 (`src/talp/perf_metrics.c`, model hybrid-v2); the golden case
is worked by hand in the tests. All inputs are integer nanoseconds; the one rounding is that of each final division.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from causeway.core.vocabulary import (
    BALANCE,
    COMMUNICATION,
    COMPUTATION_SCALABILITY,
    DEVICE_RATIOS,
    FLAVOUR_NAMES,
    GLOBAL,
    HIDDEN_COPIES,
    HOST_RATIOS,
    MPI_BALANCE,
    MPI_COMMUNICATION,
    MPI_PARALLEL,
    OFFLOAD,
    ORCHESTRATION,
    PARALLEL,
    WATERFALL,
)


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
        Length of the union of its copies and memsets (`comm_aware`: and communication kernels) outside those kernels.
    copy_ns, hidden_copy_ns : int
        Length of the union of its copies and memsets, and of the part of it inside those kernels.
    """

    process: object
    kernel_ns: int
    other_ns: int
    copy_ns: int = 0
    hidden_copy_ns: int = 0


def ratio(above: Any, below: Any) -> Any:
    """Return a quotient, correctly rounded, as Python's of whole numbers is; None where there is nothing to divide, or
    to divide by. Of arrays of int64 below 2^53 (as times, 104 days) it is an array of float64, NaN for None.
    """
    if isinstance(below, np.ndarray):
        return np.divide(above, below, out=np.full(below.shape, np.nan), where=below > 0)
    return float(above / below) if below and above is not None else None


DEVICE_FORMULAS: dict[str, Callable[[Mapping[str, Any]], Any]] = {
    PARALLEL: lambda sums: ratio(sums["kernel_ns"], sums["elapsed_ns"] * sums["n_devices"]),
    BALANCE: lambda sums: ratio(sums["kernel_ns"], sums["n_devices"] * sums["kernel_max_ns"]),
    COMMUNICATION: lambda sums: ratio(sums["kernel_max_ns"], sums["active_max_ns"]),
    ORCHESTRATION: lambda sums: ratio(sums["active_max_ns"], sums["elapsed_ns"] * (sums["n_devices"] > 0)),
    HIDDEN_COPIES: lambda sums: ratio(sums["hidden_copy_ns"], sums["copy_ns"]),
}
"""Each ratio of the tree of devices from the sums behind it, or from arrays of them; `device_tree` describes these."""


def device_tree(elapsed_ns: int, devices: Sequence[DeviceTime], by_process: bool = False) -> dict:
    """Return the tree of devices: the ratios of `DEVICE_FORMULAS`, and the sums behind them.

    Parameters
    ----------
    elapsed_ns : int
        E, the longest wall time of a rank.
    devices : sequence of DeviceTime
    by_process : bool
        False: maxima over devices, so that no factor exceeds 1. True: maxima over processes, each with the sums over
        its devices, as TALP prints it: with g devices per process LB is understated by up to g, and OE can exceed 1.

    Returns
    -------
    dict
        Each of `DEVICE_RATIOS` by name (None where undefined); elapsed_ns (E), n_devices (G), kernel_ns (sum K),
        kernel_max_ns (max K), active_max_ns (max(K + M)), copy_ns (sum of copies) and hidden_copy_ns (of their part
        inside K), whole ns.
    """
    kernels = [device.kernel_ns for device in devices]
    active = [device.kernel_ns + device.other_ns for device in devices]
    if by_process:
        of_process: dict[object, list[int]] = {device.process: [0, 0] for device in devices}
        for device, kernel_ns, active_ns in zip(devices, kernels, active, strict=True):
            sums_of = of_process[device.process]
            sums_of[0] += kernel_ns
            sums_of[1] += active_ns
        kernels, active = ([sums_of[part] for sums_of in of_process.values()] for part in range(2))
    sums = {
        "elapsed_ns": elapsed_ns,
        "n_devices": len(devices),
        "kernel_ns": sum(kernels),
        "kernel_max_ns": max(kernels, default=0),
        "active_max_ns": max(active, default=0),
        "copy_ns": sum(device.copy_ns for device in devices),
        "hidden_copy_ns": sum(device.hidden_copy_ns for device in devices),
    }
    return {definition.name: DEVICE_FORMULAS[definition.name](sums) for definition in DEVICE_RATIOS} | sums


def waterfall(elapsed_ns: int, devices: Sequence[Sequence[int]]) -> dict[str, int]:
    """Return where the E x G device-nanoseconds went; the parts are not negative and sum to E G exactly.

    Each part is what it is on each device, summed: useful C, communication N, transfers M, orchestration (idle)
    D - C - N - M, and outside E - D.

    Parameters
    ----------
    elapsed_ns : int
    devices : sequence of (int, int, int, int)
        C: union of computing kernels; N: communication kernels outside them; M: copies and memsets outside both; D: the
        time in which the device is measured, that of its rank, at most E; ns, one per device.
    """
    useful, communication, transfers, measured = (sum(times[part] for times in devices) for part in range(4))
    parts = [
        useful,
        communication,
        transfers,
        measured - useful - communication - transfers,
        elapsed_ns * len(devices) - measured,
    ]
    return {part.name: time for part, time in zip(WATERFALL, parts, strict=True)}


@dataclass(frozen=True)
class HostTime:
    """Sums over the CPUs of one rank, ns."""

    cpus: int
    useful_ns: int
    gpu_ns: int
    mpi_ns: int | None


HOST_FORMULAS: dict[str, Callable[[Mapping[str, Any]], float | None]] = {
    PARALLEL: lambda sums: ratio(sums["useful_ns"], sums["useful_ns"] + sums["mpi"] + sums["gpu_ns"]),
    OFFLOAD: lambda sums: ratio(sums["useful_ns"], sums["useful_ns"] + sums["gpu_ns"]),
    MPI_PARALLEL: lambda sums: ratio(sums["outside"], sums["elapsed_ns"]),
    MPI_BALANCE: lambda sums: ratio(sums["outside"], sums["most_outside"]),
    MPI_COMMUNICATION: lambda sums: ratio(sums["most_outside"], sums["elapsed_ns"]),
}
"""Each ratio of the tree of hosts (TALP, hybrid-v2), of sums over all CPUs, ns: `outside` is E less the mean time of a
CPU in `mpi`, `most_outside` E less the least mean of a rank; None without MPI.
"""


def host_tree(elapsed_ns: int, ranks: Sequence[HostTime]) -> dict:
    """Return the tree of hosts: the ratios of `HOST_FORMULAS`, and the sums behind them.

    A rank without MPI (`mpi_ns` None) takes no part in the minimum; if none has any, there is no MPI tree: None, never
    1.

    Parameters
    ----------
    elapsed_ns : int
        E, the longest wall time of a rank.
    ranks : sequence of HostTime

    Returns
    -------
    dict
        Each of `HOST_RATIOS` by name (None where undefined); elapsed_ns, cpus, useful_ns, gpu_ns and mpi_ns
        (None without MPI), whole ns.
    """
    cpus = sum(rank.cpus for rank in ranks)
    useful, gpu = (sum(getattr(rank, name) for rank in ranks) for name in ("useful_ns", "gpu_ns"))
    with_mpi = [(rank.mpi_ns, rank.cpus) for rank in ranks if rank.mpi_ns is not None]
    mpi = sum(own for own, _ in with_mpi)
    outside = None
    most = None
    if with_mpi and cpus and elapsed_ns:
        outside = elapsed_ns - Fraction(mpi, cpus)
        most = elapsed_ns - min(Fraction(own, share) for own, share in with_mpi)
    sums = {"elapsed_ns": elapsed_ns, "useful_ns": useful, "gpu_ns": gpu}
    of_formulas = sums | {"mpi": mpi, "outside": outside, "most_outside": most}
    ratios = {definition.name: HOST_FORMULAS[definition.name](of_formulas) for definition in HOST_RATIOS}
    return ratios | sums | {"cpus": cpus, "mpi_ns": mpi if with_mpi else None}


def scalability(reference: Mapping, run: Mapping, weak: bool) -> dict:
    """Return a run's computation scalability and global efficiency against a reference run.

    Computation scalability = useful(reference) / useful(run), times devices(run) / devices(reference) for weak scaling,
    where each device's share of the problem stays the same. Global efficiency = PE x computation scalability.

    Parameters
    ----------
    reference, run : mapping
        Trees with kernel_ns, n_devices and parallel_efficiency.
    weak : bool
    """
    factor = Fraction(run["n_devices"], reference["n_devices"]) if weak and reference["n_devices"] else Fraction(1)
    scale = (
        Fraction(reference["kernel_ns"], run["kernel_ns"]) * factor
        if run["kernel_ns"] and reference["kernel_ns"]
        else None
    )
    efficiency = run[PARALLEL]
    return {
        COMPUTATION_SCALABILITY: None if scale is None else float(scale),
        GLOBAL: None if scale is None or efficiency is None else efficiency * float(scale),
    }


def measure_series(series: Mapping[str, Sequence[str]], documents: Mapping[str, Mapping]) -> dict:
    """Return `series.json`.

    Parameters
    ----------
    series : mapping
        Datasets by series, whose name is `strong:NAME` or `weak:NAME`.
    documents : mapping
        `efficiency.json` by dataset.

    Returns
    -------
    dict
        Per series its scaling, and its runs in order of devices; the first one is the reference. Runs without an
        efficiency stand apart, with the reason.
    """
    by_series = {}
    for name, datasets in sorted(series.items()):
        kind = name.split(":")[0]
        measured = [dataset for dataset in datasets if documents[dataset]["why"] is None]
        order = sorted(
            measured, key=lambda dataset: documents[dataset]["device"]["n_devices"]
        )  # stable: else as in the sheet
        runs = []
        for dataset in order:
            run = {"dataset": dataset, "n_devices": documents[dataset]["device"]["n_devices"]}
            for flavour in FLAVOUR_NAMES:
                reference = documents[order[0]][flavour]
                tree = documents[dataset][flavour]
                run[flavour] = {key: tree[key] for key in (PARALLEL, "kernel_ns", "elapsed_ns")}
                run[flavour] |= scalability(reference, tree, weak=kind == "weak")
            runs.append(run)
        left_out = [
            {"dataset": dataset, "why": documents[dataset]["why"]} for dataset in datasets if dataset not in measured
        ]
        reference = order[0] if order else None
        by_series[name] = {"scaling": kind, "reference": reference, "runs": runs, "not_measured": left_out}
    return {"series": by_series}

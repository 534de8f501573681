"""How late a source's readings are, by each node's clock: held against what the launches say of the devices."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from causeway.telemetry.busy_time_cells import busy_times
from causeway.telemetry.clock_skew import Load, Skew, estimate_skew
from causeway.telemetry.device_matching import DatasetDevice, TimedExport

LOAD_METRICS = (
    "graphics_engine_active_ratio",
    "gpu_utilisation_ratio",
    "sm_active_ratio",
    "power_w",
    "instant_power_w",
    "average_power_w",
)
"""Metrics that follow the load, those first that are nearest to "a launch runs"."""
MOST_READINGS = 4096
"""Readings of a device: those of longer runs are averaged first."""
PARTS = 16
"""Cells of a sampling interval in which the busy time is held."""
BEYOND = 30
"""Sampling intervals before the first and after the last launch that count as idle, where the load within shows no
skew."""
WITHIN = "within"
EDGES = "edges"


@dataclass(frozen=True, kw_only=True)
class DeviceReadings:
    """The readings of one device of the dataset.

    Attributes
    ----------
    device : DatasetDevice
    series : mapping of str to pair of ndarray, shape (n,)
        By metric times (int64, ns, UTC of the site's clock, ascending) and values (float).
    """

    device: DatasetDevice
    series: Mapping[str, tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True, kw_only=True)
class NodeSkew:
    """The skew found for a node, the metric it rests on (None: none that follows the load), and whether on the load
    within the capture or on its beginning and end too.
    """

    skew: Skew
    metric: str | None = None
    basis: str | None = None


def sampling_interval(times: np.ndarray) -> int | None:
    """Return the median distance of readings at `times`, int64 of shape (n,), ns; None for fewer than three."""
    return int(np.median(np.diff(times))) or None if times.size >= 3 else None


def skew_of_node(readings: Sequence[DeviceReadings], exports: Mapping[str, TimedExport]) -> NodeSkew:
    """Estimate how late one source's readings are, by one node's clock.

    Parameters
    ----------
    readings : sequence of DeviceReadings
        Of the node's devices that were matched.
    exports : mapping of str to TimedExport
        All with the start of their session.
    """
    last = NodeSkew(skew=Skew(reason="no reading of utilisation or power to compare with the load"))
    for metric in LOAD_METRICS:
        having = [of_device for of_device in readings if metric in of_device.series]
        intervals = [
            interval for of_device in having if (interval := sampling_interval(of_device.series[metric][0])) is not None
        ]
        if not intervals:
            continue
        for basis, beyond in ((WITHIN, 0), (EDGES, BEYOND)):
            loads, width = _loads(having, exports, metric, max(intervals), beyond)
            last = NodeSkew(skew=estimate_skew(loads, width), metric=metric, basis=basis)
            if last.skew.skew_ns is not None:
                return last
    return last


def _loads(
    readings: Sequence[DeviceReadings],
    exports: Mapping[str, TimedExport],
    metric: str,
    interval_ns: int,
    beyond: int,
) -> tuple[list[Load], int]:
    """Return the loads of devices, and the sampling interval of their readings in ns."""
    spans = [exports[of_device.device.export] for of_device in readings]
    longest = max(export.last_ns - export.first_ns for export in spans)
    averaged = interval_ns * max(1, -(-longest // (interval_ns * MOST_READINGS)))
    width = max(averaged // PARTS, 1)
    by_export: dict[str, list[DeviceReadings]] = {}
    for of_device in readings:
        by_export.setdefault(of_device.device.export, []).append(of_device)
    loads = []
    for name, of_export in sorted(by_export.items()):
        export = exports[name]
        cells = max((export.last_ns - export.first_ns) // width, 1) + 2 * beyond * averaged // width
        origin = export.first_ns - beyond * averaged
        keys = [(of_device.device.rank, of_device.device.device) for of_device in of_export]
        busy = busy_times(export.folder / "launches.parquet", keys, origin, width, cells)
        for of_device, key in zip(of_export, keys, strict=True):
            times, values = of_device.series[metric]
            if averaged > interval_ns:
                times, values = _averaged(times, values, averaged)
            before = np.concatenate([[0], np.cumsum(busy[key])])
            start = origin + (export.session_start_ns or 0)
            loads.append(Load(busy_ns=before, origin_ns=start, width_ns=width, times=times, values=values))
    return loads, averaged


def _averaged(times: np.ndarray, values: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the means of readings over spans of a width, at the ends of these."""
    span = (times - times[0]) // width
    first = np.flatnonzero(np.diff(span, prepend=-1))
    counts = np.diff(first, append=times.size)
    return times[0] + (span[first] + 1) * width, np.add.reduceat(values, first) / counts

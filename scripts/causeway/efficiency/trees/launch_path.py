"""The way of launches from their call to their end, and what copies carry in each direction."""

from collections.abc import Mapping, Sequence

import numpy as np

from causeway.core.tables import COPY_KINDS
from causeway.efficiency.device_time.sweep import COPY_FIELDS, PATH_FIELDS, STREAM_FIELDS
from causeway.efficiency.trees.buses import bus_of
from causeway.efficiency.trees.trees import ratio

ON_THE_BUS = (1, 2, 3, 4, 11, 12)
"""Kinds of copies between host and device."""
Devices = Sequence[tuple[int, int]]
"""Rank and device number of each row of an array."""


def launch_path(
    path: np.ndarray, devices: Devices, elapsed: Mapping[int, int], small_ns: int, measured: Sequence
) -> dict:
    """Return A, Q, K, T and small kernels of all devices together and of each: sums in ns, means in ns, shares;
    `path` has shape (devices, fields), int64.

    `path` has shape (devices, fields), the fields of `sweep.PATH_FIELDS`.

    The mean length of the queue is that of waiting launches, sum Q / elapsed (Little's law).
    """
    longest: dict[tuple[int, int], int] = {}
    for one in measured:
        for (rank, device, _), fields in one.streams.items():
            longest[rank, device] = max(longest.get((rank, device), 0), int(fields[STREAM_FIELDS.index("queue_max")]))
    each = {}
    for row, (rank, device) in zip(path, devices, strict=True):
        each[f"{rank}/{device}"] = _path(row, elapsed[rank], longest.get((rank, device)))
    whole = _path(path.sum(axis=0), sum(elapsed[rank] for rank, _ in devices), max(longest.values(), default=None))
    return whole | {"small_kernel_ns": small_ns, "devices": each}


def _path(row: np.ndarray, elapsed: int, longest: int | None) -> dict:
    found = dict(zip(PATH_FIELDS, row.tolist(), strict=True))
    return found | {
        "mean_call_ns": ratio(found["call_ns"], found["called"]),
        "mean_queue_ns": ratio(found["queue_ns"], found["queued"]),
        "mean_kernel_ns": ratio(found["kernel_ns"], found["launches"]),
        "mean_total_ns": ratio(found["total_ns"], found["called"]),
        "mean_queue_length": ratio(found["queue_ns"], elapsed) if found["queued"] else None,
        "longest_queue": longest if found["called"] else None,
        "small_share": ratio(found["small"], found["launches"]),
        "small_time_share": ratio(found["small_ns"], found["kernel_ns"]),
    }


def copies(found: np.ndarray, devices: Devices, names: Mapping[tuple[int, int], str | None]) -> list[dict]:
    """Return one entry per direction and device: rows, bytes, mean rate, and for copies over the bus its limit and
    the share of it; `found` has shape (devices, kinds, fields), int64.
    """
    rows = []
    for index, (rank, device) in enumerate(devices):
        for kind in np.flatnonzero(found[index, :, 0]).tolist():
            row = dict(zip(COPY_FIELDS, found[index, kind].tolist(), strict=True))
            rate = ratio(row["bytes"], row["sized_ns"])  # bytes per ns are GB/s
            bus = bus_of(names.get((rank, device))) if kind in ON_THE_BUS else None
            rows.append(
                {
                    "rank": rank,
                    "device": device,
                    "kind": kind,
                    "direction": COPY_KINDS.get(kind, f"kind {kind}"),
                    **row,
                    "gb_per_s": rate,
                }
                | {
                    "bus": bus and bus[1],
                    "limit_gb_per_s": bus and bus[0],
                    "share_of_limit": rate / bus[0] if bus and rate else None,
                }
            )
    return rows

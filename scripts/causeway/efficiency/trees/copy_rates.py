"""What copies carry in each direction beside what the bus can.

The bus follows from the device's name; unknown devices have no limit. Raw rates of one direction: PCI Express 3.0, 4.0
and 5.0 with 16 lanes (PCI-SIG: 8, 16 and 32 GT/s, 128b/130b), NVLink-C2C (NVIDIA Grace Hopper whitepaper: 450 GB/s each
way). The slot may have fewer lanes than the card; copies reach 75 to 90 % of a raw rate.
"""

import re
from collections.abc import Mapping, Sequence

import numpy as np

from causeway.core.codes import COPY_KINDS
from causeway.efficiency.device_time.sweep import COPY_FIELDS
from causeway.efficiency.trees.trees import ratio

ON_THE_BUS = (1, 2, 3, 4, 11, 12)
"""Kinds of copies between host and device."""
Devices = Sequence[tuple[int, int]]
"""Rank and device number of each row of an array."""


def copies(sums: np.ndarray, devices: Devices, names: Mapping[tuple[int, int], str | None]) -> list[dict]:
    """Return one entry per direction and device: rows, bytes, mean rate, and for copies over the bus its limit and
    the share of it; `sums` has shape (devices, kinds, fields), int64.
    """
    rows = []
    for index, (rank, device) in enumerate(devices):
        for kind in np.flatnonzero(sums[index, :, 0]).tolist():
            row = dict(zip(COPY_FIELDS, sums[index, kind].tolist(), strict=True))
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


PCIE3 = 15.75
PCIE4 = 31.5
PCIE5 = 63.0
C2C = 450.0
"""GB/s, 1e9 bytes."""
_LIMITS = (
    (r"\bGH200|\bGB[23]00|\bGH100 480GB", C2C, "NVLink-C2C"),
    (r"\bV100|\bP100|\bT4\b|Quadro|RTX 20[5-8]0|GTX 1|TITAN|\bMI[56]0", PCIE3, "PCIe 3.0 x16"),
    (r"\bH100|\bH200|\bH800|\bH20\b|\bB[123]00|\bMI3\d\dX|RTX 50[5-9]0|RTX PRO \d000|Blackwell", PCIE5, "PCIe 5.0 x16"),
    (
        r"\bA100|\bA800|\bA(?:10G?|[234]0)\b|\bA\d000|\bL40|\bL4\b|\bL20\b|RTX [34]0[5-9]0|RTX [2-6]\d00.* Ada"
        r"|\bMI[12]\d\d",
        PCIE4,
        "PCIe 4.0 x16",
    ),
)
"""The first that fits. A Quadro RTX 5000 (Turing), an RTX 5000 Ada and an RTX 5080 are three generations; an MI300A
shares its memory with the host and has no bus between.
"""


def bus_of(device: str | None) -> tuple[float, str] | None:
    """Return a device's bus: GB/s of one direction and its name.

    >>> bus_of("NVIDIA H100 80GB HBM3"), bus_of("AMD Instinct MI300X"), bus_of("an unknown device")
    ((63.0, 'PCIe 5.0 x16'), (63.0, 'PCIe 5.0 x16'), None)
    """
    return next(((limit, name) for pattern, limit, name in _LIMITS if re.search(pattern, device or "", re.I)), None)

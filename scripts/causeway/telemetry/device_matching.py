"""Which device of the dataset each device of a source is: by node and UUID, by index, or by the order of ranks."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from causeway.core.clock import Clock
from causeway.core.tables import read_json, read_table
from causeway.telemetry.readings import SourceDevice

UUID = "uuid"
INDEX = "index"
ONLY_ONE = "only_one"
RANK_ORDER = "rank_order"
BUS_ADDRESS = re.compile(r"(?:[0-9a-f]{4,8}:)?[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
"""Domain, bus, device and function of a GPU on PCI Express, as nvidia-smi writes it."""


@dataclass(frozen=True, kw_only=True)
class DatasetDevice:
    """A device of the dataset: its export, rank and number, and its GPU as the table of devices has it."""

    export: str
    rank: int
    device: int
    gpu: str = ""


@dataclass(frozen=True, kw_only=True)
class TimedExport:
    """An export with times.

    Attributes
    ----------
    name, node : str
        `node` is empty where it is not known.
    folder : Path
    clock : Clock
    session_start_ns : int or None
        UTC of the export's own time 0.
    first_ns, last_ns : int
        Its first and last event, on its own clock.
    devices : tuple of DatasetDevice
    """

    name: str
    node: str
    folder: Path
    clock: Clock
    session_start_ns: int | None
    first_ns: int
    last_ns: int
    devices: tuple[DatasetDevice, ...]


def timed_exports(folders: Iterable[Path], clocks: Mapping, nodes: Mapping[str, str]) -> list[TimedExport]:
    """Return the exports of a dataset that have launches with times.

    Parameters
    ----------
    folders : iterable of Path
    clocks : mapping
        `clocks.json`.
    nodes : mapping of str to str
        Node of each export as in the sheet, empty where it is not there.
    """
    found = []
    for folder in folders:
        document = read_json(folder / "capabilities.json")
        time = document["time"] or {}
        entry = clocks["exports"].get(folder.name)
        if entry is None or not time.get("has_start") or not (folder / "launches.parquet").is_file():
            continue
        path = folder / "devices.parquet"
        rows = read_table(path, "devices", ["rank", "device", "gpu"]).to_pylist() if path.is_file() else []
        found.append(
            TimedExport(
                name=folder.name,
                node=nodes.get(folder.name) or document.get("node") or "",
                folder=folder,
                clock=Clock.of(entry),
                session_start_ns=time["session_start_ns"],
                first_ns=time["first_ns"],
                last_ns=time["last_ns"],
                devices=tuple(
                    DatasetDevice(export=folder.name, rank=row["rank"], device=row["device"], gpu=row["gpu"] or "")
                    for row in rows
                ),
            )
        )
    return found


def digests(uuid: str) -> set[str]:
    """Return what the table of devices may have for a UUID: digests with and without the letters before it."""
    plain = uuid.strip().lower().removeprefix("gpu-")
    spellings = {uuid.strip(), plain, f"GPU-{plain}", uuid.strip().removeprefix("GPU-")} if uuid.strip() else set()
    return {f"g{hashlib.sha256(text.encode(errors='replace')).hexdigest()[:12]}" for text in spellings}


def same_node(one: str, other: str) -> bool:
    """Return whether two names of a machine mean the same: equal up to the first dot, in any case."""
    return one.lower().partition(".")[0] == other.lower().partition(".")[0]


def match_devices(
    sources: Sequence[SourceDevice], exports: Sequence[TimedExport]
) -> tuple[dict[SourceDevice, tuple[DatasetDevice, str]], dict[SourceDevice, str]]:
    """Find the dataset's device of each device of a source.

    Parameters
    ----------
    sources : sequence of SourceDevice
    exports : sequence of TimedExport

    Returns
    -------
    matched : dict of SourceDevice to (DatasetDevice, str)
        With what it rests on: uuid, index (the device's number in the export), only_one (one device on either side),
        rank_order (each rank calls its own device 0: the k-th rank of the node has the k-th device, which launchers
        usually do but no table says; or the source has bus addresses alone, by which nvidia-smi numbers the devices).
    unmatched : dict of SourceDevice to str
        The reason: unknown_node, unknown_device, ambiguous_device or bus_address.
    """
    matched: dict[SourceDevice, tuple[DatasetDevice, str]] = {}
    unmatched: dict[SourceDevice, str] = {}
    nodes = {export.node.lower().partition(".")[0] for export in exports}
    for node in sorted({one.node for one in sources}):
        mine = [one for one in sources if one.node == node]
        if node and nodes != {""}:
            here = [export for export in exports if export.node and same_node(export.node, node)]
        else:
            here = list(exports) if len(nodes) == 1 else []
        devices = [device for export in here for device in export.devices]
        if not devices:
            unmatched |= dict.fromkeys(mine, "unknown_node")
            continue
        found, missing = _on_node(mine, devices)
        matched |= found
        unmatched |= missing
    return matched, unmatched


def _on_node(
    sources: list[SourceDevice], devices: list[DatasetDevice]
) -> tuple[dict[SourceDevice, tuple[DatasetDevice, str]], dict[SourceDevice, str]]:
    """Match the devices of one node."""
    by_gpu: dict[str, list[DatasetDevice]] = {}
    by_number: dict[str, list[DatasetDevice]] = {}
    for device in devices:
        by_gpu.setdefault(device.gpu, []).append(device)
        by_number.setdefault(str(device.device), []).append(device)
    found: dict[SourceDevice, tuple[DatasetDevice, str]] = {}
    missing: dict[SourceDevice, str] = {}
    indices = sorted({one.index for one in sources if one.index.isdigit()}, key=int)
    buses = sorted({one.index for one in sources if BUS_ADDRESS.fullmatch(one.index)}, key=lambda bus: bus.zfill(16))
    ranks = sorted(devices, key=lambda device: (device.rank, device.device))
    in_order = len(devices) > 1 and len(by_number) == 1 and len(indices) == len({one.rank for one in ranks})
    for one in sources:
        same = [device for digest in sorted(digests(one.uuid)) for device in by_gpu.get(digest, [])]
        numbered = by_gpu.get(one.index, []) if one.index.isdigit() else []
        if same:
            found[one] = same[0], UUID
        elif one.uuid and all(device.gpu.startswith("g") for device in devices):
            missing[one] = "unknown_device"  # both sides know their GPUs, and it is none of these
        elif len(numbered) == 1:
            found[one] = numbered[0], INDEX
        elif len(by_number.get(one.index, [])) == 1 and not in_order:
            found[one] = by_number[one.index][0], INDEX
        elif in_order and one.index in indices:
            found[one] = ranks[indices.index(one.index)], RANK_ORDER
        elif len(sources) == len(devices) == 1:
            found[one] = devices[0], ONLY_ONE
        elif one.index in buses and len(buses) == len(devices):
            found[one] = ranks[buses.index(one.index)], RANK_ORDER
        elif one.index in buses:
            missing[one] = "bus_address"
        else:
            missing[one] = "ambiguous_device" if one.index in by_number else "unknown_device"
    return found, missing

"""Which device of the dataset each device of a source is: by node and UUID, by index, or by the order of ranks."""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from causeway.core.clock import Clock
from causeway.core.tables import read_json, rows_if_there
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
    exports = []
    for folder in folders:
        document = read_json(folder / "capabilities.json")
        time = document["time"] or {}
        entry = clocks["exports"].get(folder.name)
        if entry is None or not time.get("has_start") or not (folder / "launches.parquet").is_file():
            continue
        rows = rows_if_there(folder, "devices", ["rank", "device", "gpu"])
        exports.append(
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
    return exports


def digests(uuid: str) -> set[str]:
    """Return what the table of devices may have for a UUID: digests with and without the letters before it."""
    plain = uuid.strip().lower().removeprefix("gpu-")
    spellings = {uuid.strip(), plain, f"GPU-{plain}", uuid.strip().removeprefix("GPU-")} if uuid.strip() else set()
    return {f"g{hashlib.sha256(text.encode(errors='replace')).hexdigest()[:12]}" for text in spellings}


def same_node(name: str, other: str) -> bool:
    """Return whether two names of a machine mean the same: equal up to the first dot, in any case."""
    return name.lower().partition(".")[0] == other.lower().partition(".")[0]


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
    for node in sorted({source.node for source in sources}):
        of_node = [source for source in sources if source.node == node]
        if node and nodes != {""}:
            own = [export for export in exports if export.node and same_node(export.node, node)]
        else:
            own = list(exports) if len(nodes) == 1 else []
        devices = [device for export in own for device in export.devices]
        if not devices:
            unmatched |= dict.fromkeys(of_node, "unknown_node")
            continue
        here = _Node(of_node, devices)
        for source in of_node:
            match here.match(source):
                case str(reason):
                    unmatched[source] = reason
                case pair:
                    matched[source] = pair
    return matched, unmatched


class _Node:
    """The devices of one node, by all that a source may call them.

    Parameters
    ----------
    sources : sequence of SourceDevice
        Devices of the sources on this node.
    devices : sequence of DatasetDevice
        Those of the dataset, at least one.
    """

    def __init__(self, sources: Sequence[SourceDevice], devices: Sequence[DatasetDevice]) -> None:
        self._by_gpu: dict[str, list[DatasetDevice]] = {}
        self._by_number: dict[str, list[DatasetDevice]] = {}
        for device in devices:
            self._by_gpu.setdefault(device.gpu, []).append(device)
            self._by_number.setdefault(str(device.device), []).append(device)
        named = {source.index for source in sources}
        self._indices = sorted(filter(str.isdigit, named), key=int)
        self._buses = sorted(filter(BUS_ADDRESS.fullmatch, named), key=lambda bus: bus.zfill(16))
        self._in_order = sorted(devices, key=lambda device: (device.rank, device.device))
        ranks = {device.rank for device in devices}
        self._each_its_own = len(devices) > 1 and len(self._by_number) == 1 and len(self._indices) == len(ranks)
        self._one_each = len(sources) == len(devices) == 1
        self._all_have_digests = all(device.gpu.startswith("g") for device in devices)

    def match(self, source: SourceDevice) -> tuple[DatasetDevice, str] | str:
        """Return the dataset's device of a source's one, and what that rests on; else the reason why there is none."""
        same = [device for digest in sorted(digests(source.uuid)) for device in self._by_gpu.get(digest, [])]
        if same:
            return same[0], UUID
        if source.uuid and self._all_have_digests:
            return "unknown_device"  # both sides know their GPUs, and it is none of these
        return self._by_index(source.index) or self._by_order(source.index) or self._why_not(source.index)

    def _by_index(self, index: str) -> tuple[DatasetDevice, str] | None:
        """Return the only device whose GPU, or, where ranks do not each call their own device alike, whose number is
        this index.
        """
        gpus = self._by_gpu.get(index, []) if index.isdigit() else []
        if len(gpus) == 1:
            return gpus[0], INDEX
        numbered = self._by_number.get(index, [])
        return (numbered[0], INDEX) if len(numbered) == 1 and not self._each_its_own else None

    def _by_order(self, index: str) -> tuple[DatasetDevice, str] | None:
        """Return the device that the order of ranks, or there being one on either side, gives to an index."""
        if self._each_its_own and index in self._indices:
            return self._in_order[self._indices.index(index)], RANK_ORDER
        if self._one_each:
            return self._in_order[0], ONLY_ONE
        if index in self._buses and len(self._buses) == len(self._in_order):
            return self._in_order[self._buses.index(index)], RANK_ORDER
        return None

    def _why_not(self, index: str) -> str:
        """Return why no device has an index."""
        if index in self._buses:
            return "bus_address"
        return "ambiguous_device" if index in self._by_number else "unknown_device"

"""What is counted in an export, and plain helpers."""

import csv
import re
import sqlite3
from contextlib import closing
from itertools import pairwise
from pathlib import Path


class Counted:
    """Events as found: (start, end, device, class) of launches and transfers, and numbers of everything else."""

    def __init__(self) -> None:
        self.launches: list[tuple[int, int, object, str]] = []
        self.transfers: list[tuple[int, int, object]] = []
        self.names: set[str] = set()
        self.rows = dict.fromkeys(("calls", "ranges", "host_operators", "samples", "counters"), 0)
        self.sums: dict[str, float] = {}

    def launch(self, start: int, end: int, device: object, name: str) -> None:
        self.launches.append((start, end, device, class_of(name)))
        self.names.add(re.sub(r"( \[clone \.kd\]| \(\.kd\)|\.kd)$", "", name))

    def result(self) -> dict:
        """Return what the expectation file holds."""
        found = {"launches": len(self.launches), "transfers": len(self.transfers), **self.rows}
        found = {name: rows for name, rows in found.items() if rows}
        if self.names:
            found["kernels"] = len(self.names)
        for kind, events in (("launch", self.launches), ("transfer", self.transfers)):
            if events:
                found[f"{kind}_ns"] = sum(event[1] - event[0] for event in events)
        for kind in ("communication", "memory"):
            if total := sum(end - start for start, end, _, of in self.launches if of == kind):
                found[f"{kind}_ns"] = total
        if self.launches:
            devices = {event[2] for event in self.launches}
            found["busy_ns"] = found["idle_ns"] = found["overlap_ns"] = 0
            for one in devices:
                launches = [event for event in self.launches if event[2] == one]
                work = [event[:2] for event in launches] + [event[:2] for event in self.transfers if event[2] == one]
                busy = length(union(work))
                found["busy_ns"] += busy
                found["idle_ns"] += max(end for _, end in work) - min(start for start, _ in work) - busy
                talking = union([event[:2] for event in launches if event[3] == "communication"])
                computing = union([event[:2] for event in launches if event[3] == "compute"])
                found["overlap_ns"] += length(talking) + length(computing) - length(union(talking + computing))
        return found | {name: round(total, 3) for name, total in sorted(self.sums.items())}


def class_of(name: str) -> str:
    if re.search(
        r"nccl(Kernel|DevKernel)|^nccl|rccl|nvshmem|cross_device_reduce|mscclpp|multimem_",
        name.replace("(anonymous namespace)", "").split("<")[0].split("(")[0],
    ):
        return "communication"
    return "memory" if re.search(r"rocclr_(copy|fill)Buffer|^Mem(cpy|set) ", name) else "compute"


def union(intervals: list) -> list[tuple[int, int]]:
    """Return the same points as disjoint intervals."""
    found: list[list[int]] = []
    for start, end in sorted(intervals):
        if found and start <= found[-1][1]:
            found[-1][1] = max(found[-1][1], end)
        elif end > start:
            found.append([start, end])
    assert all(a[1] < b[0] for a, b in pairwise(found))
    return [tuple(one) for one in found]


def length(intervals: list) -> int:
    return sum(end - start for start, end in intervals)


def database(path: Path):
    """Open a database; closed at the end of its `with`."""
    return closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True))


def read_csv(path: Path) -> list[dict]:
    with path.open(encoding="utf-8-sig", newline="") as handle:
        return list(csv.DictReader(handle))

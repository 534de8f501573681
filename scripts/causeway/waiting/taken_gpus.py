"""When a device was not a rank's to use: another rank of the run worked on the same GPU, or the export records that the
context of another process had it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from causeway.core.clock import Clock, clocks_of
from causeway.core.reduced import has_time_line
from causeway.core.tables import read_json, rows_if_there
from causeway.events.event_blocks import GPU_TABLES, chunks, numbers, same_gpus, times
from causeway.numeric import intervals

NOT_REPLAYED = "ranks share a GPU: what a change does to their turns on it is not known"
"""Why nothing is replayed of a dataset."""
UNKNOWN_PROCESS = -1
NOTHING = np.zeros(0, np.int64)
Device = tuple[int, int]
"""Rank, and the number that the rank has for the device."""


@dataclass(frozen=True)
class Contexts:
    """Turns of other processes on a device, ordered and without overlap.

    Attributes
    ----------
    start, end : ndarray of int64, shape (turns,), ns
    process : ndarray of int64, shape (turns,)
        Their ids; `UNKNOWN_PROCESS` where not recorded.
    """

    start: np.ndarray
    end: np.ndarray
    process: np.ndarray

    def words(self) -> list[str]:
        """Return what each distinct process is called, in the order of `number`."""
        return [_words(pid) for pid in np.unique(self.process).tolist()]

    def number(self) -> np.ndarray:
        """Return for each turn the index of its process among the distinct ones; int64, shape (turns,)."""
        return np.unique(self.process, return_inverse=True)[1].reshape(-1)


def _words(pid: int) -> str:
    return "a process that is not recorded" if pid == UNKNOWN_PROCESS else f"process {pid}"


@dataclass(frozen=True)
class OtherWork:
    """Work of other ranks on a device's GPU.

    Attributes
    ----------
    busy : Set
        When any of it ran, ns.
    earlier : ndarray of int64, shape (stretches,), ns
        Where stretches of work of those ranks begin that are counted before this one: of work that begins at one
        moment on several ranks, idle time before it is of the first.
    """

    busy: intervals.Set
    earlier: np.ndarray


class TakenGpus:
    """What is known of it in a dataset, on its time line.

    It lies in memory: 16 bytes for each stretch of work on a GPU that several ranks share, 24 for each turn of another
    process.

    Parameters
    ----------
    folders : mapping of Path to Clock
        Folders of the exports' tables, and their clocks.
    are_aligned : bool
        Whether times of different exports can be compared; else only ranks of one export are known to share a GPU.

    Attributes
    ----------
    others : dict of Device to OtherWork
    contexts : dict of Device to Contexts
    """

    def __init__(self, folders: Mapping[Path, Clock], *, are_aligned: bool) -> None:
        exports = {folder: read_json(folder / "capabilities.json")["export"] for folder in folders}
        folder_of = {export: folder for folder, export in exports.items()}
        members = [
            [(folder_of[export], rank, device) for export, rank, device in group]
            for group in same_gpus(
                (export, row["rank"], row["device"], row["gpu"])
                for folder, export in exports.items()
                for row in rows_if_there(folder, "devices", ["rank", "device", "gpu"])
            )
        ]
        if not are_aligned:
            members = [
                [member for member in group if member[0] == folder]
                for group in members
                for folder in dict.fromkeys(member[0] for member in group)
            ]
        work = _work_of({member for group in members for member in group}, folders)
        self.others: dict[Device, OtherWork] = {}
        for group in members:
            for position, (folder, rank, device) in enumerate(group):
                others = [work[member] for member in group if member != (folder, rank, device) and member[1] != rank]
                if others:
                    earlier = [work[member][0] for member in group[:position]]
                    busy = intervals.union(*np.concatenate(others, axis=1))
                    self.others[rank, device] = OtherWork(busy, np.unique(np.concatenate([NOTHING, *earlier])))
        self.contexts = {
            key: turns for folder, clock in folders.items() for key, turns in _contexts_of(folder, clock).items()
        }

    def __bool__(self) -> bool:
        return bool(self.others or self.contexts)

    def in_clock(self, clock: Clock) -> "TakenGpus":
        """Return the same in the own clock of an export."""
        taken = object.__new__(TakenGpus)
        taken.others = {
            key: OtherWork((clock.own(work.busy[0]), clock.own(work.busy[1])), clock.own(work.earlier))
            for key, work in self.others.items()
        }
        taken.contexts = {
            key: Contexts(clock.own(contexts.start), clock.own(contexts.end), contexts.process)
            for key, contexts in self.contexts.items()
        }
        return taken


def taken_gpus(folders: Sequence[str | Path], clocks_file: str | Path) -> TakenGpus:
    """Return what is known of it in a dataset, from its folders of tables and its clocks; exports without a time line
    are left out.
    """
    document = read_json(clocks_file)
    clocks = clocks_of(document)
    documents = {Path(folder): read_json(Path(folder) / "capabilities.json") for folder in folders}
    used = {folder: clocks[facts["export"]] for folder, facts in documents.items() if has_time_line(facts)}
    return TakenGpus(used, are_aligned=document.get("method") != "zero")


def _work_of(
    devices: set[tuple[Path, int, int]], folders: Mapping[Path, Clock]
) -> dict[tuple[Path, int, int], np.ndarray]:
    """Return when each device works, as a set on the dataset's time line; int64, shape (2, n)."""
    parts = {member: [np.zeros((2, 0), np.int64)] for member in devices}
    for folder in {member[0] for member in devices}:
        for table in GPU_TABLES:
            for batch in chunks(folder, table, ["start_ns", "duration_ns", "rank", "device"]):
                block = times(batch)
                rank, device = (batch.column(name).to_numpy() for name in ("rank", "device"))
                for member in devices:
                    on_device = (rank == member[1]) & (device == member[2])
                    if member[0] == folder and on_device.any():
                        clock = folders[folder]
                        ends = [clock.aligned(block[edge][on_device]) for edge in ("start", "end")]
                        parts[member].append(np.stack(intervals.union(*ends)))
    return {member: np.stack(intervals.union(*np.concatenate(part, axis=1))) for member, part in parts.items()}


def _contexts_of(folder: Path, clock: Clock) -> dict[Device, Contexts]:
    parts: dict[Device, list[np.ndarray]] = {}
    for batch in chunks(folder, "other_contexts", ["start_ns", "duration_ns", "rank", "device", "process"]):
        block = times(batch)
        rows = np.stack(
            [
                clock.aligned(block["start"]),
                clock.aligned(block["end"]),
                numbers(batch.column("process"), UNKNOWN_PROCESS),
            ]
        )
        keys = np.stack([batch.column(name).to_numpy().astype(np.int64) for name in ("rank", "device")])
        for key in np.unique(keys, axis=1).T.tolist():
            parts.setdefault(tuple(key), []).append(rows[:, (keys == np.array(key)[:, None]).all(axis=0)])
    return {key: Contexts(*np.concatenate(part, axis=1)) for key, part in parts.items()}

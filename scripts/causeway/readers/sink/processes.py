"""Processes of an export and the ranks they are: as the sheet says, else as the export reports, else by a rule that is
named in an issue. And when other processes, which the export has no work of, had a GPU.
"""

import itertools
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from causeway.readers.common.constants import NULL
from causeway.readers.common.issues import Issues
from causeway.readers.sink.distinct import distinct_rows
from causeway.readers.sink.table_columns import nullable

MOST_RANKS = 1 << 32
"""Numbers from here on are no rank: the column of ranks has 32 bits."""
MOST_SWITCHES = 1 << 22
"""Switches that are held in memory, 48 bytes each; of an export with more none is used. A GPU switches contexts some
hundred times a second."""
NOBODY = -1
MOST_LISTED = 8
"""Ranks that an issue names."""


class Processes:
    """The processes seen in an export, their codes, their work and the ranks that the export reports for them.

    Attributes
    ----------
    keys : list
        The key of each code.
    devices : dict of int to int
        The lowest device that a process (by code) launched on.
    by_numbers : bool
        Whether the reported ranks are numbers in names, which nothing calls ranks: those of runs look the same.
    world_size : int or None
        Ranks of the job, as the export states them.
    """

    def __init__(self) -> None:
        self.keys: list[Hashable] = []
        self.devices: dict[int, int] = {}
        self.by_numbers = False
        self.world_size: int | None = None
        self._codes: dict[Hashable, int] = {}
        self._reported: dict[int, int] = {}
        self._launches: set[int] = set()
        self._work: set[int] = set()
        self._spans: dict[int, tuple[int, int]] = {}

    def code(self, key: Hashable = 0, rank: int | None = None) -> int:
        """Return the code of a process; `rank` is what the export reports for it, if anything."""
        code = self._codes.get(key)
        if code is None:
            code = self._codes[key] = len(self.keys)
            self.keys.append(key)
        self.state_rank(code, rank)
        return code

    def state_rank(self, code: int, rank: int | None) -> None:
        """Note the rank that the export reports for a process; the first one counts, what can be no rank is ignored."""
        if rank is not None and 0 <= rank < MOST_RANKS:
            self._reported.setdefault(code, rank)

    def note(
        self, codes: np.ndarray, devices: np.ndarray, launches: bool, times: tuple[np.ndarray, np.ndarray] | None = None
    ) -> None:
        """Remember which processes had launches (or transfers only), each one's lowest device, and from when to when
        it had launches.

        Parameters
        ----------
        codes, devices : ndarray of int64, shape (n,)
            Of each event, its process's code and its device.
        launches : bool
        times : tuple of two ndarray of int64, shape (n,), ns
            Starts and durations, where launches have them.
        """
        first, inverse = distinct_rows([codes, devices])
        spans = _spans(first, inverse, *times) if times else [None] * len(first)
        for code, device, span in zip(codes[first].tolist(), devices[first].tolist(), spans, strict=True):
            (self._launches if launches else self._work).add(code)
            if launches:
                self.devices[code] = min(device, self.devices.get(code, device))
            if span:
                begin, end = self._spans.get(code, span)
                self._spans[code] = min(begin, span[0]), max(end, span[1])

    @property
    def working(self) -> list[int]:
        """Codes of the processes that launched, ascending; without any, of those with other work of a device."""
        return sorted(self._launches or self._work)

    def _gaps(self) -> list[int]:
        """Return how long it is, in ns, from the last launch of all earlier processes to the first of the next ones,
        wherever they do not overlap.
        """
        spans = sorted(self._spans.values())
        ends = itertools.accumulate((end for _, end in spans), max)
        return [begin - end for (begin, _), end in zip(spans[1:], ends, strict=False) if begin >= end]

    def _note_gaps(self, issues: Issues) -> None:
        if gaps := self._gaps():
            issues.add("processes_in_turn", len(gaps), f"gaps of up to {max(gaps) / 1e9:,.1f} s")

    def ranks(self, sheet: int | None, position: int, issues: Issues) -> tuple[np.ndarray, str]:
        """Return each process's rank, -1 for processes without GPU work beside others with it, or without a rank beside
        others whose ranks the export states, and where the ranks come from.

        One process is one rank, whatever its number of devices: the sheet's rank, else the export's, else `position`.
        Several processes are several ranks: the export's, where it states them, else numbered from the sheet's rank
        (or 0) by lowest device, then by process key. A process that the export gives no rank beside others (a helper
        that a rank started) is none of the run's ranks: numbering it would take the place of a stated one.

        Parameters
        ----------
        sheet : int or None
            The sheet's rank.
        position : int
            The export's position in its dataset.
        issues : Issues

        Returns
        -------
        ranks : ndarray of int64, shape (number of codes,), at least (1,)
        origin : str
            "sheet", "export" or "position".
        """
        used = self.working
        if len(used) <= 1:
            rank, origin = self._only_rank(self._reported.get(used[0]) if used else None, sheet, position, issues)
            return np.full(max(1, len(self.keys)), rank, np.int64), origin
        ranks = np.full(len(self.keys), -1, np.int64)
        stated = [code for code in used if code in self._reported]
        reported = [self._reported[code] for code in stated]
        if stated and len(set(reported)) == len(stated):
            issues.add("unranked_processes", len(used) - len(stated), f"{len(used)} processes had work on a GPU")
            if len(stated) == 1:
                ranks[stated], origin = self._only_rank(reported[0], sheet, position, issues)
                return ranks, origin
            ranks[stated] = reported
            if self.by_numbers:
                self._note_gaps(issues)
            if sheet is not None and sheet not in reported:
                detail = f"sheet {sheet}, export {_listed(reported)}; the export's were taken"
                issues.add("rank_contradicts", 1, detail)
            return ranks, "export"
        if stated:
            issues.add("rank_contradicts", 1, f"export {_listed(reported)}; the processes were numbered instead")
        order = sorted(used, key=lambda code: (self.devices.get(code, 0), *_in_order(self.keys[code])))
        for number, code in enumerate(order):
            ranks[code] = (sheet or 0) + number
        issues.add("several_processes", len(used), f"ranks {sheet or 0} to {(sheet or 0) + len(used) - 1}")
        self._note_gaps(issues)
        return ranks, "export" if sheet is None else "sheet"

    @staticmethod
    def _only_rank(reported: int | None, sheet: int | None, position: int, issues: Issues) -> tuple[int, str]:
        """Return the rank of an export of one process, and where it comes from."""
        if sheet is not None:
            if reported is not None and reported != sheet:
                issues.add("rank_contradicts", 1, f"sheet {sheet}, export {reported}; the sheet's was taken")
            return sheet, "sheet"
        if reported is not None:
            return reported, "export"
        issues.add("rank_assumed", 1, f"rank {position}")
        return position, "position"


def _spans(first: np.ndarray, inverse: np.ndarray, starts: np.ndarray, durations: np.ndarray) -> list[tuple[int, int]]:
    """Return the earliest start and the latest end of each group of rows, as `distinct_rows` gives them."""
    stops = starts + durations
    if len(first) == 1:
        return [(int(starts.min()), int(stops.max()))]
    begins = starts[first]
    ends = stops[first]
    np.minimum.at(begins, inverse, starts)
    np.maximum.at(ends, inverse, stops)
    return list(zip(begins.tolist(), ends.tolist(), strict=True))


def _listed(ranks: list[int]) -> str:
    """Return the first of some ranks, as text."""
    listed = ", ".join(map(str, sorted(ranks)[:MOST_LISTED]))
    return f"[{listed}{', ...' if len(ranks) > MOST_LISTED else ''}]"


def _in_order(key: Hashable) -> tuple[str, tuple]:
    """Return what puts keys in order: of one type by their parts, of which some may be None."""
    parts = key if isinstance(key, tuple) else (key,)
    return str(type(key)), tuple((str(type(part)), 0 if part is None else part) for part in parts)


@dataclass(frozen=True)
class Turns:
    """Who had a GPU, turn after turn; each turn lasts until the next begins.

    Attributes
    ----------
    start : ndarray of int64, shape (turns,), ns
    owner : ndarray of int64, shape (turns,)
        Index into `pids`, `NOBODY` where no context had it.
    pids : list of int
        Process of each owner, `NULL` where it is not recorded: then each context is an owner of its own.
    """

    start: np.ndarray
    owner: np.ndarray
    pids: list[int]


class OtherContexts:
    """Switches of the contexts of GPUs, and the devices of processes that are these GPUs."""

    def __init__(self) -> None:
        self._parts = [np.zeros((6, 0), np.int64)]  # GPU, time, sequence, context, process, whether it leaves
        self._rows = 0
        self._gpu_of: dict[tuple[int, int], int] = {}
        self._pid_of: dict[int, int] = {}
        self._turns: dict[int, Turns] = {}
        self._starts: dict[tuple[int, int], np.ndarray] = {}

    def take(
        self,
        gpu: np.ndarray,
        time_ns: np.ndarray,
        sequence: np.ndarray,
        context: np.ndarray,
        pid: np.ndarray,
        leaves: np.ndarray,
    ) -> None:
        """Take switches in any order.

        Parameters
        ----------
        gpu, time_ns, sequence, context, pid : ndarray of int64, shape (n,)
            Of events of one time the one with the lower number in `sequence` comes first; `pid` is `NULL` where absent.
        leaves : ndarray of bool, shape (n,)
            Whether the context leaves the GPU; each of its other events says that the context has it.
        """
        self._rows += len(time_ns)
        if self._rows > MOST_SWITCHES:
            self._parts = self._parts[:1]
            return
        self._parts.append(np.stack([gpu, time_ns, sequence, context, pid, leaves]).astype(np.int64))

    def uses(self, process: int, pid: int | None, device: int, gpu: int) -> None:
        """Note that a process (its code, and its id where that is known) calls a GPU by a device's number."""
        self._gpu_of[process, device] = gpu
        if pid is not None:
            self._pid_of[process] = pid

    def _turns_of(self, gpu: int) -> Turns:
        if gpu not in self._turns:
            rows = np.concatenate(self._parts, axis=1)
            rows = rows[:, rows[0] == gpu]
            rows = rows[:, np.lexsort((rows[2], rows[1]))]
            keys = [(pid, NULL if pid != NULL else context) for context, pid in rows[3:5].T.tolist()]
            number: dict[tuple[int, int], int] = {}
            owner = np.array([number.setdefault(key, len(number)) for key in keys], np.int64)
            owner = np.where(rows[5] > 0, NOBODY, owner)
            first = np.flatnonzero(np.append(True, owner[1:] != owner[:-1])[: owner.size])
            self._turns[gpu] = Turns(rows[1, first], owner[first], [pid for pid, _ in number])
        return self._turns[gpu]

    def note_launches(self, process: np.ndarray, device: np.ndarray, start_ns: np.ndarray) -> None:
        """Note launches: work begins only while its own context has the GPU, which tells whose context that is.

        Parameters
        ----------
        process, device, start_ns : ndarray of int64, shape (n,)
        """
        for key, gpu in self._gpu_of.items() if self._rows else ():
            turns = self._turns_of(gpu)
            starts = start_ns[(process == key[0]) & (device == key[1])]
            turn = np.searchsorted(turns.start, starts, "right") - 1
            owner = turns.owner[turn[turn >= 0]]
            counts = np.bincount(owner[owner >= 0], minlength=len(turns.pids))
            self._starts[key] = self._starts.get(key, 0) + counts

    def _own(self, key: tuple[int, int]) -> int | None:
        """Return the owner that a process is on a device: by its id, else, as inside of a container, that at whose
        turns most of its launches begin; None where nothing tells.
        """
        turns = self._turns_of(self._gpu_of[key])
        pid = self._pid_of.get(key[0])
        if pid is not None and pid in turns.pids:
            return turns.pids.index(pid)
        starts = self._starts.get(key, np.zeros(0, np.int64))
        return int(starts.argmax()) if starts.size and starts.max() else None

    def table(self, ranks: Mapping[int, int], issues: Issues) -> pa.Table:
        """Return the table `other_contexts`; `ranks` are by the code of their process. Processes of the export are
        none of the others: their own work tells when they use the GPU.
        """
        if self._rows > MOST_SWITCHES:
            issues.add("context_switches_left_out", self._rows)
        parts = [np.zeros((5, 0), np.int64)]
        own = {key: self._own(key) for key in self._gpu_of} if self._rows <= MOST_SWITCHES and self._rows else {}
        for key, owner in own.items():
            if owner is None or key[0] not in ranks:
                continue
            gpu = self._gpu_of[key]
            turns = self._turns_of(gpu)
            recorded = [other for of, other in own.items() if self._gpu_of[of] == gpu and other is not None]
            start = turns.start[:-1]
            duration = turns.start[1:] - start
            who = turns.owner[:-1]
            chosen = (who != NOBODY) & ~np.isin(who, recorded) & (duration > 0)
            pid = np.array([*turns.pids, NULL])[who[chosen]]
            where = np.broadcast_to(np.array([[ranks[key[0]]], [key[1]]]), (2, pid.size))
            parts.append(np.stack([start[chosen], duration[chosen], *where, pid]))
        rows = np.concatenate(parts, axis=1)
        start, duration, rank, device, pid = rows[:, np.lexsort((rows[3], rows[2], rows[0]))]
        columns = {"start_ns": start, "duration_ns": duration, "rank": rank, "device": device}
        return pa.table(columns | {"process": nullable(pid, pa.int64())})

"""rocprofv3's CSV files: kernel and copy traces, calls, markers, counters and agents; one file, or a folder of any
depth.

Files that share a folder and the beginning of their names are one process, whatever their names in another folder.
Counters of other files are of another execution of the program; they find their launch by its number and kernel name.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from causeway.core.errors import ExportError
from causeway.core.files.yaml_files import column_map
from causeway.core.tables import LAUNCH_SHAPE
from causeway.readers.amd.counter_passes import Measured, by_launch, checked, take_measured
from causeway.readers.amd.executions import Group, at_the_same_time, by_words, natural, of_counters, of_traces, span_of
from causeway.readers.amd.trace_events import AmdReader, agents, device_facts
from causeway.readers.common.constants import NULL
from causeway.readers.common.name_ranks import PASS, ranks_in_names, stated_ranks
from causeway.readers.common.options import Options
from causeway.readers.containers.csv_batches import CsvBatch, CsvFile, header_of
from causeway.readers.sink.distinct import mapped
from causeway.readers.sink.sink import Sink

ORDER = ("agent_info", "kernel_trace", "memory_copy_trace", "api_trace", "counter_collection")

ADVICE = (
    "Profile again with `rocprofv3 --kernel-trace --memory-copy-trace`, or name the folder that holds its"
    " *_kernel_trace.csv."
)

_KIND = re.compile(
    r"[-_.]*(?:kernel_trace|memory_copy_trace|counter_collection|(?:hip|hsa|marker|rccl|rocdecode|rocjpeg)_\w+|agent_info|kernel_names)$",
    re.IGNORECASE,
)
_TRACE = re.compile(r"(?:kernel_trace|memory_copy_trace|api_trace|counter_collection)\.csv(?:\.gz)?$", re.IGNORECASE)
"""Files that hold what is read; others, such as summaries, stand beside them."""


@dataclass(kw_only=True)
class TraceFile:
    """A CSV file, what it holds, its columns under our names, and the group of files that it belongs to."""

    path: Path
    label: str
    kind: str
    ours: dict[str, str]
    group: Group


def probe(path: Path) -> bool:
    """Return whether a file, or one below a folder, has one of the headers."""
    return bool(_tables(path) or _beside(path))


def read(path: Path, sink: Sink, options: Options) -> None:
    """Read one file or folder.

    Raises
    ------
    ExportError
        If there is neither a launch nor a counter, or a file is cut; what stands before the cut is kept.
    """
    sink.format_version = "rocprofv3 csv"
    tables = _tables(path)
    for file in sorted(set(_files(path)) - {table.path for table in tables}):
        if _TRACE.search(file.name):
            sink.issues.add(
                "unreadable_table", 1, f"{file.name}: its first line is not the header that such a file has"
            )
    if not tables:
        raise _without_launches(options.source, _beside(path))
    V3Reader(tables, sink, options).read()


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return [
            file
            for file in sorted(path.rglob("*"))
            if file.is_file() and file.name.lower().endswith((".csv", ".csv.gz"))
        ]
    return [path]


def _without_launches(source: str, kinds: set[str]) -> ExportError:
    problem = f"it holds {', '.join(sorted(kinds))} and no launch of a kernel"
    return ExportError(source, problem, "a kernel trace, or counters", ADVICE)


def _beside(path: Path) -> set[str]:
    """Return the kinds of files that are known and not read."""
    marks_of = column_map("rocprofv3")["beside"]
    headers = [set(header_of(file)) for file in _files(path)]
    return {kind for kind, marks in marks_of.items() if any(header >= set(marks) for header in headers)}


def _tables(path: Path) -> list[TraceFile]:
    """Return the files with known headers, in the order in which they are read."""
    rules = column_map("rocprofv3")["tables"]
    tables = []
    for file in _files(path):
        header = {name.lower(): name for name in header_of(file)}
        for kind, entry in rules.items():
            if {mark.lower() for mark in entry["marks"]} <= header.keys():
                ours: dict[str, str] = {}
                for raw, name in entry["columns"].items():
                    if raw.lower() in header:
                        ours.setdefault(name, header[raw.lower()])
                label = str(file.relative_to(path)) if path.is_dir() else file.name
                stem = re.sub(r"\.csv(\.gz)?$", "", file.name, flags=re.IGNORECASE)
                folder = str(Path(label).parent)
                group = (folder, _KIND.sub("", stem))
                tables.append(TraceFile(path=file, label=label, kind=kind, ours=ours, group=group))
                break
    return sorted(tables, key=lambda table: (ORDER.index(table.kind), table.label))


def _pass_of(table: TraceFile) -> str:
    """Return the names of the folders of passes that a file lies in, as one text."""
    return " ".join(part for part in Path(table.group[0]).parts if PASS.fullmatch(part))


class V3Reader(AmdReader):
    """The reader of the files of one export."""

    def __init__(self, tables: list[TraceFile], sink: Sink, options: Options) -> None:
        super().__init__(sink, options, "rocprofv3")
        self.tables = tables
        counted = [table for table in tables if table.kind == "counter_collection"]
        several = len({_pass_of(table) for table in counted}) > 1
        self.per_pass = frozenset(self.rules["per_pass"] if several else ())
        self.events.store = self.store if counted else None
        self.agents: list[tuple[int, int, dict]] = []
        self.gpus: dict[str, int] = {}
        self.counted: dict[str, set[str]] = {}  # counters read so far, by process
        self.by_type = False  # whether agents are numbered within their type
        self.traced = {table.group for table in tables if table.kind == "kernel_trace"}
        self.process_of = self._group_processes()
        self.rank_of = self._ranks()

    def read(self) -> None:
        """Read everything."""
        readers = {
            "agent_info": self._agents,
            "kernel_trace": self._launches,
            "memory_copy_trace": self._copies,
            "api_trace": self._calls,
        }
        for table in self.tables:
            of_launches = table.kind == ("kernel_trace" if self.traced else "counter_collection")
            with CsvFile(
                table.path, table.label, self.options.source, self.sink.issues, self._at, of_launches=of_launches
            ) as file:
                if table.kind == "counter_collection":
                    self._counters(table, file)
                else:
                    for batch in file.batches():
                        readers[table.kind](table, batch)
                self.sink.count_in(table.label, file.rows)
                self.failure = self.failure or file.failure
            self.done += table.path.stat().st_size
        self.store.hand_over()
        for device, among_gpus, facts in self.agents:
            self.sink.device(0, among_gpus if self.by_type else device, **facts)
        self.sink.same_devices(range(len(self.sink.processes.keys)))
        nothing = _without_launches(self.options.source, {table.kind for table in self.tables})
        self.events.finish(self.failure, nothing)

    def _at(self, done: int) -> None:
        self.progress.at(self.done + done)

    # processes

    def _group_processes(self) -> dict[Group, tuple[str, int]]:
        """Return for each group of files its process: a key, and the process id that its calls bear (-1: any)."""
        launching = sorted(
            {table.group for table in self.tables if table.kind in ("kernel_trace", "memory_copy_trace")}
        )
        processes = {
            group: self._group_process(group) for group in launching or sorted({table.group for table in self.tables})
        }
        if not launching:
            return self._passes(processes)
        processes = of_traces(processes)
        self.sink.issues.add("executions_in_turn", len(processes) - len({key for key, _ in processes.values()}))
        others = sorted(
            {table.group for table in self.tables} - processes.keys()
        )  # another execution of the same program
        paired = len(others) == len(launching)
        return processes | {group: processes[launching[number if paired else 0]] for number, group in enumerate(others)}

    def _group_process(self, group: Group) -> tuple[str, int]:
        """Return the key and the process id of a group: the one of its calls, of several the one whose main thread
        launched.
        """
        tables = [table for table in self.tables if table.group == group]
        pids = {pid for table in tables if table.kind == "api_trace" for pid in self._first(table, "process")}
        threads = {
            thread for table in tables if table.kind == "kernel_trace" for thread in self._first(table, "thread")
        }
        pid = min(pids & threads or pids, default=-1)
        folder = "/".join(part for part in Path(group[0]).parts if not PASS.fullmatch(part))
        return f"{max(pid, 0):020d} {natural(f'{folder} {group[1]}')}", pid

    def _passes(self, groups: Iterable[Group]) -> dict[Group, tuple[str, int]]:
        """Return the processes of an export that has counters only."""
        words = by_words(groups)
        spans = {
            table.group: span_of(table.path, table.ours, self.options.source)
            for table in self.tables
            if len(words) > 1 and table.group in words and table.kind == "counter_collection"
        }
        return of_counters(groups, at_the_same_time(spans))

    def _ranks(self) -> dict[Group, int | None]:
        """Return the rank that each group's names state; numbers in names of passes of one process are no ranks."""
        groups = {table.group for table in self.tables}
        ranks = ranks_in_names(groups)
        for group, rank in ranks_in_names(self.traced).items():
            ranks[group] = rank if ranks[group] is None else ranks[group]
        ranks_of: dict[str, set[int]] = {}
        for group, rank in ranks.items():
            if rank is not None:
                ranks_of.setdefault(self.process_of[group][0], set()).add(rank)
        if any(len(numbers) > 1 for numbers in ranks_of.values()):
            return stated_ranks(groups)
        self.sink.processes.by_numbers = ranks != stated_ranks(groups)
        return ranks

    def _first(self, table: TraceFile, column: str) -> set[int]:
        """Return a column's value in a file's first row, as a set of none or one."""
        if column not in table.ours:
            return set()
        with CsvFile(table.path, table.label, self.options.source, type(self.sink.issues)()) as file:
            batch = next(file.batches(), None)
            value = batch.integers(table.ours[column])[0] if batch is not None else NULL
        return set() if value == NULL else {int(value)}

    def _process(self, table: TraceFile, batch: CsvBatch) -> np.ndarray:
        """Return process codes: by the trace's own id of a process (`rocpd convert`), else the group's."""
        key, pid = self.process_of[table.group]
        rank = self.rank_of[table.group]
        if "guid" in table.ours:
            guids = batch.texts(table.ours["guid"])
            codes = {guid: self.sink.processes.code(f"{guid}") for guid in dict.fromkeys(guids)}
            return np.array([codes[guid] for guid in guids], np.int64)
        own = self.sink.processes.code(key, rank)
        if pid < 0 or "process" not in table.ours or table.kind == "counter_collection":
            return np.full(len(batch), own)
        pids = batch.integers(table.ours["process"])
        return mapped(pids, lambda number: own if number in (pid, NULL) else self.sink.processes.code(f"{number:020d}"))

    # tables

    def _agents(self, table: TraceFile, batch: CsvBatch) -> None:
        kinds = batch.texts(table.ours["kind"])
        names = batch.texts(table.ours.get("name", ""))
        columns = {
            name: batch.integers(table.ours.get(name, ""))
            for name in ("device", "node", "multiprocessors", "clock_mhz")
        }
        for row, kind in enumerate(kinds):
            device = int(columns["device"][row] if columns["device"][row] != NULL else columns["node"][row])
            if kind == "GPU":
                among_gpus = self.gpus[table.label] = self.gpus.get(table.label, -1) + 1
                if 0 <= device < 1 << 16:
                    units, clock = (int(columns[name][row]) for name in ("multiprocessors", "clock_mhz"))
                    self.agents.append((device, among_gpus, device_facts(names[row], units, clock)))

    def _launch_columns(self, table: TraceFile, batch: CsvBatch) -> dict[str, np.ndarray]:
        """Return the columns of launches under our names."""
        columns = {
            name: batch.integers(table.ours[name])
            for name in ("number", "thread", "correlation", "queue_id", *LAUNCH_SHAPE)
            if name in table.ours
        }
        columns["kernel"] = self.events.kernels(batch.texts(table.ours["name"]))
        columns["process"] = self._process(table, batch)
        absent = np.full(len(batch), NULL)
        stream = batch.integers(table.ours["stream"]) if "stream" in table.ours else absent
        columns |= self.events.stream_or_queue(stream, columns.get("queue_id", absent))
        if "device" in table.ours:
            texts = batch.texts(table.ours["device"])
            columns["device"] = agents(texts)
            # `--agent-index type-relative`: GPU 0, where the others write Agent 2 behind two processors
            self.by_type |= any(text.upper().startswith("GPU") for text in set(texts))
        else:
            columns["device"] = np.zeros(len(batch), np.int64)
            self.sink.issues.add("device_assumed", 1, table.label)
        return columns

    def _launches(self, table: TraceFile, batch: CsvBatch) -> None:
        columns = self._launch_columns(table, batch)
        if "number" in columns:
            self.events.dispatches(table.label, columns["process"], columns["number"])
        columns["start"], columns["stop"], rounded = batch.times(table.ours["start"], table.ours["stop"])
        self.events.rounded += int(rounded.sum())
        columns = {name: column[~rounded] for name, column in columns.items()}
        self.events.launches(columns)

    def _copies(self, table: TraceFile, batch: CsvBatch) -> None:
        columns: dict[str, np.ndarray] = {
            name: batch.integers(table.ours[name]) for name in ("stream", "correlation", "bytes") if name in table.ours
        }
        columns |= {name: batch.nanoseconds(table.ours[name]) for name in ("start", "stop")}
        columns["process"] = self._process(table, batch)
        source, target = (agents(batch.texts(table.ours.get(end, ""))) for end in ("source", "target"))
        self.events.copies(columns, batch.texts(table.ours["direction"]), source, target)

    def _calls(self, table: TraceFile, batch: CsvBatch) -> None:
        columns: dict[str, np.ndarray] = {
            name: batch.integers(table.ours[name]) for name in ("thread", "correlation") if name in table.ours
        }
        columns |= {name: batch.nanoseconds(table.ours[name]) for name in ("start", "stop")}
        columns["process"] = self._process(table, batch)
        names = batch.texts(table.ours["name"])
        marker = np.array(
            [domain.upper().startswith(self.rules["markers"]) for domain in batch.texts(table.ours["domain"])], bool
        )
        self.events.calls_and_ranges(columns, names, ~marker, marker)

    def _counters(self, table: TraceFile, file: CsvFile) -> None:
        """Take the counters of launches, of which each has a row."""
        if "start" not in table.ours:  # 2024; a name that is a process id is of one execution
            self.store.same_run |= table.group[1].isdecimal() and table.group in self.traced
        renamed = {name: f"{_pass_of(table)} {name}" for name in self.per_pass}
        key = [table.ours[name] for name in ("guid", "process", "number") if name in table.ours] or [table.ours["name"]]
        counted: set[str] = set()
        for batch in file.batches():
            launches, measured = by_launch(batch, (table.ours["counter"], table.ours["value"]), key, renamed)
            counted.update(name for launch in measured for name, _ in launch)
            self._take(table, launches, measured)
        before = self.counted.setdefault(self.process_of[table.group][0], set())
        self.sink.issues.add("repeated_run", int(bool(counted) and counted <= before), table.label)
        before |= counted

    def _take(self, table: TraceFile, batch: CsvBatch, measured: Measured) -> None:
        columns = self._launch_columns(table, batch)
        if {"start", "stop"} <= table.ours.keys():
            start, stop, rounded = batch.times(table.ours["start"], table.ours["stop"])
            columns["start"], columns["stop"] = checked(self.sink, start, stop, rounded)
            self.events.rounded += int(rounded.sum())
        take_measured(self.store, columns, batch, measured)

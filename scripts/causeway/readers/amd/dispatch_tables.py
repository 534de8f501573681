"""Dispatch tables of rocprof v1 and rocprofiler-compute: one row per launch, with times, counters or both, in one file
or several passes.

A folder's timing run gives the launches, its other files the counters; without a timing run, the passes' own times give
the launches. Timing runs of several processes at the same time are those of one job.
"""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from causeway.core.errors import ExportError
from causeway.readers.amd.counter_passes import by_launch, checked, take_measured
from causeway.readers.amd.executions import at_the_same_time, of_files, span_of
from causeway.readers.amd.kern_table import KERN, KernSource
from causeway.readers.amd.trace_events import AmdReader
from causeway.readers.common.constants import NULL, SIGNALS
from causeway.readers.common.options import Options
from causeway.readers.containers.csv_batches import CsvFile, header_of
from causeway.readers.containers.sqlite_database import SqliteExport
from causeway.readers.containers.sqlite_names import is_database
from causeway.readers.sink.sink import Sink

TORN_NS = 1 << 32
"""What the upper half of a stamp counts, ns: shorter durations that outlast their clock are counted from the run."""
OTHER_CLOCK_NS = 1_000_000
"""Times further than this outside dispatch to completion are of another clock or execution; signals are noted within
microseconds.
"""

ADVICE = "Profile again, or name the folder that holds the timing run beside the counter passes."


class Pass:
    """One file: its columns under our names, its counters, and whether it has times.

    Attributes
    ----------
    ours : dict of str to str
        Our name -> the file's column.
    counters : list of str
        Columns that are counters.
    pairs : tuple of str, or None
        The columns of a counter's name and value, where each counter of a launch has a row of its own.
    again : dict of int to dict of str to str
        Of each later pass in the same file, by its number: column -> counter.
    merged : bool
        Whether its rows hold several executions of the program.
    timed : bool
        Whether it has starts and ends.
    process : str or None
        The column of the process id, also where passes of one process differ in it.
    """

    def __init__(self, path: Path, columns: Sequence[str], rules: dict) -> None:
        self.path = path
        self.ours: dict[str, str] = {}
        for raw in columns:
            if raw in rules["columns"]:
                self.ours.setdefault(rules["columns"][raw], raw)
        present = set(columns)
        real = set(rules.get("real_names", []))
        no_counters = {*rules["columns"], *rules["not_counters"]}
        self.counters: list[str] = []
        self.again: dict[int, dict[str, str]] = {}
        self.merged = False
        for raw in dict.fromkeys(columns):
            match = re.fullmatch(r"(.+)_(\d{1,6})", raw)
            repeats = match[1] if match and match[1] in present and raw not in real else None
            if raw in no_counters or repeats in no_counters:
                self.merged |= repeats in no_counters
            elif match and repeats:
                self.again.setdefault(int(match[2]), {})[raw] = repeats
            elif raw:
                self.counters.append(raw)
        self.pairs = (self.ours.pop("counter"), self.ours.pop("value")) if "counter" in self.ours else None
        if self.pairs:
            self.counters = []
            self.again = {}
        self.timed = {"start", "stop"} <= self.ours.keys()
        self.process = next((raw for raw in columns if raw.lower() == "pid"), None)

    @property
    def counts(self) -> bool:
        """Whether it has counters of its launches."""
        return bool(self.counters or self.pairs)


class PassReader(AmdReader):
    """The reader of the files of one export."""

    def __init__(self, form: str, sink: Sink, options: Options) -> None:
        super().__init__(sink, options, form)
        self.store.times_tell = False  # rocprofiler-compute gives counters the times of its timing run
        self.rounded = self.other_clock = self.torn = 0
        self.together: set[str] = set()

    def columns_of(self, path: Path) -> list[str]:
        """Return a file's columns, [] if it is not of this form."""
        if is_database(path):
            try:
                export = SqliteExport(path, self.options.source)
            except ExportError:
                return []
            columns = export.tables.get(KERN, [])
            export.close()
        else:
            columns = header_of(path)
        return columns if set(self.rules["required"]) <= set(columns) else []

    def read(self, files: list[tuple[Path, str]]) -> None:
        """Read files, given with their labels; the first timing run, of each process, gives the launches.

        Raises
        ------
        ExportError
            If nothing was measured in them, or one is cut; what stands before the cut stays.
        """
        passes = [
            (Pass(path, columns, self.rules), label) for path, label in files if (columns := self.columns_of(path))
        ]
        self.qualified = {
            name
            for name in self.rules.get("per_pass", [])
            if sum(name in table.counters or table.pairs is not None for table, _ in passes) > 1
        }
        self.firsts = self._first_processes(passes)
        timing = None
        for table, label in passes:
            if not table.timed or table.counts:
                continue
            if timing is not None and not {timing, label} <= self.together:
                self.sink.issues.add("second_run", 1, label)
                continue
            before = self.sink.n_launches
            self._file(table, label, counters=any(other.counts for other, _ in passes))
            timing = timing or (label if self.sink.n_launches > before else None)
        for table, label in passes:
            if table.counts or table.again:
                self._file(table, label, counters=True)
        self.store.hand_over()
        self.sink.issues.add("rounded_times", self.rounded, self.rules["duration"])
        self.sink.issues.add("other_clock", self.other_clock)
        # without counters nothing is left of such a launch
        self.sink.issues.add("torn_times" if self.sink.has_counters else "implausible_time", self.torn)
        if self.failure:
            raise self.failure
        if not (self.sink.n_launches or self.sink.has_counters):
            raise self._nothing(passes)

    def _first_processes(self, passes: list[tuple[Pass, str]]) -> dict[str, int]:
        """Return the number of the first process of each file with counters; 0 of passes of one process, which all
        count from it. Files of different processes that were written at the same time are those of one job.
        """
        files = {label: table for table, label in passes if table.counts}
        runs = {label: table for table, label in passes if table.timed and not table.counts}
        if runs and files:
            return {}
        process_of = self._of_files(runs or files, by_run=bool(runs))
        for number, rank in sorted(process_of.values(), key=lambda pair: pair[0]):
            self.sink.processes.code(number, rank)
        return {label: number for label, (number, _) in process_of.items()}

    def _of_files(self, files: dict[str, Pass], by_run: bool) -> dict[str, tuple[int, int | None]]:
        """Return the process and rank of files that were written at the same time as others; of timing runs those of
        the execution to which the first belongs, whose labels are `together`.
        """
        if len(files) < 2 or any(is_database(table.path) for table in files.values()):
            return {}
        without = self.rules.get("not_in_rows", ())
        spans = {}
        for label, table in files.items():
            ours = table.ours | ({"process": table.process} if by_run and table.process else {})
            spans[label] = span_of(table.path, ours, self.options.source, without)
        if by_run:
            first = next(iter(files))
            self.together = {label for labels in at_the_same_time(spans) if first in labels for label in labels}
            spans = {label: span for label, span in spans.items() if label in self.together}
        return of_files(spans)

    def _nothing(self, passes: list[tuple[Pass, str]]) -> ExportError:
        if self.rounded:
            problem = (
                f"the times of its {self.rounded} launches were saved rounded (like 1.62068E+14), and it has no"
                " counters"
            )
        elif any(table.timed for table, _ in passes):
            problem = "it has a header but no launch with usable times"
        else:
            problem = "it lists launches without times and without counters"
        return ExportError(
            self.options.source, problem, "start and end times in ns, or counters, for each launch", ADVICE
        )

    def _open(self, table: Pass, label: str) -> CsvFile | KernSource:
        if is_database(table.path):
            return KernSource(table.path, label, self.sink, self.options, self.rules["columns"])
        return CsvFile(
            table.path,
            label,
            self.options.source,
            self.sink.issues,
            lambda done: self.progress.at(self.done + done),
            without=self.rules.get("not_in_rows", ()),
        )

    def _file(self, table: Pass, label: str, counters: bool) -> None:
        """Read one file: a timing run, or a pass with counters."""
        processes: dict[int, int] = {}
        rounded = outside = torn = 0  # the same launches in every pass: the most of any pass counts
        stem = table.path.name.partition(".")[0]
        renamed = {name: f"{stem} {name}" for name in self.qualified}
        names = [renamed.get(name, name) for name in table.counters]
        with self._open(table, label) as file:
            facts = [name for name in file.position if name not in (table.pairs or ())]
            for rows in file.batches():
                batch, measured = by_launch(rows, table.pairs, facts, renamed) if table.pairs else (rows, None)
                columns = self._launch_columns(table, batch, processes, label)
                if table.timed:
                    columns["start"], columns["stop"], columns["rounded"] = batch.times(
                        table.ours["start"], table.ours["stop"]
                    )
                    rounded += int(columns["rounded"].sum())
                    torn += self._without_torn(columns)
                    outside += self._queue(columns)
                if table.counts or table.again:
                    self._counters(table, batch, columns, names, measured)
                else:
                    self._launches(columns, counters)
            self.sink.count_in(label, file.rows)
            self.failure = self.failure or file.failure
        self.rounded = max(self.rounded, rounded)
        self.other_clock = max(self.other_clock, outside)
        self.torn = max(self.torn, torn)
        self.done += table.path.stat().st_size

    def _launch_columns(self, table: Pass, batch, processes: dict[int, int], label: str) -> dict[str, np.ndarray]:
        """Return a batch's columns under our names: launch number, kernel, process, times and launch configuration."""
        sink = self.sink
        issues = self.sink.issues
        names = batch.texts(table.ours["name"])
        others = {"name", "start", "stop", *SIGNALS}
        columns = {ours: batch.integers(raw) for ours, raw in table.ours.items() if ours not in others}
        for signal in table.ours.keys() & SIGNALS:  # rocprofv2 notes neither, and writes 0
            noted = batch.nanoseconds(table.ours[signal])
            columns[signal] = np.where(noted == 0, NULL, noted)
        columns["kernel"] = self.events.kernels(names, label)
        pids = columns.get("process", np.zeros(len(names), np.int64))
        for pid in dict.fromkeys(pids.tolist()):
            processes.setdefault(pid, sink.processes.code(self.firsts.get(label, 0) + len(processes)))
        columns["process"] = np.array([processes[pid] for pid in pids.tolist()], np.int64)
        if "device" not in columns:
            issues.add("device_assumed", 1, label)
            columns["device"] = np.zeros(len(names), np.int64)
        return columns

    def _without_torn(self, columns: dict[str, np.ndarray]) -> int:
        """Take away times of launches that outlast what their clock, which runs from the host's start, counts before,
        and half a stamp; return how many there are.
        """
        start = columns["start"]
        stop = columns["stop"]
        has_both = (start != NULL) & (stop != NULL) & bool(self.rules.get("since_boot"))
        torn = has_both & (stop - start > np.maximum(start, TORN_NS))
        for name in ("start", "stop"):
            columns[name] = np.where(torn, NULL, columns[name])
        columns["rounded"] = columns["rounded"] | torn  # both are counted elsewhere, not as rows without a time
        return int(torn.sum())

    @staticmethod
    def _queue(columns: dict[str, np.ndarray]) -> int:
        """Add the queue delay, from the dispatch of a launch to its begin; return how many launches have times of
        another clock.
        """
        absent = np.full(len(columns["start"]), NULL)
        dispatched, completed, start, stop = (
            columns.get(name, absent) for name in ("dispatched", "completed", "start", "stop")
        )
        timed = (start != NULL) & (stop != NULL)
        known_dispatch = timed & (dispatched != NULL)
        outside = known_dispatch & (start < np.where(known_dispatch, dispatched, 0) - OTHER_CLOCK_NS)
        known_end = timed & (completed != NULL)
        outside |= known_end & (stop > np.where(known_end, completed, 0) + OTHER_CLOCK_NS)
        known_dispatch &= ~outside & (start >= dispatched)
        columns["queue"] = np.where(known_dispatch, start - np.where(known_dispatch, dispatched, 0), NULL)
        return int(outside.sum())

    def _launches(self, columns: dict[str, np.ndarray], counters: bool) -> None:
        kept = ~columns["rounded"]
        columns = {name: column[kept] for name, column in columns.items()}
        times = {"start_ns": columns["start"], "end_ns": columns["stop"], "queue_ns": columns["queue"]}
        of_sink = {name: column for name, column in columns.items() if name != "correlation"}
        self.sink.launches({**of_sink, **times, "in_queue": True})
        if counters:
            self.store.launches(columns)

    def _counters(
        self,
        table: Pass,
        batch,
        columns: dict[str, np.ndarray],
        names: list[str],
        measured: list[list[tuple[str, str]]] | None,
    ) -> None:
        if table.timed:
            columns["start"], columns["stop"] = checked(
                self.sink, columns["start"], columns["stop"], columns["rounded"]
            )
        if measured is not None:
            take_measured(self.store, columns, batch, measured)
            return
        self.store.take(columns, self.store.layout(names), batch.floats(table.counters))
        for again in table.again.values():
            self.store.take(columns, self.store.layout(list(again.values())), batch.floats(list(again)))
        self.store.several |= table.merged  # counters of several runs of the program in one row

"""Writing the star schema: facts in start order with final numbers, then the dimensions they refer to.

Kernels and configurations are numbered in order of first appearance in the launches (then the counters), so that the
same run read from two formats gives equal tables.
"""

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from causeway.core.codes import COMMUNICATION_KERNEL, MIGRATIONS, SYNCHRONISATIONS
from causeway.core.tables import LAUNCH_SHAPE, SCHEMAS, open_table
from causeway.readers.common.constants import NULL
from causeway.readers.common.kernel_names import kernel_class, says_communication
from causeway.readers.common.operators import OPERATOR
from causeway.readers.sink.batches import EventBatch, is_repeated, looked_up
from causeway.readers.sink.distinct import RepeatedRows, distinct, distinct_keys
from causeway.readers.sink.event_times import RecordingDigest
from causeway.readers.sink.joins import OpenRanges, WorkCalls, pieces_in_order
from causeway.readers.sink.launch_operators import CommunicationRanges, LaunchOperators, OperatorNumbers
from causeway.readers.sink.records import RECORDS, CounterRows, GridsInBlocks
from causeway.readers.sink.sink import Facts, Sink
from causeway.readers.sink.stream_order import Cuts, StreamOrder
from causeway.readers.sink.table_columns import FinalNumbers, call_columns, event_columns, kernel_table, nullable

_LAUNCHING = re.compile(r"Launch(?:Cooperative)?Kernel|ModuleLaunch|^cu(?:da)?Launch$")
"""Calls that launch one kernel each, of CUDA and HIP."""
TEXTS: dict[str, dict[str, Callable[[Sink], Sequence[str | None]]]] = {
    "calls": {"name": lambda sink: sink.call_names.texts},
    "ranges": {"name": lambda sink: sink.range_names.texts, "kind": lambda sink: sink.range_kinds.texts},
    "host_operators": {"name": lambda sink: sink.operator_names.names.texts},
    "mpi": {"name": lambda sink: sink.mpi_names.texts},
    "system_calls": {"name": lambda sink: sink.system_call_names.texts},
    "python_functions": {"name": lambda sink: sink.function_names.texts},
    "cpu_samples": {"name": lambda sink: sink.sampled_names.texts},
    "collectives": {
        "name": lambda sink: sink.collective_names.texts,
        "communicator": lambda sink: [*sink.communicators.texts, None],
    },
    "dependencies": {"kind": lambda _: SYNCHRONISATIONS},
    "samples": {"metric": lambda sink: sink.metrics.texts},
}
"""Of columns of tables that are codes in events, the text of each code."""
OF_DEVICES = frozenset({"launches", "transfers", "graphs", "collectives"})
"""Events of a GPU, of which several may begin in one tick of a coarse clock; a thread of the host has one at a time."""


def write_star(sink: Sink) -> Facts:
    """Order, join and write everything that a sink took; return what `capabilities.json` needs to know."""
    sink.note_at_end()
    StarWriter(sink).write()
    return sink.facts


class StarWriter:
    """Write a sink's events as tables, each fact once, in one pass over the ordered events."""

    def __init__(self, sink: Sink) -> None:
        self.sink = sink
        self.facts = sink.facts
        self.configurations = FinalNumbers(len(sink.configurations.rows))
        self.rank, self.facts.ranks_from = sink.processes.ranks(sink.sheet_rank, sink.position, sink.issues)
        self.used_devices: set[tuple[int, ...]] = set()  # (process, device)
        self.used_processes: set[int] = set()
        self.stream_order = StreamOrder(sink.queues, sink.issues, sink.assumed_streams)
        self.cuts = Cuts()
        tick_ns = None if sink.issues.count("stream_assumed") else sink.coarse_tick_ns()
        # equal times of clocks that differ are not the same time; samples are averaged, and need no such care
        is_one_clock = not sink.issues.count("differing_clocks")
        self._repeated = {
            kind: RepeatedRows(tick_ns if kind in OF_DEVICES else 0)
            for kind in RECORDS
            if is_one_clock and kind not in ("samples", "python_functions")
        }
        self._near = sink.near_most
        self.digest = RecordingDigest()
        # places, in the order of all launches, of those that are repeated, or of processes that are no rank
        self.launches_left_out: list[np.ndarray] = []
        self._of_others: tuple[int, int] | None = None  # first start and last end of transfers and whole graphs
        # processes with ranges or samples only: ranks of an export without any launch or transfer
        self.other_processes: set[int] = set()
        # kernels that ranges around their launches call communication, by code
        self.communicating: set[int] = set()
        self.computing = 0  # kernels with launches, where none of them is communication

    def write(self) -> None:
        """Write every table that has rows."""
        with _RangesAndCalls(self) as joined:
            self._write_work(joined.work_calls, joined.operators)
            joined.work_calls.drain()
            joined.operators.close()
            joined.open_ranges.drain()
            joined.drain_operators()
            self._check(joined.work_calls.unanswered)
        sink = self.sink
        for kind in (
            "samples",
            "mpi",
            "collectives",
            "system_calls",
            "cpu_samples",
            "python_functions",
            "dependencies",
        ):
            self._write_events(kind)
        repeated_rows = {kind: rows.count for kind, rows in self._repeated.items() if rows.count}
        named = ", ".join(f"{kind.replace('_', ' ')} ({count:,})" for kind, count in repeated_rows.items())
        sink.issues.add("repeated_events", sum(repeated_rows.values()), named)
        self._write_counters()
        self._write_dimensions()
        used = self.used_processes or self.other_processes
        self.facts.ranks = sorted({int(self.rank[process]) for process in used if self.rank[process] >= 0})
        of_several = (sink.processes.world_size or 1) > 1
        if of_several and self.computing and not {"mpi", "collectives"} & self.facts.tables.keys():
            sink.issues.add("no_communication", self.computing)
        keys = [self.sink.processes.keys[process] for process in self.used_processes]
        self.facts.recording = self.digest.text(key for key in keys if isinstance(key, int))

    def _check(self, unanswered: int) -> None:
        """Count the issues that only all launches show, and streams by rank; write when the profiler was at work."""
        issues = self.sink.issues
        facts = self.facts
        if facts.queue_known:
            issues.add("calls_without_launch", unanswered)
        self.stream_order.report()
        for process, count in self.stream_order.count().items():
            rank = int(self.rank[process])
            facts.streams[rank] = facts.streams.get(rank, 0) + count
        ranks = {code: int(self.rank[code]) for code in self.sink.processes.working if self.rank[code] >= 0}
        self.sink.overhead.settle(ranks, facts.first_ns or 0, facts.last_ns or 0, issues)
        self._write_table("profiler_overhead", self.sink.overhead.table(ranks))
        self._write_table("other_contexts", self.sink.other_contexts.table(ranks, issues))

    def _of_ranks(self, rows: EventBatch) -> EventBatch:
        """Return the rows of processes that are ranks; count the others."""
        of_ranks = looked_up(self.rank, rows["process"]) >= 0
        if of_ranks.all():
            return rows
        self.sink.issues.add("other_processes", int((~of_ranks).sum()))
        return rows[of_ranks]

    def _span(self, start: np.ndarray, duration: np.ndarray | int, launches: bool) -> None:
        """Widen the export's span by events in order of their starts; other work counts where there are no launches."""
        first = int(start[0])
        last = int((start + duration).max())
        facts = self.facts
        if launches or facts.first_ns is None:
            facts.first_ns = first if facts.first_ns is None else min(facts.first_ns, first)
        facts.last_ns = last if facts.last_ns is None else max(facts.last_ns, last)
        facts.has_start = True

    def _note_devices(self, process: np.ndarray, device: np.ndarray) -> None:
        keys, _ = distinct_keys([process, device])
        self.used_processes.update(code for code, _ in keys)
        self.used_devices.update(keys)

    def _events(self, kind: str) -> Iterator[EventBatch]:
        """Give the events of a kind in order, each once."""
        for block in self.sink.events(kind):
            out = self._out(kind, block)
            yield block[~out] if out.any() else block

    def _events_of_ranks(self, kind: str) -> Iterator[EventBatch]:
        """Likewise of the processes that are ranks; no block without rows."""
        return (rows for block in self._events(kind) if len(rows := self._of_ranks(block)))

    def _out(self, kind: str, block: EventBatch) -> np.ndarray:
        """Return which of the next events of a kind, n of them, stood there before, or are far from most launches;
        bool, shape (n,).
        """
        out = self._repeated[kind].find(block) if kind in self._repeated else np.zeros(len(block), bool)
        if self._near:
            far = ~out & ((block["start_ns"] < self._near[0]) | (block["start_ns"] > self._near[1]))
            self.sink.issues.add("implausible_time", int(far.sum()), of_launches=kind == "launches")
            out = out | far
        return out

    def _write_work(self, calls: WorkCalls, operators: LaunchOperators) -> None:
        """Write launches, transfers and graphs, each row with the call that made it, in one pass over all of them."""
        launches = _Launches(self, operators)
        columns_of = {"launches": launches.columns, **dict.fromkeys(("transfers", "graphs"), self._other_columns)}
        blocks = {"launches": launches.blocks(), **{kind: self._events(kind) for kind in ("transfers", "graphs")}}
        kinds = [kind for kind in columns_of if self.sink.count_of(kind)]
        find = calls.find if self.sink.count_of("calls") else calls.unknown
        with contextlib.ExitStack() as stack:
            writers = {kind: stack.enter_context(self.sink.writer(kind)) for kind in kinds}
            for index, block in pieces_in_order([blocks[kind] for kind in kinds]):
                rows = self._of_ranks(block)
                if len(rows):
                    call = find(rows)
                    columns = columns_of[kinds[index]](kinds[index], rows, call) | call_columns(call)
                    writers[kinds[index]].write(self.table(kinds[index], rows, columns))
            self.facts.tables |= {kind: writer.rows for kind, writer in writers.items()}
        if "launches" in kinds:
            self._cut_overruns()
            launches.finish()
        if self._of_others:
            first, last = self._of_others
            self._span(np.array([first]), last - first, launches=False)

    def _cut_overruns(self) -> None:
        """Cut launches that run over their successors, in the table that was just written."""
        impossible = self.stream_order.impossible()
        streams = {(int(self.rank[process]), device, stream) for process, device, stream in impossible}
        if not streams:
            return
        path = self.sink.folder / "launches.parquet"
        self.cuts = Cuts.of(path, streams, self.sink.unsure_ns)
        with open_table(path, "launches") as file, self.sink.writer("launches") as writer:
            row = 0
            for group in range(file.num_row_groups):
                table = file.read_row_group(group)
                writer.write(self.cuts.applied(table, row))
                row += table.num_rows
        self.facts.last_ns = self.cuts.last_ns
        cut = f"{self.cuts.total_ns / 1e6:,.3f} ms were cut off, at most {self.cuts.longest_ns / 1e6:,.3f} ms of one"
        self.sink.issues.add("outlasting", self.cuts.count, cut)

    def _write_table(self, name: str, table: pa.Table) -> None:
        if table.num_rows:
            with self.sink.writer(name) as writer:
                writer.write(table)
            self.facts.tables[name] = table.num_rows

    def table(self, kind: str, rows: EventBatch, more: Mapping[str, Any]) -> pa.Table:
        """Return n > 0 events of a kind as a table, with the columns that they have and more, which count instead."""
        texts = {column: vocabulary(self.sink) for column, vocabulary in TEXTS.get(kind, {}).items()}
        rank = looked_up(self.rank, rows["process"])
        return pa.table({"rank": rank, **event_columns(kind, rows, texts), **more})

    def _write_events(self, kind: str) -> None:
        """Write the events of a kind, block by block."""
        if not self.sink.count_of(kind):
            return
        with self.sink.writer(kind) as writer:
            for rows in self._events_of_ranks(kind):
                more = {}
                if kind == "samples":
                    self.other_processes.update(distinct(rows["process"])[0].tolist())
                    more = {"time_ns": rows["start_ns"]}
                elif kind == "collectives":
                    more = {"duration_ns": self.cuts.durations(looked_up(self.rank, rows["process"]), rows)}
                writer.write(self.table(kind, rows, more))
            self.facts.tables[kind] = writer.rows

    def _other_columns(self, kind: str, rows: EventBatch, _: dict[str, np.ndarray]) -> dict[str, Any]:
        """Note transfers and graphs; return no columns beside those that they have."""
        self._note_others(rows)
        if kind == "transfers":
            self.facts.migrations += int(np.isin(rows["copy_kind"], MIGRATIONS).sum())
        return {}

    def _note_others(self, rows: EventBatch) -> None:
        """Note the times and devices of work other than launches, the next rows of its kind in order."""
        start = rows["start_ns"]
        first, last = self._of_others or (int(start[0]), 0)
        self._of_others = min(first, int(start[0])), max(last, int((start + rows["duration_ns"]).max()))
        self._note_devices(rows["process"], rows["device"])

    def _write_counters(self) -> None:
        if not self.sink.has_counters:
            return
        fields, batches = self.sink.counter_rows()
        with self.sink.writer("counters", fields) as writer:
            for rows in batches:
                if len((rows := self._counted_of_ranks(rows)).kernel):
                    writer.write(self._counter_table(rows, fields, writer.rows))
            self.facts.tables["counters"] = writer.rows
        for column in fields:
            metadata = column.metadata or {}
            if not pa.types.is_string(column.type):
                self.facts.values[column.name] = metadata.get(b"unit", b"").decode()

    def _counted_of_ranks(self, rows: CounterRows) -> CounterRows:
        """Return the rows of processes that are ranks, with their places among the launches that are left; count the
        others.
        """
        of_ranks = np.broadcast_to(self.rank[rows.process] >= 0, len(rows.kernel))
        if not of_ranks.all():
            self.sink.issues.add("other_processes", int((~of_ranks).sum()))
            rows = rows.where(of_ranks)
        if self.launches_left_out and rows.launch is not None:
            # of a repeated launch, the one before it that is left
            before = np.searchsorted(np.concatenate(self.launches_left_out), rows.launch, side="right")
            rows = replace(rows, launch=rows.launch - before)
        return rows

    def _counter_table(self, rows: CounterRows, fields: list[pa.Field], first: int) -> pa.Table:
        n = len(rows.kernel)
        process = np.broadcast_to(np.asarray(rows.process, np.int64), n)
        device = (
            np.full(n, NULL)
            if rows.device is None
            else np.where((rows.device < 0) | (rows.device > 0xFFFF), NULL, rows.device)
        )
        self._note_devices(process[device != NULL], device[device != NULL])
        self.used_processes.update(np.unique(process).tolist())
        columns = {
            "launch": np.arange(first, first + n) if rows.launch is None else rows.launch,
            "start_ns": pa.nulls(n, pa.int64()) if rows.start_ns is None else nullable(rows.start_ns, pa.int64()),
            "configuration": self.configurations.of(self.sink.counter_codes(rows)),
            "rank": self.rank[process],
            "device": nullable(device, pa.uint16()),
        }
        if rows.start_ns is not None and len(start := rows.start_ns[rows.start_ns != NULL]):
            self._span(start, 0, launches=True)
        for column in fields:
            values = rows.values[column.name]
            if isinstance(values, np.ndarray):
                values = pa.array(values, mask=~np.isfinite(values))
            columns[column.name] = values
        return pa.table(columns)

    def _write_dimensions(self) -> None:
        self._write_devices()  # of transfers as well, where an export has no launches
        if not self.configurations.codes:
            return
        rows = [self.sink.configurations.rows[code] for code in self.configurations.codes]
        kernels = FinalNumbers(len(self.sink.kernels.texts))
        table = {
            "configuration": np.arange(len(rows)),
            "kernel": kernels.of(np.array([row[0] for row in rows])),
            "label": pa.array(
                [None if row[1] == NULL else self.sink.labels.texts[row[1]] for row in rows], pa.string()
            ),
        }
        shape = np.array([row[2:] for row in rows], np.int64)
        table |= {name: nullable(shape[:, index], pa.int64()) for index, name in enumerate(LAUNCH_SHAPE)}
        self._write_table("configurations", pa.table(table))
        names = [self.sink.kernels.texts[code] for code in kernels.codes]
        classes = [
            COMMUNICATION_KERNEL if code in self.communicating else kernel_class(name, self.sink.communication)
            for code, name in zip(kernels.codes, names, strict=True)
        ]
        self._write_table("kernels", kernel_table(names, classes))
        if self.facts.tables.get("launches") and COMMUNICATION_KERNEL not in classes:
            self.computing = len(classes)
        if (shape[:, [LAUNCH_SHAPE.index("grid_x"), LAUNCH_SHAPE.index("block_x")]] == NULL).all() and not any(
            row[1] != NULL for row in rows
        ):
            self.sink.issues.add("no_launch_configuration", len(rows))

    def _write_devices(self) -> None:
        facts_of: dict[tuple[int, int], dict[str, Any]] = {}
        for process, device in sorted(self.used_devices):
            facts_of.setdefault((int(self.rank[process]), device), {}).update(self.sink.device_facts(process, device))
        rows = [
            {"rank": rank, "device": device, **facts} for (rank, device), facts in sorted(facts_of.items()) if rank >= 0
        ]
        self._write_table("devices", pa.Table.from_pylist(rows, SCHEMAS["devices"]))


class _Launches:
    """Launches on their way into their table.

    Parameters
    ----------
    star : StarWriter
    operators : LaunchOperators
    """

    def __init__(self, star: StarWriter, operators: LaunchOperators) -> None:
        sink = star.sink
        self._star = star
        self._sink = sink
        self._early = self._without = 0
        self._numbers = OperatorNumbers(operators)
        self._ranged = self._communication_ranges(operators)
        is_mixed = not sink.work_item_calls.isdisjoint(sink.call_names.texts)
        self._grids = GridsInBlocks(sink.configurations, sink.issues, is_mixed)
        self._kernels = np.array([row[0] for row in sink.configurations.rows], np.int64)

    def _communication_ranges(self, operators: LaunchOperators) -> CommunicationRanges | None:
        """Return what finds kernels that ranges call communication; None where no range says so."""
        sink = self._sink
        names = (*sink.range_names.texts, *sink.operator_names.names.texts)
        if not sink.count_of("calls") or not any(map(says_communication, names)):
            return None
        classes = [kernel_class(name, sink.communication) for name in sink.kernels.texts]
        return CommunicationRanges(operators, [kind == COMMUNICATION_KERNEL for kind in classes])

    def blocks(self) -> Iterator[EventBatch]:
        """Give the launches of ranks in order, each once; note the places of the others."""
        star = self._star
        seen = 0
        for block in self._sink.events("launches"):
            out = star._out("launches", block)
            rows = star._of_ranks(block[~out] if out.any() else block)
            if len(rows) < len(block):
                out = np.flatnonzero(out | (looked_up(star.rank, block["process"]) < 0))
                star.launches_left_out.append(seen + out)
            seen += len(block)
            yield rows

    def columns(self, _: str, rows: EventBatch, call: dict[str, np.ndarray]) -> dict[str, Any]:
        """Return the columns of n > 0 rows beside those that they have and those of their calls, `WorkCalls.find`'s."""
        star = self._star
        end = call["end"]
        queue = rows["queue_ns"]
        if not is_repeated(end):
            waited = np.where(end == NULL, NULL, rows["start_ns"] - end)
            self._early += int(((waited < 0) & (end != NULL)).sum())
            self._without += int((end == NULL).sum())
            queue = np.where(queue != NULL, queue, waited)
        elif self._sink.count_of("calls"):
            self._without += len(rows)
        if not is_repeated(queue) or queue[0] != NULL:
            queue = np.where(queue < 0, NULL, queue)
            star.facts.queue_known += int((queue != NULL).sum())
        star._span(rows["start_ns"], rows["duration_ns"], launches=True)
        star._note_devices(rows["process"], rows["device"])
        star.stream_order.take(rows, call["begin"], end)
        self._sink.other_contexts.note_launches(*(rows[name] for name in ("process", "device", "start_ns")))
        of_kernel = self._kernels[rows["configuration"]]
        if self._ranged is not None:
            self._ranged.take(rows, of_kernel, call["operator"])
        star.digest.take(rows["start_ns"], rows["duration_ns"], of_kernel, self._sink.kernels.texts)
        return {
            "configuration": star.configurations.of(self._grids.of(rows["configuration"], call["work_items"])),
            "queue_ns": nullable(queue, pa.int64()),
            "range": nullable(call["range"], pa.uint32()),
            **self._numbers.columns(call["operator"], call["inputs"]),
        }

    def finish(self) -> None:
        """Write the operators and shapes that launches refer to; count what was not found."""
        star = self._star
        if self._ranged is not None:
            star.communicating = self._ranged.kernels()
        star._write_table("operators", self._numbers.operator_table())
        star._write_table("shapes", self._numbers.shape_table())
        issues = self._sink.issues
        issues.add("operators_left_out", self._numbers.lost)
        if self._sink.count_of("calls"):
            issues.add("started_before_call_returned", self._early)
            issues.add("no_launch_calls", self._without)


class _RangesAndCalls:
    """The ordered ranges and calls, written as they are read, and open for the joins that need them."""

    def __init__(self, star: StarWriter) -> None:
        self.star = star
        self.sink = star.sink
        self.writers: dict[str, Any] = {}

    def __enter__(self) -> "_RangesAndCalls":
        for table in ("ranges", "calls"):
            if self.sink.count_of(table):
                self.writers[table] = self.sink.writer(table)
        self.open_ranges = OpenRanges(self._ranges())
        launching = np.array([bool(_LAUNCHING.search(name)) for name in self.sink.call_names.texts], bool)
        operator_names = self.sink.operator_names
        texts = self.sink.range_names.texts
        own = bool(self.sink.count_of("operators"))
        self._of_operators = self._operators()
        self.operators = LaunchOperators(self._of_operators, operator_names, texts.__getitem__, not own)
        if "calls" not in self.writers:
            self.operators.close()
        work_items = np.array([name in self.sink.work_item_calls for name in self.sink.call_names.texts], bool)
        self.work_calls = WorkCalls(self._calls(), launching, work_items)
        return self

    def __exit__(self, *failure: object) -> None:
        for table, writer in self.writers.items():
            writer.__exit__(*failure)
            self.star.facts.tables[table] = writer.rows

    def _ranges(self) -> Iterator[EventBatch]:
        if "ranges" not in self.writers:
            return
        writer = self.writers["ranges"]
        for rows in self.star._events_of_ranks("ranges"):
            self.star.other_processes.update(distinct(rows["process"])[0].tolist())
            number = np.arange(writer.rows, writer.rows + len(rows))
            writer.write(self.star.table("ranges", rows, {"range": number}))
            self.operators.take(rows)
            yield rows

    def _calls(self) -> Iterator[tuple[EventBatch, *tuple[np.ndarray, ...]]]:
        if "calls" not in self.writers:
            return
        for rows in self.star._events_of_ranks("calls"):
            writer = self.writers["calls"]
            number = np.arange(writer.rows, writer.rows + len(rows))
            writer.write(self.star.table("calls", rows, {"call": number}))
            yield rows, number, self.open_ranges.find(rows), *self.operators.find(rows)

    def _operators(self) -> Iterator[EventBatch]:
        """Give operators and modules of the host, and write the operators."""
        for block in self.star._events("operators"):
            rows = self.star._of_ranks(block[block["flags"] & OPERATOR != 0])
            if len(rows):
                if "host_operators" not in self.writers:
                    self.writers["host_operators"] = self.sink.writer("host_operators")
                self.writers["host_operators"].write(self.star.table("host_operators", rows, {}))
            yield block

    def drain_operators(self) -> None:
        """Write the operators that no call asked for."""
        for _ in self._of_operators:
            pass

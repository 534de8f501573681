"""PyTorch Kineto traces (Chrome trace JSON): launches, copies, runtime calls, annotations and CUPTI range counters, of
one rank or several.

Microseconds with a fraction are read digit by digit to whole nanoseconds: as floating-point numbers they would be off
by up to a nanosecond after six weeks of uptime. Only categories, arguments and top-level keys of
`config/columns/kineto.yaml` are looked at.
"""

from pathlib import Path

import numpy as np

from causeway.core.codes import MEMSET_KIND
from causeway.core.errors import ExportError
from causeway.core.files.yaml_files import column_map
from causeway.core.schemas.launch_threads import BLOCKS, GRID
from causeway.numeric.process import collector_paused
from causeway.readers.common.constants import NEVER, NO_KIND, NULL
from causeway.readers.common.kernel_names import clean_text
from causeway.readers.common.numbers import integer
from causeway.readers.common.options import Options
from causeway.readers.containers.chrome_json import Event, TraceText
from causeway.readers.detect import detect
from causeway.readers.pytorch.call_sizes import CallSizes
from causeway.readers.pytorch.collective_arguments import take_collectives
from causeway.readers.pytorch.event_fields import (
    ArgumentDecoder,
    BegunEvents,
    CategoryEvents,
    ThreadNumbers,
    all_arguments,
    devices_of,
    format_version,
    grid_counts,
    launch_shape,
    mentioned,
    spans_ns,
    stated_rank,
    stated_size,
    times_ns,
)
from causeway.readers.pytorch.foreign_events import turn_foreign
from causeway.readers.pytorch.operator_events import (
    AS_WRITTEN,
    COMPILES,
    LEAST_FUNCTION_NS,
    MODULE_CALL,
    NOT_NAMED,
    OperatorCodes,
    are_annotations,
)
from causeway.readers.pytorch.range_counters import RangeCounters
from causeway.readers.pytorch.refusals import UnreadEvents, without_kernel
from causeway.readers.pytorch.synchronisation_events import kind_of, stream_or_event
from causeway.readers.pytorch.trace_processes import TraceProcesses
from causeway.readers.pytorch.transfer_names import copied, is_copy, memory_set
from causeway.readers.sink.sink import Sink

BATCH = 1 << 13
EPOCH_2001_NS = 978_307_200_000_000_000
MOST_CATEGORIES = 1 << 10

ARROWS = frozenset("stf")
PAIRED = ARROWS | frozenset("BE")
"""Phases of arrows between events; any other but X of a category that is read is an event without its duration."""


def probe(path: Path) -> bool:
    """Return whether the file is JSON, perhaps compressed, that begins like a trace."""
    return path.is_file() and detect(path) == "kineto"


@collector_paused()
def read(path: Path, sink: Sink, options: Options) -> None:
    """Read one trace.

    Raises
    ------
    ExportError
        If it is no trace, holds neither launches nor range counters, or is cut; the events before the cut are kept.
    """
    KinetoReader(path, sink, options).read()


class KinetoReader:
    """One pass over a trace."""

    def __init__(self, path: Path, sink: Sink, options: Options) -> None:
        self.path = path
        self.sink = sink
        self.options = options
        self.map = column_map("kineto")
        self.text = TraceText(path, set(self.map["top_level"]), options.progress().at)
        sink.at_close.callback(self.text.close)
        self.kinds: dict[str | None, str | None] = {}  # category as written -> what it gives
        self.processes = TraceProcesses(sink.processes, self.kinds)
        self.pending: dict[str, list[Event]] = {}
        self.flush = {kind: getattr(self, f"_{kind}") for kind in self.map["categories"].values()}
        self.arguments = ArgumentDecoder(self.map["arguments"])
        self.own_arguments = {
            kind: ArgumentDecoder(self.map[f"{kind[:-1]}_arguments"], as_text=AS_WRITTEN)
            for kind in ("operators", "synchronisations", "calls")
        }
        self.operator_codes = OperatorCodes(sink.operator_names)
        self.sizes = CallSizes(sink)
        self.range_counters = RangeCounters(options.source)
        self.threads = ThreadNumbers()
        self.seen: dict[str, int] = {}
        self.incomplete: dict[str, int] = {}
        self.begun = BegunEvents()
        self.ends: list[object] | None = None  # of the events that are taken, where they are events of their own

    def read(self) -> None:
        """Read all events and facts."""
        source = self.options.source
        try:
            self._events()
        except ValueError as error:
            problem = f"it is not a trace: {error}"
            raise ExportError(
                source, problem, 'JSON with "traceEvents"', "Name the .json or .json.gz file that the profiler wrote."
            ) from None
        self._take_pending()
        self._take_begun(is_end=True)
        for category, lost in self.begun.lost.items():
            self.incomplete[category.lower()] = self.incomplete.get(category.lower(), 0) + lost
        self.sizes.finish()
        for category, rows in self.seen.items():
            self.sink.count_in(category, rows)
        self._facts()
        if self.range_counters.rows:
            self.range_counters.hand_over(self.sink)
        self.text.note_issues(self.sink.issues)
        self.sink.issues.add("mixed_processes", int(self.processes.mixed))
        for category, rows in sorted(self.incomplete.items()):
            of_launches = self.map["categories"][category] == "launches"
            self.sink.issues.add("incomplete_events", rows, ", ".join(sorted(self.incomplete)), of_launches=of_launches)
        failure = None
        if self.text.cut:
            advice = "Copy it again; a killed program leaves a cut trace."
            failure = ExportError(source, self.text.cut, "a complete trace", advice)
        if not (self.sink.n_launches or self.range_counters.rows):
            categories = self.map["categories"]
            unread = UnreadEvents.of(self.path, {*categories, *map(str.lower, self.map["paddle_categories"])})
            unusable = self.sink.issues.left_out
            if failure or unusable or unread.on_device or not self.sink.n_transfers:
                raise failure or without_kernel(
                    source, self.text, unread, categories, self.kinds, self.seen, self.incomplete, unusable
                )
            self.sink.issues.add("no_launches")  # copies alone
        if failure:
            raise failure

    def _events(self) -> None:
        kinds = self.kinds
        documents = 1
        for events in self.text.events():
            if self.text.documents > documents:
                documents = self.text.documents
                self._take_pending()
                self._take_begun(is_end=True)
                self.processes.next_document(stated_rank(self.text.facts), stated_rank(self.text.own_facts))
            if len(kinds) > MOST_CATEGORIES:
                kinds.clear()
            turn_foreign(events, self.map["paddle_categories"])
            categories = {event.cat for event in events}
            for category in categories - kinds.keys():
                kinds[category] = self.map["categories"].get((category or "").lower())
            for part, is_last in self.processes.parts(events):
                self._sort(part)
                if is_last or any(len(rows) >= BATCH for rows in self.pending.values()):
                    self._take_pending()
            if any(event.ph in ("B", "E") for event in events):
                self.begun.take(events, lambda category: kinds.get(category) not in (None, "functions"))
                self._take_begun()

    def _take_begun(self, *, is_end: bool = False) -> None:
        """Take the events whose begin and end are two; where the trace ends, also the annotations without an end, of
        which the others are counted.
        """
        ended = self.begun.ended
        left = self.begun.left() if is_end else []
        self.begun.lost.update(event.cat or "" for event in left if self.kinds.get(event.cat) != "ranges")
        left = [event for event in left if self.kinds.get(event.cat) == "ranges"]
        for events, ends in (zip(*ended, strict=True) if ended else ((), ()), (left, [None] * len(left))):
            by_category: dict[str, list[int]] = {}
            for index, event in enumerate(events):
                by_category.setdefault(event.cat, []).append(index)
            for category, rows in by_category.items():
                self.ends = [ends[index] for index in rows]
                self._take(category, [events[index] for index in rows])
        self.ends = None
        ended.clear()

    def _take_pending(self) -> None:
        """Take the events that wait, calls first, which may state what those of the device lack."""
        for category in sorted(self.pending, key=lambda name: self.map["categories"][name.lower()] != "calls"):
            rows = self.pending[category]
            if rows:
                self._take(category, rows)
                rows.clear()

    def _sort(self, events: list[Event]) -> None:
        """Add events to those of their category that wait to be taken."""
        categories = [event.cat for event in events]
        # one pass over each category of the window: a loop over all events takes twice as long
        for category in sorted(category for category in set(categories) if category and self.kinds[category]):
            complete = [event for event in events if event.cat == category and event.ph == "X"]
            if len(complete) < categories.count(category):
                self._count_incomplete(category, events)
            if self.kinds[category] == "functions":
                start, end, _ = spans_ns(complete)
                long = (end - start >= LEAST_FUNCTION_NS).tolist()
                complete = [
                    event
                    for event, is_long in zip(complete, long, strict=True)
                    if isinstance(event.name, str) and (is_long or event.name.startswith(MODULE_CALL))
                ]
            if complete:
                self.pending.setdefault(category, []).extend(complete)

    def _count_incomplete(self, category: str, events: list[Event]) -> None:
        """Count events of a category that would last some time, had they been written as complete ones."""
        phases = [str(event.ph) for event in events if event.cat == category]
        passed = ARROWS if self.kinds[category] == "functions" else PAIRED
        count = sum(phase != "X" and phase not in passed for phase in phases)
        if count:
            category = category.lower()
            self.incomplete[category] = self.incomplete.get(category, 0) + count

    def _take(self, category: str, events: list[Event]) -> None:
        """Take events of one category."""
        category = category.lower()
        self.seen[category] = self.seen.get(category, 0) + len(events)
        kind = self.map["categories"][category]
        args = self.own_arguments.get(kind, self.arguments).decode(events)
        self.flush[kind](
            CategoryEvents(events, args, self.processes.codes(events, [arguments.rank for arguments in args]))
        )

    def _times(self, rows: CategoryEvents) -> tuple[np.ndarray, np.ndarray]:
        start, end, misfits = spans_ns(rows.events)
        if self.ends is not None:
            end, also = times_ns(self.ends)
            end = np.where([time is None for time in self.ends], NEVER, end)
            misfits = misfits + also
        self.sink.issues.add_all(misfits, "ts or dur")
        return start, end

    def _origin(self, rows: CategoryEvents) -> dict[str, np.ndarray]:
        """Return device, stream and correlation: by arguments (SYCL's queue is a stream), else by the trace's process,
        which is the device, and thread, which is the stream.
        """
        device = [
            event.pid if args.device is None else args.device
            for event, args in zip(rows.events, rows.args, strict=True)
        ]
        if -1 in device:  # of ONNX Runtime, which names none
            self.sink.issues.add("device_assumed", 1)
            device = [0 if number == -1 else number for number in device]
        stream = [
            next((number for number in (args.stream, args.queue) if number is not None), event.tid)
            for event, args in zip(rows.events, rows.args, strict=True)
        ]
        if str in set(map(type, stream)):
            stream = [s.removeprefix("stream ").strip() if isinstance(s, str) else s for s in stream]
        return {
            "device": self.sink.integers(device),
            "stream": self.sink.integers(stream),
            "correlation": self._correlations(rows),
        }

    def _correlations(self, rows: CategoryEvents) -> np.ndarray:
        """Return what links events to calls; none where events of several processes use the same numbers, and for 0,
        which AMD's tracer writes for an event whose call it does not know (roctracer 100).
        """
        numbers = [None if self.processes.mixed else args.correlation for args in rows.args]
        if None in numbers and not self.processes.mixed and hasattr(rows.args[0], "correlation_id"):  # PaddlePaddle's
            numbers = [args.correlation_id if args.correlation is None else args.correlation for args in rows.args]
        column = self.sink.integers(numbers)
        return np.where(column == 0, NULL, column)

    def _launches(self, rows: CategoryEvents) -> None:
        copies = [is_copy(args.grid_x) for args in rows.args]
        if any(copies):
            self._copies(rows.where(copies))
            rows = rows.where([not copy for copy in copies])
        if rows.events:
            self._kernels(rows)

    def _kernels(self, rows: CategoryEvents) -> None:
        start, end = self._times(rows)
        names = [event.name if isinstance(event.name, str) else None for event in rows.events]
        kernel = np.array([self.sink.kernel(name) for name in names])
        self.sink.count_unnamed(kernel)
        shape = launch_shape(rows.args, self.map["arguments"].values())
        columns = {name: self.sink.integers(values) for name, values in shape.items()}
        origin = self._origin(rows)
        self.sizes.launches(columns, start_ns=start, end_ns=end, kernel=kernel, process=rows.process, **origin)
        if mentioned([event.args for event in rows.events], b"Collective name"):
            arguments = [
                all_arguments(event.args) if mentioned([event.args], b"Collective name") else {}
                for event in rows.events
            ]
            take_collectives(self.sink, start, end, rows.process, origin, arguments)

    def _copies(self, rows: CategoryEvents) -> None:
        ends = [copied(event.name, args.kind, self.map) for event, args in zip(rows.events, rows.args, strict=True)]
        self._transfers(rows, *np.array(ends).T)

    def _sets(self, rows: CategoryEvents) -> None:
        target = np.array([memory_set(event.name, self.map) for event in rows.events])
        self._transfers(rows, np.full(len(rows.events), MEMSET_KIND), np.full(len(rows.events), NO_KIND), target)

    def _transfers(self, rows: CategoryEvents, kind: np.ndarray, source: np.ndarray, target: np.ndarray) -> None:
        start, end = self._times(rows)
        size = self.sink.integers([args.bytes for args in rows.args])
        kinds = {"copy_kind": kind, "src_kind": source, "dst_kind": target}
        times = {"start_ns": start, "end_ns": end}
        self.sizes.transfers(size, process=rows.process, **times, **kinds, **self._origin(rows))

    def _calls(self, rows: CategoryEvents) -> None:
        start, end = self._times(rows)
        thread = self.threads.column([event.tid for event in rows.events])
        name = self.sink.call_names.codes_of(map(_name, rows.events))
        correlation = self._correlations(rows)
        self.sizes.note(rows.process, correlation, rows.args)
        columns = {"thread": thread, "name": name, "correlation": correlation}
        self.sink.take("calls", start, end, rows.process, **columns)

    def _ranges(self, rows: CategoryEvents) -> None:
        """Take annotations; those on the device have no thread, so that they never enclose a launch call."""
        start, end = self._times(rows)
        on_device = ["gpu" in (event.cat or "").lower() for event in rows.events]
        thread = np.array(
            [NULL if gpu else self.threads.of(event.tid) for event, gpu in zip(rows.events, on_device, strict=True)]
        )
        name = self.sink.range_names.codes_of(map(_name, rows.events))
        kind = [self.sink.range_kinds.code("device annotation" if gpu else "annotation") for gpu in on_device]
        columns = {"thread": thread, "name": name, "kind": np.array(kind)}
        self.sink.take("ranges", start, end, rows.process, **columns)

    def _synchronisations(self, rows: CategoryEvents) -> None:
        """Take waits of streams for events, and of the host for events, streams and devices."""
        start, end = self._times(rows)
        columns = {
            name: np.array([stream_or_event(getattr(args, name)) for args in rows.args])
            for name in ("stream", "source_stream", "event")
        }
        columns |= {
            "kind": np.array([kind_of(event.name) for event in rows.events]),
            "correlation": self._correlations(rows),
        }
        self.sink.take("dependencies", start, end, rows.process, **columns)

    def _operators(self, rows: CategoryEvents) -> None:
        """Take the operators of the host, and what of them compiles as ranges, too: launches wait for it; annotations
        of old versions are ranges alone.
        """
        annotations = are_annotations(rows.events)
        if any(annotations):
            self._ranges(rows.where(annotations))
            rows = rows.where([not is_range for is_range in annotations])
        if not rows.events:
            return
        self._take_operators(rows, *self.operator_codes.of_operators(rows.events, rows.args))
        compiles = [isinstance(event.name, str) and event.name.endswith(COMPILES) for event in rows.events]
        if any(compiles):
            self._ranges(rows.where(compiles))

    def _functions(self, rows: CategoryEvents) -> None:
        """Take calls of modules and of other Python functions."""
        are_modules = [event.name.startswith(MODULE_CALL) for event in rows.events]
        modules = rows.where(are_modules)
        if modules.events:
            self._take_operators(modules, *self.operator_codes.of_modules(modules.events))
        functions = rows.where([not is_module for is_module in are_modules])
        if not functions.events:
            return
        start, end = self._times(functions)
        name = self.sink.function_names.codes_of(NOT_NAMED.sub("", event.name) for event in functions.events)
        thread = self.threads.column([event.tid for event in functions.events])
        self.sink.take("python_functions", start, end, functions.process, thread=thread, name=name)

    def _take_operators(self, rows: CategoryEvents, name: np.ndarray, flags: np.ndarray, inputs: np.ndarray) -> None:
        start, end = self._times(rows)
        thread = self.threads.column([event.tid for event in rows.events])
        columns = {"thread": thread, "name": name, "flags": flags, "inputs": inputs}
        self.sink.take("operators", start, end, rows.process, **columns)

    def _overhead(self, rows: CategoryEvents) -> None:
        start, end = self._times(rows)
        names = [clean_text(str(event.name)) for event in rows.events]
        own = np.array([name.lower() not in self.map["overhead_of_cuda"] for name in names], bool)
        code = self.sink.overhead.names.codes_of(names)
        self.sink.overhead.take(start[own], end[own], rows.process[own], code[own])

    def _counters(self, rows: CategoryEvents) -> None:
        self.range_counters.take(rows.events, rows.process, self.sink)

    def _facts(self) -> None:
        """Take the clock's origin, the rank, the devices, and what grids count, from the top level and the calls."""
        facts = self.text.facts
        sink = self.sink
        differs = "baseTimeNanoseconds" in self.text.differing
        base = None if differs else integer(facts.get("baseTimeNanoseconds"))
        sink.issues.add("differing_clocks", int(differs))
        first = sink.first_start() or self.range_counters.first()
        if base is not None and base >= 0:
            sink.session_start_ns = base
        elif first is not None and first > EPOCH_2001_NS:
            sink.session_start_ns = 0  # the clock itself counts from 1970
        self.processes.take_job(stated_rank(facts), stated_size(facts))
        sink.format_version = format_version(facts)
        counts = grid_counts(facts, sink.call_names.texts)
        if counts != BLOCKS:
            sink.metadata[GRID] = counts
        for device in devices_of(facts):
            sink.device(0, **device)
        sink.same_devices(range(len(sink.processes.keys)))


def _name(event: Event) -> str | None:
    """Return the name of an event as text, None where it has none."""
    return None if event.name is None else str(event.name)

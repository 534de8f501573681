"""Traces of JAX and TensorFlow as Chrome JSON: launches, copies, calls of the driver and annotations.

XLA's profiler writes an XPlane and, for viewers, the same events as JSON: one process per device, "/device:GPU:0", with
a thread per stream, "Stream #14(Compute)", and one of the host. Events have no category; what XLA derives from
launches (modules, steps, operations) stands in further threads of the device and has no details of a kernel. Source:
xla/backends/profiler/gpu/cupti_collector.cc and rocm_collector.cc.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from causeway.core.codes import GRAPH_RANGE, MEMSET_KIND
from causeway.core.errors import ExportError
from causeway.core.files.yaml_files import column_map
from causeway.core.schemas.launch_threads import GRID, WORK_ITEMS
from causeway.numeric.process import collector_paused
from causeway.readers.common.constants import NO_KIND, NULL
from causeway.readers.common.copy_kinds import MEMORY_KIND_OF, copy_kind
from causeway.readers.common.files import first_bytes
from causeway.readers.common.options import Options
from causeway.readers.containers.chrome_json import Event, TraceText
from causeway.readers.detect import detect
from causeway.readers.pytorch.event_fields import ArgumentDecoder, ThreadNumbers, spans_ns
from causeway.readers.pytorch.refusals import no_launch, other_writer, without_times
from causeway.readers.sink.sink import Sink

BATCH = 1 << 13
MOST_EVENTS = 1_000_000
"""Events that XLA's profiler writes at most into a trace for viewers; of more it keeps the earliest."""

MOST_PROCESSES = 1 << 16
"""Names of processes and threads that are remembered."""

KERNEL_LAUNCH = "kernel launch"
"""The name of a call that has the name of its kernel: which of the driver's functions it was is not said."""

_DEVICE = re.compile(r"(?:.*\s)?/device:GPU:(\d{1,5})\b")
_STREAM = re.compile(r"Stream\b(?: #(\d{1,18})\b)?")
_GRAPH = re.compile(r"\s*\(CudaGraph:\d+\)$")
_CALL = re.compile(r"(?:cu(?:da)?|hip|hsa)[A-Z_]\w*|Mem(?:cpy|set|ory)\w*")
_DETAIL = re.compile(r"(\w+):([\w,]+)")


def probe(path: Path) -> bool:
    """Return whether the file is Chrome JSON, perhaps compressed, whose first events name a device of XLA."""
    return path.is_file() and detect(path) == "kineto" and b"/device:GPU:" in first_bytes(path)


@collector_paused()
def read(path: Path, sink: Sink, options: Options) -> None:
    """Read one trace.

    Raises
    ------
    ExportError
        If it is no trace, holds no launch, or is cut; the events before the cut are kept.
    """
    reader = JaxReader(path, sink, options)
    try:
        cut = reader.read()
    except ValueError as error:
        problem = f"it is not a trace: {error}"
        advice = "Name the .trace.json.gz file that the profiler wrote."
        raise ExportError(options.source, problem, 'JSON with "traceEvents"', advice) from None
    failure = ExportError(options.source, cut, "a complete trace", "Copy it again.") if cut else None
    if not sink.n_launches:
        problem, advice = without_times(sink.issues.left_out) or other_writer(path) or no_launch("no_torch_events")
        raise failure or ExportError(options.source, problem, "events of category kernel", advice)
    if failure:
        raise failure


class JaxReader:
    """One pass over a trace."""

    def __init__(self, path: Path, sink: Sink, options: Options) -> None:
        self.sink = sink
        self.text = TraceText(path, set(), options.progress().at)
        sink.at_close.callback(self.text.close)
        names = {
            raw: ours
            for table in column_map("jax")["tables"].values()
            for raw, ours in table["columns"].items()
            if raw.endswith("_details") or raw in ("correlation_id", "step_num")
        }
        self.arguments = ArgumentDecoder(names | {"name": "name", "cuda_graph_exec_id": "graph"})
        self.devices: dict[object, int] = {}
        self.hosts: set[object] = set()
        self.streams: dict[tuple, int | str | None] = {}
        self.threads = ThreadNumbers()
        self.pending: dict[str, list[tuple[Event, Any]]] = {}
        self.events = 0

    def read(self) -> str | None:
        """Read all events; return where a damaged file ends."""
        for events in self.text.events():
            self._sort(events)
            for kind, rows in self.pending.items():
                if len(rows) >= BATCH:
                    self._take(kind, rows)
                    rows.clear()
        for kind, rows in self.pending.items():
            if rows:
                self._take(kind, rows)
        self.text.note_issues(self.sink.issues)
        self.sink.issues.add(
            "dropped_events", int(self.events >= MOST_EVENTS), f"the trace holds {self.events:,} events, its most"
        )
        return self.text.cut

    def _sort(self, events: list[Event]) -> None:
        """Add events to those of their kind that wait to be taken; names of processes come before their events."""
        self.events += sum(event.ph == "X" and event.name is not None for event in events)  # a last one is empty
        named = [event for event in events if event.ph == "M" and event.name in ("process_name", "thread_name")]
        for event, args in zip(named, self.arguments.decode(named), strict=True):
            if isinstance(args.name, str) and len(self.streams) < MOST_PROCESSES and len(self.devices) < MOST_PROCESSES:
                self._name(event, args.name)
        kept = [
            event
            for event in events
            if event.ph == "X"
            and isinstance(event.name, str)
            and isinstance(event.pid, int | str)
            and (
                self._is_stream(event)
                if event.pid in self.devices
                else event.pid in self.hosts and not event.name.startswith("$")
            )
        ]
        for event, args in zip(kept, self.arguments.decode(kept), strict=True):
            if event.pid in self.hosts:
                kind = "ranges" if args.correlation is None else "calls"
            elif isinstance(args.copy, str) or isinstance(args.set, str):
                kind = "transfers"
            elif args.graph is not None and args.kernel is None:
                kind = "graphs"
            elif isinstance(args.kernel, str) or (self.streams and not _CALL.match(event.name)):
                kind = "launches"
            else:
                continue
            self.pending.setdefault(kind, []).append((event, args))

    def _is_stream(self, event: Event) -> bool:
        """Return whether an event of a device stands in one of its streams; in a trace without names all may."""
        return not self.streams or (isinstance(event.tid, int | str) and (event.pid, event.tid) in self.streams)

    def _name(self, event: Event, name: str) -> None:
        if not isinstance(event.pid, int | str) or not isinstance(event.tid, int | str | None):
            return
        if event.name == "thread_name":
            if match := _STREAM.match(name):
                self.streams[event.pid, event.tid] = event.tid if match[1] is None else int(match[1])
        elif match := _DEVICE.match(name):
            self.devices[event.pid] = int(match[1])
        elif "/host:" in name:
            self.hosts.add(event.pid)

    def _take(self, kind: str, rows: Sequence[tuple[Event, Any]]) -> None:
        """Take events of one kind."""
        self.sink.count_in(kind, len(rows))
        events = [event for event, _ in rows]
        args = [arguments for _, arguments in rows]
        start, end, misfits = spans_ns(events)
        self.sink.issues.add_all(misfits, "ts or dur")
        span = {"start_ns": start, "end_ns": end, "process": np.full(len(rows), self.sink.processes.code(0))}
        getattr(self, f"_{kind}")(events, args, span)

    def _origin(self, events: list[Event], args: list) -> dict[str, np.ndarray]:
        streams = [self.streams.get((event.pid, event.tid), event.tid) for event in events]
        return {
            "device": np.array([self.devices[event.pid] for event in events]),
            "stream": self.sink.integers(streams),
            "correlation": self.sink.integers([arguments.correlation for arguments in args]),
        }

    def _launches(self, events: list[Event], args: list, span: dict[str, np.ndarray]) -> None:
        kernel = np.array([self.sink.kernel(event.name) for event in events])
        self.sink.count_unnamed(kernel)
        details = [dict(_DETAIL.findall(str(arguments.kernel or ""))) for arguments in args]
        columns = column_map("jax")["tables"]["kernel_details"]["columns"]
        shape = {
            columns[name]: self.sink.integers([detail.get(name) for detail in details])
            for name in ("regs", "static_shared", "dynamic_shared", "private_mem")
        }
        for name in ("grid", "block"):
            sizes = [[*detail.get(name, "").split(","), None, None, None][:3] for detail in details]
            shape |= {
                f"{name}_{axis}": self.sink.integers([size[index] for size in sizes])
                for index, axis in enumerate("xyz")
            }
        # XLA on AMD's rocprofiler-sdk; until roctracer in blocks
        if any("private_mem" in detail for detail in details):
            self.sink.metadata[GRID] = WORK_ITEMS
        self.sink.launches(span | self._origin(events, args) | shape | {"kernel": kernel})

    def _transfers(self, events: list[Event], args: list, span: dict[str, np.ndarray]) -> None:
        details = [
            dict(_DETAIL.findall(arguments.copy if isinstance(arguments.copy, str) else arguments.set))
            for arguments in args
        ]
        is_set = [not isinstance(arguments.copy, str) for arguments in args]
        kinds = [
            MEMSET_KIND if sets else copy_kind(event.name[:64]) for event, sets in zip(events, is_set, strict=True)
        ]
        target = [detail.get("kind" if sets else "kind_dst") for detail, sets in zip(details, is_set, strict=True)]
        ends = {"src_kind": _memory([detail.get("kind_src") for detail in details]), "dst_kind": _memory(target)}
        size = self.sink.integers([detail.get("size", detail.get("num_bytes")) for detail in details])
        where = self._origin(events, args)
        self.sink.transfers(span | where | ends | {"copy_kind": np.array(kinds), "bytes": size})

    def _graphs(self, events: list[Event], args: list, span: dict[str, np.ndarray]) -> None:
        """Take graphs traced as a whole, as ranges, as those of Nsight Systems."""
        self.sink.issues.add("graphs_without_launches", len(events), "see the ranges of kind cuda_graph")
        graphs = self.sink.integers([arguments.graph for arguments in args]).tolist()
        names = ["CUDA graph" if graph == NULL else f"CUDA graph {graph}" for graph in graphs]
        name = self.sink.range_names.codes_of(names)
        self.sink.take("ranges", *span.values(), name=name, kind=self.sink.range_kinds.code(GRAPH_RANGE))
        self.sink.take("graphs", *span.values(), **self._origin(events, args))

    def _calls(self, events: list[Event], args: list, span: dict[str, np.ndarray]) -> None:
        names = [_GRAPH.sub("", event.name) for event in events]
        codes = self.sink.call_names.codes_of(name if _CALL.fullmatch(name) else KERNEL_LAUNCH for name in names)
        self.sink.take(
            "calls",
            *span.values(),
            thread=self.threads.column([event.tid for event in events]),
            name=codes,
            correlation=self.sink.integers([arguments.correlation for arguments in args]),
        )

    def _ranges(self, events: list[Event], args: list, span: dict[str, np.ndarray]) -> None:
        """Take annotations and operations of the host; of a step, which all have one name, its number too."""
        names = [
            event.name if arguments.step is None else f"{event.name} (step {str(arguments.step)[:20]})"
            for event, arguments in zip(events, args, strict=True)
        ]
        self.sink.take(
            "ranges",
            *span.values(),
            thread=self.threads.column([event.tid for event in events]),
            name=self.sink.range_names.codes_of(names),
            kind=self.sink.range_kinds.code("annotation"),
        )


def _memory(names: Iterable[str | None]) -> np.ndarray:
    """Return kinds of memory by their names; int64, one for each name."""
    return np.array([MEMORY_KIND_OF.get((name or "").replace("_", "").lower(), NO_KIND) for name in names])

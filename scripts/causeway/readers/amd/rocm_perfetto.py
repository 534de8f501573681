"""Perfetto's binary traces of rocprofv3, `rocpd convert` and ROCm Systems Profiler (Omnitrace): launches, copies,
calls, markers and, of later versions of rocprofv3, counters.

Times are those of the annotations, whole nanoseconds. Where two launches of a queue overlap, the tools let both meet in
the middle of the overlap, as Perfetto draws no two slices of a track that overlap.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from causeway.core.errors import ExportError
from causeway.readers.amd.executions import ranked_files
from causeway.readers.amd.trace_events import AmdReader, agents
from causeway.readers.common.constants import NULL, TIMES
from causeway.readers.common.files import head_of
from causeway.readers.common.name_ranks import PASS
from causeway.readers.common.numbers import integer, size_columns, with_null
from causeway.readers.common.options import Options
from causeway.readers.containers.perfetto_head import FILES, begins_like_perfetto
from causeway.readers.containers.perfetto_packets import PerfettoFile, Slice
from causeway.readers.sink.sink import Sink

BATCH = 1 << 13
LONGEST_SIZE = 100
"""Characters of a size that are looked at."""
NUMBERED_OTHERWISE = "dst_agent_id"
"""Annotation of copies of ROCm Systems Profiler, which numbers their agents in another way than those of launches."""
ADVICE = "Profile again with `rocprofv3 --kernel-trace --output-format pftrace` (or rocpd, csv)."

_STREAM = re.compile(r"\b(?:STREAM \[|HIP Activity Stream )(\d+)")
_DEVICE = re.compile(r"\b(?:Dispatch \[|Activity Device )(\d+)")
"""Stream and device in the names of launches' tracks, where the annotations have none."""
_NUMBERED_FILE = re.compile(r"perfetto-trace-(\d+)")


def probe(path: Path) -> bool:
    """Return whether a file, or a file of a folder, begins like a trace of Perfetto."""
    return bool(_files(path))


def _files(path: Path) -> list[Path]:
    files = sorted({file for pattern in FILES for file in path.rglob(pattern)}) if path.is_dir() else [path]
    return [file for file in files if begins_like_perfetto(head_of(file))]


def read(path: Path, sink: Sink, options: Options) -> None:
    """Read one file, or all of a folder.

    Raises
    ------
    ExportError
        If there is no launch, or a file is cut; the slices before the cut are kept.
    """
    sink.format_version = "rocm perfetto"
    reader = _Reader(sink, options)
    for file, label, rank in ranked_files(sink.processes, path, _files(path), _group):
        reader.read(file, label, rank)
    reader.store.hand_over()
    reader.finish()


def _group(label: str) -> tuple[str, str]:
    """Return a file's folder and the beginning of its name; the number that ROCm Systems Profiler gives a file, its
    rank or process, stands for a folder.
    """
    path = Path(label)
    stem = path.name.split(".")[0]
    numbered = _NUMBERED_FILE.fullmatch(stem)
    return str(path.parent / numbered[1] if numbered else path.parent), stem


class _Reader(AmdReader):
    """The reader of the files of one export."""

    def __init__(self, sink: Sink, options: Options) -> None:
        super().__init__(sink, options, "rocm_perfetto")
        self.dispatches = 0
        self.device_assumed = False
        self.path = Path()
        self.first_device: int | None = None
        slices = self.rules["tables"]
        self.columns = {kind: rules["columns"] for kind, rules in slices.items()}
        self.launch_mark = slices["launches"]["marks"]
        self.copy_marks = slices["transfers"]["marks"]
        self.kinds = {category: kind for kind in ("calls", "ranges") for category in slices[kind]["categories"]}
        self.takes: dict[str, Callable] = {
            "launches": self._launches,
            "transfers": self._copies,
            "calls": self._calls,
            "ranges": self._ranges,
        }

    def read(self, path: Path, label: str, rank: int | None) -> None:
        """Read one file, whose name states `rank` or none; keep in `failure` where it is cut."""
        self.path = path
        self.first_device = None
        parts = tuple(part for part in Path(label).parts if not PASS.fullmatch(part))
        batches: dict[str, list[tuple[Slice, int]]] = {kind: [] for kind in self.takes}
        with open(path, "rb") as stream:
            file = PerfettoFile(stream, lambda done: self.progress.at(self.done + done))
            for event in file.slices():
                kind = self._kind(event)
                if kind is None:
                    continue
                batch = batches[kind]
                batch.append((event, self.sink.processes.code((event.process, parts), rank)))
                if len(batch) >= BATCH:
                    self._take(kind, batch)
                    batch.clear()
        for kind, batch in batches.items():
            if batch:
                self._take(kind, batch)
        issues = self.sink.issues
        issues.add("unreadable_rows", file.damaged, label)
        issues.add("dropped_events", file.lost, label)
        if file.cut:
            problem = f"{label}: the trace ends within a packet, or is damaged there"
            self.fail(ExportError(self.options.source, problem, "a complete trace", ADVICE), "truncated", label)
        self.done += path.stat().st_size

    def finish(self) -> None:
        """Count what only all files show; raise the first failure."""
        self.sink.issues.add("device_assumed", int(self.device_assumed))
        problem = "it is a trace of Perfetto without a launch of a kernel that has its times as annotations"
        expected = "slices with begin_ns, end_ns and workgroup_size"
        nothing = ExportError(self.options.source, problem, expected, ADVICE)
        self.events.finish(self.failure, nothing, says_why=False)

    def _kind(self, event: Slice) -> str | None:
        """Return what a slice is, None for what is not read."""
        if "begin_ns" not in event.values or "end_ns" not in event.values:
            if event.category in self.rules["untimed"]:
                self.sink.issues.add("no_time", 1)
            return None
        if self.launch_mark in event.values:
            return "launches"
        if any(mark in event.values for mark in self.copy_marks):
            return "transfers"
        return self.kinds.get(event.category)

    def _take(self, kind: str, batch: list[tuple[Slice, int]]) -> None:
        """Give a batch to its method, with the columns that its annotations are."""
        self.sink.count_in(kind, len(batch))
        slices = [event for event, _ in batch]
        annotations: dict[str, list] = {}
        for raw, ours in self.columns[kind].items():
            values = [event.values.get(raw) for event in slices]
            earlier = annotations.get(ours)
            annotations[ours] = (
                values if earlier is None else [a if a is not None else b for a, b in zip(earlier, values, strict=True)]
            )
        columns = {"process": np.array([process for _, process in batch], np.int64)}
        self.takes[kind](slices, annotations, columns)

    def _numbers(self, annotations: Mapping[str, list], *names: str) -> dict[str, np.ndarray]:
        return {name: self.sink.integers(annotations[name], of_times=name in TIMES) for name in names}

    def _streams(self, slices: list[Slice], annotations: Mapping[str, list]) -> np.ndarray:
        """Return the streams: of the annotations, else of the tracks' names; NULL where neither has one."""
        of_track = _in_names(slices, _STREAM)
        stated = self.sink.integers(annotations["stream"])
        return np.where(stated == NULL, of_track, stated)

    def _devices(self, slices: list[Slice], texts: list) -> np.ndarray:
        """Return the devices of launches: of the annotations, else of the tracks' names, 0 where neither has one."""
        devices = _agents(texts)
        devices = np.where(devices == NULL, _in_names(slices, _DEVICE), devices)
        self.device_assumed |= bool((devices == NULL).any())
        return np.where(devices == NULL, 0, devices)

    def _first_device(self) -> int:
        """Return the device of the first launch of the file that is being read, 0 where it has none."""
        if self.first_device is None:
            with open(self.path, "rb") as stream:
                slices = (event for event in PerfettoFile(stream).slices() if self.launch_mark in event.values)
                first = next(slices, None)
            raw = [name for name, ours in self.columns["launches"].items() if ours == "device"]
            texts = [first.values.get(name) for name in raw if name in first.values] if first else []
            self.first_device = int(self._devices([first], texts or [None])[0]) if first else 0
        return self.first_device

    def _launches(self, slices: list[Slice], annotations: dict[str, list], columns: dict[str, np.ndarray]) -> None:
        columns |= self._numbers(annotations, "start", "stop", "thread", "correlation", "queue_id", "scratch_bytes")
        columns["kernel"] = self.events.kernels([event.name for event in slices])
        columns["device"] = self._devices(slices, annotations["device"])
        columns |= self.events.stream_or_queue(self._streams(slices, annotations), columns["queue_id"])
        lds = self.sink.integers(annotations["lds_bytes"])
        step = self.shared["lds_granularity"]
        columns["lds_bytes"] = np.where(lds == NULL, NULL, -(-lds // step) * step)
        for ours in ("grid", "block"):
            columns |= size_columns(
                ours, ["" if size is None else str(size)[:LONGEST_SIZE] for size in annotations[ours]]
            )
        self.events.launches(columns)
        columns["number"] = self.dispatches + np.arange(len(slices))  # no annotation numbers them in all versions
        self.dispatches += len(slices)
        self._counters(slices, columns)

    def _counters(self, slices: list[Slice], columns: dict[str, np.ndarray]) -> None:
        """Take counters: annotations of launches that are numbers with a fraction; those with one are joined to it."""
        described = self.columns["launches"]
        counters = [
            {name: value for name, value in event.values.items() if isinstance(value, float) and name not in described}
            for event in slices
        ]
        self.store.launches(columns)
        rows = [number for number, values in enumerate(counters) if values]
        if rows:
            layouts = [self.store.layout(list(counters[number])) for number in rows]
            values = [np.array(list(counters[number].values()), float) for number in rows]
            self.store.take({name: column[rows] for name, column in columns.items()}, layouts, values)

    def _copies(self, slices: list[Slice], annotations: dict[str, list], columns: dict[str, np.ndarray]) -> None:
        columns |= self._numbers(annotations, "start", "stop", "bytes", "correlation")
        columns["stream"] = self._streams(slices, annotations)
        source = _agents(annotations["source"])
        target = _agents(annotations["target"])
        other = np.array([NUMBERED_OTHERWISE in event.values for event in slices])
        if other.any():
            source[other] = target[other] = self._first_device()
        self.events.copies(columns, [event.name for event in slices], source, target)

    def _threads(self, slices: list[Slice], annotations: Mapping[str, list]) -> np.ndarray:
        stated = self.sink.integers(annotations["thread"])
        return np.where(stated == NULL, with_null(event.thread for event in slices), stated)

    def _calls(self, slices: list[Slice], annotations: dict[str, list], columns: dict[str, np.ndarray]) -> None:
        columns |= self._numbers(annotations, "start", "stop", "correlation")
        columns["thread"] = self._threads(slices, annotations)
        self.events.calls(columns, [event.name for event in slices])

    def _ranges(self, slices: list[Slice], annotations: dict[str, list], columns: dict[str, np.ndarray]) -> None:
        columns |= self._numbers(annotations, "start", "stop")
        columns["thread"] = self._threads(slices, annotations)
        self.events.ranges(columns, [event.name for event in slices])


def _in_names(slices: list[Slice], pattern: re.Pattern) -> np.ndarray:
    """Return the number that a pattern finds in the name of each slice's track, NULL where it finds none."""
    matches = {name: pattern.search(name) for name in {event.track for event in slices}}
    numbers = {name: integer(match[1]) if match else None for name, match in matches.items()}
    return with_null(numbers[event.track] for event in slices)


def _agents(texts: list) -> np.ndarray:
    """Return the numbers of agents, `GPU-0` or a number, NULL where there is none."""
    return agents(["" if text is None else str(text) for text in texts])

"""rocprofv3's JSON: launches, copies, calls, markers and counters of one or more processes, record by record, in
bounded memory.

Names lie in tables before the records (`kernel_symbols`, `strings`); should they come after them, they are looked up
first. Of `metadata`, which holds the command line, only the process id is used.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from causeway.core.errors import ExportError
from causeway.readers.amd.counter_passes import checked
from causeway.readers.amd.executions import ranked_files
from causeway.readers.amd.rocprofv3_ids import RecordNames, finite, handle, inner, inner_object, product, values_of
from causeway.readers.amd.trace_events import AmdReader, allocated_lds, device_facts
from causeway.readers.common.constants import TIMES
from causeway.readers.common.files import head_of
from causeway.readers.common.name_ranks import PASS
from causeway.readers.common.numbers import integer
from causeway.readers.common.options import Options
from causeway.readers.containers.csv_batches import without_rounded
from causeway.readers.containers.nested_json import UNREADABLE, Nested
from causeway.readers.sink.sink import Sink

ROOT = "rocprofiler-sdk-tool"
_BEGIN = re.compile(rb'\s*\{\s*"' + ROOT.encode() + rb'"')
BATCH = 1 << 13
ADVICE = "Copy it again, or profile again with `rocprofv3 --kernel-trace --output-format json`."


def probe(path: Path) -> bool:
    """Return whether a file, or a `*_results.json` of a folder, begins like rocprofv3's JSON."""
    return bool(_files(path))


def _files(path: Path) -> list[Path]:
    files = sorted(file for file in path.rglob("*.json*") if file.is_file()) if path.is_dir() else [path]
    return [file for file in files if _BEGIN.match(head_of(file, 256).removeprefix(b"\xef\xbb\xbf"))]


def read(path: Path, sink: Sink, options: Options) -> None:
    """Read one file, or all of a folder.

    Raises
    ------
    ExportError
        If there is neither a launch nor a counter, or a file is cut; the records before the cut are kept.
    """
    sink.format_version = "rocprofv3 json"
    reader = JsonReader(sink, options)
    for file, label, rank in ranked_files(sink.processes, path, _files(path), _group):
        reader.read(file, label, rank)
    reader.store.hand_over()
    reader.finish()


def _group(label: str) -> tuple[str, str]:
    """Return a file's folder, relative to the export, and its name without its ending."""
    path = Path(label)
    return str(path.parent), path.name.split(".json")[0]


class JsonReader(AmdReader):
    """The reader of the files of one export."""

    def __init__(self, sink: Sink, options: Options) -> None:
        super().__init__(sink, options, "rocprofv3")
        self.path_parts: tuple[str, ...] = ()
        self.rank: int | None = None
        self.label = ""
        self.counted = False  # whether there are, or may still come, counters of the launches
        paths = self.rules["json"]
        self.takes: dict[str, Callable] = {
            paths["launches"]: self._launches,
            paths["transfers"]: self._copies,
            paths["ranges"]: self._ranges,
        }
        self.takes |= dict.fromkeys(paths["calls"], self._calls) | {paths["counters"]: self._counters}

    def read(self, path: Path, label: str, rank: int | None) -> None:
        """Read one file, whose name states `rank` or none; keep in `failure` where it is cut."""
        self.path_parts = tuple(part for part in Path(label).parts if not PASS.fullmatch(part))
        self.rank = rank
        self.label = label
        text = Nested(path, set(), lambda done: self.progress.at(self.done + done))
        try:
            for number in self._entered_processes(text):
                self._process(text, path, number)
        except UNREADABLE:
            problem = text.cut or f"the text ends early or is damaged after {text.offset:,} characters"
            error = ExportError(self.options.source, f"{label}: {problem}", "a complete JSON document", ADVICE)
            self.fail(error, "truncated", label)
        finally:
            self.sink.issues.add("unreadable_rows", text.damaged, label)
            text.close()
        self.done += path.stat().st_size

    def finish(self) -> None:
        """Count what only all files show; raise the first failure."""
        problem = "it holds no launch of a kernel and no counter"
        advice = "Profile again with `rocprofv3 --kernel-trace`."
        nothing = ExportError(self.options.source, problem, "a record under kernel_dispatch", advice)
        self.events.finish(self.failure, nothing)

    @staticmethod
    def _entered_processes(text: Nested) -> Iterator[int]:
        """Enter each process of a document; give its number."""
        if not text.enter("{"):
            raise ValueError("no object")
        for key in text.members():
            if key != ROOT or not text.enter("["):
                text.discard()
                continue
            for number, _ in enumerate(text.items()):
                if text.enter("{"):
                    yield number
                else:
                    text.discard()

    def _process(self, text: Nested, path: Path, number: int) -> None:
        """Read one process."""
        names = RecordNames()
        callbacks = False
        self.counted = True
        for key in text.members():
            if key in ("callback_records", "buffer_records") and text.enter("{"):
                if not names.complete:
                    self._names_first(path, number, names)
                process = self.sink.processes.code((names.pid, self.path_parts, number), self.rank)
                if key == "buffer_records" and callbacks:  # written after the counters, if there are any
                    self.counted = self.store.rows > 0
                callbacks |= key == "callback_records"
                for part in text.members():
                    take = self.takes.get(f"{key}/{part}")
                    if take is None:
                        text.discard()
                    else:
                        self._records(text, part, take, names, process)
            else:
                self._name_table(text, key, names)
        code = self.sink.processes.code((names.pid, self.path_parts, number), self.rank)
        for agent in names.agents.values():
            self._device(code, agent)

    @staticmethod
    def _name_table(text: Nested, key: str, names: RecordNames) -> None:
        takes = {"agents": names.agent, "counters": names.counter, "kernel_symbols": names.kernel}
        if key == "metadata":
            metadata = text.value()
            names.pid = names.pid or integer(inner(metadata, "pid")) or 0
        elif key in takes:
            for record in text.records():
                takes[key](record)
            names.complete |= key == "kernel_symbols"
        elif key == "strings" and text.enter("{"):
            for part in text.members():
                if part == "buffer_records":
                    names.operations = list(text.records())
                elif part == "marker_api":
                    for record in text.records():
                        names.markers.add(record.get("key"), record.get("value"))
                else:
                    text.discard()
        else:
            text.discard()

    def _names_first(self, path: Path, wanted: int, names: RecordNames) -> None:
        """Look up the names of a process whose records stand before them."""
        text = Nested(path, set())
        try:
            for number in self._entered_processes(text):
                for part in text.members():
                    if number == wanted:
                        self._name_table(text, part, names)
                    else:
                        text.discard()
                if number == wanted:
                    return
        except UNREADABLE:
            return  # cut before the names: the launches stay without
        finally:
            names.complete = True
            text.close()

    def _device(self, process: int, agent: dict) -> None:
        number = integer(agent["logical_node_id"])
        kind = agent["type"]
        number = integer(agent["node_id"]) if number is None else number
        if kind == 2 and number is not None and 0 <= number < 1 << 16:
            units, clock = (integer(agent[key]) for key in ("cu_count", "max_engine_clk_fcompute"))
            self.sink.device(process, number, **device_facts(agent["product_name"], units, clock))

    def _records(self, text: Nested, part: str, take: Callable, names: RecordNames, process: int) -> None:
        """Give a list's records to their method, in batches; also those before a cut."""
        batch: list[dict] = []
        try:
            for record in text.records():
                batch.append(record)
                if len(batch) >= BATCH:
                    self.sink.count_in(part, len(batch))
                    take(batch, names, process)
                    batch = []
        finally:
            if batch:
                self.sink.count_in(part, len(batch))
                take(batch, names, process)

    def _times(self, records: list[dict]) -> dict[str, np.ndarray]:
        columns = {"start": "start_timestamp", "stop": "end_timestamp", "thread": "thread_id"}
        times = {
            ours: self.sink.integers((record.get(raw) for record in records), of_times=ours in TIMES)
            for ours, raw in columns.items()
        }
        return times | {
            "correlation": self.sink.integers(inner(record, "correlation_id", "internal") for record in records)
        }

    def _launch_columns(
        self, infos: list[dict], records: list[dict], names: RecordNames, process: int
    ) -> dict[str, np.ndarray]:
        """Return the columns of launches."""
        ids = [info.get("kernel_id") for info in infos]
        unknown = {"name": None}
        symbols = [names.kernels.get(key if isinstance(key, int) else None, unknown) for key in ids]
        # some tools repeat the name at the launch, and leave the symbols out
        kernel_names = [
            symbol["name"] or (name if isinstance(name := info.get("kernel_name"), str) else "")
            for symbol, info in zip(symbols, infos, strict=True)
        ]
        columns = {
            "number": self.sink.integers(info.get("dispatch_id") for info in infos),
            "kernel": self.events.kernels(kernel_names),
            "process": np.full(len(infos), process),
            "device": np.array([names.device(handle(info, "agent_id")) for info in infos], np.int64),
            "scratch_bytes": self.sink.integers(info.get("private_segment_size") for info in infos),
        }
        streams = [handle(record, "stream_id") for record in records]
        columns["queue_id"] = self.sink.integers(handle(info, "queue_id") for info in infos)
        columns |= self.events.stream_or_queue(self.sink.integers(streams), columns["queue_id"])
        step = self.rules["lds_granularity"]
        own, dispatched = (
            self.sink.integers(facts.get("group_segment_size") for facts in of) for of in (symbols, infos)
        )
        columns["lds_bytes"] = allocated_lds(own, dispatched, step)
        for ours, raw in (("arch_vgpr", "arch_vgpr_count"), ("accum_vgpr", "accum_vgpr_count"), ("sgpr", "sgpr_count")):
            columns[ours] = self.sink.integers(symbol.get(raw) for symbol in symbols)
        return columns

    def _launches(self, records: list[dict], names: RecordNames, process: int) -> None:
        infos = [inner_object(record, "dispatch_info") for record in records]
        columns = self._times(records) | self._launch_columns(infos, records, names, process)
        for size, ours in (("grid_size", "grid"), ("workgroup_size", "block")):
            for axis in "xyz":
                columns[f"{ours}_{axis}"] = self.sink.integers(inner(info, size, axis) for info in infos)
        self.events.dispatches(self.label, columns["process"], columns["number"])
        self.events.launches(columns)
        if self.counted:
            self.store.launches(columns)

    def _copies(self, records: list[dict], names: RecordNames, process: int) -> None:
        columns = self._times(records) | {"process": np.full(len(records), process)}
        columns["bytes"] = self.sink.integers(record.get("bytes") for record in records)
        columns["stream"] = self.sink.integers(handle(record, "stream_id") for record in records)
        ends = [
            np.array([names.device(handle(record, end)) for record in records], np.int64)
            for end in ("src_agent_id", "dst_agent_id")
        ]
        self.events.copies(columns, [names.operation(record)[1] for record in records], *ends)

    def _calls(self, records: list[dict], names: RecordNames, process: int) -> None:
        columns = self._times(records) | {"process": np.full(len(records), process)}
        self.events.calls(columns, [names.operation(record)[1] for record in records])

    def _ranges(self, records: list[dict], names: RecordNames, process: int) -> None:
        columns = self._times(records) | {"process": np.full(len(records), process)}
        marked = names.markers.find(columns["correlation"])
        texts = [
            names.operation(record)[1] if text is None else text for text, record in zip(marked, records, strict=True)
        ]
        self.events.ranges(columns, texts)

    def _counters(self, records: list[dict], names: RecordNames, process: int) -> None:
        """Take the counters of launches; values of one counter (for example one per shader engine) are summed, as in
        the CSV files.
        """
        data = [inner_object(record, "dispatch_data") for record in records]
        infos = [inner_object(dispatch, "dispatch_info") for dispatch in data]
        columns = self._launch_columns(
            infos, [record | dispatch for record, dispatch in zip(records, data, strict=True)], names, process
        )
        columns["thread"] = self.sink.integers(record.get("thread_id") for record in records)
        start, stop = (
            self.sink.integers((dispatch.get(raw) for dispatch in data), of_times=True)
            for raw in ("start_timestamp", "end_timestamp")
        )
        start, stop, rounded = without_rounded(start, stop)
        self.events.rounded += int(rounded.sum())
        columns["start"], columns["stop"] = checked(self.sink, start, stop, rounded)
        for size, ours in (("grid_size", "grid_x"), ("workgroup_size", "block_x")):
            columns[ours] = self.sink.integers(product(info.get(size)) for info in infos)
        layouts = []
        values = []
        for record, info in zip(records, infos, strict=True):
            sums: dict[str, float] = {}
            agent = handle(info, "agent_id")
            for counter in values_of(record, "records"):
                key = handle(counter, "counter_id")
                value = finite(counter.get("value")) if isinstance(counter, dict) else None
                if value is None:
                    self.sink.issues.add("not_a_number", 1, "counter_collection")
                    continue
                name = names.counters.get((agent, key)) or names.counters.get((None, key)) or f"counter {key}"
                sums[name] = sums.get(name, 0.0) + value
            layouts.append(self.store.layout(list(sums)))
            values.append(np.array(list(sums.values()), float))
        self.store.take(columns, layouts, values)

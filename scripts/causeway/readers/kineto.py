"""PyTorch Kineto traces (Chrome trace JSON): launches, copies, runtime calls, annotations and CUPTI range counters, of one rank or several.

Microseconds with a fraction are read digit by digit to whole nanoseconds: as floating-point numbers they would be off by up to a
nanosecond after six weeks of uptime. Only categories, arguments and top-level keys of `config/columns/kineto.yaml` are looked at.
"""

import re
from decimal import Decimal, InvalidOperation
from pathlib import Path

import numpy as np

from causeway.errors import ExportError
from causeway.readers.collectives import take_collectives
from causeway.readers.columns import column_map
from causeway.readers.counters import CounterTable
from causeway.readers.detect import detect
from causeway.readers.events import NO_KIND, NULL, integer, integers
from causeway.readers.jsonstream import TraceText
from causeway.readers.names import clean_text
from causeway.readers.numbers import number
from causeway.readers.options import Options
from causeway.readers.sink import Sink
from causeway.tables import LAUNCH_SHAPE

BATCH = 1 << 13
MEMSET_KIND = 255
EPOCH_2001_NS = 978_307_200_000_000_000
_DIRECTION = re.compile(r"\b([HDAP]to[HDAP])\b")
_ENDS = re.compile(r"\(\s*([A-Za-z ]+?)\s*->\s*([A-Za-z ]+?)\s*\)")
_SET = re.compile(r"\(\s*([A-Za-z ]+?)\s*\)")


def probe(path: Path) -> bool:
    """Return whether the file is JSON, perhaps compressed, that begins like a trace."""
    return path.is_file() and detect(path) == "kineto"


def read(path: Path, sink: Sink, options: Options) -> None:
    """Read one trace.

    Raises
    ------
    ExportError
        If it is no trace, holds neither launches nor range counters, or is cut; the events before the cut are kept.
    """
    KinetoReader(path, sink, options).read()


def nanoseconds(value: object) -> int | None:
    """Return microseconds as whole nanoseconds, exactly; None if it is no finite number.

    Digits beyond the nanosecond (left by tools that go through floating point) are rounded half to even.

    >>> nanoseconds("4458676983543.183"), nanoseconds(12), nanoseconds("0.1065")
    (4458676983543183, 12000, 106)
    """
    if type(value) is int:
        return value * 1000
    if not isinstance(value, str):
        return None
    whole, _, fraction = value.partition(".")
    if len(fraction) <= 3 and whole.isdecimal() and (not fraction or fraction.isdecimal()) and value.isascii():
        return int(whole) * 1000 + int(fraction.ljust(3, "0"))
    try:
        exact = Decimal(value) * 1000
        return int(exact.to_integral_value()) if exact.is_finite() and abs(exact) < 10**19 else None
    except InvalidOperation:
        return None


class KinetoReader:
    """One pass over a trace."""

    def __init__(self, path: Path, sink: Sink, options: Options) -> None:
        self.sink, self.options = sink, options
        self.map = column_map("kineto")
        self.text = TraceText(path, set(self.map["top_level"]), options.progress().at)
        self.pending: dict[str, list[tuple]] = {"launches": [], "copies": [], "sets": [], "calls": [], "ranges": [], "overhead": []}
        self.flush = {kind: getattr(self, f"_{kind}") for kind in self.pending}
        self.counters = CounterTable()
        self.counter_rows: list[tuple] = []
        self.threads: dict[str, int] = {}
        self.seen: dict[str, int] = {}

    def read(self) -> None:
        """Read all events and facts."""
        source = self.options.source
        try:
            self._events()
        except ValueError as error:
            found = f"it is not a trace: {error}"
            raise ExportError(
                source, found, 'JSON with "traceEvents"', "Name the .json or .json.gz file that the profiler wrote."
            ) from None
        finally:
            self.text.close()
        for kind, rows in self.pending.items():
            if rows:
                self.flush[kind](rows)
        for category, rows in self.seen.items():
            self.sink.count_in(category, rows)
        self._facts()
        if self.counter_rows:
            self._hand_over_counters()
        self.sink.issues.add("unreadable_rows", self.text.damaged, "events")
        if self.text.cut:
            self.sink.issues.add("truncated", 1, self.text.cut)
        failure = (
            ExportError(source, self.text.cut, "a complete trace", "Copy it again; a killed program leaves a cut trace.")
            if self.text.cut
            else None
        )
        if not (self.sink.n_launches or self.counter_rows):
            advice = "Profile again with ProfilerActivity.CUDA."
            raise failure or ExportError(source, f"there is no GPU kernel in it ({self._others()})", "events of category kernel", advice)
        if failure:
            raise failure

    def _others(self) -> str:
        return ", ".join(f"{rows} {category}" for category, rows in sorted(self.seen.items())) or "no event of any category read"

    def _events(self) -> None:
        categories, pending, seen = self.map["categories"], self.pending, self.seen
        for event in self.text.events():
            category = event.get("cat")
            if event.get("ph") != "X" or type(category) is not str:
                continue
            kind = categories.get(category)
            if kind is None:
                category = category.lower()
                if (kind := categories.get(category)) is None:
                    continue
            seen[category] = seen.get(category, 0) + 1
            args = event.get("args")
            if not isinstance(args, dict):
                args = {}
            start, length = nanoseconds(event.get("ts")), nanoseconds(event.get("dur"))
            end = None if start is None or length is None else start + length
            rank = args.get("rank")
            process = self.sink.processes.code(("rank", rank), rank) if type(rank) is int and 0 <= rank < 1 << 32 else self._only()
            if kind == "counters":
                self._counter_row(event, args, start, process)
                continue
            rows = pending[kind]
            rows.append((start, end, process, event, args))
            if len(rows) >= BATCH:
                self.flush[kind](rows)
                rows.clear()

    def _only(self) -> int:
        return self.sink.processes.code(("rank", -1))

    def _times(self, rows: list[tuple]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        start, wrong = integers(row[0] for row in rows)
        end, also = integers(row[1] for row in rows)
        self.sink.issues.add("out_of_range", wrong + also, "ts or dur")
        return start, end, np.array([row[2] for row in rows])

    def _numbers(self, values: list) -> np.ndarray:
        column, wrong = integers(values)
        self.sink.issues.add("out_of_range", wrong)
        return column

    def _places(self, rows: list[tuple]) -> dict[str, np.ndarray]:
        """Return device, stream and correlation: arguments first, else the lane (process = device, thread = stream)."""
        device = [row[4]["device"] if "device" in row[4] else row[3].get("pid") for row in rows]
        stream = [row[4]["stream"] if "stream" in row[4] else row[3].get("tid") for row in rows]
        stream = [s.removeprefix("stream ").strip() if isinstance(s, str) else s for s in stream]
        correlation = [row[4].get("correlation") for row in rows]
        return {"device": self._numbers(device), "stream": self._numbers(stream), "correlation": self._numbers(correlation)}

    def _launches(self, rows: list[tuple]) -> None:
        start, end, process = self._times(rows)
        kernel = [self.sink.kernel(name if isinstance(name := row[3].get("name"), str) else None) for row in rows]
        self.sink.issues.add("missing_name", sum(self.sink.kernels.texts[code].startswith("(unnamed") for code in kernel))
        shape: dict[str, list] = {}
        for raw, ours in self.map["arguments"].items():
            if ours in LAUNCH_SHAPE:
                shape[ours] = [row[4].get(raw) for row in rows]
            elif ours in ("grid", "block"):
                sizes = [row[4].get(raw) for row in rows]
                for place, axis in enumerate("xyz"):
                    shape[f"{ours}_{axis}"] = [s[place] if isinstance(s, list) and len(s) > place else None for s in sizes]
        columns = {name: self._numbers(values) for name, values in shape.items()}
        places = self._places(rows)
        self.sink.launches(start, end, np.array(kernel), process, shape=columns, **places)
        take_collectives(self.sink, start, end, process, places, [row[4] for row in rows])

    def _copies(self, rows: list[tuple]) -> None:
        kinds, ends = self.map["copy_kinds"], self.map["memory_kinds"]
        found, source, target = [], [], []
        for _, _, _, event, args in rows:
            name = event.get("name")
            name = name if isinstance(name, str) else ""
            match = _DIRECTION.search(name)
            found.append(kinds.get(match[1] if match else args.get("kind") if isinstance(args.get("kind"), str) else "", 0))
            match = _ENDS.search(name)
            source.append(ends.get(match[1], NO_KIND) if match else NO_KIND)
            target.append(ends.get(match[2], NO_KIND) if match else NO_KIND)
        self._transfers(rows, np.array(found), np.array(source), np.array(target))

    def _sets(self, rows: list[tuple]) -> None:
        ends = self.map["memory_kinds"]
        matches = [_SET.search(name) if isinstance(name := row[3].get("name"), str) else None for row in rows]
        target = np.array([ends.get(match[1], NO_KIND) if match else NO_KIND for match in matches])
        self._transfers(rows, np.full(len(rows), MEMSET_KIND), np.full(len(rows), NO_KIND), target)

    def _transfers(self, rows: list[tuple], kind: np.ndarray, source: np.ndarray, target: np.ndarray) -> None:
        start, end, process = self._times(rows)
        size = self._numbers([row[4].get("bytes") for row in rows])
        self.sink.transfers(start, end, process, kind, size=size, src_kind=source, dst_kind=target, **self._places(rows))

    def _thread(self, event: dict) -> int:
        """Return a thread's number; names of threads, and numbers that do not fit, get negative ones."""
        tid = event.get("tid")
        found = integer(tid)
        if found is None or found < 0:
            found = self.threads.setdefault(str(tid), -1 - len(self.threads)) if tid is not None else NULL
        return found

    def _calls(self, rows: list[tuple]) -> None:
        start, end, process = self._times(rows)
        thread = np.array([self._thread(row[3]) for row in rows])
        name = [self.sink.call_names.code(clean_text(str(row[3].get("name", "(unnamed call)")))) for row in rows]
        correlation = self._numbers([row[4].get("correlation") for row in rows])
        self.sink.calls(start, end, process, thread, np.array(name), correlation)

    def _ranges(self, rows: list[tuple]) -> None:
        """Take annotations; those on the device have no thread, so that a launch call is never placed in them."""
        start, end, process = self._times(rows)
        on_device = ["gpu" in row[3]["cat"].lower() for row in rows]
        thread = np.array([NULL if gpu else self._thread(row[3]) for row, gpu in zip(rows, on_device, strict=True)])
        name = [self.sink.range_names.code(clean_text(str(row[3].get("name", ""))) or "(unnamed range)") for row in rows]
        kind = [self.sink.range_kinds.code("device annotation" if gpu else "annotation") for gpu in on_device]
        self.sink.ranges(start, end, process, thread, np.array(name), np.array(kind))

    def _overhead(self, rows: list[tuple]) -> None:
        start, end, _ = self._times(rows)
        self.sink.overhead.take(start, end)

    def _counter_row(self, event: dict, args: dict, start: int | None, process: int) -> None:
        launch = len(self.counter_rows)
        name = event.get("name")
        self.counter_rows.append((NULL if start is None else start, self.sink.kernel(name if isinstance(name, str) else None), process))
        for metric, value in args.items():
            value = number(value) if isinstance(value, str) else float(value) if type(value) is int else None
            if value is not None:  # CUPTI gives raw values; per cent only shows in the metric's name
                self.counters.add_number(launch, metric, value / 100 if "pct" in metric else value, "ratio" if "pct" in metric else "")

    def _hand_over_counters(self) -> None:
        start, kernel, process = np.array(self.counter_rows).T
        device = np.zeros(len(start), np.int64)
        self.sink.processes.note(process, device, launches=not self.sink.n_launches)
        self.counters.hand_over(self.sink, kernel, process, None, {}, start)

    def _facts(self) -> None:
        """Take the clock's origin, the rank and the devices from the top level."""
        facts, sink = self.text.facts, self.sink
        base = integer(facts.get("baseTimeNanoseconds"))
        first = sink.first_start() or min((row[0] for row in self.counter_rows if row[0] != NULL), default=None)
        if base is not None and base >= 0:
            sink.session_start_ns = base
        elif first is not None and first > EPOCH_2001_NS:
            sink.session_start_ns = 0  # the clock itself counts from 1970
        info = facts.get("distributedInfo")
        rank = integer(info.get("rank")) if isinstance(info, dict) else None
        if rank is not None and 0 <= rank < 1 << 32:
            self.sink.processes.said.setdefault(self._only(), rank)
        versions = [
            f"{key.removesuffix('_version')} {clean_text(str(facts[key]))[:20]}"
            for key in ("cupti_version", "roctracer_version")
            if key in facts
        ]
        if "schemaVersion" in facts:
            versions.insert(0, f"schema {clean_text(str(facts['schemaVersion']))[:20]}")
        sink.format_version = " ".join(versions) or None
        devices = facts.get("deviceProperties")
        for device in devices if isinstance(devices, list) else []:
            if isinstance(device, dict) and (at := integer(device.get("id"))) is not None:
                for process in range(len(sink.processes.keys)):
                    sink.device(
                        process,
                        at,
                        name=device.get("name"),
                        multiprocessors=integer(device.get("numSms")),
                        memory_bytes=integer(device.get("totalGlobalMem")),
                    )

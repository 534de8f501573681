"""Events of AMD's traces: kernels, copies, calls and markers, the same for CSV, JSON and databases."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import numpy as np

from causeway.core.errors import ExportError
from causeway.core.files.yaml_files import column_map
from causeway.core.schemas.launch_threads import GRID
from causeway.readers.amd.counter_passes import CounterStore
from causeway.readers.common.constants import NEVER, NULL, Column
from causeway.readers.common.numbers import Misfits, integer, with_null
from causeway.readers.common.options import Options
from causeway.readers.containers.csv_batches import without_rounded
from causeway.readers.sink.distinct import distinct_rows
from causeway.readers.sink.sink import Sink

DEVICE_TO_HOST = 2
DEVICE_TO_DEVICE = 8
PEER_TO_PEER = 10
RANGES = "roctx"

MOST_NAMES = 1 << 16
"""Names remembered to save work; others are cleaned anew each time."""

_NUMBER = re.compile(r"(\d+)\s*$")
LONGEST_NUMBER = 40


class RocmEvents:
    """One export's events.

    Parameters
    ----------
    sink : Sink
    store : CounterStore or None
        Gets every launch, if the export has counters too.
    """

    def __init__(self, sink: Sink, store: CounterStore | None = None) -> None:
        self.sink = sink
        self.store = store
        self.copy_kinds = column_map("rocprofv3")["copy_kinds"]
        self.rounded = 0
        self._default_queues: dict[tuple[int, int], int] = {}
        self._kernel = lru_cache(MOST_NAMES)(sink.kernel)
        self._dispatches: dict[tuple[str, int], tuple[int, int, int]] = {}

    def dispatches(self, part: str, process: np.ndarray, number: np.ndarray) -> None:
        """Note the numbers of launches, also of those that cannot be used.

        Parameters
        ----------
        part : str
            The file, or database, of one execution.
        process, number : ndarray of int64, shape (n,)
            The profiler numbers the dispatches of a process one by one; `NULL` where there is no number.
        """
        numbered = number != NULL
        for code in np.unique(process[numbered]).tolist():
            own = number[numbered & (process == code)]
            low, high, count = self._dispatches.get((part, code), (int(own[0]), int(own[0]), 0))
            self._dispatches[part, code] = min(low, int(own.min())), max(high, int(own.max())), count + own.size

    def finish(self, failure: ExportError | None, nothing: ExportError, *, says_why: bool = True) -> None:
        """Count what only all events show: rounded times, dispatches that others' numbers leave out, no launch.

        Parameters
        ----------
        failure : ExportError or None
            The first damage met.
        nothing : ExportError
            The error of an export that holds neither launches nor transfers nor counters.
        says_why : bool
            Whether what is wrong with launches that cannot be used is the error instead, where there are such.

        Raises
        ------
        ExportError
            `failure`, if there is one; `nothing`, or why no launch can be used, if there is nothing.
        """
        self.sink.issues.add("rounded_times", self.rounded)
        for (part, _), (low, high, count) in self._dispatches.items():
            missing = max(0, high - low + 1 - count)
            self.sink.issues.add("missing_dispatches", missing, f"{part}: {count:,} of the numbers {low:,} to {high:,}")
        if failure:
            raise failure
        sink = self.sink
        if not (sink.n_launches or sink.n_transfers or sink.has_counters):
            raise (says_why and sink.issues.none_usable(nothing.source)) or nothing
        sink.issues.add("no_launches", int(not sink.n_launches and not sink.has_counters))

    def kernels(self, names: Sequence[str], where: str = "") -> np.ndarray:
        """Return the codes of kernel names as printed; launches without one are counted, with their file."""
        self.sink.issues.add("missing_name", sum(not name.strip() for name in names), where)
        return np.array([self._kernel(name) for name in names], np.int64)

    def launches(self, columns: Mapping[str, np.ndarray]) -> None:
        """Take launches: columns as `CounterStore.take` has them, `queue_id`, `in_queue` (`stream_or_queue`; without it
        all are), and `correlation` (0 means none).
        """
        start, _, rounded = without_rounded(columns["start"], columns["stop"])
        self.rounded += int(rounded.sum())
        if rounded.any():
            columns = {name: np.broadcast_to(column, start.shape)[~rounded] for name, column in columns.items()}
        if "queue_id" in columns:
            columns = {**columns, "stream": self._streams(columns)}
        self.sink.launches({"in_queue": True, **_of_sink(columns)})
        if self.store is not None:
            self.store.launches(columns)

    @staticmethod
    def stream_or_queue(stream: np.ndarray, queue: np.ndarray) -> dict[str, np.ndarray]:
        """Return the columns `stream`, in which the queue stands for an absent stream, and `in_queue`: whether the
        program's own order is not known, that is of no stream and of stream 0, which launches made without HIP have.

        Parameters
        ----------
        stream, queue : ndarray of int64, shape (n,)
            `NULL` where absent.

        Returns
        -------
        dict of str to ndarray of int64 and bool, shape (n,)
        """
        stated = np.where(stream == NULL, queue, stream)
        return {"stream": np.where(stated == NULL, 0, stated), "in_queue": (stream == NULL) | (stream == 0)}

    def _streams(self, columns: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the streams of launches that have a queue, too.

        Stream 0 is HIP's default stream, and that of all launches made without HIP (OpenMP, OpenCL) or recorded with
        `--group-by-queue`. Of its launches, those in another queue than the first of their process and device are of
        another stream, with a number below 0, which no stream has.
        """
        streams = columns["stream"]
        names = ("process", "device", "queue_id")
        rows = np.flatnonzero((streams == 0) & (columns["queue_id"] != NULL))
        if not rows.size:
            return streams
        first, inverse = distinct_rows([columns[name][rows] for name in names])
        numbers = np.zeros(len(first), np.int64)
        for index in range(len(first)):
            process, device, queue = (int(columns[name][rows[first[index]]]) for name in names)
            if queue != self._default_queues.setdefault((process, device), queue):
                numbers[index] = ~queue
        streams = streams.copy()
        streams[rows] = numbers[inverse]
        return streams

    def copies(
        self, columns: Mapping[str, np.ndarray], directions: Sequence[str], source: np.ndarray, target: np.ndarray
    ) -> None:
        """Take copies.

        A copy's device is the GPU at its end, or at its beginning if it goes to the host.

        Parameters
        ----------
        columns : mapping of str to ndarray of int64, shape (n,)
            start, stop, process, stream, bytes, correlation (0 means none).
        directions : sequence of str, n of them
            As the profiler names them.
        source, target : ndarray of int64, shape (n,)
            Numbers of the agents at both ends; `NULL` where unknown.
        """
        kinds = {name: self._copy_kind(name) for name in set(directions)}
        kind = np.array([kinds[name] for name in directions], np.int64)
        kind = np.where(
            (kind == DEVICE_TO_DEVICE) & (source != target) & (source != NULL) & (target != NULL), PEER_TO_PEER, kind
        )
        device = np.where((kind == DEVICE_TO_HOST) | (target == NULL), source, target)
        self.sink.transfers(_of_sink(columns) | {"copy_kind": kind, "device": device})

    def knows(self, direction: str) -> bool:
        """Return whether a copy's direction is one of the map."""
        return self._copy_kind(direction) > 0

    def _copy_kind(self, name: str) -> int:
        return next((kind for end, kind in self.copy_kinds.items() if name.upper().endswith(end)), 0)

    def calls(self, columns: Mapping[str, np.ndarray], names: Iterable[str]) -> None:
        """Take runtime calls: start, stop, process, thread, correlation, and their names."""
        code = self.sink.call_names.codes_of(names)
        facts = {"thread": columns.get("thread", NULL), "name": code, "correlation": _of_sink(columns)["correlation"]}
        self.sink.take("calls", columns["start"], columns["stop"], columns["process"], **facts)

    def calls_and_ranges(
        self, columns: Mapping[str, np.ndarray], names: Sequence[str], is_call: np.ndarray, is_range: np.ndarray
    ) -> None:
        """Take rows of a table of both, n of them: columns as of `calls`, names or texts, and bool arrays of shape (n,)
        that say which they are.
        """
        for chosen, take in ((is_call, self.calls), (is_range, self.ranges)):
            if chosen.any():
                rows = np.flatnonzero(chosen)
                take({name: column[rows] for name, column in columns.items()}, [names[row] for row in rows.tolist()])

    def ranges(self, columns: Mapping[str, np.ndarray], names: Iterable[str]) -> None:
        """Take ranges: start, stop, process, thread, and their texts."""
        code = self.sink.range_names.codes_of(names)
        kind = np.full(len(code), self.sink.range_kinds.code(RANGES))
        stop = np.where(columns["stop"] == NULL, NEVER, columns["stop"])
        facts = {"thread": columns.get("thread", NULL), "name": code, "kind": kind}
        self.sink.take("ranges", columns["start"], stop, columns["process"], **facts)


class AmdReader:
    """What the readers of AMD's exports have in common.

    Parameters
    ----------
    sink : Sink
    options : Options
    form : str
        Name of the layout's column map.

    Attributes
    ----------
    rules, shared : dict
        The column map of the layout, and that of rocprofv3.
    failure : ExportError or None
        The first damage met.
    done, before, total : int
        What was read and what there is of the file that is read, in rows or bytes, and bytes of those before.
    """

    def __init__(self, sink: Sink, options: Options, form: str) -> None:
        self.sink = sink
        self.options = options
        self.rules = column_map(form)
        self.shared = column_map("rocprofv3")
        sink.metadata[GRID] = self.rules["grid"]
        self.store = CounterStore(sink, self.rules.get("units", self.shared["units"]), self.rules["duration"])
        self.events = RocmEvents(sink)
        self.progress = options.progress()
        self.failure: ExportError | None = None
        self.done = self.before = 0
        self.total = 1

    def fail(self, error: ExportError, kind: str, detail: str) -> None:
        """Count damage as an issue, and keep the first."""
        self.sink.issues.add(kind, 1, detail)
        self.failure = self.failure or error

    def count(self, table: str, rows: int, misfits: Misfits) -> None:
        """Count rows of a database's table as read, and what is none in them."""
        self.sink.count_in(table, rows)
        self.sink.issues.add_all(misfits, table)
        self.done += rows
        self.progress.at(self.before + int((self.options.size - self.before) * min(1.0, self.done / self.total)))


def _of_sink(columns: Mapping[str, Column]) -> dict[str, Column]:
    """Return columns of events as the sink takes them: times by its names, and no correlation where it is 0."""
    correlation = np.asarray(columns.get("correlation", NULL))
    named = {"start_ns": columns["start"], "end_ns": columns["stop"]}
    return {**columns, **named, "correlation": np.where(correlation == 0, NULL, correlation)}


def allocated_lds(kernel: np.ndarray, dispatch: np.ndarray, step: int) -> np.ndarray:
    """Return the LDS of launches as it is allocated.

    Parameters
    ----------
    kernel, dispatch : ndarray of int64, shape (n,), bytes
        What the kernel declares, and what its dispatch asks for, with what is chosen at the launch; `NULL` where there
        is none.
    step : int
        Bytes by which more is allocated.

    Returns
    -------
    ndarray of int64, shape (n,), bytes
        `NULL` where neither is known.
    """
    asked = np.maximum(kernel, dispatch)
    return np.where(asked == NULL, NULL, -(-asked // step) * step)


def agents(texts: Sequence[str]) -> np.ndarray:
    """Return the numbers of agents as printed: `1` (2024), `Agent 1` (2026), `GPU 0`; `NULL` where there is none."""
    matches = {text: _NUMBER.search(text[-LONGEST_NUMBER:]) for text in set(texts)}
    numbers = {text: integer(match[1]) if match else None for text, match in matches.items()}
    return with_null(numbers[text] for text in texts)


def device_facts(name: object, multiprocessors: int | None, clock_mhz: int | None) -> dict:
    """Return the facts of a device for `Sink.device`; None where a text is empty, or a number not above 0."""
    return {
        "name": name if isinstance(name, str) and name else None,
        "multiprocessors": multiprocessors if multiprocessors and multiprocessors > 0 else None,
        "clock_hz": clock_mhz * 1_000_000 if clock_mhz and clock_mhz > 0 else None,
    }

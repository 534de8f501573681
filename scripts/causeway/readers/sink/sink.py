"""The sink: what every reader hands its events to, and what all formats share before the tables are written.

It drops and counts what cannot be an event, codes kernels and configurations, orders, assigns ranks, finds each
launch's call and range, and writes tables that conform to `core.schemas`. Times may come in any order and batches of
any size; memory stays bounded (`external_sort`, `joins`).
"""

import contextlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from causeway.core.codes import MIGRATIONS
from causeway.core.formatting import counted
from causeway.core.schemas import LAUNCH_FACTS, LAUNCH_SHAPE
from causeway.core.tables import TableWriter
from causeway.readers.common.background import BackgroundWriter
from causeway.readers.common.constants import NEVER, NO_KIND, NO_STREAM, NULL, UNNAMED_CALL, UNNAMED_RANGE, Column
from causeway.readers.common.issues import Issues
from causeway.readers.common.kernel_names import clean_kernel_name, clean_text, is_unnamed
from causeway.readers.common.numbers import integer, integers
from causeway.readers.common.vocabularies import BoundedVocabulary, Vocabulary
from causeway.readers.sink.batches import EventBatch, repeated
from causeway.readers.sink.distinct import distinct_keys
from causeway.readers.sink.event_times import COARSE_NS, COARSE_ROWS, COARSE_STARTS, ClockTick, possible_events
from causeway.readers.sink.external_sort import ExternalSort
from causeway.readers.sink.launch_operators import OperatorNames
from causeway.readers.sink.processes import OtherContexts, Processes
from causeway.readers.sink.profiler_overhead import ProfilerOverhead
from causeway.readers.sink.records import (
    MOST_STREAMS,
    RECORDS,
    CounterRows,
    FittingCorrelations,
    FittingIds,
    RowCodes,
    event_batch,
)

COMPUTE_CAPABILITY = re.compile("[0-9]{1,2}[.][0-9]{1,2}")
MOST_NAMES = 1 << 14
LONGEST_NAME = 4096
"""Names remembered as the export writes them, to save work, and the longest of them."""
OPEN_KINDS = {"calls": "call", "ranges": "range", "system_calls": "system call", "mpi": "MPI call"}
"""Kinds of events of the host that may still last when the recording ends, and the words for one. Work of a device is
none of them: a launch without an end has no duration that was measured.
"""
OPEN = -1
"""Duration of an event without an end, until the end of the recording is known."""
MOST_KERNEL_CHARS = 1 << 26
"""Characters of the names of all kernels beyond which new ones share a name: twice those of other names, since kernels
whose names are merged are one kernel.
"""


GRID = tuple(name for name in LAUNCH_SHAPE if name.startswith("grid_"))
BLOCK = tuple(name for name in LAUNCH_SHAPE if name.startswith("block_"))
_FITTED = ("device", "stream", "thread")
OF_LAUNCHES = (
    *("process", "kernel", "device", "stream", "correlation", "label", "in_queue"),
    *(*LAUNCH_FACTS.names, *LAUNCH_SHAPE),
)
"""What launches have beside their times."""
LARGEST_SIZE = 1 << 32
"""Of a grid along one axis: HSA's packets, which count work-items, have 32 bits; CUDA takes less."""


@dataclass(kw_only=True)
class Facts:
    """Facts of a whole export, for `capabilities.json`, which describes them."""

    tables: dict[str, int] = field(default_factory=dict)
    ranks: list[int] = field(default_factory=list)
    ranks_from: str = "position"
    first_ns: int | None = None
    last_ns: int | None = None
    has_start: bool = False
    values: dict[str, str] = field(default_factory=dict)
    streams: dict[int, int] = field(default_factory=dict)
    queue_known: int = 0
    migrations: int = 0
    recording: str | None = None
    rules: list[dict[str, Any]] = field(default_factory=list)


class Sink:
    """Take an export's events and write its tables.

    Parameters
    ----------
    folder : Path
        Where the tables go; also where runs that do not fit memory are spilled, for as long as the sink is open.
    metadata : dict of str to str
        Kept in each table's file: source, and source_sha256, which may be added as late as before `write_star`.
    rank : int or None
        The sheet's rank.
    position : int
        The export's position in its dataset: its rank if nothing else identifies it.
    communication : sequence of str
        Parts of names of kernels that the user calls communication.
    """

    def __init__(
        self, folder: Path, metadata: dict[str, str], rank: int | None, position: int, communication: Sequence[str] = ()
    ) -> None:
        self.folder = folder
        self.metadata = metadata
        self.sheet_rank = rank
        self.position = position
        self.communication = communication
        self.issues = Issues()
        self.processes = Processes()
        self.facts = Facts()
        self.overhead = ProfilerOverhead()
        self.other_contexts = OtherContexts()
        self.queues: set[tuple[int, ...]] = set()  # process, device, stream: hardware queues in place of streams
        self.assumed_streams: set[tuple[int, ...]] = set()  # the same of streams with launches that name none
        self.work_item_calls: frozenset[str] = frozenset()  # names of calls whose launches have grids in work-items
        self.rows_in: dict[str, int] = {}
        self.session_start_ns: int | None = None
        self.format_version: str | None = None
        self.kernels = BoundedVocabulary(MOST_KERNEL_CHARS)
        self.labels = Vocabulary()
        self.call_names = BoundedVocabulary(unnamed=UNNAMED_CALL)
        self.range_names = BoundedVocabulary(unnamed=UNNAMED_RANGE)
        self.range_kinds = Vocabulary()
        self.operator_names = OperatorNames()
        self.metrics = Vocabulary()
        self.mpi_names = BoundedVocabulary(unnamed=UNNAMED_CALL)
        self.system_call_names = BoundedVocabulary(unnamed=UNNAMED_CALL)
        self.sampled_names = BoundedVocabulary()
        self.function_names = BoundedVocabulary()
        self.collective_names = Vocabulary()
        self.communicators = BoundedVocabulary()
        self._named: dict[str | bytes | None, tuple[int, bool]] = {}
        self.configurations = RowCodes()
        self.at_close = contextlib.ExitStack()  # what ends with the sink: open files, and what was spilled
        self._events = {kind: self.sorted_rows(kind) for kind in RECORDS}
        self._devices: dict[tuple[int, int], dict[str, Any]] = {}
        self._same_devices: dict[int, int] = {}
        self._ids = FittingIds()
        self._correlations = FittingCorrelations()
        self._clock = ClockTick()
        self._last_ns = NULL  # the latest end of all events so far
        self._open = dict.fromkeys(OPEN_KINDS, 0)
        self._counters: tuple[list[pa.Field], Iterable[CounterRows]] | None = None

    # what readers call

    def kernel(self, name: str | bytes | None) -> int:
        """Return the code of a kernel's name."""
        code, altered = self._named.get(name, (-1, False))
        if code < 0:
            clean = clean_kernel_name(name)
            code = self.kernels.code(clean)
            altered = "\ufffd" in clean and (isinstance(name, bytes) or clean != name)
            if len(self._named) < MOST_NAMES and len(name or "") < LONGEST_NAME:
                self._named[name] = code, altered
        if altered:
            self.issues.add("altered_text")
        return code

    def count_unnamed(self, kernel: np.ndarray, where: str = "") -> None:
        """Count launches without a kernel name; `kernel` are codes, shape (n,), `where` is the export's table."""
        unnamed = [code for code, text in enumerate(self.kernels.texts) if is_unnamed(text)]
        self.issues.add("missing_name", int(np.isin(kernel, unnamed).sum()) if unnamed else 0, where)

    def integers(self, values: Iterable, of_times: bool = False) -> np.ndarray:
        """Return values as `numbers.integers` does, int64 of shape (n,); what is none is `NULL`, and counted."""
        numbers, misfits = integers(values, of_times)
        self.issues.add_all(misfits)
        return numbers

    def count_in(self, table: str, rows: int) -> None:
        """Count rows of one of the export's own tables as read, whatever becomes of them."""
        self.rows_in[table] = self.rows_in.get(table, 0) + int(rows)

    def launches(self, columns: Mapping[str, Column]) -> None:
        """Take launches, in any order.

        The other methods that take events have the same conventions: int64 arrays of one length n, or one value for all
        rows, and `NULL` where absent; times in nanoseconds on the export's clock. Rows that cannot be an event are left
        out and counted. An event of `OPEN_KINDS` that ends at `NEVER`, or at 0 after its start, as profilers write
        an end that never came, lasts to the end of the recording, and is counted.

        Parameters
        ----------
        columns : mapping of str to ndarray of int64, shape (n,), or int
            start_ns and end_ns; kernel and process, codes from `kernel` and `processes.code`; as far as the export has
            them device, stream (`NULL`: written as 0, without order, and counted), correlation, label (codes of
            `labels`), in_queue (bool: whether the stream is a hardware queue, which may run several launches at a time,
            and no stream of the program), and columns of `LAUNCH_FACTS` and `LAUNCH_SHAPE`. Others are passed over.
        """
        given: dict[str, Column] = dict.fromkeys(("correlation", "label", *LAUNCH_FACTS.names), NULL)
        given |= {"device": 0, "stream": NULL, "in_queue": False}
        given |= {name: columns[name] for name in OF_LAUNCHES if name in columns}
        n, columns = self._possible(columns["start_ns"], columns["end_ns"], given, of_device=True, of_launches=True)
        if not n:
            return
        self.issues.add("zero_duration", int(np.sum(columns["duration_ns"] == 0)))
        in_queue = columns["in_queue"] != 0
        is_assumed = (columns["stream"] == NULL) & ~in_queue
        self.issues.add("stream_assumed", int(is_assumed.sum()))
        self._fit(columns, "device", "stream")
        self._check_sizes(columns, n)
        for rows, streams in ((in_queue, self.queues), (is_assumed, self.assumed_streams)):
            if len(streams) < MOST_STREAMS and rows.any():
                ids = [columns[name][rows] for name in ("process", "device", "stream")]
                streams.update(distinct_keys(ids)[0])
        codes = self._codes(columns, n)
        self._clock.take(columns["start_ns"], columns["duration_ns"])
        times = columns["start_ns"], columns["duration_ns"]
        self.processes.note(columns["process"], columns["device"], launches=True, times=times)
        self._events["launches"].add(event_batch("launches", n, columns | {"configuration": codes}))

    def transfers(self, columns: Mapping[str, Column]) -> None:
        """Take memory copies, memsets and migrations of managed memory; conventions as `launches`.

        No call makes a migration: the correlation that tools write for it, 0, may be that of another call.

        Parameters
        ----------
        columns : mapping of str to ndarray of int64, shape (n,), or int
            start_ns, end_ns, process; as far as the export has them copy_kind, a key of `codes.COPY_KINDS` (else 0),
            bytes, device, stream (else 0), correlation, src_kind and dst_kind, the kinds of memory at both ends, keys
            of `codes.MEMORY_KINDS` or `NO_KIND`, and migration_cause, a number of CUPTI's or `NO_KIND`. Others are
            passed over.
        """
        given: dict[str, Column] = {"bytes": NULL, "correlation": NULL, "device": 0, "stream": 0, "copy_kind": 0}
        given |= dict.fromkeys(("src_kind", "dst_kind", "migration_cause"), NO_KIND)
        given |= {name: columns[name] for name in ("process", *given) if name in columns}
        n, columns = self._possible(columns["start_ns"], columns["end_ns"], given, of_device=True)
        if n:
            self._fit(columns, "device", "stream")
            for name in ("copy_kind", "src_kind", "dst_kind", "migration_cause"):
                absent = 0 if name == "copy_kind" else NO_KIND
                columns[name] = np.where((columns[name] >= 0) & (columns[name] <= 255), columns[name], absent)
            moved = np.isin(columns["copy_kind"], MIGRATIONS)
            columns["correlation"] = np.where(moved, NULL, columns["correlation"])
            columns["migration_cause"] = np.where(moved, columns["migration_cause"], NO_KIND)
            below = (columns["bytes"] < 0) & (columns["bytes"] != NULL)
            self.issues.add("impossible_sizes", int(below.sum()), "bytes")
            columns["bytes"] = np.where(below, NULL, columns["bytes"])
            self.processes.note(columns["process"], columns["device"], launches=False)
            self._events["transfers"].add(event_batch("transfers", n, columns))

    def take(self, kind: str, start_ns: Column, end_ns: Column, process: Column, /, **columns: Column) -> None:
        """Take events of a kind other than launches, transfers and samples; conventions as `launches`.

        Parameters
        ----------
        kind : str
            A key of `RECORDS`: calls, ranges, operators, mpi, system_calls, cpu_samples, python_functions,
            dependencies (the synchronisations), graphs that were traced as a whole, collectives (kernels, which are
            launches, too).
        start_ns, end_ns, process : ndarray of int64, shape (n,), or int
        columns : ndarray of int64, shape (n,), or int
            The others of that kind; what is not given is absent. `name` are codes of `call_names`, `range_names`,
            `operator_names`, `mpi_names`, `system_call_names`, `sampled_names`, `function_names` and
            `collective_names`; `kind` of ranges are codes of `range_kinds`, of dependencies places in
            `codes.SYNCHRONISATIONS`; `inputs` are codes of `operator_names`, `flags` those of `common.operators`;
            `communicator` of collectives are codes of `communicators`, -1 for none; `peer` is the other rank or the
            root; `bytes` are those sent or received.
        """
        names = [name for name in RECORDS[kind].names or () if name not in ("start_ns", "duration_ns")]
        given: dict[str, Column] = {name: columns.get(name, NULL) for name in names}
        given["process"] = process
        if kind == "mpi":  # MPI_ANY_SOURCE, MPI_PROC_NULL and the like are negative
            given |= {name: np.where(np.less(given[name], 0), NULL, given[name]) for name in ("bytes", "peer")}
        if kind == "dependencies":  # they may concern no stream
            for name in ("stream", "source_stream"):
                fits = np.greater_equal(given[name], 0) & np.less(given[name], NO_STREAM)
                given[name] = np.where(fits, given[name], NULL)
        if kind == "graphs":
            given["stream"] = np.where(np.equal(given["stream"], NULL), NO_STREAM, given["stream"])
        start, end = (np.atleast_1d(np.asarray(times, np.int64)) for times in (start_ns, end_ns))
        is_open = (end == NEVER) | (end == 0) & (start > 0) if kind in OPEN_KINDS else np.zeros(1, bool)
        if is_open.any():
            end = np.where(is_open, start, end)
            given["open"] = is_open
        n, rows = self._possible(start, end, given, of_device=kind in ("graphs", "collectives"))
        if n:
            if "open" in rows:
                is_open = rows.pop("open") > 0
                self._open[kind] += int(is_open.sum())
                rows["duration_ns"] = np.where(is_open, OPEN, rows["duration_ns"])
            # streams of dependencies may be none
            self._fit(rows, *(name for name in _FITTED if name in rows and kind != "dependencies"))
            self._events[kind].add(event_batch(kind, n, rows))

    def samples(self, time_ns: np.ndarray, process: Column, device: Column, metric: Column, value: np.ndarray) -> None:
        """Take samples of a device's metrics at `time_ns`, int64 of shape (n,): `metric` are codes of `metrics`,
        `value` is float64 of shape (n,), values that are not finite are left out and counted; conventions as
        `launches`.
        """
        given = {"process": process, "device": device, "metric": metric, "at": np.arange(len(time_ns))}
        n, columns = self._possible(time_ns, time_ns, given)
        values = np.asarray(value, np.float64)[columns["at"]]
        finite = np.isfinite(values)
        self.issues.add("not_a_number", int(n - finite.sum()))
        if finite.any():
            columns = {name: rows[finite] for name, rows in columns.items()} | {"value": values[finite]}
            self._fit(columns, "device")
            self._events["samples"].add(event_batch("samples", int(finite.sum()), columns))

    def device(self, process: int, device: int, **facts: object) -> None:
        """Remember facts of a device (name, multiprocessors, memory_bytes, clock_hz, compute_capability); only devices
        with launches or transfers are written.
        """
        if not COMPUTE_CAPABILITY.fullmatch(str(facts.get("compute_capability"))):
            facts.pop("compute_capability", None)
        if "name" in facts and facts["name"] is not None:
            facts["name"] = clean_text(str(facts["name"]))
        fitting = {
            name: fact
            for name, fact in facts.items()
            if not isinstance(fact, int) or 0 <= fact < 1 << 31 or integer(fact) is not None
        }
        self.issues.add("out_of_range", len(facts) - len(fitting), "facts of a device")
        self._devices.setdefault((process, device), {}).update(fitting)

    def same_devices(self, processes: Iterable[int]) -> None:
        """Let facts of devices given for the first of some processes hold for all of them: stored for each, there would
        be as many as processes times devices.
        """
        processes = list(processes)
        self._same_devices |= dict.fromkeys(processes, processes[0] if processes else 0)

    def counters(self, fields: list[pa.Field], rows: Iterable[CounterRows]) -> None:
        """Take the rows of the counters table, in order; they are consumed when the tables are written.

        Parameters
        ----------
        fields : list of Field
            The metrics, with unit and raw name in their metadata.
        rows : iterable of CounterRows
            Their processes must have been noted before.
        """
        self._counters = (fields, rows)

    def sorted_rows(self, name: str) -> ExternalSort:
        """Return rows that are ordered by start, beside the tables where memory does not hold them; until the sink is
        closed.
        """
        rows = ExternalSort(self.folder / f".{name}.rows")
        self.at_close.callback(rows.close)
        return rows

    # codes

    def _possible(
        self,
        start: Column,
        end: Column,
        given: Mapping[str, Column],
        of_device: bool = False,
        of_launches: bool = False,
    ) -> tuple[int, dict[str, np.ndarray]]:
        n, columns = possible_events(np.asarray(start), np.asarray(end), given, self.issues, of_device, of_launches)
        if n:
            self._last_ns = max(self._last_ns, int((columns["start_ns"] + columns["duration_ns"]).max()))
        return n, columns

    def _fit(self, columns: dict[str, np.ndarray], *ids: str) -> None:
        """Replace columns of ids, and correlations, by ones that fit."""
        columns |= {name: self._ids.of(name, columns[name]) for name in ids}
        if "correlation" in columns:
            columns["correlation"] = self._correlations.of(columns["correlation"])

    def _check_sizes(self, columns: dict[str, np.ndarray], n: int) -> None:
        """Count launches whose grid or block cannot be, and let sizes that no GPU takes be absent."""
        odd = np.zeros(n, bool)
        for name in [name for name in (*GRID, *BLOCK) if name in columns]:
            size = columns[name]
            far = (size != NULL) & ((size < 0) | (size >= LARGEST_SIZE))
            odd |= far | (size == 0)
            if far.any():
                columns[name] = np.where(far, NULL, size)
        self.issues.add("impossible_sizes", int(odd.sum()), "grid or block")

    def _codes(self, columns: Mapping[str, np.ndarray], n: int) -> np.ndarray:
        """Return configuration codes of rows with kernel, label and any columns of `LAUNCH_SHAPE`."""
        absent = repeated(NULL, n)
        return self.configurations.codes([columns.get(name, absent) for name in ("kernel", "label", *LAUNCH_SHAPE)])

    # writing

    @property
    def n_launches(self) -> int:
        """Launches taken so far."""
        return self._events["launches"].rows

    @property
    def n_transfers(self) -> int:
        """Transfers taken so far."""
        return self._events["transfers"].rows

    @property
    def near_most(self) -> tuple[int, int] | None:
        """The earliest and the latest start of events that can be of this recording, ns; None where all can."""
        return None if self.issues.count("differing_clocks") else self._clock.near_most()

    def first_start(self) -> int | None:
        """Return the earliest start of a launch taken so far."""
        return self._clock.first_ns

    def coarse_tick_ns(self) -> int:
        """Return the tick of the starts of launches, 0 unless they are multiples of a coarse one."""
        is_coarse = self.issues.count("coarse_clock") or self.issues.count("coarse_starts")
        return self._clock.start_tick_ns if is_coarse else 0

    @property
    def resolution_ns(self) -> int:
        """By how much rounding can let launches seem to overlap, ns."""
        return self._clock.resolution_ns

    @property
    def unsure_ns(self) -> int:
        """By how much the order of two ends may be wrong, ns: two ticks of a clock that is coarse, as starts and
        durations may each be half a tick off; 0 of one that is not.
        """
        if self.issues.count("coarse_clock"):
            return 2 * self._clock.tick_ns
        return 2 * self._clock.start_tick_ns if self.issues.count("coarse_starts") else 0

    def count_of(self, kind: str) -> int:
        """Return how many events of a kind (a key of `RECORDS`) were taken."""
        return self._events[kind].rows

    @property
    def has_counters(self) -> bool:
        """Whether the reader handed over counters."""
        return self._counters is not None

    def note_at_end(self) -> None:
        """Note what only the whole export shows: the tick of its clock, events that have no end, and names of ranges
        that were merged.
        """
        parts = [counted(number, OPEN_KINDS[kind]) for kind, number in self._open.items() if number]
        self.issues.add("open_events", sum(self._open.values()), f"{' and '.join(parts)} without an end")
        if self._clock.tick_ns >= COARSE_NS and self.n_launches >= COARSE_ROWS:
            self.issues.add("coarse_clock", self.n_launches, f"a tick of {self._clock.tick_ns:,} ns")
        elif self.issues.count("coarse_starts"):
            pass
        elif self._clock.start_tick_ns >= COARSE_NS and self.n_launches >= COARSE_STARTS:
            self.issues.add("coarse_starts", self.n_launches, f"a tick of {self._clock.start_tick_ns:,} ns")
        for names in (self.range_names, self.call_names, self.mpi_names, self.communicators, self.sampled_names):
            self.issues.add("merged_names", names.merged, f"beyond {len(names.texts):,} names")
        self.issues.add("merged_ids", self._ids.merged)
        self.issues.add("out_of_range", self._correlations.lost, "correlations with too many different upper halves")
        self.issues.add("merged_kernels", self.kernels.merged, f"beyond {len(self.kernels.texts):,} names")

    def events(self, kind: str) -> Iterator[EventBatch]:
        """Give the rows of a kind in order; once. Those without an end last to the latest end of all events."""
        for block in self._events[kind].blocks():
            duration = block["duration_ns"] if self._open.get(kind) else None
            if duration is not None and (is_open := duration == OPEN).any():
                lasting = np.where(is_open, self._last_ns - block["start_ns"], duration)
                yield EventBatch(block.columns | {"duration_ns": lasting})
            else:
                yield block

    def device_facts(self, process: int, device: int) -> dict[str, Any]:
        """Return the facts of a device, {} if the export has none."""
        shared = self._devices.get((self._same_devices.get(process, process), device), {})
        return shared | self._devices.get((process, device), {})

    def counter_rows(self) -> tuple[list[pa.Field], Iterable[CounterRows]]:
        """Return the counters' fields and rows."""
        return self._counters or ([], [])

    def counter_codes(self, rows: CounterRows) -> np.ndarray:
        """Return the configuration codes of counter rows."""
        n = len(rows.kernel)
        label = np.full(n, NULL) if rows.label is None else rows.label
        return self._codes({"kernel": rows.kernel, "label": label, **rows.shape}, n)

    def writer(self, table: str, extra: Iterable[pa.Field] = ()) -> BackgroundWriter:
        """Return a writer for one of this export's tables."""
        return BackgroundWriter(TableWriter(self.folder / f"{table}.parquet", table, extra, self.metadata))

    def close(self) -> None:
        """Close what is open, and remove what was spilled."""
        self.at_close.close()

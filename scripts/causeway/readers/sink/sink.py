"""The sink: what every reader hands its events to, and what all formats share on their way to the star of tables.

It drops and counts what cannot be an event, codes kernels and configurations, orders, assigns ranks, finds each launch's call and range,
and writes tables that conform to `causeway.schemas`. Times may come in any order and batches of any size; memory stays bounded (`order`,
`joins`).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.readers.behind import BehindWriter
from causeway.readers.checks import Overhead
from causeway.readers.events import EPOCH_2100_NS, LONGEST_NS, NO_KIND, NULL, RECORDS, Coder, integer, records
from causeway.readers.issues import Issues
from causeway.readers.names import BoundedVocabulary, Vocabulary, clean_kernel_name, clean_text, kernel_class, kernel_id, short_name
from causeway.readers.order import Ordered
from causeway.readers.processes import Processes
from causeway.readers.rows import Rows, is_repeated, repeated
from causeway.tables import LAUNCH_SHAPE, SCHEMAS, TableWriter

MOST_NAMES, LONGEST_NAME = 1 << 14, 4096
"""Names remembered as the export writes them, to save work, and the longest of them."""

DENSE_FROM = {"device": (60_000, 1 << 16), "stream": (4_000_000_000, 1 << 32), "thread": (4_000_000_000, 1 << 32)}
"""Ids that do not fit their column (handles, pointers) are numbered from the first value; those from the second on do not fit."""


COARSE_NS, COARSE_ROWS = 100, 3
"""Launches whose times all share a tick of this many ns or more, in at least so many rows, were measured with a coarse clock."""


@dataclass
class Facts:
    """What the sink knows of a whole export, for `capabilities.json`."""

    tables: dict[str, int] = field(default_factory=dict)
    ranks: list[int] = field(default_factory=list)
    ranks_from: str = "position"
    first_ns: int | None = None
    last_ns: int | None = None
    has_start: bool = False
    values: dict[str, str] = field(default_factory=dict)
    text_columns: list[str] = field(default_factory=list)
    streams: dict[int, int] = field(default_factory=dict)
    queue_known: int = 0
    ranges_known: int = 0


@dataclass
class CounterRows:
    """A batch of rows of the counters table: codes from the sink, one array per metric (NaN or null where absent)."""

    kernel: np.ndarray
    process: np.ndarray | int
    values: Mapping[str, object]
    start_ns: np.ndarray | None = None
    device: np.ndarray | None = None
    shape: Mapping[str, np.ndarray] = field(default_factory=dict)
    label: np.ndarray | None = None
    launch: np.ndarray | None = None  # rows of the launches table, or numbers beyond them; None: the row's own number


class Sink:
    """Take an export's events and write its tables.

    Parameters
    ----------
    folder : Path
        Where the tables go; also where runs that do not fit memory are spilled, for as long as the sink is open.
    metadata : dict of str to str
        Kept in each table's file: source, and source_sha256, which may be added as late as before `finish`.
    rank : int or None
        The sheet's rank.
    position : int
        The export's place in its dataset: its rank if nothing says otherwise.
    """

    def __init__(self, folder: Path, metadata: dict[str, str], rank: int | None, position: int) -> None:
        self.folder, self.metadata, self.sheet_rank, self.position = folder, metadata, rank, position
        self.issues, self.processes, self.facts, self.overhead = Issues(), Processes(), Facts(), Overhead()
        self.rows_in: dict[str, int] = {}
        self.session_start_ns: int | None = None
        self.format_version: str | None = None
        self.kernels, self.labels = Vocabulary(), Vocabulary()
        self.call_names, self.range_names, self.range_kinds, self.metrics = Vocabulary(), BoundedVocabulary(), Vocabulary(), Vocabulary()
        self.mpi_names, self.collective_names, self.communicators = Vocabulary(), Vocabulary(), Vocabulary()
        self._named: dict[str | bytes | None, tuple[int, bool]] = {}
        self._configurations = Coder()
        self._events = {kind: Ordered(folder / f".{kind}.rows") for kind in RECORDS}
        self._devices: dict[tuple[int, int], dict] = {}
        self._dense: dict[str, dict[int, int]] = {}
        self._first: int | None = None
        self._origin, self._tick = 0, None
        self._counters: tuple[list[pa.Field], Iterable[CounterRows]] | None = None

    # what readers call

    def kernel(self, name: str | bytes | None) -> int:
        """Return the code of a kernel's name."""
        code, altered = self._named.get(name, (-1, False))
        if code < 0:
            clean = clean_kernel_name(name)
            code, altered = self.kernels.code(clean), "\ufffd" in clean and (isinstance(name, bytes) or clean != name)
            if len(self._named) < MOST_NAMES and len(name or "") < LONGEST_NAME:
                self._named[name] = code, altered
        if altered:
            self.issues.add("altered_text")
        return code

    def count_in(self, table: str, rows: int) -> None:
        """Count rows of one of the export's own tables as read, whatever becomes of them."""
        self.rows_in[table] = self.rows_in.get(table, 0) + int(rows)

    def launches(self, start_ns, end_ns, kernel, process, device=0, stream=0, correlation=NULL, queue_ns=NULL, shape=None, label=NULL):
        """Take launches: int64 arrays of one length (or one value for all), `NULL` where absent.

        `kernel` and `process` are codes from `kernel` and `processes.code`; `shape` maps names of `LAUNCH_SHAPE` to arrays.
        """
        columns = {"stream": stream, "correlation": correlation, "queue_ns": queue_ns, "process": process, "kernel": kernel, "label": label}
        columns |= {"device": device, **(shape or {})}
        n, columns = self._times(start_ns, end_ns, columns)
        if not n:
            return
        self.issues.add("zero_duration", n - np.count_nonzero(columns["duration_ns"]))
        columns["device"], columns["stream"] = self._fit("device", columns["device"]), self._fit("stream", columns["stream"])
        columns["configuration"] = self._codes(columns, n)
        self._note_times(columns["start_ns"], columns["duration_ns"])
        self.processes.note(columns["process"], columns["device"], launches=True)
        self._events["launches"].add(records("launches", n, columns))

    def transfers(
        self, start_ns, end_ns, process, copy_kind, size=NULL, device=0, stream=0, correlation=NULL, src_kind=NO_KIND, dst_kind=NO_KIND
    ):
        """Take memory copies and sets (copy_kind 255); like `launches`."""
        columns = {"bytes": size, "process": process, "stream": stream, "device": device, "correlation": correlation}
        columns |= {"copy_kind": copy_kind, "src_kind": src_kind, "dst_kind": dst_kind}
        n, columns = self._times(start_ns, end_ns, columns)
        if n:
            columns["device"], columns["stream"] = self._fit("device", columns["device"]), self._fit("stream", columns["stream"])
            for name, absent in (("copy_kind", 0), ("src_kind", NO_KIND), ("dst_kind", NO_KIND)):
                columns[name] = np.where((columns[name] >= 0) & (columns[name] <= 255), columns[name], absent)
            columns["bytes"] = np.where(columns["bytes"] < 0, NULL, columns["bytes"])
            self.processes.note(columns["process"], columns["device"], launches=False)
            self._events["transfers"].add(records("transfers", n, columns))

    def calls(self, start_ns, end_ns, process, thread, name, correlation=NULL):
        """Take runtime calls; `name` are codes of `call_names`."""
        columns = {"process": process, "thread": thread, "name": name, "correlation": correlation}
        n, columns = self._times(start_ns, end_ns, columns)
        if n:
            columns["thread"] = self._fit("thread", columns["thread"])
            self._events["calls"].add(records("calls", n, columns))

    def ranges(self, start_ns, end_ns, process, thread, name, kind):
        """Take named ranges; `name` are codes of `range_names`, `kind` of `range_kinds`."""
        n, columns = self._times(start_ns, end_ns, {"process": process, "thread": thread, "name": name, "kind": kind})
        if n:
            columns["thread"] = self._fit("thread", columns["thread"])
            self._events["ranges"].add(records("ranges", n, columns))

    def mpi(self, start_ns, end_ns, process, thread, name, size=NULL, peer=NULL, communicator=NULL):
        """Take MPI calls; `name` are codes of `mpi_names`, `peer` the other rank or the root, `size` the bytes sent or received."""
        columns = {"process": process, "thread": thread, "name": name, "bytes": size, "peer": peer, "communicator": communicator}
        n, columns = self._times(start_ns, end_ns, columns)
        if n:
            columns["thread"] = self._fit("thread", columns["thread"])
            for what in ("bytes", "peer"):  # MPI_ANY_SOURCE, MPI_PROC_NULL and the like are negative
                columns[what] = np.where(columns[what] < 0, NULL, columns[what])
            self._events["mpi"].add(records("mpi", n, columns))

    def collectives(self, start_ns, end_ns, process, device, stream, correlation, name, communicator, sequence, group_size, size):
        """Take kernels of collectives, which are launches, too; `name` and `communicator` are codes of `collective_names` and
        `communicators` (-1 for none), `size` is the message in bytes.
        """
        columns = {"process": process, "device": device, "stream": stream, "correlation": correlation, "name": name}
        columns |= {"communicator": communicator, "sequence": sequence, "group_size": group_size, "bytes": size}
        n, columns = self._times(start_ns, end_ns, columns)
        if n:
            columns["device"], columns["stream"] = self._fit("device", columns["device"]), self._fit("stream", columns["stream"])
            self._events["collectives"].add(records("collectives", n, columns))

    def samples(self, time_ns, process, device, metric, value):
        """Take samples of a device's metrics: int64 times, codes of `metrics`, float64 values (not finite: left out and counted)."""
        n, columns = self._times(time_ns, time_ns, {"process": process, "device": device, "metric": metric, "at": np.arange(len(time_ns))})
        values = np.asarray(value, np.float64)[columns["at"]]
        finite = np.isfinite(values)
        self.issues.add("not_a_number", int(n - finite.sum()))
        if finite.any():
            columns = {name: rows[finite] for name, rows in columns.items()} | {"value": values[finite]}
            columns["device"] = self._fit("device", columns["device"])
            self._events["samples"].add(records("samples", int(finite.sum()), columns))

    def device(self, process: int, device: int, **facts: object) -> None:
        """Remember facts of a device (name, multiprocessors, memory_bytes, clock_hz); only devices with launches or transfers are
        written.
        """
        if "name" in facts and facts["name"] is not None:
            facts["name"] = clean_text(str(facts["name"]))
        fitting = {
            name: fact for name, fact in facts.items() if not isinstance(fact, int) or 0 <= fact < 1 << 31 or integer(fact) is not None
        }
        self.issues.add("out_of_range", len(facts) - len(fitting), "facts of a device")
        self._devices.setdefault((process, device), {}).update(fitting)

    def counters(self, fields: list[pa.Field], rows: Iterable[CounterRows]) -> None:
        """Take the rows of the counters table, in order; they are consumed when the tables are written.

        `fields` describe the metrics (unit and raw name in their metadata). Processes must have been noted before.
        """
        self._counters = (fields, rows)

    # checks and codes

    def _times(self, start: np.ndarray, end: np.ndarray, columns: dict) -> tuple[int, dict]:
        """Drop and count what cannot be an event; return the number of rows left and their columns, broadcast, with start and duration."""
        start, end = np.atleast_1d(np.asarray(start, np.int64)), np.atleast_1d(np.asarray(end, np.int64))
        columns = {name: np.broadcast_to(np.asarray(values, np.int64), start.shape) for name, values in columns.items()}
        if start.size and min(start.min(), end.min()) >= -EPOCH_2100_NS and max(start.max(), end.max()) <= EPOCH_2100_NS:
            duration = end - start
            if duration.min() >= 0 and duration.max() <= LONGEST_NS:  # as it mostly is: every row can be an event
                return len(start), columns | {"start_ns": start, "duration_ns": duration}
        absent = (start == NULL) | (end == NULL)
        far = ~absent & ((np.abs(start) > EPOCH_2100_NS) | (np.abs(end) > EPOCH_2100_NS))
        duration = np.where(absent | far, 0, end - np.where(absent, 0, start))
        backwards, long = duration < 0, duration > LONGEST_NS
        bad = absent | far | backwards | long
        if bad.any():
            self.issues.add("no_time", int(absent.sum()))
            self.issues.add("implausible_time", int((far | long).sum()))
            self.issues.add("end_before_start", int(backwards.sum()))
            good = ~bad
            start, duration = start[good], duration[good]
            columns = {name: values[good] for name, values in columns.items()}
        return len(start), columns | {"start_ns": start, "duration_ns": duration}

    def _note_times(self, start: np.ndarray, duration: np.ndarray) -> None:
        """Keep the earliest start, and the largest tick that all times of launches share."""
        self._origin = int(start[0]) if self._first is None else self._origin
        self._first = min(int(start.min()), self._origin if self._first is None else self._first)
        if self._tick is None or self._tick >= COARSE_NS:
            tick = np.gcd.reduce(duration, initial=self._tick or 0)
            self._tick = int(np.gcd.reduce(start - self._origin, initial=tick))

    def _fit(self, what: str, values: np.ndarray) -> np.ndarray:
        """Return ids that fit their column; absent ones are 0, ids too large are numbered in order of first use."""
        if is_repeated(values) and values.size > 1:
            return repeated(self._fit(what, values[:1])[0], values.size)
        first, limit = DENSE_FROM[what]
        if what == "thread":
            odd = (values != NULL) & ((values < 0) | (values >= limit))
        else:
            values = np.where(values == NULL, 0, values)
            odd = (values < 0) | (values >= limit)
        if odd.any():
            known = self._dense.setdefault(what, {})
            values = values.copy()
            values[odd] = [known.setdefault(value, first + len(known)) for value in values[odd].tolist()]
        return values

    def _codes(self, columns: Mapping[str, np.ndarray], n: int) -> np.ndarray:
        """Return configuration codes of rows with kernel, label and any columns of `LAUNCH_SHAPE`."""
        absent = repeated(NULL, n)
        return self._configurations.codes([columns.get(name, absent) for name in ("kernel", "label", *LAUNCH_SHAPE)])

    # writing

    @property
    def n_launches(self) -> int:
        """Launches taken so far."""
        return self._events["launches"].rows

    @property
    def n_transfers(self) -> int:
        """Transfers taken so far."""
        return self._events["transfers"].rows

    def first_start(self) -> int | None:
        """Return the earliest start of a launch taken so far."""
        return self._first

    def count_of(self, kind: str) -> int:
        """Return how many events of a kind (a key of `RECORDS`) were taken."""
        return self._events[kind].rows

    @property
    def has_counters(self) -> bool:
        """Whether the reader handed over counters."""
        return self._counters is not None

    def finish(self) -> Facts:
        """Order, join and write everything; return what `capabilities.json` needs to know."""
        from causeway.readers.star import StarWriter

        if (self._tick or 0) >= COARSE_NS and self.n_launches >= COARSE_ROWS:
            self.issues.add("coarse_clock", self.n_launches, f"a tick of {self._tick:,} ns")
        self.issues.add("merged_names", self.range_names.merged, f"beyond {len(self.range_names.texts):,} names")
        StarWriter(self).write()
        return self.facts

    def events(self, kind: str) -> Iterator[Rows]:
        """Give the rows of a kind in order; once."""
        return self._events[kind].blocks()

    def configuration_rows(self) -> list[tuple[int, ...]]:
        """Return the configurations by code: kernel, label, then `LAUNCH_SHAPE`."""
        return self._configurations.rows

    def device_facts(self, process: int, device: int) -> dict:
        """Return what was told of a device."""
        return self._devices.get((process, device), {})

    def counter_rows(self) -> tuple[list[pa.Field], Iterable[CounterRows]]:
        """Return the counters' fields and rows."""
        return self._counters or ([], [])

    def counter_codes(self, rows: CounterRows) -> np.ndarray:
        """Return the configuration codes of counter rows."""
        n = len(rows.kernel)
        label = np.full(n, NULL) if rows.label is None else rows.label
        return self._codes({"kernel": rows.kernel, "label": label, **rows.shape}, n)

    def kernel_rows(self, codes: Iterable[int]) -> pa.Table:
        """Return the kernels table for kernel codes, numbered 0, 1, ... in the given order."""
        names = [self.kernels.texts[code] for code in codes]
        columns = {
            "kernel": range(len(names)),
            "id": [kernel_id(name) for name in names],
            "name": names,
            "short_name": [short_name(name) for name in names],
            "class": [kernel_class(name) for name in names],
        }
        schema = SCHEMAS["kernels"]
        return pa.table({f.name: pa.array(columns[f.name], f.type) for f in schema}, schema=schema)

    def writer(self, table: str, extra: Iterable[pa.Field] = ()) -> BehindWriter:
        """Return a writer for one of this export's tables."""
        return BehindWriter(TableWriter(self.folder / f"{table}.parquet", table, extra, self.metadata))

    def close(self) -> None:
        """Remove what was spilled."""
        for events in self._events.values():
            events.close()

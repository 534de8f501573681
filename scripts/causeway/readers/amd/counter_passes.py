"""Counters of AMD's profilers: passes joined by the launch's number, never by time, in memory that does not grow with
the export.

One counter run gives a few counters per launch, so the program is run again for the next ones. A launch of one pass and
a launch of another (or of the timing run) are the same if process, number and kernel name agree. The numbers and times
of all passes lie in a database beside the output, their values in a file (`counter_values`); both are removed when the
counters table is written.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from operator import itemgetter

import numpy as np

from causeway.core.tables import LAUNCH_SHAPE
from causeway.readers.amd.counter_values import CounterValues, pack_reference
from causeway.readers.common.constants import NULL
from causeway.readers.containers.csv_batches import CsvBatch, numbers
from causeway.readers.sink.counter_table import check_metrics, name_metrics
from causeway.readers.sink.event_times import are_untimed, usable
from causeway.readers.sink.records import CounterRows, RowCodes
from causeway.readers.sink.sink import Sink

BLOCK_BYTES = 16 << 20
BLOCK_ROWS = 1 << 14
ANY_KERNEL = -1
"""The kernel of counters that the number alone identifies (numbers of events, in a database)."""

_COLUMNS = "process, number, kernel, start, stop, thread, device, stream, queue, shape"
_NAMES = tuple(_COLUMNS.split(", "))


class CounterStore:
    """Counters by launch number, from any number of passes.

    Parameters
    ----------
    sink : Sink
    units : mapping of str to str
        Units of counters that are not plain counts.
    duration : str
        The export's own name of the measured duration, e.g. "EndNs - BeginNs".

    Attributes
    ----------
    rows : int
        Rows of counters taken so far.
    several : bool
        Whether rows are known to hold counters of several executions.
    same_run : bool
        Whether counters without times are known to be of the execution that gave the launches.
    times_tell : bool
        Whether counters that have a launch's times are of its execution.
    """

    def __init__(self, sink: Sink, units: Mapping[str, str], duration: str) -> None:
        self.sink = sink
        self.units = units
        self.duration = duration
        self.rows = self._unnumbered = 0
        self.several = False
        self.same_run = False
        self.times_tell = True
        self._shapes = RowCodes()
        self._joined: set[int] = set()
        self._database: sqlite3.Connection | None = None
        self._values = CounterValues(sink)

    def _open(self) -> sqlite3.Connection:
        if self._database is None:
            path = self.sink.folder / ".counters.sqlite"
            path.unlink(missing_ok=True)
            self.sink.at_close.callback(path.unlink, missing_ok=True)
            connection = sqlite3.connect(path, isolation_level=None)
            self._database = self.sink.at_close.enter_context(closing(connection))
            self._database.execute("PRAGMA journal_mode = OFF")
            self._database.execute("PRAGMA synchronous = OFF")
            self._database.execute("PRAGMA cache_size = -32768")
            self._database.execute(f"CREATE TABLE part ({_COLUMNS}, layout, offset)")
            self._database.execute(f"CREATE TABLE launch ({_COLUMNS}, name)")
            self._database.execute("BEGIN")
        return self._database

    def layout(self, counters: Sequence[str]) -> int:
        """Return the code of a list of counters in the order of their values.

        Raises
        ------
        ExportError
            If the export has more than `MOST_COLUMNS` counters.
        """
        code = self._values.layout(counters)
        check_metrics(len(self._values.columns), self.sink.metadata["source"])
        return code

    def take(
        self, columns: Mapping[str, object], layouts: Sequence[int] | int, values: np.ndarray | Sequence[np.ndarray]
    ) -> None:
        """Take the counters of launches.

        Parameters
        ----------
        columns : mapping of str to ndarray of int64, shape (n,), or int
            `process`, `number`, `kernel` (a code, or `ANY_KERNEL`), and as far as known `start`, `stop`, `thread`,
            `device`, `stream`, `queue` and columns of `LAUNCH_SHAPE`.
        layouts : int, or n of them
            Which counters the values are.
        values : ndarray of float64, shape (n, counters), or n arrays of shape (counters,)
            NaN where there is none.
        """
        n = len(values)
        if not n:
            return
        database = self._open()
        filled = self._filled(columns, n)
        codes = [layouts] * n if isinstance(layouts, int) else list(layouts)
        offsets = self._values.write(codes, values)
        rows = zip(*[filled[name].tolist() for name in _NAMES], codes, offsets.tolist(), strict=True)
        database.executemany(_insert("part", len(_NAMES) + 2), rows)
        self.rows += n

    def gather(self, rows: Iterable[tuple[int, int, str, float]]) -> None:
        """Take process, number, counter and value of launches of any kernel, those of a launch one after the other.

        Values of one counter (for example one per shader engine) are summed, as AMD's own tools do.
        """
        last = None
        keys: list[tuple[int, int]] = []
        sums: list[dict[str, float]] = []
        for process, number, counter, value in rows:
            if (process, number) != last:
                if len(keys) >= BLOCK_ROWS:
                    self._take_sums(keys, sums)
                    keys = []
                    sums = []
                last = (process, number)
                keys.append(last)
                sums.append({})
            sums[-1][counter] = sums[-1].get(counter, 0.0) + value
        if keys:
            self._take_sums(keys, sums)

    def _take_sums(self, keys: list[tuple[int, int]], sums: list[dict[str, float]]) -> None:
        process, number = np.array(keys, np.int64).T
        columns = {"process": process, "number": number, "kernel": ANY_KERNEL}
        layouts = [self.layout(list(summed)) for summed in sums]
        self.take(columns, layouts, [np.array(list(summed.values()), float) for summed in sums])

    def launches(self, columns: Mapping[str, object], names: np.ndarray | None = None) -> None:
        """Remember launches that went to the sink, in the same order, so that counters find them.

        Parameters
        ----------
        columns : mapping of str to ndarray of int64, shape (n,), or int
            As in `take`; `start` and `stop` must be there, as arrays.
        names : ndarray of int64, shape (n,), or None
            Codes of the kernels, where the columns' `kernel` is `ANY_KERNEL`.
        """
        start = np.asarray(columns["start"])
        stop = np.asarray(columns["stop"])
        filled = self._filled(columns, len(start))
        good = usable(start, stop) & ~are_untimed(start, stop)  # the others are left out by the sink
        filled["name"] = filled["kernel"] if names is None else np.asarray(names, np.int64)
        rows = zip(*[filled[name][good].tolist() for name in (*_NAMES, "name")], strict=True)
        self._open().executemany(_insert("launch", len(_NAMES) + 1), rows)

    def _filled(self, columns: Mapping[str, object], n: int) -> dict[str, np.ndarray]:
        """Return all of `_NAMES` as int64 of shape (n,), `NULL` where unknown; each launch without a number has one of
        its own, below 0.
        """
        filled = {name: np.broadcast_to(np.asarray(columns.get(name, NULL), np.int64), n) for name in _NAMES}
        unnumbered = filled["number"] == NULL
        filled["number"] = np.where(unnumbered, -1 - self._unnumbered - np.cumsum(unnumbered), filled["number"])
        self._unnumbered += int(unnumbered.sum())
        shape = [
            np.ascontiguousarray(np.broadcast_to(np.asarray(columns.get(name, NULL), np.int64), n))
            for name in LAUNCH_SHAPE
        ]
        filled["shape"] = self._shapes.codes(shape).astype(np.int64)
        return filled

    def hand_over(self, only_linked: bool = False) -> None:
        """Join the passes and give the counters to the sink; if it has no launches yet, those of the passes that have
        times, too.

        Parameters
        ----------
        only_linked : bool
            Whether counters without a launch are no launch's counters at all (samples of a device), and are left out.
        """
        if not self.rows:
            return
        database = self._open()
        database.execute("COMMIT")
        database.execute(
            f"CREATE TABLE numbered ({_COLUMNS}, name, row, PRIMARY KEY (process, number, kernel)) WITHOUT ROWID"
        )
        row = "ROW_NUMBER() OVER (ORDER BY start, rowid) - 1"
        in_order = f"SELECT {_COLUMNS}, name, {row} FROM launch ORDER BY rowid"  # noqa: S608 - our names
        database.execute(f"INSERT OR IGNORE INTO numbered {in_order}")
        database.execute(
            "CREATE TABLE whole (start, stop, process, number, kernel, device, stream, queue, shape, launch, parts)"
        )
        database.execute("CREATE TABLE emitted (at INTEGER PRIMARY KEY, row)")
        database.execute("BEGIN")
        database.executemany(_insert("whole", 11), self._merged(only_linked))
        database.execute("COMMIT")
        rows, timed = database.execute("SELECT count(*), count(start) FROM whole").fetchone()
        if not rows:
            return
        if timed and not self.sink.n_launches:
            self._emit_launches(database)
            self.sink.issues.add("serialised_launches", timed)
        for process, device in database.execute("SELECT DISTINCT process, device FROM whole"):
            self.sink.processes.note(np.array([process]), np.array([max(0, min(device, 0xFFFF))]), launches=True)
        used = self._values.with_values(self._joined)
        keys = [("", name, self.units.get(name, "")) for name in used] + ([("", self.duration, "ns")] if timed else [])
        if not used:  # launches without a single value
            return
        fields = name_metrics(keys, set(), self.sink)
        self.sink.counters(fields, self._rows(database, used, fields, timed == rows, bool(timed)))

    def _merged(self, only_linked: bool) -> Iterator[tuple]:
        """Give one row for each launch of the passes: the first one's facts, the times of the first that has any,
        where the values are.
        """
        database = self._open()
        issues = self.sink.issues
        linked = bool(database.execute("SELECT 1 FROM launch LIMIT 1").fetchone())
        own = ", ".join(f"p.{name}" for name in _NAMES)
        launched = "l.row, l.name, l.start, l.stop, l.thread, l.device, l.stream, l.queue, l.shape"
        cursor = database.cursor().execute(
            f"SELECT {own}, p.layout, p.offset, {launched} FROM part p"  # noqa: S608 - our names
            " LEFT JOIN numbered l ON l.process = p.process AND l.number = p.number AND l.kernel = p.kernel"
            " ORDER BY p.process, p.number, p.kernel, p.rowid"
        )
        before = None
        alone = 0
        clashes = 0
        other = 0
        serialised = 0
        for parts in _groups(cursor):
            first = parts[0]
            process, number, kernel = first[:3]
            clashes += first[:2] == before
            before = first[:2]
            launch = first[12]
            if launch is None and (linked or only_linked):
                alone += 1
                if only_linked:
                    continue
            start, stop = next(((row[3], row[4]) for row in parts if row[3] != NULL), (None, None))
            device, stream, queue, shape = first[6:10]
            other += self.several or _other_execution(parts, start)
            if launch is not None:
                kernel = first[13]
                device = first[17]
                stream = first[18]
                queue = first[19]
                shape = first[20]
                serialised += self._counted_while_traced(parts)
                if start is None:
                    start = first[14]
                    stop = first[15]
            self._joined.update(row[10] for row in parts)
            references = b"".join(pack_reference(row[10], row[11]) for row in parts)
            yield start, stop, process, number, kernel, device, stream, queue, shape, launch, references
        issues.add("serialised_launches", serialised)
        if only_linked:
            return
        issues.add("unmatched_counters", alone, "no launch of the same number and kernel name")
        issues.add("unmatched_counters", clashes, "one launch number with several kernel names")
        issues.add("other_execution", other)

    def _counted_while_traced(self, parts: list[tuple]) -> bool:
        """Return whether counters of a launch are of the execution whose trace gave it: their times are the launch's,
        or they have none and `same_run` says so.
        """
        times = {(row[3], row[4]) for row in parts if row[3] != NULL}
        return self.times_tell and (parts[0][14], parts[0][15]) in times if times else self.same_run

    def _shape(self, codes: np.ndarray) -> dict[str, np.ndarray]:
        table = np.array(self._shapes.rows, np.int64)[codes]
        return {name: table[:, index] for index, name in enumerate(LAUNCH_SHAPE) if (table[:, index] != NULL).any()}

    def _emit_launches(self, database: sqlite3.Connection) -> None:
        """Give the launches of the passes to the sink and number them as it does."""
        cursor = database.execute(
            "SELECT start, stop, kernel, process, device, stream, queue, shape FROM whole WHERE start IS NOT NULL ORDER"
            " BY start, rowid"
        )
        while rows := cursor.fetchmany(BLOCK_ROWS):
            *columns, shape = np.array(rows, np.int64).T
            names = ("start_ns", "end_ns", "kernel", "process", "device", "stream", "queue_ns")
            launches = dict(zip(names, columns, strict=True)) | self._shape(shape)
            self.sink.launches(launches | {"in_queue": np.ones(len(rows), bool)})
        database.execute(
            "INSERT INTO emitted SELECT rowid, ROW_NUMBER() OVER (ORDER BY start, rowid) - 1 FROM whole WHERE start IS"
            " NOT NULL"
        )

    def _rows(
        self, database: sqlite3.Connection, used: list[str], fields: list, ordered: bool, timed: bool
    ) -> Iterator[CounterRows]:
        """Give the counters in the order of their starts, or of their numbers if some have none."""
        beyond = self.sink.n_launches
        step = max(1, min(BLOCK_ROWS, BLOCK_BYTES // (8 * len(fields))))
        order = "start, whole.rowid" if ordered else "process, number, whole.rowid"
        cursor = database.execute(
            "SELECT start, stop, kernel, process, device, shape, coalesce(launch, row), parts"  # noqa: S608 - ours
            f" FROM whole LEFT JOIN emitted ON at = whole.rowid ORDER BY {order}"
        )
        while rows := cursor.fetchmany(step):
            facts = np.array([[NULL if value is None else value for value in row[:7]] for row in rows], np.int64).T
            start, stop, kernel, process, device, shape, launch = facts
            unlinked = launch == NULL
            launch[unlinked] = beyond + np.arange(int(unlinked.sum()))
            beyond += int(unlinked.sum())
            matrix = self._values.matrix([row[7] for row in rows], used, self.sink.issues)
            values = {fields[index].name: matrix[index] for index in range(len(used))}
            if timed:
                values[fields[-1].name] = np.where(start == NULL, np.nan, (stop - start).astype(np.float64))
            yield CounterRows(
                kernel=kernel,
                process=process,
                values=values,
                start_ns=start if (start != NULL).any() else None,
                device=np.where((device >= 0) & (device < 1 << 16), device, NULL),
                shape=self._shape(shape),
                launch=launch,
            )


def _insert(table: str, width: int) -> str:
    return f"INSERT INTO {table} VALUES ({', '.join('?' * width)})"  # noqa: S608 - our names


Measured = list[list[tuple[str, str]]]
"""Names and values of the counters of each launch, as printed."""


def by_launch(
    rows: CsvBatch, pairs: tuple[str, str], key: Sequence[str], renamed: Mapping[str, str]
) -> tuple[CsvBatch, Measured]:
    """Gather rows of one counter each: one row for each launch, and names and values of its counters.

    A launch whose rows do not follow one another is given several times; it is joined by its number afterwards.

    Parameters
    ----------
    rows : CsvBatch
    pairs : tuple of str
        The columns of a counter's name and value.
    key : sequence of str
        The columns, at least one, by which rows are of one launch.
    renamed : mapping of str to str
        Counters that get another name.
    """
    counter, value = (rows.file.position[name] for name in pairs)
    key_of = itemgetter(*[rows.file.position[name] for name in key])
    firsts: list[list[str]] = []
    measured: Measured = []
    last = None
    for row in rows.rows:
        if (launch_key := key_of(row)) != last:
            last = launch_key
            firsts.append(row)
            measured.append([])
        if row[counter]:
            measured[-1].append((renamed.get(row[counter], row[counter]), row[value]))
    return CsvBatch(firsts, rows.file), measured


def take_measured(store: CounterStore, columns: Mapping[str, object], launches: CsvBatch, measured: Measured) -> None:
    """Give a store the counters of launches that `by_launch` gathered; `columns` as `CounterStore.take` has them."""
    layouts = [store.layout([name for name, _ in launch]) for launch in measured]
    cells = [[text for _, text in launch] for launch in measured]
    file = launches.file
    store.take(columns, layouts, [numbers([row], len(row), file.issues, file.label)[0] for row in cells])


def checked(sink: Sink, start: np.ndarray, stop: np.ndarray, rounded: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return times with `NULL` for those that can be no event, which are counted; for counters, which keep their
    values without them.

    Parameters
    ----------
    sink : Sink
    start, stop : ndarray of int64, shape (n,)
        Nanoseconds; `NULL` where absent.
    rounded : ndarray of bool, shape (n,)
        Which are absent because they were saved rounded; those are counted elsewhere.

    Returns
    -------
    start, stop : ndarray of int64, shape (n,)
    """
    untimed = are_untimed(start, stop)
    good = usable(start, stop) & ~untimed
    complete = (start != NULL) & (stop != NULL) & ~untimed
    alone = not sink.n_launches  # beside launches of a trace, the rows are no further ones
    sink.issues.add("no_time", int((~complete & ~untimed & ~rounded).sum()), of_launches=alone)
    # where no row has times, none was measured: nothing is left out
    sink.issues.add("no_time", int(untimed.sum()), of_launches=alone and bool(good.any()))
    sink.issues.add("end_before_start", int((complete & ~good & (stop < start)).sum()), of_launches=alone)
    sink.issues.add("implausible_time", int((complete & ~good & (stop >= start)).sum()), of_launches=alone)
    return np.where(good, start, NULL), np.where(good, stop, NULL)


def _groups(cursor: sqlite3.Cursor) -> Iterator[list[tuple]]:
    """Give the parts of each launch together."""
    group: list[tuple] = []
    for row in cursor:
        if group and row[:3] != group[0][:3]:
            yield group
            group = []
        group.append(row)
    if group:
        yield group


def _other_execution(parts: list[tuple], start: int | None) -> bool:
    """Return whether parts of a launch, or its times, come from several executions: their starts differ or their
    threads do.
    """
    starts = {row[3] for row in parts if row[3] != NULL}
    threads = {row[5] for row in parts if row[5] != NULL}
    if parts[0][12] is not None:
        starts |= {parts[0][14]} if start is not None else set()
        threads |= {parts[0][16]} - {NULL}
    return len(starts) > 1 or len(threads) > 1

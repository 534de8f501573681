"""Counters of AMD's profilers: passes joined by the launch's number, never by time, in memory that does not grow with the export.

One counter run gives a few counters per launch, so the program is run again for the next ones. A launch of one pass and a launch of another
(or of the timing run) are the same if process, number and kernel name agree. The numbers and times of all passes lie in a database beside
the output, their values in a flat file; both are removed when the counters table is written.
"""

import sqlite3
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from causeway.readers.counters import name_metrics
from causeway.readers.events import EPOCH_2100_NS, LONGEST_NS, NULL, Coder
from causeway.readers.sink import CounterRows, Sink
from causeway.tables import LAUNCH_SHAPE

BLOCK_BYTES = 16 << 20
BLOCK_ROWS = 1 << 14
ANY_KERNEL = -1
"""The kernel of counters whose number alone says whose they are (numbers of events, in a database)."""

_HEAD = "process, number, kernel, start, stop, thread, device, stream, queue, shape"
_FIELDS = tuple(_HEAD.split(", "))
_PART = np.dtype([("layout", "<i4"), ("place", "<i8")])
_PACKED = struct.Struct("<iq")


class CounterStore:
    """Counters by launch number, from any number of passes.

    Parameters
    ----------
    sink : Sink
    units : mapping of str to str
        Units of counters that are not plain counts.
    duration : str
        What the measured duration is called in the export, e.g. "EndNs - BeginNs".
    """

    def __init__(self, sink: Sink, units: Mapping[str, str], duration: str) -> None:
        self.sink, self.units, self.duration = sink, units, duration
        self.columns: dict[str, int] = {}
        self.rows = self._unnumbered = 0
        self.several = False
        """Whether rows are known to hold counters of several executions."""
        self._layouts: list[np.ndarray] = []
        self._layout_codes: dict[tuple[str, ...], int] = {}
        self._shapes = Coder()
        self._used = np.zeros(0, bool)
        self._joined: set[int] = set()
        self._database: sqlite3.Connection | None = None
        self._files = [sink.folder / ".counters.sqlite", sink.folder / ".counters.values"]

    def _open(self) -> sqlite3.Connection:
        if self._database is None:
            for file in self._files:
                file.unlink(missing_ok=True)
            self._database = sqlite3.connect(self._files[0], isolation_level=None)
            self._database.execute("PRAGMA journal_mode = OFF")
            self._database.execute("PRAGMA synchronous = OFF")
            self._database.execute("PRAGMA cache_size = -32768")
            self._database.execute(f"CREATE TABLE part ({_HEAD}, layout, place)")
            self._database.execute(f"CREATE TABLE launch ({_HEAD}, name)")
            self._database.execute("BEGIN")
            self._values = open(self._files[1], "w+b")  # noqa: SIM115 - closed by close()
            self._size = 0
        return self._database

    def layout(self, counters: Sequence[str]) -> int:
        """Return the code of a list of counters in the order of their values."""
        key = tuple(counters)
        code = self._layout_codes.get(key)
        if code is None:
            code = self._layout_codes[key] = len(self._layouts)
            self._layouts.append(np.array([self.columns.setdefault(name, len(self.columns)) for name in key], np.int64))
        return code

    def take(self, heads: Mapping[str, object], layouts: Sequence[int] | int, values: np.ndarray | Sequence[np.ndarray]) -> None:
        """Take the counters of launches.

        Parameters
        ----------
        heads : mapping of str to ndarray of int64, or int
            `process`, `number`, `kernel` (a code, or `ANY_KERNEL`), and as far as known `start`, `stop`, `thread`, `device`, `stream`,
            `queue` and columns of `LAUNCH_SHAPE`.
        layouts : int, or one for each launch
            Which counters the values are.
        values : ndarray of float64, shape (launches, counters), or one row for each launch
            NaN where there is none.
        """
        n = len(values)
        if not n:
            return
        database = self._open()
        columns = self._heads(heads, n)
        codes = [layouts] * n if isinstance(layouts, int) else list(layouts)
        if isinstance(values, np.ndarray):
            places = self._size + 8 * values.shape[1] * np.arange(n, dtype=np.int64)
            blob = np.ascontiguousarray(values, "<f8")
            self._note(self._layouts[codes[0]], np.isfinite(values).any(axis=0))
        else:
            places = self._size + 8 * np.append(0, np.cumsum([len(row) for row in values])[:-1]).astype(np.int64)
            blob = np.concatenate(values).astype("<f8")
            for code, row in zip(codes, values, strict=True):
                self._note(self._layouts[code], np.isfinite(row))
        self._values.write(blob.tobytes())
        self._size += blob.nbytes
        rows = zip(*[columns[name].tolist() for name in _FIELDS], codes, places.tolist(), strict=True)
        database.executemany(_insert("part", len(_FIELDS) + 2), rows)
        self.rows += n

    def gather(self, rows: Iterable[tuple[int, int, str, float]]) -> None:
        """Take process, number, counter and value of launches of any kernel, those of a launch one after the other.

        Values of one counter (one per shader engine, say) are summed, as AMD's own tools do.
        """
        last, keys, sums = None, [], []
        for process, number, counter, value in rows:
            if (process, number) != last:
                if len(keys) >= BLOCK_ROWS:
                    self._take_sums(keys, sums)
                    keys, sums = [], []
                last = (process, number)
                keys.append(last)
                sums.append({})
            sums[-1][counter] = sums[-1].get(counter, 0.0) + value
        if keys:
            self._take_sums(keys, sums)

    def _take_sums(self, keys: list[tuple[int, int]], sums: list[dict[str, float]]) -> None:
        process, number = np.array(keys, np.int64).T
        heads = {"process": process, "number": number, "kernel": ANY_KERNEL}
        self.take(heads, [self.layout(list(one)) for one in sums], [np.array(list(one.values()), float) for one in sums])

    def launches(self, heads: Mapping[str, object], names: np.ndarray | None = None) -> None:
        """Remember launches that went to the sink, in the same order, so that counters find them.

        `names` are the kernels' codes where the heads' `kernel` is `ANY_KERNEL`.
        """
        start, stop = np.asarray(heads["start"]), np.asarray(heads["stop"])
        n = len(start)
        columns = self._heads(heads, n)
        good = usable(start, stop)  # the others are left out by the sink
        columns["name"] = columns["kernel"] if names is None else np.asarray(names, np.int64)
        rows = zip(*[columns[name][good].tolist() for name in (*_FIELDS, "name")], strict=True)
        self._open().executemany(_insert("launch", len(_FIELDS) + 1), rows)

    def _heads(self, heads: Mapping[str, object], n: int) -> dict[str, np.ndarray]:
        columns = {name: np.broadcast_to(np.asarray(heads.get(name, NULL), np.int64), n) for name in _FIELDS}
        unnumbered = columns["number"] == NULL  # each stands alone
        columns["number"] = np.where(unnumbered, -1 - self._unnumbered - np.cumsum(unnumbered), columns["number"])
        self._unnumbered += int(unnumbered.sum())
        shape = [np.ascontiguousarray(np.broadcast_to(np.asarray(heads.get(name, NULL), np.int64), n)) for name in LAUNCH_SHAPE]
        columns["shape"] = self._shapes.codes(shape).astype(np.int64)
        return columns

    def _note(self, columns: np.ndarray, used: np.ndarray) -> None:
        if len(self._used) < len(self.columns):
            self._used = np.append(self._used, np.zeros(len(self.columns) - len(self._used), bool))
        self._used[columns[used]] = True

    def hand_over(self, only_linked: bool = False) -> None:
        """Join the passes and give the counters to the sink; if it has no launches yet, those of the passes that have times, too.

        Parameters
        ----------
        only_linked : bool
            Whether counters without a launch are no launch's counters at all (samples of a device), and are left out.
        """
        if not self.rows:
            self.close()
            return
        database = self._open()
        database.execute("COMMIT")
        database.execute(f"CREATE TABLE placed ({_HEAD}, name, place, PRIMARY KEY (process, number, kernel)) WITHOUT ROWID")
        numbered = f"SELECT {_HEAD}, name, ROW_NUMBER() OVER (ORDER BY start, rowid) - 1 FROM launch ORDER BY rowid"  # noqa: S608 - our names
        database.execute(f"INSERT OR IGNORE INTO placed {numbered}")
        database.execute("CREATE TABLE whole (start, stop, process, number, kernel, device, stream, queue, shape, launch, parts)")
        database.execute("CREATE TABLE emitted (at INTEGER PRIMARY KEY, place)")
        database.execute("BEGIN")
        database.executemany(_insert("whole", 11), self._merged(only_linked))
        database.execute("COMMIT")
        rows, timed = database.execute("SELECT count(*), count(start) FROM whole").fetchone()
        if not rows:
            self.close()
            return
        if timed and not self.sink.n_launches:
            self._emit_launches(database)
        for process, device in database.execute("SELECT DISTINCT process, device FROM whole"):
            self.sink.processes.note(np.array([process]), np.array([max(0, min(device, 0xFFFF))]), launches=True)
        joined = {at for code in self._joined for at in self._layouts[code].tolist()}
        used = [name for name, at in self.columns.items() if at in joined and at < len(self._used) and self._used[at]]
        keys = [("", name, self.units.get(name, "")) for name in used] + ([("", self.duration, "ns")] if timed else [])
        if not used:  # launches without a single value
            self.close()
            return
        fields = name_metrics(keys, set(), self.sink)
        self.sink.counters(fields, self._rows(database, [self.columns[name] for name in used], fields, timed == rows, bool(timed)))

    def _merged(self, only_linked: bool) -> Iterator[tuple]:
        """Give one row for each launch of the passes: the first one's facts, the times of the first that has any, where the values are."""
        database, issues = self._database, self.sink.issues
        linked = bool(database.execute("SELECT 1 FROM launch LIMIT 1").fetchone())
        heads = ", ".join(f"p.{name}" for name in _FIELDS)
        cursor = database.cursor().execute(
            f"SELECT {heads}, p.layout, p.place, l.place, l.name, l.start, l.stop, l.thread, l.device, l.stream, l.queue, l.shape"  # noqa: S608
            " FROM part p LEFT JOIN placed l ON l.process = p.process AND l.number = p.number AND l.kernel = p.kernel"
            " ORDER BY p.process, p.number, p.kernel, p.rowid"
        )
        before, alone, clashes, other = None, 0, 0, 0
        for parts in _groups(cursor):
            first = parts[0]
            process, number, kernel = first[:3]
            clashes += first[:2] == before
            before, launch = first[:2], first[12]
            if launch is None and (linked or only_linked):
                alone += 1
                if only_linked:
                    continue
            start, stop = next(((row[3], row[4]) for row in parts if row[3] != NULL), (None, None))
            device, stream, queue, shape = first[6:10]
            other += self.several or _other_execution(parts, start)
            if launch is not None:
                kernel, device, stream, queue, shape = first[13], first[17], first[18], first[19], first[20]
                if start is None:
                    start, stop = first[14], first[15]
            self._joined.update(row[10] for row in parts)
            places = b"".join(_PACKED.pack(row[10], row[11]) for row in parts)
            yield start, stop, process, number, kernel, device, stream, queue, shape, launch, places
        if only_linked:
            return
        issues.add("unmatched_counters", alone, "no launch of the same number and kernel name")
        issues.add("unmatched_counters", clashes, "one launch number with several kernel names")
        issues.add("other_execution", other)

    def _shape(self, codes: np.ndarray) -> dict[str, np.ndarray]:
        table = np.array(self._shapes.rows, np.int64)[codes]
        return {name: table[:, at] for at, name in enumerate(LAUNCH_SHAPE) if (table[:, at] != NULL).any()}

    def _emit_launches(self, database: sqlite3.Connection) -> None:
        """Give the launches of the passes to the sink and number them as it does."""
        cursor = database.execute(
            "SELECT start, stop, kernel, process, device, stream, queue, shape FROM whole WHERE start IS NOT NULL ORDER BY start, rowid"
        )
        while rows := cursor.fetchmany(BLOCK_ROWS):
            start, stop, kernel, process, device, stream, queue, shape = np.array(rows, np.int64).T
            self.sink.launches(start, stop, kernel, process, device=device, stream=stream, queue_ns=queue, shape=self._shape(shape))
        database.execute(
            "INSERT INTO emitted SELECT rowid, ROW_NUMBER() OVER (ORDER BY start, rowid) - 1 FROM whole WHERE start IS NOT NULL"
        )

    def _rows(self, database: sqlite3.Connection, used: list[int], fields: list, ordered: bool, timed: bool) -> Iterator[CounterRows]:
        """Give the counters in the order of their starts, or of their numbers if some have none."""
        column = np.full(max(1, len(self.columns)), -1)
        column[used] = np.arange(len(used))
        beyond = self.sink.n_launches
        step = max(1, min(BLOCK_ROWS, BLOCK_BYTES // (8 * len(fields))))
        self._values.flush()
        try:
            order = "start, whole.rowid" if ordered else "process, number, whole.rowid"
            cursor = database.execute(
                f"SELECT start, stop, kernel, process, device, shape, coalesce(launch, place), parts FROM whole LEFT JOIN emitted"  # noqa: S608
                f" ON at = whole.rowid ORDER BY {order}"
            )
            while rows := cursor.fetchmany(step):
                facts = np.array([[NULL if value is None else value for value in row[:7]] for row in rows], np.int64).T
                start, stop, kernel, process, device, shape, launch = facts
                unlinked = launch == NULL
                launch[unlinked] = beyond + np.arange(int(unlinked.sum()))
                beyond += int(unlinked.sum())
                matrix = self._matrix([row[7] for row in rows], column, len(used))
                values = {fields[at].name: matrix[at] for at in range(len(used))}
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
        finally:
            self.close()

    def _matrix(self, places: list[bytes], column: np.ndarray, width: int) -> np.ndarray:
        """Return the values of rows, one line per counter; of several values of one counter, the first."""
        matrix = np.full((width, len(places)), np.nan)
        counts = np.array([len(packed) // _PART.itemsize for packed in places])
        parts = np.frombuffer(b"".join(places), _PART)
        row = np.repeat(np.arange(len(places)), counts)
        turn = np.arange(len(parts)) - np.repeat(np.cumsum(counts) - counts, counts)  # the how manyth part of its row
        repeated = duplicate = 0
        for number in range(int(counts.max())):
            mine = turn == number
            for code in np.unique(parts["layout"][mine]).tolist():
                which = np.flatnonzero(mine & (parts["layout"] == code))
                lines = column[self._layouts[code]]
                fresh = self._read(parts["place"][which], len(lines)).T
                seen: set[int] = set()
                for line, values in zip(lines.tolist(), fresh, strict=True):
                    if line < 0:
                        continue
                    before = matrix[line, row[which]]
                    again = int((~np.isnan(before) & np.isfinite(values)).sum())
                    repeated, duplicate = repeated + again * (line not in seen), duplicate + again * (line in seen)
                    matrix[line, row[which]] = np.where(np.isnan(before) & np.isfinite(values), values, before)
                    seen.add(line)
        self.sink.issues.add("repeated_counters", repeated)
        self.sink.issues.add("duplicate_values", duplicate)
        return matrix

    def _read(self, places: np.ndarray, width: int) -> np.ndarray:
        """Return the values at some places of the file, shape (places, width); neighbours are read at once."""
        ends = np.append(np.flatnonzero(np.diff(places) != 8 * width), len(places) - 1)
        blocks, begin = [], 0
        for end in ends.tolist():
            self._values.seek(int(places[begin]))
            blocks.append(np.frombuffer(self._values.read(8 * width * (end + 1 - begin)), "<f8"))
            begin = end + 1
        return np.concatenate(blocks).reshape(len(places), width)

    def close(self) -> None:
        """Remove what lies beside the output."""
        if self._database is not None:
            self._database.close()
            self._values.close()
            self._database = None
            for file in self._files:
                Path(file).unlink(missing_ok=True)


def _insert(table: str, width: int) -> str:
    return f"INSERT INTO {table} VALUES ({', '.join('?' * width)})"  # noqa: S608 - our names


def usable(start: np.ndarray, stop: np.ndarray) -> np.ndarray:
    """Return which times can be an event: known, plausible, and not ending before they start (the sink's own rule)."""
    known = (start != NULL) & (stop != NULL)
    near = known & (np.abs(np.where(known, start, 0)) <= EPOCH_2100_NS) & (np.abs(np.where(known, stop, 0)) <= EPOCH_2100_NS)
    length = np.where(near, stop, 0) - np.where(near, start, 0)
    return near & (length >= 0) & (length <= LONGEST_NS)


def checked(sink: Sink, start: np.ndarray, stop: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return times with `NULL` for those that can be no event, which are counted; for counters, which keep their values without them."""
    good = usable(start, stop)
    known = (start != NULL) & (stop != NULL)
    sink.issues.add("end_before_start", int((known & ~good & (stop < start)).sum()))
    sink.issues.add("implausible_time", int((known & ~good & (stop >= start)).sum()))
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
    """Return whether parts of a launch, or its times, come from several executions: their starts differ or their threads do."""
    starts = {row[3] for row in parts if row[3] != NULL}
    threads = {row[5] for row in parts if row[5] != NULL}
    if parts[0][12] is not None:
        starts |= {parts[0][14]} if start is not None else set()
        threads |= {parts[0][16]} - {NULL}
    return len(starts) > 1 or len(threads) > 1

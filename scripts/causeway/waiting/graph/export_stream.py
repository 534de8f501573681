"""A rank's work and calls of an export, joined piece by piece: memory does not grow with the tables."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from causeway.core.clock import Clock
from causeway.core.errors import TableError
from causeway.core.tables import open_table
from causeway.events.device_events import UNKNOWN
from causeway.events.event_blocks import merged
from causeway.numeric.compiled import I4, I8, compiled_borrowing, int32, int64, record, uint8
from causeway.waiting.graph.device_work import Rows, work_sources
from causeway.waiting.graph.graph_builder import GraphBuilder
from causeway.waiting.graph.host_calls import (
    NOTHING,
    OWN_STREAM,
    WHOLE_RANK,
    call_pieces,
    event_waits,
    follows,
    resolution_of,
    synchronised_streams,
    unseen_waits,
    with_waits,
)
from causeway.waiting.graph.nodes import ALL_STREAMS, NO_SCOPE

NESTED_CALLS = record("NESTED_CALLS", start=I8, end=I8, thread=I4, name=I8, waits=I8, scope=I8, number=I8)
"""Calls in their order.

Attributes
----------
start, end : ndarray of int64, shape (k,), ns
thread : ndarray of int32, shape (k,)
name, waits, scope : ndarray of int64, shape (k,)
number : ndarray of int64, shape (k,)
    -1: none.
"""


OUTERMOST_CALLS = record(
    "OUTERMOST_CALLS",
    start=int64[::1],
    end=int64[::1],
    thread=int32[::1],
    name=int32[::1],
    first_waits=uint8[::1],
    waits=uint8[::1],
    scope=int64[::1],
    tops=int32[::1],
)
"""Outermost calls, and what is found of them.

Attributes
----------
start, end : ndarray of int64, shape (m,), ns
thread, name : ndarray of int32, shape (m,)
first_waits, waits : ndarray of uint8, shape (m,)
    What they themselves wait for, and what they wait for with the calls inside.
scope : ndarray of int64, shape (m,)
    What each call waits for.
tops : ndarray of int32, shape (calls,)
    The outermost call, by a call's number.
"""


QUEUE_THREAD = 1 << 33
"""Thread of calls that are known by a queue time alone."""
Synchronised = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Rank, correlation and stream of the calls that wait for one stream; int64, shape (k,) each."""


class Export:
    """An export whose ranks are given to a builder, one at a time: its tables are read once for each.

    Parameters
    ----------
    folder : Path
    clock : Clock
    full_names : bool
        Whether kernels have their full names; else their short ones.

    Raises
    ------
    TableError
        If a table is damaged.
    """

    def __init__(self, folder: Path, clock: Clock, *, full_names: bool) -> None:
        self.folder = folder
        self.clock = clock
        self._full_names = full_names
        self._synchronised = synchronised_streams(folder)
        self._resolution = resolution_of(folder)
        self._calls = _numbers_of_calls(folder)

    def give_rank(self, builder: GraphBuilder, rank: int) -> None:
        """Give a rank's work and calls to a builder.

        Raises
        ------
        TableError
            If a table is damaged, or not ordered by start.
        """
        calls = _Calls(builder, rank, self._calls, self._resolution)
        for rows in _calls_in_order(self.folder, builder, rank):
            calls.take(rows, scopes_of(rows, self._synchronised))
        made_by = builder.scratch.columns(call=np.int32)
        sources = work_sources(self.folder, builder.texts, full_names=self._full_names)
        for rows in _work_in_order(sources, self.clock, rank):
            made_by.append(call=calls.joined(rows))
            streams = builder.streams_of(rows["rank"], rows["device"], rows["stream"])
            builder.work.append(**rows | {"end": self.clock.aligned(rows["end"]), "stream": streams})
            builder.scratch.used(streams.size)
        calls.finish(self.clock, made_by.arrays()["call"])

    def event_waits(self) -> np.ndarray:
        """Return the waits of streams for events of other streams, on the dataset's time line; int64, shape (4, k), as
        `host_calls.event_waits`.
        """
        waits = event_waits(self.folder)
        waits[2] = self.clock.aligned(waits[2])
        return waits


def _numbers_of_calls(folder: Path) -> int:
    """Return a number above those of all calls, which ascend."""
    path = folder / "calls.parquet"
    if not path.is_file():
        return 0
    with open_table(path, "calls") as file:
        last = file.read_row_group(file.num_row_groups - 1, ["call"]) if file.num_row_groups else None
    return last.column("call")[-1].as_py() + 1 if last else 0


def scopes_of(calls: Rows, synchronised: Synchronised) -> np.ndarray:
    """Return what each call waits for: `NO_SCOPE`, `ALL_STREAMS`, or a stream's number in its rank; int64 of
    shape (m,).

    Parameters
    ----------
    calls : Rows
        `waits`, `rank` and `correlation`.
    synchronised : Synchronised
    """
    scope = np.where(calls["waits"] == NOTHING, NO_SCOPE, ALL_STREAMS)
    rank, correlation, stream = synchronised
    if rank.size:
        order = np.argsort(rank << 40 | correlation, kind="stable")
        keys = (rank << 40 | correlation)[order]
        own = np.where(calls["correlation"] >= 0, calls["rank"] << 40 | calls["correlation"], -1)
        position = np.minimum(np.searchsorted(keys, own), keys.size - 1)
        is_named = (keys[position] == own) & (calls["waits"] == OWN_STREAM)
        scope = np.where(is_named, stream[order][position], scope)
    return scope


def _of_rank(pieces: Iterable[Rows], rank: int) -> Iterator[Rows]:
    """Give the rows of a rank piece by piece, each of which is ordered by start."""
    for piece in pieces:
        of_rank = piece["rank"] == rank
        rows = piece if of_rank.all() else {name: values[of_rank] for name, values in piece.items()}
        if rows["start"].size:
            _check_order(rows)
            yield rows


def _check_order(rows: Rows) -> None:
    if (np.diff(rows["start"]) < 0).any():
        raise TableError("a table's rows are not ordered by start_ns; delete it and run again")


def _whole_starts(pieces: Iterable[Rows]) -> Iterator[Rows]:
    """Give rows ordered by start in pieces of which none ends between rows of equal start."""
    held: Rows | None = None
    for rows in pieces:
        if held is not None:
            rows = {name: np.concatenate([held[name], values]) for name, values in rows.items()}
        _check_order(rows)
        cut = int(np.searchsorted(rows["start"], rows["start"][-1]))  # the table may go on with this start
        held = {name: values[cut:] for name, values in rows.items()}
        if cut:
            yield {name: values[:cut] for name, values in rows.items()}
    if held is not None:
        yield held


def _among_equal(rows: Rows, *keys: np.ndarray) -> Rows:
    """Return rows ordered by start, those of equal start by keys, of shape (n,), the last of which counts first."""
    if not (np.diff(rows["start"]) == 0).any():
        return rows
    order = np.lexsort((*keys, rows["start"]))
    return {name: values[order] for name, values in rows.items()}


def _calls_in_order(folder: Path, builder: GraphBuilder, rank: int) -> Iterator[Rows]:
    """Give a rank's calls ordered by start, of equal starts the longest first, in its own clock."""
    for rows in _whole_starts(_of_rank(call_pieces(folder, builder.texts), rank)):
        yield _among_equal(rows, -rows["end"])


def _work_in_order(sources: list[Iterator[Rows]], clock: Clock, rank: int) -> Iterator[Rows]:
    """Give a rank's rows of all sources ordered by start on the dataset's time line, then stream, then source: their
    starts are aligned, `began` is that in the own clock, `source` the number of the source.
    """

    def aligned(number: int, pieces: Iterator[Rows]) -> Iterator[Rows]:
        for rows in _of_rank(pieces, rank):
            more = {"began": rows["start"], "source": np.full(rows["start"].size, number)}
            yield rows | more | {"start": clock.aligned(rows["start"])}

    for rows in _whole_starts(merged([aligned(*source) for source in enumerate(sources)])):
        yield _among_equal(rows, rows["source"], rows["stream"])


class _Calls:
    """Outermost calls of a rank, found by the numbers of all, inner ones as well, which are below `most`."""

    def __init__(self, builder: GraphBuilder, rank: int, most: int, resolution: int) -> None:
        self._builder = builder
        self._resolution = resolution
        self._rank = rank
        array = builder.scratch.array
        self._count = self._taken = 0
        rows = most + 2  # two for accesses to managed memory
        self._start, self._end, self._scope = (array(rows, np.int64) for _ in range(3))
        self._thread, self._name = (array(rows, np.int32) for _ in range(2))
        # what they wait for, alone and with the calls inside; whether they made work; 1 + the source that gave a scope
        self._waits, self._first_waits, self._made, self._by = (array(rows, np.uint8) for _ in range(4))
        self._top = array(most, np.int32, -1)
        self._held = np.full(16, -1)
        self._asked: list[np.ndarray] = []
        self._work = builder.scratch.columns(queued=np.int64, end=np.int64)  # where no calls are
        self._alone = 0

    def take(self, rows: Rows, scope: np.ndarray) -> None:
        """Take calls in their order, in the export's clock.

        Raises
        ------
        TableError
            If their numbers are not those that readers give, for which there is room.
        """
        if not scope.size:
            return
        self._taken += scope.size
        if self._taken > self._start.size or rows["call"].max() >= self._top.size:
            raise TableError("the table calls is not numbered in its order (column call); delete it and run again")
        thread = self._builder.threads_of(rows["rank"], rows["thread"])
        missing = int(thread.max()) + 1 - self._held.size
        if missing > 0:
            self._held = np.concatenate([self._held, np.full(missing, -1)])
        calls = NESTED_CALLS.of(
            start=rows["start"], end=rows["end"], thread=thread, name=rows["name"], waits=rows["waits"], scope=scope,
            number=rows["call"],
        )  # fmt: skip
        self._count = _take_calls(calls, self._held, self._count, self._resolution, self._outermost())
        self._builder.scratch.used(scope.size)

    def _outermost(self) -> tuple:
        return OUTERMOST_CALLS.of(
            start=self._start, end=self._end, thread=self._thread, name=self._name, first_waits=self._first_waits,
            waits=self._waits, scope=self._scope, tops=self._top,
        )  # fmt: skip

    def joined(self, rows: Rows) -> np.ndarray:
        """Return for each work its outermost call; -1: not known, -2 - i: the i-th that only a queue time tells of.

        A call that waits for the work it made waits for that work's stream: of later sources rather, of one source of
        the last.
        """
        number = rows["call"]
        with_call = np.flatnonzero((number >= 0) & (number < self._top.size))
        top = self._top[number[with_call]]
        began = (top >= 0) & (self._start[top] <= rows["began"][with_call])
        with_call = with_call[began]
        top = top[began]
        call = np.full(number.size, -1, np.int32)
        call[with_call] = top
        self._made[top] = 1
        own = np.flatnonzero(self._waits[top] == OWN_STREAM)
        own = own[np.argsort(rows["source"][with_call[own]], kind="stable")]
        by = rows["source"][with_call[own]] + 1
        held = self._by[top[own]]
        chosen = np.where(held > 0, by >= held, self._scope[top[own]] == ALL_STREAMS)
        own = own[chosen]
        self._scope[top[own]] = rows["stream"][with_call[own]]
        self._by[top[own]] = by[chosen]
        alone = np.flatnonzero((call == -1) & (rows["asked"] != UNKNOWN))
        call[alone] = -2 - self._alone - np.arange(alone.size)
        self._alone += alone.size
        if alone.size:
            self._asked.append(rows["asked"][alone])
        if not self._count:
            queued = np.where(rows["asked"] == UNKNOWN, rows["began"], rows["asked"])
            self._work.append(queued=queued, end=rows["end"])
        return call

    def finish(self, clock: Clock, call: np.ndarray) -> None:
        """Give the calls to the builder, and which of them made each work."""
        builder = self._builder
        scratch = builder.scratch
        first = builder.calls.rows
        start = self._start[: self._count]
        own = np.concatenate([np.zeros(0, np.int64), *self._asked])
        order = np.argsort(own, kind="stable")
        own = own[order]
        asked = clock.aligned(own)
        index = np.empty(asked.size, np.int64)  # of those that only a queue time tells of, behind calls of equal start
        given = 0
        for part in scratch.windows(self._count):
            begin = clock.aligned(start[part])
            upto = asked.size if part.stop == self._count else int(np.searchsorted(asked, begin[-1]))
            self._append(part, begin, clock.aligned(self._end[part]), asked[given:upto])
            index[order[given:upto]] = np.searchsorted(begin, asked[given:upto], "right") + part.start
            index[order[given:upto]] += np.arange(given, upto)
            given = upto
        if given < asked.size:  # no calls
            index[order] = self._append_enqueued(clock, own)
        for part in scratch.windows(call.size):
            top = call[part].astype(np.int64)
            made = np.flatnonzero(top >= 0)
            if asked.size:
                alone = np.flatnonzero(top < -1)
                by_call = top[made]
                top[made] += np.searchsorted(asked, clock.aligned(start[by_call]))
                top[alone] = index[-2 - top[alone]]
                top[alone] += first
            top[made] += first
            builder.made_by.append(call=top)

    def _append_enqueued(self, clock: Clock, asked: np.ndarray) -> np.ndarray:
        """Give calls to the builder that only a queue time tells of, in the export's clock and ascending, where no
        others are, with waits; return the index of each among them.
        """
        builder = self._builder
        work = self._work.arrays()
        calls, index = with_waits(asked, unseen_waits(asked, work["queued"], work["end"]), builder.texts)
        n = calls["start"].size
        begin, stop = (clock.aligned(calls[name]) for name in ("start", "end"))
        thread = builder.threads_of(np.full(n, self._rank), np.full(n, QUEUE_THREAD))
        launches = calls["waits"] == NOTHING
        builder.calls.append(**calls | {"start": begin, "end": stop, "thread": thread, "launches": launches})
        return index

    def _append(self, part: slice, begin: np.ndarray, end: np.ndarray, asked: np.ndarray) -> None:
        """Give some calls to the builder, with those of equal time or between them that only a queue time tells of."""
        waits = self._waits[part]
        scope = self._scope[part]
        scope = np.where((waits == WHOLE_RANK) & (scope != NO_SCOPE), ALL_STREAMS, scope)
        columns = {
            "start": begin,
            "end": end,
            "thread": self._thread[part],
            "name": self._name[part],
            "scope": scope,
            "launches": self._made[part].astype(bool),
        }
        if asked.size:
            n = asked.size
            thread = self._builder.threads_of(np.full(n, self._rank), np.full(n, QUEUE_THREAD))
            more = {"start": asked, "end": asked, "thread": thread, "launches": np.ones(n, bool)}
            more |= {"name": np.full(n, self._builder.texts.number("launch")), "scope": np.full(n, NO_SCOPE)}
            order = np.argsort(np.concatenate([begin, asked]), kind="stable")
            columns = {name: np.concatenate([values, more[name]])[order] for name, values in columns.items()}
        self._builder.calls.append(**columns)


@compiled_borrowing(int64(NESTED_CALLS, int64[::1], int64, int64, OUTERMOST_CALLS))
def _take_calls(calls, held, count, resolution, outer):
    """Write the outermost calls, and for each call the outermost one around it; return how many
    outermost calls there are so far. What an inner call waits for counts for the outermost, if it is more.

    Parameters
    ----------
    calls : NESTED_CALLS
    held : array of int64, shape (threads,)
        The latest outermost call of each thread; -1: none.
    count : int
        Outermost calls so far.
    resolution : int, ns
        By how much calls that follow each other may overlap; they do not in the output.
    outer : OUTERMOST_CALLS, output
    """
    for i in range(calls.start.size):
        top = held[calls.thread[i]]
        begin = calls.start[i]
        if top >= 0 and not follows(begin, calls.end[i], outer.start[top], outer.end[top], resolution):
            if calls.waits[i] > outer.first_waits[top]:
                outer.waits[top] = calls.waits[i]
                outer.scope[top] = calls.scope[i]
        else:
            if top >= 0:
                outer.end[top] = min(outer.end[top], begin)
            top = count
            count += 1
            held[calls.thread[i]] = top
            outer.start[top] = begin
            outer.end[top] = calls.end[i]
            outer.thread[top] = calls.thread[i]
            outer.name[top] = calls.name[i]
            outer.first_waits[top] = calls.waits[i]
            outer.waits[top] = calls.waits[i]
            outer.scope[top] = calls.scope[i]
        if calls.number[i] >= 0:
            outer.tops[calls.number[i]] = top
    return count

"""Tables of one rank: the events of all its streams in order of time, tied to their calls by correlation numbers."""

import numpy as np

from causeway.simulate.stream_events import Columns, StreamEvents, by_start

TABLES = ("kernels", "copies", "memsets")
AHEAD_CALL_NS = 2_000
"""Duration of each call of a host that runs ahead."""
AHEAD_PAUSE_NS = 200
"""Its host code between two calls."""
AHEAD_START_NS = 1_500
"""Least time from the end of such a call to the start of what it issued."""


class RankTables:
    """The events of one rank in a batch of iterations, as they are collected.

    Parameters
    ----------
    rank : int
    begin : ndarray of int64, shape (iterations,), ns
        Start of each iteration, since the run's zero.
    ahead : bool
        Whether one host thread issues all of an iteration in one go, in the order in which it starts, and then waits;
        the threads and times of the calls that are added then do not count.
    """

    def __init__(self, rank: int, begin: np.ndarray, *, ahead: bool = False) -> None:
        self.rank = rank
        self.begin = begin
        self.ahead = ahead
        self._events: dict[str, list[Columns]] = {name: [] for name in TABLES}
        self._calls: list[Columns] = []

    def add(
        self,
        table: str,
        events: StreamEvents,
        *,
        thread: int,
        call: np.ndarray | int,
        **columns: np.ndarray | int | float,
    ) -> None:
        """Add a stream's events to a table, and their calls.

        Parameters
        ----------
        table : {"kernels", "copies", "memsets"}
        events : StreamEvents
        thread : int
            Index of the host thread that issues them.
        call : ndarray of int64 or int
            Number of the API call.
        **columns : ndarray, int or float
            Further columns; each fits the shape (iterations, slots) by broadcasting, as `call` does.
        """
        valid = events.valid[self.rank]
        begin = self.begin[:, None]

        def flat(values: np.ndarray | int | float) -> np.ndarray:
            return np.broadcast_to(values, valid.shape)[valid]

        def times(values: np.ndarray) -> np.ndarray:
            return (values[self.rank] + begin)[valid]

        self._calls.append(
            {
                "start": times(events.call_start),
                "end": times(events.call_end),
                "event": times(events.start),
                "thread": flat(thread),
                "call": flat(call),
                "table": flat(TABLES.index(table)),
                "part": flat(len(self._events[table])),
                "row": np.arange(int(valid.sum())),
            }
        )
        rows = {name: flat(values) for name, values in columns.items()}
        self._events[table].append({"start": times(events.start), "end": times(events.end), **rows})

    def add_calls(self, start: np.ndarray, end: np.ndarray, *, thread: int, call: int) -> None:
        """Add calls that issue no event, one per iteration.

        Parameters
        ----------
        start, end : ndarray of int64, shape (iterations,), ns since the iteration's start
        thread, call : int
            As in `add`.
        """
        count = len(start)
        columns = {"thread": thread, "call": call, "table": -1, "part": 0, "row": 0}
        filled = {name: np.full(count, value, dtype=np.int64) for name, value in columns.items()}
        filled["event"] = end + self.begin
        self._calls.append({"start": start + self.begin, "end": end + self.begin, **filled})

    def numbered(self, first: int) -> dict[str, Columns]:
        """Return the tables, `calls` among them, with correlation numbers from `first` on, in order of the calls.

        A table without events is empty.
        """
        calls = by_start([_ahead(self._calls, self.begin)] if self.ahead else self._calls)
        calls["correlation"] = first + np.arange(len(calls["start"]))
        for index, name in enumerate(TABLES):
            for part, events in enumerate(self._events[name]):
                chosen = (calls["table"] == index) & (calls["part"] == part)
                events["correlation"] = np.empty(len(events["start"]), dtype=np.int64)
                events["correlation"][calls["row"][chosen]] = calls["correlation"][chosen]
        tables = {name: by_start(parts) if parts else {} for name, parts in self._events.items()}
        return tables | {"calls": {name: calls[name] for name in ("start", "end", "thread", "call", "correlation")}}


def _ahead(parts: list[Columns], begin: np.ndarray) -> Columns:
    """Return calls as those of one thread that issues the events of each iteration one after the other, from its
    begin on or as late as the first event that would be late allows, and then waits until the iteration ends.
    """
    calls = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    waits = calls["table"] < 0
    order = np.lexsort((calls["event"], waits, np.searchsorted(begin, calls["event"], side="right")))
    calls = {name: values[order] for name, values in calls.items()}
    iteration = np.searchsorted(begin, calls["event"], side="right") - 1
    first = np.searchsorted(iteration, iteration)
    issued = (np.arange(len(first)) - first + 1) * (AHEAD_CALL_NS + AHEAD_PAUSE_NS)
    latest = np.minimum.accumulate((calls["event"] - AHEAD_START_NS - issued)[::-1])[::-1]
    end = np.minimum(begin[iteration], latest) + issued
    waits = calls["table"] < 0
    calls["start"] = end - AHEAD_CALL_NS
    calls["end"] = np.where(waits, calls["end"], end)
    calls["thread"] = np.zeros_like(calls["thread"])
    return calls

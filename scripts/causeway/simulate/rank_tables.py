"""Tables of one rank: the events of all its streams in order of time, tied to their calls by correlation numbers."""

import numpy as np

from causeway.simulate.stream_events import Columns, StreamEvents, by_start

TABLES = ("kernels", "copies", "memsets")


class RankTables:
    """The events of one rank in a batch of iterations, as they are collected.

    Parameters
    ----------
    rank : int
    begin : ndarray of int64, shape (iterations,), ns
        Start of each iteration, since the run's zero.
    """

    def __init__(self, rank: int, begin: np.ndarray) -> None:
        self.rank = rank
        self.begin = begin
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
        self._calls.append({"start": start + self.begin, "end": end + self.begin, **filled})

    def numbered(self, first: int) -> dict[str, Columns]:
        """Return the tables, `calls` among them, with correlation numbers from `first` on, in order of the calls.

        A table without events is empty.
        """
        calls = by_start(self._calls)
        calls["correlation"] = first + np.arange(len(calls["start"]))
        for index, name in enumerate(TABLES):
            for part, events in enumerate(self._events[name]):
                chosen = (calls["table"] == index) & (calls["part"] == part)
                events["correlation"] = np.empty(len(events["start"]), dtype=np.int64)
                events["correlation"][calls["row"][chosen]] = calls["correlation"][chosen]
        tables = {name: by_start(parts) if parts else {} for name, parts in self._events.items()}
        return tables | {"calls": {name: calls[name] for name in ("start", "end", "thread", "call", "correlation")}}

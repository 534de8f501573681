"""Which range encloses a call, and which call made what a device did: streaming joins of event streams that are ordered
by start.

Memory is bounded by what is open at a time: ranges not yet closed, and the latest calls.
"""

from collections.abc import Iterator

import numpy as np

from causeway.readers.common.constants import NULL
from causeway.readers.sink.batches import EventBatch, is_repeated, repeated

AHEAD_NS = 1_000_000_000
"""How much later than its work a call may seem to start: host and device clocks are converted, not shared."""

CALLS_HELD = 1 << 18
"""Launch calls held while their launches are awaited; a device is at most a few thousand launches behind."""

_FACTS = ("begin", "end", "call", "thread", "range", "operator", "inputs", "work_items")
"""What is known of the call that made work of a device: its times, its number, its thread, the range, operator and
inputs around it, and whether it was given work-items.
"""


def innermost(start: np.ndarray, end: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Return for each time the index of the latest-started range that holds it, or -1.

    Parameters
    ----------
    start, end : ndarray of int64, shape (n_ranges,), ascending start; ranges of one thread, closed left, open right
    times : ndarray of int64, shape (n,)

    Returns
    -------
    ndarray of int64, shape (n,)
    """
    from causeway.readers.sink.compiled_loops import latest_open

    order = np.argsort(times, kind="stable")
    latest = np.empty(len(times), np.int64)
    latest_open(np.ascontiguousarray(start), np.ascontiguousarray(end), times[order], order, latest)
    return latest


class OpenRanges:
    """The ranges of an ordered stream that are open near a time; gives each call its innermost range on the same
    thread.

    Parameters
    ----------
    blocks : iterator of EventBatch
        Events with start_ns, duration_ns, process, thread; ordered by start. A range's number is its index in the
        stream.
    """

    def __init__(self, blocks: Iterator[EventBatch]) -> None:
        self._blocks = blocks
        self._seen = 0
        self._done = False
        self._latest: int | None = None
        self._live = np.empty(
            0, [("start", "<i8"), ("end", "<i8"), ("process", "<i4"), ("thread", "<i8"), ("number", "<i8")]
        )

    def _load_until(self, time: int) -> None:
        while not self._done and (self._latest is None or self._latest <= time):
            block = next(self._blocks, None)
            if block is None:
                self._done = True
                return
            self._latest = int(block["start_ns"][-1])
            more = np.empty(len(block), self._live.dtype)
            more["start"] = block["start_ns"]
            more["end"] = block["start_ns"] + block["duration_ns"]
            more["process"] = block["process"]
            more["thread"] = block["thread"]
            more["number"] = self._seen + np.arange(len(block))
            self._seen += len(block)
            self._live = np.concatenate([self._live, more])

    def find(self, calls: EventBatch) -> np.ndarray:
        """Return for each call (ordered by start) the number of its innermost range, or `NULL`; int64, shape (n,)."""
        numbers = np.full(len(calls), NULL)
        if not len(calls):
            return numbers
        self._load_until(int(calls["start_ns"][-1]))
        self._live = live = self._live[self._live["end"] > calls["start_ns"][0]]
        threads = np.unique(np.stack([calls["process"].astype(np.int64), calls["thread"]]), axis=1)
        for process, thread in threads.T.tolist():
            if thread == NULL:
                continue
            of_thread = live[(live["process"] == process) & (live["thread"] == thread)]
            rows = np.flatnonzero((calls["process"] == process) & (calls["thread"] == thread))
            if len(of_thread):
                index = innermost(of_thread["start"], of_thread["end"], calls["start_ns"][rows])
                numbers[rows] = np.where(index >= 0, of_thread["number"][index], NULL)
        return numbers

    def drain(self) -> None:
        """Read the stream to its end."""
        for block in self._blocks:
            self._seen += len(block)


class WorkCalls:
    """The calls of an ordered stream by correlation; gives launches, copies and graphs the call that made them.

    Parameters
    ----------
    blocks : iterator of (EventBatch, ndarray of int64, ndarray of int64, ndarray of int64, ndarray of int64)
        Events with start_ns, duration_ns, process, thread, correlation, ordered by start; and each one's number, range,
        operator and inputs, of shape (n,), or `NULL`.
    launching : ndarray of bool, shape (names,), or None
        Whether a call of that name (by the events' `name`) launches a kernel; for `unanswered`.
    work_items : ndarray of bool, shape (names,), or None
        Whether a call of that name is given a grid in work-items.

    Attributes
    ----------
    unanswered : int
        Calls that launch a kernel, none of which was found; complete after `drain`.
    """

    def __init__(
        self,
        blocks: Iterator[tuple[EventBatch, *tuple[np.ndarray, ...]]],
        launching: np.ndarray | None = None,
        work_items: np.ndarray | None = None,
    ) -> None:
        self._blocks = blocks
        self._done = False
        self._latest: int | None = None
        self._launching = launching
        self._work_items = work_items
        self._held = np.empty(0, [*((name, "<i8") for name in ("key", *_FACTS)), ("launching", "?")])
        self.unanswered = 0

    @staticmethod
    def _keys(rows: EventBatch) -> np.ndarray:
        """Return process and correlation as one number, -1 for rows without a correlation."""
        correlation = rows["correlation"]
        usable = (correlation >= 0) & (correlation < 1 << 47)
        return np.where(usable, rows["process"].astype(np.int64) << 47 | np.where(usable, correlation, 0), -1)

    def _load_until(self, time: int) -> None:
        fresh = []
        while not self._done and (self._latest is None or self._latest <= time):
            block = next(self._blocks, None)
            if block is None:
                self._done = True
                break
            rows, *facts = block
            self._latest = int(rows["start_ns"][-1])
            more = np.empty(len(rows), self._held.dtype)
            more["key"] = self._keys(rows)
            more["begin"] = rows["start_ns"]
            more["end"] = rows["start_ns"] + rows["duration_ns"]
            more["thread"] = rows["thread"]
            for name, values in zip(("call", "range", "operator", "inputs"), facts, strict=True):
                more[name] = values
            more["launching"] = False if self._launching is None else self._launching[rows["name"]]
            more["work_items"] = False if self._work_items is None else self._work_items[rows["name"]]
            fresh.append(more[more["key"] >= 0])
            if sum(map(len, fresh)) > CALLS_HELD:
                break
        if fresh:
            held = np.concatenate([self._held, *fresh])
            held = held[np.lexsort((held["end"], held["key"]))]
            # of nested calls, the one that returns last
            last = np.append(held["key"][1:] != held["key"][:-1], True)[: len(held)]
            self._held = held[last]
            if len(self._held) > CALLS_HELD:
                oldest = np.partition(self._held["end"], len(self._held) - CALLS_HELD)[len(self._held) - CALLS_HELD]
                keep = self._held["end"] >= oldest
                self.unanswered += int(self._held["launching"][~keep].sum())
                self._held = self._held[keep]

    def find(self, work: EventBatch) -> dict[str, np.ndarray]:
        """Return what is known of the call that made each row: begin and end in ns, call, thread, range, operator,
        inputs, and whether it was given work-items (0 or 1); int64 of shape (n,), `NULL` where unknown. Rows come in
        the order in which `pieces_in_order` gives them.
        """
        if is_repeated(work["correlation"]) and work["correlation"][0] < 0:
            return self.unknown(work)
        facts = {name: np.full(len(work), NULL) for name in _FACTS}
        self._load_until(int(work["start_ns"][-1]) + AHEAD_NS)
        if len(self._held):
            keys = self._keys(work)
            position = np.minimum(np.searchsorted(self._held["key"], keys), len(self._held) - 1)
            hit = (self._held["key"][position] == keys) & (keys >= 0)
            for name, values in facts.items():
                values[hit] = self._held[name][position[hit]]
            self._held["launching"][position[hit]] = False  # answered
        return facts

    @staticmethod
    def unknown(work: EventBatch) -> dict[str, np.ndarray]:
        """Return what `find` returns where nothing is known; int64 of shape (n,)."""
        return dict.fromkeys(_FACTS, repeated(NULL, len(work)))

    def drain(self) -> None:
        """Read the stream to its end."""
        while not self._done:
            self._load_until(np.iinfo(np.int64).max)
        self.unanswered += int(self._held["launching"].sum())
        self._held = self._held[:0]


def pieces_in_order(sources: list[Iterator[EventBatch]]) -> Iterator[tuple[int, EventBatch]]:
    """Give the rows of sources that are ordered by start, piece by piece, with the number of the source: none reaches
    beyond what is loaded of all sources, so that the call of each is near.
    """
    full = [(block for block in source if len(block)) for source in sources]
    loaded = [next(source, None) for source in full]
    while any(block is not None for block in loaded):
        bound = min(int(block["start_ns"][-1]) for block in loaded if block is not None)
        for index, block in enumerate(loaded):
            if block is None:
                continue
            cut = int(np.searchsorted(block["start_ns"], bound, "right"))
            if cut:
                yield index, block[:cut]
            loaded[index] = block[cut:] if cut < len(block) else next(full[index], None)

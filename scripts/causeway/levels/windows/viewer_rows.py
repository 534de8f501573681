"""Rows of a viewer: which events stand on one line, so that none of them overlap."""

import heapq
from collections.abc import Iterable
from dataclasses import dataclass

from causeway.levels.window import Window
from causeway.tables import COPY_KINDS


@dataclass(frozen=True)
class Event:
    """One bar: when, what, and what else is known of it. `kind` is a class of `causeway.levels.filters.CLASSES`."""

    start_ns: int
    duration_ns: int
    kind: str
    name: str
    rank: int
    correlation: int | None
    facts: dict

    @property
    def end_ns(self) -> int:
        """When it ended."""
        return self.start_ns + self.duration_ns


@dataclass(frozen=True)
class Row:
    """One line of a viewer, with its events in the order of time, none of which overlap."""

    rank: int
    name: str
    events: list[Event]


def rows_of(window: Window) -> list[Row]:
    """Return the lines of a window: for each rank the host's threads, then the devices' streams.

    Events of one thread or stream that overlap, as nested ranges do, are spread over as few lines as they need.
    """
    found: dict[tuple, list[Event]] = {}
    for _, row in window.launches():
        shape = {name: row[name] for name in row if name.startswith(("grid_", "block_")) and row[name] is not None}
        facts = shape | {"full_name": row["name"], "queue_ns": row["queue_ns"]}
        event = Event(row["start_ns"], row["duration_ns"], row["class"], row["short_name"], row["rank"], row["correlation"], facts)
        found.setdefault((row["rank"], 1, row["device"], row["stream"]), []).append(event)
    for _, row in window.rows("transfers"):
        name = COPY_KINDS.get(row["copy_kind"], "unknown")
        kind = "memset" if row["copy_kind"] == 255 else "copy"
        event = Event(row["start_ns"], row["duration_ns"], kind, name, row["rank"], row["correlation"], {"bytes": row["bytes"]})
        found.setdefault((row["rank"], 1, row["device"], row["stream"]), []).append(event)
    for table, kind in (("calls", "call"), ("mpi", "mpi"), ("ranges", "range")):
        for _, row in window.rows(table):
            facts = {name: row[name] for name in ("bytes", "peer") if name in row}
            event = Event(row["start_ns"], row["duration_ns"], kind, row["name"], row["rank"], row.get("correlation"), facts)
            found.setdefault((row["rank"], 0, -1 if row["thread"] is None else row["thread"], kind), []).append(event)
    rows = []
    for (rank, place, *rest), events in sorted(found.items(), key=lambda item: _order(item[0])):
        label = f"device {rest[0]} stream {rest[1]}" if place else f"{rest[1]}s" + (f" of thread {rest[0]}" if rest[0] >= 0 else "")
        for number, line in enumerate(spread(events)):
            rows.append(Row(rank, label + (f" ({number + 1})" if number else ""), line))
    return rows


def _order(key: tuple) -> tuple:
    rank, place, first, second = key
    return rank, place, first, str(second) if place == 0 else second


def spread(events: Iterable[Event]) -> list[list[Event]]:
    """Return events on as few lines as possible without overlap: each on the line that has been free for longest."""
    lines: list[list[Event]] = []
    free: list[tuple[int, int]] = []
    for event in sorted(events, key=lambda event: (event.start_ns, event.end_ns)):
        if free and free[0][0] <= event.start_ns:
            _, line = heapq.heappop(free)
        else:
            lines.append([])
            line = len(lines) - 1
        lines[line].append(event)
        heapq.heappush(free, (event.end_ns, line))
    return lines


def flows(rows: list[Row]) -> list[tuple[int, Event, int, Event]]:
    """Return (place of the call's row, call, place of the row, launch or transfer) for each that a call of the window launched."""
    calls = {
        (row.rank, event.correlation): (place, event)
        for place, row in enumerate(rows)
        for event in row.events
        if event.kind == "call" and event.correlation is not None
    }
    return [
        (*calls[row.rank, event.correlation], place, event)
        for place, row in enumerate(rows)
        for event in row.events
        if event.kind not in ("call", "mpi", "range") and (row.rank, event.correlation) in calls
    ]

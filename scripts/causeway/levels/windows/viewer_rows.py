"""Swim lanes of a viewer: which events share one line, so that none of them overlap."""

import heapq
from collections.abc import Iterable
from dataclasses import dataclass

from causeway.core.codes import COPY_KINDS, MEMSET_KIND
from causeway.levels.windows.window import TimeWindow


@dataclass(frozen=True)
class ViewerEvent:
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
class SwimLane:
    """One line of a viewer, with its events in the order of time, none of which overlap."""

    rank: int
    name: str
    events: list[ViewerEvent]


def swim_lanes(window: TimeWindow) -> list[SwimLane]:
    """Return the swim lanes of a window: for each rank the host's threads, then the devices' streams.

    Events of one thread or stream that overlap, as nested ranges do, are spread over as few lines as they need.
    """
    events_of: dict[tuple, list[ViewerEvent]] = {}

    def add(key: tuple, row: dict, kind: str, name: str, facts: dict) -> None:
        when = row["start_ns"], row["duration_ns"]
        event = ViewerEvent(*when, kind, name, row["rank"], row.get("correlation"), facts)
        events_of.setdefault((row["rank"], *key), []).append(event)

    for row in window.launches():
        shape = {name: row[name] for name in row if name.startswith(("grid_", "block_")) and row[name] is not None}
        facts = shape | {"full_name": row["name"], "queue_ns": row["queue_ns"]}
        add((1, row["device"], row["stream"]), row, row["class"], row["short_name"], facts)
    for row in window.rows("transfers"):
        kind = "memset" if row["copy_kind"] == MEMSET_KIND else "copy"
        name = COPY_KINDS.get(row["copy_kind"], "unknown")
        add((1, row["device"], row["stream"]), row, kind, name, {"bytes": row["bytes"]})
    for table, kind in (("calls", "call"), ("mpi", "mpi"), ("ranges", "range")):
        for row in window.rows(table):
            facts = {name: row[name] for name in ("bytes", "peer") if name in row}
            add((0, -1 if row["thread"] is None else row["thread"], kind), row, kind, row["name"], facts)
    lanes = []
    for (rank, on_device, *rest), events in sorted(events_of.items(), key=lambda item: _order(item[0])):
        label = (
            f"device {rest[0]} stream {rest[1]}"
            if on_device
            else f"{rest[1]}s" + (f" of thread {rest[0]}" if rest[0] >= 0 else "")
        )
        for number, line in enumerate(spread(events)):
            lanes.append(SwimLane(rank, label + (f" ({number + 1})" if number else ""), line))
    return lanes


def _order(key: tuple) -> tuple:
    rank, on_device, first, second = key
    return rank, on_device, first, second if on_device else str(second)


def spread(events: Iterable[ViewerEvent]) -> list[list[ViewerEvent]]:
    """Return events on as few lines as possible without overlap: each on the line that has been free for longest."""
    lines: list[list[ViewerEvent]] = []
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


def flows(lanes: list[SwimLane]) -> list[tuple[int, ViewerEvent, int, ViewerEvent]]:
    """Return (index of the call's swim lane, call, index of the swim lane, launch or transfer) for each that a call of
    the window launched.
    """
    calls: dict[tuple[int, int | None], tuple[int, ViewerEvent]] = {
        (lane.rank, event.correlation): (index, event)
        for index, lane in enumerate(lanes)
        for event in lane.events
        if event.kind == "call" and event.correlation is not None
    }
    return [
        (*calls[lane.rank, event.correlation], index, event)
        for index, lane in enumerate(lanes)
        for event in lane.events
        if event.kind not in ("call", "mpi", "range") and (lane.rank, event.correlation) in calls
    ]

"""Write a window as Chrome trace events, for Perfetto and chrome://tracing.

Source: "Trace Event Format" (Google, 2016): complete events `X`, flow events `s` and `f`, counters `C`, metadata `M`;
times in microseconds.
"""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

from causeway.core.files.whole_files import written_whole
from causeway.levels.windows.viewer_rows import flows, swim_lanes
from causeway.levels.windows.window import TimeWindow

FLOW = "launch"


def write_chrome(window: TimeWindow, path: Path) -> None:
    """Write `path` (`.json.gz`); times count from the dataset's first launch, and equal windows give equal bytes."""
    about = {"dataset": window.dataset, "window": window.name, "first_launch_ns": window.origin_ns}
    with (
        written_whole(path) as partial,
        open(partial, "wb") as raw,
        gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed,
    ):
        packed.write(b'{"displayTimeUnit":"ns","otherData":' + _text(about) + b',"traceEvents":[\n')
        for index, event in enumerate(_events(window)):
            packed.write((b",\n" if index else b"") + _text(event))
        packed.write(b"\n]}\n")


def _text(value: dict) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _events(window: TimeWindow) -> Iterator[dict]:
    lanes = swim_lanes(window)
    for rank, node in sorted(window.node_of.items()):
        name = f"rank {rank}" + (f" on {node}" if node else "")
        yield {"ph": "M", "name": "process_name", "pid": rank, "tid": 0, "args": {"name": name}}
        yield {"ph": "M", "name": "process_sort_index", "pid": rank, "tid": 0, "args": {"sort_index": rank}}
    for tid, lane in enumerate(lanes):
        yield {"ph": "M", "name": "thread_name", "pid": lane.rank, "tid": tid, "args": {"name": lane.name}}
        yield {"ph": "M", "name": "thread_sort_index", "pid": lane.rank, "tid": tid, "args": {"sort_index": tid}}
    for tid, lane in enumerate(lanes):
        for event in lane.events:
            facts = {key: value for key, value in event.facts.items() if value is not None}
            facts |= {} if event.correlation is None else {"correlation": event.correlation}
            yield {
                **{"ph": "X", "name": event.name, "cat": event.kind, "pid": lane.rank, "tid": tid},
                **{"ts": _us(event.start_ns - window.origin_ns), "dur": _us(event.duration_ns), "args": facts},
            }
    for number, (tid, call, to, event) in enumerate(flows(lanes)):
        common = {"name": FLOW, "cat": FLOW, "id": number, "pid": event.rank}
        yield {"ph": "s", **common, "tid": tid, "ts": _us(call.start_ns - window.origin_ns)}
        yield {"ph": "f", "bp": "e", **common, "tid": to, "ts": _us(event.start_ns - window.origin_ns)}
    for row in window.rows("samples"):
        name = f"{row['metric']} of device {row['device']}"
        time = _us(row["time_ns"] - window.origin_ns)
        yield {"ph": "C", "name": name, "pid": row["rank"], "tid": 0, "ts": time, "args": {"value": row["value"]}}


def _us(ns: int) -> float | int:
    """Return microseconds: the shortest number that is nanoseconds again when it is multiplied and rounded."""
    return ns // 1000 if ns % 1000 == 0 else ns / 1000

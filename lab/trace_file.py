"""A simulated rank's PyTorch profiler trace as a file."""

import gzip
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

BASE_NS = 1_750_000_000_000_000_000
"""When simulated traces begin, ns since 1970."""


def trace_event(category: str, name: str, track: tuple[int, int], span: tuple[float, float], args: Mapping) -> dict:
    """Return a complete event; `track` is its process and thread, `span` its start and end in ns."""
    begin, end = (round(time) for time in span)
    times = {"ts": begin / 1000, "dur": (end - begin) / 1000}
    return {"ph": "X", "cat": category, "name": name, "pid": track[0], "tid": track[1], **times, "args": dict(args)}


def write_trace(path: Path, rank: int, ranks: int, events: Sequence[Mapping]) -> None:
    """Write the trace of one of some ranks."""
    device = {"id": rank, "name": "NVIDIA H100", "numSms": 132, "warpSize": 32}
    document = {
        "schemaVersion": 1,
        "deviceProperties": [device],
        "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": ranks},
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": BASE_NS,
        "traceEvents": events,
    }
    # no name and no time in gzip's header: equal jobs give equal bytes
    with (
        open(path, "wb") as raw,
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, compresslevel=4, mtime=0) as file,
    ):
        file.write(json.dumps(document).encode())

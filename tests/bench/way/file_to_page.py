"""From a Kineto trace of 100 MB to the page: `causeway run` by the clock.

The trace is Kineto's own sample of ResNet-50 (real events of one GPU), again and again, with times, ids and steps moved
on.
"""

import gzip
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.bench.inputs import ROOT

SAMPLE = "kineto/kineto-samples/resnet50_num_workers_0.pt.trace.json.gz"
BYTES = 100_000_000
MOST_WALL_S = 90
"""Seconds by the clock, at most: on two idle cores."""
PAUSE_US = 1000


def _moved(event: dict, us: int, ids: int, turn: int) -> dict:
    """Return the event so much later, of other ids, in another step."""
    moved = dict(event, ts=event["ts"] + us)
    if "id" in event:
        moved["id"] = event["id"] + ids
    args = dict(event.get("args", {}))
    for name in ("correlation", "external id", "External id"):
        if args.get(name):
            args[name] += ids
    if "Trace iteration" in args:
        args["Trace iteration"] += turn
    return dict(moved, args=args) if args else moved


def _events(sample: Path) -> Iterator[str]:
    """Give the events as text, without end, in the order of time."""
    with gzip.open(sample, "rt", encoding="utf-8") as handle:
        events = sorted(json.load(handle)["traceEvents"], key=lambda event: event["ts"])
    begin = events[0]["ts"]
    end = max(event["ts"] + event.get("dur", 0) for event in events)
    ids = 1 + max(event.get("id", 0) for event in events)
    yield from (json.dumps(event) for event in events if event["ph"] == "M")
    turn = 0
    while True:
        for event in events:
            if event["ph"] != "M":
                yield json.dumps(_moved(event, turn * (end - begin + PAUSE_US), turn * ids, turn))
        turn += 1


def repeated_trace(path: Path, sample: Path, size: int = BYTES) -> Path:
    """Write a trace of exactly so many bytes, the last repetition cut; reuse it if it is there."""
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    head = '{"schemaVersion": 1, "traceEvents": [\n'
    tail = "]}\n"
    left = size - len(head) - len(tail)
    partial = path.with_name(path.name + ".partial")
    with open(partial, "w", encoding="ascii") as handle:
        handle.write(head)
        comma = ""
        for text in _events(sample):
            if len(comma) + len(text) > left:
                break
            handle.write(comma + text)
            left -= len(comma) + len(text)
            comma = ",\n"
        handle.write(" " * left + tail)
    partial.replace(path)
    return path


def timed(line: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Return the seconds by the clock and of CPU time that a command takes.

    Raises
    ------
    RuntimeError
        If it fails; with the end of what it printed.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    done = subprocess.run(line, env=environment, capture_output=True, text=True, check=False)
    wall = time.monotonic() - began
    if done.returncode:
        raise RuntimeError(done.stdout[-3000:] + done.stderr[-6000:])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def page(options):
    """From the trace to overview and report, in one command."""
    sample = ROOT.parent / "shared" / "data" / SAMPLE
    if not sample.exists():
        print(f"left out: no {sample.name} in shared/data")
        return
    trace = repeated_trace(options.folder.resolve() / "kineto" / "trace.json", sample)
    for _ in range(options.repetitions):
        folder = options.folder.resolve() / "page"
        shutil.rmtree(folder, ignore_errors=True)
        line = [sys.executable, "-m", "causeway.command_line", "run", str(trace), "--out", str(folder)]
        wall, cpu = timed(line, os.environ | {"PYTHONPATH": str(ROOT / "scripts")})
        verdict = "holds" if wall <= MOST_WALL_S else "FAILS"
        print(
            f"Kineto trace of {trace.stat().st_size / 1e6:.1f} MB to the page: {wall:.1f} s by the clock,"
            f" {cpu:.1f} CPU-s   at most {MOST_WALL_S} s: {verdict}",
            flush=True,
        )
    shutil.rmtree(folder)


PARTS = {"page": page}

"""Times that were rounded: what follows what stays the same, and so do the savings of replays."""

import itertools
import json
import random

import pytest

from causeway.core.tables import read_json, read_table, write_json
from causeway.readers.normalise import normalise
from causeway.waiting.find_critical_paths import find_critical_paths

EPOCH_NS = 1_722_333_444_555_666_123
PRINTED = {
    "exact": lambda ns: f"{ns // 1000}.{ns % 1000:03d}",
    "shortest": lambda ns: repr(ns / 1e3),
    "three decimals of doubles": lambda ns: f"{ns / 1e3:.3f}",
    "one decimal": lambda ns: f"{ns / 1e3:.1f}",
    "whole": lambda ns: str(ns // 1000),
}


def event(category, name, track, start, end, correlation, text):
    args = {"device": 0, "stream": track, "correlation": correlation}
    args |= {"grid": [264, 1, 1], "block": [256, 1, 1]} if category == "kernel" else {"bytes": 1 << 20}
    row = {"ph": "X", "cat": category, "name": name, "pid": 0, "tid": track, "args": args}
    return json.dumps(row)[:-1] + f', "ts": {text(EPOCH_NS + start)}, "dur": {text(end - start)}}}'


def write_trace(path, text, steps=40, copies=True):
    """Write a program whose host copies, computes and waits in turn; where not `copies`, these take no time."""
    random.seed(5)
    events = []
    ended = now = 0
    number = itertools.count(1)

    def call(name, last, correlation):
        nonlocal now
        begin = now
        now = last
        events.append(event("cuda_runtime", name, 1, begin, now, correlation, text))

    for _ in range(steps):
        for kernel in (True, True, False):
            length = random.randint(70_000, 90_000)
            length = length if kernel or copies else 0
            correlation = next(number)
            call("cudaLaunchKernel" if kernel else "cudaMemcpyAsync", now + 3_000 * (length > 0), correlation)
            start = max(now + 1_500, ended + 1_001)
            ended = start + length
            category, name = ("kernel", "gemm") if kernel else ("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)")
            events.append(event(category, name, 7, start, ended, correlation, text))
        call("cudaStreamSynchronize", ended + 2_500, next(number))
    path.write_text('{"schemaVersion": 1, "traceEvents": [' + ",\n".join(events) + "]}")
    return ended


def savings(source, folder):
    normalise(source, folder / "e0", export="e0", source=source.name, rank=0, form="kineto")
    write_json({"exports": {"e0": {"shift_ns": 0, "ranks": [0]}}}, folder / "clocks.json")
    outs = [folder / f"{name}.parquet" for name in ("path", "replay", "pieces")]
    find_critical_paths("d", [folder / "e0"], folder / "clocks.json", None, [], *outs)
    rows = read_table(outs[1], "replay").to_pylist()
    return {row["change"]: row["time_ns"] - row["predicted_ns"] for row in rows if row["step"] is None}


@pytest.mark.parametrize("how", PRINTED)
def test_savings_are_those_of_the_exact_times(how, tmp_path):
    """Shares of the run that copies cost, beside the program run without them: up to 32 % were missing."""
    without = write_trace(tmp_path / "t.json", PRINTED["exact"], copies=False)
    saved = write_trace(tmp_path / "t.json", PRINTED[how]) - without
    assert savings(tmp_path / "t.json", tmp_path)["copies_free"] == pytest.approx(saved, rel=0.01)


@pytest.mark.parametrize(
    ("how", "resolution"), list(zip(PRINTED, (1, 100 + 250 + 256, 250 + 250 + 256, 100 + 250 + 256, 1000), strict=True))
)
def test_the_resolution_follows_from_the_times(how, resolution, tmp_path):
    write_trace(tmp_path / "t.json", PRINTED[how])
    normalise(tmp_path / "t.json", tmp_path / "e0", export="e0", source="t.json", rank=0, form="kineto")
    assert read_json(tmp_path / "e0" / "capabilities.json")["time"]["resolution_ns"] == resolution


def test_ticks_of_a_program_are_no_resolution_beyond_a_microsecond(tmp_path):
    write_trace(tmp_path / "t.json", lambda ns: str(ns // 1_000_000 * 1000))
    normalise(tmp_path / "t.json", tmp_path / "e0", export="e0", source="t.json", rank=0, form="kineto")
    assert read_json(tmp_path / "e0" / "capabilities.json")["time"]["resolution_ns"] == 1000

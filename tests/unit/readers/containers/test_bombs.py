"""Small files that would become large: each ends in one sentence, within bounded memory and time."""

import gzip
import json
import os
import select
import signal
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from layouts import LAYOUTS

from support import ROOT

PROGRAM = """
import json, os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from causeway.readers.normalise import normalise
from causeway.readers.detect import detect
while line := sys.stdin.readline():
    if os.fork():
        if os.wait()[1]:
            print("null", flush=True)
        continue
    path, out = map(Path, json.loads(line))
    detect(path)
    found = normalise(path, out, export="e", source="export")
    # of this process alone: `ru_maxrss` goes on from that of the process which started it
    peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    said = [found["status"], found["error"], found["tables"], found["issues"], int(peak.split()[1]) / 1024]
    print(json.dumps(said), flush=True)
    break
"""
"""Reads each export that a line names in a fork of its own, and says what it found, or null if it fails."""
QUICKLY = {"compression": "zstd", "compression_level": 1, "use_dictionary": False, "write_statistics": False}
"""Options with which a large table of few bytes is written in a tenth of the time."""
MOST_MB = 512
MOST_S = 300
"""Seconds each takes a few of on an idle machine; without its bound, it takes hours."""


@pytest.fixture(scope="module")
def reading(tmp_path_factory):
    """Start the program that has imported what reads; the file holds what it says of errors."""
    errors = tmp_path_factory.mktemp("reading") / "errors"
    command = [sys.executable, "-c", PROGRAM, str(ROOT / "scripts")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with errors.open("w") as file, subprocess.Popen(command, stderr=file, start_new_session=True, **pipes) as process:
        yield process, errors


@pytest.fixture
def read_apart(reading):
    """Return a function that reads an export in a process of its own: status, error, tables, issues and the most memory in MB."""
    process, errors = reading

    def read(path, out):
        process.stdin.write(json.dumps([str(path), str(out)]) + "\n")
        process.stdin.flush()
        if not select.select([process.stdout], [], [], MOST_S)[0]:
            os.killpg(process.pid, signal.SIGKILL)
        said = json.loads(process.stdout.readline() or "null")
        assert said is not None, errors.read_text()
        assert "Traceback" not in errors.read_text()
        return said

    return read


def wide_csv(folder):
    path = folder / "wide.csv"
    path.write_text("y," + ",".join(f"c{n}" for n in range(10**6)) + "\n" + "1," * 10**6 + "1\n", encoding="utf-8")
    return path


def wide_parquet(folder):
    path = folder / "wide.parquet"
    table = pa.table([pa.array([1])] * 20_002, names=["y", *(f"c{n}" for n in range(20_001))])
    pq.write_table(table, path, **QUICKLY)
    return path


def long_value(folder):
    path = folder / "value.parquet"
    table = pa.table({"y": [1], "name": ["a" * (300 << 20)]})
    pq.write_table(table, path, **QUICKLY)
    return path


def long_name_of_nsys(folder):
    path = LAYOUTS["nsys parquetdir"](folder, "k", 24)
    names = pq.read_table(path / "StringIds.parquet").to_pylist()
    names[0]["value"] = "a" * (300 << 20)
    table = pa.Table.from_pylist(names)
    pq.write_table(table, path / "StringIds.parquet", **QUICKLY)
    return path


def long_cell(folder):
    path = folder / "cell.csv"
    with path.open("wb") as file:
        file.write(b'y,name\n1,"')
        file.truncate(1 << 26)  # NUL characters to the end, without a block on the disk
    return path


NCU_HEADER = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device"'
    ',"CC","Section Name","Metric Name","Metric Unit","Metric Value"'
)
ROCM_HEADER = "Correlation_Id,Dispatch_Id,Agent_Id,Queue_Id,Process_Id,Thread_Id,Grid_Size,Kernel_Id,Kernel_Name"


def many_metrics_of_ncu(folder):
    path = folder / "ncu.csv"
    rows = [
        f'"{n}","1","p","h","k","1","7","(1,1,1)","(1,1,1)","0","9.0","s","m{"x" * 300}{n}","u","1"'
        for n in range(24_000)
    ]
    path.write_text("\n".join([NCU_HEADER, *rows, ""]), encoding="utf-8")
    return path


def many_metrics_of_rocprofv3(folder):
    path = folder / "x_counter_collection.csv"
    rows = [f"{n},{n},1,1,1,1,1,1,k,1,m{'x' * 300}{n},1" for n in range(24_000)]
    path.write_text(
        "\n".join([f"{ROCM_HEADER},Workgroup_Size,Counter_Name,Counter_Value", *rows, ""]), encoding="utf-8"
    )
    return path


def many_metrics_of_kineto(folder):
    path = folder / "ranges.json"
    event = {"ph": "X", "cat": "cuda_profiler_range", "name": "k", "ts": 1, "dur": 2}
    events = [event | {"args": {f"m{'x' * 300}{n}": 1}} for n in range(24_000)]
    path.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    return path


KERNEL = '{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 2}'


def many_objects(folder, text):
    """Return a packed trace of one kernel, and of what `text` has in the place of @: objects without end."""
    path = folder / "objects.json.gz"
    path.write_bytes(gzip.compress(text.replace("KERNEL", KERNEL).replace("@", "[1]," * (3 << 20) + "1").encode(), 1))
    return path


@pytest.mark.parametrize(
    ("text", "left_out", "expected"),
    [
        pytest.param('{"traceEvents": [KERNEL], "distributedInfo": [@]}', 1, "read", marks=pytest.mark.slow),
        pytest.param('{"deviceProperties": [@], "traceEvents": [KERNEL]}', 1, "read", marks=pytest.mark.slow),
        (r'{"schemaVersion": 1, "anything": [{"}]": ["\\", "]\""]}, @], "traceEvents": [KERNEL]}', 0, "read"),
        ('{"traceEvents": [{"ph": "X", "cat": "cpu_op", "args": {"Input Dims": [@]}}, KERNEL]}', 1, "partial"),
    ],
    ids=["a fact", "devices", "what is not wanted", "arguments"],
)
def test_objects_without_end_cost_themselves_alone_within_bounds(tmp_path, read_apart, text, left_out, expected):
    status, _, tables, issues, peak_mb = read_apart(many_objects(tmp_path, text), tmp_path / "out")
    assert (status, tables["launches"]) == (expected, 1)
    assert sum(one["count"] for one in issues if one["kind"] == "unreadable_rows") == left_out
    assert peak_mb < MOST_MB


def deep_json(folder):
    path = folder / "deep.json"
    path.write_text('{"traceEvents": ' + "[" * 10**6 + "]" * 10**6 + "}", encoding="utf-8")
    return path


def deep_arguments(folder):
    path = folder / "arguments.json"
    event = '{"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 2, "args": '
    body = event + '{"a":' * 10**6 + "1" + "}" * 10**6 + "}"
    path.write_text(f'{{"schemaVersion": 1, "deviceProperties": [], "traceEvents": [{body}]}}', encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (wide_csv, "1,000,001 columns"),
        (wide_parquet, "20,002 columns"),
        pytest.param(long_value, "unpacks to 314,5", marks=pytest.mark.slow),  # as `long_name_of_nsys`
        (long_name_of_nsys, "unpacks to 314,5"),
        (long_cell, "a row takes more than 8 MB"),
        (many_metrics_of_ncu, "more than 20,000 different metrics"),
        pytest.param(many_metrics_of_rocprofv3, "more than 20,000 different metrics", marks=pytest.mark.slow),
        pytest.param(many_metrics_of_kineto, "more than 20,000 different metrics", marks=pytest.mark.slow),
        (deep_json, "damaged after"),
        (deep_arguments, "damaged after"),
    ],
)
def test_a_bomb_is_refused_in_one_sentence_within_bounds(tmp_path, read_apart, made, says):
    status, error, _, _, peak_mb = read_apart(made(tmp_path), tmp_path / "out")
    assert status == "refused"
    assert says in error["found"]
    assert peak_mb < MOST_MB

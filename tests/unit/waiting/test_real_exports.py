"""Real exports: the reasons add up to the idle time of the efficiency, and event waits are those that the database has."""

import csv
import gzip
import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from causeway.core.tables import read_json, read_table, write_json
from causeway.efficiency.device_time.measure import measure, open_export
from causeway.efficiency.steps.find_steps import find_steps
from causeway.readers.normalise import normalise
from causeway.waiting.explain_waiting import explain_waiting
from causeway.waiting.idle.export_pass import explain_export
from causeway.waiting.idle.reason_words import NAMES

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"
CLOVERLEAF = "nsys_sqlite/pipit/perlmutter-cloverleaf-cuda.sqlite"
EVENTS = "nsys_sqlite/nukexc/report1.sqlite"
EXPORTS = (CLOVERLEAF, "nsys_sqlite/nsys-ai/h100_2gpu_1s.sqlite", "kineto/tracelens/b200_rank0_of_8.json.gz", EVENTS)


def tables_of(source, folder):
    """Normalise a real export; return its folder of tables."""
    if not (DATA / source).exists():
        pytest.skip(f"no {source} beside this checkout")
    normalise(DATA / source, folder / "e0", export="e0", source=source, rank=None, node=None)
    return folder / "e0"


@pytest.mark.parametrize("source", EXPORTS)
def test_all_reasons_together_are_the_idle_time_of_the_efficiency(tmp_path, source):
    folder = tables_of(source, tmp_path)
    found = explain_export(folder, {})
    opened = open_export(folder)
    measured = measure(opened, [], np.array([0, 1]))
    for row, device in enumerate(opened.devices):
        mine = found.devices.index(device)
        assert sum(ns for key, ns in found.totals.whole.items() if key[0] == mine) == measured.total[row, 0] > 0


def test_the_table_says_what_cloverleaf_waits_for(tmp_path):
    folder = tables_of(CLOVERLEAF, tmp_path)
    write_json({"exports": {"e0": {"shift_ns": 5}}}, tmp_path / "clocks.json")
    for name in ("one", "two"):
        explain_waiting("clover", [folder], tmp_path / "clocks.json", None, tmp_path / f"{name}.parquet")
    assert (tmp_path / "one.parquet").read_bytes() == (tmp_path / "two.parquet").read_bytes()
    rows = read_table(tmp_path / "one.parquet", "waiting").to_pylist()
    most = sorted(rows, key=lambda row: -row["wait_ns"])[:2]
    assert [(row["reason"], row["detail"]) for row in most] == [
        ("launch_starved", "system call: write"),
        ("blocked_host", "cudaMemcpy"),
    ]
    assert all(row["step"] is None and row["wait_ns"] > 0 for row in rows)


def test_a_wait_names_the_stream_that_recorded_its_event_last(tmp_path):
    folder = tables_of(EVENTS, tmp_path)
    rows = read_table(folder / "dependencies.parquet", "dependencies").to_pylist()
    found = {row["correlation"]: row["source_stream"] for row in rows if row["kind"] == "wait"}
    connection = sqlite3.connect(DATA / EVENTS)
    expected = {}
    waits = (  # by the call: syncType 2 is cudaStreamSynchronize, too, in this export
        "SELECT correlationId, eventId FROM CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"
        " JOIN CUPTI_ACTIVITY_KIND_RUNTIME USING (correlationId) JOIN StringIds ON StringIds.id = nameId"
        " WHERE value LIKE 'cudaStreamWaitEvent%'"
    )
    record = (
        "SELECT streamId FROM CUPTI_ACTIVITY_KIND_CUDA_EVENT WHERE eventId = ? AND correlationId < ?"
        " ORDER BY correlationId DESC LIMIT 1"
    )
    for correlation, event in connection.execute(waits).fetchall():
        row = connection.execute(record, (event, correlation)).fetchone()
        expected[correlation] = row and row[0]
    connection.close()
    assert found == expected
    assert {stream for stream in found.values() if stream is not None} == {13, 18, 19}


def test_launches_of_an_amd_queue_that_ran_empty_are_behind_none(tmp_path):
    """By the file's own columns: each launch that ends a gap of rocprof's export was dispatched within it."""
    source = "rocprof_v1/seismic-stencils/run2_03052024_114238"
    if not (DATA / source).is_dir():
        pytest.skip(f"no {source} beside this checkout")
    with (DATA / source / "results.csv").open() as lines:
        rows = [[int(row[name]) for name in ("BeginNs", "EndNs", "DispatchNs")] for row in csv.DictReader(lines)]
    rows.sort()
    reached = rows[0][1]
    host = latency = gaps = 0
    for begin, end, dispatched in rows[1:]:
        if begin > reached:
            assert reached < dispatched < begin <= dispatched + 50_000
            gaps += 1
            host += dispatched - reached
            latency += begin - dispatched
        reached = max(reached, end)
    assert (gaps, len(rows)) == (1021, 1023)
    normalise(DATA / source, tmp_path / "e0", export="e0", source=source, rank=None, node=None)
    found = explain_export(tmp_path / "e0", {})
    assert {(NAMES[reason], found.texts[code]): ns for (_, reason, code), ns in found.totals.whole.items()} == {
        ("launch_starved", "the launching thread is not recorded"): host,
        ("start_up", "from the end of the launch call to the start"): latency,
    }


def test_the_data_loader_of_an_old_trace_is_named(tmp_path):
    """By its JSON: of each gap what lies in the loader, on the thread that launches next, until its call returns."""
    source = "kineto/kineto-samples/resnet50_num_workers_0.pt.trace.json.gz"
    folder = tables_of(source, tmp_path)
    work = []
    calls = {}
    loader = []
    with gzip.open(DATA / source) as file:
        for event in json.load(file)["traceEvents"]:
            if event.get("ph") != "X" or event["cat"] not in ("Kernel", "Memcpy", "Memset", "Runtime", "Operator"):
                continue
            number = event["args"].get("correlation")
            span = 1000 * int(event["ts"]), 1000 * int(event["ts"] + event["dur"]), event["tid"]
            if event["cat"] == "Runtime":
                calls[number] = max(calls.get(number, (0, 0)), (span[1], span[2]))
            elif event["cat"] != "Operator":
                work.append((*span[:2], number))
            elif event["name"].startswith("enumerate(DataLoader)#"):
                loader.append(span)
    expected = 0
    reached = min(work)[0]
    for start, end, number in sorted(work):
        returned, thread = calls.get(number, (0, 0))
        for begin, stop, mine in loader:
            if str(mine) == str(thread):
                expected += max(min(stop, returned, start) - max(begin, reached), 0)
        reached = max(reached, end)
    found = explain_export(folder, {})
    text = "data loader: enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    times = {found.texts[code]: ns for (_, _, code), ns in found.totals.whole.items()}
    assert times[text] == expected == max(times.values()) > 183_000_000
    assert times["host code not recorded"] < 2_000_000
    write_json({"exports": {"e0": {"shift_ns": 0, "ranks": [0]}}}, tmp_path / "clocks.json")
    steps = [tmp_path / name for name in ("steps.json", "steps.parquet", "causes.parquet")]
    find_steps("d", [folder], tmp_path / "clocks.json", 1, *steps)
    document = read_json(steps[0])
    assert (document["ranges"], document["ranks"][0]["steps"]) == ("ProfilerStep#*", 6)

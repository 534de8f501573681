"""Kinds of synchronisation in Nsight Systems exports, whose numbers changed their meaning: what each is, is said by the
call of the host that belongs to it.
"""

import sqlite3
from collections import Counter

import numpy as np
import pyarrow.parquet as pq
import pytest
from reading import Read

from causeway.core.codes import SYNCHRONISATIONS
from causeway.readers.nvidia.synchronisations import SynchronisingCalls

NONE = (1 << 32) - 1
PROCESS = 5 << 24
KINDS = {
    "cudaDeviceSynchronize": "synchronise_device",
    "cudaThreadSynchronize": "synchronise_device",
    "cuCtxSynchronize": "synchronise_device",
    "cudaStreamSynchronize": "synchronise_stream",
    "cuStreamSynchronize": "synchronise_stream",
    "cuEventSynchronize": "synchronise_event",
    "cudaEventSynchronize": "synchronise_event",
    "cudaEventQuery": "synchronise_event",
    "cudaStreamWaitEvent": "wait",
}
"""What the CUDA documentation says that each call waits for."""


@pytest.fixture
def made_up(tmp_path):
    """Return a function that writes a database with synchronisations: call, syncType, eventId; and reads it."""

    def read(rows, events=True):
        path = tmp_path / "report.sqlite"
        connection = sqlite3.connect(path)
        event = ", eventId" if events else ""
        for statement in (
            "CREATE TABLE StringIds (id, value)",
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, globalPid, demangledName)",
            "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, correlationId, nameId)",
            "CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start, end, streamId, correlationId, globalPid,"
            f" syncType{event})",
            f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 0, 7, {PROCESS}, 0)",
            "INSERT INTO StringIds VALUES (0, 'k')",
        ):
            connection.execute(statement)
        for at, (call, kind, *of_event) in enumerate(rows, 1):
            if call:
                connection.execute("INSERT INTO StringIds VALUES (?, ?)", (at, call))
                called = (10 * at, 10 * at + 9, PROCESS + 5, at, at)
                connection.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (?, ?, ?, ?, ?)", called)
            row = (10 * at + 1, 10 * at + 8, 7, at, PROCESS, kind, *of_event)
            marks = ", ".join("?" * len(row))
            connection.execute(f"INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES ({marks})", row)
        connection.commit()
        connection.close()
        return Read(path, tmp_path / "tables").dependencies.column("kind").to_pylist()

    return read


def test_the_call_names_the_kind_whatever_its_number(made_up):
    rows = [
        ("cudaDeviceSynchronize_v3020", 1, NONE),
        ("cudaStreamSynchronize_v3020", 2, NONE),
        ("cudaStreamSynchronize_ptsz_v7000", 3, NONE),
        ("cuEventSynchronize", 2, 4),
        ("cudaStreamWaitEvent_v3020", 2, 4),
        ("cuCtxSynchronize", 4, NONE),
        ("cudaEventQuery_v3020", 1, 4),
    ]
    device, stream, event = (f"synchronise_{what}" for what in ("device", "stream", "event"))
    assert made_up(rows) == [device, stream, stream, event, "wait", device, event]


def test_without_its_call_a_kind_of_events_that_has_no_event_is_unknown(made_up):
    rows = [(None, 1, NONE), (None, 2, NONE), (None, 1, 4), (None, 2, 4), (None, 3, NONE), ("cudaMemcpy", 4, NONE)]
    known = ["synchronise_event", "wait", "synchronise_stream", "synchronise_device"]
    assert made_up(rows) == ["unknown", "unknown", *known]


def test_without_a_column_of_events_the_number_counts(made_up):
    assert made_up([(None, 1), (None, 2)], events=False) == ["synchronise_event", "wait"]


def test_too_many_calls_are_not_kept(made_up, monkeypatch):
    monkeypatch.setattr("causeway.readers.nvidia.synchronisations.MOST_RECORDS", 1)
    assert made_up([("cuEventSynchronize", 2, 4), ("cuEventSynchronize", 2, 4)]) == ["wait", "wait"]


@pytest.mark.parametrize(
    "name", ["fuser/report1_h100", "torchcodec/report1", "rodinia-gaussian/report4", "nukexc/report1"]
)
def test_kinds_of_real_exports_are_those_of_their_calls(data, name, tmp_path):
    folder = data / "nsys_parquetdir" / name
    strings, calls, synchronised = (
        pq.read_table(folder / f"{table}.parquet").to_pylist()
        for table in ("StringIds", "CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION")
    )
    texts = {row["id"]: row["value"] for row in strings}
    call_of = {(row["globalTid"] >> 24, row["correlationId"]): texts[row["nameId"]].partition("_")[0] for row in calls}
    expected = Counter(KINDS[call_of[row["globalPid"] >> 24, row["correlationId"]]] for row in synchronised)
    found = Counter(Read(folder, tmp_path / "tables").dependencies.column("kind").to_pylist())
    assert found == expected


@pytest.mark.parametrize("batches", [1, 2, 6])
def test_calls_are_found_in_whatever_order_and_batches_they_stand(batches):
    """Tables of calls stand in blocks of threads, so that correlations neither rise nor keep to one process."""
    texts = ["cudaLaunchKernel", "cudaStreamSynchronize", "cuEventSynchronize", "cudaDeviceSynchronize"]
    kinds = ["synchronise_stream", "synchronise_event", "synchronise_device"]
    kind_of = [0, *map(SYNCHRONISATIONS.index, kinds)]
    rng = np.random.default_rng(3)
    process, correlation = (part.ravel() for part in np.meshgrid([7, 2, 5], np.arange(100, 40, -1)))
    order = rng.permutation(process.size)
    process = process[order]
    correlation = correlation[order]
    name = rng.integers(0, 4, process.size)
    calls = SynchronisingCalls()
    for part in np.array_split(np.arange(process.size), batches):
        calls.take(process[part], correlation[part], name[part], texts)
    expected = [kind_of[code] for code in name]
    assert calls.kinds(process, correlation).tolist() == expected
    assert calls.kinds(process[::-1], correlation[::-1]).tolist() == expected[::-1]  # the next batch of records
    assert calls.kinds(process + 100, correlation).tolist() == [0] * process.size

"""Real exports: the reasons add up to the idle time of the efficiency, and event waits are those that the database has."""

import sqlite3
from pathlib import Path

import numpy as np
import pytest

from causeway.core.tables import read_table, write_json
from causeway.efficiency.device_time.measure import Limits, measure, open_export
from causeway.readers.normalise import normalise
from causeway.waiting.explain_waiting import explain_waiting
from causeway.waiting.idle.export_pass import explain_export

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"
CLOVERLEAF = "nsys_sqlite/pipit/perlmutter-cloverleaf-cuda.sqlite"
EVENTS = "nsys_sqlite/nukexc/report1.sqlite"
EXPORTS = (CLOVERLEAF, "nsys_sqlite/nsys-ai/h100_2gpu_1s.sqlite", "kineto/tracelens/b200_rank0_of_8.json.gz", EVENTS)


def tables_of(source, folder):
    """Normalise a real export; return its folder of tables."""
    if not (DATA / source).is_file():
        pytest.skip(f"no {source} beside this checkout")
    normalise(DATA / source, folder / "e0", export="e0", source=source, rank=None, node=None)
    return folder / "e0"


@pytest.mark.parametrize("source", EXPORTS)
def test_all_reasons_together_are_the_idle_time_of_the_efficiency(tmp_path, source):
    folder = tables_of(source, tmp_path)
    found = explain_export(folder, {})
    opened = open_export(folder)
    measured = measure(opened, [], np.array([0, 1]), Limits())
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

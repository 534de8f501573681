"""GPU metrics of exports without GPU_METRICS: generic events, one for each GPU and time, with the readings by name."""

import json
import shutil
import sqlite3

import pytest
from reading import Read

SOURCE = (1 << 48) + 0x4000
TYPE = SOURCE + 1
"""The type of the readings of GPU 1."""
OTHER = 77
READINGS = [
    {"SMs Active [Throughput %]": "40", "GPC Clock Frequency [MHz]": "1410000000", "PCIe RX Throughput [MB/s]": "3"},
    {
        "SMs Active [Throughput %]": "55",
        "GPC Clock Frequency [MHz]": "1200000000",
        "PCIe RX Throughput [MB/s]": "n/a",
    },
]


def database(path, events, launches=True):
    """Write an export with generic events: raw time, time, type and text of each."""
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
        connection.execute("INSERT INTO StringIds VALUES (0, 'add')")
        connection.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, demangledName INTEGER)"
        )
        if launches:
            connection.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1000, 1100, 1, 0)")
        connection.execute("CREATE TABLE GENERIC_EVENT_SOURCES (sourceId INTEGER, data TEXT)")
        connection.execute("CREATE TABLE GENERIC_EVENT_TYPES (typeId INTEGER, sourceId INTEGER, data TEXT)")
        sources = [(SOURCE, '{"Name": "GpuMetrics", "TimeSource": "SessionNs"}'), (9, '{"Name": "ftrace"}'), (10, "{")]
        connection.executemany("INSERT INTO GENERIC_EVENT_SOURCES VALUES (?, ?)", sources)
        connection.executemany("INSERT INTO GENERIC_EVENT_TYPES VALUES (?, ?, '{}')", [(TYPE, SOURCE), (OTHER, 9)])
        connection.execute(
            "CREATE TABLE GENERIC_EVENTS (rawTimestamp INTEGER, timestamp INTEGER, typeId INTEGER, data TEXT)"
        )
        connection.executemany("INSERT INTO GENERIC_EVENTS VALUES (?, ?, ?, ?)", events)
        connection.execute("CREATE TABLE GPU_METRICS (timestamp INT, typeId INT, metricId INT, value INT)")  # empty
    connection.close()
    return path


def samples(read):
    return sorted((row["time_ns"], row["device"], row["metric"], row["value"]) for row in read.samples.to_pylist())


@pytest.mark.parametrize("launches", [True, False])
def test_readings_are_samples_under_the_names_of_gpu_metrics(launches, tmp_path):
    """The time is the session's, else the raw one. Events of other sources are none, and neither is what is no text."""
    first, second = (json.dumps(readings) for readings in READINGS)
    events = [
        (5, 1005, TYPE, first),
        (1090, None, TYPE, second),
        (1050, None, TYPE, "{"),
        (1060, None, OTHER, first),
        (1061, None, TYPE, "{}"),
    ]
    read = Read(database(tmp_path / "e.sqlite", events, launches), tmp_path / "t")
    assert (read.status, read.count("unreadable_rows")) == ("read", 1)
    assert samples(read) == [
        (1005, 1, "gpc_clock_frequency_hz", 1.41e9),
        (1005, 1, "pcie_rx_throughput_mb_s", 3.0),
        (1005, 1, "sms_active_ratio", 0.4),
        (1090, 1, "gpc_clock_frequency_hz", 1.2e9),
        (1090, 1, "sms_active_ratio", 0.55),
    ]


def test_generic_events_of_a_real_export_are_its_gpu_metrics(data, tmp_path):
    """This export has both."""
    whole = data / "nsys_sqlite" / "nemo-gpu-metrics" / "report2.sqlite"
    shutil.copyfile(whole, tmp_path / "e.sqlite")
    with sqlite3.connect(tmp_path / "e.sqlite") as connection:
        connection.execute("DROP TABLE GPU_METRICS")
        connection.execute("DROP TABLE TARGET_INFO_GPU_METRICS")
    connection.close()
    keys = ["time_ns", "device", "metric", "value"]
    found, expected = (
        Read(path, tmp_path / path.stem).samples.select(keys).to_pandas().astype({"metric": str})
        for path in (tmp_path / "e.sqlite", whole)
    )
    found, expected = (rows.sort_values(keys, ignore_index=True) for rows in (found, expected))
    assert len(found) == 134_299
    assert found.equals(expected)


def test_both_are_read_once(tmp_path):
    """Where GPU_METRICS has rows, generic events are not read."""
    path = database(tmp_path / "e.sqlite", [(1005, None, TYPE, json.dumps(READINGS[0]))])
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE TARGET_INFO_GPU_METRICS (typeId INT, metricId INT, metricName TEXT)")
        connection.execute("INSERT INTO TARGET_INFO_GPU_METRICS VALUES (?, 0, 'SMs Active [Throughput %]')", (TYPE,))
        connection.execute("INSERT INTO GPU_METRICS VALUES (1005, ?, 0, 40)", (TYPE,))
    connection.close()
    assert samples(Read(path, tmp_path / "t")) == [(1005, 1, "sms_active_ratio", 0.4)]

"""Nsight Systems exports beyond what is known: newer forms of tables, tables and events that nobody knows, what still
ran when the recording ended, and what the profiler says of its own tracing.
"""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from layouts.basics import write_sqlite
from layouts.nvidia import nsys_jsonl, nsys_tables
from reading import Read

from causeway.core.files.yaml_files import column_map
from causeway.readers.nvidia.nsys_extras import LONGEST_MESSAGE, Diagnostics, quotable

KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
RUNTIME = "CUPTI_ACTIVITY_KIND_RUNTIME"
ROWS = 24
DRIVER = (
    "Installed CUDA driver version (13.3) is not supported by this build of Nsight Systems. CUDA trace will be collected"
    " using libraries for driver version 12.9"
)
LOST = "Number of CUPTI events produced: 31, CUPTI buffers: 49 of 50. Some CUPTI events might be missing."


def made(**changes):
    """Return the tables of an export, those that are named with others in their place; None leaves one away."""
    tables = nsys_tables("add(float*)", ROWS) | changes
    return {name: rows for name, rows in tables.items() if rows is not None}


def renamed(names, version="3.27.1"):
    """Return the tables of an export of a newer schema, under other names."""
    tables = {names.get(name, name): rows for name, rows in made().items()}
    return tables | {"META_DATA_EXPORT": [{"name": "EXPORT_SCHEMA_VERSION", "value": version}]}


def as_sqlite(folder, tables):
    return write_sqlite(folder / "report.sqlite", tables)


def as_parquetdir(folder, tables):
    (folder / "report").mkdir()
    for name, rows in tables.items():
        pq.write_table(pa.Table.from_pylist(rows), folder / "report" / f"{name}.parquet")
    return folder / "report"


LAST_END = 1000 * (ROWS - 1) + 800 + 2000
"""The end of the last CPU sample, which stands for twice the distance of samples."""
CONTAINERS = pytest.mark.parametrize("write", [as_sqlite, as_parquetdir])
V2 = {KERNEL: f"{KERNEL}_V2", "NVTX_EVENTS": "NVTX_EVENTS_V2", RUNTIME: f"{RUNTIME}_V3"}


@CONTAINERS
def test_newer_forms_of_tables_are_read_as_the_known_ones(write, tmp_path):
    known = Read(as_sqlite(tmp_path, made()), tmp_path / "known")
    newer = Read(write(tmp_path, renamed(V2)), tmp_path / "newer") if write is as_parquetdir else None
    if newer is None:
        (tmp_path / "b").mkdir()
        newer = Read(write(tmp_path / "b", renamed(V2)), tmp_path / "newer")
    assert newer.status == "read"
    for table in ("launches", "calls", "ranges"):
        assert getattr(newer, table).to_pylist() == getattr(known, table).to_pylist()
    assert newer.capabilities["rows_in"][f"{KERNEL}_V2"] == ROWS
    assert known.issue("newer_schema") is None
    said = newer.issue("newer_schema")["detail"]
    assert "schema 3.27.1, known up to 3.25" in said
    assert f"{KERNEL}_V2 read as {KERNEL}" in said
    assert newer.issue("unknown_data") is None


def test_the_newest_form_is_read_and_one_beside_the_known_table_is_not(tmp_path):
    both = made() | {f"{KERNEL}_V2": made()[KERNEL], "NVTX_EVENTS": None}
    both |= {"NVTX_EVENTS_V2": [{"start": 0, "end": 1}], "NVTX_EVENTS_V10": [{"start": 0, "end": 2, "eventType": 59}]}
    export = Read(as_sqlite(tmp_path, {name: rows for name, rows in both.items() if rows}), tmp_path / "t")
    assert export.launches.num_rows == ROWS
    assert export.ranges.column("duration_ns").to_pylist() == [2]
    assert export.count("unknown_data") == 2
    assert f"not known: {KERNEL}_V2, NVTX_EVENTS_V2" in export.issue("unknown_data")["detail"]


@CONTAINERS
def test_a_layout_that_is_not_known_is_no_fact_about_the_program(write, tmp_path):
    tables = renamed({KERNEL: "CUDA_KERNEL_EVENTS"})
    tables |= {"CUPTI_ACTIVITY_KIND_MEMCPY_V2": [{"begin": 1, "until": 2}]}  # whose columns are others
    del tables["CUPTI_ACTIVITY_KIND_MEMCPY"], tables["CUPTI_ACTIVITY_KIND_MEMSET"], tables["GPU_METRICS"]
    export = Read(write(tmp_path, tables), tmp_path / "t")
    assert export.status == "refused"
    assert (
        "schema 3.27.1 is newer than 3.25; not known: CUDA_KERNEL_EVENTS, CUPTI_ACTIVITY_KIND_MEMCPY_V2"
        in (export.error["found"])
    )
    assert "older `nsys export`" in export.error["advice"]
    assert "no kernel was launched" not in export.error["found"]


def test_a_newer_schema_without_launches_is_said_beside_what_is_missing(tmp_path):
    tables = without_launches() | {"META_DATA_EXPORT": [{"name": "EXPORT_SCHEMA_VERSION", "value": "3.27.1"}]}
    found = Read(as_sqlite(tmp_path, tables | {"NVTX_STREAMS": [{"a": 1}]}), tmp_path / "t").error["found"]
    assert found.startswith(f"there is no table {KERNEL}")
    assert found.endswith("; schema 3.27.1 is newer than 3.25; not known: NVTX_STREAMS")


@CONTAINERS
def test_a_table_that_is_not_known_is_named_beside_what_is_read(write, tmp_path):
    tables = renamed({}, "3.16.1") | {"NVTX_STREAMS": [{"start": 1, "end": 2}], "ENUM_NVTX_KIND": [{"id": 1}]}
    tables |= {"NVTX_PAYLOAD_SCHEMAS": [{"id": 1}]}
    export = Read(write(tmp_path, tables), tmp_path / "t")
    assert (export.launches.num_rows, export.count("unknown_data")) == (ROWS, 1)
    assert export.issue("unknown_data")["detail"].endswith("were not read: not known: NVTX_STREAMS")
    assert export.issue("newer_schema") is None


def test_events_of_json_lines_that_are_not_known_are_named(tmp_path):
    path = nsys_jsonl(tmp_path, "add(float*)", ROWS)
    place = {"startNs": "1", "endNs": "2", "deviceId": 0, "streamId": "7"}
    lines = [{"CudaEvent": {**place, "sync": {"a": 1}}}, {"CudaEvent": {**place, "kernelV2": {"gridX": 1}}}]
    lines += [{"NvtxRangeEvent": {"Timestamp": "1"}}, {"SchedEvent": {"a": 1}}]
    text = path.read_text(encoding="utf-8")
    path.write_text(text.rstrip("\n") + "\n" + "".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    export = Read(path, tmp_path / "t")
    assert export.launches.num_rows == ROWS
    assert export.issue("unknown_data")["detail"].endswith("not known: CudaEvent.kernelV2, NvtxRangeEvent")


def test_the_newest_schema_is_the_one_that_the_formats_page_names():
    known = column_map("nsys")
    assert f"to {known['newest_schema']} " in known["versions"]


@pytest.mark.parametrize(
    ("version", "is_newer"), [("3.25.9", False), ("3.26.0", True), ("4.0", True), ("2.9.1", False)]
)
def test_what_is_newer(version, is_newer, tmp_path):
    export = Read(as_sqlite(tmp_path, renamed({}, version)), tmp_path / "t")
    assert (export.count("newer_schema") == 1) is is_newer


# what still ran when the recording ended

OPEN = {"start": 500, "end": None, "globalTid": (5 << 24) + 5}


@CONTAINERS
def test_a_range_without_an_end_lasts_to_the_end_of_the_recording(write, tmp_path):
    last = LAST_END
    ranges = [
        {**OPEN, "eventType": 59, "text": "epoch"},
        {**OPEN, "start": 600, "eventType": 60, "text": "async"},
        {**OPEN, "start": 700, "eventType": 34, "text": "a mark, which has no length"},
        {**OPEN, "start": 10_000, "end": 11_000, "eventType": 59, "text": "step"},
    ]
    export = Read(write(tmp_path, made(NVTX_EVENTS=ranges)), tmp_path / "t")
    found = [(row["name"], row["start_ns"], row["duration_ns"]) for row in export.ranges.to_pylist()]
    assert found == [("epoch", 500, last - 500), ("async", 600, last - 600), ("step", 10_000, 1000)]
    assert export.count("open_events") == 2
    assert export.issue("open_events")["detail"].endswith(": 2 ranges without an end")
    # launches 1 to 23 are called within; what is innermost is the range that began last
    assert export.launches.column("range").to_pylist().count(None) == 1
    assert export.status == "read"


def test_calls_without_an_end_last_to_the_end_of_the_recording(tmp_path):
    last = LAST_END
    tables = made()
    tables[RUNTIME] = [*tables[RUNTIME], {**OPEN, "start": 23_200, "correlationId": 99, "nameId": 3}]
    tables["OSRT_API"] = [{**OPEN, "nameId": 3}, {**OPEN, "start": 1, "end": 4, "nameId": 3}]
    tables["MPI_OTHER_EVENTS"] = [{**OPEN, "textId": 4}]
    export = Read(as_sqlite(tmp_path, tables), tmp_path / "t")
    assert export.calls.column("duration_ns").to_pylist() == [100] * ROWS + [last - 23_200]
    assert export.system_calls.column("duration_ns").to_pylist() == [3, last - 500]
    assert export.mpi.column("duration_ns").to_pylist() == [last - 500]
    assert export.issue("open_events")["count"] == 3
    assert "1 call and 1 system call and 1 MPI call without an end" in export.issue("open_events")["detail"]


def test_an_open_range_of_an_mpi_domain_is_a_call_of_mpi(tmp_path):
    last = LAST_END
    ranges = [
        {**OPEN, "start": 0, "eventType": 75, "text": "MPI", "domainId": 7},
        {**OPEN, "eventType": 59, "text": "MPI_Barrier", "domainId": 7},
    ]
    export = Read(as_sqlite(tmp_path, made(NVTX_EVENTS=ranges)), tmp_path / "t")
    assert export.mpi.column("duration_ns").to_pylist() == [last - 500]


def test_a_launch_without_an_end_is_left_out(tmp_path):
    tables = made()
    tables[KERNEL][3]["end"] = None
    export = Read(as_sqlite(tmp_path, tables), tmp_path / "t")
    assert (export.launches.num_rows, export.count("no_time"), export.count("open_events")) == (ROWS - 1, 1, 0)


def test_events_of_nvtx_of_an_unknown_type_are_counted(tmp_path):
    ranges = [{**OPEN, "end": 900, "eventType": kind, "text": "x"} for kind in (59, 75, 147, 148)]
    export = Read(as_sqlite(tmp_path, made(NVTX_EVENTS=ranges)), tmp_path / "t")
    assert (export.ranges.num_rows, export.count("unknown_data")) == (1, 2)


# what the profiler says of its own tracing


def without_launches(*messages):
    gone = (KERNEL, "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET", "GPU_METRICS")
    said = [{"text": text, "severity": level} for text, level in messages]
    return made(**dict.fromkeys(gone), DIAGNOSTIC_EVENT=said or None)


@CONTAINERS
def test_a_refusal_quotes_the_reason_that_the_export_states(write, tmp_path):
    export = Read(
        write(tmp_path, without_launches((DRIVER, 2), (LOST, 1), ("Profiling has started.", 1))), tmp_path / "t"
    )
    assert export.error["found"] == (f'there is no table {KERNEL}; the profiler itself reports "{DRIVER}" and "{LOST}"')
    assert export.error["advice"] == (
        "Update Nsight Systems: the driver is of CUDA 13.3, the profiler's libraries of 12.9. Let the program end by"
        " itself, so that the profiler collects all of its buffers. Then profile again."
    )


def test_without_a_reason_the_refusal_says_both_that_may_be(tmp_path):
    export = Read(
        as_sqlite(tmp_path, without_launches(("CUDA injection initialized successfully.", 1))), tmp_path / "t"
    )
    assert "no kernel was launched, or launches were not traced" in export.error["found"]


def test_lost_events_beside_launches_are_a_caution_with_the_profilers_words(tmp_path):
    tables = made(DIAGNOSTIC_EVENT=[{"text": LOST, "severity": 1}, {"text": DRIVER, "severity": 2}])
    export = Read(as_sqlite(tmp_path, tables), tmp_path / "t")
    assert (export.status, export.count("dropped_events")) == ("read", 1)
    assert f'"{LOST}"' in export.issue("dropped_events")["detail"]


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("Unable to load /home/user/lib/libcupti.so for CUDA.", '"Unable to load ... for CUDA."'),
        (r"No GPU driver in C:\Users\name\x.dll\nmore", '"No GPU driver in ..."'),
        ("CUDA error with TOKEN=secret --password hush", '"CUDA error with ... ... hush"'),
        ("GPU trace failed.\nsecond line", '"GPU trace failed."'),
        ("The CUDA application was launched as python train.py", ""),
        ("Environment of CUDA cannot be read", ""),
        ("CUDA failed\x1b[2J", '"CUDA failed\ufffd[2J"'),
    ],
)
def test_what_may_be_quoted(text, quoted):
    assert quotable(text) == quoted


def test_messages_are_bounded_in_length_and_number():
    said = Diagnostics()
    for number in range(20):
        said.take(f"CUDA failed {number} " + "x" * 1000, is_error=False)
    said.take("Unable to collect CPU IP samples.", is_error=False)
    assert len(said.faults) == 3
    assert max(map(len, said.faults)) <= LONGEST_MESSAGE + 2
    said = Diagnostics()
    said.take("The agent stopped.", is_error=True)
    assert said.faults == ['"The agent stopped."']

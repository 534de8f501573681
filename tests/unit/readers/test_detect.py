"""Formats are recognised by content, without heavy imports."""

import errno
import gzip
import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from reading import Read

from causeway.core.files.machine_errors import MachineError
from causeway.readers.containers.sqlite_names import is_database
from causeway.readers.detect import detect
from causeway.readers.measured_kind import kind_of
from causeway.readers.registry import FORMATS
from support import ROOT

EXPECTED = {
    "kineto": {"kineto"},
    "ncu_csv": {"ncu", None},  # None: the capture with zero bytes
    "nsys_arrow": {"nsys"},
    "nsys_hdf": {"nsys"},
    "nsys_jsonlines": {"nsys"},
    "nsys_sqlite": {"nsys"},
    "rocpd": {"rocpd"},
    "rpd": {"rocpd"},
}


@pytest.mark.parametrize("folder", sorted(EXPECTED))
def test_every_real_file_is_recognised(data, folder):
    files = [path for path in (data / folder).rglob("*") if path.is_file()]
    assert files
    assert {detect(path) for path in files} == EXPECTED[folder]


@pytest.mark.parametrize("folder", ["nsys_parquetdir", "nsys_arrowdir"])
def test_folders_of_tables_are_nsight_systems(data, folder):
    folders = [path for path in (data / folder).glob("*/*") if path.is_dir()]
    assert folders
    assert {detect(path) for path in folders} == {"nsys"}


@pytest.mark.parametrize(
    ("content", "family"),
    [
        (b"", None),
        (b"\x00" * 2000, None),
        (b"GIF89a,,,,", "table"),  # one line with commas: its reader will say what is missing
        (b"PAR1....", "table"),
        (b"duration_ns\n49870\n50110\n", "table"),  # of one column
        (b"duration_ns\n49870 of\n50110\n", None),
        (b"duration_ns\n49870\n50110", "table"),
        (b"log of run\n1\n2\n", None),
        (b"Kernel_Name,Start_Timestamp,End_Timestamp,y\nk,1,2,3\n", "table"),
        (b"Kernel_Name,Dispatch_Id,Start_Timestamp,End_Timestamp\nk,1,10,20\n", "rocprofv3"),
        (b"Dispatch_Id,Kernel_Name,Duration_ns,Counter_Name,Counter_Value\n", "rocprofv3"),
        (b"Dispatch_ID,Kernel_Name,Start_Timestamp,End_Timestamp\n", "rocprof"),  # not the least, but its own
        (b"y,x\n1,2\n", "table"),
        (b"\xef\xbb\xbfy;x\n1;2\n", "table"),
        (b'\xef\xbb\xbf"ID","Process ID","Process Name"\n', "ncu"),
        (b"hello from the program\n" * 200 + b'"ID","Process ID","Process Name"\n', "ncu"),
        (b"==ERROR== The application returned an error code (2).\n", "ncu"),
        (b'{"schemaVersion": 1, "traceEvents": [', "kineto"),
        (b'[{"ph": "X"}]', "kineto"),
        (b'{"rocprofiler-sdk-tool": [', "rocprofv3"),
        (b'{"a": 1}', None),
        (gzip.compress(b'{"traceEvents": []}', mtime=0), "kineto"),
        (gzip.compress(b'{"schemaVersion": 1, ' + b" " * 4000, mtime=0)[:-12], "kineto"),  # cut
        (b"\x1f\x8bnot gzip at all", None),
        (b"SQLite format 3\x00 and nothing else", None),
        (
            b"SQLite format 3\x00" + b"\x00" * 84 + b"CREATE TABLE StringIds (id INTEGER)",
            "nsys",
        ),  # no page left, but a name
    ],
)
def test_content_decides(tmp_path, content, family):
    path = tmp_path / "anything.bin"
    path.write_bytes(content)
    assert detect(path) == family


def test_databases_are_told_apart_by_their_tables(tmp_path):
    for name, family in {
        "KERN": "rocprof",
        "rocpd_kernel_dispatch_1a": "rocpd",
        "StringIds": "nsys",
        "StringTable": "cupti",
        "other": None,
    }.items():
        with sqlite3.connect(tmp_path / name) as connection:
            connection.execute(f"CREATE TABLE {name} (id INTEGER)")
        connection.close()
        assert detect(tmp_path / name) == family


def test_signs_that_two_formats_share_are_those_of_the_special_case(tmp_path):
    with sqlite3.connect(tmp_path / "nvprof") as connection:
        connection.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER)")
        connection.execute("CREATE TABLE StringTable (value TEXT)")
    connection.close()
    assert detect(tmp_path / "nvprof") == "cupti"
    (tmp_path / "folder").mkdir()
    for name in ("results.csv", "1_kernel_trace.csv"):
        (tmp_path / "folder" / name).touch()
    assert detect(tmp_path / "folder") == "rocprofv3"
    for record in FORMATS.values():
        assert record.special_case_of in ("", *FORMATS)


def test_folders_are_recognised_by_their_files_then_by_those_below_then_by_content(tmp_path):
    (tmp_path / "b" / "host").mkdir(parents=True)
    (tmp_path / "b" / "host" / "7_results.db").touch()
    assert detect(tmp_path / "b") == "rocpd"
    (tmp_path / "b" / "host" / "7_kernel_trace.csv").touch()
    assert detect(tmp_path / "b") == "rocprofv3"
    (tmp_path / "b" / "pmc_perf.csv").touch()
    assert detect(tmp_path / "b") == "rocprof"
    (tmp_path / "any").mkdir()
    (tmp_path / "any" / "plain.csv").write_text("y,x\n1,2\n")
    assert detect(tmp_path / "any") is None
    (tmp_path / "any" / "records.csv").write_text("start,end,deviceId,correlationId\n1,2,3,4\n")
    assert detect(tmp_path / "any") == "cupti"
    (tmp_path / "bases").mkdir()
    for name, table in (("a.db", "StringIds"), ("b.db", "KERN")):
        with sqlite3.connect(tmp_path / "bases" / name) as connection:
            connection.execute(f"CREATE TABLE {table} (id INTEGER)")
        connection.close()
    assert detect(tmp_path / "bases") == "rocprof"


def test_absent_and_unreadable_paths_and_plain_folders_are_nothing(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    assert detect(tmp_path / "absent") is None
    assert detect(tmp_path / "loop") is None
    assert detect(tmp_path) is None


def test_kinds_cover_all_families():
    assert {kind_of(family) for family in FORMATS} == {"trace", "counters", "table"}
    assert kind_of("ncu") == "counters"
    with pytest.raises(KeyError):
        kind_of("auto")


COUNTED = json.loads((ROOT / "tests" / "data" / "expected_exports.json").read_text(encoding="utf-8"))
MEASURED = [
    name
    for name, entry in COUNTED.items()
    if entry["stated"]["status"] != "refused" and entry["stated"]["kind"] != "none"
]


@pytest.mark.parametrize("name", MEASURED)
def test_what_is_planned_for_a_real_export_is_what_it_holds(data, name):
    assert kind_of(detect(data / name), data / name) == COUNTED[name]["stated"]["kind"]


def test_an_export_that_cannot_be_looked_at_is_planned_for_as_its_family_is(tmp_path):
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "cut.csv.gz").write_bytes(b"\x1f\x8b\x08")
    for name in ("empty.csv", "cut.csv.gz", "absent"):
        assert {kind_of(family, tmp_path / name) for family in ("rocprof", "rocprofv3", "kineto")} == {"trace"}


def test_detection_imports_nothing_heavy():
    code = "import sys; sys.path.insert(0, 'scripts'); import causeway.readers.measured_kind; print(*sys.modules)"
    modules = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"numpy", "pyarrow", "pandas", "yaml", "jsonschema"} & {
        Path(name).name.split(".")[0] for name in modules
    }


@pytest.mark.parametrize(
    ("name", "content", "found", "advice"),
    [
        ("report.nsys-rep", b"QDREP\x00\x01", "a report of Nsight Systems", "nsys export"),
        ("host.xplane.pb", b"\x0a\x1d\x12\x08/host:CPU", "JAX and TensorFlow", "nsys profile"),
        ("trace.pftrace", b"\x0a\x10\x50\x01", "Perfetto", "Copy it again"),
        ("trace.perfetto-trace", b"\x0a\x10\x50\x01", "Perfetto", "Copy it again"),
        ("perfetto-trace.proto", b"\x0a\x10\x50\x01", "Perfetto", "ROCm Systems Profiler"),
        ("report.qdrep", b"\x00\x01\x02", "a report of Nsight Systems", "nsys export"),
        ("report.ncu-rep", b"NVR\x00\x01", "a report of Nsight Compute", "ncu --import"),
        ("trace.csv.xz", b"\xfd7zXZ\x00\x00\x04", "the compressed data ends early", "compress it again"),
        ("trace.zip", b"PK\x03\x04\x14\x00", "compressed with zip", "Uncompress"),
        ("trace.json.zst", b"\x28\xb5\x2f\xfd\x04", "the compressed data ends early", "compress it again"),
        ("notes.txt", b"nothing of the kind\n", "of no known format", "Name the right file"),
        ("a.sqlite", b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\n", "Git LFS", "git lfs pull"),
        ("a.json", b"\n<!DOCTYPE html>\n<html><body>404</body></html>", "a web page", "Download"),
        ("b.json", b"\x00" * 5000, "nothing but zero bytes", "Copy it again"),
        ("b.sqlite", b"SQLite format 3\x00" + b"\x00" * 84, "no table is left", "Copy it again"),
        ("notes.md", b"# GPUs of the node\n", "of no known format", "Name the right file"),
        (
            "dmon.txt",
            b"# gpu    pwr  gtemp\n# Idx      W      C\n    0    200     40\n",
            "telemetry",
            "docs/telemetry.md",
        ),
        ("dcgmi.txt", b"2024-03-05T10:00:00+0100 #Entity   POWER\n", "telemetry", "docs/telemetry.md"),
        ("dump.prom", b'DCGM_FI_DEV_GPU_TEMP{gpu="0"} 42 1709629200000\n', "telemetry", "docs/telemetry.md"),
    ],
)
def test_what_no_reader_takes_is_named_with_a_way_out(tmp_path, name, content, found, advice):
    (tmp_path / name).write_bytes(content)
    error = Read(tmp_path / name, tmp_path / "t").error
    assert found in error["found"]
    assert advice in error["advice"]


def test_a_database_of_another_program_is_named_by_its_tables(tmp_path):
    connection = sqlite3.connect(tmp_path / "x.sqlite")
    connection.executescript("CREATE TABLE places (id); CREATE TABLE visits (id)")
    connection.close()
    error = Read(tmp_path / "x.sqlite", tmp_path / "t").error
    assert error["found"].endswith("it has places, visits")


def test_a_recipe_that_sums_up_is_not_said_to_be_tables(tmp_path):
    """The folder of `nsys recipe cuda_gpu_kern_sum`: its Parquet files have one row per kernel."""
    folder = tmp_path / "cuda_gpu_kern_sum-1"
    folder.mkdir()
    for name in ("files", "rank_stats", "all_stats"):
        pq.write_table(pa.table({"Name": ["k(int)"], "Instances": [3]}), folder / f"{name}.parquet")
    error = Read(folder, tmp_path / "t").error
    assert error["found"].startswith("it is what a recipe of Nsight Systems summed up")
    assert "nsys export" in error["advice"]


def test_a_folder_of_exports_says_which_it_holds(tmp_path):
    (tmp_path / "runs").mkdir()
    for name in ("a.json", "b.json"):
        (tmp_path / "runs" / name).write_text('{"schemaVersion": 1, "traceEvents": []}')
    (tmp_path / "runs" / "notes.txt").write_text("hello")
    for form in ("auto", "kineto"):
        error = Read(tmp_path / "runs", tmp_path / "t", form=form).error
        assert "2 of format kineto" in error["found"]
        assert "row of its own" in error["advice"]


@pytest.mark.parametrize("name", ["x.db", "trace.json", "results.csv"])
def test_a_pipe_is_not_opened_which_would_wait_for_its_writer(tmp_path, monkeypatch, name):
    pipe = tmp_path / "folder" / name
    pipe.parent.mkdir()
    os.mkfifo(pipe)
    opened = open

    def watched(path, *arguments, **options):
        assert Path(path) != pipe
        return opened(path, *arguments, **options)

    monkeypatch.setattr("builtins.open", watched)
    assert (detect(pipe), is_database(pipe), is_database(tmp_path)) == (None, False, False)
    detect(pipe.parent)
    for word in ("auto", *FORMATS):
        for number, path in enumerate((pipe, pipe.parent)):
            assert Read(path, tmp_path / f"{word}{number}", form=word).status == "refused"


def test_what_is_no_file_has_no_format():
    assert (detect("/dev/zero"), is_database(Path("/dev/zero"))) == (None, False)


@pytest.mark.parametrize("ask", [detect, is_database])
def test_a_fault_of_the_machine_during_detection_names_the_file(tmp_path, monkeypatch, ask):
    path = tmp_path / "x.db"
    path.write_bytes(b"SQLite format 3\x00")

    def broken(*_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("builtins.open", broken)
    with pytest.raises(MachineError, match=f"reading {path}"):
        ask(path)

"""Exports that a program wrote its own output into, and tables that a spreadsheet saved with another delimiter."""

import csv
import io

import pytest
from reading import Read

from causeway.readers.containers.csv_lines import delimiter_of
from causeway.readers.detect import detect
from causeway.readers.measured_kind import kind_of

IDENTITY = ["ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream"]
KERNEL = "void k<int, 3>(float*, int; long)"
SECTION = "Command line profiler metrics"
WHO = ["7", "app", "127.0.0.1"]
LONG = [
    [*IDENTITY, "Section Name", "Metric Name", "Metric Unit", "Metric Value"],
    ["0", *WHO, KERNEL, "1", "7", SECTION, "gpu__time_duration.sum", "us", "211.94"],
    ["0", *WHO, KERNEL, "1", "7", SECTION, "dram__bytes.sum", "Kbyte", "1.25"],
    ["1", *WHO, KERNEL, "1", "7", SECTION, "gpu__time_duration.sum", "us", "96.5"],
    ["1", *WHO, KERNEL, "1", "7", SECTION, "dram__bytes.sum", "Kbyte", "2.5"],
]
WIDE = [
    [*IDENTITY, "dram__bytes.sum", "gpu__time_duration.sum"],
    ["", "", "", "", "", "", "", "Kbyte", "us"],
    ["0", *WHO, KERNEL, "1", "7", "1.25", "211.94"],
    ["1", *WHO, KERNEL, "1", "7", "2.5", "96.5"],
]
NVPROF = [
    ["Start", "Duration", "Grid X", "Grid Y", "Grid Z", "Block X", "Block Y", "Block Z", "Device", "Stream", "Name"],
    ["ms", "us", "", "", "", "", "", "", "", "", ""],
    ["100.5", "2.125", "8", "1", "1", "64", "1", "1", "V100 (0)", "7", KERNEL],
]
ROCM = [
    ["Kind", "Agent_Id", "Queue_Id", "Kernel_Id", "Kernel_Name", "Correlation_Id", "Start_Timestamp", "End_Timestamp"],
    ["KERNEL_DISPATCH", "4", "1", "8", KERNEL, "1", "1000000", "1000513"],
    ["KERNEL_DISPATCH", "4", "1", "8", KERNEL, "2", "1002000", "1002317"],
]
ROCM[0] += [f"{what}_Size_{axis}" for what in ("Workgroup", "Grid") for axis in "XYZ"]
for line in ROCM[1:]:
    line += ["64", "1", "1", "512", "1", "1"]


def table(rows, delimiter=",", quoting=csv.QUOTE_MINIMAL):
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, quoting=quoting, lineterminator="\n").writerows(rows)
    return text.getvalue()


def written(path, text):
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def check_counters(read):
    """Both launches' times and bytes, worked out by hand."""
    assert (read.status, read.capabilities["format"]) == ("read", "ncu")
    assert read.counters.column("gpu_time").to_pylist() == [211_940, 96_500]
    assert read.counters.column("dram_bytes").to_pylist() == [1250, 2500]
    assert read.kernels.column("name").to_pylist() == [KERNEL]


@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("page", [LONG, WIDE], ids=["long", "wide"])
def test_counters_of_nsight_compute_with_each_delimiter(page, delimiter, quoting, tmp_path):
    path = written(tmp_path / "t.csv", "==PROF== Connected to process 7\n" + table(page, delimiter, quoting))
    check_counters(Read(path, tmp_path / "e"))
    assert detect(written(tmp_path / "bare.csv", table(page, delimiter, quoting))) == "ncu"


def test_a_semicolon_leaves_the_comma_to_the_decimals(tmp_path):
    rows = [[*row[:-1], row[-1].replace(".", ",")] for row in LONG]
    rows[0] = LONG[0]
    check_counters(Read(written(tmp_path / "t.csv", table(rows, ";")), tmp_path / "e"))


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_traces_of_rocprofv3_with_each_delimiter(delimiter, tmp_path):
    path = written(tmp_path / "x" / "7_kernel_trace.csv", table(ROCM, delimiter))
    for number, export in enumerate((path, path.parent)):
        read = Read(export, tmp_path / str(number))
        assert (read.status, read.capabilities["format"]) == ("read", "rocprofv3")
        times = [(row["start_ns"], row["duration_ns"]) for row in read.launches.to_pylist()]
        assert times == [(1_000_000, 513), (1_002_000, 317)]
        assert read.kernels.column("name").to_pylist() == [KERNEL]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_counters_without_times_are_seen_with_each_delimiter(delimiter, tmp_path):
    rows = [["Dispatch_Id", "Kernel_Name", "Counter_Name", "Counter_Value"], ["1", KERNEL, "SQ_WAVES", "64"]]
    assert kind_of("rocprofv3", written(tmp_path / "7_counter_collection.csv", table(rows, delimiter))) == "counters"
    assert kind_of("rocprofv3", written(tmp_path / "7_kernel_trace.csv", table(ROCM, delimiter))) == "trace"


def test_the_delimiter_is_the_most_frequent_outside_quotations():
    headers = {",": '"ID","a;b;c;d",x', ";": 'ID;"a,b,c,d";x', "\t": "ID\ta\tb"}
    assert [delimiter_of(header) for header in headers.values()] == list(headers)
    assert delimiter_of("y") == ","


FIRST_LINES = {
    "nothing": "",
    "a log of Python": "[2024-05-01 10:00:00,123] [INFO] [real_accelerator.py:191:get_accelerator] Setting\n",
    "a sample of CUDA": "[Matrix Multiply Using CUDA] - Starting...\n",
    "a log in JSON": '{"level": "info", "msg": "start"}\n',
    "300 lines": "Epoch log\n" * 300,
    "200 kB with commas": "Epoch 7, loss 0.125, accuracy 0.5\n" * 6000,
    "200 kB without": "Epoch\n" * 33_000,
}


@pytest.mark.parametrize("printed", FIRST_LINES.values(), ids=FIRST_LINES)
@pytest.mark.parametrize("first", ["program", "profiler"])
def test_a_program_may_print_anything_above_the_header(first, printed, tmp_path):
    """As `ncu --csv` and `nvprof --csv` do where their output and the program's go to one file."""
    message = "==PROF== Connected to process 7\n"
    above = printed + message if first == "program" else message + printed
    check_counters(Read(written(tmp_path / "ncu.csv", above + table(LONG)), tmp_path / "n"))
    check_counters(Read(written(tmp_path / "wide.csv", above + table(WIDE)), tmp_path / "w"))
    message = "==7== NVPROF is profiling process 7, command: app\n"
    above = printed + message if first == "program" else message + printed
    path = written(tmp_path / "nvprof.csv", f"{above}==7== Profiling result:\n{table(NVPROF)}")
    read = Read(path, tmp_path / "p")
    assert (read.status, read.capabilities["format"]) == ("read", "cupti")
    assert [(row["start_ns"], row["duration_ns"]) for row in read.launches.to_pylist()] == [(100_500_000, 2125)]


@pytest.mark.parametrize("text", ['{"a": 1, "b": 2}', "[1, 2]", "[INFO] a, b\n" * 9, '{"a": [\n1,\n2]}\n'])
def test_what_looks_like_json_and_is_no_export_is_nothing(text, tmp_path):
    assert detect(written(tmp_path / "t", text)) is None

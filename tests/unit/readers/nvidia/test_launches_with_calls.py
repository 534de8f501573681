"""The report cuda_kern_exec_trace of `nsys stats`: launches with the times of their calls, without streams; and other
exports without streams. Expected numbers are worked out by hand.
"""

import sqlite3

from reading import Read

HEADER = (
    "API Start (ns),API Dur (ns),Queue Start (ns),Queue Dur (ns),Kernel Start (ns),Kernel Dur (ns),Total Dur (ns),"
    "PID,TID,DevId,API Function,GridXYZ,BlockXYZ,Kernel Name\n"
)
ROWS = (  # the second begins before its call returned; the third runs beside the first
    "1000,200,1200,300,1500,900,1400,77,78,0,cudaLaunchKernel,   4    2    1, 128    1    1,k(int)\n"
    "2000,700,,,2600,100,700,77,78,0,cudaLaunchKernel,   1    1    1,  32    1    1,h(float)\n"
    "1250,50,1300,300,1600,200,550,77,78,0,cudaLaunchKernelExC_v11060,   4    2    1, 128    1    1,k(int)\n"
)
TRACE_HEADER = (
    "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB),"
    "Throughput (MB/s),SrcMemKd,DstMemKd,Device,Ctx,GreenCtx,Strm,Name\n"
)
TRACE = f"{TRACE_HEADER}1500,900,5,4,2,1,128,1,1,36,0.000,0.000,,,,,A GPU (0),1,,7,k(int)\n"


def test_launches_have_the_delay_after_their_calls(tmp_path):
    path = tmp_path / "report_cuda_kern_exec_trace.csv"
    path.write_text(HEADER + ROWS, encoding="utf-8")
    export = Read(path, tmp_path / "t")
    assert (export.status, export.capabilities["format"]) == ("read", "cupti")
    columns = ("start_ns", "duration_ns", "queue_ns", "device", "rank")
    assert [tuple(row[column] for column in columns) for row in export.launches.to_pylist()] == [
        (1500, 900, 300, 0, 0),
        (1600, 200, 300, 0, 0),
        (2600, 100, None, 0, 0),
    ]
    assert export.kernels.column("name").to_pylist() == ["k(int)", "h(float)"]
    shape = export.configurations.to_pylist()[0]
    assert [shape[f"{size}_{axis}"] for size in ("grid", "block") for axis in "xyz"] == [4, 2, 1, 128, 1, 1]
    assert "calls" not in export.names


def test_other_units_of_time_are_read(tmp_path):
    path = tmp_path / "x.csv"
    header = HEADER.replace("(ns)", "(us)")
    row = "1.000,0.200,1.200,0.300,1.500,0.900,1.400,77,78,0,cudaLaunchKernel,4 2 1,128 1 1,k(int)\n"
    path.write_text(header + row, encoding="utf-8")
    launch = Read(path, tmp_path / "t").launches.to_pylist()[0]
    assert (launch["start_ns"], launch["duration_ns"], launch["queue_ns"]) == (1500, 900, 300)


def test_work_side_by_side_is_not_said_to_last_too_long_without_streams(tmp_path):
    """The second launch of k ends before the first: on one stream that would be a fault of its times."""
    path = tmp_path / "x.csv"
    path.write_text(HEADER + ROWS, encoding="utf-8")
    export = Read(path, tmp_path / "t")
    assert export.count("stream_assumed") == 3
    assert export.count("outlasting") == 0


def test_a_database_without_streams_is_not_said_to_have_wrong_ends(tmp_path):
    path = tmp_path / "x.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE StringIds (id INTEGER PRIMARY KEY, value TEXT)")
        database.execute("INSERT INTO StringIds VALUES (1, 'k')")
        database.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, deviceId INT, demangledName INT)"
        )
        database.executemany(
            "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, 0, 1)", [(100, 200), (110, 160), (220, 250)]
        )
    database.close()
    export = Read(path, tmp_path / "t")
    assert export.launches.num_rows == 3
    assert export.count("stream_assumed") == 3
    assert export.count("outlasting") == 0


def test_launches_of_two_reports_are_counted_once(tmp_path):
    """In a folder the report with streams counts; in one text the one that comes first."""
    folder = tmp_path / "reports"
    folder.mkdir()
    (folder / "a_cuda_kern_exec_trace.csv").write_text(HEADER + ROWS, encoding="utf-8")
    (folder / "b_cuda_gpu_trace.csv").write_text(TRACE, encoding="utf-8")
    both = Read(folder, tmp_path / "t")
    assert both.launches.column("stream").to_pylist() == [7]
    path = tmp_path / "both.csv"
    path.write_text(HEADER + ROWS + "\n" + TRACE, encoding="utf-8")
    text = Read(path, tmp_path / "u")
    assert text.launches.num_rows == 3

"""Plain tables: columns, types, order, odd values, refusals; CSV and Parquet alike."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq
import pytest
from reading import Read

from causeway.readers.containers import csv_and_parquet
from causeway.readers.detect import detect
from causeway.readers.plain import table


def read(tmp_path, text, name="t", **row):
    path = tmp_path / "x.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return Read(path, tmp_path / name, form="table", **row)


def test_columns_kernel_configuration_and_order(tmp_path):
    export = read(tmp_path, "y,kernel,configuration,order,x1,cat\n3,b,c1,3,30,red\n1,a,c1,1,10,blue\n2,a,c2,2,NA,\n")
    assert (export.status, export.capabilities["kind"]) == ("read", "table")
    table = export.counters.to_pydict()
    assert (table["y"], table["x1"], table["cat"]) == ([1.0, 2.0, 3.0], [10.0, None, 30.0], ["blue", None, "red"])
    assert (table["launch"], table["start_ns"], table["device"]) == ([0, 1, 2], [None] * 3, [None] * 3)
    assert not {"kernel", "order", "label"} & set(table)
    assert [(row["kernel"], row["label"]) for row in export.configurations.to_pylist()] == [
        (0, "c1"),
        (0, "c2"),
        (1, "c1"),
    ]
    assert export.kernels.column("name").to_pylist() == ["a", "b"]
    assert export.capabilities["values"] == {"x1": "", "y": ""}
    assert export.capabilities["analyses"]["counter_deviation"]["possible"]
    assert export.capabilities["analyses"]["time_line"] == {"possible": False, "why": "no start times"}


def test_without_optional_columns_all_rows_are_one_kernel(tmp_path):
    export = read(tmp_path, "y\n1\n2\n")
    assert export.kernels.column("name").to_pylist() == ["(all launches)"]
    assert export.counters.column("configuration").to_pylist() == [0, 0]


def test_orders_of_which_few_are_no_numbers_are_sorted_as_numbers(tmp_path):
    """As text, 10 would come before 2; rows without a number come last, in the file's order, and are counted."""
    rows = [(float(at), str(at)) for at in range(200)]
    rows[3] = (3.0, "n/a?")
    rows[7] = (7.0, "later")
    rows[9] = (9.0, "")
    export = read(tmp_path, "y,order\n" + "".join(f"{y},{order}\n" for y, order in reversed(rows)))
    odd = [9.0, 7.0, 3.0]
    assert export.counters.column("y").to_pylist() == [y for y, _ in rows if y not in odd] + odd
    issue = export.issue("not_a_number")
    assert (issue["count"], issue["severity"]) == (2, "caution")
    assert issue["detail"].endswith(": column order, row 193")


def test_equal_orders_keep_the_rows_order_and_text_orders_sort_as_text(tmp_path):
    assert read(tmp_path, "y,order\n1,2\n2,1\n3,2\n4,1\n").counters.column("y").to_pylist() == [2, 4, 1, 3]
    assert read(tmp_path, "y,order\n1,2024-02\n2,2024-01\n", "u").counters.column("y").to_pylist() == [2, 1]


def test_values_that_are_no_finite_numbers_are_null_and_named(tmp_path):
    export = read(tmp_path, "y,x\n1,1\nnan,2\nfoo,inf\n,4\n5,nan\n")
    assert export.counters.column("y").to_pylist() == [1, None, None, None, 5]
    assert export.counters.column("x").to_pylist() == [1, 2, None, 4, None]
    assert export.count("no_target") == 3
    assert export.issue("not_a_number")["count"] == 3
    assert "column y, row 2, column x, row 3" in export.issue("not_a_number")["detail"]


def test_another_target_and_several(tmp_path):
    export = read(tmp_path, "time,loss,y2\n1,2,3\n", targets=("y", "time", "loss"))
    assert export.counters.select(["time", "loss", "y2"]).to_pylist() == [{"time": 1.0, "loss": 2.0, "y2": 3.0}]


def test_names_that_tables_use_are_changed_and_launch_configuration_is_free(tmp_path):
    export = read(tmp_path, "y,rank,target,grid_x,block x\n1,2,3,4,5\n")
    values = export.counters.to_pylist()[0]
    assert [values[name] for name in ("rank", "rank_2", "target_2", "grid_x", "block x")] == [0, 2.0, 3.0, 4.0, 5.0]
    assert "rank -> rank_2" in export.issue("renamed_columns")["detail"]
    assert export.configurations.column("grid_x").to_pylist() == [None]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2\n", "there is no column y; it has a, b"),
        ("y,x\n", "no row below its header"),
        ("y,x\nfoo,1\nbar,2\n", "no number in 2 rows"),
        ("y,y\n1,2\n", "occur twice: y"),
        ("{}", "a file with other content"),
    ],
)
def test_refusals(tmp_path, text, words):
    export = read(tmp_path, text)
    assert export.status == "refused"
    assert words in export.error["found"]


@pytest.mark.parametrize(
    ("header", "tool"),
    [
        ("timestamp, name, power.draw [W], utilization.gpu [%]", "nvidia-smi"),
        ("timestamp,gpu,socket_power,gfx_activity", "amd-smi"),
        ("timestamp,gpu,socket_power,gfx_activity,hotspot,mem", "amd-smi"),
        ("device,GPU use (%),VRAM Total Used Memory (B)", "rocm-smi"),
    ],
)
def test_telemetry_is_refused_with_what_to_do_with_it(tmp_path, header, tool):
    advice = read(tmp_path, f"{header}\n{','.join('1' * (1 + header.count(',')))}\n").error["advice"]
    assert f"Is it telemetry of {tool}? Name it in a sheet of telemetry" in advice
    assert "telemetry" not in read(tmp_path, "time,loss\n1,2\n", "v").error["advice"]


def test_rows_that_do_not_fit_the_header_are_left_out_and_counted(tmp_path):
    export = read(tmp_path, "y,x\n1,2\n3\n4,5,6\n7,8\n9")
    assert export.counters.column("y").to_pylist() == [1, 7]
    assert export.issue("unreadable_rows")["count"] == 3
    assert export.capabilities["rows_in"] == {"rows": 5}


def test_semicolons_tabs_byte_order_marks_and_other_encodings(tmp_path):
    assert read(tmp_path, b"\xef\xbb\xbfy;x\r\n1;a\r\n").counters.column("x").to_pylist() == ["a"]
    assert read(tmp_path, "y\tx\n1\tb\n", "u").counters.column("x").to_pylist() == ["b"]
    assert read(tmp_path, b"y,x\n1,\xfcber\n2,b\n", "v").counters.column("x").to_pylist() == ["\ufffdber", "b"]
    assert read(tmp_path, 'y,x\n1,"a, ""b""\nc"\n', "w").counters.column("x").to_pylist() == ['a, "b"\nc']


def test_a_column_that_turns_to_text_late_is_text(tmp_path, monkeypatch):
    monkeypatch.setattr("causeway.readers.containers.csv_and_parquet.BLOCK_BYTES", 4096)
    rows = "".join(f"{n},{n},{n}\n" for n in range(5000))
    export = read(tmp_path, "y,a,b\n" + rows + "1,x,2\n")
    assert export.counters.column("a").to_pylist()[-2:] == ["4999", "x"]
    assert export.counters.column("b").to_pylist()[-2:] == [4999.0, 2.0]


def test_csv_and_parquet_give_equal_tables(tmp_path):
    rng = np.random.default_rng(2)
    n = 40_000
    numbers = {"y": rng.normal(size=n), "x": rng.integers(0, 9, n), "order": rng.permutation(n)}
    table = pa.table(numbers | {"kernel": rng.choice(["a", "b"], n), "c": rng.choice(["u", "v"], n)})
    pacsv.write_csv(table, tmp_path / "x.csv")
    pq.write_table(table, tmp_path / "x.parquet")
    one, other = (Read(tmp_path / f"x.{form}", tmp_path / form, form="table") for form in ("csv", "parquet"))
    for name in ("counters", "configurations", "kernels"):
        assert getattr(one, name).equals(getattr(other, name))
    place = np.argsort(table.column("order").to_numpy())
    assert one.counters.column("y").to_numpy().tolist() == table.column("y").to_numpy()[place].tolist()


def test_parquet_types(tmp_path):
    table = pa.table(
        {
            "y": pa.array([1, 2, None], pa.int32()),
            "flag": [True, False, None],
            "category": pa.array(["p", "q", None]).dictionary_encode(),
            "nothing": pa.nulls(3),
            "nested": [[1], [2], [3]],
            "large": pa.array([1e300, float("inf"), float("nan")]),
        }
    )
    pq.write_table(table, tmp_path / "x.parquet")
    export = Read(tmp_path / "x.parquet", tmp_path / "t")
    found = export.counters.to_pydict()
    assert (found["y"], found["flag"], found["category"]) == ([1, 2, None], [1, 0, None], ["p", "q", None])
    assert (found["nothing"], found["large"]) == ([None] * 3, [1e300, None, None])
    assert "nested" not in found
    assert "nested" in export.issue("unusable_columns")["detail"]


def test_parquet_with_a_bad_footer_is_refused(tmp_path):
    pq.write_table(pa.table({"y": list(range(1000))}), tmp_path / "x.parquet")
    content = (tmp_path / "x.parquet").read_bytes()
    for bad in (content[:-100], content[:200], b"PAR1" + b"\x00" * 100 + b"PAR1"):
        (tmp_path / "x.parquet").write_bytes(bad)
        export = Read(tmp_path / "x.parquet", tmp_path / "t")
        assert export.status == "refused"
        assert "footer" in export.error["found"]


def test_thousands_of_columns(tmp_path):
    values = np.arange(300 * 3000, dtype=float).reshape(300, 3000)
    header = "y," + ",".join(f"x{n}" for n in range(2999))
    np.savetxt(tmp_path / "x.csv", values, delimiter=",", header=header, comments="", fmt="%.0f")
    export = Read(tmp_path / "x.csv", tmp_path / "t")
    assert export.counters.column("x2998").to_numpy().tolist() == values[:, -1].tolist()


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("# of ncu, one run\n# means\ny,x,z\n1,2,3\n", ["x", "y", "z"]),
        ("# a, b\n#y,x\n1,2\n", ["x", "y"]),
        ("#id,y\n1,2\n", ["#id", "y"]),
    ],
)
def test_lines_with_a_sign_above_the_header_are_comments(tmp_path, text, columns):
    export = read(tmp_path, text)
    if columns is None:
        assert "it has #y, x" in export.error["found"]
    else:
        assert list(export.capabilities["values"]) == columns
        assert export.counters.num_rows == 1


@pytest.mark.parametrize(
    ("header", "choice"),
    [
        ("kernel_id,time_ms,ok", "targets.tables=[time_ms]"),
        ("a,b us", "targets.tables=[COLUMN]"),
        ("n,run_ns", "targets.tables=[run_ns]"),
        ("B,H,S,per_iter_us", "targets.tables=[per_iter_us]"),
        ("pct_of_gpu_time,total_ms_before", "targets.tables=[total_ms_before]"),
        ("Start Time(us),Task Duration(us)", "targets.tables=[Task_Duration_us]"),
        ("Time,kernel time (ms)\n13:32:39,2", "targets.tables=[kernel_time_ms]"),
        ("n,2D-FFT runtime ms", "targets.tables=[_2D_FFT_runtime_ms]"),
        ("run time,run-time", "targets.tables=[COLUMN]"),
    ],
)
def test_the_column_that_may_be_meant_is_named(tmp_path, header, choice):
    text = header if "\n" in header else f"{header}\n{'1,' * header.count(',')}1"
    advice = read(tmp_path, f"{text}\n").error["advice"]
    assert advice == f"Rename the column, or name it: `causeway run FILE --set {choice}`."


@pytest.mark.parametrize("column", ["kernel", "kernel_name", "Kernel_Name", "KernelName", "Kernel Name"])
def test_a_column_of_kernels_may_be_called_as_profilers_call_it(tmp_path, column):
    assert read(tmp_path, f"y,{column}\n1,a\n2,b\n").kernels.column("name").to_pylist() == ["a", "b"]


SETTINGS_AND_STAMPS = (
    "delay_us epoch_ms uptime_seconds deadline_ms ts_us created_at_ms slo_ms window_us timeout_s interval_ms start_ns"
    " end_ns heartbeat_ms poll_ms low_ms high_ms q1_ms q3_ms iqr_ms mad_ms error_ms arrival_time_ms prev_duration_ns"
    " target_latency_ms last_run_time next_run_time größe_ms größe_time_ms größe_latency"
).split()

NO_DURATIONS = (
    "GPU(s);CPU(s);Run(s);Kernel(s);Bytes/ns;Tokens/ms;Rate (1/ms);Rate (per 100 ms);GPU Time (%);Time (%);UpTimeMs;TimeOutMs"
    ";_runtime;Relative Time (Process);Runtime Version;Runtime ID;Kernel Time Count;time_rank;Time Ratio;SubmitTime"
    ";CreationTime;Modified Time;Release Time;UTC Time;EndTimeMs;Log Time"
    ";Sample Time;Energy (W ms);Time Utilization;time_uuid;stopTime;stop_ns"
)


@pytest.mark.parametrize(
    ("header", "columns"),
    [
        ("kernel,time_ms,tile", ["time_ms"]),
        ("# measured in May\nduration_ns;queue_ns", ["duration_ns"]),
        ("y,duration_ns", []),
        ("wait_time_us,run_time_us", ["run_time_us", "wait_time_us"]),
        ("time,clock", []),
        ("N,time_sec", ["time_sec"]),
        ("start_time_ns,duration_ns", ["duration_ns"]),
        ("startup_time_ms,n", ["startup_time_ms"]),
        ("stamp_time_ns,n", []),
        ("kernel,Duration (us)", ["Duration_us"]),
        ("BlockSize,NumSMs,TimeMs", ["TimeMs"]),
        ("SMs,FLOPs,VMs", []),
        ("Dataset Size,Pandas Time (s),cuDF Time (µs)", ["Pandas_Time_s", "cuDF_Time_us"]),
        ("cpu_average_ms,gpu_average_ms", ["gpu_average_ms", "cpu_average_ms"]),
        ("layer,ms_median,ms_min,gflops", ["ms_median"]),
        ("queues,total_s,gb_per_s", ["total_s"]),
        ("layout,time_read,time_step,time_limit", ["time_read"]),
        ("Size,Mode,TimePerStep", ["TimePerStep"]),
        ("ID (ns),gpu_id,time_per_run", ["time_per_run"]),
        ("size,setup_ms,time_per_iter_ms", ["time_per_iter_ms"]),
        ("Time/op (ns),wall (s)", ["Time_op_ns"]),
        ("bytes_per_kernel_ns,tok_per_gpu_s", []),
        ("N,cg_time,sor_time,sim_time", ["sor_time", "cg_time"]),
        ("Nodes,CommTime,CompTime,EndTime", ["CompTime", "CommTime"]),
        ("host,batch,step_ms", ["step_ms"]),
        ("model,size,seconds", ["seconds"]),
        ("name,mean_microseconds,tflops", ["mean_microseconds"]),
        ("cpu_ms,gpu_ms", ["gpu_ms", "cpu_ms"]),
        ("timeout_ms,pcie_bytes_s", []),
        *((f"n,{name}", []) for name in SETTINGS_AND_STAMPS),
        *((f"n,{name}", []) for name in NO_DURATIONS.split(";")),
        ("method,ns/iter", ["ns_iter"]),
        ("Kernel(s),Total (s)", ["Total_s"]),
        ("time ms,time_ms", ["time_ms"]),
        ("method,ns_per_run", ["ns_per_run"]),
        ("method,bytes_per_ns,tok_s_per_gpu", []),
        ("mean_ms,std_ms,size", ["mean_ms"]),
        ("min_ms,max_ms,p99_ms,median_ms", ["median_ms"]),
        ("min_ms,max_ms", ["max_ms", "min_ms"]),
        ("image,gpu_time", ["gpu_time"]),
        ("Operation,m,Runtime,GFLOPs", ["Runtime"]),
        ("start_time,end_time,wall_time,date_time", []),
        ("epoch_time_s,high_priority_time_s", ["high_priority_time_s", "epoch_time_s"]),
        ("next_token_latency_ms,end_to_end_latency_ms", ["end_to_end_latency_ms", "next_token_latency_ms"]),
        ("", []),
    ],
)
def test_columns_that_are_named_as_durations_were_measured(header, columns, tmp_path):
    """Tables with a mean and its deviation, with the time of a kernel and the whole, or with nanoseconds for each
    iteration were refused for want of a column y.
    """
    path = tmp_path / "x.csv"
    path.write_text(f"{header}\n1,2,3,4\n")
    assert table.duration_columns(path, ("y",)) == columns
    if "," in header and not header.startswith("#"):
        values = {name: [float(number)] for number, name in enumerate(header.split(","))}
        pq.write_table(pa.table(values), tmp_path / "x.parquet")
        assert table.duration_columns(tmp_path / "x.parquet", ("y",)) == columns


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("# May\nrun_time,step_ms\n2024-01-02,3\n", ["step_ms"]),
        ("duration_ns,step_ms\n,3\n,4\n", ["step_ms"]),
        ("run_time,size\n2024-01-02,3\n", ["run_time"]),
        ('time_ms,size\n"1,5",3\n', ["time_ms"]),
        ("duration_ns,step_ms\nN/A,3\n5,4\n", ["duration_ns"]),
        ('{"run_time": "2024-01-02", "step_ms": 3}\n' * 2, ["step_ms"]),
        ("warmup_ms,rep_ms,kernel_time\n25,100,3\n25,100,2\n", ["kernel_time"]),
        ("warmup_ms,time\n25,3\n25,3\n", ["warmup_ms"]),
        ("time_s,power_w\n" + "".join(f"{1.7e9 + row / 10:.1f},{row % 7}\n" for row in range(40)), []),
        ("time_s,size\n" + "".join(f"{row**1.1:.3f},{row}\n" for row in range(40)), ["time_s"]),
        ("time_s,size\n" + "".join(f"0.5,{row}\n" for row in range(40)), ["time_s"]),
        (f"{'exec_' * 6000}.,time_ms\n1,3\n2,4\n", ["time_ms"]),
    ],
)
def test_a_column_without_a_number_or_of_one_value_is_no_duration_beside_another(text, columns, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(text)
    assert table.duration_columns(path, ("y",)) == columns


def test_all_targets_without_a_number_are_named(tmp_path):
    found = read(tmp_path, "a_ms,b_ms\nx,y\n", targets=("a_ms", "b_ms")).error["found"]
    assert found == "columns a_ms, b_ms have no number in 1 rows"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("255.979,241.5,k\n223.5,232.5,k\n", "its first line holds values, no names of columns"),
        ("phase,pcie_tx_bytes_s\na,1\n", "targets.tables=[COLUMN]"),
        ("phase,größe_ms\na,1\n", "targets.tables=[gr_e_ms]"),
        ("100,100,95\n200,100,96\n", "Write a header above it, with duration_ms"),
        ("2026/04/25 16:06:06,0 %,0 %,2 MiB\n", "its first line holds values, no names of columns"),
        ("\n\nCPU times, 2798, 2785\nGPU times, 295, 282\n", "its first line holds values, no names of columns"),
        ("a,,\n1,2,3\n", "columns occur twice: one without a name"),
    ],
)
def test_a_table_without_header_or_without_a_time_says_so(text, says, tmp_path):
    """Rows of numbers alone were told to lack a column y, and a rate was proposed as what was measured."""
    export = read(tmp_path, text)
    assert export.status == "refused"
    assert says in str(export.error)


def test_a_duration_has_the_unit_of_its_name(tmp_path):
    export = read(tmp_path, "latency_us,size\n1,2\n", targets=("latency_us",))
    assert export.capabilities["values"] == {"latency_us": "us", "size": ""}
    assert read(tmp_path, "time_sec\n1\n2\n", "u", targets=("time_sec",)).capabilities["values"] == {"time_sec": "s"}


def test_lines_of_json_objects_are_a_table(tmp_path):
    """Logs of benchmarks and of training steps, with a field that some rows lack, were of no known format."""
    path = tmp_path / "log.jsonl"
    path.write_text('{"step": 1, "step_time_s": 0.5, "host": "a"}\n{"step": 2, "step_time_s": 0.75}\n')
    assert (detect(path), table.duration_columns(path, ("y",))) == ("table", ["step_time_s"])
    rows = Read(path, tmp_path / "t", form="table", targets=("step_time_s",)).counters.to_pydict()
    assert (rows["step"], rows["step_time_s"], rows["host"]) == ([1.0, 2.0], [0.5, 0.75], ["a", None])
    path.write_text('{"y": 1}\n{"y": \n')
    found = Read(path, tmp_path / "u", form="table").error["found"]
    assert found == "its lines are no JSON objects of one kind (JSON parse error: Invalid value. in row 1)"


def test_lines_of_json_objects_that_end_within_one_are_read_up_to_it(tmp_path):
    """A log cut in its last line was refused whole; one whose last line is whole but has no end lacks nothing."""
    path = tmp_path / "log.jsonl"
    whole = '{"y": 1, "host": "a"}\n{"y": 2, "host": "b"}'
    for name, end, unfinished in (("cut", '\n{"y": 3, "ho', True), ("whole", "", False)):
        path.write_text(whole + end)
        export = Read(path, tmp_path / name, form="table")
        assert export.counters.column("y").to_pylist() == [1.0, 2.0]
        assert (export.status, export.count("unfinished_line")) == (("partial", 1) if unfinished else ("read", 0))


def test_fields_of_json_lines_that_are_null_or_whole_at_first_are_read(tmp_path, monkeypatch):
    """Types of the first block held for all: 1.5 behind 1, and text behind null, refused the file."""
    monkeypatch.setattr(csv_and_parquet, "BLOCK_BYTES", 64)
    path = tmp_path / "log.jsonl"
    path.write_text('{"y": 1, "host": null}\n' * 9 + '{"y": 1.5, "host": "a"}\n')
    rows = Read(path, tmp_path / "t", form="table").counters.to_pydict()
    assert (rows["y"], rows["host"]) == ([1.0] * 9 + [1.5], [None] * 9 + ["a"])


LAUNCHES = [
    {"kernel": "a", "grid": [8, 1, 1], "duration_us": 1.5},
    {"kernel": "b", "grid": [8, 1, 1], "duration_us": 2},
]


@pytest.mark.parametrize(
    "document",
    [
        LAUNCHES,
        {"gpu": "A100", "results": LAUNCHES},
        {"cache": {"8,1": LAUNCHES[0], "8,2": LAUNCHES[1]}, "keys": ["a"]},
    ],
)
def test_rows_of_a_json_document_are_a_table(document, tmp_path):
    """A list of launches, results of a benchmark and the cache of a tuner were of no known format."""
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(document, indent=1))
    assert (detect(path), table.duration_columns(path, ("y",))) == ("table", ["duration_us"])
    export = Read(path, tmp_path / "t", form="table", targets=("duration_us",))
    assert export.counters.column("duration_us").to_pylist() == [1.5, 2.0]
    assert export.kernels.column("name").to_pylist() == ["a", "b"]
    assert export.count("unusable_columns") == 1


@pytest.mark.parametrize("before", [b"\xef\xbb\xbf", b"\n  "])
def test_a_mark_and_blanks_may_stand_before_rows_in_json(before, tmp_path):
    """Some editors write them: the document was read as CSV, and its first line taken for a header."""
    rows = [{"kernel": "a", "time_ms": 1.5}, {"kernel": "b", "time_ms": 2.0}]
    texts = [json.dumps(rows)] + (["\n".join(map(json.dumps, rows))] if before.strip() else [])
    for number, text in enumerate(texts):
        path = tmp_path / f"{number}.json"
        path.write_bytes(before + text.encode())
        assert (detect(path), table.duration_columns(path, ("y",))) == ("table", ["time_ms"])
        assert Read(path, tmp_path / f"t{number}", targets=("time_ms",)).counters["time_ms"].to_pylist() == [1.5, 2.0]


@pytest.mark.parametrize(
    "document",
    [
        [],
        [1, 2],
        [{"a": "x"}, {"a": "y"}],
        {"config": {"n": 1}, "metrics": {"t": 2}},
        {"a": [{"n": 1}]},
        [{"n": 1}, {"m": 1}],
    ],
)
def test_a_json_document_without_rows_is_no_table(document, tmp_path):
    path = tmp_path / "rows.json"
    path.write_text(json.dumps(document))
    assert detect(path) is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"a":' * 5000 + "1" + "}" * 5000, "nested too deeply"),
        (json.dumps([{"time_ms": 1, "name": "x" * 600_000}] * 2), "beyond 1,048,576 bytes (the file has 1,200,0"),
        (json.dumps({"warmup": LAUNCHES, "runs": LAUNCHES * 2}), "lists of rows: warmup (2 rows), runs (4 rows)"),
    ],
)
def test_a_json_document_whose_rows_cannot_be_told_is_refused_with_the_cause(text, says, tmp_path):
    """One beyond a bound was of no known format, of several lists the longest was read alone, and deep ones failed."""
    path = tmp_path / "rows.json"
    path.write_text(text)
    export = Read(path, tmp_path / "t")
    assert export.status == "refused"
    assert says in export.error["found"]


def test_a_mapping_of_rows_gives_its_keys_as_kernels_and_text_among_numbers_no_value(tmp_path):
    """Keys were dropped; a tuner's cache with a failed setting was refused whole, as lines of different kinds."""
    path = tmp_path / "rows.json"
    path.write_text(json.dumps({"8,2": {"x": 8, "y": 2}, "8,4": {"x": 8, "y": 4}}))
    assert table.PlainJsonLines(path, "").columns == ["x", "y"]
    path.write_text(json.dumps({"a": {"time_ms": 1, "n": [1]}, "b": {"time_ms": "Failed", "n": 10**400}}))
    assert table.duration_columns(path, ("y",)) == ["time_ms"]
    export = Read(path, tmp_path / "t", targets=("time_ms",))
    assert export.kernels.column("name").to_pylist() == ["a", "b"]
    assert export.counters.column("time_ms").to_pylist() == [1.0, None]
    assert (export.count("no_target"), export.count("not_a_number")) == (1, 1)


def test_a_header_of_numbers_beside_a_target_is_read(tmp_path):
    assert read(tmp_path, "y,0,1,2\n1,2,3,4\n").counters.column("y").to_pylist() == [1]
    pq.write_table(pa.table({"time_ms": [1.0], "0": [2.0], "1": [3.0]}), tmp_path / "x.parquet")
    assert Read(tmp_path / "x.parquet", tmp_path / "t", targets=("time_ms",)).status == "read"


def test_a_target_is_the_column_of_exactly_its_name_or_the_only_one_that_is_called_so(tmp_path):
    assert read(tmp_path, "y,y (%)\n1,5\n2,6\n").capabilities["values"] == {"y": "", "y (%)": ""}
    found = read(tmp_path, "run ms,run-ms\n1,2\n", "u", targets=("run_ms",)).error["found"]
    assert found == "columns run ms, run-ms are both called run_ms"


@pytest.mark.parametrize(
    ("name", "times", "measured"),
    [
        ("Time", "3 5 4 2", True),
        ("Time", "0 1 2 3", False),
        ("Time", "2 2 2 2", False),
        ("Time", "0 1 2 0 1 2 0 1 2", False),  # a log of three devices
        ("elapsed_ms", "0 1 2 3", False),
        ("elapsed_ms", "0 3 2 3", True),
        ("Comm_Time", "0 1 2 3", False),
        ("decode_time", "2.7 1.2 3.9 7.8 15 31", True),  # a sweep of lengths
        ("gpu_time", "0 1 2 3", True),
    ],
)
def test_a_column_that_may_be_a_clock_is_measured_unless_it_mostly_grows(name, times, measured, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(f"format,{name}\n" + "".join(f"csr,{time}\n" for time in times.split()))
    assert table.duration_columns(path, ("y",)) == [name] * measured


def test_a_target_is_called_by_a_column_without_what_no_name_may_hold(tmp_path):
    """Columns with a unit in brackets could not be named by a setting and had to be renamed."""
    export = read(tmp_path, "size,Run 1 (ms)\n8,2\n16,x\n", targets=("Run_1_ms",))
    assert export.capabilities["values"] == {"size": "", "Run_1_ms": "ms"}
    assert export.counters.column("Run_1_ms").to_pylist() == [2.0, None]
    assert (export.count("no_target"), export.count("not_a_number")) == (1, 1)


def test_means_of_repetitions_are_no_rows_and_a_tuners_key_is_no_kernel(tmp_path):
    """Google Benchmark's deviations were the shortest times; each setting of a tuner was a kernel of its own."""
    path = tmp_path / "rows.json"
    runs = [{"name": "a", "run_type": "iteration", "real_time": time} for time in (7.0, 7.2, 6.9)]
    runs += [{"name": "a_stddev", "run_type": "aggregate", "real_time": 0.15}]
    path.write_text(json.dumps({"context": {"cpus": 8}, "benchmarks": runs}))
    export = Read(path, tmp_path / "t", targets=("real_time",))
    assert export.counters.column("real_time").to_pylist() == [7.0, 7.2, 6.9]
    path.write_text(json.dumps({"cache": {"16,1": {"x": 16, "time": 2.0}, "32,1": {"x": 32, "time": 1.5}}}))
    export = Read(path, tmp_path / "u", targets=("time",))
    assert export.counters.column("key").to_pylist() == ["16,1", "32,1"]
    assert export.kernels.num_rows == 1


def test_the_columns_with_most_time_are_measured_whatever_their_unit(tmp_path):
    """Of four durations the whole, which stands last, was left out, and copies of 0.05 ms were told."""
    path = tmp_path / "x.csv"
    path.write_text("n,h2d_us,kernel_ms,d2h_us,total_s\n1,50,9,60,0.0091\n2,50,31,60,inf\n3,50,36,60,0.036\n")
    assert table.duration_columns(path, ("y",)) == ["kernel_ms", "total_s", "d2h_us", "h2d_us"]

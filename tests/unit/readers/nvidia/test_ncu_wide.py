"""Nsight Compute's wide page. The only real file is a pivot; the pages here have the columns and units of `ncu --csv
--page raw`.
"""

import csv

import numpy as np
import pytest
from reading import Read

IDENTITY = [
    "ID",
    "Process ID",
    "Process Name",
    "Host Name",
    "Kernel Name",
    "Context",
    "Stream",
    "Block Size",
    "Grid Size",
    "Device",
    "CC",
]
METRICS = {  # metric: unit, values of three launches as printed in the usual notation
    "dram__bytes.sum": ("Mbyte", ["27.595520", "1,024.5", "0.25"]),
    "gpu__time_duration.sum": ("usecond", ["11.81", "5.54", "1,011.5"]),
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": ("%", ["9.41", "100", "0"]),
    "sm__cycles_elapsed.avg.per_second": ("cycle/nsecond", ["1.02", "0.85", "1.4"]),
    "launch__registers_per_thread": ("register/thread", ["32", "16", "16"]),
    "launch__func_cache_config": ("", ["CachePreferNone", "CachePreferShared", "CachePreferNone"]),
    "smsp__inst_executed.sum": ("inst", ["27,595,520", "4,194,688", "12 (3; 4; 5)"]),
    "idc__requests.sum": ("", ["nan", "12", "n/a"]),
}


def page(path, change=lambda text: text, units=True, before=(), rows=3, repeat=False):
    """Write a wide page; `change` is applied to each printed value."""
    metrics = list(METRICS)
    with open(path, "w", encoding="utf-8", newline="") as file:
        for line in before:
            file.write(line + "\n")
        out = csv.writer(file, quoting=csv.QUOTE_ALL)
        out.writerow(IDENTITY + metrics)
        if units:
            out.writerow([""] * len(IDENTITY) + [METRICS[name][0] for name in metrics])
        for at in range(rows):
            name = "void k<int, 3>(int)" if at < 2 else "other"
            row = [at, "4711", "secret-app", "secret-host", name, "1", "7", "(128, 1, 1)", "(64, 2, 1)", "1", "8.0"]
            out.writerow([*row, *(change(METRICS[metric][1][at % 3]) for metric in metrics)])
            if repeat:
                out.writerow(IDENTITY + metrics)
                out.writerow([""] * len(IDENTITY) + [METRICS[name][0] for name in metrics])
    return path


def european(text):
    """Return a number in the other notation."""
    return text.translate(str.maketrans(",.", ".,")) if text[:1].isdigit() else text


def test_a_page_with_units_is_one_row_per_launch(tmp_path):
    read = Read(
        page(tmp_path / "raw.csv", before=["hello, world", "==PROF== Connected to process 4711"]), tmp_path / "e"
    )
    assert (read.status, read.capabilities["kind"], read.counters.num_rows) == ("read", "counters", 3)
    rows = read.counters.to_pydict()
    assert rows["dram_bytes"] == [27_595_520.0, 1_024_500_000.0, 250_000.0]
    assert rows["gpu_time"] == [11_810.0, 5_540.0, 1_011_500.0]
    assert rows["sm_throughput"] == [0.0941, 1.0, 0.0]
    assert rows["sm_clock"] == [1.02e9, 0.85e9, 1.4e9]
    assert rows["smsp__inst_executed_sum" if "smsp__inst_executed_sum" in rows else "sm_instr"] == [
        27_595_520.0,
        4_194_688.0,
        12.0,
    ]
    assert rows["launch__func_cache_config"] == ["CachePreferNone", "CachePreferShared", "CachePreferNone"]
    assert rows["idc__requests_sum"] == [None, 12.0, None]
    assert read.count("not_a_number") == 2
    assert rows["device"] == [1, 1, 1]
    units = read.capabilities["values"]
    assert [units[name] for name in ("dram_bytes", "gpu_time", "sm_throughput", "sm_clock")] == [
        "bytes",
        "ns",
        "ratio",
        "Hz",
    ]
    shape = read.configurations.to_pylist()
    assert [(row["grid_x"], row["grid_y"], row["block_x"], row["registers_per_thread"]) for row in shape] == [
        (64, 2, 128, 32), (64, 2, 128, 16), (64, 2, 128, 16)
    ]  # fmt: skip
    assert read.kernels.column("name").to_pylist() == ["void k<int, 3>(int)", "other"]


def test_process_and_host_names_are_not_read(tmp_path):
    assert "secret" not in Read(page(tmp_path / "raw.csv"), tmp_path / "e").texts()


def test_both_notations_give_the_same_values(tmp_path):
    usual = Read(page(tmp_path / "a.csv"), tmp_path / "1")
    other = Read(page(tmp_path / "b.csv", european), tmp_path / "2")
    assert usual.counters.equals(other.counters)
    assert other.count("mixed_locales") == 0


def test_the_notation_is_decided_for_the_whole_file(tmp_path):
    path = tmp_path / "raw.csv"
    head = ",".join([*IDENTITY, "a__x.sum", "a__y.sum"])
    identity = '0,1,p,h,k,1,7,"(1, 1, 1)","(1, 1, 1)",0,8.0'
    path.write_text(f'{head}\n{"," * 12}\n{identity},"1.234","27.595.520"\n{identity},"5.678","1.000.000"\n')
    rows = Read(path, tmp_path / "e").counters.to_pydict()
    assert rows["a__x_sum"] == [1234.0, 5678.0]  # could be either; the other column says which
    assert rows["a__y_sum"] == [27_595_520.0, 1_000_000.0]


def test_a_page_without_units_or_with_repeated_headers(tmp_path):
    read = Read(page(tmp_path / "a.csv", units=False), tmp_path / "1")
    assert read.counters.num_rows == 3
    read = Read(page(tmp_path / "b.csv", repeat=True), tmp_path / "2")
    assert read.counters.column("dram_bytes").to_pylist() == [27_595_520.0, 1_024_500_000.0, 250_000.0]


def test_a_page_that_lost_its_units_says_so_and_per_cent_are_ratios(tmp_path):
    read = Read(page(tmp_path / "a.csv", units=False), tmp_path / "1")
    rows = read.counters.to_pydict()
    assert rows["sm_throughput"] == [0.0941, 1.0, 0.0]  # the name says per cent
    assert rows["gpu_time"] == [11.81, 5.54, 1011.5]  # ns is what `--print-units base` prints
    assert rows["dram_bytes"] == [27.59552, 1024.5, 0.25]
    assert "a page without units" in read.issue("unknown_units")["detail"]
    assert Read(page(tmp_path / "b.csv"), tmp_path / "2").issue("unknown_units") is None


def test_a_cut_page_keeps_its_whole_lines(tmp_path):
    path = page(tmp_path / "raw.csv", rows=30)
    content = path.read_bytes()
    path.write_bytes(content[: content.rindex(b"other") + 40])
    read = Read(path, tmp_path / "e")
    assert (read.status, read.counters.num_rows, read.count("truncated")) == ("partial", 29, 1)
    assert "in the middle of line 32" in read.error["found"]


def test_ragged_and_spoilt_rows_are_counted(tmp_path):
    path = page(tmp_path / "raw.csv", rows=9)
    lines = path.read_text().splitlines()
    lines[4] = '"1","2"'
    lines[6] = lines[6].replace('"27', '27"', 1)[:-1]
    lines[7] = lines[7].rsplit(",", 1)[0]
    path.write_text("\n".join(lines) + "\n")
    read = Read(path, tmp_path / "e")
    assert (read.status, read.counters.num_rows) == ("partial", 8 - (read.count("unreadable_rows") - 1))
    assert read.count("unreadable_rows") in (1, 2)
    assert read.count("incomplete_launches") > 0


def test_a_page_without_launches_is_refused(tmp_path):
    read = Read(page(tmp_path / "raw.csv", rows=0), tmp_path / "e")
    assert (read.status, read.error["found"]) == ("refused", "there is a header but no launch")


def test_many_metrics_are_handed_over_in_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr("causeway.readers.nvidia.ncu_wide.BLOCK_VALUES", 50_000)
    path = tmp_path / "raw.csv"
    launches = 300
    metrics = 500
    with open(path, "w", encoding="utf-8") as file:
        file.write(",".join(IDENTITY + [f"m__{at}.sum" for at in range(metrics)]) + "\n")
        file.write("," * (len(IDENTITY) + metrics - 1) + "\n")
        for row in range(launches):
            values = ",".join([str(row)] * metrics)
            file.write(f'{row},1,p,h,k,1,7,"(1, 1, 1)","(1, 1, 1)",0,8.0,{values}\n')
    read = Read(path, tmp_path / "e")
    assert read.counters.num_columns == metrics + 5
    assert read.counters.column("m__499_sum").to_pylist() == list(range(launches))


def test_the_real_pivot(data, tmp_path):
    path = data / "ncu_csv/operators-a100/relu_nsight_result_wide.csv"
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    read = Read(path, tmp_path / "e")
    assert (read.status, read.capabilities["format"], read.counters.num_rows) == ("read", "ncu", len(rows))
    got = read.counters.to_pydict()
    assert got["gpu_time"] == [float(row["gpu__time_duration.sum"]) for row in rows]
    assert got["dram_bytes"] == [float(row["dram__bytes.sum"]) for row in rows]
    percent = [float(row["sm__throughput.avg.pct_of_peak_sustained_elapsed"]) for row in rows]
    np.testing.assert_allclose(got["sm_throughput"], np.array(percent) / 100, rtol=1e-15)
    assert got["sm_clock"] == [float(row["sm__cycles_elapsed.avg.per_second"]) for row in rows]
    assert "without units" in read.issue("unknown_units")["detail"]
    assert read.kernels.column("name").to_pylist() == ["(all launches)"]
    # the cycles and the clock agree with the duration in nanoseconds, so the units are as taken
    np.testing.assert_allclose(
        np.array(got["sm_cycles"]) / np.array(got["sm_clock"]) * 1e9, got["gpu_time"], rtol=0.02, atol=40
    )


@pytest.mark.parametrize("second", ["ID,Kernel Name,", ",,"])
def test_a_pivot_with_index_columns_and_an_empty_second_line(second, tmp_path):
    path = tmp_path / "pivot.csv"
    path.write_text(f"Metric Name,,gpu__time_duration.sum\n{second}\n0,first,11808.0\n1,second,5536.0\n")
    read = Read(path, tmp_path / "e")
    assert read.counters.column("gpu_time").to_pylist() == [11808.0, 5536.0]
    assert read.kernels.column("name").to_pylist() == (
        ["first", "second"] if "Kernel" in second else ["(all launches)"]
    )


def test_a_space_between_thousands_says_that_the_comma_is_a_decimal_one(tmp_path):
    head = ["ID", "Process ID", "Kernel Name", "gpu__time_duration.sum", "sm__config"]
    rows = [
        head,
        ["", "", "", "us", "cycle"],
        ["0", "7", "k", "1\u202f234,56", "n"],
        ["1", "7", "k", "2\xa0345,67", "m"],
    ]
    path = tmp_path / "e.csv"
    path.write_text("".join(",".join(f'"{cell}"' for cell in row) + "\n" for row in rows), encoding="utf-8")
    read = Read(path, tmp_path / "t")
    assert read.counters.column("gpu_time").to_pylist() == pytest.approx([1_234_560, 2_345_670], abs=1e-6)
    assert read.count("not_a_number") == 2  # texts where the unit says numbers


OTHER_PAGES = {
    "columns": [
        [*IDENTITY, "gpu__time_duration.sum", "dram__bytes.sum"],
        [*[""] * len(IDENTITY), "usecond", "Mbyte"],
        [0, "4711", "app", "host", "k", "1", "7", "(128, 1, 1)", "(64, 2, 1)", "1", "8.0", "7.5", "3"],
    ],
    "units": [
        IDENTITY + list(METRICS),
        [*[""] * len(IDENTITY), "Gbyte", "msecond", *(unit for unit, _ in list(METRICS.values())[2:])],
        [0, "4711", "app", "host", "k", "1", "7", "(128, 1, 1)", "(64, 2, 1)", "1", "8.0", *"12345678"],
    ],
}


@pytest.mark.parametrize(("what", "line"), [("columns", 5), ("units", 6)])
def test_a_second_page_with_other_columns_or_units_is_not_read_as_the_first(what, line, tmp_path):
    path = page(tmp_path / "raw.csv", rows=2)
    with open(path, "a", encoding="utf-8", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL).writerows(OTHER_PAGES[what])
    read = Read(path, tmp_path / "e")
    assert read.error["found"] == f"another page, with other columns or units, begins in line {line}; it is not read"
    assert read.error["advice"] == "Split the file there, and give each page a row of its own in the sheet."
    assert read.counters.column("gpu_time").to_pylist() == [11_810.0, 5_540.0]
    assert read.capabilities["ranks"] == [0]


PRINTED = [f"{size / 1000:.2f}" for size in range(16, 100 << 10, 1008)] + ["8.19", "16.38", "64.51", "0.5", "8.1915"]
"""Sizes of shared memory in Kbyte, as a page prints them in its own units."""


def test_shared_memory_in_kbyte_is_whole_bytes_on_both_pages(tmp_path):
    wanted = [
        int(text.replace(".", "")) * 10 if len(text.split(".")[1]) == 2 else {"0.5": 500, "8.1915": None}[text]
        for text in PRINTED
    ]
    columns = ["ID", "Process ID", "Kernel Name", "Device", "gpu__time_duration.sum"]
    with open(tmp_path / "wide.csv", "w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, quoting=csv.QUOTE_ALL)
        out.writerow([*columns, "launch__shared_mem_per_block_static"])
        out.writerow(["", "", "", "", "nsecond", "Kbyte/block"])
        for at, text in enumerate(PRINTED):
            out.writerow([at, 1, "k(int)", 0, 100, text])
    with open(tmp_path / "long.csv", "w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, quoting=csv.QUOTE_ALL)
        out.writerow([*columns[:4], "Section Name", "Metric Name", "Metric Unit", "Metric Value"])
        for at, text in enumerate(PRINTED):
            section = "Launch Statistics"
            out.writerow([at, 1, "k(int)", 0, "GPU Speed Of Light Throughput", "Duration", "nsecond", "100"])
            out.writerow([at, 1, "k(int)", 0, section, "Static Shared Memory Per Block", "Kbyte/block", text])
    for name in ("wide", "long"):
        read = Read(tmp_path / f"{name}.csv", tmp_path / name)
        sizes = dict(
            zip(
                *(read.configurations.column(one).to_pylist() for one in ("configuration", "static_shared_bytes")),
                strict=True,
            )
        )
        assert [sizes[one] for one in read.counters.column("configuration").to_pylist()] == wanted, name


def test_the_compute_capability_is_a_fact_of_the_device(tmp_path):
    read = Read(page(tmp_path / "raw.csv"), tmp_path / "e")
    (device,) = read.devices.to_pylist()
    assert (device["device"], device["compute_capability"]) == (1, "8.0")
    assert "CC" not in read.counters.column_names
    spoilt = tmp_path / "spoilt.csv"
    spoilt.write_text((tmp_path / "raw.csv").read_text().replace('"8.0"', '"=cmd()"'), encoding="utf-8")
    (device,) = Read(spoilt, tmp_path / "s").devices.to_pylist()
    assert device["compute_capability"] is None

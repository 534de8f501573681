"""Nsight Compute CSV: every real capture against an independent reading, and made-up ones for what real ones do not
show.
"""

import csv
import io

import pytest
from reading import Read

from support import DATA

FILES = (
    [path for path in sorted((DATA / "ncu_csv").glob("*/*.csv")) if "wide" not in path.name] if DATA.is_dir() else []
)
IDENTITY = '"ID","Process ID","Process Name","Host Name","Kernel Name","Kernel Time","Context","Stream"'
LONG = f'{IDENTITY},"Section Name","Metric Name","Metric Unit","Metric Value"\n'


def real(files):
    why = pytest.mark.skip(reason="the folder of real exports, ../shared/data, is absent")
    return [pytest.param(path, id=path.stem) for path in files] or [pytest.param(None, marks=why)]


def metric_rows(path):
    """Give (launch, kernel, section, metric, unit, value) of a long file, read with nothing but the csv module."""
    lines = path.read_text(encoding="utf-8-sig").splitlines(keepends=True)
    at = next(n for n, line in enumerate(lines) if line.startswith(('"ID"', "ID,")))
    for row in csv.DictReader(io.StringIO("".join(lines[at:]))):
        if row["Metric Name"]:
            yield (
                int(row["ID"]),
                row["Kernel Name"],
                row["Section Name"],
                row["Metric Name"],
                row["Metric Unit"],
                row["Metric Value"],
            )


@pytest.mark.parametrize("path", real(FILES))
def test_launches_kernels_and_values_equal_the_file(path, tmp_path):
    rows = list(metric_rows(path))
    export = Read(path, tmp_path / "t")
    assert (export.status, export.capabilities["kind"]) == ("read", "counters")
    launches = list(dict.fromkeys(row[0] for row in rows))
    table = export.counters
    assert table.num_rows == len(launches)
    assert table.column("launch").to_pylist() == list(range(len(launches)))
    names = {row["kernel"]: row["name"] for row in export.kernels.to_pylist()}
    kernel = {row["configuration"]: names[row["kernel"]] for row in export.configurations.to_pylist()}
    first = {launch: name for launch, name, *_ in reversed(rows)}
    assert [kernel[number] for number in table.column("configuration").to_pylist()] == [
        first[launch] for launch in launches
    ]
    columns = {(field.metadata or {}).get(b"raw", b"").decode(): field.name for field in table.schema}
    place = {launch: at for at, launch in enumerate(launches)}
    values = {name: table.column(name).to_pylist() for name in columns.values()}
    checked = 0
    for launch, _, section, metric, unit, text in rows:
        column = columns.get(f"{section}/{metric}")
        if column is None:  # a part of the launch configuration
            assert section == "Launch Statistics"
            continue
        found = values[column][place[launch]]
        if isinstance(found, str):
            assert found == text
        else:
            value = float(text.replace(",", ""))
            assert found == (value / 100 if unit == "%" else value)
        checked += 1
    assert checked > 0.8 * len(rows)


@pytest.mark.parametrize(
    "path", real([path for path in FILES if path.stem.startswith(("dropout", "adaptive", "nsight_virtual"))])
)
def test_total_time_equals_the_file_to_the_nanosecond(path, tmp_path):
    expected = sum(
        int(value.replace(",", ""))
        for *_, metric, unit, value in metric_rows(path)
        if metric == "gpu__time_duration.sum"
    )
    export = Read(path, tmp_path / "t")
    assert sum(export.counters.column("gpu_time").to_pylist()) == expected
    assert export.capabilities["values"]["gpu_time"] == "ns"
    assert export.counters.schema.field("gpu_time").metadata[b"raw"].endswith(b"gpu__time_duration.sum")


def test_a_capture_without_durations_gets_them_from_cycles_and_says_so(data, tmp_path):
    export = Read(data / "ncu_csv/operators-a100/bert_flashattn_nsight.csv", tmp_path / "t")
    table = export.counters
    cycles, clock, time = (table.column(name).to_pylist() for name in ("sm_cycles", "sm_clock", "gpu_time"))
    assert time == pytest.approx([1e9 * c / hz for c, hz in zip(cycles, clock, strict=True)])
    assert export.count("derived_duration") == 1


def test_newest_header_launch_configuration_and_units(data, tmp_path):
    export = Read(data / "ncu_csv/nsightful/copy_blocked.csv", tmp_path / "t")
    (row,) = export.configurations.to_pylist()
    assert [row[name] for name in ("grid_x", "grid_y", "grid_z", "block_x", "block_y", "block_z")] == [
        1024,
        1,
        1,
        256,
        1,
        1,
    ]
    (values,) = export.counters.to_pylist()
    assert values["device"] == 0
    assert values["gpu_comp_mem"] < 1  # "Memory Throughput" occurs in per cent and in byte/s, in two sections
    assert values["dram_bytes_per_second"] > 1e9
    assert export.capabilities["values"]["dram_clock"] == "Hz"
    assert "Process_Name" not in values


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("app_error.csv", "1 errors, 1 warnings"),
        ("no_kernels.csv", "no kernels were profiled"),
        ("empty.csv", "zero bytes"),
    ],
)
def test_failed_captures_are_refused_with_the_reason(data, tmp_path, name, words):
    export = Read(data / "ncu_csv/operators-a100/failed" / name, tmp_path / "t")
    assert export.status == "refused"
    assert words in export.error["found"]


# made-up captures


def write(path, *rows, before="", header=LONG, after=""):
    lines = ['"' + '","'.join(map(str, row)) + '"\n' for row in rows]
    path.write_text(before + header + "".join(lines) + after, encoding="utf-8")
    return path


def row(launch, metric, unit, value, kernel="k(int)", process=9, section="S"):
    return (launch, process, "python", "host", kernel, "2022-Nov-19 20:59:52", 1, 7, section, metric, unit, value)


def test_european_numbers_are_recognised_by_the_file_as_a_whole(tmp_path):
    path = write(
        tmp_path / "x.csv",
        row(0, "gpu__time_duration.sum", "us", "1.234"),
        row(1, "gpu__time_duration.sum", "us", "27.595.520"),
        row(2, "gpu__time_duration.sum", "us", "12,5"),
    )
    assert Read(path, tmp_path / "t").counters.column("gpu_time").to_pylist() == [1234e3, 27595520e3, 12500.0]


def test_a_message_without_a_line_end_is_no_row_that_is_cut(tmp_path):
    path = write(tmp_path / "x.csv", row(0, "m.sum", "", "1"), after="==PROF== Disconnected from process 4711")
    export = Read(path, tmp_path / "t")
    assert export.status == "read"
    assert export.counters.column("m_sum").to_pylist() == [1.0]


def test_two_kernels_of_one_number_are_two_launches(tmp_path):
    """As in captures that were put together without their headers: metrics of the second kernel were of the first."""
    path = write(tmp_path / "x.csv", row(0, "m.sum", "", "1"), row(0, "m.sum", "", "2", kernel="other"))
    export = Read(path, tmp_path / "t")
    assert export.counters.column("m_sum").to_pylist() == [1.0, 2.0]


def test_a_byte_order_mark_text_before_the_header_and_messages_between_rows(tmp_path):
    path = write(
        tmp_path / "x.csv",
        row(0, "m.sum", "", "1"),
        before="hello, world\n==PROF== Connected\n\ufeff",
        after="==PROF== Disconnected\n",
    )
    export = Read(path, tmp_path / "t")
    assert export.counters.column("m_sum").to_pylist() == [1.0]
    assert export.count("unreadable_rows") == 0


SHORT = '"ID","Kernel Name","Metric Name","Metric Unit","Metric Value"\n'


def test_a_page_without_the_columns_of_processes_and_hosts_is_read(tmp_path):
    rows = [(launch, "k(int)", "dram__throughput.avg.pct_of_peak_sustained_elapsed", "%", "9,00") for launch in (0, 1)]
    export = Read(write(tmp_path / "x.csv", *rows, header=SHORT, after=SHORT), tmp_path / "t")
    assert export.capabilities["format"] == "ncu"
    assert export.counters.column("dram__throughput_avg_pct_of_peak_sustained_elapsed").to_pylist() == [0.09, 0.09]
    wide = '"ID","Kernel Name","gpu__time_duration.sum"\n"","","ns"\n"0","k(int)","1200"\n'
    export = Read(write(tmp_path / "y.csv", header=wide), tmp_path / "w")
    assert export.counters.column("gpu_time").to_pylist() == [1200.0]
    plain = write(tmp_path / "z.csv", header="ID,Kernel Name,y\n0,k,2.5\n")
    assert Read(plain, tmp_path / "p").capabilities["format"] == "table"


def test_a_page_without_the_column_of_units_has_those_of_its_metrics(tmp_path):
    """62.5 % of peak was 6250 %."""
    path = tmp_path / "few.csv"
    name = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
    path.write_text(
        '"ID","Process ID","Kernel Name","Metric Name","Metric Value"\n'
        f'"1","42","k()","gpu__time_duration.sum","1250"\n"1","42","k()","{name}","62.5"\n'
    )
    counters = Read(path, tmp_path / "e").counters
    assert (counters.column("gpu_time").to_pylist(), counters.column("sm_throughput").to_pylist()) == (
        [1250.0],
        [0.625],
    )


def test_several_captures_in_one_file_and_several_processes(tmp_path):
    path = write(
        tmp_path / "x.csv",
        row(0, "m", "", "1"),
        row(0, "m", "", "2", process=10),
        after=LONG + '"0","9","p","h","k","t","1","7","S","m","","3"\n',
    )
    export = Read(path, tmp_path / "t")
    assert export.counters.column("m").to_pylist() == [1.0, 2.0, 3.0]
    assert export.counters.column("rank").to_pylist() == [0, 1, 0]


def test_a_capture_of_another_version_after_the_first_is_read_by_its_own_columns(tmp_path):
    newer = LONG.replace('"Kernel Time",', "").replace('"Stream",', '"Stream","Block Size","Grid Size",')
    path = write(
        tmp_path / "x.csv",
        row(0, "m", "ms", "1"),
        after=newer + '"0","9","p","h","k(int)","1","7","(64, 1, 1)","(5, 1, 1)","S","m","us","3"\n',
    )
    export = Read(path, tmp_path / "t")
    assert export.counters.column("m").to_pylist() == [1e6, 3e3]
    assert export.kernels.column("name").to_pylist() == ["k(int)"]
    assert export.configurations.column("block_x").to_pylist() == [None, 64]
    assert export.capabilities["ranks"] == [0]


def test_gaps_duplicates_text_and_odd_values_are_counted(tmp_path):
    path = write(
        tmp_path / "x.csv",
        row(0, "a", "", "1"),
        row(0, "a", "", "5"),
        row(0, "mode", "", "fast"),
        row(0, "b", "furlong", "7"),
        row(1, "a", "", "nan"),
        row(1, "b", "furlong", "8"),
        row(2, "b", "furlong", "9"),
    )
    export = Read(path, tmp_path / "t")
    assert export.counters.select(["a", "b", "mode"]).to_pydict() == {
        "a": [1.0, None, None],
        "b": [7.0, 8.0, 9.0],
        "mode": ["fast", None, None],
    }
    assert [
        export.count(kind) for kind in ("duplicate_values", "not_a_number", "incomplete_launches", "unknown_units")
    ] == [1, 1, 2, 1]
    assert "mode" not in export.capabilities["values"]


def test_one_name_in_two_units_gives_two_columns_whatever_the_order(tmp_path):
    rows = [
        row(0, "Throughput", "%", "50", section="A"),
        row(0, "Throughput", "byte/s", "7", section="B"),
        row(0, "x y", "", "1"),
        row(0, "x.y", "", "2"),
    ]
    one = Read(write(tmp_path / "x.csv", *rows), tmp_path / "t")
    other = Read(write(tmp_path / "y.csv", *rows[::-1]), tmp_path / "u")
    for export in (one, other):
        values = export.counters.to_pylist()[0]
        assert (values["A_Throughput"], values["B_Throughput"]) == (0.5, 7.0)
    assert one.count("renamed_columns") == 1


def test_a_counter_with_a_column_of_ours_as_name_is_renamed(tmp_path):
    export = Read(write(tmp_path / "x.csv", row(0, "rank", "", "5"), row(0, "grid_x", "", "6")), tmp_path / "t")
    assert export.counters.select(["rank", "rank_2", "grid_x"]).to_pylist() == [
        {"rank": 0, "rank_2": 5.0, "grid_x": 6.0}
    ]


@pytest.mark.parametrize("cut", [1, 9, 30])
def test_a_file_cut_in_a_line_gives_what_stands_before(tmp_path, cut):
    rows = [row(launch, metric, "", "1,234") for launch in range(3) for metric in ("a", "b")]
    path = write(tmp_path / "x.csv", *rows)
    path.write_bytes(path.read_bytes()[:-cut])
    export = Read(path, tmp_path / "t")
    if cut == 1:  # only the line end is gone
        assert export.status == "read"
        assert export.counters.column("b").to_pylist() == [1234.0] * 3
        return
    assert export.status == "partial"
    assert "in the middle of line 7" in export.error["found"]
    assert export.counters.column("b").to_pylist() == [1234.0, 1234.0, None]
    assert export.count("incomplete_launches") == 1


@pytest.mark.parametrize(
    ("texts", "values"),
    [
        (["1\u202f234,56", "2\u202f345,67"], [1234.56, 2345.67]),  # French: no value is unmistakable but for its space
        (["1\u2019234.56", "345.67"], [1234.56, 345.67]),  # Swiss
        (["12 (1; 2; 9)", "1,234 (1: 3, 2: 9)"], [12, 1234]),  # with --print-metric-instances
        (["12 (12)", "1,234 (7: 1,234)"], [12, 1234]),  # of one instance
    ],
)
def test_numbers_of_other_places_are_no_texts(texts, values, tmp_path):
    rows = [
        f'"{at}","7","a","h","k","t","1","7","","gpu__time_duration.sum","ns","{text}"' for at, text in enumerate(texts)
    ]
    path = tmp_path / "e.csv"
    path.write_text(LONG + "\n".join(rows) + "\n", encoding="utf-8")
    export = Read(path, tmp_path / "t")
    assert export.counters.column("gpu_time").to_pylist() == values
    assert export.count("not_a_number") == 0


def test_a_metric_with_a_unit_and_texts_alone_is_counted(tmp_path):
    path = tmp_path / "e.csv"
    row = '"0","7","a","h","k","t","1","7","","{}","{}","{}"\n'
    rows = [("gpu__time_duration.sum", "ns", "soon"), ("sm__config", "", "large"), ("sm__cycles.sum", "cycle", "5")]
    path.write_text(LONG + "".join(row.format(*one) for one in rows), encoding="utf-8")
    export = Read(path, tmp_path / "t")
    assert export.count("not_a_number") == 1
    assert export.counters.column("sm__config").to_pylist() == ["large"]


def long_rows(*rows):
    """Return a long file of (launch, metric, unit, value)."""
    lines = [
        f'"{launch}","7","app","host","k","2026","1","7","Section","{metric}","{unit}","{value}"\n'
        for launch, metric, unit, value in rows
    ]
    return LONG + "".join(lines)


def test_a_metric_that_no_launch_has_is_no_column_of_text(tmp_path):
    """`n/a` for every launch is not one category of launches; in one launch of two it is a gap."""
    rows = [(0, "a.sum", "", "n/a"), (0, "b.sum", "", "N/A"), (0, "c.sum", "", "1"), (1, "a.sum", "", "n/a")]
    path = tmp_path / "x.csv"
    path.write_text(long_rows(*rows, (1, "b.sum", "", "5"), (1, "c.sum", "", "2")), encoding="utf-8")
    export = Read(path, tmp_path / "t")
    assert "a_sum" not in export.counters.column_names
    assert export.counters.column("b_sum").to_pylist() == [None, 5]
    assert export.counters.column("c_sum").to_pylist() == [1, 2]
    assert export.count("not_a_number") == 1


def test_a_wide_page_after_a_long_one_is_named_and_the_long_one_kept(tmp_path):
    path = tmp_path / "x.csv"
    wide = f'{IDENTITY},"a.sum"\n"","","","","","","","","ns"\n"0","7","app","host","k","2026","1","7","4"\n'
    path.write_text(long_rows((0, "a.sum", "", "1"), (1, "a.sum", "", "2")) + wide, encoding="utf-8")
    export = Read(path, tmp_path / "t")
    assert export.status == "partial"
    assert export.error["found"] == "another page, with other columns or units, begins in line 4; it is not read"
    assert export.counters.column("a_sum").to_pylist() == [1, 2]


def test_the_compute_capability_of_each_device_is_kept(tmp_path):
    header = '"ID","Process ID","Kernel Name","Device","CC","Section Name","Metric Name","Metric Unit","Metric Value"\n'
    rows = [(at, 9, "k(int)", at % 2, ("9.0", "7.5")[at % 2], "S", "m__x.sum", "", 5) for at in range(4)]
    export = Read(write(tmp_path / "l.csv", *rows, header=header), tmp_path / "t")
    found = [(row["device"], row["compute_capability"]) for row in export.devices.to_pylist()]
    assert found == [(0, "9.0"), (1, "7.5")]


def test_the_compute_capability_of_a_real_capture(data, tmp_path):
    export = Read(data / "ncu_csv/nsightful/copy_blocked.csv", tmp_path / "t")
    assert export.devices.column("compute_capability").to_pylist() == ["7.5"]


def test_what_rules_estimate_of_the_whole_run_time_is_kept(tmp_path):
    """Of two estimates for a launch the larger counts; a local one is of a part of the kernel's work."""
    header = LONG.replace("\n", ',"Rule Name","Rule Type","Rule Description",')
    header += '"Estimated Speedup Type","Estimated Speedup"\n'
    rules = [
        (0, "Stall", "OPT", "Waits. Often.", "global", "40.0"),
        (0, "Stall", "OPT", "Queues.", "global", "20.0"),
        (0, "Pipes", "OPT", "Under-used.", "local", "98.9"),
        (0, "Roofline", "INF", "3 % of FP32.", "", ""),
        (1, "Stall", "OPT", "Less.", "global", "10.0"),
    ]
    lines = [f'"{launch}","9","a","h","void k<2>(int)","t","1","7","S","Time","ns","5",\n' for launch in (0, 1, 2)]
    for launch, *cells in rules:
        lines.append(
            f'"{launch}","9","a","h","void k<2>(int)","t","1","7","Stats","","","","' + '","'.join(cells) + '"\n'
        )
    path = tmp_path / "x.csv"
    path.write_text(header + "".join(lines), encoding="utf-8")
    export = Read(path, tmp_path / "t")
    assert (export.status, export.counters.num_rows) == ("read", 3)
    (rule,) = export.capabilities["rules"]
    assert rule == {"kernel": "k", "rule": "Stall", "speedup": pytest.approx(0.5 / 3), "text": "Waits. Often."}


PAGE = """==PROF== Profiling "scale" - 0: 0%....50%....100% - 8 passes
size 4096
[77] app@127.0.0.1
  scale(float *, int) (4, 2, 1)x(64, 1, 1), Context 1, Stream 7, Device 0, CC 8.6
    Section: GPU Speed Of Light Throughput
    ----------------------- ----------- ------------
    Metric Name             Metric Unit Metric Value
    ----------------------- ----------- ------------
    Elapsed Cycles                cycle        3,268
    DRAM Throughput                   %        12.50
    Duration                         us         5.66
    ----------------------- ----------- ------------

    OPT   Est. Speedup: 92.5%
          The grid is too small: 8 blocks for 40
          multiprocessors. Enlarge it.

    Section: Launch Statistics
    ----------- --------------- ------------
    Metric Name     Metric Unit Metric Value
    ----------- --------------- ------------
    Registers Per Thread
    Threads              thread          512
    ----------- --------------- ------------

    OPT   Est. Local Speedup: 50%
          Occupancy.

  void sum<float, 8>(T1 *), 2023-Mar-17 14:00:06, Context 1, Stream 7
    Section: GPU Speed Of Light Throughput
    ----------------------- ----------- ------------
    Duration                         ms         1.50
    ----------------------- ----------- ------------
"""


@pytest.mark.parametrize("page", [PAGE, PAGE.partition("size 4096\n")[2]])
def test_a_page_that_is_printed_for_people_is_read(tmp_path, page):
    """`ncu ./app > page.txt`, and a part of it pasted without the messages of ncu."""
    path = tmp_path / "page.txt"
    path.write_text(page, encoding="utf-8")
    export = Read(path, tmp_path / "t")
    assert export.status == "read"
    rows = export.counters.to_pylist()
    assert [row["gpu_time"] for row in rows] == [5660.0, 1.5e6]
    assert (rows[0]["gpu_dram"], rows[1]["gpu_dram"]) == (0.125, None)
    assert [row["short_name"] for row in export.kernels.to_pylist()] == ["scale", "sum"]
    shapes = [(row["grid_x"], row["grid_y"], row["block_x"]) for row in export.configurations.to_pylist()]
    assert shapes == [(4, 2, 64), (None, None, None)]
    (rule,) = export.capabilities["rules"]
    assert rule["text"] == "The grid is too small: 8 blocks for 40 multiprocessors. Enlarge it."
    assert (rule["kernel"], rule["rule"], rule["speedup"]) == ("scale", "GPU Speed Of Light Throughput", 0.925)
    assert not list((tmp_path / "t").glob(".printed*"))


def test_a_printed_page_that_ends_with_a_rule_keeps_it(tmp_path):
    rule = "    Section: Occupancy\n    OPT   Est. Speedup: 90.07%\n          Too few warps.\n"
    path = tmp_path / "page.txt"
    path.write_text(PAGE + rule, encoding="utf-8")
    (_, last) = Read(path, tmp_path / "t").capabilities["rules"]
    assert (last["rule"], last["text"]) == ("Occupancy", "Too few warps.")

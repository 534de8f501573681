"""Traces that `nsys stats` prints in columns, its default, or as JSON and TSV: the same events as in its CSV. The columns
and the lines around them are those of published outputs of 2020 to 2024.
"""

import csv
import io
import json

import pytest
from reading import Read

from causeway.readers.containers.csv_lines import LINE_CHARS, PrintedTables

NAMES = "Start (ns),Duration (ns),CorrId,GrdX,GrdY,GrdZ,BlkX,BlkY,BlkZ,Reg/Trd,StcSMem (MB),DymSMem (MB),Bytes (MB)"
NAMES = [*NAMES.split(","), "Throughput (MB/s)", "SrcMemKd", "DstMemKd", "Device", "Ctx", "GreenCtx", "Strm", "Name"]
LONG = "void f<" + ", ".join(["(int)4"] * 20) + ">(float *)"
GPU = "NVIDIA A100-SXM4-40GB (0)"
ROWS = [
    [61984034576, 2940588676, 122, *[None] * 9, "12800.000", "0.000", "Pageable", "Device", GPU, 1, None, 7, "[CUDA memcpy HtoD]"],
    [64924944882, 1044, 123, 6250000, 2, 1, 256, 1, 1, 16, "0.001", "0.032", None, None, None, None, GPU, 1, None, 7, "add(float *, int)"],
    [64924945930, 900, 124, 7, 1, 1, 1024, 1, 1, 255, "0.000", "0.000", None, None, None, None, GPU, 1, None, 13, LONG],
    [64924945990, 1000, 125, 7, 1, 1, 64, 1, 1, 8, "0.000", "0.000", None, None, None, None, "NVIDIA A100-SXM4-40GB (1)", 2, None, 7, 'say "x"()'],
    [64924999999, 2001, 126, *[None] * 9, "0.004", "1.000", "Device", None, GPU, 1, None, 7, "[CUDA memset]"],
]  # fmt: skip
BEFORE = "app: 1,234 done\nGenerating '/tmp/nsys-report-73d9.qdstrm'\n[1/2] [====100%] report1.nsys-rep\n"
BEFORE += "[2/2] Executing 'cuda_gpu_trace' stats report\n\n"
TITLE = " ** CUDA GPU Trace (cuda_gpu_trace):\n\n"


def grouped(cell):
    """Return a cell as it is printed in columns: numbers with commas, texts cut at 100 characters."""
    if isinstance(cell, int):
        return f"{cell:,}"
    if cell is None:
        return ""
    if cell[0].isdigit():
        return f"{float(cell):,.3f}"
    return cell if len(cell) <= 100 else cell[:99] + "…"


def in_columns(names, rows):
    cells = [[grouped(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
    lines = [" " + "  ".join(name.center(width) for name, width in zip(names, widths, strict=True))]
    lines.append(" " + "  ".join("-" * width for width in widths))
    for row in cells:
        number = [not cell or cell[0].isdigit() for cell in row]
        lines.append(
            " "
            + "  ".join(
                cell.rjust(width) if right else cell.ljust(width)
                for cell, width, right in zip(row, widths, number, strict=True)
            )
        )
    return "\n".join(lines) + "\n"


def as_csv(delimiter=","):
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerows([NAMES, *ROWS])
    return text.getvalue()


def objects():
    return [dict(zip(NAMES, row, strict=True)) for row in ROWS]


FORMS = {
    "columns": BEFORE + TITLE + in_columns(NAMES, ROWS) + "\n\n",
    "columns of Windows": (TITLE + in_columns(NAMES, ROWS)).replace("\n", "\r\n"),
    "columns between summaries": " ** Sum (cuda_gpu_kern_sum):\n\n"
    + in_columns(["Time (%)", "Total Time (ns)", "Name"], [["50.0", 600, "k"]])
    + "\n"
    + TITLE
    + in_columns(NAMES, ROWS)
    + "\n ** Calls (cuda_api_sum):\n\n"
    + in_columns(["Time (%)", "Total Time (ns)", "Name"], [["50.0", 600, "cudaMalloc"]]),
    "JSON": json.dumps(objects()),
    "JSON with a line for each": "[" + ",\n".join(map(json.dumps, objects())) + "]\n",
    "JSON in many lines": json.dumps(objects(), indent=4) + "\n",
    "JSON below what is printed": BEFORE + TITLE + json.dumps(objects(), indent=1) + "\n",
    "JSON of texts": json.dumps([{name: str(one or "") for name, one in row.items()} for row in objects()]),
    "TSV": as_csv("\t"),
    "CSV": as_csv(),
}


def events(read):
    kernels = {row["kernel"]: row["name"] for row in read.kernels.to_pylist()}
    shapes = {row["configuration"]: row for row in read.configurations.to_pylist()}
    names = ("start_ns", "duration_ns", "device", "stream", "correlation")
    sizes = ("grid_x", "grid_y", "block_x", "registers_per_thread", "dynamic_shared_bytes")
    launches = []
    for row in read.launches.to_pylist():
        shape = shapes[row["configuration"]]
        launches.append((*map(row.get, names), *map(shape.get, sizes), kernels[shape["kernel"]]))
    copies = [tuple(map(row.get, (*names, "bytes", "copy_kind"))) for row in read.transfers.to_pylist()]
    return launches, copies


@pytest.mark.parametrize("form", FORMS)
def test_every_form_has_the_events_that_stand_in_it(form, tmp_path):
    path = tmp_path / "trace.txt"
    path.write_text(FORMS[form], encoding="utf-8", newline="")
    read = Read(path, tmp_path / "e")
    is_cut = form.startswith("columns")
    name = LONG[:99] + "…" if is_cut else LONG
    assert (read.status, read.capabilities["format"]) == ("read", "cupti")
    assert events(read) == (
        [
            (64924944882, 1044, 0, 7, 123, 6250000, 2, 256, 16, 32000, "add(float *, int)"),
            (64924945930, 900, 0, 13, 124, 7, 1, 1024, 255, 0, name),
            (64924945990, 1000, 1, 7, 125, 7, 1, 64, 8, 0, 'say "x"()'),
        ],
        [(61984034576, 2940588676, 0, 7, 122, 12_800_000_000, 1), (64924999999, 2001, 0, 7, 126, 4000, 255)],
    )
    assert read.count("cut_names") == int(is_cut)
    assert read.count("unreadable_rows") == read.count("unfinished_line") == 0
    assert {row["name"] for row in read.devices.to_pylist()} == {"NVIDIA A100-SXM4-40GB"}


def test_a_trace_of_2020_has_starts_in_seconds(tmp_path):
    text = """Using report1.sqlite export for stats reports.
Exporting [gputrace.py report1.sqlite] to console...

 Start(sec)  Duration(nsec)  CorrId  GrdX  BlkX  Bytes    SrcMemKd       Device        Ctx  Strm     Name
 ----------  --------------  ------  ----  ----  -----  --------  ------------------  ---  ----  ---------
   0.355442           5,120      57                 24  Device    A100-PCIE-40GB (0)    1     7  [CUDA memcpy DtoH]
   0.357341       1,400,294      63    40    64                   A100-PCIE-40GB (0)    1     7  k(int)
"""
    path = tmp_path / "trace.txt"
    path.write_text(text.replace("Bytes    SrcMemKd  ", "Bytes  SrcMemKd    "), encoding="utf-8")
    read = Read(path, tmp_path / "e")
    assert events(read) == (
        [(357341000, 1400294, 0, 7, 63, 40, None, 64, None, None, "k(int)")],
        [(355442000, 5120, 0, 7, 57, 24, 2)],
    )


def test_a_trace_that_was_trimmed_to_times_sizes_and_names_is_read(tmp_path):
    text = """ Start (ns)   Duration (ns)  GrdX   BlkX  Bytes (MB)  SrcMemKd  DstMemKd  Name
 -----------  -------------  -----  ----  ----------  --------  --------  ---------------------------
 431,725,635        374,915                    4.000  Pageable  Device    [CUDA memcpy Host-to-Device]
 432,174,631          4,160  3,907   256                                  add(float *)
"""
    path = tmp_path / "trace.txt"
    path.write_text(text, encoding="utf-8")
    read = Read(path, tmp_path / "e")
    launches, transfers = events(read)
    assert launches == [(432174631, 4160, 0, 0, None, 3907, None, 256, None, None, "add(float *)")]
    assert transfers == [(431725635, 374915, 0, 0, None, 4_000_000, 1)]


def test_a_cut_row_and_one_that_fits_no_column_are_counted(tmp_path):
    whole = TITLE + in_columns(NAMES, ROWS)
    lines = whole.splitlines(keepends=True)
    lines.insert(5, " WARNING: something that the program printed in between, longer than a column\n")
    path = tmp_path / "trace.txt"
    path.write_text("".join(lines), encoding="utf-8")
    read = Read(path, tmp_path / "e")
    assert (read.launches.num_rows, read.transfers.num_rows, read.count("unreadable_rows")) == (3, 2, 1)
    last = lines[-1]
    for kept in (4, last.index("2,001") + 3, last.index("A100")):  # within start, duration and device
        path.write_text(whole[: len(whole) - len(last) + kept], encoding="utf-8")
        read = Read(path, tmp_path / f"cut {kept}")
        assert (read.launches.num_rows, read.transfers.num_rows, read.count("truncated")) == (3, 1, 1)
    text = FORMS["JSON in many lines"]
    path.write_text(text[: text.rindex("126")], encoding="utf-8")
    read = Read(path, tmp_path / "cut JSON")
    assert (read.launches.num_rows, read.transfers.num_rows, read.count("truncated")) == (3, 1, 1)


def test_a_long_list_in_one_line_is_held_a_part_at_a_time():
    made = "[" + ",".join(f'{{"a": {at}, "b": "{"x" * 90}"}}' for at in range(100_000)) + "]"
    assert len(made) > 2 * LINE_CHARS
    text = PrintedTables(io.StringIO(made))
    lines = list(iter(text.readline, ""))
    assert lines[0] == "a,b\n"
    assert [line.split(",")[0] for line in lines[1:]] == [str(at) for at in range(100_000)]

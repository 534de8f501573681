"""A quotation mark that is never closed: it costs its own row, and says where it stands."""

import csv
import io
import os
import subprocess
import sys

import pytest
from layouts import LAYOUTS
from reading import Read

from causeway.readers.containers.csv_lines import MOST_LINES, MendedLines
from support import ROOT

ROWS = 2000
OPENS = 500
CLOSES = 1500
"""Rows, from 0, in which a quotation opens and where the next quotation mark stands."""


def table(path, marks, rows=ROWS):
    """Write a table whose rows `marks` have other text; return its path."""
    lines = [
        "y,kernel,order,x",
        *(marks.get(at, f"{50 + at % 7}.5,{'ab'[at % 2]},{at},{at % 5}") for at in range(rows)),
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "marks",
    [
        {OPENS: '51.0,"a,500,2'},
        {OPENS: '51.0,"a,500,2', CLOSES: '51.0,b",1500,2'},
        {OPENS: '51.0,a,500,"2', CLOSES: '51.0,b,1500,"2"'},
    ],
)
def test_a_table_loses_the_row_of_the_quotation_alone(marks, tmp_path):
    read = Read(table(tmp_path / "t.csv", marks), tmp_path / "e")
    assert (read.status, read.counters.num_rows) == ("partial", ROWS - 1)
    assert read.error["found"].startswith(
        f"a quotation opens in line {OPENS + 2} and has no end within {MOST_LINES} lines"
    )
    assert read.count("unreadable_rows") == 1
    assert f"line {OPENS + 2}" in read.issue("unreadable_rows")["detail"]
    assert read.capabilities["left_out"] == {"rows": 1, "of": ROWS}
    lost = 50 + OPENS % 7 + 0.5
    whole = [50 + at % 7 + 0.5 for at in range(ROWS)]
    if CLOSES in marks:
        whole[CLOSES] = 51.0
    assert sum(read.counters.column("y").to_pylist()) == pytest.approx(sum(whole) - lost)


def test_names_of_a_few_lines_are_names(tmp_path):
    path = table(tmp_path / "t.csv", {7: '51.0,"a ""first""\nand second",7,2'}, rows=20)
    read = Read(path, tmp_path / "e")
    assert (read.status, read.counters.num_rows, read.count("unreadable_rows")) == ("read", 20, 0)
    assert 'a "first" and second' in read.kernels.column("name").to_pylist()


def test_where_all_names_are_quoted_no_two_rows_are_joined(tmp_path):
    rows = [f'{at}.5,"k<{at % 2}>",{at},1' for at in range(400)]
    rows[100] = '100.5,"k<0>,100,1'
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["y,kernel,order,x", *rows]) + "\n")
    read = Read(path, tmp_path / "e")
    assert (read.counters.num_rows, read.count("unreadable_rows")) == (399, 1)
    assert read.kernels.column("name").to_pylist() == ["k<0>", "k<1>"]


def spoiled(path, mark):
    """Put an unclosed quotation mark into the middle row of a file of at least 40 rows; return its line."""
    lines = path.read_text(encoding="utf-8").splitlines()
    at = len(lines) // 2
    lines[at] = mark(lines[at])
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return at + 1


@pytest.mark.parametrize(
    ("name", "file", "kind"),
    [
        ("rocprof results.csv", "results.csv", "launches"),
        ("rocprofv3 csv", "out/4242_kernel_trace.csv", "launches"),
        ("cupti dump", "kernels.csv", "launches"),
        ("table.csv", "*.csv", "counters"),
    ],
)
def test_other_readers_lose_one_row_too(name, file, kind, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    path = LAYOUTS[name](folder, "kernel(int)", 400)
    whole = getattr(Read(path, tmp_path / "whole"), kind).num_rows
    (spoilt,) = folder.glob(file)
    line = spoiled(
        spoilt,
        lambda text: text.replace("kernel(int)", '"kernel(int)', 1) if '"' not in text else text.replace('",', ",", 1),
    )
    read = Read(path, tmp_path / "e")
    assert getattr(read, kind).num_rows == whole - 1
    assert read.count("unreadable_rows") == 1
    assert (
        str(line) in read.issue("unreadable_rows")["detail"] or "quotation" in read.issue("unreadable_rows")["detail"]
    )


def test_metrics_in_long_form_lose_one_value(tmp_path):
    (tmp_path / "in").mkdir()
    path = LAYOUTS["ncu long"](tmp_path / "in", "kernel(int)", 40)
    whole = Read(path, tmp_path / "whole")
    line = spoiled(path, lambda text: text[: text.rindex('"')])
    read = Read(path, tmp_path / "e")
    assert (whole.status, read.status) == ("read", "partial" if "within" in str(read.error) else "read")
    assert read.count("unreadable_rows") == 1
    assert read.counters.num_rows == whole.counters.num_rows
    assert f"line {line}" in read.issue("unreadable_rows")["detail"]


def test_a_table_of_strings_saved_as_csv_is_read_in_part(tmp_path):
    folder = tmp_path / "x"
    folder.mkdir()
    (folder / "StringIds.csv").write_text("id,value\n1,k\n")
    rows = [f"{100 * at},{100 * at + 7},0,7,1," for at in range(200)]
    rows[50] += '"note'
    rows[150] += 'note"'
    (folder / "CUPTI_ACTIVITY_KIND_KERNEL.csv").write_text(
        "\n".join(["start,end,deviceId,streamId,demangledName,note", *rows]) + "\n"
    )
    read = Read(folder, tmp_path / "e")
    assert (read.status, read.launches.num_rows) == ("partial", 199)
    assert "a quotation opens" in read.error["found"]
    assert "line 52" in read.error["found"]


@pytest.mark.parametrize("rows", range(1, 2 * MOST_LINES))
def test_mended_lines_against_the_csv_module(rows):
    """A quotation of up to `MOST_LINES` lines is one; a longer one that swallows rows costs its first line."""
    text = 'a,b\n1,"x' + "\nx,5" * (rows - 1) + '"\n3,4\n'
    lines = MendedLines(iter(io.StringIO(text, newline="")), ",", 2)
    found = list(csv.reader(lines))
    if rows <= MOST_LINES:
        assert found == list(csv.reader(io.StringIO(text, newline="")))
        assert (lines.left_out, lines.first_long) == (0, 0)
    else:
        assert (lines.left_out, lines.first, lines.first_long) == (1, 2, 2)
        assert ["3", "4"] in found


def test_a_text_of_many_lines_that_are_no_rows_is_one_cell():
    text = 'id,value\n1,"' + "line, and more, of a text\n" * 200 + '"\n2,x\n'
    lines = MendedLines(iter(io.StringIO(text, newline="")), ",", 2)
    assert list(csv.reader(lines)) == list(csv.reader(io.StringIO(text, newline="")))
    assert lines.left_out == 0


STOPPED = """
import sys, time
from pathlib import Path
from pyarrow.csv import ReadOptions
from causeway.readers.containers.csv_lines import MendedCsv, arrow_batches

class Slow(MendedCsv):
    reads = 0

    def read(self, size=-1):
        time.sleep(0.3 if self.reads else 0)
        self.reads += 1
        return super().read(size)

try:
    for batch in arrow_batches(Slow(Path(sys.argv[1]), ",", 2), ReadOptions(use_threads=False, block_size=1 << 16)):
        raise ValueError
except ValueError:
    print(batch.num_rows > 0)
"""


def test_a_file_that_is_read_no_further_does_not_abort_the_process(tmp_path):
    """Arrow reads the next block meanwhile, in a thread that runs Python."""
    path = tmp_path / "t.csv"
    path.write_text("a,b\n" + "1,2\n" * 200_000, encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(ROOT / "scripts")}
    done = subprocess.run(
        [sys.executable, "-c", STOPPED, path], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")

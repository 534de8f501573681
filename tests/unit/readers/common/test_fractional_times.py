"""Times that are printed with a fraction of their unit, in every layout: as means of several passes have it."""

import csv
import re
import sqlite3

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from layouts import LAYOUTS
from reading import Read

TIME_COLUMNS = {"start", "end", "start_timestamp", "end_timestamp", "beginns", "endns", "dispatchns", "completens"}
IN_JSON = re.compile(r'("(?:start_timestamp|end_timestamp|startNs|endNs)" ?: ?"?)(\d+)')
TABLES = ("launches", "transfers", "calls", "ranges")
QUARTER = ".25"
"""It does not change a time that is rounded to whole nanoseconds."""


def with_fractions(path):
    """Put a quarter of a nanosecond behind the times in an export's files; return how many values were changed."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return sum(_change(file) for file in files if file.is_file())


def _change(file):
    head = file.read_bytes()[:16]
    if head.startswith(b"SQLite"):
        return _in_database(file)
    if head.startswith(b"PAR1"):
        return _in_parquet(file)
    text = file.read_text(encoding="utf-8")
    if text.lstrip().startswith("{"):
        text, count = IN_JSON.subn(rf"\g<1>\g<2>{QUARTER}", text)
        file.write_text(text, encoding="utf-8")
        return count
    rows = list(csv.reader(text.splitlines()))
    places = [at for at, name in enumerate(rows[0]) if name.lower() in TIME_COLUMNS]
    for row in rows[1:]:
        for at in places:
            row[at] += QUARTER
    with file.open("w", newline="", encoding="utf-8") as handle:
        csv.writer(handle, quoting=csv.QUOTE_ALL).writerows(rows)
    return len(places) * (len(rows) - 1)


def _in_database(file):
    count = 0
    connection = sqlite3.connect(file)
    for (table,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        for column in [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]:
            if column.lower() in TIME_COLUMNS:
                change = f'UPDATE "{table}" SET "{column}" = "{column}" || ? WHERE typeof("{column}") = \'integer\''
                count += connection.execute(change, (QUARTER,)).rowcount
    connection.commit()
    connection.close()
    return count


def _in_parquet(file):
    table = pq.read_table(file)
    count = 0
    for at, name in enumerate(table.column_names):
        if name in ("start", "end") and pa.types.is_integer(table.schema.field(name).type):
            count += table.num_rows
            table = table.set_column(at, name, pc.add(table.column(name).cast(pa.float64()), 0.25))
    pq.write_table(table, file)
    return count


def times(read):
    return {
        table: getattr(read, table).select(["start_ns", "duration_ns"]).to_pydict()
        for table in TABLES
        if table in read.names
    }


@pytest.mark.parametrize(
    "name",
    [
        "rocprof results.csv",
        "rocprof folder",
        "rocprof results.db",
        "rocprofiler-compute",
        "rocprofv3 csv",
        "rocprofv3.json",
        "rocpd 3",
        "rocpd 4",
        "rpd",
        "nsys.sqlite",
        "nsys parquetdir",
        "nsys.jsonl",
        "nvprof database",
        "cupti dump",
    ],
)
def test_times_with_a_fraction_are_times(name, tmp_path):
    (tmp_path / "in").mkdir()
    path = LAYOUTS[name](tmp_path / "in", "kernel(int)", 12)
    whole = Read(path, tmp_path / "whole")
    assert with_fractions(path) > 20
    read = Read(path, tmp_path / "fractions")
    assert (read.status, whole.status) == ("read", "read")
    assert times(read) == times(whole)
    assert times(read)["launches"]
    assert [read.count(kind) for kind in ("not_whole", "out_of_range", "not_a_number", "no_time")] == [0, 0, 0, 0]


def test_a_fraction_where_it_has_no_meaning_is_not_rounded(tmp_path):
    (tmp_path / "in").mkdir()
    path = LAYOUTS["cupti dump"](tmp_path / "in", "kernel(int)", 3)
    lines = path.read_text().splitlines()
    cells = lines[1].split(",")
    cells[3:5] = ["7.5", "4.0"]  # the stream, and a correlation as data frames print it
    path.write_text("\n".join([lines[0], ",".join(cells), *lines[2:]]) + "\n")
    read = Read(path, tmp_path / "e")
    assert read.launches.column("stream").to_pylist() == [0, 7, 7]
    assert read.launches.column("correlation").to_pylist() == [4, 1, 2]
    assert (read.count("not_whole"), read.count("out_of_range")) == (1, 0)
    assert "whole number" in read.issue("not_whole")["detail"]

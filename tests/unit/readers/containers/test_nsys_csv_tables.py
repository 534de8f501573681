"""The tables of Nsight Systems' database, saved as CSV with the table of strings beside them: read as the database."""

import csv
import sqlite3

import pytest
from reading import Read

REPORTS = ["jax-toolbox-cuda-graphs/pdl_2p2c_gh200", "nsys-ai/h100_2gpu_1s", "pipit/saxpy-mpi-cuda_nsys_perlmutter0"]


def saved(path, folder, fraction=False, delimiter=","):
    """Save the tables of a database as CSV, each under its name; with `fraction` as pandas saves integers of which some
    are absent: `11.0`.
    """
    folder.mkdir()
    with sqlite3.connect(f"file:{path}?mode=ro", uri=True) as database:
        database.text_factory = lambda text: text.decode("utf-8", "replace")
        for (table,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            cursor = database.execute(f'SELECT * FROM "{table}"')
            rows = cursor.fetchall()
            for at in range(len(cursor.description)):
                cells = [row[at] for row in rows]
                if fraction and None in cells and all(isinstance(cell, int | None) for cell in cells):
                    rows = [(*row[:at], None if row[at] is None else f"{row[at]}.0", *row[at + 1 :]) for row in rows]
            with open(folder / f"{table}.csv", "w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file, delimiter=delimiter)
                writer.writerow([column[0] for column in cursor.description])
                writer.writerows(rows)
    database.close()
    return folder


def content(read):
    return {name: getattr(read, name).to_pylist() for name in sorted(read.names)}


@pytest.mark.parametrize(
    "report", [pytest.param(name, marks=pytest.mark.slow if "h100" in name else ()) for name in REPORTS]
)
@pytest.mark.parametrize(("fraction", "delimiter"), [(False, ","), (True, ";")], ids=["plain", "as pandas saves"])
def test_a_folder_of_csv_files_gives_what_the_database_gives(report, fraction, delimiter, data, tmp_path):
    path = data / "nsys_sqlite" / f"{report}.sqlite"
    base = Read(path, tmp_path / "base")
    read = Read(saved(path, tmp_path / "csv", fraction, delimiter), tmp_path / "e")
    assert (read.status, read.capabilities["format"]) == ("read", "nsys")
    assert read.capabilities["format_version"] == base.capabilities["format_version"]
    assert {issue["kind"]: issue["count"] for issue in read.capabilities["issues"]} == {
        issue["kind"]: issue["count"] for issue in base.capabilities["issues"]
    }
    assert content(read) == content(base)


def test_names_are_texts_whatever_they_look_like(tmp_path):
    """Names of digits, with a fraction of 0, a comma, a quotation mark, a line end, and bytes that are no UTF-8."""
    folder = tmp_path / "x"
    folder.mkdir()
    names = [b"007", b"11.0", b'"k<1, 2>(""a"")"', b'"two\nlines"', b"caf\xe9"]
    strings = b"\xef\xbb\xbfid,value\n" + b"".join(b"%d,%s\n" % (at, name) for at, name in enumerate(names))
    (folder / "StringIds.csv").write_bytes(strings)
    kernels = "start,end,deviceId,streamId,correlationId,demangledName\n"
    kernels += "".join(f"{100 * at},{100 * at + 7},0,7,,{at}\n" for at in range(len(names)))
    (folder / "CUPTI_ACTIVITY_KIND_KERNEL.csv").write_text(kernels)
    (folder / "notes.csv").write_text("a,b\n1\n2,3,4\n")
    read = Read(folder, tmp_path / "e")
    assert read.status == "read"
    expected = ["007", "11.0", 'k<1, 2>("a")', "two lines", "caf\ufffd"]
    assert sorted(read.kernels.column("name").to_pylist()) == sorted(expected)


def test_rows_of_another_length_are_damage_after_the_others(tmp_path):
    folder = tmp_path / "x"
    folder.mkdir()
    (folder / "StringIds.csv").write_text("id,value\n1,k\n")
    kernels = "start,end,deviceId,streamId,demangledName\n100,107,0,7,1\n200,2\n300,307,0,7,1\n400,4"
    (folder / "CUPTI_ACTIVITY_KIND_KERNEL.csv").write_text(kernels)
    read = Read(folder, tmp_path / "e")
    assert (read.status, read.error["found"]) == (
        "partial",
        "table CUPTI_ACTIVITY_KIND_KERNEL is damaged after 2 rows (not valid)",
    )
    assert read.launches.column("start_ns").to_pylist() == [100, 300]

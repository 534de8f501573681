"""A database's schema is a program of its author: none of it runs. Each of these ran for ever, or took all memory."""

import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import pytest
from layouts import LAYOUTS
from layouts.rocpd_samples import write_rocpd
from layouts.rocprofv3_samples import make_run
from reading import Read

from causeway.core.errors import ExportError
from causeway.readers.containers import sqlite_database
from causeway.readers.containers.sqlite_names import sqlite_tables

KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
ENDLESS = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT n AS {columns} FROM r WHERE n < 0"
HUGE = "SELECT 1 AS id, zeroblob(300000000) AS value"


def hostile(tmp_path, *statements):
    path = LAYOUTS["nsys.sqlite"](tmp_path, "k", 24)
    with closing(sqlite3.connect(path)) as base:
        for statement in statements:
            base.execute(statement)
        base.commit()
    return path


@pytest.mark.parametrize(
    "statements",
    [
        [f"ALTER TABLE {KERNEL} RENAME TO other", f"CREATE VIEW {KERNEL} AS " + ENDLESS.format(columns="start")],
        ["DROP TABLE META_DATA_EXPORT", "CREATE VIEW META_DATA_EXPORT AS " + ENDLESS.format(columns="name")],
        ["ALTER TABLE StringIds RENAME TO other", f"CREATE VIEW StringIds AS {HUGE}"],
        ["DROP TABLE TARGET_INFO_GPU", "CREATE VIEW TARGET_INFO_GPU AS " + ENDLESS.format(columns="id")],
    ],
)
def test_views_are_never_run(tmp_path, statements):
    began = time.process_time()
    export = Read(hostile(tmp_path, *statements), tmp_path / "t")
    assert export.status in ("read", "partial", "refused")
    assert time.process_time() - began < 5


def test_views_and_virtual_tables_are_no_tables(tmp_path):
    path = hostile(tmp_path, "CREATE VIEW v AS SELECT 1 AS x", "CREATE VIRTUAL TABLE w USING fts5(x)")
    assert not {"v", "w"} & set(sqlite_tables(path))
    with closing(sqlite_database.SqliteExport(path, "s")) as export:
        assert KERNEL in export.tables
        assert not {"v", "w"} & set(export.tables)


def test_a_value_longer_than_any_name_ends_the_table_and_not_the_process(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite_database, "LONGEST_VALUE", 10_000)
    path = hostile(tmp_path, "CREATE TABLE t (id INTEGER, value TEXT)", "INSERT INTO t VALUES (1, zeroblob(20000))")
    with closing(sqlite_database.SqliteExport(path, "s")) as export:
        assert export.texts("t", "id", "value", [1]) == {}
        assert export.rows("t", ["id"]) == [(1,)]


def test_a_query_without_rows_ends_after_a_number_of_steps(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite_database, "STEPS_PER_CALL", 1000)
    monkeypatch.setattr(sqlite_database, "MOST_STEPS", 100_000)
    with closing(sqlite_database.SqliteExport(hostile(tmp_path), "s")) as export:
        with pytest.raises(ExportError, match="interrupted"):
            list(export._slowly(ENDLESS.format(columns="x"), "t", ["x"], set(), 0))
        assert export.rows("StringIds", ["id"])  # each question counts anew


def test_the_schema_is_not_trusted(tmp_path):
    with closing(sqlite_database.SqliteExport(hostile(tmp_path), "s")) as export:
        assert export._connection.execute("PRAGMA trusted_schema").fetchone() == (0,)


@pytest.mark.parametrize("kind", ["VIRTUAL", "STORED"])
def test_a_generated_column_of_huge_values_is_bounded(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(sqlite_database, "LONGEST_VALUE", 10_000)
    column = f"value TEXT GENERATED ALWAYS AS (zeroblob(id * 20000)) {kind}"
    path = hostile(tmp_path, f"CREATE TABLE t (id INTEGER, {column})", "INSERT INTO t (id) VALUES (1)")
    with closing(sqlite_database.SqliteExport(path, "s")) as export:
        assert export.texts("t", "id", "value", [1]) == {}
        assert export.rows("t", ["id"]) == [(1,)]


def test_triggers_do_not_run_and_the_file_stays_as_it_is(tmp_path):
    path = hostile(
        tmp_path,
        "CREATE TABLE hit (id INTEGER)",
        *(
            f"CREATE TRIGGER {event}_k {event} ON {KERNEL} BEGIN INSERT INTO hit VALUES (1); END"
            for event in ("INSERT", "UPDATE", "DELETE")
        ),
    )
    before = path.read_bytes()
    assert Read(path, tmp_path / "t").status == "read"
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_refused_with_what_sqlite_says_of_it(tmp_path):
    path = tmp_path / "prose.sqlite"
    path.write_bytes(b"no database, but longer than the hundred bytes of a header\n" * 9)
    with pytest.raises(ExportError, match=r"prose\.sqlite: the database cannot be read \(file is not a database\)"):
        sqlite_database.SqliteExport(path, "prose.sqlite")


def dispatches_of_one_event(tmp_path, rows, key):
    """Return a rocpd database whose launches, samples and counters are all of event 1, with a key as declared."""
    path = write_rocpd(make_run(n=rows), tmp_path / "x.db", suffix="")
    with closing(sqlite3.connect(path)) as base:
        for table, columns in (
            ("rocpd_event", f"id {key}, stack_id"),
            ("rocpd_sample", "track_id, timestamp, event_id"),
        ):
            base.execute(f"DROP TABLE {table}")
            base.execute(f"CREATE TABLE {table} ({columns})")
        base.execute("UPDATE rocpd_kernel_dispatch SET event_id = 1")
        base.execute("UPDATE rocpd_pmc_event SET event_id = 1")
        base.executemany("INSERT INTO rocpd_event VALUES (1, ?)", [(at,) for at in range(rows)])
        base.executemany("INSERT INTO rocpd_sample VALUES (1, ?, 1)", [(10_000_000 + at,) for at in range(rows)])
        base.commit()
    return path


@pytest.mark.parametrize("key", ["INTEGER", "", "TEXT"])
def test_rows_that_share_an_id_do_not_multiply_those_joined_with_them(tmp_path, key):
    export = Read(dispatches_of_one_event(tmp_path, 200, key), tmp_path / "t")
    assert export.launches.num_rows == 200
    counted = export.capabilities["rows_in"]
    assert counted["rocpd_sample"] == counted["rocpd_pmc_event"] > 400  # each counter's value of an event is a sample's
    assert export.count("repeated_ids") == 199 + 199
    assert export.issue("repeated_ids")["severity"] == "caution"


def test_a_join_that_compares_every_row_with_every_other_is_ended(tmp_path, monkeypatch):
    """An untyped key can have no index that SQLite makes for a comparison with integers."""
    monkeypatch.setattr(sqlite_database, "STEPS_PER_CALL", 1000)
    monkeypatch.setattr(sqlite_database, "MOST_STEPS", 200_000)
    path = write_rocpd(make_run(n=2000), tmp_path / "x.db", suffix="")
    with closing(sqlite3.connect(path)) as base:
        base.execute("DROP TABLE rocpd_event")
        base.execute("CREATE TABLE rocpd_event (id, stack_id)")
        base.executemany("INSERT INTO rocpd_event VALUES (?, 1)", [(at,) for at in range(5000)])
        base.execute("ALTER TABLE rocpd_kernel_dispatch RENAME TO old")
        columns = [name for _, name, *_ in base.execute("PRAGMA table_info(old)")]
        base.execute(f"CREATE TABLE rocpd_kernel_dispatch ({', '.join(f'{name} INTEGER' for name in columns)})")
        base.execute("INSERT INTO rocpd_kernel_dispatch SELECT * FROM old")
        base.commit()
    export = Read(path, tmp_path / "t")
    assert "table rocpd_kernel_dispatch is damaged after" in export.issue("truncated")["detail"]
    assert export.capabilities["rows_in"]["rocpd_kernel_dispatch"] < 100


@pytest.mark.parametrize("version", ["3.0.3", "4.1.0"])
def test_joins_of_an_ordinary_database_take_the_fast_way(tmp_path, monkeypatch, version):
    def slowly(*_):
        raise AssertionError("not through ADBC")

    monkeypatch.setattr(sqlite_database.SqliteExport, "_slowly", slowly)
    export = Read(write_rocpd(make_run(), tmp_path / "x.db", version=version), tmp_path / "t")
    assert (export.status, export.samples.num_rows, export.count("repeated_ids")) == ("read", 5, 0)


def test_details_of_rpd_that_share_an_id_do_not_multiply_operations(tmp_path):
    path = LAYOUTS["rpd"](tmp_path, "k", 50)
    with closing(sqlite3.connect(path)) as base:
        base.execute("CREATE TABLE rocpd_kernelapi (api_ptr_id INTEGER PRIMARY KEY, gridX INTEGER)")
        base.execute("INSERT INTO rocpd_kernelapi SELECT id, 7 FROM rocpd_api")
        base.commit()
    whole = Read(path, tmp_path / "t")
    with closing(sqlite3.connect(path)) as base:
        for table in ("rocpd_api", "rocpd_kernelapi"):
            base.execute(f"CREATE TABLE copy AS SELECT * FROM {table} UNION ALL SELECT * FROM {table}")
            base.execute(f"DROP TABLE {table}")
            base.execute(f"ALTER TABLE copy RENAME TO {table}")
        base.commit()
    twice = Read(path, tmp_path / "u")
    assert twice.launches.equals(whole.launches)
    assert twice.configurations.equals(whole.configurations)
    assert twice.count("repeated_ids") > 50


@pytest.mark.parametrize("form", ["nsys", "rocpd"])
def test_names_of_tables_that_are_reported_are_short_and_printable(tmp_path, form):
    path = tmp_path / "x.db"
    with closing(sqlite3.connect(path)) as base:
        for number in range(3):
            base.execute(f'CREATE TABLE "\x1b[31m{number}{"n" * 5000}" (a)')
        if form == "rocpd":
            base.execute('CREATE TABLE "rocpd_strange" (a)')
        base.commit()
    error = Read(path, tmp_path / "t", form=form).error
    assert "\x1b" not in error["found"]
    assert len(error["found"]) < 400


def graph_of_pages(path, table, levels, cells, first_row=1):
    """Let the pages of a table, which has one leaf, be `levels` interior pages of `cells` + 1 pointers to one next page
    each: it has the leaf's rows (cells + 1) ** levels times. Return the number of the leaf's rows.
    """
    with closing(sqlite3.connect(path)) as base:
        rows = base.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        if first_row > 1:
            base.execute(f"UPDATE {table} SET rowid = rowid + {first_row}")
        base.commit()
        base.execute("VACUUM")
        root, size = (
            base.execute(query).fetchone()[0]
            for query in (f"SELECT rootpage FROM sqlite_master WHERE name = '{table}'", "PRAGMA page_size")
        )
    data = bytearray(path.read_bytes())
    first = len(data) // size + 1
    leaf = bytes(data[(root - 1) * size : root * size])
    assert leaf[0] == 0x0D

    def interior(child):
        page = bytearray(size)
        page[0] = 5
        page[3:5] = cells.to_bytes(2, "big")
        page[8:12] = child.to_bytes(4, "big")
        at = size
        for number in range(cells):
            cell = child.to_bytes(4, "big") + bytes([1 + number % 100])
            at -= len(cell)
            page[at : at + len(cell)] = cell
            page[12 + 2 * number : 14 + 2 * number] = at.to_bytes(2, "big")
        page[5:7] = at.to_bytes(2, "big")
        return bytes(page)

    data[(root - 1) * size : root * size] = interior(first)
    for page in [*(interior(first + number + 1) for number in range(levels - 1)), leaf]:
        data += page
    data[28:32] = (len(data) // size).to_bytes(4, "big")
    path.write_bytes(data)
    return rows


@pytest.mark.parametrize("first_row", [1, 500_000])
@pytest.mark.parametrize(("levels", "cells"), [(1, 1), (2, 30), (12, 400)])
@pytest.mark.parametrize("declared", ["", " TEXT"])
def test_pages_that_are_met_again_are_not_read_again(tmp_path, levels, cells, first_row, declared):
    path = hostile(tmp_path)
    with closing(sqlite3.connect(path)) as base:  # with a text beside the numbers the pages are SQLite's to read
        base.execute(f"CREATE TABLE few AS SELECT * FROM {KERNEL} LIMIT 10")
        base.execute(f"DROP TABLE {KERNEL}")
        base.execute(f"ALTER TABLE few RENAME TO {KERNEL}")
        base.execute(f"ALTER TABLE {KERNEL} ADD COLUMN more{declared}")
        base.execute("DROP TABLE CUPTI_ACTIVITY_KIND_MEMCPY")
        base.commit()
    rows = graph_of_pages(path, KERNEL, levels, cells, first_row)
    began = time.process_time()
    export = Read(path, tmp_path / "t")
    assert time.process_time() - began < 20
    assert export.status != "read" or export.launches.num_rows == rows
    if (cells + 1) ** levels > 2:
        assert "pages of it are met more than once" in export.error["found"]
        assert export.status == "refused" or export.launches.num_rows == rows


INTERRUPTED = """
import os, sqlite3
connection = sqlite3.connect("x.sqlite")
connection.execute("PRAGMA cache_size = 5")  # so that the unfinished change reaches the file
for rows, done in ((400, True), (900, False)):
    connection.execute("DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL")
    launches = [(10 * at, 10 * at + 5, 0, 7, at, 1) for at in range(rows)]
    connection.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, ?, ?, ?)", launches)
    if done:
        connection.commit()
os._exit(1)
"""


def test_a_change_that_its_writer_did_not_finish_is_not_read(tmp_path):
    path = tmp_path / "x.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(
        "CREATE TABLE StringIds (id, value); INSERT INTO StringIds VALUES (1, 'k(int)');"
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, correlationId, demangledName);"
    )
    connection.close()
    subprocess.run([sys.executable, "-c", INTERRUPTED], cwd=tmp_path, check=False)
    assert (tmp_path / "x.sqlite-journal").stat().st_size > 0
    read = Read(path, tmp_path / "tables")
    assert read.status == "refused"
    assert "stopped within a change of it" in read.error["found"]
    assert "open a copy with sqlite3" in read.error["advice"]
    for name in ("x.sqlite", "x.sqlite-journal"):
        shutil.copy(tmp_path / name, tmp_path / f"copy_{name}")
    connection = sqlite3.connect(tmp_path / "copy_x.sqlite")  # does what is advised
    connection.execute("SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchone()
    connection.close()
    assert Read(tmp_path / "copy_x.sqlite", tmp_path / "mended").launches.num_rows == 400


def test_the_steps_for_all_ids_of_a_table_are_bounded_together(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite_database, "STEPS_PER_CALL", 1000)
    monkeypatch.setattr(sqlite_database, "MOST_STEPS", 100_000)
    numbers = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 40000) SELECT n, 'x' FROM r"
    path = hostile(tmp_path, "CREATE TABLE t (id TEXT, value TEXT)", f"INSERT INTO t {numbers}")
    with closing(sqlite_database.SqliteExport(path, "s")) as export:
        calls = []
        watch = export._watch
        export._connection.set_progress_handler(lambda: calls.append(1) or watch(), 1000)
        assert export.texts("t", "id", "value", range(-200, 0)) == {}
        assert len(calls) <= 100 + 1 + 200

"""A database's schema is a program of its author: none of it runs. Each of these ran for ever, or took all memory."""

import sqlite3
import time
from contextlib import closing

import pytest
from layouts import LAYOUTS
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

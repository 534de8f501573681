"""Rows of a database as readers get them, whatever their number and their types; and how much of a cut file is missing."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest

from causeway.core.errors import ExportError
from causeway.readers.common.constants import NULL
from causeway.readers.containers import sqlite_database
from causeway.readers.containers.sqlite_database import SqliteExport, missing_pages


def database(path, *statements, rows=(), page=4096):
    with closing(sqlite3.connect(path, isolation_level=None)) as base:
        base.execute(f"PRAGMA page_size = {page}")
        for statement in statements:
            base.execute(statement)
        if rows:
            base.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(rows[0]))})", rows)
    return path


def slowly(path, query="SELECT a, b FROM t"):
    """Return the batches that sqlite3 gives and what it says of the end."""
    found = []
    with closing(SqliteExport(path, "s")) as export:
        try:
            for bad, batch in export._slowly(query, "t", ["a", "b"], {"b"}, 0):
                found.append((bad.total(), batch["a"].tolist(), batch["b"].to_pylist()))
        except ExportError as error:
            return found, error.found
    return found, None


@pytest.mark.parametrize("n", [0, 1, 3, 4, 5, 8, 9])
def test_every_row_comes_once_in_batches_of_one_size(tmp_path, monkeypatch, n):
    monkeypatch.setattr(sqlite_database, "BATCH_ROWS", 4)
    rows = [(k, f"text {k}") for k in range(n)]
    found, error = slowly(database(tmp_path / "x", "CREATE TABLE t (a, b)", rows=rows))
    assert error is None
    assert [len(batch[1]) for batch in found] == [4] * (n // 4) + [n % 4] * (n % 4 > 0)
    assert [value for batch in found for value in batch[1]] == list(range(n))
    assert [value for batch in found for value in batch[2]] == [f"text {k}".encode() for k in range(n)]


def test_values_of_other_types_are_counted_and_text_is_bytes(tmp_path):
    rows = [(1, "x"), (None, None), ("7", b"\xff"), ("word", 5), (2.5, 1.5), (2.0, "é")]
    ((bad, integers, texts),), error = slowly(database(tmp_path / "x", "CREATE TABLE t (a, b)", rows=rows))
    assert error is None
    assert integers == [1, NULL, 7, NULL, NULL, 2]
    assert bad == 2
    assert texts == [b"x", None, b"\xff", b"5", b"1.5", "é".encode()]


def test_a_query_that_cannot_be_asked_names_the_table(tmp_path):
    found, error = slowly(database(tmp_path / "x", "CREATE TABLE t (a, b)"), "SELECT absent FROM t")
    assert found == []
    assert error.startswith("table t is damaged after 0 rows (no such column: absent")


def test_names_with_quotes_and_columns_that_are_absent(tmp_path):
    path = database(
        tmp_path / "x",
        'CREATE TABLE "a""b" ("c""d" INTEGER, e TEXT)',
        "INSERT INTO \"a\"\"b\" VALUES (1, 'one'), (2, NULL), (3, 'three')",
    )
    with closing(SqliteExport(path, "s")) as export:
        assert export.tables == {'a"b': ['c"d', "e"]}
        assert export.rows('a"b', ['c"d', "absent", "e"]) == [(1, None, "one"), (2, None, None), (3, None, "three")]
        assert len(export.rows('a"b', ["e"], limit=2)) == 2
        assert export.texts('a"b', 'c"d', "e", [3, 2, 9]) == {3: b"three"}
        assert export.estimated_rows('a"b') == 3
        assert export.estimated_rows("absent") == 0
        ((bad, batch),) = export.stream('a"b', ['c"d'])
        assert (bad.total(), np.asarray(batch['c"d']).tolist()) == (0, [1, 2, 3])


def test_texts_of_more_ids_than_one_question_takes(tmp_path):
    rows = [(k, f"name {k}") for k in range(1200)]
    with closing(SqliteExport(database(tmp_path / "x", "CREATE TABLE t (a, b)", rows=rows), "s")) as export:
        assert export.texts("t", "a", "b", range(1200)) == {k: f"name {k}".encode() for k in range(1200)}


@pytest.mark.parametrize("page", [512, 4096, 65536])
def test_a_cut_file_says_in_which_page_it_ends(tmp_path, page):
    rows = [(k, "x" * 400) for k in range(600)]
    path = database(tmp_path / "x", "CREATE TABLE t (a, b)", rows=rows, page=page)
    content = path.read_bytes()
    pages = len(content) // page
    assert pages > 3
    assert missing_pages(path) is None
    for left, last in ((len(content) - 1, pages), (len(content) - page, pages), (page + 1, 2), (page, 2)):
        path.write_bytes(content[:left])
        assert missing_pages(path) == f"the file ends in page {last} of {pages}"
    path.write_bytes(content + b"more")
    assert missing_pages(path) is None
    # an older writer counts no pages: its number of changes then differs from the one beside the count
    path.write_bytes(content[:24] + b"\xff" + content[25 : len(content) - page])
    assert missing_pages(path) is None

"""Queries contain only names from Causeway, and return what the tables and documents contain."""

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from causeway.core.queries import cell, in_document, of_table, rows_where, value_at, within
from causeway.core.tables import write_json
from queried import answers, same

HOSTILE = "x'; DROP TABLE kernels; --"


def test_text_from_exports_stands_in_no_query():
    for wrong in (
        lambda: rows_where({"kernel": HOSTILE}),
        lambda: rows_where({"a b": 1}),
        lambda: cell(HOSTILE, "a.parquet", 0),
        lambda: of_table("n", "a'b.parquet"),
        lambda: of_table("n", "a*.parquet"),
        lambda: in_document("a.json", HOSTILE),
        lambda: in_document("../a b.json", "x"),
    ):
        with pytest.raises(ValueError, match=r"query|no column|no path"):
            wrong()


def test_queries_give_what_is_written(tmp_path):
    value = 0.1 + 0.2
    (tmp_path / "d").mkdir()
    pq.write_table(
        pa.table({"kernel": ["a-1", "b-2"], "n": [1, 2**62], "share": [value, 1 / 3]}), tmp_path / "d" / "t.parquet"
    )
    write_json(
        {"a": [{"b c": 7}], "big": 2**60 + 1, "f": value, "t": "it's", "0/1": {"x": 2}}, tmp_path / "d" / "j.json"
    )
    wanted = {
        cell("n", "d/t.parquet", 1): 2**62,
        of_table("share", "d/t.parquet", rows_where({"kernel": "a-1"})): value,
        of_table("count(*)", "d/t.parquet"): 2,
        in_document("d/j.json", "a", 0, "b c", kind="integer"): 7,
        in_document("d/j.json", "big", kind="integer"): 2**60 + 1,
        in_document("d/j.json", "f"): value,
        in_document("d/j.json", "t", kind="text"): "it's",
        in_document("d/j.json", "0/1", "x", kind="integer"): 2,
        within("d/j.json", f"100 * {value_at('f')}"): 100 * value,
    }
    found = answers(wanted, tmp_path)
    assert [(query, found[query], value) for query, value in wanted.items() if found[query] != value] == []


def test_a_wrong_number_is_noticed():
    assert not same(1.0001, 1.0)
    assert not same(3, 4)
    assert not same(None, 1.0)
    assert same(1.0 + 1e-15, 1.0)


@pytest.mark.parametrize(
    "query",
    [
        cell("n", "t.parquet", 1),
        of_table("min(file_row_number)", "t.parquet"),
        of_table("n", "t.parquet", "file_row_number < 3"),
    ],
)
def test_a_query_by_row_number_asks_for_it(query):
    """DuckDB before 1.3 has no number of the row unless `read_parquet` is told to give it."""
    assert "FROM read_parquet('t.parquet', file_row_number = true)" in query


def test_a_query_of_all_columns_gives_those_of_the_file(tmp_path, monkeypatch):
    pq.write_table(pa.table({"n": [1, 2], "share": [0.5, 0.25]}), tmp_path / "t.parquet")
    monkeypatch.chdir(tmp_path)
    with duckdb.connect() as base:
        for where in ("", rows_where({"n": 2})):
            assert [column[0] for column in base.execute(of_table("*", "t.parquet", where)).description] == [
                "n",
                "share",
            ]


def test_a_word_in_a_query_has_two_hundred_characters_at_most():
    assert rows_where({"kernel": "k" * 200, "rank": 3}) == f"kernel = '{'k' * 200}' AND rank = 3"
    with pytest.raises(ValueError, match="may not stand in a query"):
        rows_where({"kernel": "k" * 201})

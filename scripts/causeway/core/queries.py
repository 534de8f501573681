"""SQL queries that return a reported number from the results; DuckDB runs them in the results folder.

A query contains only names from Causeway itself: paths of the stable layout, columns, ids of kernels, keys and indices
of a document. It never contains text from an export, because a kernel's name may be any text, also SQL: such a row is
identified by its row number. Readers see a query as it is run, without parameters, so names are checked here.
"""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb

PATH = re.compile(r"\w[\w./+-]*")
COLUMN = re.compile(r"[a-z_][a-z0-9_]*")
WORD = re.compile(r"\w[\w.+-]*")
"""What may stand between quotes, of any script: no quote, no space, no character with a meaning in a path or a
pattern.
"""
KEY = re.compile(r"[\w./ -]{1,200}")
"""A key of a document, which may also be `rank/device` or words."""
CASTS = {"integer": "::BIGINT", "number": "::DOUBLE", "text": "", "length": ""}
EXTRACT = {"text": "json_extract_string", "length": "json_array_length"}


def bounded_database() -> "duckdb.DuckDBPyConnection":
    """Return a new database of one thread, for queries that sort: what does not fit into 256 MB lies on disk."""
    import duckdb

    return duckdb.connect(config={"threads": 1, "memory_limit": "256MB"})


def is_word(text: str) -> bool:
    """Return whether a text may stand between quotes in a query: at most 200 characters of `WORD`."""
    return WORD.fullmatch(text) is not None and len(text) <= 200


def rows_where(where: Mapping[str, str | int]) -> str:
    """Return a filter that names rows by ids, e.g. `kernel = 'advance-0123456789'`.

    Parameters
    ----------
    where : mapping of str to str or int
        Value by column; `file_row_number` is the row's number in the file, counted from 0.

    Returns
    -------
    str
        Conditions in the order given, joined by AND; empty without any.

    Raises
    ------
    ValueError
        For a column that is no identifier, or a text that is no `WORD`.
    """
    parts = []
    for column, value in where.items():
        if not COLUMN.fullmatch(column) or (isinstance(value, str) and not is_word(value)):
            raise ValueError(f"{column}: {str(value)[:80]!r} may not stand in a query")
        parts.append(f"{column} = '{value}'" if isinstance(value, str) else f"{column} = {int(value)}")
    return " AND ".join(parts)


def of_table(what: str, table: str, where: str = "") -> str:
    """Return a query of a Parquet table.

    Parameters
    ----------
    what : str
        SQL expression over the table's columns; written by Causeway, not checked.
    table : str
        Path relative to the results folder.
    where : str
        Filter as from `rows_where`, or another one written by Causeway; empty for all rows.

    Raises
    ------
    ValueError
        For a path with other characters than those of `PATH`.
    """
    numbered = "file_row_number" in where or "file_row_number" in what
    source = f"read_parquet('{_path(table)}', file_row_number = true)" if numbered else f"'{_path(table)}'"
    return f"SELECT {what} FROM {source}" + (f" WHERE {where}" if where else "")  # noqa: S608 - names of ours alone


def file_source(path: object) -> str:
    """Return a Parquet file as a source of a query, whatever its path holds.

    >>> file_source("it's/launches.parquet")
    "read_parquet('it''s/launches.parquet')"
    """
    return "read_parquet('{}')".format(str(path).replace("'", "''"))


def cell(column: str, table: str, row: int) -> str:
    """Return the query of one value by its column and its row's number in the file, counted from 0.

    Raises
    ------
    ValueError
        For a column that is no identifier, or a path with other characters than those of `PATH`.
    """
    if not COLUMN.fullmatch(column):
        raise ValueError(f"{column[:80]!r} is no column name")
    return of_table(column, table, rows_where({"file_row_number": row}))


def in_document(document: str, *path: str | int, kind: str = "number") -> str:
    """Return the query of one value of a JSON document.

    Parameters
    ----------
    document : str
        Path relative to the results folder.
    *path : str or int
        Keys and indices from the top of the document to the value.
    kind : {"number", "integer", "text", "length"}
        SQL type of the result; `length` is the number of elements of a list.

    Raises
    ------
    ValueError
        For a path or a key with other characters than those of `PATH` and `KEY`.
    """
    return within(document, value_at(*path, kind=kind))


def in_documents(expression: str, documents: Sequence[str], columns: str = "") -> str:
    """Return the query of an aggregate over several JSON documents.

    Parameters
    ----------
    expression : str
        SQL aggregate over `content`, the text of a document, or over `columns`; written by Causeway, not checked.
    documents : sequence of str
        Paths relative to the results folder.
    columns : str
        SQL select list over `content` that is evaluated for each document first; empty for none.

    Raises
    ------
    ValueError
        For a path with other characters than those of `PATH`.
    """
    files = ", ".join(f"'{_path(document)}'" for document in documents)
    source = f"read_text([{files}])"
    inner = f"(SELECT {columns} FROM {source})" if columns else source  # noqa: S608 - names of ours alone
    return f"SELECT {expression} FROM {inner}"  # noqa: S608 - names of ours alone


def within(document: str, expression: str) -> str:
    """Return the query of an SQL expression over one JSON document, built from `value_at`.

    Raises
    ------
    ValueError
        For a path with other characters than those of `PATH`.
    """
    return f"SELECT {expression} FROM read_text('{_path(document)}')"  # noqa: S608 - names of ours alone


def value_at(*path: str | int, kind: str = "number") -> str:
    """Return the SQL expression of one value of a document whose text is in the column `content`.

    Parameters
    ----------
    *path : str or int
        Keys and indices from the top of the document to the value.
    kind : {"number", "integer", "text", "length"}
        SQL type of the result; `length` is the number of elements of a list.

    Raises
    ------
    ValueError
        For a key with other characters than those of `KEY`.
    """
    json_path = "$"
    for step in path:
        if isinstance(step, str) and not KEY.fullmatch(step):
            raise ValueError(f"{step[:80]!r} may not stand in a query")
        json_path += f"[{step}]" if isinstance(step, int) else f".{step}" if COLUMN.fullmatch(step) else f'."{step}"'
    return f"{EXTRACT.get(kind, 'json_extract')}(content, '{json_path}'){CASTS[kind]}"


def _path(path: str) -> str:
    if not PATH.fullmatch(path):
        raise ValueError(f"{path[:200]!r} is no path under the results folder")
    return path

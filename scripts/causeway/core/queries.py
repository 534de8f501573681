"""Queries that give back a number from the results: SQL that DuckDB runs in the results folder.

Only what a rule of ours named may stand in a query: paths of the stable layout, names of columns, ids of kernels, places in a document.
Names from exports (a kernel's may be 100 kB of SQL) never do: such a row is found by its number.
"""

import re
from collections.abc import Mapping, Sequence

PATH = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+-]*")
COLUMN = re.compile(r"[a-z_][a-z0-9_]*")
WORD = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*")
"""What may stand between quotes: no quote, no space, no character that a path or a pattern gives a meaning."""
KINDS = {"integer": "::BIGINT", "number": "::DOUBLE", "text": "", "length": ""}
TAKES = {"text": "json_extract_string", "length": "json_array_length"}


def is_word(text: str) -> bool:
    """Return whether a text may stand in a query as it is."""
    return WORD.fullmatch(text) is not None and len(text) <= 200


def rows_where(where: Mapping[str, str | int]) -> str:
    """Return a filter that names rows by ids, e.g. `kernel = 'advance-0123456789'`.

    Parameters
    ----------
    where : mapping of str to str or int
        Value by column; `file_row_number` is the row's number in the file, counted from 0.

    Raises
    ------
    ValueError
        For a column or a value that is not ours to write.
    """
    parts = []
    for column, value in where.items():
        if not COLUMN.fullmatch(column) or (isinstance(value, str) and not is_word(value)):
            raise ValueError(f"{column}: {str(value)[:80]!r} may not stand in a query")
        parts.append(f"{column} = '{value}'" if isinstance(value, str) else f"{column} = {int(value)}")
    return " AND ".join(parts)


def of_table(what: str, table: str, where: str = "") -> str:
    """Return a query of a Parquet table: `what` is an expression over its columns, `where` a filter; both are ours."""
    numbered = "file_row_number" in where or "file_row_number" in what
    source = f"read_parquet('{_path(table)}', file_row_number = true)" if numbered else f"'{_path(table)}'"
    return f"SELECT {what} FROM {source}" + (f" WHERE {where}" if where else "")  # noqa: S608 - names of ours alone


def cell(column: str, table: str, row: int) -> str:
    """Return the query of one value by its column and its row's number, counted from 0."""
    if not COLUMN.fullmatch(column):
        raise ValueError(f"{column[:80]!r} is no column of ours")
    return of_table(column, table, rows_where({"file_row_number": row}))


def in_document(document: str, *path: str | int, kind: str = "number") -> str:
    """Return the query of one value of a JSON document by the way to it; its kind is integer, number, text, or length (of a list)."""
    return within(document, value_at(*path, kind=kind))


def in_documents(expression: str, documents: Sequence[str], columns: str = "") -> str:
    """Return the query of a sum or count over several documents; `columns` are taken out of each one first, where they are given."""
    files = ", ".join(f"'{_path(document)}'" for document in documents)
    source = f"read_text([{files}])"
    inner = f"(SELECT {columns} FROM {source})" if columns else source  # noqa: S608 - names of ours alone
    return f"SELECT {expression} FROM {inner}"  # noqa: S608 - names of ours alone


def within(document: str, expression: str) -> str:
    """Return the query of an expression over a document, built of `value_at`."""
    return f"SELECT {expression} FROM read_text('{_path(document)}')"  # noqa: S608 - names of ours alone


def value_at(*path: str | int, kind: str = "number") -> str:
    """Return the expression of one value of a document that `read_text` holds in `content`."""
    place = "$"
    for step in path:
        if isinstance(step, str) and not re.fullmatch(r"[A-Za-z0-9_./ -]{1,200}", step):
            raise ValueError(f"{step[:80]!r} may not stand in a query")
        place += f"[{step}]" if isinstance(step, int) else f".{step}" if COLUMN.fullmatch(step) else f'."{step}"'
    return f"{TAKES.get(kind, 'json_extract')}(content, '{place}'){KINDS[kind]}"


def _path(path: str) -> str:
    if not PATH.fullmatch(path):
        raise ValueError(f"{path[:200]!r} is no path under the results folder")
    return path

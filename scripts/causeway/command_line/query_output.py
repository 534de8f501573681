"""The rows of a query as text for a terminal, as CSV and as JSON."""

import json
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.csv

from causeway.command_line.output import answer, answering
from causeway.core.errors import CausewayError

MOST_ROWS = 50
"""Rows of a query that are shown as text: more than a screen holds is for `--format csv` or `json`."""


def write_rows(table: pa.Table, form: str) -> None:
    """Write the rows to standard output.

    Parameters
    ----------
    table : Table
        Its columns are those of the statement, in its order; names may stand several times.
    form : {"text", "csv", "json"}

    Raises
    ------
    CausewayError
        If two columns of JSON have one name, or CSV cannot hold a column's values.
    """
    {"text": _text, "csv": _csv, "json": _json}[form](table)


def _text(table: pa.Table) -> None:
    """Write the first rows; no name and no value holds what a terminal acts on, or a tab."""
    answer("\t".join(name if name.isprintable() else ascii(name) for name in table.column_names))
    for row in zip(*(column.to_pylist() for column in table.slice(0, MOST_ROWS).columns), strict=True):
        answer("\t".join(ascii(value) if isinstance(value, str) else str(value) for value in row))
    if table.num_rows > MOST_ROWS:
        answer(f"... {table.num_rows - MOST_ROWS} rows more; --format csv writes all")


def _csv(table: pa.Table) -> None:
    with answering() as stream:
        try:
            pa.csv.write_csv(table, stream.buffer)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise CausewayError(
                f"CSV cannot hold a column of this query ({error}); give it another type with CAST, or use --format"
                " json"
            ) from None


def _json(table: pa.Table) -> None:
    names = table.column_names
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise CausewayError(
            f"the query has several columns {', '.join(map(ascii, twice))}, of which JSON would hold one; give each a"
            " name of its own with AS"
        )
    answer(json.dumps(_as_json(table.to_pylist()), default=str, indent=1, allow_nan=False))


def _as_json(value: Any) -> Any:
    """Return a value with null in place of NaN and infinity, which are no JSON, and with numbers in place of decimals,
    which DuckDB gives for sums of integers: whole ones exact, others as the nearest float.
    """
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _as_json(inner) for key, inner in value.items()}
    return [_as_json(inner) for inner in value] if isinstance(value, list | tuple) else value

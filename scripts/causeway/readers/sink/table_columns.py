"""Columns of the tables that are written: Arrow arrays from coded and nullable integers."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from causeway.core.schemas import CALL
from causeway.core.tables import SCHEMAS
from causeway.readers.common.constants import NO_KIND, NO_STREAM, NULL
from causeway.readers.common.kernel_names import kernel_id, short_name
from causeway.readers.sink.batches import EventBatch, is_repeated, looked_up
from causeway.readers.sink.distinct import distinct

ABSENT = {np.dtype(np.uint8): NO_KIND, np.dtype(np.uint32): NO_STREAM}
"""What stands for an absent value in raw columns of these types; in others `NULL` does."""


def nullable(values: np.ndarray, kind: pa.DataType) -> pa.Array:
    """Return integers, shape (n,), as an Arrow array of `kind`, null where they are absent.

    Raises
    ------
    ArrowInvalid
        If a value does not fit `kind`.
    """
    none = ABSENT.get(values.dtype, NULL)
    if is_repeated(values) and values[0] == none:
        return pa.nulls(len(values), kind)
    absent = values == none
    if not absent.any():
        return pa.array(values).cast(kind)
    if absent.all():
        return pa.nulls(len(values), kind)
    return pa.array(np.where(absent, 0, values), mask=absent).cast(kind)


def coded_text(codes: np.ndarray, texts: Sequence[str | None]) -> pa.DictionaryArray:
    """Return the texts of codes, shape (n,), as a dictionary array that holds the used texts only."""
    used, _, inverse = distinct(codes)
    return pa.DictionaryArray.from_arrays(
        pa.array(inverse.astype(np.int32)), pa.array([texts[code] for code in used.tolist()], pa.string())
    )


def event_columns(table: str, rows: EventBatch, texts: Mapping[str, Sequence[str | None]]) -> dict[str, Any]:
    """Return the columns of a table that events have under the same names.

    Parameters
    ----------
    table : str
    rows : EventBatch
    texts : mapping of str to sequence of str
        Of columns that are codes, the text of each code; None for the code -1, which is none.
    """
    columns: dict[str, Any] = {}
    for field in SCHEMAS[table]:
        if field.name in texts:
            text = coded_text(rows[field.name], texts[field.name])
            columns[field.name] = text.cast(field.type) if pa.types.is_string(field.type) else text
        elif field.name in rows.columns:
            values = rows[field.name]
            columns[field.name] = nullable(values, field.type) if field.nullable else values
    return columns


def call_columns(call: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return the columns of the call that made work of a device.

    Parameters
    ----------
    call : dict of str to ndarray of int64, shape (n,)
        What `WorkCalls.find` gives.
    """
    names = {"call": "call", "thread": "thread", "call_start_ns": "begin", "call_end_ns": "end"}
    kinds = {field.name: field.type for field in CALL}
    return {column: nullable(call[name], kinds[column]) for column, name in names.items()}


class FinalNumbers:
    """Final numbers 0, 1, ... for codes, in order of first appearance.

    Parameters
    ----------
    size : int
        How many codes to expect; there may be more.

    Attributes
    ----------
    codes : list of int
        The code of each final number.
    """

    def __init__(self, size: int) -> None:
        self._number = np.full(size, -1, np.int64)
        self.codes: list[int] = []

    def of(self, codes: np.ndarray) -> np.ndarray:
        """Return the final numbers of codes (integers from 0 on, shape (n,)), new ones for codes not seen before."""
        if len(self._number) <= (top := int(codes.max(initial=-1))):
            self._number = np.append(self._number, np.full(top + 1 - len(self._number), -1))
        numbers = looked_up(self._number, codes)
        fresh = codes[numbers < 0]
        if not len(fresh):
            return numbers
        first, position = np.unique(fresh, return_index=True)
        for code in first[np.argsort(position)].tolist():
            self._number[code] = len(self.codes)
            self.codes.append(code)
        return looked_up(self._number, codes)


def kernel_table(names: list[str], classes: list[str]) -> pa.Table:
    """Return the kernels table for kernels of these full names and classes, numbered 0, 1, ... in the given order."""
    columns = {
        "kernel": range(len(names)),
        "id": [kernel_id(name) for name in names],
        "name": names,
        "short_name": [short_name(name) for name in names],
        "class": classes,
    }
    return pa.Table.from_pydict(columns, SCHEMAS["kernels"])

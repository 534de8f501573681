"""Columns of the tables that are written: Arrow arrays from coded and nullable integers."""

from typing import Any

import numpy as np
import pyarrow as pa

from causeway.core.codes import SYNCHRONISATIONS
from causeway.core.schemas.star_tables import CALL
from causeway.core.tables import SCHEMAS
from causeway.readers.common.constants import NO_STREAM, NULL
from causeway.readers.common.kernel_names import kernel_id, short_name
from causeway.readers.sink.batches import EventBatch, is_repeated, looked_up
from causeway.readers.sink.distinct import distinct


def nullable(values: np.ndarray, kind: pa.DataType) -> pa.Array:
    """Return int64 values, shape (n,), as an Arrow array of `kind`, `NULL` as null.

    Raises
    ------
    ArrowInvalid
        If a value does not fit `kind`.
    """
    if is_repeated(values) and values[0] == NULL:
        return pa.nulls(len(values), kind)
    absent = values == NULL
    if not absent.any():
        return pa.array(values).cast(kind)
    if absent.all():
        return pa.nulls(len(values), kind)
    return pa.array(np.where(absent, 0, values), mask=absent).cast(kind)


def coded_text(codes: np.ndarray, texts: list[str]) -> pa.DictionaryArray:
    """Return the texts of codes, shape (n,), as a dictionary array that holds the used texts only."""
    used, _, inverse = distinct(codes)
    return pa.DictionaryArray.from_arrays(
        pa.array(inverse.astype(np.int32)), pa.array([texts[code] for code in used.tolist()], pa.string())
    )


def host_columns(rows: EventBatch, texts: list[str]) -> dict[str, Any]:
    """Return when, on which thread and by which name the host did something: columns of calls, of operators and of
    whatever else threads of the host do. `texts` are those of the names' codes.
    """
    columns = {name: rows[name] for name in ("start_ns", "duration_ns")}
    return columns | {"thread": nullable(rows["thread"], pa.uint32()), "name": coded_text(rows["name"], texts)}


def mpi_columns(rows: EventBatch, texts: list[str]) -> dict[str, Any]:
    """Return the columns of `mpi` but the rank."""
    more = {name: nullable(rows[name], pa.int64()) for name in ("bytes", "peer", "communicator")}
    return host_columns(rows, texts) | more


def collective_columns(rows: EventBatch, texts: list[str], groups: list[str]) -> dict[str, Any]:
    """Return the columns of `collectives` but the rank; `groups` are the texts of communicators."""
    communicators = [*groups, None]  # code -1 is none
    columns = {name: rows[name] for name in ("start_ns", "duration_ns", "device", "stream")}
    columns["name"] = coded_text(rows["name"], texts).cast(pa.string())
    columns["communicator"] = pa.array([communicators[code] for code in rows["communicator"].tolist()], pa.string())
    for name in ("sequence", "group_size", "bytes", "correlation"):
        columns[name] = nullable(rows[name], pa.int64())
    return columns


def dependency_columns(rows: EventBatch) -> dict[str, Any]:
    """Return the columns of `dependencies` but the rank."""
    columns = {name: rows[name] for name in ("start_ns", "duration_ns")}
    columns["kind"] = coded_text(rows["kind"], list(SYNCHRONISATIONS)).cast(pa.string())
    for name in ("stream", "source_stream"):
        fits = (rows[name] >= 0) & (rows[name] < NO_STREAM)
        columns[name] = nullable(np.where(fits, rows[name], NULL), pa.uint32())
    return columns | {name: nullable(rows[name], pa.int64()) for name in ("event", "correlation")}


def graph_columns(rows: EventBatch) -> dict[str, Any]:
    """Return the columns of `graphs` but for the rank."""
    columns = {name: rows[name] for name in ("start_ns", "duration_ns", "device")}
    stream = rows["stream"].astype(np.int64)
    columns["stream"] = nullable(np.where(stream == NO_STREAM, NULL, stream), pa.uint32())
    return columns | {"correlation": nullable(rows["correlation"], pa.int64())}


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
        first, at = np.unique(fresh, return_index=True)
        for code in first[np.argsort(at)].tolist():
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
    schema = SCHEMAS["kernels"]
    return pa.table({f.name: pa.array(columns[f.name], f.type) for f in schema}, schema=schema)

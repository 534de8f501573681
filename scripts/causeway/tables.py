"""The only door to Parquet: Arrow schemas, units, metadata, `read_table`, `write_table` and `TableWriter`.

A star: facts are narrow and ordered by time, everything constant per configuration lives in a dimension. Column names carry their
unit. Each file's metadata holds the schema's name and version and, for tables made from an export, the source and its SHA-256.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from causeway.errors import TableError

SCHEMA_VERSION = "1"
SCHEMA_FOLDER = Path(__file__).resolve().parents[2] / "config" / "schemas"
ROW_GROUP_ROWS = 512 * 1024
"""Rows per row group: measured as large enough to decode at full speed, small enough to stream."""

COPY_KINDS = {
    0: "unknown",
    1: "host to device",
    2: "device to host",
    3: "host to array",
    4: "array to host",
    5: "array to array",
    6: "array to device",
    7: "device to array",
    8: "device to device",
    9: "host to host",
    10: "peer to peer",
    11: "unified host to device",
    12: "unified device to host",
    13: "unified device to device",
    255: "memset",
}
"""CUPTI's CUpti_ActivityMemcpyKind (CUDA 12); 255 is ours, for memory sets, which CUPTI keeps in a table of their own."""

MEMORY_KINDS = {0: "pageable", 1: "pinned", 2: "device", 3: "array", 4: "managed", 5: "device static", 6: "managed static", 7: "unknown"}
"""Nsight Systems' ENUM_CUDA_MEM_KIND."""

KERNEL_CLASSES = ("compute", "communication", "memory")


def _field(name: str, kind: pa.DataType, unit: str = "", nullable: bool = False) -> pa.Field:
    return pa.field(name, kind, nullable=nullable, metadata={"unit": unit} if unit else None)


def _fields(names: str, kind: pa.DataType, unit: str = "", nullable: bool = False) -> list[pa.Field]:
    return [_field(name, kind, unit, nullable) for name in names.split()]


I64, F64, U8, U16, U32, TEXT, FLAG = pa.int64(), pa.float64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.string(), pa.bool_()
STATISTICS = ("min", "max", "mean", "variance", "std", "q1", "median", "q3")
"""The eight statistics of a bin beside its count, in the order of the columns of `bins`."""

LAUNCH_SHAPE = (
    "grid_x grid_y grid_z block_x block_y block_z registers_per_thread static_shared_bytes dynamic_shared_bytes local_bytes"
    " lds_bytes scratch_bytes arch_vgpr accum_vgpr sgpr wave_size"
).split()
"""The columns that, with the kernel, make a configuration. An export that gives only a total size has it in `_x`, and null in y and z."""

SCHEMAS: dict[str, pa.Schema] = {
    # facts, ordered by start_ns, then by the order in the export
    "launches": pa.schema(
        [
            *_fields("start_ns duration_ns", I64, "ns"),
            *_fields("configuration rank", U32),
            _field("device", U16),
            _field("stream", U32),
            _field("queue_ns", I64, "ns", nullable=True),
            _field("range", U32, nullable=True),
            _field("correlation", I64, nullable=True),
        ]
    ),
    "transfers": pa.schema(
        [
            *_fields("start_ns duration_ns", I64, "ns"),
            _field("bytes", I64, "bytes", nullable=True),
            _field("copy_kind", U8),
            *_fields("src_kind dst_kind", U8, nullable=True),
            _field("rank", U32),
            _field("device", U16),
            _field("stream", U32),
            _field("correlation", I64, nullable=True),
        ]
    ),
    "ranges": pa.schema(
        [
            *_fields("start_ns duration_ns", I64, "ns"),
            *_fields("range rank", U32),
            _field("thread", U32, nullable=True),
            _field("kind", TEXT),
            _field("name", TEXT),
        ]
    ),
    "calls": pa.schema(
        [
            *_fields("start_ns duration_ns", I64, "ns"),
            _field("rank", U32),
            _field("thread", U32, nullable=True),
            _field("name", pa.dictionary(pa.int32(), TEXT)),
            _field("correlation", I64, nullable=True),
        ]
    ),
    "mpi": pa.schema(
        [
            *_fields("start_ns duration_ns", I64, "ns"),
            _field("rank", U32),
            _field("thread", U32, nullable=True),
            _field("name", pa.dictionary(pa.int32(), TEXT)),
            *_fields("bytes peer communicator", I64, nullable=True),
        ]
    ),
    "samples": pa.schema(
        [
            _field("time_ns", I64, "ns"),
            _field("rank", U32),
            _field("device", U16),
            _field("metric", pa.dictionary(pa.int32(), TEXT)),
            _field("value", F64),
        ]
    ),
    # one row per launch of a counter export or table; the metrics follow these columns, see `counters_schema`
    "counters": pa.schema(
        [
            _field("launch", I64),
            _field("start_ns", I64, "ns", nullable=True),
            *_fields("configuration rank", U32),
            _field("device", U16, nullable=True),
        ]
    ),
    # dimensions, ordered by their number
    "configurations": pa.schema(
        [
            *_fields("configuration kernel", U32),
            *_fields(" ".join(LAUNCH_SHAPE), I64, nullable=True),
            _field("label", TEXT, nullable=True),
        ]
    ),
    "kernels": pa.schema([_field("kernel", U32), *_fields("id name short_name class", TEXT)]),
    "devices": pa.schema(
        [
            _field("rank", U32),
            _field("device", U16),
            _field("name", TEXT, nullable=True),
            _field("multiprocessors", I64, nullable=True),
            _field("memory_bytes", I64, "bytes", nullable=True),
            _field("clock_hz", I64, "Hz", nullable=True),
        ]
    ),
    # results of the variability wing
    "bins": pa.schema(
        [
            _field("rank", U32),
            _field("bin", I64),
            _field("start_ns", I64, "ns", nullable=True),
            _field("count", I64),
            *[_field(name, F64, nullable=name in ("variance", "std")) for name in STATISTICS],
        ]
    ),
    "ranking": pa.schema(
        [
            _field("rank", U32),
            _field("bin", I64),
            _field("score", F64, nullable=True),
            _field("order", I64),
            *_fields("kept control", FLAG),
            _field("inclusion_probability", F64, nullable=True),
        ]
    ),
    "kept": pa.schema(
        [
            _field("rank", U32),
            _field("bin", I64),
            _field("launch", I64),
            _field("start_ns", I64, "ns", nullable=True),
            _field("kernel", TEXT),
            _field("configuration", U32),
            *_fields("target signed_deviation", F64),
            _field("configuration_mean", F64),
            _field("configuration_std", F64, nullable=True),
            _field("kept", FLAG),
            _field("inclusion_probability", F64),
        ]
    ),
    # one row per kernel of a dataset, all launches, not only the kept ones
    "kernel_summary": pa.schema(
        [
            *_fields("kernel name short_name class", TEXT),
            *_fields("launches configurations", I64),
            _field("value_sum", F64),
            *_fields("value_median value_q1 value_q3", F64),
            _field("robust_cv", F64, nullable=True),
            _field("target_sum", F64),
            _field("target_share", F64, "ratio"),
            _field("histogram", pa.list_(I64)),
            _field("timeline", pa.list_(F64)),
        ]
    ),
    # one row per configuration of a dataset, numbered over all its exports
    "configuration_summary": pa.schema(
        [
            _field("configuration", U32),
            _field("kernel", TEXT),
            *_fields(" ".join(LAUNCH_SHAPE), I64, nullable=True),
            _field("label", TEXT, nullable=True),
            _field("rank", U32, nullable=True),
            _field("launches", I64),
            _field("mean", F64),
            _field("std", F64, nullable=True),
        ]
    ),
    # results of the causal wing
    "features": pa.schema([]),
    "contributions": pa.schema(
        [
            _field("feature", TEXT),
            _field("group", TEXT, nullable=True),
            _field("members", pa.list_(TEXT)),
            _field("stage", TEXT),
            _field("sign", TEXT),
            *_fields("effect effect_low effect_high", F64, "standard deviations of the target", nullable=True),
            *_fields("contribution_percent contribution_low contribution_high", F64, "percent", nullable=True),
            *_fields("stability q_value robustness", F64, nullable=True),
            _field("verdict", TEXT),
        ]
    ),
    "refutations": pa.schema(
        [
            *_fields("feature refuter", TEXT),
            *_fields("effect refuted_effect p_value", F64, nullable=True),
            _field("passed", FLAG, nullable=True),
            _field("note", TEXT, nullable=True),
        ]
    ),
    "whatif": pa.schema(
        [
            *_fields("feature from to", TEXT),
            *_fields("change_percent change_low change_high", F64, "percent", nullable=True),
            *_fields("verdict reason", TEXT, nullable=True),
        ]
    ),
}
OPEN_ENDED = frozenset({"counters", "bins", "kept", "features"})
"""Tables that carry further columns after those of the schema: metrics, statistics of chosen features, features."""


def sha256_of(path: str | Path) -> str:
    """Return the SHA-256 of a file, or of a folder's files in name order (names included), as 64 hex digits."""
    digest = hashlib.sha256()
    path = Path(path)
    for file in [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file()):
        if file != path:
            digest.update(str(file.relative_to(path)).encode())
        with open(file, "rb") as handle:
            while block := handle.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def extended(name: str, extra: Iterable[pa.Field] = ()) -> pa.Schema:
    """Return the schema `name` with `extra` fields behind it; only open-ended tables may have any."""
    extra = list(extra)
    if extra and name not in OPEN_ENDED:
        raise TableError(f"table {name} has a fixed schema; it cannot take {[field.name for field in extra]}")
    return pa.schema([*SCHEMAS[name], *extra])


def _encoding(schema: pa.Schema) -> dict[str, object]:
    """Parquet options: deltas for the ordered time, split bytes for other numbers, dictionaries for text; lz4.

    Measured: the size of zstd-1 at twice its read speed (`tests/bench`).
    """
    encodings, dictionaries = {}, []
    for field in schema:
        kind = field.type
        if field.name in ("start_ns", "time_ns"):
            encodings[field.name] = "DELTA_BINARY_PACKED"
        elif pa.types.is_floating(kind) or (pa.types.is_integer(kind) and kind.bit_width in (32, 64)):
            encodings[field.name] = "BYTE_STREAM_SPLIT"
        elif pa.types.is_string(kind) or pa.types.is_dictionary(kind):
            dictionaries.append(field.name)
    return {"compression": "lz4", "use_dictionary": dictionaries, "column_encoding": encodings}


class TableWriter:
    """Write a table piece by piece: to a temporary name first, renamed when complete, so that no partial table looks whole.

    Parameters
    ----------
    path : str or Path
        The file to write.
    name : str
        A key of `SCHEMAS`.
    extra : iterable of Field
        Columns behind those of the schema, for open-ended tables.
    metadata : mapping of str to str
        Kept in the file beside the schema's name and version: for tables made from an export, `source` and `source_sha256`.
    """

    def __init__(self, path: str | Path, name: str, extra: Iterable[pa.Field] = (), metadata: Mapping[str, str] | None = None) -> None:
        self.path, self.name = Path(path), name
        facts = {"causeway.table": name, "causeway.schema_version": SCHEMA_VERSION}
        facts |= {f"causeway.{key}": str(value) for key, value in sorted((metadata or {}).items())}
        self.schema = extended(name, extra).with_metadata(facts)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.partial = self.path.with_name(self.path.name + ".partial")
        self.rows = 0
        self._writer = pq.ParquetWriter(self.partial, self.schema, **_encoding(self.schema))

    def write(self, table: pa.Table) -> None:
        """Append rows. Columns are matched by name; a missing, surplus or wrongly typed column raises `TableError`."""
        table = conform(table, self.schema, self.name)
        if table.num_rows:
            self._writer.write_table(table, row_group_size=ROW_GROUP_ROWS)
            self.rows += table.num_rows

    def __enter__(self) -> "TableWriter":
        return self

    def __exit__(self, failure: object, *_: object) -> None:
        self._writer.close()
        if failure is None:
            os.replace(self.partial, self.path)
        else:
            self.partial.unlink(missing_ok=True)


def conform(table: pa.Table, schema: pa.Schema, name: str) -> pa.Table:
    """Return `table` with the columns of `schema`, in its order and exact types.

    Raises
    ------
    TableError
        For a missing or surplus column, a value that does not fit its type, or a null where none is allowed.
    """
    missing = [field.name for field in schema if field.name not in table.column_names]
    surplus = [column for column in table.column_names if column not in schema.names]
    if missing or surplus:
        raise TableError(f"table {name}: missing columns {missing}, unknown columns {surplus}")
    try:
        table = table.select(schema.names).cast(schema, safe=True)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, ValueError) as error:
        raise TableError(f"table {name}: {error}") from None
    for field in schema:
        if not field.nullable and table.column(field.name).null_count:
            raise TableError(f"table {name}: column {field.name} has {table.column(field.name).null_count} nulls, none is allowed")
    return table


def write_table(
    table: pa.Table, path: str | Path, name: str, extra: Iterable[pa.Field] = (), metadata: Mapping[str, str] | None = None
) -> None:
    """Write a whole table; see `TableWriter`."""
    with TableWriter(path, name, extra, metadata) as writer:
        writer.write(table)


def open_table(path: str | Path, name: str) -> pq.ParquetFile:
    """Open a table for reading row group by row group, after the checks of `read_table`. The caller closes it."""
    try:
        file = pq.ParquetFile(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise TableError(f"{path}: not a readable Parquet file ({error}); delete it and run again") from None
    schema, facts = file.schema_arrow, file.schema_arrow.metadata or {}
    found = facts.get(b"causeway.table", b"?").decode()
    if found != name or facts.get(b"causeway.schema_version", b"?").decode() != SCHEMA_VERSION:
        raise TableError(f"{path}: holds table {found}, expected {name} of schema version {SCHEMA_VERSION}; delete it and run again")
    wanted = SCHEMAS[name]
    wrong = [field.name for field in wanted if field.name not in schema.names or schema.field(field.name).type != field.type]
    if wrong:
        raise TableError(f"{path}: table {name} lacks columns {wrong} or has them with another type")
    return file


def read_table(path: str | Path, name: str, columns: list[str] | None = None) -> pa.Table:
    """Read a table, or some of its columns, after checking its name, version, columns and types.

    Raises
    ------
    TableError
        If the file is not the table `name` of this schema version.
    """
    with open_table(path, name) as file:
        return file.read(columns=columns)


def table_metadata(path: str | Path) -> dict[str, str]:
    """Return the file's own metadata: table, schema_version and what the writer added."""
    facts = pq.read_schema(path).metadata or {}
    return {key.decode().removeprefix("causeway."): value.decode() for key, value in facts.items() if key.startswith(b"causeway.")}


def unit_of(field: pa.Field) -> str:
    """Return a column's unit in words, or '' for plain numbers."""
    return (field.metadata or {}).get(b"unit", b"").decode()


def write_json(value: object, path: str | Path, schema: str | None = None) -> None:
    """Write JSON with sorted keys and without NaN, to a temporary name first, so that equal values give equal bytes.

    `schema` names a file `config/schemas/<schema>.schema.json`; a document that does not fit it raises `TableError` and nothing is written.
    """
    path = Path(path)
    if schema is not None:
        _check_document(value, schema, path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
    os.replace(partial, path)


def _check_document(value: object, schema: str, path: Path) -> None:
    from jsonschema import Draft202012Validator

    rules = json.loads((SCHEMA_FOLDER / f"{schema}.schema.json").read_text(encoding="utf-8"))
    for error in Draft202012Validator(rules).iter_errors(value):
        raise TableError(f"{path}: does not fit schema {schema} at {error.json_path}: {error.message[:300]}")


def read_json(path: str | Path) -> dict:
    """Read a JSON document that one of our rules wrote."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, json.JSONDecodeError) as error:
        raise TableError(f"{path}: not a readable JSON document ({error}); delete it and run again") from None

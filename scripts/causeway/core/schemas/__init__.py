"""The tables of Causeway: columns, types, units, as `config/tables.tsv` declares them.

Tables are read and written by `tables`, which checks them against these schemas.

Imports run from left to right: `launch_threads`.
"""

import csv
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from causeway.core.installation import workflow_folder

FILE = workflow_folder() / "config" / "tables.tsv"
Row = Mapping[str, Any]
"""A row of a table, or an object of a JSON document: values by name."""
SCHEMA_VERSION = "1"
"""Changes when a column changes its name, type, unit or meaning."""
OPEN_ENDED = frozenset({"counters", "bins", "kept", "features", "model"})
"""Tables that carry further columns after those of the schema: metrics, statistics of chosen features, features, the
columns of a graph."""
LIST = "list of "


def _types() -> dict[str, pa.DataType]:
    """Return the types of columns, as the file names them."""
    numbers = "int32 int64 uint8 uint16 uint32 float32 float64".split()
    types = {name: getattr(pa, name)() for name in numbers} | {"text": pa.string(), "flag": pa.bool_()}
    types |= {f"{LIST}{name}": pa.list_(kind) for name, kind in types.items()}
    return types | {"name": pa.dictionary(pa.int32(), pa.string())}


def _declared() -> tuple[dict[str, pa.Schema], dict[str, tuple[str, ...]]]:
    """Return the columns of each table and group of the file, and of each the columns that it may lack.

    A unit stands in the field's metadata under `unit`; plain numbers and texts have none.
    """
    types = _types()
    fields: dict[str, list[pa.Field]] = {}
    lacking: dict[str, tuple[str, ...]] = {}
    with FILE.open(encoding="utf-8", newline="") as file:
        lines = (line for line in file if not line.startswith("#"))
        for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE, restval=""):
            table = row["table"]
            names = row["columns"]
            own = fields.setdefault(table, [])
            if names.startswith("("):
                own += fields[names]
                lacking[table] = lacking.get(table, ()) + lacking.get(names, ())
                continue
            unit = {"unit": row["unit"]} if row["unit"] else None
            for name in names.split():
                own.append(pa.field(name, types[row["type"]], nullable=row["null"] != "", metadata=unit))
                if row["null"] == "absent":
                    lacking[table] = (*lacking.get(table, ()), name)
    return {name: pa.schema(columns) for name, columns in fields.items()}, lacking


_DECLARED, OPTIONAL_COLUMNS = _declared()
"""Columns that a table may lack: they were not written before, and other programs' tables have none."""
SCHEMAS: dict[str, pa.Schema] = {name: schema for name, schema in _DECLARED.items() if not name.startswith("(")}
"""The schema of every table, by the table's name."""
CALL = _DECLARED["(call)"]
"""The host's call that made work of a device."""
LAUNCH_FACTS = _DECLARED["(launch fact)"]
"""What an export may say of each launch."""
LAUNCH_SHAPE: list[str] = _DECLARED["(launch shape)"].names
"""The columns that, with the kernel, make a configuration."""
GRID_AND_BLOCK = LAUNCH_SHAPE[:6]
"""Of these the size of the grid and of its blocks, from which `launch_threads` are known."""
STATISTICS = tuple(_DECLARED["(statistic)"].names)
"""The eight statistics of a bin beside its count, in the order of the columns of `bins`."""

"""The tables of Causeway: columns, types, units.

Tables are read and written by `tables`, which checks them against these schemas.

Imports run from left to right: `launch_threads`, `measured_tables` > `star_tables`, `causal_tables`, `fleet_tables` >
`column_types`.
"""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from causeway.core.schemas.causal_tables import CAUSAL_TABLES
from causeway.core.schemas.fleet_tables import FLEET_TABLES
from causeway.core.schemas.launch_threads import AS_LAUNCHED, BLOCKS, GRID, WORK_ITEMS, launch_threads, thread_sizes
from causeway.core.schemas.measured_tables import MEASURED_TABLES, STATISTICS
from causeway.core.schemas.star_tables import GRID_AND_BLOCK, LAUNCH_FACTS, LAUNCH_SHAPE, OPTIONAL_COLUMNS, STAR_TABLES

__all__ = [
    "AS_LAUNCHED",
    "BLOCKS",
    "GRID",
    "GRID_AND_BLOCK",
    "LAUNCH_FACTS",
    "LAUNCH_SHAPE",
    "OPEN_ENDED",
    "OPTIONAL_COLUMNS",
    "SCHEMAS",
    "SCHEMA_VERSION",
    "STATISTICS",
    "WORK_ITEMS",
    "Row",
    "launch_threads",
    "thread_sizes",
]

Row = Mapping[str, Any]
"""A row of a table, or an object of a JSON document: values by name."""
SCHEMA_VERSION = "1"
"""Changes when a column changes its name, type, unit or meaning."""
SCHEMAS: dict[str, pa.Schema] = {**STAR_TABLES, **MEASURED_TABLES, **CAUSAL_TABLES, **FLEET_TABLES}
"""The schema of every table, by the table's name."""
OPEN_ENDED = frozenset({"counters", "bins", "kept", "features", "model"})
"""Tables that carry further columns after those of the schema: metrics, statistics of chosen features, features, the
columns of a graph."""

"""Columns of counters: their names and their fields."""

import re

import pyarrow as pa


def plain_name(raw: str) -> str:
    """Return a counter's raw name as a column name: runs of anything but letters, digits and underscores become one
    underscore.

    `sm__cycles_elapsed.avg.per_second` gives `sm__cycles_elapsed_avg_per_second`, `TCC_EA_WRREQ[0]` gives
    `TCC_EA_WRREQ_0`. A name that would start with a digit gets a leading underscore.
    """
    name = re.sub(r"[^A-Za-z0-9_]+", "_", raw).strip("_")
    return f"_{name}" if name[:1].isdigit() else name or "unnamed"


def metric_field(name: str, raw: str, unit: str, text: bool = False) -> pa.Field:
    """Return a column of the counters table, with its raw name and unit in the metadata."""
    metadata = {"raw": raw} | ({"unit": unit} if unit else {})
    return pa.field(name, pa.string() if text else pa.float64(), nullable=True, metadata=metadata)

"""What a profiler of kernels counted: the mean of each counter over the launches of each kernel."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from causeway.comparison.runs.launch_inputs import by_key
from causeway.core.codes import GPU_TIME
from causeway.core.formatting import NANOSECONDS
from causeway.core.tables import SCHEMAS, read_json, read_table, unit_of

OF_TIME = frozenset({*NANOSECONDS, "cycles"})
"""Units of counters that say how long a launch took, which is compared itself."""


class CountedMetric(NamedTuple):
    """A counter as the export calls it, and its unit."""

    name: str
    unit: str


def counter_means(folders: Sequence[str | Path]) -> dict[str, dict[CountedMetric, float]]:
    """Return the mean of each counter over the launches that have it, by kernel; nothing of plain tables, and nothing
    of counters beside a trace.

    Parameters
    ----------
    folders : sequence of path
        Folders of tables of a dataset's exports.
    """
    paths = [Path(folder) for folder in folders]
    if any((folder / "launches.parquet").is_file() for folder in paths):
        return {}
    sums: dict[str, dict[CountedMetric, tuple[float, int]]] = {}
    for folder in paths:
        if (folder / "counters.parquet").is_file() and read_json(folder / "capabilities.json").get("kind") != "table":
            _add(sums, folder)
    return {
        kernel: {counter: total / number for counter, (total, number) in own.items()} for kernel, own in sums.items()
    }


def _add(sums: dict[str, dict[CountedMetric, tuple[float, int]]], folder: Path) -> None:
    """Add sum and number of the values of each counter of an export, by kernel."""
    names = by_key(folder, "kernels", "kernel", "name")
    kernels = by_key(folder, "configurations", "configuration", "kernel")
    table = read_table(folder / "counters.parquet", "counters")
    columns = [
        field.name
        for field in table.schema
        if field.name not in SCHEMAS["counters"].names
        and field.name != GPU_TIME
        and pa.types.is_floating(field.type)
        and unit_of(field) not in OF_TIME
    ]
    kernel = pa.array([names[kernels[number]] for number in table["configuration"].to_pylist()])
    values = table.select(columns).append_column("kernel", kernel)
    measures = [(column, measure) for column in columns for measure in ("sum", "count")]
    for row in values.group_by("kernel", use_threads=False).aggregate(measures).to_pylist():  # in the rows' order
        own = sums.setdefault(row["kernel"], {})
        for column in columns:
            field = table.schema.field(column)
            raw = (field.metadata or {}).get(b"raw", b"").decode() or column
            counter = CountedMetric(raw.rpartition("/")[2], unit_of(field))
            if number := row[f"{column}_count"]:
                total, before = own.get(counter, (0.0, 0))
                own[counter] = total + row[f"{column}_sum"], before + number

"""Launches whose durations follow from two inputs by a known rule, as rows and as files of a target."""

import numpy as np
import pyarrow as pa

from causeway.causal.models.kernel_rows import KernelRows
from causeway.core.tables import SCHEMAS, write_table

ROWS = 600


def drawn(seed, share=0.3, clock=1800.0, slowdown=1.0, rows=ROWS):
    """Return durations, whole ns, and inputs: clocks, and a neighbour that is there for a share of the launches."""
    rng = np.random.default_rng(seed)
    inputs = {"clock_mhz": np.round(rng.normal(clock, 60.0, rows)), "beside": (rng.random(rows) < share).astype(float)}
    times = 5e7 / inputs["clock_mhz"] * (1 + 0.4 * inputs["beside"]) * slowdown
    return np.round(times * np.exp(rng.normal(0, 0.01, rows))), inputs


def rows_of(value, inputs, mean=None):
    """Return launches of one configuration."""
    size = value.size
    launches = {"rank": np.zeros(size, np.int64), "launch": np.arange(size), "start_ns": np.arange(size) * 100_000}
    return KernelRows(
        value=value,
        mean=np.full(size, value.mean() if mean is None else mean),
        weight=np.ones(size),
        configuration=np.array(["one"] * size, dtype=object),
        causes=inputs,
        units=dict.fromkeys(inputs, ""),
        launches=pa.table(launches),
    )


def write_target(folder, value, inputs, kernel="k-1", name="k", unit="ns"):
    """Write features.parquet, kernels.parquet and configurations.parquet of a target of one kernel."""
    size = value.size
    columns = {
        "rank": np.zeros(size, np.uint32),
        "bin": np.arange(size) // 20,
        "launch": np.arange(size),
        "start_ns": np.arange(size) * 100_000,
        "kernel": [kernel] * size,
        "configuration": np.full(size, 3, np.uint32),
        "target": np.abs(value - value.mean()),
        "signed_deviation": value - value.mean(),
        "configuration_mean": np.full(size, value.mean()),
        "configuration_std": np.full(size, value.std()),
        "kept": np.ones(size, bool),
        "inclusion_probability": np.ones(size),
    }
    fields = list(SCHEMAS["kept"])
    extra = [
        pa.field(one, pa.string() if values.dtype == object else pa.float64(), metadata={"tier": "context"})
        for one, values in inputs.items()
    ]
    arrays = [pa.array(columns[field.name], field.type) for field in fields]
    arrays += [pa.array(values, field.type) for values, field in zip(inputs.values(), extra, strict=True)]
    table = pa.Table.from_arrays(arrays, schema=pa.schema(fields + extra))
    write_table(table, folder / "features.parquet", "features", fields + extra)
    _write_row("kernel_summary", folder / "kernels.parquet", {"kernel": kernel, "name": name}, {"value_unit": unit})
    _write_row(
        "configuration_summary", folder / "configurations.parquet", {"configuration": 3, "kernel": kernel, "grid_x": 8}
    )


def _write_row(table, path, known, facts=None):
    """Write a table of one row; what is not known is null, or 0 or empty."""
    row = {}
    for field in SCHEMAS[table]:
        empty = [] if pa.types.is_list(field.type) else "" if pa.types.is_string(field.type) else 0
        row[field.name] = known.get(field.name, None if field.nullable else empty)
    write_table(pa.Table.from_pylist([row], schema=SCHEMAS[table]), path, table, (), facts or {})

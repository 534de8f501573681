"""Tables of fleet mode: the simulated world, what agents saw and reported, and what the designer receives."""

import pyarrow as pa

from causeway.core.schemas.column_types import F64, FLAG, I64, TEXT, column, columns

FLEET_TABLES: dict[str, pa.Schema] = {
    # the simulated sessions, ordered by GPU, then start; samples that agents took; counts that they reported, ordered
    # by report, then cell
    "fleet_sessions": pa.schema(
        [*columns("gpu user application generation run", I64), *columns("start_s end_s", F64, "s")]
    ),
    "fleet_reports": pa.schema(
        [*columns("report user gpu application generation run", I64), column("sent_s", F64, "s")]
    ),
    "fleet_samples": pa.schema(
        [
            column("report", I64),
            column("kernels", pa.list_(pa.int32())),
            column("durations_ns", pa.list_(pa.int32()), "ns"),
            column("occupancy", pa.list_(pa.float32()), "ratio"),
            column("busy", F64, "ratio"),
            column("gpu_ms", F64, "ms"),
            column("launches", F64),
            column("mib", F64, "MiB"),
        ]
    ),
    "fleet_attributions": pa.schema(
        [column("report", I64), *columns("application family cluster", I64), *columns("score lead", F64, "ratio")]
    ),
    "fleet_counts": pa.schema(columns("report cell value", I64)),
    # what the designer receives: one row per cell, and one per application
    "fleet_estimates": pa.schema(
        [
            *columns("section application column", TEXT),
            column("count", F64),
            *columns("share share_low share_high", F64, "ratio", nullable=True),
            column("released", FLAG),
        ]
    ),
    "fleet_applications": pa.schema(
        [
            *columns("application family version", TEXT),
            *columns("reports reports_low reports_high", F64, nullable=True),
            column("released", FLAG),
            *columns("median_duration_ns median_duration_ns_low median_duration_ns_high", F64, "ns", nullable=True),
            column("median_duration_open", FLAG, nullable=True),
            *columns("busy busy_low busy_high occupancy occupancy_low occupancy_high", F64, "ratio", nullable=True),
            *columns("variable_share variable_share_low variable_share_high", F64, "ratio", nullable=True),
            *columns("gpu_ms gpu_ms_low gpu_ms_high", F64, "ms", nullable=True),
            *columns("launches launches_low launches_high", F64, nullable=True),
            *columns("mib mib_low mib_high", F64, "MiB", nullable=True),
        ]
    ),
    "fleet_coverage": pa.schema(
        [
            column("hour", I64, "h"),
            *columns("what mode", TEXT),
            *columns("sampled released", F64, "ratio", nullable=True),
        ]
    ),
}

"""The tables of Causeway: columns, types, units.

A star: facts are narrow and ordered by time; what is constant per configuration lives in a dimension.
"""

import pyarrow as pa

SCHEMA_VERSION = "1"
"""Changes when a column changes its name, type, unit or meaning."""


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
    # one row per collective kernel, of exports that say which collective it is: the launch with the same start, device and stream
    "collectives": pa.schema(
        [
            *_fields("start_ns duration_ns", I64, "ns"),
            _field("rank", U32),
            _field("device", U16),
            _field("stream", U32),
            _field("name", TEXT),
            _field("communicator", TEXT, nullable=True),
            *_fields("sequence group_size", I64, nullable=True),
            _field("bytes", I64, "bytes", nullable=True),
            _field("correlation", I64, nullable=True),
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
            _field("gpu", TEXT, nullable=True),  # equal texts: one GPU; digits alone: within the export; null: not told
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
            *_fields("value_sum value_min value_max", F64),
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
    # results of the efficiency wing: one row per dataset, node, rank, device, region, and per bin of each rank and of all (rank null)
    "efficiency": pa.schema(
        [
            _field("level", TEXT),
            _field("node", TEXT, nullable=True),
            _field("rank", U32, nullable=True),
            _field("device", U16, nullable=True),
            _field("region", TEXT, nullable=True),
            _field("bin", I64, nullable=True),
            _field("start_ns", I64, "ns", nullable=True),
            _field("elapsed_ns", I64, "ns"),
            _field("n_devices", I64),
            *_fields(
                "busy_ns kernel_ns compute_ns communication_ns memory_ns graph_ns exposed_communication_ns exposed_memory_ns overlap_ns",
                I64,
                "ns",
            ),
            *[
                _field(f"{flavour}_{ratio}", F64, nullable=True)
                for flavour in ("device", "talp", "comm_aware")
                for ratio in ("parallel_efficiency", "load_balance", "communication_efficiency", "orchestration_efficiency")
            ],
        ]
    ),
    # one row per matched collective that all ranks leave together, in order; `collective` is its number within its communicator
    "stragglers": pa.schema(
        [
            _field("communicator", TEXT, nullable=True),
            _field("collective", I64),
            _field("name", TEXT),
            _field("bytes", I64, "bytes", nullable=True),
            _field("n_ranks", I64),
            *_fields("start_ns skew_ns transfer_ns waiting_ns", I64, "ns"),
            _field("bus_gb_per_s", F64, "GB/s", nullable=True),
            _field("straggler", U32, nullable=True),
            _field("lateness_ns", I64, "ns"),
            _field("verdict", TEXT),
        ]
    ),
    # results of the comparison wing: one row per level, metric and matched group of two datasets, then what only one of them has
    "comparison": pa.schema(
        [
            *_fields("level metric match unit verdict reason", TEXT),
            *_fields("baseline candidate note", TEXT, nullable=True),
            *_fields("change_percent low_percent high_percent floor_percent", F64, "percent", nullable=True),
            *_fields("baseline_value candidate_value p_value q_value baseline_effective candidate_effective", F64, nullable=True),
            _field("paired", FLAG),
            *_fields("baseline_launches candidate_launches", I64, nullable=True),
            *_fields("baseline_total_ns candidate_total_ns", I64, "ns", nullable=True),
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
            _field("level", TEXT, nullable=True),
            *_fields("effect effect_low effect_high", F64, "standard deviations of the target", nullable=True),
            *_fields("contribution_percent contribution_low contribution_high", F64, "percent", nullable=True),
            *_fields("stability q_value robustness", F64, nullable=True),
            _field("verdict", TEXT),
            _field("sign_of", TEXT, nullable=True),  # what the sign is about: "target" or "value", the measured value itself
            *_fields("value_effect value_effect_low value_effect_high", F64, "standard deviations of the value", nullable=True),
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
            _field("asked", TEXT, nullable=True),  # the name of the entry of `causes/what_if` that is answered
            _field("sentence", TEXT, nullable=True),
        ]
    ),
    # slopes of the target on a cause in each kernel or rank; `group` is null for all of them together, with what tells them apart
    "heterogeneity": pa.schema(
        [
            *_fields("feature by", TEXT),
            _field("group", TEXT, nullable=True),
            _field("rows", I64),
            *_fields("slope slope_low slope_high", F64, "standard deviations of the target"),
            *_fields("cochran_q i_squared p_value", F64, nullable=True),
            _field("label", TEXT, nullable=True),
            _field("slope_of", TEXT, nullable=True),  # "target" or "value", as the cause's sign is
        ]
    ),
    # what others would name as causes, strongest first per method
    "baselines": pa.schema(
        [
            *_fields("method feature", TEXT),
            _field("place", I64),
            *_fields("score share_percent", F64),
            _field("p_value", F64, nullable=True),
            _field("sign", TEXT),
            _field("cause", FLAG),
        ]
    ),
    # one row per kernel and cause of the kernel or the dataset
    "agreement": pa.schema(
        [
            *_fields("kernel feature", TEXT),
            _field("kernel_sign", TEXT, nullable=True),
            _field("kernel_percent", F64, "percent", nullable=True),
            _field("dataset_sign", TEXT, nullable=True),
            _field("dataset_percent", F64, "percent", nullable=True),
            _field("level", TEXT, nullable=True),
            _field("state", TEXT),
            _field("sign_of", TEXT, nullable=True),  # what both signs are about; null where they are about different things
        ]
    ),
    # levels of detail: one row per cell that holds anything, ordered by start_ns, then lane and metric as `levels/index.json` numbers them
    "level_statistics": pa.schema(
        [
            _field("start_ns", I64, "ns"),
            _field("lane", U32),
            _field("metric", U16),
            *_fields("count sum squares_0 squares_1 squares_2 min max", I64),
        ]
    ),
    "level_sketches": pa.schema(
        [_field("start_ns", I64, "ns"), _field("lane", U32), _field("metric", U16), _field("bucket", U16), _field("count", U32)]
    ),
    "level_busy": pa.schema(
        [
            _field("start_ns", I64, "ns"),
            _field("lane", U32),
            *_fields(
                "compute_ns communication_ns exposed_communication_ns exposed_copy_ns active_compute_ns active_communication_ns"
                " host_to_device_ns device_to_host_ns on_device_ns memset_ns",
                I64,
                "ns",
            ),
        ]
    ),
    # fleet mode: the simulated world, ordered by GPU, then start; what agents saw; what they reported, ordered by report, then cell
    "fleet_sessions": pa.schema([*_fields("gpu user application generation run", I64), *_fields("start_s end_s", F64, "s")]),
    "fleet_reports": pa.schema([*_fields("report user gpu application generation run", I64), _field("sent_s", F64, "s")]),
    "fleet_samples": pa.schema(
        [
            _field("report", I64),
            _field("kernels", pa.list_(pa.int32())),
            _field("durations_ns", pa.list_(pa.int32()), "ns"),
            _field("occupancy", pa.list_(pa.float32()), "ratio"),
            _field("busy", F64, "ratio"),
            _field("gpu_ms", F64, "ms"),
            _field("launches", F64),
            _field("mib", F64, "MiB"),
        ]
    ),
    "fleet_attributions": pa.schema(
        [_field("report", I64), *_fields("application family cluster", I64), *_fields("score lead", F64, "ratio")]
    ),
    "fleet_counts": pa.schema(_fields("report cell value", I64)),
    # what the designer gets: one row per cell, and one per application
    "fleet_estimates": pa.schema(
        [
            *_fields("section application column", TEXT),
            _field("count", F64),
            *_fields("share share_low share_high", F64, "ratio", nullable=True),
            _field("released", FLAG),
        ]
    ),
    "fleet_applications": pa.schema(
        [
            *_fields("application family version", TEXT),
            *_fields("reports reports_low reports_high", F64),
            _field("released", FLAG),
            _field("median_duration_ns", F64, "ns", nullable=True),
            *_fields("busy occupancy variable_share", F64, "ratio", nullable=True),
            *_fields("gpu_ms gpu_ms_low gpu_ms_high", F64, "ms", nullable=True),
            *_fields("launches launches_low launches_high", F64, nullable=True),
            *_fields("mib mib_low mib_high", F64, "MiB", nullable=True),
        ]
    ),
    "fleet_coverage": pa.schema(
        [_field("hour", I64, "h"), *_fields("what mode", TEXT), *_fields("sampled released", F64, "ratio", nullable=True)]
    ),
}
OPEN_ENDED = frozenset({"counters", "bins", "kept", "features"})
"""Tables that carry further columns after those of the schema: metrics, statistics of chosen features, features."""

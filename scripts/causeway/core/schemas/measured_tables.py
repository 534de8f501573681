"""Tables of what was measured: bins, ranking, summaries, efficiency, stragglers, comparisons, levels of detail."""

import pyarrow as pa

from causeway.core.schemas.column_types import F64, FLAG, I64, TEXT, U16, U32, column, columns
from causeway.core.schemas.star_tables import LAUNCH_SHAPE
from causeway.core.vocabulary import DEVICE_RATIOS, FLAVOURS

STATISTICS = ("min", "max", "mean", "variance", "std", "q1", "median", "q3")
"""The eight statistics of a bin beside its count, in the order of the columns of `bins`."""

MEASURED_TABLES: dict[str, pa.Schema] = {
    # one row per (rank, bin) that holds launches with the target
    "bins": pa.schema(
        [
            column("rank", U32),
            column("bin", I64),
            column("start_ns", I64, "ns", nullable=True),
            column("count", I64),
            *[column(name, F64, nullable=name in ("variance", "std")) for name in STATISTICS],
        ]
    ),
    "ranking": pa.schema(
        [
            column("rank", U32),
            column("bin", I64),
            column("score", F64, nullable=True),
            column("order", I64),
            *columns("kept control", FLAG),
            column("inclusion_probability", F64, nullable=True),
        ]
    ),
    "kept": pa.schema(
        [
            column("rank", U32),
            column("bin", I64),
            column("launch", I64),
            column("start_ns", I64, "ns", nullable=True),
            column("kernel", TEXT),
            column("configuration", U32),
            *columns("target signed_deviation", F64),
            column("configuration_mean", F64),
            column("configuration_std", F64, nullable=True),
            column("kept", FLAG),
            column("inclusion_probability", F64),
        ]
    ),
    # one row per kernel of a dataset, over all of its launches, not only those in kept bins
    "kernel_summary": pa.schema(
        [
            *columns("kernel name short_name class", TEXT),
            *columns("launches configurations", I64),
            *columns("value_sum value_min value_max", F64),
            *columns("value_median value_q1 value_q3", F64),
            column("robust_cv", F64, nullable=True),
            # between the means of configurations: null: one, or no variance; a line of the value over a launch's
            # threads: null: fewer than three sizes, or some unknown
            column("variance_between", F64, "ratio", nullable=True),
            column("between_sum", F64, nullable=True),
            column("size_variance", F64, "ratio", nullable=True),
            *columns("size_constant size_slope", F64, nullable=True),
            column("target_sum", F64),
            column("target_share", F64, "ratio"),
            column("histogram", pa.list_(I64)),
            column("timeline", pa.list_(F64)),
        ]
    ),
    # one row per operation, algorithm and protocol (null: the kernel's name tells none), size of the group and message
    # (null: not recorded): collectives of which all ranks are known (`matched`) take as long as on the rank that waited
    # least, others as long as on their own rank, waiting within; bandwidths at the median and at the least time
    "collective_sizes": pa.schema(
        [
            column("operation", TEXT),
            *columns("algorithm protocol", TEXT, nullable=True),
            column("ranks", I64, nullable=True),
            column("bytes", I64, "bytes", nullable=True),
            column("matched", FLAG),
            column("collectives", I64),
            *columns("total_ns least_ns median_ns", I64, "ns"),
            *columns("algorithm_gb_per_s bus_gb_per_s best_bus_gb_per_s", F64, "GB/s", nullable=True),
        ]
    ),
    # one row per kernel and counter of warp stalls (`codes.WARP_STALLS`) that its launches have: cycles per issued
    # instruction, the mean over `measured` launches, and its share of the kernel's counters; the kernel with most GPU
    # time (null: not measured), else most launches, first
    "stall_reasons": pa.schema(
        [
            *columns("kernel name short_name", TEXT),
            column("launches", I64),
            column("gpu_ns", I64, "ns", nullable=True),
            column("reason", TEXT),
            column("measured", I64),
            column("cycles", F64, "cycles"),
            column("share", F64, "ratio"),
        ]
    ),
    # one row per name of each level (operator, outermost, module, phase): what the host was doing when it launched;
    # `name` is null for launches of which it is not known, `kernel` has most of the row's GPU time, and one more row
    # sums up the `names` with least GPU time where there are very many
    "operator_summary": pa.schema(
        [
            column("level", TEXT),
            column("name", TEXT, nullable=True),
            *columns("names launches kernels", I64),
            column("kernel", TEXT),
            *columns("gpu_ns variability_ns", I64, "ns"),
        ]
    ),
    # one row per configuration of a dataset, numbered over all its exports
    "configuration_summary": pa.schema(
        [
            column("configuration", U32),
            column("kernel", TEXT),
            *columns(" ".join(LAUNCH_SHAPE), I64, nullable=True),
            column("label", TEXT, nullable=True),
            column("rank", U32, nullable=True),
            column("launches", I64),
            column("mean", F64),
            column("std", F64, nullable=True),
        ]
    ),
    # one row per dataset, node, rank, device and region, and one per bin of each rank and of all ranks (rank null)
    "efficiency": pa.schema(
        [
            column("level", TEXT),
            column("node", TEXT, nullable=True),
            column("rank", U32, nullable=True),
            column("device", U16, nullable=True),
            column("role", U32, nullable=True),  # ranks of one role do the same work
            column("region", TEXT, nullable=True),
            column("bin", I64, nullable=True),
            column("start_ns", I64, "ns", nullable=True),
            column("elapsed_ns", I64, "ns"),
            column("n_devices", I64),
            *columns(
                "busy_ns kernel_ns compute_ns communication_ns memory_ns graph_ns exposed_communication_ns"
                " exposed_memory_ns overlap_ns",
                I64,
                "ns",
            ),
            *[
                column(f"{flavour.name}_{ratio.name}", F64, nullable=True)
                for flavour in FLAVOURS
                for ratio in DEVICE_RATIOS
            ],
        ]
    ),
    # one row per matched collective that all ranks leave together, in order; `collective` counts within its
    # communicator
    "stragglers": pa.schema(
        [
            column("communicator", TEXT, nullable=True),
            column("collective", I64),
            column("name", TEXT),
            column("bytes", I64, "bytes", nullable=True),
            column("n_ranks", I64),
            *columns("start_ns skew_ns transfer_ns waiting_ns", I64, "ns"),
            column("bus_gb_per_s", F64, "GB/s", nullable=True),
            column("straggler", U32, nullable=True),
            column("lateness_ns", I64, "ns"),
            column("verdict", TEXT),
        ]
    ),
    # one row per step of a rank, ordered; times are sums over the devices of the rank, whose busy and idle time is
    # duration times devices
    "steps": pa.schema(
        [
            column("rank", U32),
            column("step", I64),
            *columns("start_ns duration_ns", I64, "ns"),
            column("warm_up", FLAG),
            *columns("busy_ns exposed_communication_ns exposed_copies_ns idle_ns", I64, "ns"),
            column("launches", I64),
            # of the host, which made the launches of the step within: null: the step's own window, or not known
            *columns("called_ns called_duration_ns", I64, "ns", nullable=True),
        ]
    ),
    # one row per slow step of a rank and part of its excess over the usual step; the parts of a step sum to the excess
    "step_causes": pa.schema(
        [
            column("rank", U32),
            column("step", I64),
            column("cause", TEXT),
            column("name", TEXT, nullable=True),
            column("excess_ns", I64, "ns"),
            *columns("low_ns high_ns", I64, "ns", nullable=True),
            column("share", F64, "ratio"),
            column("launches", I64, nullable=True),
            *columns("ratio q_value", F64, nullable=True),
            column("verdict", TEXT),
        ]
    ),
    # one row per device, step (null: the whole run), reason and detail: how long the device ran neither a launch nor a
    # transfer, and why (`vocabulary.WAITING_REASONS`)
    "waiting": pa.schema(
        [
            column("rank", U32),
            column("device", U16),
            *columns("reason detail", TEXT),
            column("step", I64, nullable=True),
            column("wait_ns", I64, "ns"),
        ]
    ),
    # one row per rank, step (null: the whole run) and what its time had to wait for: the critical path, walked back
    # from the last work; per rank and step the rows add up to the step's duration, those of the run to the rank's span
    "critical_path": pa.schema(
        [
            column("rank", U32),
            column("step", I64, nullable=True),
            *columns("kind name", TEXT),
            column("operator", TEXT, nullable=True),
            column("path_ns", I64, "ns"),
        ]
    ),
    # the critical path of each rank in its order of time, neighbours of one kind (`codes.PATH_KINDS`) as one row:
    # the rows of a rank adjoin, from its first to its last work or call
    "path_pieces": pa.schema(
        [column("rank", U32), *columns("start_ns duration_ns", I64, "ns"), column("kind", TEXT)],
    ),
    # one row per change (`vocabulary.REPLAYED_CHANGES`) and step (null: the whole run): how long it would take; what
    # then limits the run; and beside it what a bound without dependencies would save
    "replay": pa.schema(
        [
            column("change", TEXT),
            column("name", TEXT, nullable=True),
            column("step", I64, nullable=True),
            *columns("time_ns predicted_ns", I64, "ns"),
            *columns("limited_by limited_name", TEXT, nullable=True),
            column("naive_ns", I64, "ns", nullable=True),
            *columns("device_time_ns predicted_device_time_ns", I64, "ns", nullable=True),
        ]
    ),
    # one row per level, metric and matched group of two datasets, then one per group that only one of them has
    "comparison": pa.schema(
        [
            *columns("level metric match unit verdict reason", TEXT),
            *columns("baseline candidate note", TEXT, nullable=True),
            *columns("change_percent low_percent high_percent floor_percent", F64, "percent", nullable=True),
            *columns(
                "baseline_value candidate_value p_value q_value baseline_effective candidate_effective",
                F64,
                nullable=True,
            ),
            column("paired", FLAG),
            *columns("baseline_launches candidate_launches", I64, nullable=True),
            *columns("baseline_total_ns candidate_total_ns", I64, "ns", nullable=True),
        ]
    ),
    # levels of detail: one row per cell that is not empty, ordered by start_ns, lane and metric; `levels/index.json`
    # gives the stream or device of each lane number, and the name of each metric number
    "level_statistics": pa.schema(
        [
            column("start_ns", I64, "ns"),
            column("lane", U32),
            column("metric", U16),
            *columns("count sum squares_0 squares_1 squares_2 min max", I64),
        ]
    ),
    "level_sketches": pa.schema(
        [
            column("start_ns", I64, "ns"),
            column("lane", U32),
            column("metric", U16),
            column("bucket", U16),
            column("count", U32),
        ]
    ),
    "level_busy": pa.schema(
        [
            column("start_ns", I64, "ns"),
            column("lane", U32),
            *columns(
                "compute_ns communication_ns exposed_communication_ns exposed_copy_ns active_compute_ns"
                " active_communication_ns host_to_device_ns device_to_host_ns on_device_ns memset_ns",
                I64,
                "ns",
            ),
        ]
    ),
}

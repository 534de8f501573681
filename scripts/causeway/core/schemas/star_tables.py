"""The star of tables into which one export is normalised.

Facts (launches, transfers, ...) have few columns and are ordered by time; what is constant per configuration stands in
a dimension.
"""

import pyarrow as pa

from causeway.core.schemas.column_types import F64, I64, TEXT, U8, U16, U32, column, columns

LAUNCH_SHAPE = (
    "grid_x grid_y grid_z block_x block_y block_z registers_per_thread static_shared_bytes dynamic_shared_bytes"
    " local_bytes lds_bytes scratch_bytes arch_vgpr accum_vgpr sgpr wave_size"
).split()
"""The columns that, with the kernel, make a configuration. Where an export gives only a total size, it stands in
`_x`, and `_y` and `_z` are null.
"""
GRID_AND_BLOCK = LAUNCH_SHAPE[:6]
"""Of these the size of the grid and of its blocks, from which `launch_threads` are known."""
LAUNCH_FACTS = pa.schema([column("queue_ns", I64, "ns", nullable=True)])
"""What an export may say of each launch, whole numbers, null where it does not: a reader hands such a column over by
its name, and `launches`, the kept launches and the features have it.
"""

CALL = (
    column("call", U32, nullable=True),
    *columns("call_start_ns call_end_ns", I64, "ns", nullable=True),
    column("thread", U32, nullable=True),
)
"""The host's call that made work of a device: its number in `calls`, its times and its thread. Of nested calls the one
that returns last; null where the export does not say.
"""

ON_THREAD = (
    *columns("start_ns duration_ns", I64, "ns"),
    column("rank", U32),
    column("thread", U32, nullable=True),
    column("name", pa.dictionary(pa.int32(), TEXT)),
)
"""What a thread of the host did."""

STAR_TABLES: dict[str, pa.Schema] = {
    # facts, ordered by start_ns, then by the order in the export
    "launches": pa.schema(
        [
            *columns("start_ns duration_ns", I64, "ns"),
            *columns("configuration rank", U32),
            column("device", U16),
            column("stream", U32),
            *LAUNCH_FACTS,
            column("range", U32, nullable=True),
            column("correlation", I64, nullable=True),
            *columns("operator shape", U32, nullable=True),  # of the call that made it; null: not known
            *CALL,
        ]
    ),
    "transfers": pa.schema(
        [
            *columns("start_ns duration_ns", I64, "ns"),
            column("bytes", I64, "bytes", nullable=True),
            column("copy_kind", U8),
            *columns("src_kind dst_kind", U8, nullable=True),
            column("rank", U32),
            column("device", U16),
            column("stream", U32),
            column("correlation", I64, nullable=True),
            column("migration_cause", U8, nullable=True),  # of pages of managed memory, as CUPTI numbers it
            *CALL,
        ]
    ),
    "ranges": pa.schema(
        [
            *columns("start_ns duration_ns", I64, "ns"),
            *columns("range rank", U32),
            column("thread", U32, nullable=True),
            column("kind", TEXT),
            column("name", TEXT),
        ]
    ),
    "calls": pa.schema(
        [
            *columns("start_ns duration_ns", I64, "ns"),
            column("call", U32),
            column("rank", U32),
            column("thread", U32, nullable=True),
            column("name", pa.dictionary(pa.int32(), TEXT)),
            column("correlation", I64, nullable=True),
        ]
    ),
    "mpi": pa.schema([*ON_THREAD, *columns("bytes peer communicator", I64, nullable=True)]),
    # calls of the operating system (files, locks, sleep) by threads of the host
    "system_calls": pa.schema(ON_THREAD),
    # host code that samples saw: a sample lasts until the thread's next one, at most as long as two usually are apart
    "cpu_samples": pa.schema(ON_THREAD),
    # Python functions on threads of the host, inner and outer ones, without those too short to explain a gap
    "python_functions": pa.schema(ON_THREAD),
    # operators of a framework on threads of the host, inner and outer ones
    "host_operators": pa.schema(ON_THREAD),
    # synchronisation as the host asked for it: streams that wait for an event (`source_stream`: where it was recorded),
    # and waits of the host for an event, a stream or the device
    "dependencies": pa.schema(
        [
            *columns("start_ns duration_ns", I64, "ns"),
            column("rank", U32),
            column("kind", TEXT),
            *columns("stream source_stream", U32, nullable=True),
            *columns("event correlation", I64, nullable=True),
        ]
    ),
    # executions of CUDA graphs that were traced as a whole, without the kernels inside, on the stream of their launch
    "graphs": pa.schema(
        [
            *columns("start_ns duration_ns", I64, "ns"),
            column("rank", U32),
            column("device", U16),
            column("stream", U32, nullable=True),
            column("correlation", I64, nullable=True),
            *CALL,
        ]
    ),
    # when the profiler itself was at work in a rank's process, and at what; rows of a rank do not overlap
    "profiler_overhead": pa.schema(
        [
            *columns("start_ns duration_ns", I64, "ns"),
            column("rank", U32),
            column("name", pa.dictionary(pa.int32(), TEXT)),
        ]
    ),
    # when the context of another process had a device, as the export records switches of contexts; rows of a device do
    # not overlap
    "other_contexts": pa.schema(
        [
            *columns("start_ns duration_ns", I64, "ns"),
            column("rank", U32),
            column("device", U16),
            column("process", I64, nullable=True),  # its id; null: not recorded
        ]
    ),
    # one row per collective kernel, where the export identifies the collective; its launch has the same start, device
    # and stream
    "collectives": pa.schema(
        [
            *columns("start_ns duration_ns", I64, "ns"),
            column("rank", U32),
            column("device", U16),
            column("stream", U32),
            column("name", TEXT),
            column("communicator", TEXT, nullable=True),
            *columns("sequence group_size", I64, nullable=True),
            column("bytes", I64, "bytes", nullable=True),
            column("correlation", I64, nullable=True),
        ]
    ),
    "samples": pa.schema(
        [
            column("time_ns", I64, "ns"),
            column("rank", U32),
            column("device", U16),
            column("metric", pa.dictionary(pa.int32(), TEXT)),
            column("value", F64),
        ]
    ),
    # one row per launch of a counter export or table; its metrics stand in further columns
    "counters": pa.schema(
        [
            column("launch", I64),
            column("start_ns", I64, "ns", nullable=True),
            *columns("configuration rank", U32),
            column("device", U16, nullable=True),
        ]
    ),
    # dimensions, ordered by their number
    "configurations": pa.schema(
        [
            *columns("configuration kernel", U32),
            *columns(" ".join(LAUNCH_SHAPE), I64, nullable=True),
            column("label", TEXT, nullable=True),
        ]
    ),
    # what the host was doing when it launched: the innermost and the outermost operator around the launching call, the
    # path of modules and annotations, and forward, backward or optimizer
    "operators": pa.schema([column("operator", U32), *columns("name outermost module phase", TEXT, nullable=True)]),
    # of the inputs of the innermost operator that gives any; elements and bytes are of all its tensors together; layout
    # says which of them are not contiguous, null: no strides were recorded
    "shapes": pa.schema(
        [
            column("shape", U32),
            *columns("dims types", TEXT),
            column("elements", I64, nullable=True),
            column("bytes", I64, "bytes", nullable=True),
            column("layout", TEXT, nullable=True),
        ]
    ),
    "kernels": pa.schema([column("kernel", U32), *columns("id name short_name class", TEXT)]),
    "devices": pa.schema(
        [
            column("rank", U32),
            column("device", U16),
            column("name", TEXT, nullable=True),
            column("multiprocessors", I64, nullable=True),
            column("memory_bytes", I64, "bytes", nullable=True),
            column("clock_hz", I64, "Hz", nullable=True),
            column("compute_capability", TEXT, nullable=True),  # as NVIDIA numbers it: 8.0
            column("gpu", TEXT, nullable=True),  # equal texts: one GPU; digits alone: within the export; null: unknown
        ]
    ),
}
OPTIONAL_COLUMNS = {
    "devices": ("compute_capability",),
    "launches": ("operator", "shape", *LAUNCH_FACTS.names[1:], *(field.name for field in CALL)),
    "transfers": ("migration_cause", *(field.name for field in CALL)),
    "graphs": tuple(field.name for field in CALL),
    "shapes": ("layout",),
    "steps": ("called_ns", "called_duration_ns"),
    "kernel_summary": ("variance_between", "between_sum", "size_variance", "size_constant", "size_slope"),
}
"""Columns that a table may lack: they were not written before, and other programs' tables have none. Of the facts of
launches only `queue_ns` always stands there.
"""

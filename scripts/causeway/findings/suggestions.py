"""What to try, by the kind of cause or loss: concrete steps that an engineer can take, never a promise."""

from collections.abc import Mapping

COPIES = "Move the copies away from this kernel: another stream order, pinned memory with copies issued earlier, or fewer bytes."
CONTENTION = "Launch less beside it: serialise the competing streams, limit concurrent kernels or give this kernel a priority stream."
SHAPE = "Try the launch configuration with the smallest deviation: block and grid size, shared memory or registers per thread."
PLACEMENT = "Compare ranks, devices and nodes: clocks, power limits, topology and neighbours; move the work, or pin it, and measure again."
MEMORY = "Look at the memory accesses of this kernel in Nsight Compute or rocprofiler-compute: coalescing, reuse, bytes per launch."
COUNTERS = "Look at this counter in Nsight Compute or rocprofiler-compute, in launches with a low and with a high value side by side."
METRICS = "Fix clocks and power limits, or keep other work off the device, and see whether the variability goes."
FURTHER = "Vary this feature in an experiment of its own and see whether the target follows."

BY_FEATURE = {
    **dict.fromkeys(("h2d_bytes_in_flight", "d2h_bytes_in_flight", "d2d_bytes_in_flight", "p2p_bytes_in_flight"), COPIES),
    **dict.fromkeys(("transfers_in_flight", "transfer_bytes", "transfer_copy_kind"), COPIES),
    "launches_in_flight": CONTENTION,
    "queue_ns": "Shorten the queue before it: fewer launches ahead on the stream, or a stream of its own.",
    "idle_before_ns": "Keep the device busy before it (CUDA or HIP graphs, larger batches), or warm clocks and caches up on purpose.",
    "since_start_ns": "Look for drift in the run: clocks, temperature, growing data; leave the warm-up out or fix the clocks.",
    "iteration_position": "Compare early and late launches of an iteration: what runs beside them, and what is in the caches.",
    "previous_deviation": "Deviations follow each other: look for a slow state of the device (clock, power) or of the data.",
}
BY_GROUP = (
    ("launch", SHAPE),
    ("placement", PLACEMENT),
    ("contention", CONTENTION),
    ("memory", MEMORY),
    ("cache", MEMORY),
    ("device metrics", METRICS),
    ("counter", COUNTERS),
    ("execution", COUNTERS),
    ("temporal", COUNTERS),
)
LOSSES = {
    "orchestration": "Launch earlier and less often: CUDA or HIP graphs, fused or larger kernels, fewer synchronisations.",
    "load_imbalance": "Spread the work evenly: compare the kernels of the busiest and the idlest device, and partition by measured cost.",
    "communication": "Overlap collectives with compute, send fewer or larger messages, and check that they use the fastest links.",
    "transfers": "Overlap copies with compute: pinned memory, a stream of their own, or data that stays on the device.",
}
IDLE = {
    "host": "The host is late: look at what it does before the launches (Python, synchronisation, allocation), then CUDA or HIP graphs.",
    "kernel_wait": "Gaps between kernels: capture the sequence in a graph, fuse small kernels or use programmatic dependent launch.",
    "other": "Look at the idle stretches in the explorer: what the streams wait for there is not in this trace.",
}
SMALL = "Fuse small kernels or capture them in a CUDA or HIP graph: each costs about as much to launch as it runs."
SHARED = "Give each rank a device of its own, or run them under MPS with stated shares: their kernels wait for each other."
LATE = {
    "compute": "Look at the kernels of this rank: its share of the work, its clock and its device against the others'.",
    "copies": "Look at the copies of this rank: pinned memory, the link and NUMA node of its device, bytes that only it moves.",
    "host": "Look at the host of this rank: input pipeline, pinning of threads, other processes on its node.",
}
LATE_UNKNOWN = "Compare this rank with another one in the explorer, just before a late collective."
NETWORK = "Check links and transport (NCCL or RCCL debug output, topology), other jobs on the network, and message sizes."


def for_cause(row: Mapping) -> str | None:
    """Return what to try about a cause, None if it was refuted; `row` is one of `contributions.parquet`."""
    if row["verdict"] == "refuted":
        return None
    if row["feature"] in BY_FEATURE:
        return BY_FEATURE[row["feature"]]
    group = (row.get("group") or "").lower()
    return next((words for part, words in BY_GROUP if part in group), FURTHER)


def for_no_cause() -> str:
    """Return what to try where no cause was found."""
    return "Measure more: further counters, device metrics or a longer run; what was recorded does not explain the variability."

"""What to try, by the kind of cause or loss: concrete steps that an engineer can take, never a promise. What belongs to
one finding alone stands beside it.
"""

from causeway.core.feature_registry import record_of
from causeway.core.schemas import Row
from causeway.core.vocabulary import REFUTED
from causeway.findings.record import RAISES

CAUSES = {
    "copies": (
        "Move the copies away from this kernel: another stream order, pinned memory with copies issued earlier, or"
        " fewer bytes."
    ),
    "contention": (
        "Launch less beside it: serialise the competing streams, limit concurrent kernels or give this kernel a"
        " priority stream."
    ),
    "queue": "Shorten the queue before it: fewer launches ahead on the stream, or a stream of its own.",
    "idle_before": (
        "Keep the device busy before it (CUDA or HIP graphs, larger batches), or warm clocks and caches up on purpose."
    ),
    "drift": "Look for drift in the run: clocks, temperature, growing data; leave the warm-up out or fix the clocks.",
    "step_position": "Compare early and late launches of a step: what runs beside them, and what is in the caches.",
    "since_range_began": (
        "Compare launches that start soon and late after their range began: what the range does before, how long they"
        " wait in the queue, what runs beside them, and what is in the caches."
    ),
    "program_order": (
        "Find this launch in the program and look at what it works on: its layer, the sizes and layout of its tensors,"
        " and what the launch before leaves in the caches. Modules, or a range around each layer, would name it."
    ),
    "operator": (
        "Look at this operator where the model calls it: what it launches there, and whether it can be fused, moved or"
        " done in another way."
    ),
    "input_size": (
        "Launches work on inputs of different sizes, which is no loss by itself: compare the time per element. Where"
        " sizes change from step to step, pad or bucket them to a few, split the largest, batch the smallest."
    ),
    "last_input": (
        "Look at what the copy brings this kernel to work on, and at its sizes where it is made: batch small inputs,"
        " split large ones."
    ),
    "layout": (
        "Give this operator inputs in the faster layout: make them contiguous once where they are made, or keep one"
        " memory format (channels last) from layer to layer."
    ),
    "lasting_state": (
        "Deviations of successive launches are correlated: look for a slow state of the device (clock, power) or of"
        " the data."
    ),
    "launch_configuration": (
        "Try the launch configuration with the smallest deviation: block size, shared memory or registers per thread."
    ),
    "grid": (
        "The grid mostly follows the size of the data: look at the sizes that this kernel works on, batch the smallest"
        " and split the largest. Where the program sets the grid itself, try other sizes for the same work."
    ),
    "placement": (
        "Compare ranks, devices and nodes: clocks, power limits, topology and neighbours; move the work, or pin it, and"
        " measure again."
    ),
    "device_metric": (
        "Fix clocks and power limits, or keep other work off the device, and see whether the variability goes."
    ),
    "memory_accesses": (
        "Look at the memory accesses of this kernel in Nsight Compute or rocprofiler-compute: coalescing, reuse, bytes"
        " per launch."
    ),
    "counter": (
        "Look at this counter in Nsight Compute or rocprofiler-compute, in launches with a low and with a high value"
        " side by side."
    ),
    "experiment": "Vary this feature in an experiment of its own and see whether the target follows.",
}
"""By the key that a feature's record names."""
COLLECTIVE = (
    "The time of a collective includes waiting for the last rank: look for the rank that is late (straggler) and at why"
    " devices wait."
)
"""Of causes of the time of a collective: where to look, no change to make."""
THIS_KERNEL = "Look at this kernel first: its causes stand under Why, its launches in the explorer."
ITS_LAUNCHES = "Look at this kernel first: what differs between its longest launches and its usual ones."
"""The same of a kernel of which no cause was found."""
NO_CAUSE = (
    "Measure more: further counters, device metrics or a longer run; what was recorded does not explain the"
    " variability."
)
TOO_LITTLE = "Record more launches: a longer run, or more iterations of the same work."
TOO_LITTLE_OF_TIME = (
    "Look at what limits the kernels with the most time, which stand under where the time goes. A search for causes of"
    " varying durations takes more launches."
)
"""The same of kernels' time: there is something to look at before more is recorded."""
MIGRATIONS = (
    "Move managed memory before it is used (cudaMemPrefetchAsync), say where it belongs and who reads it"
    " (cudaMemAdvise), or use explicit copies: page by page, whoever touches it waits."
)
LESS_IS_BETTER = ("copies", "contention", "queue", "idle_before")
"""Texts that advise less of the cause: they fit only where more of it takes longer."""


def for_cause(row: Row, direction: str) -> str | None:
    """Return what to try about a cause, None if it was refuted.

    Parameters
    ----------
    row : mapping
        Of `contributions.parquet`.
    direction : str
        What more of it does, one of `record.DIRECTIONS`.
    """
    if row["verdict"] == REFUTED:
        return None
    key = record_of(row["feature"], row.get("group") or "").suggestion
    return CAUSES["experiment" if key in LESS_IS_BETTER and direction != RAISES else key]

"""What to try, by the kind of cause or loss: concrete steps that an engineer can take, never a promise. What belongs to
one finding alone stands beside it.
"""

import re
from collections.abc import Collection, Mapping

from causeway.core.codes import COMPILATION, HOST_ACCESS, HOST_CODE, IN_CALL, LOADER, NO_LAUNCHER, waits_for_engine
from causeway.core.feature_registry import record_of
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
SIZES = (
    "How much work a launch gets decides its time: look at why launches differ in size (batches, sequences, graphs),"
    " then pad or bucket them to a few sizes, split the largest, batch the smallest."
)
CONFIGURATIONS = (
    "Look at what differs between the launches of these configurations: the sizes and layout of their inputs, and who"
    " launches them."
)
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
LOSSES = {
    "orchestration": (
        "Launch earlier and less often: CUDA or HIP graphs, fused or larger kernels, fewer synchronisations."
    ),
    "communication": (
        "Overlap collectives with compute, send fewer or larger messages, and check that they use the fastest links."
    ),
    "transfers": "Overlap copies with compute: pinned memory, a stream of their own, or data that stays on the device.",
}
COPIES_WITHIN = (
    "Most are copies and memsets within a device: write results where they are needed (in place, views, one layout"
    " for all), or let kernels write them."
)
MIGRATIONS = (
    "Move managed memory before it is used (cudaMemPrefetchAsync), say where it belongs and who reads it"
    " (cudaMemAdvise), or use explicit copies: page by page, whoever touches it waits."
)
PAGEABLE = (
    "Pin the host's memory: nothing is longer on the critical path than copies of pageable memory, in whose calls the"
    " host waits. Then overlap them with compute, or let the data stay on the device."
)
WAITING = {
    "launch_starved": (
        "The host is late in what the table of waiting names: do it beforehand, on another thread, or less often; CUDA"
        " or HIP graphs skip launch calls and the framework's code between them."
    ),
    "dependency_stalled": (
        "Queued work waits for another stream or copy: split that work, start it earlier, or drop the event between."
    ),
    "blocked_host": (
        "The host blocks while the device runs dry: drop the synchronisation, or allocate once and outside of the loop."
    ),
    "start_up": "Gaps between launches: capture the sequence in a graph, or fuse small kernels.",
    "graph_internal": (
        "Gaps between nodes of one graph: fuse small kernels, use programmatic dependent launch, or let branches of the"
        " graph run side by side."
    ),
    "held_back": (
        "Look at what the launch may wait for: another device or process, a host function, or work that was not"
        " recorded; record event waits, too."
    ),
    "other_process": (
        "Another process has the GPU in turns: stop it, give it another GPU, or run both under MPS; where it must stay,"
        " shorten its work or lower its priority."
    ),
    "profiler": (
        "Measure again with less of the profiler: fewer traces (of the operating system, backtraces, metrics), a"
        " capture of fewer steps that begins after the set-up, flushes at its end alone."
    ),
}
OTHER_CALLS = (
    "Runtime calls are recorded, but not those that launched this work: begin to record before it is launched, and"
    " export the whole recording."
)
RECORDING = {
    "nsys": "nsys --trace cuda",
    "cupti": "nsys --trace cuda",
    "kineto": "ProfilerActivity.CPU",
    "rocprofv3": "rocprofv3 --hip-runtime-trace",
    "rocpd": "rocprofv3 --hip-runtime-trace",
    "rocprof": "rocprofv3 --hip-runtime-trace",
}
"""How the tools of a format record runtime calls."""
LATE_IN_CALLS = (
    "Launch calls take the time: CUDA or HIP graphs, fused or larger kernels, fewer calls and synchronisations between"
    " launches."
)
"""Of a host that is late most of all inside runtime calls, most of them calls that launch."""
LATE_IN_SET_UP = (
    "Runtime calls that launch nothing take the time (the table of waiting names them): make streams, events, graphs"
    " and memory once, before the work, and use them again."
)
"""The same where most of the time is in other calls: cudaGraphInstantiate, cudaStreamCreate, hipMalloc."""
LATE_UNSEEN = (
    "Find out what the host does between launches (ranges or sampled stacks name it): CUDA or HIP graphs skip launch"
    " calls and the framework's code between them, not loading of data or other work."
)
"""Of a host that is late most of all for what the export does not hold."""
LATE = {
    "compute": "Look at the kernels of this rank: its share of the work, its clock and its device against the others'.",
    "copies": (
        "Look at the copies of this rank: pinned memory, the link and NUMA node of its device, bytes that only it"
        " moves."
    ),
    "host": "Look at the host of this rank: input pipeline, pinning of threads, other processes on its node.",
    "other_ranks": "Look at the ranks that this one exchanges data with before: one of them is late.",
}
LATE_UNKNOWN = "Compare this rank with another one in the explorer, just before a late collective."
SLOW_STEPS = {
    "idle_before_first_launch": "Look at what the host does before the step's first launch: loader, checkpoint, log.",
    "idle_inside": "Look at what the host does between launches of this step: synchronisation, allocation, Python.",
    "exposed_communication": "Look at the rank that is late in this step, else at links and other jobs on the network.",
    "exposed_copies": "Look at the copies of this step: their size, pinned memory, other traffic on the link.",
    "added_launches": "Look at what runs in this step alone: evaluation, logging, a rare branch, a recompilation.",
    "larger_launches": "Look at the input of this step: length of sequences, size of the batch; pack by length.",
    "lower_clock": "Look at power cap and temperature of this device at that time.",
    "slower_kernels": "Compare this step with a usual one in the explorer: other work on the device, clock, memory.",
}
DATA_LOADER = (
    "The loader is late: more workers, a longer prefetch, less work per batch, faster storage; see which batches take"
    " long."
)
COMPILED_AGAIN = (
    "Compile before the loop, and once: mark the sizes that change as dynamic, or pad inputs to a few sizes; the log of"
    " recompilations names what changed."
)
NAMED = ((LOADER, DATA_LOADER), (COMPILATION, COMPILED_AGAIN), (HOST_ACCESS, MIGRATIONS))
"""What to try where one kind of work of the host, by how its detail begins, is behind most of a wait for it."""
BLOCKING_STEPS = {
    True: "Allocate once and outside of the loop: keep the allocator's cache, and its blocks from being split.",
    False: "Drop the synchronisation, or move it behind work that is already queued.",
}
"""Of a host that blocks in slow steps: in calls that allocate or free memory, or in others."""
_ALLOCATES = re.compile("alloc|free", re.IGNORECASE)
ENGINE = (
    "The host waits for a video engine: queue pictures ahead, and take them on another thread than the one that"
    " launches."
)
IN_GRAPHS = (
    "The program runs in CUDA or HIP graphs already: take what lies between their executions into them (host code,"
    " single launches, waiting for each result), or make one execution do more."
)
"""In place of advice to use graphs."""
_USE_GRAPHS = re.compile(r"\b(?:HIP|in a) graphs?\b")
UNSEEN = (HOST_CODE, NO_LAUNCHER)
"""What stands for a host of which the export does not tell what it did."""


def of_graphed(suggestion: str | None) -> str | None:
    """Return what to try of a program that runs in graphs already: advice to use them becomes `IN_GRAPHS`."""
    return IN_GRAPHS if suggestion and _USE_GRAPHS.search(suggestion) else suggestion


def for_waiting(reason: str, details: Mapping[str, int], formats: Collection[str], has_calls: bool = False) -> str:
    """Return what to try about the time that devices wait.

    Parameters
    ----------
    reason : str
        The one with the most time, a key of `headlines.WAITING`.
    details : mapping of str to int
        What is behind it, with its time, ns.
    formats : collection of str
        Of the exports: their tools are named.
    has_calls : bool
        Whether runtime calls are recorded, if not those of the work that was waited for.
    """
    if reason == "unknown" and has_calls:
        return OTHER_CALLS
    if reason == "unknown":
        tools = dict.fromkeys(words for one, words in RECORDING.items() if one in formats)
        how = f" ({', '.join(tools)})" if tools else ""
        return f"Record runtime calls and kernels in one run{how} to see why devices wait."
    if reason != "launch_starved":
        of_engines = sum(ns for detail, ns in details.items() if waits_for_engine(detail))
        return ENGINE if 2 * of_engines > sum(details.values()) else WAITING[reason]
    for begins, words in NAMED:
        if 2 * sum(ns for detail, ns in details.items() if detail.startswith(begins)) > sum(details.values()):
            return words
    unseen = sum(details.get(one, 0) for one in UNSEEN)
    calls = sum(ns for detail, ns in details.items() if detail.startswith(IN_CALL))
    launching = sum(ns for detail, ns in details.items() if detail.startswith(IN_CALL) and "launch" in detail.lower())
    named = sum(details.values()) - unseen - calls
    if named >= max(unseen, calls):
        return WAITING[reason]
    if calls <= unseen:
        return LATE_UNSEEN
    return LATE_IN_CALLS if 2 * launching >= calls else LATE_IN_SET_UP


LESS_IS_BETTER = ("copies", "contention", "queue", "idle_before")
"""Texts that advise less of the cause: they fit only where more of it takes longer."""


def for_cause(row: Mapping, direction: str) -> str | None:
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


def for_slow_steps(cause: str, reason: str | None, detail: str | None) -> str:
    """Return what to try about slow steps.

    Parameters
    ----------
    cause : str
        Why they are slow, as `step_causes` has it.
    reason, detail : str or None
        Why devices wait in them more than usual, and what is behind it, as `waiting` has them; None where not known.
    """
    if reason == "blocked_host" and waits_for_engine(detail):
        return ENGINE
    if reason == "blocked_host":
        return BLOCKING_STEPS[bool(_ALLOCATES.search(detail))]
    if reason == "launch_starved":
        for begins, words in NAMED:
            if detail.startswith(begins):
                return words
    if reason == "launch_starved" and detail in UNSEEN:
        return LATE_UNSEEN
    return SLOW_STEPS[cause]

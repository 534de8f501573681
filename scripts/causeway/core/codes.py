"""Numbers and words that stand in tables for kinds of copies, memory and kernels, of critical paths, of waits and
of stalls.
"""

import re
from enum import StrEnum

BY_KERNEL = -1
"""Kind of copies that run as kernels, as AMD's runtime does without its DMA engines: their direction is not known."""
MEMSET_KIND = 255
"""The copy kind of a memory set; ours, beside CUPTI's: CUPTI keeps memory sets in a table of their own."""

SYNCHRONISATIONS = ("unknown", "synchronise_event", "wait", "synchronise_stream", "synchronise_device")
"""Kinds of synchronisation in CUPTI's order (`CUpti_ActivitySynchronizationType`): the host waits for an event, a
stream for an event, the host for a stream or a device.
"""
COPY_KINDS = {
    0: "unknown",
    1: "host to device",
    2: "device to host",
    3: "host to array",
    4: "array to host",
    5: "array to array",
    6: "array to device",
    7: "device to array",
    8: "device to device",
    9: "host to host",
    10: "peer to peer",
    11: "unified host to device",
    12: "unified device to host",
    13: "unified device to device",
    MEMSET_KIND: "memset",
}
"""CUPTI's CUpti_ActivityMemcpyKind (CUDA 12), and `MEMSET_KIND`."""
MIGRATIONS = (11, 12, 13)
"""Copy kinds of pages of managed memory: the driver moves them when the host or a kernel touches them. No call of the
program makes such a copy, it is no work of a stream, and it hides nothing.
"""
MIGRATED_BY_HOST = (11, 12)
"""Those that the host causes where no kernel runs that could: it touches a page of the device, or prefetches one. Pages
that move between devices may be caused by a kernel of either.
"""
PREFETCHED = 1
"""Cause of a migration that the program asked for, by `cudaMemPrefetchAsync`: CUPTI's
CUpti_ActivityUnifiedMemoryMigrationCause, of which 2 is a page fault, 3 the driver's own guess, 4 an eviction.
"""
WITHIN_DEVICE = (5, 6, 7, 8, 13, MEMSET_KIND)
"""Copy kinds of which both ends, and a memory set's only one, lie in a device's own memory."""

MEMORY_KINDS = {
    0: "pageable",
    1: "pinned",
    2: "device",
    3: "array",
    4: "managed",
    5: "device static",
    6: "managed static",
    7: "unknown",
}
"""Nsight Systems' ENUM_CUDA_MEM_KIND."""
OF_PAGEABLE_MEMORY = ", pageable memory"
"""What is added to the direction of a copy whose host side is pageable, on critical paths."""

NUMBERED_RANGE = r"(?i:profilerstep|step|iteration|iter|epoch|batch|micro[_ -]?batch|request|token)"
"""Pattern of the words that stand before a number in names of ranges that repeat: a step or what a program calls it."""

NO_OTHER = "no other kernel"
"""Level of `kernel_in_flight` of a launch that is alone when it begins."""

COMMUNICATION_KERNEL = "communication"
"""Class of collectives, sends and receives: their duration includes waiting for the last rank."""
MEMORY_KERNEL = "memory"
"""Class of copies and memsets that run as kernels."""
KERNEL_CLASSES = ("compute", COMMUNICATION_KERNEL, MEMORY_KERNEL)

PATH_KINDS = {
    "kernel": "kernels",
    "collective": "collectives",
    "copy": "copies",
    "launch": "launches",
    "host": "the host",
    "wait": "waiting for other work or ranks",
}
"""What a piece of a critical path is, in words: work of the device, then what it waited for."""

PROFILER = "profiler"
"""Reason of the time that devices wait while the profiler itself is at work."""

WARP_STALLS = {
    "stall_global_memory_per_issue": "global memory",
    "stall_memory_queue_per_issue": "queue to memory",
    "stall_memory_drain_per_issue": "writes at the end",
    "stall_constant_cache_per_issue": "constants",
    "stall_memory_barrier_per_issue": "memory barrier",
    "stall_shared_memory_per_issue": "shared memory",
    "stall_shared_memory_queue_per_issue": "queue to shared memory",
    "stall_texture_queue_per_issue": "queue to textures",
    "stall_barrier_per_issue": "barrier",
    "stall_branch_per_issue": "branch",
    "stall_sleeping_per_issue": "sleeping",
    "stall_math_pipe_per_issue": "arithmetic unit",
    "stall_matrix_unit_per_issue": "matrix unit",
    "stall_fixed_latency_per_issue": "fixed latency",
    "stall_dispatch_per_issue": "dispatch",
    "stall_instruction_fetch_per_issue": "instruction fetch",
    "stall_not_selected_per_issue": "ready, another was chosen",
    "stall_other_per_issue": "other",
}
"""Counters of what warps wait for (`config/columns/counters.yaml`, group warp stalls), in words: memory, then other
warps, then execution. The last one is also that of reasons that are not listed.
"""
ALL_LAUNCHES = "(all launches)"
"""The kernel of rows without the name of one."""
GPU_TIME = "gpu_time"
"""The counter that is a launch's duration."""
GRAPH_RANGE = "cuda_graph"
"""Kind of the ranges that are executions of graphs traced as a whole."""
HOST_CODE = "host code not recorded"
"""What is behind a wait for the host where the export does not tell what the host did."""
HOST_ACCESS = "host code, up to its access to managed memory"
"""What is behind a wait that ends with a migration which the host caused."""
BEHIND_RANK = "queued behind work of another rank on the same GPU"
"""What is behind a wait of a rank whose GPU ran another rank's work."""
BESIDE_RANK = "nothing queued, while work of another rank ran on the same GPU"
BEFORE_RANK = "idle until work of another rank on the same GPU, in whose row the reason stands"
"""What else there is in a rank's time without work on a GPU that it shares."""
NO_CALLS = "the export has no runtime calls"
NO_LAUNCHER = "the launching thread is not recorded"
"""The same where calls have no thread, as in exports that give no more of them than when work was enqueued."""
HELD_BACK = "enqueued on an idle device, held back by what is not recorded"
"""What is behind an unknown wait whose launch call is known."""
IN_CALL = "in "
"""What stands before the name of a runtime call that is behind a wait for the host."""
LOADER = "data loader"
"""What stands before the name of a range that loads data."""
COMPILATION = "compilation"
"""What stands before the name of a range that compiles."""
IN_RANGE = "range: "
"""What stands before the name of any other range."""
IN_MPI = "MPI: "
"""What stands before the name of a function of MPI."""
IN_SAMPLED = "host code in "
"""What stands before the name of host code that samples saw."""
IN_PYTHON = "Python: "
"""What stands before a Python function."""
COLLECTION = "garbage collection"
"""What stands before the name of a range or function that collects garbage."""
IN_OPERATOR = "operator: "
"""What stands before the name of an operator of the host."""

CONSTANT_TARGET = "the target is constant"
"""How the reason begins for which causes of what does not vary are not searched for."""
NO_FEATURE = "no feature is left after preparation"
"""The reason where none of the columns can be a cause: they are constant, or say what was measured."""

_ENGINE = re.compile(
    r"^cuvid(?:MapVideoFrame|DecodePicture)|^nvEnc(?:LockBitstream|EncodePicture)|^vpi(?:Stream|Event)Sync",
    re.IGNORECASE,
)
"""Calls that return when an engine beside kernels and copies is done with a picture or takes it: the video decoder, the
encoder, and those behind streams of VPI, such as optical flow (NVDEC Video Decoder API Programming Guide:
`cuvidMapVideoFrame` "waits for decoding to complete"; NVENC Programming Guide; VPI reference, `vpiStreamSync`). In an
export at hand `cuvidDecodePicture` takes 8 ms where the decoder is busy, and 0.05 ms where it is not. Calls of nvJPEG
are none: they decode in part on the host, and return before the device has ended.
"""


def waits_for_engine(name: str) -> bool:
    """Return whether a call of this name waits for an engine of the device: that is no work of the host.

    >>> [waits_for_engine(name) for name in ("cuvidMapVideoFrame64", "NvEncLockBitstream", "cuvidParseVideoData")]
    [True, True, False]
    """
    return _ENGINE.search(name) is not None


class Drop(StrEnum):
    """Why a column is no candidate or no cause.

    Of no information: it holds no value, does not vary, or follows the configurations. Leaked: it follows from the
    measured value exactly, alone or with one other column; or its name says so. Definition: the target is computed from
    it. Ruled out: what is known before any data, or an order of time, speaks against it. Refused: the
    search named it a cause, and a later test did not.
    """

    UNINFORMATIVE = "uninformative"
    MERGED = "merged"
    LEAKED = "leaked"
    LEAKED_BY_NAME = "leaked_by_name"
    DEFINITION = "definition"
    RULED_OUT = "ruled_out"
    REFUSED = "refused"
    NOT_SEARCHED = "not_searched"

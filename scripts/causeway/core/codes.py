"""Numbers and words that stand in tables for kinds of copies, memory and kernels."""

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

MEMSET_KIND = 255

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

KERNEL_CLASSES = ("compute", "communication", "memory")

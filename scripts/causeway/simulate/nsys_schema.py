"""Tables of an Nsight Systems SQLite export, as `nsys export` 2024.6.2 (schema 3.16.1) creates them.

Read from real exports of that version; GPU_METRICS and TARGET_INFO_GPU_METRICS from one of schema 3.11.1, as none of
3.16.1 was at hand. From schema 3.0.0 on a table exists only if it has rows, the enumerations always. Of the two long
enumerations, NSYS_EVENT_TYPE and NSYS_EVENT_CLASS, only the numbers that occur here are kept.
"""

TABLES = """
StringIds:
    id!* value:TEXT!
TARGET_INFO_SYSTEM_ENV:
    globalVid devStateName:TEXT! name:TEXT! nameEnum! value:TEXT!
TARGET_INFO_SESSION_START_TIME:
    utcEpochNs utcTime:TEXT localTime:TEXT
ANALYSIS_DETAILS:
    globalVid! duration! startTime! stopTime!
CUPTI_ACTIVITY_KIND_RUNTIME:
    start! end! eventClass! globalTid correlationId nameId! returnValue! callchainId
NVTX_EVENTS:
    start! end eventType! rangeId category color text:TEXT globalTid endGlobalTid textId domainId uint64Value int64Value
    doubleValue:REAL uint32Value int32Value floatValue:REAL jsonTextId jsonText:TEXT binaryData:TEXT
CUPTI_ACTIVITY_KIND_KERNEL:
    start! end! deviceId! contextId! greenContextId streamId! correlationId globalPid demangledName! shortName!
    mangledName launchType cacheConfig registersPerThread! gridX! gridY! gridZ! blockX! blockY! blockZ!
    staticSharedMemory! dynamicSharedMemory! localMemoryPerThread! localMemoryTotal! gridId! sharedMemoryExecuted
    graphNodeId sharedMemoryLimitConfig
CUPTI_ACTIVITY_KIND_MEMSET:
    start! end! deviceId! contextId! greenContextId streamId! correlationId globalPid value! bytes! graphNodeId memKind
CUPTI_ACTIVITY_KIND_MEMCPY:
    start! end! deviceId! contextId! greenContextId streamId! correlationId globalPid bytes! copyKind! deprecatedSrcId
    srcKind dstKind srcDeviceId srcContextId dstDeviceId dstContextId migrationCause graphNodeId virtualAddress
PROCESSES:
    globalPid pid name:TEXT
ThreadNames:
    nameId! priority globalTid
TARGET_INFO_GPU:
    vmId! id! name:TEXT busLocation:TEXT isDiscrete l2CacheSize totalMemory memoryBandwidth clockRate smCount pwGpuId
    uuid:TEXT luid chipName:TEXT cuDevice ctxswDevPath:TEXT ctrlDevPath:TEXT revision nodeMask constantMemory maxIPC
    maxRegistersPerBlock maxShmemPerBlock maxShmemPerBlockOptin maxShmemPerSm maxRegistersPerSm threadsPerWarp
    asyncEngines maxWarpsPerSm maxBlocksPerSm maxThreadsPerBlock maxBlockDimX maxBlockDimY maxBlockDimZ maxGridDimX
    maxGridDimY maxGridDimZ computeMajor computeMinor smMajor smMinor
TARGET_INFO_CUDA_CONTEXT_INFO:
    nullStreamId! hwId! vmId! processId! deviceId! contextId! parentContextId isGreenContext
TARGET_INFO_CUDA_STREAM:
    streamId! hwId! vmId! processId! contextId! priority! flag!
META_DATA_CAPTURE:
    name:TEXT! value:TEXT
META_DATA_EXPORT:
    name:TEXT! value:TEXT
TARGET_INFO_GPU_METRICS:
    typeId! sourceId! typeName:TEXT! metricId! metricName:TEXT!
GPU_METRICS:
    timestamp typeId! metricId! value!
"""
"""`table:` and its columns: `name[:TYPE][!][*]`, INTEGER by default, ! for NOT NULL, * for PRIMARY KEY."""

ENUMERATIONS = {
    "ENUM_NSYS_EVENT_TYPE": [
        (34, "NvtxMark", "NvtxMark"),
        (59, "NvtxPushPopRange", "NvtxPushPopRange"),
        (60, "NvtxStartEndRange", "NvtxStartEndRange"),
        (75, "NvtxDomainCreate", "NvtxDomainCreate"),
    ],
    "ENUM_NSYS_EVENT_CLASS": [
        (0, "TRACE_PROCESS_EVENT_CUDA_RUNTIME", "CUDA runtime"),
        (1, "TRACE_PROCESS_EVENT_CUDA_DRIVER", "CUDA driver"),
    ],
    "ENUM_CUDA_MEMCPY_OPER": [
        (0, "CUDA_MEMCPY_KIND_UNKNOWN", "Unknown"),
        (1, "CUDA_MEMCPY_KIND_HTOD", "Host-to-Device"),
        (2, "CUDA_MEMCPY_KIND_DTOH", "Device-to-Host"),
        (3, "CUDA_MEMCPY_KIND_HTOA", "Host-to-Array"),
        (4, "CUDA_MEMCPY_KIND_ATOH", "Array-to-Host"),
        (5, "CUDA_MEMCPY_KIND_ATOA", "Array-to-Array"),
        (6, "CUDA_MEMCPY_KIND_ATOD", "Array-to-Device"),
        (7, "CUDA_MEMCPY_KIND_DTOA", "Device-to-Array"),
        (8, "CUDA_MEMCPY_KIND_DTOD", "Device-to-Device"),
        (9, "CUDA_MEMCPY_KIND_HTOH", "Host-to-Host"),
        (10, "CUDA_MEMCPY_KIND_PTOP", "Peer-to-Peer"),
        (11, "CUDA_MEMCPY_KIND_UVM_HTOD", "Unified Host-to-Device"),
        (12, "CUDA_MEMCPY_KIND_UVM_DTOH", "Unified Device-to-Host"),
        (13, "CUDA_MEMCPY_KIND_UVM_DTOD", "Unified Device-to-Device"),
    ],
    "ENUM_CUDA_MEM_KIND": [
        (0, "CUDA_MEMOPR_MEMORY_KIND_PAGEABLE", "Pageable"),
        (1, "CUDA_MEMOPR_MEMORY_KIND_PINNED", "Pinned"),
        (2, "CUDA_MEMOPR_MEMORY_KIND_DEVICE", "Device"),
        (3, "CUDA_MEMOPR_MEMORY_KIND_ARRAY", "Array"),
        (4, "CUDA_MEMOPR_MEMORY_KIND_MANAGED", "Managed"),
        (5, "CUDA_MEMOPR_MEMORY_KIND_DEVICE_STATIC", "Device Static"),
        (6, "CUDA_MEMOPR_MEMORY_KIND_MANAGED_STATIC", "Managed Static"),
        (7, "CUDA_MEMOPR_MEMORY_KIND_UNKNOWN", "Unknown"),
    ],
    "ENUM_CUDA_KERNEL_LAUNCH_TYPE": [
        (0, "CUDA_KERNEL_LAUNCH_TYPE_UNKNOWN", "Unknown"),
        (1, "CUDA_KERNEL_LAUNCH_TYPE_REGULAR", "Regular"),
        (2, "CUDA_KERNEL_LAUNCH_TYPE_COOPERATIVE_SINGLE_DEVICE", "Coop Single Device"),
        (3, "CUDA_KERNEL_LAUNCH_TYPE_COOPERATIVE_MULTI_DEVICE", "Coop Multi Device"),
    ],
    "ENUM_CUDA_FUNC_CACHE_CONFIG": [
        (0, "CU_FUNC_CACHE_PREFER_NONE", "None"),
        (1, "CU_FUNC_CACHE_PREFER_SHARED", "Shared"),
        (2, "CU_FUNC_CACHE_PREFER_L1", "L1"),
        (3, "CU_FUNC_CACHE_PREFER_EQUAL", "Equal"),
    ],
    "ENUM_CUDA_SHARED_MEM_LIMIT_CONFIG": [
        (0, "CUDA_SHARED_MEM_LIMIT_DEFAULT", "Default"),
        (1, "CUDA_SHARED_MEM_LIMIT_OPTIN", "Opt in"),
    ],
    "ENUM_CUPTI_STREAM_TYPE": [
        (0, "CUPTI_ACTIVITY_STREAM_CREATE_FLAG_UNKNOWN", "Unknown stream type"),
        (1, "CUPTI_ACTIVITY_STREAM_CREATE_FLAG_DEFAULT", "Default stream"),
        (2, "CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NON_BLOCKING", "Non-blocking stream"),
        (3, "CUPTI_ACTIVITY_STREAM_CREATE_FLAG_NULL", "Null stream"),
    ],
}

VERSION = "3.16.1"


def columns() -> dict[str, list[tuple[str, str]]]:
    """Return for each table its columns: name and declared type with constraints."""
    tables: dict[str, list[tuple[str, str]]] = {}
    for word in TABLES.split():
        if word.endswith(":"):
            current = tables.setdefault(word[:-1], [])
            continue
        name, _, kind = word.rstrip("!*").partition(":")
        current.append(
            (name, (kind or "INTEGER") + "   NOT NULL" * ("!" in word) + "   PRIMARY KEY" * word.endswith("*"))
        )
    enumeration = [("id", "INTEGER   NOT NULL   PRIMARY KEY"), ("name", "TEXT"), ("label", "TEXT")]
    return tables | dict.fromkeys(ENUMERATIONS, enumeration)


def create_statement(table: str) -> str:
    """Return the CREATE TABLE statement of a table."""
    body = ",\n".join(f"    {name:<27} {kind}" for name, kind in columns()[table])
    return f"CREATE TABLE {table} (\n{body}\n)"

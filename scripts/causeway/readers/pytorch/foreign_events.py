"""Events of other profilers that write traces in Kineto's form, with categories and names of their own.

PaddlePaddle: each name ends in the event's duration: `gemm[12.000 us]`, until PaddlePaddle 2.3 `gemm[0.012 ms]`; the
rest of the name is what Kineto has. A thread's number is followed by the language: `4711(C++)`. Source:
paddle/fluid/platform/profiler/chrometracing_logger.cc.

Intel's unitrace: work of devices is `gpu_op`, and calls of the host have the category of PyTorch's operators. A
kernel's name ends in what its launch was given, `gemm[SIMD32 {8; 1; 1} {256; 1; 1}]`, that of a copy in its bytes,
`zeCommandListAppendMemoryCopy(M2D)[4096]`. Source: pti-gpu, tools/unitrace/src/levelzero/ze_collector.h.

Ascend's NPUs (torch_npu, msprof): no categories. Each task of a device has a type, and the connection of the call that
launched it; the collectives stand in processes of their own, without a type. Source: gitee.com/ascend/mstt.

rocmProfileData (`rpd2tracing`): no categories. Operations of a device, whose number is the process, are described by
their type, markers by their name, and calls of HIP by their arguments. Source: ROCm/rocmProfileData, tools.
"""

import re
from collections.abc import Mapping, Sequence

import msgspec

from causeway.readers.containers.chrome_json import Event
from causeway.readers.pytorch.event_fields import all_arguments, mentioned, nanoseconds

LONGEST_ENDING = 40
"""Characters at the end of a name that may be a duration."""

OF_UNITRACE = "gpu_op"
OF_HOST = "cpu_op"
"""Categories of unitrace; the latter is also that of PyTorch's operators, which have other names."""
_ENDING = re.compile(r"\[([0-9]{1,12}\.([0-9]{1,6})) ([um])s\]\Z")
_THREAD = re.compile(r"([0-9]{1,18})\((?:C\+\+|Python)\)")
# of Level Zero, OpenCL, Unified Runtime and its predecessor; a kernel may begin like one: urQMD, clBlasGemm
_CALL = re.compile(
    r"(?=[zcup])(?:(?:zeInit|clFinish|clFlush)\b|(?:cl(?:Enqueue|Build|Compile|Link|Create|Set|Get|Wait|Release|Retain)"
    r"|ze[stx]?(?:Command|Event|Fence|Context|Device|Driver|Kernel|Module|(?:Virtual|Physical)?Mem|Init)"
    r"|(?:ur|pi(?:ext)?)(?:Enqueue|Queue|Event|Kernel|Program|USM|Mem|Context|Device|Platform|Adapter))(?=[A-Z]))"
    r"\w*?(?:(Copy|cpy|(?:Read|Write)(?:Buffer|Image))|(Fill)|\b)\w*(?:\(\w+\))?(?:\[(\d{1,18}))?"
)
_OF_STREAMS = re.compile(r"EVENT|NOTIFY|WAIT|RECORD|COMMUNICATION|MODEL|PLACE_HOLDER|PROFIL|WRITE_VALUE", re.IGNORECASE)
"""Types of Ascend's tasks that order streams, or repeat a collective."""
_OF_RPD = re.compile(r"(KernelExecution|Kernel|HIP_OP_DISPATCH)\Z|(Copy)|(Fill|Memset)")
_SHAPE = re.compile(r"\[SIMD\w{1,9} " + " ".join([r"\{(\d{1,18}); (\d{1,18}); (\d{1,18})\}"] * 2) + r"\]\Z")


def turn_foreign(events: Sequence[Event], paddle_categories: Mapping[str, str]) -> None:
    """Turn events whose category and name are another profiler's into those of Kineto: category, name, thread,
    arguments.

    Parameters
    ----------
    events : sequence of Event
    paddle_categories : mapping of str to str
        PaddlePaddle's category, as it is written -> Kineto's.
    """
    for event in events:
        if not isinstance(event.name, str):
            continue
        if event.cat is None:
            (_turn_rpd if mentioned([event.args], b"desc") else _turn_ascend)(event, event.name)
        elif event.cat in (OF_HOST, OF_UNITRACE):
            _turn_unitrace(event, event.name)
        elif event.cat in paddle_categories:
            _turn_paddle(event, event.name, paddle_categories[event.cat])


def _turn_paddle(event: Event, name: str, category: str) -> None:
    ending = _ENDING.search(name, max(0, len(name) - LONGEST_ENDING))
    if ending and _is_duration(ending, nanoseconds(event.dur)):
        event.cat = category
        event.name = name[: ending.start()]
        if isinstance(event.tid, str) and (thread := _THREAD.fullmatch(event.tid)):
            event.tid = int(thread[1])


def _is_duration(end: re.Match, ns: int | None) -> bool:
    """Return whether the end of a name is its duration, as far as its digits and single precision say it."""
    unit = 1000 if end[3] == "u" else 10**6
    return ns is not None and abs(round(float(end[1]) * unit) - ns) <= unit // 10 ** len(end[2]) // 2 + 1 + (ns >> 21)


def _turn_ascend(event: Event, name: str) -> None:
    """Turn tasks, collectives and calls of an NPU; a trace is of one device, whose number it does not say, and of one
    process, of which calls and operators have two numbers.
    """
    if not mentioned([event.args], b"connection_id") and not mentioned([event.args], b"Task Type"):
        return
    args = all_arguments(event.args)
    kind = str(args.get("Task Type", ""))
    stream = args.get("Physic Stream Id", args.get("Stream Id"))
    if name.startswith("hcom_") and not kind:
        event.cat = "kernel"
        event.name = name.rstrip("_0123456789")  # numbers of its communicator and of the collective
        stream = event.tid
    elif "@" in name:
        event.cat = "privateuse1_runtime"
        event.pid = None
    elif kind and not _OF_STREAMS.search(kind):
        event.cat = "gpu_memcpy" if "MEMCPY" in kind or "SDMA" in kind else "kernel"
    event.args = msgspec.Raw(
        msgspec.json.encode({"device": -1, "stream": stream, "correlation": args.get("connection_id")})
    )


def _turn_rpd(event: Event, name: str) -> None:
    what = str(all_arguments(event.args).get("desc"))
    if operation := _OF_RPD.match(what):
        event.cat = ("kernel", "gpu_memcpy", "gpu_memset")[(operation.lastindex or 1) - 1]
        event.args = msgspec.Raw(msgspec.json.encode({"device": event.pid, "stream": event.tid}))
    else:
        event.cat = "hip_runtime" if name.startswith("hip") else "user_annotation" if name == what else None


def _turn_unitrace(event: Event, name: str) -> None:
    """Turn work of a device, and calls; barriers, in which a device waits, stay of a category that is not read."""
    call = _CALL.match(name)
    if event.cat == OF_HOST:
        event.cat = "xpu_driver" if call else OF_HOST
    elif shape := _SHAPE.search(name):
        event.cat = "kernel"
        sizes = list(map(int, shape.groups()))
        event.name = name[: shape.start()]
        event.args = msgspec.Raw(msgspec.json.encode({"grid": sizes[:3], "block": sizes[3:]}))
    elif call is None:
        event.cat = "kernel"
    elif call[1] or call[2]:
        event.cat = "gpu_memcpy" if call[1] else "gpu_memset"
        event.args = msgspec.Raw(msgspec.json.encode({"bytes": int(call[3])} if call[3] else {}))

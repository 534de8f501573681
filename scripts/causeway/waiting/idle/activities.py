"""What host threads do, as texts with a code and a priority: names of runtime calls, ranges, MPI and system
calls, and operators.
"""

import re

import numpy as np

from causeway.core.codes import (
    COLLECTION,
    COMPILATION,
    IN_CALL,
    IN_MPI,
    IN_OPERATOR,
    IN_RANGE,
    IN_SAMPLED,
    LOADER,
    NUMBERED_RANGE,
    waits_for_engine,
)
from causeway.waiting.idle.reason_words import NOT_RECORDED, OTHER
from causeway.waiting.idle.stack_sweep import BLOCKING, CAUSE, FUNCTION, OPERATOR, PLAIN, SAMPLED, STEP

MOST_TEXTS = 400
"""Different texts per export, and as many of operators and of sampled code each; what comes later counts as one of
`_OTHERS`.
"""
LONGEST_TEXT = 120
_BLOCKING = re.compile(
    r"Synchronize(?!d)|^(?:cuda|hip)(?:Malloc|Free|Host(?:Alloc|Malloc|Free|Register|Unregister))(?!.*Async)"
    r"|^cuMem(?:Alloc|Free|Host(?:Alloc|Register|Unregister)|Create|Map|Unmap|Release|SetAccess|Address)(?!.*Async)"
    r"|^(?:cuda|hip)Memcpy(?!.*Async)|^cuMemcpy(?!.*Async)"
    r"|^cuvid(?:Create|Destroy|Reconfigure)Decoder"
    r"|^ur(?:QueueFinish|EventWait|USM(?:Device|Host|Shared)Alloc|USMFree)|^zeMem(?:Alloc|Free)"
)
"""Calls of CUDA, its video decoder, HIP and Intel's Unified Runtime and Level Zero that return only when the device has
come so far, or that allocate or free memory (CUDA Runtime API, "API synchronization behavior"; HIP API, "Memory
management").
"""
_GRAPH_LAUNCH = re.compile(r"Graph_?Launch", re.IGNORECASE)
_MODULE = re.compile(
    r"(?:Module|Library)(?:Load|GetFunction|GetKernel|GetGlobal)|nvrtc|hiprtc|FatBinary", re.IGNORECASE
)
_COMPILES = re.compile(
    r"(?i:compil)(?:(?i:e)(?!d|D(?![a-z]))|(?i:ing|ation))|(?i:autotun)(?:(?i:e)(?!d|D(?![a-z]))|(?i:ing))"
    r"|\(dynamo_timed\)|(?i:inductor\w*[ _.:]*(?:codegen|codecache|lowering))"
)
_CAUSES = (
    (
        LOADER,
        re.compile(r"data[ _]?load|(?:load|next|fetch|get)_?batch(?!_to)|prefetch", re.IGNORECASE),
    ),
    (COLLECTION, re.compile(r"\bgc\b|garbage[ _]collect", re.IGNORECASE)),
    (COMPILATION, _COMPILES),
)
"""What a range's name holds that loads data, collects garbage or compiles; `get_next_batch_to_run` schedules requests
of a server. One that names something compiled runs it:
`## Call CompiledFxGraph ... ##`, `Torch-Compiled Region`, `CompiledFunctionBackward`, operators of `inductor::`.
"""
_LOCK = re.compile(r"mutex|futex|cond_|sem_|rwlock|spin_lock|barrier", re.IGNORECASE)
_NUMBER = re.compile(r"\d+")
_STEP = re.compile(rf"\W*{NUMBERED_RANGE}[\s#:=_-]*\d+\W*")
_OTHERS = {
    STEP: OTHER,
    OPERATOR: "other operators",
    SAMPLED: "other functions",
    FUNCTION: "other Python functions",
    PLAIN: OTHER,
    CAUSE: "other causes",
    BLOCKING: "other blocking calls",
}


class Activities:
    """Texts of activities, each with a code: its position in the order of first appearance.

    Attributes
    ----------
    texts : list of str
        By code; code 0 says that nothing is recorded.
    outer : set of str
        Ranges, digits as *, that fill most of the export's time: they say no more of what the host does than a step.
    """

    def __init__(self) -> None:
        self.outer: set[str] = set()
        self.texts = [NOT_RECORDED]
        self._codes = {NOT_RECORDED: 0}
        self._priorities = [PLAIN]
        self._graphs = [False]
        self._known: dict[tuple[str, str], int] = {}

    def code(self, text: str, priority: int = PLAIN, graph: bool = False) -> int:
        """Return the code of a text; `priority` and `graph` (whether it launches a graph) count when it is new."""
        code = self._codes.get(text)
        if code is None:
            apart = {kind: self._priorities.count(kind) for kind in (OPERATOR, SAMPLED, FUNCTION)}
            if apart.get(priority, len(self.texts) - sum(apart.values())) >= MOST_TEXTS:
                text = _OTHERS[priority]
                code = self._codes.get(text)
        if code is None:
            code = self._codes[text] = len(self.texts)
            self.texts.append(text)
            self._priorities.append(priority)
            self._graphs.append(graph)
        return code

    def of(self, table: str, name: str) -> int:
        """Return the code of a row of the table `calls`, `ranges`, `mpi`, `system_calls`, `host_operators` or
        `cpu_samples` by its name.
        """
        key = table, name[: 2 * LONGEST_TEXT]
        if key not in self._known:
            if len(self._known) >= 16 * MOST_TEXTS:
                self._known.clear()
            text, priority, graph = _described(*key)
            is_outer = priority == PLAIN and table == "ranges" and without_numbers(name) in self.outer
            self._known[key] = self.code(text, STEP if is_outer else priority, graph)
        return self._known[key]

    def priorities(self) -> np.ndarray:
        """Return the priority of each code; int64, shape (texts,)."""
        return np.array(self._priorities, np.int64)

    def graphs(self) -> np.ndarray:
        """Return for each code whether it launches graphs; uint8, shape (texts,)."""
        return np.array(self._graphs, np.uint8)


def without_numbers(name: str) -> str:
    """Return the name of a range as ranges that differ in numbers alone share it."""
    return _NUMBER.sub("*", name[:LONGEST_TEXT])


def _described(table: str, name: str) -> tuple[str, int, bool]:
    """Return the text, the priority and whether it launches a graph.

    >>> _described("ranges", "enumerate(DataLoader)#1")
    ('data loader: enumerate(DataLoader)#*', 1, False)
    """
    name = name[:LONGEST_TEXT]
    if table == "calls":
        if _BLOCKING.search(name) or waits_for_engine(name):
            return name, BLOCKING, False
        if _MODULE.search(name):
            return f"module loading: {name}", PLAIN, False
        return f"{IN_CALL}{name}", PLAIN, bool(_GRAPH_LAUNCH.search(name))
    if table == "mpi":
        return f"{IN_MPI}{name}", PLAIN, False
    if table == "system_calls":
        return f"{'lock' if _LOCK.search(name) else 'system call'}: {name}", PLAIN, False
    if table == "host_operators":
        if _COMPILES.search(name):
            return f"{COMPILATION}: {without_numbers(name)}", CAUSE, False
        return f"{IN_OPERATOR}{name}", OPERATOR, False
    if table == "cpu_samples":
        return f"{IN_SAMPLED}{name}", SAMPLED, False
    plain = without_numbers(name)
    for cause, pattern in _CAUSES:
        if pattern.search(name):
            return f"{cause}: {plain}", CAUSE, False
    return f"{IN_RANGE}{plain}", STEP if _STEP.fullmatch(name) else PLAIN, False

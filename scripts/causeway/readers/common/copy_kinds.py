"""Copy and memory kinds in CUPTI's numbers, from the spellings that profilers use."""

import re

from causeway.core.codes import MEMORY_KINDS
from causeway.core.files.yaml_files import column_map
from causeway.readers.common.constants import NO_KIND
from causeway.readers.common.numbers import integer

COPY_KIND_OF = {spelling: kind for kind, words in column_map("spellings")["copy_kinds"].items() for spelling in words}
"""CUPTI's copy kinds by their spellings; unified memory's are 11 to 13."""

MEMORY_KIND_OF: dict[str, int] = column_map("spellings")["memory_kinds"]
"""Keys of `codes.MEMORY_KINDS` by their spellings."""

LONGEST = 300
"""Characters of a cell that are searched for the kind of row or device that it names."""

UNIFIED_MEMORY = re.compile(r"\[\s*unified memory", re.IGNORECASE)
_UNIFIED = re.compile(r"\W*(?:cuda\s+)?unified memory", re.IGNORECASE)


def copy_kind(text: str) -> int:
    """Return a copy kind in CUPTI's numbers from a number or a spelling, also within a name; 0 if it is unknown.

    >>> copy_kind("[CUDA memcpy HtoD]"), copy_kind("CUPTI_ACTIVITY_MEMCPY_KIND_DTOH"), copy_kind("Memcpy HtoD [sync]")
    (1, 2, 1)
    >>> copy_kind("[Unified Memory Memcpy DtoH]"), copy_kind("[CUDA memcpy Unified Host-to-Device]")
    (12, 11)
    """
    number = integer(text.strip())
    if number is not None:
        return number if 0 <= number <= 13 else 0
    plain = re.sub(r"[^a-z0-9]", "", text.lower().partition("(")[0].partition(" [")[0])
    for prefix in ("cuptiactivity", "cuda", "unifiedmemory", "memcpy", "kind"):
        plain = plain.removeprefix(prefix)
    direction = plain.removeprefix("unified").removeprefix("uvm")
    kind = COPY_KIND_OF.get(direction, 0)
    unified = direction != plain or _UNIFIED.match(text[:LONGEST])
    return {1: 11, 2: 12, 8: 13}.get(kind, kind) if unified else kind


def memory_kind(text: str, of_nsys: bool = False) -> int:
    """Return a memory kind, a key of `codes.MEMORY_KINDS`, from CUPTI's number, that of Nsight Systems or a spelling,
    else `NO_KIND`.

    >>> memory_kind("Pageable"), memory_kind("3"), memory_kind("2", of_nsys=True), memory_kind("")
    (0, 2, 2, 255)
    """
    number = integer(text.strip())
    if number is not None and of_nsys:
        return number if number in MEMORY_KINDS else NO_KIND
    if number is not None:
        return column_map("nvprof")["memory_kinds"].get(number, NO_KIND)
    plain = re.sub(r"[^a-z]", "", text.lower()).removeprefix("cuptiactivitymemorykind")
    return MEMORY_KIND_OF.get(plain, NO_KIND)

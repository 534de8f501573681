"""Threads and memory of this process: one thread for linear algebra, freed memory given back, no search for cycles."""

import contextlib
import ctypes
import gc
import importlib
import sys
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from causeway.core.installation import hidden

LIBRARY = ctypes.CDLL(None) if sys.platform == "linux" else None
TRIM = getattr(LIBRARY, "malloc_trim", None)
MALLOPT = getattr(LIBRARY, "mallopt", None)
TRIM_THRESHOLD = -1
MMAP_THRESHOLD = -3
ARENA_MAX = -8
"""Parameters of glibc's `mallopt`."""
LARGE_ARRAY = 1 << 22
"""Bytes from which an array of a search lies in pages of its own. The system gives such arrays huge pages, if it has
any, as NumPy asks from this size on.
"""
KEPT_FREE = 1 << 25
"""Bytes that may be free at the end of a search's heap before they are given back: smaller arrays come and go."""


@contextlib.contextmanager
def single_threaded(libraries: Sequence[str] = ()) -> Iterator[None]:
    """Limit BLAS and OpenMP to one thread: our matrices are small, and the order of sums must not depend on the
    machine.

    No warning of overflow, underflow or an invalid operation is given meanwhile: OpenBLAS may read past a matrix's
    edge, and what it throws away there still raises the flag (numpy issue 24067). That all numbers of a result are
    finite is checked where they are rounded (`causal.data.six_digits`).

    Parameters
    ----------
    libraries : sequence of str
        Modules that are imported first, as only what is loaded can be limited. scikit-learn imports pandas if it can,
        for 0.3 CPU-seconds and 30 MB, and is given arrays alone: pandas is hidden from what is imported here.
    """
    with hidden("pandas"):
        for name in libraries:
            importlib.import_module(name)
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1), np.errstate(over="ignore", under="ignore", invalid="ignore"):
        yield


@contextlib.contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the search for reference cycles: what reads millions of small objects and makes no cycle of them spends a
    quarter of its time in it. Objects are freed all the same when nothing refers to them.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def share_one_heap() -> None:
    """Let Arrow take its memory from the heap that everything else takes it from, and keep large arrays out of it.

    A search of causes holds little in Arrow's tables and much in arrays; what Arrow's own pool has freed stays with
    that pool, up to 40 MB of a search. glibc raises the size from which an array has pages of its own to that of each
    such array that is freed, up to 32 MB; from then on they leave gaps in the heap, up to 100 MB of a search. Each
    thread that decodes columns would have a heap of its own, which is not given back whole: up to 60 MB of a search.
    """
    pa.set_memory_pool(pa.system_memory_pool())
    if MALLOPT:
        MALLOPT(MMAP_THRESHOLD, LARGE_ARRAY)
        MALLOPT(TRIM_THRESHOLD, KEPT_FREE)
        MALLOPT(ARENA_MAX, 1)


def give_back() -> None:
    """Give free memory back to the system: Arrow and glibc keep what small arrays took, too scattered for the large
    ones that follow.
    """
    pa.default_memory_pool().release_unused()
    if TRIM:
        TRIM(0)

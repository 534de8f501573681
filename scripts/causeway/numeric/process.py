"""Threads and memory of this process: one thread for linear algebra, freed memory kept or given back, no search for
cycles.
"""

import contextlib
import ctypes
import gc
import sys
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

M_TRIM_THRESHOLD = -1
M_MMAP_MAX = -4
"""Parameters of `mallopt(3)`."""
LARGEST = (1 << 31) - 1
TRIM = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None


@contextlib.contextmanager
def single_threaded() -> Iterator[None]:
    """Limit BLAS and OpenMP to one thread: our matrices are small, and the order of sums must not depend on the
    machine.

    No warning of overflow, underflow or an invalid operation is given meanwhile: OpenBLAS may read past a matrix's
    edge, and what it throws away there still raises the flag (numpy issue 24067). That all numbers of a result are
    finite is checked where they are rounded (`causal.data.six_digits`).

    Libraries must be loaded to be limited, so the trees are imported here.
    """
    import sklearn.ensemble  # noqa: F401
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


def keep_freed_memory() -> None:
    """Let the C library keep what this process frees instead of returning it; nothing is done where it is not glibc's.

    The peak grows by what fragments, measured at a fifth for 8,006 columns; the CPU time of the kernel falls to a
    quarter.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_MAX, 0)
        mallopt(M_TRIM_THRESHOLD, LARGEST)


def give_back() -> None:
    """Give free memory back to the system: Arrow and glibc keep what small arrays took, too scattered for the large
    ones that follow.
    """
    pa.default_memory_pool().release_unused()
    if TRIM:
        TRIM(0)

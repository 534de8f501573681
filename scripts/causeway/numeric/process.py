"""Memory that was freed is used again: a search makes and drops large arrays all the time, and fresh pages are a tenth of its CPU time."""

import ctypes

M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4
"""Parameters of `mallopt(3)`."""
LARGEST = (1 << 31) - 1


def keep_freed_memory() -> None:
    """Let the C library keep what this process frees instead of returning it; nothing is done where it is not glibc's.

    The peak grows by what fragments, measured at a fifth for 8,006 columns; the CPU time of the kernel falls to a quarter.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_MAX, 0)
        mallopt(M_TRIM_THRESHOLD, LARGEST)

"""Whether a process that does the same again and again keeps its memory, its open files and its threads."""

import os
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import psutil

GROWTH = 0.05
"""Memory may grow by this part from the second quarter of the samples to the last: the allocator keeps what it likes."""
LEAST = 8
"""Samples below which nothing is said."""


@dataclass(frozen=True)
class Sample:
    """What a process held at one moment: resident memory in MB (10^6 bytes), open files, threads."""

    memory_mb: float
    files: int
    threads: int


def sample() -> Sample:
    """Return what this process holds now."""
    me = psutil.Process()
    return Sample(me.memory_info().rss / 1e6, len(os.listdir("/proc/self/fd")) - 1, me.num_threads())


def growing(samples: Sequence[Sample]) -> list[str]:
    """Return what grew, a sentence each: memory by medians of quarters, files and threads by their smallest numbers.

    The first quarter is left out: libraries load, caches fill.

    Parameters
    ----------
    samples : sequence of Sample
        At equal amounts of work, in the order of time; at least `LEAST`.

    Raises
    ------
    ValueError
        If there are fewer.
    """
    if len(samples) < LEAST:
        raise ValueError(f"{len(samples)} samples, at least {LEAST} are needed to tell growth from chance")
    quarter = len(samples) // 4
    early = samples[quarter : 2 * quarter]
    late = samples[-quarter:]
    findings = []
    before, after = (statistics.median(sample.memory_mb for sample in part) for part in (early, late))
    if after > before * (1 + GROWTH):
        findings.append(f"memory grew from {before:.0f} to {after:.0f} MB")
    for name, words in (("files", "open files"), ("threads", "threads")):
        before, after = (min(getattr(sample, name) for sample in part) for part in (early, late))
        if after > before:
            findings.append(f"{words} grew from {before} to {after}")
    return findings

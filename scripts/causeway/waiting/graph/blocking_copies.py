"""Calls that are asynchronous by their name and wait for the copy that they make.

A copy from or to pageable memory goes through a buffer of the driver, which the host fills or empties during the call:
the call returns when that is done ("API synchronization behavior", CUDA Runtime API: to the host "the function will
return only once the copy has completed").
"""

import numpy as np

from causeway.waiting.graph.nodes import NO_SCOPE
from causeway.waiting.graph.scratch import Scratch

OTHER_MEMORY, PAGEABLE, UNKNOWN_MEMORY = range(3)
"""What the host's side of a copy is."""
DRAINED_NS = 100_000
"""Longest time for which a copy to the device goes on behind its call's return, out of the driver's buffer: 15 us were
measured (64 MiB, H200)."""
LEAST_NS = 20_000
"""Copies whose memory is not known and that last as long wait if they end before the call returns; of shorter ones
that is by chance, as asynchronous calls take some microseconds."""


def wait_for_own_copies(
    work: dict[str, np.ndarray], call: np.ndarray, calls: dict[str, np.ndarray], resolution: int, scratch: Scratch
) -> None:
    """Let calls that carry out their own copy wait for its stream.

    Parameters
    ----------
    work : dict of ndarray, shape (n,)
        `start`, `end` (ns), `stream` and `memory` of device work.
    call : ndarray of int32, shape (n,)
        The call that made each work; -1: not known.
    calls : dict of ndarray, shape (m,)
        `start`, `end` (ns) and `scope` of host calls; `scope` is changed.
    resolution : int, ns
        See `nodes.Graph`.
    scratch : Scratch
    """
    for part in scratch.windows(call.size):
        copies = part.start + np.flatnonzero(work["memory"][part])
        copies = copies[call[copies] >= 0]
        made_by = call[copies]
        returned = calls["end"][made_by]
        start = work["start"][copies]
        end = work["end"][copies]
        pageable = (end <= returned + DRAINED_NS) & (2 * (np.minimum(end, returned) - start) >= end - start)
        unknown = (end <= returned + resolution) & (end - start >= LEAST_NS)
        waits = np.where(work["memory"][copies] == PAGEABLE, pageable, unknown) & (calls["scope"][made_by] == NO_SCOPE)
        calls["scope"][made_by[waits]] = work["stream"][copies[waits]]

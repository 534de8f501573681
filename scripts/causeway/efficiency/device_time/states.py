"""States of a device and of a host thread: which kinds of work are in flight, as bits of a number.

A sweep gives the time spent in each of the 32 combinations. They are disjoint, so every union, intersection and
difference of kinds of work is a sum of some of them, exact to the nanosecond.
"""

import numpy as np

from causeway.core.vocabulary import COMM_AWARE

COMPUTE = 1
COMMUNICATION = 2
MEMORY = 4
GRAPH = 8
MIGRATION = 16
"""Kernels by class; copies, memsets and kernels of class memory; executions of whole graphs, whose kernels are not
known one by one; migrations of managed memory.
"""
CALL = 1
MPI = 2
"""Host threads: inside a call of the CUDA or HIP runtime; inside an MPI call."""
STATES = 32
KINDS = {"compute": COMPUTE, "communication": COMMUNICATION, "memory": MEMORY}
"""Bit of each class of kernels."""

_STATE = np.arange(STATES)
_USEFUL = (_STATE & (COMPUTE | GRAPH)) > 0
_COMMUNICATES = (_STATE & COMMUNICATION) > 0
_MOVES = (_STATE & (MEMORY | MIGRATION)) > 0
_MIGRATES = (_STATE & MIGRATION) > 0

SETS = {
    "busy": _STATE > 0,
    "kernel": _USEFUL | _COMMUNICATES,
    "compute": _USEFUL,
    "communication": _COMMUNICATES,
    "memory": _MOVES,
    "graph": (_STATE & GRAPH) > 0,
    "exposed_communication": _COMMUNICATES & ~_USEFUL,
    "exposed_memory": _MOVES & ~_USEFUL & ~_COMMUNICATES,
    "overlap": _COMMUNICATES & _USEFUL,
}
"""Sets of states by name. Executions of whole graphs count as compute; `graph` says how much time they are part of.
Migrations count as memory, which is not idle.
"""
MIGRATION_SETS = {
    "exposed_migrations": _MIGRATES & ~_USEFUL & ~_COMMUNICATES & ((_STATE & MEMORY) == 0),
    "under_migrations": _MIGRATES & (_USEFUL | _COMMUNICATES),
}
"""The same of migrations: while nothing else runs, and while kernels run, which wait for the pages."""


def time_in(states: np.ndarray, name: str) -> np.ndarray:
    """Return the time in a set of states.

    Parameters
    ----------
    states : ndarray of int64, shape (..., 32), ns
    name : str
        A key of `SETS` or `MIGRATION_SETS`.

    Returns
    -------
    ndarray of int64, shape (...), ns
    """
    return states[..., (SETS | MIGRATION_SETS)[name]].sum(axis=-1)


def device_times(states: np.ndarray, flavour: str) -> list[list[int]]:
    """Return K, M, the time of copies and memsets, and the part of it inside K of each device, for a flavour of the
    tree, ns; `states` has shape (devices, 32). Migrations are no copies: kernels wait for their pages.
    """
    copies = (_STATE & MEMORY) > 0
    kernel = SETS["compute" if flavour == COMM_AWARE else "kernel"]
    inside = states[:, kernel].sum(axis=1)
    busy = time_in(states, "busy")
    hidden = states[:, copies & kernel].sum(axis=1)
    parts: list[list[int]] = np.stack([inside, busy - inside, states[:, copies].sum(axis=1), hidden], axis=1).tolist()
    return parts

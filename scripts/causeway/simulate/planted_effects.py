"""Planted effects: how much longer a launch lasts, given the state of its device at the launch's start."""

from dataclasses import dataclass

import numpy as np

from causeway.simulate.scenario import SATURATION, Copy, SimulatedKernel
from causeway.simulate.stream_events import StreamEvents, in_flight

COPY_KINDS = {"h2d_bytes_in_flight": 1, "d2h_bytes_in_flight": 2, "d2d_bytes_in_flight": 8}
"""CUPTI's number of the direction whose bytes a cause counts."""


@dataclass(frozen=True, kw_only=True)
class CopyStream:
    """The copies of one direction, on a stream and a host thread of their own.

    Attributes
    ----------
    copy : Copy
        Their description in the scenario.
    events : StreamEvents
    size : ndarray of int64, shape (ranks, iterations, slots), bytes
    thread : int
        Index of the host thread that issues them.
    """

    copy: Copy
    events: StreamEvents
    size: np.ndarray
    thread: int


@dataclass(frozen=True, kw_only=True)
class DeviceState:
    """What else the devices do in a batch of iterations; times are ns since the iteration's start.

    Attributes
    ----------
    copies : list of CopyStream
    neighbours : StreamEvents
        Launches of the second stream.
    last_input : ndarray of int64, shape (ranks, iterations), bytes, or None
        Size of the last copy from the host before each iteration; None where the scenario has no such copies.
    elapsed_ns : ndarray of float64, shape (iterations,), ns
        Nominal time from the run's start to each iteration's.
    """

    copies: list[CopyStream]
    neighbours: StreamEvents
    last_input: np.ndarray | None
    elapsed_ns: np.ndarray


def inputs_of(copies: list[CopyStream]) -> CopyStream | None:
    """Return the copies from host to device, None where there are none."""
    return next((stream for stream in copies if stream.copy.kind == COPY_KINDS["h2d_bytes_in_flight"]), None)


def relative_change(
    kernel: SimulatedKernel, begin: np.ndarray, busy_until: np.ndarray, state: DeviceState
) -> np.ndarray:
    """Sum the planted relative changes of a kernel's duration.

    Parameters
    ----------
    kernel : SimulatedKernel
    begin : ndarray of int64, shape (ranks, iterations), ns
        Start of one launch per rank and iteration.
    busy_until : ndarray of int64, shape (ranks, iterations), ns
        End of the launch before it on its stream.
    state : DeviceState

    Returns
    -------
    ndarray of float64, shape (ranks, iterations); 0 without a cause that depends on the state.
    """
    total = np.zeros(begin.shape)
    for cause, strength in kernel.causes.items():
        if cause in SATURATION:
            total += strength * _fraction(cause, begin, busy_until, state)
    return total


def _fraction(cause: str, begin: np.ndarray, busy_until: np.ndarray, state: DeviceState) -> np.ndarray:
    """Return which part of a cause's full effect acts at each start; see `SATURATION`."""
    full = SATURATION[cause]
    if cause == "launches_in_flight":
        return in_flight(state.neighbours, begin).sum(axis=2) / full
    if cause == "transfers_in_flight":
        return sum(in_flight(stream.events, begin).sum(axis=2) for stream in state.copies) / full
    if cause == "idle_before_ns":
        begun = state.neighbours.valid & (state.neighbours.start < begin[..., None])
        latest = state.neighbours.end.max(axis=2, where=begun, initial=np.iinfo(np.int64).min)
        return np.clip(1 - np.maximum(0, begin - np.maximum(busy_until, latest)) / full, 0, 1)
    if cause == "since_start_ns":
        return np.exp(-(state.elapsed_ns + begin) / full)
    inputs = inputs_of(state.copies) if cause == "last_h2d_bytes" else None
    if inputs is not None and state.last_input is not None:
        ended = (inputs.events.valid & (inputs.events.end <= begin[..., None])).sum(axis=2)
        last = np.take_along_axis(inputs.size, np.maximum(ended - 1, 0)[..., None], 2)[..., 0]
        return np.clip(2 * np.where(ended > 0, last, state.last_input) / full - 1, 0, 1)
    moving = sum(
        (in_flight(stream.events, begin) * stream.size).sum(axis=2)
        for stream in state.copies
        if stream.copy.kind == COPY_KINDS[cause]
    )
    return np.minimum(1, moving / full)

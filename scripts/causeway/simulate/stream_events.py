"""Events of one stream, for all ranks and iterations at once, and what is asked of them."""

from dataclasses import dataclass

import numpy as np

Columns = dict[str, np.ndarray]

CALL_NS = 2_500
"""Shortest launch call; they last up to twice this."""


@dataclass
class Lane:
    """Events of one stream and the calls that issued them.

    Every array has the shape (ranks, iterations, slots), int64 ns since the iteration's start; slots where `valid` is False hold no event.
    """

    start: np.ndarray
    end: np.ndarray
    valid: np.ndarray
    call_start: np.ndarray
    call_end: np.ndarray


def issue(random: np.random.Generator, start: np.ndarray, earliest_ns: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw the calls of one host thread that issue the events of a stream.

    A call ends a log-normal queue delay (median 8 us) before its event begins, and after the thread's previous call.

    Parameters
    ----------
    random : Generator
    start : ndarray of int64, shape (..., slots), ns, ascending by at least 2 `CALL_NS` along the last axis
    earliest_ns : int
        No call begins before it.

    Returns
    -------
    call_start, call_end : ndarray of int64, as `start`; call_end <= start
    """
    length = np.rint(CALL_NS * random.uniform(1, 2, start.shape)).astype(np.int64)
    wanted = start - np.rint(8_000 * np.exp(0.6 * random.standard_normal(start.shape))).astype(np.int64)
    end = np.empty_like(start)
    previous = np.full(start.shape[:-1], earliest_ns, dtype=np.int64)
    for slot in range(start.shape[-1]):
        previous = end[..., slot] = np.maximum(wanted[..., slot], previous + length[..., slot])
    return end - length, end


def renewal(random: np.random.Generator, duration: np.ndarray, pause_us: float, window_ns: float) -> Lane:
    """Place events one after the other with exponential pauses, beginning within a window.

    Parameters
    ----------
    random : Generator
    duration : ndarray of int64, shape (ranks, iterations, slots), ns
    pause_us : float, microseconds
        Mean pause, beside a least one of 8 us.
    window_ns : float
        Events that would begin later are left out.
    """
    pause = 8_000 + np.rint(random.exponential(1000 * pause_us, duration.shape)).astype(np.int64)
    end = np.cumsum(pause + duration, axis=-1) + 15_000
    start = end - duration
    call_start, call_end = issue(random, start, 1_000)
    return Lane(start, end, start < window_ns, call_start, call_end)


def in_flight(lane: Lane, moment: np.ndarray) -> np.ndarray:
    """Say which events of a lane are in flight (started, not ended) at one moment per rank and iteration; shape of the lane, bool."""
    return lane.valid & (lane.start <= moment[..., None]) & (moment[..., None] < lane.end)


def by_start(parts: list[Columns]) -> Columns:
    """Join tables and order the rows by start; equal starts keep the order of the parts."""
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    order = np.argsort(joined["start"], kind="stable")
    return {name: values[order] for name, values in joined.items()}


def busy_before(start: np.ndarray, end: np.ndarray, moments: np.ndarray) -> np.ndarray:
    """Return for each moment the time covered by at least one interval before it.

    Parameters
    ----------
    start, end : ndarray of int64, shape (n,), ns; `start` ascending, intervals may overlap
    moments : ndarray of int64, shape (m,), ns

    Returns
    -------
    ndarray of int64, shape (m,), ns
    """
    if len(start) == 0:
        return np.zeros(len(moments), dtype=np.int64)
    reach = np.maximum.accumulate(end)
    opens = np.concatenate([[True], start[1:] > reach[:-1]])
    left = start[opens]
    right = reach[np.concatenate([np.flatnonzero(opens)[1:] - 1, [len(start) - 1]])]
    covered = np.concatenate([[0], np.cumsum(right - left)])
    index = np.searchsorted(left, moments, side="right")
    inside = np.where(index > 0, np.minimum(moments, right[index - 1]) - left[index - 1], 0)
    return np.where(index > 0, covered[np.maximum(index - 1, 0)] + inside, 0)

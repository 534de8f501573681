"""Simulated events: those of one stream, for all ranks and iterations at once, and those of one rank in tables."""

from dataclasses import dataclass

import numpy as np

Columns = dict[str, np.ndarray]

CALL_NS = 2_500
"""Shortest launch call; they last up to twice this."""


@dataclass(frozen=True, kw_only=True)
class StreamEvents:
    """Events of one stream and the calls that issued them.

    Attributes
    ----------
    start, end, call_start, call_end : ndarray of int64, shape (ranks, iterations, slots)
        ns since the iteration's start.
    valid : ndarray of bool, the same shape
        Slots where it is False hold no event.
    """

    start: np.ndarray
    end: np.ndarray
    valid: np.ndarray
    call_start: np.ndarray
    call_end: np.ndarray


@dataclass(frozen=True, kw_only=True)
class RankBatch:
    """The events of one rank in a batch of iterations: tables of int64 columns, ordered by start.

    Times are ns since the run's zero, which is the same on all ranks.

    Attributes
    ----------
    rank : int
    kernels : dict of ndarray
        start, end, stream, kernel (index into the scenario's), block, grid, mean_ns (float64, of the configuration,
        without effects), effect (float64, planted relative change) and correlation.
    copies : dict of ndarray
        start, end, stream, bytes, kind, source_kind, target_kind and correlation; empty without copies.
    memsets : dict of ndarray
        start, end, stream, bytes and correlation.
    calls : dict of ndarray
        start, end, thread, call (see `schedule`) and correlation.
    ranges : dict of ndarray
        start, end and iteration.
    samples : dict of ndarray
        time, metric and value; empty where none are sampled.
    """

    rank: int
    kernels: Columns
    copies: Columns
    memsets: Columns
    calls: Columns
    ranges: Columns
    samples: Columns


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
    call_start, call_end : ndarray of int64, shape of `start`; call_end <= start
    """
    length = np.rint(CALL_NS * random.uniform(1, 2, start.shape)).astype(np.int64)
    wanted = start - np.rint(8_000 * np.exp(0.6 * random.standard_normal(start.shape))).astype(np.int64)
    end = np.empty_like(start)
    previous = np.full(start.shape[:-1], earliest_ns, dtype=np.int64)
    for slot in range(start.shape[-1]):
        previous = end[..., slot] = np.maximum(wanted[..., slot], previous + length[..., slot])
    return end - length, end


def renewal(random: np.random.Generator, duration: np.ndarray, pause_us: float, window_ns: float) -> StreamEvents:
    """Draw a renewal process: events one after the other with exponential pauses, beginning within a window.

    Parameters
    ----------
    random : Generator
    duration : ndarray of int64, shape (ranks, iterations, slots), ns
    pause_us : float, microseconds
        Mean pause, beside a least one of 8 us.
    window_ns : float
        Events that would begin later are not valid.

    Returns
    -------
    StreamEvents, of the shape of `duration`
    """
    pause = 8_000 + np.rint(random.exponential(1000 * pause_us, duration.shape)).astype(np.int64)
    end = np.cumsum(pause + duration, axis=-1) + 15_000
    start = end - duration
    call_start, call_end = issue(random, start, 1_000)
    return StreamEvents(start=start, end=end, valid=start < window_ns, call_start=call_start, call_end=call_end)


def no_events(ranks: int, iterations: int) -> StreamEvents:
    """Return the events of a stream without slots."""
    times = np.zeros((ranks, iterations, 0), dtype=np.int64)
    return StreamEvents(start=times, end=times, valid=times.astype(bool), call_start=times, call_end=times)


def in_flight(events: StreamEvents, moment: np.ndarray) -> np.ndarray:
    """Return which events of a stream are in flight (started, not ended) at one moment per rank and iteration.

    Parameters
    ----------
    events : StreamEvents
    moment : ndarray of int64, shape (ranks, iterations), ns since the iteration's start

    Returns
    -------
    ndarray of bool, shape (ranks, iterations, slots)
    """
    return events.valid & (events.start <= moment[..., None]) & (moment[..., None] < events.end)


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

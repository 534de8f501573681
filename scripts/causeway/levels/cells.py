"""Compiled sums over cells of time: what a tower of levels is made of.

A *cell* is a slice of time of one width; a *series* is one lane with one metric. A value belongs to the cell in which its event begins;
busy time belongs to the cells that it covers. Rows come in the order of time, so each series has one open cell, which is closed into the
output when a row of a later cell comes.
"""

import numpy as np
from numba import boolean, int64, uint16, uint32, void

from causeway.compiled import I8, U2, U4, compiled
from causeway.levels.sketch import bucket_of

LIMB = (1 << 32) - 1
CELL, END, COUNT, SUM, SQUARE_0, SQUARE_1, SQUARE_2, LOW, HIGH, TOUCHED = range(10)
"""Columns of an open cell: its number, its end in ns, the statistics, and how many buckets of its sketch are in use."""
STATE = 10
CLOSED = 10
"""Columns of a closed cell: series, cell, count, sum, three limbs of the sum of squares (32 bits but the last), least, largest, buckets."""
EMPTY_LOW = (1 << 63) - 1

# busy series of a device: covered time of the first four is exclusive in this order, "active" ones count each event for itself
COMPUTE, COMMUNICATION, EXPOSED_COMMUNICATION, EXPOSED_COPY, ACTIVE_COMPUTE, ACTIVE_COMMUNICATION, COPY_IN, COPY_OUT, COPY_ON, MEMSET = (
    range(10)
)
BUSY = 10
BUSY_NAMES = (
    "compute_ns communication_ns exposed_communication_ns exposed_copy_ns active_compute_ns active_communication_ns"
    " host_to_device_ns device_to_host_ns on_device_ns memset_ns"
).split()

# value series of a lane: durations by class of kernel, variability, stall, bytes by direction
VARIABILITY, STALL, BYTES_IN = 3, 4, 5
VALUES = 9
VALUE_NAMES = (
    "compute_duration communication_duration memory_duration variability stall host_to_device_bytes device_to_host_bytes on_device_bytes"
    " memset_bytes"
).split()

LANE_SLOTS = 256
"""Slots of the cache from (rank, device, stream) to lane: a power of two."""
LONG_AGO = -(1 << 62)


@compiled(void(int64, int64[:, ::1], uint32[:, ::1], uint16[:, ::1], int64[:, ::1], uint16[::1], uint32[::1], int64[::1]))
def close(series, state, histogram, touched, closed, buckets, counts, filled):
    """Write a series' open cell behind the closed ones, its buckets in ascending order, and empty it. `filled`: cells, buckets."""
    n, m = filled[0], filled[1]
    carry = state[series, SQUARE_0] >> 32
    middle = state[series, SQUARE_1] + carry
    closed[n, 0], closed[n, 1] = series, state[series, CELL]
    closed[n, 2], closed[n, 3] = state[series, COUNT], state[series, SUM]
    closed[n, 4], closed[n, 5] = state[series, SQUARE_0] & LIMB, middle & LIMB
    closed[n, 6] = state[series, SQUARE_2] + (middle >> 32)
    closed[n, 7], closed[n, 8] = state[series, LOW], state[series, HIGH]
    used = state[series, TOUCHED]
    closed[n, 9] = used
    names = touched[series, :used]
    names.sort()
    for k in range(used):
        buckets[m + k], counts[m + k] = names[k], histogram[series, names[k]]
        histogram[series, names[k]] = 0
    filled[0], filled[1] = n + 1, m + used
    for column in range(COUNT, STATE):
        state[series, column] = 0
    state[series, LOW], state[series, HIGH] = EMPTY_LOW, -EMPTY_LOW


@compiled(
    void(
        int64,
        int64,
        int64,
        int64,
        int64[:, ::1],
        uint32[:, ::1],
        uint16[:, ::1],
        int64[:, ::1],
        uint16[::1],
        uint32[::1],
        int64[::1],
        I8,
        I8,
    )
)
def add(series, time, value, width, state, histogram, touched, closed, buckets, counts, filled, upper, first):
    """Add a value to the cell of `time`, which is not before the series' open cell."""
    if time >= state[series, END]:
        if state[series, COUNT]:
            close(series, state, histogram, touched, closed, buckets, counts, filled)
        cell = time // width
        state[series, CELL], state[series, END] = cell, (cell + 1) * width
    state[series, COUNT] += 1
    state[series, SUM] += value
    state[series, LOW] = min(state[series, LOW], value)
    state[series, HIGH] = max(state[series, HIGH], value)
    magnitude = np.uint64(abs(value))
    low, high = magnitude & np.uint64(LIMB), magnitude >> np.uint64(32)
    square = low * low
    state[series, SQUARE_0] += np.int64(square & np.uint64(LIMB))
    state[series, SQUARE_1] += np.int64(square >> np.uint64(32))
    if high:
        product = low * high
        state[series, SQUARE_1] += 2 * np.int64(product & np.uint64(LIMB))
        state[series, SQUARE_2] += 2 * np.int64(product >> np.uint64(32)) + np.int64(high * high)
    bucket = bucket_of(value, upper, first)
    if histogram[series, bucket] == 0:
        touched[series, state[series, TOUCHED]] = bucket
        state[series, TOUCHED] += 1
    histogram[series, bucket] += 1


@compiled(void(int64, int64, int64, int64, int64[:, ::1], int64[:, ::1], int64[::1]))
def cover(series, begin, end, width, opened, pieces, filled):
    """Add the time from `begin` to `end` to the cells that it covers.

    `opened` has for each series its open cell: number, end, ns. Only `begin` is known to ascend, so what reaches beyond the cell of `begin`
    is written as pieces (series, cell, ns) of their own. `filled[2]` counts pieces.
    """
    if end <= begin:
        return
    if begin >= opened[series, 1]:
        if opened[series, 2]:
            n = filled[2]
            pieces[n, 0], pieces[n, 1], pieces[n, 2] = series, opened[series, 0], opened[series, 2]
            filled[2] = n + 1
        cell = begin // width
        opened[series, 0], opened[series, 1], opened[series, 2] = cell, (cell + 1) * width, 0
    if end <= opened[series, 1]:
        opened[series, 2] += end - begin
        return
    opened[series, 2] += opened[series, 1] - begin
    cell, at = opened[series, 0] + 1, opened[series, 1]
    n = filled[2]
    while at < end:
        pieces[n, 0], pieces[n, 1], pieces[n, 2] = series, cell, min(width, end - at)
        n += 1
        cell += 1
        at += width
    filled[2] = n


@compiled(void(int64, int64, int64, int64[:, ::1], int64[:, ::1], int64[:, ::1], int64[::1]))
def advance(device, now, width, until, opened, pieces, filled):
    """Cover the time of a device up to `now`.

    `until` has for each device: the time up to which it is covered, and the latest end of compute, communication and copies that have
    begun. Between two begins a class is active exactly until its latest end, so no list of active events is needed.
    """
    since, compute, talk, copy = until[device, 0], until[device, 1], until[device, 2], until[device, 3]
    base = device * BUSY
    if compute > since:
        cover(base + COMPUTE, since, min(compute, now), width, opened, pieces, filled)
    if talk > since:
        cover(base + COMMUNICATION, since, min(talk, now), width, opened, pieces, filled)
        cover(base + EXPOSED_COMMUNICATION, max(since, compute), min(talk, now), width, opened, pieces, filled)
    if copy > since:
        cover(base + EXPOSED_COPY, max(since, compute, talk), min(copy, now), width, opened, pieces, filled)
    until[device, 0] = max(since, now)


@compiled(int64(int64, int64, int64))
def lane_slot(rank, device, stream):
    """Return the slot of the cache for a lane."""
    return (rank * 31 + device * 7 + stream) & (LANE_SLOTS - 1)


@compiled(boolean(U4, U2, U4, int64[:, ::1], int64[::1]))
def find_lanes(rank, device, stream, cache, lane):
    """Write the lane of each row from the cache (rank, device, stream, lane); return whether all were there. Those that were not get -1."""
    complete = True
    for i in range(rank.size):
        a, b, c = np.int64(rank[i]), np.int64(device[i]), np.int64(stream[i])
        slot = lane_slot(a, b, c)
        here = np.int64(-1)
        if cache[slot, 0] == a and cache[slot, 1] == b and cache[slot, 2] == c:
            here = cache[slot, 3]
        lane[i] = here
        complete &= here >= 0
    return complete


@compiled(
    void(
        *(I8, I8, I8, I8, I8, I8),
        *(I8, I8, I8, I8, I8),
        *(I8, int64, int64),
        *(int64[:, ::1], uint32[:, ::1], uint16[:, ::1], int64[:, ::1], int64[:, ::1]),
        *(int64[:, ::1], uint16[::1], uint32[::1], int64[:, ::1], int64[::1], I8, I8),
    )
)
def sweep(
    start, duration, lane, kind, mean, stall,
    t_start, t_duration, t_lane, t_kind, t_bytes,
    device_of, origin, width,
    state, histogram, touched, until, opened,
    closed, buckets, counts, pieces, filled, upper, first,
):  # fmt: skip
    """Add launches and transfers, both ascending in `start`, in the order of time; of two that begin together the launch comes first.

    `kind` is the class of a launch (0 compute, 1 communication, 2 memory), `mean` the mean of its configuration in whole ns, `stall` its
    memory stall or -1. `t_kind` is 0 host to device, 1 device to host, 2 on the device or between devices, 3 memory set; `t_bytes` -1 if
    unknown. Times count from `origin`.
    """
    i = j = 0
    while i < start.size or j < t_start.size:
        if j == t_start.size or (i < start.size and start[i] <= t_start[j]):
            begin, length, here = start[i] - origin, duration[i], lane[i]
            base, device = here * VALUES, device_of[here]
            add(base + kind[i], begin, length, width, state, histogram, touched, closed, buckets, counts, filled, upper, first)
            away = abs(length - mean[i])
            add(base + VARIABILITY, begin, away, width, state, histogram, touched, closed, buckets, counts, filled, upper, first)
            if stall[i] >= 0:
                add(base + STALL, begin, stall[i], width, state, histogram, touched, closed, buckets, counts, filled, upper, first)
            advance(device, begin, width, until, opened, pieces, filled)
            until[device, kind[i] + 1] = max(until[device, kind[i] + 1], begin + length)
            if kind[i] < 2:
                cover(device * BUSY + ACTIVE_COMPUTE + kind[i], begin, begin + length, width, opened, pieces, filled)
            i += 1
        else:
            begin, length, here = t_start[j] - origin, t_duration[j], t_lane[j]
            base, device = here * VALUES, device_of[here]
            if t_bytes[j] >= 0:
                add(base + BYTES_IN + t_kind[j], begin, t_bytes[j], width, state, histogram, touched, closed, buckets, counts, filled,
                upper, first)  # fmt: skip
            advance(device, begin, width, until, opened, pieces, filled)
            until[device, 3] = max(until[device, 3], begin + length)
            cover(device * BUSY + COPY_IN + t_kind[j], begin, begin + length, width, opened, pieces, filled)
            j += 1


@compiled(
    void(
        *(I8, I8, I8, int64, int64),
        *(int64[:, ::1], uint32[:, ::1], uint16[:, ::1], int64[:, ::1], uint16[::1], uint32[::1], int64[::1], I8, I8),
    )
)
def gather(time, series, value, origin, width, state, histogram, touched, closed, buckets, counts, filled, upper, first):
    """Add values, ascending in time, to their series."""
    for i in range(time.size):
        add(series[i], time[i] - origin, value[i], width, state, histogram, touched, closed, buckets, counts, filled, upper, first)


@compiled(int64(I8, I8, int64[::1], int64[::1]))
def sum_by_configuration(configuration, duration, count, total):
    """Add durations to the count and sum of their configurations; return the first row whose configuration is unknown, or -1."""
    for i in range(duration.size):
        if configuration[i] >= count.size:
            return i
        count[configuration[i]] += 1
        total[configuration[i]] += duration[i]
    return -1

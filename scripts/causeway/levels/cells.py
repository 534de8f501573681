"""Compiled sums over cells of time: what a tower of levels is made of.

A *cell* is a slice of time of one width; a *series* is one lane with one metric. A value belongs to the cell in which its event begins;
busy time belongs to the cells that it covers. Rows come in the order of time, so each series has one open cell, which is closed into the
output when a row of a later cell comes.
"""

import numpy as np
from numba import boolean, int64, uint16, uint32, void

from causeway.compiled import I8, U2, U4, bits_of, compiled
from causeway.levels.sketch import FIRST_HEAD, HEAD_SHIFT, LARGEST

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
        *(I8, I8, I8, int64, int64),
        *(int64[:, ::1], uint32[:, ::1], uint16[:, ::1], int64[:, ::1], uint16[::1], uint32[::1], int64[::1], I8, U2),
    )
)
def add(time, series, value, origin, width, state, histogram, touched, closed, buckets, counts, filled, upper, first):
    """Add values to their series; times ascend within a series, and are not before its open cell."""
    for i in range(time.size):
        at, v, k = time[i] - origin, value[i], series[i]
        if at >= state[k, END]:
            if state[k, COUNT]:
                close(k, state, histogram, touched, closed, buckets, counts, filled)
            cell = at // width
            state[k, CELL], state[k, END] = cell, (cell + 1) * width
        state[k, COUNT] += 1
        state[k, SUM] += v
        state[k, LOW], state[k, HIGH] = min(state[k, LOW], v), max(state[k, HIGH], v)
        magnitude = np.uint64(abs(v))
        lower, upper_half = magnitude & np.uint64(LIMB), magnitude >> np.uint64(32)
        square = lower * lower
        state[k, SQUARE_0] += np.int64(square & np.uint64(LIMB))
        state[k, SQUARE_1] += np.int64(square >> np.uint64(32))
        if upper_half:  # beyond 4.3 s in nanoseconds: rare
            product = lower * upper_half
            state[k, SQUARE_1] += 2 * np.int64(product & np.uint64(LIMB))
            state[k, SQUARE_2] += 2 * np.int64(product >> np.uint64(32)) + np.int64(upper_half * upper_half)
        bucket = np.int64(0)  # as `bucket_of`, in place: the call takes longer than all the rest
        if 0 < v <= LARGEST:
            bucket = np.int64(first[(bits_of(float(v)) >> HEAD_SHIFT) - FIRST_HEAD])
            while upper[bucket] < v:
                bucket += 1
        elif v > LARGEST:
            bucket = np.int64(upper.size - 1)
        if histogram[k, bucket] == 0:
            touched[k, state[k, TOUCHED]] = bucket
            state[k, TOUCHED] += 1
        histogram[k, bucket] += 1


@compiled(int64(I8, I8, I8, U4, I8, I8, I8, I8, int64[::1], int64[::1], int64[::1]))
def launch_values(start, duration, lane, configuration, kind, mean, linked, lasted, time, series, value):
    """Write what `add` takes of launches: their durations, variability and stalls; return how many values there are.

    `kind` and `mean` are of each configuration; `linked` has the place of each launch's transfer in `lasted`, -1 without one.
    """
    n = np.int64(0)
    for i in range(start.size):
        base, v, c = lane[i] * VALUES, duration[i], configuration[i]
        time[n], series[n], value[n] = start[i], base + kind[c], v
        time[n + 1], series[n + 1], value[n + 1] = start[i], base + VARIABILITY, abs(v - mean[c])
        n += 2
        if linked[i] >= 0:
            time[n], series[n], value[n] = start[i], base + STALL, abs(v - lasted[linked[i]])
            n += 1
    return n


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


@compiled(void(int64, int64[:, ::1], int64[:, ::1], int64[::1]))
def close_busy(device, opened, pieces, filled):
    """Write the sums of a device's open cell as pieces (series, cell, ns), and empty it. `filled[2]` counts pieces."""
    n = filled[2]
    for k in range(BUSY):
        if opened[device, 2 + k]:
            pieces[n, 0], pieces[n, 1], pieces[n, 2] = device * BUSY + k, opened[device, 0], opened[device, 2 + k]
            opened[device, 2 + k] = 0
            n += 1
    filled[2] = n


@compiled(void(int64, int64, I8, I8, I8, U4, I8, I8, I8, I8, I8, int64, int64, int64[:, ::1], int64[:, ::1], int64[:, ::1], int64[::1]))
def sweep(
    device, now, places, start, duration, configuration, kind, t_places, t_start, t_duration, t_kind,
    origin, width, until, opened, pieces, filled,
):  # fmt: skip
    """Add the launches and transfers of a device at some places, in the order of time, to its busy time, and the time up to `now`.

    `kind` is the class of a configuration (0 compute, 1 communication, 2 memory), `t_kind` 0 host to device, 1 device to host, 2 on the
    device or between devices, 3 memory set. `until` has for each device the time up to which it is covered, and the latest end of compute,
    of communication and of copies that have begun: between two begins a class is active exactly until its latest end, so no list of active
    events is needed. `opened` has each device's open cell: number, end, and ns of each kind of busy time. Times count from `origin`.
    """
    since, compute, talk, copy = until[device, 0], until[device, 1], until[device, 2], until[device, 3]
    end = opened[device, 1]
    in_compute = in_talk = exposed_talk = exposed_copy = np.int64(0)
    i = j = 0
    while True:
        if j < t_places.size and (i == places.size or t_start[t_places[j]] < start[places[i]]):
            row = t_places[j]
            begin, length, what, active = t_start[row] - origin, t_duration[row], 3, COPY_IN + t_kind[row]
            j += 1
        elif i < places.size:
            row = places[i]
            begin, length, what = start[row] - origin, duration[row], kind[configuration[row]] + 1
            active = ACTIVE_COMPUTE + what - 1 if what < 3 else np.int64(-1)
            i += 1
        elif since < now:
            begin, length, what, active = now, np.int64(0), np.int64(0), np.int64(-1)
        else:
            break
        while since < begin:
            if since >= end or since >= max(compute, max(talk, copy)):
                opened[device, 2 + COMPUTE] += in_compute
                opened[device, 2 + COMMUNICATION] += in_talk
                opened[device, 2 + EXPOSED_COMMUNICATION] += exposed_talk
                opened[device, 2 + EXPOSED_COPY] += exposed_copy
                in_compute = in_talk = exposed_talk = exposed_copy = np.int64(0)
                if since >= max(compute, max(talk, copy)):  # nothing is active until the next begin
                    since = begin
                if since >= end:
                    close_busy(device, opened, pieces, filled)
                    cell = since // width
                    end = (cell + 1) * width
                    opened[device, 0], opened[device, 1] = cell, end
                if since == begin:
                    break
            stop = min(begin, end)
            in_compute += max(0, min(compute, stop) - since)
            in_talk += max(0, min(talk, stop) - since)
            exposed_talk += max(0, min(talk, stop) - max(since, compute))
            exposed_copy += max(0, min(copy, stop) - max(since, max(compute, talk)))
            since = stop
        if since >= end:
            opened[device, 2 + COMPUTE] += in_compute
            opened[device, 2 + COMMUNICATION] += in_talk
            opened[device, 2 + EXPOSED_COMMUNICATION] += exposed_talk
            opened[device, 2 + EXPOSED_COPY] += exposed_copy
            in_compute = in_talk = exposed_talk = exposed_copy = np.int64(0)
            close_busy(device, opened, pieces, filled)
            cell = since // width
            end = (cell + 1) * width
            opened[device, 0], opened[device, 1] = cell, end
        finish = begin + length
        if what == 1:
            compute = max(compute, finish)
        elif what == 2:
            talk = max(talk, finish)
        elif what == 3:
            copy = max(copy, finish)
        if active >= 0:
            opened[device, 2 + active] += min(finish, end) - begin
            at, cell, n = end, opened[device, 0] + 1, filled[2]
            while at < finish:  # what reaches beyond the open cell is written at once: only begins ascend
                pieces[n, 0], pieces[n, 1], pieces[n, 2] = device * BUSY + active, cell, min(width, finish - at)
                n += 1
                cell += 1
                at += width
            filled[2] = n
    opened[device, 2 + COMPUTE] += in_compute
    opened[device, 2 + COMMUNICATION] += in_talk
    opened[device, 2 + EXPOSED_COMMUNICATION] += exposed_talk
    opened[device, 2 + EXPOSED_COPY] += exposed_copy
    until[device, 0], until[device, 1], until[device, 2], until[device, 3] = since, compute, talk, copy


@compiled(int64(U4, I8, int64[::1], int64[::1]))
def sum_by_configuration(configuration, duration, count, total):
    """Add durations to the count and sum of their configurations; return the first row whose configuration is unknown, or -1."""
    for i in range(duration.size):
        if configuration[i] >= count.size:
            return i
        count[configuration[i]] += 1
        total[configuration[i]] += duration[i]
    return -1


@compiled(void(I8, int64[::1], int64[::1]))
def order_by_series(series, begin, order):
    """Counting sort: places by series, in their order within each. `begin`, one longer than there are series, gets their ends."""
    for i in range(series.size):
        begin[series[i] + 1] += 1
    for k in range(begin.size - 1):
        begin[k + 1] += begin[k]
    for i in range(series.size):
        k = series[i]
        order[begin[k]] = i
        begin[k] += 1


@compiled(int64(int64[:, ::1], I8, int64[:, ::1], int64[::1]))
def merge_values(values, order, merged, group):
    """Sum the rows of equal series and cell, which stand together in `order`; return how many are left. `group` gets new places."""
    n = np.int64(-1)
    for i in order:
        if n < 0 or merged[n, 0] != values[i, 0] or merged[n, 1] != values[i, 1]:
            n += 1
            for column in range(9):
                merged[n, column] = values[i, column]
        else:
            for column in range(2, 7):
                merged[n, column] += values[i, column]
            merged[n, 7] = min(merged[n, 7], values[i, 7])
            merged[n, 8] = max(merged[n, 8], values[i, 8])
        group[i] = n
    for k in range(n + 1):
        merged[k, 5] += merged[k, 4] >> 32
        merged[k, 6] += merged[k, 5] >> 32
        merged[k, 4] &= LIMB
        merged[k, 5] &= LIMB
    return n + 1


@compiled(int64(I8, I8, I8, U2, U4, int64[::1], uint16[::1], uint32[::1], uint32[::1]))
def merge_sketches(order, group, offset, buckets, counts, merged_offset, merged_buckets, merged_counts, histogram):
    """Sum the counts of equal buckets of rows of one group; return how many entries are left. `histogram` is all zero, before and after."""
    m = np.int64(0)
    used = np.empty(histogram.size, np.uint16)
    i = 0
    while i < order.size:
        here, touched = group[order[i]], 0
        while i < order.size and group[order[i]] == here:
            row = order[i]
            for k in range(offset[row], offset[row + 1]):
                bucket = buckets[k]
                if histogram[bucket] == 0:
                    used[touched] = bucket
                    touched += 1
                histogram[bucket] += counts[k]
            i += 1
        names = used[:touched]
        names.sort()
        for k in range(touched):
            merged_buckets[m + k], merged_counts[m + k] = names[k], histogram[names[k]]
            histogram[names[k]] = 0
        m += touched
        merged_offset[here + 1] = m
    return m


@compiled(int64(int64[:, ::1], I8, int64[:, ::1]))
def merge_busy(pieces, order, merged):
    """Sum the ns of pieces of equal series and cell, which stand together in `order`; return how many are left."""
    n = np.int64(-1)
    for i in order:
        if n < 0 or merged[n, 0] != pieces[i, 0] or merged[n, 1] != pieces[i, 1]:
            n += 1
            merged[n, 0], merged[n, 1], merged[n, 2] = pieces[i, 0], pieces[i, 1], 0
        merged[n, 2] += pieces[i, 2]
    return n + 1

"""Compiled sums of busy time: the ns of each cell that a device's launches and transfers cover, by kind of work.

Only begins ascend, so what reaches beyond the open cell is written at once, as pieces that are merged later.
"""

import numpy as np
from numba import int64, void

from causeway.numeric.compiled import I8, U4, compiled

# busy series of a device: covered time of the first four is exclusive in this order, "active" ones count each event for
# itself
(
    COMPUTE,
    COMMUNICATION,
    EXPOSED_COMMUNICATION,
    EXPOSED_COPY,
    ACTIVE_COMPUTE,
    ACTIVE_COMMUNICATION,
    COPY_IN,
    COPY_OUT,
    COPY_ON,
    MEMSET,
) = range(10)
BUSY = 10
BUSY_NAMES = (
    "compute_ns communication_ns exposed_communication_ns exposed_copy_ns active_compute_ns active_communication_ns"
    " host_to_device_ns device_to_host_ns on_device_ns memset_ns"
).split()


@compiled(void(int64, int64[:, ::1], int64[:, ::1], int64[::1]))
def close_busy(device, opened, pieces, filled):
    """Write the sums of a device's open cell as pieces (series, cell, ns), and empty it. `filled[2]` counts pieces."""
    n = filled[2]
    for k in range(BUSY):
        if opened[device, 2 + k]:
            pieces[n, 0] = device * BUSY + k
            pieces[n, 1] = opened[device, 0]
            pieces[n, 2] = opened[device, 2 + k]
            opened[device, 2 + k] = 0
            n += 1
    filled[2] = n


@compiled(
    void(
        int64,
        int64,
        I8,
        I8,
        I8,
        U4,
        I8,
        I8,
        I8,
        I8,
        I8,
        int64,
        int64,
        int64[:, ::1],
        int64[:, ::1],
        int64[:, ::1],
        int64[::1],
    )
)
def sweep(
    device, now, rows, start, duration, configuration, kind, t_rows, t_start, t_duration, t_kind,
    origin, width, until, opened, pieces, filled,
):  # fmt: skip
    """Add the launches and transfers of a device, the `rows` and `t_rows` of arrays in the order of time, to its busy
    time, and the time up to `now`.

    `kind` is the class of a configuration (0 compute, 1 communication, 2 memory), `t_kind` 0 host to device, 1 device
    to host, 2 on the device or between devices, 3 memory set. `until` has for each device the time up to which it is
    covered, and the latest end of compute, of communication and of copies that have begun: between two begins a class
    is active exactly until its latest end, so no list of active events is needed. `opened` has each device's open cell:
    number, end, and ns of each kind of busy time. Times count from `origin`.
    """
    since = until[device, 0]
    compute = until[device, 1]
    communication = until[device, 2]
    copy = until[device, 3]
    end = opened[device, 1]
    in_compute = in_communication = exposed_communication = exposed_copy = np.int64(0)
    i = j = 0
    while True:
        if j < t_rows.size and (i == rows.size or t_start[t_rows[j]] < start[rows[i]]):
            row = t_rows[j]
            begin = t_start[row] - origin
            length = t_duration[row]
            what = 3
            active = COPY_IN + t_kind[row]
            j += 1
        elif i < rows.size:
            row = rows[i]
            begin = start[row] - origin
            length = duration[row]
            what = kind[configuration[row]] + 1
            active = ACTIVE_COMPUTE + what - 1 if what < 3 else np.int64(-1)
            i += 1
        elif since < now:
            begin = now
            length = np.int64(0)
            what = np.int64(0)
            active = np.int64(-1)
        else:
            break
        while since < begin:
            if since >= end or since >= max(compute, max(communication, copy)):
                opened[device, 2 + COMPUTE] += in_compute
                opened[device, 2 + COMMUNICATION] += in_communication
                opened[device, 2 + EXPOSED_COMMUNICATION] += exposed_communication
                opened[device, 2 + EXPOSED_COPY] += exposed_copy
                in_compute = in_communication = exposed_communication = exposed_copy = np.int64(0)
                if since >= max(compute, max(communication, copy)):  # nothing is active until the next begin
                    since = begin
                if since >= end:
                    close_busy(device, opened, pieces, filled)
                    cell = since // width
                    end = (cell + 1) * width
                    opened[device, 0] = cell
                    opened[device, 1] = end
                if since == begin:
                    break
            stop = min(begin, end)
            in_compute += max(0, min(compute, stop) - since)
            in_communication += max(0, min(communication, stop) - since)
            exposed_communication += max(0, min(communication, stop) - max(since, compute))
            exposed_copy += max(0, min(copy, stop) - max(since, max(compute, communication)))
            since = stop
        if since >= end:
            opened[device, 2 + COMPUTE] += in_compute
            opened[device, 2 + COMMUNICATION] += in_communication
            opened[device, 2 + EXPOSED_COMMUNICATION] += exposed_communication
            opened[device, 2 + EXPOSED_COPY] += exposed_copy
            in_compute = in_communication = exposed_communication = exposed_copy = np.int64(0)
            close_busy(device, opened, pieces, filled)
            cell = since // width
            end = (cell + 1) * width
            opened[device, 0] = cell
            opened[device, 1] = end
        finish = begin + length
        if what == 1:
            compute = max(compute, finish)
        elif what == 2:
            communication = max(communication, finish)
        elif what == 3:
            copy = max(copy, finish)
        if active >= 0:
            opened[device, 2 + active] += min(finish, end) - begin
            at = end
            cell = opened[device, 0] + 1
            n = filled[2]
            while at < finish:  # what reaches beyond the open cell is written at once: only begins ascend
                pieces[n, 0] = device * BUSY + active
                pieces[n, 1] = cell
                pieces[n, 2] = min(width, finish - at)
                n += 1
                cell += 1
                at += width
            filled[2] = n
    opened[device, 2 + COMPUTE] += in_compute
    opened[device, 2 + COMMUNICATION] += in_communication
    opened[device, 2 + EXPOSED_COMMUNICATION] += exposed_communication
    opened[device, 2 + EXPOSED_COPY] += exposed_copy
    until[device, 0] = since
    until[device, 1] = compute
    until[device, 2] = communication
    until[device, 3] = copy


@compiled(int64(int64[:, ::1], I8, int64[:, ::1]))
def merge_busy(pieces, order, merged):
    """Sum the ns of pieces of equal series and cell, adjacent in `order`; return how many are left."""
    n = np.int64(-1)
    for i in order:
        if n < 0 or merged[n, 0] != pieces[i, 0] or merged[n, 1] != pieces[i, 1]:
            n += 1
            merged[n, 0] = pieces[i, 0]
            merged[n, 1] = pieces[i, 1]
            merged[n, 2] = 0
        merged[n, 2] += pieces[i, 2]
    return n + 1

"""Compiled sums of busy time: the ns of each cell that a device's launches and transfers cover, by kind of work.

Only begins ascend, so what reaches beyond the open cell is written at once, as pieces that are merged later.
"""

import numpy as np

from causeway.levels.pyramid.cells import CHUNK_ROWS
from causeway.numeric.compiled import I8, compiled_borrowing, int64, record, void

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
_M2 = int64[:, ::1]


@compiled_borrowing(void(int64, _M2, _M2, int64[::1]))
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


@compiled_borrowing(void(int64, int64, int64, _M2, _M2, int64[::1]))
def _open_cell_of(device, moment, width, opened, pieces, filled):
    """Write the sums of a device's open cell, and open that of a moment."""
    close_busy(device, opened, pieces, filled)
    cell = moment // width
    opened[device, 0] = cell
    opened[device, 1] = (cell + 1) * width


@compiled_borrowing(void(int64, int64, int64, _M2, _M2, _M2, int64[::1]), forceinline=True)
def _cover(device, moment, width, until, opened, pieces, filled):
    """Add what is active up to a moment to the busy time of a device, whose open cell then is that of the moment."""
    since = until[device, 0]
    compute = until[device, 1]
    communication = until[device, 2]
    copy = until[device, 3]
    active_until = max(compute, max(communication, copy))
    while since < min(moment, active_until):
        if since >= opened[device, 1]:
            _open_cell_of(device, since, width, opened, pieces, filled)
        stop = min(moment, opened[device, 1])
        opened[device, 2 + COMPUTE] += max(0, min(compute, stop) - since)
        opened[device, 2 + COMMUNICATION] += max(0, min(communication, stop) - since)
        opened[device, 2 + EXPOSED_COMMUNICATION] += max(0, min(communication, stop) - max(since, compute))
        opened[device, 2 + EXPOSED_COPY] += max(0, min(copy, stop) - max(since, max(compute, communication)))
        since = stop
    since = max(since, moment)
    if since >= opened[device, 1]:
        _open_cell_of(device, since, width, opened, pieces, filled)
    until[device, 0] = since


@compiled_borrowing(void(int64, int64, int64, int64, int64, _M2, _M2, int64[::1]), forceinline=True)
def _add_active(device, what, begin, finish, width, opened, pieces, filled):
    """Add an event that begins in the open cell to a kind of active time; what reaches beyond the cell is written."""
    edge = opened[device, 1]
    opened[device, 2 + what] += min(finish, edge) - begin
    cell = opened[device, 0] + 1
    n = filled[2]
    while edge < finish:
        pieces[n, 0] = device * BUSY + what
        pieces[n, 1] = cell
        pieces[n, 2] = min(width, finish - edge)
        n += 1
        cell += 1
        edge += width
    filled[2] = n


BUSY_TRANSFERS = record("BUSY_TRANSFERS", start=I8, duration=I8, kind=I8)
"""Transfers in the order of time.

Attributes
----------
start, duration : ndarray of int64, shape (n,), ns
kind : ndarray of int64, shape (n,)
    0 host to device, 1 device to host, 2 on the device or between devices, 3 memory set.
"""


BUSY_CELLS = record(
    "BUSY_CELLS",
    origin=int64,
    width=int64,
    until=int64[:, ::1],
    opened=int64[:, ::1],
    pieces=int64[:, ::1],
    filled=int64[::1],
)
"""Cells of busy time, and how far devices are known.

Attributes
----------
origin, width : int, ns
    Times count from `origin`.
until : ndarray of int64, shape (devices, 4), ns, updated
    The time up to which each device is covered, and the latest end of compute, of communication and of copies that
    have begun: between two begins a class is active exactly until its latest end, so no list of active events is
    needed.
opened : ndarray of int64, shape (devices, 2 + kinds), updated
    Each device's open cell: number, end, and ns of each kind of busy time.
pieces : ndarray of int64, shape (rows, 3), output
filled : ndarray of int64, shape (3,), updated
"""


@compiled_borrowing(void(int64, int64, I8, CHUNK_ROWS, I8, BUSY_TRANSFERS, BUSY_CELLS))
def sweep(device, now, rows, launches, t_rows, transfers, busy):
    """Add the launches and transfers of a device, the `rows` and `t_rows` of arrays in the order of time, to its busy
    time, and the time up to `now`.
    """
    until = busy.until
    i = 0
    j = 0
    while i < rows.size or j < t_rows.size:
        if j < t_rows.size and (i == rows.size or transfers.start[t_rows[j]] < launches.start[rows[i]]):
            row = t_rows[j]
            begin = transfers.start[row] - busy.origin
            finish = begin + transfers.duration[row]
            kind_of_event = int64(2)  # memory, as a kernel that copies
            active = COPY_IN + transfers.kind[row]
            j += 1
        else:
            row = rows[i]
            begin = launches.start[row] - busy.origin
            finish = begin + launches.duration[row]
            kind_of_event = launches.kind[launches.configuration[row]]
            active = ACTIVE_COMPUTE + kind_of_event if kind_of_event < 2 else int64(-1)
            i += 1
        _cover(device, begin, busy.width, until, busy.opened, busy.pieces, busy.filled)
        until[device, 1 + kind_of_event] = max(until[device, 1 + kind_of_event], finish)
        if active >= 0:
            _add_active(device, active, begin, finish, busy.width, busy.opened, busy.pieces, busy.filled)
    _cover(device, now, busy.width, until, busy.opened, busy.pieces, busy.filled)


@compiled_borrowing(int64(_M2, I8, _M2))
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

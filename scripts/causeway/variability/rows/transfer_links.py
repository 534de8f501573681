"""Link each launch to the transfer that it competes with: compiled sweeps over rows ordered by time.

Definition (DESIGN): the transfer on the same rank and device with the longest overlap with the launch; if none
overlaps, the last one that ended before it within the window; ties: earlier start, then smaller row number; else none.
"""

import numpy as np

from causeway.numeric.compiled import I8, UniTuple, boolean, compiled_borrowing, int64, record, void

NONE = -1
MOST_DEVICES = 1 << 16
UNKNOWN = np.iinfo(np.int64).min
"""Stands for a null in an integer column."""
QUEUE = ("head", "tail", "next", "latest_end", "latest")
HEAD, TAIL, NEXT, LATEST_END, LATEST = range(len(QUEUE))
"""Of a device's transfers: where the queue of active ones begins and ends, the next to begin; the latest end of those
that have begun, and the first of them that has it.
"""


LINKED_LAUNCHES = record("LINKED_LAUNCHES", start=I8, end=I8, device=I8)
"""Launches in the order of time.

Attributes
----------
start, end : ndarray of int64, shape (n,), ns
device : ndarray of int64, shape (n,)
    A number for rank and device.
"""


DEVICE_TRANSFERS = record("DEVICE_TRANSFERS", start=I8, end=I8, offset=I8, row=I8)
"""Transfers ordered by device, those of a device in the order of their rows.

Attributes
----------
start, end : ndarray of int64, shape (m,), ns
offset : ndarray of int64, shape (devices + 1,)
    Where those of each device begin.
row : ndarray of int64, shape (m,) or (0,)
    Their rows; without elements: they are in this order.
"""


def link(
    start: np.ndarray,
    end: np.ndarray,
    device: np.ndarray,
    t_start: np.ndarray,
    t_end: np.ndarray,
    t_device: np.ndarray,
    window: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Link launches to transfers, device by device.

    Costs O(n + m) for n launches and m transfers, besides one step for each pair of a launch and a transfer that begins
    inside it, however long a transfer lasts.

    Parameters
    ----------
    start, end, device : ndarray of int64, shape (n,)
        Launches, ascending in `start`, in ns; `device` is a number for their (rank, device).
    t_start, t_end, t_device : ndarray of int64, shape (m,)
        Transfers in the order of their rows, ascending in `t_start`.
    window : int
        Nanoseconds: a transfer that ended longer ago than this before a launch is not linked to it.

    Returns
    -------
    linked : ndarray of int64, shape (n,)
        Index of the transfer, or -1.
    overlap : ndarray of int64, shape (n,)
        Nanoseconds that the two share; 0 for a transfer that ended before, or none.
    """
    linked = np.full(start.size, NONE, np.int64)
    overlap = np.zeros(start.size, np.int64)
    if start.size == 0 or t_start.size == 0:
        return linked, overlap
    first = int(t_device.min())
    devices = int(t_device.max()) - first + 1
    # numbers far apart: numbered from 0; launches of devices without transfers get the number after the last
    if devices > MOST_DEVICES:
        numbers = np.unique(t_device)
        own = np.searchsorted(numbers, device)
        t_device = np.searchsorted(numbers, t_device)
        device = np.where(numbers[np.minimum(own, numbers.size - 1)] == device, own, numbers.size)
        first = 0
        devices = numbers.size
    row = np.empty(0, np.int64)
    offset = np.array([0, t_start.size])
    ts = t_start
    te = t_end
    if devices > 1:
        # numbers of 16 bits are sorted by their digits
        of = (t_device - first).astype(np.uint16 if devices <= MOST_DEVICES else np.int64)
        row = np.argsort(of, kind="stable")
        offset = np.concatenate(([0], np.cumsum(np.bincount(of, minlength=devices))))
        ts = t_start[row]
        te = t_end[row]
    begin = offset[:-1]
    nothing = np.full(devices, NONE)
    queues = np.column_stack([begin, begin, begin, np.full(devices, -(1 << 62)), nothing])
    active = np.empty(ts.size, np.int64)
    launches = LINKED_LAUNCHES.of(start=start, end=end, device=device)
    transfers = DEVICE_TRANSFERS.of(start=ts, end=te, offset=offset, row=row)
    if _sweep(launches, first, transfers, window, queues, active, linked, overlap):
        empty = np.flatnonzero(start == end)
        for k in np.unique(device[empty]) - first:
            if 0 <= k < devices and offset[k] < offset[k + 1]:
                here = empty[device[empty] == k + first]
                theirs = slice(offset[k], offset[k + 1])
                ended = _last_ended(start[here], te[theirs], window, offset[k])
                linked[here] = np.where(ended == NONE, NONE, row[ended]) if row.size else ended
    return linked, overlap


@compiled_borrowing(void(int64[::1], int64, int64, I8, I8, int64[::1]), forceinline=True)
def _follow(queue, moment, last, t_start, t_end, active):
    """Bring the queue of a device to a moment: transfers up to `last` that have begun enter, those at the head that
    have ended leave.
    """
    j = queue[NEXT]
    tail = queue[TAIL]
    while j < last and t_start[j] <= moment:
        if t_end[j] > queue[LATEST_END]:
            queue[LATEST_END] = t_end[j]
            queue[LATEST] = j
        if tail == queue[HEAD] or t_end[j] > t_end[active[tail - 1]]:
            active[tail] = j
            tail += 1
        j += 1
    head = queue[HEAD]
    while head < tail and t_end[active[head]] <= moment:
        head += 1
    queue[HEAD] = head
    queue[TAIL] = tail
    queue[NEXT] = j


@compiled_borrowing(UniTuple(int64, 2)(int64, int64, int64[::1], int64, I8, I8, int64[::1]), forceinline=True)
def _longest_overlap(s, e, queue, last, t_start, t_end, active):
    """Return the transfer that [s, e) overlaps most, and for how long; -1 if it overlaps none."""
    best = int64(-1)
    most = int64(0)
    if queue[HEAD] < queue[TAIL] and e > s:
        low = queue[HEAD]
        high = queue[TAIL] - 1
        while low < high:  # the first that covers all of it, else the last to end
            middle = (low + high) // 2
            if t_end[active[middle]] >= e:
                high = middle
            else:
                low = middle + 1
        best = active[low]
        most = min(t_end[best], e) - s
    k = queue[NEXT]
    while k < last and t_start[k] < e and most < e - t_start[k]:
        shared = min(t_end[k], e) - t_start[k]
        if shared > most:
            best = k
            most = shared
        k += 1
    return best, most


@compiled_borrowing(
    boolean(LINKED_LAUNCHES, int64, DEVICE_TRANSFERS, int64, int64[:, ::1], int64[::1], int64[::1], int64[::1])
)
def _sweep(launches, first_device, transfers, window, queues, active, linked, overlap):
    """Link the launches of all devices in one pass; return whether some are of length zero, which `_last_ended` must
    link.

    Transfers of device `first_device + k` are `offset[k]:offset[k + 1]`. Each device has a queue, `QUEUE`, of transfers
    `active[head:tail]` that have begun and not ended, less those that an earlier row with no earlier end makes useless:
    such a transfer never overlaps more, and loses ties. So rows and ends both ascend: the first to end leave at the
    head, the first that covers a whole launch is found by bisection, and one very long transfer is one entry. The last
    to have ended matters only when none is active, so all that began have ended: it is the one with the latest end so
    far.
    """
    empty = False
    row = transfers.row
    for i in range(launches.start.size):
        own = launches.device[i] - first_device
        if own < 0 or own >= queues.shape[0]:
            continue
        start = launches.start[i]
        end = launches.end[i]
        queue = queues[own]
        last = transfers.offset[own + 1]
        _follow(queue, start, last, transfers.start, transfers.end, active)
        best, most = _longest_overlap(start, end, queue, last, transfers.start, transfers.end, active)
        since = start - queue[LATEST_END]
        if best < 0 and queue[LATEST] >= 0 and 0 <= since <= window:
            best = queue[LATEST]
        linked[i] = row[best] if best >= 0 and row.size else best
        overlap[i] = most
        empty |= start == end
    return empty


def _last_ended(start, t_end, window, first):
    """Return the last transfer to have ended before each launch of length zero, which overlaps nothing while others may
    still be active.

    All are of one device; rows count from `first`.
    """
    order = np.lexsort((-np.arange(t_end.size), t_end))
    ended = np.searchsorted(t_end[order], start, side="right") - 1
    candidate = order[np.maximum(ended, 0)]
    near = (ended >= 0) & (start - t_end[candidate] <= window)
    return np.where(near, candidate + first, NONE)

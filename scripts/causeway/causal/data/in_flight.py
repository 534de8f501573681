"""What is going on at given instants: intervals in flight and their weights, idle time, the last input. Exact integers,
streamed.

Intervals come in chunks in order of start, and one compiled pass goes over them; only those that are in flight are
held. An interval [start, end) is in flight at an instant t if start <= t < end, so an empty one never is.
"""

import numpy as np

from causeway.events.row_heap import copy_row, drop, rise, with_room
from causeway.numeric.compiled import (
    F8,
    I8,
    U1,
    U2,
    U4,
    boolean,
    compiled_borrowing,
    float64,
    int32,
    int64,
    uint8,
    void,
)

NEVER = np.iinfo(np.int64).min
FOREVER = np.iinfo(np.int64).max
ALONE = -1
"""In the place of a configuration: no other launch was in flight."""
NEAR = 32
"""Intervals in flight that are looked at one by one at each instant; a heap, slower for few, holds what is beyond."""


class LaunchSweep:
    """What was so on the device of each chosen launch when it began, of the launches of one rank.

    Parameters
    ----------
    rank : int
    launch : ndarray of int64, shape (n,), ascending
        Rows of the chosen launches, counted over all ranks.
    kernel_of : ndarray of int64, shape (n_configurations,)
    means : ndarray of float64, shape (n_configurations,), ns, or None
        Without it there is no `previous`.

    Attributes
    ----------
    start, device : ndarray of int64, shape (n,)
        Device is -1 where a launch was not found.
    in_flight : ndarray of int64, shape (n,)
        Other launches in flight on the device when the launch began.
    beside : ndarray of int64, shape (n,)
        Configuration of that one of them which ended last (ties: earlier row); `ALONE` where there is none.
    idle : ndarray of float64, shape (n,), ns
        How long before the start all others that began before or with it had ended: 0 while another is in flight, NaN
        where nothing began before.
    previous : ndarray of float64, shape (n,), ns
        Duration less the configuration's mean of the launch of the same kernel on the device which began before (ties:
        earlier row); NaN for the first.
    """

    def __init__(self, rank: int, launch: np.ndarray, kernel_of: np.ndarray, means: np.ndarray | None) -> None:
        self.rank = rank
        self.launch = launch
        self.start = np.zeros(launch.size, np.int64)
        self.device = np.full(launch.size, -1, np.int64)
        self.in_flight = np.zeros(launch.size, np.int64)
        self.beside = np.full(launch.size, ALONE)
        self.idle = np.full(launch.size, np.nan)
        self.previous = np.full(launch.size, np.nan)
        self._kernel_of = kernel_of
        self._means = np.empty(0) if means is None else means
        self._kernels = int(kernel_of.max(initial=-1)) + 1 if means is not None else 0
        self._rows = 0
        self._still = np.zeros(launch.size, np.uint8)  # whether a launch is itself in flight when it begins
        self._at = np.array([0, NEVER, 0, 0, 0], np.int64)
        self._near = np.empty((NEAR, 2), np.int64)
        self._heap = np.empty((0, 2), np.int64)
        self._place = np.full(1 << 16, -1, np.int32)
        self._devices = 0
        self._state = np.empty((0, len(NEW_DEVICE)), np.int64)
        self._last = np.empty((0, self._kernels))

    def add(
        self, start: np.ndarray, duration: np.ndarray, configuration: np.ndarray, rank: np.ndarray, device: np.ndarray
    ) -> int:
        """Take the next rows of the table of launches.

        Parameters
        ----------
        start, duration : ndarray of int64, shape (n,), ns
            Ascending in start, over all chunks.
        configuration, rank : ndarray of uint32, shape (n,)
        device : ndarray of uint16, shape (n,)

        Returns
        -------
        int
            First row whose configuration is not known but needed, -1 if there is none.
        """
        self._devices = _number_devices(device, self._place, self._devices)
        more = self._devices - len(self._state)
        if more > 0:
            self._state = np.concatenate([self._state, np.tile(NEW_DEVICE, (more, 1))])
            self._last = np.concatenate([self._last, np.full((more, self._kernels), np.nan)])
        self._heap = with_room(self._heap, int(self._at[IN_HEAP]), NEAR + start.size)
        wrong = _sweep_launches(
            *(self._rows, start, duration, configuration, rank, device, self.rank, self._place),
            *(self.launch, self._kernel_of, self._means, self._at, self._near, self._heap, self._state, self._last),
            *(self._still, self.start, self.device, self.in_flight, self.beside, self.idle, self.previous),
        )
        self._rows += start.size
        return wrong

    def finish(self) -> None:
        """Tell of the launches that began at the last instant."""
        told = (self._still, self.in_flight, self.beside, self.idle)
        _tell(self._at, self._state, self._place, self.launch, self.device, *told)


class TransferSweep:
    """Sums over the transfers in flight on a device at given instants, and the last input to it, of one rank.

    Parameters
    ----------
    rank : int
    instants : ndarray of int64, shape (n,), ns, ascending
    device : ndarray of int64, shape (n,)
        Of each instant.
    directions : list of tuple of int
        Copy kinds of each direction, no kind in two; the first is that of inputs.

    Attributes
    ----------
    in_flight : ndarray of int64, shape (1 + directions, n)
        Count of transfers of any kind, then bytes by direction.
    last : ndarray of float64, shape (n,), bytes
        Size of the input that ended last, at or before the instant (ties: later row); NaN before the first.
    """

    def __init__(self, rank: int, instants: np.ndarray, device: np.ndarray, directions: list[tuple[int, ...]]) -> None:
        self.rank = rank
        self.instants = instants
        self.in_flight = np.zeros((1 + len(directions), instants.size), np.int64)
        self.last = np.full(instants.size, np.nan)
        self._direction = np.zeros(256, np.uint8)
        for number, kinds in enumerate(directions, 1):
            self._direction[list(kinds)] = number
        devices, self._of_instant = np.unique(device, return_inverse=True)
        self._place = np.full(1 << 16, -1, np.int32)
        known = devices >= 0
        self._place[devices[known]] = np.flatnonzero(known)
        self._rows = 0
        self._at = np.array([0, 0, 0, FOREVER], np.int64)  # transfers in the heap, instants told, in `near`, next end
        self._near = np.empty((NEAR, 5), np.int64)
        self._heap = np.empty((0, 5), np.int64)
        self._sums = np.zeros((devices.size, 1 + len(directions)), np.int64)
        self._ended = np.full((devices.size, 3), NEVER)  # end, row and bytes of the last input

    def add(
        self, start: np.ndarray, duration: np.ndarray, size: np.ndarray, kind: np.ndarray, rank: np.ndarray,
        device: np.ndarray,
    ) -> None:  # fmt: skip
        """Take the next rows of the table of transfers.

        Parameters
        ----------
        start, duration : ndarray of int64, shape (n,), ns
            Ascending in start, over all chunks.
        size : ndarray of int64, shape (n,), bytes
        kind : ndarray of uint8, shape (n,)
            CUPTI's copy kind.
        rank : ndarray of uint32, shape (n,)
        device : ndarray of uint16, shape (n,)
        """
        self._heap = with_room(self._heap, int(self._at[0]), NEAR + start.size)
        self._sweep(start, duration, size, kind, rank, device, last=False)
        self._rows += start.size

    def finish(self) -> None:
        """Tell of the instants behind the last start."""
        none = np.empty(0, np.int64)
        self._sweep(
            *(none, none, none, none.astype(np.uint8), none.astype(np.uint32), none.astype(np.uint16)), last=True
        )

    def _sweep(self, *columns: np.ndarray, last: bool) -> None:
        _sweep_transfers(
            *(self._rows, *columns, self.rank, self._place, self._direction, self.instants, self._of_instant),
            *(last, self._at, self._near, self._heap, self._sums, self._ended, self.in_flight, self.last),
        )


# columns of the state of a device: launches in flight; latest end of all, and of those before its instant; that
# instant; how many began then; row and configuration of the launch that ends last; end and configuration of the next
ALIVE, LATEST, BEFORE, INSTANT, BEGUN, LAST_ROW, LAST_CONFIGURATION, NEXT_END, NEXT_CONFIGURATION = range(9)
NEW_DEVICE = np.array([0, NEVER, NEVER, NEVER, 0, -1, ALONE, NEVER, ALONE])
# how far the sweep over launches is: launches in the heap; instant; chosen launches that have begun, and those told of;
# launches in `near`
IN_HEAP, NOW, CHOSEN, TOLD, IN_NEAR = range(5)


@compiled_borrowing(int64(U2, int32[::1], int64))
def _number_devices(device, place, known):
    """Number the devices in the order in which they come; return how many there are."""
    for i in range(device.size):
        if place[device[i]] < 0:
            place[device[i]] = known
            known += 1
    return known


@compiled_borrowing(
    void(
        *(int64[::1], int64[:, ::1], int32[::1], I8, int64[::1]),
        *(uint8[::1], int64[::1], int64[::1], float64[::1]),
    )
)
def _tell(at, state, place, launch, device, still, in_flight, beside, idle):
    """Write what was so at the instant, once all that began then are known."""
    for k in range(at[TOLD], at[CHOSEN]):
        d = place[device[k]]
        in_flight[k] = state[d, ALIVE] - still[k]
        if state[d, LAST_ROW] != launch[k]:
            if state[d, LATEST] > at[NOW]:
                beside[k] = state[d, LAST_CONFIGURATION]
        elif state[d, NEXT_END] > at[NOW]:
            beside[k] = state[d, NEXT_CONFIGURATION]
        if state[d, BEGUN] > 1:  # another begins at the same instant: the device is busy, or was until now
            idle[k] = 0.0
        elif state[d, BEFORE] != NEVER:
            idle[k] = max(at[NOW] - state[d, BEFORE], 0)
    at[TOLD] = at[CHOSEN]


@compiled_borrowing(void(int64, int64[::1], int64[:, ::1], int64[:, ::1], int64[:, ::1]), forceinline=True)
def _end_launches(now, at, near, heap, state):
    """Take the launches out that have ended by an instant."""
    left = 0
    for j in range(at[IN_NEAR]):  # without a branch: which of them have ended cannot be predicted
        over = near[j, 0] <= now
        state[near[j, 1], ALIVE] -= over
        near[left, 0] = near[j, 0]
        near[left, 1] = near[j, 1]
        left += not over
    at[IN_NEAR] = left
    while at[IN_HEAP] > 0 and heap[0, 0] <= now:
        state[heap[0, 1], ALIVE] -= 1
        drop(heap, at[IN_HEAP])
        at[IN_HEAP] -= 1


@compiled_borrowing(
    void(int64, int64, int64, int64, int64, int64[::1], int64[:, ::1], int64[:, ::1], int64[:, ::1]), forceinline=True
)
def _begin_launch(d, now, end, row, configuration, at, near, heap, state):
    """Let a launch begin on a device at an instant."""
    if state[d, INSTANT] != now:
        state[d, INSTANT] = now
        state[d, BEFORE] = state[d, LATEST]
        state[d, BEGUN] = 0
    state[d, BEGUN] += 1
    if end > state[d, LATEST]:
        state[d, NEXT_END] = state[d, LATEST]
        state[d, NEXT_CONFIGURATION] = state[d, LAST_CONFIGURATION]
        state[d, LATEST] = end
        state[d, LAST_ROW] = row
        state[d, LAST_CONFIGURATION] = configuration
    elif end > state[d, NEXT_END]:
        state[d, NEXT_END] = end
        state[d, NEXT_CONFIGURATION] = configuration
    if end <= now:
        return
    if at[IN_NEAR] == near.shape[0]:
        for j in range(near.shape[0]):
            heap[at[IN_HEAP], 0] = near[j, 0]
            heap[at[IN_HEAP], 1] = near[j, 1]
            rise(heap, at[IN_HEAP])
            at[IN_HEAP] += 1
        at[IN_NEAR] = 0
    near[at[IN_NEAR], 0] = end
    near[at[IN_NEAR], 1] = d
    at[IN_NEAR] += 1
    state[d, ALIVE] += 1


@compiled_borrowing(
    int64(
        *(int64, I8, I8, U4, U4, U2, int64, int32[::1]),
        *(I8, I8, F8, int64[::1], int64[:, ::1], int64[:, ::1], int64[:, ::1], float64[:, ::1]),
        *(uint8[::1], int64[::1], int64[::1], int64[::1], int64[::1], float64[::1], float64[::1]),
    )
)
def _sweep_launches(
    first, start, duration, configuration, rank, device, wanted, place,
    launch, kernel_of, means, at, near, heap, state, last,
    still, starts, devices, in_flight, beside, idle, previous,
):  # fmt: skip
    """Take the next rows of the table of launches, the first of which is row `first`: `LaunchSweep.add`, with the
    attributes of `LaunchSweep`. Of each chosen launch it is told what was so once the next instant has come.
    """
    now = at[NOW]
    for i in range(start.size):
        if rank[i] != wanted:
            continue
        if start[i] > now:
            if at[CHOSEN] > at[TOLD]:
                _tell(at, state, place, launch, devices, still, in_flight, beside, idle)
            now = start[i]
            at[NOW] = now
            _end_launches(now, at, near, heap, state)
        d = place[device[i]]
        _begin_launch(d, now, now + duration[i], first + i, int64(configuration[i]), at, near, heap, state)
        k = at[CHOSEN]
        chosen = k < launch.size and launch[k] == first + i
        if chosen:
            starts[k] = start[i]
            devices[k] = device[i]
            still[k] = duration[i] > 0
            at[CHOSEN] += 1
        if means.size:
            c = int64(configuration[i])
            if c >= means.size:
                return first + i
            if chosen:
                previous[k] = last[d, kernel_of[c]]
            last[d, kernel_of[c]] = duration[i] - means[c]
    return -1


@compiled_borrowing(void(int64, int64, int64, int64, int64, int64[:, ::1], int64[:, ::1]))
def _end(end, row, d, direction, size, sums, ended):
    """Take a transfer out of the sums, and remember the last input."""
    sums[d, 0] -= 1
    if direction > 0:
        sums[d, direction] -= size
    if direction == 1 and (end > ended[d, 0] or (end == ended[d, 0] and row > ended[d, 1])):
        ended[d, 0] = end
        ended[d, 1] = row
        ended[d, 2] = size


@compiled_borrowing(void(int64, int64[::1], int64[:, ::1], int64[:, ::1], int64[:, ::1], int64[:, ::1]))
def _end_until(instant, at, near, heap, sums, ended):
    """Take the transfers out that have ended at an instant; find the next end of those that are left."""
    left = 0
    earliest = FOREVER
    for j in range(at[2]):
        if near[j, 0] <= instant:
            _end(near[j, 0], near[j, 1], near[j, 2], near[j, 3], near[j, 4], sums, ended)
        else:
            earliest = min(earliest, near[j, 0])
            copy_row(near, j, left)
            left += 1
    at[2] = left
    while at[0] > 0 and heap[0, 0] <= instant:
        _end(heap[0, 0], heap[0, 1], heap[0, 2], heap[0, 3], heap[0, 4], sums, ended)
        drop(heap, at[0])
        at[0] -= 1
    at[3] = min(earliest, heap[0, 0]) if at[0] > 0 else earliest


@compiled_borrowing(
    void(
        *(int64, I8, I8, I8, U1, U4, U2, int64, int32[::1], uint8[::1], I8, I8),
        *(boolean, int64[::1], int64[:, ::1], int64[:, ::1], int64[:, ::1], int64[:, ::1], int64[:, ::1], float64[::1]),
    )
)
def _sweep_transfers(
    first, start, duration, size, kind, rank, device, wanted, place, directions, instants, of_instant,
    is_last, at, near, heap, sums, ended, in_flight, last,
):  # fmt: skip
    for i in range(start.size + is_last):
        begun = i < start.size
        if begun and rank[i] != wanted:
            continue
        k = at[1]
        while k < instants.size and (not begun or instants[k] < start[i]):
            if at[3] <= instants[k]:
                _end_until(instants[k], at, near, heap, sums, ended)
            d = of_instant[k]
            for column in range(sums.shape[1]):
                in_flight[column, k] = sums[d, column]
            if ended[d, 1] != NEVER:
                last[k] = ended[d, 2]
            k += 1
        at[1] = k
        if not begun or place[device[i]] < 0:
            continue
        if at[3] <= start[i]:
            _end_until(start[i], at, near, heap, sums, ended)
        d = place[device[i]]
        direction = directions[kind[i]]
        if at[2] == NEAR:
            for j in range(NEAR):
                for column in range(near.shape[1]):
                    heap[at[0], column] = near[j, column]
                rise(heap, at[0])
                at[0] += 1
            at[2] = 0
        j = at[2]
        near[j, 0] = start[i] + duration[i]
        near[j, 1] = first + i
        near[j, 2] = d
        near[j, 3] = direction
        near[j, 4] = size[i]
        at[2] += 1
        at[3] = min(at[3], near[j, 0])
        sums[d, 0] += 1
        if direction > 0:
            sums[d, direction] += size[i]

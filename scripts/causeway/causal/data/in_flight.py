"""What is going on at given instants: intervals in flight and their weights, idle time, the last input. Exact integers,
streamed.

Intervals come in chunks in order of start, and one compiled pass goes over them; only those that are in flight are
held. An interval [start, end) is in flight at an instant t if start <= t < end, so an empty one never is.
"""

from typing import Annotated, NamedTuple

import numpy as np

from causeway.events.row_heap import copy_row, drop, rise, with_room
from causeway.numeric.compiled import (
    F8,
    I8,
    U1,
    U2,
    U4,
    Record,
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


class LaunchRows(NamedTuple):
    """Rows of the table of launches, ascending in start.

    Attributes
    ----------
    start, duration : ndarray of int64, shape (n,), ns
    configuration, rank : ndarray of uint32, shape (n,)
    device : ndarray of uint16, shape (n,)
    """

    start: Annotated[np.ndarray, I8]
    duration: Annotated[np.ndarray, I8]
    configuration: Annotated[np.ndarray, U4]
    rank: Annotated[np.ndarray, U4]
    device: Annotated[np.ndarray, U2]


class ToldLaunches(NamedTuple):
    """The chosen launches, and what was so when they began: attributes of `LaunchSweep`.

    Attributes
    ----------
    launch : ndarray of int64, shape (n,)
    still : ndarray of uint8, shape (n,), output
        Whether a launch is itself in flight when it begins.
    start, device, in_flight, beside : ndarray of int64, shape (n,), output
    idle, previous : ndarray of float64, shape (n,), output
    """

    launch: Annotated[np.ndarray, I8]
    still: Annotated[np.ndarray, uint8[::1]]
    start: Annotated[np.ndarray, int64[::1]]
    device: Annotated[np.ndarray, int64[::1]]
    in_flight: Annotated[np.ndarray, int64[::1]]
    beside: Annotated[np.ndarray, int64[::1]]
    idle: Annotated[np.ndarray, float64[::1]]
    previous: Annotated[np.ndarray, float64[::1]]


class KernelMeans(NamedTuple):
    """Kernels of configurations, and what their last launches deviated by.

    Attributes
    ----------
    kernel_of : ndarray of int64, shape (configurations,)
    means : ndarray of float64, shape (configurations,) or (0,), ns
    last : ndarray of float64, shape (devices, kernels), ns, updated
    """

    kernel_of: Annotated[np.ndarray, I8]
    means: Annotated[np.ndarray, F8]
    last: Annotated[np.ndarray, float64[:, ::1]]


class LaunchesInFlight(NamedTuple):
    """Launches that have not ended, and what is known of devices.

    Attributes
    ----------
    place : ndarray of int32, shape (65536,)
        The row of each device in `state`.
    at : ndarray of int64, shape (5,), updated
        How far the sweep is: `IN_HEAP` and so on.
    near, heap : ndarray of int64, shapes (`NEAR`, 2) and (rows, 2), updated
        End and device of each.
    state : ndarray of int64, shape (devices, 9), updated
        Columns `ALIVE` and so on.
    """

    place: Annotated[np.ndarray, int32[::1]]
    at: Annotated[np.ndarray, int64[::1]]
    near: Annotated[np.ndarray, int64[:, ::1]]
    heap: Annotated[np.ndarray, int64[:, ::1]]
    state: Annotated[np.ndarray, int64[:, ::1]]


class CopyRows(NamedTuple):
    """Rows of the table of transfers, ascending in start.

    Attributes
    ----------
    start, duration : ndarray of int64, shape (n,), ns
    size : ndarray of int64, shape (n,), bytes
    kind : ndarray of uint8, shape (n,)
    rank : ndarray of uint32, shape (n,)
    device : ndarray of uint16, shape (n,)
    """

    start: Annotated[np.ndarray, I8]
    duration: Annotated[np.ndarray, I8]
    size: Annotated[np.ndarray, I8]
    kind: Annotated[np.ndarray, U1]
    rank: Annotated[np.ndarray, U4]
    device: Annotated[np.ndarray, U2]


class AskedInstants(NamedTuple):
    """Instants, and what was so at each: attributes of `TransferSweep`.

    Attributes
    ----------
    instants, of_instant : ndarray of int64, shape (n,)
        ns, and the row of its device.
    in_flight : ndarray of int64, shape (1 + directions, n), output
    last : ndarray of float64, shape (n,), output
    """

    instants: Annotated[np.ndarray, I8]
    of_instant: Annotated[np.ndarray, I8]
    in_flight: Annotated[np.ndarray, int64[:, ::1]]
    last: Annotated[np.ndarray, float64[::1]]


class TransfersInFlight(NamedTuple):
    """Transfers that have not ended, and their sums.

    Attributes
    ----------
    place : ndarray of int32, shape (65536,)
        The row of each device in `sums`; -1: none asked for.
    directions : ndarray of uint8, shape (256,)
        The direction of each kind, from 1 on; 0: of none.
    at : ndarray of int64, shape (4,), updated
        Transfers in the heap, instants told, transfers in `near`, next end.
    near, heap : ndarray of int64, shapes (`NEAR`, 5) and (rows, 5), updated
        End, row, device, direction and bytes of each.
    sums : ndarray of int64, shape (devices, 1 + directions), updated
    ended : ndarray of int64, shape (devices, 3), updated
        End, row and bytes of the last input.
    """

    place: Annotated[np.ndarray, int32[::1]]
    directions: Annotated[np.ndarray, uint8[::1]]
    at: Annotated[np.ndarray, int64[::1]]
    near: Annotated[np.ndarray, int64[:, ::1]]
    heap: Annotated[np.ndarray, int64[:, ::1]]
    sums: Annotated[np.ndarray, int64[:, ::1]]
    ended: Annotated[np.ndarray, int64[:, ::1]]


LAUNCH_ROWS, TOLD_LAUNCHES, KERNEL_MEANS, LAUNCHES_IN_FLIGHT = map(
    Record, (LaunchRows, ToldLaunches, KernelMeans, LaunchesInFlight)
)
COPY_ROWS, ASKED_INSTANTS, TRANSFERS_IN_FLIGHT = map(Record, (CopyRows, AskedInstants, TransfersInFlight))


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
        rows = LAUNCH_ROWS.of(start=start, duration=duration, configuration=configuration, rank=rank, device=device)
        kernels = KERNEL_MEANS.of(kernel_of=self._kernel_of, means=self._means, last=self._last)
        wrong = _sweep_launches(self._rows, rows, self.rank, self._chosen(), kernels, self._in_flight())
        self._rows += start.size
        return wrong

    def finish(self) -> None:
        """Tell of the launches that began at the last instant."""
        _tell(self._in_flight(), self._chosen())

    def _chosen(self) -> ToldLaunches:
        return TOLD_LAUNCHES.of(
            launch=self.launch, still=self._still, start=self.start, device=self.device, in_flight=self.in_flight,
            beside=self.beside, idle=self.idle, previous=self.previous,
        )  # fmt: skip

    def _in_flight(self) -> LaunchesInFlight:
        return LAUNCHES_IN_FLIGHT.of(
            place=self._place, at=self._at, near=self._near, heap=self._heap, state=self._state
        )


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
        rows = COPY_ROWS.of(**dict(zip(CopyRows._fields, columns, strict=True)))
        asked = ASKED_INSTANTS.of(
            instants=self.instants, of_instant=self._of_instant, in_flight=self.in_flight, last=self.last
        )
        flight = TRANSFERS_IN_FLIGHT.of(
            place=self._place, directions=self._direction, at=self._at, near=self._near, heap=self._heap,
            sums=self._sums, ended=self._ended,
        )  # fmt: skip
        _sweep_transfers(self._rows, rows, self.rank, asked, last, flight)


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


@compiled_borrowing(void(LAUNCHES_IN_FLIGHT, TOLD_LAUNCHES))
def _tell(flight, chosen):
    """Write what was so at the instant, once all that began then are known."""
    at = flight.at
    state = flight.state
    for k in range(at[TOLD], at[CHOSEN]):
        d = flight.place[chosen.device[k]]
        chosen.in_flight[k] = state[d, ALIVE] - chosen.still[k]
        if state[d, LAST_ROW] != chosen.launch[k]:
            if state[d, LATEST] > at[NOW]:
                chosen.beside[k] = state[d, LAST_CONFIGURATION]
        elif state[d, NEXT_END] > at[NOW]:
            chosen.beside[k] = state[d, NEXT_CONFIGURATION]
        if state[d, BEGUN] > 1:  # another begins at the same instant: the device is busy, or was until now
            chosen.idle[k] = 0.0
        elif state[d, BEFORE] != NEVER:
            chosen.idle[k] = max(at[NOW] - state[d, BEFORE], 0)
    at[TOLD] = at[CHOSEN]


@compiled_borrowing(void(int64, LAUNCHES_IN_FLIGHT), forceinline=True)
def _end_launches(now, flight):
    """Take the launches out that have ended by an instant."""
    at = flight.at
    near = flight.near
    heap = flight.heap
    state = flight.state
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


@compiled_borrowing(void(int64, int64, int64, int64, int64, LAUNCHES_IN_FLIGHT), forceinline=True)
def _begin_launch(d, now, end, row, configuration, flight):
    """Let a launch begin on a device at an instant."""
    at = flight.at
    near = flight.near
    heap = flight.heap
    state = flight.state
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


@compiled_borrowing(int64(int64, LAUNCH_ROWS, int64, TOLD_LAUNCHES, KERNEL_MEANS, LAUNCHES_IN_FLIGHT))
def _sweep_launches(first, rows, wanted, chosen, kernels, flight):
    """Take the next rows of the table of launches, the first of which is row `first`: `LaunchSweep.add`. Of each chosen
    launch it is told what was so once the next instant has come.
    """
    at = flight.at
    now = at[NOW]
    for i in range(rows.start.size):
        if rows.rank[i] != wanted:
            continue
        start = rows.start[i]
        duration = rows.duration[i]
        if start > now:
            if at[CHOSEN] > at[TOLD]:
                _tell(flight, chosen)
            now = start
            at[NOW] = now
            _end_launches(now, flight)
        d = flight.place[rows.device[i]]
        _begin_launch(d, now, now + duration, first + i, int64(rows.configuration[i]), flight)
        k = at[CHOSEN]
        is_chosen = k < chosen.launch.size and chosen.launch[k] == first + i
        if is_chosen:
            chosen.start[k] = start
            chosen.device[k] = rows.device[i]
            chosen.still[k] = duration > 0
            at[CHOSEN] += 1
        if kernels.means.size:
            c = int64(rows.configuration[i])
            if c >= kernels.means.size:
                return first + i
            kernel = kernels.kernel_of[c]
            if is_chosen:
                chosen.previous[k] = kernels.last[d, kernel]
            kernels.last[d, kernel] = duration - kernels.means[c]
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


@compiled_borrowing(void(int64, TRANSFERS_IN_FLIGHT))
def _end_until(instant, flight):
    """Take the transfers out that have ended at an instant; find the next end of those that are left."""
    at = flight.at
    near = flight.near
    heap = flight.heap
    sums = flight.sums
    ended = flight.ended
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


@compiled_borrowing(void(int64, COPY_ROWS, int64, ASKED_INSTANTS, boolean, TRANSFERS_IN_FLIGHT))
def _sweep_transfers(first, rows, wanted, asked, is_last, flight):
    at = flight.at
    near = flight.near
    heap = flight.heap
    sums = flight.sums
    ended = flight.ended
    for i in range(rows.start.size + is_last):
        begun = i < rows.start.size
        if begun and rows.rank[i] != wanted:
            continue
        k = at[1]
        while k < asked.instants.size and (not begun or asked.instants[k] < rows.start[i]):
            if at[3] <= asked.instants[k]:
                _end_until(asked.instants[k], flight)
            d = asked.of_instant[k]
            for column in range(sums.shape[1]):
                asked.in_flight[column, k] = sums[d, column]
            if ended[d, 1] != NEVER:
                asked.last[k] = ended[d, 2]
            k += 1
        at[1] = k
        if not begun or flight.place[rows.device[i]] < 0:
            continue
        if at[3] <= rows.start[i]:
            _end_until(rows.start[i], flight)
        d = flight.place[rows.device[i]]
        direction = flight.directions[rows.kind[i]]
        if at[2] == NEAR:
            for j in range(NEAR):
                for column in range(near.shape[1]):
                    heap[at[0], column] = near[j, column]
                rise(heap, at[0])
                at[0] += 1
            at[2] = 0
        j = at[2]
        near[j, 0] = rows.start[i] + rows.duration[i]
        near[j, 1] = first + i
        near[j, 2] = d
        near[j, 3] = direction
        near[j, 4] = rows.size[i]
        at[2] += 1
        at[3] = min(at[3], near[j, 0])
        sums[d, 0] += 1
        if direction > 0:
            sums[d, direction] += rows.size[i]

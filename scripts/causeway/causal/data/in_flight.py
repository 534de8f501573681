"""What is going on at given instants: intervals in flight and their weights, idle time, the last input. Exact integers,
streamed.

Intervals come in chunks in order of start. An interval [start, end) is in flight at an instant t if start <= t < end,
so an empty one never is.
"""

import numpy as np

NEVER = np.iinfo(np.int64).min
ALONE = -1
"""In the place of a configuration: no other launch was in flight."""


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
        self._means = means
        self._rows = 0
        self._told = 0  # chosen launches of which all is known
        self._held = np.zeros((5, 0), np.int64)  # row, start, end, configuration and device of launches still needed
        self._latest: dict[int, int] = {}  # by device the latest end of the launches before those
        self._deviation: dict[int, float] = {}  # of the last launch by device and kernel

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
        places = np.flatnonzero(rank == self.rank)
        begun = start[places].astype(np.int64)
        rows = np.stack([self._rows + places, begun, begun + duration[places], configuration[places], device[places]])
        self._rows += start.size
        if self._means is not None and places.size:
            unknown = rows[0, rows[3] >= self._means.size]
            if unknown.size:
                return int(unknown[0])
            self._add_previous(rows, self._means)
        self._held = np.hstack([self._held, rows])
        if self._held.size:  # launches that begin together are told of together: the next chunk may have more of them
            self._tell(self._held[1, -1])
        return -1

    def finish(self) -> None:
        """Tell of the launches that began at the last instant."""
        self._tell(np.iinfo(np.int64).max)

    def _add_previous(self, rows: np.ndarray, means: np.ndarray) -> None:
        """Note what the launch of the kernel before each chosen one deviated by."""
        configuration = rows[3]
        groups = rows[4] * self._kernel_of.size + self._kernel_of[configuration]
        deviation = rows[2] - rows[1] - means[configuration]
        order = np.argsort(groups, kind="stable")
        ordered = groups[order]
        firsts = np.flatnonzero(np.diff(ordered, prepend=-1))
        before = np.roll(deviation[order], 1)
        before[firsts] = [self._deviation.get(group, np.nan) for group in ordered[firsts].tolist()]
        lasts = np.append(firsts[1:], order.size) - 1
        self._deviation |= dict(zip(ordered[lasts].tolist(), deviation[order][lasts].tolist(), strict=True))
        of_row = np.empty(order.size)
        of_row[order] = before
        chosen, places = self._chosen(rows[0])
        self.previous[chosen] = of_row[places]

    def _chosen(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return which chosen launches that are not told of yet are among some rows, and their positions there."""
        if rows.size == 0:
            return rows, rows
        first, behind = np.searchsorted(self.launch, [rows[0], rows[-1] + 1])
        chosen = np.arange(max(self._told, first), behind)
        places = np.searchsorted(rows, self.launch[chosen])
        is_among = rows[places] == self.launch[chosen]
        return chosen[is_among], places[is_among]

    def _tell(self, now: int) -> None:
        """Tell of the chosen launches that began before an instant; hold what later ones may meet."""
        held = self._held
        for device in np.unique(held[4]).tolist():
            own = held[:, held[4] == device]
            self._tell_of_device(device, own, int(np.searchsorted(own[1], now)))
        told = held[0, held[1] < now]
        self._told = int(np.searchsorted(self.launch, told[-1], "right")) if told.size else self._told
        self._held = held[:, (held[1] >= now) | (held[2] > now)]

    def _tell_of_device(self, device: int, rows: np.ndarray, count: int) -> None:
        """Tell of the chosen ones among the first `count` launches held of a device."""
        row, start, end, configuration, _ = rows
        chosen, places = self._chosen(row[:count])
        now = start[places]
        reached = np.maximum.accumulate(end)
        ends_last = np.maximum.accumulate(np.where(end > np.append(NEVER, reached[:-1]), np.arange(end.size), 0))
        before, upto = (np.searchsorted(start, now, side) for side in ("left", "right"))
        self.start[chosen] = now
        self.device[chosen] = device
        self.in_flight[chosen] = upto - np.searchsorted(np.sort(end), now, "right") - (end[places] > now)
        beside = ends_last[upto - 1]
        own = beside == places
        beside[own] = ends_last[places[own] - 1]  # of the first launch: the last, which has not begun or is itself
        for index in np.flatnonzero(own & (upto - places > 1)):
            together = np.arange(places[index] + 1, upto[index])
            best = together[np.argmax(end[together])]
            if places[index] == 0 or end[best] > end[beside[index]]:
                beside[index] = best
        flies = (beside != places) & (beside < upto) & (end[beside] > now)
        self.beside[chosen[flies]] = configuration[beside[flies]]
        latest = self._latest.get(device, NEVER)
        since = np.maximum(np.append(NEVER, reached)[before], latest)
        idle = np.where(since > NEVER, np.maximum(now - np.where(since > NEVER, since, now), 0), np.nan)
        self.idle[chosen] = np.where(upto - before > 1, 0.0, idle)
        self._latest[device] = max(latest, int(reached[count - 1])) if count else latest


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
        self.in_flight = np.zeros((1 + len(directions), instants.size), np.int64)
        self.last = np.full(instants.size, np.nan)
        self._direction = np.zeros(256, np.int64)
        for number, kinds in enumerate(directions, 1):
            self._direction[list(kinds)] = number
        self._positions = {number: np.flatnonzero(device == number) for number in np.unique(device).tolist()}
        self._instants = {number: instants[own] for number, own in self._positions.items()}
        # by device: what begins or ends between an instant and the one before; end and bytes of the last input there
        sizes = {number: own.size + 1 for number, own in self._positions.items()}
        self._changes = {number: np.zeros((1 + len(directions), size), np.int64) for number, size in sizes.items()}
        self._ended = {number: np.full((2, size), NEVER) for number, size in sizes.items()}

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
        for number, instants in self._instants.items():
            of_device = (rank == self.rank) & (device == number)
            direction = self._direction[kind[of_device]]
            ends = start[of_device] + duration[of_device]
            own = size[of_device]
            has_direction = direction > 0
            changes = self._changes[number]
            for sign, edges in ((1, start[of_device]), (-1, ends)):
                places = np.searchsorted(instants, edges)
                np.add.at(changes[0], places, sign)
                np.add.at(changes, (direction[has_direction], places[has_direction]), sign * own[has_direction])
            inputs = np.flatnonzero(direction == 1)
            inputs = inputs[np.argsort(ends[inputs], kind="stable")]
            places = np.searchsorted(instants, ends[inputs])
            lasts = np.flatnonzero(np.diff(places, append=-1))
            inputs, places = inputs[lasts], places[lasts]
            later = ends[inputs] >= self._ended[number][0, places]
            self._ended[number][:, places[later]] = ends[inputs[later]], own[inputs[later]]

    def finish(self) -> None:
        """Sum up what began and ended before each instant."""
        for number, positions in self._positions.items():
            self.in_flight[:, positions] = np.cumsum(self._changes[number], axis=1)[:, :-1]
            ended, size = self._ended[number][:, :-1]
            last = np.maximum.accumulate(np.where(ended > NEVER, np.arange(ended.size), -1))
            self.last[positions] = np.where(last >= 0, size[last], np.nan)

"""Which times can be those of an event, and what the times of all launches show: their clock, and whether another
export holds the same recording.
"""

import hashlib
import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from causeway.readers.common.constants import EPOCH_2100_NS, LONGEST_NS, NULL, Column
from causeway.readers.common.issues import Issues

DAY_NS = 86_400 * 1_000_000_000
COARSE_NS = 100
COARSE_ROWS = 3
"""Launches whose times are all multiples of a tick of this many ns or more, in at least so many rows, were measured
with a coarse clock.
"""
COARSE_STARTS = 10
"""Starts alone that are all multiples of such a tick are taken for rounded in at least so many rows: nvprof prints
starts in seconds with six decimals beside durations in nanoseconds, and few starts share a tick by chance.
"""
COARSEST_NS = 1000
"""Coarsest resolution in which formats print times: whole microseconds. Ticks beyond are those of a program."""
PRINTED_STEPS = 10
"""Into how many parts of its step the shortest text of a floating-point number divides it at most: a decimal digit."""


def are_untimed(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return which work of a device has no times: profilers write 0 for both where they could not take them (CUPTI 12,
    `CUpti_ActivityKernel9::start`).

    Parameters
    ----------
    start, end : ndarray of int64, shape (n,)

    Returns
    -------
    ndarray of bool, shape (n,)
    """
    return (start == 0) & (end == 0)


def usable(start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Return which times can be those of an event: known, plausible, and not ending before they start.

    Parameters
    ----------
    start, end : ndarray of int64, shape (n,)
        Nanoseconds; `NULL` where absent.

    Returns
    -------
    ndarray of bool, shape (n,)
    """
    absent, implausible, backwards, _ = _impossible(start, end)
    return ~(absent | implausible | backwards)


def possible_events(
    start: np.ndarray,
    end: np.ndarray,
    columns: Mapping[str, Column],
    issues: Issues,
    of_device: bool = False,
    of_launches: bool = False,
) -> tuple[int, dict[str, np.ndarray]]:
    """Leave out rows whose times cannot be those of an event, and count them.

    Parameters
    ----------
    start, end : array_like of int64, shape (n,)
        Nanoseconds; `NULL` where absent.
    columns : mapping of str to array_like of int64, shape (n,) or one value for all rows
    issues : Issues
    of_device : bool
        Whether they are work of a device, which has no times where both are 0.
    of_launches : bool
        Whether they are launches.

    Returns
    -------
    rows : int
        Number of rows that are left.
    columns : dict of str to ndarray of int64, shape (rows,)
        The columns of these rows, with `start_ns` and `duration_ns`.
    """
    start = np.atleast_1d(np.asarray(start, np.int64))
    end = np.atleast_1d(np.asarray(end, np.int64))
    if of_device and (untimed := are_untimed(start, end)).any():
        start = np.where(untimed, NULL, start)
    whole = {name: np.broadcast_to(np.asarray(values, np.int64), start.shape) for name, values in columns.items()}
    if start.size and min(start.min(), end.min()) >= -EPOCH_2100_NS and max(start.max(), end.max()) <= EPOCH_2100_NS:
        duration = end - start
        if duration.min() >= 0 and duration.max() <= LONGEST_NS:  # as it mostly is: every row can be an event
            return len(start), whole | {"start_ns": start, "duration_ns": duration}
    absent, implausible, backwards, duration = _impossible(start, end)
    bad = absent | implausible | backwards
    if bad.any():
        for kind, rows in (("no_time", absent), ("implausible_time", implausible), ("end_before_start", backwards)):
            issues.add(kind, int(rows.sum()), of_launches=of_launches)
        good = ~bad
        start = start[good]
        duration = duration[good]
        whole = {name: values[good] for name, values in whole.items()}
    return len(start), whole | {"start_ns": start, "duration_ns": duration}


def _impossible(start: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return which times are absent, which are implausible and which run backwards, and the durations of the others."""
    absent = (start == NULL) | (end == NULL)
    far = ~absent & ((np.abs(start) > EPOCH_2100_NS) | (np.abs(end) > EPOCH_2100_NS))
    duration = np.where(absent | far, 0, end - np.where(absent, 0, start))
    return absent, far | (duration > LONGEST_NS), duration < 0, duration


class RecordingDigest:
    """What tells whether two exports hold the same recording, whatever their form, compression or schema version.

    Each launch is mixed into 64 bits (with the multipliers of splitmix64), and these are summed, so that the order of
    the launches and the size of the blocks do not matter. Two recordings agree in no start and duration by chance:
    clocks count nanoseconds.
    """

    def __init__(self) -> None:
        self.launches = 0
        self._sums = [0, 0]
        self._names: dict[int, int] = {}

    def take(self, start: np.ndarray, duration: np.ndarray, kernel: np.ndarray, names: Sequence[str]) -> None:
        """Take launches.

        Parameters
        ----------
        start, duration : ndarray of int64, shape (n,)
            On the export's clock, ns.
        kernel : ndarray of int64, shape (n,)
            Codes of `names`.
        names : sequence of str
            All kernels' names by code.
        """
        codes, inverse = np.unique(kernel, return_inverse=True)
        named = np.array([self._name(code, names[code]) for code in codes.tolist()], np.uint64)[inverse]
        mixed = _mixed(_mixed(_mixed(named) + start.astype(np.uint64)) + duration.astype(np.uint64))
        for index, values in enumerate((mixed, _mixed(mixed))):
            self._sums[index] = (self._sums[index] + int(values.sum(dtype=np.uint64))) % (1 << 64)
        self.launches += len(start)

    def _name(self, code: int, name: str) -> int:
        if code not in self._names:
            self._names[code] = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")
        return self._names[code]

    def text(self, processes: Iterable[int]) -> str | None:
        """Return the digest, 32 hexadecimal digits; None without launches.

        Parameters
        ----------
        processes : iterable of int
            Numbers of the processes that launched, where the export has them.
        """
        if not self.launches:
            return None
        facts = [self.launches, *self._sums, *sorted(processes)]
        return hashlib.sha256(" ".join(map(str, facts)).encode()).hexdigest()[:32]


def _mixed(values: np.ndarray) -> np.ndarray:
    """Return 64 bits for each value, of which each depends on all of the value's (Steele and others, 2014)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


class ClockTick:
    """When the launches start, and the largest tick of which all their times are multiples.

    Attributes
    ----------
    tick_ns : int
        The greatest common divisor of all durations and of the distances of all starts, in nanoseconds; only a bound
        once it is below `COARSE_NS`; 0 where none of them is above 0.
    start_tick_ns : int
        The same of the distances of all starts; exact.
    """

    def __init__(self) -> None:
        self.tick_ns = 0
        self.start_tick_ns = 0
        self._launches = 0
        self._farthest = 0
        self._origin: int | None = None
        self._days: dict[int, tuple[int, int]] = {}  # launches of a day of the clock, and their earliest start

    def take(self, start: np.ndarray, duration: np.ndarray) -> None:
        """Take starts and durations in ns, both int64 of shape (n,) with n > 0, in any order."""
        if self._origin is None:
            self._origin = int(start[0])
        first = int(start.min())
        last = int(start.max())
        self._launches += len(start)
        self._farthest = max(self._farthest, abs(first), abs(last))
        if first // DAY_NS == last // DAY_NS:
            self._note_day(first, len(start))
        else:
            _, inverse, rows = np.unique(start // DAY_NS, return_inverse=True, return_counts=True)
            for day, count in enumerate(rows.tolist()):
                self._note_day(int(start[inverse == day].min()), count)
        if self.start_tick_ns != 1:
            self.start_tick_ns = int(np.gcd.reduce(start - self._origin, initial=self.start_tick_ns))
        if not 0 < self.tick_ns < COARSE_NS:
            tick = math.gcd(self.tick_ns, self.start_tick_ns)
            self.tick_ns = int(np.gcd.reduce(duration, initial=tick))

    def _note_day(self, first: int, rows: int) -> None:
        before, earliest = self._days.get(first // DAY_NS, (0, first))
        self._days[first // DAY_NS] = before + rows, min(first, earliest)

    @property
    def resolution_ns(self) -> int:
        """Up to how much a start may seem to lie before the end that it waited for, since both were rounded: a tick; of
        times that went through double precision also a step of these, in nanoseconds and in microseconds. The shortest
        text of such a number has a tick that is finer than the step.

        Fewer launches than `COARSE_STARTS` show no tick; they count as exact to the nanosecond.
        """
        tick = max(self.start_tick_ns, 1) if self._launches >= COARSE_STARTS else 1
        step = 1000 * float(np.spacing(self._farthest / 1000))
        if step <= PRINTED_STEPS * tick:
            tick += int(step + np.spacing(float(self._farthest)))
        return min(tick, COARSEST_NS)

    @property
    def first_ns(self) -> int | None:
        """The earliest start of the launches near most of them; None without launches."""
        near = self.near_most()
        starts = [first for _, first in self._days.values()]
        return min((start for start in starts if near is None or near[0] <= start <= near[1]), default=None)

    def near_most(self) -> tuple[int, int] | None:
        """Return the earliest and the latest start, ns, that are within `LONGEST_NS` of the day with the most launches,
        the latest of several; None where all launches lie so. One beyond has the time of another clock, or none: no
        recording lasts so long.
        """
        if not self._days:
            return None
        day = max(self._days, key=lambda day: (self._days[day][0], day))
        least = day * DAY_NS - LONGEST_NS
        most = (day + 1) * DAY_NS + LONGEST_NS
        return None if least <= min(self._days) * DAY_NS and max(self._days) * DAY_NS <= most else (least, most)

"""The step in which a launch was made, and which of its configuration's launches of that step it is."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from causeway.causal.data.feature_names import LAUNCH_IN_STEP
from causeway.causal.data.launch_context import ChosenLaunches
from causeway.core.clock import Clock
from causeway.core.tables import read_table, table_metadata
from causeway.core.vocabulary import CALLED_SINCE
from causeway.events.event_blocks import chunks, numbers
from causeway.numeric.compiled import compiled, int32, int64, void
from causeway.numeric.intervals import window_of

OPEN_STEPS = 8
"""Steps of a rank whose launches are counted at once: those of one step may begin on one stream while another stream
still runs the step before.
"""
OUTSIDE = -1
"""Position of the step of a launch that is in none."""
OUTSIDE_OF_STEPS = "outside of steps"
ONLY = "only launch"
WINDOW = ("start_ns", "duration_ns")
CALLED = ("called_ns", "called_duration_ns")
"""Columns of `steps`: the step's window, and that of the host where it is another one."""


@dataclass(frozen=True)
class StepWindows:
    """The steps of one rank.

    Attributes
    ----------
    number : ndarray of int64, shape (n_steps,)
    start, end : ndarray of int64, shape (n_steps,), ns
        On the dataset's time line, ascending; the end is outside. Where launches belong to steps by their calls, the
        windows of the host.
    since : int or None
        Start of the first launch whose call is known, ns on that line: what started before was launched before the
        recording began. None: launches belong to steps by their starts, not by their calls.
    """

    number: np.ndarray
    start: np.ndarray
    end: np.ndarray
    since: int | None

    @classmethod
    def of(cls, path: Path, rank: int) -> "StepWindows":
        """Read the steps of a rank from `steps.parquet`."""
        table = read_table(path, "steps", ["rank", "step", *WINDOW, *CALLED])
        table = table.filter(pc.field("rank") == rank)
        number = table.column("step").to_numpy()
        start, duration = (
            pc.coalesce(table.column(called), table.column(own)).to_numpy()
            for called, own in zip(CALLED, WINDOW, strict=True)
        )
        mine = np.arange(number.size)
        mine = mine[np.argsort(start[mine], kind="stable")]
        since = json.loads(table_metadata(path).get(CALLED_SINCE, "{}")).get(str(rank))
        return cls(number[mine], start[mine], start[mine] + duration[mine], since)


def add_steps(
    folder: Path,
    steps: StepWindows,
    chosen: ChosenLaunches,
    clock: Clock,
    configuration: np.ndarray,
    sizes: Mapping[int, str] | None = None,
) -> None:
    """Add step, step_position and launch_in_step.

    - step, its number: that in whose window the call of the launch ended; where that is not known, in whose window it
      started.
    - step_position, ns to that moment from the start of the step, or where launches belong to steps by their starts,
      from the step's first launch: such a step may begin with idle time. Both float, NaN outside of steps.
    - launch_in_step: which of the launches of its configuration on its device in the step a launch is. Layers that
      launch the same kernel in turn have times of their own, for other tensors in other places of the memory; where no
      module or operator tells them apart, this does. Text, which tells configurations apart, as the second launch of
      one has nothing in common with that of another one; launches of a configuration that no step launches twice on a
      device are its only ones.

    Parameters
    ----------
    folder : Path
        The export's tables.
    steps : StepWindows
        Of the rank of the launches.
    chosen : ChosenLaunches
    clock : Clock
        The export's.
    configuration : ndarray of int64, shape (n,)
        Of each chosen launch, as the dataset numbers them.
    sizes : mapping of int to str or None
        Grid and block in words of each configuration, as the export numbers them: what a reader knows one by.

    Notes
    -----
    All launches are counted in order of their start, not the chosen ones alone.
    """
    n = chosen.launch.size
    ordinal, own = np.zeros((2, n), np.int64)
    at, moments = np.full((2, n), OUTSIDE)
    counts = LaunchCounts()
    begun = steps.start.copy() if steps.since is not None else np.full(steps.start.size, np.iinfo(np.int64).max)
    first = 0
    for batch in chunks(folder, "launches", ["start_ns", "queue_ns", "configuration", "rank", "device"]):
        mine = np.flatnonzero(batch.column("rank").to_numpy() == chosen.rank)
        start = clock.aligned(batch.column("start_ns").to_numpy()[mine])
        moment = start
        step = window_of(steps.start, steps.end, start)
        if steps.since is not None:
            queue = np.maximum(numbers(batch.column("queue_ns"), 0)[mine], 0)
            moment = clock.aligned(batch.column("start_ns").to_numpy()[mine] - queue)
            step = np.where(start < steps.since, OUTSIDE, window_of(steps.start, steps.end, moment))
        if steps.since is None:
            np.minimum.at(begun, step[step != OUTSIDE], start[step != OUTSIDE])
        launched, device = (
            batch.column(name).to_numpy()[mine].astype(np.int64) for name in ("configuration", "device")
        )
        count = counts.add(step, launched, device)
        low, high = np.searchsorted(chosen.launch, [first, first + batch.num_rows])
        rows = np.searchsorted(mine, chosen.launch[low:high] - first)
        for all_values, values in ((ordinal, count), (own, launched), (at, step), (moments, moment)):
            all_values[low:high] = values[rows]
        first += batch.num_rows
    inside = at != OUTSIDE
    for name in ("step", "step_position"):
        chosen.features[name] = np.full(n, np.nan)
    chosen.features["step"][inside] = steps.number[at[inside]]
    chosen.features["step_position"][inside] = moments[inside] - begun[at[inside]]
    pairs, first_row, inverse = np.unique(
        np.column_stack([configuration, ordinal]), axis=0, return_index=True, return_inverse=True
    )
    words = [(sizes or {}).get(one, "") for one in own[first_row].tolist()]
    texts = [
        f"launch {n} of configuration {c}{f' ({size})' if size else ''}" if n else OUTSIDE_OF_STEPS
        for (c, n), size in zip(pairs.tolist(), words, strict=True)
    ]
    found = np.array([*texts, None], dtype=object)[inverse.ravel()]
    found[counts.most[own] < 2] = ONLY if steps.number.size else None
    chosen.features[LAUNCH_IN_STEP] = found


class LaunchCounts:
    """How many launches of each configuration each device has had in the steps that are going on, of one rank.

    Attributes
    ----------
    most : ndarray of int64, shape (configurations,)
        Launches of each configuration in the step and on the device that had most of them so far.
    """

    def __init__(self) -> None:
        self.most = np.zeros(0, np.int64)
        self._place = np.full(1 << 16, -1, np.int32)
        self._devices = 0
        self._open = np.full((0, 0, OPEN_STEPS, 2), OUTSIDE)  # position of the step, and launches in it

    def add(self, step: np.ndarray, configuration: np.ndarray, device: np.ndarray) -> np.ndarray:
        """Take the next launches, in order of start.

        Parameters
        ----------
        step : ndarray of int64, shape (n,)
            Position of the step, `OUTSIDE` where in none.
        configuration, device : ndarray of int64, shape (n,)

        Returns
        -------
        ndarray of int64, shape (n,)
            Which of the launches of its configuration on its device in its step each is, from 1; 0 outside of steps.
        """
        new = np.unique(device[self._place[device] < 0])
        self._place[new] = np.arange(self._devices, self._devices + new.size)
        self._devices += new.size
        more = max(int(configuration.max(initial=-1)) + 1 - self.most.size, 0)
        if new.size or more:
            self.most = np.concatenate([self.most, np.zeros(more, np.int64)])
            held = self._open
            self._open = np.full((self._devices, self.most.size, OPEN_STEPS, 2), OUTSIDE)
            self._open[: held.shape[0], : held.shape[1]] = held
        found = np.zeros(step.size, np.int64)
        _count(step, configuration, device, self._place, self._open, self.most, found)
        return found


@compiled(
    void(int64[::1], int64[::1], int64[::1], int32[::1], int64[:, :, :, ::1], int64[::1], int64[::1]),
)
def _count(step, configuration, device, place, steps, most, found):
    for i in range(step.size):
        if step[i] < 0:
            continue
        c = configuration[i]
        slot = steps[place[device[i]], c, step[i] % steps.shape[2]]
        if slot[0] != step[i]:
            slot[0] = step[i]
            slot[1] = 0
        slot[1] += 1
        found[i] = slot[1]
        most[c] = max(most[c], found[i])

"""Replays of a dataset: what each change would save, and what limits it then."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from causeway.waiting.graph.nodes import Graph, Links
from causeway.waiting.path.critical_path import CriticalPaths, Schedule, measured
from causeway.waiting.path.path_table import PathSums, last_ranks_of
from causeway.waiting.replay.changes import OneChange, changes
from causeway.waiting.replay.replayed import durations_of, replayed
from causeway.waiting.steps_by_rank import Steps


def replay_rows(graph: Graph, links: Links, paths: CriticalPaths, steps: Steps, kernel_ns: np.ndarray) -> list[dict]:
    """Return the rows of `replay`: for each change the whole run, then its steps, of which less is known.

    The run's time goes from the first node of any rank to the end of the last, where ranks never run at one time of
    the longest run among them (`CriticalPaths.runs`); a step's is that of the rank on which
    it lasts longest. A step begins with the first work that begins in it (where steps are of the host the
    first call), wherever that moves.

    Parameters
    ----------
    graph : Graph
    links : Links
    paths : CriticalPaths
    steps : Steps
    kernel_ns : ndarray of int64, shape (texts,), ns
        How long kernels are on the measured paths, by the code of their name.
    """
    before = measured(graph, links)
    plain = durations_of(graph, links)
    marks = {row: _Marks(graph, steps[graph.ranks[row]], row) for row in paths.ranks() if graph.ranks[row] in steps}
    rows = []
    for change in changes(graph, links, plain, kernel_ns):
        rows += _rows_of(change, paths, before, replayed(graph, links, change.durations), marks)
    return rows


def _rows_of(
    change: OneChange, paths: CriticalPaths, before: Schedule, after: Schedule, marks: dict[int, "_Marks"]
) -> list[dict]:
    runs = paths.runs(before)
    if not runs:
        return []
    time, predicted = (paths.run_time(schedule, runs) for schedule in (before, after))
    at_work = [paths.device_time(schedule, runs) for schedule in (before, after)]
    kind, name = limit_of(paths, after, runs)
    # the naive bound is at most the run's time, which threads that run at once would exceed
    whole: dict[str, Any] = {
        "time_ns": time, "predicted_ns": predicted, "device_time_ns": at_work[0],
        "predicted_device_time_ns": at_work[1], "limited_by": kind, "limited_name": name,
        "naive_ns": min(change.naive_ns, time),
    }  # fmt: skip
    longest: dict[int, tuple[int, int]] = {}
    for mark in marks.values():
        for step, was, now in mark.times(after):
            held = longest.get(step, (0, 0))
            longest[step] = max(held[0], was), max(held[1], now)
    of_steps = [{"step": step, "time_ns": was, "predicted_ns": now} for step, (was, now) in sorted(longest.items())]
    return [{"change": change.word, "name": change.name} | row for row in (whole, *of_steps)]


def limit_of(paths: CriticalPaths, schedule: Schedule, runs: Sequence[Sequence[int]]) -> tuple[str | None, str | None]:
    """Return kind and name with the longest time on the path to the last work of the devices, from their first on: what
    the host does before and after shortens no work. None for both without work.

    Parameters
    ----------
    paths : CriticalPaths
    schedule : Schedule
        As measured or as replayed.
    runs : sequence of sequence of int
        From `CriticalPaths.runs`.
    """
    devices = paths.device_work(schedule, runs)
    if devices is None:
        return None, None
    sums = PathSums(paths.graph, last_ranks_of(paths.graph, schedule))
    for pieces in paths.chunks(schedule, devices.rank, devices.last):
        pieces[:, :2] = pieces[:, :2].clip(devices.begin, devices.end)
        sums.take(pieces)
    total: dict[tuple[str, str], int] = {}
    for (kind, name, _), ns in sums.whole().items():
        total[kind, name] = total.get((kind, name), 0) + ns
    return min(total, key=lambda key: (-total[key], key))


class _Marks:
    """Steps of one rank, each from the node with which it begins to that with which the next may: work where all steps
    begin with work, else calls. Host and device move by different times, so both ends are of one kind.
    """

    def __init__(self, graph: Graph, steps: tuple[np.ndarray, np.ndarray, np.ndarray], rank: int) -> None:
        self.start, self.end, self.step = steps
        begin, stop = graph.work_of[rank].tolist()
        times = graph.work.start[begin:stop]
        calls, after = graph.calls_of[rank].tolist()
        self._of_work = not after > calls or bool(_among(self.start, times).all())
        if not self._of_work:  # steps of the host: work may run behind it by steps
            begin = calls
            times = graph.calls.start[calls:after]
        self._begin = begin
        self._times = times
        self._from, self._to = (self._tied(moments) for moments in (self.start, self.end))

    def _tied(self, moments: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return for each moment the first node that begins then or later (the last of all if none does), and how much
        earlier the moment is.
        """
        position = np.minimum(np.searchsorted(self._times, moments), self._times.size - 1)
        return self._begin + position, self._times[position] - moments

    def times(self, after: Schedule) -> Sequence[tuple[int, int, int]]:
        """Give number, time and predicted time of each step."""
        begins = after.start if self._of_work else after.call_start
        begin, end = (begins[node] - ahead for node, ahead in (self._from, self._to))
        now = np.maximum(end - begin, 0)
        return list(zip(self.step.tolist(), (self.end - self.start).tolist(), now.tolist(), strict=True))


def _among(moments: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Return which moments are among times that ascend."""
    position = np.searchsorted(times, moments)
    is_among = position < times.size
    is_among[is_among] = times[position[is_among]] == moments[is_among]
    return is_among

"""Steps from annotations: which ranges of the host are the steps, and the window of each."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from causeway.core.tables import open_table
from causeway.core.vocabulary import form_of, names_an_input, without_numbers
from causeway.efficiency.device_time import event_streams
from causeway.efficiency.device_time.regions import MOST_INSTANCES
from causeway.efficiency.steps.launch_moments import called_since, launch_moments
from causeway.efficiency.steps.rank_steps import RankSteps
from causeway.events.event_blocks import host_ranges

FEWEST_RANGES = 2
"""Ranges of one name that one thread needs to count as steps: a single one is no iteration."""
MOST_NAMES = 10_000
"""Names that look like steps and are remembered in one export; names come from outside."""
OF_INPUTS = 3
"""Form of ranges that are named after an input, and are steps where they hold most launches."""
FEWEST_INPUTS = 3
"""Such ranges that one thread needs, as many as repeats of launches."""
MOST_HELD = 0.8
"""Share of a rank's launches that such ranges have to hold: a part of a step holds less."""
_NUMBER = re.compile(r"\d+")


@dataclass(frozen=True, kw_only=True, order=True)
class Family:
    """Ranges of one name, numbers left out; the least one of several is the best choice.

    Attributes
    ----------
    form : int
        `vocabulary.form_of` of the name, or `OF_INPUTS`.
    missing_ranks : int
        Ranks of the dataset that have no such range.
    negative_ns : int
        Less the time inside the ranges: the longer, the further out.
    name : str
    """

    form: int
    missing_ranks: int
    negative_ns: int
    name: str


Key = tuple[int, str]
"""Form and name, numbers left out, of ranges that name a step."""


def _step_like(folder: Path) -> Iterator[Iterator[tuple[int, int, int, int, str, Key]]]:
    """Give rank, thread, start, end, name and key of the host's ranges that name a step, piece by piece."""
    keys: dict[str, Key | None] = {}
    for batch in host_ranges(folder, ["start_ns", "duration_ns", "name", "rank", "thread"]):
        names = batch.column("name").dictionary_encode()
        texts = names.dictionary.to_pylist()
        for text in texts:
            if text not in keys and len(keys) < MOST_NAMES * 10:
                form = OF_INPUTS if names_an_input(text) and form_of(text) is None else form_of(text)
                keys[text] = None if form is None else (form, without_numbers(text)[:1000])
        key_of = [keys.get(text) for text in texts]
        is_step = np.array([key is not None for key in key_of], bool)
        chosen = np.flatnonzero(is_step[names.indices.to_numpy()])
        if chosen.size:
            block = event_streams.times(batch)
            code = names.indices.to_numpy()[chosen].tolist()
            rank = batch.column("rank").to_numpy()[chosen].tolist()
            thread = event_streams.numbers(batch.column("thread"), 0)[chosen].tolist()
            start, end = (block[key][chosen].tolist() for key in ("start", "end"))
            yield zip(
                rank,
                thread,
                start,
                end,
                (texts[index] for index in code),
                (key_of[index] for index in code),
                strict=True,
            )


@dataclass(frozen=True)
class StepRanges:
    """Ranges of an export that name a step: how many each thread of a rank has, and the time inside them, ns."""

    count: dict[tuple[Key, int, int], int]
    time: dict[Key, int]


def step_ranges(folder: Path) -> StepRanges:
    """Return the ranges of an export that name a step, `MOST_NAMES` names at most."""
    count: Counter = Counter()
    time: Counter = Counter()
    for rows in _step_like(folder):
        for rank, thread, start, end, _, key in rows:
            if key in time or len(time) < MOST_NAMES:
                count[key, rank, thread] += 1
                time[key] += end - start
    of_inputs = [key for key in time if key[0] == OF_INPUTS]
    most: Counter = Counter()
    for (key, _, _), many in count.items():
        most[key] = max(most[key], many)
    others = len(time) - len(of_inputs)
    for key in of_inputs:
        family = Family(form=OF_INPUTS, missing_ranks=0, negative_ns=0, name=key[1])
        if others or most[key] < FEWEST_INPUTS or not _holds_launches(folder, family):
            del time[key]
    return StepRanges({owner: many for owner, many in count.items() if owner[0] in time}, dict(time))


def _holds_launches(folder: Path, family: Family) -> bool:
    """Return whether ranges of an export that are named after inputs hold most launches of each rank that has any."""
    steps = annotated_steps(folder, family)
    held: Counter[int] = Counter()
    total: Counter[int] = Counter()
    for block in launch_moments(folder, called_since(folder, annotated=True)) if steps else ():
        for rank in steps:
            moments = block["moment"][block["rank"] == rank]
            held[rank] += int((steps[rank].of(moments) >= 0).sum())
            total[rank] += moments.size
    return total.total() > 0 and all(held[rank] >= MOST_HELD * total[rank] for rank in steps)


def choose_family(exports: Iterable[StepRanges], ranks: int) -> Family | None:
    """Return the ranges that are the steps of a dataset: PyTorch's profiler steps, else ranges whose names count, else
    ranges of a name that repeats, else those of inputs that hold most launches; of equals those that most ranks have,
    then with the most time, then by name.

    Parameters
    ----------
    exports : iterable of StepRanges
        In the sheet's order; of all together the first `MOST_NAMES` names are looked at.
    ranks : int
        Ranks of the dataset.
    """
    count: Counter = Counter()
    time: Counter = Counter()
    for export in exports:
        for key, ns in export.time.items():
            if key in time or len(time) < MOST_NAMES:
                time[key] += ns
        count.update({owner: many for owner, many in export.count.items() if owner[0] in time})
    having: dict[Key, set[int]] = {}
    for (key, rank, _), many in count.items():
        if many >= FEWEST_RANGES:
            having.setdefault(key, set()).add(rank)
    families = [
        Family(form=key[0], missing_ranks=ranks - len(of), negative_ns=-time[key], name=key[1])
        for key, of in having.items()
    ]
    return min(families, default=None)


def annotated_steps(folder: Path, family: Family) -> dict[int, RankSteps]:
    """Return the steps of each rank of an export that has ranges of the family.

    Those of the thread with the most of them, ranges inside another one left out. A step lasts until the next one
    starts; until its own range ends where the next number does not follow, or where the range is named after an input:
    a server waits between two of them. The last one lasts until its launches end, at most as much longer than its range
    as the others at the median: what comes then is not recorded.
    """
    rows: dict[int, dict[int, list[tuple[int, int, str]]]] = {}
    for block in _step_like(folder):
        for rank, thread, start, end, name, key in block:
            if key[1] == family.name:
                ranges = rows.setdefault(rank, {}).setdefault(thread, [])
                if len(ranges) < MOST_INSTANCES:
                    ranges.append((start, end, name))
    steps = {}
    ends = _device_ends(folder) if rows else {}
    for rank, threads in sorted(rows.items()):
        thread = min(threads, key=lambda candidate: (-len(threads[candidate]), candidate))
        if len(threads[thread]) >= (FEWEST_INPUTS if family.form == OF_INPUTS else FEWEST_RANGES):
            steps[rank] = _windows(rank, threads[thread], ends.get(rank, 0), lasts=family.form != OF_INPUTS)
    return steps


def _device_ends(folder: Path) -> dict[int, int]:
    """Return the end of the last launch of each rank of an export, ns."""
    ends: dict[int, int] = {}
    if (folder / "launches.parquet").is_file():
        with open_table(folder / "launches.parquet", "launches") as file:
            for batch in file.iter_batches(columns=["rank", "start_ns", "duration_ns"]):
                ranks, start, duration = (column.to_numpy() for column in batch.columns)
                for rank in np.unique(ranks).tolist():
                    end = int((start + duration)[ranks == rank].max())
                    ends[rank] = max(ends.get(rank, end), end)
    return ends


def _windows(rank: int, ranges: Sequence[tuple[int, int, str]], device_end: int, *, lasts: bool) -> RankSteps:
    """Return the steps of a rank's ranges; a step `lasts` until the next one, or for its own range."""
    outer: list[tuple[int, int, str]] = []
    for span in sorted(ranges, key=lambda span: (span[0], -span[1], span[2])):
        if not outer or span[1] > outer[-1][1]:
            outer.append(span)
    start, end = (np.array([span[column] for span in outer], np.int64) for column in (0, 1))
    number = _numbers([name for _, _, name in outer])
    follows = lasts & (np.diff(number) == 1)
    pauses = np.maximum(start[1:] - end[:-1], 0)[follows]
    latest = end[-1] + int(np.median(pauses)) if pauses.size else 0
    end[-1] = max(end[-1], min(latest, device_end))
    end[:-1] = np.where(follows, start[1:], np.minimum(end[:-1], start[1:]))
    return RankSteps(rank=rank, number=number, start=start, end=end)


def _numbers(names: Sequence[str]) -> np.ndarray:
    """Return the numbers in the names where each holds exactly one and they ascend, else 0, 1, 2 ..."""
    number = np.empty(len(names), np.int64)
    for position, name in enumerate(names):
        inside = _NUMBER.findall(name)
        if len(inside) != 1 or len(inside[0]) >= 19:
            return np.arange(len(names))
        number[position] = int(inside[0])
    return number if (np.diff(number) > 0).all() else np.arange(len(names))

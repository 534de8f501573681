"""Which files are of one execution of a program, and which of another one: passes, one after the other, or the ranks of
a job, all at the same time.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from causeway.readers.common.constants import NULL
from causeway.readers.common.issues import Issues
from causeway.readers.common.name_ranks import PASS, in_order, ranks_in_names, stated_ranks
from causeway.readers.containers.csv_batches import CsvFile
from causeway.readers.sink.processes import Processes

Group = tuple[str, str]
Name = TypeVar("Name")
"""Files that share a folder, relative to the export, and the beginning of their names."""


class Span(NamedTuple):
    """The only process whose launches a file lists, and when the first starts and the last ends, in ns."""

    process: int
    begin: int
    end: int


def natural(text: str) -> str:
    """Return a text by which names are ordered as their numbers are.

    >>> sorted(["r10", "r2", "r02"], key=natural)
    ['r02', 'r2', 'r10']
    """
    return f"{in_order(text)} {text}"


def ranked_files(
    processes: Processes, path: Path, files: Sequence[Path], group_of: Callable[[str], Group]
) -> list[tuple[Path, str, int | None]]:
    """Return the files of an export, each with its label and the rank that names state for it, if they do.

    Parameters
    ----------
    processes : Processes
        Learn whether ranks are numbers in names that do not call them so.
    path : Path
        The export: the file, or the folder of the files.
    files : sequence of Path
    group_of : callable
        Gives the group of a file by its label: its name, in a folder its path in it.
    """
    labels = {file: file.name if path.is_file() else str(file.relative_to(path)) for file in files}
    groups = [group_of(label) for label in labels.values()]
    ranks = ranks_in_names(groups)
    processes.by_numbers = ranks != stated_ranks(groups)
    return [(file, label, ranks[group]) for (file, label), group in zip(labels.items(), groups, strict=True)]


def span_of(path: Path, columns: Mapping[str, str], source: str, without: Sequence[str] = ()) -> Span | None:
    """Return the span of a CSV file; None if it lists several processes, none, or no times.

    Parameters
    ----------
    path : Path
    columns : mapping of str to str
        Our name -> the file's column.
    source : str
        The export, for messages.
    without : sequence of str
        Columns that the header names and rows may lack, as `CsvFile` takes them.
    """
    if not {"process", "start", "stop"} <= columns.keys():
        return None
    span: Span | None = None
    with CsvFile(path, path.name, source, Issues(), without=without) as file:
        for batch in file.batches():
            process = batch.integers(columns["process"])
            start, stop = (batch.nanoseconds(columns[name]) for name in ("start", "stop"))
            timed = (process != NULL) & (start > 0) & (stop >= start)
            if not timed.any():
                continue
            first = int(process[timed][0])
            if np.any(process[timed] != first) or (span and span.process != first):
                return None
            begin = int(start[timed].min())
            end = int(stop[timed].max())
            span = Span(first, min(begin, span.begin) if span else begin, max(end, span.end) if span else end)
    return span


def at_the_same_time(spans: Mapping[Name, Span | None]) -> list[list[Name]]:
    """Return those files, two or more, that are of one execution: of different processes, and their times overlap.

    Parameters
    ----------
    spans : mapping
        File -> its span.
    """
    timed = {name: span for name, span in spans.items() if span}
    executions: list[list[Name]] = []
    last = None
    for begin, end, name in sorted((span.begin, span.end, name) for name, span in timed.items()):
        if last is None or begin >= last:
            executions.append([])
        executions[-1].append(name)
        last = end if last is None or begin >= last else max(last, end)
    return [names for names in executions if 1 < len(names) == len({timed[name].process for name in names})]


def of_files(spans: Mapping[str, Span | None]) -> dict[str, tuple[int, int | None]]:
    """Return the number of the process of each file that was written at the same time as others, among them, and the
    rank that its name states if all were; of passes of one process there is none.

    Parameters
    ----------
    spans : mapping
        Label of a file -> its span.
    """
    number_of: dict[str, int] = {}
    for labels in at_the_same_time(spans):
        number_of |= {label: number for number, label in enumerate(sorted(labels, key=natural))}
    groups = {label: (str(Path(label).parent), Path(label).stem) for label in spans}
    ranks = ranks_in_names(groups.values())
    ranked = len(number_of) == len(set(number_of.values())) == len(spans) == len(set(ranks.values()))
    return {label: (number, ranks[groups[label]] if ranked else None) for label, number in number_of.items()}


def of_traces(processes: dict[Group, tuple[str, int]]) -> dict[Group, tuple[str, int]]:
    """Give a process of every pass, each an execution with process ids of its own in its files' names, one key.

    Where folders `pmc_1`, `pmc_2` ... hold equally many such processes, the first of each in the order of their ids are
    executions of one process, and so on.
    """
    folders: dict[tuple[str, ...], dict[tuple[str, ...], list[Group]]] = {}
    for group in sorted(
        (group for group in processes if group[1].isdecimal()), key=lambda group: (group[0], int(group[1]))
    ):
        execution = _passes(group)
        if execution:
            outside = tuple(part for part in Path(group[0]).parts if part not in execution)
            folders.setdefault(outside, {}).setdefault(execution, []).append(group)
    for executions in folders.values():
        if len({len(groups) for groups in executions.values()}) == 1:
            for first, *others in zip(*executions.values(), strict=True):
                processes |= {group: (processes[first][0], processes[group][1]) for group in others}
    return processes


def of_counters(groups: Iterable[Group], together: Sequence[Sequence[Group]]) -> dict[Group, tuple[str, int]]:
    """Return the processes of an export that has counters only, each a key and -1.

    Folders `pass_1`, `pass_2` ... are executions one after the other, as are files whose names begin with words; files
    whose names begin with a process id are processes of one execution, and so are those whose names state ranks, and
    those that were written at the same time.

    Parameters
    ----------
    groups : iterable of Group
    together : sequence of sequences of Group
        As `at_the_same_time` gives them.
    """
    groups = sorted(groups, key=lambda group: (natural(group[0]), natural(group[1])))
    ranks = stated_ranks(groups)
    by_name = None not in ranks.values() and len(set(ranks.values())) > 1
    number_of = {group: number for number, members in enumerate(together) for group in members}
    seen: dict[tuple, int] = {}
    processes: dict[Group, tuple[str, int]] = {}
    for group in groups:
        execution: tuple = _passes(group) or (("",) if group[1].isdecimal() else (group[1],))
        if group in number_of:
            execution = ("at the same time", number_of[group])
        number = seen[execution] = seen.get(execution, -1) + 1
        processes[group] = (f"{ranks[group] if by_name else number:020d}", -1)
    return processes


def by_words(groups: Iterable[Group]) -> list[Group]:
    """Return those groups of which only the times say whether they are of one execution."""
    return [group for group in groups if not _passes(group) and not group[1].isdecimal()]


def _passes(group: Group) -> tuple[str, ...]:
    return tuple(part for part in Path(group[0]).parts if PASS.fullmatch(part))

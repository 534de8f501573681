"""Which ranks the names of files and folders state."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

PASS = re.compile(r"(?:pass|pmc)_?\d+", re.IGNORECASE)
"""A folder of one of several executions of a process, one after the other."""
_RANK = re.compile(r"(?:^|[-_.])rank[-_.]?(\d+)(?=[-_.]|$)", re.IGNORECASE)
_DIGITS = re.compile(r"([0-9]+)")
LONGEST_DIGITS = 9
_END = re.compile(r"(?:^|[-_.])([0-9]{1,9})(?:_results)?$", re.IGNORECASE)


def in_order(text: str) -> str:
    """Return a name so that names sort by the numbers in them.

    >>> sorted(["r10", "r2"], key=in_order)
    ['r2', 'r10']
    """
    return _DIGITS.sub(lambda number: number[0].zfill(20), text)


def stated_ranks(groups: Iterable[tuple[str, str]]) -> dict[tuple[str, str], int | None]:
    """Return the rank that each group's names call so: `rank3` in the beginning of the files' names or in a folder's
    name; None where they do not. The parameter is that of `ranks_in_names`.
    """
    ranks = {}
    for group in groups:
        matches = [match for name in (group[1], *Path(group[0]).parts) if (match := _RANK.search(name))]
        ranks[group] = int(matches[0][1]) if matches else None
    return ranks


def ranks_in_names(groups: Iterable[tuple[str, str]]) -> dict[tuple[str, str], int | None]:
    """Return the rank that names state for each group of files, None where they state none.

    `rank3` in the beginning of the files' names or in a folder's name is a rank. Other numbers may also be processes or
    nodes. They are ranks where they are 0 to n - 1, n at least 2: those of folders that are numbers, as
    `--output-directory %rank%` writes them, and those that end the names of folders or files, `results_3`, if each
    group has another one.

    Parameters
    ----------
    groups : iterable of (str, str)
        The folder of a group's files, relative to the export, and the beginning of their names.
    """
    groups = list(groups)
    stated = stated_ranks(groups)
    numbers = _numbers(groups)
    return {group: numbers.get(group) if rank is None else rank for group, rank in stated.items()}


def numbered(names: Sequence[str]) -> list[int] | None:
    """Return the numbers in which names differ, where they differ in nothing else and no two have the same; if none is
    0, the places in their order instead. None where names differ in more.

    >>> numbered(["report_0", "report_10", "report_2"]), numbered(["job1_a", "job2_a"]), numbered(["a1", "b2"])
    ([0, 10, 2], [0, 1], None)
    """
    parts = [_DIGITS.split(name) for name in names]
    if len(parts) < 2 or len(set(map(len, parts))) > 1:
        return None
    differing = [index for index, column in enumerate(zip(*parts, strict=True)) if len(set(column)) > 1]
    if len(differing) != 1 or differing[0] % 2 == 0:
        return None
    numbers = [int(part[differing[0]][:LONGEST_DIGITS]) for part in parts]
    order = sorted(set(numbers))
    if len(order) < len(numbers):
        return None
    return numbers if order[0] == 0 else [order.index(number) for number in numbers]


def _numbers(groups: list[tuple[str, str]]) -> Mapping[tuple[str, str], int | None]:
    """Return the numbers in names that are ranks, of the outermost folders that have such, else of the files."""
    folders = {group: Path(group[0]).parts for group in groups}
    whole = {group: next((int(part) for part in folders[group] if part.isdecimal()), None) for group in groups}
    if len(set(whole.values())) > 1 and set(whole.values()) == set(range(len(set(whole.values())))):
        return whole
    for depth in range(min(map(len, folders.values()), default=0)):
        ends = {group: _end(folders[group][depth]) for group in groups}
        if len(groups) > 1 and set(ends.values()) == set(range(len(groups))):
            return ends
    ends = {group: _end(group[1]) for group in groups}
    return ends if len(groups) > 1 and set(ends.values()) == set(range(len(groups))) else {}


def _end(name: str) -> int | None:
    """Return the number at the end of a name, None if there is none, or it is that of a pass."""
    match = None if PASS.fullmatch(name) else _END.search(name)
    return int(match[1]) if match else None

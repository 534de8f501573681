"""Which ranks the names of files and folders state."""

import re
from collections.abc import Iterable
from pathlib import Path

_RANK = re.compile(r"(?:^|[-_.])rank[-_.]?(\d+)(?=[-_.]|$)", re.IGNORECASE)


def ranks_in_names(groups: Iterable[tuple[str, str]]) -> dict[tuple[str, str], int | None]:
    """Return the rank that names state for each group of files, None where they state none.

    `rank3` in the beginning of the files' names or in a folder's name is a rank. A folder that is a number may also be
    a process: such numbers are ranks where every group has one and they are 0 to n - 1, n at least 2, as
    `--output-directory %rank%` writes them.

    Parameters
    ----------
    groups : iterable of (str, str)
        The folder of a group's files, relative to the export, and the beginning of their names.
    """
    groups = list(groups)
    folders = {group: Path(group[0]).parts for group in groups}
    numbers = {group: next((int(part) for part in folders[group] if part.isdecimal()), None) for group in groups}
    found = set(numbers.values())
    numbered = len(found) > 1 and found == set(range(len(found)))
    ranks = {}
    for group in groups:
        stated = [match for name in (group[1], *folders[group]) if (match := _RANK.search(name))]
        number = numbers[group] if numbered else None
        ranks[group] = int(stated[0][1]) if stated else number
    return ranks

"""What is known of columns before any data: role, when it is known, which way it can act, what says the same.

Read from `config/prior_knowledge.tsv`; a configuration adds rows for a user's own columns.
"""

import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from causeway.core.errors import TableError
from causeway.core.installation import workflow_folder

FILE = workflow_folder() / "config" / "prior_knowledge.tsv"
ROLES = ("lever", "exposure", "mediator", "clock", "lag")
LEVER, EXPOSURE, MEDIATOR, CLOCK, LAG = ROLES
BEFORE = "before"
DURING = "during"
KNOWN = (BEFORE, "at the start", DURING)
SIGNS = ("+", "-", "any")


@dataclass(frozen=True, kw_only=True)
class Knowledge:
    """A row of the table.

    Attributes
    ----------
    column : str
        Name or pattern, as of a shell.
    role : str
        One of `ROLES`.
    known : str
        One of `KNOWN`.
    sign : str
        One of `SIGNS`: what more of it can do to the time.
    detail : tuple of tuple of str
        Alternatives: patterns of columns that together say the same in more detail.
    through : tuple of str
        Patterns of columns that leave it nothing to say where they vary.
    why : str
    of_users : bool
        Whether users write it into tables of their own; no profiler counts it.
    """

    column: str
    role: str
    known: str
    sign: str = "any"
    detail: tuple[tuple[str, ...], ...] = ()
    through: tuple[str, ...] = ()
    why: str = ""
    of_users: bool = False


@cache
def table() -> tuple[Knowledge, ...]:
    """Return the rows of the table, in order.

    Raises
    ------
    TableError
        A row has another number of fields, or a role, moment or sign that does not exist.
    """
    with FILE.open(encoding="utf-8", newline="") as lines:
        rows = csv.DictReader((line for line in lines if not line.startswith("#")), delimiter="\t", strict=True)
        return tuple(_row(number, row) for number, row in enumerate(rows, start=1))


def _row(number: int, row: Mapping[str, str]) -> Knowledge:
    for field, allowed in (("role", ROLES), ("known", KNOWN), ("sign", SIGNS)):
        if row.get(field) not in allowed:
            raise TableError(
                f"{FILE}: row {number}: {field} is {row.get(field)!r}; it must be one of {', '.join(allowed)}"
            )
    detail = tuple(tuple(part.split()) for part in row["detail"].split("|") if part.strip())
    facts = {field: row[field] for field in ("column", "role", "known", "sign", "why")}
    return Knowledge(**facts, detail=detail, through=tuple(row["through"].split()), of_users=row["users"] == "yes")


def added(rows: Sequence[Mapping[str, Any]]) -> tuple[Knowledge, ...]:
    """Return the rows of the configuration's list `causes: columns`: `column`, `known` and perhaps `sign`, `role`. What
    is known before the launch is a lever, at its start an exposure, else a mediator, where no role is given.
    """
    roles = dict(zip(KNOWN, (LEVER, EXPOSURE, MEDIATOR), strict=True))
    return tuple(
        Knowledge(
            column=row["column"],
            role=row.get("role", roles[row["known"]]),
            known=row["known"],
            sign=row.get("sign", "any"),
            why="as the configuration says",
        )
        for row in rows
    )


def knowledge_of(name: str, tier: str, own: Iterable[Knowledge] = ()) -> Knowledge:
    """Return what is known of a column: the first row that fits, a user's before those of the table; without one, that
    it is chosen before the launch (tier `launch`) or measured during it.

    A counter is measured during the launch whatever its name: only rows that say so, those `of_users`, and a user's own
    are of it.
    """
    rows = (row for row in table() if tier != "counter" or row.known == DURING or row.of_users)
    for row in (*own, *rows):
        if fnmatchcase(name, row.column):
            return row
    if tier == "launch":
        return Knowledge(column=name, role=LEVER, known=BEFORE)
    return Knowledge(column=name, role=MEDIATOR, known=DURING)

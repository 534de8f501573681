"""Markdown for pull requests and summaries of jobs: text and names of exports that no reader of Markdown acts on.

A code host renders what it is given: markup, links, pictures, mentions of people (`@name`) and of issues (`#1`). Names
of kernels are untrusted text, so they stand in code spans, where all of these are plain characters.
"""

import re
from collections.abc import Iterable

from causeway.core.formatting import elided
from causeway.plotting.drawing.markup import plain

NAME_LENGTH = 80
"""Characters of a name that are shown; the pages of the results show the whole one."""
PIPE = "\u00a6"
"""Stands for `|` in a code span: within a table, code hosts do not agree on how it is escaped."""

ACTIVE = re.compile(r"[\\`*\[\]<|~$&#@]|(?<!\w)_|_(?!\w)")
"""Characters within a line that Markdown or a code host may act on; `_` within a word is plain (section 6.2)."""


def code_span(name: str, limit: int = NAME_LENGTH) -> str:
    """Return a name as a code span of one line, its middle left out beyond `limit` characters.

    The fence is longer than any run of backticks in the name, so nothing in the name ends the span (CommonMark 0.31,
    section 6.1).

    >>> code_span("a`b|c"), code_span("`x`")
    ('``a`b¦c``', '`` `x` ``')
    """
    shown = elided(" ".join(plain(name).split()), limit).replace("|", PIPE) or "no name"
    fence = "`" * (1 + max(map(len, re.findall("`+", shown)), default=0))
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def words(text: str) -> str:
    """Return a sentence of ours as text of one line, what Markdown may act on escaped (CommonMark 0.31, section 2.4).

    An escape stops no mention of a person: text of an export goes through `code_span`.
    """
    return ACTIVE.sub(r"\\\g<0>", re.sub(r"\s+", " ", plain(text)))


def words_about(sentence: str, name: str | None) -> str:
    """Return a sentence of ours with the name of an export in it, the name as a code span.

    Where the name does not stand in the sentence as it is given, the whole sentence is a code span.
    """
    if name is None:
        return words(sentence)
    before, found, after = sentence.partition(name)
    if not name or not found:
        return code_span(sentence, len(sentence))
    return words(before) + code_span(name, len(name)) + words(after)


def table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """Return the lines of a table whose cells are Markdown; all columns but the first are set to the right."""
    names = list(columns)
    return [_row(names), _row(["---", *["---:"] * (len(names) - 1)]), *map(_row, rows)]


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"

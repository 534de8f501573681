"""The gate for a pull request: outcome, limits and what changed, as Markdown of bounded length; and a badge.

A code host renders what it is given: markup, links, pictures, mentions of people (`@name`) and of issues (`#1`). Names
of kernels are untrusted text, so they stand in code spans, where all of these are plain characters.
"""

import re
from collections.abc import Iterable, Mapping, Sequence

from markupsafe import Markup

from causeway.core import formatting
from causeway.core.formatting import elided
from causeway.core.vocabulary import (
    BROKEN,
    COULD_NOT_TELL,
    HELD,
    INCONCLUSIVE,
    METRIC_NAMES,
    MISSING_DATA,
    NOT_JUDGED,
    PASSES,
    REGRESSED,
    UNFINISHED,
)
from causeway.plotting.drawing import theme
from causeway.plotting.drawing.labels import short_names
from causeway.plotting.drawing.markup import plain, tag, text_width
from causeway.plotting.drawing.theme import text
from causeway.plotting.figures.comparison import PER_LAUNCH, change_words, of_kernels, steps_of
from causeway.plotting.pages.comparison_page import (
    OWN_LAUNCHES,
    SIDES,
    counts_of_verdicts,
    of_operators,
    value_words,
)

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
    before, match, after = sentence.partition(name)
    if not name or not match:
        return code_span(sentence, len(sentence))
    return words(before) + code_span(name, len(name)) + words(after)


def table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """Return the lines of a table whose cells are Markdown; all columns but the first are set to the right."""
    names = list(columns)
    return [_row(names), _row(["---", *["---:"] * (len(names) - 1)]), *map(_row, rows)]


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


LONGEST = 60_000
"""Characters of the Markdown: GitHub refuses comments above 65,536."""
MOST_PAIRS = 5
MOST_KERNELS = 10
MOST_LIMITS = 20
MISSING_LENGTH = 400
"""Characters of a sentence on missing data, in which ranks may be listed."""
STATES = {BROKEN: "broken", NOT_JUDGED: "not judged", INCONCLUSIVE: "not decided", HELD: "kept"}
"""States of limits in words, those that stop a job first."""
COLOURS = {PASSES: theme.STATUS["ok"], REGRESSED: theme.STATUS["blocked"], COULD_NOT_TELL: theme.STATUS["caution"]}
LABEL = "GPU performance"

Claim = tuple[str, str | None]
"""A headline, and the name from an export that stands in it."""


def gate_markdown(
    verdicts: Mapping,
    comparisons: Sequence[tuple[Mapping, Sequence[Mapping]]],
    claims: Sequence[Sequence[Claim]],
    compared: Sequence[Sequence[str]] = (),
) -> str:
    """Return the gate as Markdown of at most `LONGEST` characters.

    Parameters
    ----------
    verdicts : mapping
        `gate.json`.
    comparisons : sequence of (mapping, sequence of mapping)
        `comparison.json` and the rows of `comparison.parquet` of each pair.
    claims : sequence of sequence of (str, str or None)
        Per pair the headlines of its findings.
    compared : sequence of sequence of str
        Per pair what the first screen says of it.
    """
    state = "closed" if verdicts["reasons"] else "open"
    counts = {word: sum(limit["state"] == word for limit in verdicts["states"]) for word in STATES}
    limits = ", ".join(f"{number} {STATES[word]}" for word, number in counts.items() if number) or "none judged"
    lines = [f"### {LABEL}: {verdicts['outcome']}", "", f"The gate is {state}; limits: {limits}."]
    pairs = []
    each = zip(comparisons, claims, compared or [()] * len(comparisons), strict=True)
    for (document, rows), headlines, said in each:
        name = f"{document['baseline']['dataset']} -> {document['candidate']['dataset']}"
        of_pair = [limit for limit in verdicts["states"] if limit["pair"] == name]
        states = [limit for word in STATES for limit in of_pair if limit["state"] == word]
        pairs.append((states, document, rows, headlines, said))
    pairs.sort(key=lambda pair: list(STATES).index(pair[0][0]["state"]) if pair[0] else len(STATES))
    for states, document, rows, headlines, said in pairs[:MOST_PAIRS]:
        lines += ["", *_pair(document, rows, headlines, said, _limits(states))]
    if len(comparisons) > MOST_PAIRS:
        lines += ["", f"{len(comparisons) - MOST_PAIRS} further pairs stand in the results."]
    return _bounded(lines)


def unfinished_markdown(why: str = UNFINISHED) -> str:
    """Return what stands in place of the Markdown until a comparison is finished, or where it fails."""
    return _bounded([f"### {LABEL}: {COULD_NOT_TELL}", "", why])


def gate_badge(outcome: str, states: Sequence[Mapping] | None = None, why: str = UNFINISHED) -> Markup:
    """Return the badge: a stand-alone SVG of one line, its outcome in words, colour beside them.

    Parameters
    ----------
    outcome : str
        `outcome` of `gate.json`.
    states : sequence of mapping, optional
        `states` of `gate.json`, counted in the title that a screen reader says.
    why : str
        Said there without states.
    """
    left, right = (text_width(part, 11.0) + 14 for part in (LABEL, outcome))
    counts = why if states is None else _counted(states)
    return theme.svg(
        left + right,
        20,
        f"{LABEL}: {outcome}. {counts}",
        tag("rect", width=left, height=20.0, fill=theme.INK),
        tag("rect", x=left, width=right, height=20.0, fill=COLOURS[outcome]),
        text(left / 2, 14.0, LABEL, 11.0, "middle", theme.PAPER),
        text(left + right / 2, 14.0, outcome, 11.0, "middle", theme.PAPER),
    )


def _counted(states: Sequence[Mapping]) -> str:
    broken = sum(state["state"] == BROKEN for state in states)
    undecided = sum(state["state"] in (NOT_JUDGED, INCONCLUSIVE) for state in states)
    return f"{broken} of {formatting.counted(len(states), 'limit')} broken, {undecided} not decided."


def _limits(states: Sequence[Mapping]) -> list[str]:
    """Return limits in the order given, each in its sentence."""
    lines = [f"- **{STATES[state['state']]}**: {_sentence(state)}" for state in states[:MOST_LIMITS]]
    if len(states) > MOST_LIMITS:
        lines.append(f"- {len(states) - MOST_LIMITS} more in `compare/gate.json`")
    return lines


def _sentence(state: Mapping) -> str:
    """Return a limit's sentence; what an export itself says, or a kernel is called, stands in code spans."""
    sentence = state["sentence"].removeprefix(f"{state['pair']}: ")
    if state["limit"] == MISSING_DATA:
        return code_span(sentence, MISSING_LENGTH)
    quoted = formatting.name_in_quotes(state["group"] or "")
    return words_about(sentence, quoted if state["group"] and quoted in sentence else None)


def _pair(
    document: Mapping,
    rows: Sequence[Mapping],
    headlines: Sequence[Claim],
    compared: Sequence[str],
    limits: Sequence[str],
) -> Iterable[str]:
    baseline, candidate = (code_span(document[side]["dataset"]) for side in SIDES)
    lines = [f"#### {baseline} → {candidate}", ""]
    lines += [f"- {words(line)}" for line in compared]
    lines += [f"- {words_about(*headline)}" for headline in headlines]
    lines += ["", "Limits:", "", *limits, ""] if limits else [""]
    if document["why"] is not None:
        return [*lines, code_span(document["why"], MISSING_LENGTH)]
    lines += [words(counts_of_verdicts(document, rows)), "", words(_totals(document)), ""]
    whole = [row for row in rows if row["level"] == "run" and row["change_percent"] is not None]
    if whole:
        cells = ([METRIC_NAMES[row["metric"]], *_cells(row)] for row in whole)
        lines += [*table(["whole run", *SIDES, "change", "verdict"], cells), "", words(OWN_LAUNCHES), ""]
    operators = [row for row in of_operators(document, rows) if row["change_percent"] is not None]
    if operators:
        cells = ([code_span(row["candidate"]), *_cells(row)] for row in operators[:MOST_KERNELS])
        title = f"operator ({min(len(operators), MOST_KERNELS)} of {len(operators)} with the most time)"
        lines += [*table([title, *SIDES, "same calls", "verdict"], cells), ""]
    kernels = of_kernels(rows)
    if kernels:
        short = short_names([row["candidate"] for row in kernels[:MOST_KERNELS]], NAME_LENGTH)
        cells = ([code_span(short[row["candidate"]]), *_cells(row)] for row in kernels[:MOST_KERNELS])
        title = f"kernel ({min(len(kernels), MOST_KERNELS)} of {len(kernels)} with the most time)"
        lines += [*table([title, *SIDES, "same launches", "verdict"], cells), ""]
    return [*lines, words(document["assumption"])]


def _totals(document: Mapping) -> str:
    """Return the GPU time of both runs and where the difference comes from: limits of time concern the same launches,
    so that what further launches and new kernels take stands here.
    """
    before, after = (document[side]["gpu_time_ns"] for side in SIDES)
    share = f" ({formatting.signed(100 * (after - before) / before)[0]} %)" if before else ""
    others = [(label, value) for label, value, _ in steps_of(document) if not label.startswith(PER_LAUNCH)]
    parts = [("launches that take longer or shorter", document["change_ns"]["time_ns"]), *others]
    said = [f"{formatting.difference(value)} from {label}" for label, value in parts if value]
    return (
        f"GPU time {formatting.time(before)} → {formatting.time(after)}{share}: {', '.join(said) or 'no difference'}."
    )


def _cells(row: Mapping) -> Iterable[str]:
    """Return both values, the change with its interval, and the verdict."""
    values = [value_words(row, side) for side in SIDES]
    return [words(cell) for cell in (*values, change_words(row), row["verdict"])]


def _bounded(lines: Sequence[str]) -> str:
    """Return lines as one text; what goes beyond `LONGEST` is left out, whole lines at a time, and that is said."""
    note = "\n\nThe rest is left out; the results hold it.\n"
    kept: list[str] = []
    room = LONGEST - len(note)
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            return "\n".join(kept) + note
        kept.append(line)
    return "\n".join(kept) + "\n"

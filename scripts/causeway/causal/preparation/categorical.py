"""Categories: text columns as indicators of their frequent levels.

Which levels have an indicator depends on how many rows they hold, never on the target, and all of them count as degrees
of freedom of its tests. Places (ranks, devices, nodes, streams, runs) mostly hold as many rows each: all have one, and
of more than `MAX_LEVELS` several with consecutive numbers share one.

What a single launch has, or about one of each rank, is nothing to compare the others with. The first launch of a
process follows another kernel, has another input, waits for what is set up once. That it takes another time says
nothing of the launches behind it: none of them can be a first one.
"""

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from causeway.causal.data.observations import Candidate, Dropped, Feature, Observations
from causeway.core.feature_registry import feature_words
from causeway.core.formatting import counted
from causeway.events.distinct_texts import distinct_texts

LEAST_SHARE = 0.01
"""Share of the rows that a level of its own has at least."""
MIN_LEVEL_ROWS = 4
"""Rows of a level of its own: of three rows two may have been slow by chance, and the level would stand for the whole
category.
"""
MAX_LEVELS = 64
"""Most levels of a category: they bound what the search holds of it. Of a place, consecutive ones share a level beyond.
"""
PLACEMENT = "placement"
"""The group of the features that say where a launch ran."""
NOT_KNOWN = "(not known)"
"""The level of rows without a value."""
OTHER = "other"
"""All rare levels as one."""
MOST_NAMED = 8
"""So many of these are named."""
MOST_WORDS = 3
"""So many where they are long, as names of kernels and layouts are."""
LONG = 12
"""Characters of a level, on average, from which they are."""


def ranks_of(columns: Sequence[Feature], n_rows: int) -> np.ndarray:
    """Return the number of each row's rank, 0, 1, ...; int, shape (n_rows,). Without several ranks all are 0."""
    rank = next((column for column in columns if column.name == "rank" and column.values.dtype == object), None)
    return np.zeros(n_rows, np.int64) if rank is None else distinct_texts(rank.values.tolist(), "")[1]


def is_repeated(rows: np.ndarray, ranks: np.ndarray) -> bool:
    """Tell whether rows are enough to be compared with others: at least `MIN_LEVEL_ROWS` in all, and two on
    the ranks that have any.

    Parameters
    ----------
    rows : ndarray of bool, shape (n_rows,)
    ranks : ndarray of int, shape (n_rows,)
        As of `ranks_of`.

    >>> ranks = np.repeat([0, 1, 2, 3], 5)
    >>> is_repeated(np.arange(20) % 5 == 0, ranks), is_repeated(np.arange(20) % 5 < 2, ranks)
    (False, True)
    """
    count = np.count_nonzero(rows)
    return bool(count >= MIN_LEVEL_ROWS and count >= 2 * np.unique(ranks[rows]).size)


def differing_rows(values: np.ndarray, recorded: np.ndarray, rows: Observations) -> np.ndarray:
    """Return which recorded values differ from the median of their configuration, which is the commonest value where
    nearly all are one.

    Parameters
    ----------
    values : ndarray of float, shape (n_rows,)
        Without NaN.
    recorded : ndarray of bool, shape (n_rows,)
    rows : Observations

    Returns
    -------
    ndarray of bool, shape (n_rows,)
    """
    order = np.lexsort((values, rows.configuration))
    counts = np.bincount(rows.configuration)
    firsts = np.cumsum(counts) - counts
    middle = values[order][np.minimum(firsts + counts // 2, values.size - 1)]
    return recorded & (values != middle[rows.configuration])


def category_candidates(
    columns: list[tuple[str, Feature]], ranks: np.ndarray | None = None
) -> tuple[list[Candidate], list[Dropped]]:
    """Return the candidates of text columns, and those dropped with their reasons.

    Parameters
    ----------
    columns : list of (name, Feature)
        With values of type object: text, None where missing (a level of its own, `NOT_KNOWN`).
    ranks : ndarray of int, shape (n_rows,), or None
        As of `ranks_of`; None for rows of one rank.

    Returns
    -------
    candidates : list of Candidate
        `values` has shape (n_rows, n_levels - 1): the most frequent level has no indicator. Columns that group the rows
        alike (rank and device, say) are the `members` of one; the shortest name stands for them.
    dropped : list of Dropped
        Columns that are neither candidates nor members.
    """
    dropped: list[Dropped] = []
    alike: dict[bytes, list[Candidate]] = {}
    for name, column in columns:
        levels, codes = distinct_texts(column.values.tolist(), NOT_KNOWN)
        if levels.size < 2:
            is_known = levels.size and levels[0] != NOT_KNOWN
            dropped.append(Dropped(name, "constant" if is_known else "holds no value"))
            continue
        counts = np.bincount(codes, minlength=levels.size)
        if column.group == PLACEMENT and np.count_nonzero(counts >= _fewest(counts, PLACEMENT)) > MAX_LEVELS:
            levels, codes = _consecutive(levels, codes)
            counts = np.bincount(codes, minlength=levels.size)
        fewest = _fewest(counts, column.group)
        own_ranks = np.zeros(codes.size, np.int64) if ranks is None else ranks
        shown = _shown(levels, codes, fewest, own_ranks)
        if shown.size < 2:
            but_one = ", but for one" if counts.max() >= fewest else ","
            is_share = fewest == LEAST_SHARE * codes.size
            least = f"{100 * LEAST_SHARE:.0f} % of the rows" if is_share else f"{math.ceil(fewest)} rows"
            if np.count_nonzero(counts >= fewest) > 1:
                least = "more than about one launch of each rank"
            dropped.append(Dropped(name, f"{levels.size:,} levels{but_one} none holds {least}"))
            continue
        names = tuple(OTHER if i < 0 else str(levels[i]) for i in shown)
        indicators = np.column_stack([(codes == i).astype(float) for i in shown[1:]])
        pooled = tuple(levels[np.setdiff1d(np.arange(levels.size), shown)].tolist()) if names[0] == OTHER else ()
        candidate = Candidate(
            name, column.tier, column.group, column.unit, indicators, (name,), names, pooled, column.own
        )
        _, first, own = np.unique(candidate.codes, return_index=True, return_inverse=True)
        grouping = np.argsort(np.argsort(first))[own]  # whatever the levels are called
        alike.setdefault(grouping.tobytes(), []).append(candidate)
    candidates = []
    for same in alike.values():
        same.sort(key=lambda candidate: (len(candidate.name), candidate.name))
        head = same[0]
        others = sorted(candidate.name for candidate in same[1:])
        candidates.append(replace(head, members=(head.name, *others)))
    return candidates, dropped


def _shown(levels: np.ndarray, codes: np.ndarray, fewest: float, ranks: np.ndarray) -> np.ndarray:
    """Return the positions of the levels that are told apart, that without an indicator first: it is the most frequent
    one, or -1, all others as one, where together they are not rare. A few rows are nothing to compare others with, nor
    is about one row of each rank.
    """

    def is_common(rows: np.ndarray) -> bool:
        return bool(np.count_nonzero(rows) >= fewest) and is_repeated(rows, ranks)

    counts = np.bincount(codes, minlength=levels.size)
    order = sorted(range(levels.size), key=lambda i: (-counts[i], in_numbers(str(levels[i]))))
    common = [i for i in order if counts[i] >= fewest and is_common(codes == i)][:MAX_LEVELS]
    return np.asarray([-1, *common] if is_common(~np.isin(codes, common)) else common, dtype=int)


def _fewest(counts: np.ndarray, group: str) -> float:
    """Return how many rows a level of its own has at least, given those of all levels: of a place however few those
    are of all.
    """
    return MIN_LEVEL_ROWS if group == PLACEMENT else max(LEAST_SHARE * counts.sum(), MIN_LEVEL_ROWS)


def _consecutive(levels: np.ndarray, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return `MAX_LEVELS` levels at most and the level of each row: 0 and 1, 2 and 3 are one, or four each, or eight.

    Numbers are put together by their value, other texts by their position.
    """
    order = sorted(range(levels.size), key=lambda i: in_numbers(str(levels[i])))
    are_numbers = all(level.isdecimal() for level in levels.tolist())
    numbers = [int(levels[i]) if are_numbers else place for place, i in enumerate(order)]
    width = 1
    while len({number // width for number in numbers}) > MAX_LEVELS:
        width *= 2
    together: dict[int, list[int]] = {}
    for number, i in zip(numbers, order, strict=True):
        together.setdefault(number // width, []).append(i)
    names = []
    group_of = np.empty(levels.size, dtype=np.int64)
    for position, members in enumerate(together.values()):
        group_of[members] = position
        first = levels[members[0]]
        last = levels[members[-1]]
        names.append(str(first) if first == last else f"{first} to {last}")
    return np.array(names), group_of[codes]


def in_numbers(text: str) -> tuple[tuple[bool, int, str], ...]:
    """Return a key that puts texts in order, numbers in them as numbers.

    >>> sorted(["n10", "n9", "10", "9", "n"], key=in_numbers)
    ['9', '10', 'n', 'n9', 'n10']
    """
    parts = re.split("([0-9]+)", str(text))
    return tuple((not part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts if part)


def listed(levels: Sequence[str]) -> str:
    """Return levels in words, consecutive numbers as their first and last, the first few.

    >>> listed(["9", "10", "4", "37", "38", "39", "x"])
    '4, 9, 10, 37 to 39, x'
    """
    runs: list[list[str]] = []
    for level in sorted(levels, key=in_numbers):
        if runs and level.isdecimal() and runs[-1][-1].isdecimal() and int(level) == int(runs[-1][-1]) + 1:
            runs[-1].append(level)
        else:
            runs.append([level])
    words = [word for run in runs for word in ([f"{run[0]} to {run[-1]}"] if len(run) > 2 else run)]
    most = MOST_WORDS if sum(map(len, words)) > LONG * len(words) else MOST_NAMED
    more = f" and {len(words) - most} more" if len(words) > most else ""
    return f"{', '.join(words[:most])}{more}"


def pooling_notes(candidates: Sequence[Candidate], causes: Collection[str]) -> list[str]:
    """Return what `other` stands for, a sentence each: of the categories that are causes, and of those that have more
    frequent levels than are told apart.

    Parameters
    ----------
    candidates : sequence of Candidate
    causes : collection of str
        Names of candidates.
    """
    notes = []
    for candidate in candidates:
        if candidate.pooled and (candidate.name in causes or len(candidate.levels) > MAX_LEVELS):
            levels = counted(len(candidate.pooled), "level")
            notes.append(f"{feature_words(candidate.name)}: {OTHER} stands for {levels}: {listed(candidate.pooled)}")
    return notes

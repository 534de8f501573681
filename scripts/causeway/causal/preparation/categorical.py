"""Categories: text columns as indicators of their frequent levels."""

from dataclasses import replace

import numpy as np

from causeway.causal.data.observations import Candidate, Dropped, Feature
from causeway.numeric.distinct_texts import distinct_texts

MIN_LEVEL_SHARE = 0.01
MIN_LEVEL_ROWS = 4
"""Rows of a level of its own: of three rows two may have been slow by chance, and the level would stand for the whole
category.
"""
MAX_LEVELS = 30
NOT_KNOWN = "(not known)"
"""The level of rows without a value."""
OTHER = "other"
"""All rare levels as one."""


def category_candidates(columns: list[tuple[str, Feature]]) -> tuple[list[Candidate], list[Dropped]]:
    """Return the candidates of text columns, and those dropped with their reasons.

    Parameters
    ----------
    columns : list of (name, Feature)
        With values of type object: text, None where missing (a level of its own, `NOT_KNOWN`).

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
        counts = np.bincount(codes, minlength=levels.size)
        if levels.size < 2:
            is_known = levels.size and levels[0] != NOT_KNOWN
            dropped.append(Dropped(name, "constant" if is_known else "holds no value"))
            continue
        indicators, names = _indicators(levels, codes, counts)
        if not names:
            but_one = ", but for one" if counts.max() >= _fewest(codes.size) else ","
            is_share = MIN_LEVEL_SHARE * codes.size >= MIN_LEVEL_ROWS
            least = f"{100 * MIN_LEVEL_SHARE:.0f} % of the rows" if is_share else f"{MIN_LEVEL_ROWS} rows"
            dropped.append(Dropped(name, f"{levels.size:,} levels{but_one} none holds {least}"))
            continue
        candidate = Candidate(name, column.tier, column.group, column.unit, indicators, (name,), names)
        alike.setdefault(_grouping(indicators), []).append(candidate)
    candidates = []
    for same in alike.values():
        same.sort(key=lambda candidate: (len(candidate.name), candidate.name))
        head = same[0]
        others = sorted(candidate.name for candidate in same[1:])
        candidates.append(replace(head, members=(head.name, *others)))
    return candidates, dropped


def _indicators(levels: np.ndarray, codes: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, tuple[str, ...]]:
    """Return the indicators of levels, and the levels' names, that without an indicator first: it is the most frequent
    one, or all rare levels as one where together they are not rare. A few rows are nothing to compare others with.
    """
    order = sorted(range(levels.size), key=lambda i: (-counts[i], levels[i]))
    frequent = [i for i in order if counts[i] >= _fewest(codes.size)][:MAX_LEVELS]
    others = codes.size - counts[frequent].sum()
    are_others_few = others < _fewest(codes.size)
    shown = frequent[1:] if are_others_few else frequent
    if not shown:
        return np.zeros((codes.size, 0)), ()
    reference = str(levels[frequent[0]]) if are_others_few else OTHER
    return np.column_stack([(codes == i).astype(float) for i in shown]), (reference, *(str(levels[i]) for i in shown))


def _fewest(n_rows: int) -> float:
    """Return how many of the rows a level of its own has at least."""
    return max(MIN_LEVEL_SHARE * n_rows, MIN_LEVEL_ROWS)


def _grouping(indicators: np.ndarray) -> bytes:
    """Return a key that is equal for columns that group the rows alike, whatever their levels are called."""
    code = (indicators @ np.arange(1, indicators.shape[1] + 1)).astype(np.int64)
    _, first, inverse = np.unique(code, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse].tobytes()

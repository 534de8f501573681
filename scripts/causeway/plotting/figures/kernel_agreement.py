"""Where kernels agree with the whole dataset: a matrix of causes by kernel, signs in words and colours."""

from collections.abc import Mapping, Sequence
from typing import Any

from causeway.core import formatting
from causeway.core.feature_registry import feature_words
from causeway.core.formatting import elided, variance_of
from causeway.core.results import Search
from causeway.core.vocabulary import SUPPORTED, UNEXPLAINED
from causeway.plotting.drawing import charts, theme
from causeway.plotting.drawing.charts import notice
from causeway.plotting.drawing.drawn import DataFrame, Figure
from causeway.plotting.drawing.markup import plain

MOST_FEATURES = 30
MOST_KERNELS = 24
HEAD = 34
"""Letters of a kernel's name over its column; a number behind it, which tells equal names apart, may add some."""
WHOLE = "whole dataset"
FACTS = ("feature", "group", "sign", "sign_of", "level", "variance_percent", "verdict")
"""Of a cause, from `contributions.parquet`."""
FILLS = ("", "?", "+", "-")
"""What the colours of cells stand for: no cause, not supported or undecided, raises, lowers."""
MARKS = {"+": "▲", "-": "▼", "?": "◇"}


def cells_of(searches: Sequence[Search], names: Mapping[str, str]) -> DataFrame:
    """Return a cell for each cause of a scope with the columns feature, kernel (its short name), sign,
    variance_percent, verdict, opposite and hover; the weaker causes left out, features by strength, the whole dataset
    first.

    Parameters
    ----------
    searches : sequence of Search
        The first is that of the whole dataset.
    names : mapping
        As of `draw_kernel_agreement`.
    """
    import pandas as pd

    rows = [
        {"kernel": names.get(search.graph["scope"], WHOLE), **{name: row.get(name) for name in FACTS}}
        for search in searches
        for row in search.contributions
        if row["feature"] != UNEXPLAINED
    ]
    cells = pd.DataFrame(rows, columns=["kernel", *FACTS], dtype=object)
    shown = [kernel for kernel in names.values() if (cells.kernel == kernel).any()][:MOST_KERNELS]
    cells = cells[cells.kernel.isin([WHOLE, *shown])]
    strength = cells.variance_percent.astype(float).fillna(0).groupby(cells.feature).max().reset_index()
    strength = strength.sort_values(["variance_percent", "feature"], ascending=[False, True])
    cells = cells[cells.feature.isin(strength.feature[:MOST_FEATURES])]
    whole = cells[cells.kernel == WHOLE].set_index("feature")
    cells["opposite"] = [
        cell.feature in whole.index and _are_opposite(cell, whole.loc[cell.feature]) for cell in cells.itertuples()
    ]
    words = cells.opposite.map({True: ", opposite to the whole dataset", False: ""})
    cells["hover"] = cells.kernel + ", " + cells.feature + ": " + cells.verdict + words
    rank = {feature: place for place, feature in enumerate(strength.feature)}
    return cells.sort_values("feature", key=lambda column: column.map(rank), kind="stable").reset_index(drop=True)


def _are_opposite(cell: Any, whole: Any) -> bool:
    """Tell whether a cause has the other sign in a kernel, of the same thing and, of a category, at the same level."""
    is_same = (cell.sign_of, cell.level) == (whole.sign_of, whole.level)
    return is_same and {cell.sign, whole.sign} == {"+", "-"}


def draw_kernel_agreement(searches: Sequence[Search], names: Mapping[str, str], title: str, target: str) -> Figure:
    """Return the matrix.

    Parameters
    ----------
    searches : sequence of Search
        The first is that of the whole dataset.
    names : mapping
        Short names of the kernels by id, in the order of the columns, of at most `HEAD` letters: longer ones would be
        cut, and look alike.
    title, target : str
    """
    import numpy as np
    from matplotlib.patches import Rectangle

    cells = cells_of(searches, names)
    if cells.empty:
        return notice(
            title, "kernels beside the whole dataset", ["No cause was found, in no kernel and not in the dataset."]
        )
    features = list(dict.fromkeys(cells.feature))
    kernels = [name for name in (WHOLE, *names.values()) if (cells.kernel == name).any()]
    codes = np.zeros((len(features), len(kernels)), int)
    words = np.full(codes.shape, "", object)
    framed = []
    for cell in cells.itertuples():
        place = features.index(cell.feature), kernels.index(cell.kernel)
        if isinstance(cell.sign, str):
            codes[place] = FILLS.index(cell.sign) if cell.verdict == SUPPORTED and cell.sign in FILLS else 1
            words[place] = f"{MARKS.get(cell.sign, '◇')} {formatting.percent(cell.variance_percent).removesuffix(' %')}"
        framed += [place] if cell.opposite else []
    left_out = len({row["feature"] for search in searches for row in search.contributions} - {UNEXPLAINED, *features})
    below = f"number: % of {variance_of(target)}, within configurations; of the whole dataset each kernel alike"
    notes = "▲ raises, ▼ lowers (the target, or the value itself), ◇ in no single direction; orange frame: opposite"
    notes += " to the whole dataset; grey: not supported there"
    notes += f"\n{left_out} weaker causes are not drawn; the tables list all" if left_out else ""
    with theme.drawing():
        width = max(charts.WIDTH, 4 + 0.66 * len(kernels) + 2)
        figure, axis = charts.sheet(title, below, 0.27 * len(features) + 2.9, width=width)
        charts.shaded(axis, codes, words, [theme.PANEL, "#eceff2", "#d9dde2", "#fbdcd9"])
        for text, (row, column) in zip(axis.texts, np.argwhere(words != ""), strict=True):
            text.set_color({2: theme.ON_COLOUR, 3: theme.LOWERS_ON_COLOUR}.get(codes[row, column], "#4d555e"))
        for row, column in framed:
            axis.add_patch(Rectangle((column, row), 1, 1, fill=False, edgecolor=theme.DIVERGING[-2], linewidth=1.8))
        hovers = [
            axis.add_patch(Rectangle((kernels.index(c.kernel), features.index(c.feature)), 1, 1, alpha=0, linewidth=0))
            for c in cells.itertuples()
        ]
        charts.hover(hovers, cells.hover)
        heads = [plain(elided(kernel, HEAD + 6)) for kernel in kernels]
        places = np.arange(len(kernels)) + 0.5
        axis.set_xticks(places, heads, rotation=46, ha="left", rotation_mode="anchor", color=theme.INK)
        groups = dict(zip(cells.feature, cells.group, strict=True))
        labels = [plain(feature_words(feature, groups[feature] or "")) for feature in features]
        axis.set_yticks(np.arange(len(features)) + 0.5, labels)
        figure.supxlabel(notes, x=0.015, ha="left", fontsize=9, color=theme.MUTED)
    return figure

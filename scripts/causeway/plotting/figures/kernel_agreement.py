"""Where kernels agree with the whole dataset: a matrix of causes by kernel, signs in words and colours."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from causeway.core import formatting
from causeway.core.formatting import elided, variance_of
from causeway.core.vocabulary import SUPPORTED
from causeway.plotting.drawing import charts, theme
from causeway.plotting.drawing.charts import notice
from causeway.plotting.drawing.markup import plain

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

MOST_FEATURES = 30
MOST_KERNELS = 24
HEAD = 34
"""Letters of a kernel's name over its column; a number behind it, which tells equal names apart, may add some."""
WHOLE = "whole dataset"
COLUMNS = ["feature", "kernel", "state"]
COLUMNS += [f"{scope}_{fact}" for scope in ("kernel", "dataset") for fact in ("sign", "variance_percent", "verdict")]
FILLS = ("", "?", "+", "-")
"""What the colours of cells stand for: no cause, not supported or undecided, raises, lowers."""
MARKS = {"+": "▲", "-": "▼", "?": "◇"}


def cells_of(rows: Sequence[Mapping], names: Mapping[str, str]) -> "pd.DataFrame":
    """Return the cells with the columns feature, kernel (its short name), sign, variance_percent, verdict, opposite and
    hover; the weaker causes left out, features by strength, the whole dataset first.
    """
    import pandas as pd

    table = pd.DataFrame([dict(row) for row in rows if row["kernel"] in names], columns=COLUMNS, dtype=object)
    table = table[table.kernel.isin([kernel for kernel in names if (table.kernel == kernel).any()][:MOST_KERNELS])]
    strength = table[["kernel_variance_percent", "dataset_variance_percent"]].astype(float).max(axis=1).fillna(0)
    order = strength.groupby(table.feature).max().reset_index().sort_values([0, "feature"], ascending=[False, True])
    table = table[table.feature.isin(order.feature[:MOST_FEATURES])]
    facts = ("sign", "variance_percent", "verdict")
    own = table.rename(columns={f"kernel_{fact}": fact for fact in facts})
    own = own.assign(kernel=own.kernel.map(names), opposite=own.state == "opposite")
    own["words"] = [", ".join(filter(None, pair)) for pair in zip(own.state, own.verdict, strict=True)]
    whole = table.drop_duplicates("feature").rename(columns={f"dataset_{fact}": fact for fact in facts})
    whole = whole.assign(kernel=WHOLE, opposite=False, words=whole.verdict.fillna("no cause here"))
    cells = pd.concat([whole, own])[["feature", "kernel", *facts, "opposite", "words"]]
    cells["hover"] = cells.kernel + ", " + cells.feature + ": " + cells.words
    rank = {feature: place for place, feature in enumerate(order.feature)}
    return cells.sort_values("feature", key=lambda column: column.map(rank), kind="stable").reset_index(drop=True)


def draw_kernel_agreement(rows: Sequence[Mapping], names: Mapping[str, str], title: str, target: str) -> "Figure":
    """Return the matrix.

    Parameters
    ----------
    rows : sequence of mappings
        Of `agreement.parquet`.
    names : mapping
        Short names of the kernels by id, in the order of the columns, of at most `HEAD` letters: longer ones would be
        cut, and look alike.
    title, target : str
    """
    import numpy as np
    from matplotlib.patches import Rectangle

    cells = cells_of(rows, names)
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
    left_out = len({row["feature"] for row in rows}) - len(features)
    below = f"number: % of {variance_of(target)}, within configurations; of the whole dataset each kernel alike"
    notes = "▲ raises, ▼ lowers (the target, or the value itself), ◇ in no single direction; orange frame: opposite"
    notes += " to the whole dataset; grey: not supported there"
    notes += f"\n{left_out} weaker causes are not drawn; the table lists all" if left_out else ""
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
        axis.set_yticks(np.arange(len(features)) + 0.5, [plain(elided(feature, 40)) for feature in features])
        figure.supxlabel(notes, x=0.015, ha="left", fontsize=9, color=theme.MUTED)
    return figure

"""What static figures share: a sheet with its heading, rows of bars, tables of colours, texts on hover."""

import math
from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from causeway.core import formatting
from causeway.core.formatting import elided
from causeway.core.installation import hidden
from causeway.plotting.drawing import theme
from causeway.plotting.drawing.markup import plain

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.collections import Collection
    from matplotlib.figure import Figure


WIDTH = 1180 / 96
"""Inches of a sheet."""
HEAD = 0.56
"""Inches of its title and of the line below it."""
ROW = 0.26
"""Inches of a row."""
LABEL = 60
"""Characters of a label beside a row."""


def sheet(title: str, below: str, height: float, width: float = WIDTH) -> tuple["Figure", "Axes"]:
    """Return a figure with a heading, and its one panel; as `panels`."""
    figure, axes = panels(title, below, height, width)
    return figure, axes[0, 0]


def panels(
    title: str, below: str, height: float, width: float = WIDTH, gap: float = 0.02, **more: Any
) -> tuple["Figure", np.ndarray]:
    """Return a figure with a heading, and its panels.

    Parameters
    ----------
    title, below : str
        What it shows; what it rests on.
    height : float
        Inches below the heading.
    width : float
        Inches.
    gap : float
        Beside each panel, inches, and between columns, as a part of their width.
    **more
        As of `subplots` of matplotlib, `nrows` and `ncols` among them.

    Returns
    -------
    figure : Figure
    panels : ndarray of Axes, shape (rows, columns)
    """
    import matplotlib.pyplot as plt
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    tall = height + HEAD
    around = (0.012, 0.04 / tall, 0.976, 1 - (HEAD + 0.04) / tall)
    layout = ConstrainedLayoutEngine(rect=around, w_pad=gap, h_pad=0.02, wspace=gap)
    figure, axes = plt.subplots(figsize=(width, tall), layout=layout, squeeze=False, **more)
    place = {"ha": "left", "va": "top", "in_layout": False}
    figure.suptitle(plain(title), x=0.015, y=1 - 0.1 / tall, fontsize=11.25, fontweight="bold", **place)
    figure.text(0.015, 1 - 0.33 / tall, plain(below), color=theme.MUTED, **place)
    return figure, axes


def seaborn() -> "ModuleType":
    """Return seaborn. It loads scipy for densities and dendrograms alone, three quarters of its CPU time, and does
    without where it is missing.
    """
    with hidden("scipy"):
        import seaborn
    return seaborn


def notice(title: str, below: str, sentences: Sequence[str]) -> "Figure":
    """Return the small figure that stands where there is nothing to draw: a title and, in words, why."""
    import textwrap

    with theme.drawing():
        words = "\n".join("\n".join(textwrap.wrap(plain(elided(sentence, 600)), 80)) for sentence in sentences)
        figure, axis = sheet(title, below, 0.2 * (words.count("\n") + 1) + 0.1, width=7.2)
        axis.axis("off")
        axis.text(0, 1, words, va="top", linespacing=1.5)
    return figure


def hover(artists: "Iterable[Artist] | Collection", words: Iterable[str]) -> None:
    """Give each artist, or each part of a collection, its text on hover; `theme.svg_text` writes it as a title."""
    links = [f"{theme.HOVER}{plain(text)}" for text in words]
    if hasattr(artists, "set_urls"):
        artists.set_urls(links)
        return
    for artist, link in zip(artists, links, strict=True):
        artist.set_url(link)


def labels(axis: "Axes", names: Sequence[str]) -> None:
    """Name the rows of an axis, the first one at the top, without ticks."""
    axis.set_yticks(range(len(names)), [plain(elided(name, LABEL)) for name in names])
    axis.set_ylim(len(names) - 0.45, -0.55)
    axis.tick_params(axis="y", length=0)
    axis.spines["left"].set_visible(False)


def words_at(axis: "Axes", places: Iterable[float], words: Iterable[str]) -> None:
    """Write words behind the rows of an axis, each at its place (data)."""
    for row, (x, text) in enumerate(zip(places, words, strict=True)):
        axis.annotate(plain(text), (x, row), (5, 0), textcoords="offset points", va="center")


def words_beside(axis: "Axes", words: Iterable[str]) -> None:
    """Write words right of the rows of an axis."""
    across = axis.get_yaxis_transform()
    for row, text in enumerate(words):
        axis.annotate(plain(text), (1.0, row), (8, 0), across, "offset points", va="center", color=theme.MUTED)


def time_axis(axis: "Axes", longest: float, which: str = "x", digits: int = 4, most: int = 9) -> None:
    """Write the ticks of an axis of nanoseconds, at most so many, with their unit, that of its longest time."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    unit, size = formatting.time_unit(longest)
    ticks = getattr(axis, f"{which}axis")
    ticks.set_major_locator(_Scaled(size, MaxNLocator(most, steps=[1, 2, 5, 10])))
    ticks.set_major_formatter(
        FuncFormatter(lambda value, _: f"{formatting.significant(round(value / size, 9), digits)} {unit}")
    )


def _Scaled(size: float, locator):  # noqa: N802 - a class that needs matplotlib
    """Return a locator of round numbers in a unit of `size`."""
    from matplotlib.ticker import Locator

    class Scaled(Locator):
        def __call__(self):
            low, high = sorted(self.axis.get_view_interval())
            return [tick * size for tick in locator.tick_values(low / size, high / size)]

    return Scaled()


def stacked(axis: "Axes", frame: "pd.DataFrame", colours: dict[str, str], words, height: float = 0.74) -> None:
    """Draw one bar for each row of a frame, split by its columns in their order.

    Parameters
    ----------
    axis : Axes
    frame : DataFrame
        Values, not negative; the index names the rows.
    colours : dict
        By column.
    words : callable
        Returns the text on hover of a column and a value.
    height : float
        Of a bar, in rows.
    """
    left = frame.cumsum(axis=1) - frame
    for name in frame.columns:
        some = frame[name].to_numpy() > 0
        rows = some.nonzero()[0]
        values = frame[name].to_numpy()[some]
        bars = axis.barh(
            rows, values, left=left[name].to_numpy()[some], height=height, color=colours[name], linewidth=0
        )
        hover(bars, [words(name, value) for value in values])
    labels(axis, list(frame.index))


def key(
    where: "Axes | Figure", colours: dict[str, str], names: Sequence[str], columns: int = 5, above: str = ""
) -> None:
    """Write what colours mean: above an axis, or below all axes of a figure; lines of text stand `above` that."""
    from matplotlib.axes import Axes
    from matplotlib.patches import Patch

    style: dict[str, Any] = {"loc": "outside lower left", "columnspacing": 1.6}
    style |= dict.fromkeys(("handlelength", "handleheight"), 1.1)
    style |= {"title": above or None, "alignment": "left", "title_fontproperties": {"size": theme.SMALL * 0.75}}
    if isinstance(where, Axes):
        style |= {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0.2}
    handles = [Patch(facecolor=colours[name], edgecolor=theme.GRID, linewidth=0.5) for name in names]
    where.legend(handles, [plain(name) for name in names], ncols=columns, **style)


def shaded(axis: "Axes", codes: "np.ndarray", words: "np.ndarray", colours: Sequence[str], bold: int = -1) -> None:
    """Draw a table of which each cell has the colour of its code, an index into `colours`, and its words.

    seaborn's `heatmap` draws the whole figure once more for each table with words, to look at its labels.

    Parameters
    ----------
    axis : Axes
        Row 0 is at the top; cell (row, column) has its middle at (column + 0.5, row + 0.5).
    codes, words : ndarray of int and of str, shape (rows, columns)
    colours : sequence of str
    bold : int
        A column whose words are bold.
    """
    from matplotlib.colors import ListedColormap, to_rgb

    axis.pcolormesh(
        codes, cmap=ListedColormap(colours), vmin=-0.5, vmax=len(colours) - 0.5, edgecolor=theme.PAPER, linewidth=1.2
    )
    inks = [
        theme.MUTED if colour in theme.DARK else theme.ON_COLOUR if math.fsum(to_rgb(colour)) > 1.4 else "#fefefe"
        for colour in colours
    ]
    middle = {"ha": "center", "va": "center"}
    for row, column in np.argwhere(words != "").tolist():
        look = {"color": inks[codes[row, column]], "fontweight": "bold" if column == bold else "normal"}
        axis.text(column + 0.5, row + 0.5, words[row, column], middle | look, in_layout=False)
    axis.invert_yaxis()
    axis.spines[:].set_visible(False)
    axis.tick_params(length=0, labeltop=True, labelbottom=False)


def cascade(axis: "Axes", bars: "pd.DataFrame") -> None:
    """Draw bars of which each begins where the one above it ends.

    Parameters
    ----------
    axis : Axes
    bars : DataFrame
        With columns `label`, `start`, `length` (negative: to the left), `colour` ('': no bar, a heading), `words`
        behind the bar, `hover`.
    """
    drawn = bars[(bars.colour != "") & (bars.length != 0)]
    colours = drawn.colour.tolist()
    boxes = axis.barh(
        drawn.index, drawn.length, left=drawn.start, height=0.74, color=colours, edgecolor=colours, linewidth=0.6
    )
    hover(boxes, drawn.hover)
    joined = bars[(bars.colour != "") & (bars.start != 0)]
    axis.vlines(joined.start, joined.index - 1, joined.index, color=theme.FAINT, linewidth=0.7, zorder=0)
    ends = bars[["start"]].assign(end=bars.start + bars.length).max(axis=1)
    words_at(axis, ends, bars.words)
    labels(axis, bars.label.tolist())


def cells_together(count: int, most: int) -> int:
    """Return how many neighbours of `count` share a cell, so that no more than `most` cells are drawn."""
    return max(1, -(-count // most))


def largest_by_cell(rows: np.ndarray, columns: np.ndarray, values: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """Return the largest value of each cell.

    Parameters
    ----------
    rows, columns : ndarray of int, the same shape
        The cell of each value.
    values : ndarray of float or bool, the same shape
        NaN counts as nothing.
    shape : (int, int)
        Rows and columns of the map.

    Returns
    -------
    ndarray of float64, shape `shape`
        NaN in a cell without a value.
    """
    cells = np.full(shape, np.nan)
    np.fmax.at(cells, (rows, columns), values)
    return cells


def merged_rows(values: np.ndarray, most: int) -> tuple[np.ndarray, list[range]]:
    """Return a map with at most `most` rows, and the rows that each of them stands for; NaN where all are NaN.

    Parameters
    ----------
    values : ndarray of float or bool, shape (n_rows, n_columns)
    most : int

    Returns
    -------
    merged : ndarray of float64, shape (rows, n_columns)
    rows : list of range
    """
    together = cells_together(len(values), most)
    groups = [range(first, min(first + together, len(values))) for first in range(0, len(values), together)]
    places = np.indices(values.shape)
    return largest_by_cell(places[0] // together, places[1], values, (len(groups), values.shape[1])), groups


def rank_labels(ranks: Sequence[int], groups: Sequence[range]) -> list[str]:
    """Return what the rows of a map of ranks are called: `rank 3`, or `ranks 0–2` where they share one."""
    ends = [(ranks[group[0]], ranks[group[-1]]) for group in groups]
    return [f"rank {first}" if first == last else f"ranks {first}–{last}" for first, last in ends]

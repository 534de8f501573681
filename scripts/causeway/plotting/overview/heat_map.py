"""The overview's heat maps: rank by time, one colour per cell, what a cell holds on hover, its window on a click.

Drawn by hand: matplotlib makes a picture without hover or .2 CPU-s a map with an element for each of 11,520 cells, and
plotly needs its script of 4.9 MB, which this page, one file, does not have. Here cells of one shade are one path.
"""

import itertools
import json
from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
from markupsafe import Markup

from causeway.core import formatting
from causeway.core.vocabulary import target_name
from causeway.plotting.drawing import theme
from causeway.plotting.drawing.charts import merged_rows, rank_labels
from causeway.plotting.drawing.labels import unit_stated
from causeway.plotting.drawing.markup import number, text_width
from causeway.plotting.drawing.page import rendered
from causeway.plotting.figures.bins import Lanes, notes_of, scale_of

COLUMNS = 240
MOST_ROWS = 48
WIDTH = 1180.0
HEAD = 6.0
FOOT = 54.0
SHADES = 32
LEAST_TOP = 0.25
"""Least end of the scale of lost shares."""


def draw_heat_map(
    values: np.ndarray,
    ranks: Sequence[int],
    edges: np.ndarray,
    *,
    what: str,
    title: str,
    words: Callable[[float], str],
    explorer: str | None,
    kept: np.ndarray | None = None,
    unit: str = "",
    note: str = "",
    timed: bool = True,
    columns: Sequence[str] | None = None,
) -> Markup:
    """Return a heat map of ranks by time; ranks that share a row beyond 48 show their largest value.

    Parameters
    ----------
    values : ndarray of float, shape (n_ranks, n_columns)
        NaN where there is nothing.
    ranks : sequence of int
    edges : ndarray of float, shape (n_columns + 1,)
        Ends of the columns, ns since the dataset's first launch; without times, numbers of bins.
    what, title : str
        What is drawn ("lost" for shares of 0 to 1, else the name of a target), and the map's title.
    words : callable
        What a value reads like.
    explorer : str or None
        Page that a click opens at the cell's window; None without one.
    kept : ndarray of bool, same shape as values, optional
        Cells with an edge.
    unit, note : str
    timed : bool
    columns : sequence of str, optional
        What the columns are called; times otherwise.
    """
    shown, groups = merged_rows(values, MOST_ROWS)
    marked = np.zeros(shown.shape, bool) if kept is None else merged_rows(kept, MOST_ROWS)[0] > 0
    names = rank_labels(ranks, groups)
    left = max(text_width(label, theme.SMALL) for label in names) + 12
    width = (WIDTH - left) / shown.shape[1]
    height = min(max(170.0 / len(groups), 9.0), 30.0)
    facts = {
        "left": round(left, 2),
        "top": HEAD,
        "width": round(width, 4),
        "height": round(height, 4),
        "columns": list(columns) if columns is not None else _times(edges),
        "windows": [round(edge / 1000) for edge in edges] if explorer and timed else [],
        "rows": [
            {
                "name": label,
                "cells": [
                    "" if np.isnan(value) else words(value) + (", kept" if flag else "")
                    for value, flag in zip(line, flags, strict=True)
                ],
            }
            for label, line, flags in zip(names, shown.tolist(), marked.tolist(), strict=True)
        ],
    }
    scale, ends = _scale(shown, what, unit)
    foot = HEAD + height * len(groups)
    every = max(1, round(14 / height + 0.49))
    more = f" Each row holds {len(groups[0])} ranks and shows their largest value." if len(groups[0]) > 1 else ""
    hint = " A click opens the window in the explorer." if facts["windows"] else ""
    cells = zip(*np.nonzero(marked), strict=True)
    return rendered(
        "heat_map.html",
        title=title,
        width=round(WIDTH),
        height=f"{foot + FOOT:.0f}",
        facts=json.dumps(facts, ensure_ascii=False, separators=(",", ":")),
        explorer=explorer,
        cells=_colours(shown, scale, left, width, height),
        marks="".join(f"M{left + column * width:.1f} {HEAD + row * height:.1f}h{width:.2f}" for row, column in cells),
        labels=[(HEAD + (row + 0.5) * height + 4, label) for row, label in enumerate(names) if row % every == 0],
        ticks=[(left + (WIDTH - left) * share, words) for share, words in _ticks(edges, timed)],
        ends=ends + (", log scale" if scale[2] else ""),
        shades=[theme.shade(step / (SHADES - 1)) for step in range(SHADES)],
        note=f"{note}{more}{hint}".strip(),
        left=left,
        foot=foot,
        number=number,
        marked=theme.DIVERGING[-2],
    )


def heat_map(
    bins: pa.Table, ranking: pa.Table, clocks: dict, target: str, dataset: str = "", explored: bool = False
) -> Markup | None:
    """Return the heat map of the bins' medians, or None without bins; bins that share a column show their largest
    median.
    """
    if not bins.num_rows:
        return None
    lanes = Lanes(bins, ranking, COLUMNS)
    unit = unit_stated(bins)
    what = "largest median" if lanes.merged > 1 or len(lanes.ranks) > MOST_ROWS else "median"
    said = "; ".join(notes_of(lanes, clocks))
    edge = " Orange edge: kept for the causal analysis." if lanes.kept.any() else ""
    note = f"{said[:1].upper()}{said[1:]}. Blank: no launches.{edge}"
    own = lanes.timed and explored and not lanes.own_start
    name = target_name(target)
    return draw_heat_map(
        lanes.median_high,
        lanes.ranks,
        lanes.edges,
        what=f"median {name}",
        title=f"Median {name} by rank and time",
        words=lambda value: f"{what} {formatting.quantity(value, unit)}",
        explorer=f"{dataset}/explorer/index.html" if own else None,
        kept=lanes.kept,
        unit=unit,
        note=note,
        timed=lanes.timed,
        columns=None if lanes.timed else _bin_names(lanes),
    )


def _scale(values: np.ndarray, what: str, unit: str) -> tuple[tuple[float, float, bool], str]:
    """Return ends and kind of the scale, and what stands beside it.

    Shares begin at 0 and end at their largest value, at 25 % at least, so that a map of little is light and not all of
    one shade.
    """
    if what == "lost":
        top = max(float(np.nanmax(values)), LEAST_TOP)
        return (0.0, top, False), f"0 to {100 * top:.0f} % of the time without a kernel"
    _, _, log, least = scale_of(values, unit)
    low = float(np.nanmin(values))
    top = float(np.nanmax(values))
    low = max(low, least) if log else low
    return (low, top, log), f"{formatting.quantity(low, unit)} to {formatting.quantity(top, unit)}, {what}"


def _colours(
    medians: np.ndarray, scale: tuple[float, float, bool], left: float, width: float, height: float
) -> list[tuple[str, str]]:
    """Return the cells, those of one shade as one path, with its colour: a few kilobytes instead of an element for
    each.
    """
    paths: dict[int, str] = {}
    for row, column in zip(*np.nonzero(np.isfinite(medians)), strict=True):
        shade = _shade(medians[row, column], *scale)
        place = f"M{left + column * width:.1f} {HEAD + row * height:.1f}"
        paths[shade] = f"{paths.get(shade, '')}{place}h{width + 0.15:.2f}v{height - 1:.1f}h-{width + 0.15:.2f}z"
    return [(path, theme.shade(level / (SHADES - 1))) for level, path in sorted(paths.items())]


def _shade(value: float, low: float, top: float, log: bool) -> int:
    """Return the step of the scale, which runs from the lowest to the highest value."""
    if top <= low:
        return SHADES // 2
    fraction = np.log(max(value, low) / low) / np.log(top / low) if log else (value - low) / (top - low)
    return round(float(min(max(fraction, 0.0), 1.0)) * (SHADES - 1))


def _bin_names(lanes: Lanes) -> list[str]:
    first = [round(edge) for edge in lanes.edges[:-1]]
    return [f"bin {number}" if lanes.merged == 1 else f"bins {number}–{number + lanes.merged - 1}" for number in first]


def _times(edges: np.ndarray) -> list[str]:
    name, size = formatting.time_unit(edges[-1])
    ends = [formatting.significant(edge / size, 4) for edge in edges]
    return [f"{start}–{end} {name}" for start, end in itertools.pairwise(ends)]


def _ticks(edges: np.ndarray, timed: bool) -> list[tuple[float, str]]:
    """Return the ticks of the time axis: which share of it is before, and what it says."""
    if not timed:
        return [(0.0, "first launch"), (1.0, "last launch")]
    name, size = formatting.time_unit(edges[-1])
    last = edges[-1] / size
    return [(tick / last, f"{formatting.significant(tick, 4)} {name}") for tick in theme.nice_ticks(0.0, last, 8)]

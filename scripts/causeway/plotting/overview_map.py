"""The overview's heat map: rank by time, one colour per cell, what a cell holds on hover."""

import itertools
import json
from typing import TYPE_CHECKING

import numpy as np

from causeway.plotting import theme
from causeway.plotting.bins import Lanes, lanes_of, notes_of, scale_of
from causeway.plotting.marks import text
from causeway.plotting.markup import Markup, tag, text_width
from causeway.plotting.words import target_name, unit_stated

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = 240
MOST_ROWS = 48
WIDTH, HEAD, FOOT = 1180.0, 6.0, 54.0
SHADES = 32


def heat_map(bins: "pa.Table", ranking: "pa.Table", clocks: dict, target: str) -> Markup | None:
    """Return the heat map of the bins' medians, or None without bins.

    Bins that share a column, and ranks that share a row beyond 48, show their largest median; the note under the map says so.
    """
    lanes, unit = lanes_of(bins, ranking, COLUMNS), unit_stated(bins)
    if lanes is None:
        return None
    together = -(-len(lanes.ranks) // MOST_ROWS)
    groups = [range(i, min(i + together, len(lanes.ranks))) for i in range(0, len(lanes.ranks), together)]
    medians = np.array([np.fmax.reduce(lanes.median_high[list(group)], axis=0) for group in groups])
    kept = np.array([lanes.kept[list(group)].any(axis=0) for group in groups])
    names = [_rank_name(lanes.ranks[group[0]], lanes.ranks[group[-1]]) for group in groups]
    left = max(text_width(label, theme.SMALL) for label in names) + 12
    width, height = (WIDTH - left) / medians.shape[1], min(max(170.0 / len(groups), 9.0), 30.0)
    facts = {
        "left": round(left, 2),
        "top": HEAD,
        "width": round(width, 4),
        "height": round(height, 4),
        "columns": _column_names(lanes),
        "rows": [
            {"name": name, "cells": _cells(values, flags, unit, together * lanes.merged > 1)}
            for name, values, flags in zip(names, medians, kept, strict=True)
        ],
    }
    _, _, log, least = scale_of(medians, unit)
    low, top = float(np.nanmin(medians)), float(np.nanmax(medians))
    low = max(low, least) if log else low
    foot = HEAD + height * len(groups)
    every = max(1, round(14 / height + 0.49))
    middles = [(name, HEAD + (row + 0.5) * height + 4) for row, name in enumerate(names) if row % every == 0]
    labels = [text(left - 8, y, name, theme.SMALL, "end", theme.MUTED) for name, y in middles]
    drawing = tag(
        "svg",
        tag("title", f"Median {target_name(target)} by rank and time"),
        _colours(medians, (low, top, log), left, width, height),
        _marks(kept, left, width, height),
        labels,
        _time_axis(lanes, left, foot),
        _legend(f"{theme.quantity(low, unit)} to {theme.quantity(top, unit)}", log, left, foot + 40, target),
        viewBox=f"0 0 {WIDTH:.0f} {foot + FOOT:.0f}",
        role="img",
        data_map=json.dumps(facts, ensure_ascii=False, separators=(",", ":")),
        font_family=theme.FONT,
    )
    notes = notes_of(lanes, clocks) + ([f"each row holds {together} ranks and shows their largest value"] if together > 1 else [])
    said = "; ".join(notes)
    note = tag("p", f"{said[:1].upper()}{said[1:]}. White: no launches. Orange edge: kept for the causal analysis.", class_="note")
    return tag("div", drawing, tag("output"), note, class_="map")


def _colours(medians: np.ndarray, scale: tuple[float, float, bool], left: float, width: float, height: float) -> list[Markup]:
    """Return the cells, those of one shade as one path: a few kilobytes instead of an element for each."""
    paths: dict[int, list[str]] = {}
    for row, column in zip(*np.nonzero(np.isfinite(medians)), strict=True):
        place = f"M{left + column * width:.1f} {HEAD + row * height:.1f}h{width + 0.15:.2f}v{height - 1:.1f}h-{width + 0.15:.2f}z"
        paths.setdefault(_shade(medians[row, column], *scale), []).append(place)
    return [tag("path", d="".join(places), fill=theme.shade(level / (SHADES - 1))) for level, places in sorted(paths.items())]


def _marks(kept: np.ndarray, left: float, width: float, height: float) -> Markup | None:
    cells = zip(*np.nonzero(kept), strict=True)
    path = "".join(f"M{left + column * width:.1f} {HEAD + row * height:.1f}h{width:.2f}" for row, column in cells)
    return tag("path", d=path, stroke=theme.DIVERGING[-2], stroke_width=3, fill="none") if path else None


def _rank_name(first: int, last: int) -> str:
    return f"rank {first}" if first == last else f"ranks {first}–{last}"


def _shade(value: float, low: float, top: float, log: bool) -> int:
    """Return the step of the scale, which runs from the lowest to the highest median."""
    if top <= low:
        return SHADES // 2
    fraction = np.log(max(value, low) / low) / np.log(top / low) if log else (value - low) / (top - low)
    return round(float(min(max(fraction, 0.0), 1.0)) * (SHADES - 1))


def _cells(medians: np.ndarray, kept: np.ndarray, unit: str, merged: bool) -> list[str]:
    what = "largest median" if merged else "median"
    pairs = zip(medians.tolist(), kept.tolist(), strict=True)
    return ["" if np.isnan(value) else f"{what} {theme.quantity(value, unit)}{', kept' if flag else ''}" for value, flag in pairs]


def _column_names(lanes: Lanes) -> list[str]:
    if not lanes.timed:
        first = [round(edge) for edge in lanes.edges[:-1]]
        return [f"bin {number}" if lanes.merged == 1 else f"bins {number}–{number + lanes.merged - 1}" for number in first]
    name, size = theme.time_unit(lanes.edges[-1])
    ends = [theme.significant(edge / size, 4) for edge in lanes.edges]
    return [f"{start}–{end} {name}" for start, end in itertools.pairwise(ends)]


def _time_axis(lanes: Lanes, left: float, y: float) -> list[Markup]:
    timed = lanes.timed
    name, size = theme.time_unit(lanes.edges[-1]) if timed else ("", 1.0)
    last = lanes.edges[-1] / size
    parts = []
    for tick in theme.nice_ticks(0.0, last, 8) if timed else [0.0, last]:
        x = left + (WIDTH - left) * tick / last
        anchor = "start" if tick == 0 else "end" if x > WIDTH - 30 else "middle"
        words = f"{theme.significant(tick, 4)} {name}" if timed else "first launch" if tick == 0 else "last launch"
        parts.append(tag("line", x1=x, x2=x, y1=y, y2=y + 4, stroke=theme.FAINT))
        parts.append(text(x, y + 17, words, theme.SMALL, anchor, theme.MUTED))
    return parts


def _legend(ends: str, log: bool, left: float, y: float, target: str) -> Markup:
    steps = [tag("rect", x=left + i * 5, y=y, width=5.2, height=10, fill=theme.shade(i / (SHADES - 1))) for i in range(SHADES)]
    words = f"{ends}, median {target_name(target)}" + (", log scale" if log else "")
    return tag("g", steps, text(left + SHADES * 5 + 10, y + 9.5, words, theme.SMALL, colour=theme.MUTED))

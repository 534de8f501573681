"""The overview's heat map of a target: the medians of its bins."""

import pyarrow as pa
from markupsafe import Markup

from causeway.core import formatting
from causeway.core.vocabulary import target_name
from causeway.plotting.drawing.heat_map import MOST_ROWS, draw_heat_map
from causeway.plotting.drawing.labels import unit_stated
from causeway.plotting.figures.bins import Lanes, lanes_of, notes_of

COLUMNS = 240


def heat_map(
    bins: pa.Table, ranking: pa.Table, clocks: dict, target: str, dataset: str = "", explored: bool = False
) -> Markup | None:
    """Return the heat map of the bins' medians, or None without bins; bins that share a column show their largest
    median.
    """
    if not bins.num_rows:
        return None
    lanes = lanes_of(bins, ranking, COLUMNS)
    unit = unit_stated(bins)
    what = "largest median" if lanes.merged > 1 or len(lanes.ranks) > MOST_ROWS else "median"
    said = "; ".join(notes_of(lanes, clocks))
    edge = " Orange edge: kept for the causal analysis." if lanes.kept.any() else ""
    note = f"{said[:1].upper()}{said[1:]}. White: no launches.{edge}"
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


def _bin_names(lanes: Lanes) -> list[str]:
    first = [round(edge) for edge in lanes.edges[:-1]]
    return [f"bin {number}" if lanes.merged == 1 else f"bins {number}–{number + lanes.merged - 1}" for number in first]

"""How launches are distributed by each cause: a box for each level or third of it, chosen from a list of causes."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from causeway.core import formatting
from causeway.core.errors import CausewayError
from causeway.core.vocabulary import UNEXPLAINED
from causeway.plotting.interactive.look import compact, figure, label

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

MOST_CAUSES = 8
MOST_LEVELS = 8
"""A cause with more values than these is cut into thirds; names beyond them are one group."""
THIRDS = ("lowest third", "middle third", "highest third")


def distribution_by_cause(
    launches: "pd.DataFrame", contributions: Sequence[Mapping], units: Mapping[str, str], unit: str
) -> "go.Figure":
    """Return boxes of how much launches are above or below the mean of their configuration.

    Parameters
    ----------
    launches : DataFrame
        Rows of `features`, with a column for each cause.
    contributions : sequence of mapping
        Rows of the dataset's `contributions`, of which those with the largest share are drawn.
    units : mapping of str to str
        Of the columns of `launches`.
    unit : str
        Of the measured value.

    Raises
    ------
    CausewayError
        If there is no cause.
    """
    import plotly.graph_objects as go

    rows = sorted(contributions, key=lambda row: (-(row["variance_percent"] or 0.0), row["feature"]))
    columns = [row["feature"] if row["feature"] in launches else row["feature"].rpartition("=")[0] for row in rows]
    causes = [name for name in dict.fromkeys(columns) if name in launches and name != UNEXPLAINED][:MOST_CAUSES]
    if not causes:
        raise CausewayError("the search found no cause, so that there is nothing to group launches by")
    value = launches["signed_deviation"]
    name, size = formatting.time_unit(float(value.abs().max())) if unit == "ns" else (unit, 1.0)
    traces = []
    of_cause = []
    for cause in causes:
        groups, order = groups_of(launches[cause], units.get(cause, ""))
        for group in order:
            x = compact((value[groups == group] / size).to_numpy())
            box = go.Box(x=x, name=label(group), visible=cause == causes[0], boxpoints="outliers", marker={"size": 3})
            traces.append(box)
            of_cause.append(cause)
    buttons = [
        {
            "label": label(cause, 40),
            "method": "restyle",
            "args": [{"visible": [other == cause for other in of_cause]}],
        }
        for cause in causes
    ]
    menu = {"buttons": buttons, "x": 0, "xanchor": "left", "y": 1.02, "yanchor": "bottom"}
    x = {"title": f"deviation{f', {name}' if name else ''}"}
    words = "How far launches are above or below the mean of their configuration, by a cause."
    y = {"type": "category", "autorange": "reversed"}
    menus = [menu] if len(causes) > 1 else []
    return figure(traces, meta=words, xaxis=x, yaxis=y, showlegend=False, updatemenus=menus, margin={"t": 60})


def groups_of(values: "pd.Series", unit: str) -> tuple[np.ndarray, list[str]]:
    """Return the groups of a column.

    Parameters
    ----------
    values : Series, n_rows values
    unit : str

    Returns
    -------
    groups : ndarray of object, shape (n_rows,)
        The group of each value in words: its level, or the third that it is in.
    order : list of str
        The groups, from the lowest or most frequent one on.
    """
    import pandas as pd

    is_number = pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values)
    if values.nunique() <= MOST_LEVELS or not is_number:
        frequent = values.value_counts(sort=False).sort_index().sort_values(ascending=False, kind="stable")
        levels = list(frequent.index[:MOST_LEVELS])
        levels = sorted(levels) if is_number else levels
        words = {level: formatting.quantity(float(level), unit) if is_number else str(level) for level in levels}
        groups = values.map(words).astype(object).where(values.isin(levels), "other levels")
    else:
        thirds = (3 * values.rank(pct=True)).clip(upper=2.999) // 1  # equal values are in one third
        ends = values.groupby(thirds).agg(["min", "max"]).astype(float)
        words = {
            third: f"{THIRDS[int(third)]}: {formatting.quantity(low, unit)} to {formatting.quantity(high, unit)}"
            for third, low, high in ends.itertuples()
        }
        groups = thirds.map(words).astype(object)
    groups = groups.where(values.notna(), "none").to_numpy()
    return groups, [*dict.fromkeys(words.values()), *(group for group in ("other levels", "none") if group in groups)]

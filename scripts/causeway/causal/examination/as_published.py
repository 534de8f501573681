"""The graphs of arXiv 2510.18300, Figures 2, 3 and 5a, drawn as the paper says: one for each rank and kernel, one for
all kernels of a rank pooled as they are, from the most variable bins alone, with every number that was recorded.

The paper does not name its algorithm. Here it is causal-learn's BOSS with the target as the last column. The weights of
a graph's arrows are in proportion to their squared slopes and sum to what they explain of the variance. Nothing is
centred, corrected or left out, so that a kernel's size, or a rate that contains the time, can stand as a cause.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from causeway.causal.data.scopes import DATASET_SCOPE, IDENTITY
from causeway.causal.data.six_digits import six_digits
from causeway.causal.examination.context_graph import learn

MOST_COLUMNS = 30
"""Columns of a graph: those most correlated with the target, one for four launches at most."""

ROUNDING = 1e-6
"""Share of a column below which what others leave of it is rounding: the time over a constant stays."""


def published_rows(table: pa.Table, scopes: Sequence[str], target: str) -> list[dict]:
    """Return the arrows of every rank and scope, the largest weight first; a row without a feature for a graph without
    any.

    Parameters
    ----------
    table : Table
        Rows of `features.parquet`, all columns.
    scopes : sequence of str
        Kernel ids.
    target : str
        Its name: a counter of that name is no column of the graph.
    """
    kept = table.filter(pc.field("kept"))
    numbers = [
        field.name
        for field in table.schema
        if field.name not in (*IDENTITY, target) and pa.types.is_floating(field.type)
    ]
    frame = kept.select(["rank", "kernel", "target", *numbers]).to_pandas()
    found = []
    for rank in sorted(set(frame["rank"])):
        of_rank = frame[frame["rank"] == rank]
        for scope in (DATASET_SCOPE, *scopes):
            rows = of_rank if scope == DATASET_SCOPE else of_rank[of_rank["kernel"] == scope]
            arrows = published_arrows(rows[["target", *numbers]]) or [dict.fromkeys(("feature", "slope", "weight"))]
            found += [
                {
                    "rank": int(rank),
                    "scope": scope,
                    "launches": len(rows),
                    "feature": arrow["feature"],
                    "slope": arrow["slope"],
                    "contribution_percent": arrow["weight"],
                }
                for arrow in arrows
            ]
    return found


def published_arrows(frame: pd.DataFrame) -> list[dict]:
    """Return feature, slope in standard deviations, and weight in percent of the variance of each arrow into the
    target, the largest weight first.

    Parameters
    ----------
    frame : DataFrame
        A row for each launch; numeric columns, one of which is `target`.
    """
    values = frame.astype(float).replace([np.inf, -np.inf], np.nan)
    values = values.fillna(values.mean()).dropna(axis=1)
    values = values.loc[:, values.std() > 1e-9 * values.abs().max()]
    if "target" not in values:
        return []
    scores = (values - values.mean()) / values.std()
    strength = scores.drop(columns="target").corrwith(scores["target"])
    order = strength.abs().sort_values(ascending=False, kind="stable").index[: min(MOST_COLUMNS, len(scores) // 4)]
    names = [*order, "target"]
    edges = learn(scores[names].to_numpy(), names, [*[0] * len(order), 1], determined=ROUNDING)
    slopes = pd.Series({edge.source: edge.effect for edge in edges if edge.target == "target"}, dtype=float)
    squares = slopes**2
    weights = 100 * (slopes * strength[slopes.index]).sum() * squares / squares.sum()
    found = [
        {"feature": name, "slope": six_digits(slope), "weight": six_digits(weights[name])}
        for name, slope in slopes.items()
    ]
    return sorted(found, key=lambda arrow: (-arrow["weight"], arrow["feature"]))

"""What a cause may be set to: values that were observed, alone and together with the other causes."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from causeway.causal.discovery import Arrow, Evidence
from causeway.causal.rows import Column
from causeway.causal.signs import TARGET

MIN_SHARE = 0.02
"""A level counts as observed from this share of the launches."""
SUPPORT_ROWS = 1000
SUPPORT_SLACK = 0.5
"""Standard deviations beyond the usual distance to the nearest launch."""
LEVEL_APART = 5.0
"""Standard deviations that two levels of a category are apart."""
QUANTILES = {0.1: "10th percentile", 0.5: "median", 0.9: "90th percentile"}
NONE_OF = ("launches_in_flight", "transfers_in_flight", "h2d_bytes_in_flight", "d2h_bytes_in_flight", "d2d_bytes_in_flight",
           "p2p_bytes_in_flight")  # fmt: skip
"""Features that one would set to zero: nothing else in flight."""
NONE = "none"


@dataclass(frozen=True)
class Setting:
    """One value that a cause is set to: for each row the row whose value it takes, or -1 where the value lies outside what was observed."""

    before: str
    after: str
    like: np.ndarray


class Support:
    """What was observed of all causes together: an intervention may not combine them as no launch ever did.

    Parameters
    ----------
    values : list of ndarray
        Causes as candidates hold them.
    """

    def __init__(self, values: list[np.ndarray]) -> None:
        from scipy.spatial import cKDTree

        self.parts = [value[:, None].astype(float) if value.ndim == 1 else LEVEL_APART * value.astype(float) for value in values]
        self.points = np.hstack(self.parts)
        self.own = np.arange(0, len(self.points), max(1, len(self.points) // SUPPORT_ROWS))
        self.tree = cKDTree(self.points)
        near = self.tree.query(self.points[self.own], k=2)[0][:, 1]
        self.limit = float(np.quantile(near, 0.99)) + SUPPORT_SLACK

    def outside(self, likes: Mapping[int, np.ndarray], weight: np.ndarray) -> float:
        """Return the share of the launches that, with each cause of `likes` as in the rows given there, would be unlike any launch."""
        missing = np.any([like < 0 for like in likes.values()], axis=0)
        parts = [part[likes[place][self.own]] if place in likes else part[self.own] for place, part in enumerate(self.parts)]
        far = (self.tree.query(np.hstack(parts))[0] > self.limit) | missing[self.own]
        return float(weight[self.own][far].sum() / weight[self.own].sum())


def number_text(value: float, unit: str) -> str:
    """Return a value for people, three digits."""
    if unit == "bytes":
        size, name = next(((s, n) for s, n in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")) if abs(value) >= s), (1, "bytes"))
        return f"{value / size:,.3g} {name}"
    if unit == "Hz":
        size, name = next(((s, n) for s, n in ((1e9, "GHz"), (1e6, "MHz"), (1e3, "kHz")) if abs(value) >= s), (1, "Hz"))
        return f"{value / size:,.3g} {name}"
    if unit == "ratio":
        return f"{100 * value:.3g} %"
    if unit == "W":
        return f"{value:,.3g} W"
    if unit == "ns":
        size, name = next(((s, n) for s, n in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")) if abs(value) >= s), (1, "ns"))
        return f"{value / size:,.3g} {name}"
    return f"{value:,.0f}" if 100 <= abs(value) < 1e15 else f"{value:,.3g}"


def measured(column: Column, pick: np.ndarray) -> np.ndarray | None:
    """Return a measured column's values, None for text."""
    values = np.asarray(column.values)
    return None if values.dtype == object else values[pick].astype(float)


def settings_of(arrow: Arrow, evidence: Evidence, pick: np.ndarray) -> list[Setting]:
    """Return what a cause that varies within configurations may be set to."""
    candidate, weight = arrow.candidate, evidence.rows.weight[pick]
    values = candidate.values[pick]
    if values.ndim > 1:
        level = (values * np.arange(1, values.shape[1] + 1)).sum(axis=1).astype(int)
        shares = np.bincount(level, weight, len(candidate.levels)) / weight.sum()
        worst = (arrow.level,) if arrow.sign == "+" and arrow.sign_of == TARGET else ()
        first = {int(number): int(row) for number, row in zip(*np.unique(level, return_index=True), strict=True)}
        return [
            Setting("as it was", candidate.levels[number], np.full(pick.size, first[number]))
            for number in first
            if shares[number] >= MIN_SHARE and candidate.levels[number] not in ("other", *worst)
        ]
    raw = next((measured(column, pick) for column in evidence.columns if column.name == candidate.name), None)
    alone = np.unique(evidence.rows.configuration).size == 1
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weight[order]) / weight.sum()
    middle = None if raw is None else float(np.median(raw[np.isfinite(raw)]))
    before = "as it was" if middle is None else f"as it was (median {number_text(middle, candidate.unit)})"
    settings, seen = [], set()
    for share, name in QUANTILES.items():
        row = int(order[min(np.searchsorted(reached, share), order.size - 1)])
        if float(values[row]) in seen or (raw is not None and raw[row] == 0 and candidate.name in NONE_OF):
            continue
        seen.add(float(values[row]))
        exact = alone and raw is not None and np.isfinite(raw[row])
        after = f"{number_text(float(raw[row]), candidate.unit)} ({name})" if exact else f"the {name} within each configuration"
        settings.append(Setting(before, after, np.full(pick.size, row)))
    if candidate.name in NONE_OF and raw is not None:
        settings.append(Setting(before, NONE, like_zero(values, raw, evidence.rows.configuration[pick], weight)))
    return settings


def like_zero(values: np.ndarray, raw: np.ndarray, configuration: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return for each row one of its configuration where the feature is zero, -1 where too few are (or none is) for that to be observed."""
    like = np.full(values.size, -1)
    for number in np.unique(configuration):
        mine = np.flatnonzero(configuration == number)
        zero = mine[raw[mine] == 0]
        if weight[zero].sum() >= MIN_SHARE * weight[mine].sum():
            like[mine] = zero[0]
    return like

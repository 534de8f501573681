"""Statistics of levels for any part of the machine, as tests read them.

Space has levels, too: stream, device, rank, node, dataset. What is summed over streams or time stays exact; the levels
above are sums of those below. Quantiles are the library's own, from the counts of buckets.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from ddsketch import DDSketch

from causeway.core.errors import CausewayError
from causeway.levels.explorer import query
from causeway.levels.pyramid.sketch import Buckets, bucket_of

SPACE = ("dataset", "node", "rank", "device", "stream")
"""Levels of space, from the whole to the part."""
Location = tuple
"""Where in the machine: a tuple of as many parts as the level of space has, () for the dataset; an unknown node is
None.
"""


@dataclass(frozen=True)
class Statistics:
    """Exact statistics of the values of one metric in one cell, or of several put together.

    `total` and `squares` are in units of 1/scale and its square; `low` and `high` likewise.
    """

    count: int
    total: int
    squares: int
    low: int
    high: int
    scale: int = 1
    sketch: tuple[tuple[int, int], ...] = ()

    def __add__(self, other: "Statistics") -> "Statistics":
        counts = dict(self.sketch)
        for bucket, count in other.sketch:
            counts[bucket] = counts.get(bucket, 0) + count
        low = min(self.low, other.low)
        high = max(self.high, other.high)
        added = (self.count + other.count, self.total + other.total, self.squares + other.squares)
        return Statistics(*added, low, high, self.scale, tuple(sorted(counts.items())))

    @property
    def mean(self) -> float:
        """Arithmetic mean, correctly rounded."""
        return self.total / (self.count * self.scale)

    @property
    def variance(self) -> float | None:
        """Sample variance (ddof 1), correctly rounded; None below two values."""
        if self.count < 2:
            return None
        return (self.count * self.squares - self.total**2) / (self.count * (self.count - 1) * self.scale**2)


class Levels(query.Levels):
    """The levels of a dataset, with their statistics."""

    def statistics(
        self, width_ns: int, begin_ns: int, end_ns: int, metric: str, space: str = "dataset"
    ) -> dict[tuple[int, Location], Statistics]:
        """Return the statistics of a metric in the cells that begin in a window, for each part of the machine.

        Reads the row groups that the window touches, and no others.

        Parameters
        ----------
        width_ns : int
            One of `widths`.
        begin_ns, end_ns : int
            On the dataset's time line; the end is left out.
        metric : str
            One of `metrics`.
        space : str
            One of `SPACE`.

        Returns
        -------
        dict
            By begin of the cell (ns) and location; cells without a value are absent.
        """
        number, scale = self._metric(metric)
        rows = self.rows(width_ns, "statistics", begin_ns, end_ns)
        rows = {name: column[rows["metric"] == number] for name, column in rows.items()}
        sketches = self.rows(width_ns, "sketches", begin_ns, end_ns)
        chosen = sketches["metric"] == number
        pairs: dict[tuple[int, int], list[tuple[int, int]]] = {}
        names = ("start_ns", "lane", "bucket", "count")
        for start, lane, bucket, count in zip(*(sketches[name][chosen].tolist() for name in names), strict=True):
            pairs.setdefault((start, lane), []).append((bucket, count))
        location_of = self._locations(space)
        found: dict[tuple[int, Location], Statistics] = {}
        columns = ("start_ns", "lane", "count", "sum", "squares_0", "squares_1", "squares_2", "min", "max")
        for start, lane, count, total, low_limb, limb, high_limb, low, high in zip(
            *(rows[name].tolist() for name in columns), strict=True
        ):
            squares = low_limb + (limb << 32) + (high_limb << 64)
            one = Statistics(
                count=count,
                total=total,
                squares=squares,
                low=low,
                high=high,
                scale=scale,
                sketch=tuple(pairs.get((start, lane), ())),
            )
            key = (start, location_of(lane))
            found[key] = found[key] + one if key in found else one
        return found

    def busy(
        self, width_ns: int, begin_ns: int, end_ns: int, space: str = "dataset"
    ) -> dict[tuple[int, Location], dict[str, int]]:
        """Return for each cell and part of the machine the ns of its devices that were busy, by kind; see
        `statistics`. Raises `CausewayError` for a space of streams, which have no busy time of their own.
        """
        if space == "stream":
            raise CausewayError("busy times belong to devices; a stream has none of its own")
        rows = self.rows(width_ns, "busy", begin_ns, end_ns)
        location_of = self._locations(space)
        names = [name for name in rows if name not in ("start_ns", "lane")]
        found: dict[tuple[int, Location], dict[str, int]] = {}
        for start, lane, *amounts in zip(*(rows[name].tolist() for name in ("start_ns", "lane", *names)), strict=True):
            held = found.setdefault((start, location_of(lane)), dict.fromkeys(names, 0))
            for name, amount in zip(names, amounts, strict=True):
                held[name] += amount
        return found

    def quantiles(self, statistics: Statistics, shares: tuple[float, ...] = (0.25, 0.5, 0.75)) -> list[float] | None:
        """Return quantiles within the sketch's relative error, never outside the exact extremes; None for a metric
        with negative values.
        """
        if statistics.low < 0:
            return None
        error = self.index["sketch"]["relative_error"]
        buckets = Buckets(error)
        sketch = DDSketch(error)
        for bucket, count in statistics.sketch:
            sketch.add(0.0 if bucket == 0 else buckets.mapping.value(bucket - 1), count)
        values = [sketch.get_quantile_value(share) for share in shares]
        return [min(max(value, statistics.low), statistics.high) / statistics.scale for value in values]

    def _metric(self, name: str) -> tuple[int, int]:
        if name not in self.metrics:
            raise CausewayError(f"{self.folder}: there is no metric {name}; it has {', '.join(self.metrics)}")
        number = self.metrics.index(name)
        return number, self.index["metrics"][number]["scale"]

    def _locations(self, space: str) -> Callable[[int], Location]:
        depth = SPACE.index(space)
        names = SPACE[1 : depth + 1]
        locations = [tuple(lane[name] for name in names) for lane in self.lanes]
        return locations.__getitem__


def efficiency(busy: dict[str, int], width_ns: int, devices: int) -> dict[str, float]:
    """Return what the devices of a part of the machine did of the time they had, as shares that sum to 1.

    Parallel efficiency (POP) is `compute + exposed_communication` where communication kernels count as useful (flavour
    `device`), and `compute` alone where they do not (`comm_aware`).
    """
    whole = width_ns * devices
    shares = {name: busy[f"{name}_ns"] / whole for name in ("compute", "exposed_communication", "exposed_copy")}
    return shares | {"idle": 1 - sum(busy[f"{name}_ns"] for name in shares) / whole}


def buckets_of(buckets: Buckets, values: np.ndarray) -> np.ndarray:
    """Return the bucket of each value, int64, shape (n,)."""
    return np.array([bucket_of(value, buckets.upper, buckets.first) for value in values.tolist()], np.int64)

"""Read a window of a dataset at the level that its width asks for, for any part of the machine.

Space has levels, too: stream, device, rank, node, dataset. What is summed over streams or time stays exact; the levels
above are sums of those below.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from causeway.core.errors import CausewayError
from causeway.core.tables import open_table, read_json
from causeway.levels.pyramid.sketch import Buckets

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


class Levels:
    """The levels of a dataset.

    Parameters
    ----------
    folder : Path
        `results/{dataset}/levels`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)
        self.index = read_json(self.folder / "index.json")
        self.lanes: list[dict] = self.index["lanes"]
        self.widths: list[int] = [level["width_ns"] for level in self.index["levels"]]
        self.metrics: list[str] = [metric["name"] for metric in self.index["metrics"]]
        self.buckets = Buckets(self.index["sketch"]["relative_error"])

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
        scaled = self.buckets.quantiles(dict(statistics.sketch), shares)
        return [min(max(value, statistics.low), statistics.high) / statistics.scale for value in scaled]

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

    def rows(self, width_ns: int, name: str, begin_ns: int, end_ns: int) -> dict[str, np.ndarray]:
        """Return the columns, shape (n,) each, of the n rows of a level whose cells begin in a window."""
        level = next(level for level in self.index["levels"] if level["width_ns"] == width_ns)
        with open_table(self.folder / level["folder"] / f"{name}.parquet", f"level_{name}") as file:
            groups = [group for group in range(file.metadata.num_row_groups) if _touches(file, group, begin_ns, end_ns)]
            table = file.read_row_groups(groups, use_threads=False) if groups else file.schema_arrow.empty_table()
        columns = {field: _plain(table.column(field)) for field in table.column_names}
        inside = (columns["start_ns"] >= begin_ns) & (columns["start_ns"] < end_ns)
        return {field: column[inside] for field, column in columns.items()}

    def cells_in_use(self, width_ns: int, name: str, cells: int) -> np.ndarray:
        """Return which stretches of `cells` cells hold rows of a level.

        Returns
        -------
        ndarray of int64, shape (n,), ascending
            Numbers of the stretches, counted from the origin.
        """
        level = next(level for level in self.index["levels"] if level["width_ns"] == width_ns)
        found = np.empty(0, np.int64)
        with open_table(self.folder / level["folder"] / f"{name}.parquet", f"level_{name}") as file:
            for group in range(file.metadata.num_row_groups):
                start = _plain(file.read_row_group(group, columns=["start_ns"], use_threads=False).column(0))
                found = np.union1d(found, (start - self.index["origin_ns"]) // (width_ns * cells))
        return found

    def earliest_ns(self) -> int:
        """Return where the first cell of the finest level begins, ns on the dataset's time line; the origin where there
        is no cell. Copies may run before the first launch, which is the origin.
        """
        found = [self.index["origin_ns"]]
        finest = min(self.index["levels"], key=lambda level: level["width_ns"])
        for name in ("statistics", "busy"):
            with open_table(self.folder / finest["folder"] / f"{name}.parquet", f"level_{name}") as file:
                groups = [file.metadata.row_group(group) for group in range(file.metadata.num_row_groups)]
                found += [group.column(0).statistics.min for group in groups if group.num_rows]
        return min(found)


def _touches(file: pq.ParquetFile, group: int, begin_ns: int, end_ns: int) -> bool:
    statistics = file.metadata.row_group(group).column(0).statistics
    return statistics.min < end_ns and statistics.max >= begin_ns


def _plain(column: pa.ChunkedArray) -> np.ndarray:
    return column.to_numpy().astype(np.int64, copy=False)


def efficiency(busy: dict[str, int], width_ns: int, devices: int) -> dict[str, float]:
    """Return what the devices of a part of the machine did of the time they had, as shares that sum to 1.

    Parallel efficiency (POP) is `compute + exposed_communication` where communication kernels count as useful (flavour
    `device`), and `compute` alone where they do not (`comm_aware`).
    """
    whole = width_ns * devices
    shares = {name: busy[f"{name}_ns"] / whole for name in ("compute", "exposed_communication", "exposed_copy")}
    return shares | {"idle": 1 - sum(busy[f"{name}_ns"] for name in shares) / whole}

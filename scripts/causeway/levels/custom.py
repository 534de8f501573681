"""Metrics of the analyst's own, summed beside the built-in ones: an expression's value for each launch or transfer."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.errors import CausewayError
from causeway.levels.expressions import Expression, parse
from causeway.levels.sketch import Buckets
from causeway.levels.stream import Lanes, chunks, configurations_of
from causeway.levels.tower import Level, Sums
from causeway.tables import LAUNCH_SHAPE

SCALE = 1024
"""Values are summed as whole multiples of 1/1024, as sampled metrics are; one that is null counts nowhere."""
LARGEST = 1 << 52
LAUNCHES = ("duration_ns", "queue_ns", "rank", "device", "stream", "deviation_ns", "mean_ns", *LAUNCH_SHAPE)
TRANSFERS = ("duration_ns", "bytes", "copy_kind", "rank", "device", "stream")
COLUMNS = {
    "launches": dict.fromkeys(LAUNCHES, "number") | {"kernel_class": "text", "kernel": "text"},
    "transfers": dict.fromkeys(TRANSFERS, "number"),
}
"""What expressions may name, by table. Of a launch: its own columns, the mean of its configuration and its deviation from it, its launch
shape, its kernel's class and full name.
"""


Metric = tuple[str, str, Expression]
"""Name, table, expression."""


def expressions(metrics: Sequence[dict]) -> list[Metric]:
    """Return (name, table, expression) of metrics as `levels.metrics` of the configuration has them.

    Raises
    ------
    CausewayError
        For an expression that is not allowed, or two metrics of one name.
    """
    found = [(entry["name"], entry["table"], parse(entry["value"], COLUMNS[entry["table"]], f"levels: metrics: {entry['name']}"))
             for entry in metrics]  # fmt: skip
    names = [name for name, _, _ in found]
    if len(set(names)) < len(names):
        raise CausewayError(f"levels: metrics: two of them have one name, in {', '.join(names)}")
    return found


class Custom:
    """The sums of the analyst's metrics for one export; series = lane times metrics plus the metric's place."""

    def __init__(self, metrics: list[Metric], folder: Path, mean: np.ndarray, sums: tuple[Buckets, int, float, int]) -> None:
        self.metrics, self.mean = metrics, mean
        self._sums = {name: Sums(*sums) for name, _, _ in metrics}
        known = configurations_of(folder)
        self._shape = {
            column: np.array([np.nan if key is None or key[2][place] is None else key[2][place] for key in known], float)
            for place, column in enumerate(LAUNCH_SHAPE)
        }
        self._text = {
            column: np.array(["" if key is None else key[place] for key in known]) for place, column in ((0, "kernel_class"), (1, "kernel"))
        }

    def add_launches(self, batch: pa.RecordBatch, lane: np.ndarray) -> None:
        """Add the values of launches."""
        number = batch.column("configuration").to_numpy()

        def column(name: str) -> np.ndarray:
            if name in self._text:
                return self._text[name][number]
            if name in self._shape:
                return self._shape[name][number]
            if name == "mean_ns":
                return self.mean[number]
            if name == "deviation_ns":
                return batch.column("duration_ns").to_numpy() - self.mean[number]
            return batch.column(name).to_numpy(zero_copy_only=False)

        self._add("launches", batch.column("start_ns").to_numpy(), lane, column)

    def add_transfers(self, batch: pa.RecordBatch, lane: np.ndarray) -> None:
        """Add the values of transfers."""
        start = batch.column("start_ns").to_numpy()
        self._add("transfers", start, lane, lambda name: batch.column(name).to_numpy(zero_copy_only=False))

    def _add(self, table: str, start: np.ndarray, lane: np.ndarray, column) -> None:
        for place, (name, of, expression) in enumerate(self.metrics):
            if of != table:
                continue
            needed = {key: column(key) for key in sorted(expression.columns)} or {"start_ns": start}
            value = expression.of(needed)
            if (np.abs(value) > LARGEST / SCALE).any():
                raise CausewayError(
                    f"levels: metrics: {name}: {expression.text!r} gives {np.nanmax(np.abs(value)):.3g}, too large to be summed"
                )
            known = np.flatnonzero(~np.isnan(value))
            sums = self._sums[name]
            sums.grow((int(lane.max()) + 1) * len(self.metrics), 0)
            sums.gather(start[known], lane[known] * len(self.metrics) + place, np.rint(value[known] * SCALE).astype(np.int64))

    def finish(self) -> list[Level]:
        """Return the finest level of each metric."""
        return [sums.finish() for sums in self._sums.values()]


def measure(metrics: list[Metric], folder: Path, lanes: Lanes, mean: np.ndarray, sums: tuple[Buckets, int, float, int]) -> list[Level]:
    """Return the finest level of each metric of an export, in a pass over its tables of its own; see `Sums` for `sums`."""
    if not metrics:
        return []
    custom = Custom(metrics, folder, mean, sums)
    always = ["start_ns", "duration_ns", "rank", "device", "stream"]
    wanted = {table: {column for _, of, expression in metrics if of == table for column in expression.columns} for table in COLUMNS}
    if any(of == "launches" for _, of, _ in metrics):
        more = sorted(wanted["launches"] & {"queue_ns"})
        for batch in chunks(folder / "launches.parquet", "launches", [*always, "configuration", *more]):
            custom.add_launches(batch, lanes.of(batch))
    if any(of == "transfers" for _, of, _ in metrics) and (folder / "transfers.parquet").is_file():
        more = sorted(wanted["transfers"] & {"bytes", "copy_kind"})
        for batch in chunks(folder / "transfers.parquet", "transfers", [*always, *more]):
            custom.add_transfers(batch, lanes.of(batch))
    return custom.finish()

"""Readings of telemetry: what all readers of formats collect, in the columns time, device, metric and value."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import tzinfo
from pathlib import Path

import numpy as np
import pandas as pd

from causeway.telemetry.metric_names import TelemetryFormat, TelemetryMetric, ratios
from causeway.telemetry.text_values import UNKNOWN_TIME, times_of

CHUNK_ROWS = 1 << 15
"""Rows that are worked on at once."""
MOST_DEVICES = 4096
"""Devices of one source: beyond, rows are left out and counted, so that no file can fill the memory with names."""
MOST_METRICS = 64
MOST_NAMED = 20
"""Columns without a meaning here that a document names."""
SHOWN = 80
"""Characters of an example."""
FEWEST_GAPS = 8
"""Intervals between readings by which bursts are told."""
BURST = 0.1
"""Share of the time that the shorter half of the intervals takes up at most where readings come in bursts: near a half
where one device is read at a steady rate, a few milliseconds of each period where several are.
"""
PAUSES = 0.95
"""Intervals beyond this quantile are shortened to it: the recording was interrupted there."""
MOST_RATIO = 1.1
"""A larger utilisation or activity is damage: DCGM gives some of thousands of percent and of 2^32 - 1. Those that are
measured come out slightly above 1 at times.
"""
LONGEST_NAME = 200
"""Characters of the names of a device."""


@dataclass(frozen=True, kw_only=True, order=True)
class SourceDevice:
    """A device as a source names it: its node, its index, else its bus address, and its UUID, each empty where the
    source does not say.
    """

    node: str = ""
    index: str = ""
    uuid: str = ""


@dataclass(kw_only=True)
class Readings:
    """What a source holds within a window of time.

    Parameters
    ----------
    low_ns, high_ns : int
        The window, UTC; readings outside are counted and left out.
    zone : tzinfo
        Of times without an offset.
    node, device : str
        Of rows that do not say.

    Attributes
    ----------
    devices : dict of SourceDevice to int
    metrics : dict of str to int
    rows, outside : int
        Rows with data, and readings outside of the window.
    bad : dict of str to list
        By kind of defect: how many rows or values, and the first example.
    ignored : dict of str to None
        Columns that have no meaning here, the first `MOST_NAMED`.
    parts : list of tuple of ndarray, shape (n,)
        Time, device, metric and value of what was added last.
    """

    low_ns: int
    high_ns: int
    zone: tzinfo
    node: str = ""
    device: str = ""
    devices: dict[SourceDevice, int] = field(default_factory=dict)
    metrics: dict[str, int] = field(default_factory=dict)
    rows: int = 0
    outside: int = 0
    bad: dict[str, list] = field(default_factory=dict)
    ignored: dict[str, None] = field(default_factory=dict)
    parts: list[tuple[np.ndarray, ...]] = field(default_factory=list)

    def note(self, kind: str, count: int, example: object) -> None:
        """Count defects of a kind; the first example is kept, without characters that cannot be shown."""
        if count:
            text = "".join(c if c.isprintable() else " " for c in str(example)[:SHOWN]).strip()
            self.bad.setdefault(kind, [0, text])[0] += int(count)

    def ignore(self, column: str) -> None:
        """Note a column that has no meaning here."""
        if len(self.ignored) < MOST_NAMED:
            self.ignored[column[:SHOWN]] = None

    def add(self, rows: pd.DataFrame, form: TelemetryFormat, metrics: dict[str, TelemetryMetric]) -> None:
        """Take rows of text.

        Parameters
        ----------
        rows : DataFrame of str
            The columns are `time` (or those of the format), and those of `metrics`; node, device and UUID where there
            are any.
        form : TelemetryFormat
        metrics : dict of str to TelemetryMetric
            By column.
        """
        self.rows += len(rows)
        times = times_of(_first(rows, ("time", *form.time)), self.zone)
        timed = times != UNKNOWN_TIME
        if not timed.all():
            example = _first(rows, ("time", *form.time)).iloc[int(np.flatnonzero(~timed)[0])]
            self.note("no_time", int((~timed).sum()), example)
        inside = timed & (times >= self.low_ns) & (times <= self.high_ns)
        self.outside += int((timed & ~inside).sum())
        kept = rows[inside]
        if not len(kept):
            return
        device = self._devices(kept, form)
        for column, metric in metrics.items():
            by_name, bad = metric.values(kept[column])
            if bad.any():
                self.note("no_number", int(bad.sum()), kept[column].iloc[int(np.flatnonzero(bad)[0])])
            for name, values in by_name.items():
                self._keep(times[inside], device, name, values)

    def add_long(
        self, rows: pd.DataFrame, form: TelemetryFormat, metric_of: Callable[[str], TelemetryMetric | None]
    ) -> None:
        """Take rows of one reading each, with the columns metric and value; `metric_of` says what a name means, if
        anything.
        """
        for raw, of_metric in rows.groupby("metric", sort=False):
            if (metric := metric_of(str(raw))) is None:
                self.ignore(str(raw))
            else:
                self.add(of_metric, form, {"value": metric})

    def _devices(self, rows: pd.DataFrame, form: TelemetryFormat) -> np.ndarray:
        """Return the number of each row's device, -1 beyond the bound."""
        numbered = self.device or not rows.columns.intersection(form.device).empty
        index = form.device if numbered else form.bus
        columns = {"node": (form.node, self.node), "index": (index, self.device), "uuid": (form.uuid, "")}
        keys = pd.DataFrame({name: _first(rows, *choice) for name, choice in columns.items()})
        keys["index"] = keys["index"].str.strip().str.lower().str.removeprefix("card").str.removeprefix("gpu")
        groups = keys.groupby(list(keys.columns), sort=False, dropna=False).ngroup().to_numpy()
        first = np.unique(groups, return_index=True)[1]
        number = np.empty(first.size, np.int64)
        for group, row in enumerate(first.tolist()):
            device = SourceDevice(**{name: str(text).strip()[:LONGEST_NAME] for name, text in keys.iloc[row].items()})
            if device in self.devices or len(self.devices) < MOST_DEVICES:
                number[group] = self.devices.setdefault(device, len(self.devices))
            else:
                number[group] = -1
                self.note("too_many_devices", int((groups == group).sum()), device.index)
        return number[groups]

    def _keep(self, times: np.ndarray, device: np.ndarray, name: str, values: np.ndarray) -> None:
        """Keep the values of one metric that are there."""
        if name not in self.metrics and len(self.metrics) >= MOST_METRICS:
            self.note("too_many_metrics", times.size, name)
            return
        if name in ratios() and (over := values > MOST_RATIO).any():
            self.note("impossible_ratio", int(over.sum()), float(values[over][0]))
            values = np.where(over, np.nan, values)
        there = np.isfinite(values) & (device >= 0)
        if there.any():
            code = self.metrics.setdefault(name, len(self.metrics))
            self.parts.append((times[there], device[there], np.full(int(there.sum()), code), values[there]))

    def take_turns(self) -> bool:
        """Return whether readings come in bursts, as where a tool writes one row of each device at a time."""
        if not self.parts:
            return False
        time, device, metric, _ = (np.concatenate(part) for part in zip(*self.parts, strict=True))
        series = device * MOST_METRICS + metric
        gaps = np.sort(np.diff(np.unique(time[series == np.bincount(series).argmax()])))
        if gaps.size < FEWEST_GAPS:
            return False
        gaps = np.minimum(gaps, np.quantile(gaps, PAUSES, method="lower"))
        return bool(gaps[: gaps.size // 2].sum() < BURST * gaps.sum())

    def columns(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return time (int64, ns, UTC), device, metric (int64, their numbers) and value (float64) of all readings, each
        of shape (n,), in order of metric, device and time; of readings of one time the first that was written.
        """
        if not self.parts:
            return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
        time, device, metric, value = (np.concatenate(part) for part in zip(*self.parts, strict=True))
        order = np.lexsort((time, device, metric))
        time, device, metric, value = (column[order] for column in (time, device, metric, value))
        new = np.ones(time.size, bool)
        new[1:] = (np.diff(time) != 0) | (np.diff(device) != 0) | (np.diff(metric) != 0)
        self.note("same_time", int((~new).sum()), "")
        return time[new], device[new], metric[new], value[new]


def _first(rows: pd.DataFrame, names: tuple[str, ...], default: str = "") -> pd.Series:
    """Return the first of some columns that is there, else a column of the default."""
    for name in names:
        if name in rows.columns:
            return rows[name]
    return pd.Series(default, index=rows.index, dtype=str)


def frames(rows: Iterator[list[str]], columns: list[str], readings: Readings, path: Path) -> Iterator[pd.DataFrame]:
    """Yield rows as frames of text with the given columns, of bounded size; a row of another length than the header is
    counted as bad.
    """
    held: list[list[str]] = []
    for row in rows:
        if len(row) == len(columns):
            held.append(row)
        else:
            readings.note("wrong_length", 1, f"{path.name}: {','.join(row)}")
        if len(held) == CHUNK_ROWS:
            yield pd.DataFrame(held, columns=columns, dtype=str)
            held = []
    if held:
        yield pd.DataFrame(held, columns=columns, dtype=str)

"""Metrics of telemetry under our names: the map `config/columns/telemetry.yaml`, and one's values from text."""

import functools
import re
from dataclasses import dataclass

import numpy as np
import pandas as pd

from causeway.core.files.yaml_files import column_map
from causeway.telemetry.text_values import flags_of, masks_of, numbers_of, states_of

OWN_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
"""What a metric of the plain long form may be called."""


@dataclass(frozen=True, kw_only=True)
class TelemetryMetric:
    """A metric of a format: our name, the factor to its unit, how its text is read, and the number that stands for none
    (see the map).
    """

    name: str
    factor: float = 1.0
    kind: str = "number"
    absent: float | None = None

    def values(self, texts: pd.Series) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Return values by our name (float, shape (n,), NaN where there is none), and where the text is bad (bool)."""
        if self.kind == "reasons":
            masks, bad = masks_of(texts)
            return {
                name: np.where(masks < 0, np.nan, (masks & bit) // bit)
                for bit, name in column_map("telemetry")["reasons"].items()
            }, bad
        numbers, bad = {"number": numbers_of, "flag": flags_of, "state": states_of}[self.kind](texts)
        numbers = np.where(numbers == self.absent, np.nan, numbers) if self.absent is not None else numbers
        # a division by 100 is exact where a product with .01 is not
        return {self.name: numbers * self.factor if self.factor >= 1 else numbers / round(1 / self.factor)}, bad


@dataclass(frozen=True, kw_only=True)
class TelemetryFormat:
    """The columns of a format: raw names, in small letters, of time, node, device, bus address and UUID, and its
    metrics by raw name.
    """

    time: tuple[str, ...]
    node: tuple[str, ...]
    device: tuple[str, ...]
    bus: tuple[str, ...]
    uuid: tuple[str, ...]
    metrics: dict[str, TelemetryMetric]


@functools.cache
def format_of(name: str) -> TelemetryFormat:
    """Return the columns of a format.

    Raises
    ------
    KeyError
        If the map has no such format.
    """
    entry = column_map("telemetry")["formats"][name]
    keys = {key: tuple(raw.lower() for raw in entry.get(key, ())) for key in ("time", "node", "device", "bus", "uuid")}
    return TelemetryFormat(
        metrics={raw.lower(): TelemetryMetric(**metric) for raw, metric in entry["metrics"].items()}, **keys
    )


@functools.cache
def ratios() -> frozenset[str]:
    """Return our names of the map's metrics that lie between 0 and 1."""
    names = {metric.name for name in column_map("telemetry")["formats"] for metric in format_of(name).metrics.values()}
    return frozenset(name for name in names if name.endswith("_ratio"))


def raw_name(text: str) -> str:
    """Return a column's name as the map has it, without the unit in brackets and in small letters."""
    return re.sub(r"\s*\[[^\]]*\]\s*$", "", text).strip().lower()


def own_metric(name: str) -> TelemetryMetric | None:
    """Return the metric of a name in the plain long form: one of ours, or one that any format of the map knows; None
    for a text that is no name.
    """
    for formats in column_map("telemetry")["formats"]:
        if (metric := format_of(formats).metrics.get(name.strip().lower())) is not None:
            return metric
    plain = name.strip().lower()
    return TelemetryMetric(name=plain) if OWN_NAME.fullmatch(plain) else None

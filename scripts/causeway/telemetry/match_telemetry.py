"""Telemetry of a site on a dataset's time line: `telemetry.parquet` in the form of samples, and `telemetry.json`."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from causeway.core.errors import CausewayError, ExportError
from causeway.core.logs import LOG
from causeway.core.tables import SCHEMAS, sha256_of, write_json, write_table
from causeway.core.vocabulary import STALE
from causeway.telemetry.clock_skew import MAX_SKEW_S
from causeway.telemetry.device_matching import DatasetDevice, SourceDevice, TimedExport, match_devices, timed_exports
from causeway.telemetry.node_clocks import DeviceReadings, NodeSkew, sampling_interval, skew_of_node
from causeway.telemetry.readings import Readings
from causeway.telemetry.telemetry_files import read_source
from causeway.telemetry.text_values import zone_of

BESIDE_NS = 2 * MAX_SKEW_S * 1_000_000_000
"""Readings this long before and after a dataset are read: what a skew may bring into it, and what shows its edges."""


@dataclass(frozen=True, kw_only=True)
class TelemetrySource:
    """A row of the sheet of telemetry: its source as written there, its path, and the other columns."""

    source: str
    path: Path
    node: str = ""
    device: str = ""
    format: str = "auto"
    time_zone: str = ""


KEYS = ["time_ns", "rank", "device", "metric"]
"""What tells the rows of `telemetry.parquet` apart, and their order."""


def match_telemetry(
    dataset: str,
    folders: Sequence[Path],
    clocks: Mapping,
    nodes: Mapping[str, str],
    sources: Sequence[TelemetrySource],
    table: Path,
    document: Path,
) -> dict:
    """Write a dataset's telemetry, on its time line.

    Parameters
    ----------
    dataset : str
    folders : sequence of Path
        Folders of tables of its exports.
    clocks : mapping
        `clocks.json`.
    nodes : mapping of str to str
        Node of each export as in the sheet.
    sources : sequence of TelemetrySource
        In the order of the sheet; of readings of one device, metric and time those of the first count.
    table, document : Path
        Get the rows, in order of time, rank, device and metric, and what is known of them.

    Returns
    -------
    dict
        As `config/schemas/telemetry.schema.json` describes it.
    """
    exports = timed_exports(folders, clocks, nodes)
    placed = [export for export in exports if export.session_start_ns is not None]
    per_source = [_of_source(source, placed) for source in sources]
    rows = _joined([rows for _, parts in per_source for rows in parts])
    metrics = sorted(set(rows["metric"]))
    report = {
        "dataset": dataset,
        "session_starts": len(placed),
        "exports": len(exports),
        "sources": [entry for entry, _ in per_source],
        "metrics": metrics,
        "rows": len(rows),
    }
    _write(rows, table)
    write_json(report, document, schema="telemetry")
    return report


def _of_source(source: TelemetrySource, exports: Sequence[TimedExport]) -> tuple[dict, list[pd.DataFrame]]:
    """Return a source's entry of the document, and its rows."""
    entry: dict[str, Any] = {
        "source": source.source,
        "format": source.format,
        "time_zone": source.time_zone or "UTC (assumed)",
        "error": None,
        "rows": 0,
        "readings": 0,
        "outside": 0,
        "unmatched_readings": 0,
        "bad": [],
        "ignored": [],
        "devices": [],
        "clocks": [],
    }
    starts = [(export.session_start_ns or 0) + export.first_ns for export in exports]  # all of them have one here
    ends = [(export.session_start_ns or 0) + export.last_ns for export in exports]
    readings = Readings(
        low_ns=min(starts, default=0) - BESIDE_NS,
        high_ns=max(ends, default=-1) + BESIDE_NS,
        zone=UTC,
        node=source.node,
        device=source.device,
    )
    try:
        readings.zone = zone_of(source.time_zone)
        entry["format"] = read_source(source.path, source.format, readings)
    except ExportError as error:
        LOG.warning("%s", error)
        return entry | {"error": {**error.as_dict(), "source": source.source}}, []
    except CausewayError as error:
        LOG.warning("%s", error)
        part = {"source": source.source, "found": str(error), "expected": "a time zone", "advice": "Correct the sheet."}
        return entry | {"error": part}, []
    entry |= {"sha256": sha256_of(source.path), "bytes": source.path.stat().st_size}
    time, device, metric, value = readings.columns()
    matched, unmatched = match_devices(list(readings.devices), exports) if exports else ({}, {})
    names = list(readings.metrics)
    by_number = {index: source_device for source_device, index in readings.devices.items()}
    series = _series(time, device, metric, value, names)
    parts, clocks, used = _placed(series, by_number, matched, {export.name: export for export in exports})
    LOG.info("%s: %d rows, %d readings of %d devices", source.source, readings.rows, time.size, len(by_number))
    bad = [{"kind": kind, "count": count, "example": text} for kind, (count, text) in sorted(readings.bad.items())]
    return entry | {
        "rows": readings.rows,
        "readings": sum(map(len, parts)),
        "outside": readings.outside,
        "unmatched_readings": int(sum(times.size for (code, _), (times, _) in series.items() if code not in used)),
        "bad": bad,
        "ignored": list(readings.ignored),
        "devices": [_device(by_number[code], code, matched, unmatched) for code in sorted(by_number)],
        "clocks": clocks,
    }, parts


def _device(
    source_device: SourceDevice,
    number: int,
    matched: Mapping[SourceDevice, tuple[DatasetDevice, str]],
    unmatched: Mapping[SourceDevice, str],
) -> dict:
    """Return the entry of a source's device; the names of unknown machines stay in the source."""
    device, rests_on = matched.get(source_device, (None, None))
    return {
        "number": number,
        "export": device and device.export,
        "rank": device and device.rank,
        "device": device and device.device,
        "matched_by": rests_on,
        "reason": None if device else unmatched.get(source_device, "no_session_start"),
    }


def _series(
    time: np.ndarray, device: np.ndarray, metric: np.ndarray, value: np.ndarray, names: Sequence[str]
) -> dict[tuple[int, str], tuple[np.ndarray, np.ndarray]]:
    """Return times and values by device and metric of columns that are in order of these."""
    cuts = np.flatnonzero((np.diff(device) != 0) | (np.diff(metric) != 0)) + 1
    bounds = [0, *cuts.tolist(), time.size] if time.size else [0]
    return {(int(device[low]), names[metric[low]]): (time[low:high], value[low:high]) for low, high in pairwise(bounds)}


def _placed(
    series: Mapping[tuple[int, str], tuple[np.ndarray, np.ndarray]],
    by_number: Mapping[int, SourceDevice],
    matched: Mapping[SourceDevice, tuple[DatasetDevice, str]],
    exports: Mapping[str, TimedExport],
) -> tuple[list[pd.DataFrame], list[dict], set[int]]:
    """Return the rows of matched devices on the dataset's time line, the clocks by node, and the devices' numbers."""
    nodes: dict[str, list[int]] = {}
    for number, source_device in by_number.items():
        if source_device in matched:
            nodes.setdefault(exports[matched[source_device][0].export].node, []).append(number)
    rows = []
    clocks = []
    for node, numbers in sorted(nodes.items()):
        own = [
            DeviceReadings(
                device=matched[by_number[number]][0],
                series={name: pair for (code, name), pair in series.items() if code == number},
            )
            for number in numbers
        ]
        node_skew = skew_of_node(own, exports)
        clocks.append(_clock(node, node_skew))
        shift = node_skew.skew.skew_ns or 0
        for readings in own:
            device = readings.device
            for name, (times, values) in readings.series.items():
                rows.append(_on_time_line(exports[device.export], device, name, times - shift, values))
    return rows, clocks, {number for numbers in nodes.values() for number in numbers}


def _clock(node: str, node_skew: NodeSkew) -> dict:
    """Return the entry of a node: how late the readings are, by its clock."""
    skew = node_skew.skew
    return asdict(skew) | {
        "node": node or None,
        "applied_ns": skew.skew_ns or 0,
        "metric": node_skew.metric,
        "basis": node_skew.basis,
        "reason": skew.reason or None,
    }


def _on_time_line(
    export: TimedExport, device: DatasetDevice, name: str, utc: np.ndarray, values: np.ndarray
) -> pd.DataFrame:
    """Return the readings of a metric within its export, and the last ones before it."""
    own = utc - (export.session_start_ns or 0)
    lead = STALE * (sampling_interval(utc) or 0)  # a launch takes the last reading before it
    kept = (own >= export.first_ns - lead) & (own <= export.last_ns)
    columns = {"time_ns": export.clock.aligned(own[kept]), "rank": device.rank, "device": device.device, "metric": name}
    return pd.DataFrame({**columns, "value": values[kept]})


def _joined(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return all rows in order of time, rank, device and metric; of those alike in these, the first."""
    if not parts:
        return pd.DataFrame(columns=[*KEYS, "value"])
    return pd.concat(parts, ignore_index=True).sort_values(KEYS, kind="stable").drop_duplicates(KEYS)


def _write(rows: pd.DataFrame, path: Path) -> None:
    """Write `telemetry.parquet`."""
    columns = {name: pa.array(rows[name]) for name in SCHEMAS["samples"].names if name != "metric"}
    columns["metric"] = pa.array(rows["metric"], pa.string()).dictionary_encode()
    write_table(pa.table(columns), path, "samples")

"""The designer's tables: what a release says, cell by cell and application by application, each with its interval."""

import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.fleet.catalogue import Catalogue
from causeway.fleet.estimates import BLOCKS, CONFIDENCE, Estimates, beyond_noise, estimate, median_of, resource_totals
from causeway.fleet.layout import DURATION_EDGES_NS, QUARTERS, RESOURCES, VARIABILITY_EDGES, Layout
from causeway.fleet.noise import interval
from causeway.fleet.release import Release
from causeway.tables import write_table

MIDDLES = np.array([0.125, 0.375, 0.625, 0.875])
"""Middles of the four bins of shares."""


def labels(name: str, columns: int) -> list[str]:
    """Return what a section's columns are called."""
    if name == "durations":
        return _between([f"{edge / 1000:g} us" for edge in DURATION_EDGES_NS.tolist()])
    if name in ("occupancy", "efficiency"):
        return _between([f"{edge:g}" for edge in QUARTERS])
    if name == "variability":
        return _between([f"{edge:g}" for edge in VARIABILITY_EDGES])
    if name == "kernels":
        return ["other kernels", *(f"kernel {rank}" for rank in range(1, columns))]
    return list(RESOURCES)


def _between(edges: list[str]) -> list[str]:
    return [f"below {edges[0]}", *(f"{low} to {high}" for low, high in itertools.pairwise(edges)), f"from {edges[-1]}"]


def write(release: Release, scales: dict[str, float], layout: Layout, catalogue: Catalogue, cells: Path, applications: Path) -> None:
    """Write the tables `fleet_estimates` and `fleet_applications`."""
    found = estimate(release, scales, layout, catalogue.family_of)
    write_table(_cells(found, scales, layout, catalogue), cells, "fleet_estimates", metadata={"confidence": str(CONFIDENCE)})
    write_table(_applications(found, release, scales, layout, catalogue), applications, "fleet_applications")


def _cells(found: Estimates, scales: dict[str, float], layout: Layout, catalogue: Catalogue) -> pa.Table:
    columns: dict[str, list] = {
        field: [] for field in ("section", "application", "column", "count", "share", "share_low", "share_high", "released")
    }
    for name in (name for name in BLOCKS if name in found.shares):
        section, half = layout.by_name[name], found.half.get(name, 0.0)
        totals = np.maximum(found.raw[name].sum(1), 1)
        bar = beyond_noise(scales[name], 1)
        for row, entry in enumerate(catalogue.applications):
            shares = found.shares[name][row]
            for column, label in enumerate(labels(name, section.columns)):
                count, share = float(found.raw[name][row, column]), float(shares[column])
                known, wide = not np.isnan(share), half / totals[row]
                columns["section"].append(name)
                columns["application"].append(entry.name)
                columns["column"].append(label)
                columns["count"].append(count)
                columns["share"].append(share if known else None)
                columns["share_low"].append(max(min(share, count / totals[row] - wide), 0.0) if known else None)
                columns["share_high"].append(min(max(share, count / totals[row] + wide), 1.0) if known else None)
                columns["released"].append(count > bar)
    return pa.table(
        columns,
        schema=pa.schema(
            [
                (n, pa.string() if n in ("section", "application", "column") else pa.bool_() if n == "released" else pa.float64())
                for n in columns
            ]
        ),
    )


def _applications(found: Estimates, release: Release, scales: dict[str, float], layout: Layout, catalogue: Catalogue) -> pa.Table:
    n = layout.applications
    reports = found.reports[:n]
    half = 1.96 * found.reports_sd[:n] if int(release.released.sum()) > 1 else np.full(n, interval(scales["applications"], CONFIDENCE))
    half = half if scales["applications"] else np.zeros(n)
    columns = {
        "application": [entry.name for entry in catalogue.applications],
        "family": [entry.family for entry in catalogue.applications],
        "version": [entry.version for entry in catalogue.applications],
        "reports": reports,
        "reports_low": np.maximum(reports - half, 0),
        "reports_high": reports + half,
        "released": found.seen[:n],
    }

    def shown(values: np.ndarray | None) -> pa.Array:
        if values is None:
            return pa.nulls(n, pa.float64())
        return pa.array(values, mask=~found.seen[:n] | np.isnan(values))

    shares = found.shares
    columns["median_duration_ns"] = shown(median_of(shares["durations"]) if "durations" in shares else None)
    columns["busy"] = shown(shares["efficiency"] @ MIDDLES if "efficiency" in shares else None)
    columns["occupancy"] = shown(shares["occupancy"] @ MIDDLES if "occupancy" in shares else None)
    columns["variable_share"] = shown(shares["variability"][:, 2:].sum(1) if "variability" in shares else None)
    totals = resource_totals(found, layout) if "resources" in found.half else {}
    for name in RESOURCES:
        value, wide = totals.get(name, (None, 0.0))
        columns[name] = shown(value)
        columns[f"{name}_low"] = shown(None if value is None else np.maximum(value - wide, 0))
        columns[f"{name}_high"] = shown(None if value is None else value + wide)
    return pa.table(columns)

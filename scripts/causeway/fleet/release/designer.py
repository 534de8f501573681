"""The designer's tables: estimates from a release by cell and by application, each with its interval."""

import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.core.tables import SCHEMAS, write_table
from causeway.fleet.attribution.catalogue import Catalogue
from causeway.fleet.protection.noise import noise_half_width
from causeway.fleet.release.estimates import (
    CONFIDENCE,
    DISTRIBUTIONS,
    Estimates,
    binned_median,
    detection_threshold,
    estimate,
    resource_totals,
)
from causeway.fleet.release.release import Release
from causeway.fleet.report_layout import DURATION_EDGES_NS, QUARTERS, RESOURCES, VARIABILITY_EDGES, ReportLayout

BIN_CENTRES = np.array([0.125, 0.375, 0.625, 0.875])
"""Centres of the four bins between 0 and 1; see `QUARTERS`."""


def labels(name: str, columns: int) -> list[str]:
    """Return the labels of a section's columns."""
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


def write(
    release: Release,
    scales: dict[str, float],
    layout: ReportLayout,
    catalogue: Catalogue,
    cells: Path,
    applications: Path,
) -> None:
    """Write the tables `fleet_estimates` (to `cells`) and `fleet_applications`.

    Parameters
    ----------
    release : Release
    scales : dict of section to float
        See `aggregate.ReleasedDay`.
    layout : ReportLayout
    catalogue : Catalogue
    cells, applications : Path
    """
    found = estimate(release, scales, layout, catalogue.family_of)
    write_table(
        _cells(found, scales, layout, catalogue), cells, "fleet_estimates", metadata={"confidence": str(CONFIDENCE)}
    )
    write_table(_applications(found, release, scales, layout, catalogue), applications, "fleet_applications")


def _cells(found: Estimates, scales: dict[str, float], layout: ReportLayout, catalogue: Catalogue) -> pa.Table:
    """Return the table of cells: a row per section, application and column, in this order."""
    rows = []
    for name in (name for name in DISTRIBUTIONS if name in found.distributions):
        half_width = found.half_width.get(name, 0.0)
        totals = np.maximum(found.noisy[name].sum(1), 1)
        threshold = detection_threshold(scales[name], 1)
        names = labels(name, layout.by_name[name].columns)
        for index, entry in enumerate(catalogue.applications):
            for column, label in enumerate(names):
                count = float(found.noisy[name][index, column])
                share = float(found.distributions[name][index, column])
                observed = count / totals[index]
                margin = half_width / totals[index]
                known = not np.isnan(share)
                rows.append(
                    {
                        "section": name,
                        "application": entry.name,
                        "column": label,
                        "count": count,
                        "share": share if known else None,
                        "share_low": max(min(share, observed - margin), 0.0) if known else None,
                        "share_high": min(max(share, observed + margin), 1.0) if known else None,
                        "released": count > threshold,
                    }
                )
    return pa.Table.from_pylist(rows, schema=SCHEMAS["fleet_estimates"])


def _applications(
    found: Estimates, release: Release, scales: dict[str, float], layout: ReportLayout, catalogue: Catalogue
) -> pa.Table:
    n = layout.applications
    reports = found.reports[:n]
    half_width = np.zeros(n)
    if scales["applications"] and int(release.released.sum()) > 1:
        half_width = 1.96 * found.reports_sd[:n]  # a sum of many windows' noise is nearly normal
    elif scales["applications"]:
        half_width = np.full(n, noise_half_width(scales["applications"], CONFIDENCE))
    columns = {
        "application": [entry.name for entry in catalogue.applications],
        "family": [entry.family for entry in catalogue.applications],
        "version": [entry.version for entry in catalogue.applications],
        "reports": reports,
        "reports_low": np.maximum(reports - half_width, 0),
        "reports_high": reports + half_width,
        "released": found.detected[:n],
    }

    def shown(values: np.ndarray | None) -> pa.Array:
        if values is None:
            return pa.nulls(n, pa.float64())
        return pa.array(values, mask=~found.detected[:n] | np.isnan(values))

    shares = found.distributions
    columns["median_duration_ns"] = shown(binned_median(shares["durations"]) if "durations" in shares else None)
    columns["busy"] = shown(shares["efficiency"] @ BIN_CENTRES if "efficiency" in shares else None)
    columns["occupancy"] = shown(shares["occupancy"] @ BIN_CENTRES if "occupancy" in shares else None)
    columns["variable_share"] = shown(shares["variability"][:, 2:].sum(1) if "variability" in shares else None)
    totals = resource_totals(found, layout) if "resources" in found.half_width else {}
    for name in RESOURCES:
        value, half = totals.get(name, (None, 0.0))
        columns[name] = shown(value)
        columns[f"{name}_low"] = shown(None if value is None else np.maximum(value - half, 0))
        columns[f"{name}_high"] = shown(None if value is None else value + half)
    return pa.table(columns)

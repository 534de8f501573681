"""The designer's tables: estimates from a release by cell and by application, each with its interval."""

import itertools
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from causeway.core.tables import SCHEMAS, write_table
from causeway.fleet.attribution.catalogue import Catalogue
from causeway.fleet.release.cell_noise import CONFIDENCE, CellNoise
from causeway.fleet.release.count_intervals import interval_of_given, median_bins, share_intervals
from causeway.fleet.release.estimates import (
    DISTRIBUTIONS,
    Estimates,
    binned_median,
    estimate,
    resource_totals,
)
from causeway.fleet.release.release import Release
from causeway.fleet.report_layout import DURATION_EDGES_NS, QUARTERS, RESOURCES, VARIABILITY_EDGES, ReportLayout

BIN_CENTRES = np.array([0.125, 0.375, 0.625, 0.875])
"""Centres of the four bins between 0 and 1; see `QUARTERS`."""
HALF_BIN = 0.125
"""Half the width of such a bin: a mean of centres is off by this much at most."""
VARIABLE = np.array([0.0, 0.0, 1.0, 1.0])
"""The bins of variability that count as variable; see `VARIABILITY_EDGES`."""


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
    noise: Mapping[str, CellNoise],
    layout: ReportLayout,
    catalogue: Catalogue,
    cells: Path,
    applications: Path,
) -> None:
    """Write the tables `fleet_estimates` (to `cells`) and `fleet_applications`.

    Parameters
    ----------
    release : Release
    noise : mapping of section to CellNoise
        See `aggregate.ReleasedDay`.
    layout : ReportLayout
    catalogue : Catalogue
    cells, applications : Path
    """
    estimates = estimate(release, noise, layout, catalogue.family_of)
    write_table(
        _cells(estimates, noise, layout, catalogue), cells, "fleet_estimates", metadata={"confidence": str(CONFIDENCE)}
    )
    write_table(_applications(estimates, noise, layout, catalogue), applications, "fleet_applications")


def _cells(
    estimates: Estimates, noise: Mapping[str, CellNoise], layout: ReportLayout, catalogue: Catalogue
) -> pa.Table:
    """Return the table of cells: a row per section, application and column, in this order; no shares of a row that
    nobody may have measured.
    """
    rows = []
    for name in (name for name in DISTRIBUTIONS if name in estimates.distributions):
        shares = estimates.distributions[name]
        low, high = share_intervals(
            estimates.noisy[name], estimates.variance[name], estimates.sums[name], estimates.sums_variance[name]
        )
        low = np.minimum(low, shares)
        high = np.maximum(high, shares)
        threshold = noise[name].threshold()
        names = labels(name, layout.by_name[name].columns)
        for index, entry in enumerate(catalogue.applications):
            for column, label in enumerate(names):
                count = float(estimates.noisy[name][index, column])
                share = float(shares[index, column])
                is_given = bool(estimates.measured[name][index]) and not np.isnan(share)
                rows.append(
                    {
                        "section": name,
                        "application": entry.name,
                        "column": label,
                        "count": count,
                        "share": share if is_given else None,
                        "share_low": float(low[index, column]) if is_given else None,
                        "share_high": float(high[index, column]) if is_given else None,
                        "released": count > threshold,
                    }
                )
    return pa.Table.from_pylist(rows, schema=SCHEMAS["fleet_estimates"])


def _applications(
    estimates: Estimates, noise: Mapping[str, CellNoise], layout: ReportLayout, catalogue: Catalogue
) -> pa.Table:
    """Return the table of applications. A count below 0 is given as 0; nothing of a section that nobody may have
    measured.
    """
    n = layout.applications
    reports = estimates.reports[:n]
    half_width = estimates.reports_half_width[:n]
    columns = {
        "application": [entry.name for entry in catalogue.applications],
        "family": [entry.family for entry in catalogue.applications],
        "version": [entry.version for entry in catalogue.applications],
        "released": estimates.detected[:n],
    }

    def add(name: str, *values: np.ndarray | None) -> None:
        """Add a value with both ends of its interval; null where NaN."""
        for end, bound in zip(("", "_low", "_high"), values, strict=True):
            columns[name + end] = pa.nulls(n, pa.float64()) if bound is None else pa.array(bound, mask=np.isnan(bound))

    add("reports", *(np.maximum(bound, 0) for bound in (reports, reports - half_width, reports + half_width)))

    def given(name: str, values: np.ndarray) -> np.ndarray:
        return np.where(estimates.detected[:n] & estimates.measured[name], values, np.nan)

    def mean(name: str, values: np.ndarray, inside: float) -> tuple[np.ndarray | None, ...]:
        """Return means over bins with their intervals, which are wider by `inside`, what a bin's value is off by."""
        if name not in estimates.distributions:
            return None, None, None
        value = estimates.distributions[name] @ values
        low, high = interval_of_given(
            estimates.noisy[name], estimates.variance[name], values, estimates.sums[name], estimates.sums_variance[name]
        )
        ends = np.minimum(low, value) - inside, np.maximum(high, value) + inside
        return tuple(given(name, bound) for bound in (value, np.clip(ends[0], 0, 1), np.clip(ends[1], 0, 1)))

    columns |= _medians(estimates, given, n)
    add("busy", *mean("efficiency", BIN_CENTRES, HALF_BIN))
    add("occupancy", *mean("occupancy", BIN_CENTRES, HALF_BIN))
    add("variable_share", *mean("variability", VARIABLE, 0.0))
    totals = resource_totals(estimates, layout, noise["resources"]) if "resources" in estimates.noisy else {}
    for name in RESOURCES:
        if name in totals:
            add(name, *(np.where(estimates.detected[:n], bound, np.nan) for bound in totals[name]))
        else:
            add(name, None, None, None)
    return pa.table(columns)


def _medians(estimates: Estimates, given: Callable[[str, np.ndarray], np.ndarray], n: int) -> dict[str, pa.Array]:
    """Return the columns of the median duration. Its interval is one of whole bins: those in which it may lie, by the
    noise, and its own. The last bin is open, so that such an interval has no upper end.
    """
    names = ("", "_low", "_high")
    if "durations" not in estimates.distributions:
        columns = {f"median_duration_ns{end}": pa.nulls(n, pa.float64()) for end in names}
        return columns | {"median_duration_open": pa.nulls(n, pa.bool_())}
    medians, own = binned_median(estimates.distributions["durations"])
    first, last = median_bins(estimates.noisy["durations"], estimates.variance["durations"])
    edges = np.concatenate([[0.0], DURATION_EDGES_NS, [np.nan]])
    ends = (medians, edges[np.minimum(first, own)], edges[np.maximum(last, own) + 1])
    values = [given("durations", bound) for bound in ends]
    values[1:] = [np.where(np.isnan(values[0]), np.nan, bound) for bound in values[1:]]
    columns = {
        f"median_duration_ns{end}": pa.array(bound, mask=np.isnan(bound))
        for end, bound in zip(names, values, strict=True)
    }
    is_open = own == len(DURATION_EDGES_NS)
    return columns | {"median_duration_open": pa.array(is_open, mask=np.isnan(values[0]))}

"""From an agent's measurements to the counts of its report. The same code serves the simulated fleet and a real agent.

A distribution (time over kernels, launches over bins of duration) becomes a fixed number of units, by systematic
sampling with one random start, so that each cell's expectation is its exact share. What was not measured adds nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from causeway.core.errors import CausewayError
from causeway.fleet.report_layout import DURATION_EDGES_NS, QUARTERS, RESOURCES, VARIABILITY_EDGES, WORD, ReportLayout

RANDOM_STARTS = 3 + len(RESOURCES)
"""Random starts per report: one per distribution, one per resource."""
LEAST_LAUNCHES = 3
"""A kernel's deviation from its median is taken where a sample holds at least this many of its launches."""


@dataclass(frozen=True, kw_only=True)
class WindowMeasurements:
    """Measurements of some reports' windows, one row each.

    Attributes
    ----------
    row : ndarray of int64, shape (n,)
        Application, or applications + cluster.
    slot : ndarray of int64, shape (n, launches)
        Kernel cell of each launch (`catalogue.OTHER` for kernels without one), -1 behind the end of a shorter sample.
    kernel : ndarray of integers, shape (n, launches)
        Any identifier of the kernel.
    duration_ns : ndarray of int64, shape (n, launches)
    occupancy : ndarray of float64, shape (n, launches), 0 to 1
        NaN where not measured.
    busy : ndarray of float64, shape (n,), 0 to 1
        NaN where not measured.
    totals : ndarray of float64, shape (n, 3)
        GPU-ms, launches and MiB; NaN where not measured.
    """

    row: np.ndarray
    slot: np.ndarray
    kernel: np.ndarray
    duration_ns: np.ndarray
    occupancy: np.ndarray
    busy: np.ndarray
    totals: np.ndarray


@dataclass(frozen=True)
class Counts:
    """Reports as a sparse matrix in coordinate form, sorted by report, then cell; a report's vector is 0 elsewhere.

    Attributes
    ----------
    report, cell, value : ndarray of int64, shape (n,)
    """

    report: np.ndarray
    cell: np.ndarray
    value: np.ndarray

    def vector(self, report: int, cells: int) -> np.ndarray:
        """Return the vector of one report: uint32, shape (cells,)."""
        first, last = np.searchsorted(self.report, [report, report + 1])
        dense = np.zeros(cells, WORD)
        dense[self.cell[first:last]] = self.value[first:last]
        return dense


def systematic_sample(weights: np.ndarray, total: int, start: np.ndarray) -> np.ndarray:
    """Divide `total` units in proportion to weights, by systematic sampling (Madow 1949).

    Parameters
    ----------
    weights : ndarray of float64, shape (n, cells), not negative
    total : int
    start : ndarray of float64, shape (n,), in [0, 1)

    Returns
    -------
    ndarray of int64, shape (n, cells); each row sums to `total`, or to 0 where all its weights are 0.
    """
    whole = weights.sum(1, keepdims=True)
    edges = np.cumsum(weights, axis=1) / np.where(whole > 0, whole, 1) * total
    edges[:, -1] = np.where(whole[:, 0] > 0, total, 0)
    steps = np.floor(np.minimum(edges, total) + start[:, None]).astype(np.int64)
    return np.diff(steps, axis=1, prepend=0)


def mean_relative_deviation(kernel: np.ndarray, duration_ns: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """Return each row's variability: sum of |duration - median of the kernel in the row| over the sum of durations.

    Parameters
    ----------
    kernel : ndarray of integers, shape (n, launches)
    duration_ns : ndarray of int64, shape (n, launches)
    valid : ndarray of bool, shape (n, launches)
        False behind the end of a shorter sample.

    Returns
    -------
    ndarray of float64, shape (n,), not negative
        Kernels with fewer than `LEAST_LAUNCHES` launches in the row are left out; NaN where none is left.
    """
    n, launches = kernel.shape
    row = np.repeat(np.arange(n), launches)[valid.ravel()]
    code = kernel.ravel()[valid.ravel()]
    time = duration_ns.ravel()[valid.ravel()].astype(np.float64)
    order = np.lexsort((time, code, row))
    row = row[order]
    code = code[order]
    time = time[order]
    begins = np.ones(len(row), bool)
    begins[1:] = (row[1:] != row[:-1]) | (code[1:] != code[:-1])
    first = np.nonzero(begins)[0]
    size = np.diff(np.append(first, len(row)))
    median = (time[first + (size - 1) // 2] + time[first + size // 2]) / 2 if len(first) else np.zeros(0)
    kept = np.repeat(size >= LEAST_LAUNCHES, size)
    deviation = np.abs(time - np.repeat(median, size))
    deviations = np.bincount(row[kept], weights=deviation[kept], minlength=n)
    whole = np.bincount(row[kept], weights=time[kept], minlength=n)
    return np.where(whole > 0, deviations / np.where(whole > 0, whole, 1), np.nan)


def _histogram(row: np.ndarray, column: np.ndarray, weight: np.ndarray, n: int, columns: int) -> np.ndarray:
    return np.bincount(row * columns + column, weights=weight, minlength=n * columns).reshape(n, columns)


def encode(measured: WindowMeasurements, layout: ReportLayout, starts: np.ndarray) -> Counts:
    """Return the reports of some windows.

    Parameters
    ----------
    measured : WindowMeasurements
    layout : ReportLayout
    starts : ndarray of float64, shape (n, N_STARTS), in [0, 1)
        Random starts of the systematic samples, fresh for each report.

    Raises
    ------
    CausewayError
        For durations, shares or totals that cannot be (negative, infinite, beyond 1) and rows that the layout does not
        have.
    """
    _check(measured, layout)
    n = len(measured.row)
    valid = measured.slot >= 0
    row = np.broadcast_to(np.arange(n)[:, None], valid.shape)[valid]
    time = measured.duration_ns[valid].astype(np.float64)
    ones = np.ones(len(row))
    filled = {"applications": np.ones((n, 1), np.int64)}
    slots = layout.by_name["kernels"]
    filled["kernels"] = systematic_sample(
        _histogram(row, measured.slot[valid], time, n, slots.columns), slots.contribution_bound, starts[:, 0]
    )
    bins = np.searchsorted(DURATION_EDGES_NS, measured.duration_ns[valid], side="right")
    durations = layout.by_name["durations"]
    filled["durations"] = systematic_sample(
        _histogram(row, bins, ones, n, durations.columns), durations.contribution_bound, starts[:, 1]
    )
    is_measured = ~np.isnan(measured.occupancy[valid])
    bins = np.searchsorted(QUARTERS, measured.occupancy[valid][is_measured], side="right")
    filled["occupancy"] = systematic_sample(
        _histogram(row[is_measured], bins, time[is_measured], n, 4),
        layout.by_name["occupancy"].contribution_bound,
        starts[:, 2],
    )
    filled["variability"] = _one_hot(
        mean_relative_deviation(measured.kernel, measured.duration_ns, valid), VARIABILITY_EDGES
    )
    filled["efficiency"] = _one_hot(measured.busy, QUARTERS)
    resources = layout.by_name["resources"]
    each = resources.contribution_bound // len(RESOURCES)
    share = np.clip(np.nan_to_num(measured.totals) / np.array(layout.clips, np.float64), 0, 1)
    filled["resources"] = np.floor(share * each + starts[:, 3 : 3 + len(RESOURCES)]).astype(np.int64)
    return _sparse(filled, measured.row, layout)


def _one_hot(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    hot = np.zeros((len(values), len(edges) + 1), np.int64)
    rows = np.nonzero(~np.isnan(values))[0]
    hot[rows, np.searchsorted(edges, values[rows], side="right")] = 1
    return hot


def _sparse(filled: dict[str, np.ndarray], rows: np.ndarray, layout: ReportLayout) -> Counts:
    """Return the sections' rows at their cells; an unknown application fills the first section alone."""
    reports = []
    cells = []
    values = []
    for section in layout.sections:
        block = filled[section.name]
        has_row = rows < section.rows
        report, column = np.nonzero(block * has_row[:, None])
        reports.append(report)
        cells.append(section.first + rows[report] * section.columns + column)
        values.append(block[report, column])
    report, cell, value = (np.concatenate(parts) for parts in (reports, cells, values))
    order = np.lexsort((cell, report))
    return Counts(report[order], cell[order], value[order])


def _check(measured: WindowMeasurements, layout: ReportLayout) -> None:
    def refuse(bad: np.ndarray, what: str) -> None:
        if np.any(bad):
            raise CausewayError(f"a sample cannot be encoded: {what}")

    refuse(
        (measured.row < 0) | (measured.row >= layout.applications + layout.clusters),
        "its application has no row in the layout",
    )
    refuse(measured.slot >= layout.by_name["kernels"].columns, "a kernel has no cell in the layout")
    for name in ("row", "slot", "duration_ns"):
        refuse(
            np.array(getattr(measured, name).dtype.kind not in "iu"),
            f"{name} holds {getattr(measured, name).dtype}, expected whole numbers",
        )
    refuse(measured.duration_ns[measured.slot >= 0] <= 0, "a duration is not above 0 ns")
    with np.errstate(invalid="ignore"):
        refuse((measured.occupancy < 0) | (measured.occupancy > 1), "an occupancy lies outside 0 to 1")
        refuse((measured.busy < 0) | (measured.busy > 1), "a busy share lies outside 0 to 1")
        refuse((measured.totals < 0) | np.isinf(measured.totals), "a total is negative or infinite")


def kernel_cells(tokens: np.ndarray, applications: np.ndarray, kernels: Sequence[np.ndarray]) -> np.ndarray:
    """Return the kernel cell of each launch.

    Parameters
    ----------
    tokens : ndarray of uint64, shape (n, launches)
        0 where there is no launch.
    applications : ndarray of int64, shape (n,)
        Negative for unknown applications, whose launches all have the cell of other kernels.
    kernels : sequence of ndarray of uint64, shape (k,)
        Each application's kernels with a cell of their own, in the order of their cells from 1 on.

    Returns
    -------
    ndarray of int64, shape (n, launches); -1 where there is no launch.
    """
    cells = np.zeros(tokens.shape, np.int64)
    for application in np.unique(applications[applications >= 0]).tolist():
        rows = np.nonzero(applications == application)[0]
        order = np.argsort(kernels[application])
        ordered = kernels[application][order]
        if len(ordered):
            position = np.minimum(np.searchsorted(ordered, tokens[rows]), len(ordered) - 1)
            cells[rows] = np.where(ordered[position] == tokens[rows], order[position] + 1, 0)
    cells[tokens == 0] = -1
    return cells

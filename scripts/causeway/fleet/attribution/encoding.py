"""From what an agent saw to the few counts of its report. The same code serves the simulated fleet and a real agent.

A distribution (time over kernels, launches over bins of duration) becomes a fixed number of units, by systematic sampling with one random
start, so that each cell's expectation is its exact share. What was not measured adds nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from causeway.errors import CausewayError
from causeway.fleet.layout import DURATION_EDGES_NS, QUARTERS, RESOURCES, VARIABILITY_EDGES, WORD, Layout

N_STARTS = 3 + len(RESOURCES)
"""Random starts per report: one per distribution, one per resource."""
LEAST_LAUNCHES = 3
"""A kernel's deviation from its median is taken where a sample holds at least this many of its launches."""


@dataclass(frozen=True)
class Seen:
    """What was seen of some reports' windows, one row each.

    Attributes
    ----------
    row : ndarray of int64, shape (n,)
        Application, or applications + cluster.
    slot : ndarray of int64, shape (n, launches)
        Kernel cell of each launch (`catalogue.OTHER` for kernels without one), -1 behind the end of a shorter sample.
    kernel : ndarray of integers, shape (n, launches)
        Anything that tells kernels apart.
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
    """Reports as (report, cell, value), sorted by report, then cell; a report's vector is 0 elsewhere."""

    report: np.ndarray
    cell: np.ndarray
    value: np.ndarray

    def vector(self, report: int, cells: int) -> np.ndarray:
        """Return the vector of one report."""
        first, last = np.searchsorted(self.report, [report, report + 1])
        dense = np.zeros(cells, WORD)
        dense[self.cell[first:last]] = self.value[first:last]
        return dense


def units(weights: np.ndarray, total: int, start: np.ndarray) -> np.ndarray:
    """Share out `total` units in proportion to weights, by systematic sampling (Madow 1949).

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


def deviations(kernel: np.ndarray, duration_ns: np.ndarray, valid: np.ndarray) -> np.ndarray:
    """Return each row's variability: sum of |duration - median of the kernel in the row| over the sum of durations.

    Kernels with fewer than `LEAST_LAUNCHES` launches in the row are left out; NaN where none is left.
    """
    n, launches = kernel.shape
    row = np.repeat(np.arange(n), launches)[valid.ravel()]
    code, time = kernel.ravel()[valid.ravel()], duration_ns.ravel()[valid.ravel()].astype(np.float64)
    order = np.lexsort((time, code, row))
    row, code, time = row[order], code[order], time[order]
    begins = np.ones(len(row), bool)
    begins[1:] = (row[1:] != row[:-1]) | (code[1:] != code[:-1])
    first = np.nonzero(begins)[0]
    size = np.diff(np.append(first, len(row)))
    median = (time[first + (size - 1) // 2] + time[first + size // 2]) / 2 if len(first) else np.zeros(0)
    kept = np.repeat(size >= LEAST_LAUNCHES, size)
    away = np.abs(time - np.repeat(median, size))
    top = np.bincount(row[kept], weights=away[kept], minlength=n)
    whole = np.bincount(row[kept], weights=time[kept], minlength=n)
    return np.where(whole > 0, top / np.where(whole > 0, whole, 1), np.nan)


def _histogram(row: np.ndarray, column: np.ndarray, weight: np.ndarray, n: int, columns: int) -> np.ndarray:
    return np.bincount(row * columns + column, weights=weight, minlength=n * columns).reshape(n, columns)


def encode(seen: Seen, layout: Layout, starts: np.ndarray) -> Counts:
    """Return the reports of what was seen.

    Parameters
    ----------
    seen : Seen
    layout : Layout
    starts : ndarray of float64, shape (n, N_STARTS), in [0, 1)
        Random starts of the systematic samples, fresh for each report.

    Raises
    ------
    CausewayError
        For durations, shares or totals that cannot be (negative, infinite, beyond 1) and rows that the layout does not have.
    """
    _check(seen, layout)
    n = len(seen.row)
    valid = seen.slot >= 0
    row = np.broadcast_to(np.arange(n)[:, None], valid.shape)[valid]
    time = seen.duration_ns[valid].astype(np.float64)
    one = np.ones(len(row))
    filled = {"applications": np.ones((n, 1), np.int64)}
    slots = layout.by_name["kernels"]
    filled["kernels"] = units(_histogram(row, seen.slot[valid], time, n, slots.columns), slots.units, starts[:, 0])
    bins = np.searchsorted(DURATION_EDGES_NS, seen.duration_ns[valid], side="right")
    durations = layout.by_name["durations"]
    filled["durations"] = units(_histogram(row, bins, one, n, durations.columns), durations.units, starts[:, 1])
    measured = ~np.isnan(seen.occupancy[valid])
    bins = np.searchsorted(QUARTERS, seen.occupancy[valid][measured], side="right")
    filled["occupancy"] = units(_histogram(row[measured], bins, time[measured], n, 4), layout.by_name["occupancy"].units, starts[:, 2])
    filled["variability"] = _one_hot(deviations(seen.kernel, seen.duration_ns, valid), VARIABILITY_EDGES)
    filled["efficiency"] = _one_hot(seen.busy, QUARTERS)
    resources = layout.by_name["resources"]
    each = resources.units // len(RESOURCES)
    share = np.clip(np.nan_to_num(seen.totals) / np.array(layout.clips, np.float64), 0, 1)
    filled["resources"] = np.floor(share * each + starts[:, 3 : 3 + len(RESOURCES)]).astype(np.int64)
    return _sparse(filled, seen.row, layout)


def _one_hot(values: np.ndarray, edges: np.ndarray) -> np.ndarray:
    hot = np.zeros((len(values), len(edges) + 1), np.int64)
    rows = np.nonzero(~np.isnan(values))[0]
    hot[rows, np.searchsorted(edges, values[rows], side="right")] = 1
    return hot


def _sparse(filled: dict[str, np.ndarray], rows: np.ndarray, layout: Layout) -> Counts:
    """Put the sections' rows at their cells; an unknown application fills the first section alone."""
    reports, cells, values = [], [], []
    for section in layout.sections:
        block = filled[section.name]
        known = rows < section.rows
        report, column = np.nonzero(block * known[:, None])
        reports.append(report)
        cells.append(section.first + rows[report] * section.columns + column)
        values.append(block[report, column])
    report, cell, value = (np.concatenate(parts) for parts in (reports, cells, values))
    order = np.lexsort((cell, report))
    return Counts(report[order], cell[order], value[order])


def _check(seen: Seen, layout: Layout) -> None:
    def refuse(bad: np.ndarray, what: str) -> None:
        if np.any(bad):
            raise CausewayError(f"a sample cannot be encoded: {what}")

    refuse((seen.row < 0) | (seen.row >= layout.applications + layout.clusters), "its application has no row in the layout")
    refuse(seen.slot >= layout.by_name["kernels"].columns, "a kernel has no cell in the layout")
    for name in ("row", "slot", "duration_ns"):
        refuse(np.array(getattr(seen, name).dtype.kind not in "iu"), f"{name} holds {getattr(seen, name).dtype}, expected whole numbers")
    refuse(seen.duration_ns[seen.slot >= 0] <= 0, "a duration is not above 0 ns")
    with np.errstate(invalid="ignore"):
        refuse((seen.occupancy < 0) | (seen.occupancy > 1), "an occupancy lies outside 0 to 1")
        refuse((seen.busy < 0) | (seen.busy > 1), "a busy share lies outside 0 to 1")
        refuse((seen.totals < 0) | np.isinf(seen.totals), "a total is negative or infinite")


def slots_of(tokens: np.ndarray, applications: np.ndarray, kernels: Sequence[np.ndarray]) -> np.ndarray:
    """Return the kernel cell of each launch.

    Parameters
    ----------
    tokens : ndarray of uint64, shape (n, launches)
        0 where there is no launch.
    applications : ndarray of int64, shape (n,)
        Negative for unknown applications, whose launches all have the slot of other kernels.
    kernels : sequence of ndarray of uint64
        Each application's kernels with a cell of their own, in the order of their cells from 1 on.
    """
    found = np.zeros(tokens.shape, np.int64)
    for application in np.unique(applications[applications >= 0]).tolist():
        mine = np.nonzero(applications == application)[0]
        order = np.argsort(kernels[application])
        ordered = kernels[application][order]
        if len(ordered):
            at = np.minimum(np.searchsorted(ordered, tokens[mine]), len(ordered) - 1)
            found[mine] = np.where(ordered[at] == tokens[mine], order[at] + 1, 0)
    found[tokens == 0] = -1
    return found

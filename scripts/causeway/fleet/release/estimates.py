"""Estimates from noisy counts: distributions and totals with intervals. Post-processing, which costs no privacy.

Noisy rows are projected onto the probability simplex and shrunk towards the distribution of all applications as far as
noise outweighs signal; intervals are those of the noise alone, before that.
"""

from dataclasses import dataclass

import numpy as np

from causeway.fleet.protection.noise import noise_half_width
from causeway.fleet.release.release import Release
from causeway.fleet.report_layout import DETAIL, DURATION_EDGES_NS, RESOURCES, ReportLayout

CONFIDENCE = 0.95
DETECTION_CONFIDENCE = 0.98
"""A cell counts as detected if its count is beyond this two-sided interval of the noise around 0: one in a hundred
empty cells is.
"""
DISTRIBUTIONS = ("kernels", "durations", "occupancy", "variability", "efficiency")
"""Sections whose rows are distributions."""


@dataclass(frozen=True, kw_only=True)
class Estimates:
    """Estimates from one release.

    Attributes
    ----------
    reports, reports_sd : ndarray of float64, shape (rows of the first section,)
        Reports by application, then anonymous cluster; standard deviation of the noise.
    detected : ndarray of bool, shape (rows of the first section,)
        Whether that count is beyond the noise.
    distributions : dict of section to ndarray of float64, shape (applications, columns)
        Each row adds up to 1, or is NaN where the application has no report.
    noisy : dict of section to ndarray of float64, shape (applications, columns)
        Noisy counts as released, of the detail part's sections.
    half_width : dict of section to float
        Half-width of the counts' interval, of all sections.
    """

    reports: np.ndarray
    reports_sd: np.ndarray
    detected: np.ndarray
    distributions: dict[str, np.ndarray]
    noisy: dict[str, np.ndarray]
    half_width: dict[str, float]


def noise_sd(scale: float) -> float:
    """Return the standard deviation of both servers' noise in a cell: 2 * scale for two of variance 2 * scale**2."""
    return 2.0 * scale


def project_to_simplex(weights: np.ndarray) -> np.ndarray:
    """Return each row's Euclidean projection onto the probability simplex (Duchi et al., ICML 2008, figure 1).

    Parameters
    ----------
    weights : ndarray of float64, shape (n, columns)

    Returns
    -------
    ndarray of float64, of the same shape; not negative, each row adds up to 1.
    """
    ordered = -np.sort(-weights, axis=1)
    sums = np.cumsum(ordered, axis=1) - 1
    ranks = np.arange(1, weights.shape[1] + 1)
    last = (ordered - sums / ranks > 0).sum(1) - 1
    shift = sums[np.arange(len(weights)), last] / (last + 1)
    return np.maximum(weights - shift[:, None], 0)


def shrink(counts: np.ndarray, totals: np.ndarray, families: np.ndarray, scale: float) -> np.ndarray:
    """Return each row's distribution, shrunk towards its family's, and that towards all rows'.

    The weights follow from the known noise and the observed distances (empirical Bayes; Efron and Morris 1973).

    Parameters
    ----------
    counts : ndarray of float64, shape (rows, columns)
        Noisy.
    totals : ndarray of float64, shape (rows,)
        Expected sums of the rows.
    families : ndarray of int64, shape (rows,)
        Indices from 0.
    scale : float
        Of each server's noise in one cell; 0 leaves the rows as they are.

    Returns
    -------
    ndarray of float64, shape (rows, columns); each row adds up to 1, or is NaN for a total of 0 or less.
    """
    size = np.bincount(families)
    by_family = np.zeros((len(size), counts.shape[1]))
    np.add.at(by_family, families, counts)
    family_totals = np.bincount(families, weights=np.maximum(totals, 0))
    whole = counts.sum(0)
    prior = project_to_simplex((whole / max(whole.sum(), 1.0))[None])[0]
    middle = _shrunk_towards(by_family, family_totals, prior[None], noise_sd(scale) * np.sqrt(size))
    found = _shrunk_towards(counts, totals, middle[families], np.full(len(counts), noise_sd(scale)))
    return np.where(totals[:, None] > 0, found, np.nan)


def _shrunk_towards(counts: np.ndarray, totals: np.ndarray, priors: np.ndarray, sd: np.ndarray) -> np.ndarray:
    """Shrink rows towards priors by noise / (noise + signal); see `_squared_signals`."""
    safe = np.where(totals > 0, totals, 1)
    rows = counts / safe[:, None]
    noise = counts.shape[1] * (sd / safe) ** 2
    signal = _squared_signals(((rows - priors) ** 2).sum(1) - noise, noise, counts.shape[1], totals > 0)
    weight = (noise / np.maximum(noise + signal, 1e-300))[:, None]
    return project_to_simplex(weight * priors + (1 - weight) * rows)


def _squared_signals(observed: np.ndarray, noise: np.ndarray, columns: int, known: np.ndarray) -> np.ndarray:
    """Return the posterior mean of each row's squared distance from its prior.

    `observed`, the unbiased estimate, has a variance of some 4 noise**2 / columns for sums of two Laplace noises; true
    squared distances are assumed to vary as much as their mean.
    """
    variance = 4 * noise**2 / columns
    common = max(float(observed[known].mean()), 0.0) if known.any() else 0.0
    for _ in range(8):
        precision = np.where(known, 1 / np.maximum(variance + common**2, 1e-300), 0)
        common = max(float((precision * observed).sum() / max(precision.sum(), 1e-300)), 0.0)
    return np.maximum((observed * common**2 + common * variance) / np.maximum(common**2 + variance, 1e-300), 0)


def sections_of(detail: np.ndarray, layout: ReportLayout) -> dict[str, np.ndarray]:
    """Return the sections of the `detail` part, shape (cells,): float64, shape (rows, columns) each."""
    found = {}
    first = 0
    for section in layout.sections:
        if section.part == DETAIL:
            size = section.rows * section.columns
            found[section.name] = detail[first : first + size].reshape(section.rows, section.columns).astype(np.float64)
            first += size
    return found


def _totals(
    noisy: dict[str, np.ndarray], traffic: np.ndarray, variance: float, scales: dict[str, float], layout: ReportLayout
) -> np.ndarray:
    """Return the precision-weighted mean of all estimates of each application's reports: its own counts and the sums
    of its rows.
    """
    applications = layout.applications
    weight = np.full(applications, 1 / variance if variance else 1.0)
    total = traffic[:applications] * weight
    for name in ("kernels", "durations"):
        section = layout.by_name[name]
        if scales.get(name):
            precision = section.contribution_bound**2 / (section.columns * noise_sd(scales[name]) ** 2)
            total = total + precision * noisy[name].sum(1) / section.contribution_bound
            weight = weight + precision
    return total / weight


def estimate(release: Release, scales: dict[str, float], layout: ReportLayout, families: np.ndarray) -> Estimates:
    """Return the estimates from a release.

    Parameters
    ----------
    release : Release
    scales : dict of section to float
        See `aggregate.ReleasedDay`.
    layout : ReportLayout
    families : ndarray of int64, shape (applications,)
        Index of each application's family.
    """
    windows = int(release.released.sum())
    scale = scales["applications"]
    variance = windows * noise_sd(scale) ** 2
    traffic = release.traffic.sum(0).astype(np.float64)
    detected = traffic > detection_threshold(scale, windows)
    distributions = {}
    noisy = {}
    half_width = {}
    if release.detail is not None:
        noisy = sections_of(release.detail, layout)
        totals = np.maximum(_totals(noisy, traffic, variance, scales, layout), 0)
        for name in (name for name in DISTRIBUTIONS if name in scales):
            rows = totals * layout.by_name[name].contribution_bound if scales[name] else noisy[name].sum(1)
            distributions[name] = shrink(noisy[name], rows, families, scales[name])
        half_width = {name: noise_half_width(scale, CONFIDENCE) if scale else 0.0 for name, scale in scales.items()}
    return Estimates(
        reports=traffic,
        reports_sd=np.full(len(traffic), np.sqrt(variance)),
        detected=detected,
        distributions=distributions,
        noisy=noisy,
        half_width=half_width,
    )


def detection_threshold(scale: float, windows: int) -> float:
    """Return the count above which a sum over windows is detected: exact for one window, by the noise's standard
    deviation for several; see `DETECTION_CONFIDENCE`.
    """
    if scale == 0 or windows == 0:
        return 0.5
    if windows == 1:
        return noise_half_width(scale, DETECTION_CONFIDENCE)
    return min(
        2.33 * noise_sd(scale) * np.sqrt(windows) * 1.05, noise_half_width(scale, DETECTION_CONFIDENCE) * windows
    )


def binned_median(shares: np.ndarray) -> np.ndarray:
    """Return the median of binned durations, log-linear inside a bin (the first from half its edge, the last to twice
    its own).

    Parameters
    ----------
    shares : ndarray of float64, shape (n, bins)
        Rows that add up to 1, or NaN.

    Returns
    -------
    ndarray of float64, shape (n,), ns; NaN where the row is.
    """
    edges = np.concatenate([[DURATION_EDGES_NS[0] / 2], DURATION_EDGES_NS, [DURATION_EDGES_NS[-1] * 2]]).astype(
        np.float64
    )
    steps = np.cumsum(np.nan_to_num(shares), axis=1)
    index = np.minimum((steps < 0.5).sum(1), shares.shape[1] - 1)
    rows = np.arange(len(shares))
    before = np.where(index > 0, steps[rows, index - 1], 0)
    inside = np.clip((0.5 - before) / np.maximum(shares[rows, index], 1e-12), 0, 1)
    return np.where(np.isnan(shares[:, 0]), np.nan, edges[index] * (edges[index + 1] / edges[index]) ** inside)


def resource_totals(found: Estimates, layout: ReportLayout) -> dict[str, tuple[np.ndarray, float]]:
    """Return each resource's totals over the sampled windows, float64, shape (applications,), and the half-width of
    their interval, both in its unit.
    """
    section = layout.by_name["resources"]
    each = section.contribution_bound // len(RESOURCES)
    totals = {}
    for column, (name, clip) in enumerate(zip(RESOURCES, layout.clips, strict=True)):
        totals[name] = (found.noisy["resources"][:, column] * clip / each, found.half_width["resources"] * clip / each)
    return totals

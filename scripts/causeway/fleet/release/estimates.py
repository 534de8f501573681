"""Estimates from noisy counts: distributions and totals with intervals. Post-processing, which costs no privacy.

Noisy rows are projected onto the probability simplex and shrunk towards the distribution of all applications as far as
noise outweighs signal; intervals are those of the noise alone, before that.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from causeway.fleet.release.cell_noise import CONFIDENCE, DETECTION_CONFIDENCE, CellNoise, normal_quantile
from causeway.fleet.release.release import Release
from causeway.fleet.report_layout import DETAIL, DURATION_EDGES_NS, RESOURCES, ReportLayout

DISTRIBUTIONS = ("kernels", "durations", "occupancy", "variability", "efficiency")
"""Sections whose rows are distributions."""
FILLED = ("kernels", "durations")
"""Of these, the ones that every report of a known application fills; to the others, some agents may add nothing."""


@dataclass(frozen=True, kw_only=True)
class Estimates:
    """Estimates from one release.

    Attributes
    ----------
    reports, reports_sd, reports_half_width : ndarray of float64, shape (rows of the first section,)
        Reports of the day by application, then anonymous cluster; standard deviation of the noise, half-width of the
        interval. NaN where neither all windows nor the day's detail were released; clusters have no detail.
    detected : ndarray of bool, shape (rows of the first section,)
        Whether that count is beyond the noise.
    distributions : dict of section to ndarray of float64, shape (applications, columns)
        Each row adds up to 1, or is NaN where the application has no report.
    measured : dict of section to ndarray of bool, shape (applications,); of the resources, shape (applications, 3)
        Whether the row's sum (a resource's total) is beyond the noise. Where it is not, nobody may have measured it.
    sums, sums_variance : dict of section to ndarray of float64, shape (applications,)
        What all reports together count in a row, with the variance of its noise; NaN where the row's own noisy sum lies
        below by more than the noise, or enters it.
    noisy, variance, half_width : dict of section to ndarray of float64, shape (applications, columns)
        Noisy counts as released, of the detail part's sections; variance of their noise, half-width of their intervals.
    """

    reports: np.ndarray
    reports_sd: np.ndarray
    reports_half_width: np.ndarray
    detected: np.ndarray
    distributions: dict[str, np.ndarray]
    measured: dict[str, np.ndarray]
    sums: dict[str, np.ndarray]
    sums_variance: dict[str, np.ndarray]
    noisy: dict[str, np.ndarray]
    variance: dict[str, np.ndarray]
    half_width: dict[str, np.ndarray]


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


def shrink(counts: np.ndarray, totals: np.ndarray, families: np.ndarray, variance: np.ndarray) -> np.ndarray:
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
    variance : ndarray of float64, shape (rows, columns)
        Of the noise in each count; 0 leaves the rows as they are.

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
    of_row = variance.sum(1)
    middle = _shrunk_towards(by_family, family_totals, prior[None], np.bincount(families, weights=of_row))
    shrunk = _shrunk_towards(counts, totals, middle[families], of_row)
    return np.where(totals[:, None] > 0, shrunk, np.nan)


def _shrunk_towards(counts: np.ndarray, totals: np.ndarray, priors: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Shrink rows towards priors by noise / (noise + signal), `variance` (rows,) that of all cells of a row together;
    see `_squared_signals`.
    """
    safe = np.where(totals > 0, totals, 1)
    rows = counts / safe[:, None]
    noise = variance / safe**2
    signal = _squared_signals(((rows - priors) ** 2).sum(1) - noise, noise, counts.shape[1], totals > 0)
    weight = (noise / np.maximum(noise + signal, 1e-300))[:, None]
    return project_to_simplex(weight * priors + (1 - weight) * rows)


def _squared_signals(observed: np.ndarray, noise: np.ndarray, columns: int, is_positive: np.ndarray) -> np.ndarray:
    """Return the posterior mean of each row's squared distance from its prior.

    `observed`, the unbiased estimate, has a variance of some 4 noise**2 / columns for sums of two Laplace noises (half
    of that for normal noise, which is then trusted less than it could be); true squared distances are assumed to vary
    as much as their mean.
    """
    variance = 4 * noise**2 / columns
    common = max(float(observed[is_positive].mean()), 0.0) if is_positive.any() else 0.0
    for _ in range(8):
        precision = np.where(is_positive, 1 / np.maximum(variance + common**2, 1e-300), 0)
        common = max(float((precision * observed).sum() / max(precision.sum(), 1e-300)), 0.0)
    return np.maximum((observed * common**2 + common * variance) / np.maximum(common**2 + variance, 1e-300), 0)


def sections_of(detail: np.ndarray, layout: ReportLayout) -> dict[str, np.ndarray]:
    """Return the sections of the `detail` part, shape (cells,): float64, shape (rows, columns) each."""
    parts = {}
    first = 0
    for section in layout.sections:
        if section.part == DETAIL:
            size = section.rows * section.columns
            parts[section.name] = detail[first : first + size].reshape(section.rows, section.columns).astype(np.float64)
            first += size
    return parts


def _combined(estimates: list[tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the precision-weighted mean of independent unbiased estimates, each with its variance, and its variance.

    An exact estimate is taken alone. Arrays of float64, all of one shape.
    """
    exact = [values for values, variance in estimates if not variance.any()]
    if exact:
        return exact[0], np.zeros_like(exact[0])
    weight = np.sum([1 / variance for _, variance in estimates], axis=0)
    return np.sum([values / variance for values, variance in estimates], axis=0) / weight, 1 / weight


def _by_rows(
    noisy: dict[str, np.ndarray], variance: dict[str, np.ndarray], layout: ReportLayout
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return estimates of each application's reports of the day from the rows that each of them fills, with their
    variances.
    """
    estimates = []
    for name in (name for name in FILLED if name in variance):
        bound = layout.by_name[name].contribution_bound
        estimates.append((noisy[name].sum(1) / bound, variance[name].sum(1) / bound**2))
    return estimates


def _row_sums(
    own: np.ndarray, expected: np.ndarray, variance: np.ndarray, threshold: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums by which a section's rows are divided, and whether each row was measured.

    The sum is the expected one, which has less noise, unless the row's own lies below it by more than the noise: then
    only some agents measured the section.

    Parameters
    ----------
    own, expected : ndarray of float64, shape (applications,)
        The row's noisy sum, and what all reports together would give.
    variance : ndarray of float64, shape (applications,)
        Of the noise in their difference.
    threshold : float
        Of the noise in an empty row's sum.
    """
    lacking = own < expected - normal_quantile(DETECTION_CONFIDENCE) * np.sqrt(variance)
    return np.where(lacking, own, expected), own > threshold


def estimate(release: Release, noise: Mapping[str, CellNoise], layout: ReportLayout, families: np.ndarray) -> Estimates:
    """Return the estimates from a release.

    Reports of the day are the sum over all windows where all were released. A window below the threshold may hold
    reports, so that the sum over the others is too small: reports then come from the day's detail alone.

    Parameters
    ----------
    release : Release
    noise : mapping of section to CellNoise
        See `aggregate.ReleasedDay`.
    layout : ReportLayout
    families : ndarray of int64, shape (applications,)
        Index of each application's family.
    """
    applications = layout.applications
    traffic = release.traffic.sum(0).astype(np.float64)
    of_traffic = noise["applications"]
    variance: dict[str, np.ndarray] = {}
    half_width: dict[str, np.ndarray] = {}
    noisy: dict[str, np.ndarray] = {}
    if release.detail is not None:
        noisy = {name: counts for name, counts in sections_of(release.detail, layout).items() if name in noise}
        variance = {name: noise[name].variance(counts) for name, counts in noisy.items()}
        half_width = {name: noise[name].half_width(counts) for name, counts in noisy.items()}
    rows = _by_rows(noisy, variance, layout)
    detected = traffic > of_traffic.threshold(1, release.released)
    if release.released.all():
        reports = traffic
        reports_variance = of_traffic.variance(traffic, release.released)
        reports_half_width = of_traffic.half_width(traffic, release.released)
        rows.append((traffic[:applications], reports_variance[:applications]))
    else:
        reports, reports_variance = (np.full(len(traffic), np.nan) for _ in range(2))
        if rows:
            reports[:applications], reports_variance[:applications] = _combined(rows)
            beyond = normal_quantile(DETECTION_CONFIDENCE) * np.sqrt(reports_variance[:applications])
            detected[:applications] = reports[:applications] > beyond
        reports_half_width = normal_quantile(CONFIDENCE) * np.sqrt(reports_variance)
    distributions = {}
    measured = {}
    true_sums: dict[str, np.ndarray] = {}
    true_sums_variance: dict[str, np.ndarray] = {}
    if noisy:
        totals, totals_variance = _combined(rows)
        for name in (name for name in DISTRIBUTIONS if name in variance):
            bound = layout.by_name[name].contribution_bound
            own = noisy[name].sum(1)
            spread = variance[name].sum(1) + bound**2 * totals_variance
            expected = np.maximum(totals, 0) * bound
            sums, measured[name] = _row_sums(own, expected, spread, noise[name].threshold(noisy[name].shape[1]))
            true_sums[name] = np.where(sums == expected, expected, np.nan)
            true_sums_variance[name] = bound**2 * totals_variance
            if name in FILLED:
                sums = own if noise[name].none else expected
                true_sums[name] = np.full(applications, np.nan)
            distributions[name] = shrink(noisy[name], sums, families, variance[name])
        if "resources" in variance:
            measured["resources"] = noisy["resources"] > noise["resources"].threshold()
    return Estimates(
        reports=reports,
        reports_sd=np.sqrt(reports_variance),
        reports_half_width=reports_half_width,
        detected=detected,
        distributions=distributions,
        measured=measured,
        sums=true_sums,
        sums_variance=true_sums_variance,
        noisy=noisy,
        variance=variance,
        half_width=half_width,
    )


def unknown_reports(estimates: Estimates, layout: ReportLayout) -> tuple[float, float, float] | None:
    """Return the day's reports of unknown applications, of all clusters together, with both ends of their interval.
    None where an hour was not released: it may hold some, and clusters have no detail.
    """
    reports = estimates.reports[layout.applications :]
    deviations = estimates.reports_sd[layout.applications :]
    if np.isnan(reports).any():
        return None
    value = float(np.sum(reports))
    half = normal_quantile(CONFIDENCE) * math.sqrt(float(np.sum(deviations**2)))
    return max(value, 0.0), max(value - half, 0.0), max(value + half, 0.0)


def binned_median(shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the median of binned durations, log-linear inside a bin (the first from half its edge), and its bin. The
    last bin is open: a median in it is its edge, than which it is at least as long.

    Parameters
    ----------
    shares : ndarray of float64, shape (n, bins)
        Rows that add up to 1, or NaN.

    Returns
    -------
    medians : ndarray of float64, shape (n,), ns; NaN where the row is.
    bins : ndarray of int64, shape (n,)
    """
    edges = np.concatenate([[DURATION_EDGES_NS[0] / 2], DURATION_EDGES_NS, DURATION_EDGES_NS[-1:]]).astype(np.float64)
    steps = np.cumsum(np.nan_to_num(shares), axis=1)
    index = np.minimum((steps < 0.5).sum(1), shares.shape[1] - 1)
    rows = np.arange(len(shares))
    before = np.where(index > 0, steps[rows, index - 1], 0)
    inside = np.clip((0.5 - before) / np.maximum(shares[rows, index], 1e-12), 0, 1)
    medians = edges[index] * (edges[index + 1] / edges[index]) ** inside
    return np.where(np.isnan(shares[:, 0]), np.nan, medians), index


def resource_totals(
    estimates: Estimates, layout: ReportLayout, noise: CellNoise
) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Return each resource's totals over the sampled windows with both ends of their intervals, float64, shape
    (applications,), in its unit; NaN where the total is not beyond the noise. Lower ends: `CellNoise.least_if_given`.
    """
    section = layout.by_name["resources"]
    each = section.contribution_bound // len(RESOURCES)
    totals = {}
    for column, (name, clip) in enumerate(zip(RESOURCES, layout.clips, strict=True)):
        counts = estimates.noisy["resources"][:, column]
        given = np.where(estimates.measured["resources"][:, column], counts, np.nan)
        ends = noise.least_if_given(counts), given + estimates.half_width["resources"][:, column]
        totals[name] = given * clip / each, ends[0] * clip / each, ends[1] * clip / each
    return totals

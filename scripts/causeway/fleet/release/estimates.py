"""The designer's reader: from noised counts to shares and totals with intervals. Post-processing, which costs no privacy.

Noisy rows are brought back to what counts can be (not negative, adding up to the row's total) and drawn towards the shape of all
applications as far as noise outweighs signal; intervals are those of the noise alone, before that.
"""

from dataclasses import dataclass

import numpy as np

from causeway.fleet.layout import DETAIL, DURATION_EDGES_NS, RESOURCES, Layout, Section
from causeway.fleet.noise import interval
from causeway.fleet.release import Release

CONFIDENCE = 0.95
SEEN_CONFIDENCE = 0.98
"""A cell counts as seen if its count is beyond this two-sided interval of the noise around 0: one in a hundred empty cells is."""
BLOCKS = ("kernels", "durations", "occupancy", "variability", "efficiency")
"""Sections whose rows are distributions."""


@dataclass(frozen=True)
class Estimates:
    """What a release says.

    Attributes
    ----------
    reports, reports_sd : ndarray of float64, shape (rows of the first section,)
        Reports by application, then anonymous cluster; standard deviation of the noise.
    seen : ndarray of bool
        Whether that count is beyond the noise.
    shares : dict of section to ndarray of float64, shape (applications, columns)
        Distributions; each row adds up to 1, or is NaN where the application has no report.
    raw, half : dict of section to ndarray, float
        Noised counts as released, and the half-width of their interval; of the detail part's sections.
    """

    reports: np.ndarray
    reports_sd: np.ndarray
    seen: np.ndarray
    shares: dict[str, np.ndarray]
    raw: dict[str, np.ndarray]
    half: dict[str, float]


def spread(scale: float) -> float:
    """Return the standard deviation of both servers' noise in a cell: 2 * scale for two of variance 2 * scale**2."""
    return 2.0 * scale


def project(weights: np.ndarray) -> np.ndarray:
    """Return the nearest points, row by row, that are not negative and add up to 1 (Duchi et al., ICML 2008, figure 1)."""
    ordered = -np.sort(-weights, axis=1)
    sums = np.cumsum(ordered, axis=1) - 1
    ranks = np.arange(1, weights.shape[1] + 1)
    last = (ordered - sums / ranks > 0).sum(1) - 1
    shift = sums[np.arange(len(weights)), last] / (last + 1)
    return np.maximum(weights - shift[:, None], 0)


def shrink(counts: np.ndarray, totals: np.ndarray, families: np.ndarray, scale: float) -> np.ndarray:
    """Return each row's distribution, drawn towards its family's, and that towards all rows'.

    How far follows from the noise that is known and the distances that are seen (empirical Bayes; Efron and Morris 1973).

    Parameters
    ----------
    counts : ndarray of float64, shape (rows, columns)
        Noised.
    totals : ndarray of float64, shape (rows,)
        What the rows should add up to; rows with a total of 0 or less are NaN.
    families : ndarray of int64, shape (rows,)
    scale : float
        Of each server's noise in one cell; 0 leaves the rows as they are.
    """
    size = np.bincount(families)
    by_family = np.zeros((len(size), counts.shape[1]))
    np.add.at(by_family, families, counts)
    family_totals = np.bincount(families, weights=np.maximum(totals, 0))
    whole = counts.sum(0)
    prior = project((whole / max(whole.sum(), 1.0))[None])[0]
    middle = _towards(by_family, family_totals, prior[None], spread(scale) * np.sqrt(size))
    found = _towards(counts, totals, middle[families], np.full(len(counts), spread(scale)))
    return np.where(totals[:, None] > 0, found, np.nan)


def _towards(counts: np.ndarray, totals: np.ndarray, priors: np.ndarray, sd: np.ndarray) -> np.ndarray:
    """Draw rows towards priors by noise / (noise + signal); see `_signals`."""
    safe = np.where(totals > 0, totals, 1)
    rows = counts / safe[:, None]
    noise = counts.shape[1] * (sd / safe) ** 2
    signal = _signals(((rows - priors) ** 2).sum(1) - noise, noise, counts.shape[1], totals > 0)
    weight = (noise / np.maximum(noise + signal, 1e-300))[:, None]
    return project(weight * priors + (1 - weight) * rows)


def _signals(seen: np.ndarray, noise: np.ndarray, columns: int, known: np.ndarray) -> np.ndarray:
    """Return how far each row truly lies from its prior: what is seen of it, weighed against all rows, by how uncertain it is.

    `seen` has a variance of some 4 noise**2 / columns for sums of two Laplace noises; true distances are taken to vary as much as their
    mean.
    """
    variance = 4 * noise**2 / columns
    common = max(float(seen[known].mean()), 0.0) if known.any() else 0.0
    for _ in range(8):
        certainty = np.where(known, 1 / np.maximum(variance + common**2, 1e-300), 0)
        common = max(float((certainty * seen).sum() / max(certainty.sum(), 1e-300)), 0.0)
    return np.maximum((seen * common**2 + common * variance) / np.maximum(common**2 + variance, 1e-300), 0)


def sections_of(detail: np.ndarray, layout: Layout) -> dict[str, np.ndarray]:
    """Return the detail part's sections as (rows, columns) arrays."""
    found, first = {}, 0
    for section in layout.sections:
        if section.part == DETAIL:
            size = section.rows * section.columns
            found[section.name] = detail[first : first + size].reshape(section.rows, section.columns).astype(np.float64)
            first += size
    return found


def _totals(raw: dict[str, np.ndarray], traffic: np.ndarray, variance: float, scales: dict[str, float], layout: Layout) -> np.ndarray:
    """Return each application's reports from all that tells them, weighted by certainty: its own counts and the sums of its rows."""
    applications = layout.applications
    weight, total = np.full(applications, 1 / variance if variance else 1.0), None
    total = traffic[:applications] * weight
    for name in ("kernels", "durations"):
        section: Section = layout.by_name[name]
        if scales.get(name):
            certainty = section.units**2 / (section.columns * spread(scales[name]) ** 2)
            total, weight = total + certainty * raw[name].sum(1) / section.units, weight + certainty
    return total / weight


def estimate(release: Release, scales: dict[str, float], layout: Layout, families: np.ndarray) -> Estimates:
    """Return what a release says; `scales` are each server's noise by section, see `aggregate.Outcome`, `families` each application's."""
    windows = int(release.released.sum())
    scale = scales["applications"]
    variance = windows * spread(scale) ** 2
    traffic = release.traffic.sum(0).astype(np.float64)
    seen = traffic > beyond_noise(scale, windows)
    shares, raw, half = {}, {}, {}
    if release.detail is not None:
        raw = sections_of(release.detail, layout)
        totals = np.maximum(_totals(raw, traffic, variance, scales, layout), 0)
        for name in (name for name in BLOCKS if name in scales):
            rows = totals * layout.by_name[name].units if scales[name] else raw[name].sum(1)
            shares[name] = shrink(raw[name], rows, families, scales[name])
        half = {name: interval(scale, CONFIDENCE) if scale else 0.0 for name, scale in scales.items()}
    return Estimates(traffic, np.full(len(traffic), np.sqrt(variance)), seen, shares, raw, half)


def beyond_noise(scale: float, windows: int) -> float:
    """Return the count above which a sum over windows is more than noise: exact for one window, by its standard deviation for several."""
    if scale == 0 or windows == 0:
        return 0.5
    if windows == 1:
        return interval(scale, SEEN_CONFIDENCE)
    return min(2.33 * spread(scale) * np.sqrt(windows) * 1.05, interval(scale, SEEN_CONFIDENCE) * windows)


def median_of(shares: np.ndarray) -> np.ndarray:
    """Return the median of binned durations in ns, log-linear inside a bin (the first from half its edge, the last to twice its own)."""
    edges = np.concatenate([[DURATION_EDGES_NS[0] / 2], DURATION_EDGES_NS, [DURATION_EDGES_NS[-1] * 2]]).astype(np.float64)
    steps = np.cumsum(np.nan_to_num(shares), axis=1)
    place = np.minimum((steps < 0.5).sum(1), shares.shape[1] - 1)
    rows = np.arange(len(shares))
    before = np.where(place > 0, steps[rows, place - 1], 0)
    inside = np.clip((0.5 - before) / np.maximum(shares[rows, place], 1e-12), 0, 1)
    return np.where(np.isnan(shares[:, 0]), np.nan, edges[place] * (edges[place + 1] / edges[place]) ** inside)


def resource_totals(found: Estimates, layout: Layout) -> dict[str, tuple[np.ndarray, float]]:
    """Return totals of each resource by application over the sampled windows, and the half-width of their interval, in its unit."""
    section = layout.by_name["resources"]
    each = section.units // len(RESOURCES)
    totals = {}
    for column, (name, clip) in enumerate(zip(RESOURCES, layout.clips, strict=True)):
        totals[name] = (found.raw["resources"][:, column] * clip / each, found.half["resources"] * clip / each)
    return totals

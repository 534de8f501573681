"""Errors of the simulated fleet's results, against the ground truth and against the same reports without protection."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from causeway.fleet.attribution.attribution import UNKNOWN
from causeway.fleet.attribution.catalogue import OTHER, Catalogue
from causeway.fleet.protection.noise import Noise
from causeway.fleet.release.cell_noise import CellNoise, ServerNoise, facts_of
from causeway.fleet.release.estimates import (
    DISTRIBUTIONS,
    Estimates,
    estimate,
    sections_of,
    shrink,
)
from causeway.fleet.release.release import Release
from causeway.fleet.report_layout import RESOURCES, ReportLayout
from causeway.fleet.world.applications import GENERATIONS, Suite

HOURS = (1, 2, 3, 4, 6, 8, 12, 16, 20, 24)
ALONE_DRAWS = 3
"""Noise draws over which the error of a section that has the whole budget is averaged."""


@dataclass(frozen=True, kw_only=True)
class GroundTruth:
    """The ground truth of the reports.

    Attributes
    ----------
    application : ndarray of int64, shape (n,)
        Index in the suite.
    catalogue_index : ndarray of int64, shape (n,)
        Index in the catalogue, `UNKNOWN` for applications that it does not hold.
    generation : ndarray of int64, shape (n,)
    new_version : ndarray of bool, shape (n,)
        Whether an unknown application is a new version of a known family.
    """

    application: np.ndarray
    catalogue_index: np.ndarray
    generation: np.ndarray
    new_version: np.ndarray


def ground_truth(suite: Suite, catalogue: Catalogue, application: np.ndarray, generation: np.ndarray) -> GroundTruth:
    """Return the ground truth of reports.

    Parameters
    ----------
    suite : Suite
    catalogue : Catalogue
    application, generation : ndarray of int64, shape (n,)
        Of each report, indices in the suite and in `GENERATIONS`.
    """
    index_of = {entry.name: index for index, entry in enumerate(catalogue.applications)}
    catalogue_index = np.array([index_of.get(entry.name, UNKNOWN) for entry in suite.applications])
    new_version = np.array(
        [entry.name not in index_of and entry.family in catalogue.families for entry in suite.applications]
    )
    return GroundTruth(
        application=application,
        catalogue_index=catalogue_index[application],
        generation=generation,
        new_version=new_version[application],
    )


def _share(flags: np.ndarray) -> float | None:
    return float(flags.mean()) if len(flags) else None


def attribution(
    truth: GroundTruth, application: np.ndarray, family: np.ndarray, suite: Suite, catalogue: Catalogue
) -> dict:
    """Return precision, recall and false accepts of the clients' attributions.

    Precision: the share of right attributions among all, those of unknown applications included. Recall: the share of
    right attributions among the reports of known applications. The catalogue was learnt from other runs.

    Parameters
    ----------
    truth : GroundTruth
    application, family : ndarray of int64, shape (n,)
        As attributed, indices in the catalogue; `UNKNOWN` where rejected.
    suite : Suite
    catalogue : Catalogue
    """
    is_known = truth.catalogue_index >= 0
    attributed = application >= 0
    index_of = {name: index for index, name in enumerate(catalogue.families)}
    true_family = np.array([index_of.get(entry.family, UNKNOWN) for entry in suite.applications])[truth.application]
    with_family = family >= 0
    return {
        "reports": len(is_known),
        "precision": _share(application[attributed] == truth.catalogue_index[attributed]),
        "recall": _share(application[is_known] == truth.catalogue_index[is_known]),
        "false_accepts": _share(attributed[~is_known]),
        "false_accepts_new_families": _share(attributed[~is_known & ~truth.new_version]),
        "false_accepts_new_versions": _share(attributed[~is_known & truth.new_version]),
        "family_precision": _share(family[with_family] == true_family[with_family]),
        "family_recall": _share(family[true_family >= 0] == true_family[true_family >= 0]),
        "recall_by_generation": {
            name: _share((application == truth.catalogue_index)[is_known & (truth.generation == index)])
            for index, name in enumerate(GENERATIONS)
        },
    }


@dataclass(frozen=True, kw_only=True)
class KernelPairs:
    """The pairs of known application and kernel that occur in the fleet.

    Attributes
    ----------
    application, kernel : ndarray of int64, shape (n,)
        Indices in the suite.
    weight : ndarray of float64, shape (n,)
        Share of the time in which the fleet's GPUs run kernels; adds up to 1.
    cell : ndarray of int64, shape (n,)
        Cell in the section of kernels, -1 for kernels without one of their own.
    """

    application: np.ndarray
    kernel: np.ndarray
    weight: np.ndarray
    cell: np.ndarray


def kernel_pairs(suite: Suite, catalogue: Catalogue, shares: np.ndarray) -> KernelPairs:
    """Return all pairs; kernels have their names on the first GPU generation. Sessions are equally long on average, and
    a GPU runs kernels in an application's busy share of them.

    Parameters
    ----------
    suite : Suite
    catalogue : Catalogue
    shares : ndarray of float64, shape (applications of the suite,)
        Of the sessions; see `sessions.popularity`.
    """
    index_of = {entry.name: index for index, entry in enumerate(catalogue.applications)}
    tokens = catalogue.tokens(suite.names[0])
    mean = suite.median_ns * np.exp(suite.spread**2 / 2)
    columns: list[tuple[int, int, float, int]] = []
    for index, entry in enumerate(suite.applications):
        if entry.in_catalogue:
            kernels, counts = np.unique(entry.body, return_counts=True)
            time = counts * mean[kernels]
            row = index_of[entry.name]
            top = catalogue.applications[row].kernels.tolist()
            cell_of = {token: row * catalogue.slots + 1 + rank for rank, token in enumerate(top)}
            weights = shares[index] * entry.busy * time / time.sum()
            cells = [cell_of.get(int(tokens[kernel]), -1) for kernel in kernels.tolist()]
            columns += zip([index] * len(kernels), kernels.tolist(), weights.tolist(), cells, strict=True)
    application, kernel, weight, cell = (np.array(values) for values in zip(*columns, strict=True))
    return KernelPairs(application=application, kernel=kernel, weight=weight / weight.sum(), cell=cell)


class FirstSampled:
    """The time at which each pair was first in a sample, filled batch by batch.

    Attributes
    ----------
    first_s : ndarray of float64, shape (pairs,)
        Seconds since midnight; infinite for pairs in no sample.
    """

    def __init__(self, pairs: KernelPairs, kernels: int) -> None:
        self._kernels = kernels
        self._keys = pairs.application * kernels + pairs.kernel
        self._order = np.argsort(self._keys)
        self.first_s = np.full(len(self._keys), np.inf)

    def add(self, application: np.ndarray, kernel: np.ndarray, sent_s: np.ndarray) -> None:
        """Add samples.

        Parameters
        ----------
        application : ndarray of int64, shape (n,)
        kernel : ndarray of int64, shape (n, launches)
        sent_s : ndarray of float64, shape (n,), seconds since midnight
        """
        keys = (application[:, None] * self._kernels + kernel).ravel()
        times = np.broadcast_to(sent_s[:, None], kernel.shape).ravel()
        ordered = self._keys[self._order]
        position = np.minimum(np.searchsorted(ordered, keys), len(ordered) - 1)
        hit = ordered[position] == keys
        np.minimum.at(self.first_s, self._order[position[hit]], times[hit])


def coverage(
    truth: GroundTruth,
    sent_s: np.ndarray,
    pairs: KernelPairs,
    first_s: np.ndarray,
    releases: Mapping[str, tuple[Release, Mapping[str, CellNoise]]],
    layout: ReportLayout,
) -> list[dict]:
    """Return coverage over the day, sampled and released, by hour, kind and mode.

    Applications: share of the catalogue's applications that run in the fleet. Kernels: share of the pairs of
    application and kernel, and the same weighted by GPU time; released once, at the end of the day. Released means:
    beyond the noise (`CellNoise.threshold`).

    Parameters
    ----------
    truth : GroundTruth
    sent_s : ndarray of float64, shape (reports,)
        Time of sending, seconds since midnight.
    pairs : KernelPairs
    first_s : ndarray of float64, shape (pairs,)
        See `FirstSampled`.
    releases : mapping of mode to (Release, noise)
    layout : ReportLayout
    """
    ran = np.unique(truth.catalogue_index[truth.catalogue_index >= 0])
    rows = []
    for hour in HOURS:
        by_then = sent_s < hour * 3600
        covered = (
            np.isin(ran, truth.catalogue_index[by_then & (truth.catalogue_index >= 0)]).mean() if len(ran) else None
        )
        sampled = {"applications": covered, "kernels": float((first_s < hour * 3600).mean())}
        sampled["kernels by time"] = float(pairs.weight[first_s < hour * 3600].sum())
        for mode, (release, noise) in releases.items():
            counts = release.traffic[:hour].sum(0)
            until = release.released & (np.arange(len(release.released)) < hour)
            threshold = noise["applications"].threshold(1, until)
            released: dict[str, float | None] = {
                "applications": float((counts[ran] > threshold).mean()) if len(ran) else None
            }
            released |= dict.fromkeys(("kernels", "kernels by time"), 0.0)
            if hour == HOURS[-1] and release.detail is not None and "kernels" in noise:
                detected = _detected_cells(release.detail, noise, layout)
                hit = (pairs.cell >= 0) & detected[np.maximum(pairs.cell, 0)]
                released |= {"kernels": float(hit.mean()), "kernels by time": float(pairs.weight[hit].sum())}
            rows += [
                {"hour": hour, "what": what, "mode": mode, "sampled": sampled[what], "released": released[what]}
                for what in sampled
            ]
    return rows


def _detected_cells(detail: np.ndarray, noise: Mapping[str, CellNoise], layout: ReportLayout) -> np.ndarray:
    """Return which cells of single kernels are beyond the noise: bool, shape (cells of the section,)."""
    section = layout.by_name["kernels"]
    counts = sections_of(detail, layout)[section.name].ravel()
    detected = counts > noise["kernels"].threshold()
    detected[OTHER :: section.columns] = False
    return detected


def total_variations(estimates: Estimates, reference: Estimates, layout: ReportLayout) -> dict[str, dict[str, float]]:
    """Return each section's total variation distance between released and unprotected distributions: its mean weighted
    by traffic, and the plain mean.
    """
    weight = reference.reports[: layout.applications]
    result = {}
    for name in estimates.distributions:
        each = 0.5 * np.abs(estimates.distributions[name] - reference.distributions[name]).sum(1)
        is_defined = ~np.isnan(each) & (weight > 0)
        if is_defined.any():
            result[name] = {
                "by_traffic": float(np.average(each[is_defined], weights=weight[is_defined])),
                "mean": float(each[is_defined].mean()),
            }
    return result


def whole_budget_errors(
    reference: Estimates, layout: ReportLayout, families: np.ndarray, noise: Noise, epsilon: float = 1.0
) -> dict[str, float]:
    """Return each section's total variation distance, weighted by traffic, if it had the whole of `epsilon`: nothing
    else is released then, so that its rows' sums are noisy, too.

    Parameters
    ----------
    reference : Estimates
        Without protection.
    layout : ReportLayout
    families : ndarray of int64, shape (applications,)
    noise : Noise
    epsilon : float
    """
    weight = reference.reports[: layout.applications]
    result = {}
    for name in DISTRIBUTIONS:
        section = replace(layout.by_name[name], epsilon=Fraction(str(epsilon)))
        distances = []
        for draw in range(ALONE_DRAWS):
            drawn = [
                noise.draw([section], f"alone/{draw}/{role}").reshape(section.rows, -1) for role in ("leader", "helper")
            ]
            counts = reference.noisy[name] + drawn[0] + drawn[1]
            variance = ServerNoise(section.noise_scale).variance(counts)
            shrunk = shrink(counts, counts.sum(1), families, variance)
            each = 0.5 * np.abs(shrunk - reference.distributions[name]).sum(1)
            is_defined = ~np.isnan(each) & (weight > 0)
            if is_defined.any():
                distances.append(np.average(each[is_defined], weights=weight[is_defined]))
        result[name] = float(np.mean(distances)) if distances else 0.0
    return result


def interval_coverage(estimates: Estimates, reference: Estimates) -> dict[str, float]:
    """Return the intervals' coverage: the share of each section's cells whose unprotected count lies inside its own."""
    return {
        name: float((np.abs(estimates.noisy[name] - reference.noisy[name]) <= estimates.half_width[name]).mean())
        for name in estimates.noisy
        if estimates.half_width[name].any()
    }


def resource_errors(estimates: Estimates, reference: Estimates) -> dict[str, float]:
    """Return the relative error of each resource's total over known applications."""
    totals = estimates.noisy["resources"].sum(0)
    exact = reference.noisy["resources"].sum(0)
    return {
        name: float(totals[index] / exact[index] - 1) if exact[index] else 0.0 for index, name in enumerate(RESOURCES)
    }


def evaluate_mode(
    release: Release, noise: Mapping[str, CellNoise], reference: Estimates, layout: ReportLayout, families: np.ndarray
) -> dict:
    """Return the errors of one mode's release against the unprotected one.

    Parameters
    ----------
    release : Release
    noise : mapping of section to CellNoise
        See `aggregate.ReleasedDay`.
    reference : Estimates
        Without protection.
    layout : ReportLayout
    families : ndarray of int64, shape (applications,)
    """
    estimates = estimate(release, noise, layout, families)
    weight = reference.reports[: layout.applications]
    mix = np.maximum(estimates.reports[: layout.applications], 0)
    away = 0.5 * np.abs(mix / max(mix.sum(), 1) - weight / max(weight.sum(), 1)).sum()
    result = {
        "epsilon": release.epsilon,
        "noise": facts_of(noise),
        "windows_released": int(release.released.sum()),
        "total_variation": total_variations(estimates, reference, layout),
        "traffic_total_variation": None if np.isnan(away) else float(away),
    }
    if estimates.noisy:
        result["within_interval"] = interval_coverage(estimates, reference)
    if "resources" in estimates.noisy:
        result["resource_errors"] = resource_errors(estimates, reference)
    return result

"""How good the simulated fleet's answers are, against the world's truth and against the same reports without protection."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from causeway.fleet.applications import GENERATIONS, Suite
from causeway.fleet.attribution import UNKNOWN
from causeway.fleet.catalogue import OTHER, Catalogue
from causeway.fleet.estimates import BLOCKS, Estimates, beyond_noise, estimate, shrink
from causeway.fleet.layout import RESOURCES, Layout
from causeway.fleet.noise import Noise
from causeway.fleet.release import Release

HOURS = (1, 2, 3, 4, 6, 8, 12, 16, 20, 24)
ALONE_DRAWS = 3
"""Noise draws over which the error of a section that has the whole budget is averaged."""


@dataclass(frozen=True)
class Truth:
    """What is true of the reports.

    Attributes
    ----------
    application : ndarray of int64, shape (n,)
        In the suite.
    known : ndarray of int64, shape (n,)
        In the catalogue, `UNKNOWN` where it does not hold it.
    generation : ndarray of int64, shape (n,)
    new_version : ndarray of bool, shape (n,)
        Whether an unknown application is a new version of a known family.
    """

    application: np.ndarray
    known: np.ndarray
    generation: np.ndarray
    new_version: np.ndarray


def truth_of(suite: Suite, catalogue: Catalogue, application: np.ndarray, generation: np.ndarray) -> Truth:
    """Return the truth of reports whose applications and GPU generations are given."""
    number = {entry.name: place for place, entry in enumerate(catalogue.applications)}
    known = np.array([number.get(entry.name, UNKNOWN) for entry in suite.applications])
    kin = np.array([number.get(entry.name) is None and entry.family in catalogue.families for entry in suite.applications])
    return Truth(application, known[application], generation, kin[application])


def _share(flags: np.ndarray) -> float | None:
    return float(flags.mean()) if len(flags) else None


def attribution(truth: Truth, application: np.ndarray, family: np.ndarray, suite: Suite, catalogue: Catalogue) -> dict:
    """Return precision, recall and false accepts of the clients' decisions.

    Precision: of the reports that were given an application, unknown applications' included, the share that was given the right one.
    Recall: of the reports of known applications, the share that was given the right one. The runs of reports were in no training.
    """
    known, given = truth.known >= 0, application >= 0
    number = {name: place for place, name in enumerate(catalogue.families)}
    true_family = np.array([number.get(entry.family, UNKNOWN) for entry in suite.applications])[truth.application]
    kin = family >= 0
    return {
        "reports": len(known),
        "precision": _share(application[given] == truth.known[given]),
        "recall": _share(application[known] == truth.known[known]),
        "false_accepts": _share(given[~known]),
        "false_accepts_new_families": _share(given[~known & ~truth.new_version]),
        "false_accepts_new_versions": _share(given[~known & truth.new_version]),
        "family_precision": _share(family[kin] == true_family[kin]),
        "family_recall": _share(family[true_family >= 0] == true_family[true_family >= 0]),
        "recall_by_generation": {
            name: _share(application[known & (truth.generation == place)] == truth.known[known & (truth.generation == place)])
            for place, name in enumerate(GENERATIONS)
        },
    }


@dataclass(frozen=True)
class Pairs:
    """The pairs of known application and kernel that the fleet can show.

    Attributes
    ----------
    application, kernel : ndarray of int64
        Application in the suite, kernel in the suite.
    weight : ndarray of float64
        Share of the fleet's GPU time; adds up to 1.
    cell : ndarray of int64
        Cell in the section of kernels, -1 for kernels without one of their own.
    """

    application: np.ndarray
    kernel: np.ndarray
    weight: np.ndarray
    cell: np.ndarray


def pairs_of(suite: Suite, catalogue: Catalogue, shares: np.ndarray) -> Pairs:
    """Return all pairs; `shares` is each application's part of the sessions. Kernels are named as on the first GPU generation."""
    number = {entry.name: place for place, entry in enumerate(catalogue.applications)}
    tokens = catalogue.tokens(suite.names[0])
    mean = suite.median_ns * np.exp(suite.spread**2 / 2)
    columns: list[tuple[int, int, float, int]] = []
    for place, entry in enumerate(suite.applications):
        if entry.known:
            kernels, counts = np.unique(entry.body, return_counts=True)
            time = counts * mean[kernels]
            mine = catalogue.applications[number[entry.name]].kernels.tolist()
            slot = {token: number[entry.name] * catalogue.slots + 1 + rank for rank, token in enumerate(mine)}
            weights = shares[place] * time / time.sum()
            cells = [slot.get(int(tokens[kernel]), -1) for kernel in kernels.tolist()]
            columns += zip([place] * len(kernels), kernels.tolist(), weights.tolist(), cells, strict=True)
    application, kernel, weight, cell = (np.array(values) for values in zip(*columns, strict=True))
    return Pairs(application, kernel, weight / weight.sum(), cell)


class Sampled:
    """When each pair was first in a sample, filled piece by piece."""

    def __init__(self, pairs: Pairs, kernels: int) -> None:
        self._kernels = kernels
        self._keys = pairs.application * kernels + pairs.kernel
        self._order = np.argsort(self._keys)
        self.first_s = np.full(len(self._keys), np.inf)

    def add(self, application: np.ndarray, kernel: np.ndarray, sent_s: np.ndarray) -> None:
        """Take samples: application (n,), kernel (n, launches), time of sending (n,)."""
        keys = (application[:, None] * self._kernels + kernel).ravel()
        times = np.broadcast_to(sent_s[:, None], kernel.shape).ravel()
        ordered = self._keys[self._order]
        at = np.minimum(np.searchsorted(ordered, keys), len(ordered) - 1)
        hit = ordered[at] == keys
        np.minimum.at(self.first_s, self._order[at[hit]], times[hit])


def coverage(
    truth: Truth, sent_s: np.ndarray, pairs: Pairs, first_s: np.ndarray, releases: Mapping[str, tuple[Release, dict]], layout: Layout
) -> list[dict]:
    """Return coverage over the day, as sampled and as released, by hour, kind and mode.

    Applications: share of the catalogue's applications that run in the fleet. Kernels: share of the pairs of application and kernel, and
    the same weighted by GPU time; released once, at the end of the day. Released means: beyond the noise (`estimates.beyond_noise`).
    """
    ran = np.unique(truth.known[truth.known >= 0])
    rows = []
    for hour in HOURS:
        by_then = sent_s < hour * 3600
        seen = np.isin(ran, truth.known[by_then & (truth.known >= 0)]).mean() if len(ran) else None
        sampled = {"applications": seen, "kernels": float((first_s < hour * 3600).mean())}
        sampled["kernels by time"] = float(pairs.weight[first_s < hour * 3600].sum())
        for mode, (release, scales) in releases.items():
            counts = release.traffic[:hour].sum(0)
            bar = beyond_noise(scales["applications"], int(release.released[:hour].sum()))
            released: dict[str, float | None] = {"applications": float((counts[ran] > bar).mean()) if len(ran) else None}
            released |= dict.fromkeys(("kernels", "kernels by time"), 0.0)
            if hour == HOURS[-1] and release.detail is not None and "kernels" in scales:
                shown = _cells_shown(release, scales, layout)
                hit = (pairs.cell >= 0) & shown[np.maximum(pairs.cell, 0)]
                released |= {"kernels": float(hit.mean()), "kernels by time": float(pairs.weight[hit].sum())}
            rows += [{"hour": hour, "what": what, "mode": mode, "sampled": sampled[what], "released": released[what]} for what in sampled]
    return rows


def _cells_shown(release: Release, scales: dict, layout: Layout) -> np.ndarray:
    section = layout.by_name["kernels"]
    first = section.first - layout.by_name["kernels"].first
    counts = release.detail[first : first + section.rows * section.columns]
    shown = counts > beyond_noise(scales["kernels"], 1)
    shown[OTHER :: section.columns] = False
    return shown


def distances(found: Estimates, reference: Estimates, layout: Layout) -> dict[str, dict[str, float]]:
    """Return for each section the total variation between released and unprotected distributions: by traffic, and the plain mean."""
    weight = reference.reports[: layout.applications]
    result = {}
    for name in found.shares:
        each = 0.5 * np.abs(found.shares[name] - reference.shares[name]).sum(1)
        known = ~np.isnan(each) & (weight > 0)
        if known.any():
            result[name] = {"by_traffic": float(np.average(each[known], weights=weight[known])), "mean": float(each[known].mean())}
    return result


def alone(reference: Estimates, layout: Layout, families: np.ndarray, noise: Noise, epsilon: float = 1.0) -> dict[str, float]:
    """Return each section's total variation, by traffic, if it had the whole of `epsilon` for itself."""
    from dataclasses import replace
    from fractions import Fraction

    weight, result = reference.reports[: layout.applications], {}
    for name in BLOCKS:
        section = replace(layout.by_name[name], epsilon=Fraction(str(epsilon)))
        distances_seen = []
        for draw in range(ALONE_DRAWS):
            drawn = [noise.draw([section], f"alone/{draw}/{role}").reshape(section.rows, -1) for role in ("leader", "helper")]
            shares = shrink(reference.raw[name] + drawn[0] + drawn[1], reference.raw[name].sum(1), families, section.scale)
            each = 0.5 * np.abs(shares - reference.shares[name]).sum(1)
            known = ~np.isnan(each) & (weight > 0)
            if known.any():
                distances_seen.append(np.average(each[known], weights=weight[known]))
        result[name] = float(np.mean(distances_seen)) if distances_seen else 0.0
    return result


def within(found: Estimates, reference: Estimates) -> dict[str, float]:
    """Return the share of each section's cells whose unprotected count lies inside the released interval."""
    return {
        name: float((np.abs(found.raw[name] - reference.raw[name]) <= found.half[name]).mean())
        for name in found.raw
        if found.half.get(name)
    }


def resource_errors(found: Estimates, reference: Estimates) -> dict[str, float]:
    """Return the relative error of each resource's total over known applications."""
    totals, exact = found.raw["resources"].sum(0), reference.raw["resources"].sum(0)
    return {name: float(totals[place] / exact[place] - 1) if exact[place] else 0.0 for place, name in enumerate(RESOURCES)}


def evaluate_mode(release: Release, scales: dict, reference: Estimates, layout: Layout, families: np.ndarray) -> dict:
    """Return the errors of one mode's release against the unprotected one."""
    found = estimate(release, scales, layout, families)
    weight = reference.reports[: layout.applications]
    mix = np.maximum(found.reports[: layout.applications], 0)
    result = {
        "epsilon": release.epsilon,
        "scales": scales,
        "windows_released": int(release.released.sum()),
        "total_variation": distances(found, reference, layout),
        "traffic_total_variation": float(0.5 * np.abs(mix / max(mix.sum(), 1) - weight / max(weight.sum(), 1)).sum()),
    }
    if "resources" in scales and found.raw:
        result |= {"within_interval": within(found, reference), "resource_errors": resource_errors(found, reference)}
    return result

"""What the changes of a comparison's kernels came with, of those that both runs have and whose mean moved."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from causeway.causal.attribution.kernel_rows import guarded, read_rows
from causeway.causal.attribution.run_changes import RunChange, run_change
from causeway.causal.attribution.slow_table import NO_DOWHY
from causeway.causal.data.outcome import CONFIGURATION
from causeway.causal.data.scopes import kernel_names
from causeway.core.tables import read_table
from causeway.core.vocabulary import EXACT, KERNEL_VARIABILITY, SUPPORTED
from causeway.numeric.process import single_threaded
from causeway.numeric.seeds import derived_seed

MOST_KERNELS = 10
"""Kernels that are looked at, those whose changes make most GPU time: some two CPU-seconds each."""


def attributed_changes(
    rows: Sequence[Mapping], causes: Sequence[Mapping[str, str]], seed: int, confidence: float
) -> dict | None:
    """Return what the changes came with, as `attributions` of the comparison's document; None where causes of kernels
    were not searched in both runs.

    Parameters
    ----------
    rows : sequence of mapping
        Of `comparison.parquet`.
    causes : per side, mapping of str to path
        Contributions of the whole dataset by target.
    seed : int
    confidence : float, 0 to 1
        Of the intervals.
    """
    if not all(KERNEL_VARIABILITY in side for side in causes):
        return None
    folders = [Path(side[KERNEL_VARIABILITY]).parents[2] for side in causes]
    ids = [{name: kernel for kernel, name in kernel_names(folder / "kernels.parquet").items()} for folder in folders]
    moved = [row for row in rows if _has_moved(row) and all(row["baseline"] in own for own in ids)]
    moved.sort(key=lambda row: (-_difference(row), row["baseline"]))
    moved = moved[:MOST_KERNELS]
    pairs = {row["baseline"]: [own[row["baseline"]] for own in ids] for row in moved}
    wanted = {name: _causes(folders, kernels) for name, kernels in pairs.items()}
    found = {}
    why = None
    try:
        with single_threaded(["sklearn.ensemble", "sklearn.linear_model"]):  # which dowhy fits
            for name, parts in _rows(folders, pairs, wanted).items():
                own_seed = derived_seed(seed, *pairs[name], "run change")
                found[name] = guarded(name, partial(run_change, parts, wanted[name], own_seed, confidence))
    except ImportError:
        why = NO_DOWHY
        found = {}
    said = [(row, found[row["baseline"]]) for row in moved if row["baseline"] in found]
    return {
        "why": why,
        "kernels": [_kernel(row, change) for row, change in said if isinstance(change, RunChange)],
        "silent": [{"kernel": row["baseline"], "why": change} for row, change in said if isinstance(change, str)],
    }


def _has_moved(row: Mapping) -> bool:
    """Tell whether a row is a kernel on both sides whose own mean moved by more than the noise floor."""
    if row["level"] != "kernel" or row["metric"] != "time_per_launch" or row["match"] != EXACT:
        return False
    before, after, floor = (row[name] for name in ("baseline_value", "candidate_value", "floor_percent"))
    return None not in (before, after, floor) and 100 * abs(after - before) > floor * before


def _difference(row: Mapping) -> float:
    """Return the GPU time that the change makes over the candidate's launches, ns."""
    return abs(row["candidate_value"] - row["baseline_value"]) * row["candidate_launches"]


def _causes(folders: Sequence[Path], kernels: Sequence[str]) -> list[str]:
    """Return the supported causes of a kernel in either run, the largest share of the variance first."""
    shares: dict[str, float] = {}
    for folder, kernel in zip(folders, kernels, strict=True):
        path = folder / "causal" / kernel / "contributions.parquet"
        columns = ["feature", "stage", "verdict", "variance_percent"]
        for row in read_table(path, "contributions", columns).to_pylist() if path.exists() else ():
            if row["verdict"] == SUPPORTED and row["stage"] not in ("none", CONFIGURATION):
                shares[row["feature"]] = max(row["variance_percent"] or 0.0, shares.get(row["feature"], 0.0))
    return sorted(shares, key=lambda name: (-shares[name], name))


def _rows(folders: Sequence[Path], pairs: Mapping[str, Sequence[str]], wanted: Mapping[str, Sequence[str]]) -> dict:
    """Return the rows of both runs by kernel, of the kernels that have some in both."""
    sides = [
        read_rows(folder, {kernels[side]: wanted[name] for name, kernels in pairs.items()}) if pairs else {}
        for side, folder in enumerate(folders)
    ]
    return {
        name: [own[kernel] for own, kernel in zip(sides, kernels, strict=True)]
        for name, kernels in pairs.items()
        if all(kernel in own for own, kernel in zip(sides, kernels, strict=True))
    }


def _kernel(row: Mapping, change: RunChange) -> dict:
    """Return a kernel's change in whole ns: the parts and the rest sum to it."""
    whole = round(row["candidate_value"] - row["baseline_value"])
    tail, *tail_ends = np.rint(change.tail).astype(int).tolist()
    least = row["floor_percent"] / 100 * row["baseline_value"]
    parts = []
    for part in change.parts:
        mean, low, high = np.rint(part.mean).astype(int).tolist()
        of_tail = np.rint(part.tail).astype(int).tolist()
        parts.append(
            {
                "feature": part.feature,
                "kind": part.kind,
                "before": part.before,
                "after": part.after,
                **{"mean_ns": mean, "mean_low_ns": low, "mean_high_ns": high},
                **dict(zip(("p99_ns", "p99_low_ns", "p99_high_ns"), of_tail, strict=True)),
                "is_clear": (low > 0 or high < 0) and abs(mean) >= least,
            }
        )
    half = (change.mean[2] - change.mean[1]) / 2
    return {
        "kernel": row["baseline"],
        "baseline_ns": row["baseline_value"],
        "candidate_ns": row["candidate_value"],
        **{"mean_ns": whole, "mean_low_ns": round(whole - half), "mean_high_ns": round(whole + half)},
        **{"p99_ns": tail, "p99_low_ns": tail_ends[0], "p99_high_ns": tail_ends[1]},
        "parts": parts,
        "mean_rest_ns": whole - sum(part["mean_ns"] for part in parts),
        "p99_rest_ns": tail - sum(part["p99_ns"] for part in parts),
    }

"""Why a kernel's launches last longer, or less, in one run than in another: which inputs moved, and whether the kernel
does otherwise under equal conditions.

Inputs are the mix of configurations and the columns that either run found to be causes. Each input, and the kernel's
own mechanism, is exchanged for that of the other run; Shapley values of the mean, and of the 99th percentile, are what
came with it. Where hardly a launch of one run has values of the other, input and mechanism are not told apart.

References
----------
K. Budhathoki, D. Janzing, P. Bloebaum, H. Ng, Why did the distribution change?, Proc. AISTATS 2021, PMLR 130:1666.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy import stats

from causeway.causal.data.outcome import CONFIGURATION
from causeway.causal.data.scopes import kernel_names
from causeway.causal.effects.time_model import MAX_ROWS
from causeway.causal.models.kernel_rows import (
    MOST_CAUSES,
    MOST_CONFIGURATIONS,
    MOST_LEVELS,
    Curve,
    DrawnRows,
    KernelRows,
    as_codes,
    curves_of_runs,
    evenly,
    guarded,
    is_category,
    load_gcm,
    ns_each,
    read_rows,
)
from causeway.causal.models.slow_launches import NO_DOWHY
from causeway.core.tables import read_table
from causeway.core.vocabulary import EXACT, KERNEL_VARIABILITY, MEMORY_STALL, SUPPORTED
from causeway.numeric.block_resampling import block_numbers, resampled_rows
from causeway.numeric.effective_size import REFUSED_BELOW
from causeway.numeric.process import single_threaded
from causeway.numeric.seeds import derived_seed

MOST_KERNELS = 10
"""Kernels that are looked at, those whose changes make most GPU time: some two CPU-seconds each."""


if TYPE_CHECKING:
    from dowhy import gcm

MECHANISM = "mechanism"
TARGET = "target"
DRAWS = 2000
"""Launches that are drawn from a model."""
RESAMPLES = 30
"""Of blocks, behind a standard error: known to 13 %."""
LEAST_OVERLAP = 0.1
"""Share of launches with values that both runs have, below which input and mechanism are not told apart."""
WIDER_TAIL = 1.25
"""Widening of the interval of the 99th percentile's parts, which held .82 of 140 truths without: 1.645 / 1.34."""

Kind = Literal["input", "mechanism", "either"]


@dataclass(frozen=True, kw_only=True)
class ChangePart:
    """What came with an input or with the mechanism; `either` where that is not told apart.

    Attributes
    ----------
    feature : str
        `mechanism` for the kernel itself.
    mean, tail : tuple of float, ns
        ChangePart of the change of the mean and of the 99th percentile: value, low, high.
    before, after : float or None
        The input's own mean in both runs; None of a category.
    """

    feature: str
    kind: Kind
    mean: tuple[float, float, float]
    tail: tuple[float, float, float]
    before: float | None = None
    after: float | None = None


@dataclass(frozen=True, kw_only=True)
class RunChange:
    """The change of a kernel's mean and 99th percentile between two runs, ns: value, low, high; and its parts."""

    mean: tuple[float, float, float]
    tail: tuple[float, float, float]
    parts: tuple[ChangePart, ...]


@dataclass(frozen=True)
class _Run:
    """Parents of the target, shape (n_rows, n_inputs), and values, ns."""

    inputs: np.ndarray
    value: np.ndarray

    def evenly(self, weight: np.ndarray, rows: np.ndarray) -> "_Run":
        """Return some rows as often as they weigh."""
        own = rows[evenly(weight[rows], min(rows.size, MAX_ROWS))]
        return _Run(self.inputs[own], self.value[own])


def run_change(rows: Sequence[KernelRows], causes: Sequence[str], seed: int, confidence: float) -> RunChange | str:
    """Return what a change of durations came with, or why nothing is said.

    Parameters
    ----------
    rows : pair of KernelRows
        Of the baseline and of the candidate.
    causes : sequence of str
        Columns that either run found to be causes, the strongest first.
    seed : int
    confidence : float, 0 to 1
        Of the intervals.
    """
    if min(len(run_rows) for run_rows in rows) < REFUSED_BELOW:
        return f"fewer than {REFUSED_BELOW:.0f} launches of a run have their causes recorded"
    lost = [name for name in causes if not all(name in run_rows.causes for run_rows in rows)]
    if lost:
        return f"not recorded in both runs: {', '.join(lost)}"
    names = [name for name in causes if _differs(rows, name)][:MOST_CAUSES]
    columns = {name: [run_rows.causes[name] for run_rows in rows] for name in names}
    if len({*rows[0].configuration, *rows[1].configuration}) > 1:
        columns = {CONFIGURATION: [run_rows.configuration for run_rows in rows], **columns}
    names = list(columns)
    if not names:
        return "no cause was found in either run"
    categories = [is_category(columns[name]) for name in names]
    codes = [as_codes(columns[name], MOST_CONFIGURATIONS if name == CONFIGURATION else MOST_LEVELS) for name in names]
    runs = [
        _Run(np.column_stack([np.zeros((len(run_rows), 0)), *(code[side] for code in codes)]), run_rows.value)
        for side, run_rows in enumerate(rows)
    ]
    blocks = [block_numbers(np.log(run_rows.value), len(run_rows)) for run_rows in rows]
    rng = np.random.default_rng(seed)
    weights = [run_rows.weight for run_rows in rows]
    taken = [[np.arange(own.size) for own in blocks]]
    taken += [[resampled_rows(own, rng) for own in blocks] for _ in range(RESAMPLES)]
    drawn = [[run.evenly(weight, own) for run, weight, own in zip(runs, weights, pair, strict=True)] for pair in taken]
    totals = np.array([_both(*(run.value for run in pair)) for pair in drawn])
    reach = float(stats.norm.isf((1 - confidence) / 2))
    mean, tail = _intervals(totals, reach)
    if mean[1] <= 0 <= mean[2]:
        return "the change is within the noise of the runs"
    shares = np.array([_shares(pair, categories, names) for pair in drawn])  # draw by player
    apart = [_overlap(code, weights) < LEAST_OVERLAP for code in codes]
    merged = [*(number for number, is_apart in enumerate(apart) if is_apart), len(names)]
    shares[:, len(names)] = shares[:, merged].sum(axis=1)
    parts = []
    for number, name in enumerate([*names, MECHANISM]):
        if number in merged[:-1]:
            continue
        kind: Kind = "input" if number < len(names) else "either" if len(merged) > 1 else "mechanism"
        joined = [names[index] for index in merged[:-1]] if kind == "either" else [name]
        ends: list[float | None] = [None, None]
        if kind == "input" and not categories[number]:
            ends = [
                float(np.average(code, weights=weight)) for code, weight in zip(codes[number], weights, strict=True)
            ]
        of_mean, of_tail = _intervals(shares[:, number], reach)
        parts.append(
            ChangePart(feature=", ".join(joined), kind=kind, mean=of_mean, tail=of_tail, before=ends[0], after=ends[1])
        )
    return RunChange(mean=mean, tail=tail, parts=tuple(parts))


def _differs(rows: Sequence[KernelRows], name: str) -> bool:
    """Tell whether a column has more than one value in both runs together."""
    return len({value for run_rows in rows for value in np.unique(run_rows.causes[name]).tolist()}) > 1


def _intervals(values: np.ndarray, reach: float) -> list[tuple[float, float, float]]:
    """Return the first value of both statistics, each with an interval by the scatter of the others; wider for the 99th
    percentile, as no resample shows the form of the tail.
    """
    parts = []
    for column, wider in ((values.real, 1.0), (values.imag, WIDER_TAIL)):
        half = wider * reach * float(np.std(column[1:], ddof=1))
        parts.append((float(column[0]), float(column[0] - half), float(column[0] + half)))
    return parts


def _both(old: np.ndarray, new: np.ndarray) -> complex:
    """Return the change of the mean, and as the imaginary part that of the 99th percentile: Shapley values are linear,
    so that one replay gives both.
    """
    return complex(float(np.mean(new) - np.mean(old)), float(np.quantile(new, 0.99) - np.quantile(old, 0.99)))


def _overlap(codes: Sequence[np.ndarray], weights: Sequence[np.ndarray]) -> float:
    """Return the share of launches with values that both runs have: values in ten bins of equal counts, or one by one
    where they are few.
    """
    both = np.concatenate(codes)
    different = np.unique(both)
    edges = different[1:] if different.size <= 10 else np.unique(np.quantile(both, np.linspace(0.1, 0.9, 9)))
    shares = []
    for code, weight in zip(codes, weights, strict=True):
        counts = np.bincount(np.searchsorted(edges, code, side="right"), weight, edges.size + 1)
        shares.append(counts / counts.sum())
    return float(np.minimum(*shares).sum())


def _shares(pair: Sequence[_Run], categories: Sequence[bool], names: Sequence[str]) -> list[complex]:
    """Return what each input and the mechanism brought, as `_both` gives it."""
    gcm = load_gcm()
    models = _models(pair, categories, [number for number, name in enumerate(names) if name == CONFIGURATION])
    config = gcm.shapley.ShapleyConfig(gcm.shapley.ShapleyApproximationMethods.EXACT, n_jobs=1)
    shares: Mapping[str, complex] = gcm.distribution_change_of_graphs(*models, TARGET, DRAWS, _both, config)
    return [shares[node] for node in (*_nodes(len(names)), TARGET)]


def _nodes(count: int) -> list[str]:
    """Return the nodes of the inputs: gcm hands over parents in the order of their names."""
    return [f"{number:02d}" for number in range(count)]


def _models(
    pair: Sequence[_Run], categories: Sequence[bool], configuration: Sequence[int]
) -> "list[gcm.StructuralCausalModel]":
    """Return the structural models of both runs: a number follows from the configuration and from what is its own.

    All nodes of a run draw the same rows, so that its inputs hang together as they did; those of the other run are
    drawn independently.
    """
    import networkx as nx
    from dowhy import gcm
    from dowhy.gcm.causal_models import PARENTS_DURING_FIT

    nodes = _nodes(len(categories))
    curves = curves_of_runs(
        [run.inputs for run in pair], [np.log(run.value) for run in pair], categories, configuration
    )
    models = []
    for turn, (run, curve) in enumerate(zip(pair, curves, strict=True)):
        graph = nx.DiGraph()
        graph.add_nodes_from([*nodes, TARGET])
        graph.add_edges_from((node, TARGET) for node in nodes)
        model = gcm.StructuralCausalModel(graph)
        for number, node in enumerate(nodes):
            own = run.inputs[:, number]
            if configuration and not categories[number]:
                graph.add_edge(nodes[configuration[0]], node)
                mechanism = gcm.AdditiveNoiseModel(Curve((True,)), DrawnRows(turn))
                mechanism.fit(run.inputs[:, configuration], own)
            else:
                mechanism = DrawnRows(turn)
                mechanism.fit(own)
            model.set_causal_mechanism(node, mechanism)
        function = gcm.ml.regression.InvertibleExponentialFunction()
        mechanism = gcm.PostNonlinearModel(curve, DrawnRows(turn), function)
        mechanism.fit(run.inputs, run.value)
        model.set_causal_mechanism(TARGET, mechanism)
        for node in graph.nodes:
            graph.nodes[node][PARENTS_DURING_FIT] = sorted(graph.predecessors(node))
        models.append(model)
    return models


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
    times = [_times_measured(side) for side in causes]
    target = next((target for target in times[0] if target in times[1]), None)
    if target is None:
        return None
    folders = [Path(side[target]).parents[2] for side in causes]
    ids = [{name: kernel for kernel, name in kernel_names(folder / "kernels.parquet").items()} for folder in folders]
    moved = [row for row in rows if _has_moved(row) and all(row["baseline"] in own for own in ids)]
    moved.sort(key=lambda row: (-_difference(row), row["baseline"]))
    moved = moved[:MOST_KERNELS]
    pairs = {row["baseline"]: [own[row["baseline"]] for own in ids] for row in moved}
    wanted = {name: _causes(folders, kernels) for name, kernels in pairs.items()}
    changes = {}
    why = None
    try:
        with single_threaded(["sklearn.ensemble", "sklearn.linear_model"]):  # which dowhy fits
            for name, parts in _rows(folders, pairs, wanted).items():
                own_seed = derived_seed(seed, *pairs[name], "run change")
                changes[name] = guarded(name, partial(run_change, parts, wanted[name], own_seed, confidence))
    except ImportError:
        why = NO_DOWHY
    said = [(row, changes[row["baseline"]]) for row in moved if row["baseline"] in changes]
    return {
        "why": why,
        "kernels": [_kernel(row, change) for row, change in said if isinstance(change, RunChange)],
        "silent": [{"kernel": row["baseline"], "why": change} for row, change in said if isinstance(change, str)],
    }


def _times_measured(side: Mapping[str, str]) -> list[str]:
    """Return the targets of a run, by their contributions, that are times of launches; that of a trace first."""
    ranked = sorted(side, key=lambda target: target != KERNEL_VARIABILITY)
    return [target for target in ranked if target != MEMORY_STALL and ns_each(Path(side[target]).parents[2])]


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
        dict(read_rows(folder, {kernels[side]: wanted[name] for name, kernels in pairs.items()})) if pairs else {}
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

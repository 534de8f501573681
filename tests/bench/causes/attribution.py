"""How right attributions are: of a change between two runs to inputs and mechanism, and of slow launches to causes.

python -m tests.bench.causes.attribution shifts FIRST COUNT [KIND ...]     pairs of simulated runs, truth by replay
python -m tests.bench.causes.attribution slow FIRST COUNT       slow launches of simulated runs, the same
python -m tests.bench.causes.attribution recorded               launches on a GPU whose causes were drawn at random
"""

import sys
import tempfile
from collections import defaultdict
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from tests.bench.inputs import ROOT
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(ROOT / "scripts"))
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "tests" / "unit" / "causal"))

from recorded_experiments import Experiment

from causeway.causal.models.kernel_rows import KernelRows, read_rows
from causeway.causal.models.run_changes import MECHANISM, run_change
from causeway.causal.models.slow_launches import slow_launches
from lab.validation.further_generators.run_shifts import INPUTS, KINDS, Shift, draw, recorded, slow_truth

CONFIDENCE = 0.9
MOST_DRAWS = 8
"""Groups of draws that are told apart where numbers were drawn from many."""
RECORDINGS = (
    *(("h100", "neighbours", "beside"), ("h100", "batches", "batch"), ("h100", "copies", "copy")),
    *(("h100", "sizes", "elements"), ("h100", "idle", "idle_ms"), ("h100", "cache", ""), ("h100", "power", "")),
    *(("h200", "copies", "copy"), ("h200", "neighbour_kinds", "beside"), ("h200", "number_beside", "number")),
    *(("h200", "matrices", "rows"), ("h200", "lookups", ""), ("h200", "strides", ""), ("h200", "host_memory", "")),
)
"""Recordings, each with what was drawn for its launches; empty: the first that was."""


def rows_of(inputs: dict[str, np.ndarray], value: np.ndarray) -> KernelRows:
    """Return launches that all weigh the same."""
    size = value.size
    inputs = recorded(inputs)
    configuration = inputs.pop("configuration")
    return KernelRows(
        value=value,
        mean=np.array([value[configuration == one].mean() for one in configuration]),
        weight=np.ones(size),
        configuration=configuration,
        causes=inputs,
        units={},
        launches=pa.table({}),
    )


def judged(shift: Shift, seed: int) -> list[tuple[float, ...]] | str:
    """Return of each part: its truth, estimate and ends of the mean, then of the tail, in the sum of the sizes of all true parts;
    or why nothing was said.
    """
    found = run_change(
        [rows_of(*parts) for parts in zip(shift.inputs, shift.value, strict=True)], INPUTS[1:], seed, CONFIDENCE
    )
    if isinstance(found, str):
        return found
    lines = []
    for part in found.parts:
        names = part.feature.split(", ") + ([MECHANISM] if part.kind == "either" else [])
        line = []
        for truth, estimate in ((shift.mean, part.mean), (shift.tail, part.tail)):
            whole = sum(map(abs, truth.values()))
            line += [value / whole for value in (sum(truth[name] for name in names), *estimate)]
        lines.append(tuple(line))
    return lines


def shifts(first: int, count: int, *kinds: str) -> None:
    """Print by kind of shift: pairs, silent ones, errors and coverage."""
    print("kind | pairs | silent | mean: error, coverage, wrong sign, false | p99: error, coverage")
    every = []
    for kind in kinds or KINDS:
        silent = 0
        lines = []
        for seed in range(first, first + count):
            found = judged(draw(kind, seed), seed)
            silent += isinstance(found, str)
            lines += [] if isinstance(found, str) else found
        every += lines if kind != "null" else []
        print(kind, "|", count, "|", silent, "|", *scores(np.array(lines).reshape(-1, 8)), flush=True)
    print("all but null | | |", *scores(np.array(every)))


def scores(lines: np.ndarray) -> list[str]:
    """Return errors in percent of all true parts, coverage, and of parts that are said how many are wrong."""
    if not len(lines):
        return ["-"]
    words = []
    for truth, value, low, high in (lines[:, :4].T, lines[:, 4:].T):
        said = (low > 0) | (high < 0)
        words += [f"{100 * np.abs(value - truth).mean():.1f} %,", f"{np.mean((low <= truth) & (truth <= high)):.2f},"]
        words += [f"{np.sum(said & (truth * value < 0) & (np.abs(truth) > 0.02))} wrong,"]
        words += [f"{np.sum(said & (np.abs(truth) <= 0.02))} false of {np.sum(np.abs(truth) <= 0.02)} |"]
    return words


def slow(first: int, count: int) -> None:
    """Print of slow launches the error in percent of the deviation, and how often the largest part is the right one."""
    for kind in ("input", "sizes", "together"):
        errors = defaultdict(list)
        right = []
        for seed in range(first, first + count):
            shift = draw(kind, seed)
            for launch in slow_launches(rows_of(shift.inputs[0], shift.value[0]), INPUTS[1:], seed):
                truth = slow_truth(shift, launch.row, seed)
                parts = {**launch.attributed_ns, MECHANISM: launch.unexplained_ns}
                for name, value in parts.items():
                    errors[name].append(100 * abs(value - truth[name]) / launch.deviation_ns)
                right.append(max(parts, key=parts.get) == max(truth, key=truth.get))
        print(
            kind,
            len(right),
            "launches, largest part right",
            f"{np.mean(right):.3f}",
            end="; error in % of the deviation: ",
        )
        print(", ".join(f"{name} {np.mean(values):.1f}" for name, values in errors.items()))


def some_of(rows: KernelRows, taken: np.ndarray) -> KernelRows:
    """Return some rows."""
    parts = {one.name: getattr(rows, one.name) for one in fields(rows)}
    own = {name: value[taken] for name, value in parts.items() if isinstance(value, np.ndarray)}
    return replace(rows, causes={name: value[taken] for name, value in rows.causes.items()}, **own)


def on_gpus() -> None:
    """Print for each recording what was said and what is true of its two halves, in which the draws' shares differ, and
    of its slow launches.

    What came with the draw and what with the kernel is known from the means of each draw in both halves.
    """
    for gpu, name, arm in RECORDINGS:
        with tempfile.TemporaryDirectory() as folder:
            experiment = Experiment(gpu, name, Path(folder))
            kernel = experiment.observed["graph"]["scope"]
            causes = list(experiment.supported())
            root = Path(folder) / "results" / "kernel_variability"
            rows = dict(read_rows(root, {kernel: causes}))[kernel]
        drawn = experiment.arms[arm or next(iter(experiment.arms))]
        levels, draw_of = np.unique(drawn if isinstance(drawn[0], int) else list(map(str, drawn)), return_inverse=True)
        if levels.size > MOST_DRAWS:
            draw_of = draw_of * MOST_DRAWS // levels.size
            levels = levels[:MOST_DRAWS]
        if len(rows) != draw_of.size:
            print(gpu, name, f"{len(rows)} of {draw_of.size} launches have features")
            continue
        rng = np.random.default_rng(1)
        is_upper = draw_of >= (levels.size + 1) // 2
        half = np.arange(draw_of.size) >= draw_of.size // 2
        chance = np.where(is_upper == half, 0.9, 0.3)
        taken = [np.flatnonzero((half == side) & (rng.random(half.size) < chance)) for side in (False, True)]
        of_draw, of_kernel = true_parts([draw_of[own] for own in taken], [rows.value[own] for own in taken])
        found = run_change([some_of(rows, own) for own in taken], causes, 1, CONFIDENCE)
        print(
            gpu,
            name,
            "| causes",
            ", ".join(causes) or "-",
            f"| true: draw {of_draw:+.0f}, kernel {of_kernel:+.0f} ns |",
            end=" ",
        )
        if isinstance(found, str):
            print(found, end="")
        else:
            print(
                "; ".join(
                    f"{part.feature} ({part.kind}) " + " ".join(f"{end:+.0f}" for end in part.mean)
                    for part in found.parts
                ),
                end="",
            )
        means = np.bincount(draw_of, rows.value) / np.bincount(draw_of)
        errors = [
            100
            * abs(sum(one.attributed_ns.values()) - (means[draw_of[one.row]] - rows.mean[one.row]))
            / one.deviation_ns
            for one in slow_launches(rows, causes, 1)
        ]
        print(" | slow launches: error", f"{np.mean(errors):.1f} % of the deviation" if errors else "-", flush=True)


def true_parts(draws: list[np.ndarray], values: list[np.ndarray]) -> tuple[float, float]:
    """Return what of the change of the mean came with the draws' shares, and what with launches of equal draws: Shapley
    values of both.
    """
    size = max(int(one.max()) for one in draws) + 1
    shares = [np.bincount(one, minlength=size) / one.size for one in draws]
    means = [
        np.bincount(one, own, size) / np.bincount(one, minlength=size) for one, own in zip(draws, values, strict=True)
    ]
    return float((shares[1] - shares[0]) @ (means[0] + means[1]) / 2), float(
        (means[1] - means[0]) @ (shares[0] + shares[1]) / 2
    )


if __name__ == "__main__":
    with threadpool_limits(1):
        {"shifts": shifts, "slow": slow, "recorded": on_gpus}[sys.argv[1]](*map(int, sys.argv[2:4]), *sys.argv[4:])

"""How right attributions are: of a change between two runs to inputs and mechanism, and of slow launches to causes.

python -m tests.bench.causes.attribution shifts FIRST COUNT     pairs of simulated runs, truth by replay
python -m tests.bench.causes.attribution slow FIRST COUNT       slow launches of simulated runs, the same
python -m tests.bench.causes.attribution recorded               launches on a GPU whose causes were drawn at random
"""

import sys
from collections import defaultdict

import numpy as np
import pyarrow as pa
from tests.bench.inputs import ROOT
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(ROOT / "scripts"))

from causeway.causal.attribution.kernel_rows import KernelRows
from causeway.causal.attribution.run_changes import MECHANISM, run_change
from causeway.causal.attribution.slow_launches import slow_launches
from lab.validation.run_shifts import INPUTS, KINDS, Shift, draw, slow_truth

CONFIDENCE = 0.9


def rows_of(inputs: dict[str, np.ndarray], value: np.ndarray) -> KernelRows:
    """Return launches of one configuration that all weigh the same."""
    size = value.size
    return KernelRows(
        value=value,
        mean=np.full(size, value.mean()),
        weight=np.ones(size),
        configuration=np.full(size, "", dtype=object),
        causes=inputs,
        units={},
        launches=pa.table({}),
    )


def judged(shift: Shift, seed: int) -> list[tuple[float, ...]] | str:
    """Return of each part: its truth, estimate and ends of the mean, then of the tail, in the truth of the whole change;
    or why nothing was said.
    """
    found = run_change(
        [rows_of(*parts) for parts in zip(shift.inputs, shift.value, strict=True)], INPUTS, seed, CONFIDENCE
    )
    if isinstance(found, str):
        return found
    lines = []
    for part in found.parts:
        names = part.feature.split(", ") + ([MECHANISM] if part.kind == "either" else [])
        line = []
        for truth, estimate in ((shift.mean, part.mean), (shift.tail, part.tail)):
            whole = abs(sum(truth.values()))
            line += [value / whole for value in (sum(truth[name] for name in names), *estimate)]
        lines.append(tuple(line))
    return lines


def shifts(first: int, count: int) -> None:
    """Print by kind of shift: pairs, silent ones, errors and coverage."""
    print("kind | pairs | silent | mean: error, coverage, wrong sign, false | p99: error, coverage")
    every = []
    for kind in KINDS:
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
    """Return errors in percent of the change, coverage, and of parts that are said how many are wrong."""
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
    for kind in ("input", "together"):
        errors = defaultdict(list)
        right = []
        for seed in range(first, first + count):
            shift = draw(kind, seed)
            for launch in slow_launches(rows_of(shift.inputs[0], shift.value[0]), INPUTS, seed):
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


if __name__ == "__main__":
    with threadpool_limits(1):
        {"shifts": shifts, "slow": slow}[sys.argv[1]](*map(int, sys.argv[2:4]))

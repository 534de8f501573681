"""Runs with known differences, as tables: launches whose times follow one another as a GPU's do, with a shift of
one's choice.
"""

import numpy as np

from causeway.comparison.change_estimates import Choices
from causeway.comparison.compare import run
from causeway.comparison.groups import compare_groups
from causeway.comparison.runs.matching import match_kernels
from causeway.comparison.runs.run_totals import measure
from causeway.comparison.sides import Side
from variability_tables import write_export

KERNELS = ("advance", "reduce", "exchange", "scatter", "gather", "norm")
MEANS = (40_000, 8_000, 120_000, 15_000, 60_000, 3_000)


def correlated(rng, n, rho):
    """Return n values of mean 0 and variance 1 that follow one another with autocorrelation rho."""
    noise = rng.normal(size=n) * np.sqrt(1 - rho**2)
    noise[0] = rng.normal()
    for i in range(1, n):
        noise[i] += rho * noise[i - 1]
    return noise


def write_run(folder, seed, iterations=300, ranks=2, rho=0.0, scatter=0.05, factors=None, names=KERNELS, part=None):
    """Write a run: each iteration launches every kernel once on each rank; return the folder of its tables.

    `factors` multiplies the time of kernels by name; `part` (begin, end) keeps these iterations only.
    """
    rng = np.random.default_rng(seed)
    begin, end = part or (0, iterations)
    rows = []
    for rank in range(ranks):
        shared = correlated(rng, iterations, rho)
        for kernel, (name, mean) in enumerate(zip(names, MEANS, strict=False)):
            own = (shared + correlated(rng, iterations, rho)) / np.sqrt(2)
            times = mean * (factors or {}).get(name, 1.0) * np.exp(scatter * own)
            rows += [(1_000_000 * i + 150_000 * kernel, int(times[i]), kernel, rank) for i in range(begin, end)]
    rows.sort()
    columns = dict(
        zip(("start_ns", "duration_ns", "configuration", "rank"), map(list, zip(*rows, strict=True)), strict=True)
    )
    write_export(
        folder / "tables" / "e0", columns, configurations=[(name, {"grid_x": 64, "block_x": 128}) for name in names]
    )
    return folder / "tables" / "e0"


CHOICES = {"resamples": 200, "confidence": 0.95, "false_discovery_rate": 0.05, "same_within_percent": 1, "seed": 1}


def write_comparison(results, names, folders, efficiency=None, replays=None):
    """Compare runs as `compare_runs` does; return the path of `comparison.json` in a results folder.

    `names` are, per side, the dataset and its repeats; `folders` the tables' folder by dataset; `efficiency` the table
    by dataset, `replays` that of replays.
    """
    home = results / "compare" / f"{names[0][0]}__{names[1][0]}"
    outputs = home / "comparison.json", home / "comparison.parquet"
    tables = {name: [folder] for name, folder in folders.items()}
    run(names, tables, efficiency or {}, [{}, {}], replays or {}, CHOICES, *outputs)
    return outputs[0]


def compared(baseline, candidate, repeats=((), ()), **choices):
    """Return the rows of two folders of tables, with further runs of each side."""
    sides = [
        Side([measure(f"{word}{place}", [folder]) for place, folder in enumerate((main, *more))])
        for word, main, more in zip(("before", "after"), (baseline, candidate), repeats, strict=True)
    ]
    matches = match_kernels(*(side.main.kernels for side in sides))
    return compare_groups(sides, matches, Choices(**{"replicates": 400, **choices}), seed=1)[0]


def findings(rows, metric="time_per_launch"):
    """Return the verdicts that claim a change, by level and name."""
    return {
        (row["level"], row["candidate"].partition(" |")[0]): row["verdict"]
        for row in rows
        if row["metric"] == metric and row["verdict"] not in ("same", "inconclusive")
    }

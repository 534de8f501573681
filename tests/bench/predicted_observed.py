"""Predictions against a second run: what the analysis of one run says a change would do, and what it did.

    python -m tests.bench.predicted_observed run FILE      pairs of runs, as JSON, two processes
    python -m tests.bench.predicted_observed draw FILE     the figure docs/images/predicted-observed.svg and the numbers

The first run is analysed. The second has other noise; it is made as it is, and with one cause set to another value.
"""

import json
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from tests.bench.inputs import ROOT

sys.path.insert(0, str(ROOT / "scripts"))

from lab.scripts.measure_method import analysed
from lab.validation.cases import CASES, GENERATORS, drawn
from lab.validation.table_seeds import GRADING, seeds_for
from lab.validation.time_scores import interval_of, time_claim
from lab.validation.time_truth import change, effect_ends, set_values

TABLES = {"additive": 14, "medium": 12, "slow": 5, "hard": 5, "behind": 3, "prevalence": 7, "correlated": 4}
"""Cases with their number of first runs, after those of other grades."""
FIRST = 704000
"""The seeds before are graded on elsewhere, chose the widening of intervals, or graded earlier estimates."""
FIGURE = ROOT / "docs" / "images" / "predicted-observed.svg"


def pairs(task):
    """Return the predictions on one table with what the second run showed."""
    name, seed = task
    case = CASES[name]
    table = drawn(case.settings, seed)
    analysis = analysed(table, case, seed)
    other = seed + 1
    found = []
    as_it_is = table.play({}, other)
    for arrow in analysis.outcome.arrows:
        claim = time_claim(arrow, table)
        ends = effect_ends(table, claim.cause, claim.levels, claim.against) if claim else None
        if ends is None or claim.mean is None:
            continue
        low, high = (table.play({claim.cause: end}, other) for end in ends)
        found += rows_of(name, seed, claim.cause, "p10 to p90", (claim.mean, claim.p99), (high, low, as_it_is))
    for one in analysis.what_ifs:
        values = set_values(table, one.features[0], one.after[0]) if one.features[0] in table.causes else None
        if values is None or one.mean_change is None:
            continue
        said = interval_of(one.mean_change), interval_of(one.p99_change)
        played = table.play({one.features[0]: values}, other)
        found += rows_of(name, seed, one.features[0], one.after[0], said, (played, as_it_is, as_it_is))
    return found


def rows_of(name, seed, cause, what, said, runs):
    """Return a row of the mean and one of p99: prediction with its interval, and what was observed."""
    after, before, observed = runs
    rows = []
    for statistic, interval in zip(("mean", "p99"), said, strict=True):
        if interval is not None:
            compute = np.mean if statistic == "mean" else p99
            truth = change(compute, after, before, observed)
            rows.append(
                {"case": name, "seed": seed, "cause": cause, "change": what, "of": statistic}
                | {"predicted": interval, "observed": truth}
            )
    return rows


def p99(values):
    """Return the 99th percentile."""
    return np.quantile(values, 0.99)


def run(path):
    """Write the pairs of all cases."""
    tasks = []
    for name, count in TABLES.items():
        seeds = seeds_for(GENERATORS[type(CASES[name].settings)][0], GRADING)
        seeds = seeds[seeds.index(FIRST) :]
        tasks += [(name, seed) for seed in seeds[: 2 * count : 2]]
    with ProcessPoolExecutor(2) as pool:
        rows = [row for found in pool.map(pairs, tasks) for row in found]
    Path(path).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    print(f"{len(tasks)} first runs, {len(rows)} predictions")


def numbers(rows):
    """Return slope through the origin, coverage, right signs of all and of those said, and numbers of predictions.

    A direction is said where the interval leaves zero out.
    """
    if not rows:
        return {"n": 0}
    predicted = np.asarray([row["predicted"] for row in rows])
    observed = np.asarray([row["observed"] for row in rows])
    inside = (predicted[:, 1] <= observed) & (observed <= predicted[:, 2])
    slope = float(predicted[:, 0] @ observed / (predicted[:, 0] @ predicted[:, 0]))
    signs = np.sign(predicted[:, 0]) == np.sign(observed)
    said = (predicted[:, 1] > 0) | (predicted[:, 2] < 0)
    found = {"n": len(rows), "slope": slope, "covered": float(inside.mean()), "signs": float(signs.mean())}
    return found | ({"n_said": int(said.sum()), "said signs": float(signs[said].mean())} if said.any() else {})


def draw(path):
    """Draw the figure and print the numbers."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams |= {"svg.hashsalt": "predicted-observed", "svg.fonttype": "none"}
    from matplotlib import pyplot

    rows = [json.loads(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]
    figure, axes = pyplot.subplots(1, 2, figsize=(9, 4.4), layout="constrained")
    for axis, (statistic, title) in zip(axes, (("mean", "mean duration"), ("p99", "p99")), strict=True):
        for what, colour in (("effects", "#0969da"), ("what-ifs", "#bc4c00")):
            mine = [
                row for row in rows if row["of"] == statistic and (row["change"] == "p10 to p90") == (what == "effects")
            ]
            print(statistic, what, {name: round(value, 3) for name, value in numbers(mine).items()})
            if not mine:
                continue
            value, low, high = np.asarray([row["predicted"] for row in mine]).T
            observed = [row["observed"] for row in mine]
            reach = np.maximum([value - low, high - value], 0.0)
            axis.errorbar(value, observed, xerr=reach, fmt="o", ms=3, lw=0.7, color=colour, label=what)
        ends = [*axis.get_xlim(), *axis.get_ylim()]
        axis.plot([min(ends), max(ends)], [min(ends), max(ends)], color="#57606a", lw=0.8, zorder=0)
        axis.set(title=f"Change of the {title}, %", xlabel="predicted from the first run", ylabel="in the second run")
        axis.legend(frameon=False)
    by_case = {}
    for row in rows:
        by_case.setdefault((row["case"], row["of"]), []).append(row)
    for key, mine in sorted(by_case.items()):
        print(*key, {name: round(value, 3) for name, value in numbers(mine).items()})
    figure.savefig(FIGURE, metadata={"Date": None})


if __name__ == "__main__":
    {"run": run, "draw": draw}[sys.argv[1]](sys.argv[2])

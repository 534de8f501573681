"""Learns how probable a reported cause is, on the generators that choices were made on, and checks it on another.

python -m tests.bench.probabilities collect FOLDER    statements with their facts and truth, two processes
python -m tests.bench.probabilities grade FOLDER      the same of the generator that grades
python -m tests.bench.probabilities learn FOLDER      the coefficients of causal/report/probability.py
python -m tests.bench.probabilities check FOLDER      how often statements of each probability were true
python -m tests.bench.probabilities draw FOLDER       the figure docs/images/reliability.svg
"""

import json
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
from tests.bench.inputs import ROOT

sys.path.insert(0, str(ROOT / "scripts"))

from causeway.causal.data.outcome import Scope
from causeway.causal.data.scopes import feature_columns, in_time_order, observations_of
from causeway.causal.discovery.discover import discover
from causeway.causal.report.probability import StatementFacts, known_part, probability_of
from lab.validation.cases import CASES, GENERATORS, drawn
from lab.validation.features_file import features_table
from lab.validation.scores import Claim, cause_behind
from lab.validation.table_seeds import CALIBRATION, GRADING, seeds_for

LEARNT_ON = {"medium": 8, "hard": 8, "few_rows": 12, "hidden": 14, "pooled": 5, "slow": 5, "feedback": 3}
LEARNT_ON |= {"energy": 10, "behind": 4, "correlated": 5, "ratio": 5, "opaque": 3, "prevalence": 7, "some_kernels": 3}
LEARNT_ON |= {"null_slow": 3, "null_waves": 6}
CHECKED_ON = {"additive": 26, "additive_hidden": 26, "additive_null": 3}
"""Cases with their number of tables."""
SITUATIONS = {"hidden": "hidden cause", "energy": "rough image of the time"}
"""Cases in which statements go wrong by what the data do not hold; all others are clean. In learning each situation
weighs the same: nobody knows how often it is met, and a mix of clean tables alone would promise too much."""
RESAMPLES = 10
FIGURE = ROOT / "docs" / "images" / "reliability.svg"
EDGES = (0.0, 0.5, 0.7, 0.8, 0.9, 0.95, 1.0)


def statements(task):
    """Return what is said on one table, each statement with its facts and whether it is true."""
    name, seed = task
    case = CASES[name]
    table = drawn(case.settings, seed)
    features = in_time_order(features_table(table))
    rows = observations_of(features, equal_kernels=True)
    scope = Scope("validation", table.target, "dataset", seed=seed, resamples=RESAMPLES)
    outcome, _ = discover(feature_columns(features), rows, scope)
    found = []
    for arrow in outcome.arrows:
        if {arrow.name, *arrow.node.members} & table.definition:
            continue
        claim = Claim(arrow.name, arrow.node.members, arrow.sign, arrow.contribution.value)
        facts = {
            "q_value": arrow.p_value if arrow.q_value is None else arrow.q_value,
            "stability": arrow.stability,
            "robustness": arrow.robustness,
            "n_effective": arrow.n_effective,
            "role": arrow.role,
            "determines_time": arrow.determines_time,
        }
        found.append(
            {"case": name, "seed": seed, "feature": arrow.name, "true": cause_behind(claim, table) is not None}
            | {"facts": facts}
        )
    return found


def collect(folder, numbers, use):
    """Write the statements of cases on the seeds of a use."""
    tasks = []
    for name, count in numbers.items():
        seeds = seeds_for(GENERATORS[type(CASES[name].settings)][0], use)
        tasks += [(name, seed) for seed in seeds[:count]]
    with ProcessPoolExecutor(2) as pool:
        rows = [row for found in pool.map(statements, tasks) for row in found]
    path = Path(folder) / f"{use}.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    print(f"{use}: {len(tasks)} tables, {len(rows)} statements, {np.mean([row['true'] for row in rows]):.3f} true")


def read(folder, use):
    """Return the statements of a use that a probability applies to: facts and truth."""
    rows = [json.loads(line) for line in (Path(folder) / f"{use}.jsonl").read_text(encoding="utf-8").splitlines()]
    rows = [row for row in rows if not row["facts"]["determines_time"]]
    return rows, [StatementFacts(**row["facts"]) for row in rows], np.asarray([row["true"] for row in rows])


def learn(folder):
    """Print the coefficients of a logistic regression of truth on what is known, hardly penalised."""
    from sklearn.linear_model import LogisticRegression

    rows, facts, true = read(folder, CALIBRATION)
    situations = [SITUATIONS.get(row["case"], "clean") for row in rows]
    counts = Counter(situations)
    weights = [len(rows) / len(counts) / counts[one] for one in situations]
    model = LogisticRegression(C=10.0, max_iter=1000)
    model.fit([[known_part(one)] for one in facts], true, sample_weight=weights)
    print(f"INTERCEPT = {model.intercept_[0]:.1f}\nPER_ROBUSTNESS = {model.coef_[0, 0]:.1f}")


def check(folder):
    """Print how often statements of each probability were true, where they were learnt and elsewhere."""
    for use in (CALIBRATION, GRADING):
        rows, facts, true = read(folder, use)
        said = np.asarray([probability_of(one) for one in facts])
        print(f"\n{use}: {said.size} statements, Brier score {np.mean((said - true) ** 2):.3f},")
        print(f"said {said.mean():.3f} on average, true {true.mean():.3f}\n")
        print("| said | statements | on average | true |\n|---|---|---|---|")
        for low, high in pairwise(EDGES):
            inside = (said >= low) & (said < high)
            if inside.any():
                print(
                    f"| {low:.2f} - {high:.2f} | {inside.sum()} | {said[inside].mean():.2f} | {true[inside].mean():.2f} |"
                )
        by_case = {}
        for row, one in zip(rows, said, strict=True):
            by_case.setdefault(row["case"], []).append((one, row["true"]))
        print({name: [len(found), *np.round(np.mean(found, axis=0), 2).tolist()] for name, found in by_case.items()})


def draw(folder):
    """Draw what was said against what was true, with 90 % intervals of the shares."""
    import matplotlib
    from scipy.stats import binomtest

    matplotlib.use("svg")
    matplotlib.rcParams |= {"svg.hashsalt": "reliability", "svg.fonttype": "none"}
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(4.8, 4.4), layout="constrained")
    axis.plot([0, 100], [0, 100], color="#57606a", lw=0.8, zorder=0)
    shown = ((CALIBRATION, "learnt on", "#bc4c00"), (GRADING, "another generator, not seen in learning", "#0969da"))
    for use, label, colour in shown:
        _, facts, true = read(folder, use)
        said = np.asarray([probability_of(one) for one in facts])
        for low, high in pairwise(EDGES):
            inside = (said >= low) & (said < high)
            if not inside.any():
                continue
            share = binomtest(int(true[inside].sum()), int(inside.sum())).proportion_ci(0.9, "wilson")
            at = 100 * said[inside].mean()
            value = 100 * true[inside].mean()
            reach = [[value - 100 * share.low], [100 * share.high - value]]
            axis.errorbar(at, value, yerr=reach, fmt="o", color=colour, label=label)
            axis.annotate(f" n = {inside.sum()}", (at, value), fontsize=8, va="top")
            label = None
    axis.set(xlabel="probability said, %", ylabel="statements that were true, %", xlim=(0, 100), ylim=(0, 100))
    axis.legend(frameon=False, loc="upper left", fontsize=8)
    figure.savefig(FIGURE, metadata={"Date": None})


def main(arguments):
    """Run the step that is asked for."""
    step, folder = arguments
    Path(folder).mkdir(parents=True, exist_ok=True)
    if step == "collect":
        collect(folder, LEARNT_ON, CALIBRATION)
    elif step == "grade":
        collect(folder, CHECKED_ON, GRADING)
    else:
        {"learn": learn, "check": check, "draw": draw}[step](folder)


if __name__ == "__main__":
    main(sys.argv[1:])

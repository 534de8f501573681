"""What each rule of the search is worth: the scores with all rules, and with one of them switched off.

    python -m tests.bench.causes.ablation run FILE [RULE ...]    scores of each table and rule, as JSON lines, two processes
                                                                 ("RULE + RULE": both off)
    python -m tests.bench.causes.ablation other FILE [RULE ...]  the same on other tables, wide ones among them
    python -m tests.bench.causes.ablation show FILE              F1, false and leaked statements by generator, without each rule

A rule stays if it gains at least .02 F1, or keeps leaked features out, on a generator that it was not made on. The
rules were made on `products`; seeds are those on which choices are made.
"""

import contextlib
import json
import sys
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from unittest import mock

import numpy as np
from tests.bench.inputs import ROOT

sys.path.insert(0, str(ROOT / "scripts"))

from causeway.causal.data.outcome import Scope
from causeway.causal.data.scopes import feature_columns, in_time_order, observations_of
from causeway.causal.discovery import discover, leakage_recheck
from causeway.causal.preparation import leak_attribution, prepare
from causeway.causal.selection import backward
from lab.scripts.measure_method import claims_of
from lab.validation.cases import CASES, GENERATORS, drawn
from lab.validation.features_file import features_table
from lab.validation.scores import f1, score_claims

TABLES = {"medium": 6, "hard": 5, "few_rows": 6, "slow": 2, "pooled": 3, "sized": 3, "null_slow": 3}
TABLES |= {"additive": 10, "additive_null": 3}
TABLES |= {"ratio": 4, "correlated": 3, "opaque": 3, "some_kernels": 2, "behind": 3, "determined": 3, "null_waves": 4}
"""Cases with their number of tables."""
OTHER_TABLES = {"large": 3, "medium": 5, "hard": 4, "few_rows": 5, "feedback": 3, "pooled": 4, "sized": 4, "null": 3}
OTHER_TABLES |= {
    "additive": 10,
    "ratio": 3,
    "correlated": 3,
    "opaque": 3,
    "determined": 4,
    "energy": 4,
    "null_waves": 6,
}
"""Those on which rules are switched off together."""
FURTHER = 30
"""Their seeds begin so much later."""
FIRST = {"products": 190_000, "additive": 700_020, "special cases": 9_000}
"""First seed of each generator."""
ALL = "all rules"


def _roots_alone(*parts):
    """Return no mediated parent, but the roots that were searched."""
    return [], MEDIATED(*parts)[1]


MEDIATED = discover.mediated_parents
RULES = {
    "tests under own lags": [(discover, "without_slow_waves", lambda stages, *_: (stages, ()))],
    "levers behind mediators": [(discover, "mediated_parents", _roots_alone)],
    "leaks rechecked by regression": [(leakage_recheck.LeakageRecheck, "drop_leaked", lambda *_: False)],
    "better member of a cluster": [(discover, "promote_better_members", lambda *_: False)],
    "counters standardised": [(prepare, "better_standardised", lambda one, *_: np.zeros(len(one), dtype=bool))],
    "images of the time": [(prepare, "_products_with_time", lambda numbers, _: np.zeros(len(numbers), dtype=bool))],
    "exact relations": [(prepare, "leaked_features", lambda relations, *_: np.zeros(relations.residual.size, bool))],
    "names of time": [
        (prepare, "leaked_by_name", lambda *_: False),
        (prepare, "divided_by_time", lambda *_: False),
    ],
    "leak: rate beside what determines": [(leak_attribution, "rate_beside_determining", lambda *_: None)],
    "leak: nearly the measured value": [(leak_attribution, "nearly_measured", lambda *_: None)],
    "leak: calculated from": [(leak_attribution, "calculated_from", lambda *_: None)],
    "leak: among related columns": [(leak_attribution, "leaked_among", lambda *_: None)],
    "raw before computed": [(backward.Pruner, "prefer_raw", lambda self, response, chosen: chosen)],
    "products in pruning": [
        (backward.Pruner, "products", lambda self, others: np.zeros((self.problem.basis.columns.shape[0], 0)))
    ],
    "effects by kernel in pruning": [
        (backward.Pruner, "by_kernel", lambda self, others: np.zeros((self.problem.basis.columns.shape[0], 0)))
    ],
    "effects of the time": [(discover, "effects_of_time", lambda *_: {})],
    "order beside the host's record": [(discover, "superfluous_orders", lambda *_: {})],
    "clocks of places": [(discover, "clocks_of_places", lambda *_: {})],
}
"""By the rule's name: what is replaced to switch it off."""


@contextlib.contextmanager
def without(rule):
    """Switch a rule off, or several with " + " between them."""
    with contextlib.ExitStack() as patches:
        for place, name, instead in [one for part in rule.split(" + ") for one in RULES.get(part, ())]:
            patches.enter_context(mock.patch.object(place, name, instead))
        yield


def scores(task):
    """Return the scores of one table without one rule."""
    name, seed, rule = task
    case = CASES[name]
    table = drawn(case.settings, seed)
    features = in_time_order(features_table(table))
    rows = observations_of(features, equal_kernels=True)
    scope = Scope("validation", table.target, "dataset", seed=seed)
    begun = time.process_time()
    with without(rule):
        outcome, _ = discover.discover(feature_columns(features), rows, scope)
    spent = time.process_time() - begun
    found = score_claims(claims_of(outcome), outcome.unexplained and outcome.unexplained.value, table)
    return {"case": name, "seed": seed, "rule": rule, "cpu_s": spent} | {key: float(found[key]) for key in KEYS}


KEYS = ("true", "false", "missed", "leaks", "signs_given", "signs_right", "share_error")


def run(path, rules, numbers=None, further=0):
    """Write the scores of all tables without each rule; what the file holds already is not repeated."""
    file = Path(path)
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    known = {(row["case"], row["seed"], row["rule"]) for row in map(json.loads, lines)}
    tables = [
        (name, FIRST[GENERATORS[type(CASES[name].settings)][0]] + further + number)
        for name, count in (numbers or TABLES).items()
        for number in range(count)
    ]
    tasks = [(*table, rule) for rule in rules or [ALL, *RULES] for table in tables]
    tasks = [task for task in tasks if task not in known]
    with ProcessPoolExecutor(2) as pool, file.open("a", encoding="utf-8") as out:
        for row in pool.map(scores, tasks):
            out.write(json.dumps(row) + "\n")
            out.flush()


def show(path):
    """Print the scores by generator: with all rules, then what is lost without each."""
    sums = defaultdict(lambda: defaultdict(float))
    for line in Path(path).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        generator = GENERATORS[type(CASES[row["case"]].settings)][0]
        for key in (*KEYS, "cpu_s"):
            sums[row["rule"], generator][key] += row[key]
    generators = sorted({generator for _, generator in sums})
    print("| without | " + " | ".join(f"{one}: F1, false, leaks" for one in generators) + " | CPU-s |")
    print("|---|" + "---|" * (len(generators) + 1))
    for rule in dict.fromkeys(rule for rule, _ in sums):
        parts = []
        for generator in generators:
            one = sums[rule, generator]
            value = f1(one["true"], one["false"], one["missed"])
            parts.append(f"{value:.3f}, {one['false']:.0f}, {one['leaks']:.0f}" if value is not None else "-")
        spent = sum(sums[rule, generator]["cpu_s"] for generator in generators)
        print(f"| {rule} | " + " | ".join(parts) + f" | {spent:.0f} |")


if __name__ == "__main__":
    if sys.argv[1] == "run":
        run(sys.argv[2], sys.argv[3:])
    elif sys.argv[1] == "other":
        run(sys.argv[2], sys.argv[3:], OTHER_TABLES, FURTHER)
    else:
        show(sys.argv[2])

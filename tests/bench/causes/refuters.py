"""What each way to refute a cause says of false and of true arrows, on simulated tables with known causes.

    python -m tests.bench.causes.refuters LINES.jsonl    about 20 minutes; a line per arrow; what the file holds is not repeated

Printed: by refuter how many of the false and of the true arrows it fails. `thirds` and the placebo were tried in earlier
versions of this file; docs/validation.md has their figures.
"""

import json
import sys
import warnings
from collections import Counter
from pathlib import Path

import networkx as nx
import numpy as np
from scipy.stats import norm, rankdata
from tests.bench.inputs import ROOT

sys.path.insert(0, str(ROOT / "scripts"))

from causeway.causal.data.outcome import CONFIGURATION, Scope
from causeway.causal.data.scopes import feature_columns, in_time_order, observations_of
from causeway.causal.discovery.discover import discover
from causeway.causal.examination.examine import Extent, examine
from causeway.causal.models import identification
from causeway.causal.models.scope_model import scope_model
from causeway.core.vocabulary import FRAGILE_BELOW
from lab.scripts.measure_method import claims_of, totals_of_table
from lab.validation.cases import CASES, drawn
from lab.validation.features_file import features_table
from lab.validation.scores import cause_behind

TABLES = {"hidden": 24, "additive_hidden": 24, "feedback": 8, "few_rows": 14, "energy": 6, "correlated": 6, "ratio": 8}
TABLES |= {"behind": 6, "opaque": 6, "additive": 14, "slow": 6, "hard": 5, "small": 8, "prevalence": 7, "medium": 5}
TABLES |= {"some_kernels": 4, "pooled": 3, "null_slow": 12, "null_waves": 12, "additive_null": 6}
FIRST = 720_000
"""First seed: nothing was drawn from it for anything else."""


def unobserved_common_cause(model, arrow):
    """Return whether dowhy's interval holds zero with an unobserved common cause as strong as the strongest measured
    one; None without one.
    """
    from dowhy.causal_estimator import estimate_effect
    from dowhy.causal_estimators.linear_regression_estimator import LinearRegressionEstimator
    from dowhy.causal_refuters.add_unobserved_common_cause import sensitivity_linear_partial_r2

    estimand = identification.estimand_of(model.with_unmeasured(), arrow.name, model.value, list(model.graph))
    rows, level = identification.levels_of(model, arrow)
    if min(np.sum(level == 0), np.sum(level == 1)) < 20:
        return None
    data = identification._within(model, rows, level, arrow.name)
    held = sorted(max((one for one in estimand.backdoor_variables.values() if one is not None), key=len))
    held = [name for name in held if name in data]
    if not held:
        return None
    estimand.set_identifier_method("backdoor")
    estimand.set_backdoor_variables(held)
    estimator = LinearRegressionEstimator(estimand)
    effect = estimate_effect(data, [arrow.name], [model.value], "backdoor", estimator, method_params={})
    strongest = held[int(np.argmax(np.abs(estimator.model.tvalues.to_numpy()[2:])))]
    try:
        found = sensitivity_linear_partial_r2(
            data, effect, [arrow.name], [1.0], [1.0], benchmark_common_causes=[strongest], significance_level=0.1,
            null_hypothesis_effect=0, plot_estimate=False,
        ).benchmarking_results.iloc[0]  # fmt: skip
    except ValueError:  # the strongest one and the cause are nearly one column
        return None
    return bool(found["bias_adjusted_lower_CI"] <= 0 <= found["bias_adjusted_upper_CI"])


def partial_correlation(x, y, z=None):
    """Return the p-value of no linear dependence given further columns."""
    x, y = np.ravel(x), np.ravel(y)
    given = np.column_stack([np.ones(x.size), *([] if z is None else [np.reshape(z, (x.size, -1))])])
    left = [values - given @ np.linalg.lstsq(given, values, rcond=None)[0] for values in (x, y)]
    r = np.clip(np.corrcoef(*left)[0, 1], -0.999999, 0.999999)
    return float(2 * norm.sf(abs(np.arctanh(r)) * np.sqrt(max(x.size - given.shape[1] - 3, 1))))


def graph_is_falsified(model):
    """Return what dowhy's permutation test says of a graph; None with fewer than two causes."""
    from dowhy.gcm.falsify import falsify_graph

    names = [*model.causes, model.value]
    if len(names) < 3:
        return None
    columns = {}
    for name in names:
        column = model.frame[name]
        ranks = rankdata(column.cat.codes if column.dtype == "category" else column)
        columns[name] = norm.ppf((ranks - 0.5) / len(ranks))
    step = len(model.frame) // 1000 + 1
    data = model.frame[names].assign(**columns).astype(float).reset_index(drop=True).iloc[::step]
    np.random.seed(0)  # noqa: NPY002 - the library's only source of chance
    graph = nx.DiGraph(model.graph.subgraph(names))
    options = {"n_permutations": 20, "show_progress_bar": False, "n_jobs": 1}
    return bool(falsify_graph(graph, data, False, partial_correlation, partial_correlation, **options).falsified)


def lines_of(name, seed):
    """Yield a line for each arrow of one table."""
    table = drawn(CASES[name].settings, seed)
    features = in_time_order(features_table(table, None))
    rows = observations_of(features, equal_kernels=True)
    scope = Scope("simulated", table.target, "dataset", seed=seed)
    outcome, evidence = discover(feature_columns(features), rows, scope)
    outcome = examine(outcome, evidence, Extent(totals=totals_of_table(table)))
    model = scope_model(outcome, evidence)
    outcome = identification.with_identification(outcome, model)
    falsified = graph_is_falsified(model)
    for arrow, claim in zip(outcome.arrows, claims_of(outcome), strict=True):
        if arrow.stage == CONFIGURATION:
            continue
        tried = {one.refuter: one for one in outcome.examination.refutations if one.feature == arrow.name}
        future = tried.get("future_exposure")
        yield {
            "is_true": cause_behind(claim, table) is not None,
            "future exposure": None if future is None else future.passed is not True,
            "robustness value": arrow.robustness < FRAGILE_BELOW,
            "unobserved common cause": unobserved_common_cause(model, arrow),
            "another estimate": arrow.identified
            and arrow.identified.agrees is not None
            and not arrow.identified.agrees,
            "falsify_graph": falsified,
        }


def main(path):
    done = {tuple(json.loads(line)["table"]) for line in path.read_text().splitlines()} if path.exists() else set()
    with path.open("a") as file:
        for name, count in TABLES.items():
            for seed in range(FIRST, FIRST + count):
                if (name, seed) not in done:
                    with identification.quiet():
                        lines = [{"table": [name, seed], **line} for line in lines_of(name, seed)]
                    for line in lines or [{"table": [name, seed]}]:
                        file.write(json.dumps(line) + "\n")
    lines = [line for line in map(json.loads, path.read_text().splitlines()) if "is_true" in line]
    for refuter in [key for key in lines[0] if key not in ("table", "is_true")]:
        failed = Counter((line["is_true"], line[refuter]) for line in lines if line[refuter] is not None)
        shares = [f"{failed[is_true, True]} of {failed[is_true, True] + failed[is_true, False]}" for is_true in (0, 1)]
        print(f"{refuter}: false {shares[0]}, true {shares[1]}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(Path(sys.argv[1]))

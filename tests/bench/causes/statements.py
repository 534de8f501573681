"""Statements of simulated datasets against what must hold of them: how many are made, and how many break an invariant.

    python -m tests.bench.causes.statements FILE [COUNT]      tables of all generators, two processes; the counts as JSON

Beside the invariants, the sign of each stated change of the mean is compared with those of two
regressions on all causes within configurations: of the time over the mean of its configuration, and of the log time,
which a cause of the noise alone moves another way.
"""

import json
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from tests.bench.inputs import ROOT

sys.path.insert(0, str(ROOT / "scripts"))

from causeway.causal.data.outcome import CONFIGURATION, Scope
from causeway.causal.data.scopes import feature_columns, in_time_order, observations_of
from causeway.causal.discovery.discover import discover
from causeway.causal.examination.examine import Extent, examine
from causeway.causal.report.across_kernels import correct
from causeway.causal.report.documents import graph_document, table_rows
from causeway.core.results import Search
from causeway.findings.causes import cause_findings
from causeway.findings.invariants import CheckBasis, checked
from causeway.findings.record import Analysis
from lab.scripts.measure_method import totals_of_table
from lab.validation.cases import CASES, drawn
from lab.validation.features_file import features_table

COUNT = 200
MOST_COLUMNS = 120
"""Wider tables are left out: they take minutes each."""
FIRST = 500000
"""Seeds from which no table was drawn for anything else."""


def counted(task):
    """Return the counts of one table's statements."""
    name, seed = task
    case = CASES[name]
    table = drawn(case.settings, seed)
    features = in_time_order(features_table(table, None))
    rows = observations_of(features, equal_kernels=True)
    scope = Scope("simulated", table.target, "dataset", seed=seed)
    outcome, evidence = discover(feature_columns(features), rows, scope)
    extent = Extent(totals=totals_of_table(table))
    (outcome,) = correct([examine(outcome, evidence, extent)])
    rows_by_table = table_rows(outcome)
    search = Search(
        graph=graph_document(outcome),
        contributions=[{"feature": "", **row} for row in _whole(rows_by_table["contributions"])],
        table=f"simulated/{table.target}/causal/dataset/contributions.parquet",
        tables=rows_by_table,
    )
    analysis = Analysis(
        dataset="simulated",
        target=table.target,
        unit="ns",
        kernels=[{"kernel": f"kernel-{one:02d}", "short_name": str(one)} for one in np.unique(table.kernel)],
        kernels_table=f"simulated/{table.target}/kernels.parquet",
        searches=[search],
    )
    made = cause_findings(analysis, search)
    kept, dropped = checked(made, CheckBasis(gpu_ns={"simulated": float(table.y.sum())}))
    found = Counter({f"dropped {one}": count for one, count in dropped.items()})
    found |= {"tables": 1, "statements": len(made), "kept": len(kept)}
    return found + _signs(outcome, evidence, f"{name} {seed}") if evidence else found


def _whole(rows):
    """Return rows with all columns of the table, as they are read from a file."""
    from causeway.core.tables import SCHEMAS

    names = SCHEMAS["contributions"].names
    return [{name: row.get(name) for name in names} for row in rows]


def _signs(outcome, evidence, table):
    """Return how many supported causes move the mean as the regressions say, and how many do not."""
    arrows = [arrow for arrow in outcome.arrows if arrow.stage != CONFIGURATION and not arrow.level]
    rows = evidence.rows
    time = rows.mean + rows.signed
    if not arrows or np.any(time <= 0) or any(arrow.through for arrow in arrows):
        return Counter()
    found = Counter()
    for kind, outcome_of in (("time", time / rows.mean), ("log time", np.log(time))):
        for arrow, slope in zip(arrows, _slopes(outcome_of, arrows, evidence), strict=True):
            mean = None if arrow.in_time is None else arrow.in_time.mean
            if mean is None or arrow.verdict != "supported" or not arrow.in_time.monotone or mean.low * mean.high <= 0:
                continue
            alike = np.sign(slope) == np.sign(mean.value)
            found[f"{kind}: signs {'alike' if alike else 'unlike'}"] += 1
            if not alike:
                print(f"{table}, {kind}: {arrow.node.name} {mean.value:.2f} %, slope {slope:.3g}", flush=True)
    return found


def _slopes(outcome_of, arrows, evidence):
    """Return the slopes of a weighted regression within configurations on all causes."""
    rows = evidence.rows
    columns = np.column_stack([outcome_of, *(evidence.candidate_of(arrow).scores for arrow in arrows)])
    root = np.sqrt(rows.weight)[:, None]
    for code in np.unique(rows.configuration):
        mine = rows.configuration == code
        columns[mine] -= np.average(columns[mine], axis=0, weights=rows.weight[mine])
    return np.linalg.lstsq(columns[:, 1:] * root, columns[:, 0] * root[:, 0], rcond=None)[0]


def main(path, count=COUNT):
    """Write the counts over all tables."""
    names = [name for name, case in CASES.items() if getattr(case.settings, "columns", 0) <= MOST_COLUMNS]
    tasks = [(names[number % len(names)], FIRST + number) for number in range(int(count))]
    with ProcessPoolExecutor(2) as pool:
        total = sum(pool.map(counted, tasks, chunksize=4), Counter())
    Path(path).write_text(json.dumps(total, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print(json.dumps(total, indent=1, sort_keys=True))


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Tables as other people write them, the whole way from the file to graph.json: an answer or a refusal with its
reason, never a crash.
"""

import numpy as np
import pandas as pd
import pytest

from causeway.causal.data.features import assemble_target
from causeway.causal.data.scopes import row_blocks
from causeway.causal.report.across_kernels import correct
from causeway.causal.report.documents import write_scope
from causeway.causal.search_causes import CauseSearch, search_dataset
from causeway.core.tables import read_json, read_table, write_json
from causeway.readers.normalise import normalise
from variability import bin_launches

pytestmark = pytest.mark.usefixtures("rough_shares")
CAUSES = {
    "batches": 1,
    "kernels_share": 0.99,
    "kernels_count": 20,
    "max_rows": 50000,
    "columns": [],
    "what_if": [],
}
RNG = np.random.default_rng(620)
N = 400
X = RNG.standard_normal(N)
Z = RNG.standard_normal((N, 3))
Y = 1000 + 60 * (X > 0.8) + 10 * RNG.standard_normal(N)


def table(**columns):
    return pd.DataFrame({"y": Y, "x": X, **{f"z{k}": Z[:, k] for k in range(3)}, **columns})


def graph_of(folder, frame, parquet=False):
    """Write a table and return its whole-dataset graph."""
    path = folder / ("t.parquet" if parquet else "t.csv")
    frame.to_parquet(path) if parquet else frame.to_csv(path, index=False)
    out = folder / "results"
    normalise(
        path,
        out / "tables/e0",
        export="e0",
        source=path.name,
        rank=None,
        position=0,
        form="table",
        node=None,
        targets=("y",),
    )
    ranks = read_json(out / "tables/e0/capabilities.json")["ranks"]
    clocks = {"e0": {"shift_ns": 0, "ranks": ranks}}
    write_json(
        {"dataset": "d", "method": "one_export", "exports": clocks, "residual_ns": None, "reason": ""},
        out / "clocks.json",
    )
    options = {
        "--ranks": "1",
        "--dataset": "d",
        "--tables": out / "tables",
        "--clocks": out / "clocks.json",
        "--out": out,
    }
    bin_launches.main(
        [*(str(word) for option in options.items() for word in option), "--exports", "e0", "--targets", "y"]
    )
    root = out / "y"
    assemble_target(root, [out / "tables" / "e0"], out / "clocks.json", nodes={}, runs={})
    search = CauseSearch(dataset="d", folder=root, causes=CAUSES, seed=1)
    (outcome,) = correct(search_dataset(search, row_blocks(search.features))[0][:1])
    write_scope(outcome, root / "causal/dataset")
    read_table(root / "causal/dataset/contributions.parquet", "contributions")
    return read_json(root / "causal/dataset/graph.json")


def causes(graph):
    return {
        edge["source"]
        for edge in graph["edges"]
        if edge["target"] == graph["target"] and edge["source"] != "unexplained"
    }


@pytest.mark.usefixtures("exact_shares")
@pytest.mark.parametrize("name", ["sequence_length", "x1"])
def test_the_length_of_sequences_has_its_total_effect_without_configuration(tmp_path, name):
    """It acts through a counter. Its total effect is the slope of a regression on it alone, as it is set at random."""
    random = np.random.default_rng(5)
    length = random.integers(128, 4096, N).astype(float)
    sectors = 3 * length + 3000 * random.standard_normal(N)
    took = 2000 + 0.05 * sectors + 30 * random.standard_normal(N)
    graph = graph_of(tmp_path, table(**{name: length}, sectors=sectors).assign(y=took))
    into = {edge["source"]: edge for edge in graph["edges"] if edge["target"] == "y"}
    if name == "sequence_length":
        assert into[name]["sign"] == "+"
        assert into[name]["value_effect"] == pytest.approx(np.corrcoef(length, took)[0, 1], abs=0.02)
    else:
        assert name not in into
    kinds = {(edge["source"], edge["target"]): edge["kind"] for edge in graph["edges"]}
    assert (kinds.get((name, "sectors")) == "directed") == (name == "sequence_length")


TWICE = table()
TWICE.columns = ["y", "x", "z", "z", "z"]
REFUSED = {
    "equal names": TWICE,
    "constant target": table(y=np.full(N, 5.0)),
    "no value of the target": table(y=np.full(N, np.nan)),
    "one row": table().head(1),
    "few rows": table().head(60),
    "all columns dropped": pd.DataFrame({"y": Y, "a": 1.0, "b": np.nan, "c": "same"}),
    "no column": pd.DataFrame({"y": Y}),
    "ten thousand levels": pd.DataFrame({"y": Y, "t": [f"level{k * 37 % 10007}" for k in range(N)]}),
    "every row a kernel": table(kernel=[f"k{k}" for k in range(N)]),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_answered_is_refused_with_its_reason(name, tmp_path):
    graph = graph_of(tmp_path, REFUSED[name])
    assert graph["verdict"] == "inconclusive"
    assert graph["reasons"]
    assert not causes(graph)


ANSWERED = {
    "text": (table(x=np.where(X > 0.8, "high", "low")), {"x"}),
    "truth values": (table(x=X > 0.8), {"x"}),
    "infinite values": (table(x=np.where(np.arange(N) < 5, np.inf, X)), {"x"}),
    "missing cells": (table(x=np.where(np.arange(N) % 40 == 3, np.nan, X)), {"x"}),
    "missing targets": (table(y=np.where(np.arange(N) % 50 == 3, np.nan, Y)), {"x"}),
    "names like paths and SQL": (
        table().rename(columns={"x": "a/b; DROP TABLE x--", "z0": "../../etc", "z1": "select", "z2": "x" * 300}),
        {"a/b; DROP TABLE x--"},
    ),
    "17 kernels": (table(kernel=[f"k{k % 17}" for k in range(N)]), {"x"}),
    "order": (table(order=np.arange(N)[::-1]), {"x"}),
    "more columns than rows": (
        pd.concat([table(), pd.DataFrame(RNG.standard_normal((N, 600))).add_prefix("w")], axis=1),
        {"x"},
    ),
}


@pytest.mark.parametrize("name", ANSWERED)
def test_odd_tables_are_answered(name, tmp_path):
    frame, expected = ANSWERED[name]
    assert causes(graph_of(tmp_path, frame)) == expected


@pytest.mark.parametrize("name", ["truth values", "text", "missing cells", "constant target"])
def test_parquet_tells_the_same(name, tmp_path):
    frame, expected = ANSWERED.get(name, (REFUSED.get(name), set()))
    assert causes(graph_of(tmp_path, frame, parquet=True)) == expected

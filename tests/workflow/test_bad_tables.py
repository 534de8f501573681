"""Tables that cannot be answered, or hardly, as a user gives them: the whole workflow ends, with a verdict or a
refusal in each graph.
"""

import numpy as np
import pandas as pd
import pytest

from causeway.core.tables import read_json
from support import run_snakemake, write_analysis

pytestmark = pytest.mark.slow
SETTINGS = "causes: {as_published: true, batches: 1, kernels_count: 2, what_if: [{name: half, set: {x: 0.5}}]}\n"
N = 400
LEVELS = 10_000
RNG = np.random.default_rng(811)
X = RNG.standard_normal(N)
Y = 1000 + 60 * (X > 0.8) + 10 * RNG.standard_normal(N)
LONG = RNG.standard_normal(12_000)


def table(**columns):
    return pd.DataFrame({"y": Y, "x": X, "z": RNG.standard_normal(N), **columns})


def twice():
    frame = table(w=1.0)
    frame.columns = ["y", "x", "z", "z"]
    return frame


REFUSED = {
    "constant_target": (table(y=5.0), "the target is constant"),
    "no_target": (table(y=np.nan), "no launch has the target"),
    "infinite_target": (table(y=np.inf), "no launch has the target"),
    "one_row": (table().head(1), "launched once"),
    "all_dropped": (pd.DataFrame({"y": Y, "a": 1.0, "b": np.nan, "c": "same"}), "no feature is left"),
    "no_rows": (table().head(0), "no launch has the target"),
    "equal_names": (twice(), "no launch has the target"),
}
ANSWERED = {
    "text": (table(x=np.where(X > 0.8, "high", "low")), {"x"}),
    "infinite_values": (table(x=np.where(np.arange(N) < 5, np.inf, X)), {"x"}),
    "levels": (
        pd.DataFrame(
            {
                "y": 100 + 5 * LONG + RNG.standard_normal(12_000),
                "x": LONG,
                "t": [f"l{k * 37 % LEVELS}" for k in range(12_000)],
            }
        ),
        {"x"},
    ),
}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bad")
    rows = []
    for name, (frame, _) in (REFUSED | ANSWERED).items():
        frame.to_csv(folder / f"{name}.csv", index=False)
        rows.append((name, "", f"{name}.csv", "table"))
    run = run_snakemake(folder, "--cores", "2", "--quiet", "rules", config=write_analysis(folder, rows, SETTINGS))
    assert run.returncode == 0, run.stdout[-6000:]
    return folder / "results"


def graph_of(results, name):
    return read_json(results / name / "y" / "causal" / "dataset" / "graph.json")


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_with_its_reason(results, name):
    graph = graph_of(results, name)
    assert graph["verdict"] == "inconclusive"
    assert [edge for edge in graph["edges"] if edge["source"] != "unexplained"] == []
    assert any(REFUSED[name][1] in reason for reason in graph["reasons"]), graph["reasons"]


@pytest.mark.parametrize("name", ANSWERED)
def test_an_answer(results, name):
    graph = graph_of(results, name)
    found = {edge["source"] for edge in graph["edges"] if edge["target"] == graph["target_node"]} - {"unexplained"}
    assert found == ANSWERED[name][1]
    assert graph["verdict"] == "supported"


def test_the_overview_shows_them_all(results):
    page = (results / "overview.html").read_text(encoding="utf-8")
    assert all(name in page for name in (*REFUSED, *ANSWERED))

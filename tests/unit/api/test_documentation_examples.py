"""The examples of docs/api.md run, one statement after the other, on a small folder of results."""

import ast
import json
import re

import pyarrow as pa
import pyarrow.parquet as pq
from efficiency_samples import clocks, export
from variability_samples import FACTS, bins_table, ranking_table

from causeway.core.tables import write_table
from notebook_cells import cells_run
from support import ROOT

PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")


def folder_of_results(root):
    tables = {
        "kernel_variability/kernels": {"name": ["gemm", "copy"], "launches": [7, 5]},
        "memory_stall/kernels": {"name": ["gemm"], "launches": [7]},
    }
    dataset = root / "causeway-analysis" / "results" / "my_run"
    for name, columns in tables.items():
        path = dataset / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table(columns), path)
    export(dataset / "tables" / "0", kernels=[(0, 1), (5, 7), (9, 12)])
    clocks(dataset / "clocks.json", {"0": 0})
    bins = bins_table()
    write_table(bins, dataset / "kernel_variability" / "bins.parquet", "bins", metadata=FACTS)
    write_table(ranking_table(bins), dataset / "kernel_variability" / "ranking.parquet", "ranking")
    (dataset / "quality.json").write_text("{}")
    (dataset.parent / "findings.json").write_text(json.dumps({"findings": [{"sentence": "A sentence."}]}))


def examples_of(page):
    return re.findall(r"^```python\n(.*?)^```", page, re.M | re.S)


def test_the_examples_of_the_page_run_and_give_what_they_say(tmp_path, monkeypatch, capsys):
    folder_of_results(tmp_path)
    monkeypatch.chdir(tmp_path)
    (text,) = examples_of(PAGE)
    lines = text.splitlines()
    names = {}
    shown = {}
    for statement in ast.parse(text).body:
        code = ast.unparse(statement)
        if isinstance(statement, ast.Expr):
            shown[code] = eval(code, names)  # noqa: S307 - our own page
            said = re.search(r"# (\[.*\])$", lines[statement.lineno - 1])
            assert said is None or shown[code] == ast.literal_eval(said[1]), code
        else:
            exec(code, names)  # noqa: S102 - our own page
    assert capsys.readouterr().out == "A sentence.\n"
    assert names["batch"].to_pydict() == {"duration_ns": [1, 2, 3]}
    values = {code.split(".", 1)[1].split("(")[0]: value for code, value in shown.items() if "." in code}
    assert values["relation"].fetchall() == [(12,)]
    assert values["filter"]["sum(duration_ns)"].tolist() == [6]
    assert values["arrow"].column_names == ["name", "launches"]
    assert values["query"].to_pydict() == {"name": ["gemm", "copy"]}
    assert list(values["pandas"]["launches"]) == [7, 5]


def test_every_call_that_the_page_lists_is_there():
    from causeway.api.results_folder import DatasetResults, ResultsFolder, TableFile

    found = set(re.findall(r"^\| `\.(\w+)", PAGE, re.M))
    assert found
    known = {name for part in (ResultsFolder, DatasetResults, TableFile) for name in dir(part)}
    assert found <= known


def test_the_notebook_runs_and_shows_what_the_tables_hold(tmp_path):
    root = tmp_path / "my-analysis" / "results"
    kernels = {
        "kernel": ["a", "b"],
        "short_name": ["gemm", "copy"],
        "launches": [2, 1],
        "target_share": [0.75, 0.25],
    }
    for name, columns in {
        "kernel_variability/kernels": kernels,
        "tables/e7/launches": {"duration_ns": [2_500_000, 1, 2]},
    }.items():
        path = root / "h100" / f"{name}.parquet"
        path.parent.mkdir(parents=True)
        pq.write_table(pa.table(columns), path)
    (root / "h100" / "tables" / "e7" / "capabilities.json").write_text("{}")
    (root / "h100" / "quality.json").write_text("{}")
    evidence = {"query": "SELECT sum(launches) FROM 'h100/kernel_variability/kernels.parquet'", "value": 3}
    finding = {"verdict": "supported", "headline": "Time is lost.", "sentence": "More.", "evidence": evidence}
    (root / "findings.json").write_text(json.dumps({"findings": [finding]}))
    assert [shown for shown, _ in cells_run(tmp_path)] == [
        "(['kernel_variability'], ['e7'])",
        "supported: Time is lost.\n",
        "(3.0, 3.0)",
        " 75% of the variability in 2 launches of gemm\n 25% of the variability in 1 launches of copy\n",
        "'3 launches, the longest of 2.5 ms'",
    ]

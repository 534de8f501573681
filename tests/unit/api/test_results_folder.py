"""Results opened for reading: what is found, and what a query may not do."""

import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import causeway
from causeway.core.errors import CausewayError
from causeway.core.tables import write_json


@pytest.fixture
def results(tmp_path):
    folder = tmp_path / "results"
    table = folder / "run one" / "kernel_variability" / "kernels.parquet"
    table.parent.mkdir(parents=True)
    pq.write_table(pa.table({"name": ["b", "a"], "launches": [7, 5]}), table)
    (folder / "run one" / "quality.json").write_text('{"status": "good"}')
    (folder / "findings.json").write_text(json.dumps({"findings": [{"id": 1}]}))
    (tmp_path / "secret.csv").write_text("a\n1\n")
    return folder


def test_datasets_tables_and_findings_are_found(results):
    opened = causeway.open(results.parent)
    dataset = opened.datasets["run one"]
    assert opened.findings == [{"id": 1}]
    assert dataset.targets == ["kernel_variability"]
    assert dataset.document("quality") == {"status": "good"}
    table = dataset.table("kernel_variability/kernels")
    assert (table.rows, table.columns) == (2, ["name", "launches"])
    assert table.arrow(["launches"]).to_pydict() == {"launches": [7, 5]}
    assert [batch.num_rows for batch in table.batches(rows=1)] == [1, 1]
    assert list(table.pandas()["name"]) == ["b", "a"]
    assert table.relation().aggregate("sum(launches)").fetchall() == [(12,)]
    assert list(dataset.tables) == ["kernel_variability/kernels"]


def test_the_datasets_of_a_comparison_are_found_by_their_tables(results):
    """`causeway compare` makes no page of quality, but tables of both runs."""
    launches = results / "after" / "tables" / "0" / "launches.parquet"
    launches.parent.mkdir(parents=True)
    pq.write_table(pa.table({"duration_ns": [3, 4]}), launches)
    (results / "compare" / "before__after").mkdir(parents=True)
    opened = causeway.open(results)
    assert list(opened.datasets) == ["after", "run one"]
    assert opened.datasets["after"].table("tables/0/launches").arrow().to_pydict() == {"duration_ns": [3, 4]}


def test_datasets_that_the_configuration_no_longer_has_are_left_out(results):
    for name in ("renamed", "short"):
        (results / name / "tables").mkdir(parents=True)
    assert list(causeway.open(results).datasets) == ["renamed", "run one", "short"], "no run has listed any"
    names = {"datasets": ["run one", "not made yet"], "reduced": ["short"], "comparisons": []}
    write_json({"schema_version": "1", **names}, results / "datasets.json", "listing")
    assert list(causeway.open(results).datasets) == ["run one", "short"]


def test_a_query_counts_paths_from_the_results(results):
    before = os.getcwd()
    found = causeway.open(results).query("SELECT name FROM 'run one/kernel_variability/kernels.parquet' ORDER BY name")
    assert found.to_pydict() == {"name": ["a", "b"]}
    assert os.getcwd() == before


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM '../secret.csv'",
        "SELECT * FROM read_text('/etc/hostname')",
        "SELECT * FROM 'run one/../../secret.csv'",
        "SELECT * FROM glob('/etc/*')",
        "COPY (SELECT 1) TO 'own.parquet'",
        "CREATE TABLE own AS SELECT 1",
        "ATTACH 'own.db'",
        "INSTALL httpfs",
        "SET threads = 1",
        "SELECT 1; SELECT 2",
        "SELEC 1",
        "",
    ],
)
def test_a_query_reads_the_results_alone_and_writes_nothing(results, statement):
    before = sorted(results.rglob("*"))
    with pytest.raises(CausewayError):
        causeway.open(results).query(statement)
    assert sorted(results.rglob("*")) == before


def test_a_link_out_of_the_results_is_not_followed(results):
    (results / "way_out").symlink_to(results.parent)
    with pytest.raises(CausewayError):
        causeway.open(results).query("SELECT * FROM 'way_out/secret.csv'")


def test_what_is_absent_is_named(results, tmp_path):
    opened = causeway.open(results)
    with pytest.raises(CausewayError, match="no table nothing"):
        opened.datasets["run one"].table("nothing")
    with pytest.raises(CausewayError, match="no table"):
        opened.datasets["run one"].table("../../secret")
    with pytest.raises(CausewayError, match="has no column width; it has name, launches"):
        opened.datasets["run one"].table("kernel_variability/kernels").arrow(["width"])
    with pytest.raises(CausewayError, match="has no column width; it has name, launches"):
        next(opened.datasets["run one"].table("kernel_variability/kernels").batches(["name", "width"]))
    with pytest.raises(CausewayError, match="holds no results"):
        causeway.open(tmp_path / "nowhere")

"""Which kernels have most of the time: the shares are those of the queries, whatever order variability gives."""

import html
import json
import re

import duckdb
import plotting_samples as samples
import pyarrow as pa
import pytest

from causeway.core.tables import SCHEMAS, write_table
from causeway.plotting.figures.kernels import kernels_of
from causeway.plotting.overview.device_time.largest_kernels import largest_kernels
from cited_page import CitedPage
from report import write_overview

TIMES = {"a": 700, "b": 100, "c": 50, "d": 100, "e": 50}
"""ns; the least of them varies most."""


def kernels(times):
    lists = {"histogram": [], "timeline": []}
    absent = {field.name: None if field.nullable else 0 for field in SCHEMAS["kernel_summary"]}
    rows = [
        absent
        | lists
        | {"kernel": f"{name}-0000000000", "name": f"void {name}(int)", "short_name": name, "class": "compute"}
        | {"launches": 9, "configurations": 1, "value_sum": float(ns), "target_share": 1 / (1 + ns), "target_sum": 1.0}
        for name, ns in times.items()
    ]
    columns = {one.name: pa.array([row[one.name] for row in rows], one.type) for one in SCHEMAS["kernel_summary"]}
    return pa.table(columns, schema=SCHEMAS["kernel_summary"])


@pytest.mark.parametrize(
    ("times", "said"),
    [
        (TIMES, "Of the kernels' time a has 70.0 %, b 10.0 %, d 10.0 %, 2 others 10.0 %."),
        ({"a": 979, "b": 21}, "Of the kernels' time a has 97.9 %, b 2.1 %."),
        (
            {"a": 300, "b": 300, "c": 300, "d": 100},
            "Of the kernels' time a has 30.0 %, b 30.0 %, c 30.0 %, 1 other 10.0 %.",
        ),
        ({"a": 7, "b": 7, "c": 7, "d": 0}, "Of the kernels' time a has 33.3 %, b 33.3 %, c 33.3 %, 1 other 0.0 %."),
        ({"a": 5}, "Of the kernels' time a has 100.0 %."),
    ],
)
def test_the_kernels_with_most_time_are_named_whatever_varies(times, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = kernels(times)
    write_table(table, tmp_path / "demo" / "kernel_variability" / "kernels.parquet", "kernel_summary")
    sentence = str(largest_kernels(kernels_of(table), "demo"))
    assert html.unescape(re.sub("<[^>]*>", "", sentence)) == said
    for query, _, value, _ in CitedPage(sentence).citations:
        assert duckdb.connect().sql(query).fetchall()[0][0] == pytest.approx(float(value), abs=1e-12)


def test_where_no_kernel_has_a_time_none_is_named():
    assert largest_kernels([], "demo") is None
    assert largest_kernels(kernels_of(kernels({"a": 0})), "demo") is None


def test_it_stands_where_the_time_goes_and_links_to_the_rows_of_kernels(tmp_path):
    samples.write_dataset(tmp_path / "results", names=["gemm", "other"], scopes=1, measured=True)
    job = samples.job_of(tmp_path / "results", tmp_path)
    write_overview.write_findings(job)
    write_overview.write_page(job)
    page = (tmp_path / "overview.html").read_text()
    sentence = page[page.index("Of the kernels") :].partition("</p>")[0]
    assert page.index("Where the time goes</h3>") < page.index("Of the kernels") < page.index("What varies</h3>")
    linked = re.findall('href="#([^"]*)"', sentence)
    assert len(linked) == 2
    assert all(f'id="{one}"' in page for one in linked)


@pytest.mark.parametrize(
    ("largest", "said"),
    [
        (20, "which do not vary: each takes 20 ns."),
        (25, "which take from 20 ns to 25 ns."),
    ],
)
def test_executions_of_whole_graphs_count_before_kernels(tmp_path, monkeypatch, largest, said):
    """9 us in graphs and 1 us in kernels outside of them."""
    monkeypatch.chdir(tmp_path)
    table = kernels(TIMES)
    write_table(table, tmp_path / "demo" / "kernel_variability" / "kernels.parquet", "kernel_summary")
    graphs = {"executions": 450, "duration_ns": 9_000, "least_ns": 20, "largest_ns": largest}
    document = {"graphs": graphs, "launch_path": {"kernel_ns": 1_000}}
    (tmp_path / "demo" / "efficiency.json").write_text(json.dumps(document))
    sentence = str(largest_kernels(kernels_of(table), "demo", document))
    assert html.unescape(re.sub("<[^>]*>", "", sentence)) == (
        f"Of the time of graphs and kernels 90.0 % (9 µs) is that of 450 executions of graphs, {said}"
        " Of the kernels outside of them a has 70.0 %, b 10.0 %, d 10.0 %, 2 others 10.0 %."
    )
    for query, _, value, _ in CitedPage(sentence).citations:
        assert duckdb.connect().sql(query).fetchall()[0][0] == pytest.approx(float(value), abs=1e-12)

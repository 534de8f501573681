"""The whole way on small inputs: simulated traces with planted causes, real exports, and damage beside them."""

import gzip
import json
import sqlite3
from contextlib import closing

import pyarrow.compute as pc
import pytest

from causeway.core.tables import read_json, read_table
from cited_page import wrong_numbers
from queried import wrong_findings
from support import run_snakemake, write_analysis

SETTINGS = "causes: {batches: 1, kernels_count: 2, max_rows: 1000}\n"


READ = ["rodinia/quality.json", "hopeless/quality.json"]
"""What is made of the exports where time matters: the demonstration goes the rest of the way in every run."""


def run_workflow(folder, rows, targets):
    """Run some targets, or `all`; return the folder of the results."""
    config = write_analysis(folder, rows, SETTINGS)
    run = run_snakemake(folder, "--cores", "2", "--quiet", "rules", "--", *targets, config=config, forked=True)
    assert run.returncode == 0, run.stdout[-6000:]
    return folder / "results"


@pytest.fixture(scope="session", params=["read", pytest.param("all", marks=pytest.mark.slow)])
def real(request, tmp_path_factory, data):
    """Run the workflow once on real exports, with damaged ones beside them; on those of every kind and to the end
    where time does not matter.
    """
    folder = tmp_path_factory.mktemp("real")
    (folder / "zero.sqlite").write_bytes(b"")
    (folder / "prose.sqlite").write_text("This is no export.\n")
    whole = (data / "nsys_sqlite/rodinia-gaussian/report5.sqlite").read_bytes()
    (folder / "cut.sqlite").write_bytes(whole[: len(whole) // 2])
    rodinia = data / "nsys_sqlite/rodinia-gaussian"
    kineto = data / "kineto/hta"
    rows = [
        ("rodinia", "0", rodinia / "report3.sqlite", "nsys"),
        ("rodinia", "2", "zero.sqlite", "nsys"),
        ("rodinia", "6", "cut.sqlite", "nsys"),
        ("hopeless", "0", data / "ncu_csv/operators-a100/failed/empty.csv", "ncu"),
    ]
    if request.param == "all":
        rows += [
            ("rodinia", "1", rodinia / "report5.sqlite", "nsys"),
            ("rodinia", "3", "prose.sqlite", "auto"),
            ("rodinia", "4", data / "nsys_sqlite/no-gpu-activity/jacc_report1.sqlite", "auto"),
            ("rodinia", "5", data / "ncu_csv/operators-a100/failed/app_error.csv", "ncu"),
            ("kineto", "0", kineto / "sampled_rank-0.json.gz", "auto"),
            ("kineto", "1", kineto / "sampled_rank-1.json.gz", "kineto"),
            ("dropout", "", data / "ncu_csv/operators-a100/dropout_nsight162.csv", "auto"),
        ]
    return run_workflow(folder, rows, [] if request.param == "all" else [f"results/{name}" for name in READ])


def nsys_answer(path, table="CUPTI_ACTIVITY_KIND_KERNEL"):
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as base:
        return base.execute(f"SELECT count(*), sum(end - start) FROM {table}").fetchone()


def rows_and_time(folder, table="launches"):
    read = read_table(folder / f"{table}.parquet", table)
    return read.num_rows, pc.sum(read["duration_ns"]).as_py()


def test_launches_and_kernel_time_equal_the_exports_own(real, data):
    path = data / "nsys_sqlite/rodinia-gaussian/report3.sqlite"
    assert rows_and_time(real / "rodinia/tables/0") == nsys_answer(path)


def test_transfers_equal_the_exports_own(real, data):
    path = data / "nsys_sqlite/rodinia-gaussian/report3.sqlite"
    assert rows_and_time(real / "rodinia/tables/0", "transfers") == nsys_answer(path, "CUPTI_ACTIVITY_KIND_MEMCPY")


ALL = pytest.mark.parametrize("real", [pytest.param("all", marks=pytest.mark.slow)], indirect=True)


@ALL
@pytest.mark.parametrize("rank", [0, 1])
def test_kineto_launches_equal_the_files_own(real, data, rank):
    with gzip.open(data / f"kineto/hta/sampled_rank-{rank}.json.gz", "rt") as file:
        events = json.load(file)["traceEvents"]
    kernels = [event for event in events if event.get("cat") == "kernel" and event.get("ph") == "X"]
    assert rows_and_time(real / f"kineto/tables/{rank}") == (
        len(kernels),
        sum(round(event["dur"] * 1000) for event in kernels),
    )


@ALL
def test_counters_have_a_target_of_their_own(real):
    bins = read_table(real / "dropout/gpu_time/bins.parquet", "bins")
    assert pc.sum(bins["count"]).as_py() == 162
    assert not (real / "dropout/kernel_variability").exists()


def test_a_bad_export_is_a_gap_in_the_quality_and_the_rest_runs(real):
    quality = read_json(real / "rodinia/quality.json")
    assert quality["status"] == "caution"
    exports = {entry["export"]: entry for entry in quality["exports"] if entry["export"] != "6"}  # the cut one
    assert len(exports) in (2, 6)
    for name, export in exports.items():
        assert export["status"] == ("read" if name in ("0", "1") else "refused"), name
        assert (export["error"] is None) == (export["status"] == "read")
        if export["error"]:
            assert all(export["error"][part] for part in ("source", "found", "expected", "advice"))


def test_a_cut_export_is_read_as_far_as_it_goes_or_refused_but_never_looks_whole(real, data):
    found = read_json(real / "rodinia/tables/6/capabilities.json")
    assert found["status"] in ("partial", "refused")
    assert found["error"]["found"]
    if found["status"] == "partial":
        assert (
            rows_and_time(real / "rodinia/tables/6")[0]
            < nsys_answer(data / "nsys_sqlite/rodinia-gaussian/report5.sqlite")[0]
        )


def test_a_dataset_without_any_readable_export_is_blocked(real):
    assert read_json(real / "hopeless/quality.json")["status"] == "blocked"


@ALL
def test_a_dataset_without_any_readable_export_says_why_it_has_no_causes(real):
    graph = read_json(real / "hopeless/gpu_time/causal/dataset/graph.json")
    assert graph["verdict"] == "inconclusive"
    assert graph["reasons"]


@ALL
def test_a_second_run_does_nothing(real):
    run = run_snakemake(real.parent, "--dry-run", config=real.parent / "config.yaml")
    assert "Nothing to be done" in run.stdout


@ALL
def test_overview_and_findings_cover_every_dataset(real):
    page = (real / "overview.html").read_text(encoding="utf-8")
    findings = read_json(real / "findings.json")
    sheet = (real.parent / "datasets.tsv").read_text(encoding="utf-8")
    datasets = {line.split("\t")[0] for line in sheet.splitlines()[1:]}
    assert len(datasets) > 1
    assert {finding["dataset"] for finding in findings["findings"]} <= datasets
    assert [dataset for dataset in datasets if dataset not in page] == []


@ALL
def test_every_number_of_findings_and_overview_is_found_by_its_query(real):
    assert wrong_findings(read_json(real / "findings.json")["findings"], real) == []
    page, wrong = wrong_numbers((real / "overview.html").read_text(encoding="utf-8"), real)
    assert len(page.citations) > 400
    assert wrong == []

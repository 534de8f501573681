"""A reduced dataset through the whole workflow: what the filter kept is what every other rule sees."""

import sqlite3
from contextlib import closing

import pyarrow.compute as pc
import pytest

from causeway.core.tables import read_json, read_table
from support import copy_checkout, run_snakemake, write_analysis

SETTINGS = """
causes: {batches: 2, kernels_count: 3}
filters:
  long:
    dataset: h100
    keep:
      - {classes: [compute], min_duration_us: 20}
      - {classes: [communication, copy]}
levels:
  metrics:
    - {name: copy_rate, table: transfers, value: bytes / duration_ns}
"""


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_rule_takes_a_reduced_dataset_like_one_of_the_sheet(tmp_path, data):
    source = data / "nsys_sqlite/nsys-ai/h100_2gpu_1s.sqlite"
    config = write_analysis(tmp_path, [("h100", "", source, "auto")], SETTINGS)
    window = "results/long/windows/whole.json.gz"
    run = run_snakemake(
        tmp_path,
        "--cores",
        "2",
        "--quiet",
        "rules",
        "--",
        "all",
        window,
        config=config,
        root=copy_checkout(tmp_path / "c"),
    )
    assert run.returncode == 0, run.stdout[-6000:]
    whole = tmp_path / "results/h100"
    reduced = tmp_path / "results/long"
    with closing(sqlite3.connect(f"file:{source}?mode=ro", uri=True)) as base:
        before = base.execute("SELECT count(*), sum(end - start) FROM CUPTI_ACTIVITY_KIND_KERNEL").fetchone()
    found = read_json(reduced / "tables/e0/filter.json")["tables"]["launches"].values()
    for place, what in enumerate(("rows", "duration_ns")):
        parts = [sum(entry[what][part] for entry in found) for part in ("before", "kept", "dropped")]
        assert parts[0] == before[place] == parts[1] + parts[2]
        assert parts[1] > 0 < parts[2]
    launches = read_table(reduced / "tables/e0/launches.parquet", "launches")
    kept = launches.num_rows
    assert kept == sum(entry["rows"]["kept"] for entry in found)
    bins = read_table(reduced / "kernel_variability/bins.parquet", "bins")
    assert (
        pc.sum(bins["count"]).as_py()
        == kept
        < pc.sum(read_table(whole / "kernel_variability/bins.parquet", "bins")["count"]).as_py()
    )
    index = read_json(reduced / "levels/index.json")
    coarsest = read_table(
        reduced / "levels" / index["levels"][-1]["folder"] / "statistics.parquet", "level_statistics"
    ).to_pylist()
    names = [metric["name"] for metric in index["metrics"]]
    counted = {name: sum(row["count"] for row in coarsest if names[row["metric"]] == name) for name in names}
    assert counted["variability"] == kept
    assert counted["copy_rate"] > 0
    assert read_json(whole / "efficiency.json")["why"] is None
    assert "the filter dropped" in read_json(reduced / "efficiency.json")["why"]
    findings = [one for one in read_json(tmp_path / "results/findings.json")["findings"] if one["dataset"] == "long"]
    assert not {"efficiency", "straggler"} & {one["kind"] for one in findings}
    features = read_table(reduced / "kernel_variability/features.parquet", "features").column_names
    assert not {"launches_in_flight", "transfers_in_flight", "idle_before_ns"} & set(features)
    for path in (
        "explorer/index.html",
        "windows/whole.prv",
        "kernel_variability/causal/dataset/graph.json",
        "quality.json",
    ):
        assert (reduced / path).is_file(), path
    assert "long" in (tmp_path / "results/overview.html").read_text(encoding="utf-8")
    assert read_json(reduced / "clocks.json")["exports"] == read_json(whole / "clocks.json")["exports"]

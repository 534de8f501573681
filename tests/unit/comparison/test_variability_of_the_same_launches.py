"""Variability is compared of the same launches: what a further kernel or configuration scatters is no change of others."""

import numpy as np
import pyarrow.parquet as pq
import pytest

from causeway.comparison.runs.run_totals import measure
from causeway.core.tables import read_json, read_table
from causeway.findings.comparison import comparison_findings
from comparison_runs import compared, findings, write_comparison, write_run
from variability_tables import write_export

N = 400


def written(folder, *groups):
    """Write a run of one rank; each group is (kernel, grid, launches, mean, deviation): half of its launches take mean
    - deviation, half mean + deviation, in turn.
    """
    rows = []
    for number, (_, _, launches, mean, deviation) in enumerate(groups):
        rows += [(i * N / launches, number, mean + (-deviation, deviation)[i % 2]) for i in range(launches)]
    rows.sort()
    columns = {
        "start_ns": [1_000_000 * place for place in range(len(rows))],
        "duration_ns": [duration for *_, duration in rows],
        "configuration": [number for _, number, _ in rows],
        "rank": [0] * len(rows),
    }
    tables = folder / "tables" / "e0"
    write_export(tables, columns, configurations=[(name, {"grid_x": grid}) for name, grid, *_ in groups])
    return tables


def of_run(rows, metric="variability"):
    return next(row for row in rows if (row["level"], row["metric"]) == ("run", metric))


STEADY = ("k", 1, N, 10_000, 1000)


def test_a_new_kernel_that_scatters_makes_no_run_more_variable(tmp_path):
    """The same kernel on both sides deviates by 1000 of 10,000 ns. The candidate has another one, a tenth as often, that
    deviates by 8000: of all 1000 n + 800 n, so that the run's own variability goes from .1 to 1800 / 11,000.
    """
    folders = written(tmp_path / "a", STEADY), written(tmp_path / "b", STEADY, ("n", 1, N // 10, 10_000, 8000))
    rows = compared(*folders)
    row = of_run(rows)
    assert (row["baseline_value"], row["candidate_value"]) == pytest.approx((0.1, 1800 / 11_000))
    assert row["change_percent"] == pytest.approx(0.0, abs=1e-9)
    assert (row["low_percent"], row["verdict"]) == (None, "inconclusive")
    assert row["reason"] == (
        "only 56 % of the deviations are of configurations that both sides have: other work, which is no change of speed"
    )
    assert of_run(rows, "time_per_launch")["low_percent"] is not None  # 10/11 of the time are in both
    assert findings(rows, "variability") == {}


def test_the_finding_names_other_work_and_no_change(tmp_path):
    folders = {
        "a": written(tmp_path / "a", STEADY),
        "b": written(tmp_path / "b", STEADY, ("n", 1, N // 10, 10_000, 8000)),
    }
    path = write_comparison(tmp_path, [["a"], ["b"]], folders)
    rows = read_table(path.with_suffix(".parquet"), "comparison").to_pylist()
    (finding,) = comparison_findings(read_json(path), rows)
    assert finding.headline == (
        "b: no change from a is beyond noise for the same launches; other launches and kernels change the GPU time by"
        " +10.0 %."
    )


def test_a_kernel_that_varies_twice_as_much_is_claimed_beside_a_new_one(tmp_path):
    """It deviates by 2000 instead of 1000; the new one by as little as 500 in a tenth of the launches."""
    folders = (
        written(tmp_path / "a", STEADY),
        written(tmp_path / "b", ("k", 1, N, 10_000, 2000), ("n", 1, N // 10, 10_000, 500)),
    )
    row = of_run(compared(*folders))
    assert row["change_percent"] == pytest.approx(100.0)
    assert row["verdict"] == "more variable"


def test_launching_more_of_a_configuration_that_scatters_is_no_more_variable(tmp_path):
    """Two configurations, of 1000 and 4000 ns deviation in 10,000: the candidate launches the second four times as
    often, 100 to 400. Its mean deviation is 2500 instead of 1600; each configuration's is the same.
    """
    folders = (
        written(tmp_path / "a", STEADY, ("k", 2, N // 4, 10_000, 4000)),
        written(tmp_path / "b", STEADY, ("k", 2, N, 10_000, 4000)),
    )
    rows = compared(*folders)
    for level in ("run", "rank", "kernel"):
        row = next(row for row in rows if (row["level"], row["metric"]) == (level, "variability"))
        assert (row["baseline_value"], row["candidate_value"]) == pytest.approx((0.16, 0.25))
        assert row["change_percent"] == pytest.approx(0.0, abs=1e-9)


def test_deviations_of_repeats_are_those_of_the_candidates_launches(tmp_path):
    """Repeats of the baseline that launched other numbers of both configurations differ in nothing: the floor is 0."""
    folders = [
        written(tmp_path / name, STEADY, ("k", 2, launches, 10_000, 4000))
        for name, launches in (("a", 100), ("a2", 200), ("b", N))
    ]
    row = of_run(compared(folders[0], folders[2], ((folders[1],), ())))
    assert (row["floor_percent"], row["change_percent"]) == pytest.approx((0.0, 0.0), abs=1e-9)


def test_the_deviations_of_strata_are_exact(tmp_path):
    folder = write_run(tmp_path, 1, iterations=50, ranks=3)
    run = measure("a", [folder])
    table = pq.read_table(folder / "launches.parquet").to_pandas()
    groups = table.groupby("configuration")["duration_ns"]
    means = groups.sum() // groups.count()
    table["deviation"] = (table["duration_ns"] - table["configuration"].map(means)).abs().astype(np.int64)
    wanted = table.groupby(["configuration", "rank"])["deviation"].sum()
    found = {(configuration, rank): deviation for configuration, rank, *_, deviation in run.strata.tolist()}
    assert found == wanted.to_dict()

"""Changes of known size are found with an interval that holds them; runs that do not differ give no finding."""

import numpy as np
import pyarrow as pa
import pytest

from causeway.comparison.change_estimates import Choices, Estimate, between_runs, resample
from causeway.comparison.change_verdicts import p_value, verdict
from causeway.comparison.runs.launches import Launches
from causeway.comparison.runs.run_totals import measure
from causeway.core.errors import CausewayError
from causeway.numeric.effective_size import blocked_correlation_time
from causeway.numeric.seeds import generator_64
from comparison_runs import compared, correlated, findings, write_run
from variability_tables import write_export


def row_of(rows, level, name, metric="time_per_launch"):
    return next(
        row for row in rows if row["level"] == level and row["metric"] == metric and row["candidate"].startswith(name)
    )


def test_a_planted_slowdown_of_a_twentieth_is_found_and_nothing_else(tmp_path):
    before = write_run(tmp_path / "a", 1)
    after = write_run(tmp_path / "b", 2, factors={"reduce": 1.05})
    rows = compared(before, after)
    assert findings(rows) == {("kernel", "reduce"): "slower", ("configuration", "reduce"): "slower"}
    row = row_of(rows, "kernel", "reduce")
    assert row["low_percent"] < 5.0 < row["high_percent"]
    assert row["q_value"] < 0.05
    assert row["floor_percent"] < row["low_percent"]


def test_two_halves_of_one_run_give_no_finding(tmp_path):
    for seed, rho in ((3, 0.0), (4, 0.9), (5, 0.98)):
        halves = [write_run(tmp_path / f"{seed}{part[0]}", seed, rho=rho, part=part) for part in ((0, 150), (150, 300))]
        rows = compared(*halves)
        assert findings(rows) == findings(rows, "variability") == {}


def test_a_kernel_that_scatters_twice_as_much_is_more_variable_but_not_slower(tmp_path):
    calm = write_run(tmp_path / "a", 6, scatter=0.02)
    wild = write_run(tmp_path / "b", 7, scatter=0.06)
    rows = compared(calm, wild)
    assert {verdict for (level, _), verdict in findings(rows, "variability").items() if level == "kernel"} == {
        "more variable"
    }
    assert [key for key in findings(rows) if key[0] == "kernel"] == []


def test_repeats_turn_a_shift_of_a_whole_run_into_noise(tmp_path):
    """Runs of one program that differ by some percent each: one against one looks like a change, against its repeats
    it is none.
    """
    shifts = [1.0, 1.04, 0.97, 1.05]
    folders = [
        write_run(
            tmp_path / str(i),
            10 + i,
            factors=dict.fromkeys(("advance", "reduce", "exchange", "scatter", "gather", "norm"), f),
        )
        for i, f in enumerate(shifts)
    ]
    assert ("run", "all kernels") in findings(compared(folders[0], folders[3]))
    assert findings(compared(folders[0], folders[3], (folders[1:3], ()))) == {}


def test_launching_more_of_a_larger_configuration_is_no_slowdown(tmp_path):
    rng = np.random.default_rng(0)
    folders = []
    for name, large in (("a", 100), ("b", 300)):
        configuration = rng.permutation([0] * 300 + [1] * large)
        duration = np.where(configuration == 0, 10_000, 50_000) + rng.integers(-100, 100, configuration.size)
        columns = {
            "start_ns": np.arange(configuration.size) * 100_000,
            "duration_ns": duration,
            "configuration": configuration,
            "rank": np.zeros(configuration.size, int),
        }
        write_export(tmp_path / name, columns, configurations=[("k", {"grid_x": 1}), ("k", {"grid_x": 9})])
        folders.append(tmp_path / name)
    row = row_of(compared(*folders), "kernel", "k")
    assert row["candidate_value"] > 1.4 * row["baseline_value"]
    assert row["verdict"] == "same"
    assert abs(row["change_percent"]) < 0.2


def test_ranks_of_one_side_are_new_and_gone(tmp_path):
    from causeway.comparison.groups import lone_rows
    from causeway.comparison.sides import Side

    sides = [
        Side([measure(name, [write_run(tmp_path / name, 1, ranks=ranks)])]) for name, ranks in (("a", 1), ("b", 2))
    ]
    assert [(row["level"], row["verdict"], row["candidate"]) for row in lone_rows(sides, [])] == [("rank", "new", "1")]


def test_counters_are_compared_by_their_gpu_time_and_have_no_span(tmp_path):
    extra = [pa.field("gpu_time", pa.float64(), metadata={"unit": "us"})]
    counters = {"launch": [0, 1], "configuration": [0, 0], "rank": [0, 0], "gpu_time": [1.5, 2.25]}
    write_export(tmp_path / "e0", counters=counters, extra=extra, ranks=[0])
    run = measure("c", [tmp_path / "e0"])
    assert (run.total_ns, run.launches, run.span_ns) == (3750, 2, None)


def test_a_dataset_without_gpu_times_is_refused_in_one_sentence(tmp_path):
    extra = [pa.field("temperature", pa.float64())]
    write_export(
        tmp_path / "e0",
        counters={"launch": [0], "configuration": [0], "rank": [0], "temperature": [1.0]},
        extra=extra,
        ranks=[0],
    )
    with pytest.raises(CausewayError, match="none of its exports holds kernel launches or the counter gpu_time"):
        Launches("c", [tmp_path / "e0"])


def test_cells_hold_the_exact_sums_however_many_launches_share_one(tmp_path, monkeypatch):
    monkeypatch.setattr("causeway.comparison.runs.run_totals.CELLS", 64)
    folder = write_run(tmp_path, 1, iterations=300)
    run = measure("a", [folder])
    assert [series.cells.shape[0] for series in run.series("kernel", 0)] == [60]  # 5 launches a cell
    for level, groups in (("run", 1), ("rank", 2), ("kernel", 6)):
        cells = [series.cells.sum(axis=0) for group in range(groups) for series in run.series(level, group)]
        assert sum(int(one[0]) for one in cells) == run.launches == 3600
    import pyarrow.parquet as pq

    table = pq.read_table(folder / "launches.parquet").to_pandas()
    means = table.groupby("configuration")["duration_ns"].sum() // table.groupby("configuration")["duration_ns"].count()
    spread = (table["duration_ns"] - table["configuration"].map(means)).abs()
    assert int(run.series("run", 0)[0].cells[:, 2].sum()) == int(spread.sum())


@pytest.mark.parametrize("rho", [0.0, 0.7, 0.9])
def test_blocks_give_the_standard_error_of_a_correlated_mean(rho):
    rng = np.random.default_rng(0)
    values = np.rint(1000 * correlated(rng, 20_000, rho)).astype(np.int64)
    drawn = resample([values[:, None]], values.astype(float), 500, generator_64(1, "x"))
    truth = 1000 * np.sqrt((1 + rho) / (1 - rho) / values.size)
    assert drawn.sums[0].std() / values.size == pytest.approx(truth, rel=0.2)
    assert blocked_correlation_time(values.astype(float)) == pytest.approx((1 + rho) / (1 - rho), rel=0.5)


def test_the_time_of_a_series_that_repeats_every_iteration_is_seen():
    """Six kernels take turns: neighbours are unrelated, the same kernel an iteration later is not."""
    rng = np.random.default_rng(1)
    values = np.stack([correlated(rng, 2000, 0.95) for _ in range(6)], axis=1).ravel()
    assert blocked_correlation_time(values) > 6 * 15


def test_repeats_give_the_t_interval_of_their_scatter():
    from scipy import stats

    one = [1.0, 1.2, 0.9, 1.1]
    other = [1.5, 1.4, 1.7]
    found = between_runs([one, other], [0.0], 0.95)
    wanted = stats.ttest_ind(other, one)
    interval = wanted.confidence_interval(0.95)
    assert (found.change, found.low, found.high) == pytest.approx(
        (np.mean(other) - np.mean(one), interval.low, interval.high)
    )
    assert found.floor == pytest.approx(0.3)
    exact = Estimate(found.change, found.low, found.high, found.error, found.freedom, 0.0)
    assert p_value(exact, Choices()) == pytest.approx(wanted.pvalue)


@pytest.mark.parametrize(
    ("estimate", "word"),
    [
        (Estimate(0.05, 0.04, 0.06, 0.005, 50, 0.01), "worse"),
        (Estimate(-0.05, -0.06, -0.04, 0.005, 50, 0.01), "better"),
        (Estimate(0.001, -0.004, 0.006, 0.0025, 50, 0.002), "same"),
        (Estimate(0.02, 0.01, 0.03, 0.005, 50, 0.03), "same"),
        (Estimate(0.08, 0.07, 0.09, 0.005, 50, 0.4), "inconclusive"),
        (Estimate(0.03, -0.01, 0.07, 0.02, 50, 0.01), "inconclusive"),
        (Estimate(0.03), "inconclusive"),
        (Estimate(0.03, 0.02, 0.04, 0.005, 50, None), "inconclusive"),
    ],
)
def test_verdicts(estimate, word):
    assert verdict(estimate, p_value(estimate, Choices()), Choices())[0] == word


@pytest.mark.slow
@pytest.mark.parametrize("rho", [0.0, 0.9, 0.98])
def test_runs_that_do_not_differ_give_few_findings_over_many_seeds(tmp_path, rho):
    claimed = 0
    for seed in range(60):
        folders = [
            write_run(tmp_path / f"{seed}{side}", 2 * seed + side, rho=rho, iterations=300 - 40 * side * (seed % 2))
            for side in (0, 1)
        ]
        rows = compared(*folders)
        claimed += bool(findings(rows) or findings(rows, "variability"))
    assert claimed <= 6  # a comparison tests ten families at 5 % each, so this is fewer than chance alone would give


@pytest.mark.slow
@pytest.mark.parametrize(("rho", "iterations", "least"), [(0.0, 300, 27), (0.9, 6000, 24)])
def test_a_slowdown_of_a_twentieth_is_found_with_enough_launches(tmp_path, rho, iterations, least):
    found = 0
    for seed in range(30):
        folders = [
            write_run(
                tmp_path / f"{seed}{side}",
                2 * seed + side,
                iterations,
                1,
                rho,
                factors={"reduce": 1.05} if side else {},
            )
            for side in (0, 1)
        ]
        found += findings(compared(*folders)).get(("kernel", "reduce")) == "slower"
    assert found >= least

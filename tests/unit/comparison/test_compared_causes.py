"""What explains the variability of both sides; copies, idle time and steps, which are compared whatever kernels the runs
launch.
"""

import numpy as np
import pytest

from causeway.comparison.change_estimates import UNMEASURED, Choices
from causeway.comparison.change_verdicts import compare_causes
from causeway.comparison.over_time import Course, compare_steps, compare_times
from causeway.core.tables import write_table
from variability_tables import table_of


def cause(percent, half, sign="+", about="target"):
    found = {"variance_percent": percent, "variance_low": percent - half, "variance_high": percent + half}
    return found | {"sign": sign, "sign_of": about}


def test_signs_say_what_they_are_about():
    (row,) = compare_causes(
        [{"t": {"clock": cause(20.0, 8.0, "+")}}, {"t": {"clock": cause(24.0, 8.0, "-", "value")}}], 0.05
    )
    assert (row["signs"], row["sign_of"]) == (["+", "-"], ["target", "value"])
    (gone,) = compare_causes([{"t": {"clock": cause(20.0, 8.0)}}, {"t": {}}], 0.05)
    assert (gone["signs"], gone["sign_of"]) == (["+", None], ["target", None])


def test_a_difference_has_the_interval_of_both_sides_together():
    (row,) = compare_causes([{"t": {"clock": cause(20.0, 3.0)}}, {"t": {"clock": cause(50.0, 4.0)}}], 0.05)
    assert (row["change"], row["low"], row["high"]) == pytest.approx(
        (30.0, 30.0 - np.hypot(3, 4), 30.0 + np.hypot(3, 4))
    )
    assert row["verdict"] == "changed"


def test_a_small_difference_is_not_claimed():
    (row,) = compare_causes([{"t": {"clock": cause(20.0, 8.0)}}, {"t": {"clock": cause(24.0, 8.0)}}], 0.05)
    assert row["verdict"] == "inconclusive"
    assert row["low"] < 0 < row["high"]


def test_a_cause_of_one_side_appeared_or_is_gone_and_targets_of_one_side_are_left_out():
    rows = compare_causes([{"t": {"a": cause(9.0, 1.0)}, "u": {}}, {"t": {"b": cause(5.0, 1.0)}}], 0.05)
    assert [(row["feature"], row["verdict"], row["change"]) for row in rows] == [
        ("a", "gone", None),
        ("b", "appeared", None),
    ]


ALONE = Choices(replicates=200, unmeasured=UNMEASURED)


def write_steps(path, durations, ranks=2, warm_up=1):
    """Write steps of so many ranks, the first of which warm up and take ten times as long."""
    rows = [
        (rank, step, int(10 * duration if step < warm_up else duration + rank), step < warm_up)
        for rank in range(ranks)
        for step, duration in enumerate(durations)
    ]
    columns = dict(zip(("rank", "step", "duration_ns", "warm_up"), map(list, zip(*rows, strict=True)), strict=True))
    write_table(table_of("steps", columns), path, "steps")
    return path


def steps(seed, mean, number=60):
    return np.random.default_rng(seed).normal(mean, 0.02 * mean, number).astype(int)


def test_a_step_that_takes_a_tenth_longer_is_slower(tmp_path):
    series = [steps(1, 100_000), steps(2, 110_000)]
    paths = [write_steps(tmp_path / f"{at}.parquet", one) for at, one in enumerate(series)]
    (row,) = compare_steps(["a", "b"], [[path] for path in paths], ALONE, 1)
    medians = [np.median(one[1:] + 0.5) for one in series]
    assert (row["level"], row["metric"], row["unit"], row["verdict"]) == ("run", "step", "ns", "slower per step")
    assert [row["baseline_value"], row["candidate_value"]] == pytest.approx(medians, rel=1e-12)
    assert row["change_percent"] == pytest.approx(100 * (medians[1] / medians[0] - 1), rel=1e-9)
    assert row["low_percent"] < row["change_percent"] < row["high_percent"]
    assert row["low_percent"] > 100 * UNMEASURED


def test_steps_that_do_not_differ_claim_nothing_and_few_have_no_interval(tmp_path):
    paths = [write_steps(tmp_path / f"{seed}.parquet", steps(seed, 100_000)) for seed in range(6)]
    for one, other in zip(paths[::2], paths[1::2], strict=True):
        (row,) = compare_steps(["a", "b"], [[one], [other]], ALONE, 1)
        assert row["verdict"] in ("same", "inconclusive")
    few = [write_steps(tmp_path / f"few{seed}.parquet", steps(seed, 100_000, 4)) for seed in range(2)]
    (row,) = compare_steps(["a", "b"], [[few[0]], [few[1]]], ALONE, 1)
    assert (row["verdict"], row["low_percent"]) == ("inconclusive", None)
    again = compare_steps(["a", "b"], [[paths[0]], [paths[1]]], ALONE, 1)
    assert again == compare_steps(["a", "b"], [[paths[0]], [paths[1]]], ALONE, 1)


def test_an_interval_of_steps_holds_their_median(tmp_path):
    """Where a third of the steps is long, few draws have a long median: the mean of all lay above the interval."""
    rng = np.random.default_rng(3)
    series = [steps(1, 100_000), rng.permutation([*steps(2, 100_000, 39), *steps(2, 20_000_000, 21)])]
    paths = [write_steps(tmp_path / f"{at}.parquet", one, 1, 0) for at, one in enumerate(series)]
    (row,) = compare_steps(["a", "b"], [[path] for path in paths], Choices(replicates=1000), 1)
    assert row["low_percent"] < row["change_percent"] < row["high_percent"]


def test_steps_with_repeats_are_judged_by_the_scatter_between_runs(tmp_path):
    means = [[100_000, 101_000, 99_500], [120_000, 121_000, 119_000]]
    sides = [
        [write_steps(tmp_path / f"{side}{at}.parquet", steps(at, mean)) for at, mean in enumerate(runs)]
        for side, runs in enumerate(means)
    ]
    (row,) = compare_steps(["a", "b"], sides, Choices(replicates=200), 1)
    assert row["verdict"] == "slower per step"


def test_a_run_without_steps_has_no_row(tmp_path):
    paths = [
        write_steps(tmp_path / "a.parquet", steps(1, 1000)),
        write_steps(tmp_path / "b.parquet", [5, 6], warm_up=2),
    ]
    assert compare_steps(["a", "b"], [[paths[0]], [paths[1]]], ALONE, 1) == []


def test_copies_and_idle_time_are_those_of_all_devices(tmp_path):
    whole = {"level": "dataset", "elapsed_ns": 1000, "n_devices": 4, "busy_ns": 3100, "memory_ns": 250}
    columns = {name: [value, value] for name, value in whole.items()} | {
        "level": ["dataset", "rank"],
        "rank": [None, 0],
    }
    write_table(table_of("efficiency", columns), tmp_path / "e.parquet", "efficiency")
    assert Course(tmp_path / "e.parquet").times == {"copies": 250, "idle": 900}


@pytest.mark.parametrize(("metric", "said"), [("span", "a span"), ("copies", "the time of copies"), ("idle", "idle")])
def test_a_number_of_one_run_has_no_interval_and_says_why(metric, said):
    (row,) = compare_times(metric, [[200], [300]], ALONE)
    assert (row["metric"], row["verdict"], row["low_percent"]) == (metric, "inconclusive", None)
    assert row["change_percent"] == pytest.approx(50)
    assert said in row["reason"]


@pytest.mark.parametrize("times", [[[0], [5]], [[None], [5]], [[5, 0], [5]]])
def test_what_a_run_does_not_have_is_not_compared(times):
    assert compare_times("copies", times, ALONE) == []


def test_numbers_with_repeats_are_judged_by_their_scatter():
    (row,) = compare_times("copies", [[200, 201, 199], [300, 302, 299]], Choices(replicates=200))
    assert row["verdict"] == "longer in copies"

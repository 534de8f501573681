"""Runs of different numbers of ranks: what both have is compared, also where their cells hold unequally many launches."""

import numpy as np
import pyarrow.parquet as pq
import pytest

from causeway.comparison.runs.run_totals import measure
from causeway.core.tables import read_json, read_table
from comparison_runs import KERNELS, compared, write_comparison, write_run

MANY = 5000
"""Launches of a rank beyond the cells of a series, which are 4096 of one rank, 2048 of two and 1024 of four."""


def one_kernel(folder, ranks, factor=1.0, part=None):
    """Write a run of one kernel, whose rank 0 scatters the same way however many ranks there are."""
    factors = {"advance": factor}
    return write_run(folder, seed=1, iterations=MANY, ranks=ranks, factors=factors, names=KERNELS[:1], part=part)


def of_rank_0(rows):
    return next(
        row for row in rows if (row["level"], row["candidate"], row["metric"]) == ("rank", "0", "time_per_launch")
    )


@pytest.mark.parametrize("ranks", [(1, 2), (1, 4), (4, 1), (2, 4)])
def test_a_rank_of_both_runs_is_paired_launch_by_launch(ranks, tmp_path):
    """Launches scatter by 5 %, the same way on both sides: alone a run's mean is known to .07 %, the ratio of
    counterparts is 1.1 but for rounding to a nanosecond, whichever of both has the coarser cells.
    """
    before = one_kernel(tmp_path / "a", ranks[0])
    after = one_kernel(tmp_path / "b", ranks[1], factor=1.1)
    row = of_rank_0(compared(before, after))
    assert row["paired"]
    assert row["change_percent"] == pytest.approx(10.0, abs=0.01)
    assert row["high_percent"] - row["low_percent"] < 0.01
    assert row["verdict"] == "slower"


@pytest.mark.parametrize("ranks", [2, 4])
def test_a_rank_that_launched_once_less_is_resampled_alone(ranks, tmp_path):
    before = one_kernel(tmp_path / "a", 1)
    after = one_kernel(tmp_path / "b", ranks, factor=1.1, part=(0, MANY - 1))
    row = of_rank_0(compared(before, after))
    assert not row["paired"]
    assert row["low_percent"] < 10.0 < row["high_percent"]
    assert row["high_percent"] - row["low_percent"] > 0.1


@pytest.mark.parametrize("iterations", [300, MANY])
@pytest.mark.parametrize("ranks", [2, 4])
def test_one_rank_is_compared_with_several_at_every_level(ranks, iterations, tmp_path):
    folders = {
        name: write_run(tmp_path / name, seed, iterations, count, names=KERNELS[:2])
        for name, seed, count in (("one", 1, 1), ("several", 2, ranks))
    }
    path = write_comparison(tmp_path, [["one"], ["several"]], folders)
    rows = read_table(path.with_suffix(".parquet"), "comparison").to_pylist()
    found = [row["level"] for row in rows if row["metric"] == "time_per_launch" and row["change_percent"] is not None]
    assert found == ["run", "rank", "kernel", "kernel", "configuration", "configuration"]
    assert [row["candidate"] for row in rows if row["verdict"] == "new"] == [str(rank) for rank in range(1, ranks)]
    document = read_json(path)
    assert [document[side]["launches"] for side in ("baseline", "candidate")] == [
        2 * iterations,
        2 * ranks * iterations,
    ]


@pytest.mark.parametrize("iterations", [300, 321, 400])
def test_cells_of_runs_of_any_number_of_ranks_sum_to_the_same_launches(iterations, tmp_path, monkeypatch):
    """With at most 64 cells over all ranks, but 8 of each: every series, brought to the coarsest width, is what plain
    sums over so many launches give.
    """
    monkeypatch.setattr("causeway.comparison.runs.run_totals.CELLS", 64)
    monkeypatch.setattr("causeway.comparison.runs.run_totals.LEAST_CELLS", 8)
    series = {}
    deviations = {}
    for ranks in (1, 2, 3, 5, 12):
        folder = write_run(tmp_path / str(ranks), 1, iterations, ranks, names=KERNELS[:1])
        (series[ranks],) = measure("a", [folder]).series("rank", 0)
        assert series[ranks].cells.shape[0] <= max(8, 64 // ranks)
        table = pq.read_table(folder / "launches.parquet").to_pandas()
        mean = table["duration_ns"].sum() // len(table)
        deviations[ranks] = (table["duration_ns"][table["rank"] == 0] - mean).to_numpy().astype(np.int64)
    widest = max(one.width for one in series.values())
    for ranks, one in series.items():
        parts = [deviations[ranks][begin : begin + widest] for begin in range(0, iterations, widest)]
        assert one.in_cells_of(widest).tolist() == [[len(p), int(p.sum()), int(abs(p).sum())] for p in parts]

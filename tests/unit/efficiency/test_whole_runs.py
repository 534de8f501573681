"""Simulated exports on disk, through the readers, to `clocks.json`, `stragglers.json` and the components of variance."""

import numpy as np
import pytest
from efficiency_samples import clocks, event, export

from causeway import clocks as session
from causeway.efficiency import together
from causeway.efficiency.alignment import realigned
from causeway.readers.normalise import normalise
from causeway.simulate.runs import write_run
from causeway.tables import read_json, read_table, write_json


def run(folder, values):
    """Simulate, read, align and judge a run; return clocks, stragglers and the rows of the table."""
    base = {"kind": "trace", "ranks": 4, "nodes": 2, "iterations": 60, "collective": "wait", "clock_error_us": 50_000,
            "clock_drift_ppm": 20, "gpu_metrics_us": None}  # fmt: skip
    write_run({**base, **values}, folder / "run")
    folders = []
    for path in sorted((folder / "run").glob("rank*")):
        folders.append(folder / "tables" / path.name[4])
        normalise(path, folders[-1], export=path.name[4], source=path.name, rank=int(path.name[4]), node=f"n{int(path.name[4]) // 2}")
    document = realigned(session.align("d", folders), together.matched(folders)[0])
    write_json(document, folder / "clocks.json", schema="clocks")
    together.run("d", folders, folder / "clocks.json", 1, folder / "stragglers.json", folder / "stragglers.parquet")
    rows = read_table(folder / "stragglers.parquet", "stragglers").to_pylist()
    return document, read_json(folder / "stragglers.json"), rows


@pytest.mark.parametrize("form", ["nsys", "kineto"])
def test_a_rank_whose_kernels_are_slower(tmp_path, form):
    document, found, rows = run(tmp_path, {"format": form, "straggler": "compute", "straggler_rank": 2})
    assert document["method"] == "collective_ends"
    assert document["residual_ns"] < 5_000
    (group,) = found["groups"]
    assert group["verdict"] == "straggler"
    assert [entry["pattern"] for entry in group["ranks"]] == ["none", "none", "persistent", "none"]
    why = group["ranks"][2]["why"]
    assert why["cause"] == "compute"
    assert why["excess_compute_ns"] > 5 * abs(why["excess_idle_ns"])
    assert why["kernels"][0]["excess_ns"] > 0
    assert sum(row["straggler"] == 2 for row in rows) >= 0.95 * len(rows) == 0.95 * 60
    assert (rows[0]["bus_gb_per_s"] is None) == (form == "nsys")  # nsys does not say how much is reduced
    shares = found["variance"]["shares"]
    assert shares["device"]["value"] is None  # one device per rank
    assert sum(share["value"] or 0 for share in shares.values()) == pytest.approx(1)
    assert shares["rank"]["low"] > 0


def test_a_rank_whose_host_is_late(tmp_path):
    _, found, _ = run(tmp_path, {"straggler": "host", "straggler_rank": 1})
    why = found["groups"][0]["ranks"][1]["why"]
    assert why["cause"] == "host"
    assert why["excess_idle_ns"] > 5 * abs(why["excess_compute_ns"])


def test_own_work_by_hand(tmp_path):
    """Rank 1 computes 30 where rank 0 computes 10, between collectives that both leave together."""
    folders = []
    for rank, length in ((0, 10), (1, 30)):
        starts = [100 * step for step in range(8)]
        kernels = [(start + 5, start + 5 + length) for start in starts]
        kernels += [(start + 10 + length, start + 60, {"kernel": "ncclDevKernel_AllReduce"}) for start in starts]
        folders.append(export(tmp_path / str(rank), rank, kernels))
    groups, _ = together.matched(folders)
    work = together.OwnWork(groups[0], groups[0].together(), dict(enumerate(folders)))
    assert work.compute[:, 1:].tolist() == [[10] * 7, [30] * 7]
    assert work.idle[:, 1:].tolist() == [[50 - 0] * 7, [50] * 7]
    why = work.why(1, np.ones(8, bool))
    assert (why["cause"], why["kernels"][0]["excess_ns"]) == ("compute", 8 * 20)


def variance(tmp_path, durations):
    """Return the components of runs given as durations by rank, one launch each 1,000 ns."""
    folders = []
    for rank, values in durations.items():
        kernels = [(10_000 * at, 10_000 * at + int(value)) for at, value in enumerate(values)]
        folders.append(export(tmp_path / str(rank), rank, kernels))
    clocks(tmp_path / "clocks.json", {str(rank): 0 for rank in durations})
    found = together.components(folders, dict.fromkeys(durations, together.Clock()), dict.fromkeys(durations), 1)
    return found, {name: share["value"] for name, share in found["shares"].items()}


def test_components_of_variance(tmp_path):
    random = np.random.default_rng(3)
    noise = {rank: np.exp(0.1 * random.standard_normal(4000)) for rank in range(4)}
    _, shares = variance(tmp_path / "even", {rank: 1000 * values for rank, values in noise.items()})
    assert shares["rest"] > 0.97
    _, shares = variance(tmp_path / "rank", {rank: 1000 * values * np.exp(0.1 * (rank == 2)) for rank, values in noise.items()})
    truth = 0.1**2 * 3 / 16  # one of four is off by 0.1
    assert shares["rank"] == pytest.approx(truth / (truth + 0.01), abs=0.03)
    steps = np.exp(0.2 * (np.arange(4000) >= 2000))
    found, shares = variance(tmp_path / "time", {rank: 1000 * values * steps for rank, values in noise.items()})
    assert shares["time"] == pytest.approx(0.5, abs=0.05)  # 0.1^2 of noise, (0.2 / 2)^2 of the step
    assert found["change_points_ns"] == [pytest.approx(20_000_000, abs=1_300_000)]
    assert found["trend_per_hour"]["low"] > 0


def test_collectives_table_goes_before_names_of_kernels(tmp_path):
    rows = [event(10, 20, rank=0, name="broadcast", communicator="0", sequence=1, bytes=8)]
    folder = export(tmp_path / "0", 0, [(10, 20, {"kernel": "ncclDevKernel_AllReduce"})], collectives=rows)
    assert together.collectives.rows_of(folder) == {0: [(10, 20, "broadcast", "0", 1, 8)]}

"""Simulated exports on disk, through the readers, to `clocks.json`, `stragglers.json` and the components of
variance.
"""

import numpy as np
import pytest
from efficiency_samples import clocks, collective_rows, event, export

from causeway.core.tables import read_json, read_table, write_json
from causeway.efficiency.ranks import collectives, find_stragglers
from causeway.efficiency.ranks.clock_alignment import realigned
from causeway.efficiency.ranks.rank_collectives import collectives_of
from causeway.inputs import session_clocks as session
from causeway.readers.normalise import normalise
from causeway.simulate.runs import write_run


def run(folder, values):
    """Simulate, read, align and judge a run; return clocks, stragglers and the rows of the table."""
    base = {
        "kind": "trace",
        "ranks": 4,
        "nodes": 2,
        "iterations": 60,
        "collective": "wait",
        "clock_error_us": 50_000,
        "clock_drift_ppm": 20,
        "gpu_metrics_us": None,
    }
    write_run({**base, **values}, folder / "run")
    folders = []
    for path in sorted((folder / "run").glob("rank*")):
        folders.append(folder / "tables" / path.name[4])
        normalise(
            path,
            folders[-1],
            export=path.name[4],
            source=path.name,
            rank=int(path.name[4]),
            node=f"n{int(path.name[4]) // 2}",
        )
    document = realigned(session.align("d", folders), collectives.matched(folders)[0])
    write_json(document, folder / "clocks.json", schema="clocks")
    find_stragglers.find_stragglers(
        "d", folders, folder / "clocks.json", 1, folder / "stragglers.json", folder / "stragglers.parquet"
    )
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
    groups, _ = collectives.matched(folders)
    work = find_stragglers.OwnWork(
        groups[0], groups[0].synchronising(), dict(enumerate(folders)), {1: np.ones(8, bool)}
    )
    assert work.compute[:, 1:].tolist() == [[10] * 7, [30] * 7]
    assert work.idle[:, 1:].tolist() == [[50 - 0] * 7, [50] * 7]
    why = work.why(1)
    assert (why["cause"], why["kernels"][0]["excess_ns"]) == (
        "compute",
        7 * 20,
    )  # what came before the first collective is nobody's own time


def own_work(folder, kernels, late=None, **more):
    """Return why rank 1 is late: work of three ranks in steps of 1,000 ns, a function of rank and step that gives
    events from 100 on.
    """
    folders = []
    for rank in range(3):
        events = []
        copies = []
        for step in range(1, 9):
            mine = [(1000 * step + s, 1000 * step + e, m) for s, e, m in kernels(rank, step)]
            copies += [one for one in mine if "copy_kind" in one[2]]
            events += [one for one in mine if "copy_kind" not in one[2]]
            events.append((max(one[1] for one in mine) + 10, 1000 * step + 900, {"kernel": "ncclDevKernel_AllReduce"}))
        parts = {key: value(rank) for key, value in more.items()}
        folders.append(export(folder / str(rank), rank, events, copies, grids=(64, 128), **parts))
    (group,), _ = collectives.matched(folders)
    late = np.arange(8) > 0 if late is None else np.isin(np.arange(8), late)
    return find_stragglers.OwnWork(group, group.synchronising(), dict(enumerate(folders)), {1: late}).why(1)


def test_slower_in_the_same_configuration_or_launched_in_another(tmp_path):
    def slower(rank, step):
        return [(100, 200 + 100 * (rank == 1), {"grid": 64}), (400, 500, {"grid": 128})]

    (kernel,) = own_work(tmp_path / "slower", slower)["kernels"]
    assert (kernel["kernel"], kernel["launches"], kernel["mean_ns"], kernel["others_mean_ns"]) == ("gemm", 14, 150, 100)
    assert kernel["excess_ns"] == kernel["same_configuration_ns"] == 700
    (first,) = kernel["configurations"]
    assert (first["grid_x"], first["launches"], first["mean_ns"], first["others_mean_ns"], first["excess_ns"]) == (
        64,
        7,
        200,
        100,
        700,
    )

    def other(rank, step):
        large = rank == 1 or step == 8
        return [(100, 300 if large else 200, {"grid": 128 if large else 64})]

    (kernel,) = own_work(tmp_path / "other", other)["kernels"]
    assert (kernel["same_configuration_ns"], kernel["configurations"]) == (0, [])
    assert kernel["excess_ns"] == round(7 * (200 - 800 / 7))


def test_a_few_long_halts_of_the_host_are_not_put_down_to_many_small_differences(tmp_path):
    """Kernels take 8 ns more in each of seven steps, 56 in all; in one of them the host halts for 400."""

    def halts(rank, step):
        begin = 100 + 400 * (rank == 1 and step == 5)
        return [(begin, begin + 100 + 8 * (rank == 1), {})]

    why = own_work(tmp_path, halts)
    assert why["cause"] == "host"
    assert (why["excess_compute_ns"], why["excess_idle_ns"]) == (8, round(400 / 7))


def test_only_the_late_steps_count_and_what_nobody_else_runs_is_told(tmp_path):
    def now_and_then(rank, step):
        extra = [(300, 450, {"kernel": "softmax"})] if rank == 1 else []
        return [(100, 200 + 200 * (rank == 1 and step in (3, 6)), {}), *extra]

    why = own_work(tmp_path / "late", now_and_then, late=[2, 5])
    assert (why["cause"], why["excess_compute_ns"]) == ("compute", 350 - 100)
    assert why["only_here"] == [{"kernel": "softmax", "launches": 2, "total_ns": 300}]
    assert (why["kernels"][0]["launches"], why["kernels"][0]["excess_ns"]) == (2, 400)

    def alone(rank, step):
        return [
            (100, 200, {"grid": 64}),
            *([(200, 400, {"grid": None})] if rank != 1 else [(200, 600, {"grid": None})]),
        ]

    why = own_work(tmp_path / "all", alone)
    assert [part["excess_ns"] for part in why["kernels"][0]["configurations"]] == [1400]


def test_a_rank_that_copies_more(tmp_path):
    def copies(rank, step):
        return [(100, 200, {}), (200, 300 + 200 * (rank == 1), {"copy_kind": 1})]

    why = own_work(tmp_path, copies)
    assert (why["cause"], why["excess_copies_ns"], why["excess_idle_ns"]) == ("copies", 200, 0)


def test_which_clock_is_lower(tmp_path):
    def slower(rank, step):
        return [(100, 200 + 50 * (rank == 1), {})]

    def samples(rank):
        values = {
            "gpc_clock_frequency_hz": 1.5e9 if rank == 1 else 2e9,
            "memory_clock_hz": 1e9,
            "sms_active_ratio": 0.5,
        }
        return [
            {
                "time_ns": 1000 * step + 150,
                "rank": rank,
                "device": 0,
                "metric": metric,
                "value": value if step > 4 else 1e9,
            }
            for step in range(1, 9)
            for metric, value in values.items()
        ]

    clock = own_work(tmp_path, slower, late=[5, 6, 7], samples=samples)["clock"]
    assert clock == {"metric": "gpc_clock_frequency_hz", "mean_hz": 1.5e9, "others_hz": 2e9, "slower": True}


def variance(tmp_path, durations):
    """Return the components of runs given as durations by rank, one launch each 1,000 ns."""
    folders = []
    for rank, values in durations.items():
        kernels = [(10_000 * at, 10_000 * at + int(value)) for at, value in enumerate(values)]
        folders.append(export(tmp_path / str(rank), rank, kernels))
    clocks(tmp_path / "clocks.json", {str(rank): 0 for rank in durations})
    found = find_stragglers.components(
        folders, dict.fromkeys(durations, find_stragglers.Clock()), dict.fromkeys(durations), 1
    )
    return found, {name: share["value"] for name, share in found["shares"].items()}


def test_components_of_variance(tmp_path):
    random = np.random.default_rng(3)
    noise = {rank: np.exp(0.1 * random.standard_normal(4000)) for rank in range(4)}
    _, shares = variance(tmp_path / "even", {rank: 1000 * values for rank, values in noise.items()})
    assert shares["rest"] > 0.97
    found, shares = variance(
        tmp_path / "rank", {rank: 1000 * values * np.exp(0.1 * (rank == 2)) for rank, values in noise.items()}
    )
    truth = 0.1**2 * 3 / 16  # one of four is off by 0.1
    assert shares["rank"] == pytest.approx(truth / (truth + 0.01), abs=0.03)
    assert found["within"]["rank"] == pytest.approx(
        found["shares"]["rank"]
    )  # one configuration: all of the variance is within it
    steps = np.exp(0.2 * (np.arange(4000) >= 2000))
    found, shares = variance(tmp_path / "time", {rank: 1000 * values * steps for rank, values in noise.items()})
    assert shares["time"] == pytest.approx(0.5, abs=0.05)  # 0.1^2 of noise, (0.2 / 2)^2 of the step


def test_what_varies_in_no_way_has_no_shares(tmp_path):
    """One launch, or launches of one length, tell nothing of ranks, time or devices: null, never 0 or 1."""
    for name, durations in {"one": {0: [500]}, "equal": {0: [500] * 50, 1: [500] * 50}}.items():
        found, shares = variance(tmp_path / name, durations)
        assert set(shares.values()) == {None}
        assert {share["value"] for share in found["within"].values()} == {None}


def test_few_launches_do_not_seem_to_vary_over_time(tmp_path):
    """Two launches a block: their means differ by chance, which is half of the variance, and is not counted; five
    tell nothing.
    """
    times = []
    for seed in range(10):
        noise = 1000 * np.exp(0.1 * np.random.default_rng(seed).standard_normal(64))
        times.append(variance(tmp_path / str(seed), {0: noise})[1]["time"])
    assert np.median(times) < 0.15
    assert variance(tmp_path / "few", {0: [500, 700, 650, 800, 900]})[1]["time"] is None


def test_collectives_table_goes_before_names_of_kernels(tmp_path):
    rows = [event(10, 20, rank=0, name="broadcast", communicator="0", sequence=1, bytes=8)]
    folder = export(tmp_path / "0", 0, [(10, 20, {"kernel": "ncclDevKernel_AllReduce"})], collectives=rows)
    assert {rank: collective_rows(one) for rank, one in collectives_of(folder).items()} == {
        0: [(10, 20, "broadcast", "0", 1, 8)]
    }


def test_a_run_that_is_slower_is_a_component_above_its_nodes(tmp_path):
    """Two repeats on two nodes each: one repeat is off by 0.1, and one node of the other by 0.1."""
    random = np.random.default_rng(8)
    offsets = {0: 0.1, 1: 0.1, 2: 0.1, 3: 0.1, 4: 0.0, 5: 0.0, 6: 0.1, 7: 0.1}
    durations = {rank: 1000 * np.exp(0.1 * random.standard_normal(3000) + off) for rank, off in offsets.items()}
    folders = []
    for rank, values in durations.items():
        kernels = [(10_000 * at, 10_000 * at + int(value)) for at, value in enumerate(values)]
        folders.append(export(tmp_path / str(rank), rank, kernels))
    clock = dict.fromkeys(durations, find_stragglers.Clock())
    nodes = {rank: f"n{rank // 2 % 2}" for rank in durations}
    runs = {rank: "first" if rank < 4 else "second" for rank in durations}
    found = find_stragglers.components(folders, clock, nodes, 1, runs)["shares"]
    offset = np.array(list(offsets.values()))
    between_runs = np.var([offset[:4].mean(), offset[4:].mean()])
    between_nodes = np.mean([np.var([offset[:2].mean(), offset[2:4].mean()]), np.var([0.0, 0.1])])
    whole = between_runs + between_nodes + 0.01
    assert found["run"]["value"] == pytest.approx(between_runs / whole, abs=0.02)
    assert found["node"]["value"] == pytest.approx(between_nodes / whole, abs=0.03)
    assert found["rank"]["value"] < 0.01
    alone = find_stragglers.components(folders, clock, nodes, 1)["shares"]
    assert alone["run"] == dict.fromkeys(("value", "low", "high"))

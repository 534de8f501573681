"""Figures of efficiency and stragglers: what they say is what the documents hold, and nothing measured is said in words."""

import re

import pyarrow as pa
import pytest

from causeway.plotting import efficiency, stragglers
from causeway.plotting.overview_efficiency import where_the_time_goes, which_rank
from causeway.tables import SCHEMAS

RATIOS = ("parallel_efficiency", "load_balance", "communication_efficiency", "orchestration_efficiency")


def tree(*ratios, elapsed=100_000_000, devices=2):
    return dict(zip(RATIOS, ratios, strict=True)) | {"elapsed_ns": elapsed, "n_devices": devices}


def measured(**more):
    one = tree(0.35, 0.7, 0.83, 0.6) | {"nodes": {}, "regions": {"step *": tree(None, None, None, 1.2)}}
    one |= {"ranks": {"0": tree(0.5, 1.0, 1.0, 0.5)}, "devices": {"0/0": tree(0.5, 1.0, 1.0, 0.5), "0/1": tree(0.2, 1.0, 1.0, 0.2)}}
    waterfall = {
        "useful": 70_000_000,
        "load_imbalance": 30_000_000,
        "communication": 0,
        "transfers": 20_000_000,
        "orchestration": 80_000_000,
    }
    idle = {"idle_host_ns": 30, "idle_kernel_wait_ns": 10, "idle_other_ns": 0}
    copy = {
        "direction": "host to device",
        "kind": 1,
        "gb_per_s": 21.0,
        "bytes": 210,
        "sized_ns": 10,
        "duration_ns": 10,
        "bus": "PCIe 5.0 x16",
    }
    return {
        "why": None, "elapsed_ns": 100_000_000, "device": one, "talp": one, "comm_aware": one, "waterfall_ns": waterfall, "notes": [],
        "breakdown": {"0/0": idle}, "clocks": {"method": "one_export", "residual_ns": None}, "copies": [copy | {"limit_gb_per_s": 63.0}],
        "launch_path": {"small_share": 0.5, "small_time_share": 0.1, "small_kernel_ns": 10_000},
        "host": {"possible": False, "why": "no calls"},
    } | more  # fmt: skip


def words(markup):
    return re.sub(r"<[^>]+>", " ", str(markup))


def test_the_table_holds_every_ratio_and_leaves_out_what_is_undefined():
    said = words(efficiency.tree_table(measured(), "run"))
    for value in (".35", ".70", ".83", ".60", "1.20", "–", "step *", "device 0/1", "whole dataset"):
        assert value in said


def test_the_waterfall_shows_times_and_shares():
    said = words(efficiency.lost_time(measured(), "run"))
    for value in ("70 ms, 35 %", "30 ms, 15 %", "20 ms, 10 %", "80 ms, 40 %"):
        assert value in said


def test_sentences_name_the_largest_loss():
    first, idle, small, copies = efficiency.summary(measured())
    assert first == "Kernels run for 35 % of the time of 2 devices; the largest loss is orchestration, 40 %."
    assert "75 % waits for the host" in idle
    assert "50 % of the launches are shorter than 10 µs" in small
    assert copies == "Copies host to device move 21 GB/s, 33 % of PCIe 5.0 x16."


def test_nothing_measured_is_said():
    for drawn in (efficiency.tree_table(measured(why="no launches"), "run"), efficiency.lost_time(measured(why="no launches"), "run")):
        assert "Nothing was measured: no launches" in words(drawn)
    assert "There are no events" in words(efficiency.rank_map(SCHEMAS["efficiency"].empty_table(), "run", ""))


def bins(ranks):
    rows = [{"level": "bin", "rank": rank, "bin": at, "start_ns": 1000 * at, "elapsed_ns": 1000, "n_devices": 1, "kernel_ns": 100 * at}
            for rank in ranks for at in range(10)]  # fmt: skip
    schema = SCHEMAS["efficiency"]
    whole = [{field.name: row.get(field.name, None if field.nullable else 0) for field in schema} for row in rows]
    return pa.Table.from_pylist(whole, schema=schema)


@pytest.mark.parametrize(("ranks", "label"), [(1, "rank 0"), (200, "ranks 0–4")])
def test_the_map_groups_many_ranks(ranks, label):
    said = words(efficiency.rank_map(bins(range(ranks)), "run", "one clock"))
    assert label in said
    assert "one clock" in said


def judged(pattern="persistent", cause="compute"):
    clock = {"mean_hz": 0.9e9, "others_hz": 1e9, "slower": True}
    kernels = [{"kernel": "gemm", "mean_ns": 120.0, "others_mean_ns": 100.0}]
    why = {"cause": cause, "excess_compute_ns": 300_000, "excess_idle_ns": 200_000, "clock": clock, "kernels": kernels}
    ranks = [{"rank": 0, "share": 0.0, "pattern": "none", "waiting_for_it_ns": 0}]
    ranks.append({"rank": 1, "share": 1.0, "pattern": pattern, "waiting_for_it_ns": 9, "why": why})
    group = {"communicator": None, "collectives": 5, "n_ranks": 2, "verdict": "straggler", "reason": "rank 1 is last", "waiting_ns": 9,
             "matrix_ns": [[0, 9], [0, 0]], "ranks": ranks}  # fmt: skip
    share = {"value": 0.2, "low": 0.1, "high": 0.3}
    shares = {key: share for key, _, _ in stragglers.PARTS} | {"device": dict.fromkeys(share)}
    variance = {"launches": 5, "configurations": 1, "shares": shares, "change_points_ns": [1, 2],
                "trend_per_hour": {"value": 1.0, "low": 0.5, "high": 2.0}}  # fmt: skip
    return {"groups": [group], "notes": ["nothing else"], "variance": variance}


def test_who_waits_for_whom_and_why():
    said = words(stragglers.drawing(judged(), "run"))
    assert "its kernels run for 300 µs more" in said
    assert "gemm, 20 % slower" in said
    for value in ("its clock is 10 % lower", "Nothing else.", "device cannot be told", "rank 0 for rank 1: 9 ns"):
        assert value in said
    assert "it is launched late" in " ".join(stragglers.sentences(judged(cause="host")))
    assert stragglers.facts(judged()["variance"])[1] == "Their level changes 2 times during the run."


def test_the_overview_takes_both():
    assert "Where the time goes" in words(where_the_time_goes(measured(), bins([0]), "run"))
    assert "Which rank" in words(which_rank(judged() | {"variance": None}, "run"))

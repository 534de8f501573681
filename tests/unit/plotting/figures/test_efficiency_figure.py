"""Figures of efficiency and stragglers: what they say is what the documents hold, and nothing measured is said in
words.
"""

import html
import json
import re

import numpy as np
import pyarrow as pa
import pytest
from measured_samples import stragglers_of
from plotting_samples import as_svg

from causeway.core.tables import SCHEMAS
from causeway.core.vocabulary import DEVICE_RATIO_NAMES, FLAVOUR_NAMES, HOST_RATIOS
from causeway.efficiency.ranks.stragglers import _of_others as chance_of_others
from causeway.plotting.drawing import theme
from causeway.plotting.figures import device_time, efficiency, stragglers
from causeway.plotting.overview import ranks_and_steps, time_lost


def tree(*ratios, hidden=None, elapsed=100_000_000, devices=2):
    return dict(zip(DEVICE_RATIO_NAMES, (*ratios, hidden), strict=True)) | {"elapsed_ns": elapsed, "n_devices": devices}


def measured(**more):
    one = tree(0.35, 0.7, 0.83, 0.6, hidden=0.14) | {"nodes": {}, "regions": {"step *": tree(None, None, None, 1.2)}}
    one |= {
        "ranks": {"0": tree(0.5, 1.0, 1.0, 0.5)},
        "devices": {"0/0": tree(0.5, 1.0, 1.0, 0.5), "0/1": tree(0.2, 1.0, 1.0, 0.2)},
    }
    waterfall = {
        "useful": 70_000_000,
        "communication": 0,
        "transfers": 20_000_000,
        "orchestration": 80_000_000,
        "outside": 30_000_000,
    }
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
        "why": None,
        "elapsed_ns": 100_000_000,
        "device": one,
        "talp": one,
        "comm_aware": one,
        "waterfall_ns": waterfall,
        "notes": [],
        "breakdown": {"0/0": {}},
        "clocks": {"method": "one_export", "residual_ns": None},
        "copies": [copy | {"limit_gb_per_s": 63.0}],
        "host": {"possible": False, "why": "no calls"},
    } | more


def words(markup):
    return re.sub(r"<[^>]+>", " ", as_svg(markup))


def test_the_table_holds_every_ratio_and_leaves_out_what_is_undefined():
    said = words(efficiency.draw_efficiency_trees(measured(), "run"))
    for value in (
        "0.35",
        "0.70",
        "0.83",
        "0.60",
        "0.14",
        "hidden",
        "1.20",
        "–",
        "step *",
        "device 0/1",
        "whole dataset",
    ):
        assert value in said


def numbered(count):
    """A dataset of many ranks with a device each, the last one the least efficient."""
    document = measured()
    for flavour in FLAVOUR_NAMES:
        ranks = {str(rank): tree(0.5 if rank == count - 1 else 0.9, 1.0, 1.0, 0.9) for rank in range(count)}
        document[flavour] = document[flavour] | {
            "ranks": ranks,
            "devices": {f"{rank}/0": one for rank, one in ranks.items()},
        }
    return document


@pytest.mark.parametrize(("count", "ranks"), [(4, [0, 1, 2, 3]), (200, [*range(15), 199])])
def test_ranks_stand_in_their_order_and_the_least_efficient_are_among_them(count, ranks):
    said = words(efficiency.draw_efficiency_trees(numbered(count), "run"))
    assert [int(rank) for rank in dict.fromkeys(re.findall(r"rank (\d+),", said))] == ranks
    assert ("and 184 more ranks; these are the least efficient" in said) == (count == 200)


def test_hosts_have_a_table_or_a_sentence():
    assert "Not measured: no calls" in words(efficiency.draw_efficiency_trees(measured(), "run"))
    host = dict.fromkeys(ratio.name for ratio in HOST_RATIOS) | {
        "parallel_efficiency": 0.44,
        "elapsed_ns": 5_000_000,
    }
    document = host | {
        "possible": True,
        "why": "no MPI",
        "nodes": {},
        "ranks": {"0": host, "1": host},
        "regions": {"step *": host},
    }
    said = words(efficiency.draw_efficiency_trees(measured(host=document), "run"))
    assert said.count("0.44") == 4
    assert "no MPI" in said


def test_gpus_that_ranks_share_have_a_table():
    each = {f"{rank}/0": {"kernel_ns": 20_000, "busy_ns": 30_000} for rank in range(40)}
    gpu = {
        "devices": each,
        "elapsed_ns": 70_000,
        "kernel_ns": 50_000,
        "busy_ns": 60_000,
        "at_once_ns": 750_000,
        "parallel_efficiency": 5 / 7,
    }
    said = words(efficiency.draw_efficiency_trees(measured(shared=[gpu] * 9), "run"))
    for value in ("GPU 1, 40 ranks", "50 µs", "0.71", "750 µs", "0/0: 20 µs", "… and 1 more"):
        assert value in said
    assert "GPUs that several ranks share" not in words(efficiency.draw_efficiency_trees(measured(), "run"))


def test_the_waterfall_shows_times_and_shares():
    said = words(device_time.draw_lost_time(measured(), "run"))
    for value in ("70 ms, 35 %", "30 ms, 15 %", "20 ms, 10 %", "80 ms, 40 %", "before and after the GPU work"):
        assert value in said
    parts = measured()["waterfall_ns"] | {"orchestration": 110_000_000, "outside": 0}
    assert "before and after" not in words(device_time.draw_lost_time(measured(waterfall_ns=parts), "run"))


def test_sentences_name_the_largest_loss():
    found = time_lost.sentences(time_lost.Document(measured(), "run"))
    first, *_ = (html.unescape(re.sub("<[^>]*>", "", sentence)) for sentence in found)
    assert first == "Computing kernels run for 35 % of the time of 2 devices; the largest loss is idle time, 40 %."


def test_no_loss_is_the_largest_where_nothing_is_lost():
    parts = {"useful": 170_000_000, "communication": 0, "transfers": 0, "orchestration": 0, "outside": 30_000_000}
    first, *_ = time_lost.sentences(time_lost.Document(measured(waterfall_ns=parts), "run"))
    assert re.sub("<[^>]*>", "", html.unescape(first)) == "Computing kernels run for 35 % of the time of 2 devices."


def test_nothing_measured_is_said():
    for drawn in (
        efficiency.draw_efficiency_trees(measured(why="no launches"), "run"),
        device_time.draw_lost_time(measured(why="no launches"), "run"),
    ):
        assert "Nothing was measured: no launches" in words(drawn)
    assert "There are no events" in words(device_time.draw_rank_map(SCHEMAS["efficiency"].empty_table(), "run", ""))


def bins(ranks):
    rows = [
        {
            "level": "bin",
            "rank": rank,
            "bin": at,
            "start_ns": 1000 * at,
            "elapsed_ns": 1000,
            "n_devices": 1,
            "kernel_ns": 100 * at,
        }
        for rank in ranks
        for at in range(10)
    ]
    schema = SCHEMAS["efficiency"]
    whole = [{field.name: row.get(field.name, None if field.nullable else 0) for field in schema} for row in rows]
    return pa.Table.from_pylist(whole, schema=schema)


@pytest.mark.parametrize(("ranks", "label"), [(1, "rank 0"), (200, "ranks 0–4")])
def test_the_map_groups_many_ranks(ranks, label):
    said = words(device_time.draw_rank_map(bins(range(ranks)), "run", "one clock"))
    assert label in said
    assert "one clock" in said


def shades_of(drawing):
    """The colours of a map's cells with how many cells each has."""
    cells = re.findall(r'<path d="(M[^"]*z)" style="fill:(#[0-9a-f]{6})"', drawing)
    return {fill: path.count("M") for path, fill in cells}


def test_ranks_that_share_a_row_show_the_largest_loss_in_both_maps():
    """One rank of 96 has lost all of one bin: a mean over two ranks would pale it."""
    table = bins(range(96))
    kernel = [0 if rank == 40 and at == 9 else 1000 for rank in range(96) for at in range(10)]
    table = table.set_column(table.schema.names.index("kernel_ns"), "kernel_ns", pa.array(kernel, pa.int64()))
    figure = device_time.draw_rank_map(table, "run", "one clock")
    cells = figure.axes[0].images[0].get_array()
    assert cells.shape == (48, 10)
    assert sorted(cells.ravel().tolist()) == [0] * 479 + [1]
    assert "largest of 2 ranks a row" in as_svg(figure)
    beside = time_lost.lost_map(table, "run")
    assert shades_of(beside) == {theme.shade(0): 479, theme.shade(1): 1}
    assert "Each row holds 2 ranks and shows their largest value." in beside


def test_bins_that_share_a_column_show_the_largest_loss(monkeypatch):
    monkeypatch.setattr(time_lost, "MAP_COLUMNS", 5)
    drawn = time_lost.lost_map(bins(range(2)), "run")
    facts = json.loads(html.unescape(re.search(r' data-map="([^"]*)"', drawn)[1]))
    assert [line["cells"] for line in facts["rows"]] == [[f"{lost} % lost" for lost in (100, 80, 60, 40, 20)]] * 2
    assert "Each column holds 2 bins and shows their largest share." in drawn


def test_a_rank_without_time_in_a_bin_has_no_cell():
    table = bins(range(2)).slice(0, 15)
    assert device_time.draw_rank_map(table, "run", "").axes[0].images[0].get_array().count() == 15
    assert np.isnan(device_time.lost_shares(table).shares).sum() == 5


def judged(pattern="persistent", cause="compute"):
    clock = {"metric": "gpc_clock_frequency_hz", "mean_hz": 0.9e9, "others_hz": 1e9, "slower": True}
    shape = {"grid_x": 66, "grid_y": 2, "grid_z": None, "block_x": 256, "block_y": None, "block_z": None}
    kernels = [
        {
            "kernel": "gemm",
            "mean_ns": 120.0,
            "others_mean_ns": 100.0,
            "excess_ns": 40,
            "same_configuration_ns": 40,
            "configurations": [shape],
        }
    ]
    why = {
        "cause": cause,
        "excess_compute_ns": 300_000,
        "excess_idle_ns": 200_000,
        "excess_copies_ns": 100_000,
        "clock": clock,
        "kernels": kernels,
        "only_here": [],
    }
    ranks = [{"rank": 0, "share": 0.0, "last_share": 0.0, "pattern": "none", "waiting_for_it_ns": 0}]
    ranks.append({"rank": 1, "share": 0.4, "last_share": 1.0, "pattern": pattern, "waiting_for_it_ns": 9, "why": why})
    group = {
        "communicator": None,
        "collectives": 5,
        "n_ranks": 2,
        "verdict": "straggler",
        "reason": "rank 1 is last",
        "waiting_ns": 9,
        "matrix_ns": [[0, 9], [0, 0]],
        "ranks": ranks,
    }
    share = {"value": 0.2, "low": 0.1, "high": 0.3}
    shares = dict.fromkeys(stragglers.COLOURS, share) | {"device": dict.fromkeys(share)}
    within = {key: share for key, share in shares.items() if key != "configuration"}
    variance = {
        "launches": 5,
        "configurations": 1,
        "shares": shares,
        "within": within,
    }
    return {"groups": [group], "notes": ["nothing else"], "variance": variance}


def test_who_waits_for_whom_and_why():
    said = " ".join(words(stragglers.draw_stragglers(judged(), "run")).split())
    assert "its kernels run for 300 µs more" in said
    assert re.search(r"gemm \(\S+ \S+ instead of \S+ \S+\) in the same configuration \(grid 66 × 2, block 256\)", said)
    for value in (
        "its gpc clock frequency is lower",
        "Nothing else.",
        "cannot be told",
        "rank 0 for rank 1: 9 ns",
        "100 % persistent",
    ):
        assert value in said
    assert "copies for 100 µs more" in " ".join(stragglers.sentences(judged(cause="copies")))
    assert "launched late" in " ".join(stragglers.sentences(judged(cause="host")))


def test_the_limit_of_lateness_is_the_largest_of_the_ranks():
    """The page states one limit; of two ranks that of the late one is far smaller, as its own lateness is no chance."""
    half = 5e3 * np.random.default_rng(3).random(200) + np.where(np.arange(200) % 10 < 3, 1e6, 0.0)
    limits = chance_of_others(np.stack([-half, half]))
    assert limits[1] < limits[0] / 10
    page = re.sub("<[^>]*>", "", str(ranks_and_steps.which_rank(stragglers_of("run", 4), "run")))
    assert "lateness beyond 12.3 µs counts, ends scatter" in page


def test_without_a_straggler_a_sentence_stands_for_the_table():
    document = judged(pattern="none")
    said = words(stragglers.draw_stragglers(document, "run"))
    assert "No rank is named as a straggler" in said
    assert "Rows wait for columns" not in said


def runs_of(count):
    """A series of runs of 1, 2, 4 ... devices; the second has no kernels, so nothing is known of its scalability."""
    found = []
    for at in range(count):
        one = {
            "parallel_efficiency": 0.9 - 0.02 * at,
            "computation_scalability": 1.0 - 0.01 * at,
            "global_efficiency": 0.9 - 0.03 * at,
        }
        if at == 1:
            one |= {"computation_scalability": None, "global_efficiency": None}
        found.append({"dataset": f"run{at}", "n_devices": 2**at} | dict.fromkeys(("device", "talp", "comm_aware"), one))
    return {"series": {"strong:s": {"scaling": "strong", "reference": "run0", "runs": found, "not_measured": []}}}


@pytest.mark.parametrize("count", [2, 10, 14])
def test_a_series_shows_each_run_and_no_line_across_what_is_unknown(count):
    figure = efficiency.draw_series(runs_of(count))
    said = " ".join(words(figure).split()) + " "
    assert "run0 1 0.90 1.00 0.90 0.90 1.00 0.90" in said
    assert "run1 2 0.88 – – 0.88 – –" in said
    shown = [at for at in range(14) if f"run{at} " in said]
    assert shown == (list(range(count)) if count < 14 else [*range(9), 13])
    assert ("4 runs before the last one not shown" in said) == (count == 14)
    lines = [line.get_ydata() for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert [np.isnan(line).sum() for line in lines] == [0, 1, 1]  # a gap, and no line across it
    assert [len(line) for line in lines] == [len(shown)] * 3

"""Telemetry of a simulated run on its time line: skew, devices, values at launches; and what is said of the rest."""

import hashlib
from pathlib import Path

import numpy as np
import pytest

from causeway.causal.data.launch_context import STALE, ChosenLaunches, add_telemetry
from causeway.core.clock import Clock
from causeway.core.tables import read_json, read_table
from causeway.inputs.quality import check
from causeway.inputs.session_clocks import align
from causeway.levels.pyramid.build import build
from causeway.readers.normalise import normalise
from causeway.simulate.runs import write_run
from causeway.simulate.scenario import SimulatedKernel
from causeway.telemetry.match_telemetry import TelemetrySource, match_telemetry
from lab.site_telemetry import write_telemetry

SECOND = 1_000_000_000
SKEW_S = 37.4
NODES = {"0": "n0", "1": "n0"}


def kernel(name, base_us):
    return SimulatedKernel(name=f"void {name}()", short_name=name, mangled_name=name, base_us=base_us, cv=0.05)


def simulated(folder, seed=5, interval_ms=500, skew_s=SKEW_S, **changes):
    """Write a run of two ranks on a node with its telemetry; return the folders of tables and the clocks."""
    run = folder / "run"
    values = {"kernels": (kernel("a", 9000.0), kernel("b", 4000.0)), "program": (0, 1), "closing": (0, 1)}
    values |= {"neighbour": None, "copies": (), "ranks": 2, "nodes": 1, "iterations": 1200, "gpu_metrics_us": None}
    values |= {"clock_rank": 0, "clock_from": 0.5, "clock_to": 0.75, "clock_factor": 0.9}
    values |= {"seed": seed} | changes
    write_run(values, run)
    write_telemetry(values, run, interval_ms, skew_s)
    folders = [folder / "tables" / str(rank) for rank in range(2)]
    for rank, tables in enumerate(folders):
        normalise(run / f"rank{rank}.sqlite", tables, export=str(rank), source="x", rank=rank, node="n0")
    return folders, align("d", folders)


@pytest.fixture(scope="module")
def matched(tmp_path_factory):
    folder = tmp_path_factory.mktemp("telemetry")
    folders, clocks = simulated(folder)
    source = TelemetrySource(source="telemetry_node0.csv", path=folder / "run" / "telemetry_node0.csv")
    out = folder / "telemetry.parquet"
    document = match_telemetry("d", folders, clocks, NODES, [source], out, folder / "telemetry.json")
    return folder, folders, clocks, document


def test_skew_devices_and_nothing_lost(matched):
    folder, _, _, document = matched
    entry = document["sources"][0]
    text = (folder / "run" / "telemetry_node0.csv").read_bytes()
    assert (entry["sha256"], entry["bytes"]) == (hashlib.sha256(text).hexdigest(), len(text))
    clock = entry["clocks"][0]
    assert clock["low_ns"] <= SKEW_S * SECOND <= clock["high_ns"]
    assert clock["high_ns"] - clock["low_ns"] < 2 * SECOND
    assert [(one["rank"], one["matched_by"]) for one in entry["devices"]] == [(0, "index"), (1, "index")]
    assert entry["unmatched_readings"] == 0
    assert not entry["bad"]
    assert entry["time_zone"] == "UTC (assumed)"


def test_the_clock_drop_stands_where_it_was(matched):
    folder, folders, clocks, _ = matched
    rows = read_table(folder / "telemetry.parquet", "samples").to_pandas()
    assert rows.time_ns.is_monotonic_increasing
    launches = read_table(folders[0] / "launches.parquet", "launches").to_pandas()
    shift = clocks["exports"]["0"]["shift_ns"]
    first = launches.start_ns.min() + shift
    last = launches.start_ns.max() + shift
    clock = rows[(rows["rank"] == 0) & (rows.metric == "sm_clock_hz")]
    dropped = clock[clock.value < 1.9e9].time_ns
    progress = (np.array([dropped.min(), dropped.max()]) - first) / (last - first)
    assert np.allclose(progress, [0.49, 0.75], atol=0.03)
    other = rows[(rows["rank"] == 1) & (rows.metric == "sm_clock_hz")]
    assert other.value.min() > 1.9e9


def test_equal_inputs_give_equal_bytes_and_a_second_source_adds_only_what_is_new(matched, tmp_path):
    folder, folders, clocks, document = matched
    path = folder / "run" / "telemetry_node0.csv"
    twice = [TelemetrySource(source="a", path=path), TelemetrySource(source="b", path=path)]
    match_telemetry("d", folders, clocks, NODES, twice, tmp_path / "t.parquet", tmp_path / "t.json")
    assert (tmp_path / "t.parquet").read_bytes() == (folder / "telemetry.parquet").read_bytes()
    assert read_json(tmp_path / "t.json")["rows"] == document["rows"]


def test_launches_take_the_last_reading_unless_it_is_old(matched):
    folder, folders, clocks, _ = matched
    launches = read_table(folders[0] / "launches.parquet", "launches").to_pandas()
    clock = Clock.of(clocks["exports"]["0"])
    chosen = ChosenLaunches(0, np.arange(len(launches)), np.full(len(launches), -1))
    chosen.start = launches.start_ns.to_numpy()
    chosen.device = launches.device.to_numpy().astype(np.int64)
    chosen.features["power_w"] = np.zeros(len(launches))  # an export's own metric stays
    add_telemetry(folder / "telemetry.parquet", chosen, clock)
    assert not chosen.features["power_w"].any()
    rows = read_table(folder / "telemetry.parquet", "samples").to_pandas()
    mine = rows[(rows["rank"] == 0) & (rows.metric == "gpu_utilisation_ratio")]
    limit = STALE * np.median(np.diff(mine.time_ns))
    for at in range(0, len(launches), 97):
        before = mine[mine.time_ns <= int(clock.aligned(chosen.start[at]))]
        fresh = len(before) and int(clock.aligned(chosen.start[at])) - before.time_ns.iloc[-1] <= limit
        value = chosen.features["gpu_utilisation_ratio"][at]
        assert value == before.value.iloc[-1] if fresh else np.isnan(value)


def test_levels_have_the_readings_as_metrics(matched, tmp_path):
    folder, folders, clocks, _ = matched
    by_name = {one.name: one for one in folders}
    options = {"nodes": NODES, "error": 0.05, "share": 0.05, "link_window_ns": 1_000_000}
    index = build(by_name, clocks, tmp_path / "levels", **options, telemetry=folder / "telemetry.parquet")
    names = [one["name"] for one in index["metrics"]]
    assert {"power_w", "sm_clock_hz", "throttle_power_cap"} <= set(names)
    rows = read_table(folder / "telemetry.parquet", "samples").to_pandas()
    expected = rows[rows.metric == "power_w"].groupby("rank").value.sum()
    coarsest = max(index["levels"], key=lambda one: one["width_ns"])
    path = tmp_path / "levels" / coarsest["folder"] / "statistics.parquet"
    cells = read_table(path, "level_statistics").to_pandas()
    lanes = {one["lane"]: one["rank"] for one in index["lanes"] if one["stream"] is None}
    mine = cells[(cells.metric == names.index("power_w"))]
    found = mine.groupby(mine.lane.map(lanes))["sum"].sum() / 1024
    assert np.allclose(found.sort_index(), expected.sort_index(), rtol=1e-3)


def test_what_does_not_fit_is_said(matched, tmp_path):
    folder, folders, clocks, _ = matched
    text = (folder / "run" / "telemetry_node0.csv").read_text().splitlines()
    (tmp_path / "broken.csv").write_text("\n".join([*text, "2026/01/02 00:00:30.000, 0, oops"]) + "\n")
    (tmp_path / "other.txt").write_text("nothing of the kind\n")
    sources = [
        TelemetrySource(source="broken.csv", path=tmp_path / "broken.csv", node="elsewhere"),
        TelemetrySource(source="other.txt", path=tmp_path / "other.txt"),
        TelemetrySource(source="zone.csv", path=tmp_path / "broken.csv", time_zone="Mars/Olympus"),
    ]
    document = match_telemetry("d", folders, clocks, NODES, sources, tmp_path / "t.parquet", tmp_path / "t.json")
    assert document["rows"] == 0
    assert document["sources"][0]["unmatched_readings"] > 1000
    assert document["sources"][1]["error"]["advice"]
    assert "Mars" in document["sources"][2]["error"]["found"]
    quality = check("d", folders, document)
    kinds = {one["kind"]: one for one in quality["issues"]}
    assert {"telemetry_refused", "telemetry_unmatched", "telemetry_bad_rows"} <= kinds.keys()
    assert "no export has their node" in kinds["telemetry_unmatched"]["detail"]
    assert quality["status"] == "caution"


def test_telemetry_of_another_day_has_no_skew_and_no_rows(matched, tmp_path):
    folder, folders, clocks, _ = matched
    text = (folder / "run" / "telemetry_node0.csv").read_text().replace("2026/01/02", "2026/01/03")
    (tmp_path / "late.csv").write_text(text)
    source = TelemetrySource(source="late.csv", path=tmp_path / "late.csv")
    document = match_telemetry("d", folders, clocks, NODES, [source], tmp_path / "t.parquet", tmp_path / "t.json")
    entry = document["sources"][0]
    assert (document["rows"], entry["readings"]) == (0, 0)
    assert entry["outside"] == entry["rows"]


@pytest.mark.slow
def test_the_skew_is_recovered_on_ten_seeds(tmp_path):
    hits = 0
    for seed in range(900, 910):
        folder = tmp_path / str(seed)
        skew = 30 + seed % 17
        folders, clocks = simulated(folder, seed, interval_ms=1000, skew_s=skew, clock_rank=None)
        source = TelemetrySource(source="t", path=folder / "run" / "telemetry_node0.csv")
        out = Path(folder / "t.parquet")
        clock = match_telemetry("d", folders, clocks, NODES, [source], out, folder / "t.json")["sources"][0]["clocks"][
            0
        ]
        hits += clock["skew_ns"] is not None and clock["low_ns"] <= skew * SECOND <= clock["high_ns"]
    assert hits >= 9

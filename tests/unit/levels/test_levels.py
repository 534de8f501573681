"""Every statistic of every level equals the one of the raw rows, and levels sum up without loss."""

import hashlib
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from level_statistics import SPACE, Levels, buckets_of, efficiency
from levels_reference import raw_busy, raw_values, write_run

from causeway.core.errors import CausewayError
from causeway.core.tables import read_table, write_table
from causeway.levels.pyramid import build as building
from causeway.levels.pyramid import ordered_rows, pyramid
from causeway.levels.pyramid.build import build
from causeway.levels.pyramid.sketch import Buckets
from causeway.variability.rows.transfer_links import link
from variability_tables import table_of, write_export

ERROR = 0.05


def make(folder, folders, clocks, **choices):
    options = {"nodes": {"0": "n0", "1": "n1"}, "error": ERROR, "share": 0.05, "link_window_ns": 50_000} | choices
    build(folders, clocks, folder / "levels", **options)
    return Levels(folder / "levels")


def expected(values, origin, width, metric, space):
    """Return the values of a metric by cell and place."""
    found = defaultdict(list)
    for start, rank, device, stream, name, value in values:
        if name == metric:
            parts = {"node": f"n{rank // 10}", "rank": rank, "device": device, "stream": stream}
            found[
                origin + (start - origin) // width * width,
                tuple(parts[part] for part in SPACE[1 : SPACE.index(space) + 1]),
            ].append(value)
    return found


@pytest.mark.parametrize(
    "rows", [1, 60, pytest.param(7, marks=pytest.mark.slow), pytest.param(400, marks=pytest.mark.slow)]
)
@settings(max_examples=2, deadline=None)
@given(seed=st.integers(0, 10**6), exports=st.integers(1, 2))
def test_statistics_of_every_level_equal_those_of_the_raw_rows(tmp_path_factory, seed, rows, exports):
    folder = tmp_path_factory.mktemp("run")
    folders, clocks = write_run(folder, rows, exports, seed)
    levels = make(folder, folders, clocks)
    values, origin = raw_values(folders, clocks)
    assert levels.widths[0] == 10_000
    assert all(b == 4 * a for a, b in zip(levels.widths, levels.widths[1:], strict=False))
    for width in levels.widths:
        for metric in set(levels.metrics) - {"stall"}:
            for space in ("stream", "device", "node", "dataset") if width == levels.widths[-1] else ("rank",):
                wanted = expected(values, origin, width, metric, space)
                found = levels.statistics(width, -(1 << 62), 1 << 62, metric, space)
                assert found.keys() == wanted.keys()
                for key, one in found.items():
                    check(levels, one, wanted[key])


def check(levels, one, values):
    """Compare statistics with the values that they are of: exactly, but quantiles within the sketch's error of the
    value of their rank.
    """
    scale = one.scale
    exact = [round(value * scale) for value in values]
    assert (one.count, one.total, one.squares) == (len(exact), sum(exact), sum(value * value for value in exact))
    assert (one.low, one.high) == (min(exact), max(exact))
    assert one.mean == sum(exact) / (len(exact) * scale)
    if len(exact) > 1:
        assert one.variance == pytest.approx(np.var(np.array(exact, object) / scale, ddof=1), rel=1e-9, abs=1e-9)
    shares = (0.0, 0.25, 0.5, 0.9, 1.0)
    for share, found in zip(shares, levels.quantiles(one, shares), strict=True):
        true = sorted(exact)[int(share * (len(exact) - 1))] / scale
        assert abs(found - true) <= ERROR * true * (1 + 1e-9)


@settings(max_examples=2, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_busy_times_of_every_level_equal_the_painted_time_line(tmp_path_factory, seed):
    folder = tmp_path_factory.mktemp("run")
    folders, clocks = write_run(folder, 80, 2, seed, samples=False)
    for home in folders.values():  # painting goes by 100 ns
        for name in ("launches", "transfers"):
            table = read_table(home / f"{name}.parquet", name)
            for place, column in ((0, "start_ns"), (1, "duration_ns")):
                table = table.set_column(place, table.schema.field(column), [table[column].to_numpy() // 100 * 100])
            write_table(table, home / f"{name}.parquet", name)
    levels = make(folder, folders, clocks)
    origin = levels.index["origin_ns"]
    for width in levels.widths:
        wanted = raw_busy(folders, clocks, origin, width)
        found = levels.busy(width, -(1 << 62), 1 << 62, "device")
        flat = {((start - origin) // width, *place[1:], kind.removesuffix("_ns")): ns
                for (start, place), kinds in found.items() for kind, ns in kinds.items() if ns}  # fmt: skip
        assert flat == wanted


def test_a_narrow_budget_widens_the_cells_and_loses_nothing(tmp_path, monkeypatch):
    folders, clocks = write_run(tmp_path, 3000, 2, 3)
    monkeypatch.setattr(building, "LEAST_BYTES", 40_000)
    monkeypatch.setattr("causeway.levels.pyramid.ordered_rows.CHUNK_ROWS", 256)
    levels = make(tmp_path, folders, clocks)
    assert levels.widths[0] > 10_000
    assert levels.index["bytes"]["levels"] <= 40_000
    values, origin = raw_values(folders, clocks)
    for metric in ("variability", "compute_duration", "clock_hz", "host_to_device_bytes"):
        wanted = expected(values, origin, levels.widths[0], metric, "stream")
        for key, one in levels.statistics(levels.widths[0], -(1 << 62), 1 << 62, metric, "stream").items():
            check(levels, one, wanted.pop(key))
        assert not wanted


@pytest.mark.parametrize("exports", [1, 2])
def test_a_small_export_costs_few_opened_files_and_no_memory_given_back(tmp_path, monkeypatch, exports):
    """Its launches are opened to be counted, for the first of them, for means, for the extent, for a sample and for the
    sums: six times, not more often in a narrow budget. Memory is given back twice in all, unless exports are large;
    the bytes are the same.
    """
    folders, clocks = write_run(tmp_path, 3000, exports, 3)
    monkeypatch.setattr(building, "LEAST_BYTES", 40_000)
    opened = []
    given_back = []
    own = ordered_rows.open_table
    monkeypatch.setattr(ordered_rows, "open_table", lambda path, name: opened.append(name) or own(path, name))
    for module in (building, pyramid):
        monkeypatch.setattr(module, "give_back", lambda: given_back.append(1))
    make(tmp_path, folders, clocks)
    assert opened.count("launches") == 6 * exports
    assert len(given_back) == 2
    monkeypatch.setattr(building, "MANY_LAUNCHES", 3000)
    monkeypatch.setattr(pyramid, "LARGE_LEVEL", 0)
    (tmp_path / "large").mkdir()
    make(tmp_path / "large", folders, clocks)
    assert len(given_back) > 4 + exports
    files = [sorted((folder / "levels").rglob("*.*")) for folder in (tmp_path, tmp_path / "large")]
    assert [file.read_bytes() for file in files[0]] == [file.read_bytes() for file in files[1]]


def test_chunks_of_any_size_give_the_same_bytes(tmp_path, monkeypatch):
    folders, clocks = write_run(tmp_path, 500, 2, 4)
    seen = []
    for name, rows in (("a", 1 << 17), ("b", 1 << 17), ("c", 37)):
        monkeypatch.setattr("causeway.levels.pyramid.ordered_rows.CHUNK_ROWS", rows)
        build(folders, clocks, tmp_path / name, nodes={}, error=ERROR, share=0.05, link_window_ns=1, link=link)
        seen.append({str(file.relative_to(tmp_path / name)): hashlib.sha256(file.read_bytes()).hexdigest()
                     for file in sorted((tmp_path / name).rglob("*.*"))})  # fmt: skip
    assert seen[0] == seen[1] == seen[2]


@pytest.mark.parametrize(("rows", "groups", "wanted"), [(40, 3, [5, 5, 5]), (200, 20, [5] * 7), (3000, 6, [31] * 6)])
def test_the_first_width_is_chosen_from_a_part_of_the_rows(tmp_path, monkeypatch, rows, groups, wanted):
    """One row in sixteen of a short table, and not more than a limit of a long one; never fewer than another limit."""
    monkeypatch.setattr(ordered_rows, "LEAST_SAMPLE_ROWS", 5)
    monkeypatch.setattr(ordered_rows, "SAMPLE_ROWS", 1000)
    folders, _ = write_run(tmp_path, rows, 1, 6)
    path = folders["0"] / "launches.parquet"
    launches = read_table(path, "launches")
    monkeypatch.setattr("causeway.core.tables.STRETCH_ROWS", -(-rows // groups))
    write_table(launches, path, "launches")
    sampled = list(ordered_rows.sampled_rows(path, "launches", ["start_ns"]))
    assert [batch.num_rows for batch in sampled] == wanted
    starts = launches.column("start_ns").to_pylist()
    assert sampled[0].column(0)[0].as_py() == starts[0]
    assert all(set(batch.column(0).to_pylist()) <= set(starts) for batch in sampled)


@pytest.mark.parametrize("budget", [30_000, 60_000, 150_000])
def test_short_stretches_of_rows_make_no_level_coarser(tmp_path, monkeypatch, budget):
    """A stretch of less than a cell has a cell of each series, as a whole export may have few."""
    folders, clocks = write_run(tmp_path, 3000, 1, 7)
    monkeypatch.setattr(building, "LEAST_BYTES", budget)
    monkeypatch.setattr("causeway.core.tables.STRETCH_ROWS", 375)
    path = folders["0"] / "launches.parquet"
    write_table(read_table(path, "launches"), path, "launches")
    widths = []
    for name, rows in (("short", 6), ("whole", 3000)):
        monkeypatch.setattr(ordered_rows, "LEAST_SAMPLE_ROWS", rows)
        monkeypatch.setattr(ordered_rows, "SAMPLE_ROWS", rows)
        widths.append(make(tmp_path / name, folders, clocks).widths)
    assert widths[0] == widths[1]


def test_a_window_reads_only_what_it_touches(tmp_path, monkeypatch):
    folders, clocks = write_run(tmp_path, 3000, 1, 5)
    monkeypatch.setattr("causeway.levels.pyramid.level.GROUP_ROWS", 64)
    levels = make(tmp_path, folders, clocks)
    whole = levels.statistics(10_000, -(1 << 62), 1 << 62, "variability")
    some = levels.statistics(10_000, 500_000, 700_000, "variability")
    assert some == {key: one for key, one in whole.items() if 500_000 <= key[0] < 700_000}
    assert len(some) > 5


def test_stalls_are_those_of_the_linked_transfers(tmp_path):
    launches = {"start_ns": [0, 100, 500], "duration_ns": [50, 60, 70], "configuration": [0, 0, 0]}
    transfers = {"start_ns": [10, 110], "duration_ns": [30, 100], "bytes": [5, 6], "copy_kind": [1, 1]}
    write_export(tmp_path / "0", launches, transfers)
    levels = make(tmp_path, {"0": tmp_path / "0"}, {"exports": {"0": {"shift_ns": 0}}}, link=link, link_window_ns=100)
    (one,) = levels.statistics(10_000, 0, 1, "stall").values()
    assert (one.count, one.total, one.low, one.high) == (2, 20 + 40, 20, 40)


def raw_stalls(folders, window):
    """Return |duration of the launch - that of its transfer| for all linked launches, by looking at every transfer
    of the device.
    """
    found = []
    for folder in folders.values():
        transfers = read_table(folder / "transfers.parquet", "transfers").to_pylist()
        for launch in read_table(folder / "launches.parquet", "launches").to_pylist():
            begin = launch["start_ns"]
            end = launch["start_ns"] + launch["duration_ns"]
            choices = []
            for row, one in enumerate(transfers):
                if (one["rank"], one["device"]) != (launch["rank"], launch["device"]):
                    continue
                first = one["start_ns"]
                last = one["start_ns"] + one["duration_ns"]
                shared = min(end, last) - max(begin, first)
                if shared > 0:
                    choices.append((1, shared, -first, -row, one["duration_ns"]))
                elif last <= begin <= last + window:
                    choices.append((0, last, -first, -row, one["duration_ns"]))
            if choices:
                found.append(abs(launch["duration_ns"] - max(choices)[-1]))
    return found


@pytest.mark.parametrize(("seed", "rows"), [(11, 1 << 16), (12, 37), (13, 5)])
def test_stalls_of_a_run_are_those_of_a_look_at_every_transfer(tmp_path, monkeypatch, seed, rows):
    monkeypatch.setattr("causeway.levels.pyramid.ordered_rows.CHUNK_ROWS", rows)
    folders, clocks = write_run(tmp_path, 300, 2, seed)
    wanted = raw_stalls(folders, 50_000)
    levels = make(tmp_path, folders, clocks, link=link)
    found = levels.statistics(levels.widths[-1], -(1 << 62), 1 << 62, "stall", "dataset").values()
    assert len(wanted) > 100
    assert sum(one.count for one in found) == len(wanted)
    assert sum(one.total for one in found) == sum(wanted)
    assert sum(one.squares for one in found) == sum(stall * stall for stall in wanted)


def test_shares_of_the_time_sum_to_one(tmp_path):
    folders, clocks = write_run(tmp_path, 200, 1, 6)
    levels = make(tmp_path, folders, clocks)
    devices = sum(lane["stream"] is None for lane in levels.lanes)
    for busy in levels.busy(levels.widths[-1], -(1 << 62), 1 << 62).values():
        shares = efficiency(busy, levels.widths[-1], devices)
        assert sum(shares.values()) == pytest.approx(1)
        assert min(shares.values()) >= -1e-12


def test_unordered_rows_are_refused_with_their_place(tmp_path):
    write_export(tmp_path / "0", {"start_ns": [5, 3], "duration_ns": [1, 1], "configuration": [0, 0]})
    with pytest.raises(CausewayError, match="row 1 begins before the row above it"):
        make(tmp_path, {"0": tmp_path / "0"}, {"exports": {"0": {"shift_ns": 0}}})


def test_a_dataset_without_launches_has_no_levels(tmp_path):
    write_export(tmp_path / "0", counters={"launch": [0], "configuration": [0]})
    levels = make(tmp_path, {"0": tmp_path / "0"}, {"exports": {}})
    assert levels.widths == []
    with pytest.raises(CausewayError, match="no metric duration"):
        levels.statistics(1, 0, 1, "duration")


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 1 << 52), min_size=1), st.sampled_from([0.01, 0.02, 0.05, 0.3]))
def test_buckets_are_those_of_the_library(values, error):
    buckets = Buckets(error)
    wanted = [0 if value == 0 else buckets.mapping.key(value) + 1 for value in values]
    assert buckets_of(buckets, np.array(values)).tolist() == wanted


def test_extreme_samples_are_summed_exactly(tmp_path):
    write_export(tmp_path / "0", {"start_ns": [0], "duration_ns": [1], "configuration": [0]})
    value = [1e12, 2e12 + 0.5, -3.25]
    table = table_of("samples", {"time_ns": [1, 2, 3], "metric": ["x"] * 3, "value": value})
    write_table(table, tmp_path / "0" / "samples.parquet", "samples")
    levels = make(tmp_path, {"0": tmp_path / "0"}, {"exports": {"0": {"shift_ns": 0}}})
    (one,) = levels.statistics(10_000, 0, 1, "x").values()
    assert (one.total / 1024, one.squares) == (sum(value), sum(int(v * 1024) ** 2 for v in value))
    assert levels.quantiles(one) is None


def test_a_long_idle_time_costs_no_detail(tmp_path):
    launches = {
        "start_ns": [0, 5_000, 3_600_000_000_000],
        "duration_ns": [9_000, 100, 7_000],
        "configuration": [0, 0, 0],
    }
    write_export(tmp_path / "0", launches)
    write_export(tmp_path / "1", launches | {"rank": [1, 1, 1]})
    clocks = {"exports": {"0": {"shift_ns": 0}, "1": {"shift_ns": 10**15}}}
    levels = make(tmp_path, {str(rank): tmp_path / str(rank) for rank in range(2)}, clocks)
    assert levels.widths[0] == 10_000
    for width in levels.widths:
        found = levels.busy(width, -(1 << 62), 1 << 62).values()
        assert sum(kinds["compute_ns"] for kinds in found) == 2 * 16_000

"""Tiles of the explorer hold what levels and launches hold."""

import base64
import gzip
import json
import re
from contextlib import closing

import numpy as np
import pyarrow as pa
import pytest
from efficiency_samples import clocks, export
from level_statistics import Levels
from levels_reference import raw_values, write_run

from causeway.core.codes import PATH_KINDS
from causeway.core.tables import SCHEMAS, TableWriter, read_json, write_json, write_table
from causeway.levels.explorer import tiles
from causeway.levels.explorer.explorer import write_explorer
from causeway.levels.explorer.path_time import PATH, PathPieces
from causeway.levels.pyramid.build import build
from causeway.numeric.kept_bits import with_bits
from support import digests_under


def tile(path, kind, key=None):
    """Return the numbers of a tile, the one that its file is called after or another in it."""
    found = dict(re.findall(r'^CW\.tile\("([^"]+)","([^"]+)"\)$', path.read_text(encoding="ascii"), re.M))
    assert next(iter(found)) == path.stem
    held = np.frombuffer(gzip.decompress(base64.b64decode(found[key or path.stem])), np.uint8)
    return held.reshape(np.dtype(kind).itemsize, -1).T.copy().view(kind).ravel()


def of_all(path, kind=np.float32):
    """Return the numbers of all devices together, in the file of the first devices."""
    return tile(path, kind, path.stem.replace("_0_", "_a_", 1))


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setattr(tiles, "TILE_LAUNCHES", 100)
    folders, clocks = write_run(tmp_path, 450, 2, 2)
    build(folders, clocks, tmp_path / "levels", nodes={}, error=0.05, share=0.05, link_window_ns=100_000)
    return tmp_path, folders, clocks


def test_level_tiles_hold_shares_and_means(run):
    home, folders, clocks = run
    write_explorer(home, folders, clocks, home / "explorer", [], 10_000)
    levels = Levels(home / "levels")
    values = raw_values(folders, clocks)
    devices = tiles.devices_of(levels)
    names = [metric["name"] for metric in tiles.metrics_of(levels)]
    size = tiles.tile_cells(len(devices))
    for number, width in enumerate(sorted(levels.widths, reverse=True)):
        busy = levels.busy(width, -(1 << 62), 1 << 62, "device")
        for path in (home / "explorer" / "tiles").glob(f"{number}_0_*.js"):
            cells = tile(path, np.float32).reshape(len(names), len(devices), size)
            first = int(path.stem.split("_")[2]) * size
            for row, lane in enumerate(devices):
                for cell in np.flatnonzero(~np.isnan(cells[0, row])).tolist():
                    start = levels.index["origin_ns"] + (first + cell) * width
                    held = busy.get((start, (lane["node"], lane["rank"], lane["device"])), {"compute_ns": 0})
                    assert cells[0, row, cell] == with_bits([held["compute_ns"] / width], tiles.KEPT_BITS)
    top = of_all(home / "explorer" / "tiles" / "0_0_0.js").reshape(len(names), 1, -1)
    varied = [value for start, *_, name, value in values[0] if name == "variability"]
    assert top[names.index("variability"), 0, 0] == with_bits([sum(varied) / len(varied)], tiles.KEPT_BITS)


@pytest.mark.parametrize(("copy", "low"), [(5_000_000, -2_000_000), (9_000_000, 0)])
def test_the_whole_run_begins_with_copies_before_the_first_launch(tmp_path, copy, low):
    """The first launch is at 7 ms; cells of the finest level divide 1 ms."""
    kernels = [(7_000_000 + 100_000 * at, 7_050_000 + 100_000 * at) for at in range(400)]
    folder = export(tmp_path / "tables" / "0", 0, kernels, [(copy, copy + 500_000)])
    clocks(tmp_path / "clocks.json", {"0": 0})
    document = read_json(tmp_path / "clocks.json")
    build({"0": folder}, document, tmp_path / "levels", nodes={}, error=0.05, share=0.05, link_window_ns=1)
    write_explorer(tmp_path, {"0": folder}, document, tmp_path / "explorer", [], 10)
    index = json.loads((tmp_path / "explorer" / "index.js").read_text()[len("CW.start(") : -2])
    width = min(Levels(tmp_path / "levels").widths)
    assert 1_000_000 % width == 0
    assert (index["origin"], index["low"]) == (7_000_000, low)


def test_a_metric_is_seen_that_is_anything_but_0_in_a_tile(run):
    home, folders, clocks = run
    write_explorer(home, folders, clocks, home / "explorer", [], 10_000)
    text = (home / "explorer" / "index.js").read_text(encoding="utf-8")
    metrics = json.loads(text.removeprefix("CW.start(").removesuffix(")\n"))["metrics"]
    everything = [
        of_all(path).reshape(len(metrics), -1) for path in (home / "explorer" / "tiles").glob("[0-9]*_0_*.js")
    ]
    largest = np.nan_to_num(np.abs(np.concatenate(everything, axis=1))).max(axis=1)
    assert [metric["seen"] for metric in metrics] == (largest > 0).tolist()


def test_launch_tiles_hold_every_launch_or_those_that_vary_most(run):
    home, folders, clocks = run
    values, origin = raw_values(folders, clocks)
    wanted = sorted((start - origin, value) for start, *_, name, value in values if name.endswith("_duration"))
    write_explorer(home, folders, clocks, home / "explorer", [], 10_000)
    found = [tile(path, np.float64).reshape(4, -1) for path in (home / "explorer" / "tiles").glob("n*.js")]
    assert (
        sorted((start, duration) for part in found for start, duration in zip(*part[:2].tolist(), strict=True))
        == wanted
    )
    write_explorer(home, folders, clocks, home / "few", [], 320)
    few = [tile(path, np.float64).reshape(4, -1) for path in (home / "few" / "tiles").glob("n*.js")]
    assert 100 < sum(part.shape[1] for part in few) <= 320
    assert min(np.std(part[1]) / np.mean(part[1]) for part in few if part.shape[1] == 100) >= min(
        np.std(part[1]) / np.mean(part[1]) for part in found
    )


def test_equal_inputs_give_equal_pages(run):
    home, folders, clocks = run
    for name in ("a", "b"):
        write_explorer(home, folders, clocks, home / name, [], 10_000)
    assert digests_under(home / "a") == digests_under(home / "b")


def write_pieces(path, ranks, seed, rows=40, stretches=900, step=4_000):
    """Write critical paths of random stretches in row groups of `rows`; return of each rank its first ns and the kind
    of every ns.
    """
    rng = np.random.default_rng(seed)
    paths = {}
    with TableWriter(path, "path_pieces") as writer:
        for rank in ranks:
            length = rng.integers(1, step, stretches)
            kind = rng.integers(0, len(PATH_KINDS), stretches)
            first = int(rng.integers(-9_000, 400_000))
            start = first + np.cumsum(length) - length
            paths[rank] = first, np.repeat(kind, length)
            for at in range(0, stretches, rows):
                part = slice(at, at + rows)
                words = [list(PATH_KINDS)[one] for one in kind[part]]
                columns = {"rank": np.full(len(words), rank), "start_ns": start[part], "duration_ns": length[part]}
                writer.write(pa.table(columns | {"kind": words}))
    return paths


def test_tiles_hold_the_critical_path_of_each_rank_as_every_nanosecond_says(run):
    home, folders, clocks = run
    levels = Levels(home / "levels")
    lanes = tiles.devices_of(levels)
    paths = write_pieces(home / "path_pieces.parquet", sorted({lane["rank"] for lane in lanes})[1:], 3)
    write_explorer(home, folders, clocks, home / "explorer", [], 10_000, home / "path_pieces.parquet")
    with closing(PathPieces(home / "path_pieces.parquet")) as pieces:
        names = [metric["name"] for metric in tiles.metrics_of(levels, pieces)]
    assert names[tiles.BUILT_IN : tiles.BUILT_IN + len(PATH)] == list(PATH)
    seen = 0
    size = tiles.tile_cells(len(lanes))
    for number, width in enumerate(sorted(levels.widths, reverse=True)):
        for file in (home / "explorer" / "tiles").glob(f"{number}_0_*.js"):
            cells = tile(file, np.float32).reshape(len(names), len(lanes), size)
            begin = levels.index["origin_ns"] + int(file.stem.split("_")[2]) * size * width
            for row, lane in enumerate(lanes):
                wanted = np.zeros((len(PATH), size))
                if lane["rank"] in paths:
                    first, kinds = paths[lane["rank"]]
                    cell = (first + np.arange(kinds.size) - begin) // width
                    inside = (cell >= 0) & (cell < size)
                    np.add.at(wanted, (kinds[inside], cell[inside]), 1)
                whole = wanted.sum(axis=0)
                with np.errstate(invalid="ignore"):
                    shares = with_bits(np.where(whole > 0, wanted / whole, np.nan), tiles.KEPT_BITS)
                assert np.array_equal(cells[tiles.BUILT_IN : tiles.BUILT_IN + len(PATH), row], shares, equal_nan=True)
                seen += int((whole > 0).sum())
    assert seen > 500


def test_a_dataset_without_a_path_has_no_lane_of_it(run):
    home, folders, clocks = run
    write_pieces(home / "path_pieces.parquet", [], 3)
    write_explorer(home, folders, clocks, home / "explorer", [], 10_000, home / "path_pieces.parquet")
    assert "critical path" not in (home / "explorer" / "index.js").read_text(encoding="utf-8")


def test_a_slow_launch_says_what_made_it_slow(run):
    home, folders, clocks = run
    values, origin = raw_values(folders, clocks)
    start = next(start for start, *_, name, _ in values if name.endswith("_duration"))
    causal = home / "kernel_variability" / "causal"
    write_json({"scopes": ["k"]}, causal / "scopes.json")
    same = {"kernel": "k", "position": 1, "rank": 0, "launch": 3, "start_ns": start, "duration_ns": 5000}
    parts = [("clock", "1,300 MHz", 1200, False), ("unexplained", None, -7, True)]
    names = ("feature", "value", "attributed_ns", "unexplained")
    rows = [same | {"deviation_ns": 1193} | dict(zip(names, part, strict=True)) for part in parts]
    table = pa.Table.from_pylist(rows, schema=SCHEMAS["slow_launches"])
    write_table(table, causal / "k" / "slow_launches.parquet", "slow_launches")
    write_explorer(home, folders, clocks, home / "slow", [], 10_000)
    index = json.loads((home / "slow" / "index.js").read_text(encoding="utf-8").removeprefix("CW.start(")[:-2])
    assert index["slow"] == {f"0 {start - origin} 5000": "+1,200 ns clock = 1,300 MHz; -7 ns unexplained"}


def test_row_groups_that_one_cell_holds_are_read_once(tmp_path):
    """Of a long run most do: a tile of the whole run held all of its pieces in memory, a gigabyte of 267 million."""
    rank = 4
    first, kinds = write_pieces(tmp_path / "path_pieces.parquet", [rank], 30)[rank]
    with closing(PathPieces(tmp_path / "path_pieces.parquet")) as pieces:
        for width in (kinds.size // 4, kinds.size // 3):
            cells = 5
            pieces._held.clear()
            times, whole = pieces.time([rank], first, width, cells)
            cell = np.arange(kinds.size) // width
            wanted = np.zeros((len(PATH), cells))
            np.add.at(wanted, (kinds, cell), 1)
            assert np.array_equal(times[:, 0], wanted)
            assert np.array_equal(whole[0, 0], wanted.sum(axis=0))
        assert len(pieces._held) <= cells + 1, "those that lie in two cells, and the last"

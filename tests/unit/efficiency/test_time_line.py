"""One time line for all: with a clock that drifts, bins, kept rows, levels, windows and efficiency put each
launch at the same nanosecond.
"""

import numpy as np
import pytest
from efficiency_samples import clocks, export

from causeway.causal.data.features import exports_of
from causeway.core.clock import Clock
from causeway.core.tables import read_json, read_table
from causeway.efficiency.measure_efficiency import measure_efficiency
from causeway.levels.explorer.query import Levels
from causeway.levels.pyramid.build import build
from causeway.levels.windows.window import read_window
from variability_tables import run_here

DRIFT = -250_000
"""A quarter of a millisecond per second: 25 ms over the run, two and a half bins."""
WIDTH = 10_000_000
LONG = 1_000
ROWS = 400


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Two ranks of 100 s, launches of 1 us in the middle of microseconds; the second rank's clock drifts."""
    folder = tmp_path_factory.mktemp("drift")
    random = np.random.default_rng(5)
    own = {}
    for rank in range(2):
        own[rank] = np.unique(random.integers(0, 100_000_000, ROWS)) * 1_000 + 7
        kernels = [(int(start), int(start) + LONG) for start in own[rank]]
        export(folder / "tables" / str(rank), rank, kernels)
    clocks(folder / "clocks.json", {"0": 0, "1": (5_000_000, DRIFT, 1_000)})
    aligned = {0: own[0], 1: own[1] + 5_000_000 + np.floor_divide((own[1] - 1_000) * DRIFT + 500_000_000, 10**9)}
    folders = {str(rank): folder / "tables" / str(rank) for rank in range(2)}
    return folder, folders, aligned, min(starts[0] for starts in aligned.values())


def counted(starts, width, origin):
    cells, counts = np.unique((starts - origin) // width, return_counts=True)
    return dict(zip(cells.tolist(), counts.tolist(), strict=True))


def test_bins_and_kept_rows(run):
    folder, _, aligned, origin = run
    out = run_here(folder, ["kernel_variability"], ["0", "1"], ["--width-us", "10000", "--keep-share", "1"])
    bins = read_table(out / "kernel_variability" / "bins.parquet", "bins").to_pylist()
    kept = read_table(out / "kernel_variability" / "kept.parquet", "kept").to_pylist()
    for rank, starts in aligned.items():
        found = {row["bin"]: row["count"] for row in bins if row["rank"] == rank}
        assert found == counted(starts, WIDTH, origin)
        assert [row["start_ns"] for row in kept if row["rank"] == rank] == starts.tolist()


def test_levels_and_windows(run):
    folder, folders, aligned, origin = run
    document = read_json(folder / "clocks.json")
    build(folders, document, folder / "levels", nodes={}, error=0.05, share=0.05, link_window_ns=1)
    levels = Levels(folder / "levels")
    assert levels.index["origin_ns"] == origin
    lanes = {lane["lane"]: lane["rank"] for lane in levels.lanes}
    for width in levels.widths:
        cells = levels.rows(width, "statistics", -(1 << 62), 1 << 62)
        for rank, starts in aligned.items():
            mine = np.array([lanes[lane] == rank for lane in cells["lane"]]) & (cells["metric"] == 0)
            found = zip(((cells["start_ns"][mine] - origin) // width).tolist(), cells["count"][mine], strict=True)
            assert dict(found) == counted(starts, width, origin)
    begin = 90_000_000_000 // 1000
    window = read_window(f"at_{begin}us_{begin + 2_000_000}us", folder, folders, document, {})
    for rank, starts in aligned.items():
        inside = starts[(starts >= origin + begin * 1000) & (starts < origin + (begin + 2_000_000) * 1000)]
        assert inside.size
        assert window.events[str(rank)]["launches"]["start_ns"].to_pylist() == inside.tolist()


def test_efficiency(run):
    folder, folders, aligned, origin = run
    choices = {"bins": 1000, "regions": 0}
    paths = (folder / "efficiency.json", folder / "efficiency.parquet")
    measure_efficiency("d", list(folders.values()), folder / "clocks.json", choices, *paths)
    document = read_json(paths[0])
    assert document["origin_ns"] == origin
    rows = read_table(paths[1], "efficiency").to_pylist()
    for rank, starts in aligned.items():
        edges = {(int(start) - origin) % document["bin_ns"] > document["bin_ns"] - LONG for start in starts}
        assert edges == {False}, "no launch lies in two bins"
        found = {row["bin"]: row["kernel_ns"] for row in rows if row["level"] == "bin" and row["rank"] == rank}
        wanted = {at: LONG * n for at, n in counted(starts, document["bin_ns"], origin).items()}
        assert {at: time for at, time in found.items() if time} == wanted


def test_context_of_launches(run):
    folder, folders, _, _ = run
    document = read_json(folder / "clocks.json")
    assert [one.clock for one in exports_of(list(folders.values()), document, {})] == [
        Clock(),
        Clock(5_000_000, DRIFT, 1_000),
    ]

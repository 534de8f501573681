"""What all devices do together is a mean over those that are recorded then, also if they do nothing."""

import json
import re

import numpy as np
import pytest
from efficiency_samples import clocks, export
from test_tiles import of_all

from causeway.core.tables import read_json
from causeway.levels.explorer.explorer import write_explorer
from causeway.levels.explorer.query import Levels
from causeway.levels.pyramid.build import build

MS = 1_000_000
REDUCE = {"kernel": "ncclDevKernel_AllReduce"}
SHIFTS = {0: 0, 1: 3 * MS, 2: -2 * MS}
BUSY = {0: [(0, 10), (30, 40)], 1: [(10, 20), (30, 40)], 2: [(20, 30)]}
RECORDED = {0: (-1, 42), 1: (0, 40), 2: (15, 31)}
"""Of three ranks when they compute or, from 30 ms on, communicate, and when they are recorded; ms on one time line."""


@pytest.fixture
def explored(tmp_path):
    """Return the index of an explorer's page, its folder and the widths of the levels."""
    folders = {}
    for rank, edges in BUSY.items():
        own = [(begin * MS - SHIFTS[rank], stop * MS - SHIFTS[rank], begin) for begin, stop in edges]
        kernels = [
            (at, at + 500_000, REDUCE if place == 30 else {})
            for begin, stop, place in own
            for at in range(begin, stop, 500_000)
        ]
        calls = [(at * MS - SHIFTS[rank], at * MS - SHIFTS[rank] + 1) for at in RECORDED[rank]]
        folders[str(rank)] = export(tmp_path / "tables" / str(rank), rank, kernels, calls=calls)
    clocks(tmp_path / "clocks.json", {str(rank): shift for rank, shift in SHIFTS.items()})
    document = read_json(tmp_path / "clocks.json")
    build(folders, document, tmp_path / "levels", nodes={}, error=0.05, share=0.05, link_window_ns=1)
    write_explorer(tmp_path, folders, document, tmp_path / "explorer", [], 10)
    index = json.loads((tmp_path / "explorer" / "index.js").read_text()[len("CW.start(") : -2])
    return index, tmp_path / "explorer", sorted(Levels(tmp_path / "levels").widths, reverse=True)


def share(edges, begin, end):
    """Return the ms of some spans that lie between two others."""
    return sum(max(0, min(stop, end) - max(start, begin)) for start, stop in edges)


def test_shares_of_all_devices_count_those_that_are_idle(explored):
    index, home, widths = explored
    names = [metric["name"] for metric in index["metrics"]]
    seen = 0
    for number, width in enumerate(widths):
        for path in (home / "tiles").glob(f"{number}_0_*.js"):
            values = of_all(path).reshape(len(names), index["tile_cells"])
            first = int(re.fullmatch(r"\d+_0_(-?\d+)", path.stem)[1]) * index["tile_cells"]
            for cell in np.flatnonzero(~np.isnan(values[0])).tolist():
                begin = (first + cell) * width / MS
                end = begin + width / MS
                there = [rank for rank, (one, other) in RECORDED.items() if one < end and other + 1 / MS > begin]
                for name, low, high in (("compute", -5, 30), ("communication", 30, 99)):
                    busy = sum(share(edges, max(begin, low), min(end, high)) for edges in BUSY.values())
                    expected = busy * MS / width / len(there)
                    assert values[names.index(name), cell] == pytest.approx(expected, rel=2**-8), (width, begin, name)
                seen += len(there) == 3
    assert seen > 10


def test_the_page_knows_when_devices_are_recorded(explored):
    index, _, _ = explored
    begins, ends = index["recorded"]
    assert begins == sorted(begin * MS for begin, _ in RECORDED.values())
    assert ends == sorted(end * MS + 1 for _, end in RECORDED.values())

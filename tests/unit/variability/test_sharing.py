"""Every row belongs to exactly one worker, and every bin too."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from causeway.variability.bins.passes import shares
from causeway.variability.rows import sources
from causeway.variability.rows.sources import Source
from variability_tables import write_export


@pytest.fixture(autouse=True)
def small_groups(monkeypatch):
    """Small row groups and chunks, so that a few rows have many edges."""
    monkeypatch.setattr(sources, "STRETCH_ROWS", 1)
    monkeypatch.setattr(sources, "LEAST_ROWS", 1)
    monkeypatch.setattr(sources, "CHUNK_ROWS", 4)


def rows_of(share):
    return [
        (int(position), chunk.row(place))
        for chunk, positions in share.chunks([])
        for place, position in enumerate(positions)
    ]


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.integers(0, 200), min_size=1, max_size=60),
    st.integers(1, 50),
    st.integers(1, 9),
    st.integers(1, 20),
)
def test_shares_cover_all_rows_once_and_never_cut_a_bin(tmp_path, start, width, size, row_group):
    start = sorted(start)
    facts = {
        "start_ns": start,
        "duration_ns": [1] * len(start),
        "configuration": [0] * len(start),
        "rank": [0] * len(start),
    }
    write_export(tmp_path, facts, row_group=row_group)
    source = Source("a", tmp_path, "launches")
    source.count_from(start[0])
    found = []
    owner = {}
    for place in range(size):
        for share in shares([source], width, place, size):
            mine = rows_of(share)
            assert mine == sorted(mine)
            found += mine
            for position, _ in mine:
                assert owner.setdefault(position // width, place) == place
    assert sorted(found) == [(time - start[0], row) for row, time in enumerate(start)]


def test_rows_whose_position_depends_on_others_go_to_one_worker(tmp_path):
    n = 30
    facts = {"launch": range(n), "configuration": [0] * n, "rank": np.arange(n) % 3, "start_ns": [None] * n}
    for export in ("a", "b"):
        write_export(tmp_path / export, counters=facts, row_group=4)
    both = [Source(export, tmp_path / export, "counters", timed=False) for export in ("a", "b")]
    owners = {share.source.export: place for place in range(2) for share in shares(both, 5, place, 2)}
    assert owners == {"a": 0, "b": 1}
    (share,) = shares(both, 5, 0, 2)
    assert [position for position, _ in rows_of(share)] == [row // 3 for row in range(n)]

"""A simulated day's release: whose noise it holds, after the configuration's seed was changed."""

import numpy as np
import pytest
from fleet_samples import CLIPS, SHARES, learn

from causeway.fleet.release import aggregate
from causeway.fleet.report_layout import WORD
from causeway.fleet.study import steps

SETTINGS = {"clusters": 2, "clips": CLIPS, "epsilon": SHARES, "budget": 1.0, "delta": 0.0, "release_threshold": 5}


@pytest.fixture
def released(tmp_path, monkeypatch):
    """Return a function that releases a day of 40 reports in a folder with a test seed, and returns the bytes."""
    found = learn({"a": ["x", "y", "z", "w"], "b": ["p", "q", "r"]})
    layout = steps.layout_of(found, SETTINGS)
    rng = np.random.default_rng(1)
    leader = rng.integers(0, 2**32, (24, layout.cells), dtype=WORD)
    arrays = {"leader": leader, "helper": -leader, "reports": np.eye(24, dtype=np.int64)[0] * 40}
    monkeypatch.setattr(steps, "read_catalogue", lambda folder: found)
    monkeypatch.setattr(aggregate, "read_shards", lambda folder: [(arrays, 100)])
    counts = tmp_path / "counts.parquet"
    counts.write_bytes(b"counts")

    def release(folder, seed):
        out = tuple(tmp_path / folder / name for name in ("release.bin", "estimates.parquet", "applications.parquet"))
        steps.release_day(SETTINGS | {"test_seed": seed}, "share2", tmp_path, counts, tmp_path, out)
        return out[0].read_bytes()

    return release


def test_another_test_seed_releases_its_own_noise(released):
    """The ledger keeps what it released: a changed seed must not find the old one's noise under its name."""
    one = released("same", 11)
    other = released("same", 12)
    assert b'"test_seed": 11' in one.splitlines()[0]
    assert b'"test_seed": 12' in other.splitlines()[0]
    assert other == released("fresh", 12)
    assert one.split(b"\n", 1)[1] != other.split(b"\n", 1)[1]
    assert released("same", 11) == one


def test_noise_of_the_systems_entropy_is_drawn_once_also_beside_a_seed(released):
    seeded = released("same", 11)
    drawn = released("same", None)
    assert drawn.split(b"\n", 1)[1] != seeded.split(b"\n", 1)[1]
    assert released("same", None) == drawn

"""The trend of durations over a run: that of launches of one configuration, whatever the mix of configurations. Worked
by hand, and beside a brute-force fit.
"""

import numpy as np
import pytest
from efficiency_samples import export

from causeway.core.clock import Clock
from causeway.efficiency.ranks.duration_cells import BLOCKS, UNIT
from causeway.efficiency.ranks.variance_components import components, levels_of_blocks

GRIDS = (8, 64)
LAUNCHES = 3_200
APART = 1_000_000


def trend(folder, durations, grids):
    """Return the components of a run of gemm, whose launches begin 1 ms apart."""
    rows = [
        (APART * at, APART * at + round(duration), {"grid": GRIDS[grid]})
        for at, (duration, grid) in enumerate(zip(durations, grids, strict=True))
    ]
    folders = [export(folder / "0", kernels=rows, grids=GRIDS)]
    return components(folders, {0: Clock(0)}, {0: None}, 1)


def mixed(random):
    """Return a random launch's grid: the larger with a chance that rises from 5 % to 95 % over the run."""
    return (random.random(LAUNCHES) < np.linspace(0.05, 0.95, LAUNCHES)).astype(int)


@pytest.mark.parametrize("skewed", [False, True])
def test_another_mix_of_constant_shapes_is_no_trend(tmp_path, skewed):
    """The larger grid takes 5,050 ns, the smaller 1,000 ns; where skewed, each tenth launch of the larger one takes
    1.2 times as long, all over the run: its mean lies above its median, so that a mean of all deviations rises.
    """
    grids = mixed(np.random.default_rng(2))
    durations = np.array([1000, 5050])[grids]
    if skewed:
        large = np.flatnonzero(grids)
        durations[large[::10]] = 6060
    found = trend(tmp_path, durations, grids)
    one = found["trend_per_hour"]
    assert found["trend_launches"] == LAUNCHES
    assert found["shapeless_launches"] == 0
    assert found["change_points_ns"] == []
    if not skewed:
        assert one == {"value": 0.0, "low": 0.0, "high": 0.0}
    assert one["low"] <= 0 <= one["high"]


@pytest.mark.parametrize("sign", [1, -1])
def test_a_drift_of_each_shape_is_told_whatever_the_mix(tmp_path, sign):
    """Both grids grow by a logarithm of 0.1 over the run of 3.2 s; the mix goes towards the larger one, or towards the
    smaller one, where a mean of durations would fall.
    """
    grids = mixed(np.random.default_rng(3))[::sign]
    drift = np.exp(0.1 * np.arange(LAUNCHES) / LAUNCHES)
    found = trend(tmp_path, np.array([10_000, 50_000])[grids] * drift, grids)
    per_hour = 0.1 / (LAUNCHES * APART) * 3.6e12
    assert found["trend_per_hour"]["value"] == pytest.approx(per_hour, rel=0.03)
    assert found["trend_per_hour"]["low"] > 0.9 * per_hour


def test_shapes_that_follow_each_other_tell_no_level(tmp_path):
    """Blocks of the one half share no configuration with those of the other: each half is constant, and their
    difference is not known.
    """
    grids = (np.arange(LAUNCHES) >= LAUNCHES // 4).astype(int)
    found = trend(tmp_path, np.array([1000, 5050])[grids], grids)
    assert found["trend_per_hour"] == {"value": 0.0, "low": 0.0, "high": 0.0}
    assert found["trend_launches"] == 3 * LAUNCHES // 4
    once = trend(tmp_path / "once", [1000, 5050], [0, 1])
    assert set(once["trend_per_hour"].values()) == {None}
    assert once["trend_launches"] == 0


def test_launches_without_a_shape_are_counted(tmp_path):
    rows = [(APART * at, APART * at + 50, {"kernel": ("gemm", "softmax")[at % 4 == 0]}) for at in range(100)]
    folder = export(tmp_path / "0", kernels=[*rows, (100 * APART, 100 * APART + 9, {"grid": 64})], grids=GRIDS)
    assert components([folder], {0: Clock(0)}, {0: None}, 1)["shapeless_launches"] == 100


def brute_force(cells):
    """Return the levels of blocks by a least-squares fit with a column for each configuration and each block."""
    rows = []
    right = []
    for at, (count, total) in enumerate(cells):
        used = np.flatnonzero(count)
        for block in used:
            row = np.zeros(len(cells) + BLOCKS)
            row[at] = row[len(cells) + block] = 1.0
            root = np.sqrt(count.sum() / used.size)
            rows.append(root * row)
            right.append(root * total[block] / UNIT / count[block])
    return np.linalg.lstsq(np.array(rows), np.array(right), rcond=None)[0][len(cells) :]


@pytest.mark.parametrize("seed", range(20))
def test_levels_are_those_of_a_fit_of_configurations_and_blocks(seed):
    random = np.random.default_rng(seed)
    many = int(random.integers(1, 12))
    cells = np.zeros((many, 2, BLOCKS), np.int64)
    sparse = random.uniform(0.1, 1)
    cells[:, 0] = random.integers(1, 50, (many, BLOCKS)) * (random.random((many, BLOCKS)) < sparse)
    level = random.normal(0, 0.1, BLOCKS)
    deviation = random.normal(0, 0.3, (many, 1)) + level + random.normal(0, 0.01, (many, BLOCKS))
    cells[:, 1] = np.rint(UNIT * cells[:, 0] * deviation)
    found = levels_of_blocks(cells)
    runs = cells[:, 0] > 0
    sets = [{block} for block in np.flatnonzero(runs.any(axis=0))]
    for row in runs:
        joined = set(np.flatnonzero(row))
        touched = [one for one in sets if one & joined]
        sets = [one for one in sets if not one & joined] + [set().union(*touched)] * bool(touched)
    share = np.where(runs.sum(axis=1) > 1, cells[:, 0].sum(axis=1) / np.maximum(runs.sum(axis=1), 1), 0)
    behind = [sum(float((share * runs[:, block]).sum()) for block in one) for one in sets]
    assert set(found.blocks.tolist()) == sets[int(np.argmax(behind))]
    wanted = brute_force(cells)[found.blocks]
    assert found.level == pytest.approx(wanted - wanted.mean(), abs=1e-8)

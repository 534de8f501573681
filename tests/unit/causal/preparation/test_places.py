"""Ranks, nodes and other places as categories, and clocks that tell places apart rather than moments."""

import random

import numpy as np
import pytest
from causal_tables import rows_of

from causeway.causal.data.observations import Feature
from causeway.causal.data.outcome import Scope
from causeway.causal.discovery.discover import discover
from causeway.causal.preparation.categorical import category_candidates, in_numbers, listed, pooling_notes
from causeway.causal.preparation.known_relations import clocks_of_places

pytestmark = pytest.mark.usefixtures("rough_shares")


def texts(values):
    return np.array([str(value) for value in values], dtype=object)


def place(values, name="rank"):
    return Feature(name, texts(values), "context", "placement")


def only(column):
    (found,), dropped = category_candidates([(column.name, column)])
    assert dropped == []
    return found


def test_each_of_62_ranks_has_a_level_in_the_order_of_their_numbers():
    ranks = [rank for rank in range(64) if rank not in (17, 40)] * 5
    found = only(place(random.Random(1).sample(ranks, len(ranks))))
    assert found.levels == tuple(str(rank) for rank in range(64) if rank not in (17, 40))
    assert found.pooled == ()
    assert found.values.sum(axis=0).tolist() == [5] * 61


@pytest.mark.parametrize(("ranks", "width"), [(65, 2), (128, 2), (132, 4), (512, 8)])
def test_of_more_than_64_ranks_consecutive_ones_share_a_level(ranks, width):
    found = only(place([*range(ranks)] * 4))
    wanted = [(first, min(first + width, ranks) - 1) for first in range(0, ranks, width)]
    assert {*found.levels} == {f"{low} to {high}" if low < high else str(low) for low, high in wanted}
    rows = dict(zip(found.levels[1:], found.values.T, strict=True))
    for low, high in wanted:
        name = f"{low} to {high}" if low < high else str(low)
        if name in rows:
            assert np.flatnonzero(rows[name]).tolist() == [i for i in range(4 * ranks) if low <= i % ranks <= high]


def test_names_of_nodes_are_consecutive_by_the_numbers_in_them():
    names = [f"n{i}" for i in range(1, 131)]
    found = only(place(names * 4, "node"))
    assert {*found.levels} == {f"n{i} to n{min(i + 3, 130)}" for i in range(1, 131, 4)}


def test_few_busy_streams_beside_many_rare_ones_keep_their_levels():
    busy = ["7", "8"] * 500
    found = only(place([*busy, *range(100, 300)], "stream"))
    assert found.levels == ("other", "7", "8")
    assert len(found.pooled) == 200
    assert pooling_notes([found], ()) == []
    assert pooling_notes([found], {"stream"}) == ["stream: other stands for 200 levels: 100 to 299"]


def test_of_other_categories_the_first_by_number_are_told_apart_and_the_rest_is_listed():
    found = only(Feature("phase", texts([*range(80)] * 5), "context", "host"))
    assert found.levels == ("other", *map(str, range(64)))
    assert pooling_notes([found], ()) == ["phase: other stands for 16 levels: 64 to 79"]


def test_levels_are_listed_by_number_and_the_first_few_named():
    assert sorted(["n10", "10", "n9", "9", "n"], key=in_numbers) == ["9", "10", "n", "n9", "n10"]
    assert listed(["9", "10", "4", "38", "37", "39", "x"]) == "4, 9, 10, 37 to 39, x"
    assert listed([str(2 * i) for i in range(11)]) == "0, 2, 4, 6, 8, 10, 12, 14 and 3 more"


def run(ranks, slow, slowness, steps=20, seed=1):
    """Return what was recorded of one kernel behind three others on each rank, the slow ranks slower in all."""
    draw = random.Random(seed)
    rank = []
    position = []
    duration = []
    for _ in range(steps):
        for number in range(ranks):
            factor = 1 + slowness * (number in slow)
            *before, own = (4e5 * factor * (1 + 0.01 * (draw.random() - 0.5)) for _ in range(4))
            rank.append(number)
            position.append(5e5 + sum(before))
            duration.append(own)
    clock = Feature("step_position", np.array(position), "context", "time", "ns")
    return [clock, place(rank)], rows_of(np.array(duration))


def ruled_out(columns, rows):
    response = rows.signed / rows.signed.std()
    return clocks_of_places(columns, rows, response, len(rows))


@pytest.mark.usefixtures("exact_shares")
@pytest.mark.parametrize(
    ("ranks", "slow", "levels"),
    [(62, range(40, 48), {"40 to 47"}), (62, (13,), {"13"}), (128, (13,), {"12 to 13"})],
)
def test_a_slow_node_or_rank_is_the_cause_and_not_when_its_kernels_begin(ranks, slow, levels):
    columns, rows = run(ranks, slow, 0.04)
    outcome, _ = discover(columns, rows, Scope("d", "kernel_variability", "k"))
    (cause,) = outcome.arrows
    assert (cause.name, cause.verdict) == ("rank", "supported")
    assert cause.level in levels
    reasons = {one.feature: one.reason for one in outcome.dropped}
    assert reasons["step_position"] == "differs with rank, and launches of the same rank do not follow it"


def test_a_clock_that_launches_of_one_rank_follow_stays():
    """A kernel slows down by 1 ns per 100 ns in the step; ranks begin it at different times, too."""
    rng = np.random.default_rng(2)
    rank = np.tile(np.arange(16), 40)
    position = 1e5 + 1e4 * rank + 2e4 * rng.random(640)
    columns = [Feature("step_position", position, "context", "time", "ns"), place(rank)]
    assert ruled_out(columns, rows_of(5e4 + 0.01 * position + 50 * rng.standard_normal(640))) == {}


def test_a_clock_beside_equal_ranks_stays():
    assert ruled_out(*run(62, (), 0.0)) == {}


def test_a_contradiction_is_that_of_two_regressions_by_hand():
    """Two ranks, four launches each: the clock is 0 or 1 on rank a, 10 or 11 on b, the duration 0 on a, 10 on b, 0.1
    more or less. The slope over all is 200 / 202; within the ranks the squares are 0.08 without it, and with it as many
    more as those of the clock, 2, times its square.
    """
    clock = np.array([0.0, 1, 0, 1, 10, 11, 10, 11])
    noise = np.array([1.0, 1, -1, -1, 1, 1, -1, -1]) * 0.1
    wanted = np.repeat([0.0, 10], 4) + noise
    slope = float((clock - clock.mean()) @ (wanted - wanted.mean())) / float(np.sum((clock - clock.mean()) ** 2))
    assert slope == pytest.approx(200 / 202)
    rise = np.log((0.08 + slope**2 * 2) / 0.08)
    columns = [Feature("step_position", clock, "context", "time", "ns"), place(["a"] * 4 + ["b"] * 4)]
    below, above = (clocks_of_places(columns, rows_of(wanted), wanted, share * 6.0 / rise) for share in (0.99, 1.01))
    assert (below, [*above]) == ({}, ["step_position"])

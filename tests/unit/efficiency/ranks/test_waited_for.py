"""Who is waited for, however often it is last: counted, beside a count by hand."""

from math import comb

import numpy as np
import pytest
from efficiency_samples import rank_collectives

from causeway.core.clock import Clock
from causeway.efficiency.ranks import collectives, find_stragglers, stragglers

ARRIVALS = [[0, 0, 7_000], [100, 0, 900], [0, 30, 150], [0, 300, 0], [310, 0, 0], [0, 0, 80]]
"""How much later than the first each of three ranks arrives, us."""


def verdict(arrivals):
    start = np.array(arrivals, np.int64) * 1_000 + 20_000_000 * np.arange(len(arrivals))[:, None]
    end = start.max(axis=1) + 15_000
    rows = {
        rank: rank_collectives(
            [
                (begin, stop, "allreduce", "0", None, 1 << 20)
                for begin, stop in zip(own.tolist(), end.tolist(), strict=True)
            ]
        )
        for rank, own in enumerate(start.T)
    }
    ((group,), _) = collectives.match([rows])
    return stragglers.verdict_of(stragglers.analyse(group, dict.fromkeys(rows, Clock())), group)


def test_a_rank_behind_most_of_the_waiting_is_named_though_it_is_not_often_late():
    found = verdict(ARRIVALS)
    waits = [sum(max(row) - one for one in row) for row in ARRIVALS]
    mine = [at for at, row in enumerate(ARRIVALS) if row[2] == max(row) and sum(one == max(row) for one in row) == 1]
    last = found["ranks"][2]
    assert (found["verdict"], found["waited_for"], last["pattern"]) == ("inconclusive", 2, "none")
    assert found["waiting_ns"] == 1_000 * sum(waits)
    assert last["waiting_for_it_ns"] == 1_000 * sum(waits[at] for at in mine)
    assert (last["last_collectives"], last["latest_ns"]) == (len(mine), 7_000_000)
    assert found["latest_ns"] == 7_000_000
    chance = sum(comb(6, k) * (1 / 3) ** k * (2 / 3) ** (6 - k) for k in range(len(mine), 7))
    assert last["by_chance"] == pytest.approx(min(1, 3 * chance))
    assert "often enough" in found["reason"]


def test_waiting_that_is_for_all_ranks_alike_names_nobody():
    turns = [[500 * (rank == at % 3) for rank in range(3)] for at in range(9)]
    found = verdict(turns)
    assert (found["waiting_ns"], found["waited_for"]) == (9 * 1_000_000, None)
    assert verdict([[0, 0, 0]] * 5)["waited_for"] is None


@pytest.mark.parametrize(("times", "named"), [(5, None), (6, 0)])
def test_of_two_ranks_one_is_named_from_three_quarters_of_the_waiting_on(times, named):
    """Chance gives each a half; 3 of 4 ms is half of what is left."""
    verdicts = verdict([[500, 0]] * times + [[0, 100]] * 10)
    assert verdicts["waited_for"] == named


@pytest.mark.parametrize(("apart_ns", "named"), [(0, 1), (40_000_000, None)])
def test_of_a_single_collective_the_last_rank_is_named_where_clocks_agree(apart_ns, named):
    """Three collectives were asked for: that rank 1 lets the others wait for 12 ms in the only one was not told."""
    starts = [0, 12_000_000, 1_000_000]
    rows = {
        rank: rank_collectives(
            [(start + rank * apart_ns, 14_000_000 + rank * apart_ns, "allreduce", "0", None, 1 << 20)]
        )
        for rank, start in enumerate(starts)
    }
    ((group,), _) = collectives.match([rows])
    notes = []
    (judged,) = find_stragglers._judged([group], dict.fromkeys(rows, Clock()), {}, notes)
    assert (judged.verdict["waited_for"], notes) == (named, [])

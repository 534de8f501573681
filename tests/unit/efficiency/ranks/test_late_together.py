"""Ranks that are late in the same collectives: whom they hold up, and what they cost beside a run without them."""

import numpy as np

from causeway.core.clock import Clock
from causeway.efficiency.ranks import stragglers
from causeway.efficiency.ranks.collectives import MatchedCollectives

COLLECTIVES = 60


def played(late, ranks=16):
    """Return when ranks enter collectives and leave them together, ns: about 2 ms of work before each, `late` more of
    it by rank, and 100 us of transfer.
    """
    random = np.random.default_rng(43)
    more = np.zeros(ranks, np.int64)
    more[list(late)] = list(late.values())
    start = np.zeros((ranks, COLLECTIVES), np.int64)
    end = np.zeros(COLLECTIVES, np.int64)
    for at in range(COLLECTIVES):
        start[:, at] = (end[at - 1] if at else 0) + 2_000_000 + random.integers(-10_000, 10_000, ranks) + more
        end[at] = start[:, at].max() + 100_000
    return start, end


def judged(start, end):
    """Return the document of ranks with one clock."""
    group = MatchedCollectives(
        None, list(range(len(start))), start, np.broadcast_to(end, start.shape), ["all_reduce"] * end.size, -np.ones(60)
    )
    times = stragglers.analyse(group, dict.fromkeys(group.ranks, Clock()))
    return {"dataset": "demo", "groups": [stragglers.verdict_of(times, group)]}


def cost(start, several):
    """Return by how much the last of some ranks is later than the last of the others, summed, collective by
    collective, and how long the others wait for them then.
    """
    together = 0
    waited = 0
    for row in start.T.tolist():
        others = [own for rank, own in enumerate(row) if rank not in several]
        if max(row) > max(others):
            together += max(row) - max(others)
            waited += sum(max(row) - own for own in others)
    return together, waited


NODE = (8, 9, 10, 11)


def test_ranks_that_others_arrive_after_hold_up_nothing():
    """Of two kinds of work, ranks 0 to 7 and 8 to 15, the second arrive 500 us later: 1 and 2 are late against their
    own kind, and nobody waits for them.
    """
    start, end = played({1: 160_000, 2: 160_000} | dict.fromkeys(range(8, 16), 500_000))
    ends = np.broadcast_to(end, start.shape)
    group = MatchedCollectives(None, list(range(16)), start, ends, ["all_reduce"] * 60, -np.ones(60))
    times = stragglers.analyse(group, dict.fromkeys(range(16), Clock()), {rank: rank // 8 for rank in range(16)})
    assert times["late"][[1, 2]].all()
    verdict = stragglers.verdict_of(times, group)
    assert verdict["late_together"] == []
    assert {entry["pattern"] for entry in verdict["ranks"]} == {"none"}

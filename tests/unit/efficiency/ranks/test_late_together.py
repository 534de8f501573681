"""Ranks that are late in the same collectives: whom they hold up, and what they cost beside a run without them."""

import json

import duckdb
import numpy as np
import pytest

from causeway.core.clock import Clock
from causeway.core.formatting import time_three_digits
from causeway.efficiency.ranks import stragglers
from causeway.efficiency.ranks.collectives import MatchedCollectives
from causeway.findings.device_time.stragglers import straggler_findings

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


def test_a_slow_node_is_named_as_one(tmp_path, monkeypatch):
    """Four of 16 ranks need 160 us more, each time: every one of them is late in all 60, though each is the last in
    about 15, and without one of them nearly nothing is gained.
    """
    start, end = played(dict.fromkeys(NODE, 160_000))
    document = judged(start, end)
    (group,) = document["groups"]
    patterns = ["persistent" if rank in NODE else "none" for rank in range(16)]
    assert [entry["pattern"] for entry in group["ranks"]] == patterns
    assert [entry["collectives"] for entry in group["ranks"]] == [60 * (rank in NODE) for rank in range(16)]
    assert sum(entry["last_collectives"] for entry in group["ranks"]) >= 59  # two may be last at once
    together, waited = cost(start, NODE)
    assert group["late_together"] == [
        {"ranks": list(NODE), "collectives": 60, "waiting_for_them_ns": waited, "together_ns": together}
    ]
    saved = int(end[-1] - played({})[1][-1])
    assert saved <= together < 1.05 * saved
    for rank in NODE:
        rest = {other: 160_000 for other in NODE if other != rank}
        alone = group["ranks"][rank]["alone_ns"]
        assert alone == cost(start, (rank,))[0]
        assert 0 <= int(end[-1] - played(rest)[1][-1]) <= alone < together / 20
    assert group["reason"] == "ranks 8, 9, 10, 11 are late beyond the threshold together in 100 % of the collectives"
    (finding,) = straggler_findings(document)
    assert (finding.subject, finding.verdict, finding.worth.ns) == ("ranks 8, 9, 10, 11", "supported", waited)
    assert finding.recoverable_ns == 16 * together
    assert finding.sentence == (
        f"Ranks 8, 9, 10, 11 are late together beyond the threshold in 60 of 60 collectives; the others wait"
        f" {time_three_digits(waited)} for them in all. Were none of them late, each of the 16 ranks would save up to"
        f" {time_three_digits(together)}."
    )
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "stragglers.json").write_text(json.dumps(document))
    monkeypatch.chdir(tmp_path)
    asked = duckdb.connect()
    assert asked.sql(finding.recoverable_query).fetchall() == [(finding.recoverable_ns,)]
    assert asked.sql(finding.evidence.query).fetchall() == [(waited,)]


def test_the_latest_of_ranks_that_are_late_together_costs_more_alone():
    """Rank 2 is 400 us late, the node 160 us: without rank 2 240 us are saved each time, without all five 400 us."""
    start, end = played(dict.fromkeys(NODE, 160_000) | {2: 400_000})
    document = judged(start, end)
    (group,) = document["groups"]
    (row,) = group["late_together"]
    assert (row["ranks"], row["together_ns"]) == ([2, *NODE], cost(start, (2, *NODE))[0])
    both, alone = straggler_findings(document)
    assert (both.subject, alone.subject) == ("ranks 2, 8, 9, 10, 11", "rank 2")
    assert alone.recoverable_ns == 16 * cost(start, (2,))[0]
    saved = int(end[-1] - played(dict.fromkeys(NODE, 160_000))[1][-1])
    assert saved <= group["ranks"][2]["alone_ns"] < 1.01 * saved


@pytest.mark.parametrize("shared", [False, True])
def test_ranks_late_in_other_collectives_are_not_late_together(shared):
    """Ranks 1 and 2 are 300 us late in every sixth collective: in the same ones, or in others."""
    start, end = played({}, ranks=8)
    at = np.arange(COLLECTIVES)
    start[1, at % 6 == 0] += 300_000
    start[2, at % 6 == (0 if shared else 3)] += 300_000
    document = judged(start, np.maximum(end, start.max(axis=0) + 100_000))
    (group,) = document["groups"]
    assert [entry["pattern"] for entry in group["ranks"]] == ["none", "transient", "transient", *["none"] * 5]
    assert [row["ranks"] for row in group["late_together"]] == ([[1, 2]] if shared else [])
    subjects = [finding.subject for finding in straggler_findings(document)]
    assert ("ranks 1, 2" in subjects) == shared
    assert {"rank 1", "rank 2"} <= set(subjects)
    for rank in (1, 2):
        assert group["ranks"][rank]["alone_ns"] == cost(start, (rank,))[0]


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

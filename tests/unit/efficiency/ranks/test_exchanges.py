"""Send/receive kernels of an all-to-all are one exchange of all ranks, those of a pipeline are not: schedules written
by hand, from the tables to what a late rank costs.
"""

import numpy as np
import pytest
from efficiency_samples import CLASSES, clocks, export
from path_pieces import pieces_of

from causeway.core.clock import Clock
from causeway.core.tables import read_json
from causeway.efficiency.ranks import collectives
from causeway.efficiency.ranks.exchanges import left_together, with_exchanges
from causeway.efficiency.ranks.find_stragglers import find_stragglers
from causeway.efficiency.ranks.stragglers import analyse
from causeway.waiting.graph.graph_builder import Matched
from causeway.waiting.graph.linked_graph import linked_graph
from causeway.waiting.path.critical_path import CriticalPaths, measured
from causeway.waiting.path.path_table import keys_of, last_ranks_of
from causeway.waiting.replay.changes import changes
from causeway.waiting.replay.replayed import durations_of, replayed

US = 1000
STEP = 1000
ROUNDS = 6
SHIFTS = {0: 0, 1: 7_000_000, 2: -3_000_000}
"""What is added to each rank's own clock, ns."""
SEND = "ncclDevKernel_SendRecv"
LATE = 2


def all_to_all(number, rank):
    """Return begin and end of a rank's exchange, us: rank 2 computes for 500, the others for 200; then 50 for all."""
    return STEP * number + (500 if rank == LATE else 200), STEP * number + 550


def pipeline(number, rank):
    """Return begin and end of a rank's sends and receives, us: each stage of 400 waits for the one before it alone."""
    return STEP * number + 400 * rank, STEP * number + 400 * (rank + 1) - 10


def waiting_pipeline(number, rank):
    """As `pipeline`, with receives that are posted early: all overlap."""
    return STEP * number, STEP * number + 100 + 300 * rank


def written(folder, schedule, rounds=ROUNDS, **facts):
    """Write an export of each rank: a compute kernel up to each exchange, called when the one before has ended, and an
    all-reduce of 10 us at the end that all ranks leave together.
    """
    folders = []
    for rank, own in SHIFTS.items():
        kernels = []
        moment = 0
        for number in range(rounds):
            begin, end = schedule(number, rank)
            kernels += [(max(moment, STEP * number), begin, {}), (begin, end, {"kernel": SEND})]
            moment = end
        last = STEP * rounds + STEP
        kernels += [(last, last + 10, {"kernel": "ncclDevKernel_AllReduce"})]
        rows = [(US * start - own, US * end - own, one) for start, end, one in kernels if end > start]
        folders.append(export(folder / str(rank), rank, rows))
    clocks(
        folder / "clocks.json", {str(rank): own for rank, own in SHIFTS.items()}, **{"method": "session_start"} | facts
    )
    return folders


def judged(folder, folders):
    groups, notes = collectives.matched(folders)
    assert notes == []
    return with_exchanges(groups, read_json(folder / "clocks.json"))


def test_an_all_to_all_is_one_exchange_of_all_ranks(tmp_path):
    folders = written(tmp_path, all_to_all)
    (group,), notes = judged(tmp_path, folders)
    assert notes == []
    assert group.operations == ["exchange"] * ROUNDS + ["all_reduce"]
    ((ranks, start, size),) = left_together(folders, tmp_path / "clocks.json")
    assert ranks == [0, 1, 2]
    begins = [[US * all_to_all(number, rank)[0] - SHIFTS[rank] for number in range(ROUNDS)] for rank in ranks]
    assert start[:, :ROUNDS].tolist() == begins
    assert size.tolist() == [-1] * (ROUNDS + 1)


@pytest.mark.parametrize(("schedule", "operation"), [(all_to_all, "exchange"), (pipeline, "other")])
def test_kernels_whose_names_tell_no_operation_are_judged_by_their_times_too(
    tmp_path, monkeypatch, schedule, operation
):
    """RCCL runs each collective as ncclDevKernel_Generic: which rank was late stood nowhere."""
    monkeypatch.setitem(CLASSES, "ncclDevKernel_Generic_1", "communication")
    monkeypatch.setitem(globals(), "SEND", "ncclDevKernel_Generic_1")
    folders = written(tmp_path, schedule)
    (group,), notes = judged(tmp_path, folders)
    assert group.operations[:ROUNDS] == [operation] * ROUNDS
    assert bool(notes) == (operation == "other")


@pytest.mark.parametrize(
    ("schedule", "rounds", "facts", "said"),
    [
        (pipeline, ROUNDS, {}, "in 6 of them a rank ends before another begins, so not all take part in each"),
        (
            waiting_pipeline,
            ROUNDS,
            {},
            "their ends scatter by 300.0 µs, their starts by 0.0 µs, so ranks may not wait for all others",
        ),
        (all_to_all, ROUNDS, {"method": "zero"}, "the clocks of their exports are not aligned"),
        (all_to_all, 2, {}, "fewer than 3 do not tell whether all ranks take part"),
    ],
)
def test_others_stay_what_they_are_and_the_output_says_why(tmp_path, schedule, rounds, facts, said):
    folders = written(tmp_path, schedule, rounds=rounds, **facts)
    (group,), notes = judged(tmp_path, folders)
    assert group.operations == ["send_recv"] * rounds + ["all_reduce"]
    assert notes == [f"{rounds} sends and receives of each rank: {said}"]
    outs = tmp_path / "s.json", tmp_path / "s.parquet"
    find_stragglers("d", folders, tmp_path / "clocks.json", 1, *outs)
    assert notes[0] in read_json(outs[0])["notes"]
    ((_, start, _),) = left_together(folders, tmp_path / "clocks.json")
    assert start.shape[1] == 1


@pytest.mark.parametrize(("residual", "taken"), [(None, False), (4 * US, False), (5 * US, True)])
def test_kernels_may_seem_to_miss_each_other_by_what_two_clocks_leave_open(tmp_path, residual, taken):
    """The late rank begins 10 us after the others have ended, as one of two clocks is off by 5."""

    def schedule(number, rank):
        begin, end = all_to_all(number, rank)
        return (begin, end) if rank == LATE else (begin, 490 + STEP * number)

    folders = written(tmp_path, schedule, residual_ns=residual)
    (group,), _ = judged(tmp_path, folders)
    assert group.operations[0] == ("exchange" if taken else "send_recv")


def test_the_late_rank_of_exchanges_is_judged_as_of_other_collectives(tmp_path):
    folders = written(tmp_path, all_to_all)
    find_stragglers("d", folders, tmp_path / "clocks.json", 1, tmp_path / "s.json", tmp_path / "s.parquet")
    (group,) = read_json(tmp_path / "s.json")["groups"]
    assert group["collectives"] == ROUNDS + 1
    # ranks 0 and 1 wait 300 us for rank 2 in each round
    assert group["matrix_ns"][0][2] == group["matrix_ns"][1][2] == ROUNDS * 300 * US


@pytest.mark.parametrize("schedule", [all_to_all, pipeline])
def test_a_replay_keeps_the_wait_for_the_late_rank_of_an_exchange(tmp_path, schedule):
    """Exchanges without cost end when rank 2 has arrived, 500 us after a round began: the others' 300 us stay. Sends
    and receives of a pipeline, of which that is not known, take no time at all then.
    """
    folders = written(tmp_path, schedule)
    together = [Matched(*one) for one in left_together(folders, tmp_path / "clocks.json")]
    graph, links = linked_graph(folders, tmp_path / "clocks.json", together)[0]
    paths = CriticalPaths(graph, links)
    as_measured = measured(graph, links)
    plain = durations_of(graph, links)
    assert (replayed(graph, links, plain).end == as_measured.end).all()
    found = {one.word: one for one in changes(graph, links, plain, np.zeros(len(graph.texts), np.int64))}
    free = replayed(graph, links, found["collectives_free"].durations)
    sends = np.array([graph.texts[name] == SEND for name in graph.work.name])
    left = (free.end - free.start)[sends]
    rank = np.repeat(np.arange(3), np.diff(graph.work_of, axis=1)[:, 0])[sends]
    if schedule is pipeline:
        assert not left.any()
        return
    assert left[rank == LATE].tolist() == [0] * ROUNDS
    assert left[rank != LATE].tolist() == [300 * US] * (2 * ROUNDS)
    pieces = pieces_of(paths, as_measured, 0)
    number, keys = keys_of(graph, last_ranks_of(graph, as_measured), pieces)
    waits = next(at for at, key in enumerate(keys) if key[:2] == ("wait", f"rank 2 is late: {SEND}"))
    assert (pieces[number == waits, 1] - pieces[number == waits, 0]).sum() == ROUNDS * 300 * US


def test_what_clocks_leave_open_is_told_by_collectives_that_end_together():
    """Ends of three all-reduces lie 2 us apart, those of exchanges 40 us: half of it on either side of the middle."""
    start = np.tile(np.arange(6) * 1_000_000, (2, 1))
    end = start + 100_000 + np.array([[0], [1]]) * np.array([40_000, 2_000] * 3)
    words = ["exchange", "all_reduce"] * 3
    group = collectives.MatchedCollectives(None, [0, 1], start, end, words, np.full(6, -1))
    assert analyse(group, dict.fromkeys((0, 1), Clock()))["residual_ns"] == 1_000
    alone = collectives.MatchedCollectives(None, [0, 1], start[:, ::2], end[:, ::2], words[::2], np.full(3, -1))
    assert analyse(alone, dict.fromkeys((0, 1), Clock()))["residual_ns"] == 20_000

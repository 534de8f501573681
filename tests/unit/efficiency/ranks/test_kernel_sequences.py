"""Kernels of unknown communicators on several streams and devices, and communicators of which not all ranks were read,
beside matches that are known.
"""

import numpy as np
import pytest
from efficiency_samples import clocks, event, export, rank_collectives

from causeway.core.tables import read_json, read_table
from causeway.efficiency.ranks import collectives
from causeway.efficiency.ranks.collective_sizes import summarise_collectives
from causeway.efficiency.ranks.find_stragglers import find_stragglers

US = 1_000
STEPS = 40


def of_lanes(rows):
    """Return the collectives of a rank: rows are (start, end, device, stream), in any order."""
    rows = sorted(rows)
    device, stream = (np.array([row[at] for row in rows]) for at in (2, 3))
    table = [(start, end, "ncclDevKernel_AllReduce", None, None, -1) for start, end, *_ in rows]
    return rank_collectives(table, device=device, stream=stream)


def two_streams(ranks=4):
    """Return starts by rank and stream, ns: two communicators whose kernels start within 4 us, in either order, rank 2
    300 us later; and the rows of each rank.
    """
    random = np.random.default_rng(51)
    start = np.arange(STEPS) * 4_000 * US + random.integers(0, 4 * US, (2, ranks, STEPS))
    start[:, 2] += 300 * US
    end = start.max(axis=1, keepdims=True) + np.array([100, 1500])[:, None, None] * US + np.zeros_like(start)
    rows = {
        rank: [
            (start[at, rank, step], end[at, rank, step], 0, 20 + at + 5 * rank)
            for at in (0, 1)
            for step in range(STEPS)
        ]
        for rank in range(ranks)
    }
    return start, rows


def test_streams_are_matched_each_whatever_their_numbers():
    start, rows = two_streams()
    groups, notes = collectives.match([{rank: of_lanes(own)} for rank, own in rows.items()])
    assert notes == []
    assert [group.start.tolist() for group in groups] == start.tolist()
    assert [group.communicator for group in groups] == [None, None]


def test_streams_that_ranks_do_not_all_have_are_refused_with_a_reason():
    _, rows = two_streams()
    rows[3] = [(begin, end, 0, 7) for begin, end, *_ in rows[3]]
    groups, notes = collectives.match([{rank: of_lanes(own)} for rank, own in rows.items()])
    assert groups == []
    assert notes == [
        "kernels of unknown communicators: ranks have collectives on 1 to 2 streams, which run at once: which belong"
        " together cannot be told"
    ]


def test_kernels_that_never_run_at_once_are_one_sequence_where_streams_differ():
    own = [(at * 1_000, at * 1_000 + 500, 0, at % 2) for at in range(10)]
    other = [(at * 1_000 + 7, at * 1_000 + 500, 0, 3) for at in range(10)]
    (group,), notes = collectives.match([{0: of_lanes(own)}, {1: of_lanes(other)}])
    assert notes == []
    assert group.start.tolist() == [[at * 1_000 for at in range(10)], [at * 1_000 + 7 for at in range(10)]]


def test_one_stream_that_does_not_match_leaves_the_other():
    start, rows = two_streams(2 + 1)
    lost = sorted(one[:2] for one in rows[1] if one[3] == 26)[STEPS // 2]
    rows[1] = [row for row in rows[1] if row[:2] != lost]
    groups, notes = collectives.match([{rank: of_lanes(own)} for rank, own in rows.items()])
    assert [group.start.tolist() for group in groups] == [start[0].tolist()]
    assert notes == [
        "kernels of unknown communicators: ranks have 39 to 40 collectives, or not the same ones in order, and no numbers"
    ]


@pytest.mark.parametrize(("first", "last"), [(7, STEPS), (0, STEPS - 7)], ids=["begins late", "ends early"])
def test_what_a_rank_did_not_record_leaves_the_rest(first, last):
    """Its clock differs by 3 s: the ends of the others' collectives tell which it recorded."""
    start, rows = two_streams()
    rows[1] = [(begin + 3 * 10**9, end + 3 * 10**9, *more) for begin, end, *more in rows[1]]
    for stream in (25, 26):
        own = sorted(row for row in rows[1] if row[3] == stream)
        rows[1] = [row for row in rows[1] if row[3] != stream] + own[first:last]
    groups, notes = collectives.match([{rank: of_lanes(own)} for rank, own in rows.items()])
    start[:, 1] += 3 * 10**9
    assert [group.start.tolist() for group in groups] == start[:, :, first:last].tolist()
    assert notes == 2 * ["kernels of unknown communicators: 7 collectives of some ranks were not recorded by others"]


def test_steps_of_equal_length_do_not_tell_which_were_recorded():
    own = [(at * 1_000_000, at * 1_000_000 + 500, 0, 1) for at in range(30)]
    groups, notes = collectives.match([{0: of_lanes(own)}, {1: of_lanes(own[1:])}])
    assert groups == []
    assert notes == [
        "kernels of unknown communicators: ranks have 29 to 30 collectives, or not the same ones in order, and no numbers"
    ]


def devices(together):
    """Return the rows of two ranks with two devices: device 1 of rank 1 is 1 ms late. All four leave each collective
    together, or device 0 with device 0 and device 1 with device 1, each pair when its last one has come.
    """
    random = np.random.default_rng(52)
    start = np.arange(STEPS) * 6_000 * US + random.integers(0, 3 * US, (2, 2, STEPS))
    start[1, 1] += 1_000 * US
    last = start.max(axis=(0, 1), keepdims=True) if together else start.max(axis=0, keepdims=True)
    end = last + 200 * US + np.zeros_like(start)
    rows = {
        rank: [
            (start[rank, device, step], end[rank, device, step], device, 9 + 100 * device)
            for device in (0, 1)
            for step in range(STEPS)
        ]
        for rank in (0, 1)
    }
    return start, end, rows


def test_devices_that_leave_together_are_one_member_of_a_collective():
    start, end, rows = devices(together=True)
    (group,), notes = collectives.match([{rank: of_lanes(own)} for rank, own in rows.items()])
    assert notes == []
    assert group.start.tolist() == start.max(axis=1).tolist()
    assert group.end.tolist() == end[:, 0].tolist()


def test_devices_that_do_not_are_matched_each():
    start, _, rows = devices(together=False)
    groups, notes = collectives.match([{rank: of_lanes(own)} for rank, own in rows.items()])
    assert notes == []
    assert [group.start.tolist() for group in groups] == [start[:, device].tolist() for device in (0, 1)]


@pytest.mark.parametrize("together", [True, False])
def test_exports_of_ranks_with_two_devices(tmp_path, together):
    """Rank 1 is late by 1 ms in all 40 steps, and nobody's transfers are slow; no collective is counted twice."""
    start, _, rows = devices(together)
    kernel = "ncclDevKernel_AllReduce"
    folders = []
    for rank, own in rows.items():
        events = [(int(a), int(b), {"kernel": kernel, "device": d, "stream": s}) for a, b, d, s in own]
        folders.append(export(tmp_path / str(rank), rank, events))
    clocks(tmp_path / "clocks.json", {"0": 0, "1": 0})
    out = tmp_path / "s.json", tmp_path / "s.parquet"
    find_stragglers("d", folders, tmp_path / "clocks.json", 1, *out)
    groups = read_json(out[0])["groups"]
    last = start.max(axis=1) if together else start[:, 1]
    assert [group["verdict"] for group in groups] == ["straggler"] if together else ["inconclusive", "straggler"]
    assert groups[-1]["ranks"][1]["alone_ns"] == (last[1] - last[0]).sum()
    assert groups[-1]["waiting_ns"] == np.abs(last[1] - last[0]).sum()
    summarise_collectives("d", folders, tmp_path / "clocks.json", tmp_path / "c.parquet")
    (row,) = read_table(tmp_path / "c.parquet", "collective_sizes").to_pylist()
    assert (row["matched"], row["collectives"]) == (True, STEPS if together else 2 * STEPS)


@pytest.mark.parametrize("size", [2, 64])
def test_part_of_a_communicator_s_ranks(tmp_path, size):
    """An all-reduce of 256 MiB in 2 ms over 64 ranks, of which two were read: by nccl-tests' factor 2 (n - 1) / n."""
    bytes_ = 256 << 20
    folders = []
    for rank in (0, 1):
        begin = [step * 5_000 * US + rank * 10 * US for step in range(STEPS)]
        ends = [step * 5_000 * US + 2_010 * US for step in range(STEPS)]
        kernels = [(a, b, {"kernel": "ncclDevKernel_AllReduce"}) for a, b in zip(begin, ends, strict=True)]
        table = [
            event(a, b, rank=rank, name="allreduce", communicator="0", sequence=at, bytes=bytes_, group_size=size)
            for at, (a, b, _) in enumerate(kernels)
        ]
        folders.append(export(tmp_path / str(rank), rank, kernels, collectives=table))
    clocks(tmp_path / "clocks.json", {"0": 0, "1": 0})
    out = tmp_path / "s.json", tmp_path / "s.parquet"
    find_stragglers("d", folders, tmp_path / "clocks.json", 1, *out)
    bus = bytes_ / 2_000_000 * 2 * (size - 1) / size
    found = [row["bus_gb_per_s"] for row in read_table(out[1], "stragglers").to_pylist()]
    assert found == pytest.approx([bus] * STEPS, rel=1e-12)
    (group,), _ = collectives.matched(folders)
    assert group.left_together()[2].tolist() == [int(bytes_ * (2 * (size - 1) / size))] * STEPS
    notes = [note for note in read_json(out[0])["notes"] if "were read" in note]
    assert notes == (
        []
        if size == 2
        else [
            "communicator 0: 2 of its 64 ranks were read: these are held against one another, and transfers may hold"
            " waits for the others"
        ]
    )
    summarise_collectives("d", folders, tmp_path / "clocks.json", tmp_path / "c.parquet")
    rows = read_table(tmp_path / "c.parquet", "collective_sizes").to_pylist()
    assert [(row["matched"], row["collectives"]) for row in rows] == [(size == 2, STEPS if size == 2 else 2 * STEPS)]

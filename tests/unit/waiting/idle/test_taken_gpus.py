"""GPUs that several ranks share, and turns of other processes: what each nanosecond of their time was."""

import itertools
from collections import Counter

import numpy as np
import pytest
from tests.unit.waiting.waiting_samples import write, write_export

from causeway.core.codes import BEFORE_RANK, BEHIND_RANK, BESIDE_RANK
from causeway.core.tables import read_table, table_metadata, write_json
from causeway.core.vocabulary import NOT_IDLE
from causeway.waiting.explain_waiting import explain_waiting
from causeway.waiting.find_critical_paths import find_critical_paths


def rank_rows(random, rank, ranks):
    """Return launches of a rank that never overlap those of the other ranks, and the calls that made them."""
    launches = []
    calls = []
    for number in range(20):
        slot = 400 * number + 400 * rank // ranks
        start = slot + int(random.integers(0, 40))
        duration = int(random.integers(10, 60))
        ahead = int(random.integers(1, 600))
        call = {
            "start_ns": max(start - ahead, 0),
            "duration_ns": 1,
            "rank": rank,
            "thread": 1,
            "name": "cudaLaunchKernel",
        }
        calls.append(call | {"correlation": number})
        launches.append({"start_ns": start, "duration_ns": duration, "rank": rank, "stream": 7, "correlation": number})
    return launches, calls


def export(folder, ranks, seed, gpu="0", contexts=()):
    random = np.random.default_rng(seed)
    each = [rank_rows(random, rank, ranks) for rank in range(ranks)]
    tables = {"launches": [row for one, _ in each for row in one], "calls": [row for _, one in each for row in one]}
    tables |= {"other_contexts": list(contexts)}
    write_export(folder, tables)
    rows = [{"rank": rank, "device": 0, "gpu": gpu} for rank in range(ranks)]
    write(folder, "devices", rows)
    write_json(
        {"method": "single", "exports": {"e0": {"shift_ns": 0, "ranks": list(range(ranks))}}}, folder / "clocks.json"
    )
    return tables


def waiting_rows(folder):
    explain_waiting("d", [folder], folder / "clocks.json", None, folder / "waiting.parquet")
    return read_table(folder / "waiting.parquet", "waiting").to_pylist()


def busy_of(tables, rank=None):
    """Return whether work runs in each nanosecond."""
    found = np.zeros(9_000, bool)
    for row in tables["launches"]:
        if rank is None or row["rank"] == rank:
            found[row["start_ns"] : row["start_ns"] + row["duration_ns"]] = True
    return found


@pytest.mark.parametrize("ranks", [2, 3])
@pytest.mark.parametrize("seed", range(6))
def test_a_shared_gpu_is_idle_once_and_ranks_wait_for_each_other(ranks, seed, tmp_path):
    """Each nanosecond is looked at: the GPU is idle where nobody works, and that counts in the row of one rank."""
    tables = export(tmp_path, ranks, seed)
    rows = waiting_rows(tmp_path)
    everyone = busy_of(tables)
    idle = waits = 0
    for rank in range(ranks):
        own = [row for row in tables["launches"] if row["rank"] == rank]
        spans = [(row["start_ns"], row["start_ns"] + row["duration_ns"], row["correlation"]) for row in own]
        mine = busy_of(tables, rank)
        calls = {row["correlation"]: row["start_ns"] + 1 for row in tables["calls"] if row["rank"] == rank}
        whole = 0
        for (_, before, _), (start, _, number) in itertools.pairwise(spans):
            gap = np.arange(before, start)
            others = everyone[gap] & ~mine[gap]
            last = gap[others].max() if others.any() else before - 1
            idle += int((gap > last).sum())
            waits += int((others & (gap >= calls[number])).sum())
            whole += gap.size
        assert sum(row["wait_ns"] for row in rows if row["rank"] == rank and row["reason"] not in NOT_IDLE[1:]) == whole
    assert sum(row["wait_ns"] for row in rows if row["reason"] not in NOT_IDLE) == idle
    by_detail = Counter()
    for row in rows:
        by_detail[row["detail"]] += row["wait_ns"]
    assert by_detail[BEHIND_RANK] == waits
    assert {row["detail"] for row in rows if row["reason"] == "shared_gpu"} <= {BEHIND_RANK, BESIDE_RANK, BEFORE_RANK}


def test_ranks_on_gpus_of_their_own_or_unknown_ones_do_not_share(tmp_path):
    for at, gpu in enumerate((None, "")):
        export(tmp_path / str(at), 2, 1, gpu)
        assert not [row for row in waiting_rows(tmp_path / str(at)) if row["reason"] == "shared_gpu"]


def test_the_path_of_a_shared_gpu_says_whose_turn_it_is_and_nothing_is_replayed(tmp_path):
    tables = export(tmp_path, 2, 3)
    outs = [tmp_path / f"{name}.parquet" for name in ("path", "replay", "pieces")]
    find_critical_paths("d", [tmp_path], tmp_path / "clocks.json", None, [], *outs)
    rows = read_table(outs[0], "critical_path").to_pylist()
    turns = [row for row in rows if row["name"] == "behind work of another rank on the same GPU"]
    assert {row["kind"] for row in turns} == {"wait"}
    assert sum(row["path_ns"] for row in turns) <= sum(row["duration_ns"] for row in tables["launches"])
    assert read_table(outs[1], "replay").num_rows == 0
    assert "ranks share a GPU" in table_metadata(outs[1])["why"]


def test_the_turn_of_another_process_is_the_reason_of_what_was_queued_alone(tmp_path):
    launch = {"rank": 0, "stream": 7}
    launches = [
        launch | {"start_ns": s, "duration_ns": 10_000, "correlation": at} for at, s in enumerate((0, 100_000, 400_000))
    ]
    asked = (-5_000, 2_000, 380_000)  # the second is queued, the third late
    calls = [
        {"start_ns": s, "duration_ns": 1_000, "rank": 0, "thread": 1, "name": "cudaLaunchKernel", "correlation": at}
        for at, s in enumerate(asked)
    ]
    turns = [
        {"start_ns": s, "duration_ns": n, "rank": 0, "device": 0, "process": pid}
        for s, n, pid in ((20_000, 50_000, 77), (200_000, 90_000, None))
    ]
    write_export(tmp_path, {"launches": launches, "calls": calls, "other_contexts": turns})
    write_json({"exports": {"e0": {"shift_ns": 0, "ranks": [0]}}}, tmp_path / "clocks.json")
    rows = waiting_rows(tmp_path)
    assert [(row["detail"], row["wait_ns"]) for row in rows if row["reason"] == "other_process"] == [
        ("process 77", 50_000)
    ]
    idle = sum(row["wait_ns"] for row in rows if row["reason"] not in NOT_IDLE)
    assert idle == (100_000 - 10_000) + (400_000 - 110_000), "the time of the other process is idle time of this one's"

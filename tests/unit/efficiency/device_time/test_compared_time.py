"""The time in which ranks are compared: waiting before the first and after the last kernel counts, time that was not
recorded does not.
"""

import numpy as np
import pytest
from efficiency_samples import clocks, export

from causeway.core.tables import read_json
from causeway.core.vocabulary import BALANCE, ORCHESTRATION, PARALLEL
from causeway.efficiency.measure_efficiency import measure_efficiency

CHOICES = {"bins": 10, "regions": 5}


def measured(tmp_path, folders, shifts=None, **more):
    clocks(tmp_path / "clocks.json", shifts or {folder.name: 0 for folder in folders}, **more)
    measure_efficiency(
        "d", folders, tmp_path / "clocks.json", CHOICES, tmp_path / "efficiency.json", tmp_path / "efficiency.parquet"
    )
    return read_json(tmp_path / "efficiency.json")


def one_after_the_other(tmp_path, hosts=True):
    """Four ranks: rank r computes for 90 of the 100 ns from 100 r on, in two kernels, and is in MPI before and after,
    from -20 to 430.
    """
    folders = []
    for rank in range(4):
        begin = 100 * rank
        kernels = [(begin, begin + 45), (begin + 55, begin + 100)]
        mpi = [(-20, begin - 5), (begin + 105, 430)] if rank else [(-20, -5), (105, 430)]
        folders.append(export(tmp_path / str(rank), rank, kernels, mpi=mpi * hosts))
    return folders


def test_ranks_that_wait_for_one_another_are_not_efficient(tmp_path):
    document = measured(tmp_path, one_after_the_other(tmp_path))
    assert document["elapsed_ns"] == 400
    tree = document["device"]
    assert (tree[PARALLEL], tree[BALANCE], tree[ORCHESTRATION]) == (360 / 1600, 1.0, 90 / 400)
    assert document["waterfall_ns"] == {
        "useful": 360,
        "communication": 0,
        "transfers": 0,
        "orchestration": 1240,
        "outside": 0,
    }
    assert [tree["ranks"][str(rank)][PARALLEL] for rank in range(4)] == [0.225] * 4
    assert [document["breakdown"][f"{rank}/0"]["idle_ns"] for rank in range(4)] == [310] * 4
    host = document["host"]  # within 0 to 400: 295, 95 + 195, 195 + 95, 295
    assert (host["mpi_ns"], host["mpi_parallel_efficiency"]) == (1170, pytest.approx(1 - 1170 / 1600))
    assert (host["mpi_communication_efficiency"], host["useful_ns"]) == (pytest.approx(110 / 400), 430)
    (note, *_) = document["notes"]  # 15 + 30, 20 + 30, 20 + 30, 20 + 25
    assert note.startswith("ranks are in MPI for 190 ns, summed over threads, before and after the time")


@pytest.mark.parametrize(("hosts", "method"), [(False, "session_start"), (True, "zero")])
def test_where_recordings_cannot_be_compared_each_rank_counts_by_itself(tmp_path, hosts, method):
    document = measured(tmp_path, one_after_the_other(tmp_path, hosts), method=method)
    assert (document["elapsed_ns"], document["device"][PARALLEL]) == (100, 0.9)
    why = "clocks of ranks are not aligned" if hosts else "no host calls are recorded of ranks 0, 1, 2, 3"
    assert document["notes"][0] == (
        f"{why}: each rank counts from its own first to its own last GPU work, and what it waits before and after it is"
        " not known"
    )


def steps(folder, rank, count, region=True, **more):
    """Write an export of a rank that computes for 80 of the 100 ns of each step, and calls for 10."""
    begins = range(0, 100 * count, 100)
    ranges = [(begin, begin + 100, {"name": "work"}) for begin in begins] * region
    kernels = [(begin + 10, begin + 90) for begin in begins]
    return export(
        folder / str(rank), rank, kernels, calls=[(begin, begin + 10) for begin in begins], ranges=ranges, **more
    )


def test_what_was_not_recorded_is_no_imbalance(tmp_path):
    """Rank 2 was recorded for 4 of 8 steps, up to 400: 310 + 70 of 80 ns of each kernel lie in 10 to 400."""
    document = measured(tmp_path, [steps(tmp_path, 0, 8), steps(tmp_path, 1, 8), steps(tmp_path, 2, 4)])
    tree = document["device"]
    assert (document["elapsed_ns"], tree["kernel_ns"]) == (390, 3 * 320)
    assert (tree[BALANCE], tree[PARALLEL]) == (1.0, pytest.approx(320 / 390))
    assert document["waterfall_ns"]["outside"] == document["roles"]["within_ns"] == 0
    region = tree["regions"]["work"]
    assert (region["elapsed_ns"], region["kernel_ns"], region[BALANCE]) == (390, 3 * 320, 1.0)
    host = document["host"]  # three of its four calls lie in the time
    assert (host["gpu_ns"], host["useful_ns"]) == (3 * 30, 3 * 360)
    assert [host["ranks"][str(rank)]["useful_ns"] for rank in range(3)] == [360] * 3
    assert document["notes"][0] == (
        "ranks are compared in the time that all recordings cover: 390 ns of the 780 ns of GPU work lie outside, where"
        " nothing is recorded of rank 2; if not their recordings but their processes are shorter, what their GPUs are"
        " idle there is in no loss"
    )
    assert (document["launch_path"]["launches"], document["origin_ns"]) == (20, 10)  # launches are counted whole


@pytest.mark.parametrize(("ends", "named"), [(1000, None), (989, "rank 1"), (500, "rank 1")])
def test_what_barely_lacks_in_a_recording_is_not_said(tmp_path, ends, named):
    """GPU work lasts from 0 to 1,000; rank 2 records nothing of the last 10 ns, which is 1 % of it."""
    folders = [
        export(tmp_path / str(rank), rank, [(0, 400), (min(stop, 900), stop)], calls=[(0, 5), (stop - 5, stop)])
        for rank, stop in enumerate((1000, ends, 990))
    ]
    document = measured(tmp_path, folders)
    assert document["elapsed_ns"] == min(ends, 990)
    notes = [note for note in document["notes"] if "all recordings cover" in note]
    assert [note.split("recorded of ")[1].split(";")[0] for note in notes] == ([named] if named else [])


def test_recordings_with_little_in_common_are_not_cut_to_it(tmp_path):
    late = export(tmp_path / "1", 1, [(740, 790), (900, 990)], calls=[(740, 1000)])
    document = measured(tmp_path, [steps(tmp_path, 0, 8), late])
    assert (document["elapsed_ns"], document["device"]["kernel_ns"]) == (780, 8 * 80 + 140)
    assert document["notes"][0].startswith("the recordings of the ranks have 60.0 ns of 980 ns in common: each rank")


def test_the_time_of_ranks_that_share_a_gpu_is_the_common_one(tmp_path):
    """Both ranks' kernels lie in the same time: K is that of one; the first is recorded for twice as long."""
    folders = [steps(tmp_path, rank, count, identity="g1") for rank, count in ((0, 8), (1, 4))]
    document = measured(tmp_path, folders)
    tree = document["device"]
    assert (tree["n_devices"], tree["elapsed_ns"], tree["kernel_ns"]) == (1, 390, 320)
    assert (tree["regions"]["work"]["elapsed_ns"], document["shared"][0]["at_once_ns"]) == (390, 320)


def test_one_rank_keeps_its_own_time(tmp_path):
    document = measured(tmp_path, [export(tmp_path / "0", 0, [(10, 40), (50, 60)], calls=[(0, 5), (70, 90)])])
    assert (document["elapsed_ns"], document["device"][PARALLEL], document["notes"]) == (50, 0.8, [])


def test_a_single_event_in_a_recorded_time_has_an_efficiency(tmp_path):
    """Alone, its length would be all that is known."""
    brief = export(tmp_path / "1", 1, [(200, 278)], calls=[(0, 900)])
    tree = measured(tmp_path, [steps(tmp_path, 0, 8), brief])["device"]["ranks"]["1"]
    assert (tree["elapsed_ns"], tree[PARALLEL]) == (780, 0.1)


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(8, 25))])
def test_random_runs_beside_a_count_of_nanoseconds(tmp_path, seed):
    """Each rank's events and calls lie anywhere; clocks are shifted. Every nanosecond of the time line is looked at."""
    random = np.random.default_rng(seed)
    folders = []
    shifts = {}
    busy = np.zeros((3, 1000), bool)
    spans = []
    recordings = []
    in_mpi = np.zeros((3, 1000), bool)
    for rank in range(3):
        shift = int(random.integers(-50, 50))
        low = int(random.integers(50, 400))
        high = int(random.integers(low + 100, 900))
        edges = np.sort(random.integers(low, high, (int(random.integers(1, 5)), 2)), axis=1)
        edges[:, 1] += 1
        mpi = np.sort(random.integers(low - 50, high + 50, (2, 2)), axis=1)
        for table, row in ((edges, busy[rank]), (mpi, in_mpi[rank])):
            for start, end in table:
                row[start:end] = True
        spans.append((edges[:, 0].min(), edges[:, 1].max()))
        recordings.append((min(mpi[:, 0].min(), spans[-1][0]), max(mpi[:, 1].max(), spans[-1][1])))
        own = [[(int(start) - shift, int(end) - shift) for start, end in table] for table in (edges, mpi)]
        folders.append(export(tmp_path / str(rank), rank, own[0], mpi=own[1]))
        shifts[str(rank)] = shift
    document = measured(tmp_path, folders, shifts)
    whole = np.zeros(1000, bool)
    whole[min(begin for begin, _ in spans) : max(end for _, end in spans)] = True
    compared = whole.copy()
    for begin, end in recordings:
        compared[:begin] = False
        compared[end:] = False
    outside = int((in_mpi & ~compared).sum())
    if compared.sum() * 10 >= whole.sum() and compared.any():
        assert document["elapsed_ns"] == compared.sum()
        assert [document["device"]["ranks"][str(rank)]["kernel_ns"] for rank in range(3)] == (
            (busy & compared).sum(axis=1).tolist()
        )
        assert document["host"]["mpi_ns"] == (in_mpi & compared).sum()
        assert document["host"]["useful_ns"] == (~in_mpi & compared).sum()
        assert any("are in MPI for" in note for note in document["notes"]) == (outside > 0)
        assert any("ranks are compared in the" in note for note in document["notes"]) == (compared.sum() < whole.sum())
    else:
        assert document["elapsed_ns"] == max(end - begin for begin, end in spans)
        assert any("in common: each rank counts" in note for note in document["notes"])

"""Recordings that begin apart: what ranks wait for until all are recorded is in no loss, and is stated."""

import numpy as np
import pytest
from efficiency_samples import clocks, export

from causeway.core.tables import read_json
from causeway.efficiency.measure_efficiency import measure_efficiency
from causeway.efficiency.ranks.find_stragglers import find_stragglers
from support import few

CHOICES = {"bins": 10, "regions": 5}
REDUCE = {"kernel": "ncclDevKernel_AllReduce"}
STEP = 100
STEPS = 10


def measured(tmp_path, folders, **more):
    clocks(tmp_path / "clocks.json", {folder.name: 0 for folder in folders}, **more)
    measure_efficiency(
        "d", folders, tmp_path / "clocks.json", CHOICES, tmp_path / "efficiency.json", tmp_path / "efficiency.parquet"
    )
    return read_json(tmp_path / "efficiency.json")


def opened_apart(tmp_path, begins, ends=None):
    """Write ranks whose recordings begin at `begins`, ns: each computes for 80 ns and reduces for 20 in each step; the
    first collective ends 100 ns after the last recording has begun, and all that come after it take 20 ns.
    """
    meet = max(begins) + STEP
    folders = []
    for rank, begin in enumerate(begins):
        kernels = [(begin, begin + 80), (begin + 80, meet, REDUCE)]
        for step in range(1, STEPS):
            at = meet + STEP * (step - 1)
            kernels += [(at, at + 80), (at + 80, at + STEP, REDUCE)]
        if ends is not None:
            kernels = [one for one in kernels if one[1] <= ends[rank]]
        stop = kernels[-1][1]
        folders.append(export(tmp_path / str(rank), rank, kernels, calls=[(begin, begin + 2), (stop - 2, stop)]))
    return folders


def test_it_waits_for_nobody_in_the_collectives_that_are_compared(tmp_path):
    folders = opened_apart(tmp_path, (0, 40_000, 200_000))
    measured(tmp_path, folders)
    out = tmp_path / "stragglers.json"
    find_stragglers("d", folders, tmp_path / "clocks.json", 1, out, tmp_path / "stragglers.parquet")
    document = read_json(out)
    (group,) = document["groups"]
    assert (group["collectives"], group["waiting_ns"], group["latest_ns"], group["waited_for"]) == (9, 0, 0, None)
    assert any("1 of 10 collectives began before all ranks were recorded" in note for note in document["notes"])


def test_a_collective_that_begins_a_little_before_a_recording_is_compared(tmp_path):
    """By no more than the 20 ns that it takes itself."""
    folders = []
    for rank, first_call in enumerate((0, 95)):
        kernels = [(STEP * step + 80, STEP * step + 100, REDUCE) for step in range(5)]
        folders.append(export(tmp_path / str(rank), rank, kernels, calls=[(first_call, 99), (450, 500)]))
    clocks(tmp_path / "clocks.json", {"0": 0, "1": 0})
    out = tmp_path / "stragglers.json"
    find_stragglers("d", folders, tmp_path / "clocks.json", 1, out, tmp_path / "stragglers.parquet")
    assert read_json(out)["groups"][0]["collectives"] == 5


def test_a_kernel_that_communicates_throughout_waits_for_no_recording(tmp_path):
    throughout = export(tmp_path / "0", 0, [(0, 2_000, REDUCE)], calls=[(0, 5), (1_990, 2_000)])
    other = export(tmp_path / "1", 1, [(1_000, 2_000, REDUCE)], calls=[(1_000, 1_005), (1_990, 2_000)])
    document = measured(tmp_path, [throughout, other])
    assert (document["elapsed_ns"], document["recordings"]["held_ns"]) == (1_000, {})


@pytest.mark.parametrize("seed", few(range(12), 4))
def test_random_openings_beside_a_count_of_nanoseconds(tmp_path, seed):
    random = np.random.default_rng(seed)
    begins = [int(one) for one in random.integers(0, 30_000, int(random.integers(2, 5)))]
    document = measured(tmp_path, opened_apart(tmp_path, begins))
    meet = max(begins) + STEP
    late = [begin for begin in begins if begin + 80 < max(begins)]
    window = np.arange(meet if late else max(begins), meet + 9 * STEP)
    communicates = (window < meet) & (window >= max(begins) + 80) | (window >= meet) & ((window - meet) % STEP >= 80)
    assert document["elapsed_ns"] == window.size
    assert document["breakdown"][f"{begins.index(max(begins))}/0"]["communication_ns"] == communicates.sum()

"""Kernels of unknown communicators: several sequences are told apart by name, and that their ranks may be of several
communicators is said.
"""

import numpy as np
import pytest
from efficiency_samples import clocks, export

from causeway.core.tables import read_json
from causeway.efficiency.ranks.find_stragglers import find_stragglers

US = 1_000
STEPS = 60
REDUCE = {"kernel": "ncclDevKernel_AllReduce"}


def judged(tmp_path, start, end, stream=None, apart=0):
    """Return `stragglers.json` of kernels by rank, ns; where clocks are apart, by so many ns, rank 1's drifts by 50 ppm
    besides.
    """
    folders = []
    for rank, (begins, stops) in enumerate(zip(start, end, strict=True)):
        own = [
            np.round(times * (1 + 5e-5 * (rank == 1 and apart > 0))).astype(np.int64) + apart * rank
            for times in (begins, stops)
        ]
        streams = [7] * len(begins) if stream is None else stream
        events = [
            (int(first), int(last), REDUCE | {"stream": number})
            for first, last, number in zip(*own, streams, strict=True)
        ]
        folders.append(export(tmp_path / str(rank), rank, sorted(events, key=lambda one: one[0])))
    clocks(tmp_path / "clocks.json", {str(rank): 0 for rank in range(len(start))})
    find_stragglers("d", folders, tmp_path / "clocks.json", 1, tmp_path / "s.json", tmp_path / "s.parquet")
    return read_json(tmp_path / "s.json")


@pytest.mark.parametrize("groups", [[[0, 1, 2, 3]], [[0, 1], [2, 3]]])
def test_whether_ranks_leave_together_tells_whether_they_may_be_one_communicator(groups, tmp_path):
    """Ranks arrive up to 100 us apart. Pairs of them leave together, or all do, 20 us after the last arrival."""
    random = np.random.default_rng(5)
    start = np.arange(STEPS) * 2_000 * US + random.integers(0, 100 * US, (4, STEPS))
    end = np.zeros_like(start)
    for members in groups:
        end[members] = start[members].max(axis=0) + 20 * US
    notes = [note for note in judged(tmp_path, start, end, apart=5_000 * US)["notes"] if "communicator" in note]
    assert len(notes) == (len(groups) > 1)
    for note in notes:
        assert note.startswith("unknown communicator: ends of collectives scatter by ")
        assert note.endswith(
            ", so not all ranks may take part in each: what is said of waits and late ranks holds for one communicator"
            " alone"
        )

"""Kernels of unknown communicators: several sequences are told apart by name, and that their ranks may be of several
communicators is said.
"""

import numpy as np
import pytest
from efficiency_samples import clocks, export

from causeway.core.tables import read_json
from causeway.efficiency.ranks.find_stragglers import find_stragglers
from causeway.findings.device_time.stragglers import straggler_findings
from causeway.plotting.figures.stragglers import sentences

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


def test_sequences_of_two_streams_are_told_apart(tmp_path):
    """On both streams rank 2 is 300 us late, and all ranks leave together: 80 us and 900 us after it."""
    random = np.random.default_rng(6)
    start = np.arange(STEPS) * 4_000 * US + random.integers(0, 3 * US, (2, 4, STEPS))
    start[:, 2] += 300 * US
    end = start.max(axis=1, keepdims=True) + np.array([80, 900])[:, None, None] * US + np.zeros_like(start)
    both = [np.concatenate(list(times), axis=1) for times in (start, end)]
    document = judged(tmp_path, *both, stream=[20] * STEPS + [21] * STEPS)
    assert [group["sequence"] for group in document["groups"]] == [1, 2]
    found = [finding.sentence for finding in straggler_findings(document) if finding.subject == "rank 2"]
    assert len(set(found)) == 2
    for number, sentence in enumerate(found, 1):
        assert f"in {STEPS} of {STEPS} collectives of sequence {number} (by device and stream), and late" in sentence
    assert sum(line.startswith("Collectives of sequence ") for line in sentences(document)) == 2


def test_a_single_sequence_needs_no_number(tmp_path):
    start = np.arange(STEPS) * 1_000 * US + np.array([[0], [10 * US]])
    document = judged(tmp_path, start, np.broadcast_to(start.max(axis=0) + 20 * US, start.shape))
    assert [group["sequence"] for group in document["groups"]] == [None]
    assert all("sequence" not in finding.sentence for finding in straggler_findings(document))

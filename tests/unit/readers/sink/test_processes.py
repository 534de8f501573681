"""Ranks of processes: the sheet's, the export's, or a rule's that an issue names."""

import numpy as np
import pytest

from causeway.readers.common.issues import Issues
from causeway.readers.sink.processes import MOST_RANKS, Processes


def launched(*devices):
    """Return processes with launches, each on its device."""
    processes = Processes()
    for key, device in enumerate(devices):
        code = processes.code(f"key {key}")
        processes.note(np.array([code]), np.array([device]), launches=True)
    return processes


@pytest.mark.parametrize(
    ("reported", "sheet", "expected", "issue"),
    [
        (None, None, (4, "position"), "rank_assumed"),
        (None, 7, (7, "sheet"), None),
        (2, None, (2, "export"), None),
        (2, 2, (2, "sheet"), None),
        (2, 7, (7, "sheet"), "rank_contradicts"),
        (-1, None, (4, "position"), "rank_assumed"),
        (MOST_RANKS, None, (4, "position"), "rank_assumed"),
        (10**30, None, (4, "position"), "rank_assumed"),
    ],
)
def test_one_process_is_one_rank(reported, sheet, expected, issue):
    processes = launched(0)
    processes.state_rank(0, reported)
    issues = Issues()
    ranks, origin = processes.ranks(sheet, 4, issues)
    assert (ranks.tolist(), origin) == ([expected[0]], expected[1])
    assert [entry["kind"] for entry in issues.as_list()] == ([issue] if issue else [])


def test_the_first_reported_rank_counts():
    processes = launched(0)
    for rank in (None, -3, 2, 9):
        processes.state_rank(0, rank)
    assert processes.ranks(None, 4, Issues())[0].tolist() == [2]


def test_several_processes_are_numbered_by_device_unless_all_report_ranks():
    processes = launched(3, 1)
    issues = Issues()
    ranks, origin = processes.ranks(None, 0, issues)
    assert (ranks.tolist(), origin) == ([1, 0], "export")
    assert issues.count("several_processes") == 2
    processes.state_rank(0, 5)
    assert processes.ranks(10, 0, Issues())[0].tolist() == [11, 10]  # one of two: not enough
    processes.state_rank(1, 8)
    assert processes.ranks(None, 0, Issues())[0].tolist() == [5, 8]


def test_a_process_without_gpu_work_beside_others_with_it_has_no_rank():
    processes = launched(0, 1)
    processes.code("only calls")
    assert processes.ranks(None, 0, Issues())[0].tolist() == [0, 1, -1]

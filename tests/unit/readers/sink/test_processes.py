"""Ranks of processes: the sheet's, the export's, or a rule's that an issue names."""

import numpy as np
import pytest
from reading import Read

from causeway.readers.common.issues import Issues
from causeway.readers.sink.processes import MOST_RANKS, Processes


def launched(*devices, keys=("key 0", "key 1", "key 2")):
    """Return processes with launches, each on its device."""
    processes = Processes()
    for key, device in zip(keys, devices, strict=False):
        code = processes.code(key)
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


def test_several_processes_are_numbered_by_device_where_none_reports_a_rank():
    processes = launched(3, 1)
    issues = Issues()
    ranks, origin = processes.ranks(None, 0, issues)
    assert (ranks.tolist(), origin) == ([1, 0], "export")
    assert issues.count("several_processes") == 2
    assert processes.ranks(10, 0, Issues())[0].tolist() == [11, 10]


def test_processes_of_which_some_have_no_number_are_numbered():
    processes = launched(0, 0, 0, keys=[(7, ("a",)), (None, ("b",)), (None, ("a",))])
    assert processes.ranks(None, 0, Issues())[0].tolist() == [2, 1, 0]


@pytest.mark.parametrize(
    ("reported", "sheet", "expected", "issues"),
    [
        ((5, 8, 2), None, ([5, 8, 2], "export"), {}),
        ((5, 8, 2), 8, ([5, 8, 2], "export"), {}),
        ((5, 8, 2), 4, ([5, 8, 2], "export"), {"rank_contradicts": 1}),
        ((5, None, 2), None, ([5, -1, 2], "export"), {"unranked_processes": 1}),
        ((None, 6, None), None, ([-1, 6, -1], "export"), {"unranked_processes": 2}),
        ((None, 6, None), 6, ([-1, 6, -1], "sheet"), {"unranked_processes": 2}),
        ((None, 6, None), 3, ([-1, 3, -1], "sheet"), {"unranked_processes": 2, "rank_contradicts": 1}),
        ((5, 5, None), None, ([0, 1, 2], "export"), {"rank_contradicts": 1, "several_processes": 3}),
        ((5, 5, None), 7, ([7, 8, 9], "sheet"), {"rank_contradicts": 1, "several_processes": 3}),
        ((MOST_RANKS, None, None), None, ([0, 1, 2], "export"), {"several_processes": 3}),
    ],
)
def test_of_several_processes_those_with_a_reported_rank_keep_it(reported, sheet, expected, issues):
    processes = launched(0, 1, 2)
    for code, rank in enumerate(reported):
        processes.state_rank(code, rank)
    found = Issues()
    ranks, origin = processes.ranks(sheet, 4, found)
    assert (ranks.tolist(), origin) == expected
    assert {entry["kind"]: entry["count"] for entry in found.as_list()} == issues


def test_processes_one_after_the_other_may_be_runs_and_it_is_said():
    processes = launched(0, 1, 2)
    # in two batches, of which the second has earlier launches of process 0, too
    for codes, starts in (([0, 1, 0], [500, 100, 900]), ([0, 2, 2], [50, 5_000_001_050, 5_000_000_960])):
        times = np.array(starts), np.full(3, 60)
        processes.note(np.array(codes), np.zeros(3, np.int64), launches=True, times=times)
    found = Issues()
    processes.ranks(None, 0, found)
    issues = {entry["kind"]: entry for entry in found.as_list()}
    assert issues["processes_in_turn"]["count"] == 1
    assert issues["processes_in_turn"]["detail"].endswith("gaps of up to 5.0 s")
    times = np.array([900]), np.array([5_000_000_100])
    processes.note(np.array([1]), np.array([1]), launches=True, times=times)
    found = Issues()
    processes.ranks(None, 0, found)
    assert not found.count("processes_in_turn")


def test_an_issue_names_few_of_many_ranks():
    processes = launched(*[0] * 3000)
    for code in range(3000):
        processes.state_rank(code, 5)
    found = Issues()
    processes.ranks(None, 0, found)
    assert max(len(entry["detail"]) for entry in found.as_list()) < 200


def test_a_process_without_gpu_work_beside_others_with_it_has_no_rank():
    processes = launched(0, 1)
    processes.code("only calls")
    assert processes.ranks(None, 0, Issues())[0].tolist() == [0, 1, -1]


def test_traces_of_several_runs_in_one_folder_are_said_to_be_in_turn(tmp_path):
    header = "Kind,Agent_Id,Queue_Id,Dispatch_Id,Kernel_Id,Kernel_Name,Correlation_Id,Start_Timestamp,End_Timestamp"
    folder = tmp_path / "runs"
    folder.mkdir()
    for number, name in enumerate(("small", "large")):
        begin = number * 60_000_000_000
        rows = [f"KERNEL_DISPATCH,4,1,{at},9,k,{at},{begin + 1000 * at},{begin + 1000 * at + 500}" for at in (1, 2)]
        (folder / f"{name}_kernel_trace.csv").write_text("\n".join([header, *rows]) + "\n")
    export = Read(folder, tmp_path / "t")
    assert export.count("several_processes") == 2
    assert export.issue("processes_in_turn")["severity"] == "caution"

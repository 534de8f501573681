"""A host that waits for a video engine is no late host: from the tables of Nsight Systems to the reason of idle time,
the critical path, the replay with a free host and what is suggested. Worked by hand.
"""

import sqlite3

import numpy as np
import pytest
from path_pieces import pieces_of
from reading import Read
from tests.unit.waiting.waiting_samples import write_export

from causeway.core.tables import write_json
from causeway.waiting.graph.linked_graph import linked_graph
from causeway.waiting.idle import export_pass
from causeway.waiting.idle.reason_words import NAMES
from causeway.waiting.path.critical_path import CriticalPaths, measured
from causeway.waiting.path.path_table import joined_pieces, keys_of, last_ranks_of
from causeway.waiting.replay.changes import changes
from causeway.waiting.replay.replayed import durations_of, replayed

US = 1000
PROCESS = 5 << 24


def test_calls_of_the_video_tables_are_calls_of_the_host(tmp_path):
    path = tmp_path / "report.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE StringIds (id, value)")
    connection.execute(
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, deviceId, streamId, globalPid, demangledName)"
    )
    connection.execute(f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 0, 7, {PROCESS}, 0)")
    names = ["k", "cudaLaunchKernel_v7000", "cuvidMapVideoFrame64", "NvEncLockBitstream", "nvjpegDecode"]
    names.append("NVDEC libraries profiling started")
    connection.executemany("INSERT INTO StringIds VALUES (?, ?)", enumerate(names))
    connection.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start, end, globalTid, correlationId, nameId)")
    connection.execute(f"INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1, 4, {PROCESS + 3}, 9, 1)")
    for at, table in enumerate(("DECODER", "ENCODER", "JPEG"), 2):
        connection.execute(f"CREATE TABLE NVVIDEO_{table}_API (start, end, globalTid, nameId)")
        connection.execute(f"INSERT INTO NVVIDEO_{table}_API VALUES ({10 * at}, {10 * at + at}, {PROCESS + at}, {at})")
        mark = f"({5 * at}, {5 * at}, {PROCESS + at}, 5)"  # when tracing began: no call
        connection.execute(f"INSERT INTO NVVIDEO_{table}_API VALUES {mark}")
    connection.commit()
    connection.close()
    calls = Read(path, tmp_path / "tables").calls.to_pylist()
    found = [tuple(row[name] for name in ("start_ns", "duration_ns", "thread", "name", "correlation")) for row in calls]
    assert found == [
        (1, 3, 3, "cudaLaunchKernel", 9),
        (20, 2, 2, "cuvidMapVideoFrame64", None),
        (30, 3, 3, "NvEncLockBitstream", None),
        (40, 4, 4, "nvjpegDecode", None),
    ]


def export(folder, name, outer=False):
    """Write kernels called from 0 to 5 us, which runs from 5 to 25, and from 300 to 305, which runs from 305 to 325;
    between them a call of 100 to 240, inside of one that parses from 90 to 260 where `outer`.
    """
    work = {"rank": 0, "device": 0, "stream": 7, "configuration": 0}
    launches = [
        work | {"start_ns": US * start, "duration_ns": 20 * US, "correlation": number}
        for number, start in enumerate((5, 305))
    ]
    made = [("cudaLaunchKernel", 0, 5, 0), (name, 100, 240, None), ("cudaLaunchKernel", 300, 305, 1)]
    made += [("cuvidParseVideoData", 90, 260, None)] * outer
    calls = [
        {"rank": 0, "thread": 1, "name": text, "correlation": number, "start_ns": US * start}
        | {"duration_ns": US * (end - start)}
        for text, start, end, number in made
    ]
    write_export(folder, {"launches": launches, "calls": calls})
    return folder


@pytest.mark.parametrize(
    ("name", "waits"),
    [
        ("cuvidMapVideoFrame64", True),
        ("cuvidDecodePicture", True),
        ("NvEncLockBitstream", True),
        ("nvEncEncodePicture", True),
        ("vpiStreamSync", True),
        ("cuvidDestroyDecoder", True),
        ("cuvidGetDecoderCaps", False),
        ("cuvidUnmapVideoFrame64", False),
        ("nvjpegDecode", False),
    ],
)
@pytest.mark.parametrize("outer", [False, True])
def test_idle_time_behind_an_engine_is_a_blocked_host(tmp_path, name, waits, outer):
    found = export_pass.explain_export(export(tmp_path / "e0", name, outer), {})
    each = {(NAMES[reason], found.texts[detail]): ns for (_, reason, detail), ns in found.totals.whole.items()}
    kind = ("blocked_host", name) if waits else ("launch_starved", f"in {name}")
    assert each[kind] == 140 * US
    assert sum(ns for (reason, _), ns in each.items() if reason == "blocked_host") == 140 * US * waits
    assert sum(each.values()) == 280 * US


@pytest.mark.parametrize(("name", "waits"), [("cuvidMapVideoFrame64", True), ("cuvidGetDecoderCaps", False)])
@pytest.mark.parametrize("outer", [False, True])
def test_a_free_host_still_waits_for_an_engine(tmp_path, name, waits, outer):
    """The first kernel runs from 0 to 20 then; the second one after the wait of 140, or 1 behind the first: the usual
    time between two kernels of a stream.
    """
    export(tmp_path / "e0", name, outer)
    write_json({"exports": {"e0": {"shift_ns": 0, "ranks": [0]}}}, tmp_path / "clocks.json")
    graph, links = linked_graph([tmp_path / "e0"], tmp_path / "clocks.json", [])[0]
    paths = CriticalPaths(graph, links)
    schedule = measured(graph, links)
    plain = durations_of(graph, links)
    found = {one.word: one for one in changes(graph, links, plain, np.zeros(len(graph.texts), np.int64))}
    free = replayed(graph, links, found["host_free"].durations)
    assert free.end.max() - free.start.min() == US * (160 if waits else 41)
    assert found["host_free"].naive_ns == US * (305 - 140 * waits)
    pieces = pieces_of(paths, schedule, 0)
    number, keys = keys_of(graph, last_ranks_of(graph, schedule), pieces)
    length = {key[:2]: int((pieces[number == at, 1] - pieces[number == at, 0]).sum()) for at, key in enumerate(keys)}
    if outer:
        assert length["host", "cuvidParseVideoData"] == 170 * US
    else:
        assert length["wait" if waits else "host", name] == 140 * US
        assert ("host" if waits else "wait", name) not in length
    assert sum(length.values()) == 325 * US
    begins, kinds = joined_pieces(pieces)
    assert (100 * US in begins.tolist()) == (waits and not outer)
    assert (np.diff(kinds) != 0).all()

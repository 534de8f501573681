"""Which files of a folder are one recording, which recordings are one run, and what is said of the rest."""

import gzip
import io
import json
import os
import sqlite3
import tarfile
import zipfile

import pytest

from causeway.command_line import __main__ as command
from causeway.command_line.analysis_folder import WRITTEN_BY, check_folder, write_analysis
from causeway.command_line.exports_found import dataset_name, find_exports, search_exports
from causeway.command_line.exports_without_sheet import exports_matching
from causeway.core.errors import CausewayError
from causeway.readers.archives import archive_kind, unpack_archive
from causeway.readers.recorded_span import recorded_span

SECOND_US = 1_000_000


def trace(path, rank=None, start_us=10, launches=3, base=None):
    """Write a Kineto trace of launches 100 µs apart."""
    path.parent.mkdir(parents=True, exist_ok=True)
    events = [
        {"ph": "X", "cat": "kernel", "name": "k", "ts": start_us + 100 * at, "dur": 5 + at, "pid": 0, "tid": 7}
        | {"args": {"device": 0, "stream": 7}}
        for at in range(launches)
    ]
    stated = {} if rank is None else {"distributedInfo": {"rank": rank, "world_size": 2}}
    based = {} if base is None else {"baseTimeNanoseconds": base}
    text = json.dumps({"schemaVersion": 1, **stated, "traceEvents": events, **based}).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)


def database(path, start=1000, session_s=None):
    """Write a database of Nsight Systems with three launches."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
        connection.execute("INSERT INTO StringIds VALUES (1, 'k')")
        connection.execute(
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER,"
            " correlationId INTEGER, globalPid INTEGER, demangledName INTEGER)"
        )
        rows = [(start + 100 * at, start + 100 * at + 7 + at, 0, 7, at, 5 << 24, 1) for at in range(3)]
        connection.executemany("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        if session_s is not None:
            connection.execute("CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER)")
            connection.execute("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (?)", [session_s * 10**9])
    connection.close()


def runs(*arguments, unpacked=None):
    """Return the ranks of each run, by name, by the names of the files."""
    found = {}
    for export in search_exports(map(str, arguments), unpacked).exports:
        found.setdefault(export.dataset, {})[export.path.name] = export.rank
    return found


def said(*arguments, unpacked=None):
    return search_exports(map(str, arguments), unpacked).remarks


# forms of one recording


@pytest.mark.parametrize(
    ("others", "best"),
    [
        (["report1.nsys-rep"], "report1.sqlite"),
        (["report1.db", "report1.qdrep"], "report1.sqlite"),
        (["report1.sqlite.gz"], "report1.sqlite"),
    ],
)
def test_a_report_and_what_was_made_of_it_are_one_export(tmp_path, monkeypatch, others, best):
    monkeypatch.setenv("PATH", "")
    database(tmp_path / "job" / "report1.sqlite")
    for name in others:
        if name.endswith("rep"):
            (tmp_path / "job" / name).write_bytes(b"\x00report")
        else:
            whole = (tmp_path / "job" / "report1.sqlite").read_bytes()
            (tmp_path / "job" / name).write_bytes(gzip.compress(whole) if name.endswith("gz") else whole)
    assert runs(tmp_path / "job") == {"report1": {best: None}}
    assert runs(*sorted((tmp_path / "job").iterdir())) == {"report1": {best: None}}
    assert said(tmp_path / "job")[0] == (
        f"report1: {best} is read; the same recording, not read: {', '.join(sorted(others))}"
    )
    assert [row.export for row in exports_matching(str(tmp_path / "job" / "*"))] == ["e0"]


def test_a_report_whose_tool_is_there_is_read_rather_than_a_list_of_it(tmp_path, monkeypatch):
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "a.nsys-rep").write_bytes(b"\x00report")
    (tmp_path / "job" / "a_cuda_gpu_trace.csv").write_text(
        "Start (ns),Duration (ns),CorrId,GrdX,BlkX,Device,Ctx,Strm,Name\n10,5,1,1,1,T4 (0),1,7,k\n"
    )
    (tmp_path / "job" / "a_cuda_gpu_kern_sum.csv").write_text("Time (%),Total Time (ns),Instances,Name\n100,5,1,k\n")
    monkeypatch.setenv("PATH", "")
    (export,) = find_exports([str(tmp_path / "job")])
    assert (export.path.name, [path.name for path in export.other_forms]) == ("job", ["a.nsys-rep"])
    tool = tmp_path / "bin" / "nsys"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tool.parent))
    assert runs(tmp_path / "job") == {"a": {"a.nsys-rep": None}}
    database(tmp_path / "job" / "a.sqlite")
    assert runs(tmp_path / "job") == {"a": {"a.sqlite": None}}
    (export,) = find_exports([str(tmp_path / "job")])
    assert sorted(path.name for path in export.other_forms) == [
        "a.nsys-rep",
        "a_cuda_gpu_kern_sum.csv",
        "a_cuda_gpu_trace.csv",
    ]


def test_a_report_that_is_younger_than_its_export_is_said(tmp_path):
    database(tmp_path / "a.sqlite")
    (tmp_path / "a.nsys-rep").write_bytes(b"\x00report")
    os.utime(tmp_path / "a.sqlite", (10, 10))
    assert "  a.nsys-rep was written after a.sqlite: if it was recorded anew, remove a.sqlite" in said(tmp_path)


def test_forms_of_ranks_leave_the_ranks(tmp_path):
    for rank in range(2):
        for ending in ("json", "json.gz"):
            trace(tmp_path / "job" / f"t_rank{rank}.{ending}")
    assert runs(tmp_path / "job") == {"job": {"t_rank0.json": 0, "t_rank1.json": 1}}


def test_files_of_other_tools_or_names_are_no_forms(tmp_path):
    database(tmp_path / "job" / "a.sqlite")
    trace(tmp_path / "job" / "a.json")
    trace(tmp_path / "job" / "b.pt.trace.json")
    trace(tmp_path / "job" / "b.json")
    found = runs(tmp_path / "job")
    assert sorted(name for run in found.values() for name in run) == ["a.json", "a.sqlite", "b.json", "b.pt.trace.json"]
    assert len(found) == 4


def test_other_forms_beside_tables_of_rocprofv3_are_named(tmp_path):
    header = "Kind,Agent_Id,Queue_Id,Kernel_Name,Correlation_Id,Start_Timestamp,End_Timestamp,Dispatch_Id\n"
    (tmp_path / "7_kernel_trace.csv").write_text(f"{header}KERNEL_DISPATCH,1,1,k,1,10,20,1\n")
    for name in ("7_results.json", "8_results.json"):
        (tmp_path / name).write_text('{"rocprofiler-sdk-tool": []}')
    (export,) = find_exports([str(tmp_path)])
    assert export.path == tmp_path
    assert [path.name for path in export.other_forms] == ["7_results.json"]


def test_copies_of_unlike_names_are_said_to_be_one_recording(tmp_path, capsys):
    database(tmp_path / "a.sqlite")
    (tmp_path / "b.db.gz").write_bytes(gzip.compress((tmp_path / "a.sqlite").read_bytes()))
    database(tmp_path / "c.sqlite", start=2000)
    assert command.main(["check", *(str(tmp_path / name) for name in ("a.sqlite", "b.db.gz", "c.sqlite"))]) == 0
    line = f"{tmp_path}/a.sqlite, {tmp_path}/b.db.gz: hold the same recording, so that there are not 2 runs to compare"
    printed = capsys.readouterr().out
    assert line in printed.splitlines()
    assert printed.count("hold the same recording") == 1
    assert command.main(["check", f"all={tmp_path}"]) == 0
    assert "note      exports hold the same recording, which would count once for each" in capsys.readouterr().out


# several recordings of one job


@pytest.mark.parametrize("ending", ["json", "json.gz"])
def test_cycles_of_ranks_are_grouped_by_time(tmp_path, ending):
    """Rank 1 has its clock 20 ms late, longer than its window; the names sort otherwise than the times."""
    for cycle in range(3):
        for rank in range(2):
            if (cycle, rank) != (1, 0):
                name = f"n{rank}_{100 + rank}.{1_700_000_000_000 + cycle * 1000}.pt.trace.{ending}"
                trace(tmp_path / "job" / name, rank, SECOND_US * (1 + cycle) + 20_000 * rank)
    found = runs(tmp_path / "job", unpacked=tmp_path / "u")
    assert {run: sorted(ranks.values()) for run, ranks in found.items()} == {
        "job_cycle_1": [0, 1],
        "job_cycle_2": [1],
        "job_cycle_3": [0, 1],
    }
    assert said(tmp_path / "job", unpacked=tmp_path / "u") == [
        "job: 2 ranks, recorded up to 3 times each, were grouped by the times at which they were recorded into the runs"
        " job_cycle_1, job_cycle_2, job_cycle_3"
    ]
    together = runs(f"mine={tmp_path / 'job'}", unpacked=tmp_path / "u")
    assert sorted(together) == ["mine_cycle_1", "mine_cycle_2", "mine_cycle_3"]


def test_two_jobs_in_one_folder_are_two_recordings(tmp_path):
    for job in range(2):
        for rank in range(2):
            trace(tmp_path / "job" / f"h{job}_{job}{rank}.pt.trace.json", rank, SECOND_US * (1 + 9 * job))
    assert [sorted(ranks) for ranks in runs(tmp_path / "job").values()] == [
        ["h0_00.pt.trace.json", "h0_01.pt.trace.json"],
        ["h1_10.pt.trace.json", "h1_11.pt.trace.json"],
    ]
    assert list(runs(tmp_path / "job")) == ["job_recording_1", "job_recording_2"]


def test_ranks_without_times_are_grouped_by_the_order_of_their_names(tmp_path):
    for name, rank in (("a.1", 0), ("a.2", 0), ("b.1", 1), ("b.2", 1)):
        trace(tmp_path / "job" / f"{name}.json", rank, launches=0)
    assert list(runs(tmp_path / "job").values()) == [{"a.1.json": 0, "b.1.json": 1}, {"a.2.json": 0, "b.2.json": 1}]


def test_an_other_trace_in_the_folder_changes_no_group(tmp_path):
    for rank in range(2):
        for cycle in range(2):
            trace(tmp_path / "job" / f"h_{rank}.{10**12 + cycle}.pt.trace.json", rank, SECOND_US * (1 + cycle))
    trace(tmp_path / "job" / "merged.json")
    assert sorted(map(len, runs(tmp_path / "job").values())) == [1, 2, 2]


def test_traces_without_a_sheet_are_grouped_alike(tmp_path):
    for rank in range(2):
        for cycle in range(2):
            trace(tmp_path / "job" / f"h_{rank}.{10**12 + cycle}.pt.trace.json", rank, SECOND_US * (1 + cycle))
    rows = exports_matching(str(tmp_path / "job" / "*.json"))
    assert [(row.dataset, row.export) for row in rows] == [
        ("job_cycle_1", "0"),
        ("job_cycle_1", "1"),
        ("job_cycle_2", "0"),
        ("job_cycle_2", "1"),
    ]


@pytest.mark.parametrize(("seconds", "together"), [(1, True), (3599, True), (3602, False), (86_400 * 365, False)])
def test_recordings_of_other_times_are_no_ranks_of_one_run(tmp_path, seconds, together):
    for rank in range(2):
        database(tmp_path / "job" / f"t_rank{rank}.sqlite", session_s=1_600_000_000 + seconds * rank)
        trace(tmp_path / "traces" / f"h{rank}.json", rank, base=10**18 + seconds * 10**9 * rank)
    for folder in ("job", "traces"):
        assert len(runs(tmp_path / folder)) == (1 if together else 2)


def test_when_an_export_was_recorded(tmp_path):
    trace(tmp_path / "a.json", start_us=7, launches=2000, base=5)
    assert recorded_span(tmp_path / "a.json", "kineto") == (7005, 5 + 1000 * (7 + 199_900))
    trace(tmp_path / "a.json.gz", start_us=7, launches=2000, base=5)
    assert recorded_span(tmp_path / "a.json.gz", "kineto") is None
    assert recorded_span(tmp_path / "a.json.gz", "kineto", unpack=True) == (7005, 5 + 1000 * (7 + 199_900))
    database(tmp_path / "a.sqlite", session_s=9)
    assert recorded_span(tmp_path / "a.sqlite", "nsys") == (9 * 10**9, 9 * 10**9)
    database(tmp_path / "b.sqlite")
    assert recorded_span(tmp_path / "b.sqlite", "nsys") is None


# names


def test_names_of_any_script_are_kept_and_tell_runs_apart(tmp_path):
    for name in ("базовый", "новый", "été", "e\u0301te\u0301 2", "日本語", "日 本", "日_本", "!", "?"):
        database(tmp_path / "job" / f"{name}.sqlite")
    found = runs(tmp_path / "job")
    assert set(found) == {"базовый", "новый", "été", "été_2", "日本語", "日_本", "日_本_2", "run", "run_2"}
    assert all(len(files) == 1 for files in found.values())


def test_a_long_name_is_cut_to_bytes(tmp_path):
    assert dataset_name("я" * 100) == "я" * 40
    assert dataset_name("x" * 79 + "я") == "x" * 79
    for last in "аб":
        database(tmp_path / f"{'я' * 50}{last}.sqlite")
    assert list(runs(tmp_path)) == ["я" * 40, f"{'я' * 40}_2"]


# what is not read


def test_what_a_folder_holds_beside_exports_is_said_in_one_line(tmp_path, capsys):
    trace(tmp_path / "a.json")
    (tmp_path / "notes.txt").write_text("Hello, world\n")
    (tmp_path / "readme.md").write_text("# One, two\n")
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "inner").mkdir()
    (tmp_path / ".hidden").write_text("a,b")
    code = command.main(["check", str(tmp_path)])
    assert code == 0, capsys.readouterr().out
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == f"not read: config.json, inner/, notes.txt, readme.md ({tmp_path})"
    assert said(tmp_path / "a.json") == []


# archives


def packed(path, members, mode="w:gz"):
    with tarfile.open(path, mode) as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            if isinstance(content, bytes):
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
            else:
                member.type, member.linkname = content
                archive.addfile(member)


@pytest.fixture
def traces(tmp_path):
    """Return two traces by their names in an archive."""
    for rank in range(2):
        trace(tmp_path / "source" / f"t_rank{rank}.json", rank, 10 + rank)
    return {f"run/{path.name}": path.read_bytes() for path in sorted((tmp_path / "source").iterdir())}


@pytest.mark.parametrize("ending", ["tar", "tar.gz", "tgz", "tar.xz", "tar.bz2", "zip"])
def test_archives_are_read(tmp_path, traces, ending, capsys):
    path = tmp_path / f"traces.{ending}"
    if ending == "zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in traces.items():
                archive.writestr(name, content)
    else:
        packed(path, traces, {"tar": "w", "tar.xz": "w:xz", "tar.bz2": "w:bz2"}.get(ending, "w:gz"))
    assert runs(path, unpacked=tmp_path / "u") == {"run": {"t_rank0.json": 0, "t_rank1.json": 1}}
    (unpacked,) = (tmp_path / "u").glob("*/*/run/t_rank0.json")
    before = unpacked.stat().st_mtime_ns
    assert runs(path, unpacked=tmp_path / "u") == {"run": {"t_rank0.json": 0, "t_rank1.json": 1}}
    assert unpacked.stat().st_mtime_ns == before, "what is unpacked stays"
    assert command.main(["check", str(path)]) == 0
    printed = capsys.readouterr().out
    assert f"{path}: t_rank1.json: kineto, schema 1, read" in printed
    assert "run: 2 of 2 exports read" in printed


def test_an_archive_alone_in_a_folder_is_read_and_one_beside_exports_is_not(tmp_path, traces):
    (tmp_path / "job").mkdir()
    packed(tmp_path / "job" / "traces.tar.gz", traces)
    (tmp_path / "job" / "notes.md").write_text("a, b")
    assert list(runs(tmp_path / "job", unpacked=tmp_path / "u")) == ["run"]
    assert said(tmp_path / "job", unpacked=tmp_path / "u") == [f"not read: notes.md ({tmp_path / 'job'})"]
    trace(tmp_path / "job" / "a.json")
    assert list(runs(tmp_path / "job", unpacked=tmp_path / "u")) == ["a"]
    assert said(tmp_path / "job", unpacked=tmp_path / "u") == [
        f"not read: notes.md, traces.tar.gz ({tmp_path / 'job'})"
    ]


def test_links_in_an_archive_are_left_out(tmp_path, traces):
    secret = tmp_path / "secret"
    secret.write_text("x")
    links = {"run/link.json": (tarfile.SYMTYPE, str(secret)), "run/hard.json": (tarfile.LNKTYPE, "run/t_rank0.json")}
    packed(tmp_path / "a.tar", traces | links | {"run/null": (tarfile.CHRTYPE, "")}, "w")
    assert unpack_archive(tmp_path / "a.tar", tmp_path / "u" / "a") == ["run/link.json", "run/hard.json", "run/null"]
    assert sorted(path.name for path in (tmp_path / "u" / "a" / "run").iterdir()) == ["t_rank0.json", "t_rank1.json"]


@pytest.mark.parametrize("name", ["../out.json", "/out.json", "run/../../out.json", "."])
def test_an_archive_that_leads_outside_is_refused(tmp_path, traces, name):
    packed(tmp_path / "a.tar", traces | {name: b"{}"}, "w")
    with pytest.raises(CausewayError, match="names a file outside of itself"):
        unpack_archive(tmp_path / "a.tar", tmp_path / "u" / "a")
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(name, b"{}")
    with pytest.raises(CausewayError, match="names a file outside of itself"):
        unpack_archive(tmp_path / "a.zip", tmp_path / "u" / "a")
    assert [path.name for path in (tmp_path / "u").rglob("*")] == []
    assert not (tmp_path / "out.json").exists()


def test_a_damaged_archive_is_refused_wherever_it_is_cut(tmp_path, traces):
    packed(tmp_path / "whole.tar", traces, "w")
    whole = (tmp_path / "whole.tar").read_bytes()
    damaged = bytearray(whole)
    damaged[whole.index(b"run/t_rank1")] ^= 1
    for content in (whole[:1000], whole[:1200], bytes(damaged), whole[: whole.index(b"run/t_rank1") + 100]):
        (tmp_path / "a.tar").write_bytes(content)
        with pytest.raises(CausewayError, match="the archive is damaged"):
            unpack_archive(tmp_path / "a.tar", tmp_path / "u" / "a")
    (tmp_path / "a.tgz").write_bytes(gzip.compress(whole)[:-300])
    with pytest.raises(CausewayError, match=r"damaged|ends early"):
        unpack_archive(tmp_path / "a.tgz", tmp_path / "u" / "a")


def test_an_archive_of_too_much_is_refused(tmp_path, traces, monkeypatch):
    monkeypatch.setattr("causeway.readers.archives.ALWAYS_BYTES", 100_000)
    monkeypatch.setattr("causeway.readers.archives.MOST_TIMES", 20)
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.json", bytes(10**6))
    with pytest.raises(CausewayError, match="unpacks to more than 100,000 bytes"):
        unpack_archive(tmp_path / "a.zip", tmp_path / "u" / "a")
    monkeypatch.setattr("causeway.readers.archives.MOST_MEMBERS", 1)
    packed(tmp_path / "a.tar", traces, "w")
    with pytest.raises(CausewayError, match="more than 1 files"):
        unpack_archive(tmp_path / "a.tar", tmp_path / "u" / "a")


def test_a_header_of_tar_that_asks_for_much_memory_is_refused(tmp_path):
    member = tarfile.TarInfo("x")
    member.type = tarfile.XHDTYPE
    member.size = 1 << 31
    (tmp_path / "a.tar").write_bytes(member.tobuf(tarfile.GNU_FORMAT) + bytes(1024))
    with pytest.raises(CausewayError, match="the archive is damaged"):
        unpack_archive(tmp_path / "a.tar", tmp_path / "u" / "a")


def test_an_archive_that_a_sheet_names_is_refused_with_what_to_do(tmp_path, traces):
    from causeway.readers.normalise import normalise

    packed(tmp_path / "a.tar.gz", traces)
    assert archive_kind(tmp_path / "a.tar.gz") == "tar"
    document = normalise(tmp_path / "a.tar.gz", tmp_path / "tables", export="0", source="a.tar.gz")
    assert document["error"]["found"] == "it is a tar archive"
    assert document["error"]["advice"].startswith("Unpack it first")


# the folder of the analysis


def test_results_of_others_are_not_touched(tmp_path):
    trace(tmp_path / "a.json")
    exports = find_exports([str(tmp_path / "a.json")])
    mine = tmp_path / "o" / "results" / "overview.html"
    mine.parent.mkdir(parents=True)
    check_folder(tmp_path / "o")
    mine.write_text("MINE")
    for act in (lambda: check_folder(tmp_path / "o"), lambda: write_analysis(tmp_path / "o", exports, {})):
        with pytest.raises(CausewayError, match=r"results: is there already, and no config.yaml of this command"):
            act()
    assert command.main(["run", str(tmp_path / "a.json"), "--out", str(tmp_path / "o")]) == 2
    assert command.main(["gate", str(tmp_path / "a.json"), str(tmp_path / "a.json"), "--out", str(tmp_path / "o")]) == 2
    assert [path.name for path in (tmp_path / "o").rglob("*")] == ["results", "overview.html"]
    assert mine.read_text() == "MINE"
    (tmp_path / "o" / "config.yaml").write_text(WRITTEN_BY)
    check_folder(tmp_path / "o")


def test_a_link_in_place_of_results_is_refused(tmp_path):
    trace(tmp_path / "a.json")
    (tmp_path / "o").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "o" / "config.yaml").write_text(WRITTEN_BY)
    (tmp_path / "o" / "results").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(CausewayError, match="results: is a link"):
        write_analysis(tmp_path / "o", find_exports([str(tmp_path / "a.json")]), {})


@pytest.mark.parametrize("inside", ["", "out", "a/b"])
def test_an_analysis_inside_an_export_is_refused(tmp_path, inside):
    export = tmp_path / "export"
    export.mkdir()
    header = "Kind,Agent_Id,Queue_Id,Kernel_Name,Correlation_Id,Start_Timestamp,End_Timestamp,Dispatch_Id\n"
    (export / "7_kernel_trace.csv").write_text(f"{header}KERNEL_DISPATCH,1,1,k,1,10,20,1\n")
    (tmp_path / "link").symlink_to(export)
    exports = find_exports([str(export)])
    for folder in (export / inside, tmp_path / "link" / inside):
        with pytest.raises(CausewayError, match=r"lies in the export .*, which must not change"):
            write_analysis(folder, exports, {})
    assert [path.name for path in export.iterdir()] == ["7_kernel_trace.csv"]
    write_analysis(tmp_path / "beside", exports, {})

"""What `causeway check` says beside what an export holds: its rank, what is amiss, and what shows among the exports."""

import json

import pytest

from causeway.command_line import __main__ as command
from causeway.inputs.quality import check
from causeway.readers.normalise import normalise
from support import REAL

PAX = REAL / "nsys_parquet" / "jax-toolbox-pax-fsdp4"


def checked(capsys, *paths, code=0):
    """Return the lines of a check."""
    assert command.main(["check", *map(str, paths)]) == code
    return capsys.readouterr().out.splitlines()


def trace(path, rank=None, start=0):
    """Write a Kineto trace of one launch; with a rank, it states it."""
    where = {"device": 0, "stream": 7}
    event = {"ph": "X", "cat": "kernel", "name": "k", "ts": start, "dur": 5, "pid": 0, "tid": 7, "args": where}
    stated = {} if rank is None else {"distributedInfo": {"rank": rank, "world_size": 9}}
    path.write_text(json.dumps({"traceEvents": [event], **stated}))


def test_the_cautions_of_the_report_stand_there_and_its_remarks_are_named(capsys, tmp_path):
    path = REAL / "rocprofv3" / "llama-rdna35"
    document = normalise(path, tmp_path / "tables", export="0", source="0")
    lines = checked(capsys, path)
    cautions = [entry for entry in document["issues"] if entry["severity"] != "info"]
    assert [line for line in lines if line.startswith("  note")] == [
        f"  note      {entry['detail']} ({entry['count']:,} ×)" for entry in cautions
    ]
    assert {entry["kind"] for entry in cautions} == {"missing_dispatches", "other_execution", "unmatched_counters"}
    others = [entry["kind"].replace("_", " ") for entry in document["issues"] if entry["severity"] == "info"]
    assert f"  info      {', '.join(others)}; in full in the data quality of a run's page" in lines


@pytest.mark.parametrize(
    ("name", "rank", "said"),
    [
        ("a.json", None, "run       a, rank 0 (assumed; a sheet can say another)"),
        ("a.json", 3, "run       a, rank 3 (as the export says)"),
        ("a_rank4.json", None, "run       a_rank4, rank 4 (as the file's name says)"),
    ],
)
def test_a_rank_is_told_with_who_says_so(name, rank, said, capsys, tmp_path):
    trace(tmp_path / name, rank)
    first, second, *_ = checked(capsys, tmp_path / name)
    assert first == f"{tmp_path / name}: kineto, read"
    assert second.strip() == said


def test_a_span_has_the_unit_that_suits_it_and_a_version_its_format(capsys, tmp_path):
    lines = checked(capsys, REAL / "kineto" / "hta" / "triton_example.json.gz")
    assert lines[0].endswith("triton_example.json.gz: kineto, schema 1 cupti 18, read")
    assert "  span      1.76 µs" in lines
    first, *_ = checked(capsys, REAL / "rocprof_v1" / "gunrock" / "results.csv")
    assert first.endswith("results.csv: rocprof v1, read")


def test_a_span_begins_with_a_copy_before_the_first_launch_as_on_the_page(capsys, tmp_path):
    where = {"ph": "X", "pid": 0, "tid": 7}
    copy = where | {"cat": "gpu_memcpy", "name": "Memcpy HtoD", "ts": 10, "dur": 40}
    launch = where | {"cat": "kernel", "name": "k", "ts": 200, "dur": 5}
    for event in (copy, launch):
        event["args"] = {"device": 0, "stream": 7, "bytes": 8}
    (tmp_path / "a.json").write_text(json.dumps({"traceEvents": [copy, launch]}))
    assert "  span      195 µs" in checked(capsys, tmp_path / "a.json")


def test_what_is_no_export_is_told_what_to_name(capsys, tmp_path):
    (tmp_path / "notes.txt").write_text("nothing")
    first, second = checked(capsys, tmp_path / "notes.txt", code=1)
    assert first == f"{tmp_path / 'notes.txt'}: unknown format, refused"
    assert second.endswith("Name the right file, or convert it to a table (CSV).")


def test_exports_of_a_run_are_compared_as_the_run_does(capsys, tmp_path):
    for rank in (0, 1, 3):
        trace(tmp_path / f"t_rank{rank}.json", rank, start=rank)
    (tmp_path / "t_rank4.json").touch()
    lines = checked(capsys, tmp_path, code=1)
    start = next(number for number, line in enumerate(lines) if line.startswith(f"{tmp_path.name}: "))
    assert lines[start] == f"{tmp_path.name}: 3 of 4 exports read"
    folders = []
    for rank in (0, 1, 3):
        folders.append(tmp_path / "tables" / str(rank))
        normalise(tmp_path / f"t_rank{rank}.json", folders[-1], export=str(rank), source=str(rank), rank=rank)
    issues = [entry for entry in check("t", folders)["issues"] if entry["severity"] != "info" and not entry["export"]]
    assert lines[start + 1 :] == [f"  note      {entry['detail']}" for entry in issues]
    assert [entry["kind"] for entry in issues] == ["missing_ranks", "unread_ranks"]
    assert issues[1]["detail"].endswith(": 3 of 9 were read")


def test_exports_that_may_be_the_ranks_of_one_run_are_named(capsys, tmp_path):
    *_, last = checked(capsys, PAX)
    assert last == (
        "proc0, proc1, proc2, proc3: each is taken as a run, and they state different ranks; if they are the ranks of"
        f" one run, name them as one: NAME={PAX}"
    )
    joined = checked(capsys, f"proc={PAX}")
    assert "proc: 4 of 4 exports read" in joined
    assert not any("taken as a run" in line for line in joined)
    for name, rank in (("a", 1), ("b", 1)):
        (tmp_path / name).mkdir()
        trace(tmp_path / name / "t.json", rank)
    assert "taken as a run" not in checked(capsys, tmp_path / "a" / "t.json", tmp_path / "b" / "t.json")[-1]

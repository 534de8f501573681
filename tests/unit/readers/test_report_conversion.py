"""Reports converted by a stand-in for the profiler's tool, which records how it was called."""

import hashlib
import json
import shutil
import sys
from pathlib import Path

import pytest

from causeway.readers.normalise import normalise
from causeway.readers.report_conversion import LONGEST_MESSAGE, convert_report, converted_export
from causeway.readers.report_kinds import report_kind, tool_for

EXAMPLE = Path(__file__).resolve().parents[3] / "config" / "example" / "h100.sqlite"
COUNTERS = '"ID","Process ID","Kernel Name"\n'
PROGRAM = f"""#!{sys.executable}
import json, shutil, sys
from pathlib import Path
arguments = sys.argv[1:]
with open(Path(__file__).with_suffix(".calls"), "a") as calls:
    calls.write(json.dumps(arguments) + "\\n")
if arguments == ["--version"]:
    print("NVIDIA Nsight VERSION")
elif arguments == ["export", "--help"]:
    print("HELP")
elif "FAIL" in Path(__file__).with_suffix(".mode").read_text():
    print("a stack of calls " * 90 + "\\x1b[31mthe report is of a newer version", file=sys.stderr)
    sys.exit(3)
elif "QUOTES" in Path(__file__).with_suffix(".mode").read_text():
    print("cannot convert", *arguments, "with", __file__, file=sys.stderr)
    sys.exit(4)
elif "NOTHING" in Path(__file__).with_suffix(".mode").read_text():
    pass
elif "--import" in arguments:
    print(COUNTERS, end="")
else:
    target = next(a.removeprefix("--output=") for a in arguments if a.startswith("--output="))
    shutil.copyfile(EXAMPLE, target)
"""


def stand_in(folder, version="version 2026.2.1.210-262", text="--include-blobs --lazy", mode=""):
    program = folder / "tool"
    body = PROGRAM.replace("NVIDIA Nsight VERSION", version).replace("HELP", text)
    program.write_text(body.replace("COUNTERS", repr(COUNTERS)).replace("EXAMPLE", repr(str(EXAMPLE))))
    program.chmod(0o755)
    program.with_suffix(".mode").write_text(mode)
    return program


def calls_of(program):
    return [json.loads(line) for line in program.with_suffix(".calls").read_text().splitlines()]


@pytest.fixture
def report(tmp_path):
    path = tmp_path / "a b;$(touch x)'.nsys-rep"
    path.write_bytes(b"QDREP\x00\x01")
    return path


def convert(report, program, where="out", tool="nsys"):
    folder = report.parent / where
    tools = {tool: str(program)} if program else {}
    return convert_report(report, folder, report.parent / "cache", source="the source", tools=tools), folder


def test_a_report_is_converted_once_per_content_and_version(report, tmp_path):
    program = stand_in(tmp_path)
    document, folder = convert(report, program)
    assert document == {
        "tool": "nsys",
        "version": "2026.2.1.210",
        "sha256": hashlib.sha256(report.read_bytes()).hexdigest(),
        "export": "report.sqlite",
        "error": None,
    }
    assert (folder / "report.sqlite").read_bytes() == EXAMPLE.read_bytes()
    assert converted_export(report, folder) == (folder / "report.sqlite", None)
    *_, (command, *arguments, output, name) = calls_of(program)
    assert command == "export"
    assert arguments == ["--type=sqlite", "--force-overwrite=true", "--include-blobs=true", "--lazy=false"]
    assert output.startswith(f"--output={tmp_path}/cache/partial_")
    assert name == str(report), "one argument, which no shell has read"
    assert not (tmp_path / "x").exists()

    def exports():
        return [call for call in calls_of(program) if call[0] == "export" and call[1] != "--help"]

    copy = report.with_name("copy.qdrep")
    shutil.copyfile(report, copy)
    again, folder = convert(copy, program, "again")
    assert again == document
    assert (folder / "report.sqlite").is_file()
    assert len(exports()) == 1, "the same content is not converted again"
    convert(report, stand_in(tmp_path, version="version 2027.1"), "newer")
    assert len(exports()) == 2
    report.write_bytes(b"another")
    convert(report, program, "other")
    assert len(exports()) == 3


def test_flags_that_a_release_does_not_know_are_left_out(report, tmp_path):
    program = stand_in(tmp_path, text="usage: --type --output")
    convert(report, program)
    assert calls_of(program)[-1][1:3] == ["--type=sqlite", "--force-overwrite=true"]
    assert len(calls_of(program)[-1]) == 5


def test_nsight_compute_prints_its_raw_page(tmp_path):
    report = tmp_path / "-k.ncu-rep"
    report.write_bytes(b"NVR\0")
    program = stand_in(tmp_path)
    document, folder = convert(report, program, tool="ncu")
    assert document["export"] == "report.csv"
    assert (folder / "report.csv").read_text() == COUNTERS
    assert calls_of(program)[-1] == ["--import", str(report), "--csv", "--page", "raw"]


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"mode": "FAIL"}, "nsys ended with code 3: "),
        ({"mode": "NOTHING"}, "nsys ended without an error and wrote nothing"),
        ({"version": "no number"}, "nsys --version names no version"),
    ],
)
def test_a_tool_that_fails_is_named_and_leaves_nothing(report, tmp_path, options, found):
    document, folder = convert(report, stand_in(tmp_path, **options))
    path, error = converted_export(report, folder)
    assert path == report
    assert document["error"]["found"].startswith(found)
    if options.get("mode") == "FAIL":
        assert document["error"]["found"].endswith("[31mthe report is of a newer version")
        assert "\x1b" not in document["error"]["found"]
        assert len(document["error"]["found"]) < LONGEST_MESSAGE + 40
    assert not list((tmp_path / "cache").glob("*") if (tmp_path / "cache").exists() else [])
    document = normalise(path, tmp_path / "tables", export="0", source="the source", failure=error)
    assert document["status"] == "refused"
    assert document["error"]["found"].startswith(found)


def test_the_words_of_a_tool_stand_without_the_folders_that_it_was_called_with(tmp_path):
    """They are shown on pages; folders name the machine and its user."""
    folder = tmp_path / "alice=1" / "secret"
    folder.mkdir(parents=True)
    report = folder / "a b.nsys-rep"
    report.write_bytes(b"QDREP\x00\x01")
    document, _ = convert(report, stand_in(folder, mode="QUOTES"))
    words = document["error"]["found"]
    assert words.startswith("nsys ended with code 4: cannot convert export --type=sqlite")
    assert words.endswith(".sqlite a b.nsys-rep with tool")
    assert "--output=partial_" in words
    assert "alice" not in words


def test_a_tool_that_is_not_there_or_cannot_run(report, tmp_path, monkeypatch):
    document, _ = convert(report, tmp_path / "nowhere")
    assert document["error"]["found"] == "nsys cannot be started (No such file or directory)"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert tool_for(report, {}) is None
    document, folder = convert(report, None, "without")
    assert (document["version"], document["error"]) == (None, None)
    path, error = converted_export(report, folder)
    document = normalise(path, tmp_path / "tables", export="0", source="s", failure=error)
    assert "nsys export --type sqlite" in document["error"]["advice"], "the sentence that says how to export it"


def test_a_tool_on_the_path_is_found_and_the_configured_one_comes_first(tmp_path, monkeypatch):
    stand_in(tmp_path).rename(tmp_path / "nsys")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert tool_for("a.NSYS-REP", {}) == str(tmp_path / "nsys")
    assert tool_for("a.qdrep", {"nsys": None}) == str(tmp_path / "nsys")
    assert tool_for("a.qdrep", {"nsys": "/own/nsys"}) == "/own/nsys"
    assert tool_for("a.sqlite", {}) is None
    assert report_kind("a.ncu-rep").format == "ncu"

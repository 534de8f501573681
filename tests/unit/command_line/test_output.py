"""An answer that cannot be written: no exit code says that all is well, and none that a reader has enough."""

import contextlib
import json
import os
import subprocess
import sys

import pytest

from causeway.command_line import __main__ as command
from causeway.command_line.analysis_folder import WRITTEN_BY
from causeway.command_line.run_workflow import run_workflow
from causeway.core.files.checksums import recorded
from support import ROOT


@contextlib.contextmanager
def without_readers():
    """Let both outputs be pipes that nobody reads."""
    with contextlib.ExitStack() as stack:
        for redirect in (contextlib.redirect_stdout, contextlib.redirect_stderr):
            reader, writer = os.pipe()
            os.close(reader)
            stack.enter_context(redirect(stack.enter_context(os.fdopen(writer, "w"))))
        yield


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return the working folder: an export, one that cannot be read, and results of which a file was changed."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text("y,size\n1,2\n2,3\n3,4\n")
    (tmp_path / "b.nsys-rep").write_bytes(b"\0report")
    results = tmp_path / "out" / "results"
    (results / "compare").mkdir(parents=True)
    (tmp_path / "out" / "config.yaml").write_text(WRITTEN_BY)
    (results / "findings.json").write_text("{}")
    (results / "checksums.json").write_text(json.dumps({"schema_version": "1", "files": recorded(results)}))
    (results / "findings.json").write_text('{"first_screen": []}')
    return tmp_path


COMMANDS = {
    "gate": ["gate", "a.csv", "a.csv", "--out", "out"],
    "verify": ["verify", "out"],
    "check": ["check", "b.nsys-rep"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_reader_that_goes_away_leaves_the_exit_code_of_the_answer(name, folder, monkeypatch):
    def run(*_):
        verdicts = {"reasons": ["too slow"], "states": [{"state": "broken"}]}
        (folder / "out" / "results" / "compare" / "gate.json").write_text(json.dumps(verdicts))
        return run_workflow([sys.executable, "-c", "print('1 of 2 steps (50%) done')"])

    monkeypatch.setattr(command, "run_workflow", run)
    with without_readers():
        assert command.main(COMMANDS[name]) == 1


def test_a_workflow_that_fails_is_no_success_where_nobody_reads_why(folder, monkeypatch):
    failing = [sys.executable, "-c", "import sys; sys.exit(3)"]
    monkeypatch.setattr(command, "run_workflow", lambda *_: run_workflow(failing))
    with without_readers():
        assert command.main(COMMANDS["gate"]) == 2


def in_a_shell(folder, line):
    """Run a line of bash in which `$C` is the command; return the finished process."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "scripts"), "C": f"{sys.executable} -m causeway.command_line"}
    run = ["bash", "-c", line]
    return subprocess.run(run, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("$C verify out | true; exit ${PIPESTATUS[0]}", 1, ""),
        ("$C verify out >&-", 1, ""),
        ("$C verify out 2>&-", 1, ""),
        ("$C verify /nowhere 2>&-", 2, ""),
        ("$C verify out > /dev/full", 2, "No space left on device"),
        ("mkdir gone; cd gone; rmdir ../gone; $C check a.csv", 2, "the working folder is not there any more"),
        ("mkdir gone; cd gone; rmdir ../gone; $C verify", 2, "the working folder is not there any more"),
    ],
)
def test_the_process_ends_with_the_code_and_at_most_one_sentence(line, code, said, folder):
    done = in_a_shell(folder, line)
    assert done.returncode == code
    assert said in done.stderr
    assert done.stderr.count("\n") == bool(said)


def test_an_interrupted_check_ends_as_shells_have_it(folder, monkeypatch, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("causeway.command_line.check.describe_export", interrupted)
    assert command.main(["check", "a.csv"]) == 130
    assert capsys.readouterr().err == "interrupted\n"

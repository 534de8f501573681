"""The action for continuous integration: what it runs, with which rights, and that no input of it becomes a command."""

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

from causeway.command_line import __main__ as command

ROOT = Path(__file__).resolve().parents[3]
ACTION = ROOT / ".github" / "actions" / "gate"
RECORD = """\
#!/bin/sh
printf '%s\\n' "$PYTHONPATH" "$@" > "$RUNNER_TEMP/arguments"
[ -z "$WRITES" ] || { mkdir -p "$OUT"; echo "### verdict" > "$OUT/gate.md"; }
exit "$CODE"
"""


def run_gate(folder, code=0, writes="yes", **inputs):
    """Run the action's script with a program in Python's place; return the exit code, its arguments, the outputs and
    the summary.
    """
    python = folder / "causeway" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(RECORD)
    python.chmod(0o755)
    given = {"BASELINE": "a.sqlite", "CANDIDATE": "b.sqlite", "LIMITS": "", "SETTINGS": "", "OUT": "out", **inputs}
    files = {name: str(folder / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    run = subprocess.run(
        ["bash", str(ACTION / "gate.sh")],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "RUNNER_TEMP": str(folder), "CODE": str(code), "WRITES": writes}
        | given
        | files,
        capture_output=True,
        text=True,
        check=False,
    )
    home, *arguments = (folder / "arguments").read_text().splitlines()
    assert Path(home) == ROOT / "scripts"
    summary = folder / "GITHUB_STEP_SUMMARY"
    return run, arguments, (folder / "GITHUB_OUTPUT").read_text(), summary.read_text() if summary.exists() else None


def test_the_arguments_are_those_of_the_command(tmp_path):
    limits = "max_slowdown_percent=5\n\n  strict=true  \r\n"
    hostile = "$(touch hacked) `touch hacked`; touch hacked"
    run, arguments, outputs, _ = run_gate(
        tmp_path, LIMITS=limits, SETTINGS="compare={causes: false}", BASELINE="-a b.sqlite", CANDIDATE=hostile
    )
    assert run.returncode == 0, run.stderr
    assert arguments[:2] == ["-m", "causeway.command_line"]
    options = command._parser().parse_args(arguments[2:])
    assert options.limit == ["max_slowdown_percent=5", "strict=true"]
    assert options.set == ["compare={causes: false}"]
    assert options.compare == ["-a b.sqlite", hostile]
    assert [str(options.markdown), str(options.badge)] == ["out/gate.md", "out/gate.svg"]
    assert outputs == "markdown=out/gate.md\nbadge=out/gate.svg\n"
    assert not (tmp_path / "hacked").exists()


def test_a_folder_of_two_lines_adds_no_output(tmp_path):
    with pytest.raises(FileNotFoundError):  # the program did not run
        run_gate(tmp_path, OUT="out\nadmin=yes")
    assert not (tmp_path / "GITHUB_OUTPUT").exists()


@pytest.mark.parametrize("code", [0, 1, 2])
def test_the_verdict_stands_in_the_summary_and_the_exit_code_stays(code, tmp_path):
    run, _, _, summary = run_gate(tmp_path, code=code)
    assert run.returncode == code
    assert summary == "### verdict\n"


def test_without_a_verdict_the_exit_code_stays(tmp_path):
    run, _, _, summary = run_gate(tmp_path, code=2, writes="")
    assert run.returncode == 2
    assert summary is None


def test_inputs_are_no_part_of_a_command_and_other_actions_are_pinned():
    action = yaml.safe_load((ACTION / "action.yml").read_text())
    steps = action["runs"]["steps"]
    assert [step["run"] for step in steps if "${{" in step.get("run", "")] == []
    for step in steps:
        assert "uses" not in step or re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", step["uses"])
    own = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    assert all(step["uses"] in own for step in steps if "uses" in step), "pinned as our own checks pin it"
    given = set(re.findall(r"\$\{\{ inputs\.(\w+) \}\}", (ACTION / "action.yml").read_text()))
    assert given == set(action["inputs"])
    scripts = {step["run"].split("/")[-1].strip('"') for step in steps if "run" in step}
    assert scripts == {path.name for path in ACTION.glob("*.sh")}
    assert "--require-hashes" in (ACTION / "install.sh").read_text()

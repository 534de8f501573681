"""What a command says where Snakemake stops: the sentences of the workflow, and all else as it was printed."""

import functools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from causeway.command_line import __main__ as command
from causeway.command_line.progress import NoStepError, stop_reasons
from causeway.command_line.run_workflow import run_workflow, snakemake_command
from causeway.core.errors import CausewayError
from support import REAL, ROOT

WORKFLOW = """
from snakemake.exceptions import WorkflowError


def refuse():
    raise WorkflowError("configuration: bins: 3 is not of type 'object'; the schema describes every key")


if config.get("refused"):
    refuse()


def no_limit(wildcards):
    raise WorkflowError("configuration: `gate:` sets no limit;\\nset one")


rule limited:
    input: no_limit
    output: "limited"


rule sentence:
    output: "sentence"
    log: "{folder}/sentence.log"
    shell: "printf '10:00:00 INFO begun\\\\n10:00:01 ERROR rank0.sqlite: holds no launch\\\\n' > {{log}}; false"


rule other:
    output: "other"
    log: "{folder}/other.log"
    shell: "printf '10:00:01 ERROR another reason\\\\n' > {{log}}; false"


rule mute:
    output: "mute"
    log: "{folder}/mute.log"
    shell: "printf '10:00:00 INFO begun\\\\nKilled\\\\n' > {{log}}; false"


rule internal:
    output: "internal"
    log: "{folder}/internal.log"
    shell: "printf '10:00:00 ERROR Traceback\\\\n10:00:01 ERROR internal error: KeyError: 3. Please report\\\\n' > {{log}}; false"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return the folder of a small workflow, none of whose steps makes a file."""
    folder = tmp_path_factory.mktemp("stopped")
    (folder / "Snakefile").write_text(WORKFLOW.format(folder=folder))
    return folder


@pytest.fixture(scope="module")
def snakemake(folder):
    """Return a function that runs targets of the workflow as the command does, each once; it gives the error."""
    line = [sys.executable, "-m", "snakemake", "--snakefile", str(folder / "Snakefile"), "--cores", "1"]
    line += ["--directory", str(folder), "--show-failed-logs", "--keep-going"]

    @functools.cache
    def stopped(*targets):
        with pytest.raises(CausewayError) as refusal:
            run_workflow([*line, *targets])
        return refusal.value

    return stopped


@pytest.mark.parametrize(
    ("targets", "reasons", "ran"),
    [
        pytest.param(["sentence"], ["rank0.sqlite: holds no launch"], True, marks=pytest.mark.slow),
        (["sentence", "other"], ["rank0.sqlite: holds no launch", "another reason"], True),
        (
            ["sentence", "--config", "refused=1"],
            ["configuration: bins: 3 is not of type 'object'; the schema describes every key"],
            False,
        ),
        # the next two as commands meet them: a gate without a limit, a window of another dataset
        pytest.param(["limited"], ["configuration: `gate:` sets no limit; set one"], False, marks=pytest.mark.slow),
        pytest.param(["nothing"], ["no step of the workflow makes nothing"], False, marks=pytest.mark.slow),
    ],
)
def test_snakemake_that_stops_leaves_the_sentences_alone(targets, reasons, ran, snakemake, folder):
    *said, last = [*str(snakemake(*targets)).split("\n"), *([] if ran else [""])]
    assert sorted(said) == sorted(reasons)
    kept = f"What was finished is kept: once this is mended, the same command goes on from there. Logs: {folder}/results/logs"
    assert last == (kept if ran else "")


@pytest.mark.parametrize(
    "targets", [pytest.param(["mute"], marks=pytest.mark.slow), ["internal"], ["sentence", "mute"]]
)
def test_a_step_without_a_sentence_leaves_all_that_was_printed(targets, snakemake):
    said = str(snakemake(*targets))
    assert said.startswith("Snakemake stopped with exit code 1; its last lines are:\n")
    assert f"Error in rule {targets[-1]}:" in said
    assert "Killed" in said or "internal error: KeyError: 3. Please report" in said


RULER = "=" * 40


@pytest.mark.parametrize(
    ("lines", "reasons"),
    [
        ([], []),
        (["ImportError: no module"], []),
        (["Error in rule a:", "    jobid: 0"], []),
        (["Error in rule a:", "Logfile a.log: empty file"], []),
        (["Error in rule a:", "Logfile a.log:", RULER, "", RULER], []),
        (["Error in rule a:", "Logfile a.log:", RULER, "10:00:01 ERROR why", "", RULER, "Shutting down"], ["why"]),
        (["Error in rule a:", "Logfile a.log:", RULER, "10:00:01 ERROR why"], ["why"]),
        (["Error in rule a:", "Logfile a.log:", RULER, "10:00:01 ERROR why", RULER] * 2, ["why"]),
        (["Error in rule a:", "Logfile a.log:", RULER, "10:00:01 ERROR why", "10:00:02 INFO on", RULER], []),
        (["WorkflowError:", "At least one job did not complete successfully."], []),
        (['WorkflowError in file "/w/a.smk", line 3:', "one", "two", '  File "/w/a.smk", line 9, in f'], ["one two"]),
    ],
)
def test_reasons_are_read_from_the_lines_of_snakemake(lines, reasons):
    assert stop_reasons(lines) == reasons


@pytest.mark.parametrize("cores", ["0", "-1", "two", "1.5", "", "٣"])
def test_a_number_of_processes_that_would_wait_for_ever_is_refused(cores, capsys):
    with pytest.raises(SystemExit) as end:
        command.main(["run", "a.csv", f"--cores={cores}"])
    assert end.value.code == 2
    assert "is neither a number from 1 nor all" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("cores", "profile", "ending"),
    [
        (None, None, ["--cores", "all"]),
        ("3", None, ["--cores", "3"]),
        (None, "mine", ["--profile", "mine"]),
        ("3", "mine", ["--profile", "mine", "--cores", "3"]),
    ],
)
def test_a_number_of_processes_counts_beside_a_profile_too(cores, profile, ending):
    line = snakemake_command(Path("out"), None, [], cores, profile, [])
    assert line[line.index("out") + 1 :] == ending


def test_settings_that_windows_would_not_follow_are_refused(capsys):
    with pytest.raises(SystemExit) as end:
        command.main(["windows", "a", "whole", "--set", "bins.width_us=5"])
    assert end.value.code == 2
    assert "unrecognized arguments: --set bins.width_us=5" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("home", ["/proc/none", "/dev/null"])
def test_a_home_that_cannot_be_written_stops_nothing(home, tmp_path, monkeypatch):
    (tmp_path / "Snakefile").write_text('rule a:\n    output: "a"\n    shell: "touch {output}"\n')
    monkeypatch.setenv("HOME", home)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    line = [sys.executable, "-m", "snakemake", "--snakefile", str(tmp_path / "Snakefile"), "--cores", "1"]
    line += ["--directory", str(tmp_path), "a"]
    alone = subprocess.run(line, env=os.environ, capture_output=True, text=True, check=False)
    assert alone.returncode, "Snakemake no longer needs a cache in the home"
    advice = re.search(r'XDG_CACHE_HOME="\$PWD/(\S+)"', (ROOT / "docs" / "faq.md").read_text())
    advised = os.environ | {"XDG_CACHE_HOME": str(tmp_path / advice[1])}
    assert subprocess.run([*line, "--dry-run"], env=advised, capture_output=True, check=False).returncode == 0
    assert run_workflow(line) == 0
    assert (tmp_path / "a").is_file()


@pytest.mark.parametrize(
    ("stop", "message"),
    [
        (NoStepError("in any words"), "{out}: no window of a can be written: the datasets with a time line are mine"),
        (CausewayError("no step of the workflow makes sense"), "no step of the workflow makes sense"),
    ],
)
def test_what_no_step_makes_is_known_by_its_type(stop, message, tmp_path, monkeypatch, capsys):
    def stopped(*_):
        raise stop

    (tmp_path / "config.yaml").write_text("datasets: datasets.tsv\n")
    (tmp_path / "results" / "mine").mkdir(parents=True)
    (tmp_path / "results" / "mine" / "clocks.json").write_text("{}")
    monkeypatch.setattr(command, "run_workflow", stopped)
    assert command.main(["windows", "a", "whole", "--out", str(tmp_path)]) == 2
    assert capsys.readouterr().err == f"causeway: {message.format(out=tmp_path)}\n"


@pytest.mark.parametrize(
    ("target", "is_missing"),
    [
        pytest.param("nothing", True, marks=pytest.mark.slow),
        pytest.param("limited", False, marks=pytest.mark.slow),
        ("internal", False),
    ],
)
def test_a_file_that_no_step_makes_has_an_error_of_its_own(target, is_missing, snakemake):
    assert isinstance(snakemake(target), NoStepError) is is_missing


def test_a_gate_without_a_limit_stops_before_a_step_runs(tmp_path, capsys):
    export = REAL / "kineto" / "hta" / "triton_example.json.gz"
    out = tmp_path / "out"
    assert command.main(["gate", str(export), str(export), "--out", str(out), "--set", "gate.min_share=0.1"]) == 2
    assert capsys.readouterr().err.splitlines()[1:] == [
        "causeway: configuration: `gate:` sets no limit; set one, for example `max_slowdown_percent: 5`"
        " (`causeway gate ... --limit max_slowdown_percent=5`)"
    ]
    assert not list((out / "results").glob("*/tables"))


def test_a_window_of_another_dataset_names_those_that_have_windows(tmp_path, capsys):
    out = tmp_path / "out"
    out.mkdir()
    export = REAL / "kineto" / "hta" / "triton_example.json.gz"
    (out / "datasets.tsv").write_text(f"dataset\tsource\nmine\t{export}\n")
    (out / "config.yaml").write_text("datasets: datasets.tsv\n")
    (out / "results" / "mine").mkdir(parents=True)
    (out / "results" / "mine" / "clocks.json").write_text("{}")
    assert command.main(["windows", "yours", "whole", "--out", str(out), "--cores", "1"]) == 2
    assert capsys.readouterr().err.splitlines()[1:] == [
        f"causeway: {out}: no window of yours can be written: the datasets with a time line are mine"
    ]

"""The command's arguments, refusals and exit codes."""

import csv
import json
import shlex
import shutil
import sys
from pathlib import Path

import pytest
import yaml

from causeway.command_line import __main__ as command
from causeway.command_line.exports_found import FoundExport
from causeway.command_line.progress import WorkflowProgress, seconds_in_words
from causeway.command_line.run_workflow import run_workflow
from causeway.command_line.table_targets import table_targets
from causeway.core.errors import CausewayError
from causeway.core.installation import VERSION
from support import REAL


@pytest.fixture
def export(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("y,size\n1,2\n2,3\n3,4\n")
    return path


def fake_run(monkeypatch, after=lambda: None, code=0):
    """Let the workflow be a function, and return the commands it was given."""
    calls = []

    def run(given, _=None):
        calls.append(given)
        after()
        return code

    monkeypatch.setattr(command, "run_workflow", run)
    return calls


REFUSED = {
    "foreign": {"config.yaml": "seed: 1\n"},
    "quoted": {'a "b".csv': "y,size\n1,2\n2,3\n3,4\n"},
    "nothing": {"notes.txt": "no export"},
    "two": {"a.csv": "y,size\n1,2\n2,3\n3,4\n", "b.csv": "y,size\n1,2\n2,3\n3,5\n"},
}
"""Folders with files that the commands refuse."""


@pytest.mark.parametrize("name", ["", "run", "check", "compare", "gate", "query", "verify", "windows"])
def test_help_is_given(name, capsys):
    with pytest.raises(SystemExit) as end:
        command.main([*([name] if name else []), "--help"])
    assert end.value.code == 0
    assert "usage: causeway" in capsys.readouterr().out


def test_the_version_is_given_and_each_command_shows_an_example_that_it_takes(monkeypatch, capsys):
    with pytest.raises(SystemExit) as end:
        command.main(["--version"])
    assert (end.value.code, capsys.readouterr().out) == (0, f"causeway {VERSION}\n")
    taken = []
    for name in ("run", "check", "compare", "gate", "query", "verify", "windows"):
        with pytest.raises(SystemExit):
            command.main([name, "--help"])
        example = capsys.readouterr().out.split("\nexample: causeway ")[1].strip()
        monkeypatch.setattr(command, f"_{name}", lambda options: taken.append(options) or 0)
        assert command.main(shlex.split(example)) == 0
    assert len(taken) == 7


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run"], "no export is named"),
        (["run", "/nowhere"], "no such file"),
        (["run", "{export}", "--set", "seed"], "expected key=value"),
        (["query", "SELECT 1", "--results", "/nowhere"], "holds no results"),
        (["windows", "a", "whole", "--out", "/nowhere"], "holds no analysis"),
        (["gate", "{export}", "{export}", "--limit", "x"], "expected key=value"),
        (["run", "{export}", "--set", "bins.width_us=[1"], "the value is no YAML"),
        (["run", "{export}", "--set", "bins=3", "--set", "bins.width_us=1"], "bins has a value already"),
        (["run", "{export}", "--out", "foreign"], "was not written by this command; name another folder"),
        (["run", "quoted"], "a path with tabs, line ends or quotes cannot stand in a sheet"),
        (["run", "nothing"], "holds no export that is recognised"),
        (["compare", "two", "{export}"], "holds 2 runs; name one, or NAME=FOLDER to join them"),
        (["verify", "/nowhere"], "holds no results with a record of checksums"),
        (["run", "{export}", "--out", "{export}"], "cannot be the folder of an analysis (File exists); name another"),
        (["run", "{export}", "--out", "/proc/none"], "cannot be the folder of an analysis (No such file or directory)"),
    ],
)
def test_a_refusal_is_one_sentence_and_code_two(arguments, words, export, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for place, files in REFUSED.items():
        (tmp_path / place).mkdir()
        for name, content in files.items():
            (tmp_path / place / name).write_text(content)
    assert command.main([argument.format(export=export) for argument in arguments]) == 2
    said = capsys.readouterr().err
    assert said.startswith("causeway: ")
    assert words in said
    assert said.count("\n") == 1


def test_an_unknown_argument_ends_with_code_two():
    with pytest.raises(SystemExit) as end:
        command.main(["run", "--colour"])
    assert end.value.code == 2


def test_check_says_what_an_export_allows(export, tmp_path, capsys):
    assert command.main(["check", str(export)]) == 0
    assert "allows    counter_deviation, causes" in capsys.readouterr().out
    (tmp_path / "b.nsys-rep").write_bytes(b"\0report")
    assert command.main(["check", str(tmp_path / "b.nsys-rep")]) == 1
    assert "nsys export --type sqlite" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("launches", "said"),
    [
        ({"a": 120, "b": 100}, None),
        ({"a": 120, "b": 99}, "causes: 1 of 2 kernels, 55 % of the launches, have enough; a search needs 100 launches"),
        ({"a": 99, "b": 7}, "causes: the most launches of one kernel are 99; a search needs 100 launches"),
    ],
)
def test_check_says_what_an_export_is_too_short_for(launches, said, tmp_path, capsys):
    rows = [f"{n % 7},{kernel},{n}" for kernel, count in launches.items() for n in range(count)]
    (tmp_path / "a.csv").write_text("\n".join(["y,kernel,size", *rows, ""]))
    assert command.main(["check", str(tmp_path / "a.csv")]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  short")]
    assert [line.partition("short     ")[2][: len(said or "")] for line in lines] == ([said] if said else [])


def training_trace(path, steps, collectives):
    """Write a Kineto trace of one rank: steps of two launches with the profiler's annotations, then collectives."""

    def event(category, name, start, duration, **arguments):
        device = category == "kernel"
        where = {"pid": 0, "tid": 7} if device else {"pid": 5, "tid": 5}
        arguments |= {"device": 0, "stream": 7} if device else {}
        return {"ph": "X", "cat": category, "name": name, "ts": start, "dur": duration, "args": arguments, **where}

    events = []
    names = ["matmul", "relu"] * steps + ["ncclDevKernel_AllReduce_Sum_f32_RING_LL"] * collectives
    for n, name in enumerate(names):
        if n < 2 * steps and n % 2 == 0:
            events.append(event("user_annotation", f"ProfilerStep#{n // 2}", 100 * n, 190))
        events.append(event("cuda_runtime", "cudaLaunchKernel", 100 * n + 1, 2, correlation=n + 1))
        events.append(event("kernel", name, 100 * n + 5, 50, correlation=n + 1, grid=[4, 1, 1], block=[32, 1, 1]))
    path.write_text(json.dumps({"traceEvents": events, "distributedInfo": {"rank": 0, "world_size": 2}}))


@pytest.mark.parametrize(
    ("steps", "collectives", "said"),
    [
        (10, 16, []),
        (9, 15, ["slow steps: 9 steps after the warm-up", "drift: the most collectives of one rank are 15; 16"]),
        (
            7,
            2,
            [
                "slow steps: 7 steps",
                "shift of clocks: the most collectives of one rank are 2; 3",
                "drift: the most collectives of one rank are 2; 16",
                "critical path: 16 launches; the latency of a start is measured from 20, below 5 µs",
            ],
        ),
        (10, 0, []),
    ],
)
def test_check_says_which_analyses_of_a_trace_need_more(steps, collectives, said, tmp_path, capsys):
    """The launches stand in the trace by construction; the constants' values are written out here, not imported."""
    training_trace(tmp_path / "a.json", steps, collectives)
    assert command.main(["check", str(tmp_path / "a.json")]) == 0
    lines = [line[12:] for line in capsys.readouterr().out.splitlines() if line.startswith("  short")]
    found = [line for line in lines if not line.startswith("causes")]
    assert [line[: len(words)] for line, words in zip(found, said, strict=True)] == said


def test_the_span_of_launches_leaves_out_counters_of_a_later_run(capsys):
    """Its counters were recorded 14 s later, by another process."""
    folder = REAL / "rocprofv3" / "llama-rdna35"
    with (folder / "decode_kernel_trace.csv").open(newline="") as file:
        launches = list(csv.DictReader(file))
    ends = [int(one["End_Timestamp"]) for one in launches]
    span = max(ends) - min(int(one["Start_Timestamp"]) for one in launches)
    assert command.main(["check", str(folder)]) == 0
    assert f"  span      {span / 1e9:.3f} s\n" in capsys.readouterr().out


@pytest.mark.parametrize("by", ["name", "path"])
def test_two_of_the_exports_of_a_run_are_compared(by, tmp_path, monkeypatch):
    fake_run(monkeypatch)
    for name in "abc":
        (tmp_path / f"{name}.csv").write_text("y,size\n1,2\n2,3\n3,4\n")
    exports = [str(tmp_path / f"{name}.csv") for name in "abc"]
    compared = ["a", "c"] if by == "name" else [exports[0], exports[2]]
    out = tmp_path / "out"
    assert command.main(["run", *exports, "--compare", *compared, "--out", str(out)]) == 0
    written = yaml.safe_load((out / "config.yaml").read_text())
    assert written["compare"]["pairs"] == [{"baseline": "before_a", "candidate": "after_c"}]
    rows = [line.split("\t") for line in (out / "datasets.tsv").read_text().splitlines()[2:]]
    assert [(row[0], row[2]) for row in rows] == [("b", exports[1]), ("before_a", exports[0]), ("after_c", exports[2])]


def test_a_run_writes_sheet_and_configuration(export, tmp_path, monkeypatch):
    calls = fake_run(monkeypatch)
    out = tmp_path / "out"
    assert command.main(["run", str(export), "--out", str(out), "--profile", "slurm", "--set", "seed=5"]) == 0
    assert (out / "datasets.tsv").read_text().splitlines()[1:] == [
        "dataset\trank\tsource\tformat",
        f"a\t\t{export}\ttable",
    ]
    assert "seed: 5" in (out / "config.yaml").read_text()
    assert calls[0][calls[0].index("--profile") + 1].endswith("profiles/slurm")
    assert "--report-after-run" in calls[0]


@pytest.mark.parametrize(
    ("arguments", "page"),
    [
        (["run", "a.csv"], "overview.html"),
        (["run", "--compare", "a.csv", "b.csv"], "overview.html"),
        (["compare", "a.csv", "b.csv"], "compare/before_a__after_b/comparison.html"),
    ],
)
def test_the_page_to_open_first_is_named_and_opened(arguments, page, tmp_path, monkeypatch, capsys):
    fake_run(monkeypatch)
    opened = []
    monkeypatch.setattr(command.webbrowser, "open", opened.append)
    monkeypatch.chdir(tmp_path)
    for name in "ab":
        Path(f"{name}.csv").write_text("y,size\n1,2\n2,3\n3,4\n")
    assert command.main([*arguments, "--out", "out", "--open"]) == 0
    path = tmp_path / "out" / "results" / page
    assert f"open first   {path}\n" in capsys.readouterr().out
    assert opened == [path.as_uri()]


def test_results_of_earlier_commands_in_the_folder_are_named(export, tmp_path, monkeypatch, capsys):
    results = tmp_path / "out" / "results"
    for name in ("a", "b", "long", "logs"):
        (results / name / ("" if name == "logs" else "tables")).mkdir(parents=True)
    fake_run(monkeypatch)
    settings = ["--set", "filters.long={dataset: a, keep: [{classes: [compute]}]}", "--out", str(tmp_path / "out")]
    assert command.main(["run", str(export), *settings]) == 0
    assert capsys.readouterr().err == (
        f"of earlier commands, still in {results} and in queries of it: b; remove a folder that is no longer wanted\n"
    )
    shutil.rmtree(results / "b")
    assert command.main(["run", str(export), *settings]) == 0
    assert capsys.readouterr().err == ""


def test_an_interrupt_is_passed_on(export, tmp_path, monkeypatch):
    fake_run(monkeypatch, code=130)
    assert command.main(["run", str(export), "--out", str(tmp_path / "out")]) == 130


STATES = [{"state": "held"}, {"state": "inconclusive"}, {"state": "held"}]


@pytest.mark.parametrize(
    ("reasons", "code", "said"),
    [(["too slow"], 1, "the gate is closed\n"), ([], 0, "the gate is open: 3 limits, 1 not decided\n")],
)
def test_a_gate_has_exit_codes(reasons, code, said, export, tmp_path, monkeypatch, capsys):
    verdicts = tmp_path / "out" / "results" / "compare" / "gate.json"
    verdicts.parent.mkdir(parents=True)
    calls = fake_run(monkeypatch, lambda: verdicts.write_text(json.dumps({"reasons": reasons, "states": STATES})))
    arguments = ["gate", str(export), str(export), "--limit", "max_slowdown_percent=5", "--out", str(tmp_path / "out")]
    assert command.main(arguments) == code
    assert capsys.readouterr().out.endswith("".join(f"{line}\n" for line in reasons) + said)
    assert calls[0][-1] == "results/compare/gate.json"
    written = (tmp_path / "out" / "config.yaml").read_text()
    assert "max_slowdown_percent: 5" in written
    assert "baseline: before_a" in written


@pytest.mark.parametrize(
    "second",
    [["gate", "{other}", "{other}"], ["run", "{other}"], ["compare", "{other}", "{other}"], ["windows", "a", "whole"]],
    ids=lambda arguments: arguments[0],
)
def test_a_second_command_in_a_folder_is_refused_until_the_first_has_its_answer(
    second, export, tmp_path, monkeypatch, capsys
):
    out = tmp_path / "out"
    other = tmp_path / "other.csv"
    other.write_text("y,size\n1,2\n2,3\n3,9\n")
    arguments = [argument.format(other=other) for argument in second]
    codes = []
    written = []

    def first():
        names = ("config.yaml", "datasets.tsv")
        written.append([(out / name).read_text() for name in names])
        monkeypatch.setattr(command, "run_workflow", lambda *_: pytest.fail("the second command ran"))
        codes.append(command.main([*arguments, "--out", str(out)]))
        assert [(out / name).read_text() for name in names] == written[0]
        (out / "results" / "compare").mkdir(parents=True)
        (out / "results" / "compare" / "gate.json").write_text(json.dumps({"reasons": ["slow"], "states": STATES}))

    fake_run(monkeypatch, first)
    assert command.main(["gate", str(export), str(export), "--out", str(out)]) == 1
    assert codes == [2]
    assert capsys.readouterr().err == (
        f"causeway: {out}: another causeway command works in it; wait until that has ended, or name another folder with"
        " --out\n"
    )
    verdicts = out / "results" / "compare" / "gate.json"
    fake_run(monkeypatch, lambda: verdicts.write_text(json.dumps({"reasons": [], "states": STATES})))
    assert command.main([*arguments, "--out", str(out)]) == 0


@pytest.mark.parametrize("ending", ["done", "refused", "interrupted"])
def test_a_gate_writes_markdown_and_badge_and_leaves_no_older_verdict(ending, export, tmp_path, monkeypatch, capsys):
    folder = tmp_path / "out" / "results" / "compare"
    files = {"gate.md": tmp_path / "new" / "summary.md", "gate.svg": tmp_path / "badge.svg"}
    files["gate.svg"].write_text("passes, of yesterday")

    def after():
        assert all("could not tell" in path.read_text() for path in files.values())
        if ending == "refused":
            raise CausewayError("Snakemake stopped")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "gate.json").write_text(json.dumps({"reasons": ["too slow"], "states": STATES}))
        for name in files:
            (folder / name).write_text(f"regressed: {name}")

    calls = fake_run(monkeypatch, after, code=130 if ending == "interrupted" else 0)
    options = ["--markdown", str(files["gate.md"]), "--badge", str(files["gate.svg"]), "--out", str(tmp_path / "out")]
    assert command.main(["gate", str(export), str(export), *options]) == {"done": 1, "refused": 2}.get(ending, 130)
    assert set(calls[0][-3:]) == {f"results/compare/{name}" for name in ("gate.json", "gate.md", "gate.svg")}
    for name, path in files.items():
        assert path.read_text() == f"regressed: {name}" if ending == "done" else "could not tell" in path.read_text()


def test_a_gate_without_a_limit_that_applies_has_no_verdict(export, tmp_path, monkeypatch, capsys):
    verdicts = tmp_path / "out" / "results" / "compare" / "gate.json"
    verdicts.parent.mkdir(parents=True)
    fake_run(monkeypatch, lambda: verdicts.write_text(json.dumps({"reasons": [], "states": []})))
    assert command.main(["gate", str(export), str(export), "--out", str(tmp_path / "out")]) == 2
    assert "no limit applies; set one, for example --limit max_slowdown_percent=5" in capsys.readouterr().err


def test_a_workflow_that_stops_says_its_code_and_its_last_lines(capfd):
    program = "import sys; print('one line'); print('the last line'); sys.exit(3)"
    with pytest.raises(CausewayError, match="exit code 3; its last lines are:") as refusal:
        run_workflow([sys.executable, "-c", program])
    assert "the last line" in str(refusal.value)


def test_a_fault_of_the_program_is_no_verdict(export, tmp_path, monkeypatch, capsys):
    fake_run(monkeypatch, after=lambda: 1 / 0)
    assert command.main(["gate", str(export), str(export), "--out", str(tmp_path / "out")]) == 2
    assert "ZeroDivisionError" in capsys.readouterr().err


def test_a_summary_that_cannot_be_written_stops_before_the_analysis(export, tmp_path, monkeypatch, capsys):
    calls = fake_run(monkeypatch)
    arguments = ["gate", str(export), str(export), "--markdown", str(export / "summary.md")]
    assert command.main(arguments) == 2
    assert "cannot be written" in capsys.readouterr().err
    assert calls == []


def test_progress_follows_the_lines_of_snakemake(capsys):
    import sys

    progress = WorkflowProgress(sys.stderr)
    progress.began -= 60
    for line in ("rule align_clocks:", "    input: x", "2 of 8 steps (25%) done", "localrule all:"):
        progress.follow(line)
    assert capsys.readouterr().err == "2 of 8 steps, about 3 min 00 s left, align_clocks\n"
    assert progress.text().endswith("all")
    assert [seconds_in_words(value) for value in (59.9, 61, 3661)] == ["59 s", "1 min 01 s", "1 h 01 min"]


def test_a_job_that_a_cluster_will_never_start_is_shown_at_once(capsys):
    progress = WorkflowProgress()
    line = "Slurm job 5 (rule_causes) will not start: PartitionTimeLimit. It asks for 1:20:00 in partition main."
    assert not progress.follow(line)
    assert capsys.readouterr().err == f"{line}\n"


def test_the_time_left_leaves_out_the_time_that_planning_took(capsys):
    progress = WorkflowProgress()
    progress.began -= 60
    steps = [progress.follow(line) for line in ("Job stats:", "rule a:", "1 of 41 steps (2%) done")]
    assert steps == [False, False, True]
    assert capsys.readouterr().err == "1 of 41 steps, about 0 s left, a\n"


def test_what_was_measured_in_a_table_is_the_column_of_durations_unless_named(monkeypatch, tmp_path, capsys):
    fake_run(monkeypatch, code=1)
    path = tmp_path / "b.csv"
    path.write_text("kernel,time_ms\na,2\n")
    for settings, column in ([], "time_ms"), (["--set", "targets.tables=[size]"], "size"):
        command.main(["run", str(path), "--out", str(tmp_path / "out"), *settings])
        written = yaml.safe_load((tmp_path / "out/config.yaml").read_text())
        assert written["targets"] == {"tables": [column]}
        assert ("measured in tables: time_ms" in capsys.readouterr().err) == (column == "time_ms")


@pytest.mark.parametrize(
    ("header", "column"),
    [
        ("kernel,duration_ns", "duration_ns"),
        ("Start (ns),End (ns),Duration (ns),DurChild (ns),Name", "y"),  # ranges of `nsys stats`
        ("Start (ns),Duration (ns),Name,Result,CorrID,Pid", "y"),  # calls
    ],
)
def test_what_a_profiler_prints_of_calls_or_ranges_is_no_table_of_launches(header, column, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(f"{header}\n{','.join('1' * (header.count(',') + 1))}\n")
    assert table_targets([FoundExport(path=path, format="table", dataset="x", rank=None)]) == ((column,), 0)


def test_a_few_of_many_durations_are_measured_and_the_others_counted(monkeypatch, tmp_path, capsys):
    """A table with a time for each of 300 layers was given 300 targets, each with jobs of its own."""
    fake_run(monkeypatch, code=1)
    path = tmp_path / "b.csv"
    path.write_text(",".join(f"layer_{layer}_ms" for layer in range(300)) + "\n" + ",".join(["1"] * 300) + "\n")
    command.main(["run", str(path), "--out", str(tmp_path / "out")])
    written = yaml.safe_load((tmp_path / "out/config.yaml").read_text())
    assert written["targets"] == {"tables": ["layer_0_ms", "layer_1_ms", "layer_2_ms"]}
    assert "layer_2_ms (297 more named as durations are not); --set" in capsys.readouterr().err

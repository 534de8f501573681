"""What stops the workflow at its start, with the name of the culprit; what the plan looks like, also after an export took
the place of another; and `snakemake verify`, which makes nothing.
"""

import os
import random
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from causeway.command_line.__main__ import main as causeway
from causeway.core.files.checksums import output_folders, recorded
from causeway.core.tables import write_json
from forked_snakemake import run_plan
from support import ROOT, run_snakemake, write_analysis

TABLE = ("x", "", "a.csv", "table")
DISPATCHES = (
    '"Kind","Agent_Id","Queue_Id","Thread_Id","Dispatch_Id","Kernel_Id","Kernel_Name","Correlation_Id",'
    '"Start_Timestamp","End_Timestamp"\n'
)
HOUR_NS = 3_600_000_000_000


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "a.csv").write_text("y,size\n1,2\n2,3\n3,4\n")
    return tmp_path


@pytest.mark.parametrize(
    ("rows", "settings", "message"),
    [
        ([TABLE], "bins: {wdith_us: 10}\n", "wdith_us"),
        (
            [("t", "0", "simulated:demo/rank0.sqlite", "nsys")],
            "bins: {features: [queue_ns, dram_bytes]}\n",
            "configuration: bins: features: dram_bytes: the sheet has traces alone, whose launches have duration_ns and",
        ),
        ([("x", "", "missing.csv", "table")], "", "missing.csv does not exist"),
    ],
)
def test_a_wrong_choice_stops_at_start_with_its_name(folder, rows, settings, message):
    """One of each kind: what else the schema and the sheet refuse is tested without the workflow."""
    run = run_snakemake(folder, "--dry-run", "--quiet", "all", config=write_analysis(folder, rows, settings))
    assert run.returncode != 0
    assert message in run.stdout
    assert "Traceback" not in run.stdout


@pytest.mark.parametrize(
    ("second", "message"),
    [
        (("a", "b__c"), "the pairs a__b and c, a and b__c would both be results/compare/a__b__c; give one of these "),
        (("a__b", "c"), "the pair a__b and c stands twice in `pairs`"),
    ],
)
def test_pairs_that_would_share_a_folder_stop_at_start(folder, second, message):
    rows = [(name, "", "a.csv", "table") for name in ("a", "a__b", "b__c", "c")]
    pairs = [{"baseline": one, "candidate": other} for one, other in (("a__b", "c"), second)]
    config = write_analysis(folder, rows, f"compare: {{pairs: {pairs}}}\n")
    run = run_snakemake(folder, "--dry-run", "--quiet", "all", config=config)
    assert run.returncode != 0
    assert f"configuration: compare: {message}" in run.stdout
    assert "Traceback" not in run.stdout


@pytest.mark.parametrize("settings", ["", pytest.param("bins: {block: 0}\n", marks=pytest.mark.slow)])
def test_a_fork_of_snakemake_says_what_one_says_that_is_started_anew(folder, settings):
    config = write_analysis(folder, [TABLE], settings)
    runs = [run_snakemake(folder, "--dry-run", config=config, anew=anew) for anew in (False, True)]
    said = [sorted(re.sub(r"^\[.*\]$", "", run.stdout, flags=re.MULTILINE).splitlines()) for run in runs]
    assert said[0] == said[1]
    assert [bool(run.returncode) for run in runs] == [bool(settings)] * 2
    assert any(("block" if settings else "normalise_export") in line for line in said[0])


def test_a_missing_sheet_is_named(folder):
    (folder / "config.yaml").write_text("datasets: nowhere.tsv\n")
    run = run_snakemake(folder, "--dry-run", config=folder / "config.yaml")
    assert run.returncode != 0
    assert "nowhere.tsv does not exist" in run.stdout
    assert "Traceback" not in run.stdout


def test_every_choice_of_bins_and_ranking_reaches_the_program(folder):
    """Four workers for each rank; settings that have no effect any more are accepted."""
    settings = """
bins: {width_us: 5000, launches: 9, features: [queue_ns, size], mean: rank, link: overlap, link_window_us: 7.5, more_widths_us: [1000, 20000],
       assignment: round_robin, block: 3, workers: processes}
ranking: {score: iqr, keep_count: 12, keep_max_rows: 99, control_ratio: 0.5, control_min_rows: 77}
seed: 5
"""
    rows = [("x", "0", "simulated:demo/rank0.sqlite", "nsys"), ("y", "", "a.csv", "table")]
    config = write_analysis(folder, rows, settings)
    options = ["--dry-run", "--printshellcmds", "--set-threads", "bin_launches=4", "--cores", "8"]
    run = run_snakemake(folder, *options, "results/x/memory_stall/bins_20000000ns.parquet", config=config)
    assert run.returncode == 0, run.stdout
    for option in (
        *(
            "--width-us 5000",
            "--launches-per-bin 9",
            "--features queue_ns size",
            "--mean rank",
            "--link-window-us 7.5",
        ),
        *(
            "--more-widths-us 1000 20000",
            "--workers 4",
        ),
        *(
            "--score iqr",
            "--keep-count 12",
            "--keep-max-rows 99",
            "--control-ratio 0.5",
            "--control-min-rows 77",
            "--seed 5",
        ),
    ):
        assert option in run.stdout


def test_the_slurm_profile_plans_the_whole_workflow_by_its_name_in_a_clone(tmp_path, monkeypatch):
    """Snakemake looks for a profile in the working folder, then in the user's home, which is empty here."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    run = run_snakemake(tmp_path, "--profile", "slurm", "--dry-run", "--printshellcmds")
    assert run.returncode == 0, run.stdout
    for rule in ("normalise_export", "bin_launches", "discover_causes", "write_overview"):
        assert rule in run.stdout
    assert "measure_scaling" not in run.stdout
    assert "srun --mpi=pmi2 --kill-on-bad-exit=1 -n 2 python -m mpi4py" in run.stdout


@pytest.mark.parametrize(
    ("limit", "limited"),
    [([], False), pytest.param(["--max-jobs-per-timespan", "4/1s"], True, marks=pytest.mark.slow)],
)
def test_the_scheduler_works_once_per_job_unless_the_user_limits_it(tmp_path, limit, limited):
    """A pass of Snakemake's scheduler says how many jobs are ready; with its limit there are 40 and more for 16 jobs."""
    (tmp_path / "Snakefile").write_text(
        f'include: "{ROOT}/rules/functions/scheduling.smk"\n'
        "onstart:\n    lift_job_limit()\n"
        'rule all:\n    input: expand("{i}", i=range(15))\n'
        'rule one:\n    output: "{i}"\n    shell: "sleep 0.1; touch {output}"\n'
    )
    run = run_snakemake(tmp_path, "--cores", "1", "--verbose", *limit, root=tmp_path, forked=True)
    assert run.returncode == 0, run.stdout
    passes = run.stdout.count("Ready jobs")
    assert passes > 20 if limited else passes <= 17


def test_plain_pytest_finds_what_tests_share():
    """`python -m pytest` looks for modules in the folder where it is started, `pytest` does not."""
    program = Path(sys.executable).with_name("pytest")
    run = subprocess.run(
        [program, "-n", "0", "--collect-only", "tests/unit/waiting/test_staying_time.py"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stdout + run.stderr


def test_lint_is_clean(tmp_path):
    run = run_snakemake(tmp_path, "--lint")
    assert run.returncode == 0, run.stdout


@pytest.mark.parametrize(
    "command",
    [
        ["ruff", "check", "."],
        ["ruff", "format", "--check", "."],
        ["snakefmt", "--check", "Snakefile", "rules", "lab/rules"],
    ],
    ids=" ".join,
)
def test_format_is_clean(command):
    program = Path(sys.executable).with_name(command[0])
    if not program.exists() and shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    run = subprocess.run([str(program), *command[1:]], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def dispatches(count, duration):
    rows = [
        f'"KERNEL_DISPATCH","Agent 4",1,1,{n},1,"k",{n},{1000 * n},{1000 * n + duration}\n' for n in range(1, count)
    ]
    return DISPATCHES + "".join(rows)


def moved_by(path, hours):
    time = path.stat().st_mtime_ns + hours * HOUR_NS
    os.utime(path, ns=(time, time))


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A table, and a folder of one file, both read."""
    folder = tmp_path_factory.mktemp("replaced")
    (folder / "a.csv").write_text("y,size\n" + "".join(f"{n},{n % 3}\n" for n in range(40)))
    (folder / "b").mkdir()
    (folder / "b" / "1_kernel_trace.csv").write_text(dispatches(50, 500))
    config = write_analysis(folder, [("x", "0", "a.csv", "table"), ("z", "0", "b", "rocprofv3")])
    targets = [f"results/{name}/tables/0" for name in ("x", "z")]
    run = run_snakemake(folder, "--cores", "2", *targets, config=config, forked=True)
    assert run.returncode == 0, run.stdout[-3000:]
    return folder, targets


def planned(folder, targets):
    """Return what a dry run says that it would do."""
    run = run_snakemake(folder, "--dry-run", *targets, config=folder / "config.yaml")
    assert run.returncode == 0, run.stdout[-3000:]
    return run.stdout


def changed(file, content, hours):
    """Put another file in the place of one, by so many hours younger; return what puts the first back."""
    before = file.read_text()
    time = file.stat().st_mtime_ns
    file.write_text(content)
    moved_by(file, hours)

    def back():
        file.write_text(before)
        os.utime(file, ns=(time, time))

    return back


def test_a_file_in_the_place_of_another_is_read_if_it_is_older_or_inside_a_folder_too(finished):
    folder, targets = finished
    table = folder / "a.csv"
    trace = folder / "b" / "1_kernel_trace.csv"
    for file, content, hours, again in (
        (table, table.read_text().replace("7,1", "7,2"), -1, {"x"}),
        (trace, dispatches(50, 600), -1, {"z"}),
        (trace, dispatches(50, 600), 1, {"z"}),
    ):
        back = changed(file, content, hours)
        said = planned(folder, targets)
        assert {name for name in ("x", "z") if f"results/{name}/tables/0" in said} == again
        back()
    assert "Nothing to be done" in planned(*finished), "the same exports are not read again"


def test_a_full_folder_of_temporary_files_does_not_stop_the_choice_of_jobs(folder, monkeypatch):
    """A solver that writes its problem into a file finds no space for it."""
    (folder / "sitecustomize.py").write_text(
        "import os, pulp\n"
        "def full(*arguments, **options):\n"
        "    raise OSError(28, os.strerror(28))\n"
        "pulp.LpProblem.writeMPS = pulp.LpProblem.writeLP = full\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(folder))
    config = write_analysis(folder, [("x", "0", "a.csv", "table")])
    run = run_snakemake(folder, "--cores", "2", "results/x/tables/0", config=config)
    assert "No space left" not in run.stdout
    assert run.returncode == 0, run.stdout[-3000:]


@pytest.fixture
def analysis(tmp_path):
    """Return the folder and the configuration of an analysis with results as a whole run leaves them."""
    folder = tmp_path / "my analysis"
    configuration = write_analysis(folder, [("x", "", "a.csv", "table")])
    draw = random.Random(1)
    (folder / "a.csv").write_text("\n".join(["y,size", *(f"{draw.random()},{n}" for n in range(200)), ""]))
    results = folder / "results"
    (results / "x" / "tables" / "e0").mkdir(parents=True)
    for name in ("x/quality.json", "x/tables/e0/capabilities.json", "x/tables/e0/.snakemake_timestamp"):
        (results / name).write_text("{}")
    document = {"schema_version": "1", "files": recorded(results), "folders": output_folders(results)}
    write_json(document, results / "checksums.json", "checksums")
    return folder, configuration


def test_whole_results_pass_and_damaged_ones_are_named(analysis):
    folder, configuration = analysis
    done = run_snakemake(folder, "-c1", "verify", config=configuration, forked=True)
    assert done.returncode == 0, done.stdout
    assert "2 files are as they were recorded" in (folder / "results" / "logs" / "verify.log").read_text()
    (folder / "results" / "x" / "quality.json").write_text("[]")
    shutil.rmtree(folder / "results" / "x" / "tables")
    done = run_snakemake(
        folder, "-c1", "verify", "--config", "seed=7", "bins={mean: global}", config=configuration, forked=True
    )
    assert done.returncode != 0
    assert "missing: x/tables/e0/capabilities.json\nchanged: x/quality.json\n" in done.stdout
    assert "Traceback" not in done.stdout
    assert "internal error" not in done.stdout
    advised = shlex.split(re.search("to make them again: (snakemake .*)", done.stdout)[1])
    assert advised[advised.index("--config") + 1 :][:2] == ["seed=7", 'bins={"mean": "global"}']
    assert advised[-3:] == ["--forcerun", "results/x/quality.json", "results/x/tables/e0"]
    assert_planned(advised, folder.parent)
    (folder / "results" / "checksums.json").unlink()
    done = run_snakemake(folder, "-c1", "verify", config=configuration, forked=True)
    assert "results/checksums.json: there is no record of checksums yet" in done.stdout


def test_the_command_that_causeway_advises_runs(analysis, capsys):
    folder, _ = analysis
    (folder / "results" / "x" / "quality.json").write_text("[]")
    shutil.rmtree(folder / "results" / "x" / "tables")
    assert causeway(["verify", str(folder)]) == 1
    advised = capsys.readouterr().out.splitlines()[-1].removeprefix("to make them again: ")
    assert_planned(shlex.split(advised), folder.parent)


def assert_planned(command, elsewhere):
    """Assert that a command, given in another folder, plans the rules of the damaged outputs because they are named."""
    done = run_plan([*command, "--dry-run"], elsewhere, os.environ)
    assert done.returncode == 0, done.stdout
    for rule in ("normalise_export", "align_clocks"):
        assert re.search(rf"rule {rule}:", done.stdout), done.stdout


def test_a_job_has_the_workflows_locale_and_not_the_users(tmp_path, monkeypatch):
    """MPI's network library does not start under a Turkish one."""
    lines = (
        f'include: "{ROOT / "Snakefile"}"',
        "rule say:",
        '    output: "said"',
        '    shell: "echo $LC_ALL > {output}"',
    )
    (tmp_path / "Snakefile").write_text("\n".join(lines) + "\n", encoding="utf-8")
    monkeypatch.setenv("LC_ALL", "tr_TR.UTF-8")
    run_snakemake(tmp_path, "--cores", "1", "said", root=tmp_path)
    assert (tmp_path / "said").read_text() == "C.UTF-8\n"

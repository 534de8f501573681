"""`snakemake verify` finds the record, and says what of the results is not as it was."""

import random
import re
import shlex
import shutil
import subprocess

import pytest

from causeway.command_line.__main__ import main as causeway
from causeway.core.files.checksums import output_folders, recorded
from causeway.core.tables import write_json
from progress import run_by_progress
from support import run_snakemake, write_analysis


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
    done = run_snakemake(folder, "-c1", "verify", config=configuration)
    assert done.returncode == 0, done.stdout
    assert "2 files are as they were recorded" in (folder / "results" / "logs" / "verify.log").read_text()
    (folder / "results" / "x" / "quality.json").write_text("[]")
    shutil.rmtree(folder / "results" / "x" / "tables")
    done = run_snakemake(folder, "-c1", "verify", "--config", "seed=7", "bins={mean: global}", config=configuration)
    assert done.returncode != 0
    assert "missing: x/tables/e0/capabilities.json\nchanged: x/quality.json\n" in done.stdout
    assert "Traceback" not in done.stdout
    assert "internal error" not in done.stdout
    advised = shlex.split(re.search("to make them again: (snakemake .*)", done.stdout)[1])
    assert advised[advised.index("--config") + 1 :][:2] == ["seed=7", 'bins={"mean": "global"}']
    assert advised[-3:] == ["--forcerun", "results/x/quality.json", "results/x/tables/e0"]
    assert_planned(advised, folder.parent)
    (folder / "results" / "checksums.json").unlink()
    done = run_snakemake(folder, "-c1", "verify", config=configuration)
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
    done = run_by_progress([*command, "--dry-run"], [], cwd=elsewhere, stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
    for rule in ("normalise_export", "check_quality"):
        assert re.search(rf"rule {rule}:", done.stdout), done.stdout

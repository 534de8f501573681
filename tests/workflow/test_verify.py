"""`snakemake verify` finds the record, and says what of the results is not as it was."""

import random

import pytest

from causeway.core.files.checksums import recorded
from causeway.core.tables import write_json
from support import run_snakemake, write_analysis


@pytest.fixture
def analysis(tmp_path):
    """Return the folder and the configuration of an analysis with results as a whole run leaves them."""
    draw = random.Random(1)
    (tmp_path / "a.csv").write_text("\n".join(["y,size", *(f"{draw.random()},{n}" for n in range(200)), ""]))
    configuration = write_analysis(tmp_path, [("x", "", "a.csv", "table")])
    results = tmp_path / "results"
    (results / "x").mkdir(parents=True)
    (results / "x" / "quality.json").write_text("{}")
    write_json({"schema_version": "1", "files": recorded(results)}, results / "checksums.json", "checksums")
    return tmp_path, configuration


def test_whole_results_pass_and_damaged_ones_are_named(analysis):
    folder, configuration = analysis
    done = run_snakemake(folder, "-c1", "verify", config=configuration)
    assert done.returncode == 0, done.stdout
    assert "1 files are as they were recorded" in (folder / "results" / "logs" / "verify.log").read_text()
    (folder / "results" / "x" / "quality.json").write_text("[]")
    done = run_snakemake(folder, "-c1", "verify", config=configuration)
    assert done.returncode != 0
    assert "changed: x/quality.json" in done.stdout
    assert "Traceback" not in done.stdout
    assert "internal error" not in done.stdout
    (folder / "results" / "checksums.json").unlink()
    done = run_snakemake(folder, "-c1", "verify", config=configuration)
    assert "results/checksums.json: there is no record of checksums yet" in done.stdout

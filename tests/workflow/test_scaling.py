"""`snakemake scaling` on a small dataset: a target of its own, with a figure in the report. What it times runs by itself in
`tests/mpi/test_timed_runs.py`.
"""

import json
import zipfile

import pytest

from support import run_snakemake

SETTINGS = "scaling: {launches: 100000, exports: 2, ranks: [1, 2], repetitions: 1}\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    (folder / "config.yaml").write_text(SETTINGS)
    run = run_snakemake(folder, "--cores", "2", "scaling", config=folder / "config.yaml")
    assert run.returncode == 0, run.stdout[-6000:]
    assert "overview.html" not in run.stdout  # there is none to open
    return folder


@pytest.mark.slow
def test_it_measures_strong_and_weak_scaling_and_leaves_no_dataset(folder):
    study = json.loads((folder / "results/scaling/scaling.json").read_text())
    assert [(point["ranks"], point["launches"]) for point in study["strong"]] == [(1, 100_000), (2, 100_000)]
    assert [(point["ranks"], point["launches"]) for point in study["weak"]] == [(1, 50_000), (2, 100_000)]
    for run in study["runs"]:
        assert sum(run["phases"].values()) == pytest.approx(run["wall_s"], abs=0.05)
        assert run["phases"].keys() > {"means", "bins"}
        assert run["peak_rss_mb"] > 50
        assert run["cpu_s"] > 0
    assert study["no_projection"]  # so few launches tell nothing of many
    assert sorted(path.name for path in (folder / "results/scaling").iterdir()) == ["scaling.json", "scaling.svg"]
    assert not (folder / "results/overview.html").exists()


@pytest.mark.slow
def test_the_report_has_its_figure(folder):
    run = run_snakemake(folder, "--report", "scaling.zip", "--", "scaling", config=folder / "config.yaml", forked=True)
    assert run.returncode == 0, run.stdout[-6000:]
    with zipfile.ZipFile(folder / "scaling.zip") as report:
        page = next(name for name in report.namelist() if name.endswith("report.html"))
        text = report.read(page).decode()
    assert "How it scales" in text
    assert "Karp and Flatt" in text
    assert "A report lists what its targets made" in text


def test_it_is_planned_by_its_name(tmp_path):
    """Alone: it is no part of `all` (test_start.py)."""
    (tmp_path / "config.yaml").write_text(SETTINGS)
    run = run_snakemake(tmp_path, "--dry-run", "scaling", config=tmp_path / "config.yaml")
    assert run.returncode == 0, run.stdout
    assert "measure_scaling" in run.stdout

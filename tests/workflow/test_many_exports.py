"""Datasets of many exports: few jobs, the same bytes, pages that stay readable."""

import json
import os
import re
import resource

import pytest

from support import OF_THE_CLONE, copy_checkout, digests_under, real_exports, run_snakemake, write_analysis

PLAN_CPU_S = 15
"""CPU-seconds that the plan of 1,000 exports may take."""
JOBS = 60
"""Jobs of a dataset, however many exports it has: 12 read them, the others are those of any dataset of traces."""
SETTINGS = "causes: {batches: 1, kernels_count: 2, max_rows: 1000}\n"


def linked(folder, count):
    """Link small real exports under many names, an empty file among them; return the rows of the sheet."""
    folder.mkdir(parents=True)
    small = sorted((OF_THE_CLONE / name for name in real_exports() if "nsys_sqlite" in name), key=os.path.getsize)[:2]
    rows = []
    for rank in range(count):
        path = folder / f"rank{rank}.sqlite"
        if rank == 1:
            path.touch()
        else:
            os.link(small[rank % 2], path)
        rows.append(("many", rank, path, "nsys", f"n{rank // 8}"))
    return rows


@pytest.mark.slow
def test_the_plan_of_a_thousand_exports_is_quick_and_has_few_jobs(tmp_path):
    config = write_analysis(tmp_path, linked(tmp_path / "exports", 1000))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run = run_snakemake(tmp_path, "--cores", "2", "-n", config=config, anew=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert run.returncode == 0, run.stdout[-6000:]
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime <= PLAN_CPU_S
    counts = dict(re.findall(r"^(\w+) +(\d+)$", run.stdout, re.MULTILINE))
    assert sum(name.startswith("normalise_exports_") for name in counts) == 12
    assert "normalise_export" not in counts
    assert int(counts["total"]) <= JOBS
    read = re.findall(r"^    output: (.*/tables/.*)$", run.stdout, re.MULTILINE)
    assert sorted(path for line in read for path in line.split(", ")) == sorted(
        f"results/many/tables/{rank}" for rank in range(1000)
    )


@pytest.mark.slow
def test_one_job_for_all_exports_writes_the_bytes_of_a_job_for_each(tmp_path):
    rows = linked(tmp_path / "exports", 3)
    found = []
    for name, jobs in (("each", 3), ("all", 1)):
        checkout = copy_checkout(tmp_path / name / "checkout")
        batches = checkout / "rules" / "functions" / "batches.smk"
        text, n_changed = re.subn(r"(?m)^INGEST_JOBS = \d+$", f"INGEST_JOBS = {jobs}", batches.read_text())
        assert n_changed == 1
        batches.write_text(text)
        targets = [f"results/many/tables/{rank}" for rank in range(3)]
        run = run_snakemake(
            tmp_path / name, "--cores", "1", *targets, config=write_analysis(tmp_path / name, rows), root=checkout
        )
        assert run.returncode == 0, run.stdout[-6000:]
        assert ("normalise_exports_0" in run.stdout) == (jobs == 1)
        found.append(digests_under(tmp_path / name / "results"))
    assert found[0] == found[1]
    assert json.loads((tmp_path / "all/results/many/tables/1/capabilities.json").read_text())["status"] == "refused"


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_two_hundred_exports_run_to_the_overview(tmp_path):
    checkout = copy_checkout(tmp_path / "checkout")
    config = write_analysis(tmp_path, linked(tmp_path / "exports", 200), SETTINGS)
    run = run_snakemake(tmp_path, "--cores", "2", "--quiet", "rules", config=config, root=checkout)
    assert run.returncode == 0, run.stdout[-6000:]
    results = tmp_path / "results"
    quality = json.loads((results / "many" / "quality.json").read_text())
    assert len(quality["exports"]) == 200
    assert (results / "overview.html").stat().st_size < 5e6

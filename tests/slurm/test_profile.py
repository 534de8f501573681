"""The Slurm profile on a real cluster: datasets at once, ranks on several nodes, and the same bytes whatever is lost
on the way.
"""

import json
import os
import shutil
import signal
import subprocess
import time

import pytest
import yaml

from support import (
    OF_THE_CLONE,
    ROOT,
    copy_checkout,
    digests_under,
    real_exports,
    run_snakemake,
    snakemake_command,
    write_analysis,
)

DATASETS = ("one", "two")
BINNED = ("kernel_variability", "memory_stall")
TASKS = 3
"""Ranks per dataset: more than a node has CPUs, and with two datasets as many as there are CPUs."""
CPUS = 2
"""CPUs of a node (conftest.py): a group that runs more steps at once would never start."""
MOST_JOBS = 15
"""Slurm jobs of a default run, whatever its number of steps."""
TARGETS = [f"results/{dataset}/kernel_variability/bins.parquet" for dataset in DATASETS]
SETTINGS = """\
simulated:
  one: {kind: trace, ranks: 2, nodes: 2, iterations: 60, seed: 1}
  two: {kind: trace, ranks: 2, nodes: 2, iterations: 60, seed: 2}
causes: {batches: 1, resamples: 2, kernels_count: 2}
"""


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory):
    """Run the datasets' inputs and bins without a cluster, on one rank; return the folder."""
    folder = tmp_path_factory.mktemp("undisturbed")
    copy_checkout(folder / "checkout")
    rows = [
        (dataset, rank, f"simulated:{dataset}/rank{rank}.sqlite", "nsys") for dataset in DATASETS for rank in (0, 1)
    ]
    write_analysis(folder, rows, SETTINGS)
    run = run_snakemake(
        folder, "--set-resources", "bin_launches:tasks=1", "--cores", "2", *TARGETS, **of(folder), forked=True
    )
    assert run.returncode == 0, run.stdout[-6000:]
    return folder


@pytest.fixture
def folder(undisturbed, tmp_path):
    """Return a copy of that folder in which the bins are still to be made."""
    shutil.copytree(undisturbed, tmp_path, dirs_exist_ok=True)
    for dataset in DATASETS:
        for target in BINNED:
            shutil.rmtree(tmp_path / "results" / dataset / target)
    return tmp_path


def of(folder):
    return {"config": folder / "config.yaml", "root": folder / "checkout"}


def own_profile(folder, **changes):
    """Write a copy of the profile as a user would: fewer ranks than on a real cluster, and no minute's patience;
    return its folder.
    """
    profile = yaml.safe_load((ROOT / "profiles" / "slurm" / "profile.yaml").read_text())
    profile["slurm-init-seconds-before-status-checks"] = 6
    profile["resources"]["side_by_side"] = CPUS
    for changed in profile["set-resources"].values():
        if "side_by_side" in changed:
            changed["side_by_side"] = CPUS
    tasks = changes.pop("tasks", TASKS)
    for rule in ("bin_launches", "bin_measurements", "measure_efficiency") if tasks else ():
        profile["set-resources"][rule]["tasks"] = tasks
    mpi = changes.pop("mpi", None)
    if mpi:
        profile["set-resources"]["bin_launches"]["mpi"] = mpi
    (folder / "own").mkdir()
    (folder / "own" / "profile.yaml").write_text(yaml.safe_dump(profile | changes))
    return str(folder / "own")


class Run:
    """The workflow, running on the cluster."""

    def __init__(self, cluster, folder, profile, *targets):
        self.cluster = cluster
        self.folder = folder
        self.before = len(cluster.jobs())
        command, environment = snakemake_command(folder, "--profile", profile, *targets, **of(folder))
        # a batch job takes over the environment: the cluster's `srun` first, then this Python, then what the cluster's
        # programs need
        environment |= {
            "SLURM_CONF": cluster.environment["SLURM_CONF"],
            "PATH": f"{cluster.bin}:{environment['PATH']}:/usr/sbin:/sbin",
        }
        with open(folder / "output.txt", "w") as output:
            self.process = subprocess.Popen(
                command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def jobs(self, dataset):
        """Return the Slurm jobs that made, or make, a dataset's bins, in order."""
        wanted = f"rule_bin_launches_wildcards_{dataset}"
        return [job for job in self.cluster.jobs()[self.before :] if job["comment"] == wanted]

    def ranks(self, node):
        """Return the processes of bin_launches on a node."""
        return [
            pid
            for pid, line in self.cluster.processes(node)
            if "-m mpi4py" in line and not line.startswith(("/bin/", "/usr/bin/srun"))
        ]

    def until(self, ready, seconds=120):
        """Wait for something to hold while the workflow runs; return it."""
        limit = time.monotonic() + seconds
        while not (found := ready()):
            assert self.process.poll() is None, self.said()
            assert time.monotonic() < limit, self.said()
            time.sleep(0.05)
        return found

    def end(self, seconds=400):
        """Wait for the end; return the exit status."""
        return self.process.wait(seconds)

    def said(self):
        return (self.folder / "output.txt").read_text()[-8000:]


def same_bytes(folder, other):
    folders = [place / "results" if (place / "results").is_dir() else place for place in (folder, other)]
    return digests_under(folders[0]) == digests_under(folders[1])


@pytest.mark.slow  # and in the checks of a pull request
def test_two_datasets_run_at_once_each_on_several_nodes(cluster, folder, undisturbed):
    with Run(cluster, folder, own_profile(folder), *TARGETS) as run:
        assert run.end() == 0, run.said()
    [one], [two] = (run.jobs(dataset) for dataset in DATASETS)
    assert max(one["start"], two["start"]) < min(one["end"], two["end"])
    assert all(len(job["nodes"].split(",")) == 2 for job in (one, two))
    for dataset in DATASETS:
        assert f"{TASKS} rank(s)" in (folder / f"results/logs/bin_launches/{dataset}.log").read_text()
    assert same_bytes(folder, undisturbed)


@pytest.mark.slow
def test_a_job_that_no_partition_takes_is_named(cluster, folder):
    """An hour is the limit of this cluster; Slurm keeps a job that asks for more pending."""
    scheduling = folder / "checkout" / "rules" / "functions" / "scheduling.smk"
    scheduling.write_text(scheduling.read_text().replace("SECONDS_BETWEEN_LOOKS = 20", "SECONDS_BETWEEN_LOOKS = 1"))
    profile = own_profile(folder)
    changed = yaml.safe_load((folder / "own" / "profile.yaml").read_text())
    changed["set-resources"]["bin_launches"]["runtime"] = 90
    (folder / "own" / "profile.yaml").write_text(yaml.safe_dump(changed))
    with Run(cluster, folder, profile, TARGETS[0]) as run:
        run.until(lambda: "will not start: PartitionTimeLimit" in run.said())
        [job] = run.jobs("one")
        assert job["state"] == "PENDING"
        assert f"Slurm job {job['id']} (rule_bin_launches_wildcards_one)" in run.said()
        assert "It asks for 1:30:00 in partition main" in run.said()
        cluster.run("scancel", job["id"])


@pytest.mark.slow
def test_ranks_are_as_many_as_the_tables_are_worth(cluster, folder, undisturbed):
    functions = folder / "checkout" / "rules" / "functions" / "resources.smk"
    bytes_of_tables = sum(file.stat().st_size for file in (folder / "results/one/tables").rglob("*"))
    worth = bytes_of_tables / 1e6 / (TASKS + 0.5)
    functions.write_text(functions.read_text().replace("MB_PER_RANK = 100", f"MB_PER_RANK = {worth}"))
    with Run(cluster, folder, own_profile(folder, tasks=None), TARGETS[0]) as run:
        assert run.end() == 0, run.said()
    assert f"{TASKS} rank(s)" in (folder / "results/logs/bin_launches/one.log").read_text()
    assert same_bytes(folder / "results/one", undisturbed / "results/one")


@pytest.mark.slow
def test_a_launcher_that_does_not_fit_stops_with_what_to_set(cluster, folder):
    with Run(cluster, folder, own_profile(folder, mpi="srun --mpi=none", retries=0), TARGETS[0]) as run:
        assert run.end() != 0
    assert f"{TASKS} ranks were asked for, but this program was started as one of 1" in run.said()
    assert "srun --mpi=pmi2" in run.said()
    assert not list((folder / "results").rglob("bins.parquet*"))


@pytest.mark.slow
def test_a_killed_rank_costs_one_more_attempt_with_more_memory(cluster, folder, undisturbed):
    with Run(cluster, folder, own_profile(folder), *TARGETS) as run:
        node = run.until(lambda: next((job for job in run.jobs("one") if job["state"] == "RUNNING"), None))[
            "nodes"
        ].split(",")[-1]
        os.kill(run.until(lambda: run.ranks(node))[-1], signal.SIGKILL)
        assert run.end() == 0, run.said()
    assert len(run.jobs("one")) + len(run.jobs("two")) == 3, run.said()
    assert "mem_mb_per_cpu=4000" in run.said()
    assert same_bytes(folder, undisturbed)


@pytest.mark.slow
def test_a_cancelled_job_costs_one_more_attempt(cluster, folder, undisturbed):
    with Run(cluster, folder, own_profile(folder), TARGETS[0]) as run:
        job = run.until(lambda: next((job for job in run.jobs("one") if job["state"] == "RUNNING"), None))
        run.until(lambda: run.ranks(job["nodes"].split(",")[0]))
        cluster.run("scancel", job["id"])
        assert run.end() == 0, run.said()
    assert [job["state"] for job in run.jobs("one")] == ["CANCELLED", "COMPLETED"]
    assert same_bytes(folder / "results/one", undisturbed / "results/one")


@pytest.mark.slow
@pytest.mark.parametrize("place", [0, -1], ids=["where the job began", "where only ranks are"])
def test_a_lost_node_costs_one_more_attempt_elsewhere(cluster, folder, undisturbed, place):
    with Run(cluster, folder, own_profile(folder), *TARGETS) as run:
        node = run.until(lambda: next((job for job in run.jobs("one") if job["state"] == "RUNNING"), None))[
            "nodes"
        ].split(",")[place]
        run.until(lambda: run.ranks(node))
        cluster.lose(node)
        try:
            assert run.end() == 0, run.said()
        finally:
            cluster.bring_up(node)
    lost, *again = (job["state"] for job in run.jobs("one"))
    assert lost == "NODE_FAIL" or place, lost  # else `srun` may see it before the controller does
    assert lost in ("NODE_FAIL", "FAILED")
    assert again[-1] == "COMPLETED"
    assert node not in run.jobs("one")[-1]["nodes"].split(",")
    assert same_bytes(folder, undisturbed)


@pytest.mark.slow
def test_many_exports_are_read_by_few_slurm_jobs(cluster, tmp_path):
    small = min((OF_THE_CLONE / name for name in real_exports() if "nsys_sqlite" in name), key=os.path.getsize)
    exports = 5
    for name in ("here", "there"):
        checkout = copy_checkout(tmp_path / name / "checkout")
        batches = checkout / "rules" / "functions" / "batches.smk"
        batches.write_text(batches.read_text().replace("INGEST_JOBS = 12", "INGEST_JOBS = 2"))
        rows = [("many", rank, f"rank{rank}.sqlite", "nsys") for rank in range(exports)]
        for _, _, path, _ in rows:
            os.link(small, tmp_path / name / path)
        write_analysis(tmp_path / name, rows)
    targets = [f"results/many/tables/{rank}" for rank in range(exports)]
    here = run_snakemake(tmp_path / "here", "--cores", "2", *targets, **of(tmp_path / "here"))
    assert here.returncode == 0, here.stdout[-6000:]
    with Run(cluster, tmp_path / "there", own_profile(tmp_path / "there"), *targets) as run:
        assert run.end() == 0, run.said()
        jobs = cluster.jobs()[run.before :]
    assert sorted(job["comment"] for job in jobs) == ["rule_normalise_exports_0", "rule_normalise_exports_1"]
    assert same_bytes(tmp_path / "there", tmp_path / "here")


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_whole_workflow_ends_with_the_bytes_of_a_local_run(cluster, undisturbed, tmp_path):
    folders = {name: tmp_path / name for name in ("here", "there")}
    for folder in folders.values():
        shutil.copytree(undisturbed, folder)
        (folder / "config.yaml").write_text(
            f"datasets: datasets.tsv\n{SETTINGS}targets: {{traces: [kernel_variability]}}\n"
        )
    here = run_snakemake(folders["here"], "--cores", "2", **of(folders["here"]))
    assert here.returncode == 0, here.stdout[-6000:]
    with Run(cluster, folders["there"], own_profile(folders["there"])) as run:
        assert run.end(1500) == 0, run.said()
        jobs = cluster.jobs()[run.before :]
    assert len(jobs) <= MOST_JOBS, [job["comment"] for job in jobs]
    assert same_bytes(folders["there"], folders["here"])


@pytest.mark.slow
def test_the_scaling_study_is_one_job_on_several_nodes(cluster, undisturbed, tmp_path):
    shutil.copytree(undisturbed, tmp_path, dirs_exist_ok=True)
    shutil.copytree(ROOT / "lab", tmp_path / "checkout" / "lab")
    with open(tmp_path / "config.yaml", "a") as config:
        config.write("scaling: {launches: 400000, exports: 2, ranks: [1, 2, 4], repetitions: 2}\n")
    with Run(cluster, tmp_path, own_profile(tmp_path), "scaling") as run:
        assert run.end() == 0, run.said()
    [job] = [job for job in cluster.jobs()[run.before :] if job["comment"] == "rule_measure_scaling"]
    assert len(job["nodes"].split(",")) == 2
    study = json.loads((tmp_path / "results/scaling/scaling.json").read_text())
    assert (study["machine"]["launcher"], study["machine"]["cores"]) == ("srun", None)
    assert [point["ranks"] for point in study["strong"]] == [1, 2, 4]
    assert not any(point["shares_cores"] for point in [*study["strong"], *study["weak"]])
    assert all(run["peak_rss_mb"] > 0 for run in study["runs"])
    assert "<svg" in (tmp_path / "results/scaling/scaling.svg").read_text()
    assert not (tmp_path / "results/scaling/datasets").is_dir()

"""Killed at random moments, the workflow resumes and ends with the bytes of an undisturbed run.

In every run of the tests a small workflow is interrupted and goes on (tests/unit/command_line/test_terminal.py), and a writer and
a reader are killed (tests/unit/core/files/test_whole_files.py, tests/unit/readers/test_batch.py).
"""

import contextlib
import random
import re
import shutil
import subprocess
import time

import psutil
import pytest

from support import copy_checkout, digests_under, run_snakemake, snakemake_command, write_analysis

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]
ROWS = [
    ("traced", "0", "simulated:traced/rank0.sqlite", "nsys"),
    ("traced", "1", "simulated:traced/rank1.sqlite", "nsys"),
    ("counted", "", "simulated:counted/counters.csv", "ncu"),
]
SETTINGS = """\
simulated:
  traced: {kind: trace, ranks: 2, nodes: 2, iterations: 60, seed: 1}
  counted: {kind: counters, launches: 300, seed: 1}
causes: {batches: 1, kernels_count: 2}
"""


WAYS = {
    "with all that it started": lambda process: family(process.pid),
    "alone, so that its jobs go on": lambda process: [psutil.Process(process.pid)],
}


def family(pid):
    """Return a process and all that it started, mpiexec, ranks and workers too, whatever process groups these made
    for themselves.
    """
    top = psutil.Process(pid)
    return [top, *top.children(recursive=True)]


def kill(process, way):
    """Kill at once; return when nothing of the run is left, jobs that were spared included."""
    top = psutil.Process(process.pid)
    top.suspend()  # or it would start another job meanwhile
    started = family(process.pid)
    for each in WAYS[way](process):
        with contextlib.suppress(psutil.NoSuchProcess):
            each.kill()
    process.wait()
    _, alive = psutil.wait_procs(started, timeout=120)
    assert not alive, alive


def prepared(folder):
    """Copy the checkout beside a sheet and a configuration; return what runs that analysis."""
    copy_checkout(folder / "checkout")
    return {"config": write_analysis(folder, ROWS, SETTINGS), "root": folder / "checkout"}


def kill_after(seconds, way, folder, *arguments, **analysis):
    """Run the workflow and kill it at a moment; return whether it ended before."""
    command, environment = snakemake_command(folder, *arguments, **analysis)
    with open(folder / "output.txt", "w") as output:
        process = subprocess.Popen(
            command, cwd=folder, env=environment, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
        )
    try:
        status = process.wait(seconds)
    except subprocess.TimeoutExpired:
        kill(process, way)
        return False
    assert status == 0, (folder / "output.txt").read_text()[-6000:]
    return True


def finished(folder, said):
    """Return when the files were written that a run says it finished: path to time of last change."""
    outputs = {}
    done = set()
    files = []
    for line in said.splitlines():
        if line.startswith("    output: "):
            files = line.removeprefix("    output: ").split(", ")
        elif line.startswith("    jobid: "):
            outputs[line.removeprefix("    jobid: ")] = files
            files = []
        elif told := re.match(r"Finished jobid: (\d+)", line):
            done.add(told[1])
    paths = [folder / name for job in done for name in outputs[job]]
    return {file: file.stat().st_mtime_ns for path in paths for file in ([path] if path.is_file() else path.rglob("*"))}


def differences(folder, other):
    """Return the names of results that differ or stand on one side only."""
    found, expected = (digests_under(place / "results") for place in (folder, other))
    return sorted(name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name))


@pytest.mark.parametrize("way", WAYS)
def test_a_run_killed_at_random_moments_ends_with_the_same_bytes(tmp_path, way):
    kills = 20
    undisturbed = tmp_path / "undisturbed"
    killed = tmp_path / "killed"
    arguments = ("--cores", "2")
    analysis = prepared(undisturbed)
    shutil.copytree(undisturbed, killed)
    began = time.monotonic()
    run = run_snakemake(undisturbed, *arguments, **analysis)
    took = time.monotonic() - began
    assert run.returncode == 0, run.stdout[-6000:]
    analysis = {"config": killed / "config.yaml", "root": killed / "checkout"}
    chance = random.Random(kills)
    kept = {}
    repeated = 0
    while kills:
        # between the moment in which Snakemake itself starts and the time in which some of the jobs get done
        ended = kill_after(chance.uniform(1, 2 + took / 4), way, killed, *arguments, **analysis)
        assert {file: file.stat().st_mtime_ns for file in kept} == kept  # what was finished is not done again
        if ended:
            assert differences(killed, undisturbed) == []
            shutil.rmtree(killed / "results")
            kept = {}
            repeated = repeated + 1
            continue  # from the start again
        kept |= finished(killed, (killed / "output.txt").read_text())
        kills -= 1
        unlocked = run_snakemake(killed, "--unlock", **analysis)
        assert unlocked.returncode == 0, unlocked.stdout
    run = run_snakemake(killed, *arguments, **analysis)
    assert run.returncode == 0, run.stdout[-6000:]
    assert {file: file.stat().st_mtime_ns for file in kept} == kept
    assert differences(killed, undisturbed) == []
    print(f"undisturbed {took:.0f} s, whole runs between the kills: {repeated}, files kept to the end: {len(kept)}")

"""A run that meets a full disk at ten sizes, or limits of open files and memory, fails without recording a gap, and
with the limit gone the same command ends with the bytes of an undisturbed run.
"""

import json
import shutil
import subprocess
import sys

import pytest

from support import copy_checkout, digests_under, run_snakemake, snakemake_command, write_analysis

pytestmark = [pytest.mark.slow, pytest.mark.timeout(3600)]
ROWS = [("traced", "0", "simulated:traced/rank0.sqlite", "nsys")]
SETTINGS = """\
simulated:
  traced: {kind: trace, ranks: 1, nodes: 1, iterations: 20, seed: 1}
targets: {traces: [kernel_variability]}
causes: {batches: 1, kernels_count: 2}
"""
SIZES = 10
BLOCK = 4096
"""Bytes that a file of a tmpfs takes at least, and a multiple of which it takes."""
INSIDE = """
import json, subprocess, sys
results, sizes, enough, command = json.loads(sys.argv[1])
def mount(*options):
    subprocess.run(["mount", *options, "tmpfs", results], check=True)
mount("-t", "tmpfs", "-o", f"size={sizes[0]}")
said = []
for size in sizes:
    mount("-o", f"remount,size={size}")
    run = subprocess.run(command, capture_output=True, text=True)
    found = subprocess.run(["find", results, "-name", "capabilities.json", "-exec", "cat", "{}", "+"],
                           capture_output=True, text=True)
    said.append([size, run.returncode, run.stdout + run.stderr, found.stdout])
mount("-o", f"remount,size={enough}")
run = subprocess.run(command, capture_output=True, text=True)
said.append([enough, run.returncode, run.stdout + run.stderr, ""])
subprocess.run(["cp", "-r", results, results + ".kept"], check=True)
print(json.dumps(said))
"""
"""What runs in a namespace of its own, where it may mount: the command at each size, then with space; the results are
copied out, since they vanish with the namespace.
"""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Return the folder of an undisturbed run, beside the checkout and the configuration that it used."""
    folder = tmp_path_factory.mktemp("undisturbed")
    copy_checkout(folder / "checkout")
    write_analysis(folder, ROWS, SETTINGS)
    run = run_snakemake(folder, "--cores", "1", **analysis_in(folder))
    assert run.returncode == 0, run.stdout[-6000:]
    return folder


def analysis_in(folder):
    """Return what runs the analysis of a folder."""
    return {"config": folder / "config.yaml", "root": folder / "checkout"}


def prepared(folder, undisturbed):
    """Copy checkout, sheet and configuration of the undisturbed run; return what runs that analysis."""
    shutil.copytree(undisturbed / "checkout", folder / "checkout")
    for name in ("datasets.tsv", "config.yaml"):
        shutil.copy2(undisturbed / name, folder)
    return analysis_in(folder)


def command_of(folder, analysis):
    """Return the command of the whole analysis on one core; its environment is that of this process."""
    return snakemake_command(folder, "--cores", "1", **analysis)


def no_gap(capabilities):
    """Return whether no export is recorded as anything but read."""
    return '"status": "refused"' not in capabilities and '"status": "partial"' not in capabilities


def test_ten_sizes_of_a_full_disk_end_with_the_same_bytes(tmp_path, undisturbed):
    if not shutil.which("unshare") or subprocess.run(["unshare", "-rm", "true"], check=False).returncode:
        pytest.skip("this account may not make a mount namespace (unshare -rm), so no small disk")
    whole = undisturbed / "results"
    needed = sum(-(-path.stat().st_size // BLOCK) * BLOCK for path in whole.rglob("*") if path.is_file())
    sizes = [needed * number // (SIZES + 1) // BLOCK * BLOCK for number in range(1, SIZES + 1)]
    analysis = prepared(tmp_path, undisturbed)
    results = tmp_path / "results"
    results.mkdir()
    command, environment = command_of(tmp_path, analysis)
    task = json.dumps([str(results), sizes, 8 * needed + (64 << 20), command])
    line = ["unshare", "-rm", sys.executable, "-c", INSIDE, task]
    done = subprocess.run(line, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    *full, (_, status, said, _) = json.loads(done.stdout.splitlines()[-1])
    for size, failed, words, capabilities in full:
        print(f"{size} bytes: status {failed}")
        assert failed != 0, f"{size} of {needed} bytes were enough"
        assert "No space left on device" in words, words[-3000:]
        assert "Please report it" not in words, words[-3000:]
        assert no_gap(capabilities), size
    assert status == 0, said[-6000:]
    assert digests_under(tmp_path / "results.kept") == digests_under(whole)


@pytest.mark.parametrize("limit", ["-n 24", "-v 900000"])
def test_too_few_open_files_and_too_little_memory_end_with_the_same_bytes(tmp_path, undisturbed, limit):
    analysis = prepared(tmp_path, undisturbed)
    command, environment = command_of(tmp_path, analysis)
    limited = ["bash", "-c", f'ulimit {limit}; exec "$@"', "limited", *command]
    run = subprocess.run(limited, env=environment, capture_output=True, text=True, check=False)
    words = run.stdout + run.stderr
    print(f"ulimit {limit}: status {run.returncode}", words[-700:])
    assert run.returncode != 0, "the limit was wide enough"
    assert "Please report it" not in words, words[-3000:]
    for path in tmp_path.glob("results/*/tables/*/capabilities.json"):
        assert no_gap(path.read_text())
    again = run_snakemake(tmp_path, "--cores", "1", **analysis)
    assert again.returncode == 0, again.stdout[-6000:]
    assert digests_under(tmp_path / "results") == digests_under(undisturbed / "results")

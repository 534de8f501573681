"""An export that takes the place of another is read again, whatever its time."""

import os

import pytest

from support import run_snakemake, write_analysis

DISPATCHES = (
    '"Kind","Agent_Id","Queue_Id","Thread_Id","Dispatch_Id","Kernel_Id","Kernel_Name","Correlation_Id",'
    '"Start_Timestamp","End_Timestamp"\n'
)
HOUR_NS = 3_600_000_000_000


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
    run = run_snakemake(folder, "--cores", "2", *targets, config=config)
    assert run.returncode == 0, run.stdout[-3000:]
    return folder, targets


def planned(folder, targets):
    """Return what a dry run says that it would do."""
    run = run_snakemake(folder, "--dry-run", *targets, config=folder / "config.yaml")
    assert run.returncode == 0, run.stdout[-3000:]
    return run.stdout


def test_the_same_exports_are_not_read_again(finished):
    assert "Nothing to be done" in planned(*finished)


def test_an_older_file_in_the_place_of_a_newer_one_is_read(finished):
    folder, targets = finished
    file = folder / "a.csv"
    before = file.read_text()
    time = file.stat().st_mtime_ns
    file.write_text(before.replace("7,1", "7,2"))
    moved_by(file, -1)
    assert "results/x/tables/0" in planned(folder, targets[:1])
    file.write_text(before)
    os.utime(file, ns=(time, time))
    assert "Nothing to be done" in planned(*finished)


@pytest.mark.parametrize("hours", [-1, 1])
def test_a_file_that_changes_inside_a_folder_is_read(finished, hours):
    folder, targets = finished
    file = folder / "b" / "1_kernel_trace.csv"
    before = file.read_text()
    time = file.stat().st_mtime_ns
    file.write_text(dispatches(50, 600))
    moved_by(file, hours)
    assert "results/z/tables/0" in planned(folder, targets[1:])
    file.write_text(before)
    os.utime(file, ns=(time, time))
    assert "Nothing to be done" in planned(*finished)

"""The same bytes on any number of ranks, and one clear sentence when something is wrong."""

import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support import ROOT
from variability_tables import command, digests, export_from_nsys, launcher, run_here, run_ranks, write_clocks, write_export

TARGETS = ("kernel_variability", "memory_stall")
RANKS = (1, 2, 3, 4)


def facts(rng, n, rank, span, configurations=5):
    return {
        "start_ns": np.sort(rng.integers(0, span, n)),
        "duration_ns": rng.lognormal(6, 1, n).astype(int),
        "configuration": rng.integers(0, configurations, n),
        "rank": rng.choice(rank, n),
        "device": rng.integers(0, 2, n),
    }


def transfers(rng, n, rank, span):
    copies = facts(rng, n, rank, span)
    del copies["configuration"]
    copies["duration_ns"][:: n // 2] = span // 2
    return copies | {"copy_kind": [1] * n, "bytes": rng.integers(1, 9, n)}


def same_on_all_ranks(folder, targets, exports, options=(), counts=RANKS):
    found = {}
    for ranks in counts:
        done = run_ranks(folder, targets, exports, ranks, options)
        assert done.returncode == 0, done.stderr
        assert not list((folder / f"out{ranks}").rglob("*.parts"))
        found[ranks] = digests(folder / f"out{ranks}", targets)
    for ranks in counts[1:]:
        assert found[ranks] == found[1], f"{ranks} ranks"
    return folder / "out1"


def rows(out, target, name):
    return pq.read_metadata(out / target / f"{name}.parquet").num_rows


def test_several_exports_and_ranks_and_many_row_groups(tmp_path):
    rng = np.random.default_rng(0)
    for export, rank, n in (("a", [0, 2], 3000), ("b", [1], 1000), ("c", [7], 10)):
        span = n * 800
        write_export(tmp_path / "tables" / export, facts(rng, n, rank, span), transfers(rng, n // 4, rank, span), row_group=211)
    write_clocks(tmp_path / "clocks.json", {"a": 0, "b": -5000, "c": 123})
    options = ["--width-us", "50", "--control-min-rows", "0", "--features", "duration_ns", "queue_ns", "--link-window-us", "0.5"]
    out = same_on_all_ranks(tmp_path, TARGETS, ["a", "b", "c"], options)
    assert rows(out, "memory_stall", "bins") > 50
    kept = rows(out, "kernel_variability", "kept")
    assert 0 < kept < 4010
    # and the launcher changes nothing either
    assert digests(run_here(tmp_path, TARGETS, ["a", "b", "c"], options), TARGETS) == digests(out, TARGETS)


def test_row_groups_of_full_size(tmp_path):
    """Three row groups: ranks read whole ones, cut others, and look back over transfers that began groups ago."""
    rng = np.random.default_rng(9)
    n = 1_200_000
    span = n * 700
    write_export(tmp_path / "tables" / "a", facts(rng, n, [0], span), transfers(rng, n // 2, [0], span))
    write_clocks(tmp_path / "clocks.json", {"a": 0})
    out = same_on_all_ranks(tmp_path, TARGETS, ["a"], ["--width-us", "1000", "--keep-count", "40"])
    assert rows(out, "memory_stall", "bins") == 840
    assert 20_000 < rows(out, "memory_stall", "kept") < 150_000


@pytest.mark.parametrize("mean", ["global", "rank"])
def test_real_export_with_two_ranks(tmp_path, data, mean):
    export_from_nsys(data / "nsys_sqlite/nsys-ai/h100_2gpu_1s.sqlite", tmp_path / "tables" / "0")
    write_clocks(tmp_path / "clocks.json", {"0": 0})
    out = same_on_all_ranks(tmp_path, TARGETS, ["0"], ["--width-us", "5000", "--control-min-rows", "100", "--mean", mean])
    assert rows(out, "kernel_variability", "bins") > 100


@pytest.mark.parametrize(
    "start",
    [[5], [3, 3, 3, 3, 3, 3], [0, 9_999, 10_000, 10_000, 20_000], [0, 1, 900_000_000], []],
    ids=["one launch", "one bin and equal times", "edges", "bins without launches", "no launch"],
)
def test_sparse_datasets_leave_ranks_without_work(tmp_path, start):
    n = len(start)
    launches = {"start_ns": start, "duration_ns": range(1, n + 1), "configuration": [0] * n, "rank": [0] * n}
    write_export(tmp_path / "tables" / "a", launches, row_group=2)
    write_clocks(tmp_path / "clocks.json", {"a": 0})
    out = same_on_all_ranks(tmp_path, TARGETS, ["a"], ["--width-us", "10"], counts=(1, 3))
    assert rows(out, "kernel_variability", "kept") == n


@pytest.mark.parametrize("ranks", [[0], [0, 1]])
def test_counters(tmp_path, ranks):
    rng = np.random.default_rng(4)
    n = 500
    columns = {"launch": range(n), "configuration": rng.integers(0, 3, n), "rank": rng.choice(ranks, n)}
    columns["gpu_time"] = [None if rng.random() < 0.1 else float(value) for value in rng.normal(0, 1e3, n)]
    columns["sm_cycles"] = rng.random(n)
    fields = [pa.field(name, pa.float64()) for name in ("gpu_time", "sm_cycles")]
    write_export(tmp_path / "tables" / "a", counters=columns, extra=fields, row_group=60)
    write_clocks(tmp_path / "clocks.json", {})
    options = ["--launches-per-bin", "7", "--control-min-rows", "0", "--features", "sm_cycles"]
    out = same_on_all_ranks(tmp_path, ["gpu_time"], ["a"], options, counts=(1, 2, 4))
    assert rows(out, "gpu_time", "bins") >= n // 7


def test_an_error_on_one_rank_ends_all_with_one_sentence(tmp_path):
    n = 400
    durations = np.full(n, 5)
    durations[390] = -1
    launches = {"start_ns": np.arange(n) * 1000, "duration_ns": durations, "configuration": [0] * n, "rank": [0] * n}
    write_export(tmp_path / "tables" / "a", launches, row_group=20)
    write_clocks(tmp_path / "clocks.json", {"a": 0})
    for ranks in (1, 4):
        done = run_ranks(tmp_path, ["kernel_variability"], ["a"], ranks, ["--width-us", "10", "--log", tmp_path / "log"], timeout=60)
        assert done.returncode == 1
        assert "row 390 has duration -1 ns" in done.stderr
        assert len(done.stderr.splitlines()) == 1
        assert "row 390 has duration -1 ns" in (tmp_path / "log").read_text()
        assert not (tmp_path / f"out{ranks}").exists()


def test_a_wrong_number_of_ranks_is_refused_with_what_to_set(tmp_path):
    done = run_ranks(tmp_path, ["kernel_variability"], ["a"], 2, asked=3, timeout=60)
    assert done.returncode == 1
    assert "3 ranks were asked for, but this program was started as one of 2" in done.stderr
    assert "srun --mpi=pmi2" in done.stderr
    assert len(done.stderr.splitlines()) <= 2  # the log goes to standard error, too


def test_a_launcher_of_another_library_starts_single_ranks_and_each_stops(tmp_path):
    """Such a launcher starts N programs that each see one rank; here one of them, without any launcher."""
    line = [sys.executable, "-m", "mpi4py", ROOT / "scripts" / "bin_launches.py", *command(tmp_path, ["y"], ["a"], ranks=2)]
    done = subprocess.run([str(part) for part in line], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "2 ranks were asked for, but this program was started as one of 1" in done.stderr
    assert "Abort" not in done.stderr


def test_a_crash_on_one_rank_ends_all(tmp_path):
    """An error that the other ranks cannot know of: they wait in a reduction, and must not wait for ever."""
    script = tmp_path / "crash.py"
    script.write_text(
        "from causeway.ranks import ending_together\n"
        "import numpy as np\n"
        "with ending_together(3, None) as ranks:\n"
        "    if ranks.rank == 1:\n"
        "        raise ValueError('lost')\n"
        "    ranks.total(np.zeros(1, np.int64))\n"
    )
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "scripts"))
    line = [launcher(), "-n", "3", sys.executable, "-m", "mpi4py", str(script)]
    done = subprocess.run(line, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode != 0
    assert "ValueError: lost" in done.stderr

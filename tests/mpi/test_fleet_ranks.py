"""Fleet mode over ranks: the same released bytes on any number of them, after a kill, with a damaged shard, and from
shuffled input.
"""

import json
import os
import shutil
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from causeway.core.errors import CausewayError
from causeway.core.tables import read_table, write_table
from causeway.fleet.protection import protect_reports
from causeway.fleet.study import steps
from fleet import protect_reports as protect_reports_script
from progress import run_by_progress
from variability_tables import launcher

PROGRAM = Path(__file__).resolve().parents[2] / "scripts" / "fleet" / "protect_reports.py"
SETTINGS = {
    "gpus": 400, "load": 0.2, "session_minutes": 30, "zipf": 1.0, "unknown_share": 0.1, "large_users": [20],
    "applications": 4, "versions": 2, "unknown_applications": 2, "training_runs": 2,
    "k": 4, "threshold": 0.6, "margin": 0.01, "kernel_cells": 4, "clusters": 2, "launches": 64, "timed_launches": 16,
    "clips": {"gpu_ms": 60_000, "launches": 4_000_000, "mib": 100_000},
    "budget": 1.0, "delta": 1e-9, "release_threshold": 20, "shard_reports": 40, "test_seed": 11,
    "epsilon": {
        "applications": 0.24, "kernels": 0.25, "durations": 0.35, "occupancy": 0.03, "variability": 0.03,
        "efficiency": 0.03, "resources": 0.07,
    },
}  # fmt: skip


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """Return the folder of a small simulated fleet, encoded."""
    folder = tmp_path_factory.mktemp("fleet")
    steps.build_catalogue(SETTINGS, 5, [], folder / "catalogue")
    names = ("sessions", "reports", "samples", "attributions", "counts")
    sessions, reports, samples, attributions, counts = (folder / f"{name}.parquet" for name in names)
    steps.simulate_world(SETTINGS, 5, sessions)
    steps.sample(SETTINGS, 5, sessions, reports, samples)
    steps.attribute_samples(SETTINGS, 5, folder / "catalogue", samples, reports, attributions)
    steps.encode_samples(SETTINGS, 5, folder / "catalogue", samples, reports, attributions, counts)
    return folder


def words(fleet, out, ranks, mode="share2", counts=None):
    """Return the arguments of the program."""
    inputs = ["--catalogue", fleet / "catalogue", "--reports", fleet / "reports.parquet"]
    inputs += ["--counts", counts or fleet / "counts.parquet", "--fleet", json.dumps(SETTINGS)]
    return [str(word) for word in ["--ranks", ranks, "--mode", mode, *inputs, "--out", out]]


def protect_here(fleet, out, mode="share2", counts=None):
    """Run the program in this process, as one rank."""
    protect_reports_script.main(words(fleet, out, 1, mode, counts))


def protect(fleet, out, ranks, mode="share2", counts=None):
    command = [
        launcher(),
        "-n",
        ranks,
        sys.executable,
        "-m",
        "mpi4py",
        PROGRAM,
        *words(fleet, out, ranks, mode, counts),
    ]
    # Python's own record of the environment: in this process, which may have loaded MPI, Open MPI has set variables that
    # make its launcher give up without a word
    return run_by_progress(command, [out], env=dict(os.environ))


def released(fleet, shards, folder, mode="share2", counts=None):
    """Return the bytes that are released of some shards."""
    out = tuple(folder / name for name in ("release.bin", "estimates.parquet", "applications.parquet"))
    folder.mkdir()
    steps.release_day(SETTINGS, mode, fleet / "catalogue", counts or fleet / "counts.parquet", shards, out)
    return [path.read_bytes() for path in out]


@pytest.fixture(scope="module")
def expected(fleet, tmp_path_factory):
    """Return the release of one rank, and its shards."""
    base = tmp_path_factory.mktemp("one")
    protect_here(fleet, base / "shards")
    return released(fleet, base / "shards", base / "out"), base / "shards"


@pytest.mark.parametrize("ranks", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_the_same_bytes_are_released(fleet, expected, tmp_path, ranks):
    assert protect(fleet, tmp_path / "shards", ranks).returncode == 0
    assert len(list((tmp_path / "shards").glob("*.npz"))) > 4
    assert released(fleet, tmp_path / "shards", tmp_path / "out") == expected[0]


def test_local_noise_does_not_depend_on_ranks(fleet, tmp_path):
    protect_here(fleet, tmp_path / "1", mode="ldp")
    assert protect(fleet, tmp_path / "2", 2, mode="ldp").returncode == 0
    one, two = (released(fleet, tmp_path / str(ranks), tmp_path / f"out{ranks}", mode="ldp") for ranks in (1, 2))
    assert one == two


def test_a_killed_run_goes_on_and_repeats_nothing(fleet, expected, tmp_path):
    """Some shards are whole, one is half written, as a kill leaves them."""
    whole = sorted(expected[1].glob("*.npz"))
    partial = tmp_path / "shards.partial"
    partial.mkdir()
    for path in whole[:3]:
        shutil.copy2(path, partial)
    (partial / "shard_00003.npz.partial").write_bytes(whole[3].read_bytes()[:1000])
    before = {path.name: path.stat().st_mtime_ns for path in partial.glob("*.npz")}
    protect_here(fleet, tmp_path / "shards")
    after = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "shards").glob("*.npz")}
    assert len(after) == len(whole)
    assert before.items() <= after.items()
    assert released(fleet, tmp_path / "shards", tmp_path / "out") == expected[0]


def test_a_corrupted_shard_is_made_again_or_refused(fleet, expected, tmp_path):
    partial = tmp_path / "shards.partial"
    shutil.copytree(expected[1], partial)
    victim = partial / "shard_00001.npz"
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 0xFF
    victim.write_bytes(content)
    facts = json.loads((partial / "shards.json").read_text())
    with pytest.raises(CausewayError, match="shard_00001"):
        protect_reports.read_shard(victim, facts["origin"])
    done = protect(fleet, tmp_path / "shards", 1)
    assert done.returncode == 0
    assert "made again" in done.stderr
    assert released(fleet, tmp_path / "shards", tmp_path / "out") == expected[0]


def test_shards_of_other_reports_are_not_taken_over(fleet, expected, tmp_path):
    shutil.copytree(expected[1], tmp_path / "shards.partial")
    table = read_table(fleet / "counts.parquet", "fleet_counts")
    fewer = table.filter(pa.array(table.column("report").to_numpy() != 3))
    write_table(fewer, tmp_path / "counts.parquet", "fleet_counts")
    protect_here(fleet, tmp_path / "shards", counts=tmp_path / "counts.parquet")
    again = released(fleet, tmp_path / "shards", tmp_path / "out", counts=tmp_path / "counts.parquet")
    assert again != expected[0]


def test_the_sums_are_those_of_the_reports(fleet, expected):
    """Against a plain sum over the table of counts."""
    table = read_table(fleet / "counts.parquet", "fleet_counts")
    cells = steps.layout_of(steps.read_catalogue(fleet / "catalogue"), SETTINGS).cells
    exact = np.bincount(table.column("cell").to_numpy(), weights=table.column("value").to_numpy(), minlength=cells)
    totals = sum(arrays["leader"] + arrays["helper"] for arrays, _ in protect_reports.read_shards(expected[1]))
    assert (totals.astype(np.int64).sum(0) == exact).all()
    assert exact.sum() > 1000


def test_a_mode_fails_on_all_ranks_with_one_sentence(fleet, tmp_path):
    done = protect(fleet, tmp_path / "shards", 2, counts=tmp_path / "absent.parquet")
    assert done.returncode != 0
    assert done.stderr.count("error:") == 1
    assert "absent.parquet" in done.stderr

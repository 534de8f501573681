"""The same bytes on as many ranks as a cluster has: more than there are exports, and than bins to share, on some."""

import contextlib
import json
import sys
import threading

import pytest
from levels_over_ranks import levels
from ranks_in_threads import on_threads
from ranks_of_many_sizes import make
from test_bytes import results, several_exports
from test_device_time_ranks import write_dataset

from causeway.numeric import mpi_program
from support import ROOT
from variability import bin_launches
from variability_tables import command, run_here, run_ranks

sys.path.insert(0, str(ROOT / "tests" / "unit" / "levels"))

from levels_reference import write_run

RANKS = 64
MOST_RANKS = 256


@pytest.mark.slow
def test_the_same_bytes_on_64_ranks(tmp_path):
    """Two minutes on two cores, and some 10 GB: a rank takes two CPU-seconds to start."""
    targets, exports, options = several_exports(tmp_path, None)
    expected = results(run_here(tmp_path, targets, exports, options))
    done = run_ranks(tmp_path, targets, exports, RANKS, options)
    assert done.returncode == 0, done.stderr
    assert results(tmp_path / f"out{RANKS}") == expected


@pytest.mark.slow
@pytest.mark.parametrize("size", [RANKS, MOST_RANKS])
def test_the_same_bins_on_ranks_in_threads(tmp_path, monkeypatch, size):
    """As processes, 256 ranks would take 25 GB before they read anything."""
    targets, exports, options = several_exports(tmp_path, None)
    expected = results(run_here(tmp_path, targets, exports, options))
    mine = threading.local()
    monkeypatch.setattr(mpi_program, "ending_together", lambda _, log: contextlib.nullcontext(mine.ranks))

    def work(ranks):
        mine.ranks = ranks
        bin_launches.main([str(part) for part in command(tmp_path, targets, exports, options, size)])

    on_threads(size, work)
    assert results(tmp_path / f"out{size}") == expected


@pytest.mark.slow
@pytest.mark.parametrize("size", [RANKS, MOST_RANKS])
def test_the_same_levels_on_ranks_in_threads(tmp_path, size):
    write_run(tmp_path, rows=300, exports=5, seed=11)
    exports = json.loads((tmp_path / "clocks.json").read_text(encoding="utf-8"))["exports"]
    for ranks in (1, size):
        out = str(tmp_path / str(ranks))
        on_threads(ranks, lambda one, out=out: levels(str(tmp_path), list(exports), 100_000, out, ranks=one))
    first, other = (
        {path.relative_to(home): path.read_bytes() for path in home.rglob("*") if path.is_file()}
        for home in (tmp_path / "1", tmp_path / str(size))
    )
    assert len(first) > 3
    assert other == first


@pytest.mark.slow
@pytest.mark.parametrize("size", [RANKS, MOST_RANKS])
def test_the_same_results_of_programs_over_exports_on_ranks_in_threads(tmp_path, size):
    calls = write_dataset(tmp_path)
    for ranks in (1, size):
        for call in calls:
            (tmp_path / call["function"] / str(ranks)).mkdir(parents=True)
            on_threads(ranks, lambda one, call=call: make(call, one))
    for call in calls:
        first, other = (
            {path.name: path.read_bytes() for path in (tmp_path / call["function"] / str(ranks)).iterdir()}
            for ranks in (1, size)
        )
        assert first
        assert other == first, call["function"]

"""The same bytes on any number of ranks and workers."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from causeway.core.tables import read_table
from progress import run_by_progress
from support import compile_checkout
from variability_tables import command, digests, export_from_nsys, launcher, run_here, write_clocks, write_export

TRACED = ("kernel_variability", "memory_stall")
FORMS = [(3, ("--workers", "2"))]
"""Ranks and options of the runs under MPI; more workers are tried in one process, where they cost less."""
MORE_FORMS = [(2, ("--workers", "2")), (3, ()), (4, ("--workers", "3")), (7, ())]
"""Those that are tried where time does not matter."""
ALONE = [("--workers", str(workers)) for workers in (2, 7)]


def facts(rng, n, ranks, span, configurations=5):
    return {
        "start_ns": np.sort(rng.integers(0, span, n)),
        "duration_ns": rng.lognormal(6, 1, n).astype(int),
        "configuration": rng.integers(0, configurations, n),
        "rank": rng.choice(ranks, n),
        "device": rng.integers(0, 2, n),
    }


def transfers(rng, n, ranks, span):
    copies = facts(rng, n, ranks, span)
    del copies["configuration"]
    copies["duration_ns"][:: n // 2] = span // 2
    return copies | {"copy_kind": [1] * n, "bytes": rng.integers(1, 9, n)}


def several_exports(folder, _):
    rng = np.random.default_rng(0)
    for export, ranks, n in (("a", [0, 2], 3000), ("b", [1], 1000), ("c", [7], 10)):
        span = n * 800
        write_export(
            folder / "tables" / export, facts(rng, n, ranks, span), transfers(rng, n // 4, ranks, span), row_group=211
        )
    write_clocks(folder / "clocks.json", {"a": 0, "b": -5000, "c": 123})
    options = [
        "--width-us",
        "50",
        "--control-min-rows",
        "0",
        "--features",
        "duration_ns",
        "queue_ns",
        "--link-window-us",
        "0.5",
    ]
    return TRACED, ["a", "b", "c"], [*options, "--more-widths-us", "10", "1000"]


def full_row_groups(folder, _):
    """Ranks read whole row groups, cut others, and look back over transfers that began groups ago; kept rows fill
    several row groups.
    """
    rng = np.random.default_rng(9)
    n = 560_000
    span = n * 700
    write_export(folder / "tables" / "a", facts(rng, n, [0], span), transfers(rng, n // 2, [0], span))
    write_clocks(folder / "clocks.json", {"a": 0})
    return TRACED, ["a"], ["--width-us", "1000", "--keep-share", "0.3"]


def real_export(folder, data):
    export_from_nsys(data / "nsys_sqlite/nsys-ai/h100_2gpu_1s.sqlite", folder / "tables" / "0")
    write_clocks(folder / "clocks.json", {"0": 0})
    return TRACED, ["0"], ["--width-us", "5000", "--control-min-rows", "100"]


def real_export_with_means_per_rank(folder, data):
    return *real_export(folder, data)[:2], ["--width-us", "5000", "--control-min-rows", "100", "--mean", "rank"]


def starts(folder, start):
    n = len(start)
    launches = {"start_ns": start, "duration_ns": range(1, n + 1), "configuration": [0] * n, "rank": [0] * n}
    write_export(folder / "tables" / "a", launches, row_group=2)
    write_clocks(folder / "clocks.json", {"a": 0})
    return TRACED, ["a"], ["--width-us", "10"]


def one_launch(folder, _):
    return starts(folder, [5])


def one_bin_and_equal_times(folder, _):
    return starts(folder, [3, 3, 3, 3, 3, 3])


def edges(folder, _):
    return starts(folder, [0, 9_999, 10_000, 10_000, 20_000])


def bins_without_launches(folder, _):
    return starts(folder, [0, 1, 900_000_000])


def no_launch(folder, _):
    return starts(folder, [])


def counters(folder, ranks):
    rng = np.random.default_rng(4)
    n = 500
    columns = {"launch": range(n), "configuration": rng.integers(0, 3, n), "rank": rng.choice(ranks, n)}
    columns["gpu_time"] = [None if rng.random() < 0.1 else float(value) for value in rng.normal(0, 1e3, n)]
    columns["sm_cycles"] = rng.random(n)
    fields = [pa.field(name, pa.float64()) for name in ("gpu_time", "sm_cycles")]
    write_export(folder / "tables" / "a", counters=columns, extra=fields, row_group=60)
    write_clocks(folder / "clocks.json", {})
    return ["gpu_time"], ["a"], ["--launches-per-bin", "7", "--control-min-rows", "0", "--features", "sm_cycles"]


def counters_of_one_rank(folder, _):
    return counters(folder, [0])


def counters_of_two_ranks(folder, _):
    return counters(folder, [0, 1])


CASES = [
    several_exports,
    full_row_groups,
    real_export,
    real_export_with_means_per_rank,
    one_launch,
    one_bin_and_equal_times,
    edges,
    bins_without_launches,
    no_launch,
    counters_of_one_rank,
    counters_of_two_ranks,
]


def results(folder):
    """Return the SHA-256 of all results in a folder."""
    targets = sorted(path.name for path in folder.iterdir())
    assert not list(folder.rglob("*.parts"))
    more = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("bins_*.parquet")}
    return digests(folder, targets), more


@pytest.fixture(scope="module", params=[FORMS, pytest.param(MORE_FORMS, marks=pytest.mark.slow)], ids=["few", "more"])
def forms(request):
    """Return ranks and options of the runs under MPI."""
    return request.param


@pytest.fixture(scope="module")
def runs(tmp_path_factory, request, forms):
    """Write every case once and run all of them in one session per form; return a function that gives the folders of
    a case. Functions are compiled before, as each of the ranks, which start at once, would do it.
    """
    compile_checkout()
    base = tmp_path_factory.mktemp("bytes")
    case_of = {}
    for case in CASES:
        data = request.getfixturevalue("data") if case.__name__.startswith("real") else None
        case_of[case] = (base / case.__name__, *case(base / case.__name__, data))
    environment = dict(os.environ, OMP_NUM_THREADS="1", NUMBA_NUM_THREADS="1")
    for form, (ranks, more) in enumerate(forms):
        lines = []
        for folder, targets, exports, options in case_of.values():
            line = [str(part) for part in command(folder, targets, exports, [*options, *more], ranks)]
            line[line.index("--out") + 1] = str(folder / f"form{form}")
            lines.append(line)
        (base / "lines.json").write_text(json.dumps(lines))
        program = [
            launcher(),
            "-n",
            ranks,
            sys.executable,
            "-m",
            "mpi4py",
            Path(__file__).with_name("many.py"),
            base / "lines.json",
        ]
        done = run_by_progress(program, [base], env=environment)
        assert done.returncode == 0, done.stderr
    return case_of


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_the_same_bytes(runs, forms, case):
    folder, targets, exports, options = runs[case]
    expected = results(run_here(folder, targets, exports, options))
    for form, (ranks, more) in enumerate(forms):
        assert results(folder / f"form{form}") == expected, f"{ranks} ranks {' '.join(more)}"
    if case is not full_row_groups:
        for more in ALONE:
            assert results(run_here(folder, targets, exports, [*options, *more])) == expected, " ".join(more)


def test_the_cases_are_what_they_are_meant_to_be(runs):
    """Bins, kept rows and several row groups of them: equal bytes of nothing would prove nothing."""

    def rows(case, target, name):
        metadata = pq.read_metadata(runs[case][0] / "form0" / target / f"{name}.parquet")
        return metadata.num_rows, metadata.num_row_groups

    assert rows(several_exports, "memory_stall", "bins")[0] > 50
    assert 0 < rows(several_exports, "kernel_variability", "kept")[0] < 4010
    assert rows(full_row_groups, "memory_stall", "bins")[0] == 392
    assert rows(full_row_groups, "kernel_variability", "kept")[1] > 2
    assert rows(real_export, "kernel_variability", "bins")[0] > 100
    assert rows(bins_without_launches, "kernel_variability", "kept")[0] == 3
    assert rows(counters_of_one_rank, "gpu_time", "bins")[0] >= 500 // 7
    wide = read_table(runs[several_exports][0] / "form0" / "kernel_variability" / "bins_1000000ns.parquet", "bins")
    assert 0 < wide.num_rows < rows(several_exports, "kernel_variability", "bins")[0] / 5

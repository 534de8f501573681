"""Ranks of one run, and repeats of one side, whose builds number kernels otherwise share these kernels."""

import numpy as np
import pytest

from causeway.comparison.runs.run_totals import measure
from causeway.core.clock import Clock
from causeway.efficiency.ranks import duration_cells, rank_roles
from causeway.numeric.mpi import Ranks
from causeway.variability.rows.configurations import Configurations
from comparison_runs import compared, write_run
from variability_tables import write_export

NAMES = (
    ["__omp_offloading_31_18a8104_relax_l42", "julia_mul_1234", "copy"],
    ["__omp_offloading_2d_77ab31c_relax_l42", "julia_mul_1301", "copy"],
    ["__omp_offloading_fd02_c0934_relax_l42", "julia_mul_998", "copy"],
)
LAUNCHES = 60


def write_ranks(folder, names, grid=64):
    """Write one export per rank, in which each kernel is launched in turn; return their folders."""
    folders = []
    for rank, kernels in enumerate(names):
        n = LAUNCHES * len(kernels)
        columns = {
            "start_ns": [1000 * at for at in range(n)],
            "duration_ns": [100 * (1 + at % len(kernels)) + at % 7 for at in range(n)],
            "configuration": [at % len(kernels) for at in range(n)],
            "rank": [rank] * n,
        }
        shapes = [(name, {"grid_x": grid * (1 + at), "block_x": 128}) for at, name in enumerate(kernels)]
        write_export(folder / f"e{rank}", columns, configurations=shapes, ranks=[rank])
        folders.append(folder / f"e{rank}")
    return folders


def wanted(kernel):
    """Return the first name, in the order of text, of each kernel of `NAMES`."""
    return min(names[kernel] for names in NAMES)


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 1, 0]])
def test_ranks_of_several_builds_share_kernels_and_configurations(order, tmp_path):
    folders = write_ranks(tmp_path, NAMES)
    exports = {f"e{rank}": folders[rank] for rank in order}
    found = Configurations(exports)
    assert sorted(kernel["name"] for kernel in found.kernels) == sorted(map(wanted, range(3)))
    assert len(found) == 3
    assert all(found.kernels[found.kernel_of[number]]["name"] == key[0] for number, key in enumerate(found.keys))
    for export in exports:
        numbers = found.numbers(export)
        # configuration n of each export is kernel n, whatever its name there
        assert [found.keys[number][0] for number in numbers.tolist()] == [wanted(at) for at in range(3)]
    run = measure("a", [folders[rank] for rank in order])
    counts = dict(zip(run.kernels.names, run.kernels.launches.tolist(), strict=True))
    assert counts == {wanted(at): 3 * LAUNCHES for at in range(3)}
    assert run.total_ns == sum(100 * (1 + at % 3) + at % 7 for at in range(3 * LAUNCHES)) * 3


def test_ranks_of_one_build_keep_kernels_that_differ_in_a_line(tmp_path):
    names = [["solve_42_gpu", "copy"], ["solve_42_gpu", "solve_57_gpu"], ["solve_57_gpu", "copy"]]
    folders = write_ranks(tmp_path, names)
    found = Configurations({f"e{rank}": folder for rank, folder in enumerate(folders)})
    assert [kernel["name"] for kernel in found.kernels] == ["copy", "solve_42_gpu", "solve_57_gpu"]
    assert sorted(measure("a", folders).kernels.names) == ["copy", "solve_42_gpu", "solve_57_gpu"]


def test_durations_and_roles_of_ranks_do_not_depend_on_numbers_of_the_build(tmp_path):
    equal = write_ranks(tmp_path / "equal", [NAMES[0]] * 3)
    other = write_ranks(tmp_path / "other", NAMES)
    clocks = {rank: Clock(0) for rank in range(3)}
    cells = [duration_cells.duration_cells(folders, clocks, Ranks()) for folders in (equal, other)]
    assert cells[0].configurations == cells[1].configurations == 3
    for name in ("count", "total", "squares"):
        assert np.array_equal(getattr(cells[0], name), getattr(cells[1], name))
    assert len(rank_roles.roles_of(map(rank_roles.work_of, other))) == 1


def test_a_repeat_of_another_build_counts_as_a_run_of_the_same_kernels(tmp_path):
    """Of six runs that do not differ nothing is claimed, and each kernel's noise comes from all of them."""
    runs = [
        write_run(tmp_path / str(seed), seed, names=(f"julia_mul_{100 + seed}", f"julia_add_{200 + seed}"))
        for seed in range(6)
    ]
    rows = compared(runs[0], runs[1], repeats=(runs[2:4], runs[4:]))
    kernels = [row for row in rows if row["level"] == "kernel" and row["metric"] == "time_per_launch"]
    assert {row["candidate"] for row in kernels} == {"julia_mul_101", "julia_add_201"}
    assert all(row["match"] == "normalised" for row in kernels)
    # with repeats the effective numbers are those of runs
    assert all(row["low_percent"] is not None for row in kernels)

"""The program that the scaling study times, on a dataset of seconds: what is said of each run, and equal bytes."""

import pytest

from lab.scaling.simulated_dataset import write_dataset
from lab.scaling.timed_runs import Program, measure
from support import ROOT
from variability_tables import launcher

LAUNCHES = 2_000


@pytest.mark.slow
def test_each_run_has_its_phases_work_and_memory(tmp_path):
    write_dataset(tmp_path / "dataset", LAUNCHES, 2, seed=1)
    program = Program(
        launcher=[launcher()],
        script=str(ROOT / "scripts" / "variability" / "bin_launches.py"),
        options=["--targets", "kernel_variability", "--width-us", "1000"],
        exports=2,
        work=tmp_path / "work",
    )
    plan = [(LAUNCHES, 1), (LAUNCHES, 2)]
    runs = measure(program, {LAUNCHES: tmp_path / "dataset"}, plan, repetitions=1)  # an error, were the bytes not equal
    assert [(run["launches"], run["ranks"]) for run in runs] == plan
    for run in runs:
        assert sum(run["phases"].values()) == pytest.approx(run["wall_s"], abs=0.05)
        assert run["phases"].keys() > {"means", "bins"}
        assert run["work"].keys() == run["phases"].keys()
        assert run["peak_rss_mb"] > 50
        assert run["cpu_s"] > 0
    assert not program.work.exists()

"""`bin_launches`, timed over rank counts and dataset sizes."""

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from causeway.logs import failing_clearly
from causeway.scaling.measure import Program, measure, runs_here
from causeway.scaling.plan import datasets, runs
from causeway.scaling.study import cores_here, study
from causeway.tables import write_json

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        settings, launcher = job.params.settings, shlex.split(job.resources.mpi)
        work = Path(job.output.study).with_name("work")
        program = Program(launcher, job.input.program, job.params.options, settings["exports"], work)
        folders = dict(zip(datasets(settings), map(Path, job.input.datasets), strict=True))
        load = os.getloadavg()[0]
        found = measure(program, folders, runs(settings), settings["repetitions"])
        cores = cores_here() if runs_here(launcher) else None
        write_json(study(settings, job.params.seed, found, Path(launcher[0]).name, cores, load), job.output.study, "scaling")


if "snakemake" in globals():
    main(snakemake)

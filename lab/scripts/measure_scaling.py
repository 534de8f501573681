"""`bin_launches`, timed over rank counts and dataset sizes."""

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from causeway.core.logs import failing_clearly
from lab.scaling.plan import datasets, runs
from lab.scaling.study import cores_here, study, write_study
from lab.scaling.timed_runs import Program, measure, runs_here

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake


def main(job) -> None:
    with failing_clearly(job.log[0]):
        settings = job.params.settings
        launcher = shlex.split(job.resources.mpi)
        work = Path(job.output.study).with_name("work")
        program = Program(
            launcher=launcher,
            script=job.input.program,
            options=job.params.options,
            exports=settings["exports"],
            work=work,
        )
        folders = dict(zip(datasets(settings), map(Path, job.input.datasets), strict=True))
        load = os.getloadavg()[0]
        measured = measure(program, folders, runs(settings), settings["repetitions"])
        cores = cores_here() if runs_here(launcher) else None
        name = Path(launcher[0]).name
        document = study(settings, job.params.seed, measured, launcher=name, cores=cores, load=load)
        write_study(document, job.output.study)


if "snakemake" in globals():
    main(snakemake)

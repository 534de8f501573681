"""What the run was made of, as a Research Object Crate: versions, configuration, inputs' hashes, seeds, steps."""

import json
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

from causeway.core.files.research_object import research_object
from causeway.core.logs import failing_clearly
from causeway.core.tables import read_json, write_json

if TYPE_CHECKING:
    from snakemake.iocontainers import snakemake

PACKAGES = (
    *("snakemake", "numpy", "scipy", "pandas", "pyarrow", "numba", "scikit-learn", "causal-learn"),
    *("adbc-driver-sqlite", "msgspec", "ddsketch", "mpi4py", "matplotlib", "seaborn", "pygraphviz"),
)
"""Packages that compute or draw."""


def installed(package: str) -> str | None:
    """Return a package's version; None where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def main(job) -> None:
    with failing_clearly(job.log[0]):
        exports = [
            read_json(Path(folder) / "capabilities.json") | {"dataset": Path(folder).parts[-3]}
            for folder in job.input.tables
        ]
        telemetry = [
            (document["dataset"], source)
            for document in map(read_json, job.input.telemetry)
            for source in document["sources"]
        ]
        versions = {"Python": platform.python_version()} | {name: installed(name) for name in PACKAGES}
        settings = json.loads(job.params.settings)
        steps = json.loads(job.params.steps)
        crate = research_object(exports, telemetry, settings, steps, versions, job.params.code)
        for path in (job.output.provenance, job.output.crate):
            write_json(crate, path, "provenance")


if "snakemake" in globals():
    main(snakemake)

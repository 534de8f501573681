"""Which version this is, and where the workflow lies: in a clone the folder of the Snakefile, in an installed package
the copy inside it.
"""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
VERSION = "0.1.0"
"""The version of pyproject.toml, which a job in an environment of its own cannot ask for."""
RELEASED = "2026-11-20"
"""The day on which that version was released, as CITATION.cff states it."""


def workflow_folder() -> Path:
    """Return the folder that holds `Snakefile`, `rules`, `config`, `envs`, `profiles` and the entry scripts.

    A clone comes first, so that a change there acts although a package is installed.
    """
    clone = PACKAGE.parents[1]
    return clone if (clone / "config").is_dir() else PACKAGE / "workflow"

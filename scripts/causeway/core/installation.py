"""Where the workflow lies: in a clone the folder of the Snakefile, in an installed package the copy inside it."""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]


def workflow_folder() -> Path:
    """Return the folder that holds `Snakefile`, `rules`, `config`, `envs`, `profiles` and the entry scripts.

    A clone comes first, so that a change there acts although a package is installed.
    """
    clone = PACKAGE.parents[1]
    return clone if (clone / "config").is_dir() else PACKAGE / "workflow"

"""The repository's own YAML files: schemas of sheets, the configuration and maps of columns."""

import functools
from pathlib import Path
from typing import Any

from causeway.core.installation import workflow_folder

COLUMN_MAPS = workflow_folder() / "config" / "columns"


def read_yaml(path: Path) -> Any:
    """Return what a YAML file holds, by libyaml where PyYAML was built with it, which takes a tenth of the time.

    Raises
    ------
    OSError, yaml.YAMLError
        If it cannot be read, or is none.
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(path.read_text(encoding="utf-8"), loader)  # noqa: S506 - both are safe loaders


@functools.cache
def column_map(name: str) -> dict:
    """Return `config/columns/<name>.yaml`: how vendors' names map to ours, and other tables of words; a map is data, so
    that a new column needs no code.

    Raises
    ------
    FileNotFoundError
        If there is none.
    """
    return read_yaml(COLUMN_MAPS / f"{name}.yaml")

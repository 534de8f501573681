"""The repository's own YAML files: schemas of sheets, the configuration and maps of columns."""

from pathlib import Path
from typing import Any


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

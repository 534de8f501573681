"""What pyproject.toml cannot say: the package lies in `scripts/`, and the workflow of this folder travels inside it.

A wheel holds `causeway/` and `causeway/workflow/`, the latter with the layout of a clone, so that rules find their
entry scripts, schemas, captions and environments in the same way in both.
"""

from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).parent
STAGES = sorted(folder.name for folder in (ROOT / "scripts").iterdir() if folder.is_dir() and folder.name != "causeway")
WORKFLOW = [
    "Snakefile",
    "LICENSE",
    "rules/*.smk",
    "rules/*/*",
    "config/*.*",
    "config/*/*",
    "envs/*.yaml",
    "profiles/*/*",
    *(f"scripts/{stage}/*.py" for stage in STAGES if not stage.startswith((".", "_"))),
]

setup(
    packages=[*find_packages("scripts", include=["causeway", "causeway.*"]), "causeway.workflow"],
    package_dir={"": "scripts", "causeway.workflow": "."},
    package_data={"": ["assets/*", "py.typed"], "causeway.workflow": WORKFLOW},
    include_package_data=False,
)

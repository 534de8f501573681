"""Which version this is; where the workflow lies: in a clone the folder of the Snakefile, in an installed package the
copy inside it; which memory pool jobs take, what they do without, and what they do not look at again.
"""

import atexit
import contextlib
import gc
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

PACKAGE = Path(__file__).resolve().parents[1]
VERSION = "1.0.0"
"""The version of pyproject.toml, which a job in an environment of its own cannot ask for."""
RELEASED = "2026-11-29"
"""The day on which that version was released, as CITATION.cff states it."""

MEMORY_POOL = {"ARROW_DEFAULT_MEMORY_POOL": "jemalloc"}
"""Part of a job's environment, which Arrow reads when it is loaded: with its own choice, mimalloc, jobs take up to
110 MB more and no less time.
"""


def end_without_collection() -> None:
    """Let this process end without Python's search for reference cycles in all that was imported, a fifth of the time
    of a short job: its memory goes anyway. DuckDB would say of all its types that they leak.
    """
    atexit.register(lambda: None if "_duckdb" in sys.modules else gc.freeze())


def workflow_folder() -> Path:
    """Return the folder that holds `Snakefile`, `rules`, `config`, `envs`, `profiles` and the entry scripts.

    A clone comes first, so that a change there acts although a package is installed.
    """
    clone = PACKAGE.parents[1]
    return clone if (clone / "config").is_dir() else PACKAGE / "workflow"


def _finder_without(package: str) -> Any:
    """Return a finder of modules that says that a package is not there, and leaves every other to those that follow.

    It is none of `importlib.abc`, which takes longer to load than all of `core`.
    """

    def find_spec(fullname: str, path: object = None, target: object = None) -> None:
        if fullname == package:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)

    return SimpleNamespace(find_spec=find_spec)


@contextlib.contextmanager
def hidden(package: str) -> Iterator[None]:
    """Let what is imported meanwhile believe that a package, or a part of one, is not installed; nothing is done
    where it is loaded.

    What asks once for the package does without it from then on. So pandas may be hidden only in a process that ends
    with its job, as libraries would not recognise its frames.
    """
    if package in sys.modules:
        yield
        return
    finder = _finder_without(package)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


def keep_pandas_out() -> None:
    """Tell Arrow, where it is loaded, that there is no pandas.

    The first array that Arrow makes imports pandas to know whether values are a Series: 0.3 CPU-seconds and 45 MB in
    each process, though no job passes one. Whoever imports pandas still gets it, and so does Arrow's own `to_pandas`.
    """
    arrow = sys.modules.get("pyarrow")
    if arrow is None:
        return
    with hidden("pandas"):
        arrow.array([None])

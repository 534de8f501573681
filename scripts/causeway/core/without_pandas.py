"""Arrow without pandas, for processes that run one job."""

import sys
from importlib.abc import MetaPathFinder


class _NotInstalled(MetaPathFinder):
    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        """Say that pandas is not there; leave every other module to the finders that follow."""
        if fullname == "pandas":
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


def keep_pandas_out() -> None:
    """Tell Arrow, where it is loaded, that there is no pandas.

    The first array that Arrow makes imports pandas to know whether values are a Series: 0.3 CPU-seconds and 45 MB in
    each process, though no job passes one. Whoever imports pandas still gets it, and so does Arrow's own `to_pandas`.
    Only a process that ends with its job may do this: Arrow no longer recognises a Series there.
    """
    arrow = sys.modules.get("pyarrow")
    if arrow is None or "pandas" in sys.modules:
        return
    finder = _NotInstalled()
    sys.meta_path.insert(0, finder)
    try:
        arrow.array([None])
    finally:
        sys.meta_path.remove(finder)

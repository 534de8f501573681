"""Which of our modules import a library while a run goes on: a hook that every process of the run loads by itself."""

import os

FILE = "CAUSEWAY_IMPORT_TRACE"
LIBRARIES = ("pyarrow", "pandas", "mpi4py", "dowhy", "causallearn", "seaborn", "plotly")
HOOK = f"""
import builtins, os
whole = builtins.__import__
seen = set()
def traced(name, globals=None, locals=None, fromlist=(), level=0):
    importer = str((globals or {{}}).get("__name__"))
    pair = (name.partition(".")[0], importer)
    if pair not in seen and pair[0] in {LIBRARIES!r} and importer.startswith("causeway."):
        seen.add(pair)
        with open(os.environ["{FILE}"], "a", encoding="utf-8") as file:
            file.write(" ".join(pair) + "\\n")
    return whole(name, globals, locals, fromlist, level)
builtins.__import__ = traced
"""


def environment_of(folder):
    """Return the variables of the environment with which a run writes its imports to `folder/imports.txt`."""
    hook = folder / "hook"
    hook.mkdir(parents=True)
    (hook / "sitecustomize.py").write_text(HOOK, encoding="utf-8")
    path = os.pathsep.join(filter(None, [str(hook), os.environ.get("PYTHONPATH")]))
    return {"PYTHONPATH": path, FILE: str(folder / "imports.txt")}


def importers(folder):
    """Return the modules of ours that imported each library, by the library's name."""
    pairs = [line.split() for line in (folder / "imports.txt").read_text(encoding="utf-8").splitlines()]
    return {library: sorted({module for name, module in pairs if name == library}) for library in LIBRARIES}

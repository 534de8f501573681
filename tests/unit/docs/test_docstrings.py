"""Docstrings of public functions on arrays and tables state shapes or columns, and every error that they raise.

What is still missing is counted in `MISSING`, folder by folder, and the counts may only fall;
`python tests/unit/docs/test_docstrings.py` prints what it is.
"""

import ast
import functools
import re
from pathlib import Path

import pytest

from causeway.core.tables import SCHEMAS

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "scripts" / "causeway"
STUDIES = (ROOT / "lab" / "scaling", ROOT / "lab" / "validation")
MODULES = sorted(path for folder in (PACKAGE, *STUDIES) for path in folder.rglob("*.py"))
MISSING = {
    "causal/preparation": 6,
    "efficiency": 1,
    "efficiency/device_time": 1,
    "levels/explorer": 1,
    "levels/pyramid": 40,
    "plotting/figures": 15,
    "plotting/overview": 7,
    "readers/amd": 10,
    "readers/common": 3,
    "readers/containers": 13,
    "readers/nvidia": 2,
    "readers/pytorch": 2,
    "readers/sink": 18,
    "simulate": 2,
    "variability": 1,
    "variability/bins": 29,
    "variability/rows": 61,
}
"""Folders in which something is missing, and how much."""
ARRAY = re.compile(r"\b(?:np\.)?ndarray\b")
TABLE = re.compile(r"\bpa\.(?:Table|RecordBatch)\b|\bDataFrame\b")
SHAPE = re.compile(r"\bshapes?\s+(?:\(|of\b|as\b|`)|\b(?:any|same) shape\b", re.IGNORECASE)
COLUMNS = re.compile(rf"\bcolumns?\b|`(?:{'|'.join(SCHEMAS)})(?:\.parquet)?`")
"""A table of ours is known by its name."""
WHOLE = re.compile(r"\barrays have (?:the )?shape \(")
"""Said of all arrays of a class."""
SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)
ENTRY = re.compile(r"^(?=\S)", re.MULTILINE)


def sections(text):
    """Return a docstring's text before its first section (key ""), and that of each section."""
    parts = SECTION.split(text)
    return {"": parts[0]} | dict(zip(parts[1::2], parts[2::2], strict=True))


def entries(section):
    """Return by name the entries of a section: `a, b : type` and the lines below; what has no name is ""."""
    found = {}
    for entry in ENTRY.split(section):
        names, colon, _ = entry.partition("\n")[0].partition(" : ")
        for name in names.split(", ") if colon else [""]:
            found[name.strip("*` ")] = found.get(name, "") + entry
    return found


def stated(kind, text):
    """Return whether a text states the shape of an array, or the columns of a table."""
    return bool((SHAPE if kind is ARRAY else COLUMNS).search(text))


def in_words(kind, name, summary):
    """Return where a text without sections states the shape or columns of a parameter, in the sentence with its
    name.
    """
    what = f"`{re.escape(name)}`" if kind is ARRAY else rf"\b{re.escape(name)}\b"
    return re.findall(rf"{what}[^.]*?(?i:{(SHAPE if kind is ARRAY else COLUMNS).pattern})", summary)


def kinds_of(annotation):
    """Return which kinds of data an annotation names, with how often."""
    text = "" if annotation is None else ast.unparse(annotation)
    return [(kind, len(kind.findall(text))) for kind in (ARRAY, TABLE) if kind.search(text)]


def missing_parameters(function, text):
    """Yield the parameters whose shape or columns a docstring does not state."""
    parts = sections(text)
    known = entries(parts.get("Parameters", ""))
    arguments = function.args
    for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
        for kind, _ in kinds_of(argument.annotation):
            if not (stated(kind, known.get(argument.arg, "")) or in_words(kind, argument.arg, parts[""])):
                yield argument.arg


def missing_return(function, text):
    """Yield `returned` for each array or table that a function gives without saying its shape or columns."""
    parts = sections(text)
    section = parts.get("Returns", parts.get("Yields"))
    arguments = {one.arg for one in function.args.args}
    for kind, wanted in kinds_of(function.returns):
        if section is None:
            pattern = SHAPE if kind is ARRAY else COLUMNS
            of_parameters = sum(len(in_words(kind, name, parts[""])) for name in arguments) if kind is ARRAY else 0
            have = len(pattern.findall(parts[""])) - of_parameters
            wanted = 1
        else:
            texts = entries(section).values()
            have = sum(stated(kind, entry) for entry in texts)
            if len(texts) == 1 and have:  # a list, a mapping, or a pair that is described as one
                wanted = 1
        if have < wanted:
            yield "returned"


def missing_errors(function, text):
    """Yield the exceptions that are raised in a function's own body and that its docstring does not name."""
    parts = sections(text)
    named = parts.get("Raises", "")
    left = list(function.body)
    while left:
        node = left.pop()
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            name = ast.unparse(node.exc.func).split(".")[-1]
            pattern = r"^[A-Z]" if name[0] == "_" else rf"^{name}\b"  # a private error has a public base
            in_words = re.search(rf"\b[Rr]aises? `{name}`", " ".join(parts[""].split()))
            if not (in_words or re.search(pattern, named, re.MULTILINE)):
                yield name
        left += ast.iter_child_nodes(node)


def missing_fields(owner, text):
    """Yield the attributes of a dataclass whose shape or columns its docstring does not state."""
    parts = sections(text)
    known = entries(parts.get("Attributes", "") + "\n" + parts.get("Parameters", ""))
    for field in owner.body:
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and field.target.id[0] != "_":
            for kind, _ in kinds_of(field.annotation):
                if not (stated(kind, known.get(field.target.id, "")) or WHOLE.search(parts[""])):
                    yield field.target.id


def problems(source):
    """Yield what is missing in the docstrings of a module, each as `function: what`."""

    def of_function(function, text, name):
        for missing in (missing_parameters, missing_return, missing_errors):
            yield from (f"{name}: {what}" for what in missing(function, text))

    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.name[0] != "_":
            yield from of_function(node, ast.get_docstring(node) or "", node.name)
        elif isinstance(node, ast.ClassDef) and node.name[0] != "_":
            whole = ast.get_docstring(node) or ""
            yield from (f"{node.name}: {what}" for what in missing_fields(node, whole))
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and (method.name == "__init__" or method.name[0] != "_"):
                    text = ast.get_docstring(method) or (whole if method.name == "__init__" else "")
                    yield from of_function(method, text, f"{node.name}.{method.name}")


def folder_of(path):
    """Return the folder of a module, relative to the package or, of the lab, to the repository."""
    base = PACKAGE if path.is_relative_to(PACKAGE) else ROOT
    return path.parent.relative_to(base).as_posix()


@functools.cache
def found_in_folders():
    """Return what is missing, as `module function: what`, by folder: not while tests are collected,
    which each of their processes does.
    """
    found = {}
    for path in MODULES:
        missing = [f"{path.stem} {what}" for what in problems(path.read_text(encoding="utf-8"))]
        found.setdefault(folder_of(path), []).extend(missing)
    return found


FOLDERS = sorted({folder_of(path) for path in MODULES})


@pytest.mark.parametrize("folder", FOLDERS)
def test_docstrings_state_shapes_columns_and_errors(folder):
    missing = found_in_folders()[folder]
    counted = MISSING.get(folder, 0)
    assert len(missing) <= counted, f"say it in the docstrings: {missing}"
    assert len(missing) == counted, (
        f"write {len(missing)} for {folder} in MISSING, or no entry for 0: fewer are missing"
    )


def test_every_folder_that_is_counted_exists():
    assert [folder for folder, count in MISSING.items() if folder not in FOLDERS or not count] == []


GOOD = '''
def f(x: np.ndarray, table: pa.Table) -> tuple[np.ndarray, np.ndarray]:
    """Return something.

    Parameters
    ----------
    x : ndarray of float, shape (n,)
    table : Table
        With columns a and b.

    Returns
    -------
    one, other : ndarray, shape (n,)

    Raises
    ------
    ValueError
        If so.
    """
    if x is None:
        raise ValueError("so")
'''


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("", "", []),
        ("x : ndarray of float, shape (n,)", "x : ndarray of float", ["f: x"]),
        ("x : ndarray of float, shape (n,)", "y : ndarray of float, shape (n,)", ["f: x"]),
        ("x : ndarray of float, shape (n,)", "x : ndarray, in good shape and order", ["f: x"]),
        ("With columns a and b.", "As it comes.", ["f: table"]),
        ("one, other : ndarray, shape (n,)", "one : ndarray, shape (n,)\n    other : ndarray", ["f: returned"]),
        ("one, other : ndarray, shape (n,)", "one, other : ndarray", ["f: returned"]),
        ("    Returns\n    -------\n    one, other : ndarray, shape (n,)\n", "", ["f: returned"]),
        ("    ValueError\n        If so.", "    TypeError\n        A ValueError, in words.", ["f: ValueError"]),
        ('raise ValueError("so")', "raise", []),
        ('raise ValueError("so")', 'raise errors.OtherError("so")', ["f: OtherError"]),
        ('raise ValueError("so")', 'raise _PrivateError("so")', []),
        ("With columns a and b.", "A table `transfers`.", []),
        ("With columns a and b.", "A table `nothing`.", ["f: table"]),
        ("x : ndarray of float, shape (n,)", "x : ndarray of float, any shape", []),
    ],
)
def test_the_lint_sees_what_is_missing(old, new, found):
    assert old in GOOD
    assert list(problems(GOOD.replace(old, new) if old else GOOD)) == found


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('def f(x: np.ndarray):\n    """Take `x`, shape (n,)."""', []),
        ('def f(x: np.ndarray):\n    """Take `x`. Another has shape (n,)."""', ["f: x"]),
        ('def f(x: np.ndarray) -> np.ndarray:\n    """Double `x`, shape (n,)."""', ["f: returned"]),
        ('def f() -> np.ndarray:\n    """Return ones, shape (n,)."""', []),
        ("def f(x: np.ndarray): ...", ["f: x"]),
        ("def _f(x: np.ndarray): ...", []),
        ('class C:\n    """One."""\n    def __init__(self, x: np.ndarray): ...', ["C.__init__: x"]),
        ('class C:\n    """One, all arrays have shape (n,)."""\n    x: np.ndarray', []),
        ('class C:\n    """One."""\n    x: np.ndarray\n    _y: np.ndarray', ["C: x"]),
        ('def f():\n    """Do; raises `ValueError` if so."""\n    raise ValueError("no")', []),
        ('def f():\n    """Do."""\n    def g():\n        raise ValueError("no")', []),
    ],
)
def test_the_lint_reads_short_docstrings_and_classes(source, found):
    assert list(problems(source)) == found


if __name__ == "__main__":
    for folder, missing in found_in_folders().items():
        print(f"{len(missing):4d} {folder}", *missing, sep="\n       ") if missing else None

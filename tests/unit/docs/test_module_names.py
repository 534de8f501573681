"""Every module, file and folder of code that a page or a docstring names exists."""

import ast
import functools
import importlib.util
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "scripts" / "causeway"
PAGES = sorted(
    [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "config").glob("*.md"), *(ROOT / "lab").glob("*.md")]
)
"""Recipes are left out: they name the files that a reader is to write, and have tests of their own."""
WINGS = "|".join(sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py")))
BASES = (ROOT, ROOT / "scripts", PACKAGE)
FILES = frozenset(path.name for base in ("scripts", "tests", "docs", "lab") for path in (ROOT / base).rglob("*.py"))
NO_CODE = frozenset({"causal/drafts/", "fleet/learn_from", "causeway.sif"})
"""Names that look like those of code: a folder of results, a key of the configuration, a container."""
MODULES = sorted(path for base in ("scripts", "tests", "lab") for path in (ROOT / base).rglob("*.py"))
STEMS = {path.parent.name if path.stem == "__init__" else path.stem for path in MODULES}
SUFFIXES = frozenset(
    "bin csv gz html json jsonl key parquet pub py schema sig sqlite txt".split()  # of files of data and results
)
OTHER = frozenset({"levels.metrics", "parquet.thrift"})
"""Names with a dot that are neither modules nor files of ours: a key of the configuration, a file of Parquet's."""


def exists(name):
    """Return whether a dotted name is that of a module, or of what stands on top level in one."""
    *parents, last = name.split(".")
    path = PACKAGE.parent.joinpath(*parents, last)
    if path.is_dir() or path.with_suffix(".py").is_file():
        return True
    module = path.parent / "__init__.py" if path.parent.is_dir() else path.parent.with_suffix(".py")
    if not module.is_file():
        return len(parents) > 1 and exists(".".join(parents))
    body = ast.parse(module.read_text(encoding="utf-8")).body
    return last in {getattr(node, "name", None) for node in body} | {
        target.id
        for node in body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def missing(text):
    """Return the modules, files and folders of code that a text names and that do not exist."""
    dotted = re.findall(r"(?<![\w/.])causeway(?:\.[A-Za-z_]\w*)+", text)
    quoted = re.findall(r"`([\w./]+)`", text)
    files = [name for name in quoted if name.endswith(".py")]
    folders = [name for name in quoted if re.fullmatch(rf"(?:{WINGS})/[\w/]*", name)]
    absent = [name for name in dotted if not exists(name)]
    absent += [name for name in files if not any((base / name).is_file() for base in BASES) and name not in FILES]
    absent += [name for name in folders if not (PACKAGE / name).is_dir()]
    return [name for name in absent if name not in NO_CODE]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_module_that_a_page_names_exists(page):
    assert missing(page.read_text(encoding="utf-8")) == []


def test_names_that_do_not_exist_are_found():
    assert (
        missing("`core/tables.py` `tables.py` causeway.core.tables.read_table `readers/sink/` results/x.causeway") == []
    )
    gone = ["causeway.core.no", "causeway.core.tables.none", "readers/star.py", "readers/no/"]
    assert missing(" ".join(f"`{name}`" for name in gone)) == gone
    assert missing("`star.py`") == ["star.py"]


def docstrings(tree):
    """Return the docstrings of a module, its classes, functions and constants, as one text."""
    return "\n".join(
        node.value.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    )


def bound_in(tree):
    """Return the names that a module imports, defines, uses or takes as parameters."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.alias):
            names.add((node.asname or node.name).split(".")[0])
        for field in ("id", "arg", "attr", "name"):
            names.add(getattr(node, field, None))
    return names


@functools.cache
def defined(name):
    """Return whether `module.name` of one of ours is a name on top level, an attribute, or a module of a package."""
    stem, inner, *_ = name.split(".")
    modules = [path for path in MODULES if path.stem == stem]
    folders = [path.parent for path in MODULES if path.stem == "__init__" and path.parent.name == stem]
    return any(inner in bound_in(ast.parse(path.read_text(encoding="utf-8"))) for path in modules) or any(
        (folder / part).exists() for folder in folders for part in (inner, f"{inner}.py")
    )


def external(stem):
    """Return whether a module of this name comes with Python or is installed."""
    return stem in sys.stdlib_module_names or importlib.util.find_spec(stem) is not None


def missing_in_docstrings(tree):
    """Return the modules and files of ours that the docstrings of a module name and that do not exist."""
    text = docstrings(tree)
    dotted = [name for name in re.findall(r"`([a-z]\w*(?:\.\w+)+)(?:\([^`]*\))?`", text) if "__" not in name]
    dotted = [name for name in dotted if name.split(".")[-1] not in SUFFIXES and name not in OTHER]
    known = bound_in(tree) | {"causeway"} if dotted else set()
    dotted = [name for name in dotted if name.split(".")[0] not in known]
    absent = [
        name for name in dotted if not (defined(name) if name.split(".")[0] in STEMS else external(name.split(".")[0]))
    ]
    return [*missing(text), *absent]


NAMED = re.compile(rf"(?<!from )(?<!import )causeway\.[A-Za-z_]|`[\w./]+\.py`|`(?:{WINGS})/|`[a-z]\w*\.\w")
"""How a name begins that `missing_in_docstrings` looks up."""


def test_every_module_that_a_docstring_names_exists():
    texts = {path: path.read_text(encoding="utf-8") for path in MODULES}
    absent = {path: missing_in_docstrings(ast.parse(text)) for path, text in texts.items() if NAMED.search(text)}
    assert {str(path.relative_to(ROOT)): names for path, names in absent.items() if names} == {}


def test_names_that_do_not_exist_are_found_in_docstrings():
    there = (
        '"""`tables.read_table`, `core.tables`, `numpy.unique(x)`, `a.parquet`, `tables.py`, `own.part`."""\nown = 1\n'
    )
    assert missing_in_docstrings(ast.parse(there)) == []
    gone = ["between.py", "slices.slice_statistics", "tables.no_such_name"]
    assert missing_in_docstrings(ast.parse(f'"""{" ".join(f"`{name}`" for name in gone)}"""')) == gone

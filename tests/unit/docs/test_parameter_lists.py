"""What ruff's rules cannot see in docstrings: shapes of arrays, and lists of parameters that are complete.

ruff's D417 asks for a sentence for each parameter, where ours often needs only a type and a shape; its rules on
exceptions (DOC501, DOC502) count only those that a function raises itself, while a reader needs those that reach them.
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = ROOT / "scripts" / "causeway"
MODULES = sorted(PACKAGE.rglob("*.py"))
WINGS = sorted({path.relative_to(PACKAGE).parts[0] for path in MODULES if path.parent != PACKAGE})
SECTION = re.compile(r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-{3,}\n|\Z)", re.MULTILINE | re.DOTALL)
ENTRY = re.compile(r"^(\S.*?)(?: : |$)", re.MULTILINE)

WITHOUT_SHAPES = {"causal", "levels", "readers", "variability"}
"""Wings and ground floors with a public function on arrays whose docstring states no shape yet."""

INCOMPLETE = {"causal"}
"""Wings with a function whose list of parameters is not yet that of its signature."""


def functions(path):
    """Yield the functions of a module and the methods of its classes, each with whether it is public."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node, not node.name.startswith("_")
        elif isinstance(node, ast.ClassDef):
            for method in node.body:
                if isinstance(method, ast.FunctionDef):
                    yield method, not (node.name.startswith("_") or method.name.startswith("_"))


def parameters(function):
    """Return the names of a function's parameters, in order."""
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, arguments.vararg, *arguments.kwonlyargs, arguments.kwarg]
    return [part.arg for part in named if part and part.arg not in ("self", "cls")]


def takes_or_gives_arrays(function):
    """Return whether an annotation of a function names an array."""
    arguments = function.args
    notes = [part.annotation for part in [*arguments.args, *arguments.kwonlyargs]] + [function.returns]
    return any("ndarray" in ast.unparse(note) for note in notes if note)


@pytest.mark.parametrize("wing", WINGS)
def test_public_functions_on_arrays_state_shapes(wing):
    missing = [
        f"{path.relative_to(PACKAGE)} {function.name}"
        for path in MODULES
        if path.relative_to(PACKAGE).parts[0] == wing
        for function, public in functions(path)
        if public and takes_or_gives_arrays(function) and "shape" not in (ast.get_docstring(function) or "")
    ]
    if wing in WITHOUT_SHAPES:
        assert missing, f"{wing} is no longer needed in the list of exceptions"
    else:
        assert missing == []


def incomplete_lists(path):
    """Return the functions of a module whose list of parameters is not that of the signature."""
    wrong = []
    for function, _ in functions(path):
        section = SECTION.search(ast.get_docstring(function) or "")
        if section:
            listed = [name.strip().lstrip("*") for entry in ENTRY.findall(section[1]) for name in entry.split(",")]
            if listed != parameters(function):
                wrong.append(f"{path.relative_to(PACKAGE)} {function.name}")
    return wrong


@pytest.mark.parametrize("wing", WINGS)
def test_a_list_of_parameters_is_complete_and_in_order(wing):
    wrong = [name for path in MODULES if path.relative_to(PACKAGE).parts[0] == wing for name in incomplete_lists(path)]
    if wing in INCOMPLETE:
        assert wrong, f"{wing} is no longer needed in the list of exceptions"
    else:
        assert wrong == []

"""The house's walls: imports between modules point down, one word names a stage everywhere, names are unique, records
are built by keyword, entry scripts are thin, files stay readable.

Some tests have a list of exceptions; an entry that is no longer one fails its test, so that the lists only shrink.
"""

import ast
import functools
import re
from collections import Counter
from pathlib import Path

import pytest

from causeway import GROUND

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS_FOLDER = ROOT / "scripts"
PACKAGE = SCRIPTS_FOLDER / "causeway"
RULES = sorted((ROOT / "rules").glob("*.smk"))
UNIT_TESTS = ROOT / "tests" / "unit"
SCRIPTS = sorted(path for path in SCRIPTS_FOLDER.glob("*/*.py") if path.parent != PACKAGE)
MODULES = sorted(PACKAGE.rglob("*.py"))
LAB = ROOT / "lab"
LAB_SCRIPTS = sorted((LAB / "scripts").glob("*.py"))
LAB_MODULES = sorted({*LAB.rglob("*.py")} - {*LAB_SCRIPTS, *(LAB / "experiments").glob("*.py")})
"""Of the lab, those that are imported as `lab.*`: programs of experiments stand each for itself."""
ROOMS = [path for path in MODULES if path.name == "__init__.py"]
LAB_ROOMS = [path for path in LAB_MODULES if path.name == "__init__.py"]
TESTS = sorted((ROOT / "tests").rglob("*.py"))
WINGS = {room.parent.name for room in ROOMS if room.parent.parent == PACKAGE} - {*GROUND}
TOP = {
    "api": ("plotting", "variability"),
    "command_line": ("api", "readers", "inputs", "efficiency", "waiting", "plotting"),
    "__init__.py": ("api",),
}
"""What stands on the top floor beside the entry scripts, and the wings that it opens."""
MOST_MODULES = 15
MOST_TEST_MODULES = 20
"""Tests of a folder of code are split further than its modules."""
MOST_LINES = 600
"""A file may be long if it is one idea; none is split to meet a number."""
MOST_POSITIONAL = 6
LAYERS = "Imports run from left to right: "
FOLDERS = sorted({path.parent for path in [*MODULES, *SCRIPTS, *TESTS, *LAB.rglob("*.py")]})
"""Folders of code."""
FILES = [path for folder in FOLDERS for path in folder.glob("*.py")]


def name_of(path):
    """Return the dotted name of a module or package under `scripts`, or of the lab."""
    parts = path.relative_to(ROOT if path.is_relative_to(LAB) else SCRIPTS_FOLDER).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = {name_of(path): path for path in [*MODULES, *LAB_MODULES]}
OF_THE_PACKAGE = frozenset(MODULES)


KEPT = (ast.Import, ast.ImportFrom, ast.ClassDef, ast.Assign)
PARTS = ("body", "orelse", "handlers", "finalbody", "cases")
"""Where a statement holds further ones."""


def statements_in(tree):
    """Return the statements of a syntax tree, those inside others as well; no expression holds one."""
    found = []
    left = [tree]
    while left:
        node = left.pop()
        found.append(node)
        for part in PARTS:
            inner = getattr(node, part, ())
            if isinstance(inner, list):
                left += inner
    return found


@functools.cache
def read(path):
    """Return what tests ask of a file, which is read once: its imports, classes and assignments, and of a module what
    `walked` says. What they hold is let go where no test asks for it.
    """
    tree = parsed(path)
    calls_and_names = walked(tree) if path in OF_THE_PACKAGE else None
    kept = [node for node in statements_in(tree) if isinstance(node, KEPT)]
    for node in kept:
        if isinstance(node, ast.ClassDef):
            node.body = []
    return kept, calls_and_names


def statements_of(path):
    """Return a file's imports, classes and assignments."""
    return read(path)[0]


@functools.cache
def imports_of(path):
    """Return every imported module of a file, also those imported inside functions; of ours, the module itself, not
    a name in it.
    """
    names = set()
    for node in statements_of(path):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level or path.is_relative_to(ROOT / "tests"), f"{path} imports relatively"
            whole = {f"{node.module}.{alias.name}" for alias in node.names}
            names |= {name if name in NAMES else node.module for name in whole}
    return frozenset(names)


def rooms_used(path):
    """Return the wings and ground folders that a file imports."""
    return {name.split(".")[1] for name in imports_of(path) if name.startswith("causeway.")}


def layers_of(room):
    """Return the layers that a package's docstring names, those that import first."""
    text = ast.get_docstring(ast.parse(room.read_text(encoding="utf-8")))
    assert LAYERS in text, f"{room} does not say in which order its modules import one another"
    return [re.findall(r"`(\w+)`", layer) for layer in text.split(LAYERS)[1].split(">")]


def parsed(path):
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def classes_in(path):
    """Return the names of the classes of a file."""
    return [node.name for node in statements_of(path) if isinstance(node, ast.ClassDef)]


def relative(path):
    """Return a module's path in the package."""
    return str(path.relative_to(PACKAGE))


def breaches(layers, edges):
    """Return the imports, pairs of names, that do not run from a layer to one on its right."""
    level = {name: number for number, layer in enumerate(layers) for name in layer}
    return sorted((here, there) for here, there in edges if level[here] >= level[there])


def circles(graph):
    """Return the modules that import themselves by way of others."""

    def reached(start):
        found = set()
        left = list(graph[start])
        while left:
            if (name := left.pop()) not in found:
                found.add(name)
                left += graph[name]
        return found

    return sorted(name for name in graph if name in reached(name))


def edges_within(room):
    """Return the imports among a package's modules and sub-packages, by their names in it."""
    prefix = f"{name_of(room)}."
    edges = set()
    for name, path in NAMES.items():
        if name.startswith(prefix):
            here = name.removeprefix(prefix).split(".")[0]
            theirs = {
                found.removeprefix(prefix).split(".")[0] for found in imports_of(path) if found.startswith(prefix)
            }
            edges |= {(here, there) for there in theirs if there != here}
    return edges


@pytest.mark.parametrize("room", ROOMS, ids=name_of)
def test_no_wing_imports_another_and_the_ground_floor_imports_no_wing(room):
    for module in room.parent.glob("*.py"):
        wing = module.relative_to(PACKAGE).parts[0]
        allowed = {*GROUND} if wing in GROUND else {*GROUND, wing, *TOP.get(wing, ())}
        assert rooms_used(module) <= allowed, (
            f"{relative(module)} imports {sorted(rooms_used(module) - allowed)}; what a wing needs from another "
            "travels as a table"
        )


def test_nothing_that_an_analysis_runs_imports_the_lab():
    importing = [path for path in [*MODULES, *SCRIPTS] if any(name.split(".")[0] == "lab" for name in imports_of(path))]
    assert importing == []
    assert any(name.startswith("lab.") for path in LAB_SCRIPTS for name in imports_of(path)), "the name is another"


@pytest.mark.parametrize("room", [*ROOMS, *LAB_ROOMS], ids=name_of)
def test_imports_run_down_the_layers_that_a_package_names(room):
    layers = layers_of(room)
    there = {path.stem for path in room.parent.glob("*.py")} - {"__init__"} | {
        path.parent.name for path in room.parent.glob("*/__init__.py")
    }
    named = [name for layer in layers for name in layer]
    assert sorted(named) == sorted(there)
    assert breaches(layers, edges_within(room)) == []


def test_no_module_imports_itself_by_way_of_others():
    assert (
        circles(
            {name: {found for found in imports_of(path) if found in NAMES} - {name} for name, path in NAMES.items()}
        )
        == []
    )


def test_a_folder_holds_few_modules():
    modules = Counter(path.parent for path in FILES if path.name != "__init__.py")
    full = [
        str(folder.relative_to(ROOT))
        for folder, number in modules.items()
        if number > (MOST_TEST_MODULES if folder.is_relative_to(ROOT / "tests") else MOST_MODULES)
    ]
    assert full == [], "they hold too many modules: add to one of them, or make a sub-folder"


TWICE = {
    "bins": "a figure is called what it draws",
    "comparison": "a figure and a kind of finding",
    "efficiency": "a figure and a kind of finding",
    "kernels": "a figure and a kind of finding",
    "nsys_sqlite": "the same form of file: `simulate` writes whole exports, `levels` a window",
    "steps": "a figure and a kind of finding; in `fleet` what the rules of the study run",
    "stragglers": "a figure and a kind of finding",
}
"""Names that several folders give a module, with the reason."""


def assert_unique(folders_by_name, exceptions):
    """Fail where a name has several folders and is no exception, or is an exception and has one."""
    several = {name: folders for name, folders in folders_by_name.items() if len(folders) > 1}
    assert {name: folders for name, folders in several.items() if name not in exceptions} == {}
    assert sorted({*exceptions} - {*several}) == [], "no longer needed in the list of exceptions"


def test_a_module_has_a_name_of_its_own():
    folders = {}
    for path in MODULES:
        if path.stem not in ("__init__", "__main__"):
            folders.setdefault(path.stem, []).append(relative(path.parent))
    assert_unique(folders, TWICE)


SAME_CLASS_NAME = {
    "Arrow": "an edge of a causal graph: as estimated, and as drawn",
    "Estimate": "to be renamed: a value with its interval, in `causal` and in `comparison`",
    "Evidence": "to be renamed: of a cause; of a finding",
    "Export": "to be renamed: a row of the sheet; a folder of tables",
    "Kernel": "to be renamed: a kernel as drawn, and as a scope of the causal analysis",
}
"""Names that several modules give a public class, with the reason."""


def test_a_public_class_has_a_name_of_its_own():
    modules = {}
    for path in MODULES:
        for name in classes_in(path):
            if not name.startswith("_"):
                modules.setdefault(name, []).append(relative(path))
    assert_unique(modules, SAME_CLASS_NAME)


POSITIONAL_IN = {"causal"}
"""Wings that still give a record more positional arguments than a reader can follow."""


def walked(tree):
    """Return, of a module, the lines and names of what is called with more than `MOST_POSITIONAL` positional arguments, and
    the names that it gives to variables and parameters.
    """
    calls = []
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and len(node.args) > MOST_POSITIONAL:
            calls.append((node.lineno, ast.unparse(node.func).split(".")[-1]))
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
    return calls, names


def positional_calls(path, classes):
    """Return the lines in which a class gets more than `MOST_POSITIONAL` positional arguments."""
    return [f"{relative(path)}:{line}" for line, name in read(path)[1][0] if name in classes]


def test_records_are_built_by_keyword():
    classes = {name for path in MODULES for name in classes_in(path)}
    found = [call for path in MODULES for call in positional_calls(path, classes)]
    assert [call for call in found if call.split("/")[0] not in POSITIONAL_IN] == []
    assert {call.split("/")[0] for call in found} >= POSITIONAL_IN, "no longer needed in the list of exceptions"


@pytest.mark.parametrize("room", [*ROOMS, *LAB_ROOMS], ids=name_of)
def test_a_package_describes_what_lives_there_and_what_does_not(room):
    description = ast.get_docstring(parsed(room)).split(LAYERS)[0]
    assert len(re.findall(r"[.:;](?=\s|$)", description)) >= 2, f"{room}: one sentence"


def test_one_word_names_a_stage_in_rules_and_entry_scripts():
    assert sorted({script.parent.name for script in SCRIPTS}) == [path.stem for path in RULES]


OTHER_TESTS = {"docs"}
"""Folders of unit tests of other things than the package."""


def test_unit_tests_lie_in_folders_named_like_the_packages_that_they_test():
    tested = {path.parent.relative_to(UNIT_TESTS) for path in UNIT_TESTS.rglob("*/test_*.py")}
    assert {*WINGS, *GROUND} - {str(folder.parts[0]) for folder in tested} == set()
    packages = {room.parent.relative_to(PACKAGE) for room in ROOMS}
    packages |= {room.parent.relative_to(LAB) for room in LAB_ROOMS}
    assert sorted(str(folder) for folder in tested - packages if folder.parts[0] not in OTHER_TESTS) == []


def assigns_several(node):
    """Return whether a statement assigns several values to several names, none of which the values use."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Tuple):
        return False
    targets = {ast.unparse(part) for target in node.targets if isinstance(target, ast.Tuple) for part in target.elts}
    used = {ast.unparse(part) for part in ast.walk(node.value) if isinstance(part, ast.expr)}
    return bool(targets) and not targets & used


def test_a_statement_makes_one_assignment():
    nodes = [(path, node) for path in FILES for node in statements_of(path)]
    assert [f"{path.relative_to(ROOT)}:{node.lineno}" for path, node in nodes if assigns_several(node)] == []


def test_one_module_imports_mpi():
    importing = [module for module in MODULES if any(name.split(".")[0] == "mpi4py" for name in imports_of(module))]
    assert [relative(module) for module in importing] == ["numeric/mpi.py"]


@pytest.mark.parametrize("script", [*SCRIPTS, *LAB_SCRIPTS], ids=lambda path: path.name)
def test_entry_scripts_are_thin_and_open_few_wings(script):
    assert len(rooms_used(script) - {*GROUND}) <= 4
    assert len(script.read_text(encoding="utf-8").splitlines()) <= 300
    assert ast.get_docstring(ast.parse(script.read_text(encoding="utf-8")))


def test_the_package_does_not_import_its_entry_scripts():
    stages = {script.parent.name for script in SCRIPTS}
    assert not [module for module in MODULES if {name.split(".")[0] for name in imports_of(module)} & stages]


def test_files_stay_readable():
    lines = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in FILES}
    long = {name: number for name, number in lines.items() if number > MOST_LINES}
    assert long == {}, f"at most {MOST_LINES} lines: a second idea becomes a module of its own"


SAY_NOTHING = {"found", "known", "mine", "one", "at"}
SAID_OUTSIDE = {
    ("core/errors.py", "found"): "stands in capabilities.json",
    ("core/names/prior_knowledge.py", "known"): "a column of the user's list",
}
"""Names of such a word that other programs read."""


def test_names_say_what_things_are():
    vague = {(relative(module), name) for module in MODULES for name in read(module)[1][1] & SAY_NOTHING}
    assert vague == set(SAID_OUTSIDE), "name the launch, gap, rank or column that it is"


def test_every_entry_script_has_its_rule_in_the_file_of_its_stage():
    def rules(stage):
        return (ROOT / "rules" / f"{stage}.smk").read_text(encoding="utf-8")

    def named(script):
        names = (f"rule {script.stem}:", f'f"{script.stem}_{{number}}"')
        text = rules(script.parent.name) + (ROOT / "Snakefile").read_text(encoding="utf-8")
        return any(name in text for name in names)

    assert [script.name for script in SCRIPTS if not named(script)] == []


def test_files_of_tests_have_names_of_their_own():
    """Pytest imports them by name: of two with the same name, the second is not collected."""
    own = ("conftest.py", "__init__.py", "__main__.py")
    names = [path.name for path in TESTS if path.name not in own and not (path.parent / "__init__.py").exists()]
    assert sorted({name for name in names if names.count(name) > 1}) == []

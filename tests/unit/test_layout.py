"""The house's walls: arrows between modules point down, entry scripts are thin, files stay readable."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "scripts" / "causeway"
GROUND = set("codes compiled errors logs schemas tables intervals moments queries ranks row_groups slices results sheet".split())
SCRIPTS = sorted((ROOT / "scripts").glob("*.py"))
MODULES = sorted(PACKAGE.rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))


def room_of(module):
    """Return the part of the package that a module belongs to: its folder's or its own name."""
    first = module.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imports_of(path):
    """Return every imported module of a file, also those imported inside functions, with relative ones resolved."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                base = ["causeway", *path.relative_to(PACKAGE).parts[: -node.level]]
                stem = ".".join([*base, *([node.module] if node.module else [])])
            else:
                stem = node.module
            names |= {f"{stem}.{alias.name}" for alias in node.names} if stem == "causeway" else {stem}
    return names


def rooms_used(path):
    return {name.split(".")[1] for name in imports_of(path) if name.startswith("causeway.")}


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_wing_imports_another_and_the_ground_floor_imports_no_wing(module):
    room = room_of(module)
    allowed = GROUND if room in GROUND else GROUND | {room}
    assert rooms_used(module) <= allowed, (
        f"{room} imports {sorted(rooms_used(module) - allowed)}; what a wing needs from another travels as a table"
    )


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_only_ranks_imports_mpi(module):
    assert room_of(module) == "ranks" or not any(name.split(".")[0] == "mpi4py" for name in imports_of(module))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_entry_scripts_are_thin_and_open_one_or_two_wings(script):
    assert len(rooms_used(script) - GROUND) <= 2
    assert len(script.read_text(encoding="utf-8").splitlines()) <= 150
    assert ast.get_docstring(ast.parse(script.read_text(encoding="utf-8")))


def test_the_package_does_not_import_its_entry_scripts():
    stems = {script.stem for script in SCRIPTS}
    assert not [module for module in MODULES if {name.split(".")[0] for name in imports_of(module)} & stems]


@pytest.mark.parametrize(
    "path", [*MODULES, *SCRIPTS, *sorted((ROOT / "tests").rglob("*.py"))], ids=lambda path: str(path.relative_to(ROOT))
)
def test_files_stay_readable(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


def test_every_entry_script_has_its_rule():
    rules = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "rules").glob("*.smk"))
    assert [script.name for script in SCRIPTS if f"rule {script.stem}:" not in rules] == []


def test_files_of_tests_have_names_of_their_own():
    """Pytest imports them by name: of two with the same name, the second is not collected."""
    own = ("conftest.py", "__init__.py", "__main__.py")
    names = [path.name for path in TESTS if path.name not in own and not (path.parent / "__init__.py").exists()]
    assert sorted({name for name in names if names.count(name) > 1}) == []

"""Every function, method, class and constant of the package is used by a program, not by tests alone."""

import ast
import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / "scripts"
PACKAGE = SCRIPTS / "causeway"
TESTED = "a list of words that tests compare with the schemas"
UNUSED = {
    "causeway.causal.models.kernel_rows.Curve.predict": "dowhy's gcm calls it",
    "causeway.api.results_folder.TableFile.pandas": "for users of the Python interface, docs/api.md",
    "causeway.api.results_folder.TableFile.relation": "for users of the Python interface, docs/api.md",
    "causeway.causal.models.kernel_rows.DrawnRows.draw_samples": "called by gcm",
    "causeway.causal.models.log_time_estimator.LogTimeEstimator": "dowhy finds it by its name, docs/causes.md",
    "causeway.core.vocabulary.CAUSE_CHANGES": TESTED,
    "causeway.core.vocabulary.SIGNS": TESTED,
    "causeway.core.vocabulary.STRAGGLER_VERDICTS": TESTED,
    "causeway.core.vocabulary.VERDICTS": TESTED,
    "causeway.fleet.deployment.deploy.prepare": "called by hand to make a trial deployment, as docs/fleet.md describes",
}
"""What no program names, with the reason why it stays."""
MOST_TAKEN = 20
"""Times that a method takes attributes of its own name, at most: one whose name is taken as often is used."""


def names_in(tree):
    """Return how often a syntax tree reads each name, how often it takes each attribute, and what it imports from
    modules.
    """
    read = Counter()
    taken = Counter()
    imported = set()
    for node in ast.walk(tree):
        kind = type(node)
        if kind is ast.Name and type(node.ctx) is not ast.Store:
            read[node.id] += 1
        elif kind is ast.Attribute and type(node.ctx) is not ast.Store:
            taken[node.attr] += 1
        elif kind is ast.ImportFrom:
            imported |= {(node.module, alias.name) for alias in node.names}
    return read, taken, imported


def tree_of(path):
    """Return the syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"))


def reads(node, name):
    """Return how often a definition reads its own name, as a recursive function does; 0 for a constant."""
    return names_in(node)[0][name] if isinstance(node, ast.FunctionDef | ast.ClassDef) else 0


def takes(method):
    """Return how often a method takes an attribute of its own name."""
    return names_in(method)[1][method.name]


def calls_own_methods_alone(node, lines, classes):
    """Return whether no other library calls a class's methods, and the class, which `lines` of its file hold, none by a
    name that it puts together.
    """
    bases = {ast.unparse(base).split("[")[0] for base in node.bases}
    return bases <= classes and "getattr(self, f" not in "\n".join(lines[node.lineno - 1 : node.end_lineno])


def targets(node):
    """Return the tuples of names that a statement on top level assigns to."""
    if isinstance(node, ast.Assign):
        return [tuple(one.id for one in ast.walk(target) if isinstance(one, ast.Name)) for target in node.targets]
    return [(node.target.id,)] if isinstance(node, ast.AnnAssign) else []


def unused():
    """Return the names in the package that nothing but their own definitions and tests read.

    A name on top level counts as used if its module reads it, or another file imports it, or takes an attribute of that
    name. A method counts as used if any file takes an attribute of that name; `calls_own_methods_alone` says where that
    cannot be known. Of constants that are assigned together, one use is enough.
    """
    programs = {path: tree_of(path) for path in [*SCRIPTS.rglob("*.py"), *(ROOT / "docs").glob("*.py")]}
    found = {path: names_in(tree) for path, tree in programs.items()}
    taken = Counter()
    for _, own, _ in found.values():
        taken.update(own)
    imported = set().union(*(one[2] for one in found.values()))
    for path in [ROOT / "Snakefile", *(ROOT / "rules").rglob("*.smk")]:
        text = path.read_text(encoding="utf-8")
        taken.update(re.findall(r"\w\.(\w+)", text))
        for module, names in re.findall(r"from (causeway[\w.]*) import ([\w, ]+|\([^)]*\))", text):
            imported |= {(module, name) for name in re.findall(r"\w+", names)}
    classes = {node.name for tree in programs.values() for node in tree.body if isinstance(node, ast.ClassDef)}
    left = set()
    for path in PACKAGE.rglob("*.py"):
        lines = path.read_text(encoding="utf-8").splitlines()
        parts = path.relative_to(SCRIPTS).with_suffix("").parts
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        for node in programs[path].body:
            is_definition = isinstance(node, ast.FunctionDef | ast.ClassDef)
            if is_definition and any(ast.unparse(one).startswith("made_from(") for one in node.decorator_list):
                continue  # it registers itself
            for group in [(node.name,)] if is_definition else targets(node):
                group = [name for name in group if not name.startswith("__")]
                outside = [taken[name] or (module, name) in imported for name in group]
                if not any(outside) and not any(found[path][0][name] > reads(node, name) for name in group):
                    left |= {f"{module}.{name}" for name in group}
            if isinstance(node, ast.ClassDef) and calls_own_methods_alone(node, lines, classes):
                methods = [one for one in node.body if isinstance(one, ast.FunctionDef) and one.name[:2] != "__"]
                seldom = [one for one in methods if taken[one.name] < MOST_TAKEN]
                left |= {f"{module}.{node.name}.{one.name}" for one in seldom if taken[one.name] <= takes(one)}
    return left


def test_nothing_is_defined_that_no_program_uses():
    left = unused()
    assert sorted(left - set(UNUSED)) == []
    assert sorted(set(UNUSED) - left) == [], "these are used or gone: take them off the list"

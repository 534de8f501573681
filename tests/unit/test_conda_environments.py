"""Each rule's conda environment holds what the rule's script imports, itself or by way of our modules.

No channel is asked: conda itself is not run here.
"""

import ast
import re
import sys
from functools import cache

import pytest
import yaml
from test_layout import NAMES, ROOT, SCRIPTS_FOLDER
from test_rules import RULE, scripts_of

from support import RULE_FILES

PACKAGES = {
    "adbc_driver_manager": "adbc-driver-manager",
    "adbc_driver_sqlite": "adbc-driver-sqlite",
    "causallearn": "causal-learn",
    "dp_accounting": "dp-accounting",
    "sklearn": "scikit-learn",
    "jsonschema_rs": "jsonschema-rs",
    "yaml": "pyyaml",
}
"""Names of packages that are imported by another name."""
COMES_WITH = {"llvmlite": "numba", "matplotlib": "seaborn", "networkx": "causal-learn", "threadpoolctl": "scikit-learn"}
"""Packages that another one cannot do without, by the one that brings them."""
OPTIONAL = {"torch"}
"""Packages that no environment has: without them a step says what it needs."""
NOT_ON_CONDA_FORGE = {"demangle", "ddsketch"}
"""Taken from the package index in every environment that has them."""


def is_for_types(node):
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def names_in(node):
    """Yield what a syntax tree imports, without imports for types alone."""
    for child in ast.iter_child_nodes(node):
        if is_for_types(child):
            continue
        if isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        elif isinstance(child, ast.ImportFrom):
            whole = [f"{child.module}.{alias.name}" for alias in child.names]
            yield from (name if name in NAMES else child.module for name in whole)
        yield from names_in(child)


@cache
def imported(path):
    return frozenset(names_in(ast.parse(path.read_text(encoding="utf-8"))))


def packages_of(scripts):
    """Return the packages of others that entry scripts import, themselves or by way of ours."""
    stages = {
        ".".join(path.relative_to(SCRIPTS_FOLDER).with_suffix("").parts): path for path in SCRIPTS_FOLDER.glob("*/*.py")
    }
    left = [ROOT / script for script in scripts]
    seen = set()
    found = set()
    while left:
        path = left.pop()
        seen.add(path)
        for name in imported(path):
            own = NAMES.get(name) or stages.get(name)
            if own is None:
                found.add(name.split(".")[0])
            elif own not in seen:
                left.append(own)
    return {
        PACKAGES.get(name, name)
        for name in found - sys.stdlib_module_names - {"causeway", "lab", "snakemake"} - OPTIONAL
    }


def environments():
    """Return each rule's environment and entry scripts."""
    found = {}
    for path in RULE_FILES:
        for name, other, body in RULE.findall(path.read_text(encoding="utf-8")):
            environment = re.search(r'conda:\s+"(?:\.\./)+envs/(\w+)\.yaml"', body)
            before, scripts = found.get(name, (None, set()))
            found[other or name] = environment[1] if environment else before, scripts | scripts_of(path, body)
    return {name: entry for name, entry in found.items() if entry[1]}


def packages_in(environment):
    """Return what an environment takes from conda, and what it takes from the package index."""
    content = yaml.safe_load((ROOT / "envs" / f"{environment}.yaml").read_text(encoding="utf-8"))["dependencies"]
    conda = {pin.split("=")[0] for pin in content if isinstance(pin, str)}
    pip = {pin.split("==")[0] for entry in content if isinstance(entry, dict) for pin in entry["pip"]}
    return conda, pip


@pytest.mark.parametrize("rule", sorted(environments()))
def test_an_environment_holds_what_its_rules_import(rule):
    environment, scripts = environments()[rule]
    conda, pip = packages_in(environment)
    brought = {name for name, by in COMES_WITH.items() if by in conda}
    assert packages_of(scripts) - conda - pip - brought == set(), f"add to envs/{environment}.yaml"


@pytest.mark.parametrize("environment", sorted({entry[0] for entry in environments().values()}))
def test_what_conda_forge_lacks_comes_by_pip(environment):
    conda, pip = packages_in(environment)
    assert conda & NOT_ON_CONDA_FORGE == set()
    assert not pip or "pip" in conda

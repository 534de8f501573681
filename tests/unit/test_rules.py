"""Rules and code: a job runs again when code that its script imports has changed, and only then."""

import ast
import functools
import hashlib
import re
import shutil
from functools import cache
from pathlib import Path

import pytest
from test_layout import GROUND, LAB_SCRIPTS, NAMES, ROOT, SCRIPTS_FOLDER, imports_of

from support import RULE_FILES

RULE = re.compile(r"^(?:use )?rule (\w+)(?: as (\w+) with)?:\n((?:(?: .*)?\n)*)", re.MULTILINE)
RULES_OF_A_LOOP = re.compile(r"^    rule:\n        name:\n +f\"(\w+)_\{number\}\"\n((?:(?: {5}.*)?\n)*)", re.MULTILINE)
LIB = re.compile(r"\blib=modules\(([^)]*)\)")
SCRIPT = re.compile(r"(\.\.|\{BASE\})/(scripts/(?:\w+/)?\w+\.py)")


def scripts_of(path, body):
    """Return the entry scripts that a rule names, relative to the repository; `path` is the file with the rule."""
    found = [(path.parents[1] if base == ".." else ROOT) / script for base, script in SCRIPT.findall(body)]
    return {str(script.relative_to(ROOT)) for script in found}


@cache
def rules():
    """Return what each rule that runs code says, by its name: its parts of the package, None if it names none, and
    its entry scripts.
    """
    found = {}
    for path in [*RULE_FILES, ROOT / "Snakefile"]:
        text = path.read_text(encoding="utf-8")
        looped = [(name, "", body) for name, body in RULES_OF_A_LOOP.findall(text)]
        for name, other, body in [*RULE.findall(text), *looped]:
            parts = None
            if match := LIB.search(body):
                parts = ast.literal_eval(f"[{match[1]}]")
            scripts = scripts_of(path, body)
            if other:  # `use rule name as other with`: a directive that is written replaces the one that is inherited
                known, inherited = found[name]
                parts = parts if re.search(r"^    input:", body, re.M) else known
                scripts = scripts | inherited
            found[other or name] = parts, scripts
    return {name: (parts, scripts) for name, (parts, scripts) in found.items() if scripts}


def modules_of(scripts):
    """Return the modules outside the ground that entry scripts import, themselves or by way of others."""
    stages = {path.relative_to(SCRIPTS_FOLDER).with_suffix(""): path for path in SCRIPTS_FOLDER.glob("*/*.py")}
    entries = {".".join(name.parts): path for name, path in stages.items()}
    left = [ROOT / script for script in scripts]
    found = set()
    while left:
        path = left.pop()
        for name in imports_of(path):
            if name in entries and entries[name] not in found:
                found.add(entries[name])
                left.append(entries[name])
            elif name in NAMES and name.split(".")[1:2] and name.split(".")[1] not in GROUND and name not in found:
                found.add(name)
                left.append(NAMES[name])
    return {name for name in found if isinstance(name, str)}


def covers(part, module):
    name = part.replace("/", ".")
    whole = name if name.startswith("lab.") else f"causeway.{name}"
    return module == whole or module.startswith(f"{whole}.")


@pytest.mark.parametrize("rule", sorted(rules()))
def test_a_rule_depends_on_the_code_that_its_script_imports(rule):
    parts, scripts = rules()[rule]
    imported = modules_of(scripts)
    assert parts is not None, f"{rule} runs {sorted(scripts)}: give it lib=modules(...)"
    assert {module for module in imported if not any(covers(part, module) for part in parts)} == set()
    assert [part for part in parts if not any(covers(part, module) for module in imported)] == []


def test_the_parts_that_rules_name_are_there():
    for rule, (parts, _) in rules().items():
        for part in parts or ():
            folder = (ROOT if part.startswith("lab/") else SCRIPTS_FOLDER / "causeway") / part
            assert folder.is_dir() or folder.with_suffix(".py").is_file(), f"{rule}: {part}"


def test_every_entry_script_is_run_by_a_rule():
    run = set().union(*(scripts for _, scripts in rules().values()))
    entries = [path for path in SCRIPTS_FOLDER.glob("*/*.py") if path.parent.name != "causeway"]
    there = {str(path.relative_to(ROOT)) for path in [*entries, *LAB_SCRIPTS]}
    assert run == there


@pytest.mark.parametrize(("file", "name"), [("compare", "gate"), ("report", "verify")])
def test_an_answer_is_not_asked_for_again(file, name):
    """A profile's `retries` holds for every rule without its own: a closed gate would be judged three times."""
    text = (ROOT / "rules" / f"{file}.smk").read_text(encoding="utf-8")
    (body,) = (body for rule, _, body in RULE.findall(text) if rule == name)
    assert re.search(r"^    retries: 0\b", body, re.M)


@pytest.mark.parametrize("name", ["tables.tsv", "features.yaml", "columns/table.yaml"])
def test_the_digest_of_the_code_changes_with_what_is_known_of_columns(name, tmp_path):
    """Two runs of one version that declare columns differently are of two states."""
    shutil.copytree(ROOT / "config", tmp_path / "config")
    package = ROOT / "scripts" / "causeway" / "core" / "names"
    rules = {"functools": functools, "hashlib": hashlib, "Path": Path, "BASE": tmp_path, "PACKAGE": package}
    exec((ROOT / "rules" / "functions" / "code.smk").read_text(encoding="utf-8"), rules)  # noqa: S102 - our own rules
    before = rules["code_digest"](None)
    file = tmp_path / "config" / name
    assert rules["code_digest"](None) == before
    file.write_text(file.read_text(encoding="utf-8") + "# another column\n", encoding="utf-8")
    assert rules["code_digest"](None) != before

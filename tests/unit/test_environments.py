"""The lock, the conda environments and the ranges of pyproject.toml agree, and no file holds a download address."""

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from support import RULE_FILES, why_not_fleet

ROOT = Path(__file__).resolve().parents[2]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
BASE_LOCK = (ROOT / "requirements-base.lock").read_text(encoding="utf-8")
FLEET_LOCK = (ROOT / "requirements-fleet.lock").read_text(encoding="utf-8")
DOCS_LOCK = (ROOT / "requirements-docs.lock").read_text(encoding="utf-8")
TYPES_LOCK = (ROOT / "requirements-types.lock").read_text(encoding="utf-8")

AUDIT_LOCK = (ROOT / "requirements-audit.lock").read_text(encoding="utf-8")


def pins_of(lock, python="3.12"):
    """Return the versions that a lock pins for a version of Python on this system, by package."""
    from packaging.requirements import Requirement

    pins = [Requirement(line.rstrip("\\ ")) for line in re.findall(r"^[A-Za-z0-9_.-]+==.*", lock, re.M)]
    python = {"python_version": python, "python_full_version": f"{python}.1"}
    chosen = [pin for pin in pins if pin.marker is None or pin.marker.evaluate(python)]
    names = [pin.name for pin in chosen]
    assert len(names) == len(set(names))
    return {pin.name: str(pin.specifier).removeprefix("==") for pin in chosen}


LOCKED = pins_of(LOCK)
LOCKED_FOR_FLEET = pins_of(FLEET_LOCK)
TARGETS = ("rule compare:", "rule gate:", "rule verify:", "rule scaling:")
"""Rules that are asked for by name and make nothing themselves."""
ENVIRONMENTS = sorted((ROOT / "envs").glob("*.yaml"))


@pytest.mark.parametrize(
    ("lock", "least"),
    [(LOCK, 51), (BASE_LOCK, 51), (FLEET_LOCK, 5), (DOCS_LOCK, 10), (TYPES_LOCK, 4), (AUDIT_LOCK, 10)],
    ids=["default", "base", "fleet", "docs", "types", "audit"],
)
def test_a_lock_pins_one_version_each_with_hashes_and_no_address(lock, least):
    for python in ("3.11", "3.12", "3.13", "3.14"):
        assert len(pins_of(lock, python)) >= least
    assert not re.search(r"[a-z]+://|--index-url|--find-links", lock)
    entries = re.split(r"^(?=[A-Za-z0-9_.-]+==)", lock, flags=re.M)[1:]
    assert [entry.split()[0] for entry in entries if "--hash=sha256:" not in entry] == []


def test_the_lock_holds_what_pyproject_asks_for():
    from packaging.requirements import Requirement

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    groups = project["dependency-groups"]
    wanted = [Requirement(text) for text in project["project"]["dependencies"] + groups["dev"]]
    assert [
        str(need) for need in wanted if need.name not in LOCKED or not need.specifier.contains(LOCKED[need.name])
    ] == []
    fleet = [Requirement(text) for text in project["dependency-groups"]["fleet"]]
    assert {need.name for need in fleet} == set(LOCKED_FOR_FLEET)
    assert [str(need) for need in fleet if not need.specifier.contains(LOCKED_FOR_FLEET[need.name])] == []
    assert not set(LOCKED) & set(LOCKED_FOR_FLEET)
    for name, lock in (("types", TYPES_LOCK), ("audit", AUDIT_LOCK)):
        pins = pins_of(lock)
        needs = [Requirement(text) for text in groups[name]]
        assert [str(need) for need in needs if not need.specifier.contains(pins[need.name])] == []
    docs = [Requirement(text) for text in project["dependency-groups"]["docs"]]
    in_docs_lock = pins_of(DOCS_LOCK)
    assert [
        str(need)
        for need in docs
        if need.name not in in_docs_lock or not need.specifier.contains(in_docs_lock[need.name])
    ] == []
    assert {name: in_docs_lock[name] for name in in_docs_lock if name in LOCKED} == {
        n: LOCKED[n] for n in in_docs_lock if n in LOCKED
    }


def test_the_lock_of_the_base_install_holds_what_it_needs_and_no_tool():
    """Its versions are those of the lock for everything, which the tests run with."""
    from packaging.requirements import Requirement

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    base = pins_of(BASE_LOCK)
    assert {Requirement(text).name for text in project["project"]["dependencies"]} <= set(base)
    assert base == {name: LOCKED.get(name) for name in base}
    groups = project["dependency-groups"]
    assert not {Requirement(text).name for text in groups["dev"]} & set(base)


def test_the_base_lock_is_whole():
    """Pip refuses a requirement without a hash, so each one of each of its packages must stand in it."""
    from importlib import metadata

    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    base = {canonicalize_name(name) for name in pins_of(BASE_LOCK)}
    here = {canonicalize_name(package.name) for package in metadata.distributions()}
    for name in base & here:  # some are for other systems
        needs = [Requirement(text) for text in metadata.requires(name) or []]
        asked = {need.name for need in needs if not need.marker or need.marker.evaluate({"extra": ""})}
        assert set(map(canonicalize_name, asked)) <= base, name


def test_dowhy_and_the_scipy_that_it_asks_for_go_together():
    for lock in (LOCK, BASE_LOCK):
        assert pins_of(lock, "3.11")["scipy"] == pins_of(lock, "3.12")["scipy"] == "1.15.3"
        assert "dowhy" in pins_of(lock, "3.13")
        assert "dowhy" not in pins_of(lock, "3.14")  # which it does not support yet


def test_extras_are_the_groups_of_the_same_name():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for extra, packages in project["project"]["optional-dependencies"].items():
        assert set(packages) <= set(project["dependency-groups"][extra]), extra


def test_snakemakes_report_finds_what_it_imports_in_an_installed_package():
    """Snakemake asks for some packages only when a report is made; without a clone's tools nothing else brings them."""
    from importlib import metadata

    from packaging.requirements import Requirement

    files = [file for file in metadata.files("snakemake") if file.parts[:2] == ("snakemake", "report")]
    sources = [file.read_text() for file in files if file.suffix == ".py"]
    asked = {name for text in sources for name in ("pygments", "jinja2") if re.search(rf"(import|from) {name}\b", text)}
    assert asked
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert asked <= {Requirement(text).name for text in project["dependencies"]}


def test_the_container_installs_the_lock_with_a_python_that_it_covers():
    from packaging.specifiers import SpecifierSet

    recipe = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert re.search(r"^FROM debian:trixie-slim$", recipe, re.M)
    version = re.search(r"^# Python (3\.\d+)", recipe, re.M)[1]  # of Debian trixie
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert version in SpecifierSet(project["requires-python"])
    assert "COPY requirements-base.lock" in recipe
    assert "--require-hashes -r requirements-base.lock" in recipe
    assert "--no-deps" not in recipe
    assert "==" not in recipe
    assert re.findall(r"^USER (.+)$", recipe, re.M)[-1] not in ("root", "0")


def test_a_user_without_a_name_can_run_the_container():
    """Snakemake asks for the user's name, which a user given by number has only in the environment."""
    recipe = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    given = " ".join(re.findall(r"^ENV (.+)$", recipe, re.M)).split()
    assert any(one.startswith("USER=") for one in given)


def test_the_container_leaves_results_and_caches_out():
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert {".git", ".venv", "results", ".snakemake"} <= set(ignored)


def test_what_the_fleet_lock_needs_beyond_itself_stands_in_the_default_lock():
    """It is installed without dependencies, so none may be missing."""
    if why_not_fleet():
        pytest.skip(why_not_fleet())
    from importlib.metadata import requires

    from packaging.requirements import Requirement

    for name in LOCKED_FOR_FLEET:
        needs = [Requirement(text) for text in requires(name) or []]
        asked = {need.name.lower() for need in needs if need.marker is None or need.marker.evaluate({"extra": ""})}
        assert asked <= set(LOCKED) | set(LOCKED_FOR_FLEET), name


@pytest.mark.parametrize("path", ENVIRONMENTS, ids=lambda path: path.stem)
def test_an_environment_pins_the_locked_versions(path):
    environment = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert environment["channels"] == ["conda-forge", "nodefaults"]
    conda = [pin for pin in environment["dependencies"] if isinstance(pin, str) and pin != "pip"]
    pins = dict(re.fullmatch(r"([a-z0-9-]+)=([0-9][^=\s]*)", pin).groups() for pin in conda)
    assert pins.pop("python") == "3.12"
    assert pins
    assert pins == {name: LOCKED.get(name) for name in pins}
    by_pip = [pin for entry in environment["dependencies"] if isinstance(entry, dict) for pin in entry["pip"]]
    assert sorted(by_pip) == by_pip
    assert set(by_pip) == {
        f"{name}=={version}"
        for name, version in (LOCKED | LOCKED_FOR_FLEET).items()
        if name in {pin.split("==")[0] for pin in by_pip}
    }


def test_every_environment_serves_a_rule_and_every_rule_names_one():
    rules = "".join(path.read_text(encoding="utf-8") for path in RULE_FILES)
    assert {path.name for path in ENVIRONMENTS} == set(re.findall(r'"(?:\.\./)+envs/([a-z]+\.yaml)"', rules))
    bodies = re.split(r"^(?=(?:use )?rule )", rules, flags=re.M)[1:]
    assert len(bodies) > 5
    for body in bodies:
        if body.startswith(TARGETS):
            continue
        for directive in ("input:", "output:", "log:", "conda:", "benchmark:"):
            assert body.startswith("use rule") or f"    {directive}" in body, (
                f"{body.splitlines()[0]} has no {directive}"
            )


@pytest.mark.parametrize("name", ["uv.lock", "pylock.toml", "package-lock.json"])
def test_no_file_that_would_hold_addresses(name):
    assert not list(ROOT.glob(name))


def test_actions_are_pinned_by_commit_and_may_only_read():
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        text = path.read_text(encoding="utf-8")
        used = re.findall(r"uses: (\S+)", text)
        assert used
        for one in used:
            assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", one), f"{path.name}: {one}"
        assert yaml.safe_load(text)["permissions"] == {"contents": "read"}


@pytest.mark.parametrize(
    ("curl", "audit", "status", "checked"), [("1", "0", 0, False), ("0", "0", 0, True), ("0", "1", 1, True)]
)
def test_the_audit_checks_each_lock_where_its_service_is_in_reach(tmp_path, curl, audit, status, checked):
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))["jobs"]
    (step,) = [step["run"] for step in jobs["audit"]["steps"] if step.get("name") == "audit"]
    for name, code in (("curl", curl), ("pip-audit", audit)):
        (tmp_path / name).write_text(f'#!/bin/sh\necho {name} "$@"\nexit {code}\n')
        (tmp_path / name).chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-e", "-c", step], cwd=ROOT, env={"PATH": path}, capture_output=True, text=True, check=False
    )
    assert done.returncode == status
    assert ("::notice::" in done.stdout) != checked
    if checked and not status:
        assert all(f"--requirement {lock.name}" in done.stdout for lock in ROOT.glob("requirements*.lock"))

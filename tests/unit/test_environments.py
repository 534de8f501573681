"""The lock, the conda environments and the ranges of pyproject.toml agree, and no file holds a download address."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
LOCKED = dict(re.findall(r"^([A-Za-z0-9_.-]+)==([^\s;\\]+)", LOCK, re.M))
ENVIRONMENTS = sorted((ROOT / "envs").glob("*.yaml"))


def test_the_lock_pins_one_version_each_with_hashes_and_no_address():
    names = re.findall(r"^([A-Za-z0-9_.-]+)==", LOCK, re.M)
    assert len(names) == len(set(names)) > 50
    assert not re.search(r"[a-z]+://|--index-url|--find-links", LOCK)
    entries = re.split(r"^(?=[A-Za-z0-9_.-]+==)", LOCK, flags=re.M)[1:]
    assert [entry.split()[0] for entry in entries if "--hash=sha256:" not in entry] == []


def test_the_lock_holds_what_pyproject_asks_for():
    from packaging.requirements import Requirement

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wanted = [Requirement(text) for text in project["project"]["dependencies"] + project["dependency-groups"]["dev"]]
    assert [str(need) for need in wanted if need.name not in LOCKED or not need.specifier.contains(LOCKED[need.name])] == []


@pytest.mark.parametrize("path", ENVIRONMENTS, ids=lambda path: path.stem)
def test_an_environment_pins_the_locked_versions(path):
    environment = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert environment["channels"] == ["conda-forge", "nodefaults"]
    pins = dict(re.fullmatch(r"([a-z0-9-]+)=([0-9][^=\s]*)", pin).groups() for pin in environment["dependencies"])
    assert pins.pop("python") == "3.12"
    assert pins
    assert pins == {name: LOCKED.get(name) for name in pins}


def test_every_environment_serves_a_rule_and_every_rule_names_one():
    rules = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "rules").glob("*.smk"))
    assert {f'"../envs/{path.name}"' for path in ENVIRONMENTS} == set(re.findall(r'"\.\./envs/[a-z]+\.yaml"', rules))
    bodies = re.split(r"^(?=(?:use )?rule )", rules, flags=re.M)[1:]
    assert len(bodies) > 5
    for body in bodies:
        for directive in ("input:", "output:", "log:", "conda:", "benchmark:"):
            assert body.startswith("use rule") or f"    {directive}" in body, f"{body.splitlines()[0]} has no {directive}"


@pytest.mark.parametrize("name", ["uv.lock", "pylock.toml", "package-lock.json"])
def test_no_file_that_would_hold_addresses(name):
    assert not list(ROOT.glob(name))

"""What a contributor is told: the commands exist, the links resolve, the files and functions of the walk are there."""

import ast
import os
import re
import sqlite3
import subprocess
import tomllib
from contextlib import closing

import pytest
import yaml

from causeway.core.installation import RELEASED, VERSION
from support import ROOT

PAGES = ["CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "ROADMAP.md", "docs/a-launch.md"]
WALK = re.findall(
    r"^\| [^|]+ \| `([^`]+\.py)` \| `([^`]+)` \|",
    (ROOT / "docs/a-launch.md").read_text(encoding="utf-8"),
    flags=re.M,
)


def targets_of_make():
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.M))


def test_commands_of_contributing_are_targets_of_make():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = {
        word
        for words in re.findall(r"make ((?:[a-z]+(?:-[a-z]+)?[ `\n]?)+)", text)
        for word in words.strip("` \n").split()
    }
    assert {"setup", "lint", "types", "test", "test-fast", "docs", "bench"} <= named <= targets_of_make()


def test_folders_of_quick_tests_exist():
    (line,) = re.findall(r"^FAST := (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.M)
    assert [path for path in line.split() if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("page", PAGES)
def test_links_resolve(page):
    folder = (ROOT / page).parent
    links = re.findall(r"\]\(([^)#]+)", (ROOT / page).read_text(encoding="utf-8"))
    assert [link for link in links if not (folder / link).exists()] == []


@pytest.mark.parametrize(("file", "name"), WALK, ids=[file for file, _ in WALK])
def test_the_walk_of_a_launch_names_what_is_there(file, name):
    tree = ast.parse((ROOT / "scripts/causeway" / file).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


def test_the_launch_of_the_walk_is_in_the_example():
    assert len(WALK) > 15
    query = 'SELECT start, "end" - start, gridX, blockX, blockY, deviceId, streamId FROM CUPTI_ACTIVITY_KIND_KERNEL'
    with closing(sqlite3.connect(f"file:{ROOT / 'config/example/h100.sqlite'}?mode=ro", uri=True)) as export:
        assert export.execute(f"{query} ORDER BY start LIMIT 1 OFFSET 200").fetchone() == (
            155_399_925_881, 1984, 400, 32, 4, 1, 15,
        )  # fmt: skip


def test_templates_and_hooks_are_read_as_what_they_are():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    assert {hook["id"] for repository in hooks["repos"] for hook in repository["hooks"]} >= {"ruff", "ruff-format"}
    for template in (ROOT / ".github/ISSUE_TEMPLATE").glob("*.md"):
        _, head, body = template.read_text(encoding="utf-8").split("---\n", 2)
        assert {"name", "about"} <= yaml.safe_load(head).keys(), template.name
        assert body.strip()


def test_the_changelog_has_dated_sections_and_short_lines():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    unreleased, *released = re.split(r"^## ", text, flags=re.M)[1:]
    assert unreleased.startswith("[Unreleased]\n")
    heads = [re.match(r"\[([\d.]+)\] - (\d{4}-\d\d-\d\d)\n", section) for section in released]
    assert all(heads)
    assert heads[0].groups() == (VERSION, RELEASED)
    assert heads[-1][1] == "1.0.0"
    assert "### Fixed" not in released[-1], "what was never released is not fixed"
    assert set(re.findall(r"^### (\w+)", text, flags=re.M)) <= {"Added", "Changed", "Fixed", "Removed", "Security"}
    lines = re.findall(r"^- (.*(?:\n  .*)*)", text, flags=re.M)
    assert len(lines) > 40
    assert [line for line in lines if len(line.split()) > 25] == []


def runs_of(workflow):
    jobs = yaml.safe_load((ROOT / ".github/workflows" / workflow).read_text(encoding="utf-8"))["jobs"]
    return {name: " ".join(step.get("run", "") for step in job["steps"]) for name, job in jobs.items()}, jobs


def test_every_folder_of_tests_is_run_by_a_job():
    runs, jobs = runs_of("ci.yml")
    parts = " ".join(part["paths"] for part in jobs["unit"]["strategy"]["matrix"]["part"]).split()
    assert [path for path in parts if not list(ROOT.glob(path))] == []
    folders = {f"tests/unit/{path.name}" for path in (ROOT / "tests/unit").iterdir() if any(path.glob("**/test_*.py"))}
    assert folders == {path for path in parts if not path.endswith(".py")}
    others = {"workflow", "mpi", "slurm", "browser"}
    assert others == {path for path in re.findall(r"tests/(\w+)", " ".join(runs.values())) if path in others}
    assert {"lint", "types", "docs", "wheel", "readme", "audit"} <= runs.keys()
    assert "bash .ci/run" in runs["readme"]


def test_slow_tests_fuzzing_and_newer_versions_are_tried_each_week():
    runs, _ = runs_of("weekly.yml")
    assert "-m slow" in runs["slow"]
    assert "tests.fuzz" in runs["fuzz"]
    assert "pytest" in runs["locks"]


def test_a_tag_becomes_a_release_that_a_second_person_approves():
    runs, jobs = runs_of("release.yml")
    assert "pip wheel" in runs["build"]
    assert "snakemake --report build/report.zip" in runs["build"]
    assert "gh release create" in runs["publish"]
    assert jobs["publish"]["environment"] == "release"


@pytest.mark.parametrize(
    ("tag", "error"),
    [
        (f"v{VERSION}", ""),
        ("v0.0.1", "v0.0.1 is not the version of pyproject.toml"),
        ("v9.9.9", "CHANGELOG.md has no dated section of v9.9.9"),
    ],
)
def test_notes_of_a_release_are_the_section_of_its_version(tmp_path, tag, error):
    _, jobs = runs_of("release.yml")
    (step,) = [step["run"] for step in jobs["build"]["steps"] if step.get("name") == "notes"]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    (tmp_path / "CHANGELOG.md").write_text(changelog, encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text(f'version = "{tag[1:] if "9" in tag else VERSION}"\n')
    environment = {"PATH": os.environ["PATH"], "GITHUB_REF_NAME": tag}
    done = subprocess.run(
        ["bash", "-e", "-c", step], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr.strip()) == (int(bool(error)), error)
    if not error:
        notes = (tmp_path / "notes.md").read_text(encoding="utf-8")
        assert notes.strip() == changelog.split(f"## [{VERSION}] - ")[1].split("\n## ")[0].split("\n", 1)[1].strip()


def test_the_version_is_the_same_wherever_it_stands():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    recipe = yaml.safe_load((ROOT / "recipe/meta.yaml").read_text(encoding="utf-8"))
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {VERSION, recipe["package"]["version"], citation["version"]} == {project["version"]}


def test_the_recipe_needs_what_the_package_needs_and_names_what_the_channel_lacks():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    text = (ROOT / "recipe/meta.yaml").read_text(encoding="utf-8")
    needed = {re.match(r"[\w.-]+", one)[0] for one in project["dependencies"]}
    lacking = set(re.findall(r"# missing in conda-forge: ([\w-]+)", text))
    run = {one.split()[0].removeprefix("python-") for one in yaml.safe_load(text)["requirements"]["run"]} - {"python"}
    assert run | lacking == needed
    assert not run & lacking

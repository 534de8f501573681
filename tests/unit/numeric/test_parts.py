"""Parts of a step: what is finished is neither done again nor lost, however the step ends."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from causeway.core.errors import CausewayError
from causeway.core.files.finished_parts import drop_removed, put_back
from causeway.numeric.parts import Parts
from support import ROOT

CODE = ("digest of the code",)


@pytest.fixture
def step(tmp_path, monkeypatch):
    """Return what runs a step of parts `first`, `folder` and `last`, and a list of the parts that were done."""
    monkeypatch.chdir(tmp_path)
    Path("input").write_text("input")
    done = []

    def run(code=CODE, choice=1, failing=(), needs=("first",)):
        def work(name, path):
            def write():
                done.append(name)
                if name in failing:
                    raise CausewayError(f"{name} failed")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"{name} {len(done)}")

            return write

        with Parts(code=code) as parts:
            parts.do("first", work("first", Path("results/first")), ["results/first"], ["input"], choice)
            parts.do("folder", work("folder", Path("results/folder/in/a")), ["results/folder"], ["input"])
            parts.do("last", work("last", Path("results/last")), ["results/last"], ["results/first"], needs=needs)

    return run, done


def texts():
    return {str(path): path.read_text() for path in sorted(Path("results").rglob("*")) if path.is_file()}


def test_a_step_that_runs_again_takes_what_was_finished(step):
    run, done = step
    run()
    before = texts()
    assert done == ["first", "folder", "last"]
    shutil.rmtree("results")  # as Snakemake does before it repeats a step
    run()
    assert (done, texts()) == (["first", "folder", "last"], before)


@pytest.mark.parametrize(
    ("changed", "again"),
    [
        ({"code": ("other",)}, ["first", "folder", "last"]),
        ({"choice": 2}, ["first", "last"]),
        ({"code": ()}, ["first", "folder", "last"]),
    ],
)
def test_only_what_is_made_of_the_same_is_taken(step, changed, again):
    run, done = step
    run()
    done.clear()
    run(**changed)
    assert done == again


def test_another_input_is_another_result(step):
    run, done = step
    run()
    Path("input").write_text("longer input")
    done.clear()
    run()
    assert done == ["first", "folder", "last"]


def test_a_result_that_somebody_changed_is_made_again(step):
    run, done = step
    run()
    Path("results/first").write_text("another text")
    done.clear()
    run()
    assert done == ["first"], "what it is made of is the same, so what needs it is, too"
    assert texts()["results/first"] == "first 1"


def test_a_part_that_fails_takes_only_those_along_that_need_it(step):
    run, done = step
    with pytest.raises(CausewayError, match="first failed"):
        run(failing=["first"])
    assert done == ["first", "folder"]
    shutil.rmtree("results")
    put_back()
    assert texts() == {"results/folder/in/a": "folder 2"}, "results at hand stay although their step failed"
    done.clear()
    run()
    assert done == ["first", "last"]


@pytest.mark.usefixtures("step")
def test_what_lies_in_a_hidden_folder_is_not_put_back():
    names = [Path("results", folder, "a") for folder in (".drafts", "folder")]

    def work():
        for path in names:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("a")

    with Parts(code=["code"]) as parts:
        parts.do("both", work, [path.parent for path in names], [])
    shutil.rmtree("results")
    put_back()
    assert [path.exists() for path in names] == [False, True]
    with Parts(code=["code"]) as parts:
        parts.do("both", pytest.fail, [path.parent for path in names], [])
    assert [path.exists() for path in names] == [True, True], "the step itself has all of it"


def test_results_count_as_later_than_every_input_of_their_step(step):
    run, _ = step
    run()
    os.utime("results/folder/in/a", ns=(1, 1))
    for link in Path(".snakemake/causeway/parts").rglob("0"):
        assert link.stat().st_nlink == 2
    run()
    assert Path("results/folder/in/a").stat().st_mtime_ns >= Path("input").stat().st_mtime_ns


def test_what_is_kept_takes_no_space_once_its_results_are_removed(step):
    run, _ = step
    run()
    Path("results/last").unlink()
    drop_removed()
    kept = [path for path in Path(".snakemake/causeway/parts").iterdir() if path.is_dir()]
    assert len(kept) == 2


def test_nothing_is_kept_where_links_are_refused(step, monkeypatch):
    run, done = step
    monkeypatch.setattr(os, "link", lambda *_: (_ for _ in ()).throw(PermissionError()))
    run()
    run()
    assert done == 2 * ["first", "folder", "last"]


KILLED = """
import os, sys
from pathlib import Path
from causeway.numeric.parts import Parts
def part(name):
    def work():
        with open("done", "a") as file:
            print(name, file=file)
        if name == sys.argv[1]:
            os.kill(os.getpid(), 9)
        Path(name).write_text(name)
    return work
with Parts(code=["digest"]) as parts:
    for name in "abc":
        parts.do(name, part(name), [name], [], needs=["b"] if name == "c" and sys.argv[2:] else [])
"""


@pytest.mark.parametrize(("needs", "order"), [((), "ab acb"), (("c needs b",), "ab bc")])
def test_a_part_in_which_the_step_was_killed_comes_last(tmp_path, needs, order):
    environment = os.environ | {"PYTHONPATH": str(ROOT / "scripts")}
    said = []
    for killed in ("b", "none"):
        (tmp_path / "done").unlink(missing_ok=True)
        command = [sys.executable, "-c", KILLED, killed, *needs]
        code = subprocess.run(command, cwd=tmp_path, env=environment, check=False).returncode
        assert code == (-9 if killed == "b" else 0)
        said.append((tmp_path / "done").read_text().replace("\n", ""))
    first, second = order.split()
    assert said == [first, second.removeprefix("a")]
    assert {path.name for path in tmp_path.iterdir() if path.is_file()} == {"a", "b", "c", "done"}

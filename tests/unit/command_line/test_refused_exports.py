"""A run of exports none of which can be used: when it ends, what it says, and what it leaves alone."""

import signal
import sys

import pytest

from causeway.command_line import __main__ as command
from causeway.command_line.refused_exports import RefusedExports
from causeway.command_line.run_workflow import run_workflow
from causeway.core.errors import CausewayError
from causeway.readers.normalise import normalise

GOOD = "y,size\n1,2\n2,3\n3,4\n"
SHEET = "dataset\trank\tsource\tformat\n"


@pytest.fixture
def analysis(tmp_path):
    """Return a function that writes exports and their sheet, and one that reads an export as the workflow does."""
    rows = {}

    def write(**contents):
        rows.update({name: tmp_path / f"{name}.csv" for name in contents})
        for name, content in contents.items():
            rows[name].write_text(content)
        lines = [f"{name}\t\t{path}\tauto\n" for name, path in rows.items()]
        (tmp_path / "datasets.tsv").write_text(SHEET + "".join(lines))
        return tmp_path

    def read(name):
        folder = tmp_path / "results" / name / "tables" / "e0"
        folder.parent.mkdir(parents=True, exist_ok=True)
        normalise(rows[name], folder, export="e0", source=str(rows[name]))

    return write, read


def test_a_group_ends_the_run_once_all_of_it_was_read_and_refused(analysis):
    write, read = analysis
    folder = write(a="", b="", c=GOOD)
    whole = RefusedExports(folder, [{"a", "b", "c"}])
    sides = RefusedExports(folder, [{"a", "b"}, {"c"}])
    read("a")
    assert whole.why_nothing_is_left() is None
    assert sides.why_nothing_is_left() is None, "b is not read yet"
    read("c")
    read("b")
    assert whole.why_nothing_is_left() is None
    first, *files = sides.why_nothing_is_left().split("\n")
    assert first == "none of the 2 exports can be used, so that nothing is analysed:"
    assert [line.partition(": ")[0].strip() for line in files] == [str(folder / f"{name}.csv") for name in "ab"]
    assert all("it has zero bytes; expected a profiler's export. Export it again" in line for line in files)


def test_one_that_can_be_used_goes_on_with_the_gap_shown(analysis):
    write, read = analysis
    folder = write(a=GOOD, b="")
    run = RefusedExports(folder, [{"a", "b"}])
    read("b")
    assert run.left_out()[0] == "not used: 1 of 1 exports, as the data quality of the page says too:"
    read("a")
    assert run.why_nothing_is_left() is None
    first, second = run.left_out()
    assert first == "not used: 1 of 2 exports, as the data quality of the page says too:"
    assert second.startswith(f"  {folder / 'b.csv'}: it has zero bytes; expected ")
    read("a")
    folder = write(b=GOOD)
    read("b")
    assert run.left_out() == []


def test_many_refused_exports_are_named_in_part(analysis):
    write, read = analysis
    names = [f"r{number}" for number in range(7)]
    run = RefusedExports(write(**dict.fromkeys(names, "")), [names])
    for name in names:
        read(name)
    lines = run.why_nothing_is_left().split("\n")
    assert len(lines) == 7
    assert lines[-1] == "  and 2 more; `causeway check` says of each why"


def test_what_an_earlier_run_refused_is_read_again_and_what_it_read_is_kept(analysis):
    write, read = analysis
    folder = write(a="", b=GOOD)
    read("a")
    read("b")
    tables = {name: folder / "results" / name / "tables" / "e0" for name in "ab"}
    assert RefusedExports(folder, [{"a", "b"}]).why_nothing_is_left() is None
    assert all(path.is_dir() for path in tables.values())
    run = RefusedExports(folder, [{"a"}, {"b"}])
    assert [path.is_dir() for path in tables.values()] == [False, True]
    assert run.why_nothing_is_left() is None, "a is read anew before it is judged"


@pytest.fixture(params=[False, True], ids=["", "in the background of a script"])
def interrupts_ignored(request):
    """Ignore interrupts, as what a script starts in its background does."""
    if not request.param:
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    assert signal.signal(signal.SIGINT, before) == signal.SIG_IGN


@pytest.mark.usefixtures("interrupts_ignored")
def test_a_workflow_is_ended_as_soon_as_its_steps_have_no_use(capsys):
    program = (
        "import time\nfor done in range(1, 60):\n    print(f'{done} of 60 steps ({done}%) done', flush=True)\n"
        "    time.sleep(1)"
    )
    asked = []
    with pytest.raises(CausewayError, match=r"^no use$"):
        run_workflow(
            [sys.executable, "-c", program], lambda: asked.append(0) or (["", "no use"][len(asked) > 1] or None)
        )
    assert len(asked) == 2
    assert "59 of 60 steps" not in capsys.readouterr().err


def test_an_interrupt_that_was_lost_is_sent_again(capsys):
    program = (
        "import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "for done in range(1, 60):\n    print(f'{done} of 60 steps ({done}%) done', flush=True)\n    time.sleep(1)\n"
        "    signal.signal(signal.SIGINT, signal.default_int_handler)"
    )
    with pytest.raises(CausewayError, match=r"^no use$"):
        run_workflow([sys.executable, "-c", program], lambda: "no use")
    assert "59 of 60 steps" not in capsys.readouterr().err


@pytest.mark.parametrize("name", ["run", *(pytest.param(name, marks=pytest.mark.slow) for name in ("compare", "gate"))])
def test_a_command_whose_exports_are_all_refused_ends_before_the_analysis(name, tmp_path, capsys):
    empty = tmp_path / "a.sqlite"
    empty.write_bytes(b"")
    good = tmp_path / "b.csv"
    good.write_text(GOOD)
    out = tmp_path / "out"
    exports = [str(empty)] if name == "run" else [str(good), str(empty)]
    options = ["--limit", "max_slowdown_percent=5"] if name == "gate" else []
    assert command.main([name, *exports, *options, "--out", str(out), "--cores", "1"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert said[-2:] == [
        "causeway: the export cannot be used, so that nothing is analysed:",
        f"  {empty}: it has zero bytes; expected a profiler's export. Export it again; a full disk or a killed job leaves"
        " empty files.",
    ]
    assert not (out / "results" / "findings.json").exists()
    assert not (out / "results" / "compare").exists()

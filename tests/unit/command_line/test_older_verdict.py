"""A gate that is not judged leaves no verdict of an earlier run, by the command and by the workflow."""

import pytest
import yaml
from test_command import fake_run

from causeway.command_line import __main__ as command
from causeway.command_line.analysis_folder import WRITTEN_BY, alone_in
from causeway.command_line.gate_files import asks_for_verdict, sets_limit, withdraw_verdict
from causeway.comparison.gate import has_limit
from causeway.core.errors import CausewayError
from support import ROOT

FILES = ("gate.json", "gate.md", "gate.svg")


@pytest.fixture
def export(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("y,size\n1,2\n2,3\n3,4\n")
    return path


@pytest.fixture
def compared(tmp_path):
    """Return the folder of comparisons of an analysis whose gate passed."""
    folder = tmp_path / "out" / "results" / "compare"
    (folder / "a__b").mkdir(parents=True)
    for name in (*FILES, "a__b/comparison.json"):
        (folder / name).write_text('{"outcome": "passes"}')
    (tmp_path / "out" / "config.yaml").write_text(WRITTEN_BY)
    return folder


@pytest.mark.parametrize("ending", ["no such file", "refused", "interrupted"])
def test_a_command_that_fails_leaves_no_older_verdict(ending, export, compared, tmp_path, monkeypatch):
    def after():
        assert [path.name for path in compared.iterdir()] == ["a__b"]
        if ending == "refused":
            raise CausewayError("Snakemake stopped")

    calls = fake_run(monkeypatch, after, code=130 if ending == "interrupted" else 0)
    second = export.with_name("absent.csv") if ending == "no such file" else export
    code = command.main(["gate", str(export), str(second), "--out", str(tmp_path / "out")])
    assert code == (130 if ending == "interrupted" else 2)
    assert len(calls) == (ending != "no such file")
    assert [path.name for path in compared.iterdir()] == ["a__b"]
    assert (compared / "a__b" / "comparison.json").exists()


def test_a_folder_in_which_another_command_works_keeps_its_verdict(export, compared, tmp_path, monkeypatch):
    fake_run(monkeypatch)
    with alone_in(tmp_path / "out"):
        assert command.main(["gate", str(export), str(export), "--out", str(tmp_path / "out")]) == 2
    assert "passes" in (compared / "gate.json").read_text()


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("--snakefile x/Snakefile -c2 gate", True),
        ("--cores 2 all judge_gate", True),
        ("-j1 out/results/compare/gate.svg", True),
        ("-pn gate", False),
        ("--dryrun gate", False),
        ("gate --dry-run", False),
        ("--directory gates --nolock gate", True),
        ("-c2 compare results/compare/a__b/comparison.json", False),
        ("", False),
    ],
)
def test_whether_the_arguments_of_snakemake_ask_for_a_verdict(arguments, expected):
    assert asks_for_verdict(arguments.split()) == expected


def test_what_is_to_be_drawn_says_could_not_tell_until_then(compared):
    withdraw_verdict(compared, is_drawn=True)
    assert not (compared / "gate.json").exists()
    assert (compared / "gate.md").read_text().startswith("### GPU performance: could not tell\n")
    assert "<title>GPU performance: could not tell. " in (compared / "gate.svg").read_text()
    withdraw_verdict(compared / "no such folder")
    assert not (compared / "no such folder").exists()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ([], "No limit is set"),
        (["--set", "gate.min_share=0.5"], "No limit is set"),
        (["--limit", "max_slowdown_percent=5"], "not finished"),
        (["--set", "gate.forbid_new_kernels=true"], "not finished"),
    ],
)
def test_a_gate_without_a_limit_says_so(options, why, export, tmp_path, monkeypatch):
    def fail():
        raise CausewayError("stopped")

    fake_run(monkeypatch, fail)
    files = [tmp_path / "gate.md", tmp_path / "gate.svg"]
    wanted = ["--markdown", str(files[0]), "--badge", str(files[1]), "--out", str(tmp_path / "out")]
    assert command.main(["gate", str(export), str(export), *wanted, *options]) == 2
    assert all(why in file.read_text() for file in files)


def test_the_command_and_the_workflow_agree_on_what_a_limit_is():
    defaults = yaml.safe_load((ROOT / "config" / "config.yaml").read_text())["gate"]
    assert not has_limit(defaults)
    assert not sets_limit(defaults)
    for key, value in defaults.items():
        settings = defaults | {key: True if value is False else 7.0}
        assert has_limit(settings) == sets_limit(settings), key


def test_a_gate_makes_the_page_that_it_names(export, tmp_path, monkeypatch, capsys):
    verdicts = tmp_path / "out" / "results" / "compare" / "gate.json"

    def after():
        verdicts.parent.mkdir(parents=True)
        verdicts.write_text('{"reasons": [], "states": [{"state": "held"}]}')

    calls = fake_run(monkeypatch, after)
    options = ["--limit", "max_slowdown_percent=5", "--out", str(tmp_path / "out")]
    assert command.main(["gate", str(export), str(export), *options]) == 0
    assert "results/compare/before_a__after_a/comparison.html" in calls[0]
    assert "open first" in capsys.readouterr().out

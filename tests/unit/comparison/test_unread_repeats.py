"""A repeat that could not be measured: the others are compared as if it were not named, and the gap is said."""

import pytest
from gate_samples import NONE

from causeway.comparison.compare import run
from causeway.comparison.gate import judge, missing, outcome, reasons
from causeway.core.results import read_capabilities, read_comparisons
from causeway.core.vocabulary import COULD_NOT_TELL
from causeway.findings.comparison import comparison_findings
from causeway.findings.document import summarise
from causeway.plotting.figures.comparison import draw_changes, draw_ratios, draw_totals
from causeway.plotting.overview.comparisons import compared_runs
from causeway.plotting.pages.comparison_page import draw_comparison
from causeway.plotting.pages.gate_summary import gate_markdown
from causeway.readers.normalise import normalise
from comparison_runs import CHOICES, write_run
from variability_tables import write_export

WIDE = {**NONE, "max_slowdown_percent": 50}
"""A limit that two runs of one program keep."""
WHY = (
    "dataset empty cannot be compared: none of its exports holds kernel launches or the counter gpu_time; e0 could not"
    " be read: it has zero bytes"
)


@pytest.fixture
def results(tmp_path):
    """Return a results folder of four runs of one program, one whose export is empty and one without a launch."""
    for seed, name in enumerate(("a", "a2", "b", "b2"), start=1):
        write_run(tmp_path / name, seed, iterations=60)
    (tmp_path / "empty.sqlite").write_bytes(b"")
    folder = tmp_path / "empty" / "tables" / "e0"
    folder.parent.mkdir(parents=True)
    normalise(tmp_path / "empty.sqlite", folder, export="e0", source="empty.sqlite")
    columns = {key: [] for key in ("start_ns", "duration_ns", "configuration", "rank")}
    write_export(tmp_path / "idle" / "tables" / "e0", columns, configurations=[("advance", {"grid_x": 64})])
    return tmp_path


def compare(results, *sides):
    """Compare datasets, per side a run and its repeats; return the document and its rows."""
    names = [name for side in sides for name in side]
    folders = {name: [results / name / "tables" / "e0"] for name in names}
    home = results / "compare" / f"{sides[0][0]}__{sides[1][0]}"
    run(sides, folders, {}, [{}, {}], {}, CHOICES, home / "comparison.json", home / "comparison.parquet")
    ((document, rows),) = read_comparisons([home / "comparison.json"])
    return document, rows


@pytest.mark.parametrize(
    ("sides", "kept"),
    [
        ((["a", "a2", "empty"], ["b", "b2"]), (["a", "a2"], ["b", "b2"])),
        ((["a", "a2"], ["b", "empty", "b2"]), (["a", "a2"], ["b", "b2"])),
        ((["a", "empty"], ["b"]), (["a"], ["b"])),
        ((["a", "idle"], ["b", "empty"]), (["a"], ["b"])),
    ],
    ids=str,
)
def test_what_is_compared_beside_an_unread_repeat_is_what_is_compared_without_it(sides, kept, results):
    document, rows = compare(results, *sides)
    without, others = compare(results, *kept)
    assert rows == others
    assert rows
    for key in ("why", "noise", "matched", "verdicts", "decomposition", "change_ns", "baseline", "candidate"):
        assert document[key] == without[key]
    assert without["unread_repeats"] == []
    left_out = {name for side in sides for name in side} - {name for side in kept for name in side}
    assert {one["dataset"] for one in document["unread_repeats"]} == left_out


def test_the_document_says_which_repeat_and_why(results):
    document, _ = compare(results, ["a", "idle"], ["b", "empty"])
    assert document["unread_repeats"] == [
        {
            "side": "baseline",
            "dataset": "idle",
            "why": "dataset idle cannot be compared: its exports hold no kernel launch",
        },
        {"side": "candidate", "dataset": "empty", "why": WHY},
    ]
    assert document["noise"] == "halves"
    assert document["assumption"].startswith(
        "idle, a repeat of the baseline, could not be measured: it is in no number, and no noise is learned from it."
        " empty, a repeat of the candidate, could not be measured:"
    )
    assert "One run on each side" in document["assumption"]
    assert document["not_compared"][:2] == [
        "idle is in no number: dataset idle cannot be compared: its exports hold no kernel launch.",
        f"empty is in no number: {WHY}.",
    ]


def closed(results, *sides):
    """Return the sentences on which the gate stays closed, and what it says as a whole."""
    document, rows = compare(results, *sides)
    names = {name for side in sides for name in side}
    states = judge(document, rows, WIDE)
    states += missing(document, read_capabilities(results / name / "tables" / "e0" for name in sorted(names)))
    stops = reasons(states, strict=False)
    return (
        stops,
        outcome(states, stops),
        gate_markdown(
            {"states": states, "reasons": stops, "outcome": outcome(states, stops)}, [(document, rows)], [[]]
        ),
    )


def test_the_gate_opens_on_what_was_measured_only_if_nothing_was_not(results):
    assert closed(results, ["a", "a2"], ["b", "b2"])[:2] == ([], "passes")


@pytest.mark.parametrize("side", ["baseline", "candidate"])
def test_the_gate_stays_closed_on_an_export_of_a_repeat_that_was_refused(side, results):
    sides = (["a", "a2", "empty"], ["b", "b2"]) if side == "baseline" else (["a", "a2"], ["b", "b2", "empty"])
    stops, whole, text = closed(results, *sides)
    assert stops == [f"a -> b: export e0 of the {side} could not be read: it has zero bytes; the gate stays closed."]
    assert whole == COULD_NOT_TELL
    assert "could not tell" in text
    assert "is in no number, and no noise is learned from it" in text


def test_the_gate_stays_closed_on_a_repeat_that_was_read_and_has_no_launch(results):
    stops, whole, _ = closed(results, ["a", "a2"], ["b", "b2", "idle"])
    assert stops == [
        "a -> b: idle, a repeat of the candidate, is in no number: dataset idle cannot be compared: its exports hold no"
        " kernel launch; the gate stays closed."
    ]
    assert whole == COULD_NOT_TELL


def test_an_unread_main_run_is_not_replaced_by_its_repeat(results):
    document, rows = compare(results, ["a", "a2"], ["empty", "b"])
    assert (document["why"], rows) == (f"{WHY}.", [])
    assert [one["dataset"] for one in document["unread_repeats"]] == []


def test_page_finding_and_overview_name_the_repeat(results):
    document, rows = compare(results, ["a", "a2"], ["b", "b2", "empty"])
    findings = comparison_findings(document, rows)
    assert all("empty, a repeat of the candidate, could not be measured" in one.assumption for one in findings)
    figures = {
        "changes": draw_changes(document, rows),
        "totals": draw_totals(document),
        "ratios": draw_ratios(document, rows),
    }
    page = str(draw_comparison(document, rows, ["a headline"], **figures))
    assert "empty, a repeat of the candidate, could not be measured" in page
    assert f"empty is in no number: {WHY}." in page
    section = str(compared_runs([(document, rows)], summarise(findings, {}, "0")["findings"], []))
    assert "repeat could not be measured" in section
    assert ">empty<" in section
    clean = str(compared_runs([compare(results, ["a", "a2"], ["b", "b2"])], [], []))
    assert "could not be measured" not in clean


def test_an_export_that_was_not_read_whole_is_named(results):
    """The main run keeps what its other exports hold; which one is not in it stands among what was not compared."""
    home = results / "compare" / "a__b"
    folders = {"a": [results / "a" / "tables" / "e0"], "b": [results / "b" / "tables" / "e0"]}
    (results / "b" / "tables" / "e1").mkdir()
    for path in (results / "empty" / "tables" / "e0").iterdir():
        (results / "b" / "tables" / "e1" / path.name).write_bytes(path.read_bytes())
    folders["b"].append(results / "b" / "tables" / "e1")
    run([["a"], ["b"]], folders, {}, [{}, {}], {}, CHOICES, home / "comparison.json", home / "comparison.parquet")
    ((document, _),) = read_comparisons([home / "comparison.json"])
    assert document["why"] is None
    assert document["not_compared"][0] == "b: export e1 could not be read and is in no number."

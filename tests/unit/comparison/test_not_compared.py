"""Two runs that hold nothing to compare, or a repeat that holds nothing: the comparison says why, the gate stays
closed, and pages go on.
"""

import json

import pytest
from gate_samples import DOCUMENT, NONE, row

from causeway.comparison.compare import run
from causeway.comparison.gate import LIMITS, judge, missing, outcome, reasons
from causeway.core.results import read_capabilities, read_comparisons
from causeway.core.vocabulary import COULD_NOT_TELL, REGRESSED
from causeway.findings.comparison import comparison_findings
from causeway.findings.document import summarise
from causeway.findings.first_screen.plan import lines_of_pair
from causeway.plotting.drawing.page import inline
from causeway.plotting.figures.comparison import draw_changes, draw_ratios, draw_totals
from causeway.plotting.overview.claims import compared_runs
from causeway.plotting.pages.comparison_page import draw_comparison, draw_history_page
from causeway.plotting.pages.gate_summary import gate_markdown
from causeway.readers.normalise import normalise
from comparison_runs import CHOICES, write_run
from queried import answers, same
from variability_tables import write_export

WIDE = {**NONE, "max_slowdown_percent": 50}
"""A limit that two runs of one program keep."""
SET = {**NONE, **dict.fromkeys(LIMITS, 5), "min_efficiency": 0.5, "forbid_new_kernels": True}


@pytest.fixture
def results(tmp_path):
    """Return a results folder of runs `good` and `again`, one of other kernels and one whose export is empty."""
    write_run(tmp_path / "good", 1, iterations=40)
    write_run(tmp_path / "again", 2, iterations=40)
    write_run(tmp_path / "other", 3, iterations=40, names=("one", "two"))
    (tmp_path / "empty.sqlite").write_bytes(b"")
    folder = tmp_path / "empty" / "tables" / "e0"
    folder.parent.mkdir(parents=True)
    normalise(tmp_path / "empty.sqlite", folder, export="e0", source="empty.sqlite")
    return tmp_path


def compare(results, *sides):
    """Compare datasets, per side a run and its repeats; return the document and its rows."""
    names = [name for side in sides for name in side]
    folders = {name: [results / name / "tables" / "e0"] for name in names}
    home = results / "compare" / f"{sides[0][0]}__{sides[1][0]}"
    run(sides, folders, {}, [{}, {}], {}, CHOICES, home / "comparison.json", home / "comparison.parquet")
    ((document, rows),) = read_comparisons([home / "comparison.json"])
    return document, rows


REFUSED = (
    "dataset empty cannot be compared: none of its exports holds kernel launches or the counter gpu_time; e0 could not"
    " be read: it has zero bytes."
)


@pytest.mark.parametrize(
    "sides", [(["good"], ["empty"]), (["empty"], ["good"]), (["good"], ["empty", "again"])], ids=str
)
def test_a_run_that_was_not_read_is_said_and_not_measured(sides, results):
    document, rows = compare(results, *sides)
    assert (document["why"], rows) == (REFUSED, [])
    assert document["noise"] == ("repeats" if len(sides[1]) > 1 else "halves")
    for word, side in zip(("baseline", "candidate"), sides, strict=True):
        facts = document[word]
        known = side[0] != "empty"
        assert (facts["dataset"], facts["repeats"]) == (side[0], side[1:])
        # 6 kernels, each once in each of 40 iterations on each of 2 ranks
        assert (facts["launches"], facts["kernels"]) == ((480, 6) if known else (None, None))
        assert (facts["gpu_time_ns"] is None) is not known
    assert all(document[key] is None for key in ("matched", "change_ns", "same_content", "replays"))


def test_runs_without_a_kernel_in_common_are_compared_as_far_as_they_can_be(results):
    document, rows = compare(results, ["good"], ["other"])
    assert document["why"] is None
    assert document["not_compared"][0].startswith("good and other have no kernel in common, by name,")
    assert [document[side]["launches"] for side in ("baseline", "candidate")] == [480, 160]
    # of the same launches nothing is said, as there are none; of the span, what both runs last
    assert [row["metric"] for row in rows if row["change_percent"] is not None] == ["span"]
    assert {row["verdict"] for row in rows if row["level"] == "kernel"} == {"new", "gone"}
    limits = {**NONE, "max_slowdown_percent": 5, "max_span_increase_percent": 5, "forbid_new_kernels": True}
    states = {state["limit"]: state for state in judge(document, rows, limits)}
    assert states["max_slowdown_percent"]["state"] == "not judged"
    assert "no configuration in common" in states["max_slowdown_percent"]["sentence"]
    assert states["max_span_increase_percent"]["state"] == "not judged"  # one run on each side
    assert states["forbid_new_kernels"]["state"] == "broken"
    (finding,) = comparison_findings(document, rows)
    assert finding.headline.startswith("other has no kernel in common with good: GPU time ")
    assert same(answers([finding.evidence.query], results)[finding.evidence.query], finding.evidence.value)


def test_the_page_of_runs_without_a_kernel_in_common_is_drawn(results):
    document, rows = compare(results, ["good"], ["other"])
    figures = {"changes": inline(draw_changes(document, rows)), "totals": inline(draw_totals(document))}
    lines = lines_of_pair(document, rows, results)
    figures["ratios"] = inline(draw_ratios(document, rows))
    page = str(draw_comparison(document, rows, ["a headline"], lines, **figures))
    assert "have no kernel in common" in page
    assert lines[0][0].startswith("Run ")
    assert [is_first for _, is_first in lines] == [True, *[False] * (len(lines) - 1)]
    assert not [line for line, _ in lines if "same launches" in line]
    assert f'<li class="whole">{lines[0][0]}</li>' in page
    assert all(f"<li>{line}</li>" in page for line, _ in lines[1:])


def test_the_line_of_the_run_is_the_first_one_also_behind_the_devices(results):
    document, rows = compare(results, ["good"], ["again"])
    for side in ("baseline", "candidate"):
        document[side]["devices"] = [{"name": "NVIDIA H100", "number": 2}]
    (devices, *others) = lines_of_pair(document, rows, results)
    assert devices == ("2 x NVIDIA H100 on both sides.", False)
    assert [is_first for _, is_first in others] == [True, *[False] * (len(others) - 1)]
    assert others[0][0].startswith("Run ")
    without = [row for row in rows if row["metric"] not in ("step", "span")]
    assert not any(is_first for _, is_first in lines_of_pair(document, without, results))


def test_the_gate_stays_closed_and_says_why_once(results):
    document, rows = compare(results, ["good"], ["empty"])
    states = judge(document, rows, SET)
    assert {state["limit"] for state in states} == {*LIMITS, "min_efficiency", "forbid_new_kernels"}
    assert {state["state"] for state in states} == {"not judged"}
    assert states[0]["sentence"] == (
        "good -> empty: the runs were not compared, so max_slowdown_percent cannot be judged and the gate stays closed."
    )
    exports = read_capabilities(results / name / "tables" / "e0" for name in ("empty",))
    lacking = missing(document, exports)
    assert [state["sentence"] for state in lacking].count(
        f"good -> empty: {REFUSED.removesuffix('.')}; the gate stays closed."
    ) == 1
    stops = reasons([*states, *lacking], strict=False)
    assert outcome([*states, *lacking], stops) == COULD_NOT_TELL
    # a limit that another pair breaks is broken all the same
    broken = judge(DOCUMENT, [row(9, 8, 10)], {**NONE, "max_slowdown_percent": 5})
    assert outcome([*broken, *states], ["s"]) == REGRESSED
    text = gate_markdown(
        {"states": [*states, *lacking], "reasons": stops, "outcome": COULD_NOT_TELL}, [(document, rows)], [[]]
    )
    assert text.startswith("### GPU performance: could not tell\n")
    assert f"`{REFUSED}`" in text


def test_nothing_is_judged_where_no_limit_is_set(results):
    document, rows = compare(results, ["good"], ["empty"])
    assert judge(document, rows, NONE) == []


def test_the_finding_says_why_and_its_query_gives_it(results):
    (finding,) = comparison_findings(*compare(results, ["good"], ["empty"]))
    assert (finding.headline, finding.effect) == ("empty could not be compared with good.", None)
    assert finding.sentence.endswith(REFUSED)
    assert same(answers([finding.evidence.query], results)[finding.evidence.query], finding.evidence.value)
    document = summarise([finding], {}, "0")
    assert [(one["kind"], one["severity"]) for one in document["findings"]] == [("comparison", "low")]
    assert document["dropped"] == []


def test_the_page_and_its_figures_say_why_and_no_number_of_what_was_not_measured(results):
    document, rows = compare(results, ["good"], ["empty"])
    figures = {
        "changes": inline(draw_changes(document, rows)),
        "totals": inline(draw_totals(document)),
        "ratios": inline(draw_ratios(document, rows)),
    }
    assert all("dataset empty cannot be compared" in str(one) for one in figures.values())
    page = str(draw_comparison(document, rows, ["a headline"], **figures))
    assert f"<p>{REFUSED}</p>" in page
    assert "a headline" in page
    assert "480 launches" in page
    assert "None" not in page


def test_the_overview_names_each_pair_whether_it_was_compared_or_not(results):
    pairs = [compare(results, ["good"], ["again"]), compare(results, ["good"], ["empty"])]
    findings = [finding for pair in pairs for finding in comparison_findings(*pair)]
    section = str(compared_runs(pairs, summarise(findings, {}, "0")["findings"], [], []))
    assert section.count("<li") == 2
    assert "empty could not be compared with good." in section
    assert "dataset empty cannot be compared: none of its exports" in section


def test_the_history_keeps_the_runs_that_were_compared(results):
    pairs = [compare(results, ["good"], ["again"]), compare(results, ["good"], ["empty"])]
    page = str(draw_history_page(pairs, "results"))
    assert "Kernels that are worse in again, the latest that was compared" in page
    assert "dataset empty cannot be compared" in page
    alone = str(draw_history_page(pairs[1:], "results"))
    assert "None of these runs could be compared" in alone
    assert "No comparison claims" not in alone


def test_another_fault_than_nothing_to_compare_is_no_result(results):
    (results / "good" / "tables" / "e0" / "launches.parquet").write_bytes(b"damaged")
    with pytest.raises(Exception, match=r"launches\.parquet"):
        compare(results, ["good"], ["again"])
    assert not (results / "compare").exists()
    assert json.loads((results / "empty" / "tables" / "e0" / "capabilities.json").read_text())["status"] == "refused"


@pytest.fixture
def repeated(tmp_path):
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
def test_what_is_compared_beside_an_unread_repeat_is_what_is_compared_without_it(sides, kept, repeated):
    document, rows = compare(repeated, *sides)
    without, others = compare(repeated, *kept)
    assert rows == others
    assert rows
    for key in ("why", "noise", "matched", "verdicts", "decomposition", "change_ns", "baseline", "candidate"):
        assert document[key] == without[key]
    assert without["unread_repeats"] == []
    left_out = {name for side in sides for name in side} - {name for side in kept for name in side}
    assert {one["dataset"] for one in document["unread_repeats"]} == left_out


def test_the_document_says_which_repeat_and_why(repeated):
    document, _ = compare(repeated, ["a", "idle"], ["b", "empty"])
    assert document["unread_repeats"] == [
        {
            "side": "baseline",
            "dataset": "idle",
            "why": "dataset idle cannot be compared: its exports hold no kernel launch",
        },
        {"side": "candidate", "dataset": "empty", "why": REFUSED.removesuffix(".")},
    ]
    assert document["noise"] == "halves"
    assert document["assumption"].startswith(
        "idle, a repeat of the baseline, could not be measured: it is in no number, and no noise is learned from it."
        " empty, a repeat of the candidate, could not be measured:"
    )
    assert "One run on each side" in document["assumption"]
    assert document["not_compared"][:2] == [
        "idle is in no number: dataset idle cannot be compared: its exports hold no kernel launch.",
        f"empty is in no number: {REFUSED}",
    ]


def closed(repeated, *sides):
    """Return the sentences on which the gate stays closed, and what it says as a whole."""
    document, rows = compare(repeated, *sides)
    names = {name for side in sides for name in side}
    states = judge(document, rows, WIDE)
    states += missing(document, read_capabilities(repeated / name / "tables" / "e0" for name in sorted(names)))
    stops = reasons(states, strict=False)
    return (
        stops,
        outcome(states, stops),
        gate_markdown(
            {"states": states, "reasons": stops, "outcome": outcome(states, stops)}, [(document, rows)], [[]]
        ),
    )


def test_the_gate_opens_on_what_was_measured_only_if_nothing_was_not(repeated):
    assert closed(repeated, ["a", "a2"], ["b", "b2"])[:2] == ([], "passes")


@pytest.mark.parametrize("side", ["baseline", "candidate"])
def test_the_gate_stays_closed_on_an_export_of_a_repeat_that_was_refused(side, repeated):
    sides = (["a", "a2", "empty"], ["b", "b2"]) if side == "baseline" else (["a", "a2"], ["b", "b2", "empty"])
    stops, whole, text = closed(repeated, *sides)
    assert stops == [f"a -> b: export e0 of the {side} could not be read: it has zero bytes; the gate stays closed."]
    assert whole == COULD_NOT_TELL
    assert "could not tell" in text
    assert "is in no number, and no noise is learned from it" in text


def test_the_gate_stays_closed_on_a_repeat_that_was_read_and_has_no_launch(repeated):
    stops, whole, _ = closed(repeated, ["a", "a2"], ["b", "b2", "idle"])
    assert stops == [
        "a -> b: idle, a repeat of the candidate, is in no number: dataset idle cannot be compared: its exports hold no"
        " kernel launch; the gate stays closed."
    ]
    assert whole == COULD_NOT_TELL


def test_an_unread_main_run_is_not_replaced_by_its_repeat(repeated):
    document, rows = compare(repeated, ["a", "a2"], ["empty", "b"])
    assert (document["why"], rows) == (REFUSED, [])
    assert [one["dataset"] for one in document["unread_repeats"]] == []


def test_page_finding_and_overview_name_the_repeat(repeated):
    document, rows = compare(repeated, ["a", "a2"], ["b", "b2", "empty"])
    findings = comparison_findings(document, rows)
    assert all("empty, a repeat of the candidate, could not be measured" in one.assumption for one in findings)
    figures = {
        "changes": inline(draw_changes(document, rows)),
        "totals": inline(draw_totals(document)),
        "ratios": inline(draw_ratios(document, rows)),
    }
    page = str(draw_comparison(document, rows, ["a headline"], **figures))
    assert "empty, a repeat of the candidate, could not be measured" in page
    assert f"empty is in no number: {REFUSED}" in page
    section = str(compared_runs([(document, rows)], summarise(findings, {}, "0")["findings"], [], []))
    assert "repeat could not be measured" in section
    assert ">empty<" in section
    clean = str(compared_runs([compare(repeated, ["a", "a2"], ["b", "b2"])], [], [], []))
    assert "could not be measured" not in clean


def test_an_export_that_was_not_read_whole_is_named(repeated):
    """The main run keeps what its other exports hold; which one is not in it stands among what was not compared."""
    home = repeated / "compare" / "a__b"
    folders = {"a": [repeated / "a" / "tables" / "e0"], "b": [repeated / "b" / "tables" / "e0"]}
    (repeated / "b" / "tables" / "e1").mkdir()
    for path in (repeated / "empty" / "tables" / "e0").iterdir():
        (repeated / "b" / "tables" / "e1" / path.name).write_bytes(path.read_bytes())
    folders["b"].append(repeated / "b" / "tables" / "e1")
    run([["a"], ["b"]], folders, {}, [{}, {}], {}, CHOICES, home / "comparison.json", home / "comparison.parquet")
    ((document, _),) = read_comparisons([home / "comparison.json"])
    assert document["why"] is None
    assert document["not_compared"][0] == "b: export e1 could not be read and is in no number."

"""Two runs that hold nothing to compare: the comparison says why, the gate stays closed, and pages go on."""

import json

import pytest
from gate_samples import DOCUMENT, NONE, row

from causeway.comparison.compare import run
from causeway.comparison.gate import LIMITS, judge, missing, outcome, reasons
from causeway.core.results import read_capabilities, read_comparisons
from causeway.core.vocabulary import COULD_NOT_TELL, REGRESSED
from causeway.findings.comparison import comparison_findings
from causeway.findings.document import summarise
from causeway.plotting.figures.comparison import draw_changes, draw_ratios, draw_totals
from causeway.plotting.overview.comparisons import compared_runs
from causeway.plotting.pages.comparison_page import draw_comparison
from causeway.plotting.pages.gate_summary import gate_markdown
from causeway.plotting.pages.history_page import draw_history_page
from causeway.readers.normalise import normalise
from comparison_runs import CHOICES, write_run
from queried import answers, same

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


def test_runs_without_a_kernel_in_common_have_all_facts_and_no_change(results):
    document, rows = compare(results, ["good"], ["other"])
    assert document["why"].startswith("good and other have no kernel in common, by name,")
    assert [document[side]["launches"] for side in ("baseline", "candidate")] == [480, 160]
    assert rows == []


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
        "changes": draw_changes(document, rows),
        "totals": draw_totals(document),
        "ratios": draw_ratios(document, rows),
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
    section = str(compared_runs(pairs, summarise(findings, {}, "0")["findings"], []))
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

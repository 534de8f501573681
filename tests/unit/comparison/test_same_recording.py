"""One recording in two datasets is measured once: no claim, no noise and no open gate comes from it."""

import json

import pytest
from gate_samples import NONE

from causeway.comparison.compare import run
from causeway.comparison.gate import LIMITS, judge, outcome, reasons
from causeway.core.tables import read_json, read_table
from causeway.findings.comparison import comparison_findings
from causeway.readers.normalise import normalise
from comparison_runs import CHOICES, write_comparison, write_run
from support import DATA

LIMITS_SET = {**NONE, **dict.fromkeys(LIMITS, 5), "min_efficiency": 0.5, "forbid_new_kernels": True}


def recorded(home, name, seed, digest, ranks=(0,), keep=None, first_ns=0, dropped=1):
    """Write a run as a dataset of one export whose content has this digest; `keep`: as a filter leaves it."""
    folder = write_run(home / name, seed, names=("advance", "reduce"), ranks=len(ranks))
    facts = {"ranks": list(ranks), "sha256": digest, "time": {"first_ns": first_ns, "last_ns": 9}}
    (folder / "capabilities.json").write_text(json.dumps(facts), encoding="utf-8")
    if keep is not None:
        reduced = {"keep": keep, "tables": {"launches": {"compute": {"rows": {"dropped": dropped}}}}}
        (folder / "filter.json").write_text(json.dumps(reduced), encoding="utf-8")
    return folder


def compared(home, names, folders):
    path = write_comparison(home, names, folders)
    return read_json(path), read_table(path.with_suffix(".parquet"), "comparison").to_pylist()


def test_a_run_against_its_copy_decides_nothing_and_says_why(tmp_path):
    folders = {name: recorded(tmp_path, name, 1, "f" * 64) for name in ("a", "b")}
    document, rows = compared(tmp_path, [["a"], ["b"]], folders)
    assert document["same_content"]["sides"] == {"dataset": "b", "of": "a", "exports": 1, "is_all": True}
    assert document["assumption"].startswith("b is the same recording as a (equal content): it was measured once")
    assert {(row["verdict"], row["reason"], row["low_percent"], row["q_value"]) for row in rows} == {
        ("inconclusive", "both sides are the same recording", None, None)
    }
    assert {row["change_percent"] for row in rows} == {0.0}
    (finding,) = comparison_findings(document, rows)
    assert finding.headline == "b and a are the same recording: there are no two runs to compare."
    assert finding.sentence == "b is the same recording as a: there are no two runs to compare."
    assert finding.verdict == "inconclusive"


def test_the_gate_judges_no_limit_of_a_run_against_its_copy(tmp_path):
    folders = {name: recorded(tmp_path, name, 1, "f" * 64) for name in ("a", "b")}
    states = judge(*compared(tmp_path, [["a"], ["b"]], folders), LIMITS_SET)
    assert [state["limit"] for state in states] == [*LIMITS, "min_efficiency", "forbid_new_kernels"]
    assert {state["state"] for state in states} == {"not judged"}
    stops = reasons(states, strict=False)
    assert len(stops) == len(states)
    assert stops[0] == (
        "a -> b: both sides are the same recording (equal content), so max_slowdown_percent cannot be judged and the"
        " gate stays closed; name exports of two runs."
    )
    assert outcome(states, stops) == "could not tell"


def test_a_shared_recording_takes_no_sentence_from_a_limit_that_is_not_set(tmp_path):
    folders = {name: recorded(tmp_path, name, 1, "f" * 64) for name in ("a", "b")}
    states = judge(*compared(tmp_path, [["a"], ["b"]], folders), {**NONE, "max_span_increase_percent": 5})
    assert [state["limit"] for state in states] == ["max_span_increase_percent"]


@pytest.mark.parametrize(
    ("repeats", "kept", "copies"),
    [
        ((["a2"], []), ([], []), [("a2", "a")]),
        ((["b2"], []), ([], []), [("b2", "b")]),
        (([], ["a2", "b2"]), ([], []), [("a2", "a"), ("b2", "b")]),
        ((["a2", "c"], ["c2"]), (["c"], []), [("a2", "a"), ("c2", "c")]),
    ],
)
def test_no_noise_is_learned_from_copies(repeats, kept, copies, tmp_path):
    """What is compared beside copies is, row by row, what is compared without them."""
    runs = {"a": (1, "a" * 64), "b": (2, "b" * 64), "c": (3, "c" * 64)}
    folders = {name: recorded(tmp_path, name, *facts) for name, facts in runs.items()}
    folders |= {f"{name}2": recorded(tmp_path, f"{name}2", *facts) for name, facts in runs.items()}
    with_copies, rows = compared(tmp_path / "copies", [["a", *repeats[0]], ["b", *repeats[1]]], folders)
    without, expected = compared(tmp_path / "alone", [["a", *kept[0]], ["b", *kept[1]]], folders)
    assert rows == expected
    assert with_copies["noise"] == without["noise"] == ("repeats" if any(kept) else "halves")
    assert [with_copies[side]["repeats"] for side in ("baseline", "candidate")] == list(kept)
    said = [f"{one} is the same recording as {other} (equal content): it is no further run" for one, other in copies]
    assert all(sentence in with_copies["assumption"] for sentence in said)
    assert [(one["dataset"], one["of"]) for one in with_copies["same_content"]["repeats"]] == copies
    assert with_copies["same_content"]["sides"] is None


def test_of_runs_that_share_a_rank_that_rank_is_undecided_and_the_gate_shut(tmp_path):
    """The baseline is rank 0 of the candidate: one recording of two."""
    one = recorded(tmp_path, "one", 1, "0" * 64)
    other = recorded(tmp_path, "other", 2, "1" * 64, ranks=(1,))
    document = tmp_path / "compare"
    run(
        [["one"], ["both"]],
        {"one": [one], "both": [one, other]},
        {},
        [{}, {}],
        {},
        CHOICES,
        document / "c.json",
        document / "c.parquet",
    )
    rows = read_table(document / "c.parquet", "comparison").to_pylist()
    comparison = read_json(document / "c.json")
    assert comparison["same_content"]["sides"] == {"dataset": "both", "of": "one", "exports": 1, "is_all": False}
    assert comparison["assumption"].startswith("1 export is the same recording in both as in one (equal content)")
    reasons_of = {(row["level"], row["candidate"], row["reason"]) for row in rows if row["reason"].startswith("both")}
    assert reasons_of == {("rank", "0", "both sides are the same recording")}
    (state,) = judge(comparison, rows, {**NONE, "max_slowdown_percent": 5})
    assert state["state"] == "not judged"
    assert "both sides have a recording in common (equal content)" in state["sentence"]


@pytest.mark.parametrize(
    ("before", "after", "is_shared"),
    [
        ({}, {}, True),
        ({}, {"digest": "e" * 64}, False),
        ({"digest": None}, {"digest": None}, False),
        # a stretch of a run is not the run, nor another stretch of it; the same stretch is
        ({}, {"keep": [{"step": "1-5"}]}, False),
        ({"keep": [{"step": "1-5"}]}, {"keep": [{"step": "6-9"}]}, False),
        ({"keep": [{"step": "1-5"}]}, {"keep": [{"step": "1-5"}], "first_ns": 7}, False),
        ({"keep": [{"step": "1-5"}]}, {"keep": [{"step": "1-5"}]}, True),
        # a filter that keeps all leaves the run
        ({}, {"keep": [{"step": "1-99"}], "dropped": 0}, True),
        # the sheet gives the copy another rank
        ({}, {"ranks": (3,)}, True),
    ],
)
def test_what_is_the_same_recording(before, after, is_shared, tmp_path):
    sides = (("a", 1, before), ("b", 2, after))
    folders = {name: recorded(tmp_path, name, seed, **{"digest": "f" * 64, **facts}) for name, seed, facts in sides}
    document, _ = compared(tmp_path, [["a"], ["b"]], folders)
    assert (document["same_content"]["sides"] is not None) is is_shared


@pytest.mark.parametrize("source", ["nsys_parquetdir/nukexc/report1", "nsys_sqlite/rodinia-gaussian/report3.sqlite"])
def test_a_real_export_against_itself_is_noticed_by_what_its_reader_wrote(source, data, tmp_path):
    names = ("before", "after")
    for name in names:
        normalise(DATA / source, tmp_path / name / "tables" / "e0", export="e0", source=source)
    folders = {name: tmp_path / name / "tables" / "e0" for name in names}
    document, rows = compared(tmp_path, [["before"], ["after"]], folders)
    (state,) = judge(document, rows, {**NONE, "max_slowdown_percent": 5})
    assert (state["state"], document["same_content"]["sides"]["is_all"]) == ("not judged", True)

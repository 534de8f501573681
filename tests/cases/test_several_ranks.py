"""Cases of several ranks: recordings that begin apart, one long wait, allocation in turns, kernels of experts."""

import html
import json
import re

import pytest

pytestmark = pytest.mark.slow
MS = 1_000_000


def of_traces(case, name):
    """Return a document of the one dataset of a case that has traces."""
    (path,) = case.results.glob(f"*/{name}")
    return json.loads(path.read_text(encoding="utf-8"))


def of_dataset(case):
    """Return the findings of that dataset, in their order."""
    name = of_traces(case, "efficiency.json")["dataset"]
    return [one for one in case.findings() if one["dataset"] == name]


def first_screen(case):
    """Return the text of the page up to the findings behind a click."""
    page = case.overview()
    body = re.sub(r"<(style|script|svg).*?</\1>", "", page, flags=re.S)
    text = html.unescape(re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", body)))
    return text.split("All other findings, in their order")[0]


def headlines(case):
    return [one["headline"] for one in of_dataset(case)]


def test_profilers_that_open_apart(analysed):
    case = analysed("pytorch-amd/profilers_open_apart")
    document = of_traces(case, "efficiency.json")
    parts = list(document["breakdown"].values())
    assert len(parts) == 3
    for one in parts:
        assert one["elapsed_ns"] == pytest.approx(9.23 * MS, rel=2e-3)
        assert 0.47 * MS <= one["communication_ns"] <= 0.525 * MS
    held = document["recordings"]["held_ns"]
    assert held == {"0": pytest.approx(2_000 * MS, rel=1e-3), "1": pytest.approx(1_600 * MS, rel=1e-3)}
    assert sum(ns for part, ns in document["waterfall_ns"].items() if part != "useful") < 3 * MS
    first, *others = of_dataset(case)
    assert first["kind"] == "recording"
    assert case.answers("Recording") == [
        "Recordings begin 2 s apart: waiting up to 2 s for that is no loss of the run."
    ]
    assert first["headline"] == case.answers("Recording")[0]
    screen = first_screen(case)
    assert case.answers("Where")[0].startswith("Communication outside compute 5.4 %")
    assert "99 %" not in screen
    assert "100 % of the GPU time" not in screen
    assert all((one["worth_ns"] or 0) < 3 * MS for one in others)
    (group,) = of_traces(case, "stragglers.json")["groups"]
    assert group["collectives"] == 9
    assert group["latest_ns"] < MS
    assert not re.search("is late by more than 1.46 s", case.overview())


def test_one_long_wait(analysed):
    case = analysed("pytorch-amd/one_long_wait")
    (group,) = of_traces(case, "stragglers.json")["groups"]
    assert group["waiting_ns"] == pytest.approx(26.986 * MS, rel=1e-4)
    assert (group["collectives"], group["waited_for"]) == (8, 3)
    rank = next(one for one in group["ranks"] if one["rank"] == 3)
    assert rank["waiting_for_it_ns"] == pytest.approx(24.509 * MS, rel=1e-4)
    assert rank["latest_ns"] == pytest.approx(7.0 * MS, rel=1e-2)
    assert rank["last_collectives"] == 5
    (finding,) = [one for one in of_dataset(case) if one["kind"] == "straggler"]
    assert (finding["verdict"], finding["worth_ns"]) == ("supported", rank["waiting_for_it_ns"])
    (said,) = case.answers("Which rank")
    assert said.startswith(finding["headline"].removesuffix("."))
    assert "Rank 3 is last in 5 of 8 collectives" in said
    assert "Each of the other 3 waits 8.17 ms on average, most of it in few long waits" in said
    assert said in first_screen(case)
    page = case.overview()
    assert "No rank stands out" not in page
    assert "would have been seen" not in " ".join(headlines(case))
    assert not re.search(r"lateness[^.]*would have been seen", page)


def test_allocation_in_turns(analysed):
    case = analysed("pytorch-amd/allocation_in_turns")
    first = of_dataset(case)[0]
    assert first["id"].endswith("/efficiency/orchestration")
    replay = first["replay"]
    assert (replay["time_ns"], replay["predicted_ns"]) == (
        pytest.approx(90.3 * MS, rel=2e-3),
        pytest.approx(45.3 * MS, rel=5e-3),
    )
    assert first["recoverable_ns"] == pytest.approx(135 * MS, rel=5e-3)
    assert first["recoverable_share"] == pytest.approx(0.5, abs=0.003)
    second = next(one for one in of_dataset(case) if one["id"].endswith("/efficiency/communication"))
    assert second["recoverable_share"] == pytest.approx(0.27, abs=0.01)
    whole = of_traces(case, "efficiency.json")
    lost = whole["waterfall_ns"]
    assert first["worth_ns"] + second["worth_ns"] == lost["orchestration"] + lost["communication"]
    screen = first_screen(case)
    assert case.answers("Where")[1] in screen
    assert case.answers("What to do")[0] == "Allocate once, or from a pool: cudaFree 9 ms, cudaMalloc 6 ms."
    assert case.answers("Where")[1].endswith(
        "Without this and the waits that it causes the run is 45.1 ms (50 %) shorter; then collectives limit it."
    )


def test_expert_parallel_kernels(analysed):
    case = analysed("pytorch-amd/expert_parallel_kernels")
    (device,) = of_traces(case, "efficiency.json")["breakdown"].values()
    assert device["communication_ns"] == 16_800_000
    assert device["overlap_ns"] == pytest.approx(15.957 * MS, rel=1e-4)
    assert device["exposed_communication_ns"] == pytest.approx(0.843 * MS, rel=1e-3)
    assert device["compute_ns"] == pytest.approx(21.121 * MS, rel=1e-4)
    assert "known as communication" not in case.overview()


def test_kernels_of_no_known_name_are_a_caution_until_the_user_names_them(cases, analysed, tmp_path):
    """The same trace without any name that says so: in `check`, and with the user's choice."""
    text = (cases / "pytorch-amd/expert_parallel_kernels/rank0.pt.trace.json").read_text(encoding="utf-8")
    for word, other in (("acme::ep::internode::", "acme::fabric::"), ("dispatch", "push"), ("combine", "pull")):
        text = text.replace(word, other)
    path = tmp_path / "rank0.pt.trace.json"
    path.write_text(text, encoding="utf-8")
    case = analysed(path)
    (device,) = of_traces(case, "efficiency.json")["breakdown"].values()
    assert device["communication_ns"] == 0
    assert "none of which is known as communication" in case.overview()
    named = analysed(path, options=("--set", 'communication_kernels=["acme::fabric::"]'))
    (device,) = of_traces(named, "efficiency.json")["breakdown"].values()
    assert device["communication_ns"] == 16_800_000
    assert "known as communication" not in named.overview()

"""Findings on losses of GPU time and on stragglers."""

import copy
import json

import duckdb
import numpy as np
import pytest
from made_results import efficiency, stragglers

from causeway.core.clock import Clock
from causeway.core.formatting import time_three_digits
from causeway.efficiency.ranks import stragglers as ranks_compared
from causeway.efficiency.ranks.collectives import MatchedCollectives
from causeway.findings import suggestions
from causeway.findings.collection import _graphed
from causeway.findings.device_time.efficiency import efficiency_findings, little_memory_stall
from causeway.findings.device_time.replay_savings import with_replays
from causeway.findings.device_time.stragglers import straggler_findings
from causeway.findings.document import DatasetTime, summarise
from causeway.findings.suggestions import IN_GRAPHS, of_graphed


def test_losses_of_gpu_time_are_findings_worth_all_that_is_lost():
    found = {finding.id.rpartition("/")[2]: finding for finding in efficiency_findings(efficiency())}
    assert list(found) == ["orchestration", "load_imbalance", "idle", "small_kernels"], "1 % of the time at least"
    lost = found["orchestration"]
    assert lost.sentence == (
        "40 % of the GPU time (790 ms of 2.00 s on 2 devices) is lost to idle time: nothing runs on the device."
    )
    assert (lost.recoverable_ns, lost.effect.value) == (790_000_000, 39.5)
    less = found["load_imbalance"]
    assert less.headline == "Devices compute 200 ms less in all than the busiest one would: 10 % of the GPU time."
    assert less.sentence == (
        "Devices compute 200 ms (10 % of GPU time) less in all than if each computed as long as the busiest one: that is"
        " what balanced work could save at most."
    )
    assert (less.recoverable_ns, less.effect.value, less.effect.unit) == (200_000_000, 200_000_000, "ns")
    assert found["idle"].effect.value == 75.0
    assert "waits for the host" in found["idle"].sentence
    assert "host is late" in found["idle"].suggestion
    assert (
        found["small_kernels"].sentence
        == "50 % of 4,000 launches are shorter than 10.0 µs and have 12 % of the kernel time."
    )
    path = efficiency()["launch_path"]
    for part, words in ((0, "0"), (0.0002, "less than 1"), (0.0051, "1"), (0.0151, "2")):
        short = efficiency(launch_path=path | {"small_time_share": part})
        said = next(one.sentence for one in efficiency_findings(short) if one.key == "small_kernels")
        assert said.endswith(f"have {words} % of the kernel time.")
    assert efficiency_findings(efficiency(why="no launches")) == []
    shared = {
        finding.id: finding
        for finding in efficiency_findings(efficiency(shared=[{"at_once_ns": 7_000_000}, {"at_once_ns": 500_000}]))
    }
    words = shared["demo/dataset/efficiency/shared_devices"].sentence
    assert words == "2 GPUs are shared by several ranks, whose kernels run at once for 7.50 ms in all."


@pytest.mark.parametrize(
    ("in_steps", "said"),
    [(0.79, "about 79 %"), (0.006, "about 0.6 %"), (0.81, None), (None, None), (0, None)],
)
def test_a_loss_says_that_what_is_outside_of_the_steps_counts(in_steps, said):
    """Of 2 s of GPU time; the reason of the loss and the short kernels are no loss of their own."""
    steps_ns = None if in_steps is None else round(in_steps * 2_000_000_000)
    time = DatasetTime(gpu_ns=2_000_000_000, steps=10 * bool(in_steps), steps_ns=steps_ns)
    found = {one["id"].rpartition("/")[2]: one["sentence"] for one in of_document(efficiency(), time)}
    end = f" Steps make up {said} of the GPU time: what is lost outside of them, as at start-up, counts too."
    for key in ("orchestration", "load_imbalance"):
        assert found[key].endswith(end) if said else "Steps" not in found[key]
    assert not any("Steps" in found[key] for key in ("idle", "small_kernels"))


def of_document(document, time):
    return summarise(efficiency_findings(document), {"demo": time}, "0" * 16)["findings"]


def test_headline_and_sentence_of_a_loss_say_the_same_percentage():
    parts = {"useful": 1_952_000_000, "communication": 48_000_000, "transfers": 0, "orchestration": 0, "outside": 0}
    lost = efficiency_findings(efficiency(waterfall_ns=parts))[0]
    assert lost.headline.startswith("2.4 % of the GPU time (48 ms)")
    assert lost.sentence.startswith("2.4 % of the GPU time (48.0 ms of 2.00 s on 2 devices)")


@pytest.mark.parametrize(("calls", "found"), [(True, True), (False, False)])
def test_idle_time_without_launch_calls_is_left_to_the_finding_that_names_the_gap(calls, found):
    device = {"idle_host_ns": 0, "idle_kernel_wait_ns": 1, "idle_other_ns": 400_000_000, "exposed_memory_ns": 0}
    document = efficiency(breakdown={"0/0": device, "1/0": device}, host={"possible": calls})
    assert any(one.id.endswith("/idle") for one in efficiency_findings(document)) is found


@pytest.mark.parametrize(
    ("alone", "is_little"), [(0, True), (1_426_646, True), (19_999_998, True), (20_000_000, False)]
)
def test_a_memory_stall_is_little_where_copies_alone_take_less_than_a_hundredth_of_the_gpu_time(
    alone, is_little, tmp_path, monkeypatch
):
    """Of 2 s on two devices; half of the time on each."""
    device = {"idle_host_ns": 0, "idle_kernel_wait_ns": 0, "idle_other_ns": 0, "exposed_memory_ns": alone // 2}
    document = efficiency(breakdown={"0/0": device, "1/0": device})
    finding = little_memory_stall(document)
    assert (finding is not None) == is_little
    if not is_little:
        return
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "efficiency.json").write_text(json.dumps(document))
    monkeypatch.chdir(tmp_path)
    assert duckdb.execute(finding.evidence.query).fetchall()[0][0] == alone == finding.effect.value
    assert (finding.target, finding.is_negligible, finding.suggestion) == ("memory_stall", True, None)
    share = {0: "0 %", 1_426_646: "< 0.1 %", 19_999_998: "1 %"}[alone]
    assert finding.headline.startswith("Memory stall costs little: copies run without a kernel beside them for ")
    assert finding.headline.endswith(f", {share} of the GPU time.")


def test_nothing_is_little_where_nothing_was_measured():
    assert little_memory_stall(efficiency(why="no launches")) is None


@pytest.mark.parametrize(
    ("why", "because", "suggestion"),
    [
        ({"cause": "host", "kernels": [], "clock": None}, "launched late", "host of this rank"),
        (
            {"cause": "compute", "kernels": [{"kernel": "gemm"}], "clock": {"slower": True}},
            "most of all gemm; its clock",
            "kernels of",
        ),
        (None, "for it in all.", "explorer"),
    ],
)
def test_a_late_rank_is_named_with_what_it_costs_and_why(why, because, suggestion):
    (finding,) = straggler_findings(stragglers(why=why))
    assert finding.sentence.startswith(
        "Rank 7 is last in 95 of 100 collectives of communicator a'b; DROP TABLE x, and late beyond the threshold in"
        " 90; the others wait 2.50"
    )
    assert because in finding.sentence
    assert suggestion in finding.suggestion
    assert (finding.worth.ns, finding.recoverable_ns) == (2_500_000, 5_000_000)  # on both ranks, of which one waits
    assert finding.id == "demo/dataset/straggler/c0/rank7"
    assert "DROP" not in finding.evidence.query


def test_slow_transfers_and_nobody_late_are_findings_too():
    both = straggler_findings(stragglers("mixed"))
    assert [finding.recoverable_ns for finding in both] == [5_000_000, 800_000]
    (nobody,) = straggler_findings(stragglers("inconclusive", "none"))
    assert (nobody.recoverable_ns, nobody.verdict) == (None, "inconclusive")
    assert "beyond 12.0 µs would have been seen" in nobody.sentence


def played(late):
    """Return starts and ends of 30 collectives on four ranks, ns: 1 ms of work before each, of rank 2 `late` more."""
    random = np.random.default_rng(35)
    start = np.zeros((4, 30), np.int64)
    end = np.zeros(30, np.int64)
    for at in range(30):
        start[:, at] = (end[at - 1] if at else 0) + 1_000_000 + random.integers(0, 2_000, 4)
        start[2, at] += late
        end[at] = start[:, at].max() + 50_000
    return start, np.broadcast_to(end, start.shape)


def test_what_a_late_rank_costs_is_what_the_run_without_it_saves_on_all_ranks(tmp_path, monkeypatch):
    """Three ranks wait, four end earlier: the bound holds, and is not far from what the run without the delay takes."""
    start, end = played(100_000)
    group = MatchedCollectives(None, [0, 1, 2, 3], start, end, ["all_reduce"] * 30, np.full(30, -1))
    times = ranks_compared.analyse(group, dict.fromkeys(range(4), Clock()))
    document = {"dataset": "demo", "groups": [ranks_compared.verdict_of(times, group)]}
    (finding,) = straggler_findings(document)
    saved = 4 * int(end[0, -1] - played(0)[1][0, -1])
    assert finding.worth.ns < saved <= finding.recoverable_ns < 1.03 * saved
    ahead = [sorted(row) for row in start.T.tolist()]
    alone = sum(row[3] - row[2] for row in ahead)  # rank 2 is the last of all
    assert finding.recoverable_ns == 4 * alone
    assert finding.worth.ns == sum(row[3] - other for row in ahead for other in row)
    each = time_three_digits(alone)
    assert finding.sentence.endswith(f" Were it never late, each of the 4 ranks would save up to {each}.")
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "stragglers.json").write_text(json.dumps(document))
    monkeypatch.chdir(tmp_path)
    assert duckdb.connect().sql(finding.recoverable_query).fetchall() == [(finding.recoverable_ns,)]


@pytest.mark.parametrize("devices", [1, 2])
def test_a_loss_by_communication_is_that_of_each_device_in_sum(devices, tmp_path, monkeypatch):
    """Two devices communicate outside kernels for 10 and 24 ms: 34 ms are lost, not 48."""
    parts = {"useful": 114, "communication": 34, "transfers": 0, "orchestration": 52, "outside": 0}
    parts = {part: ms * 1_000_000 for part, ms in parts.items()}
    document = efficiency(waterfall_ns=parts, device={"n_devices": devices}, elapsed_ns=200_000_000 // devices)
    (found,) = [one for one in efficiency_findings(document) if one.key == "communication"]
    assert found.headline == "17 % of the GPU time (34 ms) is lost to communication that no kernel overlaps."
    assert "busiest" not in found.sentence
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "efficiency.json").write_text(json.dumps(document))
    monkeypatch.chdir(tmp_path)
    for one in efficiency_findings(document):
        asked = [(one.evidence.query, one.effect.value), (one.recoverable_query, one.recoverable_ns)]
        for query, value in asked if one.key in ("communication", "load_imbalance") else ():
            assert duckdb.execute(query).fetchall()[0][0] == value


@pytest.mark.parametrize(("within_ms", "pins"), [(4, True), (6, False)])
def test_copies_within_a_device_are_not_to_be_pinned(within_ms, pins):
    parts = {"useful": 100, "communication": 0, "transfers": 40, "orchestration": 60, "outside": 0}
    parts = {part: ms * 1_000_000 for part, ms in parts.items()}
    rows = [{"kind": 1, "duration_ns": 5_000_000}, {"kind": 8, "duration_ns": within_ms * 1_000_000}]
    document = efficiency(waterfall_ns=parts, elapsed_ns=100_000_000, copies=rows)
    (found,) = [one for one in efficiency_findings(document) if one.key == "transfers"]
    assert ("pinned" in found.suggestion, "in place" in found.suggestion) == (pins, not pins)


def in_two(verdict="straggler"):
    """Return a document in which rank 7 is late in two communicators: for 2.5 ms in one and for 1.5 ms in the other."""
    document = stragglers(verdict)
    other = copy.deepcopy(document["groups"][0])
    other["communicator"] = "tensor"
    other["excess_transfer_ns"] = 700_000
    other["ranks"][1] |= {"waiting_for_it_ns": 1_600_000, "alone_ns": 1_500_000}
    document["groups"].insert(0, other)
    return document


def test_what_a_rank_costs_in_two_communicators_is_counted_once(tmp_path, monkeypatch):
    """Of 2.5 and 1.5 ms on each of two ranks the larger stands; the sum of 8 ms may be the same time twice."""
    found = straggler_findings(in_two())
    assert [one.recoverable_ns for one in found] == [None, 5_000_000]
    assert [one.worth.ns for one in found] == [1_600_000, 2_500_000]
    assert found[0].sentence.endswith(
        " That may be the same time as in the collectives of communicator a'b; DROP TABLE x, and is not added to it."
    )
    assert "is not added" not in found[1].sentence
    time = {"demo": DatasetTime(gpu_ns=10**8)}
    (one,) = summarise(found, time, "0")["findings"]
    assert (one["id"], one["recoverable_ns"]) == ("demo/dataset/straggler/c1/rank7", 5_000_000)
    assert [more["id"] for more in one["also"]] == ["demo/dataset/straggler/c0/rank7"]
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "stragglers.json").write_text(json.dumps(in_two()), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert duckdb.connect().execute(one["recoverable_query"]).fetchall() == [(5_000_000,)]


def test_the_replay_of_a_late_rank_saves_once():
    """The replay takes the lateness away in all communicators: 3 ms of the run, on two devices."""
    row = {"change": "no_straggler", "name": "rank 7", "step": None, "limited_by": None, "limited_name": None}
    row |= {"time_ns": 100_000_000, "predicted_ns": 97_000_000}
    row |= {"device_time_ns": 100_000_000, "predicted_device_time_ns": 97_000_000}
    found = with_replays(straggler_findings(in_two()), {"demo": [row]}, {"demo": 2})
    assert [one.recoverable_ns for one in found] == [None, 6_000_000]
    assert [one.replay is not None for one in found] == [False, True]


def test_slow_transfers_of_two_communicators_are_counted_once_and_apart_from_the_late_rank():
    found = straggler_findings(in_two("mixed"))
    assert [(one.subject, one.recoverable_ns) for one in found] == [
        ("rank 7", None),
        ("demo", None),
        ("rank 7", 5_000_000),
        ("demo", 800_000),
    ]


@pytest.mark.parametrize("verdict", ["straggler", "inconclusive"])
def test_one_communicator_and_those_without_a_late_rank_stay_as_they_are(verdict):
    document = in_two(verdict)
    document["groups"][0]["ranks"][1]["rank"] = 5
    found = straggler_findings(document)
    assert [one.explains for one in found] == [None, None]
    assert [one.recoverable_ns for one in found] == ([3_000_000, 5_000_000] if verdict == "straggler" else [None, None])


def advice():
    """Return every text of advice."""
    for value in vars(suggestions).values():
        if isinstance(value, str) and " " in value:
            yield value
        elif isinstance(value, dict):
            yield from (one for one in value.values() if isinstance(one, str))


def test_no_advice_to_use_graphs_is_left():
    told = [one for one in advice() if "HIP graphs" in one or "in a graph" in one]
    assert len(told) >= 6
    assert {of_graphed(one) for one in told} == {IN_GRAPHS}
    assert of_graphed(None) is None
    kept = suggestions.LOSSES["transfers"]
    assert of_graphed(kept) == kept


@pytest.mark.parametrize(
    ("graph_ns", "nodes", "is_graphed"),
    [(50, 0, True), (49, 0, False), (0, 50, True), (0, 49, False), (0, 0, False)],
)
def test_graphs_with_half_of_the_time_or_of_the_launches_are_how_a_program_runs(graph_ns, nodes, is_graphed):
    device = {"graph_ns": graph_ns, "busy_ns": 100}
    efficiency = {"dataset": "d", "why": None, "breakdown": {"0/0": device}}
    issues = [{"kind": "graph_launches", "count": nodes}] * bool(nodes)
    quality = {"dataset": "d", "issues": issues, "exports": [{"rows": 100}]}
    assert (_graphed([efficiency], [quality]) == {"d"}) == is_graphed

"""Causes that make other ranks wait: worth what their replay saves on all of them, and counted once."""

import json

import duckdb
import pyarrow as pa
import pytest
from made_results import efficiency, stragglers

from causeway.core.tables import SCHEMAS, write_table
from causeway.findings.device_time.efficiency import efficiency_findings
from causeway.findings.device_time.replay_savings import with_replays
from causeway.findings.device_time.stragglers import straggler_findings
from causeway.findings.device_time.waiting import waiting_findings

MS = 1_000_000
PARTS = {
    "useful": 600 * MS,
    "load_imbalance": 0,
    "communication": 1_000 * MS,
    "transfers": 0,
    "orchestration": 400 * MS,
}
"""Of 2 s on two devices."""
WAITS = [("blocked_host", "cudaFree", 250 * MS), ("blocked_host", "cudaMalloc", 140 * MS), ("start_up", "", 10 * MS)]


def found_with(tmp_path, monkeypatch, saved, time=1_000):
    """Return losses by key with replays in which each change saves so many ms of a run of `time` ms."""
    rows = [
        dict.fromkeys(SCHEMAS["replay"].names)
        | {"change": change, "time_ns": time * MS, "predicted_ns": (time - ms) * MS, "naive_ns": 0}
        | {"device_time_ns": time * MS, "predicted_device_time_ns": (time - ms) * MS}
        | {"limited_by": "kernel", "limited_name": "k", "name": name}
        for (change, name), ms in saved.items()
    ]
    document = efficiency(waterfall_ns=PARTS)
    lost = {one.key: one for one in efficiency_findings(document)}
    waits = [
        {"rank": 0, "device": 0, "step": None, "reason": reason, "detail": detail, "wait_ns": ns}
        for reason, detail, ns in WAITS
    ]
    lost |= {one.key: one for one in waiting_findings("demo", waits, 2_000 * MS, lost["orchestration"])}
    folder = tmp_path / "demo"
    folder.mkdir(exist_ok=True)
    write_table(pa.Table.from_pylist(rows, schema=SCHEMAS["replay"]), folder / "replay.parquet", "replay")
    (folder / "efficiency.json").write_text(json.dumps(document))
    monkeypatch.chdir(tmp_path)
    elapsed = {"demo": document["elapsed_ns"]}
    return {one.key: one for one in with_replays(list(lost.values()), {"demo": rows}, {"demo": 2}, elapsed)}


def test_a_cause_is_worth_what_the_others_wait_for_it_too_and_losses_still_add_up(tmp_path, monkeypatch):
    """Without the host's calls the run takes half of its time: 1 s of two devices, of which 0.6 s are waiting in
    collectives; free collectives save 0.3 s, and keep that waiting.
    """
    saved = {("host_free", None): 500, ("collectives_free", None): 150}
    found = found_with(tmp_path, monkeypatch, saved)
    host = found["orchestration"]
    collectives = found["communication"]
    assert (host.recoverable_ns, host.worth.ns) == (1_000 * MS, 1_000 * MS)
    assert (collectives.recoverable_ns, collectives.worth.ns) == (300 * MS, 400 * MS)
    assert host.worth.ns + collectives.worth.ns == PARTS["orchestration"] + PARTS["communication"]
    for one in (host, collectives):
        assert duckdb.sql(one.recoverable_query).fetchall()[0][0] == one.recoverable_ns
    assert host.headline == (
        "50 % of the GPU time (1 s) is lost while devices wait, mostly for blocking calls (cudaFree, cudaMalloc),"
        " 600 ms of it in collectives."
    )
    assert collectives.headline.startswith(
        "20 % of the GPU time (400 ms) is lost to communication that no kernel overlaps"
    )
    assert "That is a bound" not in host.sentence
    assert "600 ms of it is because of what devices wait for, and counts there." in collectives.sentence


def test_no_more_is_moved_than_free_collectives_leave(tmp_path, monkeypatch):
    saved = {("host_free", None): 500, ("collectives_free", None): 400}
    found = found_with(tmp_path, monkeypatch, saved)
    assert (found["orchestration"].recoverable_ns, found["orchestration"].worth.ns) == (1_000 * MS, 600 * MS)
    assert found["communication"].worth.ns == found["communication"].recoverable_ns == 800 * MS


def test_a_replay_of_more_time_than_the_losses_are_bounds_nothing_beyond_them(tmp_path, monkeypatch):
    """As where ranks are compared in a part of what was recorded: 2 s of a run of which the losses are of 1 s."""
    saved = {("host_free", None): 1_500, ("collectives_free", None): 150}
    found = found_with(tmp_path, monkeypatch, saved, time=2_000)
    assert found["orchestration"].recoverable_ns == found["orchestration"].worth.ns == 400 * MS
    assert found["communication"].worth.ns == 1_000 * MS


def seldom(cause="host", count=8, latest=7 * MS):
    """Return `stragglers.json` of a rank behind 90 % of the waiting that is not named as late."""
    document = stragglers("inconclusive", "none", {"cause": cause, "kernels": [], "clock": None})
    group = document["groups"][0]
    group |= {"communicator": None, "collectives": count, "waited_for": 7, "waiting_ns": 300 * MS, "latest_ns": latest}
    group["ranks"][1] |= {"last_collectives": 5, "waiting_for_it_ns": 270 * MS, "alone_ns": 100 * MS}
    group["ranks"][1] |= {"latest_ns": latest, "by_chance": 0.11}
    return document


def test_who_is_waited_for_is_told_however_often():
    (one,) = straggler_findings(seldom())
    assert (one.verdict, one.worth.ns, one.recoverable_ns) == ("supported", 270 * MS, 200 * MS)
    assert one.headline == "Other ranks wait 270 ms for rank 7, 90 % of all waiting: last in 5 of 8, which are few."
    assert "which is last in 5 of 8, by up to 7.00 ms" in one.sentence
    assert "by chance some rank is last as often in 11 %" in one.sentence
    (often,) = straggler_findings(seldom(count=5_000))
    assert "few." not in often.headline
    assert "few long waits make up most" in often.sentence


@pytest.mark.parametrize(("latest", "said"), [(11_000, "beyond 12.0 µs would have been seen"), (7 * MS, "7.00 ms")])
def test_no_bound_is_below_a_lateness_that_was_seen(latest, said):
    document = stragglers("inconclusive", "none")
    document["groups"][0]["latest_ns"] = latest
    (nobody,) = straggler_findings(document)
    assert said in nobody.sentence
    assert nobody.effect.value >= latest
    assert ("12 µs" in nobody.headline) == (latest < 12_000)
    assert "often" in nobody.headline


def test_time_of_a_late_host_is_counted_once(tmp_path, monkeypatch):
    """That of a host that is late is a part of what devices wait for the host; the run is longer in the replay without
    the late rank, which says nothing, then.
    """
    lost = list(found_with(tmp_path, monkeypatch, {("host_free", None): 500}).values())
    rows = [
        {"change": "host_free", "name": None, "step": None, "time_ns": 1_000 * MS, "predicted_ns": 500 * MS}
        | {"device_time_ns": 1_000 * MS, "predicted_device_time_ns": 500 * MS, "limited_by": "kernel"}
        | {"limited_name": "k", "naive_ns": 0}
    ]
    rows.append(rows[0] | {"change": "no_straggler", "name": "rank 7", "predicted_ns": 1_400 * MS})
    for cause, recoverable in (("host", None), ("compute", 200 * MS)):
        late = straggler_findings(seldom(cause))
        found = {
            one.key: one for one in with_replays([*lost, *late], {"demo": rows}, {"demo": 2}, {"demo": 1_000 * MS})
        }
        assert found["c0/rank7"].replay is None
        assert found["c0/rank7"].recoverable_ns == recoverable
        assert ("is not added to it" in found["c0/rank7"].sentence) == (recoverable is None)

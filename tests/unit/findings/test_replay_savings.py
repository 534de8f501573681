"""What losses would save by a replay: worth what the replay saves, beside the bound, and each number by its query."""

import json
import re
from dataclasses import replace

import duckdb
import pyarrow as pa
import pytest
from made_results import efficiency, stragglers

from causeway.core.tables import SCHEMAS, write_table
from causeway.findings import suggestions
from causeway.findings.device_time.efficiency import efficiency_findings
from causeway.findings.device_time.replay_savings import with_replays
from causeway.findings.device_time.stragglers import straggler_findings
from causeway.findings.device_time.waiting import waiting_findings
from causeway.findings.document import DatasetTime, summarise
from causeway.plotting.overview.findings_list import finding_item

PARTS = {"useful": 1_000_000_000, "outside": 200_000_000, "communication": 300_000_000, "transfers": 300_000_000}
PARTS["orchestration"] = 2_000_000_000 - sum(PARTS.values())
HOSTILE = "<script>alert('x')</script>'; DROP TABLE t"
ROWS = [
    ("nothing", None, None, 1_100, 1_100, "host", "x", 0),
    ("kernel_faster", HOSTILE, None, 1_100, 900, "kernel", HOSTILE, 300),
    ("collectives_free", None, None, 1_100, 1_060, "kernel", HOSTILE, 150),
    ("collectives_free", None, 0, 500, 480, None, None, None),
    ("collectives_free", None, 1, 600, 580, None, None, None),
    ("copies_free", None, None, 1_100, 300, "copy", "", 150),
    ("host_free", None, None, 1_100, 1_100, "kernel", "k", 150),
    ("no_straggler", "rank 7", None, 1_100, 1_099, "kernel", "k", 1),
]
"""Times in ms here."""


@pytest.fixture
def rows(tmp_path, monkeypatch):
    """Rows of `replay.parquet`, beside it `efficiency.json`; queries run in the results folder."""
    times = ("time_ns", "predicted_ns", "naive_ns")
    names = [name for name in SCHEMAS["replay"].names if "device" not in name]
    rows = [dict(zip(names, row, strict=True)) for row in ROWS]
    rows = [row | {key: None if row[key] is None else row[key] * 1_000_000 for key in times} for row in rows]
    rows = [predicting(row, row["predicted_ns"]) for row in rows]
    written(rows, tmp_path)
    (tmp_path / "demo" / "efficiency.json").write_text(json.dumps(efficiency(waterfall_ns=PARTS)))
    (tmp_path / "demo" / "stragglers.json").write_text(json.dumps(stragglers()))
    monkeypatch.chdir(tmp_path)
    return rows


def predicting(row, predicted, of_devices=None):
    """Return a row with another predicted time of the run and, unless given, the same of its devices."""
    time = row["time_ns"]
    devices = (None, None) if row["step"] is not None else (time, predicted if of_devices is None else of_devices)
    return row | {"predicted_ns": predicted, "device_time_ns": devices[0], "predicted_device_time_ns": devices[1]}


def written(rows, folder):
    table = pa.Table.from_pylist(rows, schema=SCHEMAS["replay"])
    write_table(table, folder / "demo" / "replay.parquet", "replay")


def found_with(rows):
    lost = efficiency_findings(efficiency(waterfall_ns=PARTS)) + straggler_findings(stragglers())
    return {finding.key: finding for finding in with_replays(lost, {"demo": rows}, {"demo": 2})}


def asked(query):
    return duckdb.connect().sql(query).fetchall()[0][0]


def test_a_loss_is_worth_what_its_replay_saves_and_never_more_than_the_loss(rows):
    found = found_with(rows)
    losses = [key for key in (*PARTS, "load_imbalance") if key in found]
    worth = {key: (found[key].recoverable_ns, found[key].worth.ns) for key in losses}
    assert worth == {
        "load_imbalance": (200_000_000, 200_000_000),  # no replay takes it away
        "communication": (80_000_000, 300_000_000),  # 40 ms of two devices
        "transfers": (300_000_000, 300_000_000),  # 800 ms of two devices would be more than the loss
        "orchestration": (0, 200_000_000),
    }
    assert found["c0/rank7"].recoverable_ns == 2_000_000
    for finding in found.values():
        if finding.recoverable_query:
            assert asked(finding.recoverable_query) == finding.recoverable_ns
        if finding.replay:
            assert asked(finding.replay.query) == finding.replay.predicted_ns


def test_headline_and_sentence_say_the_new_time_and_what_limits_then(rows):
    found = found_with(rows)
    one = found["communication"]
    assert one.headline.endswith("; without it the run is 3.6 % shorter.")
    assert "the run of 1.10 s is 40.0 ms shorter, a step takes 530 ms on average instead of 550 ms" in one.sentence
    assert "then a kernel limits it most: <script>" in one.sentence
    assert "is not shorter" in found["orchestration"].sentence
    assert found["orchestration"].headline.endswith("; without it the run is no shorter.")
    assert found["load_imbalance"].replay is None


def test_steps_that_are_longer_than_the_run_together_are_not_spoken_of(rows):
    longer = [row | {"time_ns": 2 * row["time_ns"]} if row["step"] is not None else row for row in rows]
    one = found_with(longer)["communication"]
    assert (one.replay.step_ns, one.replay.predicted_step_ns) == (None, None)
    assert "a step takes" not in one.sentence


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ([480, 580], True),
        ([481, 579], True),
        ([480, 579], False),  # 41 ms, but the run only 40
        ([500, 601], False),  # longer, in a run that is shorter
        ([500, 600], False),  # not another time than before
    ],
)
def test_what_is_said_of_a_step_agrees_with_the_run(rows, steps, said):
    """As of a recording in which devices are 421 ms behind their hosts: steps of hosts took 35.6 ms instead of 35.2 in
    a run that was said to be no shorter.
    """
    changed = [
        row | {"predicted_ns": steps[row["step"]] * 1_000_000} if row["step"] is not None else row for row in rows
    ]
    one = found_with(changed)["communication"]
    assert ("a step takes 530 ms on average instead of 550 ms" in one.sentence) == said
    assert ("a step takes" in one.sentence) == said
    assert "the run of 1.10 s is 40.0 ms shorter" in one.sentence


def test_a_step_that_is_left_with_no_time_is_not_spoken_of(rows):
    """As of hosts that run ahead: steps of 1.92 ms, of which a replay without host time left 4 µs, 2 µs and 0."""
    changed = [
        predicting(row, 0 if row["step"] == 0 else 600_000_000) if row["step"] is not None else row for row in rows
    ]
    changed = [
        predicting(row, 400_000_000) if row["change"] == "collectives_free" and row["step"] is None else row
        for row in changed
    ]
    one = found_with(changed)["communication"]
    assert "is 700 ms shorter" in one.sentence
    assert "a step takes" not in one.sentence


def test_a_run_that_is_hardly_shorter_is_no_shorter_in_the_headline(rows):
    hardly = [predicting(row, 1_099_889_000) if row["change"] == "host_free" else row for row in rows]
    one = found_with(hardly)["orchestration"]
    assert one.headline.endswith("; without it the run is no shorter.")
    assert "the run of 1.10 s is hardly shorter (111 µs)" in one.sentence


@pytest.mark.parametrize(
    ("limited_by", "name", "pins"),
    [
        ("copy", "copy (device to host, pageable memory)", True),
        ("copy", "copy (device to host)", False),
        ("kernel", "of pageable memory, pageable memory", False),
    ],
)
def test_pinning_is_suggested_where_copies_of_pageable_memory_are_longest_on_the_path(rows, limited_by, name, pins):
    found = found_with([rows[0] | {"limited_by": limited_by, "limited_name": name}, *rows[1:]])
    assert (found["transfers"].suggestion == suggestions.PAGEABLE) == pins
    assert found["communication"].suggestion == suggestions.LOSSES["communication"]


def test_more_than_the_loss_is_said_to_lie_elsewhere(rows):
    found = found_with(rows)
    assert "the run of 1.10 s is 800 ms shorter" in found["transfers"].sentence
    assert found["transfers"].headline.endswith("; a replay saves all of it.")  # not 73 %: 800 of 1,100 ms
    assert "shorter" not in found["transfers"].headline
    assert found["transfers"].sentence.endswith("where devices are not yet at work.")
    assert "not yet at work" not in found["communication"].sentence


def test_what_a_free_host_saves_beyond_the_loss_is_not_said_of_the_loss(rows):
    """Idle devices lose 200 ms of 2.2 s; without any host time the run would be 36 % shorter, of another cause."""
    shorter = [predicting(row, 700_000_000) if row["change"] == "host_free" else row for row in rows]
    one = found_with(shorter)["orchestration"]
    assert (one.recoverable_ns, one.worth.ns) == (200_000_000, 200_000_000)
    assert one.headline.endswith("; a replay saves all of it.")
    assert "shorter" not in one.headline
    assert "is 400 ms shorter" in one.sentence


def test_what_is_saved_before_the_first_work_of_a_device_is_none_of_the_loss(rows, tmp_path):
    """Without host time the run is 142 ms shorter, 140 of them before the first launch; two devices wait 200 ms."""
    shorter = [
        predicting(row, 958_000_000, of_devices=1_098_000_000) if row["change"] == "host_free" else row for row in rows
    ]
    written(shorter, tmp_path)
    one = found_with(shorter)["orchestration"]
    assert (one.recoverable_ns, asked(one.recoverable_query), one.worth.ns) == (4_000_000, 4_000_000, 200_000_000)
    assert "is 142 ms shorter" in one.sentence
    assert one.sentence.endswith("where devices are not yet at work.")
    assert one.headline.endswith("; a replay saves 4 ms of it.")  # 2 ms of both devices
    assert "shorter" not in one.headline
    nearly = [predicting(row, 0, 1_000_100_000) if row["change"] == "host_free" else row for row in rows]
    assert found_with(nearly)["orchestration"].recoverable_ns == 199_800_000
    assert found_with(nearly)["orchestration"].headline.endswith("; a replay saves all of it.")  # 200 ms of 200 ms
    none = [row | {"predicted_device_time_ns": row["device_time_ns"]} for row in shorter]
    assert found_with(none)["orchestration"].headline.endswith("; a replay saves none of it.")


def test_devices_that_begin_later_save_nothing_outside_of_their_time(rows, tmp_path):
    """As of an inference server: without collectives devices begin 11 ms later, and the run is no shorter."""
    later = [
        predicting(row, 1_100_000_000, of_devices=1_089_000_000) if row["change"] == "collectives_free" else row
        for row in rows
    ]
    one = found_with(later)["communication"]
    assert one.recoverable_ns == 22_000_000
    assert one.headline.endswith("; without it the run is no shorter.")
    assert "is not shorter" in one.sentence
    assert "outside the loss" not in one.sentence


@pytest.mark.parametrize(
    ("predicted_ms", "headline", "said", "tried"),
    [
        (1_045, "without launch calls the run is 5 % shorter.", "is 55.0 ms shorter", True),
        (1_100, "without launch calls the run is no shorter.", "is not shorter", False),
    ],
)
def test_short_launches_are_told_with_what_launch_calls_cost(predicted_ms, headline, said, tried, rows, tmp_path):
    """Most launches may be short in a run that copies limit: then fusing them changes nothing."""
    free = rows[0] | {"change": "launches_free", "predicted_ns": predicted_ms * 1_000_000}
    written([*rows, free], tmp_path)
    one = found_with([*rows, free])["small_kernels"]
    assert one.headline == f"50 % of the launches are shorter than 10 µs; {headline}"
    assert f"Replayed without the time of launch calls, the run of 1.10 s {said}; then the host limits" in one.sentence
    assert "bound" not in one.sentence
    assert bool(one.suggestion) == tried
    assert (one.recoverable_ns, asked(one.replay.query)) == (None, predicted_ms * 1_000_000)
    document = summarise([one], {"demo": DatasetTime(gpu_ns=2_000_000_000)}, "0" * 8)["findings"]
    assert headline in re.sub(r"<[^>]*>", "", str(finding_item(0, document[0])))
    assert document[0]["severity"] == ("low" if tried else "none")
    idle = replace(one, key="idle", headline="Devices are idle.", is_negligible=False)
    found = summarise([one, idle], {"demo": DatasetTime(gpu_ns=2_000_000_000)}, "0" * 8)["findings"]
    assert tried or [finding["headline"] for finding in found] == ["Devices are idle.", one.headline]
    (alone,) = [finding for finding in efficiency_findings(efficiency()) if finding.key == "small_kernels"]
    assert found_with(rows)["small_kernels"].headline == alone.headline
    assert alone.suggestion


@pytest.mark.parametrize("other", ["rank 4", None])
def test_another_rank_or_no_replay_leaves_the_bound(rows, other):
    changed = [row | {"name": other or "rank 7"} if row["change"] == "no_straggler" else row for row in rows]
    found = found_with(changed if other else [])
    assert found["c0/rank7"].replay is None
    assert found["c0/rank7"].recoverable_ns == 5_000_000


def test_what_a_late_rank_saves_is_what_its_replay_says(rows, tmp_path):
    """4 ms of two devices, though the other rank waits for 2.5 ms alone."""
    shorter = [predicting(row, 1_096_000_000) if row["change"] == "no_straggler" else row for row in rows]
    written(shorter, tmp_path)
    one = found_with(shorter)["c0/rank7"]
    assert (one.worth.ns, one.recoverable_ns, asked(one.recoverable_query)) == (2_500_000, 8_000_000, 8_000_000)
    assert one.headline.endswith("; without it the run is 0.36 % shorter.")
    assert "is 4.00 ms shorter" in one.sentence
    assert "outside the loss" not in one.sentence


def test_the_page_says_what_stands_beside_a_replay(rows):
    document = summarise(found_with(rows).values(), {"demo": DatasetTime(gpu_ns=2_000_000_000)}, "0" * 8)["findings"]
    said = {one["id"].rpartition("/")[2]: str(finding_item(at, one)) for at, one in enumerate(document)}
    assert "by replay; at most " in said["communication"]
    assert "all that is lost; a replay saves no less" in said["transfers"]  # 800 ms twice, of a loss of 300 ms
    assert "by replay; the ranks wait " in said["rank7"]


def test_the_page_says_that_a_late_rank_without_a_replay_is_worth_a_bound(rows):
    """Of two ranks one waits for 2.5 ms; the run is shorter on both."""
    document = summarise(found_with([]).values(), {"demo": DatasetTime(gpu_ns=2_000_000_000)}, "0" * 8)["findings"]
    (said,) = (str(finding_item(at, one)) for at, one in enumerate(document) if one["id"].endswith("rank7"))
    saves = re.sub(r"<[^>]*>", "", said[said.index('class="saves"') :])
    assert re.search(r">5 ms ?at most, on all ranks; the others wait 2\.5 ms", saves)


@pytest.mark.parametrize(("unknown", "is_known"), [(49, True), (50, False)])
def test_no_replay_stands_for_a_loss_whose_reason_is_mostly_not_known(rows, unknown, is_known):
    """A host that takes no time leaves the run as long as it is: that says what the host costs, and not what 200 ms of
    waiting for what is not recorded are worth; 10 % of the GPU time is nothing small.
    """
    waited = {"unknown": unknown, "launch_starved": 100 - unknown}
    table = [
        {"rank": 0, "device": 0, "step": None, "reason": reason, "detail": "x", "wait_ns": 2_000_000 * part}
        for reason, part in waited.items()
    ]
    loss = next(one for one in efficiency_findings(efficiency(waterfall_ns=PARTS)) if one.key == "orchestration")
    loss, waits = with_replays(waiting_findings("demo", table, 2_000_000_000, loss), {"demo": rows}, {"demo": 2})
    assert (loss.replay is not None) == is_known
    assert loss.recoverable_ns == asked(loss.recoverable_query) == (0 if is_known else 200_000_000)
    assert ("is not known, as the reason of most of it is not." in loss.sentence) != is_known
    assert waits.replay is None
    (one,) = summarise([loss, waits], {"demo": DatasetTime(gpu_ns=2_000_000_000)}, "0" * 64)["findings"]
    assert one["severity"] == ("low" if is_known else "high")
    item = re.sub("<[^>]*>", "", str(finding_item(0, one)))
    assert ("small: under a hundredth" in item) == is_known
    assert ("at most" in item) or not is_known
    assert ("all of it: a bound" in item) != is_known

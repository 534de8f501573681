"""A host of which nothing is recorded but when it enqueued work: where all work had ended, it may have waited for it."""

import numpy as np
import pytest
from tests.unit.waiting.waiting_samples import write_export

from causeway.core.tables import read_table, write_json
from causeway.events import event_blocks
from causeway.events.device_events import UNKNOWN
from causeway.waiting.find_critical_paths import find_critical_paths
from causeway.waiting.graph.host_calls import unseen_waits

LAUNCHES = [(0, 5, 105), (125, 130, 230), (145, 230, 330), (350, 355, 455)]
"""When each was enqueued, began and ended, µs: the third was enqueued behind the second, the others on an idle device."""


def microseconds(launches):
    return [tuple(1000 * moment for moment in row) for row in launches]


def tables(folder, launches, ranks=(0,), drift=0):
    rows = [
        {"start_ns": start, "duration_ns": end - start, "queue_ns": start - asked, "rank": rank}
        for rank in ranks
        for asked, start, end in launches
    ]
    rows.sort(key=lambda row: row["start_ns"])
    write_export(folder / "e0", {"launches": [row | {"device": 0, "stream": 7, "configuration": 0} for row in rows]})
    clock = {"shift_ns": 5, "drift_ppb": drift, "reference_ns": 0, "ranks": list(ranks)}
    write_json({"exports": {"e0": clock}}, folder / "clocks.json")
    outs = [folder / "d" / f"{table}.parquet" for table in ("critical_path", "replay", "path_pieces")]
    find_critical_paths("d", [folder / "e0"], folder / "clocks.json", None, [], *outs)
    return outs


def test_the_path_of_launches_that_follow_the_end_of_the_one_before_is_through_the_kernels(tmp_path):
    """Of 455 µs kernels run for 400, 15 pass from enqueueing to the start of three, and the host is late by twice 20."""
    path, replay, _ = tables(tmp_path, microseconds(LAUNCHES))
    found = {(row["kind"], row["name"]): row["path_ns"] for row in read_table(path, "critical_path").to_pylist()}
    assert {kind: ns for (kind, _), ns in found.items()} == {
        "kernel": 400_000, "launch": 15_000, "host": 40_000,
    }  # fmt: skip
    assert found["host", "host code between calls"] == 40_000
    saved = {row["change"]: row["time_ns"] - row["predicted_ns"] for row in read_table(replay, "replay").to_pylist()}
    assert saved == {"nothing": 0, "host_free": 40_000, "kernel_faster": 40_000}


def test_a_host_that_enqueues_while_work_runs_waits_for_none(tmp_path):
    """Three launches, each enqueued 60 µs after the one before, on a device that each keeps busy for 100 µs."""
    path, replay, _ = tables(tmp_path, microseconds([(0, 5, 105), (60, 105, 205), (120, 205, 305)]))
    found = {row["kind"]: row["path_ns"] for row in read_table(path, "critical_path").to_pylist()}
    assert found == {"kernel": 300_000, "launch": 5_000}
    saved = {row["change"]: row["time_ns"] - row["predicted_ns"] for row in read_table(replay, "replay").to_pylist()}
    assert saved == {"nothing": 0, "host_free": 0, "kernel_faster": 30_000}


@pytest.mark.parametrize("seed", range(30))
def test_a_wait_ends_with_the_last_work_where_all_had_ended(seed):
    rng = np.random.default_rng(seed)
    queued = np.sort(rng.integers(0, 400, 12))
    end = queued + rng.integers(0, 60, 12)
    mine = np.sort(rng.choice(12, 8, replace=False))
    expected = []
    for number, row in enumerate(mine):
        earlier = [end[i] for i in range(12) if queued[i] < queued[row]]
        went_on = number and earlier and queued[mine[number - 1]] < max(earlier) <= queued[row]
        expected.append(max(earlier) if went_on else UNKNOWN)
    shuffled = rng.permutation(12)
    assert unseen_waits(queued[mine], queued[shuffled], end[shuffled]).tolist() == expected


def test_pieces_give_the_same_bytes_as_everything_in_memory(tmp_path, monkeypatch):
    rng = np.random.default_rng(3)
    launches = []
    free = asked = 0
    for _ in range(400):
        asked = max(asked, int(rng.choice([asked, free]))) + int(rng.integers(1, 9_000))
        start = max(asked + int(rng.integers(0, 4_000)), free)
        free = start + int(rng.integers(0, 9_000))
        launches.append((asked, start, free))
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    whole = [path.read_bytes() for path in tables(tmp_path / "a", launches, (0, 3), 900)]
    monkeypatch.setattr(event_blocks, "CHUNK_ROWS", 50)
    assert [path.read_bytes() for path in tables(tmp_path / "b", launches, (0, 3), 900)] == whole
    kinds = {row["kind"] for row in read_table(tmp_path / "a/d/critical_path.parquet", "critical_path").to_pylist()}
    assert kinds >= {"kernel", "host", "launch"}

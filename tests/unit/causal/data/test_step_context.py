"""Which of the launches of its configuration in its step a launch is, against a plain count over all launches."""

import json

import numpy as np
import pytest
from planted_steps import SHIFT, STEPS, table

from causeway.causal.data.feature_names import grids_and_blocks
from causeway.causal.data.launch_context import ChosenLaunches
from causeway.causal.data.operator_context import StepWindows, add_steps
from causeway.core.clock import Clock
from causeway.core.tables import write_table
from causeway.core.vocabulary import CALLED_SINCE

CALLED_SINCE_NS = 2900
"""Rank 0: what starts before was launched before the recording began."""
ONCE = 3
"""A configuration that is launched once per step and device at most."""


def step_of(row, steps):
    """Return the number of the step in whose window the call of a launch ended."""
    if row["rank"] == 0 and row["start_ns"] < CALLED_SINCE_NS:
        return None
    moment = row["start_ns"] + SHIFT - (row["queue_ns"] or 0)
    inside = [
        one["step"]
        for one in steps
        if one["rank"] == row["rank"] and one["start_ns"] <= moment < one["start_ns"] + one["duration_ns"]
    ]
    return inside[0] if inside else None


@pytest.fixture
def export(tmp_path):
    """Write an export of two ranks with two devices each and its steps; return folder, launches and steps."""
    rng = np.random.default_rng(11)
    launches = [
        {
            "start_ns": start,
            "duration_ns": 5,
            "configuration": int(rng.integers(0, 3)),
            "rank": int(rng.integers(0, 2)),
            "device": int(rng.choice([0, 3])),
            "stream": 7,
            "queue_ns": int(rng.integers(0, 1500)) if rng.random() < 0.8 else None,
        }
        for start in np.sort(rng.integers(1000, 9000, 600)).tolist()
    ]
    seen = set()
    for row in launches[::40]:
        if (key := (row["rank"], row["device"], step_of(row, STEPS))) not in seen:
            row["configuration"] = ONCE
            seen.add(key)
    write_table(table(launches, "launches"), tmp_path / "launches.parquet", "launches")
    called = json.dumps({0: SHIFT + CALLED_SINCE_NS, 1: SHIFT})
    write_table(table(STEPS, "steps"), tmp_path / "steps.parquet", "steps", metadata={CALLED_SINCE: called})
    return tmp_path, launches, STEPS


@pytest.mark.parametrize("rows_per_batch", [None, 7])
def test_it_counts_all_launches_of_the_configuration_in_the_step_on_the_device(export, monkeypatch, rows_per_batch):
    folder, launches, steps = export
    if rows_per_batch:
        monkeypatch.setattr("causeway.events.event_blocks.CHUNK_ROWS", rows_per_batch)
    counts = {}
    expected = []
    for row in launches:
        step = step_of(row, steps)
        own = row["configuration"]
        key = (row["rank"], row["device"], own, step)
        counts[key] = counts.get(key, 0) + 1
        words = "outside of steps"
        if step is not None:
            size = {0: " (grid 2 x 66, block 384)", 1: " (grid 8)"}.get(own, "")
            words = f"launch {counts[key]} of configuration {own + 20}{size}"
        expected.append("only launch" if own == ONCE else words)
    overtaken = 0
    for rank in (0, 1):
        rows = np.array([number for number, row in enumerate(launches) if row["rank"] == rank][::3])
        chosen = ChosenLaunches(rank, rows, np.full(rows.size, -1))
        windows = StepWindows.of(folder / "steps.parquet", rank)
        dataset_numbers = np.array([launches[row]["configuration"] + 20 for row in rows])
        sizes = {0: "grid 2 x 66, block 384", 1: "grid 8", 2: ""}
        add_steps(folder, windows, chosen, Clock(shift_ns=SHIFT), dataset_numbers, sizes)
        assert chosen.features["launch_in_step"].tolist() == [expected[row] for row in rows]
        order = [step_of(launches[row], steps) or 0 for row in rows]
        overtaken += np.sum(np.diff(order) < 0)
    assert overtaken > 20, "launches of one step begin while those of the next one do"
    assert sum(value is not None and value.startswith("launch 4") for value in expected) > 20


def test_without_steps_of_the_rank_it_is_not_known(export):
    folder, launches, _ = export
    rows = np.array([number for number, row in enumerate(launches) if row["rank"] == 1])
    chosen = ChosenLaunches(1, rows, np.full(rows.size, -1))
    windows = StepWindows.of(folder / "steps.parquet", 2)
    add_steps(folder, windows, chosen, Clock(shift_ns=SHIFT), np.zeros(rows.size, int))
    assert set(chosen.features["launch_in_step"]) == {None}


def test_of_a_rank_without_calls_a_launch_belongs_to_the_step_in_which_it_starts(export):
    folder, launches, steps = export
    write_table(table(steps, "steps"), folder / "steps.parquet", "steps", metadata={CALLED_SINCE: "{}"})
    rows = np.array([number for number, row in enumerate(launches) if row["rank"] == 1])
    chosen = ChosenLaunches(1, rows, np.full(rows.size, -1))
    add_steps(folder, StepWindows.of(folder / "steps.parquet", 1), chosen, Clock(shift_ns=SHIFT), rows * 0)
    expected = [step_of(launches[row] | {"queue_ns": 0}, steps) for row in rows]
    found = [None if np.isnan(value) else int(value) for value in chosen.features["step"]]
    assert found == expected
    assert len(set(expected)) == 6
    begun = {}
    for row in launches:
        if row["rank"] == 1:
            begun.setdefault(step_of(row | {"queue_ns": 0}, steps), row["start_ns"])
    since = [
        None if step is None else launches[row]["start_ns"] - begun[step]
        for row, step in zip(rows, expected, strict=True)
    ]
    found = [None if np.isnan(value) else int(value) for value in chosen.features["step_position"]]
    assert found == since, "from the step's first launch, of which none may have been chosen"


def test_grid_and_block_of_a_configuration_in_words():
    names = [f"{what}_{axis}" for what in ("grid", "block") for axis in "xyz"]
    sizes = [
        (2, 66, 1, 384, 1, 1),
        (1, 1, 1, 32, 4, 1),
        (8, None, None, None, None, None),
        (None,) * 6,
        (4, 1, 3, 1, 1, 1),
    ]
    rows = [{"configuration": at} | dict(zip(names, size, strict=True)) for at, size in enumerate(sizes)]
    assert grids_and_blocks(rows) == {
        0: "grid 2 x 66, block 384",
        1: "grid 1, block 32 x 4",
        2: "grid 8",
        3: "",
        4: "grid 4 x 1 x 3, block 1",
    }

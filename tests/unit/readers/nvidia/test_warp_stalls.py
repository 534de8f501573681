"""Nsight Compute's warp stall reasons get readable names and a group of their own, in both layouts of its CSV."""

import csv
import io

import pytest
from reading import Read

METRICS = {
    "gpu__time_duration.sum": ("nsecond", 1000.0, "gpu_time"),
    "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio": (
        "inst",
        8.25,
        "stall_global_memory_per_issue",
    ),
    "smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio": (
        "inst",
        0.5,
        "stall_shared_memory_per_issue",
    ),
    "smsp__average_warp_latency_issue_stalled_barrier.ratio": ("cycle/instruction", 1.75, "stall_barrier_per_issue"),
    "smsp__average_warp_latency_issue_stalled_wait.ratio": ("", 2.0, "stall_fixed_latency_per_issue"),
    "smsp__average_warps_issue_stalled_gmma_per_issue_active.ratio": ("inst", 9.1, "stall_matrix_unit_per_issue"),
}
LAUNCH = {"ID": "0", "Process ID": "1", "Process Name": "p", "Host Name": "h", "Kernel Name": "k()", "Context": "1"}
LAUNCH |= {"Stream": "7", "Block Size": "(256, 1, 1)", "Grid Size": "(10, 1, 1)", "Device": "0", "CC": "9.0"}


def text_of(rows):
    """Return rows as ncu writes them: every field in quotes."""
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    return out.getvalue()


def long_layout():
    rows = [[*LAUNCH, "Section Name", "Metric Name", "Metric Unit", "Metric Value"]]
    for number in range(3):
        launch = [*(LAUNCH | {"ID": str(number)}).values()]
        rows += [
            [*launch, "Command line profiler metrics", name, unit, value] for name, (unit, value, _) in METRICS.items()
        ]
    return text_of(rows)


def wide_layout():
    rows = [[*LAUNCH, *METRICS], [*([""] * len(LAUNCH)), *(unit for unit, *_ in METRICS.values())]]
    values = [value for _, value, _ in METRICS.values()]
    return text_of([*rows, *([*(LAUNCH | {"ID": str(number)}).values(), *values] for number in range(3))])


@pytest.mark.parametrize("layout", [long_layout, wide_layout])
def test_reasons_have_names_and_a_group(tmp_path, layout):
    path = tmp_path / "stalls.csv"
    path.write_text(layout())
    export = Read(path, tmp_path / "t")
    assert export.status == "read"
    table = export.counters
    for name, (_, value, ours) in METRICS.items():
        field = table.schema.field(ours)
        assert field.metadata[b"raw"].decode().endswith(name)
        assert table.column(ours).to_pylist() == [value] * 3
        if ours != "gpu_time":
            assert field.metadata[b"group"] == b"warp stalls"

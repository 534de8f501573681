"""What warps wait for: means by kernel against plain loops, and what the overview says of them."""

import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from causeway.core.codes import WARP_STALLS
from causeway.core.tables import read_table
from causeway.plotting.drawing.page import inline
from causeway.plotting.figures.kernels import draw_warp_stalls
from causeway.plotting.overview.what_varies import warp_stalls
from causeway.variability import stall_summary
from causeway.variability.stall_summary import summarise_stalls
from variability_tables import write_export

HOSTILE = "<script>alert(1)</script>'; DROP TABLE t"
NAMES = (HOSTILE, "advance<float>", "reduce")
MEMORY = "stall_global_memory_per_issue"
BARRIER = "stall_barrier_per_issue"
OTHER = "stall_other_per_issue"


def write_counters(folder, seed, reasons, rows=500):
    """Write the counters of an export with random nulls; return (kernel's name, gpu_time in us, values) of each row."""
    rng = np.random.default_rng(seed)
    configuration = rng.integers(0, 4, rows)
    gpu_time = rng.integers(1, 9_000, rows) / 8
    values = {reason: rng.gamma(2.0, 5.0, rows) for reason in reasons}
    missing = {reason: rng.random(rows) < 0.2 for reason in reasons}
    columns = {"launch": np.arange(rows), "configuration": configuration, "rank": np.zeros(rows, int)}
    columns |= {"gpu_time": gpu_time}
    columns |= {reason: pa.array(values[reason], pa.float64(), mask=missing[reason]) for reason in reasons}
    extra = [pa.field("gpu_time", pa.float64(), metadata={"unit": "us"})]
    extra += [pa.field(reason, pa.float64(), metadata={"unit": "cycles"}) for reason in reasons]
    shapes = [(NAMES[0], {"grid_x": 1}), (NAMES[0], {"grid_x": 2}), (NAMES[1], {}), (NAMES[2], {})]
    write_export(folder, counters=columns, configurations=shapes, extra=extra, ranks=[0])
    kernel = [shapes[at][0] for at in configuration]
    return [
        (kernel[row], gpu_time[row], {r: None if missing[r][row] else values[r][row] for r in reasons})
        for row in range(rows)
    ]


def test_means_are_those_of_a_plain_loop_over_all_exports(tmp_path, monkeypatch):
    monkeypatch.setattr(stall_summary, "BATCH_ROWS", 64)
    rows = write_counters(tmp_path / "0", 1, [MEMORY, BARRIER]) + write_counters(tmp_path / "1", 2, [MEMORY, OTHER])
    write_export(tmp_path / "2", {"start_ns": [0], "duration_ns": [1], "configuration": [0]})
    for order in ("012", "210"):
        summarise_stalls("d", [tmp_path / one for one in order], tmp_path / f"{order}.parquet")
    found = read_table(tmp_path / "012.parquet", "stall_reasons").to_pylist()
    assert found == read_table(tmp_path / "210.parquet", "stall_reasons").to_pylist()
    launches = defaultdict(int)
    gpu_ns = defaultdict(int)
    values = defaultdict(list)
    for name, gpu_time, measured in rows:
        launches[name] += 1
        gpu_ns[name] += int(gpu_time * 1000)
        for reason, value in measured.items():
            if value is not None:
                values[name, reason].append(Fraction(value))
    assert len(found) == len(values) == 9
    assert list(dict.fromkeys(row["name"] for row in found)) == sorted(NAMES, key=lambda name: -gpu_ns[name])
    for row in found:
        own = values[row["name"], row["reason"]]
        assert (row["launches"], row["gpu_ns"], row["measured"]) == (
            launches[row["name"]],
            gpu_ns[row["name"]],
            len(own),
        )
        assert row["cycles"] == pytest.approx(float(sum(own) / len(own)), abs=2.0**-20)
        whole = sum(float(sum(values[row["name"], r]) / len(values[row["name"], r])) for r in (MEMORY, BARRIER, OTHER))
        assert row["share"] == pytest.approx(row["cycles"] / whole, rel=1e-5)


def test_what_is_no_measurement_counts_nowhere(tmp_path):
    columns = {"launch": [0, 1, 2, 3], "configuration": [0] * 4, "rank": [0] * 4}
    columns[MEMORY] = [2.0, math.inf, 1e300, math.nan]
    write_export(tmp_path / "0", counters=columns, extra=[pa.field(MEMORY, pa.float64())], ranks=[0])
    summarise_stalls("d", [tmp_path / "0"], tmp_path / "s.parquet")
    (row,) = read_table(tmp_path / "s.parquet", "stall_reasons").to_pylist()
    assert (row["measured"], row["cycles"], row["gpu_ns"]) == (1, 2.0, None)


def test_the_overview_escapes_names(tmp_path):
    write_counters(tmp_path / "0", 3, list(WARP_STALLS))
    summarise_stalls("d", [tmp_path / "0"], tmp_path / "d" / "stall_reasons.parquet")
    table = read_table(tmp_path / "d" / "stall_reasons.parquet", "stall_reasons")
    page = str(warp_stalls(table, "d"))
    assert "<script>" not in page
    figure = inline(draw_warp_stalls(table, dataset=HOSTILE))
    assert "<script>" not in figure
    assert figure.count("<title>") == 1 + 3 * len(WARP_STALLS)
    assert all(words in figure for words in WARP_STALLS.values())


def test_without_counters_of_warp_stalls_nothing_is_said(tmp_path):
    write_export(tmp_path / "0", {"start_ns": [0], "duration_ns": [1], "configuration": [0]})
    summarise_stalls("d", [tmp_path / "0"], tmp_path / "s.parquet")
    table = read_table(tmp_path / "s.parquet", "stall_reasons")
    assert table.num_rows == 0
    assert warp_stalls(table, "d") is None
    assert "no counters of warp stalls" in inline(draw_warp_stalls(table, dataset="d"))


def ratio(reason, latency=False):
    middle = f"warp_latency_issue_stalled_{reason}" if latency else f"warps_issue_stalled_{reason}_per_issue_active"
    return f"smsp__average_{middle}.ratio"


def test_reasons_that_are_not_listed_are_part_of_the_other_ones_and_of_the_whole(tmp_path):
    """A device of the future waits for two things that no list has; `selected` is no wait, and a second column of one
    reason is the same number.
    """
    raw = {
        "tma": (ratio("tma"), [4.0, 6.0, None]),
        "s_tmem": ("Section/" + ratio("tmem"), [1.0, None, None]),
        "again": (ratio("tma", latency=True), [4.0, 6.0, 9.0]),
        "barrier_again": (ratio("barrier", latency=True), [7.0, 7.0, 7.0]),
        "selected": (ratio("selected"), [1.0, 1.0, 1.0]),
        "sampled": ("smsp__pcsamp_warps_issue_stalled_tma", [100.0, 100.0, 100.0]),
        BARRIER: (ratio("barrier"), [7.0, 7.0, 7.0]),
        OTHER: (ratio("misc"), [0.5, None, 0.25]),
    }
    columns = {"launch": [0, 1, 2], "configuration": [0] * 3, "rank": [0] * 3}
    columns |= {name: pa.array(values, pa.float64()) for name, (_, values) in raw.items()}
    extra = [pa.field(name, pa.float64(), metadata={"raw": text}) for name, (text, _) in raw.items()]
    write_export(tmp_path / "0", counters=columns, extra=extra, ranks=[0])
    summarise_stalls("d", [tmp_path / "0"], tmp_path / "s.parquet")
    rows = {row["reason"]: row for row in read_table(tmp_path / "s.parquet", "stall_reasons").to_pylist()}
    assert {reason: row["cycles"] for reason, row in rows.items()} == {
        BARRIER: 7.0,
        OTHER: pytest.approx((5.5 + 6.0 + 0.25) / 3, abs=2.0**-19),
    }
    assert rows[OTHER]["measured"] == 3
    assert rows[OTHER]["share"] == pytest.approx(11.75 / (11.75 + 21), rel=1e-6)

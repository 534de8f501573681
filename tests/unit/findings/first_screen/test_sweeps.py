"""Tables of sweeps on the first screen: by which columns their rows differ."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from first_screen_samples import tables

from causeway.findings.first_screen import device_differences
from causeway.findings.first_screen.facts import DatasetFacts
from causeway.findings.first_screen.plan import plan


def of_sweep(folder, value, dropped=()):
    """Write a table of five sizes on three hosts, three rows each, too few for a search, and return what is said."""
    rows = [
        {"configuration": 0, "size": float(size), "host": f"gx0{host}", "run": float(run), "y": value(size, host, run)}
        for size in (256, 512, 1024, 2048, 4096)
        for host in range(3)
        for run in range(3)
    ]
    pq.write_table(pa.Table.from_pylist(rows), folder / "counters.parquet")
    graph = {"scope": "a", "scope_name": "a", "p_value": None, "n_rows": 45, "reasons": [], "dropped": list(dropped)}
    given = replace(
        tables(
            efficiency={},
            units={},
            folders=[folder],
            searches=[SimpleNamespace(graph=graph, contributions=[])],
        ),
        targets={"y": [{"launches": 45, "value_sum": 64.0, "target_sum": 1.0, "name": "a"}]},
    )
    return [line.answer for line in plan(DatasetFacts(given)) if line.question in ("What varies", "Not searched")]


def test_a_short_sweep_is_told_by_its_columns_and_noise_is_not(tmp_path):
    """Of 45 rows of five sizes only that they are too few to search was said."""
    noise = np.random.default_rng(7).normal(84, 4, (5, 3, 3))
    few = "1 kernel, with at most 45 launches each: too few to search for causes."
    slow_host = of_sweep(tmp_path, lambda size, host, run: (99 + size / 64 + run) * (1.18 if host == 2 else 1))
    assert slow_host[0] == (
        "y by size: median 105 at 256, 165 at 4096. That is 82 % of the variance of its logarithm."
        " Then by host: 1.18 times as much at gx02 as at gx00, 18 %."
    )
    assert slow_host[1] == few
    assert of_sweep(tmp_path, lambda size, host, run: noise[size.bit_length() - 9, host, run]) == [few]


def test_columns_that_give_the_measured_value_are_said_to_be_left_out(tmp_path):
    """Where the time follows from a column exactly, the small rest alone was told."""
    dropped = [
        {"feature": "rate", "kind": "leaked", "reason": "follows"},
        {"feature": "seed", "kind": "uninformative", "reason": "constant"},
    ]
    said = of_sweep(tmp_path, lambda size, host, run: float(size + run), dropped)
    assert any(
        line.endswith("rate gives y exactly, at most with one other column: computed from it, or its cause.")
        for line in said
    )


def test_pairs_of_few_columns_are_compared_and_numbers_of_few_rows(tmp_path, monkeypatch):
    """All pairs of 8 columns were 28 queries, of numbers in tables of any length."""
    rows = [
        {"configuration": 0, "measured": float(row % 2), "host": f"h{row // 2 % 2}", "y": 9.0 - 6 * (row % 4 == 3)}
        | {f"size{number}": float(row // 4 >> number & 1) for number in range(6)}
        for row in range(256)
    ]
    path = tmp_path / "counters.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    groups = []
    shares = device_differences._level_shares
    monkeypatch.setattr(
        device_differences, "_level_shares", lambda base, group, *of: groups.append(group) or shares(base, group, *of)
    )
    (fact,) = device_differences._apart(path, "y", numbers=True)
    # a column called as one of ours had its place
    assert (fact.levels, fact.rows, fact.mean, fact.others) == ((("measured", "1"), ("host", "h1")), 64, 3.0, 9.0)
    assert (len(groups), sum(len(group) > 1 for group in groups)) == (8 + 15, 15)
    monkeypatch.setattr(device_differences, "MOST_ROWS", 255)
    assert device_differences._apart(path, "y", numbers=True) == []
